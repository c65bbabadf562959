//! Names of files in a text (routing.md 4.3): a name with a known source or data extension, but no product such as
//! `Node.js`, no domain and no method call.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde::Deserialize;

/// Longest name looked at, in bytes; it keeps the search linear.
const MAX_NAME: usize = 80;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    extensions: HashSet<String>,
    names: HashSet<String>,
    products: HashSet<String>,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    toml::from_str(include_str!("../../data/extensions.toml"))
        .expect("the built-in list of extensions is read in tests")
});

/// The first file name in a text, as it is written, without its folder.
pub(super) fn find(text: &str) -> Option<&str> {
    tokens(text).find_map(file_of)
}

fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '"' | '\''
                    | '`'
                    | '<'
                    | '>'
                    | ','
                    | ';'
                    | '|'
                    | '='
                    | '“'
                    | '”'
                    | '、'
                    | '，'
                    | '。'
            )
    })
}

fn file_of(token: &str) -> Option<&str> {
    // Of an address only the path can name a file.
    let path = match token.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?.1,
        None => token,
    };
    if path.contains('@') && !path.starts_with('@') {
        return None;
    }
    // `src/app.ts:12:3` and `app.ts#L4` name app.ts; a method call does not name a file.
    path.split(['/', '\\', ':', '#', '?', '[', ']', '{', '}'])
        .find_map(|part| {
            let (part, call) = part
                .split_once('(')
                .map_or((part, false), |(before, after)| {
                    if before.is_empty() {
                        (after, false)
                    } else {
                        (before, true)
                    }
                });
            let name = part
                .trim_matches(|c: char| matches!(c, ')' | '!' | '*' | '…'))
                .trim_end_matches('.');
            (!call && name.len() <= MAX_NAME && is_file(name)).then_some(name)
        })
}

fn is_file(name: &str) -> bool {
    // Nearly every word ends here.
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return name.len() <= 12
            && name.ends_with("file")
            && NAMES.names.contains(&name.to_ascii_lowercase());
    };
    let lower = name.to_ascii_lowercase();
    if NAMES.names.contains(&lower) {
        return true;
    }
    // Letters of any script may be in a name, and what stands before it in a text without word breaks.
    let named = stem
        .chars()
        .next_back()
        .is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ')' | ']'));
    named
        && extension.bytes().all(|b| b.is_ascii_alphanumeric())
        && NAMES.extensions.contains(&extension.to_ascii_lowercase())
        && !NAMES.products.contains(&lower)
        && !lower.starts_with("www.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_files_and_nothing_else() {
        for (text, file) in [
            ("Delete the unused import in src/app.ts", Some("app.ts")),
            (
                "see `lib/Parser.TEST.tsx`, please.",
                Some("Parser.TEST.tsx"),
            ),
            ("error at main.rs:12:3", Some("main.rs")),
            ("(config.yaml)", Some("config.yaml")),
            ("C:\\src\\Main.java", Some("Main.java")),
            ("https://example.com/static/app.js?v=1", Some("app.js")),
            ("fix the Dockerfile", Some("Dockerfile")),
            ("add dist to .gitignore", Some(".gitignore")),
            ("Node.js upgrade", None),
            ("next.js 15", None),
            ("remove the console.log and Math.log calls", None),
            ("why is server.log empty", Some("server.log")),
            ("open logs/console.log.1 and app.log", Some("app.log")),
            ("ask at example.com or https://docs.rs", None),
            ("write to me@mail.py", None),
            ("call foo.rs() twice", None),
            ("version 1.2.3, e.g. this one.", None),
            ("a profile, a file. then", None),
            ("", None),
        ] {
            assert_eq!(find(text), file, "{text}");
        }
    }
}
