//! Which texts may be names, label keys and label values: the rules and words of
//! `k8s.io/apimachinery/pkg/api/validate/content`.

const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/// Whether the text is a whole name or what a name will begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    Prefix,
}

/// What is wrong with a label key, or the name of a finalizer.
pub(crate) fn label_key(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = match value.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                let parts = subdomain(prefix, Extent::Whole);
                wrong.extend(parts.into_iter().map(|text| format!("prefix part {text}")));
            }
            *name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                key_pattern()
            )];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push(format!("name part {}", at_most(63)));
    }
    if !is_key(name) {
        wrong.push(format!("name part {}", key_pattern()));
    }
    wrong
}

/// What is wrong with a label's value.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > 63 {
        wrong.push(at_most(63));
    }
    if !value.is_empty() && !is_key(value) {
        wrong.push(pattern(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            &format!("({LABEL_KEY})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    wrong
}

/// What is wrong with the name of most objects.
pub(crate) fn subdomain(value: &str, extent: Extent) -> Vec<String> {
    let value = trimmed(value, extent);
    let mut wrong = Vec::new();
    if value.len() > 253 {
        // The one limit of which Kubernetes says characters and counts bytes.
        wrong.push("must be no more than 253 characters".to_owned());
    }
    if !value.split('.').all(is_label) {
        wrong.push(pattern(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character",
            &format!("{LABEL}(\\.{LABEL})*"),
            &["example.com"],
        ));
    }
    wrong
}

/// What is wrong with the name of a namespace.
pub(crate) fn label(value: &str, extent: Extent) -> Vec<String> {
    let value = trimmed(value, extent);
    let mut wrong = Vec::new();
    if value.len() > 63 {
        wrong.push(at_most(63));
    }
    if !is_label(&value) {
        wrong.push(if value.split('.').all(is_label) {
            "must not contain dots".to_owned()
        } else {
            pattern(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                 and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    wrong
}

/// What is wrong with a name as a part of a path.
pub(crate) fn path_segment(value: &str, extent: Extent) -> Vec<String> {
    if extent == Extent::Whole {
        match value {
            "." => return vec!["may not be '.'".to_owned()],
            ".." => return vec!["may not be '..'".to_owned()],
            _ => {}
        }
    }
    let illegal = ["/", "%"].into_iter();
    illegal
        .filter(|part| value.contains(part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// A prefix may end with a hyphen: what follows it is a letter or a digit.
fn trimmed(value: &str, extent: Extent) -> std::borrow::Cow<'_, str> {
    match (extent, value.strip_suffix('-')) {
        (Extent::Prefix, Some(rest)) if !rest.is_empty() => format!("{rest}a").into(),
        _ => value.into(),
    }
}

fn is_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let bytes = text.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(first), Some(last)) if inner(*first) && inner(*last))
        && bytes.iter().all(|c| inner(*c) || *c == b'-')
}

fn is_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = matches!((bytes.first(), bytes.last()), (Some(first), Some(last))
        if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric());
    ends && bytes
        .iter()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
}

fn at_most(bytes: usize) -> String {
    format!("must be no more than {bytes} bytes")
}

fn key_pattern() -> String {
    pattern(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
        LABEL_KEY,
        &["MyName", "my.name", "123-abc"],
    )
}

fn pattern(rule: &str, regex: &str, examples: &[&str]) -> String {
    let shown: Vec<String> = examples
        .iter()
        .map(|example| format!("'{example}', "))
        .collect();
    format!(
        "{rule} (e.g. {}regex used for validation is '{regex}')",
        shown.join(" or ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_values_and_names_are_those_of_kubernetes() {
        for (value, good) in [
            ("a", true),
            ("A.b_c-9", true),
            ("relay.dev/model", true),
            ("", false),
            ("/a", false),
            ("a/", false),
            ("a/b/c", false),
            ("-a", false),
            ("Relay.dev/x", false),
            ("ü", false),
        ] {
            assert_eq!(label_key(value).is_empty(), good, "{value:?}");
        }
        assert!(label_key(&"a".repeat(63)).is_empty());
        assert!(!label_key(&"a".repeat(64)).is_empty());
        for (value, good) in [("", true), ("a", true), ("a b", false), ("a-", false)] {
            assert_eq!(label_value(value).is_empty(), good, "{value:?}");
        }
        for (value, good) in [
            ("a.b", true),
            ("a..b", false),
            ("A", false),
            ("a_b", false),
            ("../x", false),
            ("a/b", false),
        ] {
            assert_eq!(
                subdomain(value, Extent::Whole).is_empty(),
                good,
                "{value:?}"
            );
        }
        assert_eq!(label("a.b", Extent::Whole), ["must not contain dots"]);
        assert!(subdomain("run-", Extent::Prefix).is_empty());
        assert!(!subdomain("run-", Extent::Whole).is_empty());
    }

    #[test]
    fn a_refusal_says_the_rule_an_example_and_the_pattern() {
        assert_eq!(
            subdomain("A", Extent::Whole),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
                 start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert!(label_key("-")[0].starts_with("name part must consist of alphanumeric characters"));
    }
}
