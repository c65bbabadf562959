//! Where this program itself listens: no server to ask. A router that is told to ask itself would ask for ever.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// The addresses of this program. Grows while it runs; cheap to clone, clones share.
#[derive(Debug, Clone, Default)]
pub struct OwnAddresses(Arc<Mutex<Vec<SocketAddr>>>);

impl OwnAddresses {
    /// It listens there too.
    pub fn add(&self, address: SocketAddr) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains(&address) {
            all.push(address);
        }
    }

    /// The address of ours that a URL of this machine means, if it means one.
    #[must_use]
    pub fn meant_by(&self, url: &str) -> Option<SocketAddr> {
        let (host, port) = host_and_port(url)?;
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter()
            .find(|own| own.port() == port && meets(own.ip(), host))
            .copied()
    }
}

/// `http://HOST[:PORT][/]`, the only form that `spec.external.url` has; an IPv6 address without its brackets.
fn host_and_port(url: &str) -> Option<(&str, u16)> {
    let authority = url.strip_prefix("http://")?.trim_end_matches('/');
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => match authority.find(':') {
            Some(at) => authority.split_at(at),
            None => (authority, ""),
        },
    };
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().ok()?,
        None => 80,
    };
    Some((host, port))
}

/// Whether who connects to a host of this machine meets who listens on an address.
fn meets(own: IpAddr, host: &str) -> bool {
    if host.eq_ignore_ascii_case("localhost") {
        return own.is_loopback() || own.is_unspecified();
    }
    let Ok(asked) = host.parse::<IpAddr>() else {
        return false;
    };
    let everywhere = own.is_unspecified() && (own.is_ipv6() || asked.is_ipv4());
    everywhere || own == asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_means_us_is_told_from_one_of_another() {
        let own = OwnAddresses::default();
        assert_eq!(own.meant_by("http://127.0.0.1:8737"), None);
        for address in [
            "127.0.0.1:8738",
            "127.0.0.1:4748",
            "0.0.0.0:9000",
            "[::]:9001",
            "127.0.0.1:80",
        ] {
            own.add(address.parse().unwrap());
        }
        own.clone().add("127.0.0.1:8737".parse().unwrap());
        for (url, is_ours) in [
            ("http://127.0.0.1:8737", true),
            ("http://127.0.0.1:8737/", true),
            ("http://localhost:8738", true),
            ("http://127.0.0.1:4748", true),
            ("http://127.0.0.1", true),
            ("http://127.0.0.9:9000", true),
            ("http://[::1]:9001", true),
            ("http://127.0.0.1:9001", true),
            // Another server may stand there.
            ("http://[::1]:8737", false),
            ("http://127.0.0.2:8737", false),
            ("http://[::1]:9000", false),
            ("http://127.0.0.1:8000", false),
            ("http://127.0.0.1:99999", false),
            ("nonsense", false),
        ] {
            assert_eq!(own.meant_by(url).is_some(), is_ours, "{url}");
        }
    }
}
