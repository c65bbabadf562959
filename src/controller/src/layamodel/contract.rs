//! The wording of a version, stored as an immutable document by its digest (control-plane 2). Several models may share
//! one, so it belongs to none of them.

use decision::contract::{Contract, Digest};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;

use crate::{stored, wording};

/// A wording and its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wording {
    /// Contract digest, `sha256:<64 hex>`.
    pub digest: String,
    /// `decisions.json` of the checkpoint, as text: the digest depends on the order of its keys, which a JSON value loses.
    pub text: String,
}

impl Wording {
    /// Reads a `decisions.json`.
    ///
    /// # Errors
    /// What is wrong with it, with its place.
    pub fn read(text: &str) -> Result<Self, String> {
        let contract = Contract::import(text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(Self {
            digest: contract.digest().to_string(),
            text: text.to_owned(),
        })
    }

    /// Name of its document.
    #[must_use]
    pub fn document_name(&self) -> String {
        contract_document_name(&self.digest).unwrap_or_default()
    }

    /// Its document for a namespace.
    #[must_use]
    pub fn document(&self, namespace: &str) -> ControllerRevision {
        let RawExtension(held) = wording::document_data(&self.text);
        stored::of_models(namespace, self.document_name(), held)
    }

    /// Whether a document holds this wording.
    #[must_use]
    pub fn is_in(&self, document: &ControllerRevision) -> bool {
        let held = document.data.as_ref().map(|RawExtension(held)| held);
        held.is_some_and(|held| wording::document_contract(held, &self.digest).is_some())
    }
}

/// Name of the document that holds the wording of a contract digest; `None` when it is no digest.
#[must_use]
pub fn contract_document_name(digest: &str) -> Option<String> {
    let digest: Digest = digest.parse().ok()?;
    Some(format!("contract-{}", digest.short()))
}

#[cfg(test)]
mod tests {
    use decision::{RELAY_DECISIONS_JSON, relay_contract};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wording_is_known_by_its_digest() {
        let wording = Wording::read(RELAY_DECISIONS_JSON).unwrap();
        assert_eq!(wording.digest, relay_contract().digest().to_string());
        let name = format!("contract-{}", relay_contract().digest().short());
        assert_eq!(wording.document_name(), name);
        let document = wording.document("space");
        assert!(wording.is_in(&document));
        let other = ControllerRevision {
            data: Some(RawExtension(json!({"a": 1}))),
            ..document
        };
        assert!(!wording.is_in(&other));
        assert!(Wording::read("{}").is_err());
        assert_eq!(contract_document_name("x"), None);
    }
}
