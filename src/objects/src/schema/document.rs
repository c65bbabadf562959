//! A CRD document around its schema: which ones we can serve, and what is read from them.

use serde_json::{Map, Value, json};

use super::compile::{list, malformed, text, texts};
use super::definition::{Column, Scale};
use super::error::DefinitionError;

/// What a CRD must be for us, apart from its schema.
pub(super) fn check_document(crd: &Value, spec: &Fields<'_>) -> Result<(), DefinitionError> {
    for (field, wanted) in [
        ("apiVersion", "apiextensions.k8s.io/v1"),
        ("kind", "CustomResourceDefinition"),
    ] {
        if crd.get(field).and_then(Value::as_str) != Some(wanted) {
            return Err(malformed(field, format!("must be {wanted}")));
        }
    }
    spec.get("names")?;
    if spec.text("scope")? != "Namespaced" {
        return Err(DefinitionError::Unsupported {
            path: spec.at("scope"),
            what: "a scope other than Namespaced".to_owned(),
        });
    }
    if spec
        .map
        .get("preserveUnknownFields")
        .is_some_and(|keep| keep != &Value::Bool(false))
    {
        return Err(DefinitionError::Unsupported {
            path: spec.path.clone(),
            what: "preserveUnknownFields".to_owned(),
        });
    }
    if spec
        .map
        .get("conversion")
        .is_some_and(|conversion| conversion != &json!({"strategy": "None"}))
    {
        return Err(DefinitionError::Unsupported {
            path: spec.at("conversion"),
            what: "conversion".to_owned(),
        });
    }
    Ok(())
}

/// What stands beside the object itself.
pub(super) struct Subresources {
    pub(super) has_status: bool,
    pub(super) scale: Option<Scale>,
}

/// Reads `subresources` of a version.
pub(super) fn subresources(version: &Fields<'_>) -> Result<Subresources, DefinitionError> {
    let Some(raw) = version.map.get("subresources") else {
        return Ok(Subresources {
            has_status: false,
            scale: None,
        });
    };
    let found = fields(raw, &version.at("subresources"), &["status", "scale"])?;
    let scale = found.map.get("scale").map(|raw| {
        let scale = fields(
            raw,
            &found.at("scale"),
            &[
                "specReplicasPath",
                "statusReplicasPath",
                "labelSelectorPath",
            ],
        )?;
        Ok(Scale {
            spec_replicas: scale.text("specReplicasPath")?.to_owned(),
            status_replicas: scale.text("statusReplicasPath")?.to_owned(),
            selector: scale.optional_text("labelSelectorPath")?.map(str::to_owned),
        })
    });
    Ok(Subresources {
        has_status: found.map.contains_key("status"),
        scale: scale.transpose()?,
    })
}

/// Reads `additionalPrinterColumns` of a version.
pub(super) fn columns(version: &Fields<'_>) -> Result<Vec<Column>, DefinitionError> {
    let path = version.at("additionalPrinterColumns");
    let Some(raw) = version.map.get("additionalPrinterColumns") else {
        return Ok(Vec::new());
    };
    list(raw, &path)?
        .iter()
        .enumerate()
        .map(|(index, raw)| {
            let known = [
                "name",
                "type",
                "format",
                "description",
                "priority",
                "jsonPath",
            ];
            let column = fields(raw, &format!("{path}[{index}]"), &known)?;
            let priority = column.map.get("priority").map_or(Some(0), Value::as_i64);
            Ok(Column {
                name: column.text("name")?.to_owned(),
                type_: column.text("type")?.to_owned(),
                format: column.optional_text("format")?.map(str::to_owned),
                description: column
                    .optional_text("description")?
                    .unwrap_or_default()
                    .to_owned(),
                priority: priority
                    .and_then(|priority| i32::try_from(priority).ok())
                    .ok_or_else(|| {
                        malformed(&column.at("priority"), "must be a whole number".to_owned())
                    })?,
                json_path: column.text("jsonPath")?.to_owned(),
            })
        })
        .collect()
}

/// An object of the document, and its place in it.
pub(super) struct Fields<'a> {
    pub(super) map: &'a Map<String, Value>,
    pub(super) path: String,
}

/// Reads an object that has only known fields.
pub(super) fn fields<'a>(
    value: &'a Value,
    path: &str,
    known: &[&str],
) -> Result<Fields<'a>, DefinitionError> {
    let map = value
        .as_object()
        .ok_or_else(|| malformed(path, "must be an object".to_owned()))?;
    match map.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(DefinitionError::Unsupported {
            path: path.to_owned(),
            what: format!("field {key}"),
        }),
        None => Ok(Fields {
            map,
            path: path.to_owned(),
        }),
    }
}

impl<'a> Fields<'a> {
    pub(super) fn at(&self, field: &str) -> String {
        format!("{}.{field}", self.path)
    }

    pub(super) fn get(&self, field: &str) -> Result<&'a Value, DefinitionError> {
        self.map
            .get(field)
            .ok_or_else(|| malformed(&self.at(field), "is missing".to_owned()))
    }

    pub(super) fn text(&self, field: &str) -> Result<&'a str, DefinitionError> {
        text(self.get(field)?, &self.at(field))
    }

    pub(super) fn optional_text(&self, field: &str) -> Result<Option<&'a str>, DefinitionError> {
        self.map
            .get(field)
            .map(|value| text(value, &self.at(field)))
            .transpose()
    }

    pub(super) fn texts(&self, field: &str) -> Result<Vec<String>, DefinitionError> {
        self.map
            .get(field)
            .map_or(Ok(Vec::new()), |value| texts(value, &self.at(field)))
    }
}
