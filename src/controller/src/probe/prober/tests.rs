//! Over real sockets, with the fake Laya server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api::kinds::laya_server::{ProbeLevel, ServerApi};
use api::reason::Reason;
use decision::relay_contract;
use prometheus::{IntCounterVec, Opts};
use testkit::{Answers, FakeLaya, Fault, Says};
use tokio::task::JoinHandle;

use super::*;
use crate::clock::SystemClock;
use crate::probe::questions::{QuestionSet, RecordedProbe};
use crate::probe::watched::Pace;

const PATIENCE: Duration = Duration::from_secs(20);
const DIGEST: &str = "sha256:2222222222222222222222222222222222222222222222222222222222222222";

struct World {
    prober: Prober,
    server: ServerId,
    woken: Arc<AtomicUsize>,
    counts: ProbeCounts,
    task: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl World {
    fn new() -> Self {
        let woken = Arc::new(AtomicUsize::new(0));
        let counter = woken.clone();
        let counts = IntCounterVec::new(Opts::new("probe_total", "help"), &["result"]).unwrap();
        let counts = ProbeCounts(counts);
        let prober = Prober::new(Arc::new(SystemClock), counts.clone(), move |key| {
            assert_eq!(key.name, "main");
            counter.fetch_add(1, Ordering::SeqCst);
        });
        let asking = prober.clone();
        Self {
            prober,
            server: ServerId {
                key: Key {
                    namespace: "space".to_owned(),
                    name: "main".to_owned(),
                },
                uid: "u1".to_owned(),
            },
            woken,
            counts,
            task: tokio::spawn(async move { asking.run().await }),
        }
    }

    fn watch(&self, urls: &[String]) {
        self.watch_recorded(urls, &[]);
    }

    /// The same for a checkpoint with recorded answers.
    fn watch_recorded(&self, urls: &[String], recorded: &[RecordedProbe]) {
        let replica = |(ordinal, url): (u32, &String)| Replica {
            revision: "r1".to_owned(),
            ordinal,
            url: url.clone(),
            server_api: ServerApi::Relay,
            digest: Some(DIGEST.to_owned()),
            contract: Some(relay_contract().digest().to_string()),
            questions: Some(QuestionSet::ours()),
            recorded: Arc::from(recorded),
            timeout: Duration::from_millis(500),
            interval: Duration::from_secs(60),
            pace: Pace::Rollout,
        };
        let replicas = (0..).zip(urls).map(replica).collect();
        self.prober.watch(&self.server, replicas);
    }

    /// Waits until the first replica is so.
    async fn until(&self, what: &str, is: impl Fn(&ReplicaProbe) -> bool) -> ReplicaProbe {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let seen = self.prober.seen(&self.server);
            match seen.first() {
                Some(probe) if is(probe) => return probe.clone(),
                probe if Instant::now() > deadline => panic!("{what}: last seen {probe:#?}"),
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    fn counted(&self, result: &str) -> u64 {
        self.counts.0.with_label_values(&[result]).get()
    }
}

async fn lively() -> FakeLaya {
    FakeLaya::start(Says::relay().serving(DIGEST)).await
}

fn failed_with(reason: Reason) -> impl Fn(&ReplicaProbe) -> bool {
    move |probe| {
        let failed = probe.questions.failed.as_ref();
        failed.is_some_and(|failed| failed.reason == reason)
    }
}

#[tokio::test]
async fn a_server_that_works_is_ready_probed_and_measured() {
    let world = World::new();
    let fake = lively().await;
    world.watch(&[fake.url()]);
    let probe = world
        .until("passed", |probe| {
            probe.questions.passed_all && probe.digest.is_some()
        })
        .await;
    assert!(matches!(probe.readiness, Readiness::Ready { .. }));
    assert_eq!(probe.digest.as_deref(), Some(DIGEST));
    let contract = relay_contract().digest().to_string();
    assert_eq!(probe.contract, Some(contract.clone()));
    assert_eq!(probe.device.claimed.as_deref(), Some("cpu"));
    assert!(probe.device.p50_millis.is_some());
    assert_eq!(fake.calls(), 12, "six questions, six measurements");
    assert_eq!(world.counted("passed"), 6);
    assert!(world.woken.load(Ordering::SeqCst) >= 2);
    let last = fake.last().unwrap();
    assert_eq!(last.header("x-laya-contract"), Some(contract.as_str()));
    assert_eq!(last.header("x-laya-deadline-ms"), Some("500"));
    assert!(world.prober.latency(&world.server, "r1").is_some());
    world.prober.forget("u1");
    assert_eq!(world.prober.seen(&world.server), []);
}

#[tokio::test]
async fn fault_27_answers_of_every_kind_are_bounded_and_named() {
    let cases = [
        (Fault::NotANumber, Reason::MalformedAnswers),
        (Fault::MalformedJson, Reason::MalformedAnswers),
        (Fault::WrongKind, Reason::MalformedAnswers),
        (
            Fault::MissingId("risk".to_owned()),
            Reason::QuestionsUnknown,
        ),
        (Fault::DeadHead, Reason::DeadHead),
        (Fault::HugeBody(64 << 20), Reason::MalformedAnswers),
        (Fault::HugeChunkedBody(64 << 20), Reason::MalformedAnswers),
        (
            Fault::Trickle(Duration::from_millis(20)),
            Reason::ProbeTimedOut,
        ),
        (Fault::HangBeforeHead, Reason::ProbeTimedOut),
        (Fault::HangInBody, Reason::ProbeTimedOut),
        (Fault::EndlessHead, Reason::ProbeTimedOut),
        (Fault::Reset, Reason::ProbeTimedOut),
        (Fault::Status(422, None), Reason::QuestionsUnknown),
        (Fault::Status(500, None), Reason::MalformedAnswers),
    ];
    let id = relay_contract().questions()[3].id.clone();
    let cases = cases.map(|(fault, reason)| match fault {
        Fault::MissingId(_) => (Fault::MissingId(id.clone()), reason),
        fault => (fault, reason),
    });
    let checks = cases.map(|(fault, reason)| async move {
        let world = World::new();
        let fake = lively().await;
        fake.fail(fault.clone());
        world.watch(&[fake.url()]);
        let what = format!("{fault:?}");
        let probe = world.until(&what, failed_with(reason)).await;
        assert!(!probe.questions.passed_all, "{what}");
        let all = world.counted("passed") >= 6;
        assert_eq!(all, fault == Fault::DeadHead, "{what}");
    });
    futures_util::future::join_all(checks).await;
}

#[tokio::test]
async fn an_answer_to_what_is_not_asked_any_more_is_not_judged_by_what_is() {
    let world = World::new();
    let probe = serde_json::json!({
        "state": "recorded", "answers": {"task_type": {"label": "refactor", "probability": 0.97}},
    });
    let fake = FakeLaya::start(Says {
        answers: Answers::Plausible(vec![probe.clone()]),
        ..Says::relay().serving(DIGEST)
    })
    .await;
    fake.fail(Fault::Latency(Duration::from_millis(100)));
    world.watch(&[fake.url()]);
    world
        .until("a built-in question is under way", |_| fake.in_flight() > 0)
        .await;
    // Its answer is none that a record of this one allows.
    let recorded: RecordedProbe = serde_json::from_value(probe).unwrap();
    world.watch_recorded(&[fake.url()], &[recorded]);
    let probe = world
        .until("passed", |probe| {
            let failed = probe.questions.failed.as_ref();
            assert!(failed.is_none_or(|failed| !failed.conclusive), "{failed:?}");
            probe.questions.passed_all
        })
        .await;
    assert_eq!(probe.questions.level, Some(ProbeLevel::Expected));
}

#[tokio::test]
async fn a_server_with_other_questions_says_so_itself() {
    let world = World::new();
    let other = "sha256:3333333333333333333333333333333333333333333333333333333333333333";
    let fake = FakeLaya::start(Says::contract(other, other).serving(DIGEST)).await;
    world.watch(&[fake.url()]);
    let probe = world
        .until("refused", failed_with(Reason::ContractMismatch))
        .await;
    assert!(probe.questions.failed.unwrap().conclusive);
    world
        .until("named", |probe| probe.contract.as_deref() == Some(other))
        .await;
}

#[tokio::test]
async fn a_server_that_is_not_there_wakes_a_pass_when_it_comes_and_when_it_goes() {
    let world = World::new();
    let fake = lively().await;
    let address = fake.address();
    fake.stop().await;
    world.watch(&[format!("http://{address}")]);
    world
        .until("not there", |probe| {
            matches!(probe.readiness, Readiness::Unreachable { .. })
        })
        .await;
    let woken = world.woken.load(Ordering::SeqCst);
    let fake = FakeLaya::start_at(address, Says::relay().serving(DIGEST)).await;
    world
        .until("passed", |probe| probe.questions.passed_all)
        .await;
    assert!(world.woken.load(Ordering::SeqCst) > woken);
    fake.stop().await;
    world
        .until("gone", |probe| {
            matches!(probe.readiness, Readiness::Unreachable { .. })
        })
        .await;
}

#[tokio::test]
async fn a_slow_server_delays_no_other_and_no_look_at_itself() {
    let world = World::new();
    let slow = lively().await;
    slow.fail(Fault::HangBeforeHead);
    let good = lively().await;
    world.watch(&[slow.url(), good.url()]);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = world.prober.seen(&world.server);
        if seen.len() == 2
            && matches!(seen[0].readiness, Readiness::Ready { .. })
            && seen[1].questions.passed_all
        {
            break;
        }
        assert!(Instant::now() < deadline, "last seen {seen:#?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn an_idle_prober_sleeps_and_a_new_replica_wakes_it() {
    let world = World::new();
    tokio::task::yield_now().await;
    let fake = lively().await;
    world.watch(&[fake.url()]);
    world
        .until("ready", |probe| {
            matches!(probe.readiness, Readiness::Ready { .. })
        })
        .await;
    world.watch(&[]);
    assert_eq!(world.prober.seen(&world.server), []);
}
