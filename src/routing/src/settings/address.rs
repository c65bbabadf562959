//! The address of a router: what of a base URL is asked, and why one cannot be. The text itself is in no error, since
//! somebody may have put a password there.

use std::net::Ipv6Addr;

/// Why a text is no address of a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// Neither of the two schemes.
    #[error("must begin with http:// or https://")]
    Scheme,
    /// `user:password@`: the key of a router has its own place.
    #[error("must not hold a user name or a password")]
    Credentials,
    /// Nothing between the scheme and the port or path.
    #[error("names no host")]
    NoHost,
    /// No name and no address.
    #[error("names a host that cannot be one")]
    Host,
    /// No number, 0 or too large.
    #[error("must have a port from 1 to 65535, or none")]
    Port,
    /// Something behind `?` or `#`.
    #[error("must not have a query or a fragment")]
    More,
    /// White space and the like.
    #[error("has white space or other characters that no address has")]
    Characters,
}

/// Scheme, host, port and path of a base URL; a trailing `/v1` is left out, since both forms are in circulation.
///
/// # Errors
/// What is wrong with it.
pub fn origin(url: &str) -> Result<&str, BadAddress> {
    let url = url.trim();
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"))
        .ok_or(BadAddress::Scheme)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(end);
    if authority.contains('@') {
        return Err(BadAddress::Credentials);
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(BadAddress::Characters);
    }
    if behind.contains(['?', '#']) {
        return Err(BadAddress::More);
    }
    check_authority(authority)?;
    let url = url.trim_end_matches('/');
    Ok(url.strip_suffix("/v1").unwrap_or(url).trim_end_matches('/'))
}

fn check_authority(authority: &str) -> Result<(), BadAddress> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, behind) = rest.split_once(']').ok_or(BadAddress::Host)?;
            address.parse::<Ipv6Addr>().map_err(|_| BadAddress::Host)?;
            if behind.is_empty() {
                return Ok(());
            }
            (address, behind.strip_prefix(':').ok_or(BadAddress::Host)?)
        }
        None => match authority.split_once(':') {
            Some(parts) => parts,
            None => return check_host(authority),
        },
    };
    if !authority.starts_with('[') {
        check_host(host)?;
    }
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(port) if port > 0 && digits => Ok(()),
        _ => Err(BadAddress::Port),
    }
}

fn check_host(host: &str) -> Result<(), BadAddress> {
    if host.is_empty() {
        return Err(BadAddress::NoHost);
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if host.bytes().all(fits) {
        Ok(())
    } else {
        Err(BadAddress::Host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_asked_without_its_version() {
        for (url, expected) in [
            ("http://127.0.0.1:8737/v1", "http://127.0.0.1:8737"),
            (" http://a:1/v1/ ", "http://a:1"),
            ("https://router.example", "https://router.example"),
            ("http://[::1]:8737", "http://[::1]:8737"),
            ("http://[::1]", "http://[::1]"),
            (
                "https://team.example/relay/v1",
                "https://team.example/relay",
            ),
            ("http://a_b-c.d:65535", "http://a_b-c.d:65535"),
        ] {
            assert_eq!(origin(url), Ok(expected), "{url}");
        }
    }

    #[test]
    fn says_why_a_text_is_none() {
        for (url, expected) in [
            ("", BadAddress::Scheme),
            ("localhost:8737", BadAddress::Scheme),
            ("ftp://x", BadAddress::Scheme),
            ("http://me:secret@a:1", BadAddress::Credentials),
            ("https://token@a", BadAddress::Credentials),
            ("http://me:se cret@a", BadAddress::Credentials),
            ("http://", BadAddress::NoHost),
            ("http:///v1", BadAddress::NoHost),
            ("http://:8737", BadAddress::NoHost),
            ("http://a:65536", BadAddress::Port),
            ("http://a:0", BadAddress::Port),
            ("http://a:", BadAddress::Port),
            ("http://a:+80", BadAddress::Port),
            ("http://a:x/v1", BadAddress::Port),
            ("http://[::1]:99999", BadAddress::Port),
            ("http://[::1", BadAddress::Host),
            ("http://[::1]8737", BadAddress::Host),
            ("http://::1:8737", BadAddress::NoHost),
            ("http://a\\b", BadAddress::Host),
            ("http://a b", BadAddress::Characters),
            ("http://é", BadAddress::Characters),
            ("http://a/?x=1", BadAddress::More),
            ("http://a#b", BadAddress::More),
        ] {
            assert_eq!(origin(url), Err(expected), "{url}");
        }
    }
}
