//! Many clients at once: the same answers, no failures, fairness (wire.md 13).

use std::time::{Duration, Instant};

use crate::support::{Client, Server};
use crate::{ONE_CHOICE, heavy};

#[test]
fn answers_do_not_depend_on_who_else_asks() {
    let server = Server::tiny(&[]);
    let body = |index: usize| {
        ONE_CHOICE.replace(
            "The server is down",
            &"The server is down. ".repeat(index + 1),
        )
    };
    let alone: Vec<String> = (0..8)
        .map(|index| server.ask(&body(index)).text())
        .collect();
    let address = server.address;
    let together: Vec<_> = (0..16)
        .map(|thread: usize| {
            let bodies: Vec<String> = (0..8).map(body).collect();
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                let mut texts = vec![String::new(); bodies.len()];
                for step in 0..bodies.len() {
                    let index = (thread + step) % bodies.len();
                    client.request("POST", "/v1/systemone", &[], bodies[index].as_bytes());
                    let reply = client.reply("POST");
                    assert_eq!(reply.status, 200);
                    texts[index] = reply.text();
                }
                texts
            })
        })
        .collect();
    for thread in together {
        assert_eq!(thread.join().unwrap(), alone);
    }
}

#[test]
fn a_large_batch_keeps_single_requests_waiting_for_one_pass_at_most() {
    let server = Server::tiny(&[("LAYA_THREADS", "1")]);
    let address = server.address;
    let batch = std::thread::spawn(move || {
        let mut client = Client::connect(address);
        let begun = Instant::now();
        client.request("POST", "/v1/systemone/batch", &[], heavy(8).as_bytes());
        (client.reply("POST").status, begun.elapsed())
    });
    server.until("the batch runs", || server.metric("laya_queue_depth") > 0.0);
    let mut slowest = Duration::ZERO;
    let mut singles = 0;
    while !batch.is_finished() {
        let begun = Instant::now();
        assert_eq!(server.ask(ONE_CHOICE).status, 200);
        if !batch.is_finished() {
            slowest = slowest.max(begun.elapsed());
            singles += 1;
        }
    }
    let (status, took) = batch.join().unwrap();
    assert_eq!(status, 200);
    assert!(singles > 3, "only {singles} single requests in {took:?}");
    assert!(
        slowest < took / 3,
        "a single request took {slowest:?} of {took:?}"
    );
}

#[test]
fn passes_are_shared() {
    let server = Server::tiny(&[("LAYA_BATCH_WINDOW_US", "200000")]);
    let address = server.address;
    let before = server.metric("laya_pass_rows_count");
    let asking: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                client.request("POST", "/v1/systemone", &[], ONE_CHOICE.as_bytes());
                assert_eq!(client.reply("POST").status, 200);
            })
        })
        .collect();
    for thread in asking {
        thread.join().unwrap();
    }
    let passes = server.metric("laya_pass_rows_count") - before;
    assert!(passes < 8.0, "{passes} passes for 8 requests");
}
