//! What must be there at the end, read from every replica.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::load::Load;
use crate::programs::{Http, PATIENCE};
use crate::worker::Decided;

/// Every acknowledged outcome and every decision that did not say otherwise is readable from every replica, and outcomes
/// that were refused are taken now. `may_miss` are decisions that a router took with it when it was killed.
pub(crate) fn everything_is_there(
    urls: &[String],
    load: &mut Load,
    may_miss: impl Fn(&Decided) -> bool,
) {
    let decided: Vec<Decided> = load
        .workers
        .iter()
        .flat_map(|worker| worker.notes.decided.clone())
        .collect();
    let gone: BTreeSet<&str> = deliver(load, &decided, &may_miss);
    let mut first: Option<BTreeMap<String, Value>> = None;
    for url in urls {
        let stored = all_decisions(url);
        for one in decided.iter().filter(|one| !gone.contains(&*one.id)) {
            let promised = !one.without_store && !may_miss(one);
            assert!(
                !promised || stored.contains_key(&one.id),
                "{url} has no {one:?}"
            );
        }
        for report in load
            .workers
            .iter()
            .flat_map(|worker| &worker.notes.acknowledged)
        {
            assert_acknowledged(url, &stored, report);
        }
        match &first {
            None => {
                let missing = decided.iter().filter(|one| !stored.contains_key(&one.id));
                let (with, without): (Vec<_>, Vec<_>) = missing.partition(|one| !one.without_store);
                eprintln!(
                    "stored {}; not stored of those that said so {}, of those that went with their router {}",
                    stored.len(),
                    without.len(),
                    with.len()
                );
                first = Some(stored);
            }
            Some(first) => assert!(*first == stored, "{url} reads something else"),
        }
    }
    same_report(urls);
}

/// Sends what waits again: now every router has its store. Returns decisions that are gone, and may be.
fn deliver<'a>(
    load: &mut Load,
    decided: &'a [Decided],
    may_miss: &impl Fn(&Decided) -> bool,
) -> BTreeSet<&'a str> {
    let by_id: BTreeMap<&str, &Decided> = decided.iter().map(|one| (&*one.id, one)).collect();
    let mut gone = BTreeSet::new();
    let mut delivered = 0;
    for (at, worker) in load.workers.iter_mut().enumerate() {
        for report in std::mem::take(&mut worker.waiting) {
            delivered += 1;
            worker.report(at, report);
        }
        assert_eq!(worker.notes.odd, [""; 0], "at the end");
        for report in &worker.waiting {
            let one = by_id[report["decision_id"].as_str().unwrap()];
            let may = one.without_store || may_miss(one);
            assert!(may, "refused at the end too: {report} of {one:?}");
            gone.insert(&*one.id);
        }
    }
    eprintln!(
        "outcomes that waited to the end: {delivered}, of lost decisions {}",
        gone.len()
    );
    gone
}

fn all_decisions(url: &str) -> BTreeMap<String, Value> {
    let http = Http::new(PATIENCE);
    let mut stored = BTreeMap::new();
    let mut cursor = String::new();
    loop {
        let page = http.get(&format!("{url}/v1/decisions?limit=500{cursor}"));
        let page = page.unwrap().ok();
        for decision in page["decisions"].as_array().unwrap() {
            let id = decision["id"].as_str().unwrap().to_owned();
            assert!(
                stored.insert(id, decision.clone()).is_none(),
                "twice: {decision}"
            );
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return stored,
        }
    }
}

fn assert_acknowledged(url: &str, stored: &BTreeMap<String, Value>, report: &Value) {
    let id = report["decision_id"].as_str().unwrap();
    let decision = stored
        .get(id)
        .unwrap_or_else(|| panic!("{url} has no decision of {report}"));
    let outcomes = decision["outcomes"].as_array().unwrap();
    let same = |outcome: &&Value| outcome["attempt"] == report["attempt"];
    let outcome = outcomes.iter().find(same);
    let outcome = outcome.unwrap_or_else(|| panic!("{url} has no {report}, only {outcomes:?}"));
    for field in ["result", "final", "usage", "tests_passed"] {
        assert_eq!(outcome[field], report[field], "{url}: {field} of {outcome}");
    }
}

/// All replicas count the same.
fn same_report(urls: &[String]) {
    let http = Http::new(PATIENCE);
    let report = |url: &String| {
        let answer = http.get(&format!("{url}/v1/report?since=1d"));
        let mut report = answer.unwrap().ok();
        for time in ["since", "until"] {
            report.as_object_mut().unwrap().remove(time);
        }
        report
    };
    let first = report(&urls[0]);
    for url in &urls[1..] {
        assert_eq!(first, report(url), "{url}");
    }
}
