//! `relay route` as a person runs it: output, exit codes, bad input. No router answers here.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by panicking"
)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// An address where nothing listens: port 9 of this machine, refused at once.
const NOWHERE: &str = "http://127.0.0.1:9";

fn relay(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relay"));
    command
        .env_clear()
        .env("RELAY_HOME", home)
        .env("LAYA_BASE_URL", NOWHERE);
    command
}

fn home() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    relay(home).args(arguments).output().unwrap()
}

fn with_stdin(home: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = relay(home)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses early may close its input first; that is its right.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[test]
fn shows_the_documented_table() {
    let home = home();
    let output = run(home.path(), &["route", "Fix the login token expiry"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    let text = out(&output);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        &lines[..4],
        [
            "strong  anthropic/claude-opus-5-5  medium   (rules, confidence 0.50)",
            "task        bug fix, module, complexity 50%, risk 100%",
            "why         authentication: at least strong, medium, review       role  security-engineer",
            "next        openai-codex/gpt-6-sol, google/gemini-3.1-pro-preview, anthropic/claude-fable-5-1",
        ]
    );
    assert!(lines[4].starts_with("id          0"), "{text}");
    assert!(
        err(&output).contains("note: no router at http://127.0.0.1:9"),
        "{}",
        err(&output)
    );
}

#[test]
fn json_is_the_whole_record() {
    let home = home();
    let output = run(
        home.path(),
        &["route", "-o", "json", "Rename the author field"],
    );
    assert_eq!(code(&output), 0);
    let record: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(record["selected"]["tier"], "fast");
    assert_eq!(record["assessment"]["source"], "rules");
    assert_eq!(record["provenance"]["fallback"], "router_unreachable");
    assert_eq!(record["request"], "Rename the author field");
    for key in [
        "id",
        "task_id",
        "created",
        "policy",
        "alternatives",
        "excluded",
        "escalations",
        "tools",
        "plan",
    ] {
        assert!(!record[key].is_null(), "{key} is missing");
    }
}

#[test]
fn explain_tells_each_step_and_each_candidate() {
    let home = home();
    let output = run(
        home.path(),
        &["route", "--explain", "Fix the login token expiry"],
    );
    let text = out(&output);
    for expected in [
        "How it was decided",
        "`fix` in type.bug_fix",
        "rule          authentication",
        "floor         strong   a rule fired",
        "Candidates",
        "as good; the order of the list decides",
        "less useful",
        "Not considered",
        "below min tier",
    ] {
        assert!(
            text.contains(expected),
            "`{expected}` is missing in:\n{text}"
        );
    }
}

#[test]
fn choices_of_the_user_win() {
    let home = home();
    let json = |arguments: &[&str]| -> Value {
        let mut all = vec!["route", "-o", "json"];
        all.extend(arguments);
        let output = run(home.path(), &all);
        assert_eq!(code(&output), 0, "{arguments:?}: {}", err(&output));
        serde_json::from_str(&out(&output)).unwrap()
    };
    let text = "Fix the login token expiry";
    assert_eq!(
        json(&["--profile", "critical", text])["selected"]["tier"],
        "frontier"
    );
    assert_eq!(
        json(&["--tier", "balanced", text])["selected"]["tier"],
        "balanced"
    );
    assert_eq!(
        json(&["--effort", "extra_high", text])["selected"]["thinking_level"],
        "xhigh"
    );
    assert_eq!(
        json(&["--providers", "google", text])["selected"]["provider"],
        "google"
    );
    let own = json(&["--model", "acme/new/model", text]);
    assert_eq!(
        (&own["selected"]["provider"], &own["selected"]["id"]),
        (&"acme".into(), &"new/model".into())
    );
    assert_eq!(own["warnings"][0]["code"], "capability_unknown");
}

#[test]
fn refuses_bad_arguments_with_code_2() {
    let home = home();
    let long = "x".repeat(100_001);
    for (name, arguments, told) in [
        ("nothing to route", vec!["route"], "required"),
        (
            "unknown tier",
            vec!["route", "--tier", "huge", "x y"],
            "fast, balanced, strong, frontier",
        ),
        (
            "unknown effort",
            vec!["route", "--effort", "max", "x y"],
            "minimal, low, medium, high, extra_high",
        ),
        (
            "no reference",
            vec!["route", "--model", "opus", "x y"],
            "opus",
        ),
        (
            "unknown profile",
            vec!["route", "--profile", "cheap", "x y"],
            "profile: `cheap` is unknown",
        ),
        (
            "a profile of any length",
            vec!["route", "--profile", &long, "x y"],
            "profile: has 100001 UTF-16 units, limit 128",
        ),
        (
            "the virtual model",
            vec!["route", "--model", "laya/auto", "x y"],
            "constraints.model: `laya/auto` stands for",
        ),
        (
            "blank",
            vec!["route", "  \n "],
            "request: must not be blank",
        ),
        ("empty", vec!["route", ""], "request: must not be blank"),
        (
            "too long",
            vec!["route", &long],
            "request: has 100001 UTF-16 units, limit 100000",
        ),
        ("unknown flag", vec!["route", "--fast", "x"], "--fast"),
        ("unknown command", vec!["rotue", "x"], "rotue"),
        (
            "text and batch",
            vec!["route", "--batch", "f", "x"],
            "cannot be used with",
        ),
    ] {
        let output = run(home.path(), &arguments);
        assert_eq!(code(&output), 2, "{name}: {}", err(&output));
        assert!(err(&output).contains(told), "{name}: {}", err(&output));
        assert_eq!(out(&output), "", "{name}");
        // One line and a hint: nothing was decided, so nothing is noted, and nothing is quoted without end.
        assert!(
            err(&output).starts_with("relay: "),
            "{name}: {}",
            err(&output)
        );
        assert!(!err(&output).contains("note: "), "{name}: {}", err(&output));
        assert!(err(&output).len() < 1000, "{name}");
    }
}

/// Nothing that lies where a file should be can hold the program or fill its memory.
#[test]
fn what_is_no_file_is_refused_by_its_name() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    for kind in ["pipe", "device"] {
        for name in [
            "agent/settings.json",
            "agent/auth.json",
            "daemon/endpoint.json",
            "words.toml",
        ] {
            let home = home();
            let path = home.path().join(name);
            let settings = home.path().join("agent/settings.json");
            for path in [&path, &settings] {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            }
            if name == "words.toml" {
                let text = serde_json::json!({"laya": {"keywords": path}});
                std::fs::write(settings, text.to_string()).unwrap();
            }
            match kind {
                "pipe" => mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
                _ => std::os::unix::fs::symlink("/dev/zero", &path).unwrap(),
            }
            let mut command = relay(home.path());
            command.args(["route", "x y"]);
            if name.contains("endpoint") {
                command.env_remove("LAYA_BASE_URL");
            }
            let output = command.output().unwrap();
            let told = format!("{}: is a {kind}, not a regular file", path.display());
            // That of the daemon is no file of the user's, and only a matter of where to ask.
            if name.contains("endpoint") {
                assert_eq!(code(&output), 0, "{}", err(&output));
                assert!(err(&output).contains("counts as no running router"));
            } else {
                assert_eq!((code(&output), out(&output).as_str()), (1, ""), "{name}");
            }
            assert!(err(&output).contains(&told), "{name}: {}", err(&output));
        }
    }
}

#[test]
fn a_batch_may_come_through_a_named_pipe() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let home = home();
    let pipe = home.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let writer = {
        let pipe = pipe.clone();
        std::thread::spawn(move || std::fs::write(pipe, "{\"request\":\"Fix the pager\"}\n"))
    };
    let output = run(home.path(), &["route", "--batch", pipe.to_str().unwrap()]);
    writer.join().unwrap().unwrap();
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert!(out(&output).starts_with("balanced  "), "{}", out(&output));
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_file() {
    let home = home();
    let write = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("\u{feff}{text}")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    write("agent/settings.json", r#"{"laya":{"policy":"economy"}}"#);
    let auth = write(
        "agent/auth.json",
        r#"{"laya":{"type":"api_key","key":"stored"}}"#,
    );
    let batch = write("lines.jsonl", "{\"request\":\"Fix the pager\"}\n");
    let output = run(home.path(), &["route", "-o", "json", "--batch", &batch]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    let record: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(record["profile"], "economy");
    let told = format!("note: {auth} holds keys and has mode 0");
    assert!(err(&output).contains(&told), "{}", err(&output));
}

#[test]
fn an_address_is_refused_without_its_password() {
    let home = home();
    let output = relay(home.path())
        .args(["route", "x y"])
        .env("LAYA_BASE_URL", "http://me:hunter2@127.0.0.1:9")
        .output()
        .unwrap();
    assert_eq!((code(&output), out(&output).as_str()), (2, ""));
    assert_eq!(
        err(&output),
        "relay: the address of the router in LAYA_BASE_URL must not hold a user name or a password\n\
         hint: the key of a router goes into LAYA_API_KEY or auth.json\n"
    );
}

#[test]
fn arguments_reach_no_terminal_raw() {
    let home = home();
    let nasty = "\u{1b}]0;owned\u{7}\u{202e}\r\n";
    let flag = format!("--{nasty}");
    for arguments in [
        &["route", &flag, "x"][..],
        &["route", "--tier", nasty, "x"],
        &["route", "--model", nasty, "x"],
        &["route", "--output", nasty, "x"],
        &["route", "--profile", nasty, "x"],
        &["route", "x", nasty],
        &[nasty],
    ] {
        let output = run(home.path(), arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", err(&output));
        let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!err(&output).contains(bad), "{:?}", err(&output));
    }
    let output = run(home.path(), &["route", "--tire", "fast", "x"]);
    assert_eq!(
        err(&output),
        "relay: unexpected argument '--tire' found\nhint: a similar argument exists: '--tier'\n"
    );
}

/// A full disk is an error, unlike a reader that has seen enough.
#[test]
fn help_that_cannot_be_written_is_an_error() {
    let home = home();
    for arguments in [&["--help"][..], &["--version"], &["route", "--help"]] {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = relay(home.path())
            .args(arguments)
            .stdout(full)
            .output()
            .unwrap();
        assert_eq!(code(&output), 1, "{arguments:?}: {}", err(&output));
        assert!(
            err(&output).contains("cannot write to standard output"),
            "{}",
            err(&output)
        );
    }
}

#[test]
fn reads_and_refuses_standard_input() {
    let home = home();
    let output = with_stdin(
        home.path(),
        &["route", "-o", "json", "-"],
        b"Fix the pager\n\n",
    );
    assert_eq!(code(&output), 0);
    let record: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(
        record["request"], "Fix the pager",
        "the line end behind it is not part of it"
    );
    let large = vec![b'x'; 10 << 20];
    for (name, input, told) in [
        (
            "invalid UTF-8",
            &b"Fix \xff the pager"[..],
            "not valid UTF-8 at byte 4",
        ),
        (
            "an encoded surrogate",
            &b"Fix \xed\xa0\x80"[..],
            "not valid UTF-8 at byte 4",
        ),
        ("nothing", &b""[..], "request: must not be blank"),
        ("10 MB", &large[..], "more than 1048576 bytes"),
    ] {
        let output = with_stdin(home.path(), &["route", "-"], input);
        assert_eq!(code(&output), 2, "{name}: {}", err(&output));
        assert!(err(&output).contains(told), "{name}: {}", err(&output));
    }
}

#[test]
fn control_characters_reach_no_terminal() {
    let home = home();
    let text = "Fix\u{1b}]0;owned\u{7} the login\u{0}\u{202e} form";
    let output = with_stdin(home.path(), &["route", "--explain", "-"], text.as_bytes());
    assert_eq!(code(&output), 0, "{}", err(&output));
    for stream in [out(&output), err(&output)] {
        let bad = stream
            .chars()
            .find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(bad, None, "{stream:?}");
    }
}

#[test]
fn a_batch_goes_on_after_bad_lines() {
    let home = home();
    let file = home.path().join("requests.jsonl");
    let lines = [
        r#"{"request":"Fix the login token expiry","conversation_id":"c"}"#,
        r#"{"request":"continue","conversation_id":"c"}"#,
        r#"{"request":"x y","unknown":1}"#,
        "",
        r#"{"request":"  "}"#,
        r#"{"request":"Rename the author field","profile":"economy"}"#,
        r#"{"request":"x y","profile":"cheap"}"#,
        "not json",
        r#"{"request":"\ud800"}"#,
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    let output = run(
        home.path(),
        &["route", "--batch", file.to_str().unwrap(), "-o", "json"],
    );
    assert_eq!(code(&output), 1, "{}", err(&output));
    let records: Vec<Value> = out(&output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.len(), 3);
    assert_eq!(records[1]["follow_up"], "continuation");
    assert_eq!(
        records[1]["selected"]["model"],
        records[0]["selected"]["model"]
    );
    assert_eq!(records[2]["profile"], "economy");
    let told = err(&output);
    for line in [
        "line 3: unknown field",
        "line 5: request: must not be blank",
        "line 7: profile:",
        "line 8:",
        "line 9:",
    ] {
        assert!(told.contains(line), "`{line}` is missing in:\n{told}");
    }
    assert!(
        told.ends_with("3 decided (fast 1, strong 2), 5 bad\n"),
        "{told}"
    );

    let good = b"{\"request\":\"Fix the pager\"}\n";
    let output = with_stdin(home.path(), &["route", "--batch", "-"], good);
    assert_eq!(code(&output), 0);
    assert!(out(&output).starts_with("balanced  "), "{}", out(&output));
    let output = run(
        home.path(),
        &["route", "--batch", "/nowhere/requests.jsonl"],
    );
    assert_eq!(code(&output), 1);
    assert!(
        err(&output).contains("/nowhere/requests.jsonl"),
        "{}",
        err(&output)
    );
}

#[test]
fn exit_codes_of_what_cannot_be_decided() {
    let home = home();
    let output = run(home.path(), &["route", "--no-fallback", "x y"]);
    assert_eq!(code(&output), 4, "{}", err(&output));
    assert!(
        err(&output).contains("hint: start one with `relayd router`"),
        "{}",
        err(&output)
    );
    let output = run(home.path(), &["route", "--providers", "nobody", "x y"]);
    assert_eq!(code(&output), 3, "{}", err(&output));
    assert!(err(&output).contains("laya.models"), "{}", err(&output));
}

#[test]
fn the_users_settings_hold_and_damaged_files_are_named() {
    let home = home();
    let settings = home.path().join("agent/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let keywords = home.path().join("words.toml");
    let write = |text: &str| std::fs::write(&settings, text).unwrap();
    write(
        r#"{"theme":"dark","laya":{"policy":"economy","models":{"fast":["mine/small"]},"new":1}}"#,
    );
    let output = run(
        home.path(),
        &["route", "-o", "json", "Rename the author field"],
    );
    let record: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(
        (&record["profile"], &record["selected"]["model"]),
        (&"economy".into(), &"mine/small".into())
    );
    assert!(err(&output).contains("laya.new"), "{}", err(&output));

    let with_words = format!(
        r#"{{"laya":{{"keywords":{:?}}}}}"#,
        keywords.to_str().unwrap()
    );
    for (name, text, words, told) in [
        ("no JSON", "{\"laya\":", "", "settings.json"),
        (
            "a wrong value",
            r#"{"laya":{"quota":{"anthropic":2}}}"#,
            "",
            "laya.quota.anthropic",
        ),
        (
            "a bad address",
            r#"{"laya":{"baseUrl":"router"}}"#,
            "",
            "laya.baseUrl",
        ),
        (
            "an unknown profile",
            r#"{"laya":{"policy":"cheap"}}"#,
            "",
            "settings.json: laya.policy: `cheap` is unknown; there are",
        ),
        (
            "a model twice",
            r#"{"laya":{"models":{"fast":["a/b","a/b"]}}}"#,
            "",
            "laya.models.fast[1]: `a/b` is listed twice",
        ),
        (
            "an address with a password",
            r#"{"laya":{"baseUrl":"http://me:hunter2@a"}}"#,
            "",
            "laya.baseUrl: must not hold a user name or a password",
        ),
        (
            "no such keyword file",
            r#"{"laya":{"keywords":"/nowhere/words.toml"}}"#,
            "",
            "/nowhere/words.toml",
        ),
        (
            "a damaged keyword file",
            &with_words,
            "version = 1\n[[group]\n",
            "words.toml",
        ),
        (
            "an unknown group",
            &with_words,
            "version = 1\n[[group]]\nid = \"topic.cats\"\nany = [\"cat\"]\n",
            "topic.cats",
        ),
    ] {
        write(text);
        std::fs::write(&keywords, words).unwrap();
        let output = run(home.path(), &["route", "Rename the author field"]);
        assert_eq!(code(&output), 1, "{name}: {}", err(&output));
        assert!(err(&output).contains(told), "{name}: {}", err(&output));
        assert!(
            !err(&output).contains("hunter2"),
            "{name}: {}",
            err(&output)
        );
        assert!(!err(&output).contains("note: "), "{name}: {}", err(&output));
    }
    write(&with_words);
    std::fs::write(
        &keywords,
        "version = 1\n[[group]]\nid = \"topic.auth\"\nany = [\"frobnicate\"]\n",
    )
    .unwrap();
    let output = run(
        home.path(),
        &["route", "-o", "json", "Fix the frobnicate module"],
    );
    let record: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(
        record["policy"]["rules"],
        serde_json::json!(["authentication"])
    );
}

#[test]
fn help_and_version_are_answers() {
    let home = home();
    for arguments in [&["--version"][..], &["--help"], &["route", "--help"]] {
        let output = run(home.path(), arguments);
        assert_eq!(code(&output), 0, "{arguments:?}");
        assert!(
            !out(&output).is_empty() && err(&output).is_empty(),
            "{arguments:?}"
        );
    }
    let help = out(&run(home.path(), &["route", "--help"]));
    for told in [
        "Exit codes: 0 decided",
        "LAYA_BASE_URL",
        "LAYA_API_KEY",
        "RELAY_HOME",
    ] {
        assert!(help.contains(told), "{told}: {help}");
    }
    let output = run(home.path(), &[]);
    assert_eq!((code(&output), out(&output).as_str()), (2, ""));
    assert!(
        err(&output).contains("Usage: relay <COMMAND>"),
        "{}",
        err(&output)
    );
}
