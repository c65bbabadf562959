//! Tokens that are known by the form their issuer gives them.

use super::{Secret, SecretKind, has_digit, has_letter, run_end};

/// Which characters follow a prefix.
#[derive(Clone, Copy)]
enum Alphabet {
    /// `A-Z a-z 0-9`
    Letters,
    /// These, `_` and `-`.
    Url,
    /// `A-Z 0-9`
    Capitals,
}

impl Alphabet {
    fn has(self, byte: u8) -> bool {
        match self {
            Self::Letters => byte.is_ascii_alphanumeric(),
            Self::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
        }
    }
}

/// Prefix, what follows it, and how many characters of it at least. Issuers' own lengths are longer; a cut token is
/// still most of one.
const PREFIXES: &[(&str, Alphabet, usize)] = &[
    ("ghp_", Alphabet::Letters, 20),
    ("gho_", Alphabet::Letters, 20),
    ("ghu_", Alphabet::Letters, 20),
    ("ghs_", Alphabet::Letters, 20),
    ("ghr_", Alphabet::Letters, 20),
    ("github_pat_", Alphabet::Url, 22),
    ("glpat-", Alphabet::Url, 16),
    ("gldt-", Alphabet::Url, 16),
    ("glrt-", Alphabet::Url, 16),
    ("sk_live_", Alphabet::Letters, 16),
    ("sk_test_", Alphabet::Letters, 16),
    ("rk_live_", Alphabet::Letters, 16),
    ("rk_test_", Alphabet::Letters, 16),
    ("whsec_", Alphabet::Letters, 16),
    ("AIza", Alphabet::Url, 30),
    ("GOCSPX-", Alphabet::Url, 20),
    ("ya29.", Alphabet::Url, 20),
    ("npm_", Alphabet::Letters, 30),
    ("pypi-", Alphabet::Url, 50),
    ("hf_", Alphabet::Letters, 30),
    ("dop_v1_", Alphabet::Letters, 40),
    ("dckr_pat_", Alphabet::Url, 20),
    ("shpat_", Alphabet::Letters, 30),
    ("shpss_", Alphabet::Letters, 30),
    ("lin_api_", Alphabet::Letters, 30),
    ("figd_", Alphabet::Url, 30),
    ("hvs.", Alphabet::Url, 20),
    ("ATATT3", Alphabet::Url, 40),
    ("AGE-SECRET-KEY-1", Alphabet::Capitals, 40),
];

/// Ids of access keys: this prefix and exactly 16 capitals and digits.
const ACCESS_KEYS: [&str; 2] = ["AKIA", "ASIA"];

/// Tokens of a chat service.
const SLACK: [&str; 7] = [
    "xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-",
];

pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    let bytes = text.as_bytes();
    let mut push = |start: usize, end: usize| {
        found.push(Secret {
            kind: SecretKind::Token,
            range: start..end,
        });
    };
    for (prefix, alphabet, least) in PREFIXES {
        for (at, end) in runs(text, prefix, *alphabet) {
            if end - at - prefix.len() >= *least {
                push(at, end);
            }
        }
    }
    for prefix in ACCESS_KEYS {
        for at in places(text, prefix) {
            let end = run_end(bytes, at, |byte| byte.is_ascii_alphanumeric());
            let rest = &bytes[at + prefix.len()..end];
            if rest.len() == 16 && rest.iter().all(|byte| Alphabet::Capitals.has(*byte)) {
                push(at, end);
            }
        }
    }
    for (at, end) in runs(text, "sk-", Alphabet::Url) {
        if looks_drawn(&text[at + 3..end]) {
            push(at, end);
        }
    }
    for prefix in SLACK {
        for (at, end) in runs(text, prefix, Alphabet::Url) {
            if end - at >= 15 && has_digit(&text[at..end]) {
                push(at, end);
            }
        }
    }
    dotted(text, &mut push);
    webhooks(text, &mut push);
}

/// Where a prefix begins a word, and where the run of characters after it ends. One that lies in the run of the one
/// before is left out: whatever is asked of a run, the longer one has it if the shorter has. So each character is
/// looked at once.
fn runs<'a>(
    text: &'a str,
    prefix: &'a str,
    alphabet: Alphabet,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let mut covered = 0;
    places(text, prefix).filter_map(move |at| {
        if at < covered {
            return None;
        }
        covered = run_end(text.as_bytes(), at + prefix.len(), |byte| {
            alphabet.has(byte)
        });
        Some((at, covered))
    })
}

/// Where a prefix begins a word.
fn places<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = usize> + 'a {
    let starts_word = |at: usize| {
        let before = at
            .checked_sub(1)
            .and_then(|before| text.as_bytes().get(before));
        !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    text.match_indices(prefix)
        .map(|(at, _)| at)
        .filter(move |at| starts_word(*at))
}

/// Whether what follows `sk-` was drawn at random and is no name made of words: long, and with a part of 12 letters and
/// digits that has both.
fn looks_drawn(rest: &str) -> bool {
    rest.len() >= 20
        && rest
            .split(['-', '_'])
            .any(|part| part.len() >= 12 && has_digit(part) && has_letter(part))
}

/// Tokens of parts with dots between: JSON web tokens (two parts of JSON in base64) and those of one mail service.
fn dotted(text: &str, push: &mut impl FnMut(usize, usize)) {
    let bytes = text.as_bytes();
    let part = |at: usize| run_end(bytes, at, |byte| Alphabet::Url.has(byte));
    for (at, header) in runs(text, "eyJ", Alphabet::Url) {
        if header - at < 10 || !text[header..].starts_with(".eyJ") {
            continue;
        }
        let payload = part(header + 1);
        let end = if bytes.get(payload) == Some(&b'.') {
            part(payload + 1)
        } else {
            payload
        };
        push(at, end);
    }
    for (at, first) in runs(text, "SG.", Alphabet::Url) {
        if first - at >= 19 && bytes.get(first) == Some(&b'.') {
            let second = part(first + 1);
            if second - first > 16 {
                push(at, second);
            }
        }
    }
}

/// Addresses that are secrets themselves: incoming web hooks of chat services, and bot tokens of another one.
fn webhooks(text: &str, push: &mut impl FnMut(usize, usize)) {
    let bytes = text.as_bytes();
    for (host, least) in [
        ("hooks.slack.com/services/", 20),
        ("discord.com/api/webhooks/", 30),
    ] {
        for (at, _) in text.match_indices(host) {
            let start = at + host.len();
            let end = run_end(bytes, start, |byte| Alphabet::Url.has(byte) || byte == b'/');
            if end - start >= least {
                push(start, end);
            }
        }
    }
    for (colon, _) in text.match_indices(":AA") {
        let digits = text[..colon]
            .bytes()
            .rev()
            .take_while(u8::is_ascii_digit)
            .count();
        let end = run_end(bytes, colon + 1, |byte| Alphabet::Url.has(byte));
        if (8..=10).contains(&digits) && end - colon > 30 {
            push(colon - digits, end);
        }
    }
}
