//! JSON trees as YAML that reads back as the same tree.

use serde_json::Value;
use serde_saphyr::SerializerOptions;

use crate::error::CliError;
use api::exit::Exit;

/// One document, ending with a line break.
///
/// # Errors
/// A tree that has no YAML form; none is known.
pub(crate) fn to_yaml(tree: &Value) -> Result<String, CliError> {
    let mut options = SerializerOptions::default();
    // A folded text would read back with other line breaks where its lines end with spaces.
    options.prefer_block_scalars = false;
    options.compact_list_indent = true;
    let mut text = serde_saphyr::to_string_with_options(tree, options).map_err(|error| {
        CliError::new(
            Exit::Failed,
            format!("cannot write the answer as YAML: {error}"),
        )
    })?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    if super::visible(&text) != text {
        // JSON is YAML, and has escapes for what a terminal would obey.
        text = super::to_json(tree);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn reads_back(tree: &Value) {
        let text = to_yaml(tree).unwrap();
        let read = api::document::read_yaml(&text);
        assert_eq!(read.as_ref(), Ok(tree), "{text}");
        assert_eq!(
            crate::output::visible(&text),
            text,
            "it says nothing to a terminal"
        );
    }

    #[test]
    fn looks_like_what_people_write() {
        let tree = json!({"spec": {"tiers": [{"models": ["a/b"], "name": "fast"}], "exploration": "0.05", "empty": {}, "none": []}});
        assert_eq!(
            to_yaml(&tree).unwrap(),
            "spec:\n  empty: {}\n  exploration: \"0.05\"\n  none: []\n  tiers:\n  - models:\n    - a/b\n    name: fast\n"
        );
    }

    #[test]
    fn awkward_texts_survive() {
        for text in [
            "",
            " ",
            "yes",
            "no",
            "on",
            "true",
            "null",
            "~",
            "0.5",
            "1e3",
            "0x1f",
            "1_000",
            "- a",
            "a: b",
            "a #b",
            "#",
            "'",
            "\"",
            "two\nlines",
            "ends\n",
            "\n",
            "tab\there",
            "\u{1b}[2J",
            "\u{202e}x",
            "*a",
            "&a",
            "!x",
            "%y",
            "@",
            "`",
            "2026-11-30",
            "{",
            "[",
            "---",
            "...",
            "?",
            "| x",
            "> y",
            "é日本",
            "\u{85}",
            "\u{feff}",
            ".inf",
            ".nan",
            "12:30:45",
            "=",
            "<<",
        ] {
            reads_back(&json!({"key": text, "list": [text]}));
        }
        let long = "word ".repeat(100);
        reads_back(&json!({"key": long}));
    }

    fn trees() -> impl Strategy<Value = Value> {
        let plain = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            "[ -~\n]{0,20}".prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        plain.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-zA-Z./-]{1,8}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_tree_reads_back(tree in trees()) {
            reads_back(&json!({"tree": tree}));
        }
    }
}
