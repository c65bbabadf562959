//! Both engines, given the same calls, answer the same and hold the same in the end, for any calls.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../conformance/engines.rs"]
mod engines;
#[allow(dead_code)]
#[path = "../conformance/fixtures.rs"]
mod fixtures;

use std::sync::Arc;

use jiff::SignedDuration;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};
use routing::bounded::Ratio;
use routing::provider_error::ErrorClass;
use routing::quota::ProviderFault;
use routing::record::{Decision, DecisionKind};
use store::{
    DatasetEdit, DecisionQuery, Escalation, ProviderFaultReport, Retention, RowWrite, Snapshot,
    Store, StoredRow,
};

use engines::Database;
use fixtures::{decision_at, minute, report_of, start, tenant};

/// Texts that databases are known to stumble over.
const ODD: [&str; 4] = ["c", "\0nul", "ümlaut ' \" \\ %", "\u{10FFFF}0"];
const BODIES: [&str; 4] = [
    r#""result":"success","tests_passed":true"#,
    r#""result":"failure","usage":{"input_tokens":7,"output_tokens":3,"cost_usd":0.125}"#,
    r#""result":"provider_error","provider_error":{"status":429,"message":"a\u0000b"}"#,
    r#""result":"success","corrected":true,"usage":{"cost_usd":2}"#,
];
const DECISIONS: usize = 6;

#[derive(Debug, Clone)]
enum Call {
    Keep(usize),
    Correct(usize),
    Outcome(usize, u32, usize, Option<bool>),
    Answer(usize, u32, usize),
    Fault(usize, ErrorClass, Option<ProviderFault>),
    Measure(usize),
    Escalate(usize, usize),
    Import(usize),
    Edit(Vec<(usize, Option<usize>)>),
    Snapshot(usize, i64),
    Prune(u64, i64),
}

fn call() -> impl Strategy<Value = Call> {
    let decision = 0..DECISIONS;
    let odd = 0..ODD.len();
    let class = prop::sample::select(vec![ErrorClass::RateLimited, ErrorClass::Auth]);
    let fault = prop::option::of(prop::sample::select(vec![
        ProviderFault::Exhausted,
        ProviderFault::Unavailable,
    ]));
    prop_oneof![
        4 => decision.clone().prop_map(Call::Keep),
        2 => decision.clone().prop_map(Call::Correct),
        6 => (decision.clone(), 1..3u32, 0..BODIES.len(), prop::option::of(any::<bool>()))
            .prop_map(|(decision, attempt, body, corrected)| Call::Outcome(decision, attempt, body, corrected)),
        1 => (decision.clone(), 1..3u32, odd.clone()).prop_map(|(of, attempt, text)| Call::Answer(of, attempt, text)),
        2 => (decision.clone(), class, fault).prop_map(|(of, class, fault)| Call::Fault(of, class, fault)),
        1 => odd.clone().prop_map(Call::Measure),
        1 => (decision, odd.clone()).prop_map(|(of, key)| Call::Escalate(of, key)),
        1 => (0..4usize).prop_map(Call::Import),
        3 => vec((0..4usize, prop::option::of(odd.clone())), 0..4).prop_map(Call::Edit),
        1 => (odd, 0..3i64).prop_map(|(digest, days)| Call::Snapshot(digest, days * 20)),
        1 => (0..4u64, 0..4i64).prop_map(|(most, days)| Call::Prune(most, days * 40)),
    ]
}

/// What both engines are given.
struct Case {
    tenant: Arc<str>,
    decisions: Vec<Arc<Decision>>,
    born: Vec<Arc<Decision>>,
}

impl Case {
    fn new() -> Self {
        let made = |number: usize| {
            let hours = i64::try_from(number).unwrap() * 20;
            let at = start() - SignedDuration::from_hours(hours);
            let mut decision = decision_at("Fix the pager", at);
            decision.conversation_id = ODD.get(number % 5).map(|text| (*text).to_owned());
            decision.selected.explored = number == 1;
            if number == 2 {
                decision.kind = DecisionKind::Direct;
            }
            Arc::new(decision)
        };
        Self {
            tenant: tenant("same"),
            decisions: (0..DECISIONS).map(made).collect(),
            born: (0..DECISIONS).map(made).collect(),
        }
    }

    /// Makes a call; what it answered, as text.
    async fn make(&self, store: &Store, number: usize, call: &Call) -> String {
        let at = minute(i64::try_from(number).unwrap());
        let tenant = &self.tenant;
        match call.clone() {
            Call::Keep(of) => {
                let (decision, records) = (self.decisions[of].clone(), of != 3);
                let client = Some(ODD[of % ODD.len()].to_owned());
                format!(
                    "{:?}",
                    store.keep_decision_for(tenant, decision, client, records)
                )
            }
            Call::Correct(of) => format!("{:?}", store.correct(tenant, self.decisions[of].id, at)),
            Call::Outcome(of, attempt, body, corrected) => {
                let mut said = report_of(self.decisions[of].id, attempt, BODIES[body]);
                said.corrected = corrected.or(said.corrected);
                format!("{:?}", store.record_outcome(tenant, said, at).await)
            }
            Call::Answer(of, attempt, text) => {
                let id = self.decisions[of].id;
                format!(
                    "{:?}",
                    store.keep_answer(tenant, id, attempt, ODD[text].to_owned())
                )
            }
            Call::Fault(of, class, fault) => {
                let report = ProviderFaultReport {
                    decision: self.decisions[of].id,
                    provider: "openai".to_owned(),
                    class,
                    fault,
                    retry_after: None,
                };
                format!("{:?}", store.provider_fault(tenant, report, at).await)
            }
            Call::Measure(provider) => {
                let left = Ratio::new(0.5).unwrap();
                format!(
                    "{:?}",
                    store.measure_quota(tenant, ODD[provider], left, at).await
                )
            }
            Call::Escalate(of, key) => {
                let kept = Escalation {
                    decision: self.decisions[of].id,
                    key: ODD[key].to_owned(),
                    score: 1.5,
                    answer: format!("{number}"),
                    new_decision: Some(self.born[of].clone()),
                    client: None,
                    records: !of.is_multiple_of(2),
                };
                format!("{:?}", store.keep_escalation(tenant, kept, at).await)
            }
            Call::Import(to) => {
                let said = report_of(self.decisions[0].id, 1, BODIES[0]);
                let seen =
                    routing::outcome::first_event(&self.decisions[0], &said, false, at).unwrap();
                let items = ODD[..to]
                    .iter()
                    .map(|key| ((*key).to_owned(), seen.clone()));
                format!("{:?}", store.import_evidence(tenant, items.collect()).await)
            }
            Call::Edit(list) => {
                let writes: Vec<_> = list.iter().map(|(row, line)| write(*row, *line)).collect();
                let edit: DatasetEdit<u64> = Arc::new(move |rows| (writes.clone(), rows.revision));
                format!("{:?}", store.edit_dataset(tenant, edit).await)
            }
            Call::Snapshot(digest, days) => {
                let frozen = Snapshot {
                    digest: ODD[digest].to_owned(),
                    body: format!("{number}"),
                };
                let at = start() - SignedDuration::from_hours(24 * days);
                format!("{:?}", store.keep_snapshot(tenant, frozen, at).await)
            }
            Call::Prune(most_decisions, days) => {
                // It looks at what is on disk.
                settle(store).await;
                let retention = Retention {
                    days: 3,
                    most_decisions,
                };
                let at = start() + SignedDuration::from_hours(days);
                // How much it removes depends on what other cases left.
                format!(
                    "{:?}",
                    store
                        .prune(retention, at)
                        .await
                        .map(|pruned| pruned.is_some())
                )
            }
        }
    }

    /// Everything that can be read, as text.
    async fn all(&self, store: &Store, after: u64) -> Vec<String> {
        let tenant = &self.tenant;
        let mut all = Vec::new();
        for decision in self.decisions.iter().chain(&self.born) {
            all.push(format!("{:?}", store.decision(tenant, decision.id).await));
            for key in ODD {
                all.push(format!(
                    "{:?}",
                    store.escalation(tenant, decision.id, key).await
                ));
            }
        }
        for text in ODD {
            all.push(format!(
                "{:?}",
                store.last_of_conversation(tenant, text).await
            ));
            all.push(format!("{:?}", store.snapshot(tenant, text, start()).await));
            let query = DecisionQuery {
                conversation_id: Some(text.to_owned()),
                limit: 1,
                ..DecisionQuery::default()
            };
            all.push(format!("{:?}", store.decisions(tenant, &query).await));
        }
        let query = DecisionQuery {
            limit: 3,
            since: Some(start() - SignedDuration::from_hours(70)),
            ..DecisionQuery::default()
        };
        let page = store.decisions(tenant, &query).await.unwrap();
        let next = DecisionQuery {
            cursor: page.next_cursor.clone(),
            ..query
        };
        all.push(format!("{page:?}"));
        all.push(format!("{:?}", store.decisions(tenant, &next).await));
        all.push(format!(
            "{:?}",
            store.report_rows(tenant, jiff::Timestamp::UNIX_EPOCH).await
        ));
        all.push(format!("{:?}", store.dataset(tenant).await));
        for row in 0..4 {
            all.push(format!("{:?}", store.row_versions(tenant, &id(row)).await));
        }
        let changes = store.changes(after).await.unwrap();
        let own = changes.events.iter().filter(|(owner, _)| owner == tenant);
        all.extend(own.map(|(_, event)| format!("{event:?}")));
        all
    }
}

fn id(row: usize) -> String {
    format!("s{row:05}")
}

fn write(row: usize, line: Option<usize>) -> RowWrite {
    match line {
        Some(line) => RowWrite::Put(StoredRow {
            id: id(row),
            line: ODD[line].to_owned(),
        }),
        None => RowWrite::Remove(id(row)),
    }
}

/// Everything queued before is on disk after it.
async fn settle(store: &Store) {
    let edit: DatasetEdit<()> = Arc::new(|_| (Vec::new(), ()));
    store.edit_dataset(&"settle".into(), edit).await.unwrap();
}

#[test]
#[ignore = "needs a PostgreSQL: cargo xtask test"]
fn both_engines_hold_the_same() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (file, server) = runtime.block_on(async {
        let server = Database::postgres().await;
        (Database::sqlite(), server)
    });
    let stores = runtime.block_on(async { [file.open().await, server.open().await] });
    let config = Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    };
    let calls = vec(call(), 1..60);
    let ran = TestRunner::new(config).run(&calls, |calls| {
        let case = Case::new();
        let (mut answers, mut held) = (Vec::new(), Vec::new());
        for store in &stores {
            let seen = runtime.block_on(async {
                settle(store).await;
                let mut after = 0;
                loop {
                    let changes = store.changes(after).await.unwrap();
                    if changes.events.is_empty() {
                        break;
                    }
                    after = changes.last;
                }
                let mut answers = Vec::new();
                for (number, call) in calls.iter().enumerate() {
                    answers.push(case.make(store, number, call).await);
                }
                settle(store).await;
                (answers, case.all(store, after).await)
            });
            answers.push(seen.0);
            held.push(seen.1);
        }
        same("answers", &answers)?;
        same("holds", &held)?;
        Ok(())
    });
    if let Err(TestError::Fail(reason, calls)) = ran {
        panic!("{reason}\nafter {calls:#?}");
    }
}

/// The first thing that differs, not all that is there.
fn same(what: &str, seen: &[Vec<String>]) -> Result<(), TestCaseError> {
    prop_assert_eq!(seen[0].len(), seen[1].len(), "{}", what);
    for (number, (file, server)) in seen[0].iter().zip(&seen[1]).enumerate() {
        prop_assert_eq!(file, server, "{} {}", what, number);
    }
    Ok(())
}
