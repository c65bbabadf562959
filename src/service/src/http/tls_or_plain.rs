//! A port that speaks TLS to who begins with a handshake and plain HTTP to everybody else: some clients send a token over
//! TLS only (control-plane 9).

use std::io;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use super::accept::{Accepts, Connection, Opening};

/// First byte of a TLS handshake record (RFC 8446, 5.1).
const HANDSHAKE: u8 = 0x16;

/// Such a port.
pub struct TlsOrPlain {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl TlsOrPlain {
    /// Over a listener that is bound.
    #[must_use]
    pub fn new(listener: TcpListener, tls: Arc<ServerConfig>) -> Self {
        Self {
            listener,
            acceptor: tls.into(),
        }
    }
}

impl Accepts for TlsOrPlain {
    type Stream = TcpStream;
    type Opened = Either<TcpStream, TlsStream<TcpStream>>;

    async fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.listener.accept().await?;
        Ok(stream)
    }

    fn open(&self, stream: TcpStream) -> Opening<Self::Opened> {
        let acceptor = self.acceptor.clone();
        Box::pin(async move {
            stream.prepare();
            let mut first = [0];
            match stream.peek(&mut first).await {
                Ok(1) if first == [HANDSHAKE] => {
                    let stream = acceptor.accept(stream).await;
                    // Whoever does not trust the certificate ends the handshake; that is theirs to know.
                    stream.ok().map(Either::Right)
                }
                Ok(1) => Some(Either::Left(stream)),
                _ => None,
            }
        })
    }
}

impl Connection for Either<TcpStream, TlsStream<TcpStream>> {}
