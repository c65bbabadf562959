//! Every row of the table of states (control-plane 2).

use api::label;
use backend::{Action as EngineAction, ImageState, Stranger, TaskKey, VolumeRole, Writes};
use decision::{RELAY_DECISIONS_JSON, relay_contract};
use testkit::backend::{Outage, Script, argument, arguments, fetched, refused};

use super::*;

const FALSE: ConditionStatus = ConditionStatus::False;
const TRUE: ConditionStatus = ConditionStatus::True;

fn key(task: Task, attempt: u32) -> TaskKey {
    TaskKey { task, attempt }
}

fn digest(life: &Life) -> String {
    wanted(&life.model.spec, life.engine.capabilities())
        .unwrap()
        .digest
        .unwrap()
}

#[test]
fn a_good_source_ends_published_and_rests() {
    let mut life = Life::new(&http());
    let requeue = life.settle();
    assert_eq!(life.phase(), ModelPhase::Published);
    assert!(life.is_published());
    assert_eq!(requeue, Requeue::Steady);
    let digest = digest(&life);
    let status = life.status().clone();
    assert_eq!(status.digest.as_deref(), Some(digest.as_str()));
    assert_eq!(status.short_digest.as_deref(), Some(&digest[7..19]));
    assert_eq!(status.file_count, Some(6));
    let location = status.location.unwrap();
    assert_eq!(location.path, Some(format!("sha256-{}", &digest[7..])));
    assert_eq!(location.backend.as_deref(), Some("docker"));
    assert!(location.volume_uid.is_some() && status.verified_at.is_some());
    assert_eq!(life.told, ["Fetched", "Published"]);
    assert_eq!(
        life.done,
        ["AddFinalizer", "EnsureVolume", "RunTask", "DeleteTask"]
    );
    assert_eq!(life.says("Verified"), Some((TRUE, "ContractUnverified")));
    assert_eq!(life.says("Fetched"), Some((TRUE, "Observed")));
    assert_eq!(life.says("InUse"), Some((FALSE, "Unused")));
    assert_eq!(life.says("FieldsSupported"), Some((TRUE, "AllApplied")));
    assert!(life.says("Reconciling").is_none() && life.says("Stalled").is_none());
    life.used_by(Some("main"));
    life.settle();
    assert_eq!(life.says("InUse"), Some((TRUE, "ServedBy")));
    assert_eq!(life.message("InUse"), "LayaServer main");
    assert_eq!(life.status().used_by, life.uses);
}

#[test]
fn the_fetch_is_called_as_the_page_says() {
    let mut spec = http();
    spec["source"]["http"]["authSecretRef"] = json!({"name": "token", "key": "bearer"});
    spec["contract"] = json!(format!("sha256:{}", sha(3)));
    let mut life = Life::new(&spec);
    life.settle();
    let task = life.tasks().remove(0);
    assert_eq!(task.arguments.0[..3], ["fetch", "--models", "/data/models"]);
    for (name, value) in [
        ("--manifest", "/run/relay/manifest.json".to_owned()),
        ("--digest", digest(&life)),
        ("--contract", format!("sha256:{}", sha(3))),
        ("--deadline-seconds", "3600".to_owned()),
        ("--min-bytes-per-second", "1024".to_owned()),
        ("--auth-file", "/run/secrets/relay/auth".to_owned()),
    ] {
        assert_eq!(argument(&task, name), Some(value), "{name}");
    }
    assert_eq!(task.volumes, [(VolumeRole::Models, Writes::Yes)]);
    assert_eq!(task.network, backend::Network::Egress);
    assert_eq!(task.secrets[0].1, "auth");
    let manifest: Value = serde_json::from_slice(&task.files[0].content).unwrap();
    assert_eq!(manifest["files"][0]["sha256"], json!(sha(1)));
    // An address may carry credentials: it goes by the file, never among the arguments.
    assert_eq!(manifest["baseUrl"], json!("https://example.org/v1/"));
    assert_eq!(argument(&task, "--base-url"), None);
    assert_eq!(task.files[0].name, "manifest.json");
    let mut life = Life::new(&oci());
    life.settle();
    let task = life.tasks().remove(0);
    assert!(argument(&task, "--oci").unwrap().contains("@sha256:") && task.files.is_empty());
}

#[test]
fn a_task_that_runs_tells_its_progress_and_is_stopped_when_all_took_too_long() {
    let mut life = Life::new(&http());
    life.engine.script(|_, _| Script::Runs);
    assert_eq!(life.settle(), Requeue::After(Duration::from_secs(15)));
    assert_eq!(life.phase(), ModelPhase::Fetching);
    assert_eq!(life.says("Fetched"), Some((FALSE, "Fetching")));
    assert_eq!(life.says("Reconciling").unwrap().0, TRUE);
    life.engine.progress("uid-1", &key(Task::Fetch, 1), 70, 740);
    life.settle();
    let fetch = life.status().fetch.clone().unwrap();
    assert_eq!(
        (fetch.attempt, fetch.bytes_done, fetch.bytes_total),
        (Some(1), Some(70), Some(740))
    );
    life.tick(3_601);
    // The wall clock was set forward: this process knows that it began a minute ago.
    life.fetch_age = Some(Duration::from_secs(60));
    life.settle();
    assert_eq!(life.phase(), ModelPhase::Fetching);
    life.fetch_age = None;
    life.settle();
    life.go_on();
    assert!(life.done.contains(&"StopTask"));
    assert_eq!(life.phase(), ModelPhase::Failed);
    assert_eq!(life.says("Fetched"), Some((FALSE, "FetchDeadlineExceeded")));
    let requests = life.tasks().len();
    life.tick(86_400);
    life.settle();
    assert_eq!(life.tasks().len(), requests, "it is not tried again");
    life.engine.script(|_, _| Script::Obeys);
    life.edit(|spec| spec.fetch.deadline_seconds = 7_200);
    life.settle();
    assert!(life.is_published(), "a change of the spec begins anew");
}

#[test]
fn what_may_pass_is_tried_again_later_each_time_up_to_the_attempts() {
    let mut life = Life::new(&http());
    life.engine.script(|_, _| refused("SourceBusy", "503", 6));
    let mut waits = Vec::new();
    for attempt in 1..=4 {
        life.settle();
        assert_eq!(
            life.says("Fetched"),
            Some((FALSE, "SourceBusy")),
            "{attempt}"
        );
        assert_eq!(life.phase(), ModelPhase::Fetching);
        let fetch = life.status().fetch.clone().unwrap();
        assert_eq!(fetch.attempt, Some(attempt));
        let next = fetch.next_attempt_at.unwrap();
        let wait = next.duration_since(fetch.last_error.unwrap().at.unwrap());
        waits.push(wait.as_secs());
        life.tick(wait.as_secs() + 1);
    }
    for (wait, plain) in waits.iter().zip([10, 20, 40, 80]) {
        assert!(
            (plain * 8 / 10..=plain * 12 / 10).contains(wait),
            "{waits:?}"
        );
    }
    life.settle();
    assert_eq!(life.phase(), ModelPhase::Failed);
    assert_eq!(life.tasks().len(), 5);
    life.tick(86_400);
    life.settle();
    assert_eq!(life.tasks().len(), 5, "the attempts are used up");
    life.engine.script(|_, _| Script::Obeys);
    life.annotate(label::VERIFY, "again");
    life.settle();
    assert!(life.is_published(), "a nonce begins anew");
    assert_eq!(life.status().verify_nonce.as_deref(), Some("again"));
}

#[test]
fn one_that_was_killed_goes_on_and_is_not_counted() {
    let mut life = Life::new(&http());
    life.edit(|spec| spec.fetch.max_attempts = 1);
    for _ in 0..3 {
        life.engine.script(|_, _| Script::Ends {
            code: 137,
            result: None,
        });
        life.go_on();
        assert_eq!(life.phase(), ModelPhase::Fetching);
        assert_eq!(life.status().fetch.as_ref().unwrap().attempt, Some(0));
    }
    life.engine.script(|_, _| Script::Obeys);
    life.tick(30);
    life.settle();
    assert!(life.is_published());
}

#[test]
fn one_that_finds_the_volume_taken_has_its_whole_deadline_afterwards() {
    let mut life = Life::new(&http());
    life.engine.script(|_, _| Script::Runs);
    for _ in 0..8 {
        life.settle();
        life.tick(600);
        life.engine
            .end_task("uid-1", &key(Task::Fetch, 1), 75, None);
        life.settle();
        assert_eq!(life.phase(), ModelPhase::Fetching, "{:#?}", life.status());
        assert_eq!(life.status().fetch.as_ref().unwrap().started_at, None);
        life.tick(30);
    }
    life.engine.script(|_, _| Script::Obeys);
    life.settle();
    assert!(life.is_published());
}

#[test]
fn a_source_is_left_alone_for_as_long_as_it_asks() {
    for (asks, waits) in [(1, 8), (120, 120), (86_400, 900)] {
        let mut life = Life::new(&http());
        let result = json!({"ok": false, "reason": "SourceBusy", "message": "503", "code": 6, "retryAfterSeconds": asks});
        life.engine.script(move |_, _| Script::Ends {
            code: 6,
            result: Some(result.clone()),
        });
        life.settle();
        let fetch = life.status().fetch.clone().unwrap();
        let next = fetch.next_attempt_at.unwrap();
        let wait = next.duration_since(fetch.last_error.unwrap().at.unwrap());
        assert!((waits..=waits.max(12)).contains(&wait.as_secs()), "{asks}");
    }
}

#[test]
fn fault_21_a_full_volume_is_tried_every_five_minutes_for_ever() {
    let mut life = Life::new(&http());
    life.engine
        .script(|_, _| refused("NoSpace", "needs 776 MiB, 12 MiB are free", 5));
    for _ in 0..30 {
        life.settle();
        assert_eq!(life.phase(), ModelPhase::Failed);
        assert_eq!(life.says("Fetched"), Some((FALSE, "NoSpace")));
        let said = life.message("Ready");
        for part in ["needs 776 MiB", "12 MiB are free", "relayctl model rm NAME"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        life.tick(299);
        let before = life.tasks().len();
        life.settle();
        assert_eq!(life.tasks().len(), before);
        life.tick(2);
        life.settle();
        assert_eq!(life.tasks().len(), before + 1);
    }
    life.engine.script(|_, _| Script::Obeys);
    life.tick(301);
    life.settle();
    assert!(life.is_published());
}

#[test]
fn fault_21_what_may_go_for_space_is_told_to_the_fetch() {
    let life = Life::new(&http());
    let mut checked = life.checked();
    checked.prunable = vec!["sha256:a".to_owned(), "sha256:b".to_owned()];
    let wanted = checked.wanted.clone().unwrap();
    let spec = task::fetch(&life.model, &checked, &wanted, 1, false, &life.clock());
    assert_eq!(arguments(&spec, "--prunable"), ["sha256:a", "sha256:b"]);
}

#[test]
fn fault_22_bytes_that_are_wrong_twice_need_somebody() {
    let mut life = Life::new(&http());
    life.engine
        .script(|_, _| refused("DigestMismatch", "model.safetensors: wrong bytes", 3));
    life.settle();
    assert_eq!(life.says("Verified"), Some((FALSE, "DigestMismatch")));
    assert!(life.says("Stalled").is_none(), "once may be an accident");
    life.go_on();
    assert_eq!(life.says("Stalled"), Some((TRUE, "DigestMismatch")));
    assert_eq!((life.phase(), life.tasks().len()), (ModelPhase::Failed, 2));
    life.tick(86_400);
    life.settle();
    assert_eq!(life.tasks().len(), 2);
}

#[test]
fn credentials_are_tried_every_ten_minutes_and_missing_files_as_often_as_allowed() {
    let mut life = Life::new(&http());
    life.engine
        .script(|_, _| refused("SourceUnauthorized", "401", 6));
    life.settle();
    assert_eq!(life.says("Stalled"), Some((TRUE, "SourceUnauthorized")));
    life.tick(599);
    life.settle();
    assert_eq!(life.tasks().len(), 1);
    life.tick(2);
    life.settle();
    assert_eq!(life.tasks().len(), 2);
    life.engine
        .script(|_, _| refused("SourceNotFound", "404", 6));
    life.tick(601);
    for _ in 0..4 {
        life.go_on();
        assert_eq!(life.says("Fetched"), Some((FALSE, "SourceNotFound")));
    }
    life.go_on();
    assert_eq!(life.says("Stalled"), Some((TRUE, "SourceNotFound")));
}

#[test]
fn a_suspended_model_is_not_fetched_and_stays_ready_once_it_is_here() {
    let mut spec = http();
    spec["suspend"] = json!(true);
    let mut life = Life::new(&spec);
    life.settle();
    assert_eq!(
        (life.phase(), life.says("Ready")),
        (ModelPhase::Pending, Some((FALSE, "Suspended")))
    );
    assert_eq!(life.says("Fetched"), Some((FALSE, "NotStarted")));
    assert!(life.tasks().is_empty());
    life.edit(|spec| spec.suspend = false);
    life.settle();
    life.edit(|spec| spec.suspend = true);
    life.settle();
    assert!(life.is_published());
}

#[test]
fn a_run_without_a_result_is_waited_for() {
    let mut life = Life::new(&json!({"source": {"trainingRun": {"name": "week-48", "uid": "u"}}}));
    assert_eq!(life.settle(), Requeue::Waiting);
    assert_eq!(life.says("Fetched"), Some((FALSE, "RunNotFinished")));
    assert!(life.message("Ready").contains("week-48") && life.tasks().is_empty());
}

#[test]
fn a_nonce_asks_for_one_verification_and_the_model_stays_ready() {
    let mut life = Life::new(&http());
    life.settle();
    life.tick(60);
    life.engine.script(|_, _| Script::Runs);
    life.annotate(label::VERIFY, "n1");
    life.settle();
    assert_eq!(life.phase(), ModelPhase::Verifying);
    assert!(life.is_published());
    let task = life.tasks().pop().unwrap();
    assert_eq!(task.arguments.0[0], "verify");
    assert_eq!(task.volumes, [(VolumeRole::Models, Writes::No)]);
    // Another nonce comes meanwhile: the end of the first says nothing about it.
    life.annotate(label::VERIFY, "n2");
    life.engine.script(|_, _| Script::Obeys);
    life.tick(60);
    life.settle();
    assert_eq!(life.phase(), ModelPhase::Published);
    assert_eq!(life.status().verify_nonce.as_deref(), Some("n2"));
    assert_eq!(life.status().verified_at, Some(life.now));
    let count = life.tasks().len();
    life.tick(3_600);
    life.settle();
    assert_eq!(life.tasks().len(), count, "once");
}

#[test]
fn a_verification_that_could_not_look_is_made_again() {
    let mut life = Life::new(&http());
    life.settle();
    life.engine.script(|_, _| Script::Ends {
        code: 137,
        result: None,
    });
    life.annotate(label::VERIFY, "n1");
    life.settle();
    assert!(life.is_published(), "nobody found anything wrong");
    assert_eq!(life.phase(), ModelPhase::Verifying);
    life.engine.script(|_, _| Script::Obeys);
    life.tick(61);
    life.settle();
    assert_eq!(life.status().verify_nonce.as_deref(), Some("n1"));
}

#[test]
fn what_is_found_wrong_is_repaired() {
    let mut life = Life::new(&http());
    life.settle();
    let digest = digest(&life);
    life.engine.set_published(&digest, false);
    life.annotate(label::VERIFY, "n1");
    life.settle();
    assert!(life.is_published());
    assert_eq!(
        life.told,
        ["Fetched", "Published", "ModelDamaged", "Repaired"]
    );
    let repair = life.tasks().pop().unwrap();
    assert!(repair.arguments.0.contains(&"--repair".to_owned()));
    assert!(
        life.said
            .contains(&("Ready".to_owned(), "ModelDamaged".to_owned()))
    );
}

#[test]
fn fault_22_a_server_that_finds_damage_asks_for_one_repair() {
    let mut life = Life::new(&http());
    life.settle();
    life.tick(60);
    life.damaged_at = Some(life.now);
    life.tick(5);
    life.engine.script(|_, _| Script::Runs);
    life.settle();
    assert_eq!(
        (life.phase(), life.says("Ready")),
        (ModelPhase::Repairing, Some((FALSE, "ModelDamaged")))
    );
    let digest = digest(&life);
    life.engine
        .end_task("uid-1", &key(Task::Fetch, 1), 0, Some(fetched(&digest)));
    life.settle();
    assert!(life.is_published());
    let count = life.tasks().len();
    life.tick(600);
    life.settle();
    assert_eq!(
        life.tasks().len(),
        count,
        "the damage is older than the repair"
    );
    life.damaged_at = Some(life.now);
    life.tick(5);
    life.engine.script(|_, _| Script::Obeys);
    life.settle();
    assert_eq!(life.tasks().len(), count + 1);
}

#[test]
fn fault_22_a_repair_answers_the_damage_though_the_clock_of_the_engine_is_behind() {
    let mut life = Life::new(&http());
    life.settle();
    life.tick(60);
    let behind = life.now.checked_sub(SignedDuration::from_secs(50)).unwrap();
    life.engine.time(move || behind);
    life.damaged_at = Some(life.now);
    life.settle();
    assert!(life.is_published());
    assert_eq!(life.status().verified_at, life.damaged_at);
    assert_eq!(life.tasks().len(), 2, "one repair");
}

#[test]
fn a_volume_that_is_not_ours_is_hashed_in_place_and_never_written() {
    let mut life = Life::new(&volume());
    life.settle();
    assert_eq!(
        (life.phase(), life.says("Fetched")),
        (ModelPhase::Pending, Some((FALSE, "NotStarted")))
    );
    let role = VolumeRole::Foreign {
        name: "shared".to_owned(),
    };
    life.engine.put_volume(role.clone(), "shared");
    life.settle();
    assert!(life.is_published());
    assert_eq!(
        life.status().location.as_ref().unwrap().path.as_deref(),
        Some("laya/v1")
    );
    let task = life.tasks().remove(0);
    assert_eq!(
        (task.arguments.0[0].as_str(), &task.volumes[..]),
        ("verify", &[(role, Writes::No)][..])
    );
    assert_eq!(argument(&task, "--path").as_deref(), Some("laya/v1"));
    life.engine
        .script(|_, _| refused("ModelDamaged", "encoder/config.json differs", 3));
    life.tick(60);
    life.annotate(label::VERIFY, "n1");
    life.settle();
    assert_eq!(
        (life.phase(), life.says("Verified")),
        (ModelPhase::Failed, Some((FALSE, "ModelDamaged")))
    );
    let count = life.tasks().len();
    life.tick(86_400);
    life.settle();
    assert_eq!(life.tasks().len(), count, "it is not ours to write");
    life.engine.script(|_, _| Script::Obeys);
    life.annotate(label::VERIFY, "n2");
    life.settle();
    assert!(life.is_published());
    assert!(
        life.tasks()
            .iter()
            .all(|task| task.key.task == Task::Verify)
    );
    life.delete();
    life.settle();
    assert!(life.gone && !life.done.contains(&"DeleteVolume"));
}

#[test]
fn fault_14_a_lost_volume_is_made_and_filled_again() {
    let mut life = Life::new(&http());
    life.settle();
    life.engine.lose_volumes();
    life.pass(Kill::Never);
    assert_eq!(life.says("Verified"), Some((FALSE, "VolumeLost")));
    assert_eq!(life.says("Ready").unwrap().0, FALSE);
    assert_eq!(
        life.status().digest,
        Some(digest(&life)),
        "it is known what it was"
    );
    life.settle();
    assert!(life.is_published());
    assert_eq!(life.engine.published().len(), 1);
}

#[test]
fn a_claim_that_does_not_bind_is_said_and_waited_for() {
    let mut life = Life::on(FakeBackend::kubernetes(), &http());
    life.engine.script(|_, _| Script::Runs);
    life.settle();
    life.engine.bind_volumes(false);
    life.unbound_long = true;
    life.settle();
    assert_eq!(life.says("Ready"), Some((FALSE, "VolumePending")));
    assert!(life.says("Stalled").is_none());
    life.unbound_long = false;
    life.engine.bind_volumes(true);
    life.engine.end_task(
        "uid-1",
        &key(Task::Fetch, 1),
        0,
        Some(fetched(&digest(&life))),
    );
    life.settle();
    assert!(life.is_published());
}

#[test]
fn fault_01_an_engine_that_does_not_answer_changes_no_fact() {
    let mut life = Life::new(&http());
    life.settle();
    let before = life.status().clone();
    for (outage, reason) in [
        (Outage::Unavailable, "EngineUnavailable"),
        (Outage::Forbidden, "EngineForbidden"),
        (Outage::Hangs, "ObservationTimedOut"),
        (Outage::Incomplete, "ObservationTimedOut"),
    ] {
        life.engine.outage(Some(outage));
        assert_eq!(life.settle(), Requeue::Waiting);
        assert_eq!(life.says("BackendReachable"), Some((FALSE, reason)));
        assert_eq!(life.says("Ready"), Some((ConditionStatus::Unknown, reason)));
        let status = life.status();
        assert_eq!(
            (
                &status.digest,
                &status.location,
                &status.verified_at,
                &status.fetch
            ),
            (
                &before.digest,
                &before.location,
                &before.verified_at,
                &before.fetch
            )
        );
    }
    life.engine.outage(None);
    life.settle();
    assert!(life.is_published());
}

#[test]
fn a_contract_is_what_the_checkpoint_says_else_what_people_say() {
    let ours = relay_contract().digest().to_string();
    let text = RELAY_DECISIONS_JSON;
    let with_wording = move |_: &Owner, spec: &TaskSpec| {
        let digest = argument(spec, "--digest").unwrap();
        let mut result = fetched(&digest);
        result["contract"] = json!(relay_contract().digest().to_string());
        result["decisionsText"] = json!(text);
        result["probes"] = json!([{
            "state": "x", "answers": {"risk": {"label": "true", "probability": 0.5}},
        }]);
        Script::Ends {
            code: 0,
            result: Some(result),
        }
    };
    let mut life = Life::new(&http());
    life.engine.script(with_wording);
    life.settle();
    assert_eq!(life.status().contract.as_deref(), Some(ours.as_str()));
    assert_eq!(life.says("Verified"), Some((TRUE, "Observed")));
    let document = contract_document_name(&ours).unwrap();
    let digest = life.status().digest.clone().unwrap();
    let probes = crate::recorded::document_name(&digest).unwrap();
    assert_eq!(life.documents, BTreeSet::from([document, probes]));
    let stored = life
        .done
        .iter()
        .rposition(|name| *name == "StoreRevision")
        .unwrap();
    let removed = life
        .done
        .iter()
        .position(|name| *name == "DeleteTask")
        .unwrap();
    assert!(stored < removed, "{:?}", life.done);
    // Somebody says otherwise.
    let other = format!("sha256:{}", sha(4));
    life.edit(|spec| spec.contract = Some(api::kinds::shared::Digest(other.clone())));
    life.settle();
    assert_eq!(life.says("Stalled"), Some((TRUE, "ContractMismatch")));
    assert_eq!(life.says("Ready"), Some((FALSE, "ContractMismatch")));
    // One that names none is taken to be what people say.
    let mut silent = Life::new(&http());
    silent.settle();
    assert_eq!(silent.status().contract, None);
    silent.edit(|spec| spec.contract = Some(api::kinds::shared::Digest(other.clone())));
    silent.settle();
    assert_eq!(silent.status().contract.as_deref(), Some(other.as_str()));
    assert_eq!(silent.says("Verified"), Some((TRUE, "Observed")));
}

#[test]
fn files_that_are_right_and_mean_nothing_are_a_bad_checkpoint_and_not_damaged() {
    let mut life = Life::new(&http());
    life.settle();
    assert!(life.is_published());
    // An engine that is stricter than the one that published it; fetching again brings the same bytes.
    life.engine
        .script(|_, _| refused("BadCheckpoint", "tensor a: expected (2, 3), found (2,)", 3));
    life.annotate(label::VERIFY, "again");
    life.settle();
    let found = (FALSE, "BadCheckpoint");
    assert_eq!(life.says("Verified"), Some(found));
    assert_eq!(life.says("Ready"), Some(found));
    assert_eq!(life.says("Stalled"), Some((TRUE, "BadCheckpoint")));
    assert_eq!(life.says("Fetched"), Some((TRUE, "Observed")));
    assert!(life.message("Verified").contains("expected (2, 3)"));
    // The same where a server found it.
    let mut served = Life::new(&http());
    served.settle();
    served.tick(60);
    served
        .engine
        .script(|_, _| refused("BadCheckpoint", "the header is cut", 3));
    served.damaged_at = Some(served.now);
    served.settle();
    assert_eq!(served.says("Verified"), Some(found));
    assert_eq!(served.says("Stalled"), Some((TRUE, "BadCheckpoint")));
}

#[test]
fn a_spec_that_cannot_be_done_is_refused_in_words() {
    let mut spec = http();
    spec["manifestDigest"] = json!(format!("sha256:{}", sha(5)));
    let mut life = Life::new(&spec);
    life.settle();
    assert_eq!(life.says("Stalled"), Some((TRUE, "InvalidSpec")));
    assert!(life.message("Ready").contains("spec.manifestDigest"));
    let mut life = Life::on(FakeBackend::embedded(), &volume());
    life.settle();
    assert_eq!(life.says("Stalled"), Some((TRUE, "InvalidSpec")));
    assert!(
        life.message("Ready").contains("shared"),
        "{}",
        life.message("Ready")
    );
    life.delete();
    life.settle();
    assert!(life.gone);
    let mut spec = http();
    spec["storage"] = json!({"className": "fast", "accessMode": "ReadWriteMany"});
    let mut life = Life::new(&spec);
    life.settle();
    assert!(life.is_published());
    assert_eq!(life.says("FieldsSupported"), Some((FALSE, "FieldsIgnored")));
    let message = life.message("FieldsSupported");
    assert!(
        message.contains("spec.storage.className, spec.storage.accessMode"),
        "{message}"
    );
}

#[test]
fn our_own_volume_has_a_reserved_name_on_every_engine() {
    for engine in [FakeBackend::docker(), FakeBackend::embedded()] {
        let mut spec = volume();
        let digest = format!("sha256:{}", sha(9));
        spec["source"]["volume"] = json!({"name": "models", "path": format!("sha256-{}", sha(9))});
        let mut life = Life::on(engine, &spec);
        life.engine.put_volume(VolumeRole::Models, "relay-models");
        life.settle();
        assert!(life.is_published(), "{:#?}", life.status());
        assert_eq!(life.status().digest.as_deref(), Some(digest.as_str()));
    }
}

#[test]
fn names_of_others_and_images_that_do_not_come_are_said() {
    let mut life = Life::new(&http());
    life.engine.strangers(vec![Stranger {
        name: "relay-abc123-models".to_owned(),
        reason: api::reason::Reason::NameTaken,
        holder: "volume of backup".to_owned(),
    }]);
    life.settle();
    assert_eq!(life.says("Stalled"), Some((TRUE, "NameTaken")));
    assert!(life.message("Ready").contains("volume of backup"));
    assert_eq!(life.told, ["NameTaken"]);
    life.engine.strangers(Vec::new());
    let failed = ImageState::Failed {
        reason: api::reason::Reason::ImageNotFound,
        message: "no such image".to_owned(),
        at: life.now,
    };
    life.engine.image("laya@sha256:1", failed);
    life.settle();
    assert!(
        life.message("Ready").contains("ImageNotFound"),
        "{}",
        life.message("Ready")
    );
    assert!(life.tasks().is_empty());
    life.tick(299);
    life.settle();
    assert!(!life.done.contains(&"EnsureImage"), "the back end pauses");
    life.tick(2);
    life.settle();
    assert!(life.is_published(), "it was asked for again and came");
}

#[test]
fn a_task_that_was_made_and_never_started_is_started() {
    let mut life = Life::new(&http());
    life.engine.script(|_, _| Script::Stays);
    life.pass(Kill::Never);
    for _ in 0..10 {
        life.pass(Kill::Never);
    }
    life.engine.end_task(
        "uid-1",
        &key(Task::Fetch, 1),
        0,
        Some(fetched(&digest(&life))),
    );
    life.settle();
    assert!(life.is_published());
    let runs = life.done.iter().filter(|name| **name == "RunTask").count();
    assert!(runs >= 2, "{:?}", life.done);
}

#[test]
fn a_task_that_could_not_be_started_is_an_attempt_that_failed() {
    use api::reason::Reason;
    for (reason, says, wait) in [
        (Reason::NoSpace, "NoSpace", 300),
        (Reason::Starting, "SourceInterrupted", 12),
    ] {
        let mut life = Life::new(&http());
        life.engine.script(|_, _| Script::Stays);
        // The finalizer, the volume, the task.
        while life.tasks().is_empty() {
            life.pass(Kill::Never);
        }
        life.engine
            .change_task("uid-1", &key(Task::Fetch, 1), |task| {
                task.waiting = Some(backend::Waiting {
                    reason,
                    message: "mount failed".to_owned(),
                });
            });
        life.engine.script(|_, _| Script::Obeys);
        life.settle();
        assert_eq!(life.says("Fetched"), Some((FALSE, says)));
        assert!(life.message("Ready").contains("mount failed"));
        assert!(life.engine.children("uid-1").1.is_empty());
        life.tick(wait + 1);
        life.settle();
        assert!(life.is_published(), "{reason}");
    }
}

#[test]
fn a_verification_that_was_made_and_never_started_is_started() {
    let mut life = Life::new(&http());
    life.settle();
    life.engine.script(|_, _| Script::Stays);
    life.annotate(label::VERIFY, "n1");
    for _ in 0..10 {
        life.pass(Kill::Never);
    }
    let running = life.engine.children("uid-1").1;
    assert_eq!(running[0].state, RunState::Running, "{:?}", life.done);
    life.engine
        .end_task("uid-1", &running[0].key, 0, Some(fetched(&digest(&life))));
    life.settle();
    assert_eq!(life.status().verify_nonce.as_deref(), Some("n1"));
}

#[test]
fn fault_12_a_model_that_a_server_has_is_not_deleted() {
    let mut life = Life::new(&http());
    life.settle();
    life.used_by(Some("main"));
    life.delete();
    assert_eq!(life.settle(), Requeue::Waiting);
    assert_eq!(life.says("Stalled"), Some((TRUE, "StillInUse")));
    assert_eq!(
        (life.phase(), life.says("Ready")),
        (ModelPhase::Deleting, Some((FALSE, "Deleting")))
    );
    assert!(life.message("Stalled").contains("LayaServer main"));
    life.tick(86_400);
    life.settle();
    assert_eq!(life.engine.published().len(), 1);
    life.used_by(None);
    life.settle();
    assert!(life.gone && life.engine.published().is_empty());
    assert!(life.told.contains(&"Pruned"));
}

#[test]
fn deleting_removes_what_is_ours_and_nothing_else() {
    // Files of another version too.
    let mut life = Life::new(&http());
    life.settle();
    life.shared = true;
    life.delete();
    life.settle();
    assert!(life.gone && life.engine.published().len() == 1);
    // Marked to stay.
    let mut spec = http();
    spec["storage"] = json!({"onDelete": "Retain"});
    let mut life = Life::new(&spec);
    life.settle();
    life.delete();
    life.settle();
    assert!(life.gone && life.engine.published().len() == 1);
    assert_eq!(life.engine.kept(), BTreeSet::from([digest(&life)]));
    // A claim of its own.
    let mut life = Life::on(FakeBackend::kubernetes(), &http());
    life.settle();
    life.delete();
    life.settle();
    assert!(life.gone && life.done.contains(&"DeleteVolume"));
    // A fetch under way ends first.
    let mut life = Life::new(&http());
    life.engine.script(|_, spec| match spec.key.task {
        Task::Fetch => Script::Runs,
        _ => Script::Obeys,
    });
    life.settle();
    life.delete();
    life.settle();
    assert!(life.gone && life.engine.children("uid-1").1.is_empty());
    // Nothing was begun.
    let mut spec = http();
    spec["suspend"] = json!(true);
    let mut life = Life::new(&spec);
    life.settle();
    life.delete();
    life.settle();
    assert!(life.gone && life.tasks().is_empty());
}

#[test]
fn files_in_our_own_volume_are_marked_where_they_are_to_stay() {
    let digest = format!("sha256:{}", sha(9));
    for (name, engine, volume_name, retains, verified, marked) in [
        ("kept", FakeBackend::docker(), "models", true, true, true),
        (
            "inside",
            FakeBackend::embedded(),
            "models",
            true,
            true,
            true,
        ),
        (
            "not hashed",
            FakeBackend::docker(),
            "models",
            true,
            false,
            true,
        ),
        (
            "not kept",
            FakeBackend::docker(),
            "models",
            false,
            true,
            false,
        ),
        (
            "others'",
            FakeBackend::docker(),
            "shared",
            true,
            true,
            false,
        ),
    ] {
        let mut spec = volume();
        spec["source"]["volume"] =
            json!({"name": volume_name, "path": format!("sha256-{}", sha(9))});
        if retains {
            spec["storage"] = json!({"onDelete": "Retain"});
        }
        spec["suspend"] = json!(!verified);
        let mut life = Life::on(engine, &spec);
        let role = match volume_name {
            "models" => VolumeRole::Models,
            other => VolumeRole::Foreign {
                name: other.to_owned(),
            },
        };
        life.engine.put_volume(role, volume_name);
        life.settle();
        assert_eq!(life.is_published(), verified, "{name}");
        // Without its engine it is not let go with no mark.
        life.engine.outage(Some(Outage::Unavailable));
        life.delete();
        life.settle();
        assert_eq!(life.gone, !marked, "{name}");
        life.engine.outage(None);
        life.settle();
        assert!(life.gone, "{name}: {:#?}", life.status());
        let kept = life.engine.kept();
        assert_eq!(kept.contains(&digest), marked, "{name}: {kept:?}");
        assert!(!life.done.contains(&"DeleteVolume"), "{name}");
    }
}

#[test]
fn a_task_that_ends_already_is_not_told_again() {
    let mut life = Life::new(&http());
    life.engine.script(|_, _| Script::Runs);
    life.settle();
    life.engine
        .change_task("uid-1", &key(Task::Fetch, 1), |task| {
            task.state = RunState::Stopping;
        });
    life.tick(3_601);
    life.settle();
    life.delete();
    life.settle();
    assert!(!life.gone && !life.done.contains(&"StopTask"));
}

#[test]
fn what_a_fetch_published_unseen_is_removed_with_the_model() {
    let mut life = Life::new(&oci());
    life.engine.script(|_, _| Script::Runs);
    life.settle();
    let digest = format!("sha256:{}", sha(8));
    life.engine.script(|_, _| Script::Obeys);
    life.engine.set_published(&digest, true);
    life.engine
        .end_task("uid-1", &key(Task::Fetch, 1), 0, Some(fetched(&digest)));
    life.delete();
    life.settle();
    assert!(life.gone, "{:#?}", life.status());
    let prune = life.tasks().pop().unwrap();
    assert_eq!(argument(&prune, "--delete"), Some(digest));
}

#[test]
fn files_that_another_model_wants_by_now_are_not_removed() {
    let mut life = Life::new(&http());
    life.settle();
    life.engine.script(|_, _| Script::Runs);
    life.delete();
    life.settle();
    assert!(life.done.contains(&"RunTask") && !life.gone);
    life.shared = true;
    life.settle();
    assert!(life.done.contains(&"StopTask"), "{:?}", life.done);
    assert!(life.gone && life.engine.published().len() == 1);
    // The other one waits until they are left alone.
    let mut other = Life::new(&http());
    other.leaving_twin = true;
    assert_eq!(other.settle(), Requeue::Waiting);
    assert_eq!(
        (other.phase(), other.says("Fetched")),
        (ModelPhase::Pending, Some((FALSE, "NotStarted")))
    );
    assert!(other.message("Ready").contains("another LayaModel"));
    assert!(other.tasks().is_empty());
    other.leaving_twin = false;
    other.settle();
    assert!(other.is_published());
}

#[test]
fn cleaning_that_does_not_work_is_given_up_after_ten_minutes() {
    for outage in [None, Some(Outage::Unavailable)] {
        let mut life = Life::new(&http());
        life.settle();
        life.engine.script(|_, _| Script::Ends {
            code: 1,
            result: None,
        });
        life.engine.outage(outage.clone());
        life.delete();
        for _ in 0..18 {
            life.settle();
            life.tick(31);
        }
        assert!(!life.gone, "{outage:?}");
        life.tick(60);
        life.settle();
        assert!(life.gone, "{outage:?}: {:#?}", life.status());
        assert!(life.told.contains(&"CleanupAbandoned"));
        assert_eq!(life.engine.published().len(), 1);
    }
}

#[test]
fn release_lets_it_go_at_once_with_its_data() {
    let mut life = Life::new(&http());
    life.settle();
    life.used_by(Some("main"));
    life.engine.outage(Some(Outage::Unavailable));
    life.delete();
    life.annotate(label::RELEASE, "true");
    life.settle();
    assert!(life.gone && life.engine.published().len() == 1);
    let mut life = Life::new(&http());
    life.settle();
    life.annotate(label::RELEASE, "true");
    life.settle();
    assert_eq!(life.model.metadata.finalizers, None);
    assert!(life.is_published());
}

#[test]
fn a_trained_version_beyond_those_kept_goes_as_an_object_first() {
    let mut life = Life::new(&http());
    life.settle();
    life.surplus = true;
    life.settle();
    assert!(life.gone && life.engine.published().is_empty());
    let deleted = life
        .done
        .iter()
        .position(|name| *name == "DeleteModel")
        .unwrap();
    assert!(life.done[deleted..].contains(&"RemoveFinalizer"));
}

#[test]
fn no_pass_takes_more_than_one_thing_away() {
    let mut life = Life::new(&http());
    life.engine.script(|_, _| Script::Runs);
    life.settle();
    let mut second = life.tasks().remove(0);
    second.key.attempt = 2;
    let owner = owner(&life.model);
    let run = EngineAction::RunTask(Box::new(second));
    life.engine
        .apply(&owner, &run)
        .now_or_never()
        .unwrap()
        .unwrap();
    let plan = life.plan();
    let destroying = plan
        .actions
        .iter()
        .filter(|action| action.destroys() == Destroys::Something);
    assert!(destroying.count() <= 1, "{:?}", plan.actions);
    life.engine.end_task(
        "uid-1",
        &key(Task::Fetch, 2),
        0,
        Some(fetched(&digest(&life))),
    );
    life.settle();
    assert!(life.is_published());
    assert!(life.engine.children("uid-1").1.is_empty());
}

#[test]
fn recorded_probes_whose_name_is_taken_hold_no_model_up() {
    for (document, settled) in [
        (Some(Holds::Same), true),
        (Some(Holds::SomethingElse), true),
        (Some(Holds::Before), false),
        (None, false),
    ] {
        assert_eq!(is_settled(document), settled, "{document:?}");
    }
}

#[test]
fn recorded_probes_go_with_the_last_model_that_has_them_before_its_finalizer() {
    for kill in [Kill::Never, Kill::Before(0), Kill::Before(1)] {
        let mut life = Life::new(&volume());
        life.settle();
        life.last_probes = Some(Document {
            name: "probes-1".to_owned(),
            uid: "p1".to_owned(),
        });
        life.settle();
        assert!(!life.done.contains(&"DeleteRevision"), "it stays");
        life.delete();
        life.pass(kill);
        life.pass(kill);
        life.settle();
        assert!(life.gone && life.last_probes.is_none());
        let place = |name| life.done.iter().position(|it| *it == name);
        assert!(place("DeleteRevision") < place("RemoveFinalizer"));
    }
}
