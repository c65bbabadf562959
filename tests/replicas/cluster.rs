//! The processes under test: one PostgreSQL, two Laya servers, three routers. Each can be killed and comes back at the
//! same address. Everything is gone with the test, on panic too.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::programs::{Answer, Home, Http, Laya, Router, checkpoint, free_port, until};
use crate::programs::{PATIENCE, workspace};

/// Routers of the cluster.
pub(crate) const ROUTERS: usize = 3;
const MODELS: usize = 2;
/// The built-in policy, but that rules answer well before a client counts its request as lost, and that a server which
/// failed is tried again soon: one that is back before anybody looked is found by a request alone.
const POLICY: &str = "\
apiVersion: relay.dev/v1alpha1
kind: RoutingPolicy
metadata: {name: replicas}
spec: {deadlines: {timeoutMillis: 2000, breakerSeconds: 2}}
";

/// A PostgreSQL with a data folder and a port of its own.
pub(crate) struct Postgres {
    name: String,
    pub(crate) url: String,
}

impl Postgres {
    fn start() -> Self {
        let name = format!("replicas-{}", std::process::id());
        let url = script("start", &name);
        Self { name, url }
    }

    /// Ends all its processes at once, as a power cut would.
    pub(crate) fn kill(&self) {
        script("kill", &self.name);
    }

    /// Brings it back with what it had; returns once it takes connections.
    pub(crate) fn restart(&self) {
        assert_eq!(script("start", &self.name), self.url);
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = engine("stop", &self.name).status();
    }
}

fn engine(word: &str, name: &str) -> Command {
    let mut command = Command::new(workspace().join("tests/engines/postgres.sh"));
    command.args([word, name]).stdin(Stdio::null());
    command
}

fn script(word: &str, name: &str) -> String {
    // The server it starts holds on to standard error, so that is not read to its end.
    let output = engine(word, name)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "postgres.sh {word}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Everything that runs.
pub(crate) struct Cluster {
    // Dropped in this order: what depends on others first.
    routers: Vec<Option<Router>>,
    models: Vec<Option<Laya>>,
    pub(crate) postgres: Postgres,
    ports: [u16; ROUTERS],
    model_ports: [u16; MODELS],
    checkpoint: PathBuf,
    home: Home,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let home = Home::new();
        let mut cluster = Self {
            routers: Vec::new(),
            models: Vec::new(),
            postgres: Postgres::start(),
            ports: std::array::from_fn(|_| free_port()),
            model_ports: std::array::from_fn(|_| free_port()),
            checkpoint: checkpoint(&home),
            home,
        };
        for at in 0..MODELS {
            let model = cluster.laya(at);
            cluster.models.push(Some(model));
        }
        for at in 0..ROUTERS {
            let router = cluster.router(at);
            cluster.routers.push(Some(router));
        }
        cluster.until_ready();
        cluster
    }

    /// Addresses of the routers.
    pub(crate) fn urls(&self) -> [String; ROUTERS] {
        self.ports.map(|port| format!("http://127.0.0.1:{port}"))
    }

    fn laya(&self, at: usize) -> Laya {
        let log = self.home.path().join(format!("laya-{at}.log"));
        Laya::start(&self.checkpoint, self.model_ports[at], &log)
    }

    fn router(&self, at: usize) -> Router {
        let listen = format!("127.0.0.1:{}", self.ports[at]);
        let policy = self.home.file("policy.yaml", POLICY);
        let mut arguments = vec!["--listen", &listen, "--database-url", &self.postgres.url];
        arguments.extend(["--policy", policy.to_str().unwrap()]);
        let models = self
            .model_ports
            .map(|port| format!("http://127.0.0.1:{port}"));
        for model in &models {
            arguments.extend(["--laya-url", model]);
        }
        let log = self.home.path().join(format!("router-{at}.log"));
        Router::run(&mut self.home.relayd(&arguments), &log)
    }

    pub(crate) fn kill_router(&mut self, at: usize) {
        self.routers[at].take().unwrap().kill();
    }

    pub(crate) fn restart_router(&mut self, at: usize) {
        self.routers[at] = Some(self.router(at));
    }

    pub(crate) fn kill_model(&mut self, at: usize) {
        self.models[at].take().unwrap().kill();
    }

    pub(crate) fn restart_model(&mut self, at: usize) {
        self.models[at] = Some(self.laya(at));
    }

    /// Waits until every router says that it and its store are ready.
    pub(crate) fn until_ready(&self) {
        let http = Http::new(PATIENCE);
        for url in self.urls() {
            until("every router is ready", || {
                match http.get(&format!("{url}/ready")) {
                    Ok(Answer { status: 200, .. }) => Ok(()),
                    other => Err(format!("{url}: {other:?}")),
                }
            });
        }
    }

    /// Waits until every router has every model behind it again: no breaker is open.
    pub(crate) fn until_models_serve(&self) {
        let http = Http::new(Duration::from_secs(5));
        for url in self.urls() {
            let mut asked = 0;
            until("no breaker is open", || {
                // Each to the server that its text belongs to.
                asked += 1;
                let body =
                    json!({"request": format!("Rename the field number {asked}"), "dry_run": true});
                http.post(&format!("{url}/v1/route"), &body)?;
                let metrics = http.get(&format!("{url}/metrics"))?.text();
                let breakers: Vec<_> = metrics
                    .lines()
                    .filter(|line| line.starts_with("relay_router_breaker_open{"))
                    .collect();
                let closed = breakers.iter().filter(|line| line.ends_with(" 0")).count();
                if closed == MODELS {
                    Ok(())
                } else {
                    Err(format!("{url}: {breakers:?}"))
                }
            });
        }
    }
}

/// What a person would want to see of a run that failed is said by [`Router`]'s own drop; this checks that nobody
/// panicked inside.
pub(crate) fn assert_no_panics(urls: &[String]) {
    let http = Http::new(PATIENCE);
    for url in urls {
        let metrics = http.get(&format!("{url}/metrics")).unwrap().text();
        let line = metrics
            .lines()
            .find(|line| line.starts_with("relay_task_panics_total "));
        assert_eq!(line, Some("relay_task_panics_total 0"), "{url}");
    }
}
