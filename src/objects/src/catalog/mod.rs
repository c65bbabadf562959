//! What is served: the kinds of the CRD documents, and the few of Kubernetes itself that Relay uses (control-plane 9). A
//! [`Resource`] says how one of them is named, checked, merged and shown.

mod builtin;
pub(crate) mod event_view;

use std::sync::Arc;

use serde_json::Value;

use crate::failure::About;
use crate::fields::{Shape, StatusSubresource};
use crate::schema::{Definition, DefinitionError};

/// Whether objects of a kind lie in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Namespaced,
    Cluster,
}

/// What rules of its own a kind has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nature {
    /// Of a CRD document.
    Custom,
    Namespace,
    Event,
    Revision,
}

/// In which of its versions a kind is served here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// As it is stored.
    Stored,
    /// Events of `events.k8s.io` as events of core `v1`, which `kubectl describe` reads.
    CoreEvent,
}

/// One kind under one path.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) definition: Definition,
    pub(crate) shape: Shape,
    pub(crate) scope: Scope,
    pub(crate) nature: Nature,
    pub(crate) view: View,
    /// What the tables call the kind: `routingpolicies.relay.dev`.
    pub(crate) key: Arc<str>,
}

impl Resource {
    /// `relay.dev/v1alpha1`.
    pub(crate) fn api_version(&self) -> String {
        match self.definition.group.as_str() {
            "" => self.definition.version.clone(),
            group => format!("{group}/{}", self.definition.version),
        }
    }

    /// What most refusals are about: the resource.
    pub(crate) fn about<'a>(&'a self, name: &'a str) -> About<'a> {
        About {
            group: &self.definition.group,
            kind: &self.definition.plural,
            name,
        }
    }

    /// What an invalid object is: of a kind.
    pub(crate) fn about_kind<'a>(&'a self, name: &'a str) -> About<'a> {
        About {
            kind: &self.definition.kind,
            // Kubernetes checks events in the version without a group.
            group: match self.nature {
                Nature::Event => "",
                _ => &self.definition.group,
            },
            name,
        }
    }

    /// Whether it counts for the limit on objects; events have their own.
    pub(crate) fn is_event(&self) -> bool {
        self.nature == Nature::Event
    }
}

/// A catalogue that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// A document that does not parse.
    #[error("CRD document {number}: {reason}")]
    Unreadable {
        /// Counted from 1.
        number: usize,
        /// Why.
        reason: String,
    },
    /// A document that is no CRD we can serve.
    #[error("CRD document {number}: {source}")]
    Unusable {
        /// Counted from 1.
        number: usize,
        /// Why.
        #[source]
        source: DefinitionError,
    },
}

/// Everything that is served.
#[derive(Debug)]
pub(crate) struct Catalog {
    resources: Vec<Arc<Resource>>,
}

impl Catalog {
    /// Compiles CRD documents (YAML) and adds the kinds of Kubernetes.
    ///
    /// # Errors
    /// When a document is no CRD that we can serve.
    pub(crate) fn new(documents: &[String]) -> Result<Self, CatalogError> {
        let mut resources = builtin::resources()?;
        for (text, number) in documents.iter().zip(1..) {
            let document =
                api::document::read_yaml(text).map_err(|error| CatalogError::Unreadable {
                    number,
                    reason: error.to_string(),
                })?;
            let made = resource(&document, Nature::Custom, View::Stored);
            resources.push(made.map_err(|source| CatalogError::Unusable { number, source })?);
        }
        let resources = resources.into_iter().map(Arc::new).collect();
        Ok(Self { resources })
    }

    pub(crate) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter()
    }

    /// Groups with their version, `""` first, each once.
    pub(crate) fn groups(&self) -> Vec<(&str, &str)> {
        let mut groups: Vec<(&str, &str)> = Vec::new();
        for resource in &self.resources {
            let group = (
                resource.definition.group.as_str(),
                resource.definition.version.as_str(),
            );
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups
    }

    /// The resources of a group's version.
    pub(crate) fn of_group<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        self.resources.iter().filter(move |resource| {
            resource.definition.group == group && resource.definition.version == version
        })
    }

    /// The resource of a path.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.iter().find(|resource| {
            resource.definition.plural == plural
                && resource.definition.group == group
                && resource.definition.version == version
        })
    }

    /// The resource that stored rows of a kind belong to.
    pub(crate) fn stored(&self, key: &str) -> Option<&Arc<Resource>> {
        self.resources
            .iter()
            .find(|resource| &*resource.key == key && resource.view == View::Stored)
    }

    /// Namespaces.
    pub(crate) fn namespaces(&self) -> &Arc<Resource> {
        self.find("", "v1", "namespaces")
            .expect("the catalogue always has namespaces")
    }
}

/// Compiles one document.
fn resource(document: &Value, nature: Nature, view: View) -> Result<Resource, DefinitionError> {
    let definition = if matches!(nature, Nature::Custom) {
        Definition::compile(document)?
    } else {
        // A schema does not care where its objects lie, and its compiler takes what CRDs of ours may say.
        let mut described = document.clone();
        described["spec"]["scope"] = "Namespaced".into();
        Definition::compile(&described)?
    };
    let key = match (view, definition.group.as_str()) {
        (View::CoreEvent, _) => "events.events.k8s.io".to_owned(),
        (View::Stored, "") => definition.plural.clone(),
        (View::Stored, group) => format!("{}.{group}", definition.plural),
    };
    let scope = match nature {
        Nature::Namespace => Scope::Cluster,
        Nature::Custom | Nature::Event | Nature::Revision => Scope::Namespaced,
    };
    let status = if definition.has_status {
        StatusSubresource::Present
    } else {
        StatusSubresource::Absent
    };
    let shape = match nature {
        Nature::Custom => Shape::of_schema(&definition.open_api),
        Nature::Revision => Shape::untyped().with_whole_field("data"),
        Nature::Namespace => Shape::untyped(),
        Nature::Event => ["regarding", "involvedObject", "related"]
            .into_iter()
            .fold(Shape::untyped(), Shape::with_whole_field),
    };
    Ok(Resource {
        shape: shape.with_status(status),
        scope,
        nature,
        view,
        key: key.into(),
        definition,
    })
}
