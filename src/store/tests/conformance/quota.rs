//! What is left of providers, escalations and imported evidence.

use std::sync::Arc;

use jiff::SignedDuration;
use routing::bounded::Ratio;
use routing::outcome::class_of;
use routing::provider_error::ErrorClass;
use routing::quota::{ProviderFault, QuotaState};
use store::{Escalation, Event, Kept, ProviderFaultReport, Store};
use uuid::Uuid;

use crate::engines::Database;
use crate::fixtures::{decision, minute, report, report_of, start, tenant};

/// The events of a tenant.
pub(crate) async fn events(store: &Store, tenant: &str) -> Vec<Event> {
    let changes = store.changes(0).await.unwrap();
    let own = changes.events.into_iter();
    own.filter_map(|(owner, event)| (*owner == *tenant).then_some(event))
        .collect()
}

pub(crate) async fn errors_in_a_row_are_counted_and_punished(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("faults");
    let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let mut wanted = QuotaState::default();
    let limited = (ErrorClass::RateLimited, Some(ProviderFault::Exhausted));
    let gone = (ErrorClass::Unavailable, Some(ProviderFault::Unavailable));
    for (name, decision, (class, fault), at, in_a_row) in [
        ("first", one, limited, 0, 1),
        ("second", one, limited, 5, 2),
        ("another decision", other, limited, 5, 1),
        ("another class", one, gone, 6, 1),
        ("and again", one, gone, 16, 2),
        ("too late", one, gone, 27, 1),
        (
            "no fault of the provider",
            one,
            (ErrorClass::Auth, None),
            28,
            1,
        ),
    ] {
        let retry_after = Some(SignedDuration::from_secs(30));
        let report = ProviderFaultReport {
            decision,
            provider: "openai".to_owned(),
            class,
            fault,
            retry_after,
        };
        if let Some(fault) = fault {
            wanted = wanted.after_fault(fault, retry_after, minute(at));
        }
        let noted = store.provider_fault(&tenant, report, minute(at)).await;
        assert_eq!(noted, Ok((wanted, in_a_row)), "{name}");
    }
    let left = Ratio::new(0.25).unwrap();
    let measured = store
        .measure_quota(&tenant, "openai", left, minute(99))
        .await;
    wanted = wanted.after_measure(left, minute(99));
    assert_eq!(measured, Ok(wanted));
    let latest = Event::Quota {
        provider: "openai".to_owned(),
        state: wanted,
    };
    assert_eq!(
        events(&store, &tenant).await,
        [latest],
        "only the latest is told"
    );
}

pub(crate) async fn costs_are_added_once_per_attempt(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("costs");
    let decision = Arc::new(decision());
    assert_eq!(store.keep_decision(&tenant, decision.clone()), Kept::Queued);
    for (attempt, cost) in [(1, 0.5), (1, 0.5), (2, 0.25)] {
        let body = format!(r#""result":"failure","usage":{{"cost_usd":{cost}}}"#);
        let said = report_of(decision.id, attempt, &body);
        store
            .record_outcome(&tenant, said, minute(1))
            .await
            .unwrap();
    }
    let told = events(&store, &tenant).await;
    let spent = told.iter().find_map(|event| match event {
        Event::Quota { provider, state } if *provider == decision.selected.provider => {
            state.spent.map(|spent| spent.usd.get())
        }
        _ => None,
    });
    assert_eq!(spent, Some(0.75));
}

pub(crate) async fn an_escalation_is_answered_once(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("escalation");
    let parent = decision();
    let made = |answer: &str| {
        let decision = Arc::new(decision());
        let kept = Escalation {
            decision: parent.id,
            key: "3.5".to_owned(),
            score: 3.5,
            answer: answer.to_owned(),
            new_decision: Some(decision.clone()),
            client: None,
            records: true,
        };
        (decision, kept)
    };
    let (first, kept) = made("first");
    let answer = store.keep_escalation(&tenant, kept, minute(1)).await;
    assert_eq!(answer, Ok("first".to_owned()));
    let (second, kept) = made("second");
    let answer = store.keep_escalation(&tenant, kept, minute(2)).await;
    assert_eq!(answer, Ok("first".to_owned()), "the first one stands");
    let standing = store.escalation(&tenant, parent.id, "3.5").await;
    assert_eq!(standing, Ok(Some("first".to_owned())));
    assert_eq!(store.escalation(&tenant, parent.id, "4").await, Ok(None));
    let born = store.decision(&tenant, first.id).await.unwrap().unwrap();
    assert!((born.born_score - 3.5).abs() < f64::EPSILON);
    assert_eq!(store.decision(&tenant, second.id).await, Ok(None));
}

pub(crate) async fn evidence_is_imported_once(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("import");
    let decision = decision();
    let body =
        r#""result":"success","tests_passed":true,"usage":{"input_tokens":5,"output_tokens":7}"#;
    let said = report(decision.id, body);
    let evidence = routing::outcome::first_event(&decision, &said, false, start()).unwrap();
    let items = |from: usize, to: usize| -> Vec<_> {
        let number = from..to;
        number
            .map(|n| (format!("task-{n}"), evidence.clone()))
            .collect()
    };
    assert_eq!(store.import_evidence(&tenant, items(0, 700)).await, Ok(700));
    assert_eq!(
        store.import_evidence(&tenant, items(600, 800)).await,
        Ok(100)
    );
    let told = events(&store, &tenant).await;
    assert_eq!(told.len(), 800);
    assert!(
        told.iter()
            .all(|event| *event == Event::Evidence(evidence.clone()))
    );
}

pub(crate) async fn an_exploration_is_told_once(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("explored");
    let mut decision = decision();
    decision.selected.explored = true;
    for _ in 0..2 {
        let kept = store.keep_decision(&tenant, Arc::new(decision.clone()));
        assert_eq!(kept, Kept::Queued);
        crate::decisions::settle(&store).await;
    }
    let explored = Event::Explored {
        class: class_of(&decision),
        at: decision.created,
    };
    assert_eq!(events(&store, &tenant).await, [explored]);
}
