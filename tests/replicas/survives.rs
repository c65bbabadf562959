//! 10,000 requests while a router, a Laya server and PostgreSQL are each killed and come back: nothing is lost.

use std::time::{Duration, Instant};

use crate::cluster::{Cluster, assert_no_panics};
use crate::kept;
use crate::learned::{learned_here_is_known_there, teach_most};
use crate::load::Load;
use crate::programs::{Http, until};
use crate::worker::Decided;

/// The router that is killed.
const KILLED: usize = 1;
/// A router that was killed may not have written what it decided this long before.
const UNWRITTEN: Duration = Duration::from_secs(1);
/// Within this a router notices that its store is away.
const NOTICES: Duration = Duration::from_millis(500);

/// When what happened.
struct Times {
    router_killed: Instant,
    /// Before the first and after the last process of the server was gone.
    store_killed: (Instant, Instant),
    store_restarted: Instant,
    /// Every router has its store again.
    store_known: Instant,
}

#[test]
#[ignore = "needs PostgreSQL; `cargo xtask test` runs it"]
fn ten_thousand_requests_survive_the_death_of_a_router_a_model_and_the_store() {
    let mut cluster = Cluster::start();
    let urls = cluster.urls();
    learned_here_is_known_there(&urls);

    let mut load = Load::new(&urls, teach_most(&urls[0]));
    load.run("calm", 1500, |_| {});
    let router_killed = load.run("a router killed", 2500, |progress| {
        progress.wait_for(500);
        let at = Instant::now();
        cluster.kill_router(KILLED);
        progress.wait_for(1200);
        cluster.restart_router(KILLED);
        at
    });
    cluster.until_ready();
    load.run("a Laya server killed", 2500, |progress| {
        progress.wait_for(500);
        cluster.kill_model(0);
        progress.wait_for(1200);
        cluster.restart_model(0);
    });
    cluster.until_models_serve();
    let times = load.run("PostgreSQL killed", 2500, |progress| {
        progress.wait_for(500);
        let before = Instant::now();
        cluster.postgres.kill();
        let after = Instant::now();
        teaching_is_refused(&urls);
        progress.wait_for(1500);
        let store_restarted = Instant::now();
        cluster.postgres.restart();
        cluster.until_ready();
        Times {
            router_killed,
            store_killed: (before, after),
            store_restarted,
            store_known: Instant::now(),
        }
    });
    load.run("calm again", 1000, |_| {});
    eprintln!("all of it: {:.1} s", load.took().as_secs_f64());

    judge(&mut load, &times);
    kept::everything_is_there(&urls, &mut load, |decided| unwritten(decided, &times));
    learned_here_is_known_there(&urls);
    assert_no_panics(&urls);
}

/// What a router that was killed may not have written: decisions wait for the next group of writes.
fn unwritten(decided: &Decided, times: &Times) -> bool {
    decided.router == KILLED
        && decided.answered < times.router_killed + NOTICES
        && decided.answered + UNWRITTEN > times.router_killed
}

/// Without the store nothing is acknowledged that would have to be kept.
fn teaching_is_refused(urls: &[String]) {
    let http = Http::new(Duration::from_secs(5));
    for url in urls {
        until("reads are refused without a store", || {
            match http.get(&format!("{url}/v1/memory"))? {
                answer if answer.status == 503 => Ok(()),
                other => Err(format!("{url}: {other:?}")),
            }
        });
    }
}

/// Every request has its answer, and each answer says the truth about the store.
fn judge(load: &mut Load, times: &Times) {
    let notes = || load.workers.iter().map(|worker| &worker.notes);
    let all = |pick: fn(&crate::worker::Notes) -> &Vec<String>| {
        notes().flat_map(pick).cloned().collect::<Vec<_>>()
    };
    let decided: Vec<&Decided> = notes().flat_map(|notes| &notes.decided).collect();
    let count = |what: &dyn Fn(&Decided) -> bool| decided.iter().filter(|one| what(one)).count();
    let sum = |pick: fn(&crate::worker::Notes) -> usize| notes().map(pick).sum::<usize>();
    eprintln!(
        "decisions {}: by model {}, by memory {}, by rules {}; follow-ups {}; second try {}; without the store {}\n\
         outcomes acknowledged {}, sent twice {}, refused for now {}, not known yet {}; escalations {}; asked the model {}",
        decided.len(),
        count(&|one| one.source == "model"),
        count(&|one| one.source == "memory"),
        count(&|one| one.source == "rules"),
        count(&|one| one.follow_up != "new"),
        count(&|one| one.retried),
        count(&|one| one.without_store),
        sum(|notes| notes.acknowledged.len()),
        sum(|notes| notes.sent_again),
        sum(|notes| notes.refused),
        sum(|notes| notes.unknown),
        sum(|notes| notes.escalated),
        sum(|notes| notes.asked_model),
    );
    assert_eq!(
        all(|notes| &notes.lost),
        [""; 0],
        "requests without a decision"
    );
    assert_eq!(
        all(|notes| &notes.unasked),
        [""; 0],
        "questions without an answer"
    );
    assert_eq!(all(|notes| &notes.odd), [""; 0], "answers nobody expects");

    let (killed, dead) = times.store_killed;
    let away = |one: &Decided| one.asked > dead + NOTICES && one.answered < times.store_restarted;
    let there = |one: &Decided| one.answered < killed || one.asked > times.store_known;
    let silent: Vec<_> = decided
        .iter()
        .filter(|one| away(one) && !one.without_store)
        .collect();
    assert!(
        silent.is_empty(),
        "decided without the store and not said: {silent:?}"
    );
    let scared: Vec<_> = decided
        .iter()
        .filter(|one| there(one) && one.without_store)
        .collect();
    assert!(scared.is_empty(), "the store was there: {scared:?}");

    // What makes the rest of this test worth something.
    assert!(
        count(&|one| one.retried) > 0,
        "nobody met the router that was dead"
    );
    assert!(
        count(&away) > 100,
        "the store was away for {}",
        count(&away)
    );
    assert!(count(&|one| one.source == "model") > 0, "models were asked");
    assert!(
        sum(|notes| notes.refused) > 0,
        "no outcome met the store that was dead"
    );
}
