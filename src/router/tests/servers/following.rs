//! Servers of a followed LayaServer: revisions share their weight, are asked in order, and are counted.

use std::time::Duration;

use api::responses::ServingState;
use api::revisions::RevisionReport;
use axum::body::Body;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use router::servers::{Role, Silence, Target, Traffic};
use routing::reason::Fallback;
use testkit::{FakeLaya, Fault, Says};
use tower::ServiceExt;

use crate::{Behind, target, until, within};

const OTHER: &str = "sha256:2222222222222222222222222222222222222222222222222222222222222222";

/// A server of a revision, expected to be what its controller said.
pub(crate) fn of(
    revision: &str,
    number: usize,
    weight: u32,
    role: Role,
    fake: &FakeLaya,
) -> Target {
    let mut of = target(&format!("{revision}-{number}"), fake);
    of.version = format!("model-{revision}");
    of.revision = Some(revision.to_owned());
    of.weight = weight;
    of.role = role;
    of.expected.contract = Says::relay().contract;
    of.expected.checkpoint = Says::relay().checkpoint;
    of.expected.silence = Silence::Accepted;
    of
}

pub(crate) fn generation(generation: i64) -> Traffic {
    Traffic {
        server: "default/main".to_owned(),
        generation,
        copied_millionths: 1_000_000,
    }
}

/// A table of a followed server, in force with its servers looked at.
pub(crate) async fn followed(targets: Vec<Target>, failures: u32) -> Behind {
    let behind = Behind::unready(Vec::new(), failures);
    let wait = Duration::from_secs(5);
    behind
        .servers
        .switch(targets, generation(1), wait)
        .await
        .unwrap();
    behind
}

pub(crate) fn report(behind: &Behind, revision: &str) -> RevisionReport {
    let all = behind.servers.report().revisions;
    let found = all.into_iter().find(|report| report.revision == revision);
    found.unwrap_or_default()
}

async fn asked(behind: &Behind, task: &str) -> Result<String, Fallback> {
    let answered = behind.servers.ask("Fix it", task, within(5000)).await;
    answered.map(|answered| answered.provenance.server)
}

#[tokio::test]
async fn a_canary_has_its_weight_however_many_servers_each_revision_has() {
    let mut fakes = Vec::new();
    for _ in 0..4 {
        fakes.push(FakeLaya::start(Says::relay()).await);
    }
    let table = |weight| {
        vec![
            of("bbbb", 0, weight, Role::Candidate, &fakes[0]),
            of("aaaa", 0, 100 - weight, Role::Champion, &fakes[1]),
            of("aaaa", 1, 100 - weight, Role::Champion, &fakes[2]),
            of("aaaa", 2, 100 - weight, Role::Champion, &fakes[3]),
        ]
    };
    let behind = followed(table(11), 5).await;
    // training.md 15.5.
    for (at, (weight, candidate)) in [(11, &[3][..]), (12, &[1, 3])].into_iter().enumerate() {
        let next = generation(2 + i64::try_from(at).unwrap());
        let wait = Duration::from_secs(5);
        behind
            .servers
            .switch(table(weight), next, wait)
            .await
            .unwrap();
        for number in 1..=4 {
            let task = format!("0193d2b1-0000-7000-8000-00000000000{number}");
            let server = asked(&behind, &task).await.unwrap();
            let is_candidate = server == "bbbb-0";
            assert_eq!(
                is_candidate,
                candidate.contains(&number),
                "{number} at {weight}"
            );
            assert_eq!(
                asked(&behind, &task).await.unwrap(),
                server,
                "the same again"
            );
        }
    }
    let before: Vec<_> = fakes.iter().map(FakeLaya::calls).collect();
    for number in 0..1000 {
        asked(&behind, &format!("task-{number}")).await.unwrap();
    }
    let calls = fakes.iter().map(FakeLaya::calls).zip(before);
    let calls: Vec<_> = calls.map(|(now, before)| now - before).collect();
    // 12 % of 1000, and a third of the rest each.
    assert!((90..=150).contains(&calls[0]), "{calls:?}");
    assert!(
        calls[1..].iter().all(|calls| (240..=345).contains(calls)),
        "{calls:?}"
    );
}

#[tokio::test]
async fn another_server_of_the_revision_is_asked_before_another_revision() {
    let (candidate, first, second) = (
        FakeLaya::start(Says::relay()).await,
        FakeLaya::start(Says::relay()).await,
        FakeLaya::start(Says::relay()).await,
    );
    let behind = followed(
        vec![
            of("bbbb", 0, 1, Role::Candidate, &candidate),
            of("aaaa", 0, 99, Role::Champion, &first),
            of("aaaa", 1, 99, Role::Champion, &second),
        ],
        5,
    )
    .await;
    // Not one of the lowest places.
    let task = "0193d2b1-0000-7000-8000-000000000004";
    let own = asked(&behind, task).await.unwrap();
    let (broken, other) = match &*own {
        "aaaa-0" => (&first, "aaaa-1"),
        "aaaa-1" => (&second, "aaaa-0"),
        strange => panic!("{strange}"),
    };
    for fault in [
        Fault::Reset,
        Fault::Status(429, Some(1)),
        Fault::Status(503, None),
    ] {
        broken.fail(fault);
        assert_eq!(asked(&behind, task).await.as_deref(), Ok(other));
    }
    for fake in [&first, &second] {
        fake.fail(Fault::Reset);
    }
    let calls = candidate.calls();
    assert_eq!(asked(&behind, task).await, Err(Fallback::Unreachable));
    assert_eq!(candidate.calls(), calls, "one retry, of the same revision");
}

#[tokio::test]
async fn each_revision_is_counted() {
    let (champion, candidate) = (
        FakeLaya::start(Says::relay()).await,
        FakeLaya::start(Says::relay()).await,
    );
    let table = |weight| {
        vec![
            of("bbbb", 0, weight, Role::Candidate, &candidate),
            of("aaaa", 0, 100 - weight, Role::Champion, &champion),
        ]
    };
    let behind = followed(table(0), 1_000).await;
    let empty = behind.servers.report();
    assert_eq!(
        (&*empty.server, empty.traffic_generation),
        ("default/main", 1)
    );
    assert_eq!(empty.revisions.len(), 2);
    assert_eq!(empty.instance.len(), 32);
    for number in 0..20 {
        asked(&behind, &format!("task-{number}")).await.unwrap();
    }
    let wait = Duration::from_secs(5);
    behind
        .servers
        .switch(table(100), generation(2), wait)
        .await
        .unwrap();
    for (fault, times) in [
        (Fault::None, 10),
        (Fault::Status(500, None), 2),
        (Fault::MalformedJson, 1),
        (Fault::Status(429, Some(1)), 3),
        (Fault::Draining, 0),
        (Fault::Status(504, None), 1),
    ] {
        candidate.fail(fault);
        for number in 0..times {
            // The champion has no share and answers all the same.
            asked(&behind, &format!("task-{number}")).await.unwrap();
        }
    }
    let report = |revision| report(&behind, revision);
    let old = report("aaaa");
    assert_eq!(
        (old.requests, old.errors, old.in_flight),
        (27, 0, 0),
        "{old:?}"
    );
    assert!(old.p50_millis <= old.p95_millis && old.p95_millis.is_some());
    let new = report("bbbb");
    assert_eq!(
        (new.requests, new.errors, new.timeouts, new.rejections),
        (17, 3, 1, 3),
        "{new:?}"
    );
    assert_eq!(behind.servers.report().traffic_generation, 2);
    assert_eq!(behind.servers.report().instance, empty.instance);
}

/// What was passed through is counted by the same rules; what a caller alone can provoke is no error of a revision.
#[tokio::test]
async fn what_is_passed_through_is_counted_too() {
    let champion = FakeLaya::start(Says::relay()).await;
    let behind = followed(vec![of("aaaa", 0, 100, Role::Champion, &champion)], 1_000).await;
    let app = behind.app().await;
    let post = async || {
        let body = Body::from(r#"{"state":"x","questions":{}}"#);
        let request = Request::post("/v1/systemone").body(body).unwrap();
        let response = app.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let _ = response.into_body().collect().await;
        status.as_u16()
    };
    for (fault, status) in [
        (Fault::None, 200),
        (Fault::Status(500, None), 500),
        (Fault::Status(422, None), 422),
        (Fault::Status(502, None), 502),
        (Fault::Status(503, Some(1)), 503),
    ] {
        champion.fail(fault);
        assert_eq!(post().await, status);
    }
    let seen = report(&behind, "aaaa");
    assert_eq!(
        (seen.requests, seen.errors, seen.rejections, seen.in_flight),
        (5, 1, 1, 0),
        "{seen:?}"
    );
    champion.fail(Fault::HangInBody);
    let request = Request::post("/v1/systemone")
        .body(Body::from("{}"))
        .unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(report(&behind, "aaaa").in_flight, 1, "until its last byte");
    drop(response);
    until("it is gone", || report(&behind, "aaaa").in_flight == 0).await;
}

/// The wrong server at an address of the table: asked for nothing, whatever its role.
#[tokio::test]
async fn fault_26_a_followed_server_that_is_another_one_is_not_asked() {
    let shape = decision::relay_contract().shape_digest().to_string();
    let mut checkpoint = Says::relay();
    checkpoint.health.1 = checkpoint.health.1.replace("1111", "3333");
    for (name, says, asked_at_all) in [
        ("another checkpoint", checkpoint, false),
        ("another wording", Says::contract(OTHER, &shape), false),
        ("another shape", Says::contract(OTHER, OTHER), false),
        ("a Laya that names nothing", Says::original(), true),
    ] {
        let fake = FakeLaya::start(says).await;
        let behind = followed(vec![of("aaaa", 0, 100, Role::Champion, &fake)], 5).await;
        let answered = asked(&behind, "task").await;
        if asked_at_all {
            assert_eq!(answered.as_deref(), Ok("aaaa-0"), "{name}");
        } else {
            assert_eq!(answered, Err(Fallback::NoModel), "{name}");
            assert_eq!(fake.calls(), 0, "{name}");
        }
    }
}

/// Answers that are none: rules answer with the reason, the breaker opens, and the revision has the errors.
#[tokio::test]
async fn fault_27_broken_answers_of_a_followed_server_are_errors_of_its_revision() {
    for (fault, reason) in [
        (Fault::MalformedJson, Fallback::InvalidAnswers),
        (Fault::NotANumber, Fallback::InvalidAnswers),
        (Fault::UnknownChoice, Fallback::InvalidAnswers),
        (Fault::HugeChunkedBody(8 << 20), Fallback::InvalidAnswers),
        (Fault::Reset, Fallback::Unreachable),
    ] {
        let fake = FakeLaya::start(Says::relay()).await;
        let behind = followed(vec![of("aaaa", 0, 100, Role::Champion, &fake)], 2).await;
        fake.fail(fault.clone());
        for expected in [reason, reason, Fallback::BreakerOpen] {
            assert_eq!(asked(&behind, "task").await, Err(expected), "{fault:?}");
        }
        assert!(behind.is_open("aaaa-0"));
        let seen = report(&behind, "aaaa");
        assert_eq!((seen.requests, seen.errors), (2, 2), "{fault:?}");
    }
    let fake = FakeLaya::start(Says::relay()).await;
    let behind = followed(vec![of("aaaa", 0, 100, Role::Champion, &fake)], 5).await;
    fake.fail(Fault::HangBeforeHead);
    let answered = behind.servers.ask("Fix it", "task", within(400)).await;
    assert_eq!(answered.unwrap_err(), Fallback::Timeout);
    assert_eq!(report(&behind, "aaaa").timeouts, 1);
}

/// Traffic that is empty, and servers that are all gone: a documented answer with its reason.
#[tokio::test]
async fn fault_33_without_a_followed_server_rules_answer() {
    let fake = FakeLaya::start(Says::relay()).await;
    let behind = followed(vec![of("aaaa", 0, 100, Role::Champion, &fake)], 5).await;
    let app = behind.app().await;
    let route = async || {
        let request = Request::post("/v1/route")
            .header("content-type", "application/json")
            .body(Body::from(r#"{"request":"Fix the pager"}"#))
            .unwrap();
        let response = app.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let decision: serde_json::Value = serde_json::from_slice(&body).unwrap();
        decision["provenance"]["fallback"]
            .as_str()
            .map(str::to_owned)
    };
    assert_eq!(route().await, None, "the model answers");
    fake.stop().await;
    assert_eq!(route().await.as_deref(), Some("unreachable"));
    let wait = Duration::from_secs(5);
    behind
        .servers
        .switch(Vec::new(), generation(2), wait)
        .await
        .unwrap();
    assert_eq!(route().await.as_deref(), Some("no_model"));
    assert_eq!(behind.state(), ServingState::RulesOnly);
    assert!(behind.servers.is_empty());
}

/// A thousand at once before a revision whose server hangs: bounded calls, and nobody waits who need not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_34_a_crowd_before_a_revision_that_hangs_goes_to_the_other_one() {
    let (candidate, champion) = (
        FakeLaya::start(Says::relay()).await,
        FakeLaya::start(Says::relay()).await,
    );
    let behind = followed(
        vec![
            of("bbbb", 0, 50, Role::Candidate, &candidate),
            of("aaaa", 0, 50, Role::Champion, &champion),
        ],
        5,
    )
    .await;
    candidate.fail(Fault::HangBeforeHead);
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..1000 {
        let servers = behind.servers.clone();
        asking.spawn(async move {
            let task = format!("task-{number}");
            servers.ask("Fix it", &task, within(3000)).await.err()
        });
    }
    while let Some(ended) = asking.join_next().await {
        let reason = ended.unwrap();
        assert!(
            matches!(
                reason,
                None | Some(Fallback::Busy | Fallback::BreakerOpen | Fallback::Timeout)
            ),
            "{reason:?}"
        );
    }
    assert!(candidate.peak() <= router::servers::CALLS_IN_FLIGHT);
    until("no call is left", || candidate.in_flight() == 0).await;
    until("none is counted", || report(&behind, "bbbb").in_flight == 0).await;
    assert!(report(&behind, "bbbb").timeouts > 0);
}
