//! The other words: what they print, and how they end (wire.md 18).

use std::io::Write;
use std::process::Stdio;

use crate::support::{Server, TINY_MODELS, laya};
use crate::{copy_of_tiny, copy_with_contract};

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn run(arguments: &[&str]) -> Ran {
    run_with(arguments, "")
}

fn run_with(arguments: &[&str], stdin: &str) -> Ran {
    let mut child = laya(&[("LAYA_EXTRA_MODELS", TINY_MODELS)])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("laya starts");
    let _ = child
        .stdin
        .take()
        .expect("piped")
        .write_all(stdin.as_bytes());
    let output = child.wait_with_output().expect("ends");
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

#[test]
fn routes_a_text() {
    let ran = run(&["Mein", "Konto wurde zweimal belastet, bitte erstatten."]);
    let expected = "Model     : multilingual\n\
                    Reason    : Latin script but language looks like 'de', not English\n\
                    Detected  : {\"script\": \"latin\", \"script_profile\": {\"latin\": 1.0}, \"language\": \"de\", \
                    \"is_english\": false, \"language_undecided\": false, \"diacritic_rate\": 0.0, \
                    \"non_latin_fraction\": 0.0, \"mixed_segment\": null}\n";
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), expected),
        "{}",
        ran.err
    );
    let ran = run(&["route", "--json", "--model", "EN", "serve"]);
    let expected = "{\n  \"model\": \"english\",\n  \"repo\": \"tiny-laya\",\n  \"reason\": \"explicit model='english'\",\n  \
                    \"detection\": null,\n  \"workflow\": null\n}\n";
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), expected),
        "{}",
        ran.err
    );
}

#[test]
fn routes_lines_of_a_file_and_of_a_prompt() {
    let lines = "The server is down and we need help\n\n商品がまだ届いていません\n";
    let ran = run_with(&["--batch", "-"], lines);
    let expected = "english        English Latin text  <- The server is down and we need help\n\
                    multilingual   non-Latin script (kana, 100% of letters); the English checkpoint cannot read it  <- \
                    商品がまだ届いていません\n";
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), expected),
        "{}",
        ran.err
    );
    let ran = run_with(&[], "The server is down\nquit\nnever\n");
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.out.starts_with("laya> Model     : english\n") && ran.out.ends_with("laya> "),
        "{}",
        ran.out
    );
}

#[test]
fn predicts_with_questions_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("q.json");
    std::fs::write(
        &file,
        r#"{"state_key":"message","questions":{
            "department":{"type":"choice","instructions":"Which?","criteria":{"billing":"money","other":null}},
            "urgency":{"type":"score","instructions":"How urgent?","criteria":["no","soon","now"]},
            "angry":{"type":"noul","instructions":"Is the writer angry?"}}}"#,
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let ran = run(&[
        "--questions",
        file,
        "--min-confidence",
        "1",
        "We were billed twice and need help with the invoice",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[0], "Model     : english", "{}", ran.out);
    assert_eq!(lines[3], "");
    assert!(
        lines[4].starts_with("department  : ") && lines[4].contains(" (p=0."),
        "{}",
        lines[4]
    );
    assert!(
        lines[5].starts_with("urgency     : ") && lines[6].starts_with("angry       : 0."),
        "{}",
        ran.out
    );
    assert!(
        lines[4..7]
            .iter()
            .all(|line| line.ends_with("  [low-confidence]")),
        "{}",
        ran.out
    );

    let ran = run(&[
        "predict",
        "--questions",
        file,
        "--checkpoint",
        "tiny-laya",
        "--json",
        "hello",
    ]);
    let payload: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(
        payload["routing"]["reason"], "only checkpoint",
        "{}",
        ran.err
    );
    assert_eq!(
        payload["answers"]["department"].get("x_jev_confidence"),
        None
    );

    let long = "We were billed twice. ".repeat(200);
    let ran = run(&["predict", "--questions", file, "--json", &long]);
    assert!(
        ran.err.contains("1 of 1 texts were cut to fit"),
        "{}",
        ran.err
    );
}

#[test]
fn what_cannot_run_ends_with_2() {
    for (arguments, expected) in [
        (
            &["--explain", "--predict", "x"][..],
            "laya: --explain is for routing only",
        ),
        (
            &["--min-confidence", "0.5", "x"],
            "laya: --min-confidence gates answers",
        ),
        (
            &["--predict", "--min-confidence", "2", "x"],
            "laya: min_confidence must be a float in [0.0, 1.0], got 2.0",
        ),
        (
            &["--model", "nope", "x"],
            "laya: unknown model 'nope'; choose one of",
        ),
        (
            &["--task", "nope", "x"],
            "laya: unknown model 'nope'; choose one of",
        ),
        (&["--batch", "/none"], "laya: could not read /none"),
        (
            &["--batch", "-", "x"],
            "laya: pass either a text or --batch FILE, not both.",
        ),
        (&["--batch", "-"], "laya: no requests found in -."),
        (
            &["--preset", "email", "x"],
            "laya: preset 'email' is not part of this build",
        ),
        (&["--questions", "/none", "x"], "laya: cannot read /none"),
        (&["mcp"], "laya: 'mcp' is not part of this build"),
        (&["--no-such-flag"], "--no-such-flag"),
        (
            &["predict", "--checkpoint", "/none", "x"],
            "laya: could not run Laya",
        ),
        (
            &[
                "parity",
                "/none",
                "--precision",
                "int8",
                "--out",
                "/dev/null/r.json",
            ],
            "laya: cannot write /dev/null/r.json",
        ),
        (
            &["random-checkpoint", "/tmp/never", "--shape", "huge"],
            "laya: unknown shape 'huge'",
        ),
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(expected), "{arguments:?}: {}", ran.err);
        assert!(ran.out.is_empty(), "{arguments:?}: {}", ran.out);
    }
}

#[test]
fn help_begins_with_what_a_word_does() {
    for (word, first) in [
        ("serve", "Serve checkpoints over HTTP"),
        ("predict", "Answer questions about a text"),
        ("route", "Say which checkpoint would answer a text"),
        ("inspect", "Show what a checkpoint folder holds"),
        (
            "probe",
            "Ask a server whether it is ready, or probe questions",
        ),
        (
            "parity",
            "Compare a reduced precision with f32 and write a report",
        ),
        (
            "random-checkpoint",
            "Write a random checkpoint for tests and benchmarks",
        ),
    ] {
        let ran = run(&[word, "--help"]);
        assert_eq!(ran.code, Some(0), "{word}: {}", ran.err);
        assert_eq!(ran.out.lines().next(), Some(first), "{word}: {}", ran.out);
    }
    let ran = run(&["--help"]);
    assert_eq!(ran.out.lines().next(), Some("Typed decisions about a text"));
    let ran = run(&["random-checkpoint", "--help"]);
    for shape in laya::checkpoint::Shape::ALL {
        assert!(ran.out.contains(shape.as_str()), "{}", ran.out);
    }
}

#[test]
fn inspects_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let model = copy_with_contract(folder.path());
    let ran = run(&["inspect", model.to_str().unwrap(), "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let shown: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(
        (&shown["encoder"]["width"], &shown["head"]["max_len"]),
        (&128.into(), &256.into())
    );
    assert_eq!(shown["decisions"], serde_json::json!(["urgent", "kind"]));
    assert_eq!(
        shown["missing"],
        serde_json::json!(["relay-manifest.json", "recorded probes"])
    );
    assert!(shown["contract"].as_str().unwrap().starts_with("sha256:"));
    let ran = run(&["inspect", "tiny-laya"]);
    assert!(
        ran.out.contains("digest") && ran.out.contains("encoder.width"),
        "{}",
        ran.out
    );
    std::fs::remove_file(model.join("model.safetensors")).unwrap();
    let ran = run(&["inspect", model.to_str().unwrap()]);
    assert_eq!(ran.code, Some(3));
    assert!(
        ran.err.contains("'model.safetensors' not found in"),
        "{}",
        ran.err
    );
}

#[test]
fn probes_a_server_and_a_folder() {
    let server = Server::tiny(&[]);
    let address = server.address.to_string();
    let ran = run(&["probe", "--ready", "--address", &address]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "ready\n"),
        "{}",
        ran.err
    );
    server.send("POST", "/drain", &[], b"");
    let ran = run(&["probe", "--ready", "--address", &address]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("laya: not ready: Draining"), "{}", ran.err);
    let ran = run(&["probe", "--ready", "--address", "127.0.0.1:1"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("no answer from http://127.0.0.1:1/ready"),
        "{}",
        ran.err
    );

    let folder = tempfile::tempdir().unwrap();
    let model = copy_with_contract(folder.path());
    let model = model.to_str().unwrap();
    let ran = run(&["probe", model]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "passed\n"),
        "{}",
        ran.err
    );
    let ran = run(&["probe", model, "--record"]);
    let probes: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(probes.as_array().map(Vec::len), Some(6), "{}", ran.err);
    assert!(probes[0]["answers"]["kind"]["probability"].is_number());
}

#[test]
fn other_names_of_the_program_are_its_words() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("laya-serve");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_laya"), &link).unwrap();
    let output = std::process::Command::new(link)
        .env_clear()
        .env("LAYA_PORT", "x")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("invalid LAYA_PORT 'x': must be an integer 1-65535"),
        "{said}"
    );
}

#[test]
fn a_damaged_copy_is_not_probed() {
    let folder = tempfile::tempdir().unwrap();
    let model = copy_of_tiny(folder.path());
    std::fs::write(model.join("tokenizer/tokenizer.json"), "{}").unwrap();
    let ran = run(&["probe", model.to_str().unwrap()]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
}

#[test]
fn int8_serves_with_a_passed_report_only() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("tiny.int8.json");
    let path = report.to_str().unwrap();
    let ran = run(&["parity", "tiny-laya", "--precision", "int8", "--out", path]);
    assert!(ran.out.contains("same_answer"), "{}{}", ran.out, ran.err);
    let mut written: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let verdict = written["verdict"].as_str().unwrap().to_owned();
    assert_eq!(
        ran.code,
        Some(if verdict == "Passed" { 0 } else { 1 }),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains(&format!("{verdict}: {path}")),
        "{}",
        ran.out
    );

    // Random weights lie so close to even that int8 may well change an answer; what counts here is what is done with
    // the report.
    let mut set = |verdict: &str| {
        written["verdict"] = verdict.into();
        for measure in written["measures"].as_array_mut().unwrap() {
            measure["value"] = measure["bound"].clone();
        }
        std::fs::write(&report, written.to_string()).unwrap();
    };
    set("Passed");
    for place in [path, folder.path().to_str().unwrap()] {
        let server = Server::start(
            &[("LAYA_PARITY", place)],
            &["--model", "tiny-laya", "--precision", "int8"],
        );
        let shown = server.get("/ready").json()["checkpoints"]["model"].clone();
        assert_eq!(
            (&shown["precision"], &shown["parity"]),
            (&"int8".into(), &"Passed".into())
        );
        assert_eq!(server.ask(crate::ONE_CHOICE).status, 200);
    }
    let lazy = Server::start(
        &[("LAYA_PARITY", path), ("LAYA_PRELOAD", "0")],
        &["--model", "tiny-laya", "--precision", "int8"],
    );
    assert_eq!(lazy.ask(crate::ONE_CHOICE).status, 200);
    set("Failed");
    let output = laya(&[("LAYA_PARITY", path)])
        .args([
            "serve",
            "--port",
            "0",
            "--model",
            "tiny-laya",
            "--precision",
            "int8",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("the verdict is Failed"), "{said}");
}

#[test]
fn an_unchecked_precision_answers_and_is_never_ready() {
    let server = Server::start_unready(
        &[],
        &["--model", "tiny-laya", "--precision", "int8", "--unchecked"],
    );
    server.until("it answers", || server.ask(crate::ONE_CHOICE).status == 200);
    let ready = server.get("/ready");
    assert_eq!(ready.status, 503);
    assert_eq!(ready.json()["checkpoints"]["model"]["parity"], "Unchecked");
}
