//! A router that is told to end while clients ask: every line of every client is answered, by it or in process.

use std::time::{Duration, Instant};

use crate::programs::{Ended, Home, PATIENCE, Router, run};
use crate::records::fallback;

const CLIENTS: usize = 4;
const LINES: usize = 3000;

fn wait_for_load(router: &Router, at_least: f64) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = router.metric("relay_router_fallbacks_total{reason=\"no_model\"}");
        if seen >= at_least {
            return;
        }
        assert!(Instant::now() < deadline, "only {seen} decisions");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn no_line_of_a_batch_is_lost_when_the_router_ends() {
    let home = Home::new();
    let mut router = Router::start(&home, &[]);
    let file = home.file(
        "lines.jsonl",
        "{\"request\":\"Fix the login token expiry\"}\n".repeat(LINES),
    );
    let file = file.to_str().unwrap();
    let url = router.url();
    let ended: Vec<Ended> = std::thread::scope(|scope| {
        let client = || run(&mut home.relay(&url, &["route", "-o", "json", "--batch", file]));
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        wait_for_load(&router, 400.0);
        router.terminate();
        let ended = clients.into_iter().map(|client| client.join().unwrap());
        ended.collect()
    });
    assert_eq!(router.ended().code(), Some(0));

    let mut by_router = 0;
    for ended in &ended {
        assert_eq!(ended.code, 0, "{}", ended.err);
        let records = ended.records();
        assert_eq!(records.len(), LINES, "{}", ended.err);
        let first_own = records
            .iter()
            .position(|record| fallback(record) == "router_unreachable")
            .unwrap_or(LINES);
        by_router += first_own;
        let (routed, own) = records.split_at(first_own);
        assert!(routed.iter().all(|record| fallback(record) == "no_model"));
        assert!(
            own.iter()
                .all(|record| fallback(record) == "router_unreachable")
        );
        let told = ended.err.matches("note: no router at").count();
        assert_eq!(told, usize::from(!own.is_empty()), "{}", ended.err);
        assert!(
            ended
                .err
                .ends_with(&format!("{LINES} decided (strong {LINES}), 0 bad\n"))
        );
    }
    assert!(by_router >= 400, "the router was there: {by_router}");
    assert!(
        by_router < CLIENTS * LINES,
        "and ended before the clients did"
    );
}
