//! `relayctl up` and `down` with the real `relayd`: an empty machine, a second start, a crash, two at once, and a policy that
//! is edited.

use std::process::{Child, Stdio};

use crate::programs::{Machine, is_gone, run, until};

#[test]
fn an_empty_machine_comes_up_and_goes_down() {
    let machine = Machine::new();
    let up = machine.relayctl(&["up"]);
    assert_eq!(up.code, 0, "{up:?}");
    for made in [
        "made layamodel/v1, the shipped version, not fetched yet",
        "made layaserver/main, which is to serve v1",
        "made routingpolicy/default",
    ] {
        assert!(up.err.contains(made), "{made}: {up:?}");
    }
    for line in [
        "relayd    process ",
        "router    http://127.0.0.1:",
        "policy    default, revision ",
        "missing   decision model: v1 (678 MB from huggingface.co) is not fetched",
        "add it: relayctl model fetch v1",
    ] {
        assert!(up.out.contains(line), "{line}: {up:?}");
    }
    let get = machine.relayctl(&["get", "rp", "--no-headers"]);
    let cells: Vec<_> = get.out.split_whitespace().collect();
    assert_eq!(
        cells[..4],
        ["default", "balanced", "True", "Accepted"],
        "{get:?}"
    );
    let status = machine.relayctl(&["status", "-o", "json"]).document();
    assert_eq!(status["daemon"]["running"], true, "{status}");
    assert_eq!(status["policies"][0]["accepted"], "True", "{status}");
    assert_eq!(machine.relayctl(&["doctor"]).code, 0);
    assert!(machine.relayctl(&["events"]).out.contains("PolicyAccepted"));

    let pid = machine.pid();
    let again = machine.relayctl(&["up"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(machine.pid(), pid, "the same one is found");
    assert!(!again.err.contains("starting"), "{again:?}");

    let down = machine.relayctl(&["down"]);
    assert_eq!(down.code, 0, "{down:?}");
    assert!(is_gone(pid), "it is gone when `down` says so");
    assert_eq!(
        machine.relayctl(&["down"]).err,
        "`relayd local` is not running\n"
    );
    // What was stored is there again.
    let up = machine.relayctl(&["up"]);
    assert!(
        up.code == 0 && !up.err.contains("made routingpolicy"),
        "{up:?}"
    );
}

#[test]
fn a_crashed_daemon_is_found_and_replaced() {
    let machine = Machine::new();
    assert_eq!(machine.relayctl(&["up"]).code, 0);
    let pid = machine.pid();
    machine.signal(rustix::process::Signal::KILL);
    until("the daemon is dead", || {
        if is_gone(pid) {
            Ok(())
        } else {
            Err("alive".to_owned())
        }
    });
    let get = machine.relayctl(&["get", "rp"]);
    assert_eq!(get.code, 6, "{get:?}");
    let status = machine.relayctl(&["status"]);
    assert!(
        status.out.contains("ended without cleaning up"),
        "{status:?}"
    );
    let up = machine.relayctl(&["up"]);
    assert_eq!(up.code, 0, "{up:?}");
    assert!(up.err.contains("ended without cleaning up"), "{up:?}");
    assert_ne!(machine.pid(), pid);
}

#[test]
fn two_at_once_end_with_one_daemon() {
    let machine = Machine::new();
    let start = || -> Child {
        machine
            .command("relayctl", &["up"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let both = [start(), start()];
    let outputs = both.map(|child| child.wait_with_output().unwrap());
    let daemons: Vec<_> = outputs
        .iter()
        .map(|output| {
            assert!(output.status.success(), "{output:?}");
            let out = String::from_utf8_lossy(&output.stdout).into_owned();
            out.lines().next().unwrap_or_default().to_owned()
        })
        .collect();
    assert_eq!(daemons[0], daemons[1]);
    assert!(
        daemons[0].contains(&format!("process {},", machine.pid())),
        "{daemons:?}"
    );
}

#[test]
fn a_daemon_that_cannot_start_is_told_with_its_own_words() {
    let machine = Machine::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let up = run(machine
        .command("relayctl", &["up"])
        .env("RELAYD_LISTEN", &address));
    assert_eq!(up.code, 1, "{up:?}");
    assert!(
        up.err
            .contains("`relayd local` ended with exit status: 3: ")
            && up.err.contains(&address),
        "{up:?}"
    );
    assert!(up.err.contains("its log is "), "{up:?}");
}

#[test]
fn an_edited_policy_changes_what_relay_decides_and_a_bad_edit_does_not() {
    let machine = Machine::new();
    assert_eq!(machine.relayctl(&["up"]).code, 0);
    let router = machine.endpoint().unwrap()["router"]
        .as_str()
        .unwrap()
        .to_owned();
    let tier = || {
        let mut command = machine.command(
            "relay",
            &["route", "-o", "json", "rename the flux capacitor"],
        );
        let decided = run(command.env("LAYA_BASE_URL", &router));
        assert!(
            decided.code == 0 && !decided.err.contains("note:"),
            "{decided:?}"
        );
        decided.record()["selected"]["tier"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let file = |rules: &str| {
        let text = format!(
            "apiVersion: relay.dev/v1alpha1\nkind: RoutingPolicy\nmetadata: {{name: default}}\nspec:\n  exploration: \"0\"\n  rules:\n    - id: flux\n      patterns: {rules}\n      floor: {{tier: frontier}}\n"
        );
        machine.home.file("policy.yaml", text).display().to_string()
    };
    assert_ne!(tier(), "frontier");
    let good = file("[flux capacitor]");
    let applied = machine.relayctl(&["apply", "-f", &good, "--wait"]);
    assert_eq!(applied.code, 0, "{applied:?}");
    until("the router follows", || match tier().as_str() {
        "frontier" => Ok(()),
        other => Err(other.to_owned()),
    });
    // A rule that the schema lets through and the compiler does not.
    let bad = file("[\" \"]");
    let applied = machine.relayctl(&["apply", "-f", &bad, "--wait"]);
    assert_eq!(applied.code, 4, "{applied:?}");
    assert_eq!(tier(), "frontier", "the accepted revision stays in force");
    let explained = machine.relayctl(&["explain", "rp/default"]);
    assert!(explained.out.contains("spec.rules[0]"), "{explained:?}");
    assert!(explained.out.contains("stays in force"), "{explained:?}");
}

#[test]
fn a_home_that_is_named_relative_to_the_working_folder_is_one_home() {
    let machine = Machine::new();
    let inside = |arguments: &[&str]| {
        let mut command = machine.command("relayctl", arguments);
        run(command
            .env("RELAY_HOME", "relay")
            .current_dir(machine.home.path()))
    };
    let up = inside(&["up", "--timeout", "30s"]);
    assert_eq!(up.code, 0, "{up:?}");
    let pid = machine.pid();
    let status = machine.relayctl(&["status", "-o", "json"]).document();
    assert_eq!(status["daemon"]["pid"], pid, "{status}");
    assert_eq!(inside(&["down"]).code, 0);
    assert!(is_gone(pid));
    assert!(!machine.folder().join("relay").exists(), "a second home");
}

#[test]
fn a_checkpoint_that_cannot_be_read_and_settings_that_come_too_late_are_said() {
    let machine = Machine::new();
    let up = |checkpoint: &str| {
        let mut command = machine.command("relayctl", &["up"]);
        run(command
            .env("RELAYD_CHECKPOINT", checkpoint)
            .current_dir(machine.home.path()))
    };
    let first = up("no-model");
    assert_eq!(first.code, 0, "{first:?}");
    // Named relative to this folder, not to that of the daemon.
    let named = machine.home.path().join("no-model").display().to_string();
    assert!(
        first.out.contains(&format!("'{named}' is no directory")),
        "{first:?}"
    );
    assert!(!first.err.contains("does not use"), "{first:?}");
    for verb in ["status", "doctor"] {
        let said = machine.relayctl(&[verb]);
        assert!(said.out.contains("is no directory"), "{said:?}");
    }
    let second = up("other-model");
    assert!(
        second
            .err
            .contains("runs already and does not use RELAYD_CHECKPOINT;"),
        "{second:?}"
    );
}

#[test]
fn a_store_that_was_damaged_is_said_to_be_lost() {
    let machine = Machine::new();
    assert_eq!(machine.relayctl(&["up"]).code, 0);
    assert_eq!(machine.relayctl(&["down"]).code, 0);
    std::fs::write(machine.folder().join("objects.db"), [7_u8; 9000]).unwrap();
    for verb in ["up", "status", "doctor"] {
        let said = machine.relayctl(&[verb]);
        let aside = format!("{}/objects.db.damaged-", machine.folder().display());
        assert!(
            said.out.contains(&format!(
                "a damaged store of objects was set aside as {aside}"
            )),
            "{said:?}"
        );
    }
}

#[test]
fn what_get_wrote_is_edited_and_decides_as_soon_as_it_is_applied() {
    let machine = Machine::new();
    assert_eq!(machine.relayctl(&["up"]).code, 0);
    let router = machine.endpoint().unwrap()["router"]
        .as_str()
        .unwrap()
        .to_owned();
    let got = machine
        .relayctl(&["get", "rp", "default", "-o", "yaml"])
        .out;
    let revision = || {
        let mut command = machine.command("relay", &["route", "-o", "json", "rename a field"]);
        let decided = run(command.env("LAYA_BASE_URL", &router)).record();
        decided["provenance"]["policy"]["revision"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let mut seen = vec![revision()];
    for profile in ["critical", "economy", "quality"] {
        let text = got.replace("profile: balanced", &format!("profile: {profile}"));
        assert_ne!(text, got);
        let file = machine.home.file("got.yaml", text).display().to_string();
        assert_eq!(machine.relayctl(&["diff", "-f", &file]).code, 15);
        let applied = machine.relayctl(&["apply", "-f", &file, "--wait"]);
        assert_eq!(applied.code, 0, "{applied:?}");
        // At once, not after a while.
        let now = revision();
        assert!(!seen.contains(&now), "{profile}: {seen:?}");
        seen.push(now);
    }
}

#[test]
fn a_first_try_needs_no_network_and_no_docker() {
    let machine = Machine::new();
    let folder = machine.home.path().join("tiny");
    let folder = folder.to_str().unwrap();
    let arguments = ["random-checkpoint", "--contract", "relay", folder];
    let made = run(&mut machine.command("laya", &arguments));
    assert_eq!(made.code, 0, "{made:?}");
    let up = machine.relayctl(&["up", "--backend", "embedded"]);
    assert_eq!(up.code, 0, "{up:?}");
    assert!(up.out.contains("engine    embedded"), "{up:?}");
    let imported = machine.relayctl(&["model", "import", "tiny", "--dir", folder]);
    assert_eq!(imported.code, 0, "{imported:?}");
    assert!(imported.out.starts_with("tiny: "), "{imported:?}");
    let used = machine.relayctl(&["use", "tiny"]);
    assert_eq!(used.code, 0, "{used:?}");
    assert!(used.out.starts_with("main: tiny serves"), "{used:?}");
    let models = machine.relayctl(&["models", "--no-headers"]).out;
    let tiny = models.lines().find(|line| line.starts_with("tiny "));
    assert!(
        tiny.is_some_and(|line| line.contains("champion")),
        "{models}"
    );
    let status = machine.relayctl(&["rollout", "status", "main"]);
    assert!(status.out.starts_with("main: tiny ("), "{status:?}");
    let serving = machine.relayctl(&["status", "-o", "json"]).document();
    assert_eq!(serving["engine"]["backend"], "embedded", "{serving}");
    assert_eq!(serving["servers"][0]["ready"], "True", "{serving}");
    assert_eq!(machine.relayctl(&["down"]).code, 0);
}
