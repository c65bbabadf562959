//! Credentials in text that is about to be kept (training.md 2.3): found by the forms that issuers give their tokens,
//! by private key blocks, by authorization headers, by passwords in addresses, and by assignments to names like
//! `password`. What only talks about credentials (“password reset token bug”, `token: string`) is left alone.
//!
//! It errs towards finding: a placeholder that is taken for a secret costs a word, a secret that is kept costs trust.

mod assignment;
mod token;

use std::borrow::Cow;
use std::ops::Range;

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Rounds of redaction: taking one secret out can complete the form of another beside it.
const ROUNDS: usize = 4;

/// How a credential was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecretKind {
    /// A private key block.
    PrivateKey,
    /// A token in the form of its issuer.
    Token,
    /// An authorization header.
    Header,
    /// The password in an address.
    Address,
    /// A value given to a name like `password`.
    Assignment,
}

impl SecretKind {
    /// What a person calls it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PrivateKey => "a private key",
            Self::Token => "a token",
            Self::Header => "an authorization header",
            Self::Address => "a password in an address",
            Self::Assignment => "a password, key or token that is written out",
        }
    }
}

/// One credential in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// How it was recognised.
    pub kind: SecretKind,
    /// Where, in bytes.
    pub range: Range<usize>,
}

/// The credentials in a text, in order and apart from each other.
#[must_use]
pub fn find_secrets(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    private_keys(text, &mut found);
    token::find(text, &mut found);
    headers(text, &mut found);
    addresses(text, &mut found);
    assignment::find(text, &mut found);
    found.sort_by_key(|secret| (secret.range.start, secret.range.end));
    let mut apart: Vec<Secret> = Vec::with_capacity(found.len());
    for secret in found {
        match apart.last_mut() {
            Some(last) if secret.range.start < last.range.end => {
                last.range.end = last.range.end.max(secret.range.end);
            }
            _ => apart.push(secret),
        }
    }
    apart
}

/// Whether a text has a credential.
#[must_use]
pub fn has_secret(text: &str) -> bool {
    !find_secrets(text).is_empty()
}

/// The text with each credential replaced by [`REDACTED`].
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut clean = Cow::Borrowed(text);
    for _ in 0..ROUNDS {
        let found = find_secrets(&clean);
        if found.is_empty() {
            break;
        }
        let mut next = String::with_capacity(clean.len());
        let mut kept = 0;
        for Secret { range, .. } in found {
            next.push_str(&clean[kept..range.start]);
            next.push_str(REDACTED);
            kept = range.end;
        }
        next.push_str(&clean[kept..]);
        clean = Cow::Owned(next);
    }
    clean
}

/// The lower-case text of the same length in bytes.
fn lower(text: &str) -> String {
    text.to_ascii_lowercase()
}

/// The end of the run of bytes from `at` on that `is` holds for.
fn run_end(bytes: &[u8], at: usize, is: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest
        .iter()
        .position(|byte| !is(*byte))
        .unwrap_or(rest.len())
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Blocks from `-----BEGIN … PRIVATE KEY…-----` to their end, or to the next dashes or the end of the text where that is
/// missing. A header without a key after it is none.
fn private_keys(text: &str, found: &mut Vec<Secret>) {
    const BEGIN: &str = "-----BEGIN ";
    let mut from = 0;
    while let Some(start) = text[from..].find(BEGIN).map(|at| from + at) {
        from = start + BEGIN.len();
        let Some(body) = text[from..].find("-----").map(|at| from + at) else {
            return;
        };
        if !text[from..body].contains("PRIVATE KEY") || body - from > 60 {
            continue;
        }
        let body = body + 5;
        // No key holds dashes: the next ones end it, whether they close this block or open another.
        let end = text[body..]
            .find("-----")
            .map_or(text.len(), |at| body + at);
        from = end;
        let runs = text[body..end].split(|c| !is_base64(u8::try_from(c).unwrap_or(0)));
        if runs.map(str::len).max().unwrap_or(0) < 16 {
            continue;
        }
        let closing = text[end..]
            .strip_prefix("-----END")
            .and_then(|rest| rest.find("-----"));
        let end = closing.map_or(end, |at| end + "-----END".len() + at + 5);
        from = end;
        found.push(Secret {
            kind: SecretKind::PrivateKey,
            range: start..end,
        });
    }
}

/// `Authorization: Bearer …` and `Basic …`, and `bearer …` alone where what follows looks drawn and not written.
fn headers(text: &str, found: &mut Vec<Secret>) {
    let lowered = lower(text);
    let bytes = lowered.as_bytes();
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    for scheme in ["bearer", "basic", "token"] {
        for (at, _) in lowered.match_indices(scheme) {
            let start = run_end(bytes, at + scheme.len(), |byte| {
                matches!(byte, b' ' | b'\t')
            });
            if start == at + scheme.len()
                || bytes
                    .get(at.wrapping_sub(1))
                    .is_some_and(u8::is_ascii_alphanumeric)
            {
                continue;
            }
            let end = run_end(bytes, start, is_token);
            let value = text[start..end].trim_end_matches(['.', '-']);
            let before = lowered[..at].trim_end_matches([' ', '\t', ':', '=', '"', '\'']);
            let in_header = before.ends_with("authorization") && before.len() < at;
            let drawn =
                scheme == "bearer" && value.len() >= 16 && has_digit(value) && has_letter(value);
            let given = in_header && value.len() >= 8 && !assignment::is_placeholder(value);
            if drawn || given {
                found.push(Secret {
                    kind: SecretKind::Header,
                    range: start..start + value.len(),
                });
            }
        }
    }
}

/// The password of `scheme://user:password@host`.
fn addresses(text: &str, found: &mut Vec<Secret>) {
    for (at, _) in text.match_indices("://") {
        let start = at + 3;
        let rest = &text[start..];
        let ends = |c: char| {
            c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '`' | '<' | '>')
        };
        let authority = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let Some((user_info, _)) = authority.rsplit_once('@') else {
            continue;
        };
        let Some((user, password)) = user_info.split_once(':') else {
            continue;
        };
        if !password.is_empty() && !assignment::is_placeholder(password) {
            let start = start + user.len() + 1;
            found.push(Secret {
                kind: SecretKind::Address,
                range: start..start + password.len(),
            });
        }
    }
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

fn has_letter(text: &str) -> bool {
    text.chars().any(char::is_alphabetic)
}

#[cfg(test)]
mod tests;
