//! Reports of attempts.

use std::sync::Arc;

use routing::history::Counts;
use routing::provider_error::ErrorClass;
use store::{DecisionQuery, Escalation, Event, Kept, Recorded, Store, StoredDecision};
use uuid::Uuid;

use crate::engines::Database;
use crate::fixtures::{PASSED, decision, minute, report, tenant};

async fn evidence(store: &Store, tenant: &str) -> Vec<(Option<Counts>, Option<Counts>)> {
    let changes = store.changes(0).await.unwrap();
    let own = changes
        .events
        .iter()
        .filter(|(owner, _)| **owner == *tenant);
    own.filter_map(|(_, event)| match event {
        Event::Evidence(seen) => Some((
            seen.observation.map(|seen| seen.counts),
            seen.replaces.map(|seen| seen.counts),
        )),
        _ => None,
    })
    .collect()
}

pub(crate) async fn an_outcome_is_recorded_once(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("outcome");
    let decision = Arc::new(decision());
    assert_eq!(store.keep_decision(&tenant, decision.clone()), Kept::Queued);
    let first = report(decision.id, PASSED);
    let say = |report| store.record_outcome(&tenant, report, minute(1));
    let new = Recorded::New {
        decision: decision.clone(),
    };
    assert_eq!(say(first.clone()).await, Ok(new));
    let same = |answer| Recorded::Same {
        decision: decision.clone(),
        answer,
    };
    assert_eq!(say(first.clone()).await, Ok(same(None)));
    for answer in ["{}", "later"] {
        assert_eq!(
            store.keep_answer(&tenant, decision.id, 1, answer.to_owned()),
            Kept::Queued
        );
    }
    assert_eq!(say(first.clone()).await, Ok(same(Some("{}".to_owned()))));
    let other = report(decision.id, r#""result":"failure""#);
    let recorded = Box::new(first.clone());
    assert_eq!(say(other).await, Ok(Recorded::Conflict { recorded }));
    let seen = evidence(&store, &tenant).await;
    assert_eq!(seen, [(Some(Counts::Success), None)]);
}

pub(crate) async fn a_stranger_has_no_such_decision(database: &Database) {
    let store = database.open().await;
    let (owner, stranger) = (tenant("owner"), tenant("stranger"));
    let decision = Arc::new(decision());
    assert_eq!(store.keep_decision(&owner, decision.clone()), Kept::Queued);
    let said = report(decision.id, PASSED);
    let recorded = store
        .record_outcome(&stranger, said.clone(), minute(1))
        .await;
    assert_eq!(recorded, Ok(Recorded::UnknownDecision));
    let unknown = report(Uuid::nil(), PASSED);
    let recorded = store.record_outcome(&owner, unknown, minute(1)).await;
    assert_eq!(recorded, Ok(Recorded::UnknownDecision));
    assert!(store.record_outcome(&owner, said, minute(1)).await.is_ok());
    assert_eq!(store.decision(&stranger, decision.id).await, Ok(None));
    assert!(store.decision(&owner, decision.id).await.unwrap().is_some());
}

pub(crate) async fn a_correction_takes_the_place_of_the_success(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("corrected");
    let decision = Arc::new(decision());
    assert_eq!(store.keep_decision(&tenant, decision.clone()), Kept::Queued);
    let plain = report(decision.id, PASSED);
    let with = |corrected| store::StoredOutcome {
        corrected,
        ..store::StoredOutcome {
            report: plain.clone(),
            corrected: false,
            recorded: minute(1),
        }
    };
    store
        .record_outcome(&tenant, plain.clone(), minute(1))
        .await
        .unwrap();
    for (corrected, changes) in [(true, true), (true, false), (false, true)] {
        let mut said = plain.clone();
        said.corrected = Some(corrected);
        let recorded = store
            .record_outcome(&tenant, said, minute(2))
            .await
            .unwrap();
        let is_new = matches!(recorded, Recorded::Corrected { .. });
        assert_eq!(is_new, changes, "corrected: {corrected}");
        let stored = store.decision(&tenant, decision.id).await.unwrap().unwrap();
        assert_eq!(stored.outcomes, [with(corrected)]);
    }
    // The same without a word about it changes nothing.
    store
        .record_outcome(&tenant, plain.clone(), minute(3))
        .await
        .unwrap();
    let (success, failure) = (Some(Counts::Success), Some(Counts::Failure));
    let seen = evidence(&store, &tenant).await;
    assert_eq!(
        seen,
        [(success, None), (failure, success), (success, failure)]
    );
}

pub(crate) async fn the_next_message_corrects_before_or_after_the_report(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("follow-up");
    for (name, mark_first) in [("mark first", true), ("report first", false)] {
        let decision = Arc::new(decision());
        assert_eq!(store.keep_decision(&tenant, decision.clone()), Kept::Queued);
        let said = report(decision.id, PASSED);
        if mark_first {
            assert_eq!(store.correct(&tenant, decision.id, minute(1)), Kept::Queued);
            store
                .record_outcome(&tenant, said, minute(2))
                .await
                .unwrap();
        } else {
            store
                .record_outcome(&tenant, said, minute(1))
                .await
                .unwrap();
            for _ in 0..2 {
                assert_eq!(store.correct(&tenant, decision.id, minute(2)), Kept::Queued);
            }
            // Anything acknowledged comes after what was queued.
            let unknown = report(Uuid::nil(), PASSED);
            store
                .record_outcome(&tenant, unknown, minute(3))
                .await
                .unwrap();
        }
        let stored = store.decision(&tenant, decision.id).await.unwrap().unwrap();
        assert!(stored.outcomes[0].corrected, "{name}");
        assert_eq!(stored.corrected, mark_first, "{name}");
    }
    let (success, failure) = (Some(Counts::Success), Some(Counts::Failure));
    let seen = evidence(&store, &tenant).await;
    assert_eq!(seen, [(failure, None), (success, None), (failure, success)]);
}

pub(crate) async fn what_a_provider_said_is_not_kept(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("said");
    for (name, error, class, same, other) in [
        (
            "a status decides",
            r#"{"status":429,"message":"secret"}"#,
            ErrorClass::RateLimited,
            r#"{"status":429,"message":"secret, again"}"#,
            r#"{"status":503,"message":"secret"}"#,
        ),
        (
            "the message decides",
            r#"{"message":"prompt is too long: secret"}"#,
            ErrorClass::ContextOverflow,
            r#"{"class":"context_overflow"}"#,
            r#"{"message":"secret"}"#,
        ),
        (
            "the client decides",
            r#"{"class":"auth","message":"prompt is too long: secret"}"#,
            ErrorClass::Auth,
            r#"{"class":"auth"}"#,
            r#"{"message":"prompt is too long: secret"}"#,
        ),
    ] {
        let decision = Arc::new(decision());
        assert_eq!(store.keep_decision(&tenant, decision.clone()), Kept::Queued);
        let say = |error: &str| {
            let body = format!(r#""result":"provider_error","provider_error":{error}"#);
            store.record_outcome(&tenant, report(decision.id, &body), minute(1))
        };
        assert!(
            matches!(say(error).await, Ok(Recorded::New { .. })),
            "{name}"
        );
        let stored = store.decision(&tenant, decision.id).await.unwrap().unwrap();
        let facts = stored.outcomes[0].report.provider_error.clone().unwrap();
        assert_eq!(
            (facts.class, &facts.message),
            (Some(class), &None),
            "{name}"
        );
        for again in [error, same] {
            let recorded = say(again).await;
            assert!(
                matches!(recorded, Ok(Recorded::Same { .. })),
                "{name}: {recorded:?}"
            );
        }
        let recorded = say(other).await;
        assert!(
            matches!(recorded, Ok(Recorded::Conflict { .. })),
            "{name}: {recorded:?}"
        );
    }
}

pub(crate) async fn an_outcome_that_is_not_wanted_is_not_stored(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("silent");
    let parent = decision();
    let [kept, born] = [(); 2].map(|()| Arc::new(decision()));
    let client = Some("{}".to_owned());
    let queued = store.keep_decision_for(&tenant, kept.clone(), client.clone(), false);
    assert_eq!(queued, Kept::Queued);
    let escalation = Escalation {
        decision: parent.id,
        key: "3".to_owned(),
        score: 3.0,
        answer: "a".to_owned(),
        new_decision: Some(born.clone()),
        client: client.clone(),
        records: false,
    };
    store
        .keep_escalation(&tenant, escalation, minute(1))
        .await
        .unwrap();
    for (name, decision, born_score) in [("kept", kept, 0.0), ("born", born, 3.0)] {
        let wanted = StoredDecision {
            decision: (*decision).clone(),
            corrected: false,
            outcomes: Vec::new(),
            born_score,
            client: client.clone(),
            records: false,
        };
        let said = report(
            decision.id,
            r#""result":"success","tests_passed":true,"usage":{"input_tokens":5,"cost_usd":0.5}"#,
        );
        for at in [2, 3] {
            let recorded = store
                .record_outcome(&tenant, said.clone(), minute(at))
                .await;
            let decision = decision.clone();
            assert_eq!(recorded, Ok(Recorded::NotWanted { decision }), "{name}");
            let queued = store.correct(&tenant, wanted.decision.id, minute(at));
            assert_eq!(queued, Kept::Queued);
        }
        crate::decisions::settle(&store).await;
        let stored = store.decision(&tenant, decision.id).await;
        assert_eq!(stored, Ok(Some(wanted)), "{name}");
    }
    let page = store.decisions(&tenant, &DecisionQuery::default()).await;
    let records = page
        .unwrap()
        .decisions
        .into_iter()
        .map(|stored| stored.records);
    assert_eq!(records.collect::<Vec<_>>(), [false, false]);
    let told = crate::quota::events(&store, &tenant).await;
    assert_eq!(told, [] as [Event; 0], "neither evidence nor costs");
}
