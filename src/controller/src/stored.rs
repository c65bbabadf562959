//! Stored documents: an immutable `apps/v1 ControllerRevision`, either of one object, with its owner, or of all models that
//! have the same, and labels that say whose it is. What they hold, and how that is told from a forged or damaged one, is
//! each kind's.

use api::field_manager;
use api::group::{API_VERSION, Kind};
use api::label;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::Value;

use crate::failure::Failure;

/// A document of a revision of an object.
pub(crate) fn of_revision(
    kind: Kind,
    object: &impl ResourceExt,
    document: String,
    revision: &str,
    held: Value,
) -> ControllerRevision {
    let name = object.name_any();
    let namespace = object.namespace().unwrap_or_default();
    let uid = object.uid().unwrap_or_default();
    let labels = [
        (label::APP_NAME, label::APP),
        (label::APP_INSTANCE, &name),
        (label::PART_OF, label::RELAY),
        (label::MANAGED_BY, field_manager::CONTROLLER),
        (label::KIND, kind.as_str()),
        (label::NAMESPACE, &namespace),
        (label::NAME, &name),
        (label::UID, &uid),
        (label::REVISION, revision),
    ];
    let owner = OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: kind.as_str().to_owned(),
        name: name.clone(),
        uid: uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(false),
    };
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(document),
            namespace: Some(namespace.clone()),
            labels: Some(
                labels
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into(),
            ),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(held)),
        revision: object.meta().generation.unwrap_or(1),
    }
}

/// A document that models share: it belongs to none of them, since what it holds has a digest and not a name.
pub(crate) fn of_models(namespace: &str, document: String, held: Value) -> ControllerRevision {
    let labels = [
        (label::APP_NAME, label::APP),
        (label::PART_OF, label::RELAY),
        (label::MANAGED_BY, field_manager::CONTROLLER),
        (label::KIND, Kind::LayaModel.as_str()),
        (label::NAMESPACE, namespace),
    ];
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(document),
            namespace: Some(namespace.to_owned()),
            labels: Some(
                labels
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into(),
            ),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(held)),
        revision: 1,
    }
}

/// Whether a document says that it is one that models share.
pub(crate) fn is_of_models(document: &ControllerRevision) -> bool {
    let says = |key: &str, value: &str| document.labels().get(key).is_some_and(|it| it == value);
    says(label::MANAGED_BY, field_manager::CONTROLLER)
        && says(label::KIND, Kind::LayaModel.as_str())
}

/// Stores a document, if none of its name is there.
pub(crate) async fn create(
    documents: &Api<ControllerRevision>,
    document: &ControllerRevision,
) -> Result<(), Failure> {
    match documents.create(&PostParams::default(), document).await {
        Ok(_) => Ok(()),
        // Somebody was faster; the next pass looks at what is there.
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => {
            let resource = format!("ControllerRevision {}", document.name_any());
            Err(Failure::of("create", resource, &error))
        }
    }
}

/// Removes a document, if it is still the one that was seen.
pub(crate) async fn delete(
    documents: &Api<ControllerRevision>,
    name: &str,
    uid: &str,
) -> Result<(), Failure> {
    let params = DeleteParams::default().preconditions(Preconditions {
        uid: Some(uid.to_owned()),
        resource_version: None,
    });
    match documents.delete(name, &params).await {
        Ok(_) => Ok(()),
        // It is gone, or another one has its name: nothing of ours is left to remove.
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        Err(error) => Err(Failure::of(
            "delete",
            format!("ControllerRevision {name}"),
            &error,
        )),
    }
}
