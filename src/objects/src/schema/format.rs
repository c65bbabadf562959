//! Formats of strings as the API server reads them (`kube-openapi/pkg/validation/strfmt`). It ignores formats that it does
//! not know, `int32` and `int64` among them; formats that it knows and we do not are refused when a schema is compiled.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A format that is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// As the schema spells it, which messages repeat.
    pub(super) name: String,
    pub(super) form: Form,
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Date,
    DateTime,
    Duration,
    Ipv4,
    Ipv6,
    Uuid,
    /// UUIDs of one version (3, 4 or 5).
    UuidVersion(u8),
    Password,
}

/// What becomes of a `format` keyword.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Checked(Format),
    /// The API server does not know it either.
    Ignored,
    /// The API server checks it and we cannot.
    Unsupported,
}

/// Looks a format up. Dashes do not count, as in go-openapi.
pub(super) fn known(name: &str) -> Known {
    let form = match name.replace('-', "").as_str() {
        "date" => Form::Date,
        "datetime" => Form::DateTime,
        "duration" => Form::Duration,
        "ipv4" => Form::Ipv4,
        "ipv6" => Form::Ipv6,
        "uuid" => Form::Uuid,
        "uuid3" => Form::UuidVersion(3),
        "uuid4" => Form::UuidVersion(4),
        "uuid5" => Form::UuidVersion(5),
        "password" => Form::Password,
        "bsonobjectid" | "uri" | "email" | "hostname" | "cidr" | "mac" | "isbn" | "isbn10" | "isbn13" | "creditcard"
        | "ssn" | "hexcolor" | "rgbcolor" | "byte" | "k8sshortname" | "k8slongname" => return Known::Unsupported,
        _ => return Known::Ignored,
    };
    Known::Checked(Format { name: name.to_owned(), form })
}

impl Form {
    /// Whether a string has this form.
    pub(super) fn accepts(self, text: &str) -> bool {
        match self {
            Self::Date => is_date(text),
            Self::DateTime => is_date_time(text),
            Self::Duration => is_duration(text),
            Self::Ipv4 => is_ipv4(text),
            Self::Ipv6 => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
            Self::Uuid => uuid_digits(text).is_some(),
            Self::UuidVersion(version) => uuid_digits(text).is_some_and(|digits| is_version(&digits, version)),
            Self::Password => true,
        }
    }
}

/// `time.Parse("2006-01-02")`.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = bytes.len() == 10
        && bytes.iter().enumerate().all(|(at, b)| if at == 4 || at == 7 { *b == b'-' } else { b.is_ascii_digit() });
    if !shape {
        return false;
    }
    let number = |range: std::ops::Range<usize>| text[range].parse::<u32>().unwrap_or(0);
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let last = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=last).contains(&day)
}

/// `strfmt.IsDateTime`: a date, then what stands between the first two `t`s as a time with its zone. Any character may
/// stand before the fraction, and a zone's hours are not looked at.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    let digits = |from: usize, to: usize| to <= chars.len() && chars[from..to].iter().all(char::is_ascii_digit);
    let colon = |at: usize| chars.get(at) == Some(&':');
    if !(digits(0, 2) && colon(2) && digits(3, 5) && colon(5) && digits(6, 8)) {
        return false;
    }
    let at_most = |from: usize, limit: [char; 2]| chars[from..from + 2] <= limit[..];
    if !(at_most(0, ['2', '3']) && at_most(3, ['5', '9']) && at_most(6, ['5', '9'])) {
        return false;
    }
    let is_zone = |rest: &[char]| match rest {
        ['z'] => true,
        ['+' | '-', h1, h2, ':', m1, m2] => [h1, h2, m1, m2].iter().all(|c| c.is_ascii_digit()),
        _ => false,
    };
    if is_zone(&chars[8..]) {
        return true;
    }
    let Some((mark, fraction)) = chars[8..].split_first() else { return false };
    let count = fraction.iter().take_while(|c| c.is_ascii_digit()).count();
    *mark != '\n' && count > 0 && is_zone(&fraction[count..])
}

/// `strfmt.ParseDuration`: Go's own form, or any text that names at least one amount with a unit.
fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_scala_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (amount, tail) = rest.split_at(number);
        if amount.matches('.').count() > 1 || !amount.bytes().any(|b| b.is_ascii_digit()) {
            return false;
        }
        let unit = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (name, tail) = tail.split_at(unit);
        if !matches!(name, "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h") {
            return false;
        }
        rest = tail;
    }
    true
}

/// The words of each unit; the last of a row stands for every longer word that begins with it.
const UNITS: [&[&str]; 8] = [
    &["ns", "nano"],
    &["us", "µs", "micro"],
    &["ms", "milli"],
    &["s", "sec"],
    &["m", "min"],
    &["h", "hr", "hour"],
    &["d", "day"],
    &["w", "wk", "week"],
];

fn is_scala_duration(text: &str) -> bool {
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let tail = &rest[start..];
        let digits = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let word = tail[digits..].trim_start_matches(['\t', '\n', '\u{c}', '\r', ' ']);
        let end = word.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(word.len());
        let unit = word[..end].to_lowercase();
        rest = &word[end..];
        if unit.is_empty() {
            continue;
        }
        if tail[..digits].parse::<i64>().is_err() {
            return false;
        }
        found |= UNITS.iter().any(|names| {
            names.iter().any(|name| *name == unit) || names.last().is_some_and(|last| unit.starts_with(last))
        });
    }
    found
}

/// Leading zeros are tolerated, as before Go 1.17.
fn is_ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let plain = parts.len() == 4
        && parts.iter().all(|part| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_digit())
                && part.trim_start_matches('0').len() <= 3
                && part.parse::<u64>().is_ok_and(|octet| octet <= 255)
        });
    // an IPv6 address that ends in an IPv4 one has a dot as well
    plain || text.parse::<Ipv4Addr>().is_ok() || (text.contains('.') && text.parse::<Ipv6Addr>().is_ok())
}

/// The 32 digits of a UUID; each of the four dashes may be missing.
fn uuid_digits(text: &str) -> Option<Vec<u8>> {
    let mut digits = Vec::with_capacity(32);
    let mut rest = text.as_bytes();
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let group = rest.get(..length).filter(|group| group.iter().all(u8::is_ascii_hexdigit))?;
        digits.extend(group.iter().map(u8::to_ascii_lowercase));
        rest = &rest[length..];
    }
    rest.is_empty().then_some(digits)
}

fn is_version(digits: &[u8], version: u8) -> bool {
    digits[12] == b'0' + version && (version == 3 || matches!(digits[16], b'8' | b'9' | b'a' | b'b'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(format: &str, text: &str) -> bool {
        match known(format) {
            Known::Checked(format) => format.form.accepts(text),
            other => panic!("{format} is {other:?}"),
        }
    }

    #[test]
    fn strings_have_the_form_that_go_openapi_wants() {
        for (format, text, wanted) in [
            ("date", "2026-02-28", true),
            ("date", "2026-02-29", false),
            ("date", "2024-02-29", true),
            ("date", "1900-02-29", false),
            ("date", "2026-13-01", false),
            ("date", "2026-1-01", false),
            ("date", "2026-01-01T", false),
            ("date", "２０26-01-01", false),
            ("date-time", "2026-11-30T17:00:00Z", true),
            ("date-time", "2026-11-30t17:00:00z", true),
            ("datetime", "2026-11-30T17:00:00.123456+01:00", true),
            ("date-time", "2026-11-30T17:00:00,5Z", true),
            ("date-time", "2026-11-30T17:00:00", false),
            ("date-time", "2026-11-30T24:00:00Z", false),
            ("date-time", "2026-11-30T23:59:60Z", false),
            ("date-time", "2026-11-30 17:00:00Z", false),
            ("date-time", "2026-11-30T17:00:00+99:99", true),
            ("date-time", "", false),
            ("duration", "1h30m", true),
            ("duration", "-1.5s", true),
            ("duration", "0", true),
            ("duration", "22 ns", true),
            ("duration", "3 days", true),
            ("duration", "5 fortnights", false),
            ("duration", "", false),
            ("duration", "h", false),
            ("ipv4", "10.0.0.1", true),
            ("ipv4", "010.000.0.1", true),
            ("ipv4", "10.0.0.256", false),
            ("ipv4", "10.0.0", false),
            ("ipv6", "::1", true),
            ("ipv6", "1.2.3.4", false),
            ("uuid", "2F1E4AFE-7a0f-4d0f-9d8e-3d7e0f5f1a2b", true),
            ("uuid", "2f1e4afe7a0f4d0f9d8e3d7e0f5f1a2b", true),
            ("uuid", "2f1e4afe-7a0f-4d0f-9d8e-3d7e0f5f1a2", false),
            ("uuid4", "2f1e4afe-7a0f-4d0f-9d8e-3d7e0f5f1a2b", true),
            ("uuid4", "2f1e4afe-7a0f-4d0f-1d8e-3d7e0f5f1a2b", false),
            ("uuid3", "2f1e4afe-7a0f-3d0f-1d8e-3d7e0f5f1a2b", true),
            ("uuid5", "2f1e4afe-7a0f-3d0f-9d8e-3d7e0f5f1a2b", false),
            ("password", "anything", true),
        ] {
            assert_eq!(accepts(format, text), wanted, "{format} {text:?}");
        }
    }

    #[test]
    fn formats_of_numbers_are_ignored_and_those_we_lack_are_said() {
        for name in ["int32", "int64", "uint32", "float", "double", "made-up"] {
            assert_eq!(known(name), Known::Ignored, "{name}");
        }
        for name in ["uri", "email", "hostname", "byte", "k8s-short-name"] {
            assert_eq!(known(name), Known::Unsupported, "{name}");
        }
    }
}
