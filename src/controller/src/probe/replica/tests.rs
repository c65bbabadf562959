use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::probe::questions::{QuestionSet, RecordedAnswer, RecordedProbe};

const DIGEST: &str = "sha256:d1";

/// One question, so that answers are short.
fn set() -> Arc<QuestionSet> {
    let file =
        json!({"decisions": {"asks": {"type": "noul", "instructions": "Is it a question?"}}});
    let contract = decision::Contract::import(file.to_string().as_bytes()).unwrap();
    Arc::new(QuestionSet::new(contract))
}

fn replica() -> Replica {
    Replica {
        revision: "r1".to_owned(),
        ordinal: 0,
        url: "http://127.0.0.1:1".to_owned(),
        server_api: ServerApi::Relay,
        digest: Some(DIGEST.to_owned()),
        contract: None,
        questions: Some(set()),
        recorded: Arc::from([]),
        timeout: Duration::from_secs(5),
        interval: Duration::from_secs(60),
        pace: Pace::Steady,
    }
}

/// A replica, a clock, and what came of each thing it asked.
struct Play {
    state: ReplicaState,
    now: Now,
}

impl Play {
    fn of(replica: Replica) -> Self {
        let now = Now {
            wall: "2026-11-30T10:00:00Z".parse().unwrap(),
            boot: Duration::from_secs(1_000),
        };
        Self {
            state: ReplicaState::new(replica, now.boot),
            now,
        }
    }

    fn pass_time(&mut self, time: Duration) {
        self.now.boot += time;
        self.now.wall += time;
    }

    /// Waits until something is due, asks it, and gives it this answer. What was asked, and after how long.
    fn step(&mut self, answer: impl Fn(Ask) -> Result<Said, CallError>) -> (Ask, Duration) {
        let due = self.state.next_due().expect("something is due");
        let waited = due.saturating_sub(self.now.boot);
        self.pass_time(waited);
        let lanes = [Lane::Looks, Lane::Questions].into_iter();
        let ask = lanes
            .filter_map(|lane| self.state.take(lane, self.now.boot))
            .next()
            .expect("what is due can be taken");
        let came = answer(ask);
        self.state
            .answered(ask, &came, Duration::from_millis(30), &self.now);
        (ask, waited)
    }

    /// Steps until this holds; at most so many.
    fn until(
        &mut self,
        what: &str,
        answer: impl Fn(Ask) -> Result<Said, CallError>,
        is: impl Fn(&ReplicaProbe) -> bool,
    ) -> ReplicaProbe {
        for _ in 0..200 {
            let shown = self.shown();
            if is(&shown) {
                return shown;
            }
            self.step(&answer);
        }
        panic!("{what}: last seen {:#?}", self.shown());
    }

    /// Steps for a time. The questions that were asked.
    fn run(&mut self, time: Duration, answer: impl Fn(Ask) -> Result<Said, CallError>) -> Vec<Ask> {
        let end = self.now.boot + time;
        let mut asked = Vec::new();
        while self.state.next_due().is_some_and(|due| due <= end) {
            asked.push(self.step(&answer).0);
        }
        self.now.wall += end.saturating_sub(self.now.boot);
        self.now.boot = end;
        asked
    }

    fn shown(&self) -> ReplicaProbe {
        self.state.shown(self.now.boot)
    }
}

fn said(status: u16, body: &serde_json::Value) -> Result<Said, CallError> {
    Ok(Said {
        status,
        checkpoint: None,
        body: body.to_string().into(),
    })
}

fn health(digest: &str, device: &str, fallbacks: u32) -> Result<Said, CallError> {
    said(
        200,
        &json!({
            "status": "ok", "loaded": ["m"], "cpu_fallbacks": {"m": {"count": fallbacks, "last_reason": "no memory"}},
            "checkpoints": {"m": {"digest": digest, "contract": "sha256:c1", "device": {"kind": device}}},
        }),
    )
}

fn noul(noul: f64) -> Result<Said, CallError> {
    said(
        200,
        &json!({"answers": {"asks": {"type": "noul", "noul": noul}}}),
    )
}

/// A server that works.
fn good(ask: Ask) -> Result<Said, CallError> {
    match ask {
        Ask::Ready => said(200, &json!({"ready": true})),
        Ask::Health => health(DIGEST, "cpu", 0),
        Ask::Question(at) => noul(0.1 + at as f64 / 10.0),
        Ask::Latency(_) => noul(0.5),
    }
}

fn timed_out() -> Result<Said, CallError> {
    Err(CallError::Deadline {
        after: Duration::from_secs(5),
    })
}

fn refused() -> Result<Said, CallError> {
    Err(CallError::Unreachable {
        refused: true,
        message: "connection refused".to_owned(),
    })
}

fn passed(probe: &ReplicaProbe) -> bool {
    probe.questions.passed_all
}

fn is_ready(probe: &ReplicaProbe) -> bool {
    matches!(probe.readiness, Readiness::Ready { .. })
}

fn question(ask: &Ask) -> bool {
    matches!(ask, Ask::Question(_))
}

#[test]
fn control_plane_12_all_six_are_asked_then_measured_then_one_in_turn() {
    let mut play = Play::of(replica());
    let mut asked = Vec::new();
    while !passed(&play.shown()) {
        let (ask, _) = play.step(good);
        if ask.lane() == Lane::Questions {
            asked.push(ask);
        }
    }
    let mut expected: Vec<_> = (0..6).map(Ask::Question).collect();
    expected.extend((0..=5).map(Ask::Latency));
    assert_eq!(asked, expected);
    let probe = play.shown();
    assert_eq!(
        (probe.questions.level, probe.device.p50_millis),
        (Some(ProbeLevel::Shape), Some(30))
    );
    assert_eq!(probe.questions.passed_at, Some(play.now.wall));
    assert_eq!(probe.digest.as_deref(), Some(DIGEST));
    let mut routine = play.run(Duration::from_secs(601), good);
    routine.retain(question);
    let expected: Vec<_> = (0..10).map(|at| Ask::Question(at % 6)).collect();
    assert_eq!(routine, expected);
}

#[test]
fn replicas_of_a_revision_are_asked_in_turn() {
    let times = |place| {
        let mut play = Play::of(replica());
        play.state.take_turn(place, 3);
        play.until("passed", good, passed);
        let passed_at = play.now.boot;
        let mut times = Vec::new();
        while times.len() < 2 {
            if question(&play.step(good).0) {
                times.push((play.now.boot - passed_at).as_secs());
            }
        }
        times
    };
    assert_eq!(
        [times(0), times(1), times(2)],
        [[60, 240], [120, 300], [180, 360]]
    );
}

#[test]
fn readiness_is_asked_each_second_while_a_rollout_waits_else_each_five() {
    let looks = |pace| {
        let mut play = Play::of(Replica { pace, ..replica() });
        play.until("passed", good, passed);
        let mut asked = play.run(Duration::from_secs(30), good);
        asked.retain(|ask| *ask == Ask::Ready);
        asked.len()
    };
    assert_eq!((looks(Pace::Rollout), looks(Pace::Steady)), (30, 6));
    let starting = |_| said(503, &json!({"ready": false, "reason": "Starting"}));
    let mut play = Play::of(replica());
    let mut asked = play.run(Duration::from_secs(10), starting);
    asked.retain(|ask| *ask == Ask::Ready);
    assert_eq!(
        asked.len(),
        11,
        "one that is not ready is looked at each second"
    );
    assert_eq!(
        play.shown().readiness,
        Readiness::NotReady {
            reason: "Starting".to_owned(),
            message: "/ready answers 503 and does not say why".to_owned(),
            verdict: None,
        }
    );
}

#[test]
fn an_unbroken_row_of_yes_has_an_age_and_a_no_breaks_it() {
    let mut play = Play::of(replica());
    play.until("ready", good, is_ready);
    play.run(Duration::from_secs(12), good);
    let Readiness::Ready { for_seconds, .. } = play.shown().readiness else {
        panic!("{:?}", play.shown());
    };
    assert_eq!(for_seconds, 12);
    let draining = |ask| match ask {
        Ask::Ready => said(503, &json!({"ready": false, "reason": "Draining"})),
        ask => good(ask),
    };
    play.until("not ready", draining, |probe| !is_ready(probe));
    let again = play.until("ready again", good, is_ready).readiness;
    assert!(
        matches!(again, Readiness::Ready { for_seconds: 0, .. }),
        "{again:?}"
    );
}

#[test]
fn one_answer_that_does_not_come_is_no_end_a_refused_connection_is() {
    let silent = |_| timed_out();
    let mut play = Play::of(replica());
    play.until("passed", good, passed);
    while play.step(silent).0 != Ask::Ready {}
    assert!(is_ready(&play.shown()), "once");
    let (_, waited) = play.step(silent);
    assert!(waited <= SOON, "{waited:?}");
    play.until("gone", silent, |probe| !is_ready(probe));
    let mut play = Play::of(replica());
    play.until("passed", good, passed);
    while play.step(|_| refused()).0 != Ask::Ready {}
    assert_eq!(
        play.shown().readiness,
        Readiness::Unreachable {
            message: "connection refused".to_owned()
        }
    );
}

#[test]
fn fault_26_a_dead_head_and_a_wrong_shape_never_pass() {
    let dead = |ask| match ask {
        Ask::Question(_) => noul(0.625),
        ask => good(ask),
    };
    let nan = |ask| match ask {
        Ask::Question(4) => said(
            200,
            &json!({"answers": {"asks": {"type": "noul", "noul": null}}}),
        ),
        ask => good(ask),
    };
    let other = |ask| match ask {
        Ask::Question(_) => said(409, &json!({})),
        ask => good(ask),
    };
    type Server = fn(Ask) -> Result<Said, CallError>;
    for (server, reason) in [
        (dead as Server, Reason::DeadHead),
        (nan as Server, Reason::MalformedAnswers),
        (other as Server, Reason::ContractMismatch),
    ] {
        let mut play = Play::of(replica());
        play.run(Duration::from_secs(600), server);
        let questions = play.shown().questions;
        assert!(!questions.passed_all, "{reason:?}");
        let failed = questions.failed.unwrap();
        assert_eq!((failed.reason, failed.conclusive), (reason, true));
        assert!(questions.failures > 3, "{}", questions.failures);
    }
}

#[test]
fn control_plane_12_failures_in_a_row_are_ten_seconds_apart_and_a_right_answer_ends_them() {
    let mut play = Play::of(replica());
    play.until("passed", good, passed);
    let late = |ask| match ask {
        Ask::Question(_) => timed_out(),
        ask => good(ask),
    };
    let asked = |play: &mut Play| loop {
        let (ask, _) = play.step(late);
        if question(&ask) {
            return (ask, play.now.boot);
        }
    };
    let (first, at) = asked(&mut play);
    let (second, then) = asked(&mut play);
    assert_eq!(first, second, "the same question again");
    assert_eq!(then - at, APART);
    asked(&mut play);
    let questions = play.shown().questions;
    assert_eq!(questions.failures, 3);
    assert!(questions.passed_all, "it has passed once");
    assert_eq!(questions.failed.unwrap().reason, Reason::ProbeTimedOut);
    let healed = play.until("healed", good, |probe| probe.questions.failed.is_none());
    assert_eq!(healed.questions.failures, 0);
}

#[test]
fn a_late_answer_in_the_first_round_is_asked_again_soon_while_a_rollout_waits() {
    let mut play = Play::of(Replica {
        pace: Pace::Rollout,
        ..replica()
    });
    let late = |ask| match ask {
        Ask::Question(2) => timed_out(),
        ask => good(ask),
    };
    play.run(Duration::from_secs(25), late);
    let questions = play.shown().questions;
    assert_eq!(
        (questions.passed_all, questions.failures),
        (false, 3),
        "asked each second, counted at 0, 10 and 20"
    );
    play.until("passed", good, passed);
}

#[test]
fn a_server_that_is_busy_is_asked_again_and_only_a_long_row_is_a_failure() {
    let mut play = Play::of(replica());
    play.until("passed", good, passed);
    let busy = |ask| match ask {
        Ask::Question(_) => said(503, &json!({})),
        ask => good(ask),
    };
    play.run(Duration::from_secs(80), busy);
    assert_eq!(play.shown().questions.failures, 0);
    play.run(Duration::from_secs(20), busy);
    let questions = play.shown().questions;
    assert_eq!(questions.failures, 1);
    assert_eq!(questions.failed.unwrap().reason, Reason::ProbeTimedOut);
}

#[test]
fn a_server_that_hangs_counts_as_one_that_does_not_answer_questions() {
    let failing = || {
        said(
            503,
            &json!({"ready": false, "reason": "LoadFailed", "message": "no"}),
        )
    };
    let draining = || said(503, &json!({"ready": false, "reason": "Draining"}));
    let failures = |answer: &dyn Fn(Ask) -> Result<Said, CallError>| {
        let mut play = Play::of(replica());
        play.until("passed", good, passed);
        play.run(Duration::from_secs(60), answer);
        let questions = play.shown().questions;
        let counted = (
            questions.failures >= 3,
            questions.failed.map(|failed| failed.reason),
        );
        play.until("healed", good, |probe| {
            is_ready(probe) && probe.questions.failed.is_none()
        });
        counted
    };
    let timed = (true, Some(Reason::ProbeTimedOut));
    assert_eq!(failures(&|_| timed_out()), timed);
    assert_eq!(failures(&|_| failing()), timed);
    assert_eq!(failures(&|_| draining()), (false, None), "as it was told");
}

#[test]
fn another_checkpoint_behind_the_address_is_probed_anew() {
    let mut play = Play::of(replica());
    play.until("passed", good, passed);
    let other = |ask| match ask {
        Ask::Health => health("sha256:d2", "cpu", 0),
        ask => good(ask),
    };
    let probe = play.until("seen", other, |probe| !passed(probe));
    assert_eq!(probe.digest.as_deref(), Some("sha256:d2"));
    assert_eq!(probe.questions, Questions::default());
    play.until("passed again", other, passed);
}

#[test]
fn an_answer_names_the_checkpoint_before_the_next_look_does() {
    let mut play = Play::of(replica());
    play.until("passed", good, passed);
    let other = |ask| match ask {
        Ask::Question(_) => good(ask).map(|said| Said {
            checkpoint: Some("sha256:d2".to_owned()),
            ..said
        }),
        ask => good(ask),
    };
    play.until("named", other, |probe| {
        probe.digest.as_deref() == Some("sha256:d2")
    });
}

#[test]
fn a_fall_to_the_cpu_is_kept_until_a_pass_was_told() {
    let mut play = Play::of(replica());
    play.until("passed", good, passed);
    let fell = |ask| match ask {
        Ask::Health => health(DIGEST, "cuda", 2),
        ask => good(ask),
    };
    play.run(Duration::from_secs(60), fell);
    let device = play.state.told(play.now.boot).device;
    assert_eq!(
        (
            device.fallbacks,
            device.fallbacks_grew,
            device.claimed.as_deref()
        ),
        (2, true, Some("cuda"))
    );
    assert_eq!(device.last_reason.as_deref(), Some("no memory"));
    play.run(Duration::from_secs(60), fell);
    assert!(!play.shown().device.fallbacks_grew);
}

#[test]
fn a_server_that_claims_a_gpu_is_measured_from_time_to_time() {
    let mut play = Play::of(replica());
    let gpu = |ask| match ask {
        Ask::Health => health(DIGEST, "cuda", 0),
        ask => good(ask),
    };
    play.until("passed", gpu, passed);
    let asked = play.run(Duration::from_secs(60 * 21), gpu);
    let measured = asked.iter().filter(|ask| **ask == Ask::Latency(0)).count();
    let questions = asked.iter().filter(|ask| question(ask)).count();
    assert_eq!((measured, questions), (2, 21));
    play.until("passed", good, passed);
    let asked = play.run(Duration::from_secs(60 * 21), good);
    assert!(!asked.contains(&Ask::Latency(0)), "the CPU is not");
}

#[test]
fn control_plane_3_2_without_ready_an_answered_question_is_readiness() {
    let mut play = Play::of(replica());
    let plain = |ask| match ask {
        Ask::Ready => said(404, &json!({"detail": "Not Found"})),
        Ask::Health => said(200, &json!({"status": "ok", "device": "cpu"})),
        ask => good(ask),
    };
    let probe = play.until("passed", plain, passed);
    assert!(is_ready(&probe));
    assert_eq!(probe.digest, None);
    let asked = play.run(Duration::from_secs(60), plain);
    assert!(!asked.contains(&Ask::Ready), "asked once, never again");
    let silent = |ask| match ask {
        Ask::Question(_) => timed_out(),
        ask => plain(ask),
    };
    play.run(Duration::from_secs(65), silent);
    assert!(is_ready(&play.shown()), "one or two late answers are none");
    play.run(Duration::from_secs(30), silent);
    assert!(
        matches!(&play.shown().readiness, Readiness::NotReady { reason, .. } if reason == "ProbeTimedOut"),
        "{:?}",
        play.shown()
    );
    play.until("ready again", plain, is_ready);
    play.until("gone", |_| refused(), |probe| !is_ready(probe));
    assert!(matches!(
        play.shown().readiness,
        Readiness::Unreachable { .. }
    ));
    play.until("probed anew", plain, passed);
}

#[test]
fn a_server_that_is_said_to_speak_laya_is_never_asked_for_ready() {
    let mut play = Play::of(Replica {
        server_api: ServerApi::Laya,
        ..replica()
    });
    let silent = |ask| match ask {
        Ask::Ready => panic!("it does not know the question"),
        Ask::Health => said(200, &json!({"status": "ok"})),
        Ask::Question(_) | Ask::Latency(_) => timed_out(),
    };
    play.run(Duration::from_secs(60), silent);
    assert!(!is_ready(&play.shown()));
}

#[test]
fn an_external_server_that_was_away_may_be_another() {
    let external = Replica {
        revision: String::new(),
        ..replica()
    };
    for (replica, anew) in [(external, true), (replica(), false)] {
        let mut play = Play::of(replica);
        play.until("passed", good, passed);
        play.until("gone", |_| refused(), |probe| !is_ready(probe));
        let back = play.until("back", good, is_ready);
        assert_eq!(!passed(&back), anew);
    }
}

#[test]
fn without_the_wording_nothing_is_asked_and_that_is_said() {
    let contract = "sha256:unknown".to_owned();
    let mut play = Play::of(Replica {
        questions: None,
        contract: Some(contract.clone()),
        ..replica()
    });
    let asked = play.run(Duration::from_secs(60), good);
    assert!(!asked.iter().any(question));
    let failed = play.shown().questions.failed.unwrap();
    assert_eq!(
        (failed.reason, failed.conclusive),
        (Reason::QuestionsUnknown, false)
    );
    assert!(failed.message.contains(&contract), "{}", failed.message);
    let known = Replica {
        contract: Some(contract),
        ..replica()
    };
    play.state.rewatch(known, play.now.boot);
    play.until("passed", good, passed);
}

#[test]
fn recorded_answers_are_the_questions_where_there_are_any() {
    let recorded = |noul: f64| RecordedProbe {
        state: json!("recorded"),
        answers: [(
            "asks".to_owned(),
            RecordedAnswer {
                label: "false".to_owned(),
                probability: 1.0 - noul,
            },
        )]
        .into(),
    };
    let mut play = Play::of(Replica {
        recorded: Arc::from([recorded(0.1), recorded(0.2)]),
        ..replica()
    });
    let probe = play.until("passed", good, passed);
    assert_eq!(probe.questions.level, Some(ProbeLevel::Expected));
    let mut play = Play::of(Replica {
        recorded: Arc::from([recorded(0.1), recorded(0.3)]),
        ..replica()
    });
    play.run(Duration::from_secs(60), good);
    let failed = play.shown().questions.failed.unwrap();
    assert_eq!(failed.reason, Reason::WrongAnswers);
}

#[test]
fn of_an_external_server_with_several_checkpoints_the_one_that_answers_is_meant() {
    let mut play = Play::of(Replica {
        revision: String::new(),
        digest: None,
        ..replica()
    });
    let several = |ask| match ask {
        Ask::Health => said(
            200,
            &json!({"status": "ok", "loaded": ["a", "b"],
                "checkpoints": {"a": {"digest": "sha256:d1"}, "b": {"digest": "sha256:d2"}}}),
        ),
        ask => good(ask).map(|said| Said {
            checkpoint: Some("sha256:d2".to_owned()),
            ..said
        }),
    };
    let probe = play.until("passed", several, passed);
    assert_eq!(probe.digest.as_deref(), Some("sha256:d2"));
    play.run(Duration::from_secs(120), several);
    assert!(passed(&play.shown()), "it is not asked anew each time");
}
