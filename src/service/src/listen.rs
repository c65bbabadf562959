//! Addresses to listen on: their text form, what counts as loopback, and binding with a clear error.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use tokio::net::TcpListener;

/// Where to listen: `IP:PORT`, `[IPv6]:PORT` or `localhost:PORT`; port 0 is any free one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress(pub SocketAddr);

impl ListenAddress {
    /// Whether only this machine can reach it.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.0.ip().to_canonical().is_loopback()
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, ListenAddressError> {
        if let Some(port) = text
            .strip_prefix("localhost:")
            .and_then(|port| port.parse().ok())
        {
            return Ok(Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        text.parse().map(Self).map_err(|_| ListenAddressError)
    }
}

/// The text is no address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected IP:PORT, for example 127.0.0.1:8737 or [::1]:0")]
pub struct ListenAddressError;

/// What to do when the port is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortTaken {
    /// An error: the address was asked for.
    Refuse,
    /// Any free port of the same interface: the address was only a default.
    TakeAnyFree,
}

/// The address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
pub struct ListenError {
    /// Which.
    pub address: SocketAddr,
    /// Why.
    #[source]
    pub source: io::Error,
}

impl ListenError {
    /// Whether somebody else has the port.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.source.kind() == io::ErrorKind::AddrInUse
    }
}

/// Binds the address; the listener's own address says which port it became.
///
/// # Errors
/// When the address cannot be bound (taken and not replaceable, not of this machine, not permitted).
pub async fn bind(address: ListenAddress, taken: PortTaken) -> Result<TcpListener, ListenError> {
    match TcpListener::bind(address.0).await {
        Err(error)
            if error.kind() == io::ErrorKind::AddrInUse && taken == PortTaken::TakeAnyFree =>
        {
            let any = SocketAddr::new(address.0.ip(), 0);
            TcpListener::bind(any).await.map_err(|source| ListenError {
                address: any,
                source,
            })
        }
        bound => bound.map_err(|source| ListenError {
            address: address.0,
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses_and_knows_loopback() {
        for (text, loopback) in [
            ("127.0.0.1:8737", Some(true)),
            ("127.9.9.9:0", Some(true)),
            ("[::1]:1", Some(true)),
            ("[::ffff:127.0.0.1]:1", Some(true)),
            ("localhost:8737", Some(true)),
            ("0.0.0.0:8737", Some(false)),
            ("[::]:8737", Some(false)),
            ("10.0.0.7:80", Some(false)),
            ("8737", None),
            (":8737", None),
            ("router.example:8737", None),
            ("127.0.0.1:70000", None),
            ("", None),
        ] {
            let read = text
                .parse::<ListenAddress>()
                .ok()
                .map(|address| address.is_loopback());
            assert_eq!(read, loopback, "{text}");
        }
    }

    #[tokio::test]
    async fn a_taken_port_is_refused_or_replaced_as_asked() {
        let first = bind("127.0.0.1:0".parse().unwrap(), PortTaken::Refuse)
            .await
            .unwrap();
        let same = ListenAddress(first.local_addr().unwrap());
        assert!(bind(same, PortTaken::Refuse).await.unwrap_err().is_taken());
        let other = bind(same, PortTaken::TakeAnyFree).await.unwrap();
        assert_ne!(other.local_addr().unwrap(), same.0);
    }
}
