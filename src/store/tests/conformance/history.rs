//! Lists, reports and the change feed; what is removed in the end.

use std::sync::Arc;

use decision::vocabulary::Tier;
use jiff::SignedDuration;
use routing::bounded::Ratio;
use routing::provider_error::ErrorClass;
use routing::quota::ProviderFault;
use routing::record::DecisionKind;
use store::{
    DecisionQuery, Escalation, Event, Kept, ProviderFaultReport, ReportRow, Retention, Snapshot,
    Store, StoreError,
};
use uuid::Uuid;

use crate::decisions::settle;
use crate::engines::Database;
use crate::fixtures::{
    PASSED, decision_at, in_conversation, minute, report, report_of, start, tenant,
};
use crate::quota::events;

async fn pages(store: &Store, tenant: &str, mut query: DecisionQuery) -> Vec<Vec<Uuid>> {
    let mut pages = Vec::new();
    loop {
        let page = store.decisions(tenant, &query).await.unwrap();
        pages.push(
            page.decisions
                .iter()
                .map(|stored| stored.decision.id)
                .collect(),
        );
        match page.next_cursor {
            None => return pages,
            cursor => query.cursor = cursor,
        }
    }
}

pub(crate) async fn decisions_come_in_pages_newest_first(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("pages");
    // Two of each minute, so that ids decide.
    let mut made: Vec<_> = (0..6)
        .map(|number| {
            let conversation = if number % 3 == 0 { "c" } else { "d" };
            in_conversation(conversation, minute(number / 2))
        })
        .collect();
    for decision in &made {
        let kept = store.keep_decision(&tenant, Arc::new(decision.clone()));
        assert_eq!(kept, Kept::Queued);
    }
    let said = report(made[0].id, PASSED);
    store
        .record_outcome(&tenant, said.clone(), minute(9))
        .await
        .unwrap();
    made.sort_by_key(|decision| std::cmp::Reverse((decision.created, decision.id)));
    let ids: Vec<_> = made.iter().map(|decision| decision.id).collect();
    let of = |conversation: &str| -> Vec<Uuid> {
        let own = made
            .iter()
            .filter(|decision| decision.conversation_id.as_deref() == Some(conversation));
        own.map(|decision| decision.id).collect()
    };
    let query = DecisionQuery::default();
    assert_eq!(
        pages(&store, &tenant, query.clone()).await,
        std::slice::from_ref(&ids)
    );
    let by = |limit| DecisionQuery {
        limit,
        ..query.clone()
    };
    let chunks: Vec<_> = ids.chunks(2).map(<[_]>::to_vec).collect();
    assert_eq!(pages(&store, &tenant, by(2)).await, chunks);
    let chunks: Vec<_> = ids.chunks(5).map(<[_]>::to_vec).collect();
    assert_eq!(pages(&store, &tenant, by(5)).await, chunks);
    let of_c = DecisionQuery {
        conversation_id: Some("c".to_owned()),
        ..by(1)
    };
    let chunks: Vec<_> = of("c").chunks(1).map(<[_]>::to_vec).collect();
    assert_eq!(pages(&store, &tenant, of_c).await, chunks);
    let recent = DecisionQuery {
        since: Some(minute(2)),
        ..query.clone()
    };
    assert_eq!(pages(&store, &tenant, recent).await, [ids[..2].to_vec()]);
    let page = store.decisions(&tenant, &query).await.unwrap();
    let told: Vec<_> = page
        .decisions
        .iter()
        .map(|stored| stored.outcomes.len())
        .collect();
    let wanted: Vec<_> = ids
        .iter()
        .map(|id| usize::from(*id == said.decision_id))
        .collect();
    assert_eq!(told, wanted);
    let bad = DecisionQuery {
        cursor: Some("x".to_owned()),
        ..query
    };
    assert_eq!(
        store.decisions(&tenant, &bad).await,
        Err(StoreError::BadCursor)
    );
}

pub(crate) async fn a_page_ends_before_it_is_too_large(database: &Database) {
    let store = database.open().await;
    let mebibytes = |count: usize| count << 20;
    for (name, sizes, limit, wanted) in [
        ("small", &[0, 0, 0][..], 500, &[3][..]),
        ("three fit", &[mebibytes(1); 4], 500, &[3, 1]),
        ("one does not", &[0, mebibytes(5), 0], 500, &[1, 1, 1]),
        ("alone", &[mebibytes(5)], 500, &[1]),
        ("the limit is first", &[mebibytes(1); 4], 2, &[2, 2]),
    ] {
        let tenant = tenant("large");
        let mut made = Vec::new();
        for (size, minutes) in sizes.iter().zip(0..) {
            let mut decision = in_conversation("c", minute(-minutes));
            decision.request = Some("x".repeat(*size));
            made.push(decision.id);
            let kept = store.keep_decision(&tenant, Arc::new(decision));
            assert_eq!(kept, Kept::Queued);
        }
        settle(&store).await;
        for conversation_id in [None, Some("c".to_owned())] {
            let query = DecisionQuery {
                conversation_id,
                limit,
                ..DecisionQuery::default()
            };
            let pages = pages(&store, &tenant, query).await;
            let lengths: Vec<_> = pages.iter().map(Vec::len).collect();
            assert_eq!(lengths, wanted, "{name}");
            assert_eq!(pages.concat(), made, "{name}");
        }
    }
}

pub(crate) async fn a_report_sums_up_what_happened(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("report");
    let mut made: Vec<_> = (0..5)
        .map(|_| decision_at("Fix the pager", minute(1)))
        .collect();
    made[1].kind = DecisionKind::Escalation;
    made[2].kind = DecisionKind::Provider;
    made[2].selected.explored = true;
    made[3].kind = DecisionKind::Direct;
    made.push(decision_at("Fix the pager", minute(-60)));
    for decision in &made {
        let kept = store.keep_decision(&tenant, Arc::new(decision.clone()));
        assert_eq!(kept, Kept::Queued);
    }
    let used = r#""usage":{"input_tokens":100,"cached_input_tokens":10,"cache_write_tokens":1,"output_tokens":5,"cost_usd":0.5}"#;
    let huge = format!(
        r#""result":"failure","usage":{{"input_tokens":{}}}"#,
        u64::MAX
    );
    for (decision, attempt, body) in [
        (0, 1, format!(r#""result":"failure",{used}"#)),
        (0, 2, format!("{PASSED},{used}")),
        (1, 1, r#""result":"aborted""#.to_owned()),
        (2, 1, huge),
        (3, 1, format!("{PASSED},{used}")),
    ] {
        let said = report_of(made[decision].id, attempt, &body);
        store
            .record_outcome(&tenant, said, minute(2))
            .await
            .unwrap();
    }
    let cost = made[0].selected.estimate.cost_usd.map(|cost| cost.get());
    let savings = made[0]
        .counterfactual
        .as_ref()
        .and_then(|than| than.savings_usd);
    let unknown = |known: bool| if known { 0 } else { 4 };
    let wanted = ReportRow {
        tier: made[0].selected.tier,
        source: made[0].assessment.source,
        profile: made[0].profile.clone(),
        count: 4,
        judged: 2,
        successes: 1,
        escalations: 1,
        provider_moves: 1,
        explored: 1,
        estimated_cost: cost.unwrap_or(0.0) * 4.0,
        unknown_cost: unknown(cost.is_some()),
        estimated_savings: savings.unwrap_or(0.0) * 4.0,
        unknown_savings: unknown(savings.is_some()),
        reported_cost: 1.0,
        reported_cost_count: 1,
        input_tokens: 200 + 1_000_000_000_000,
        cached_input_tokens: 20,
        cache_write_tokens: 2,
        output_tokens: 10,
    };
    assert_eq!(store.report_rows(&tenant, start()).await, Ok(vec![wanted]));
    let mut strong = decision_at("Fix the pager", minute(1));
    strong.selected.tier = Tier::Frontier;
    assert_eq!(store.keep_decision(&tenant, Arc::new(strong)), Kept::Queued);
    settle(&store).await;
    let rows = store.report_rows(&tenant, start()).await.unwrap();
    let counts: Vec<_> = rows.iter().map(|row| (row.tier, row.count)).collect();
    assert_eq!(counts, [(made[0].selected.tier, 4), (Tier::Frontier, 1)]);
    assert_eq!(store.report_rows("stranger", start()).await, Ok(vec![]));
}

pub(crate) async fn a_report_compares_costs_of_which_both_sides_are_known(database: &Database) {
    let store = database.open().await;
    let usd = |value: f64| routing::bounded::Usd::new(value).unwrap();
    for (name, decisions, wanted) in [
        (
            "savings of one",
            &[(Some(1.0), Some(2.0)), (Some(1.0), None)][..],
            (1.0, 1, 2.0, 1),
        ),
        ("nothing known", &[(None, None)][..], (0.0, 1, 0.0, 1)),
        (
            "dearer",
            &[(Some(3.0), Some(-1.0)), (Some(0.5), Some(0.0))][..],
            (3.5, 0, -1.0, 0),
        ),
        (
            "savings of nothing",
            &[(None, Some(2.0)), (Some(1.0), Some(1.0))][..],
            (1.0, 1, 1.0, 0),
        ),
    ] {
        let tenant = tenant("compared");
        for (cost, savings) in decisions {
            let mut decision = decision_at("Fix the pager", minute(1));
            decision.selected.estimate.cost_usd = cost.map(usd);
            decision.counterfactual.as_mut().unwrap().savings_usd = *savings;
            let kept = store.keep_decision(&tenant, Arc::new(decision));
            assert_eq!(kept, Kept::Queued);
        }
        settle(&store).await;
        let rows = store.report_rows(&tenant, start()).await.unwrap();
        let sums: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.estimated_cost,
                    row.unknown_cost,
                    row.estimated_savings,
                    row.unknown_savings,
                )
            })
            .collect();
        assert_eq!(sums, [wanted], "{name}");
    }
}

pub(crate) async fn changes_are_told_in_the_order_of_commits(database: &Database) {
    let stores = [database.open().await, database.open().await];
    let tenant = tenant("order");
    let writers: Vec<_> = (0..4)
        .map(|number: usize| {
            let (store, tenant) = (stores[number % 2].clone(), tenant.clone());
            tokio::spawn(async move {
                for _ in 0..25 {
                    let decision = Arc::new(decision_at("Fix the pager", start()));
                    assert_eq!(store.keep_decision(&tenant, decision.clone()), Kept::Queued);
                    let said = report(decision.id, PASSED);
                    store
                        .record_outcome(&tenant, said, minute(1))
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    // Whoever follows the feed sees each change once, and in the same order as who reads it in the end.
    let mut seen = Vec::new();
    let mut last = 0;
    let mut writers = Some(writers);
    loop {
        let ended = writers
            .as_ref()
            .is_none_or(|writers| writers.iter().all(|writer| writer.is_finished()));
        let changes = stores[1].changes(last).await.unwrap();
        assert!(changes.last >= last);
        last = changes.last;
        seen.extend(
            changes
                .events
                .into_iter()
                .filter(|(owner, _)| *owner == tenant),
        );
        if ended {
            break;
        }
    }
    for writer in writers.take().into_iter().flatten() {
        writer.await.unwrap();
    }
    assert_eq!(seen.len(), 100);
    let again = stores[0].changes(0).await.unwrap();
    let again: Vec<_> = again
        .events
        .into_iter()
        .filter(|(owner, _)| *owner == tenant)
        .collect();
    assert_eq!(seen, again);
    assert_eq!(stores[0].changes(last).await.unwrap().events, []);
}

pub(crate) async fn pruning_removes_what_is_old_and_what_is_too_much(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("prune");
    let ago = |days: i64| start() - SignedDuration::from_hours(24 * days);
    let old = decision_at("old", ago(100));
    for decision in [
        old.clone(),
        decision_at("last month", ago(30)),
        decision_at("last week", ago(7)),
        decision_at("now", start()),
        decision_at("now", start()),
    ] {
        let kept = store.keep_decision(&tenant, Arc::new(decision));
        assert_eq!(kept, Kept::Queued);
    }
    let said = report(old.id, PASSED);
    store
        .record_outcome(&tenant, said.clone(), ago(100))
        .await
        .unwrap();
    let escalated = Escalation {
        decision: old.id,
        key: "3".to_owned(),
        score: 3.0,
        answer: "a".to_owned(),
        new_decision: None,
        client: None,
        records: true,
    };
    store
        .keep_escalation(&tenant, escalated, ago(100))
        .await
        .unwrap();
    let frozen = Snapshot {
        digest: "sha256:2".to_owned(),
        body: "rows".to_owned(),
    };
    store.keep_snapshot(&tenant, frozen, ago(31)).await.unwrap();
    let prune = |most_decisions| {
        let retention = Retention {
            days: 90,
            most_decisions,
        };
        store.prune(retention, start())
    };
    let left = async || {
        let page = store.decisions(&tenant, &DecisionQuery::default()).await;
        page.unwrap().decisions.len()
    };
    prune(100_000).await.unwrap();
    assert_eq!(left().await, 4, "older than 90 days");
    assert_eq!(store.decision(&tenant, old.id).await, Ok(None));
    assert_eq!(store.escalation(&tenant, old.id, "3").await, Ok(None));
    let again = store.record_outcome(&tenant, said, start()).await;
    assert_eq!(again, Ok(store::Recorded::UnknownDecision));
    assert_eq!(events(&store, &tenant).await, [] as [Event; 0]);
    let frozen = store.snapshot(&tenant, "sha256:2", start()).await;
    assert_eq!(frozen, Ok(None), "not read for 30 days");
    prune(3).await.unwrap();
    assert_eq!(left().await, 3, "the newest three");
    prune(0).await.unwrap();
    assert_eq!(left().await, 2, "nothing of the last 24 hours");
}

pub(crate) async fn quota_that_nothing_changed_for_90_days_is_pruned(database: &Database) {
    let store = database.open().await;
    let tenant = tenant("idle");
    let ago = |days: i64| start() - SignedDuration::from_hours(24 * days);
    let left = Ratio::new(0.5).unwrap();
    let fault = async |provider: &str, days| {
        let report = ProviderFaultReport {
            decision: Uuid::from_u128(1),
            provider: provider.to_owned(),
            class: ErrorClass::RateLimited,
            fault: Some(ProviderFault::Exhausted),
            retry_after: None,
        };
        let noted = store.provider_fault(&tenant, report, ago(days)).await;
        noted.unwrap();
    };
    for (provider, days) in [("idle", 91), ("recent", 89), ("back", 91), ("back", 1)] {
        fault(provider, days).await;
    }
    for (provider, days) in [("reset", 91), ("holds", 89)] {
        let measured = store.measure_quota(&tenant, provider, left, ago(days));
        measured.await.unwrap();
    }
    let retention = Retention::default();
    store.prune(retention, start()).await.unwrap();
    let told = events(&store, &tenant).await;
    let mut kept: Vec<_> = told
        .iter()
        .filter_map(|event| match event {
            Event::Quota { provider, .. } => Some(provider.as_str()),
            _ => None,
        })
        .collect();
    kept.sort_unstable();
    assert_eq!(kept, ["back", "holds", "recent"]);
}

pub(crate) async fn every_tenant_is_pruned(database: &Database) {
    let store = database.open().await;
    let tenants = ["b", "a", "c", "B", "\u{e9}"].map(tenant);
    for tenant in &tenants {
        for days in [100, 1] {
            let at = start() - SignedDuration::from_hours(24 * days);
            let kept = store.keep_decision(tenant, Arc::new(decision_at("Fix it", at)));
            assert_eq!(kept, Kept::Queued);
        }
    }
    settle(&store).await;
    store.prune(Retention::default(), start()).await.unwrap();
    for tenant in &tenants {
        let page = store.decisions(tenant, &DecisionQuery::default()).await;
        assert_eq!(page.unwrap().decisions.len(), 1, "{tenant}");
    }
}
