//! Decision records.

use std::sync::Arc;

use routing::record::DecisionKind;
use store::{Kept, StoredDecision};
use uuid::Uuid;

use crate::engines::Database;
use crate::fixtures::{PASSED, decision, in_conversation, minute, report, tenant};

/// Everything queued before is on disk after it.
pub(crate) async fn settle(store: &store::Store) {
    let unknown = report(Uuid::nil(), PASSED);
    let tenant = tenant("settle");
    store
        .record_outcome(&tenant, unknown, minute(0))
        .await
        .unwrap();
}

pub(crate) async fn a_decision_is_read_back_as_it_was(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("kept");
    let decision = decision();
    for _ in 0..2 {
        let kept = store.keep_decision(&tenant, Arc::new(decision.clone()));
        assert_eq!(kept, Kept::Queued);
    }
    settle(&store).await;
    let wanted = StoredDecision {
        decision: decision.clone(),
        corrected: false,
        outcomes: Vec::new(),
        born_score: 0.0,
        client: None,
        records: true,
    };
    let stored = store.decision(&tenant, decision.id).await.unwrap();
    assert_eq!(stored, Some(wanted));
    let second = database.open().await;
    assert!(
        second
            .decision(&tenant, decision.id)
            .await
            .unwrap()
            .is_some()
    );
}

pub(crate) async fn the_last_of_a_conversation_is_the_newest_task(database: &Database) {
    let store = database.open().await;
    let (own, other) = (tenant("own"), tenant("other"));
    let first = in_conversation("c", minute(1));
    let last = in_conversation("c", minute(3));
    let mut direct = in_conversation("c", minute(4));
    direct.kind = DecisionKind::Direct;
    let elsewhere = in_conversation("d", minute(5));
    for decision in [&last, &first, &direct, &elsewhere] {
        let kept = store.keep_decision(&own, Arc::new(decision.clone()));
        assert_eq!(kept, Kept::Queued);
    }
    settle(&store).await;
    assert_eq!(store.last_of_conversation(&own, "c").await, Ok(Some(last)));
    assert_eq!(store.last_of_conversation(&own, "e").await, Ok(None));
    assert_eq!(store.last_of_conversation(&other, "c").await, Ok(None));
}
