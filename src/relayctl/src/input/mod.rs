//! Objects out of files: every document of every file is read and looked at before anything is sent anywhere.

mod files;
mod metadata;
mod node;

use std::collections::HashMap;
use std::path::PathBuf;

use api::document::{self, DocumentError};
use serde_json::Value;
use serde_saphyr::Spanned;

pub(crate) use self::files::{Text, file as read_file, standard_input};
use self::node::{Lines, Node};
use crate::error::CliError;
use crate::kinds::{self, Kind};

/// Where an object comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    file: String,
    lines: Lines,
}

impl Place {
    /// `policy.yaml:12`, where a field stands.
    pub(crate) fn of_field(&self, field: &str) -> String {
        format!("{}:{}", self.file, self.lines.of_field(field))
    }

    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    pub(crate) fn line_of(&self, field: &str) -> u64 {
        self.lines.of_field(field)
    }
}

/// One object of a file.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) place: Place,
    pub(crate) kind: &'static Kind,
    pub(crate) name: String,
    /// As the file says; the command's own where it says none.
    pub(crate) namespace: Option<String>,
    pub(crate) object: Value,
}

impl Input {
    /// `policy.yaml:1: routingpolicy/default`.
    pub(crate) fn title(&self) -> String {
        format!(
            "{}: {}",
            self.place.of_field(""),
            self.kind.brief(&self.name)
        )
    }

    /// The same with the field that is meant, and its line.
    pub(crate) fn at(&self, field: &str) -> String {
        let place = self.place.of_field(field);
        let brief = self.kind.brief(&self.name);
        if field.is_empty() || field == "<nil>" {
            format!("{place}: {brief}")
        } else {
            format!("{place}: {brief}: {field}")
        }
    }

    /// The namespace it goes to.
    ///
    /// # Errors
    /// The command names another one than the file.
    pub(crate) fn namespace(&self, asked: Option<&str>, default: &str) -> Result<String, CliError> {
        match (&self.namespace, asked) {
            (Some(own), Some(asked)) if own != asked => Err(CliError::refused(format!(
                "{}: is `{own}`, and `-n` says `{asked}`",
                self.at("metadata.namespace")
            ))),
            (Some(own), _) => Ok(own.clone()),
            (None, asked) => Ok(asked.unwrap_or(default).to_owned()),
        }
    }
}

/// Reads every object of what `-f` names. An object that stands there twice is refused: which one was meant?
///
/// # Errors
/// The first that is none.
pub(crate) fn objects(names: &[PathBuf]) -> Result<Vec<Input>, CliError> {
    let mut all = Vec::new();
    let mut empty = Vec::new();
    for text in files::read(names)? {
        let inputs = parse(&text)?;
        if inputs.is_empty() {
            empty.push(text.name);
        } else {
            all.extend(inputs);
        }
    }
    if all.is_empty() {
        let more = match empty.len() {
            0 | 1 => String::new(),
            more => format!(" and {} more", more - 1),
        };
        let name = empty.first().map_or("", String::as_str);
        return Err(CliError::refused(format!(
            "{name}{more}: holds no object, only nothing or comments"
        )));
    }
    let mut seen: HashMap<_, usize> = HashMap::new();
    for (at, input) in all.iter().enumerate() {
        let key = (
            input.kind.plural,
            input.namespace.clone(),
            input.name.clone(),
        );
        if let Some(before) = seen.insert(key, at) {
            return Err(CliError::refused(format!(
                "{}: stands in {} too",
                input.title(),
                all[before].place.of_field("")
            )));
        }
    }
    Ok(all)
}

/// The objects of one text.
///
/// # Errors
/// File, line and field of what is wrong.
pub(crate) fn parse(text: &Text) -> Result<Vec<Input>, CliError> {
    let documents: Vec<Spanned<Node>> =
        document::read_yaml_stream(&text.text).map_err(|error| syntax(text, &error))?;
    let mut inputs = Vec::new();
    for document in &documents {
        if is_list(&document.value) {
            for item in list_items(&text.name, document)? {
                if is_list(&item.value) {
                    let line = Lines::of(item).of_field("");
                    return Err(CliError::refused(format!(
                        "{}:{line}: is a List inside a List; put its items into the outer one",
                        text.name
                    )));
                }
                inputs.push(object(&text.name, item)?);
            }
        } else {
            inputs.push(object(&text.name, document)?);
        }
    }
    Ok(inputs)
}

fn syntax(text: &Text, error: &DocumentError) -> CliError {
    let line = match error {
        DocumentError::Syntax {
            line,
            column,
            message,
        } => {
            let message = if tab_indents(&text.text, *line) {
                "a tab is no indentation in YAML; use spaces"
            } else {
                message
            };
            format!("{}:{line}:{column}: {message}", text.name)
        }
        other => format!("{}: {other}", text.name),
    };
    CliError::refused(line).caused_by(error)
}

/// Whether a tab stands where indentation would, in a line or the one before it.
fn tab_indents(text: &str, line: u64) -> bool {
    let line = usize::try_from(line).unwrap_or(usize::MAX);
    let lines = text.lines().skip(line.saturating_sub(2)).take(2);
    lines
        .filter_map(|line| line.get(..line.find(|c: char| !c.is_whitespace())?))
        .any(|indentation| indentation.contains('\t'))
}

/// Whether it is a `v1` `List`, as `relayctl get -o yaml` writes it.
fn is_list(node: &Node) -> bool {
    let is = |name: &str, text: &str| {
        let entry = node.entry(name);
        entry.is_some_and(
            |(_, value)| matches!(&value.value, Node::Plain(Value::String(found)) if found == text),
        )
    };
    is("kind", "List") && is("apiVersion", "v1")
}

/// Its items.
fn list_items<'a>(
    file: &str,
    document: &'a Spanned<Node>,
) -> Result<&'a [Spanned<Node>], CliError> {
    match document.value.entry("items").map(|(_, items)| &items.value) {
        None | Some(Node::Plain(Value::Null)) => Ok(&[]),
        Some(Node::List(items)) => Ok(items),
        Some(_) => Err(CliError::refused(format!(
            "{file}:{}: items: must be a list",
            Lines::of(document).of_field("items")
        ))),
    }
}

fn object(file: &str, document: &Spanned<Node>) -> Result<Input, CliError> {
    let place = Place {
        file: file.to_owned(),
        lines: Lines::of(document),
    };
    let wrong = |field: &str, why: &str| {
        let field_said = if field.is_empty() {
            String::new()
        } else {
            format!("{field}: ")
        };
        CliError::refused(format!("{}: {field_said}{why}", place.of_field(field)))
    };
    let object = document.value.value();
    if !object.is_object() {
        return Err(wrong("", "is no object; one begins with `apiVersion:`"));
    }
    let text = |path: &[&str]| -> Result<Option<String>, CliError> {
        let mut value = &object;
        for name in path {
            value = match value.get(name) {
                None | Some(Value::Null) => return Ok(None),
                Some(value) => value,
            };
        }
        match value {
            Value::String(text) => Ok(Some(text.clone())),
            _ => Err(wrong(&path.join("."), "must be a string")),
        }
    };
    let needed = |path: &[&str]| text(path)?.ok_or_else(|| wrong(&path.join("."), "is required"));
    let api_version = needed(&["apiVersion"])?;
    let kind = needed(&["kind"])?;
    let known = kinds::of_object(&api_version, &kind)
        .ok_or_else(|| unknown(&wrong, &api_version, &kind))?;
    if object
        .get("metadata")
        .is_some_and(|metadata| !metadata.is_object())
    {
        return Err(wrong("metadata", "must be an object"));
    }
    if let Some((field, why)) = metadata::mistyped(&object["metadata"]) {
        return Err(wrong(&field, why));
    }
    let name = needed(&["metadata", "name"])?;
    let namespace = text(&["metadata", "namespace"])?;
    for (field, value) in [
        ("metadata.name", Some(&name)),
        ("metadata.namespace", namespace.as_ref()),
    ] {
        let fault = match field {
            "metadata.namespace" => kinds::namespace_fault,
            _ => kinds::name_fault,
        };
        if let Some(why) = value.and_then(|value| fault(value)) {
            let value = value.map_or("", String::as_str);
            let shown: String = value.chars().take(60).collect();
            return Err(wrong(field, &format!("`{shown}` is no name: {why}")));
        }
    }
    Ok(Input {
        place,
        kind: known,
        name,
        namespace,
        object,
    })
}

fn unknown(wrong: &dyn Fn(&str, &str) -> CliError, api_version: &str, kind: &str) -> CliError {
    let short = |text: &str| text.chars().take(80).collect::<String>();
    if let Some(known) = kinds::named(kind) {
        let why = format!(
            "must be `{}`, is `{}`",
            known.api_version(),
            short(api_version)
        );
        return wrong("apiVersion", &why);
    }
    let names: Vec<_> = kinds::own().map(|kind| kind.kind).collect();
    wrong("kind", &format!("`{}` is no kind of ours", short(kind)))
        .hint(format!("kinds are {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::exit::Exit;

    fn told(text: &str) -> String {
        let text = Text {
            name: "f.yaml".into(),
            text: text.into(),
        };
        let error = parse(&text).unwrap_err();
        assert_eq!(error.exit, Exit::Refused, "{error}");
        error.line().to_owned()
    }

    const GOOD: &str = "apiVersion: relay.dev/v1alpha1\nkind: RoutingPolicy\nmetadata: {name: a}\n";

    #[test]
    fn reads_every_document_and_the_items_of_lists() {
        let text = format!(
            "---\n{GOOD}---\n# nothing\n---\n{GOOD}spec: {{}}\n---\napiVersion: v1\nkind: List\nitems:\n  - {{apiVersion: relay.dev/v1alpha1, kind: LayaModel, metadata: {{name: m, namespace: n}}}}\n"
        );
        let text = Text {
            name: "f.yaml".into(),
            text,
        };
        let inputs = parse(&text).unwrap();
        let titles: Vec<_> = inputs.iter().map(Input::title).collect();
        assert_eq!(
            titles,
            [
                "f.yaml:2: routingpolicy/a",
                "f.yaml:8: routingpolicy/a",
                "f.yaml:16: layamodel/m"
            ]
        );
        assert_eq!(inputs[2].namespace(None, "default").unwrap(), "n");
        assert_eq!(inputs[0].namespace(None, "default").unwrap(), "default");
        assert_eq!(
            inputs[2]
                .namespace(Some("other"), "default")
                .unwrap_err()
                .exit,
            Exit::Refused
        );
    }

    #[test]
    fn what_is_no_object_is_named_with_file_line_and_field() {
        let bomb = {
            let mut text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
            for (name, before) in ["b", "c", "d", "e", "f", "g", "h", "i", "j"]
                .iter()
                .zip("abcdefghi".chars())
            {
                let list = vec![format!("*{before}"); 10].join(", ");
                text.push_str(&format!("{name}: &{name} [{list}]\n"));
            }
            text
        };
        let large = format!("a: \"{}\"\n", "x".repeat(2 << 20));
        for (name, text, expected) in [
            (
                "bomb",
                bomb.as_str(),
                "limits are 64 levels and 100 aliases",
            ),
            (
                "unknown alias",
                "a: *b\n",
                "f.yaml:1:4: reference to unknown value",
            ),
            (
                "duplicate key",
                "a: 1\nb: 1\na: 2\n",
                "f.yaml:3:1: the key `a` stands there twice",
            ),
            ("tab", "kind: x\nmetadata:\n\tname: x\n", "f.yaml:3:"),
            ("indentation", "a:\n    b: 1\n  c: 2\n", "f.yaml:3:"),
            (
                "second document",
                "apiVersion: relay.dev/v1alpha1\nkind: RoutingPolicy\nmetadata: {name: a}\n---\nx: [\n",
                "f.yaml:",
            ),
            (
                "two megabytes",
                &large,
                "f.yaml: has 2097158 bytes, limit 1048576",
            ),
            ("a scalar", "hello\n", "f.yaml:1: is no object"),
            ("a list", "- 1\n", "f.yaml:1: is no object"),
            (
                "no version",
                "kind: RoutingPolicy\n",
                "f.yaml:1: apiVersion: is required",
            ),
            (
                "no kind",
                "\napiVersion: v1\n",
                "f.yaml:2: kind: is required",
            ),
            (
                "kind is a number",
                "apiVersion: v1\nkind: 3\n",
                "f.yaml:2: kind: must be a string",
            ),
            (
                "unknown kind",
                "apiVersion: v1\nkind: Pod\n",
                "f.yaml:2: kind: `Pod` is no kind of ours",
            ),
            (
                "another version",
                "apiVersion: relay.dev/v1\nkind: LayaModel\n",
                "f.yaml:1: apiVersion: must be `relay.dev/v1alpha1`, is `relay.dev/v1`",
            ),
            (
                "no name",
                "apiVersion: relay.dev/v1alpha1\nkind: LayaModel\nmetadata: {}\n",
                "f.yaml:3: metadata.name: is required",
            ),
            (
                "a number as a label",
                "apiVersion: relay.dev/v1alpha1\nkind: LayaModel\nmetadata:\n  name: x\n  labels:\n    a: b\n    c.d/e: 5\n",
                "f.yaml:7: metadata.labels[c.d/e]: must be a string; put it into quotes",
            ),
            (
                "items that are none",
                "apiVersion: v1\nkind: List\nitems: 5\n",
                "f.yaml:3: items: must be a list",
            ),
            (
                "a list in a list",
                "apiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: List\n    items: []\n",
                "f.yaml:4: is a List inside a List",
            ),
            (
                "metadata is a list",
                "apiVersion: relay.dev/v1alpha1\nkind: LayaModel\nmetadata: []\n",
                "f.yaml:3: metadata: must be an object",
            ),
            (
                "path in the name",
                "apiVersion: relay.dev/v1alpha1\nkind: LayaModel\nmetadata:\n  name: ../../etc\n",
                "f.yaml:4: metadata.name: `../../etc` is no name: only a-z, 0-9, `-` and `.` may be in it",
            ),
            (
                "path in the namespace",
                "apiVersion: relay.dev/v1alpha1\nkind: LayaModel\nmetadata:\n  name: x\n  namespace: a/b\n",
                "f.yaml:5: metadata.namespace: `a/b` is no name",
            ),
        ] {
            let line = told(text);
            assert!(line.contains(expected), "{name}: {line}");
            assert!(!line.contains('\n') && line.len() < 700, "{name}: {line}");
        }
        assert!(
            told("a:\n\tb: 1\n").contains("a tab is no indentation"),
            "{}",
            told("a:\n\tb: 1\n")
        );
    }

    #[test]
    fn files_are_read_as_they_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("b.yaml"), GOOD).unwrap();
        std::fs::write(
            path("a.json"),
            r#"{"apiVersion":"relay.dev/v1alpha1","kind":"LayaModel","metadata":{"name":"m"}}"#,
        )
        .unwrap();
        std::fs::write(path("notes.txt"), "no object").unwrap();
        let inputs = objects(&[folder.path().to_owned()]).unwrap();
        let names: Vec<_> = inputs.iter().map(|input| input.name.as_str()).collect();
        assert_eq!(names, ["m", "a"]);
        let twice = objects(&[path("b.yaml"), path("b.yaml")]).unwrap_err();
        assert_eq!(twice.exit, Exit::Refused);

        std::fs::write(path("binary.yaml"), b"\x7fELF\x02\xff\xfe").unwrap();
        std::fs::write(path("empty.yaml"), "# nothing\n").unwrap();
        std::fs::create_dir(path("hollow")).unwrap();
        for (name, exit, expected) in [
            ("missing.yaml", Exit::NotFound, "cannot read"),
            ("binary.yaml", Exit::Refused, "is not valid UTF-8 at byte 5"),
            ("empty.yaml", Exit::Refused, "empty.yaml: holds no object"),
            (
                "hollow",
                Exit::Refused,
                "holds no file that ends with .yaml",
            ),
        ] {
            let error = objects(&[path(name)]).unwrap_err();
            assert_eq!(error.exit, exit, "{name}");
            assert!(error.line().contains(expected), "{name}: {error}");
        }
    }
}
