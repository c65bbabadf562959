//! One kind, compiled from its CustomResourceDefinition.

use serde_json::{Value, json};

use super::cause::{Cause, CauseReason, NO_FIELD};
use super::check::{self, Pair};
use super::compile::{self, Place, flag, list, malformed};
use super::document::{check_document, columns, fields, subresources};
use super::error::DefinitionError;
use super::node::Node;
use super::path::Path;
use super::rules::{self, Engine, Ratchet};
use super::{default, scale, unknown};

/// A column of `kubectl get`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// The type of its cells: `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: String,
    /// The format of its cells, if the CRD gives one.
    pub format: Option<String>,
    /// What it shows.
    pub description: String,
    /// 0 is always shown, more in wide output only.
    pub priority: i32,
    /// Where the cells come from, `.status.phase` for instance.
    pub json_path: String,
}

/// The fields behind `/scale`, as dotted JSON paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The wish, `.spec.replicas`.
    pub spec_replicas: String,
    /// What is there, `.status.replicas`.
    pub status_replicas: String,
    /// The selector of what is counted, `.status.selector`.
    pub selector: Option<String>,
}

/// One version of a kind: its names, and everything its schema asks of an object.
#[derive(Debug)]
pub struct Definition {
    /// API group.
    pub group: String,
    /// The one version that is served and stored.
    pub version: String,
    /// Kind of an object.
    pub kind: String,
    /// Kind of a list of them.
    pub list_kind: String,
    /// The name in paths.
    pub plural: String,
    /// The name of one.
    pub singular: String,
    /// Short forms of the name.
    pub short_names: Vec<String>,
    /// Groups of kinds it belongs to.
    pub categories: Vec<String>,
    /// Columns of a table, without the name.
    pub columns: Vec<Column>,
    /// There is `/scale`.
    pub scale: Option<Scale>,
    /// There is `/status`.
    pub has_status: bool,
    /// The schema as the CRD has it.
    pub open_api: Value,
    root: Node,
    engine: Engine,
}

impl Definition {
    /// Compiles a CRD document (`apiextensions.k8s.io/v1`) with one version.
    ///
    /// # Errors
    /// When the document is malformed, its schema is not structural, or it asks for what is not implemented here; a
    /// keyword is never passed over.
    pub fn compile(crd: &Value) -> Result<Self, DefinitionError> {
        let spec_known = [
            "group",
            "names",
            "scope",
            "versions",
            "conversion",
            "preserveUnknownFields",
        ];
        let spec = fields(crd.get("spec").unwrap_or(&Value::Null), "spec", &spec_known)?;
        check_document(crd, &spec)?;
        let names_known = [
            "categories",
            "kind",
            "listKind",
            "plural",
            "shortNames",
            "singular",
        ];
        let names = fields(&spec.map["names"], "spec.names", &names_known)?;
        let versions = list(spec.get("versions")?, "spec.versions")?;
        let [version] = &versions[..] else {
            return Err(DefinitionError::Unsupported {
                path: "spec.versions".to_owned(),
                what: "more or less than one version".to_owned(),
            });
        };
        let version = fields(
            version,
            "spec.versions[0]",
            &[
                "name",
                "served",
                "storage",
                "schema",
                "subresources",
                "additionalPrinterColumns",
                "selectableFields",
            ],
        )?;
        for state in ["served", "storage"] {
            if !flag(version.get(state)?, &version.at(state))? {
                return Err(malformed(
                    &version.at(state),
                    "must be true for the only version".to_owned(),
                ));
            }
        }
        if version
            .map
            .get("selectableFields")
            .and_then(Value::as_array)
            .is_some_and(|fields| !fields.is_empty())
        {
            return Err(DefinitionError::Unsupported {
                path: version.path,
                what: "selectableFields".to_owned(),
            });
        }
        let subresources = subresources(&version)?;
        let schema = fields(
            version.get("schema")?,
            "spec.versions[0].schema",
            &["openAPIV3Schema"],
        )?;
        let open_api = schema.get("openAPIV3Schema")?.clone();
        let place = Place::root("spec.versions[0].schema.openAPIV3Schema");
        let kind = names.text("kind")?.to_owned();
        let definition = Self {
            group: spec.text("group")?.to_owned(),
            version: version.text("name")?.to_owned(),
            list_kind: names
                .optional_text("listKind")?
                .map_or_else(|| format!("{kind}List"), str::to_owned),
            plural: names.text("plural")?.to_owned(),
            singular: names
                .optional_text("singular")?
                .map_or_else(|| kind.to_lowercase(), str::to_owned),
            kind,
            short_names: names.texts("shortNames")?,
            categories: names.texts("categories")?,
            columns: columns(&version)?,
            has_status: subresources.has_status,
            scale: subresources.scale,
            root: compile::compile(&open_api, &place)?,
            open_api,
            engine: Engine::new(),
        };
        definition.check_defaults(&definition.root, &Path::ROOT)?;
        Ok(definition)
    }

    /// Paths of fields that the schema does not know, `spec.tiers[0].foo`, in the API server's order: metadata first,
    /// the rest sorted as text. What is of another kind has no others than those of metadata; of a version that there is
    /// not nothing is known.
    #[must_use]
    pub fn unknown_fields(&self, object: &Value) -> Vec<String> {
        if !self.is_of_kind(object) {
            return unknown::in_metadata(object);
        }
        let (_, version) = group_and_version(object);
        unknown::unknown_fields((version == self.version).then_some(&self.root), object)
    }

    /// Whether an object says that it is of this kind, in whatever version.
    #[must_use]
    pub fn is_of_kind(&self, object: &Value) -> bool {
        object["kind"] == *self.kind && group_and_version(object).0 == self.group
    }

    /// Drops nulls that may not be there and fills in defaults, as the API server does when it reads an object.
    pub fn default(&self, object: &mut Value) {
        default::apply(&self.root, object);
    }

    /// Everything that is wrong with an object, `metadata` apart from the limits that the schema sets it. With `old` it
    /// is an update: transition rules run, and what is as it was is not refused.
    #[must_use]
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<Cause> {
        self.validate_after(Vec::new(), new, old)
    }

    /// As [`Definition::validate`], for an object whose metadata was looked at before: `earlier` comes first in the answer
    /// and, where it is grave enough, keeps the rules from running.
    #[must_use]
    pub fn validate_after(
        &self,
        earlier: Vec<Cause>,
        new: &Value,
        old: Option<&Value>,
    ) -> Vec<Cause> {
        let wrong_kind = self.check_type_meta(new);
        if !wrong_kind.is_empty() {
            return self.check_lists_and_rules(new, old, wrong_kind);
        }
        let mut causes = earlier;
        let outcome = match old {
            None => check::check(&self.root, &Path::ROOT, new),
            Some(old) => {
                check::check_update(&self.root, &Path::ROOT, Pair::new(new, old, &self.root))
            }
        };
        causes.extend(outcome.faults.into_iter().map(|fault| fault.into_cause("")));
        if let Some(fields) = &self.scale {
            scale::check_spec(fields, new, &mut causes);
            scale::check_status(fields, new, &mut causes);
        }
        self.check_lists_and_rules(new, old, causes)
    }

    /// What is wrong with an object whose status is being replaced; `new` has the old spec and metadata.
    #[must_use]
    pub fn validate_status(&self, earlier: Vec<Cause>, new: &Value, old: &Value) -> Vec<Cause> {
        let wrong_kind = self.check_type_meta(new);
        if !wrong_kind.is_empty() {
            return self.check_lists_and_rules(new, Some(old), wrong_kind);
        }
        let mut causes = earlier;
        if let (Some(status), Some(node)) = (new.get("status"), self.root.properties.get("status"))
        {
            // paths in texts begin at the status here, as there
            let outcome = match old.get("status") {
                Some(old) => check::check_update(node, &Path::ROOT, Pair::new(status, old, node)),
                None => check::check(node, &Path::ROOT, status),
            };
            causes.extend(
                outcome
                    .faults
                    .into_iter()
                    .map(|fault| fault.into_cause("status")),
            );
        }
        if let Some(fields) = &self.scale {
            scale::check_status(fields, new, &mut causes);
        }
        self.check_lists_and_rules(new, Some(old), causes)
    }

    fn check_lists_and_rules(
        &self,
        new: &Value,
        old: Option<&Value>,
        mut causes: Vec<Cause>,
    ) -> Vec<Cause> {
        // an object that had duplicates before may keep them
        let mut old_duplicates = Vec::new();
        if let Some(old) = old {
            check::check_lists(&self.root, &Path::ROOT, old, &mut old_duplicates);
        }
        if old_duplicates.is_empty() {
            check::check_lists(&self.root, &Path::ROOT, new, &mut causes);
        }
        if !self.root.has_rules {
            return causes;
        }
        if causes.iter().any(Cause::blocks_rules) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                          errors to complete validation";
            causes.push(Cause::with_value(
                CauseReason::Invalid,
                NO_FIELD.to_owned(),
                &Value::Null,
                detail,
            ));
            return causes;
        }
        let ratchet = old.map_or_else(Ratchet::default, |old| {
            Ratchet::of(Pair::new(new, old, &self.root))
        });
        rules::check(
            &self.engine,
            &self.root,
            &Path::ROOT,
            (new, old),
            ratchet,
            &mut causes,
        );
        causes
    }

    /// An object of another kind is not looked at below its metadata, but by the rules.
    fn check_type_meta(&self, object: &Value) -> Vec<Cause> {
        let version = match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        };
        let expected = [("kind", self.kind.clone()), ("apiVersion", version)];
        expected
            .into_iter()
            .filter_map(|(field, wanted)| {
                let found = object
                    .get(field)
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                (found != wanted).then(|| {
                    let detail = format!("must be {wanted}");
                    Cause::with_value(
                        CauseReason::Invalid,
                        field.to_owned(),
                        &json!(found),
                        &detail,
                    )
                })
            })
            .collect()
    }

    /// A default is checked as it stands: without unknown fields, and fit for its own schema and rules.
    fn check_defaults(&self, node: &Node, path: &Path<'_>) -> Result<(), DefinitionError> {
        if let Some(value) = &node.default
            && let Some(problem) = self.default_problem(node, path, value)
        {
            return Err(DefinitionError::Default {
                path: path.bracketed(),
                problem,
            });
        }
        for (name, child) in &node.properties {
            self.check_defaults(child, &path.field(name))?;
        }
        if let Some(child) = node.additional.schema() {
            self.check_defaults(child, &path.entry("*"))?;
        }
        node.items
            .as_deref()
            .map_or(Ok(()), |child| self.check_defaults(child, &path.item(0)))
    }

    fn default_problem(&self, node: &Node, path: &Path<'_>, value: &Value) -> Option<String> {
        if let Some(unknown) = unknown::below(node, value).first() {
            return Some(format!("unknown field {unknown:?}"));
        }
        let outcome = check::check(node, path, value);
        let mut causes: Vec<Cause> = outcome
            .faults
            .into_iter()
            .map(|fault| fault.into_cause(""))
            .collect();
        check::check_lists(node, path, value, &mut causes);
        rules::check(
            &self.engine,
            node,
            path,
            (value, None),
            Ratchet::default(),
            &mut causes,
        );
        causes
            .first()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
    }
}

/// The two parts of an object's `apiVersion`.
fn group_and_version(object: &Value) -> (&str, &str) {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    api_version.split_once('/').unwrap_or(("", api_version))
}
