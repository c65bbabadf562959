//! Addresses: what a name becomes behind a base, where a redirect leads, and which of it may be shown.

use ureq::http::Uri;

/// Whether a byte stands for itself in a path.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/')
}

/// A name as part of an address.
pub(super) fn encoded(name: &str) -> String {
    use std::fmt::Write as _;
    name.bytes()
        .fold(String::with_capacity(name.len()), |mut text, byte| {
            if is_plain(byte) {
                text.push(char::from(byte));
            } else {
                let _ = write!(text, "%{byte:02X}");
            }
            text
        })
}

/// A name behind a base.
pub(super) fn below(base: &str, name: &str) -> Result<Uri, String> {
    let slash = if base.ends_with('/') { "" } else { "/" };
    absolute(&format!("{base}{slash}{}", encoded(name)))
}

/// An address with a scheme that is spoken and a host.
pub(super) fn absolute(text: &str) -> Result<Uri, String> {
    let uri: Uri = text
        .parse()
        .map_err(|error| format!("'{}' is no address: {error}", bare(text)))?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some_and(|host| !host.is_empty()) => Ok(uri),
        _ => Err(format!(
            "'{}' is no address: expected http:// or https:// and a host",
            bare(text)
        )),
    }
}

/// A text that was to be an address, for messages: without what may be a secret, the user and what follows a `?`.
fn bare(text: &str) -> String {
    let whole = text;
    let text = whole.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if whole.contains('@') && !authority.contains('@') && authority.contains(':') {
        // Half of a password that is not escaped, as likely as a host with its port.
        return format!("{scheme}...").escape_default().to_string();
    }
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}{host}{path}").escape_default().to_string()
}

/// Where a redirect from `from` leads (RFC 3986, 5.2).
pub(super) fn redirected(from: &Uri, location: &str) -> Result<Uri, String> {
    let location = location.split('#').next().unwrap_or_default();
    let (scheme, authority) = (
        from.scheme_str().unwrap_or("http"),
        from.authority().map_or("", |authority| authority.as_str()),
    );
    if location.contains("://")
        && location.split(':').next().is_some_and(|scheme| {
            scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'+')
        })
    {
        return absolute(location);
    }
    if let Some(rest) = location.strip_prefix("//") {
        return absolute(&format!("{scheme}://{rest}"));
    }
    let folder = from
        .path()
        .rsplit_once('/')
        .map_or("", |(folder, _)| folder);
    let target = match location.chars().next() {
        None => from.path().to_owned(),
        Some('/') => location.to_owned(),
        Some('?') => format!("{}{location}", from.path()),
        Some(_) => format!("{folder}/{location}"),
    };
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (target.as_str(), String::new()),
    };
    absolute(&format!(
        "{scheme}://{authority}{}{query}",
        without_dots(path)
    ))
}

fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut pieces = path.split('/').peekable();
    while let Some(part) = pieces.next() {
        let last = pieces.peek().is_none();
        match part {
            "." if last => parts.push(""),
            "." => {}
            ".." => {
                if parts.len() > 1 {
                    parts.pop();
                }
                if last {
                    parts.push("");
                }
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether two addresses are of the same server.
pub(super) fn same_server(a: &Uri, b: &Uri) -> bool {
    let server = |uri: &Uri| {
        let scheme = uri.scheme_str().unwrap_or_default().to_owned();
        let port = uri
            .port_u16()
            .unwrap_or(if scheme == "https" { 443 } else { 80 });
        (
            scheme,
            uri.host().unwrap_or_default().to_ascii_lowercase(),
            port,
        )
    };
    server(a) == server(b)
}

/// Whether an address is of this machine.
pub(super) fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || bare
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// An address for messages: without what may be a secret, the user and the query.
pub(super) fn shown(uri: &Uri) -> String {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!(
        "{}://{host}{}",
        uri.scheme_str().unwrap_or_default(),
        uri.path()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_where_the_rfc_says() {
        let from = "https://a.example:8443/x/y/z?q=1".parse().unwrap();
        for (location, expected) in [
            ("https://b.example/p?s=1#f", "https://b.example/p?s=1"),
            ("//b.example/p", "https://b.example/p"),
            ("/p/q", "https://a.example:8443/p/q"),
            ("p", "https://a.example:8443/x/y/p"),
            ("../p?to=http://x", "https://a.example:8443/x/p?to=http://x"),
            ("../../../../p", "https://a.example:8443/p"),
            ("./p/./q/..", "https://a.example:8443/x/y/p/"),
            ("?r=2", "https://a.example:8443/x/y/z?r=2"),
            ("", "https://a.example:8443/x/y/z"),
            ("http://a.example/p", "http://a.example/p"),
        ] {
            let to = redirected(&from, location).unwrap();
            assert_eq!(to.to_string(), expected, "{location}");
        }
        for location in ["ftp://b.example/p", "file:///etc/passwd", "http://"] {
            assert!(redirected(&from, location).is_err(), "{location}");
        }
    }

    #[test]
    fn names_become_parts_of_the_path_alone() {
        for (base, name, expected) in [
            ("https://h/r/", "a/b.json", "https://h/r/a/b.json"),
            ("https://h/r", "a b?c#d%", "https://h/r/a%20b%3Fc%23d%25"),
        ] {
            assert_eq!(below(base, name).unwrap().to_string(), expected);
        }
        assert!(below("ftp://h/", "a").is_err());
        assert!(below("h", "a").is_err());
    }

    #[test]
    fn servers_are_told_apart_and_secrets_are_not_shown() {
        let uri = |text: &str| text.parse::<Uri>().unwrap();
        assert!(same_server(&uri("https://H/a"), &uri("https://h:443/b")));
        assert!(!same_server(&uri("https://h/a"), &uri("http://h/a")));
        assert!(!same_server(&uri("https://h/a"), &uri("https://h:8443/a")));
        assert!(!same_server(&uri("https://h/a"), &uri("https://i/a")));
        assert_eq!(shown(&uri("https://user:pw@h/a?sig=secret")), "https://h/a");
        for (text, expected) in [
            ("ftp://user:pw@h/a@b?sig=secret", "ftp://h/a@b"),
            ("https://us er:p@w@h/a#secret", "https://h/a"),
            ("user:pw@h/a", "h/a"),
            ("ftp://user:p/w@h/a", "ftp://..."),
            ("ftp://user:p?w@h/a", "ftp://..."),
            ("h\u{1b}/a", "h\\u{1b}/a"),
            ("", ""),
        ] {
            assert_eq!(bare(text), expected);
            let why = absolute(text).unwrap_err();
            assert!(why.starts_with(&format!("'{expected}'")), "{why}");
        }
    }
}
