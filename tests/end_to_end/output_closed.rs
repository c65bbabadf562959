//! Readers that go away: `relay route … | head -1`, and a standard error that nobody reads.

use std::io::{BufRead, BufReader, PipeWriter};
use std::process::Stdio;

use crate::programs::{Ended, Home, NOWHERE, Router, Running, read, run};
use crate::same_result::batch_file;

/// A pipe whose reader is gone already.
fn closed() -> PipeWriter {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer
}

/// Reads one line of standard output, as `head -1` does, then closes it.
fn first_line(home: &Home, router: &str, arguments: &[&str]) -> (String, Ended) {
    let start = std::time::Instant::now();
    let mut command = home.relay(router, arguments);
    let mut child = Running::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let err = read(child.0.stderr.take().unwrap());
    let mut line = String::new();
    BufReader::with_capacity(64, child.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let status = child.ended();
    let ended = Ended {
        code: status.code().unwrap_or(-1),
        out: String::new(),
        err: err.join().unwrap(),
        took: start.elapsed(),
    };
    (line, ended)
}

#[test]
fn a_batch_into_head_stops_with_a_word_and_without_an_error() {
    let home = Home::new();
    let router = Router::start(&home, &[]);
    let (file, requests) = batch_file(&home);
    for url in [router.url().as_str(), NOWHERE] {
        let arguments = ["route", "-o", "json", "--batch", &file];
        let (line, ended) = first_line(&home, url, &arguments);
        assert!(line.starts_with("{\"id\":"), "{line}");
        assert_eq!(ended.code, 0, "{}", ended.err);
        assert!(
            ended.err.contains("note: standard output was closed"),
            "{}",
            ended.err
        );
        for noise in ["panicked", "Broken pipe", "relay: "] {
            assert!(!ended.err.contains(noise), "{}", ended.err);
        }
    }
    let decided = router.metric("relay_router_fallbacks_total{reason=\"no_model\"}");
    assert!(
        decided < requests.len() as f64,
        "nobody reads the rest, so it is not decided"
    );
}

#[test]
fn one_decision_that_nobody_reads_is_no_error() {
    let home = Home::new();
    for arguments in [
        &["route", "Fix the pager"][..],
        &["route", "--explain", "Fix the pager"],
        &["route", "-o", "json", "Fix the pager"],
        &["--help"],
        &["--version"],
    ] {
        let mut command = home.relay(NOWHERE, arguments);
        let mut child = Running::spawn(command.stdout(closed()).stderr(Stdio::piped()));
        let err = read(child.0.stderr.take().unwrap());
        let code = child.ended().code();
        let err = err.join().unwrap();
        assert_eq!(code, Some(0), "{arguments:?}: {err}");
        assert!(!err.contains("panicked"), "{arguments:?}: {err}");
        assert!(!err.contains("Broken pipe"), "{arguments:?}: {err}");
    }
}

/// Notes, bad lines and errors are lost then, decisions and exit codes are not.
#[test]
fn a_standard_error_that_nobody_reads_changes_nothing_else() {
    let home = Home::new();
    home.settings(&serde_json::json!({"unknown": 1}));
    let lines = "{\"request\":\"Fix the pager\"}\nbad\n{\"request\":\"Rename it\"}\n";
    let file = home.file("lines.jsonl", lines);
    let file = file.to_str().unwrap();
    for (arguments, code, records) in [
        (&["route", "-o", "json", "--batch", file][..], 1, 2),
        (&["route", "-o", "json", "Fix the pager"], 0, 1),
        (&["route", " "], 2, 0),
        (&["route", "--no-fallback", "x"], 4, 0),
        (&["route", "--unknown"], 2, 0),
    ] {
        let mut command = home.relay(NOWHERE, arguments);
        let mut child = Running::spawn(command.stdout(Stdio::piped()).stderr(closed()));
        let out = read(child.0.stdout.take().unwrap());
        assert_eq!(child.ended().code(), Some(code), "{arguments:?}");
        let out = out.join().unwrap();
        assert_eq!(out.lines().count(), records, "{arguments:?}: {out}");
    }
}

/// A full disk is an error, unlike a reader that has seen enough.
#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let home = Home::new();
    let file = home.file("lines.jsonl", "{\"request\":\"Fix the pager\"}\n");
    for arguments in [
        &["route", "Fix the pager"][..],
        &["route", "--batch", file.to_str().unwrap()],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let mut command = home.relay(NOWHERE, arguments);
        let mut child = Running::spawn(command.stdout(full.unwrap()).stderr(Stdio::piped()));
        let err = read(child.0.stderr.take().unwrap());
        assert_eq!(child.ended().code(), Some(1), "{arguments:?}");
        let err = err.join().unwrap();
        assert!(err.contains("cannot write to standard output"), "{err}");
    }
    // What was written before is what `run` shows, so the other way round is covered there.
    assert_eq!(run(&mut home.relay(NOWHERE, &["--version"])).code, 0);
}
