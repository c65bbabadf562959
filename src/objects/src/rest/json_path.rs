//! The JSON paths of columns: fields, `[0]`, and `[?(@.type=="Ready")]`.

use serde_json::Value;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Item(usize),
    /// The items whose field at a path has a value.
    Where {
        path: Vec<String>,
        value: Value,
    },
}

/// A path; one that we cannot read finds nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct JsonPath(Option<Vec<Step>>);

impl JsonPath {
    /// Reads a path such as `.status.conditions[?(@.type=="Ready")].status`.
    pub(super) fn parse(text: &str) -> Self {
        Self(steps(text))
    }

    /// The first value at the path.
    pub(super) fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let mut found = vec![object];
        for step in self.0.as_ref()? {
            found = found
                .into_iter()
                .flat_map(|value| below(value, step))
                .collect();
        }
        found.first().copied()
    }
}

fn below<'a>(value: &'a Value, step: &Step) -> Vec<&'a Value> {
    match step {
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::Item(index) => value.get(index).into_iter().collect(),
        Step::Where {
            path,
            value: wanted,
        } => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let fits = |item: &&Value| {
                path.iter()
                    .try_fold(*item, |value, part| value.get(part))
                    .is_some_and(|found| found == wanted)
            };
            items.iter().filter(fits).collect()
        }
    }
}

fn steps(text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let name = &after[..end];
            if name.is_empty() {
                return None;
            }
            steps.push(Step::Field(name.to_owned()));
            rest = &after[end..];
        } else if let Some(after) = rest.strip_prefix("[?(@.") {
            let (inside, after) = after.split_once(")]")?;
            let (path, value) = inside.split_once("==")?;
            let value = value.trim().replace('\'', "\"");
            steps.push(Step::Where {
                path: path.trim().split('.').map(str::to_owned).collect(),
                value: serde_json::from_str(&value).ok()?,
            });
            rest = after;
        } else {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            let name = index.trim_matches(['\'', '"']);
            steps.push(match index.parse() {
                Ok(index) => Step::Item(index),
                Err(_) if name.len() + 2 == index.len() => Step::Field(name.to_owned()),
                Err(_) => return None,
            });
            rest = after;
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_what_columns_name() {
        let object = json!({
            "spec": {"a": [{"b": 1}, {"b": 2}], "x.y": true},
            "status": {"conditions": [
                {"type": "Reconciling", "status": "True"}, {"type": "Ready", "status": "False"},
            ]},
        });
        for (path, found) in [
            (".spec.a[1].b", Some(json!(2))),
            (
                r#".status.conditions[?(@.type=="Ready")].status"#,
                Some(json!("False")),
            ),
            (".status.conditions[?(@.type=='Gone')].status", None),
            (".spec['x.y']", Some(json!(true))),
            (".spec.c.d", None),
            (".spec..a", None),
            ("spec", None),
        ] {
            assert_eq!(
                JsonPath::parse(path).first(&object),
                found.as_ref(),
                "{path}"
            );
        }
    }
}
