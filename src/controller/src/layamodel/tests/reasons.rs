//! Every reason that the page gives a LayaModel is said by some life of one.

use api::label;
use testkit::backend::{Outage, Script, refused};

use super::*;

/// Condition and reason, as in control-plane 1.3 and 2.
const PAGE: &[(&str, &[&str])] = &[
    (
        "Fetched",
        &[
            "Observed",
            "NotStarted",
            "Fetching",
            "SourceUnauthorized",
            "SourceNotFound",
            "SourceBusy",
            "SourceInterrupted",
            "NoSpace",
            "ReadOnlyVolume",
            "FetchDeadlineExceeded",
            "RunNotFinished",
            "VolumePending",
        ],
    ),
    (
        "Verified",
        &[
            "Observed",
            "ContractUnverified",
            "DigestMismatch",
            "SizeMismatch",
            "ContractMismatch",
            "UnsafePath",
            "BadCheckpoint",
            "ModelDamaged",
            "VolumeLost",
        ],
    ),
    ("InUse", &["Unused", "ServedBy"]),
    (
        "Stalled",
        &[
            "DigestMismatch",
            "ContractMismatch",
            "UnsafePath",
            "BadCheckpoint",
            "SourceUnauthorized",
            "SourceNotFound",
            "StillInUse",
            "InvalidSpec",
            "NameTaken",
        ],
    ),
    (
        "BackendReachable",
        &[
            "Observed",
            "EngineUnavailable",
            "EngineForbidden",
            "ObservationTimedOut",
        ],
    ),
    ("FieldsSupported", &["AllApplied", "FieldsIgnored"]),
    (
        "Ready",
        &[
            "Reconciled",
            "Suspended",
            "Deleting",
            "InvalidSpec",
            "VolumePending",
        ],
    ),
    ("Reconciling", &["Progressing"]),
];

#[test]
fn every_reason_of_the_page_is_said() {
    let mut said = BTreeSet::new();
    let mut take = |life: Life| said.extend(life.said);
    for (word, code) in [
        ("SourceUnauthorized", 6),
        ("SourceNotFound", 6),
        ("SourceBusy", 6),
        ("SourceInterrupted", 6),
        ("NoSpace", 5),
        ("ReadOnlyVolume", 5),
        ("DigestMismatch", 3),
        ("SizeMismatch", 3),
        ("ContractMismatch", 3),
        ("UnsafePath", 3),
        ("BadCheckpoint", 3),
    ] {
        let mut life = Life::new(&http());
        life.engine
            .script(move |_, _| refused(word, "because", code));
        for _ in 0..6 {
            life.go_on();
        }
        take(life);
    }
    let mut slow = Life::new(&http());
    slow.engine.script(|_, _| Script::Runs);
    slow.settle();
    slow.tick(3_601);
    slow.settle();
    slow.unbound_long = true;
    slow.engine.script(|_, _| Script::Obeys);
    slow.edit(|spec| spec.fetch.deadline_seconds = 60);
    slow.settle();
    take(slow);
    let mut unbound = Life::on(FakeBackend::kubernetes(), &http());
    unbound.engine.script(|_, _| Script::Runs);
    unbound.unbound_long = true;
    unbound.settle();
    take(unbound);
    let mut run = Life::new(&json!({"source": {"trainingRun": {"name": "r", "uid": "u"}}}));
    run.settle();
    take(run);
    let mut life = Life::new(&http());
    life.edit(|spec| spec.suspend = true);
    life.settle();
    life.edit(|spec| spec.suspend = false);
    life.settle();
    for outage in [Outage::Unavailable, Outage::Forbidden, Outage::Hangs] {
        life.engine.outage(Some(outage));
        life.settle();
    }
    life.engine.outage(None);
    life.engine.lose_volumes();
    life.settle();
    life.engine.script(|_, _| Script::Runs);
    life.damaged_at = Some(life.now.checked_add(SignedDuration::from_secs(9)).unwrap());
    life.settle();
    life.used_by(Some("main"));
    life.annotate(label::VERIFY, "n");
    life.settle();
    life.delete();
    life.settle();
    take(life);
    let mut storage = http();
    storage["storage"] = json!({"className": "fast"});
    storage["contract"] = json!(format!("sha256:{}", sha(3)));
    let mut ignored = Life::new(&storage);
    ignored.settle();
    take(ignored);
    let mut taken = Life::new(&http());
    taken.engine.strangers(vec![backend::Stranger {
        name: "n".to_owned(),
        reason: api::reason::Reason::NameTaken,
        holder: "h".to_owned(),
    }]);
    taken.settle();
    take(taken);
    let mut spec = http();
    spec["manifestDigest"] = json!(format!("sha256:{}", sha(5)));
    let mut invalid = Life::new(&spec);
    invalid.settle();
    take(invalid);
    let missing: Vec<_> = PAGE
        .iter()
        .flat_map(|(kind, reasons)| {
            reasons
                .iter()
                .map(move |reason| ((*kind).to_owned(), (*reason).to_owned()))
        })
        .filter(|pair| !said.contains(pair))
        .collect();
    assert!(missing.is_empty(), "never said: {missing:?}");
}
