//! The reference page for people, written from the document, so that it cannot say something else.

use std::fmt::Write;

use serde_json::{Map, Value};

const HEAD: &str = "\
<!-- Written by `cargo xtask docs` from src/api/src/routes/table.rs and the types; changes here are lost. -->

# HTTP API of the router

JSON over HTTP/1.1, by default at `http://127.0.0.1:8737`. The same as [openapi.json](openapi.json), which a router serves
at `/openapi.json`. Limits, tokens and settings are in [relayd-router.md](relayd-router.md).

- Bodies are UTF-8 JSON objects; an unknown field or parameter is refused with its name, so a typing error is never ignored.
- Every response has `x-request-id`. `traceparent` and `tracestate` are taken in and given on to model servers.
- Errors are `application/problem+json` (see [Problem](#problem)), but for `/v1/systemone`, which answers as a Laya server does.
- 503 comes with `Retry-After`.
";

/// The page, as Markdown.
///
/// # Panics
/// Never: a text can always be written to.
#[must_use]
pub fn page(document: &Value) -> String {
    let mut out = HEAD.to_owned();
    out.push_str("\n## Routes\n\n| route | |\n|---|---|\n");
    for (path, method, operation) in operations(document) {
        let id = text(operation, "operationId");
        let summary = text(operation, "summary");
        line(
            &mut out,
            format_args!("| [`{method} {path}`](#route-{id}) | {summary} |"),
        );
    }
    for (path, method, operation) in operations(document) {
        route(&mut out, path, &method, operation);
    }
    errors(&mut out);
    out.push_str("\n## Types\n");
    let schemas = &document["components"]["schemas"];
    for (name, schema) in schemas.as_object().into_iter().flatten() {
        described(&mut out, name, schema);
    }
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // A text can always be written to.
    let _ = writeln!(out, "{text}");
}

/// In the order of the table, which the document's maps do not keep.
fn operations(document: &Value) -> impl Iterator<Item = (&'static str, String, &Value)> {
    crate::routes::ROUTES.iter().map(|route| {
        let method = route.method.as_str();
        let operation = &document["paths"][route.path][method.to_ascii_lowercase()];
        (route.path, method.to_owned(), operation)
    })
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn route(out: &mut String, path: &str, method: &str, operation: &Value) {
    let id = text(operation, "operationId");
    line(
        out,
        format_args!("\n<a id=\"route-{id}\"></a>\n\n### `{method} {path}`\n"),
    );
    let about = text(operation, "description");
    let summary = text(operation, "summary");
    line(
        out,
        format_args!("{}\n", format!("{summary}. {about}").trim_end()),
    );
    let open = operation["security"].as_array().is_none_or(Vec::is_empty);
    let token = if open {
        "not needed"
    } else {
        "needed beyond loopback"
    };
    line(out, format_args!("- token: {token}"));
    let own = operation["parameters"].as_array().into_iter().flatten();
    for parameter in own.filter(|parameter| parameter["$ref"].is_null()) {
        let (name, place) = (text(parameter, "name"), text(parameter, "in"));
        let kind = kind(&parameter["schema"]);
        let needed = if parameter["required"] == true && place != "path" {
            ", required"
        } else {
            ""
        };
        let about = text(parameter, "description");
        line(
            out,
            format_args!("- {place} `{name}` ({kind}{needed}): {about}"),
        );
    }
    let body = &operation["requestBody"];
    for (media, content) in body["content"].as_object().into_iter().flatten() {
        let kind = kind(&content["schema"]);
        let about = text(body, "description");
        line(out, format_args!("- body: {kind}, `{media}`. {about}"));
    }
    let mut errors = Vec::new();
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        if !is_answer(id, status) {
            errors.push(error(status, response));
            continue;
        }
        let content = response["content"].as_object();
        let kind = match content.and_then(|map| map.iter().next()) {
            Some((media, content)) if media == "application/json" => kind(&content["schema"]),
            Some((media, _)) => format!("`{media}`"),
            None => String::new(),
        };
        let about = text(response, "description");
        line(out, format_args!("- {status}: {kind}. {about}"));
    }
    line(out, format_args!("- errors: {}", errors.join(", ")));
}

fn is_answer(id: &str, status: &str) -> bool {
    let mut routes = crate::routes::ROUTES.iter();
    let answers = routes
        .find(|route| route.id == id)
        .map(|route| route.answers);
    let mut answers = answers.into_iter().flatten();
    answers.any(|answer| answer.status.to_string() == status)
}

/// Status and slugs, as in the table of errors.
fn error(status: &str, response: &Value) -> String {
    let schema = &response["content"][crate::problem::MEDIA_TYPE]["schema"];
    let kinds = schema["allOf"][1]["properties"]["type"]["enum"].as_array();
    let slugs = kinds.into_iter().flatten().filter_map(Value::as_str);
    let slugs = slugs.map(|kind| {
        let slug = kind.rsplit('/').next().unwrap_or(kind);
        format!("`{slug}`")
    });
    let slugs: Vec<String> = slugs.collect();
    format!("{status} {}", slugs.join(" "))
        .trim_end()
        .to_owned()
}

/// Every kind of error once, so that routes need only name them.
fn errors(out: &mut String) {
    out.push_str("\n## Errors\n\n| type | status | |\n|---|---|---|\n");
    for slug in crate::problem::Slug::ALL {
        let (name, status, title) = (slug.as_str(), slug.status(), slug.title());
        line(out, format_args!("| `{name}` | {status} | {title} |"));
    }
}

fn described(out: &mut String, name: &str, schema: &Value) {
    line(out, format_args!("\n### {name}\n"));
    let about = text(schema, "description").replace('\n', " ");
    if !about.is_empty() {
        line(out, format_args!("{about}\n"));
    }
    if let Some(fields) = schema["properties"].as_object() {
        fields_of(out, schema, fields);
        return;
    }
    let words = schema["oneOf"].as_array().into_iter().flatten();
    let words: Vec<_> = words.filter(|word| word["const"].is_string()).collect();
    if words.is_empty() {
        let kind = kind(schema);
        line(out, format_args!("{kind}{}", bounds(schema)));
    }
    for word in words {
        let about = text(word, "description").replace('\n', " ");
        line(out, format_args!("- `{}`: {about}", text(word, "const")));
    }
}

fn fields_of(out: &mut String, schema: &Value, fields: &Map<String, Value>) {
    let required = |name: &str| {
        let required = schema["required"].as_array().into_iter().flatten();
        required.into_iter().any(|one| one == name)
    };
    out.push_str("| field | type | |\n|---|---|---|\n");
    for (name, field) in fields {
        let optional = if required(name) { "" } else { ", optional" };
        let about = text(field, "description")
            .replace('\n', " ")
            .replace('|', "\\|");
        let kind = kind(field);
        let bounds = bounds(field);
        line(
            out,
            format_args!("| `{name}` | {kind}{bounds}{optional} | {about} |"),
        );
    }
}

/// The type of a schema in words.
fn kind(schema: &Value) -> String {
    if let Some(to) = schema["$ref"].as_str() {
        let name = to.rsplit('/').next().unwrap_or(to);
        return format!("[{name}](#{})", name.to_ascii_lowercase());
    }
    for several in ["anyOf", "oneOf"] {
        if let Some(list) = schema[several].as_array() {
            return list.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    if let Some(list) = schema["allOf"].as_array() {
        return list.first().map(kind).unwrap_or_default();
    }
    if let Some(words) = schema["enum"].as_array() {
        let words = words
            .iter()
            .map(|word| format!("`{}`", word.as_str().unwrap_or("null")));
        return words.collect::<Vec<_>>().join(" or ");
    }
    if let Some(word) = schema["const"].as_str() {
        return format!("`{word}`");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => return "any JSON".to_owned(),
    };
    let named = types.into_iter().map(|one| match one {
        "array" => match &schema["prefixItems"] {
            Value::Array(items) => {
                format!(
                    "[{}]",
                    items.iter().map(kind).collect::<Vec<_>>().join(", ")
                )
            }
            _ => format!("list of {}", kind(&schema["items"])),
        },
        "object" if schema["additionalProperties"].is_object() => {
            format!("map to {}", kind(&schema["additionalProperties"]))
        }
        other => match schema["format"].as_str() {
            Some(format @ ("date-time" | "date" | "uuid")) if other == "string" => {
                format.to_owned()
            }
            _ => other.to_owned(),
        },
    });
    named.collect::<Vec<_>>().join(" or ")
}

/// Range and length, where they are closed on both sides or say more than the type.
fn bounds(schema: &Value) -> String {
    let of = |key: &str| schema[key].as_number().map(ToString::to_string);
    match (
        of("minimum"),
        of("maximum"),
        of("maxLength"),
        of("maxItems"),
    ) {
        (Some(least), Some(most), ..) => format!(", {least} to {most}"),
        (_, _, Some(most), _) => format!(", at most {most} characters"),
        (_, _, _, Some(most)) => format!(", at most {most}"),
        _ => String::new(),
    }
}
