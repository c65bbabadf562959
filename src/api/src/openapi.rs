//! The OpenAPI 3.1 document of the router, made from the table of routes and the schemas of the types. Deterministic:
//! the same types give the same bytes. Only built for tools (feature `schema`); programs serve the file it was written to.

mod page;
mod schemas;

use serde_json::{Map, Value, json};

pub use page::page;

use crate::problem::{MEDIA_TYPE, Slug};
use crate::routes::{Access, Answer, Content, ErrorForm, Form, Parameter, Place, ROUTES, Route};

/// The document.
#[must_use]
pub fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths
            .entry(route.path)
            .or_insert_with(|| Value::Object(Map::new()));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Relay router",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "Decides which model, effort, role, tools and checks a request needs. Every response has `x-request-id`; W3C trace context is taken in and given on. On loopback no token is needed.",
        },
        "servers": [{"url": "http://127.0.0.1:8737", "description": "On this machine"}],
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A line `<tenant> <token>` of the router's token file. On loopback without a token file none is needed, and any is accepted.",
                }
            },
            "headers": {
                "x-request-id": {
                    "description": "The request's own if it was at most 128 harmless characters, else a new UUIDv7.",
                    "required": true,
                    "schema": {"type": "string", "maxLength": 128},
                },
                "Retry-After": {
                    "description": "Seconds to wait.",
                    "schema": {"type": "integer", "minimum": 1},
                },
                "WWW-Authenticate": {"schema": {"type": "string", "const": "Bearer"}},
                "x-relay-model-version": {
                    "description": "Name of the version that answered.",
                    "schema": {"type": "string"},
                },
                "x-relay-contract": {
                    "description": "Whether the questions of the server are those in force.",
                    "schema": {"type": "string", "enum": ["match", "foreign"]},
                },
            },
            "parameters": {
                "x-request-id": {
                    "name": "x-request-id", "in": "header",
                    "description": "Id of the request, taken over when it is harmless.",
                    "schema": {"type": "string", "maxLength": 128, "pattern": "^[A-Za-z0-9._:/+=-]+$"},
                },
                "traceparent": {
                    "name": "traceparent", "in": "header",
                    "description": "W3C trace context; `tracestate` beside it, up to 512 bytes.",
                    "schema": {"type": "string"},
                },
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "security": match route.access {
            Access::Open => json!([]),
            Access::Token | Access::Slot => json!([{"token": []}]),
        },
        "parameters": parameters(route),
        "responses": responses(route),
    });
    if !route.about.is_empty() {
        operation["description"] = route.about.into();
    }
    if let Some(body) = route.body {
        operation["requestBody"] = json!({
            "required": true,
            "description": format!("At most {} MiB, UTF-8, 64 levels deep.", body.limit >> 20),
            "content": content(body.content),
        });
    }
    operation
}

fn parameters(route: &Route) -> Vec<Value> {
    let own = route.parameters.iter().map(parameter);
    let shared = ["x-request-id", "traceparent"];
    let shared = shared.map(|name| json!({"$ref": format!("#/components/parameters/{name}")}));
    own.chain(shared).collect()
}

fn parameter(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name,
        "in": match parameter.place {
            Place::Path => "path",
            Place::Query => "query",
            Place::Header => "header",
        },
        "required": parameter.required,
        "description": parameter.about,
        "schema": form(parameter.form),
    })
}

fn form(form: Form) -> Value {
    match form {
        Form::Text => json!({"type": "string"}),
        Form::Switch => json!({"type": "boolean", "default": false}),
        Form::Number {
            least,
            most,
            default,
        } => {
            let mut schema = json!({"type": "integer", "minimum": least, "maximum": most});
            if let Some(default) = default {
                schema["default"] = default.into();
            }
            schema
        }
        Form::Uuid => json!({"type": "string", "format": "uuid"}),
        Form::Time => json!({"type": "string", "format": "date-time"}),
        Form::Since => json!({"type": "string", "examples": ["7d", "2026-11-30T10:00:00Z"]}),
        Form::Digest => json!({"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}),
    }
}

fn content(content: Content) -> Value {
    let schema = match content {
        Content::Json(name) => reference(name),
        Content::AnyJson => json!({"type": "object"}),
        Content::JsonLines | Content::Metrics => json!({"type": "string"}),
    };
    json!({content.media_type(): {"schema": schema}})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Answers and errors by status; errors of one status share an entry.
fn responses(route: &Route) -> Value {
    let mut responses = Map::new();
    for answer in route.answers {
        let mut one = response(answer);
        if route.errors == ErrorForm::Detail && answer.status == 200 {
            one["headers"] = headers(&["x-relay-model-version", "x-relay-contract"]);
        }
        responses.insert(answer.status.to_string(), one);
    }
    let problems = route.problems();
    let mut statuses: Vec<u16> = problems.iter().map(|slug| slug.status()).collect();
    statuses.sort_unstable();
    statuses.dedup();
    for status in statuses {
        let of_status = problems.iter().filter(|slug| slug.status() == status);
        let slugs: Vec<Slug> = of_status.copied().collect();
        match responses.get_mut(&status.to_string()) {
            // A status that is an answer too.
            Some(answer) => {
                answer["content"][MEDIA_TYPE] = json!({"schema": problem_schema(&slugs)});
            }
            None => {
                responses.insert(status.to_string(), error(route.errors, &slugs));
            }
        }
    }
    Value::Object(responses)
}

fn response(answer: &Answer) -> Value {
    json!({
        "description": answer.about,
        "headers": headers(&[]),
        "content": content(answer.content),
    })
}

fn error(form: ErrorForm, slugs: &[Slug]) -> Value {
    let named: Vec<String> = slugs
        .iter()
        .map(|slug| match form {
            ErrorForm::Problem => format!("`{}`: {}.", slug.as_str(), slug.title()),
            ErrorForm::Detail => format!("{}.", slug.title()),
        })
        .collect();
    let extra: &[&str] = match slugs.first().map(|slug| slug.status()) {
        Some(401) if form == ErrorForm::Problem => &["WWW-Authenticate"],
        Some(429 | 503) => &["Retry-After"],
        _ => &[],
    };
    let content = match form {
        ErrorForm::Problem => json!({MEDIA_TYPE: {"schema": problem_schema(slugs)}}),
        ErrorForm::Detail => json!({"application/json": {"schema": reference("Detail")}}),
    };
    json!({"description": named.join(" "), "headers": headers(extra), "content": content})
}

fn problem_schema(slugs: &[Slug]) -> Value {
    let kinds: Vec<String> = slugs
        .iter()
        .map(|slug| format!("{}{}", crate::problem::TYPE_PREFIX, slug.as_str()))
        .collect();
    json!({
        "allOf": [reference("Problem"), {"properties": {"type": {"enum": kinds}}}],
    })
}

fn headers(extra: &[&str]) -> Value {
    let names = std::iter::once(&"x-request-id").chain(extra);
    let named = names.map(|name| {
        let header = json!({"$ref": format!("#/components/headers/{name}")});
        ((*name).to_owned(), header)
    });
    Value::Object(named.collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(to)) = map.get("$ref") {
                    found.insert(to.clone());
                }
                map.values().for_each(|one| references(one, found));
            }
            Value::Array(list) => list.iter().for_each(|one| references(one, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_schema_is_used() {
        let document = document();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for to in &found {
            let place = to.strip_prefix('#').unwrap();
            assert!(document.pointer(place).is_some(), "{to} leads nowhere");
        }
        for name in document["components"]["schemas"]
            .as_object()
            .unwrap()
            .keys()
        {
            let to = format!("#/components/schemas/{name}");
            assert!(found.contains(&to), "{name} is not used");
        }
    }

    #[test]
    fn is_the_same_each_time_and_names_every_route() {
        let text = serde_json::to_string(&document()).unwrap();
        assert_eq!(text, serde_json::to_string(&document()).unwrap());
        let document = document();
        for route in ROUTES {
            let method = route.method.as_str().to_ascii_lowercase();
            let operation = &document["paths"][route.path][method];
            assert_eq!(operation["operationId"], route.id);
            for slug in route.problems() {
                let answer = &operation["responses"][slug.status().to_string()];
                assert!(answer.is_object(), "{}: {}", route.id, slug.as_str());
            }
        }
    }
}
