//! Answers that are the same for as long as the program runs: versions, discovery, schemas. Each is made when it is first
//! asked for, and kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::Value;

use super::{discovery, open_api};
use crate::catalog::Catalog;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Document {
    /// `/version`.
    Version,
    /// `/api`.
    Versions,
    /// `/apis`.
    Groups,
    /// `/api` with everything below it.
    AllVersions,
    /// `/apis` with everything below it.
    AllGroups,
    /// `/apis/<group>`.
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`.
    Resources { group: String, version: String },
    /// `/openapi/v3`.
    OpenApiIndex,
    /// `/openapi/v3/…` of a group's version.
    OpenApi { group: String, version: String },
}

impl Document {
    /// The one with everything below, for clients that take it.
    pub(super) fn aggregated(self) -> Self {
        match self {
            Self::Versions => Self::AllVersions,
            Self::Groups => Self::AllGroups,
            other => other,
        }
    }

    fn make(&self, catalog: &Catalog) -> Option<Value> {
        Some(match self {
            Self::Version => discovery::version(),
            Self::Versions => discovery::versions(),
            Self::Groups => discovery::groups(catalog),
            Self::AllVersions => discovery::aggregated(catalog, discovery::Root::Api),
            Self::AllGroups => discovery::aggregated(catalog, discovery::Root::Apis),
            Self::Group(group) => discovery::group(catalog, group)?,
            Self::Resources { group, version } => discovery::resources(catalog, group, version),
            Self::OpenApiIndex => open_api::index(catalog),
            Self::OpenApi { group, version } => open_api::document(catalog, group, version),
        })
    }
}

/// Those that were made. Paths name known groups alone, so they are few.
#[derive(Default)]
pub(crate) struct Documents(Mutex<HashMap<Document, Bytes>>);

impl Documents {
    /// The text of one; nothing for a group that there is not.
    pub(super) fn text(&self, document: Document, catalog: &Arc<Catalog>) -> Option<Bytes> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = made.get(&document) {
            return Some(text.clone());
        }
        let text = Bytes::from(document.make(catalog)?.to_string());
        made.insert(document, text.clone());
        Some(text)
    }
}
