//! A YAML document as a tree whose every value knows where it stands, so that a server's field path leads to a line.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

/// A value and its parts.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// A scalar.
    Plain(Value),
    /// A list.
    List(Vec<Spanned<Node>>),
    /// Keys with their own places.
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Plain(Value::Null))
    }

    fn visit_none<E: Error>(self) -> Result<Node, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number must be finite"))?;
        Ok(Node::Plain(Value::Number(number)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Node::Map(map))
    }
}

impl Node {
    /// The value without its places.
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Plain(value) => value.clone(),
            Self::List(items) => items.iter().map(|item| item.value.value()).collect(),
            Self::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| (key.value.clone(), value.value.value()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }

    /// The entry of a map.
    pub(crate) fn entry(&self, name: &str) -> Option<&(Spanned<String>, Spanned<Node>)> {
        match self {
            Self::Map(entries) => entries.iter().find(|(key, _)| key.value == name),
            _ => None,
        }
    }
}

/// Where the parts of one object stand in its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    /// Line by path; the whole object has the empty one.
    lines: HashMap<String, u64>,
    /// Path of a list's item by its key: `spec.tiers[name=fast]` is `spec.tiers[0]`.
    keyed: HashMap<String, String>,
}

impl Lines {
    /// Of a document.
    pub(crate) fn of(root: &Spanned<Node>) -> Self {
        let mut lines = Self::default();
        lines.add(String::new(), root.referenced.line(), &root.value);
        lines
    }

    fn add(&mut self, path: String, line: u64, node: &Node) {
        match node {
            Node::Plain(_) => {}
            Node::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    let below = format!("{path}[{at}]");
                    if let Node::Map(entries) = &item.value {
                        for (key, value) in entries {
                            if let Node::Plain(Value::String(text)) = &value.value {
                                let keyed = format!("{path}[{}={text}]", key.value);
                                self.keyed.entry(keyed).or_insert_with(|| below.clone());
                            }
                        }
                    }
                    self.add(below, item.referenced.line(), &item.value);
                }
            }
            Node::Map(entries) => {
                for (key, value) in entries {
                    let below = if path.is_empty() {
                        key.value.clone()
                    } else {
                        format!("{path}.{}", key.value)
                    };
                    self.add(below, key.referenced.line(), &value.value);
                }
            }
        }
        self.lines.insert(path, line);
    }

    /// The line of a field as an API server names it, or of the nearest part around it that is there.
    pub(crate) fn of_field(&self, field: &str) -> u64 {
        let mut path = String::new();
        let mut line = self.lines.get("").copied().unwrap_or(1);
        for step in steps(field) {
            let next = match &step {
                Step::Name(name) if path.is_empty() => name.clone(),
                Step::Name(name) => format!("{path}.{name}"),
                Step::Index(at) => format!("{path}[{at}]"),
                Step::Key(key) => {
                    let keyed = format!("{path}[{key}]");
                    self.keyed
                        .get(&keyed)
                        .cloned()
                        // The key of a map, as in `metadata.labels[a.b/c]`.
                        .unwrap_or_else(|| format!("{path}.{key}"))
                }
            };
            match self.lines.get(&next) {
                Some(found) => {
                    line = *found;
                    path = next;
                }
                None => break,
            }
        }
        line
    }
}

enum Step {
    Name(String),
    Index(usize),
    /// `name=fast`, without quotes.
    Key(String),
}

/// Takes `spec.tiers[0].models`, `spec.tiers[name="fast"].models` or `metadata.labels[a/b]` apart.
fn steps(field: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = field.trim_start_matches('.');
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let Some(end) = inside.find(']') else { break };
            let text = &inside[..end];
            steps.push(match text.parse() {
                Ok(at) => Step::Index(at),
                Err(_) => Step::Key(text.replace('"', "")),
            });
            rest = inside[end + 1..].trim_start_matches('.');
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            steps.push(Step::Name(rest[..end].to_owned()));
            rest = &rest[end..];
            rest = rest.strip_prefix('.').unwrap_or(rest);
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
apiVersion: relay.dev/v1alpha1
kind: RoutingPolicy
metadata:
  name: default
  labels: {a.b/c: x}
spec:
  tiers:
    - name: fast
      models:
        - a/b
        - c/d
    - name: strong
      models: [e/f]
";

    #[test]
    fn a_field_path_leads_to_its_line() {
        let documents: Vec<Spanned<Node>> = api::document::read_yaml_stream(TEXT).unwrap();
        let lines = Lines::of(&documents[0]);
        for (field, line) in [
            ("", 1),
            ("kind", 2),
            ("metadata.name", 4),
            ("metadata.labels[a.b/c]", 5),
            ("spec", 6),
            ("spec.profile", 6),
            ("spec.tiers", 7),
            ("spec.tiers[0]", 8),
            ("spec.tiers[0].models[1]", 11),
            ("spec.tiers[0].models[7]", 9),
            (".spec.tiers[name=\"strong\"].models", 13),
            ("spec.tiers[name=\"none\"]", 7),
            ("spec.tiers[", 7),
            ("nothing.here", 1),
            ("<nil>", 1),
        ] {
            assert_eq!(lines.of_field(field), line, "{field}");
        }
    }

    #[test]
    fn the_value_is_what_the_untyped_reader_reads() {
        let texts = [
            TEXT,
            "a: yes\nb: 0.5\nc: \"0.5\"\nd: true\ne: [1, -2, 1e3]\nf: ~\ng:\n",
            "x: &x {y: 1}\nz: *x\n",
            "1: one\ntrue: two\n",
        ];
        for text in texts {
            let documents: Vec<Spanned<Node>> = api::document::read_yaml_stream(text).unwrap();
            assert_eq!(documents.len(), 1);
            let expected = api::document::read_yaml(text).unwrap();
            assert_eq!(documents[0].value.value(), expected, "{text}");
        }
    }
}
