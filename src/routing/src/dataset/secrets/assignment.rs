//! Values given to names like `password`, in code, settings, command lines and prose. The name decides that a value is
//! secret; the value decides whether it is one at all, or a type, a variable, a placeholder or the next word.

use super::{Secret, SecretKind, has_digit, has_letter, lower};

/// Ends of names whose value is secret.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "senha",
    "contraseña",
    "pwd",
    "secret",
    "secret_key",
    "secretkey",
    "api_key",
    "apikey",
    "api-key",
    "api key",
    "access_key",
    "accesskey",
    "access-key",
    "private_key",
    "privatekey",
    "private-key",
    "account_key",
    "accountkey",
    "encryption_key",
    "signing_key",
    "token",
];

/// What stands for a value that is not there, or for the kind of value that belongs there.
const PLACEHOLDERS: &[&str] = &[
    "string",
    "str",
    "text",
    "number",
    "int",
    "integer",
    "bool",
    "boolean",
    "bytes",
    "any",
    "object",
    "none",
    "null",
    "nil",
    "undefined",
    "true",
    "false",
    "required",
    "optional",
    "missing",
    "invalid",
    "expired",
    "wrong",
    "empty",
    "value",
    "example",
    "changeme",
    "change_me",
    "change-me",
    "placeholder",
    "hidden",
    "redacted",
    "removed",
    "here",
    "password",
    "passwd",
    "pass",
    "pw",
    "secret",
    "token",
    "credentials",
    "default",
    "input",
    "field",
    "hash",
    "hashed",
    "encrypted",
    "unset",
    "todo",
    "tbd",
    "self",
    "this",
    "new",
    "await",
    "type",
];

/// What separates a name from its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    /// `=` with nothing around it.
    Tight,
    /// `=`, `:=` or `=>` with space around it.
    Loose,
    /// `:`, which prose uses too.
    Colon,
    /// `is`, in a language or another.
    Prose,
    /// The space behind `--password`.
    Option,
}

/// As much of a value as is looked at, in bytes. A text of nothing but names would cost its square otherwise.
const LOOKED_AT: usize = 4096;

pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    let lowered = lower(text);
    for name in NAMES {
        let mut covered = 0;
        for (at, _) in lowered.match_indices(name) {
            let end = at + name.len();
            if at < covered {
                continue;
            }
            let Some((separator, start)) = separator(&lowered, at, end) else {
                continue;
            };
            let value = value(text, start);
            if is_secret(value, separator, name) {
                covered = value.end(text);
                found.push(Secret {
                    kind: SecretKind::Assignment,
                    range: value.start..covered,
                });
            }
        }
    }
    user_option(text, &lowered, found);
}

/// What follows a name that ends at `end`, and where its value begins.
fn separator(lowered: &str, at: usize, end: usize) -> Option<(Separator, usize)> {
    let rest = &lowered[end..];
    // The quote, bracket or mark that closes the name itself: "password": …, env["TOKEN"] = …, **senha**: …
    let closed = rest.trim_start_matches(['"', '\'', '`', ']', '*', ')']);
    let after = closed.trim_start_matches([' ', '\t']);
    let gap = closed.len() != after.len();
    let position = |rest: &str| lowered.len() - rest.len();
    let value_at = |rest: &str| position(rest.trim_start_matches([' ', '\t']));
    for arrow in ["=>", ":="] {
        if let Some(rest) = after.strip_prefix(arrow) {
            return Some((Separator::Loose, value_at(rest)));
        }
    }
    if let Some(rest) = after.strip_prefix('=') {
        if rest.starts_with(['=', '~']) {
            return None;
        }
        let tight = !gap && !rest.starts_with([' ', '\t']);
        let separator = if tight {
            Separator::Tight
        } else {
            Separator::Loose
        };
        return Some((separator, value_at(rest)));
    }
    if let Some(rest) = after.strip_prefix(':') {
        return (!rest.starts_with(':')).then(|| (Separator::Colon, value_at(rest)));
    }
    for is in ["is ", "é ", "e ", "ist ", "es ", "to ", "para "] {
        if let Some(rest) = after.strip_prefix(is).filter(|_| gap) {
            return Some((Separator::Prose, value_at(rest)));
        }
    }
    if !gap || closed != rest {
        return None;
    }
    let word = lowered[..at].rsplit(char::is_whitespace).next();
    word.is_some_and(|word| word.starts_with("--"))
        .then(|| (Separator::Option, position(after)))
}

/// A value as it stands in the text.
#[derive(Clone, Copy)]
struct Value<'a> {
    start: usize,
    text: &'a str,
    quoted: bool,
}

impl Value<'_> {
    /// Where it ends, all of it.
    fn end(&self, text: &str) -> usize {
        let end = self.start + self.text.len();
        if self.text.len() < LOOKED_AT - 8 {
            return end;
        }
        let rest = &text[end..];
        end + rest.find(ends_value).unwrap_or(rest.len())
    }
}

/// What ends a value that has no quotes.
fn ends_value(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '&')
}

/// The value that begins at `start`: what a pair of quotes holds, else all up to the next space or quote.
fn value(text: &str, start: usize) -> Value<'_> {
    let rest = &text[start..text.floor_char_boundary(start + LOOKED_AT)];
    if let Some(quote) = rest
        .chars()
        .next()
        .filter(|c| matches!(c, '"' | '\'' | '`'))
    {
        let inner = &rest[1..];
        let end = inner.find([quote, '\n']).unwrap_or(inner.len());
        return Value {
            start: start + 1,
            text: &inner[..end],
            quoted: true,
        };
    }
    let word = &rest[..rest.find(ends_value).unwrap_or(rest.len())];
    let word = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '>']);
    Value {
        start,
        text: word,
        quoted: false,
    }
}

fn is_secret(value: Value<'_>, separator: Separator, name: &str) -> bool {
    let Value { text, quoted, .. } = value;
    let units = text.chars().count();
    if is_placeholder(text)
        || (name == "token" && units < 20 && text.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return false;
    }
    if name == "pwd" && text.starts_with(['/', '~', '.']) {
        return false;
    }
    let mixed = has_digit(text) && has_letter(text);
    let words = text.split_whitespace().count();
    if quoted {
        let one = words == 1;
        return match separator {
            Separator::Prose => one && units >= 6 && (mixed || has_symbol(text)),
            // Words in quotes behind a colon are labels of a form more often than not.
            Separator::Colon | Separator::Option => {
                one && units >= 6 && (mixed || has_symbol(text) || units >= 16)
            }
            Separator::Tight | Separator::Loose => units >= 4 && (one || name == "passphrase"),
        };
    }
    if is_code(text) {
        return false;
    }
    match separator {
        Separator::Tight => units >= 4,
        Separator::Loose | Separator::Colon | Separator::Option => {
            let digits =
                name != "token" && units >= 6 && text.bytes().all(|byte| byte.is_ascii_digit());
            units >= 6 && (mixed || digits || (has_symbol(text) && has_letter(text)))
        }
        Separator::Prose => false,
    }
}

/// A character that passwords have and words do not.
fn has_symbol(text: &str) -> bool {
    text.contains(['!', '@', '#', '$', '%', '^', '*', '+', '?', '~', '|'])
}

/// Whether a value stands for another one: `<token>`, `$TOKEN`, `{{ x }}`, `***`, `your-key`, `string`.
pub(super) fn is_placeholder(value: &str) -> bool {
    let value = value.trim();
    let lowered = value.to_lowercase();
    let mut characters = value.chars();
    let first = characters.next();
    value.starts_with(['<', '$', '{', '[', '%', '…'])
        || lowered.starts_with("your")
        || lowered.starts_with("process.env")
        || lowered.starts_with("os.environ")
        || PLACEHOLDERS.contains(&lowered.trim_end_matches(['?', '!', '.', ',', ';', '|']))
        || first.is_none()
        || (characters.all(|c| Some(c) == first) && !first.is_some_and(|c| c.is_ascii_digit()))
}

/// Whether an unquoted value is a piece of code: a call, an index, a path through objects.
fn is_code(text: &str) -> bool {
    if text.contains(['(', '[', '{', '<']) || text.starts_with(['/', '!', '-', '@']) {
        return true;
    }
    let parts: Vec<&str> = text.split('.').collect();
    let is_name = |part: &&str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && part.len() <= 24
            && !has_digit(part)
    };
    parts.len() > 1 && parts.iter().all(is_name)
}

/// `curl -u name:password`.
fn user_option(text: &str, lowered: &str, found: &mut Vec<Secret>) {
    let Some(curl) = lowered.find("curl ") else {
        return;
    };
    for option in [" -u ", " --user "] {
        for (at, _) in lowered[curl..].match_indices(option) {
            let given = value(text, curl + at + option.len());
            let Some((user, password)) = given.text.split_once(':') else {
                continue;
            };
            if password.len() >= 4 && !is_placeholder(password) {
                let start = given.start + user.len() + 1;
                found.push(Secret {
                    kind: SecretKind::Assignment,
                    range: start..start + password.len(),
                });
            }
        }
    }
}
