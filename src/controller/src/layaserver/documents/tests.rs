use decision::{Contract, RELAY_DECISIONS_JSON, relay_contract};
use serde_json::json;

use super::*;

fn server(uid: &str) -> LayaServer {
    let object = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer",
        "metadata": {"name": "main", "namespace": "space", "uid": uid, "generation": 3},
        "spec": {"modelRef": {"name": "v1"}},
    });
    serde_json::from_value(object).unwrap()
}

fn inputs(owner: &str, digit: &str) -> RevisionInputs {
    let inputs = json!({
        "ownerUid": owner, "digest": format!("sha256:{}", digit.repeat(64)), "image": "laya@sha256:1",
        "serverApi": "Relay", "device": "Auto", "devicePolicy": "Require", "serving": {}, "renderVersion": 1,
    });
    serde_json::from_value(inputs).unwrap()
}

/// As a watch brings it.
fn stored(document: &ControllerRevision, uid: &str) -> StoredDocument {
    let mut tree = serde_json::to_value(document).unwrap();
    tree["metadata"]["uid"] = json!(uid);
    let mut stored: StoredDocument = serde_json::from_value(tree).unwrap();
    stored.slim();
    stored
}

fn applied(document: StoredDocument) -> Change<StoredDocument> {
    Change::Applied(Arc::new(document))
}

#[test]
fn a_revision_is_found_by_its_server_and_goes_with_its_document() {
    let documents = ServerDocuments::default();
    let owner = server("u1");
    let inputs = inputs("u1", "1");
    let revision = inputs.revision();
    let stored = stored(&document(&owner, &inputs), "d1");
    assert_eq!(
        documents.changed(&applied(stored.clone())),
        Concerns::Server(Key::of(&owner))
    );
    let found = documents.of(&Key::of(&owner), "u1");
    assert_eq!(found.inputs, BTreeMap::from([(revision.clone(), inputs)]));
    assert_eq!(found.uids, BTreeMap::from([(revision, "d1".to_owned())]));
    assert_eq!(
        documents.of(&Key::of(&owner), "u2"),
        Revisions::default(),
        "another server of the name"
    );
    documents.changed(&Change::Deleted(Arc::new(stored)));
    assert_eq!(documents.of(&Key::of(&owner), "u1"), Revisions::default());
}

#[test]
fn fault_40_a_document_that_holds_something_else_is_not_used() {
    let documents = ServerDocuments::default();
    let owner = server("u1");
    let mut forged = document(&owner, &inputs("u1", "1"));
    let other = serde_json::to_value(inputs("u1", "2")).unwrap();
    forged.data = Some(RawExtension(other));
    assert_eq!(
        documents.changed(&applied(stored(&forged, "d1"))),
        Concerns::Nobody
    );
    assert_eq!(documents.put(&owner, &forged), Holds::SomethingElse);
    forged.data = Some(RawExtension(json!({"ownerUid": 1})));
    assert_eq!(documents.put(&owner, &forged), Holds::SomethingElse);
    forged.data = None;
    assert_eq!(documents.put(&owner, &forged), Holds::SomethingElse);
    let right = document(&owner, &inputs("u1", "1"));
    assert_eq!(
        documents.put(&server("u2"), &right),
        Holds::SomethingElse,
        "of another server"
    );
    assert_eq!(documents.put(&owner, &right), Holds::ItsRevision);
}

#[test]
fn wordings_are_known_by_their_digest_and_ours_always() {
    let documents = ServerDocuments::default();
    let ours = relay_contract().digest().to_string();
    assert!(documents.questions(&ours).is_some());
    let text =
        RELAY_DECISIONS_JSON.replacen("\"instructions\": \"", "\"instructions\": \"Now: ", 1);
    let digest = Contract::import(text.as_bytes())
        .unwrap()
        .digest()
        .to_string();
    assert!(documents.questions(&digest).is_none());
    let wording = ControllerRevision {
        metadata: ObjectMeta {
            name: Some("contract-1".to_owned()),
            namespace: Some("space".to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(json!(text))),
        revision: 1,
    };
    assert_eq!(
        documents.changed(&applied(stored(&wording, "w1"))),
        Concerns::Contract(digest.clone())
    );
    assert_eq!(documents.questions(&digest).unwrap().digest(), digest);
}

#[test]
fn recorded_probes_are_known_by_their_checkpoint_where_they_were_stored() {
    let documents = ServerDocuments::default();
    let checkpoint = format!("sha256:{}", "5".repeat(64));
    let probes =
        json!([{"state": "x", "answers": {"risk": {"label": "true", "probability": 0.5}}}]);
    let recorded = Recorded::read(&checkpoint, &probes).unwrap();
    let document = recorded.document("space");
    let known = stored(&document, "p1");
    assert_eq!(
        documents.changed(&applied(known.clone())),
        Concerns::Checkpoint(checkpoint.clone())
    );
    assert_eq!(documents.recorded("space", &checkpoint), recorded.probes);
    assert_eq!(documents.recorded("elsewhere", &checkpoint).len(), 0);
    let other = format!("sha256:{}", "6".repeat(64));
    assert_eq!(documents.recorded("space", &other).len(), 0);
    documents.changed(&Change::Deleted(Arc::new(known)));
    assert_eq!(documents.recorded("space", &checkpoint).len(), 0);

    let mut forged = document;
    forged.metadata.name = Some("probes-666666666666".to_owned());
    assert_eq!(
        documents.changed(&applied(stored(&forged, "p2"))),
        Concerns::Nobody
    );
    assert_eq!(documents.recorded("space", &checkpoint).len(), 0);
}

#[test]
fn a_log_is_kept_beside_the_revision_and_is_none() {
    let documents = ServerDocuments::default();
    let owner = server("u1");
    let inputs = inputs("u1", "1");
    let revision = inputs.revision();
    let log = log_document(&owner, &revision, "the end".to_owned());
    assert_eq!(
        log.metadata.name.as_deref(),
        Some(&*format!("ls-main-{revision}-log"))
    );
    assert_eq!(documents.put(&owner, &log), Holds::ItsLog);
    let watched = stored(&log, "l1");
    let documents = ServerDocuments::default();
    documents.changed(&applied(stored(&document(&owner, &inputs), "d1")));
    assert_eq!(
        documents.changed(&applied(watched.clone())),
        Concerns::Server(Key::of(&owner))
    );
    let found = documents.of(&Key::of(&owner), "u1");
    assert_eq!(
        found.logs,
        BTreeMap::from([(revision.clone(), "l1".to_owned())])
    );
    assert_eq!(
        found.uids,
        BTreeMap::from([(revision.clone(), "d1".to_owned())])
    );
    documents.removed(&Key::of(&owner), "l1");
    let found = documents.of(&Key::of(&owner), "u1");
    assert_eq!(found.logs, BTreeMap::new());
    assert_eq!(found.inputs.len(), 1);
    // One whose name says something else is nobody's.
    let mut forged = log_document(&owner, &revision, "the end".to_owned());
    forged.metadata.name = Some("ls-main-0000000000-log".to_owned());
    assert_eq!(documents.put(&owner, &forged), Holds::SomethingElse);
}

#[test]
fn a_name_that_is_taken_is_tried_again_after_a_while() {
    let documents = ServerDocuments::default();
    let at = Duration::from_secs;
    documents.found_taken("u1", "r1", at(100));
    let taken = |seconds| documents.taken("u1", at(seconds)).len();
    assert_eq!((taken(100), taken(999), taken(1000)), (1, 1, 0));
    assert!(documents.taken("u2", at(100)).is_empty());
    documents.forget("u1");
    assert_eq!(taken(100), 0);
}
