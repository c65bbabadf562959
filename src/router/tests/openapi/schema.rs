//! Whether a value is what a JSON Schema of our document says. It knows the keywords our schemas use and stops at any
//! other, so that none is passed over.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// What is wrong with a value, each with its place; fields that an object's schema does not name are wrong too.
pub(crate) fn problems(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut check = Check {
        document,
        found: Vec::new(),
    };
    check.all(schema, value, "$");
    check.found
}

struct Check<'a> {
    document: &'a Value,
    found: Vec<String>,
}

impl Check<'_> {
    fn wrong(&mut self, place: &str, what: impl std::fmt::Display) {
        self.found.push(format!("{place}: {what}"));
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        problems(self.document, schema, value).is_empty()
    }

    fn all(&mut self, schema: &Value, value: &Value, place: &str) {
        let keywords = match schema {
            Value::Bool(true) => return,
            Value::Object(keywords) => keywords,
            other => return self.wrong(place, format!("cannot be what {other} says")),
        };
        for (keyword, wanted) in keywords {
            self.keyword(keyword, wanted, keywords, value, place);
        }
        if let Value::Object(fields) = value {
            self.fields(keywords, fields, place);
        }
    }

    fn keyword(
        &mut self,
        keyword: &str,
        wanted: &Value,
        keywords: &Map<String, Value>,
        value: &Value,
        place: &str,
    ) {
        match keyword {
            "$ref" => {
                let to = wanted.as_str().unwrap().trim_start_matches('#');
                let document = self.document;
                self.all(document.pointer(to).unwrap(), value, place);
            }
            "type" => {
                let one = std::slice::from_ref(wanted);
                let kinds = wanted.as_array().map_or(one, Vec::as_slice);
                if !kinds.iter().any(|kind| is(kind.as_str().unwrap(), value)) {
                    self.wrong(place, format!("{value} is no {wanted}"));
                }
            }
            "const" if value != wanted => self.wrong(place, format!("{value} is not {wanted}")),
            "enum" if !wanted.as_array().unwrap().contains(value) => {
                self.wrong(place, format!("{value} is none of {wanted}"));
            }
            "anyOf" | "oneOf" => {
                let several = wanted.as_array().unwrap();
                let fitting = several.iter().filter(|one| self.fits(one, value)).count();
                if fitting == 0 || (keyword == "oneOf" && fitting > 1) {
                    self.wrong(place, format!("{value} fits {fitting} of {wanted}"));
                }
            }
            "allOf" => {
                for one in wanted.as_array().unwrap() {
                    self.all(one, value, place);
                }
            }
            "minimum" if value.as_f64() < wanted.as_f64() && value.is_number() => {
                self.wrong(place, format!("{value} is below {wanted}"));
            }
            "maximum" if value.as_f64() > wanted.as_f64() && value.is_number() => {
                self.wrong(place, format!("{value} is above {wanted}"));
            }
            "items" => {
                let first = keywords.get("prefixItems").and_then(Value::as_array);
                let skipped = first.map_or(0, Vec::len);
                let items = value.as_array().into_iter().flatten();
                for (at, item) in items.enumerate().skip(skipped) {
                    self.all(wanted, item, &format!("{place}[{at}]"));
                }
            }
            "prefixItems" => {
                let items = value.as_array().into_iter().flatten();
                for (at, (item, wanted)) in items.zip(wanted.as_array().unwrap()).enumerate() {
                    self.all(wanted, item, &format!("{place}[{at}]"));
                }
            }
            "minItems"
                if value
                    .as_array()
                    .is_some_and(|list| list.len() < size(wanted)) =>
            {
                self.wrong(place, format!("has less than {wanted} entries"));
            }
            "maxItems"
                if value
                    .as_array()
                    .is_some_and(|list| list.len() > size(wanted)) =>
            {
                self.wrong(place, format!("has more than {wanted} entries"));
            }
            "const" | "enum" | "minimum" | "maximum" | "minItems" | "maxItems" => {}
            // Fields are checked together.
            "properties" | "required" | "additionalProperties" | "propertyNames" => {}
            // For people; patterns are checked where the types are.
            "description" | "title" | "default" | "format" | "pattern" | "examples"
            | "maxLength" | "uniqueItems" => {}
            other => panic!("{place}: this check does not know `{other}`"),
        }
    }

    fn fields(&mut self, keywords: &Map<String, Value>, fields: &Map<String, Value>, place: &str) {
        let required = keywords.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten() {
            if !fields.contains_key(name.as_str().unwrap()) {
                self.wrong(place, format!("{name} is missing"));
            }
        }
        let none = Map::new();
        let named = keywords.get("properties").and_then(Value::as_object);
        let more = keywords.get("additionalProperties");
        for (name, value) in fields {
            let place = format!("{place}.{name}");
            match (named.unwrap_or(&none).get(name), more) {
                (Some(schema), _) | (None, Some(schema)) => self.all(schema, value, &place),
                // A schema that names its fields and its kind names all of them.
                (None, None) if named.is_some() && keywords.contains_key("type") => {
                    self.wrong(&place, "is not documented");
                }
                (None, None) => {}
            }
        }
    }
}

fn size(number: &Value) -> usize {
    usize::try_from(number.as_u64().unwrap()).unwrap()
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("there is no type `{other}`"),
    }
}

/// Paths in the debug text of a router: it has no other list of its routes.
pub(crate) fn paths_of(app: &axum::Router) -> BTreeSet<String> {
    let text = format!("{app:?}");
    let quoted = text.split('"').skip(1).step_by(2);
    quoted
        // What axum adds for paths that no route has.
        .filter(|part| part.starts_with('/') && *part != "/" && !part.contains("__private__"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn finds_what_is_wrong() {
    let document = serde_json::json!({"components": {"schemas": {"Word": {
        "oneOf": [{"const": "a", "type": "string"}, {"const": "b", "type": "string"}]
    }}}});
    let schema = serde_json::json!({
        "type": "object",
        "required": ["word"],
        "properties": {
            "word": {"$ref": "#/components/schemas/Word"},
            "list": {"type": ["array", "null"], "items": {"type": "integer", "maximum": 3}},
            "map": {"type": "object", "additionalProperties": {"type": "boolean"}},
        }
    });
    for (value, wrong) in [
        (r#"{"word":"a","list":[1,3],"map":{"x":true}}"#, 0),
        (r#"{"word":"a","list":null}"#, 0),
        (r#"{}"#, 1),
        (r#"{"word":"c"}"#, 1),
        (r#"{"word":"a","list":[4,"x",1.5]}"#, 3),
        (r#"{"word":"a","map":{"x":1}}"#, 1),
        (r#"{"word":"a","more":1}"#, 1),
        ("[]", 1),
    ] {
        let value: Value = serde_json::from_str(value).unwrap();
        let found = problems(&document, &schema, &value);
        assert_eq!(found.len(), wrong, "{value}: {found:?}");
    }
}
