//! A proxy on a Unix socket in front of an engine: what an engine cannot be made to do on demand. It knows nothing of HTTP.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// What happens to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// They pass.
    All,
    /// Those of the client pass, those of the engine are kept back, on open connections too.
    Silence,
    /// Connections are accepted and nothing passes.
    Hang,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    passing: Passing,
    /// Connections made before the last cut are closed.
    cuts: usize,
}

/// A Unix socket that passes on to another one. It is gone when this is dropped.
#[derive(Debug)]
pub struct SocketProxy {
    path: PathBuf,
    state: watch::Sender<State>,
    accepted: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl SocketProxy {
    /// Listens on `path` in front of `engine`. Needs a tokio runtime.
    ///
    /// # Panics
    /// When the socket cannot be made.
    #[must_use]
    pub fn start(path: &Path, engine: &Path) -> Self {
        let listener = UnixListener::bind(path)
            .unwrap_or_else(|error| panic!("cannot listen on {}: {error}", path.display()));
        let (state, watched) = watch::channel(State {
            passing: Passing::All,
            cuts: 0,
        });
        let accepted = Arc::new(AtomicUsize::new(0));
        let accepting = tokio::spawn(accept(
            listener,
            engine.to_owned(),
            watched,
            accepted.clone(),
        ));
        Self {
            path: path.to_owned(),
            state,
            accepted,
            accepting,
        }
    }

    /// From now on bytes pass like this.
    pub fn pass(&self, passing: Passing) {
        self.state.send_modify(|state| state.passing = passing);
    }

    /// Closes every connection there is.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }

    /// Connections so far.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for SocketProxy {
    fn drop(&mut self) {
        self.accepting.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn accept(
    listener: UnixListener,
    engine: PathBuf,
    state: watch::Receiver<State>,
    accepted: Arc<AtomicUsize>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            connection = listener.accept() => {
                if let Ok((client, _)) = connection {
                    accepted.fetch_add(1, Ordering::SeqCst);
                    connections.spawn(serve(client, engine.clone(), state.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// One connection, until a side ends it or it is cut.
async fn serve(client: UnixStream, engine: PathBuf, mut state: watch::Receiver<State>) {
    let born = state.borrow().cuts;
    let mut watched = state.clone();
    let cut = async {
        // An error means that the proxy is gone.
        let _ = state.wait_for(|state| state.cuts > born).await;
    };
    let pass = async {
        let _ = watched
            .wait_for(|state| state.passing != Passing::Hang)
            .await;
        let Ok(engine) = UnixStream::connect(&engine).await else {
            return;
        };
        let (from_client, to_client) = client.into_split();
        let (from_engine, to_engine) = engine.into_split();
        let up = copy(from_client, to_engine, watched.clone(), Passing::Silence);
        let down = copy(from_engine, to_client, watched, Passing::All);
        // HTTP ends when the engine has answered; a client that is gone ends it too.
        tokio::select! {
            () = up => {}
            () = down => {}
        }
    };
    tokio::select! {
        () = cut => {}
        () = pass => {}
    }
}

/// Copies while it is allowed: bytes pass in `All`, and in `least` where that is less.
async fn copy(
    mut from: tokio::net::unix::OwnedReadHalf,
    mut to: tokio::net::unix::OwnedWriteHalf,
    mut state: watch::Receiver<State>,
    least: Passing,
) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let Ok(length @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        let allowed = |state: &State| state.passing == Passing::All || state.passing == least;
        if state.wait_for(allowed).await.is_err() || to.write_all(&buffer[..length]).await.is_err()
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// An engine that answers every byte with the same.
    fn echo(path: &Path) -> JoinHandle<()> {
        let listener = UnixListener::bind(path).unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                });
            }
        })
    }

    #[tokio::test]
    async fn bytes_pass_are_kept_back_and_connections_are_cut() {
        let folder = std::env::temp_dir().join(format!("socket-proxy-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let engine = echo(&folder.join("engine"));
        let proxy = SocketProxy::start(&folder.join("proxy"), &folder.join("engine"));
        let mut client = UnixStream::connect(folder.join("proxy")).await.unwrap();
        let mut byte = [0];
        client.write_all(b"a").await.unwrap();
        client.read_exact(&mut byte).await.unwrap();
        proxy.pass(Passing::Silence);
        client.write_all(b"b").await.unwrap();
        let silent = timeout(Duration::from_millis(50), client.read_exact(&mut byte)).await;
        assert!(silent.is_err());
        proxy.pass(Passing::All);
        client.read_exact(&mut byte).await.unwrap();
        assert_eq!(byte, *b"b");
        proxy.cut();
        assert_eq!(client.read(&mut byte).await.unwrap(), 0);
        assert_eq!(proxy.accepted(), 1);
        drop(proxy);
        assert!(!folder.join("proxy").exists());
        engine.abort();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
