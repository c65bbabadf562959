//! Clients that are wrong, slow, gone or many (wire.md 2.3, 23): no 500, no panic, no hang, no growth.

use std::time::{Duration, Instant};

use crate::support::{Client, Server};
use crate::{ONE_CHOICE, heavy};

#[test]
fn malformed_bodies_are_refused_and_never_an_error_of_ours() {
    let server = Server::tiny(&[]);
    let mut bodies: Vec<Vec<u8>> = [
        "", " ", "{", "}", "null", "[]", "\"x\"", "{\"questions\":{}}", "{\"state\":1}", "\u{feff}", "{\"state\":\"x\",\"questions\":[]}",
        "{\"state\":\"x\",\"questions\":{\"q\":{\"type\":\"choice\",\"instructions\":\"i\",\"criteria\":[1e999]}}}",
        "{\"state\":\"x\",\"questions\":{},\"min_confidence\":1e400}", "{\"state\":\"x\",\"questions\":{},\"model\":{\"a\":[null]}}",
        "{\"state\":\"x\",\"questions\":{},\"max_len\":1e3}", "{\"state\":\"\\ud800\",\"questions\":{}}", "{'state':1}", "{\"state\":1,}",
        "{\"state\":01,\"questions\":{}}", "{\"state\":\"\u{1}\",\"questions\":{}}", "{\"state\":1,\"questions\":{}} x",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    bodies.push(vec![0xFF; 100]);
    bodies.push(vec![0; 4096]);
    bodies.push(
        [
            b"{\"state\":".as_slice(),
            &[b'9'; 4301],
            b",\"questions\":{}}",
        ]
        .concat(),
    );
    bodies.push(
        [
            b"{\"state\":\"".as_slice(),
            &[b'x'; 2_000_000],
            b"\",\"questions\":{}}",
        ]
        .concat(),
    );
    bodies.push([b"[".repeat(1_000_000), b"]".repeat(1_000_000)].concat());
    bodies.push(b"{\"a\":".repeat(400_000));
    for body in &bodies {
        for path in ["/v1/systemone", "/v1/systemone/batch"] {
            let reply = server.send("POST", path, &[], body);
            let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            assert!(
                [200, 400, 413, 422].contains(&reply.status),
                "{path} {shown}: {}",
                reply.status
            );
        }
    }
    assert_eq!(server.metric("relay_task_panics_total"), 0.0);
    assert_eq!(server.ask(ONE_CHOICE).status, 200);
}

#[test]
fn bodies_that_are_too_large_end_while_they_stream() {
    let server = Server::tiny(&[("LAYA_PRELOAD", "0")]);
    let expected = r#"{"detail":"request body too large"}"#;
    let too_much = vec![b'x'; 2_097_153];
    // Written whole before the reply is read: it must not be lost to a reset connection.
    let reply = server.send("POST", "/v1/systemone", &[], &too_much);
    assert_eq!((reply.status, reply.text().as_str()), (413, expected));
    let mut chunked = Client::connect(server.address);
    chunked.request(
        "POST",
        "/v1/systemone",
        &[("transfer-encoding", "chunked")],
        b"",
    );
    for _ in 0..33 {
        chunked.write(b"10000\r\n");
        chunked.write(&[b'x'; 0x10000]);
        chunked.write(b"\r\n");
    }
    let reply = chunked.reply("POST");
    assert_eq!((reply.status, reply.text().as_str()), (413, expected));
    assert_eq!(server.metric("laya_in_flight"), 0.0);
}

#[test]
fn chunks_without_a_size_are_no_http() {
    let server = Server::tiny(&[("LAYA_PRELOAD", "0")]);
    let json = r#"{"detail":"request body must be valid JSON"}"#;
    let plain = "Invalid HTTP request received.";
    for (chunks, kind, expected) in [
        ("zz\r\n{}\r\n0\r\n\r\n", "text/plain; charset=utf-8", plain),
        ("-1\r\n{}\r\n0\r\n\r\n", "text/plain; charset=utf-8", plain),
        ("2\r\n{}\r\nzz\r\n\r\n", "text/plain; charset=utf-8", plain),
        ("1\r\n{\r\n0\r\n\r\n", "application/json", json),
    ] {
        for path in ["/v1/systemone", "/v1/systemone/batch"] {
            let mut client = server.client();
            client.request("POST", path, &[("transfer-encoding", "chunked")], b"");
            client.write(chunks.as_bytes());
            let reply = client.reply("POST");
            assert_eq!(
                (reply.status, reply.header("content-type"), reply.text()),
                (400, Some(kind), expected.to_owned()),
                "{path} {chunks:?}"
            );
            if expected == plain {
                assert_eq!(reply.header("connection"), Some("close"), "{chunks:?}");
                assert!(client.try_reply("POST").is_none(), "{chunks:?}");
            }
        }
    }
    assert_eq!(server.metric("laya_in_flight"), 0.0);
    assert_eq!(server.ask("{}").status, 400, "others are served");
}

#[test]
fn a_client_that_waits_for_continue_gets_its_refusal_instead() {
    let server = Server::tiny(&[("LAYA_PRELOAD", "0")]);
    let mut client = server.client();
    client.request(
        "POST",
        "/v1/systemone",
        &[("content-length", "3000000"), ("expect", "100-continue")],
        b"",
    );
    assert_eq!(client.reply("POST").status, 413);
}

#[test]
fn clients_that_trickle_lose_their_slot() {
    let server = Server::tiny(&[
        ("LAYA_PRELOAD", "0"),
        ("LAYA_MAX_CONCURRENT", "2"),
        ("LAYA_BODY_READ_TIMEOUT", "0.5"),
    ]);
    let mut slow: Vec<Client> = (0..2)
        .map(|_| {
            let mut client = server.client();
            client.request("POST", "/v1/systemone", &[("content-length", "1000")], b"");
            client
        })
        .collect();
    server.until("both slots are taken", || {
        server.metric("laya_in_flight") == 2.0
    });
    assert_eq!(server.ask("{}").status, 503);
    let begun = Instant::now();
    for _ in 0..12 {
        for client in &mut slow {
            client.write(b" ");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    for client in &mut slow {
        assert_eq!(client.reply("POST").status, 408);
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(server.ask("{}").status, 400, "the slots are free");
}

#[test]
fn clients_that_vanish_free_their_slots_and_their_rows() {
    let server = Server::tiny(&[("LAYA_MAX_CONCURRENT", "4"), ("LAYA_THREADS", "1")]);
    for _ in 0..3 {
        let clients: Vec<Client> = (0..4)
            .map(|_| {
                let mut client = server.client();
                client.request("POST", "/v1/systemone/batch", &[], heavy(64).as_bytes());
                client
            })
            .collect();
        server.until("all are admitted", || {
            server.metric("laya_in_flight") == 4.0
        });
        drop(clients);
        server.until("slots are free", || server.metric("laya_in_flight") == 0.0);
    }
    server.until("no row waits", || server.metric("laya_queue_depth") == 0.0);
    assert_eq!(server.ask(ONE_CHOICE).status, 200);
}

#[test]
fn half_a_head_and_a_closed_side_do_no_harm() {
    let server = Server::tiny(&[("LAYA_PRELOAD", "0")]);
    let open: Vec<Client> = (0..50)
        .map(|index| {
            let mut client = server.client();
            client.write(&b"POST /v1/systemone HTTP/1.1\r\nhost: x\r\nx-pad: "[..index % 40]);
            client
        })
        .collect();
    for junk in [
        "\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\0\0\0\0\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut client = server.client();
        client.write(junk.as_bytes());
        let reply = client.try_reply("GET");
        assert!(reply.is_none_or(|reply| reply.status < 500), "{junk:?}");
    }
    let mut large = server.client();
    large.write(b"GET /health HTTP/1.1\r\nhost: x\r\nx-pad: ");
    large.write(&[b'x'; 100_000]);
    large.write(b"\r\n\r\n");
    assert!(
        large
            .try_reply("GET")
            .is_none_or(|reply| reply.status == 431)
    );
    assert_eq!(server.get("/health").status, 200);
    drop(open);
}

#[test]
fn a_flood_beyond_the_bound_is_turned_away_and_nothing_else_fails() {
    let server = Server::tiny(&[("LAYA_MAX_CONCURRENT", "2")]);
    let address = server.address;
    let asking: Vec<_> = (0..16)
        .map(|_| {
            std::thread::spawn(move || {
                let mut seen = [0_usize; 2];
                let mut client = Client::connect(address);
                for _ in 0..20 {
                    client.request("POST", "/v1/systemone", &[], ONE_CHOICE.as_bytes());
                    match client.reply("POST").status {
                        200 => seen[0] += 1,
                        503 => seen[1] += 1,
                        status => panic!("status {status}"),
                    }
                }
                seen
            })
        })
        .collect();
    let mut slowest = Duration::ZERO;
    while asking.iter().any(|thread| !thread.is_finished()) {
        let begun = Instant::now();
        assert_eq!(server.get("/health").status, 200);
        slowest = slowest.max(begun.elapsed());
    }
    let seen: Vec<[usize; 2]> = asking
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    let answered: usize = seen.iter().map(|seen| seen[0]).sum();
    assert!(answered > 0, "{seen:?}");
    assert!(slowest < Duration::from_secs(1), "/health took {slowest:?}");
    assert_eq!(server.metric("laya_in_flight"), 0.0);
    assert_eq!(server.metric("relay_task_panics_total"), 0.0);
}
