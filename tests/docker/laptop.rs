//! A laptop with Docker as its user meets it: the first try of the README, another model under load, kills and restarts, a
//! store that is lost. Whatever it made on the engine is gone at its end, on panic too.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::engine::{docker, host, image, told};
use crate::programs::{Ended, Http, Machine, PATIENCE, is_gone, run, until};

/// A machine with an engine.
struct Laptop {
    machine: Machine,
}

impl Laptop {
    fn new() -> Self {
        let machine = Machine::new()
            .with("DOCKER_HOST", host())
            .with("RELAYD_LAYA_IMAGE", image());
        Self { machine }
    }

    /// A command that must end well.
    fn done(&self, arguments: &[&str]) -> Ended {
        let ended = self.machine.relayctl(arguments);
        assert_eq!(ended.code, 0, "relayctl {arguments:?}: {ended:?}");
        ended
    }

    /// A model with random weights, imported.
    fn import(&self, name: &str, seed: &str) {
        let folder = self.machine.home.path().join(name);
        let folder = folder.to_str().unwrap();
        let arguments = [
            "random-checkpoint",
            "--contract",
            "relay",
            "--seed",
            seed,
            folder,
        ];
        let made = run(&mut self.machine.command("laya", &arguments));
        assert_eq!(made.code, 0, "{made:?}");
        self.done(&["model", "import", name, "--dir", folder]);
    }

    fn router(&self) -> String {
        let endpoint = self.machine.endpoint().unwrap();
        endpoint["router"].as_str().unwrap().to_owned()
    }

    /// Which model decides, none when rules do.
    fn decides(&self) -> Option<String> {
        decides(&Http::new(PATIENCE), &self.router())
    }

    fn until_decides(&self, model: &str) {
        until(&format!("{model} decides"), || match self.decides() {
            Some(version) if version == model => Ok(()),
            other => Err(format!("{other:?}")),
        });
    }

    fn filter(&self) -> String {
        let store = std::fs::read_to_string(self.machine.folder().join("instance"));
        let store = store.unwrap_or_default();
        let digits = store.trim().get(..12).unwrap_or("no-store").to_owned();
        format!("label=relay.dev/instance={digits}")
    }

    /// Ids of what runs for this laptop.
    fn running(&self) -> BTreeSet<String> {
        let ids = told(&["ps", "--quiet", "--filter", &self.filter()]);
        ids.lines().map(str::to_owned).collect()
    }

    /// Removes what is on the engine, and says what that was.
    fn clean(&self) {
        let filter = self.filter();
        let ids = |list: &[&str]| {
            let output = docker(&[list, &["--quiet", "--filter", &filter]].concat());
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let lists: [(&[&str], &[&str]); 3] = [
            (&["ps", "--all"], &["rm", "--force", "--volumes"]),
            (&["volume", "ls"], &["volume", "rm", "--force"]),
            (&["network", "ls"], &["network", "rm"]),
        ];
        for (list, remove) in lists {
            for id in ids(list) {
                docker(&[remove, &[id.as_str()]].concat());
            }
            if !std::thread::panicking() {
                assert_eq!(ids(list), Vec::<String>::new(), "left on the engine");
            }
        }
    }
}

impl Drop for Laptop {
    fn drop(&mut self) {
        let _ = self.machine.relayctl(&["down", "--keep-servers"]);
        self.clean();
    }
}

/// Ends whoever asks, on panic too.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn decides(http: &Http, router: &str) -> Option<String> {
    let body = json!({"request": "Rename the author field"});
    let answer = http.post(&format!("{router}/v1/route"), &body);
    let decision = answer.unwrap().ok();
    let model = &decision["provenance"]["model"]["version"];
    model.as_str().map(str::to_owned)
}

#[test]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
fn a_first_try_is_served_exchanged_under_load_killed_and_found_again() {
    let laptop = Laptop::new();
    let up = laptop.done(&["up", "--backend", "docker"]);
    assert!(up.out.contains("engine    docker"), "{up:?}");
    laptop.import("tiny", "1");
    let used = laptop.done(&["use", "tiny"]);
    assert!(used.out.starts_with("main: tiny serves"), "{used:?}");
    laptop.until_decides("tiny");
    let status = laptop.done(&["status", "-o", "json"]).document();
    assert_eq!(status["engine"]["backend"], "docker", "{status}");
    assert_eq!(status["servers"][0]["ready"], "True", "{status}");
    let explained = laptop.done(&["explain", "ls/main"]).out;
    assert!(explained.contains("tiny"), "{explained}");

    // Another one, while somebody asks all the time.
    laptop.import("other", "2");
    let stop = AtomicBool::new(false);
    let router = laptop.router();
    let asked = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let http = Http::new(PATIENCE);
            let mut by = Vec::new();
            while !stop.load(Ordering::SeqCst) {
                by.push(decides(&http, &router));
                std::thread::sleep(Duration::from_millis(10));
            }
            by
        });
        let stops = Stops(&stop);
        laptop.done(&["use", "other"]);
        laptop.until_decides("other");
        drop(stops);
        asking.join().unwrap()
    });
    // Each was answered, or `ok` had failed; and none by rules, since one of the two always served.
    let by: BTreeSet<_> = asked.iter().flatten().map(String::as_str).collect();
    assert_eq!(by, BTreeSet::from(["other", "tiny"]));
    assert!(!asked.contains(&None), "{} by rules", asked.len());

    laptop.done(&["rollout", "undo", "main"]);
    laptop.until_decides("tiny");
    assert!(!laptop.done(&["logs", "main", "--tail", "5"]).out.is_empty());
    until("it rests", || {
        let server = laptop.done(&["get", "ls", "main", "-o", "json"]).document();
        match &server["status"]["candidate"] {
            Value::Null => Ok(()),
            candidate => Err(candidate.to_string()),
        }
    });

    // Servers outlive the daemon, and are found again.
    let before = laptop.running();
    let pid = laptop.machine.pid();
    laptop.machine.signal(rustix::process::Signal::KILL);
    until("the daemon is dead", || {
        is_gone(pid).then_some(()).ok_or_else(String::new)
    });
    laptop.done(&["up"]);
    laptop.until_decides("tiny");
    assert!(laptop.running().is_subset(&before), "nothing new was made");

    laptop.done(&["down"]);
    assert_eq!(laptop.running(), BTreeSet::new(), "`down` stops servers");
    laptop.done(&["up"]);
    laptop.until_decides("tiny");
}

#[test]
#[ignore = "needs the Docker Engine and the image that `cargo xtask test` makes"]
fn fault_37_a_store_that_is_lost_leaves_servers_running_until_they_are_claimed_again() {
    let laptop = Laptop::new();
    laptop.done(&["up", "--backend", "docker"]);
    laptop.import("tiny", "1");
    laptop.done(&["use", "tiny"]);
    laptop.until_decides("tiny");
    let uid = |laptop: &Laptop| {
        let server = laptop.done(&["get", "ls", "main", "-o", "json"]).document();
        server["metadata"]["uid"].as_str().unwrap().to_owned()
    };
    let (running, was) = (laptop.running(), uid(&laptop));
    laptop.done(&["down", "--keep-servers"]);
    assert_eq!(laptop.running(), running, "kept");
    std::fs::write(laptop.machine.folder().join("objects.db"), [7_u8; 9000]).unwrap();

    laptop.done(&["up"]);
    let status = laptop.done(&["status"]).out;
    assert!(status.contains("objects.db.damaged-"), "{status}");
    assert!(status.contains("up --recover"), "{status}");
    assert_eq!(laptop.running(), running, "it serves on, unclaimed");
    // No object names what it reads, and it is not to go all the same.
    let pruned = laptop.done(&["model", "prune", "--dry-run", "-o", "json"]);
    let pruned = pruned.document();
    assert_eq!(pruned["unnamed"], json!([]), "{pruned}");
    assert_eq!(pruned["kept"].as_array().map(Vec::len), Some(1), "{pruned}");

    laptop.done(&["delete", "ls", "main", "--yes"]);
    laptop.done(&["up", "--recover"]);
    assert_eq!(uid(&laptop), was, "as its containers say");
    laptop.until_decides("tiny");
    assert_eq!(laptop.running(), running, "adopted, not made anew");
}
