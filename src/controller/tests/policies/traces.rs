//! Spans of passes, as a collector gets them.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use controller::client::Deadlines;
use controller::faults::FaultPoints;
use controller::metrics::PassResult;
use prometheus::{IntCounter, Registry};
use service::telemetry::trace::{TraceMetrics, TraceSettings, Traces};
use service::telemetry::{BuildInfo, RepeatedError};

use crate::sources;
use crate::world::{bad, condition, good, until};

/// A collector; the bodies of its posts come out of the channel.
fn collector() -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sent, posts) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(&stream);
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            sent.send(body).unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = (&stream).write_all(answer);
        }
    });
    (url, posts)
}

/// The length-delimited fields of a protobuf message with this number.
fn fields(message: &[u8], wanted: u64) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let tag = varint(&mut rest);
        match tag & 7 {
            0 => {
                varint(&mut rest);
            }
            1 => rest = &rest[8..],
            2 => {
                let length = usize::try_from(varint(&mut rest)).unwrap();
                let (field, after) = rest.split_at(length);
                if tag >> 3 == wanted {
                    found.push(field);
                }
                rest = after;
            }
            5 => rest = &rest[4..],
            other => panic!("wire type {other}"),
        }
    }
    found
}

fn varint(rest: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = rest[0];
        *rest = &rest[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    value
}

struct Span {
    id: Vec<u8>,
    parent: Vec<u8>,
    name: String,
    /// Key and value of attributes that are text.
    says: BTreeSet<(String, String)>,
}

impl Span {
    /// Those of an `ExportTraceServiceRequest`.
    fn all(body: &[u8]) -> Vec<Self> {
        let scopes = fields(body, 1)
            .into_iter()
            .flat_map(|resource| fields(resource, 2));
        let spans = scopes.flat_map(|scope| fields(scope, 2));
        spans.map(Self::read).collect()
    }

    fn read(span: &[u8]) -> Self {
        let one = |number| {
            fields(span, number)
                .first()
                .map_or(Vec::new(), |field| field.to_vec())
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let says = fields(span, 9).into_iter().filter_map(|pair| {
            let value = fields(fields(pair, 2)[0], 1);
            Some((text(fields(pair, 1)[0]), text(value.first()?)))
        });
        Self {
            id: one(2),
            parent: one(4),
            name: text(&one(5)),
            says: says.collect(),
        }
    }

    fn says(&self, key: &str, value: &str) -> bool {
        self.says.contains(&(key.to_owned(), value.to_owned()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_pass_is_a_span_with_its_parts() {
    let world = sources::local().await;
    let (url, posts) = collector();
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), url)];
    let (settings, _) = TraceSettings::of_environment(environment);
    let build = BuildInfo {
        component: "controller",
        version: "test",
        commit: "unknown",
    };
    let counted = TraceMetrics::register(&Registry::new()).unwrap();
    let errors = RepeatedError::new(IntCounter::new("suppressed_total", "test").unwrap());
    let traces = Traces::start(&settings.unwrap(), build, counted, errors).unwrap();
    let client = world.client.clone();
    let running = world.start_traced(
        client,
        FaultPoints::none(),
        Deadlines::default(),
        traces.clone(),
    );
    world.create("team", &good(1)).await;
    world.until_in_force("team").await;
    world.create("crew", &bad()).await;
    world
        .until("crew", "it is refused", |policy| {
            condition(policy, "Stalled").is_some()
        })
        .await;
    let metrics = running.metrics.clone();
    until("it rests", || async {
        let rested = metrics.passes("RoutingPolicy", PassResult::Unchanged);
        if rested >= 1 { Ok(()) } else { Err(rested) }
    })
    .await;
    running.end().await;
    tokio::task::spawn_blocking(move || traces.finish(Duration::from_secs(10)))
        .await
        .unwrap();
    let spans: Vec<Span> = posts.try_iter().flat_map(|body| Span::all(&body)).collect();
    let passes = |name: &str| -> Vec<&Span> {
        let of = |span: &&Span| {
            span.name == "pass RoutingPolicy" && span.says("relay.object.name", name)
        };
        spans.iter().filter(of).collect()
    };
    let parts = |pass: &Span| -> Vec<&str> {
        let within = spans.iter().filter(|span| span.parent == pass.id);
        within.map(|span| span.name.as_str()).collect()
    };
    // Stored, then in force, then nothing more.
    let team = passes("team");
    let first = team.first().expect("a pass of it");
    assert!(first.says("relay.object.kind", "RoutingPolicy"));
    assert!(first.says("relay.object.namespace", &world.namespace));
    assert!(first.says("relay.pass.result", "changed"));
    assert!(first.parent.is_empty());
    assert_eq!(parts(first), ["observe", "plan", "StoreRevision", "status"]);
    let last = team.last().unwrap();
    assert!(last.says("relay.pass.result", "unchanged"));
    assert_eq!(parts(last), ["observe", "plan"]);
    assert!(
        passes("crew")
            .iter()
            .any(|pass| pass.says("relay.pass.result", "changed"))
    );
    // No span holds what a spec says.
    assert!(
        spans
            .iter()
            .flat_map(|span| &span.says)
            .all(|(_, value)| !value.contains("acme"))
    );
}
