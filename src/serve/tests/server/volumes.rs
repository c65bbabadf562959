//! `laya fetch`, `verify` and `prune` as programs: their lines, their files, their codes, and how a signal ends them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use testkit::SiteFault;
use testkit::files::FileServer;

use crate::copy_of_tiny;
use crate::support::laya;

const WEIGHTS: &str = "model.safetensors";

/// A server with the tiny checkpoint, and the file that names its files.
fn source(base: &Path) -> (FileServer, String) {
    use sha2::Digest as _;
    let folder = copy_of_tiny(base);
    let server = FileServer::start();
    let mut files = Vec::new();
    for path in laya::checkpoint::REQUIRED_FILES {
        let content = std::fs::read(folder.join(path)).expect("a file");
        let digest = sha2::Sha256::digest(&content);
        let sha256: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        files.push(serde_json::json!({"path": path, "size": content.len(), "sha256": sha256}));
        server.put(path, content);
    }
    let manifest = serde_json::json!({"baseUrl": server.url(), "files": files});
    let file = base.join("manifest.json");
    std::fs::write(&file, manifest.to_string()).expect("written");
    (server, file.display().to_string())
}

fn command(arguments: &[&str], result_file: &Path) -> Command {
    let mut command = laya(&[("LAYA_RESULT_FILE", &result_file.display().to_string())]);
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The code, the PROGRESS lines and the RESULT, which must be the last line and what the file holds.
fn ended(child: Child, result_file: &Path) -> (Option<i32>, Vec<Value>, Value) {
    let output = child.wait_with_output().expect("ends");
    let out = String::from_utf8(output.stdout).expect("UTF-8");
    let mut lines: Vec<&str> = out.lines().collect();
    let said = String::from_utf8_lossy(&output.stderr);
    let last = lines.pop().unwrap_or_else(|| panic!("no line: {said}"));
    let result = last.strip_prefix("RESULT ").expect("a RESULT at the end");
    let kept = std::fs::read_to_string(result_file).expect("a result file");
    assert_eq!(kept.trim_end(), result);
    let progress = lines.iter().map(|line| {
        let json = line.strip_prefix("PROGRESS ").expect("a PROGRESS line");
        serde_json::from_str(json).expect("JSON")
    });
    (
        output.status.code(),
        progress.collect(),
        serde_json::from_str(result).expect("JSON"),
    )
}

fn run(arguments: &[&str], result_file: &Path) -> (Option<i32>, Vec<Value>, Value) {
    let child = command(arguments, result_file).spawn().expect("starts");
    ended(child, result_file)
}

#[test]
fn a_checkpoint_goes_in_is_verified_and_goes_out() {
    let base = tempfile::tempdir().expect("a folder");
    let (_server, manifest) = source(base.path());
    let (models, file) = (base.path().join("models"), base.path().join("result.json"));
    let models = models.display().to_string();

    let fetch = ["fetch", "--models", &models, "--manifest", &manifest];
    let (code, progress, result) = run(&fetch, &file);
    assert_eq!((code, &result["ok"]), (Some(0), &true.into()), "{result}");
    assert_eq!(result["present"], false);
    let phases: Vec<&str> = progress
        .iter()
        .map(|line| line["phase"].as_str().expect("a phase"))
        .collect();
    assert_eq!(phases.first(), Some(&"prepare"));
    assert!(phases.contains(&"fetch") && phases.contains(&"publish"));
    let digest = result["digest"].as_str().expect("a digest").to_owned();
    assert_eq!(run(&fetch, &file).2["present"], true);

    let verify = ["verify", "--models", &models, "--digest", &digest];
    let (code, _, result) = run(&verify, &file);
    assert_eq!((code, &result["ok"]), (Some(0), &true.into()), "{result}");

    // What was published is what a server takes.
    let folder = format!("{models}/{}", digest.replace(':', "-"));
    let mut inspect = laya(&[]);
    let seen = inspect
        .args(["inspect", "--full", "--json", &folder])
        .output()
        .expect("runs");
    let seen: Value = serde_json::from_slice(&seen.stdout).expect("JSON");
    assert_eq!(
        (&seen["digest"], &seen["verified"]),
        (&digest.clone().into(), &true.into())
    );

    std::fs::remove_file(format!("{folder}/{WEIGHTS}")).expect("removed");
    let (code, _, result) = run(&verify, &file);
    assert_eq!((code, &result["reason"]), (Some(3), &"ModelDamaged".into()));
    assert_eq!(result["code"], 3);

    let (code, _, result) = run(&["prune", "--models", &models, "--delete", &digest], &file);
    assert_eq!((code, &result["deleted"][0]), (Some(0), &digest.into()));
    assert!(!Path::new(&folder).exists());
}

#[test]
fn fault_38_a_signal_ends_a_fetch_with_75_and_the_next_run_goes_on() {
    let base = tempfile::tempdir().expect("a folder");
    let (server, manifest) = source(base.path());
    let (models, file) = (base.path().join("models"), base.path().join("result.json"));
    let models = models.display().to_string();
    let fetch = ["fetch", "--models", &models, "--manifest", &manifest];
    server.fail(WEIGHTS, SiteFault::Slow(512, Duration::from_millis(20)));
    let mut child = command(&fetch, &file).spawn().expect("starts");
    // Once bytes of the weights are here.
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    while !line.contains(WEIGHTS) {
        line.clear();
        assert!(out.read_line(&mut line).expect("a line") > 0, "it ended");
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("sent");
    let mut last = String::new();
    for line in out.lines() {
        last = line.expect("a line");
    }
    assert_eq!(child.wait().expect("ends").code(), Some(75));
    let result: Value =
        serde_json::from_str(last.strip_prefix("RESULT ").expect("a RESULT")).expect("JSON");
    assert_eq!(
        (&result["ok"], &result["code"]),
        (&false.into(), &75.into())
    );

    server.heal();
    server.forget();
    let (code, _, result) = run(&fetch, &file);
    assert_eq!(code, Some(0), "{result}");
    let gone_on = server
        .seen()
        .iter()
        .any(|seen| seen.target().contains(WEIGHTS) && seen.header("range").is_some());
    assert!(gone_on, "the part was not gone on with");
}

#[test]
fn what_is_not_understood_ends_with_2() {
    let base = tempfile::tempdir().expect("a folder");
    let file = base.path().join("result.json");
    // clap speaks for itself; what is read later has a RESULT.
    let mut fetch = command(&["fetch", "--models", "m"], &file);
    assert_eq!(fetch.output().expect("runs").status.code(), Some(2));
    let arguments = ["fetch", "--models", "m", "--manifest", "/nothing/there"];
    let (code, _, result) = run(&arguments, &file);
    assert_eq!((code, &result["code"]), (Some(2), &2.into()));
    let help = command(&["fetch", "--help"], &file).output().expect("runs");
    let help = String::from_utf8(help.stdout).expect("UTF-8");
    for word in ["--oci", "--prunable", "--result-file", "Exit codes"] {
        assert!(help.contains(word), "{help}");
    }
}
