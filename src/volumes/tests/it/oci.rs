//! OCI artifacts as source.

use serde_json::json;
use testkit::SiteFault;
use testkit::registry::Registry;
use volumes::{Credential, FetchRequest, Run, Source, SourceFault, TaskError, fetch};

use crate::support::{assert_published, made, names, request};

const REPOSITORY: &str = "models/tiny";

fn source(reference: &str) -> Source {
    Source::Oci {
        reference: reference.to_owned(),
    }
}

fn basic(password: &str) -> Option<Credential> {
    Some(Credential::Basic {
        user: "who".to_owned(),
        password: password.to_owned(),
    })
}

fn fault_of(error: &TaskError) -> SourceFault {
    match error {
        TaskError::Source { fault, .. } => *fault,
        other => panic!("not the source: {other}"),
    }
}

#[test]
fn an_artifact_of_plain_files_is_fetched() {
    let (registry, base) = (Registry::start(), tempfile::tempdir().unwrap());
    let reference = registry.put_artifact(REPOSITORY, &made().contents());
    let wanted = request(base.path(), source(&reference));
    let fetched = fetch(&wanted, &Run::quiet()).unwrap();
    assert_eq!(fetched.digest, made().digest);
    assert_published(base.path(), made());
}

#[test]
fn fault_20_a_registry_that_asks_who_asks_is_told() {
    let (registry, base) = (Registry::start(), tempfile::tempdir().unwrap());
    registry.demand("who", "right");
    let reference = registry.put_artifact(REPOSITORY, &made().contents());
    for credential in [None, basic("wrong")] {
        let wanted = FetchRequest {
            credential,
            ..request(base.path(), source(&reference))
        };
        let error = fetch(&wanted, &Run::quiet()).unwrap_err();
        assert_eq!(fault_of(&error), SourceFault::Unauthorized, "{error}");
        assert_eq!(error.exit().code(), 3);
    }
    let wanted = FetchRequest {
        credential: basic("right"),
        ..request(base.path(), source(&reference))
    };
    fetch(&wanted, &Run::quiet()).unwrap();
    assert_published(base.path(), made());
    let tokens = registry
        .seen()
        .iter()
        .filter(|seen| {
            seen.target().starts_with("/token") && seen.header("authorization").is_some()
        })
        .count();
    assert_eq!(tokens, 2, "one wrong, and one right for all files");
    let asked = registry.seen().iter().any(|seen| {
        seen.target()
            .contains("scope=repository%3Amodels/tiny%3Apull")
    });
    assert!(asked, "the scope of the challenge is asked for");
}

#[test]
fn fault_20_what_the_registry_answers_has_its_word_and_a_cut_is_gone_on_with() {
    for (part, fault, expected) in [
        (
            "/manifests/",
            SiteFault::Status(404, None),
            SourceFault::NotFound,
        ),
        (
            "/manifests/",
            SiteFault::Status(429, Some("3".to_owned())),
            SourceFault::Busy,
        ),
        ("/blobs/", SiteFault::Status(503, None), SourceFault::Busy),
        ("/blobs/", SiteFault::CutAfter(10), SourceFault::Interrupted),
    ] {
        let (registry, base) = (Registry::start(), tempfile::tempdir().unwrap());
        let reference = registry.put_artifact(REPOSITORY, &made().contents());
        registry.fail_next(part, fault.clone());
        let wanted = request(base.path(), source(&reference));
        let error = fetch(&wanted, &Run::quiet()).unwrap_err();
        assert_eq!(fault_of(&error), expected, "{fault:?}");
        fetch(&wanted, &Run::quiet()).unwrap();
        assert_published(base.path(), made());
    }
}

#[test]
fn a_manifest_with_another_digest_is_refused() {
    let (registry, base) = (Registry::start(), tempfile::tempdir().unwrap());
    let reference = registry.put_artifact(REPOSITORY, &made().contents());
    registry.fail("/manifests/", SiteFault::WrongByte(3));
    let error = fetch(&request(base.path(), source(&reference)), &Run::quiet()).unwrap_err();
    assert!(matches!(error, TaskError::DigestMismatch { .. }), "{error}");
}

#[test]
fn fault_40_layers_that_lead_out_come_twice_or_are_archives_are_refused() {
    let (registry, base) = (Registry::start(), tempfile::tempdir().unwrap());
    let layer = |title: &str, kind: &str| {
        json!({
            "mediaType": kind, "digest": registry.put_blob("x"), "size": 1,
            "annotations": {"org.opencontainers.image.title": title},
        })
    };
    let plain = "application/octet-stream";
    let whole: Vec<serde_json::Value> = made()
        .contents()
        .iter()
        .map(|(title, content)| {
            json!({
                "mediaType": plain, "digest": registry.put_blob(content.clone()), "size": content.len(),
                "annotations": {"org.opencontainers.image.title": title},
            })
        })
        .collect();
    for (title, kind, word) in [
        ("../../etc/passwd", plain, "UnsafePath"),
        ("/etc/passwd", plain, "UnsafePath"),
        ("model.safetensors", plain, "UnsafePath"),
        (
            "x",
            "application/vnd.oci.image.layer.v1.tar",
            "BadCheckpoint",
        ),
    ] {
        let mut layers = whole.clone();
        layers.push(layer(title, kind));
        let reference = registry.put_layers(REPOSITORY, &layers);
        let models = base.path().join("models");
        let error = fetch(&request(&models, source(&reference)), &Run::quiet()).unwrap_err();
        assert_eq!(
            error.reason().map(api::reason::Reason::as_str),
            Some(word),
            "{title}: {error}"
        );
        assert_eq!(names(&models), [".lock", ".store.json"], "{title}");
    }
    // More bytes than declared: no more than one of them is read.
    let mut layers = whole;
    layers[1]["size"] = json!(5);
    let reference = registry.put_layers(REPOSITORY, &layers);
    let models = base.path().join("models");
    let error = fetch(&request(&models, source(&reference)), &Run::quiet()).unwrap_err();
    assert!(matches!(error, TaskError::SizeMismatch { .. }), "{error}");
}
