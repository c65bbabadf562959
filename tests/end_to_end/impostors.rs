//! What may stand where a router should be: it hangs, talks nonsense, breaks off or never ends. The user's request is
//! decided in process all the same, within `laya.timeoutMs`, and standard error says so (routing.md 3 and 21).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::programs::{Ended, Home, PATIENCE, Router, run};
use crate::records::fallback;

/// The deadline in these tests; the default of 5 s would be seen.
const TIMEOUT: Duration = Duration::from_millis(600);
/// What starting a process may take on a busy machine. With the deadline it stays well below the default one.
const SLACK: Duration = Duration::from_millis(2500);

/// What an impostor does with a request it has read.
#[derive(Debug, Clone)]
enum Manner {
    /// Nothing, for ever.
    Hang,
    /// Says this and closes.
    Say(Vec<u8>),
    /// Says this to the first request and nothing to those after it.
    SayOnce(Vec<u8>),
    /// Says the first, then the second again and again, at this distance.
    NeverEnd(&'static str, Vec<u8>, Duration),
}

/// A listener that is no router; ends with its test.
struct Impostor {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
}

impl Impostor {
    fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let over = Arc::new(AtomicBool::new(false));
        let (count, end) = (asked.clone(), over.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let (manner, count, end) = (manner.clone(), count.clone(), end.clone());
                std::thread::spawn(move || serve(stream, &manner, &count, &end));
            }
        });
        Self {
            address,
            asked,
            over,
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(mut stream: TcpStream, manner: &Manner, asked: &AtomicUsize, over: &AtomicBool) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    if !read_request(&mut stream) {
        return;
    }
    let before = asked.fetch_add(1, Ordering::SeqCst);
    match manner {
        Manner::Hang => {
            // Until the client gives up and closes.
            let _ = stream.read(&mut [0; 1]);
        }
        Manner::Say(bytes) => {
            let _ = stream.write_all(bytes);
        }
        Manner::SayOnce(bytes) if before == 0 => {
            let _ = stream.write_all(bytes);
        }
        Manner::SayOnce(_) => {}
        Manner::NeverEnd(head, chunk, pause) => {
            let mut more = stream.write_all(head.as_bytes());
            while more.is_ok() && !over.load(Ordering::SeqCst) {
                std::thread::sleep(*pause);
                more = stream.write_all(chunk);
            }
        }
    }
}

/// Reads head and body, so that closing resets nothing that the client has not read yet.
fn read_request(stream: &mut TcpStream) -> bool {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return false,
            Ok(read) => bytes.extend_from_slice(&part[..read]),
        }
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return true;
            }
        }
    }
}

fn answer(status: &str, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n");
    format!("{head}connection: close\r\n\r\n{body}").into_bytes()
}

fn http(status: &str, kind: &str, body: &str) -> Manner {
    Manner::Say(answer(status, kind, body))
}

fn problem(status: &str, slug: &str) -> Manner {
    let number: u16 = status.split(' ').next().unwrap().parse().unwrap();
    let body = json!({
        "type": format!("https://relay.dev/problems/{slug}"),
        "title": "Not now", "status": number, "detail": "come again", "request_id": "r",
    });
    http(status, "application/problem+json", &body.to_string())
}

fn home() -> Home {
    let home = Home::new();
    home.settings(&json!({"timeoutMs": TIMEOUT.as_millis() as u64}));
    home
}

/// What a router says that cannot decide now.
const BUSY: &str = "come again";

/// A router that is busy is there.
fn who(why: &str) -> &'static str {
    match why {
        BUSY => "the router",
        _ => "no router",
    }
}

/// Decided in process, said once on standard error with the reason.
fn stepped_down(name: &str, ended: &Ended, why: &str) {
    assert_eq!(ended.code, 0, "{name}: {}", ended.err);
    let record = ended.record();
    assert_eq!(record["selected"]["tier"], "strong", "{name}");
    assert_eq!(fallback(&record), "router_unreachable", "{name}");
    assert_eq!(ended.err.lines().count(), 1, "{name}: {}", ended.err);
    let start = format!("note: {} at http://127.0.0.1:", who(why));
    assert!(ended.err.starts_with(&start), "{name}: {}", ended.err);
    assert_eq!(
        ended.err.contains("relayd router"),
        why != BUSY && !why.contains(" is no "),
        "{name}: {}",
        ended.err
    );
    assert!(ended.err.contains(why), "{name}: {}", ended.err);
}

#[test]
fn whatever_answers_instead_of_a_router_the_request_is_decided() {
    let endless = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    let html = "<html><body>\u{1b}[31mnot here</body></html>";
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"id\":";
    let mebibyte = vec![b' '; 1 << 20];
    for (name, manner, why) in [
        ("hangs", Manner::Hang, "time"),
        ("no HTTP", Manner::Say(b"\x00\xff\x1b[2Jgarbage\r\n\r\n".to_vec()), ""),
        ("closes without a word", Manner::Say(Vec::new()), ""),
        ("another service", Manner::Say(b"220 mail.example.com ESMTP\r\n".to_vec()), ""),
        ("404 HTML", http("404 Not Found", "text/html", html), "answers 404 and is no router"),
        ("401 HTML", http("401 Unauthorized", "text/html", html), "answers 401 and is no router"),
        ("500 HTML", http("500 Oops", "text/html", html), "answers 500 and is no router"),
        ("503 HTML", http("503 Busy", "text/html", html), "answers 503 and is no router"),
        ("500 problem", problem("500 Oops", "internal"), BUSY),
        ("503 problem", problem("503 Busy", "overloaded"), BUSY),
        ("429 problem", problem("429 Slow", "rate-limited"), BUSY),
        ("200 HTML", http("200 OK", "text/html", html), "its answer is no decision"),
        ("200 of another API", http("200 OK", "application/json", "{\"ok\":true}"), "its answer is no decision"),
        ("200 with nothing", http("200 OK", "application/json", ""), "its answer is no decision"),
        ("204", http("204 No Content", "application/json", ""), "answers 204 and is no router"),
        (
            "a redirect, which would take the key along",
            Manner::Say(b"HTTP/1.1 307 There\r\nlocation: http://127.0.0.1:9/v1/route\r\ncontent-length: 0\r\n\r\n".to_vec()),
            "answers 307 and is no router",
        ),
        ("an answer that breaks off", Manner::Say(cut.as_bytes().to_vec()), "broke off"),
        (
            "a body that trickles for ever",
            Manner::NeverEnd("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n", b" ".to_vec(), Duration::from_millis(20)),
            "broke off",
        ),
        (
            "a head that trickles for ever",
            Manner::NeverEnd(endless, b"x-more: y\r\n".to_vec(), Duration::from_millis(20)),
            "",
        ),
        (
            "a body without bounds",
            Manner::NeverEnd("HTTP/1.1 200 OK\r\n\r\n", mebibyte, Duration::ZERO),
            "broke off",
        ),
    ] {
        let impostor = Impostor::start(manner);
        let home = home();
        let text = "Fix the login token expiry";
        let ended = run(&mut home.relay(&impostor.url(), &["route", "-o", "json", text]));
        stepped_down(name, &ended, why);
        assert!(ended.took < TIMEOUT + SLACK, "{name} took {:?}", ended.took);
        assert!(impostor.asked() >= 1, "{name} was not asked");
        let control = ended.err.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(control, None, "{name}: {:?}", ended.err);

        let arguments = ["route", "--no-fallback", "-o", "json", text];
        let ended = run(&mut home.relay(&impostor.url(), &arguments));
        assert_eq!((ended.code, ended.out.as_str()), (4, ""), "{name}: {}", ended.err);
        let start = format!("relay: {} at ", who(why));
        assert!(ended.err.starts_with(&start), "{name}: {}", ended.err);
        let hint = match why {
            BUSY => "hint: ask again in a moment\n",
            why if why.contains(" is no ") => "hint: name a router in LAYA_BASE_URL",
            _ => "hint: start one with `relayd router`\n",
        };
        assert!(ended.err.contains(hint), "{name}: {}", ended.err);
        assert!(ended.took < TIMEOUT + SLACK, "{name} took {:?}", ended.took);
    }
}

/// The deadline is paid once, however many lines there are.
#[test]
fn a_router_that_hangs_costs_a_batch_one_deadline() {
    let impostor = Impostor::start(Manner::Hang);
    let home = home();
    let file = home.file(
        "lines.jsonl",
        "{\"request\":\"Fix the pager\"}\n".repeat(20),
    );
    let arguments = ["route", "-o", "json", "--batch", file.to_str().unwrap()];
    let ended = run(&mut home.relay(&impostor.url(), &arguments));
    assert_eq!(
        (ended.code, ended.records().len()),
        (0, 20),
        "{}",
        ended.err
    );
    assert_eq!(
        ended.err.matches("note: no router").count(),
        1,
        "{}",
        ended.err
    );
    assert!(ended.took < TIMEOUT + SLACK, "{:?}", ended.took);
    assert_eq!(impostor.asked(), 1);

    let arguments = ["route", "--no-fallback", "--batch", file.to_str().unwrap()];
    let ended = run(&mut home.relay(&impostor.url(), &arguments));
    assert_eq!((ended.code, ended.out.as_str()), (4, ""), "{}", ended.err);
}

/// A conversation that a router began goes on in process when the router goes away.
#[test]
fn a_conversation_goes_on_without_the_router() {
    let home = home();
    let router = Router::start(&home, &[]);
    let line = |text: &str| json!({"request": text, "conversation_id": "c"}).to_string() + "\n";
    let (first, second) = (line("Fix the login token expiry"), line("continue"));
    let one = home.file("one.jsonl", &first);
    let both = home.file("both.jsonl", first + &second);
    let batch = |url: &str, file: &std::path::Path| {
        let arguments = ["route", "-o", "json", "--batch", file.to_str().unwrap()];
        let ended = run(&mut home.relay(url, &arguments));
        assert_eq!(ended.code, 0, "{}", ended.err);
        ended.records()
    };
    let decided = batch(&router.url(), &one).remove(0);
    let decided = answer("200 OK", "application/json", &decided.to_string());
    let impostor = Impostor::start(Manner::SayOnce(decided));
    let records = batch(&impostor.url(), &both);
    assert_eq!(fallback(&records[0]), "no_model");
    assert_eq!(records[1]["follow_up"], "continuation");
    assert_eq!(records[1]["parent_id"], records[0]["id"]);
    assert_eq!(
        records[1]["selected"]["model"],
        records[0]["selected"]["model"]
    );
}

/// Nothing of a proxy in the environment: it would be asked for addresses of this machine, with the request's text.
#[test]
fn a_proxy_is_never_asked() {
    let proxy = Impostor::start(http("200 OK", "application/json", "{}"));
    let home = Home::new();
    let router = Router::start(&home, &[]);
    let mut command = home.relay(&router.url(), &["route", "-o", "json", "x y"]);
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, proxy.url());
    }
    let ended = run(&mut command);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(fallback(&ended.record()), "no_model");
    assert_eq!(proxy.asked(), 0);
}
