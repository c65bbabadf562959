//! Writes a tree as YAML that is stable and pleasant to read in a diff. Only what CRDs hold; strings that could be taken
//! for something else are quoted as in JSON, which is YAML too.

use std::fmt::Write;

use serde_json::Value;

/// The tree as block YAML with a newline at the end.
#[must_use]
pub fn to_yaml(tree: &Value) -> String {
    let mut out = String::new();
    match tree {
        Value::Object(map) if !map.is_empty() => entries(&mut out, tree, 0),
        Value::Array(list) if !list.is_empty() => entries(&mut out, tree, 0),
        plain => {
            scalar(&mut out, plain);
            out.push('\n');
        }
    }
    out
}

fn entries(out: &mut String, tree: &Value, depth: usize) {
    match tree {
        Value::Object(map) => {
            for (key, value) in map {
                indent(out, depth);
                text(out, key);
                out.push(':');
                below(out, value, depth + 1, depth);
            }
        }
        Value::Array(list) => {
            for item in list {
                indent(out, depth);
                out.push('-');
                inline(out, item, depth + 1);
            }
        }
        _ => {}
    }
}

/// The value of a key: on the same line when it is plain, else on lines of its own. Lists stand under their key, as
/// kubectl writes them.
fn below(out: &mut String, value: &Value, map_depth: usize, list_depth: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            entries(out, value, map_depth);
        }
        Value::Array(list) if !list.is_empty() => {
            out.push('\n');
            entries(out, value, list_depth);
        }
        plain => {
            out.push(' ');
            scalar(out, plain);
            out.push('\n');
        }
    }
}

/// An item of a list: the first key stands on the line of the dash.
fn inline(out: &mut String, item: &Value, depth: usize) {
    match item {
        Value::Object(map) if !map.is_empty() => {
            for (at, (key, value)) in map.iter().enumerate() {
                if at == 0 {
                    out.push(' ');
                } else {
                    indent(out, depth);
                }
                text(out, key);
                out.push(':');
                below(out, value, depth + 1, depth);
            }
        }
        plain => {
            out.push(' ');
            scalar(out, plain);
            out.push('\n');
        }
    }
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
}

fn scalar(out: &mut String, value: &Value) {
    match value {
        Value::String(string) => text(out, string),
        other => {
            // A text can always be written to.
            let _ = write!(out, "{other}");
        }
    }
}

/// Plain where nothing can be misread: words of letters, digits and harmless marks that begin with a letter and are no
/// word of YAML.
fn text(out: &mut String, string: &str) {
    let harmless = |c: char| c.is_ascii_alphanumeric() || " _-./,()".contains(c);
    let plain = string.starts_with(|c: char| c.is_ascii_alphabetic())
        && string.chars().all(harmless)
        && !string.ends_with(' ')
        && !is_word_of_yaml(string);
    if plain {
        out.push_str(string);
    } else {
        let _ = write!(out, "{}", Value::from(string));
    }
}

fn is_word_of_yaml(string: &str) -> bool {
    const WORDS: [&str; 8] = ["true", "false", "null", "yes", "no", "on", "off", "y"];
    let lower = string.to_ascii_lowercase();
    WORDS.contains(&lower.as_str()) || lower == "n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read_back_as_it_was() {
        let tree = json!({
            "a": {"b": [1, 2.5, true, null, "x"], "empty": {}, "none": [], "text": "with: colon # and \"quotes\"\n"},
            "list": [{"k": "v", "deep": {"deeper": [[1], {"z": 0}]}}, {"only": []}, "yes", "No", "1", "~", " lead", "trail "],
            "x-kubernetes-list-type": "map",
            "on": "off",
            "\u{e9}": "\u{1f600} \\ \t",
        });
        let text = to_yaml(&tree);
        assert_eq!(crate::document::read_yaml(&text), Ok(tree), "{text}");
    }
}
