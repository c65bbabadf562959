//! Which objects of a kind: by labels, and by the few fields that can be selected.

use serde_json::Value;

use crate::catalog::{Nature, Resource, View};
use crate::failure::Failure;

/// What a label must be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    rule: Rule,
}

/// A field, the place it is stored at, and what it must be or must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRule {
    path: Vec<String>,
    value: String,
    equal: bool,
}

/// Both selectors of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Selection {
    labels: Vec<Requirement>,
    fields: Vec<FieldRule>,
}

impl Selection {
    /// Reads both selectors.
    pub(super) fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, Failure> {
        let labels = clauses(labels)
            .map(|clause| requirement(clause))
            .collect::<Result<_, _>>()
            .map_err(|reason| {
                Failure::bad_request(format!("unable to parse requirement: {reason}"))
            })?;
        let fields = clauses(fields)
            .map(|clause| field_rule(resource, clause))
            .collect::<Result<_, _>>()?;
        Ok(Self { labels, fields })
    }

    /// Whether everything is wanted.
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether a stored object is wanted.
    pub(super) fn wants(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let has_labels = self
            .labels
            .iter()
            .all(|requirement| requirement.holds(labels[&requirement.key].as_str()));
        has_labels
            && self.fields.iter().all(|rule| {
                let path = rule.path.iter();
                let value = path.fold(object, |value, part| &value[part]);
                let text = value.as_str().unwrap_or_default();
                (text == rule.value) == rule.equal
            })
    }

    /// The name that is asked for, where one is.
    pub(super) fn name(&self) -> Option<&str> {
        self.equal_to(&["metadata", "name"])
    }

    /// The namespace that is asked for, where one is.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.equal_to(&["metadata", "namespace"])
    }

    fn equal_to(&self, path: &[&str]) -> Option<&str> {
        let found = self
            .fields
            .iter()
            .find(|rule| rule.equal && rule.path == path);
        found.map(|rule| rule.value.as_str())
    }
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.rule {
            Rule::In(values) => {
                value.is_some_and(|value| values.iter().any(|wanted| wanted == value))
            }
            Rule::NotIn(values) => {
                value.is_none_or(|value| values.iter().all(|wanted| wanted != value))
            }
            Rule::Exists => value.is_some(),
            Rule::Absent => value.is_none(),
            Rule::Above(limit) => number().is_some_and(|number| number > *limit),
            Rule::Below(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

/// The parts between commas that stand in no brackets.
fn clauses(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|clause| !clause.is_empty())
}

fn requirement(clause: &str) -> Result<Requirement, String> {
    let made = |key: &str, rule| {
        let key = key.trim();
        let wrong = crate::write::label_key(key);
        match wrong.first() {
            None => Ok(Requirement {
                key: key.to_owned(),
                rule,
            }),
            Some(wrong) => Err(format!("key: Invalid value: {key:?}: {wrong}")),
        }
    };
    if let Some(key) = clause.strip_prefix('!') {
        return made(key, Rule::Absent);
    }
    for (word, rule) in [
        ("!=", Rule::NotIn as fn(Vec<String>) -> Rule),
        ("==", Rule::In),
        ("=", Rule::In),
    ] {
        if let Some((key, value)) = clause.split_once(word) {
            return made(key, rule(vec![label_value(value)?]));
        }
    }
    for (word, rule) in [('>', Rule::Above as fn(i64) -> Rule), ('<', Rule::Below)] {
        if let Some((key, value)) = clause.split_once(word) {
            let number = value.trim().parse();
            let number = number.map_err(|_| {
                format!("values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer")
            })?;
            return made(key, rule(number));
        }
    }
    let Some((before, list)) = clause.split_once('(') else {
        return match clause.split_whitespace().collect::<Vec<_>>().as_slice() {
            [key] => made(key, Rule::Exists),
            [_, found, ..] => Err(format!(
                "found '{found}', expected: in, notin, =, ==, !=, gt, lt"
            )),
            [] => Err("found '', expected: !, identifier, or 'end of string'".to_owned()),
        };
    };
    let list = list
        .strip_suffix(')')
        .ok_or_else(|| "found '', expected: ',' or ')'".to_owned())?;
    let values = list
        .split(',')
        .map(label_value)
        .collect::<Result<Vec<_>, _>>()?;
    match before.split_whitespace().collect::<Vec<_>>().as_slice() {
        [key, "in"] => made(key, Rule::In(values)),
        [key, "notin"] => made(key, Rule::NotIn(values)),
        _ => Err(format!(
            "found '{}', expected: in, notin, =, ==, !=, gt, lt",
            before.trim()
        )),
    }
}

fn label_value(text: &str) -> Result<String, String> {
    let text = text.trim();
    match crate::write::label_value(text).first() {
        None => Ok(text.to_owned()),
        Some(wrong) => Err(format!("values[0]: Invalid value: {text:?}: {wrong}")),
    }
}

fn field_rule(resource: &Resource, clause: &str) -> Result<FieldRule, Failure> {
    let split = [("!=", false), ("==", true), ("=", true)]
        .into_iter()
        .find_map(|(word, equal)| {
            clause
                .split_once(word)
                .map(|(key, value)| (key.trim(), value.trim(), equal))
        });
    let Some((key, value, equal)) = split else {
        return Err(Failure::bad_request(format!(
            "invalid selector: '{clause}'; can't understand '{clause}'"
        )));
    };
    let path = stored_path(resource, key)
        .ok_or_else(|| Failure::bad_request(format!("field label not supported: {key}")))?;
    Ok(FieldRule {
        path: path.split('.').map(str::to_owned).collect(),
        value: value.to_owned(),
        equal,
    })
}

/// Parts of a reference that events can be selected by.
const REFERENCE: [&str; 7] = [
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
];

/// Where a field that can be selected is stored.
fn stored_path(resource: &Resource, field: &str) -> Option<String> {
    if matches!(field, "metadata.name" | "metadata.namespace") {
        return Some(field.to_owned());
    }
    match resource.nature {
        Nature::Namespace => (matches!(field, "status.phase" | "name")).then(|| match field {
            "name" => "metadata.name".to_owned(),
            _ => field.to_owned(),
        }),
        Nature::Event => {
            let (object, controller) = match resource.view {
                View::CoreEvent => ("involvedObject.", "reportingComponent"),
                View::Stored => ("regarding.", "reportingController"),
            };
            if let Some(part) = field.strip_prefix(object) {
                return REFERENCE
                    .contains(&part)
                    .then(|| format!("regarding.{part}"));
            }
            match field {
                "reason" | "type" => Some(field.to_owned()),
                _ if field == controller => Some("reportingController".to_owned()),
                "source" => Some("deprecatedSource.component".to_owned()),
                _ => None,
            }
        }
        Nature::Custom | Nature::Revision => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wants(labels: &str, object: &Value) -> bool {
        let labels = clauses(labels).map(|clause| requirement(clause).unwrap());
        let selection = Selection {
            labels: labels.collect(),
            fields: Vec::new(),
        };
        selection.wants(object)
    }

    #[test]
    fn labels_are_selected_as_kubectl_writes_it() {
        let object = json!({"metadata": {"labels": {"a": "1", "relay.dev/x": "y"}}});
        for (selector, wanted) in [
            ("", true),
            ("a=1", true),
            ("a==1,relay.dev/x=y", true),
            ("a=1, relay.dev/x != y", false),
            ("b!=1", true),
            ("a in (1, 2)", true),
            ("a in (2,3),b", false),
            ("a notin (2,3)", true),
            ("b notin (2)", true),
            ("a", true),
            ("!a", false),
            ("!b", true),
            ("a>0", true),
            ("a<1", false),
        ] {
            assert_eq!(wants(selector, &object), wanted, "{selector}");
        }
        for bad in ["a in (1", "a b", "=x", "a=b c", "a ni (1)", "a>x"] {
            assert!(requirement(bad).is_err(), "{bad}");
        }
    }
}
