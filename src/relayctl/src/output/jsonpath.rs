//! Templates of `kubectl`'s `-o jsonpath`: text, `{.path}`, `{"text"}` and `{range .list[*]}…{end}`. Paths are written in
//! the way of RFC 9535 for the evaluator; `\.` in a name and names without brackets are `kubectl`'s own.

use jsonpath_rust::JsonPath as _;
use serde_json::Value;

/// Deepest nesting of ranges.
const MAX_DEPTH: usize = 8;

/// A template that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Path(Path),
    Range(Path, Vec<Part>),
}

/// One path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    /// As RFC 9535 writes it.
    query: String,
}

impl Path {
    /// Reads `.a.b[0]`, `$.a`, `a.b` or the same in braces.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let bare = text.trim();
        let bare = bare
            .strip_prefix('{')
            .and_then(|inner| inner.strip_suffix('}'))
            .unwrap_or(bare);
        if bare.trim().is_empty() {
            return Err("a JSON path is empty".to_owned());
        }
        let query = translate(bare.trim())?;
        // Once against nothing, to hear of a syntax error now and not at the first object.
        Value::Null
            .query(&query)
            .map_err(|_| format!("`{text}` is no JSON path"))?;
        Ok(Self { query })
    }

    /// Everything the path leads to.
    pub(crate) fn find<'a>(&self, tree: &'a Value) -> Vec<&'a Value> {
        tree.query(&self.query).unwrap_or_default()
    }
}

impl Template {
    /// Reads a template. One without any brace is a path.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err(
                "the template is empty, it should be like jsonpath='{.metadata.name}'".to_owned(),
            );
        }
        if !text.contains('{') {
            let parts = vec![Part::Path(Path::parse(text)?)];
            return Ok(Self { parts });
        }
        let mut rest = text;
        let parts = read_parts(&mut rest, 0)?;
        Ok(Self { parts })
    }

    /// Fills it in.
    pub(crate) fn render(&self, tree: &Value) -> String {
        let mut out = String::new();
        render(&self.parts, tree, &mut out);
        out
    }
}

fn render(parts: &[Part], tree: &Value, out: &mut String) {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Path(path) => {
                let found: Vec<_> = path.find(tree).into_iter().map(plain).collect();
                out.push_str(&found.join(" "));
            }
            Part::Range(path, inner) => {
                for item in path.find(tree) {
                    render(inner, item, out);
                }
            }
        }
    }
}

/// A string as it is, anything else as JSON.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Up to the end of the text, or of the range that is open.
fn read_parts(rest: &mut &str, depth: usize) -> Result<Vec<Part>, String> {
    if depth > MAX_DEPTH {
        return Err(format!("ranges are nested deeper than {MAX_DEPTH} times"));
    }
    let mut parts = Vec::new();
    loop {
        let Some(open) = rest.find('{') else {
            if depth > 0 {
                return Err("a `{range …}` has no `{end}`".to_owned());
            }
            if !rest.is_empty() {
                parts.push(Part::Text((*rest).to_owned()));
            }
            return Ok(parts);
        };
        if open > 0 {
            parts.push(Part::Text(rest[..open].to_owned()));
        }
        let inside = &rest[open + 1..];
        let close = closing(inside, '}').ok_or("a `{` has no `}`")?;
        let expression = inside[..close].trim();
        *rest = &inside[close + 1..];
        if expression == "end" {
            return if depth > 0 {
                Ok(parts)
            } else {
                Err("an `{end}` has no `{range …}`".to_owned())
            };
        }
        parts.push(match expression.strip_prefix("range ") {
            Some(path) => Part::Range(Path::parse(path)?, read_parts(rest, depth + 1)?),
            None => match literal(expression) {
                Some(text) => Part::Text(text?),
                None => Part::Path(Path::parse(expression)?),
            },
        });
    }
}

/// Where a bracket closes, quotes respected.
fn closing(text: &str, bracket: char) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match quote {
            _ if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == bracket => return Some(at),
            None => {}
        }
    }
    None
}

/// A quoted text, with `\n`, `\t` and the like.
fn literal(expression: &str) -> Option<Result<String, String>> {
    let quote = expression
        .chars()
        .next()
        .filter(|c| *c == '"' || *c == '\'')?;
    let inner = expression[1..].strip_suffix(quote);
    let Some(inner) = inner else {
        return Some(Err(format!("`{expression}` does not end with its quote")));
    };
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            },
            plain => plain,
        });
    }
    Some(Ok(out))
}

/// From the way of `kubectl` to that of RFC 9535.
fn translate(text: &str) -> Result<String, String> {
    let mut rest = text;
    rest = rest.strip_prefix(['$', '@']).unwrap_or(rest);
    let mut query = "$".to_owned();
    let mut first = true;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let end =
                closing(inside, ']').ok_or_else(|| format!("`{text}` has a `[` without `]`"))?;
            // `kubectl` takes the backslash away here too.
            query.push_str(&format!("[{}]", inside[..end].replace("\\.", ".")));
            rest = &inside[end + 1..];
        } else {
            if let Some(deep) = rest.strip_prefix("..") {
                query.push_str("..");
                rest = deep;
            } else if let Some(next) = rest.strip_prefix('.') {
                rest = next;
                if rest.is_empty() && first {
                    // `{.}` is the object itself.
                    break;
                }
            } else if !first {
                return Err(format!("`{text}` is no JSON path"));
            }
            let name = take_name(&mut rest);
            match name.as_str() {
                "" if rest.starts_with('[') => {}
                "" => return Err(format!("`{text}` has an empty name")),
                "*" => query.push_str("[*]"),
                name if name.contains(['{', '}']) => {
                    return Err(format!("`{text}` is no JSON path"));
                }
                name => query.push_str(&format!(
                    "['{}']",
                    name.replace('\\', "\\\\").replace('\'', "\\'")
                )),
            }
        }
        first = false;
    }
    Ok(query)
}

/// Up to the next `.` or `[`; a backslash takes what follows as it is.
fn take_name(rest: &mut &str) -> String {
    let mut name = String::new();
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '.' | '[' => {
                *rest = &rest[at..];
                return name;
            }
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            plain => name.push(plain),
        }
    }
    *rest = "";
    name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn templates_give_what_kubectl_gives() {
        let tree = json!({"items": [
            {"metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "laya"}}, "status": {"replicas": 2, "conditions": [
                {"type": "Ready", "status": "True"}, {"type": "Stalled", "status": "False"}]}},
            {"metadata": {"name": "b"}, "status": {"replicas": 3}}]});
        for (template, expected) in [
            ("{.items[*].metadata.name}", "a b"),
            ("{$.items[0].metadata.name}", "a"),
            ("{.items[-1:].metadata.name}", "b"),
            ("{.items[0,1].status.replicas}", "2 3"),
            (
                "{.items[0].metadata.labels.app\\.kubernetes\\.io/name}",
                "laya",
            ),
            (
                "{.items[0].metadata.labels['app\\.kubernetes\\.io/name']}",
                "laya",
            ),
            (
                "{.items[0].metadata.labels['app.kubernetes.io/name']}",
                "laya",
            ),
            (
                "{.items[0].status.conditions[?(@.type==\"Ready\")].status}",
                "True",
            ),
            (
                "{.items[0].status.conditions[?(@.type=='Stalled')].status}",
                "False",
            ),
            ("{.items[?(@.status.replicas>2)].metadata.name}", "b"),
            ("{..replicas}", "2 3"),
            (
                "{range .items[*]}{.metadata.name}={.status.replicas}{\"\\n\"}{end}",
                "a=2\nb=3\n",
            ),
            ("names: {.items[*]['metadata']['name']}!", "names: a b!"),
            ("{.items[0].missing}", ""),
            (
                "{.items[1]}",
                "{\"metadata\":{\"name\":\"b\"},\"status\":{\"replicas\":3}}",
            ),
            (".items[0].metadata.name", "a"),
            ("items[0].metadata.name", "a"),
            ("{'}'}{.items[0].metadata.name}", "}a"),
        ] {
            let read =
                Template::parse(template).unwrap_or_else(|error| panic!("{template}: {error}"));
            assert_eq!(read.render(&tree), expected, "{template}");
        }
        let whole = Template::parse("{.}").unwrap().render(&json!({"a": 1}));
        assert_eq!(whole, "{\"a\":1}");
    }

    #[test]
    fn what_is_no_template_is_said_at_once() {
        for template in [
            "",
            " ",
            "{",
            "{.a",
            "{range .a}",
            "{end}",
            "{.a[}",
            "{.a[?(@.b==]}",
            "{..}",
            "{.a..}",
            "{\"x}",
            "{.a[x]}",
            "{range .a}{range .a}{range .a}{range .a}{range .a}{range .a}{range .a}{range .a}{range .a}{end}",
        ] {
            assert!(Template::parse(template).is_err(), "{template}");
        }
    }
}
