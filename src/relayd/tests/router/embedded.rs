//! `relayd local` with the engine inside: models and servers from the daemon's calls to an answered decision, restarts,
//! ends, and what is said where there is nothing to say.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use laya::checkpoint::{Shape, inspect, write_random};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Answer, PATIENCE, Router, ask, relayd, wait_for};

pub(crate) const GROUP: &str = "/apis/relay.dev/v1alpha1/namespaces/default";

/// A `relayd local` with this home and the engine inside.
fn local(home: &Path, more: &[&str]) -> Router {
    let mut command = relayd(&["local", "--listen", "127.0.0.1:0"]);
    command.args(["--admin-listen", "127.0.0.1:0", "--daemon-port", "0"]);
    command.args(["--log-format", "json"]).args(more);
    Router::spawn(command.env("RELAY_HOME", home))
}

pub(crate) fn embedded(home: &Path) -> Router {
    local(home, &["--backend", "embedded"])
}

fn daemon(home: &Path) -> SocketAddr {
    let text = fs::read_to_string(home.join("daemon/endpoint.json")).unwrap();
    let endpoint: Value = serde_json::from_str(&text).unwrap();
    let url = endpoint["url"].as_str().unwrap();
    url.strip_prefix("http://").unwrap().parse().unwrap()
}

/// One request to the daemon's port.
pub(crate) fn call(home: &Path, method: &str, path: &str, kind: &str, body: &str) -> Answer {
    let token = fs::read_to_string(home.join("daemon/token")).unwrap();
    let (token, length) = (token.trim(), body.len());
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: {kind}\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    ask(daemon(home), request.as_bytes())
}

pub(crate) fn get(home: &Path, path: &str) -> Answer {
    call(home, "GET", path, "application/json", "")
}

pub(crate) fn post(home: &Path, path: &str, body: &Value) -> Answer {
    call(home, "POST", path, "application/json", &body.to_string())
}

pub(crate) fn patch(home: &Path, path: &str, body: &Value) -> Answer {
    let kind = "application/merge-patch+json";
    call(home, "PATCH", path, kind, &body.to_string())
}

/// A folder with a tiny random checkpoint, and its digest.
fn checkpoint(home: &Path, name: &str, seed: u64) -> (String, String) {
    let folder = home.join(name);
    write_random(&folder, Shape::Tiny, seed).unwrap();
    let digest = inspect(&folder, None).unwrap().digest.unwrap();
    (folder.to_str().unwrap().to_owned(), digest)
}

/// Imports a random checkpoint with Relay's own wording; waits until the model is Ready. Its digest.
pub(crate) fn model(home: &Path, name: &str, seed: u64) -> String {
    let (path, _) = checkpoint(home, &format!("{name}-files"), seed);
    // It says itself for which questions it was made, as `laya random-checkpoint --contract relay` writes it.
    let wording = decision::RELAY_DECISIONS_JSON;
    fs::write(Path::new(&path).join("decisions.json"), wording).unwrap();
    let digest = inspect(Path::new(&path), None).unwrap().digest.unwrap();
    let body = json!({
        "name": name, "namespace": "default", "path": path, "decisions": decision::RELAY_DECISIONS_JSON,
    });
    let imported = post(home, "/api/import", &body);
    assert_eq!(imported.status, 200, "{imported:?}");
    assert_eq!(imported.json()["digest"], digest.as_str());
    until_true(home, "layamodels", name, "Ready");
    digest
}

fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == kind);
    found.cloned().unwrap_or_default()
}

fn until_true(home: &Path, plural: &str, name: &str, kind: &str) -> Value {
    let path = format!("{GROUP}/{plural}/{name}");
    let began = Instant::now();
    loop {
        let object = get(home, &path).json();
        if condition(&object, kind)["status"] == "True" {
            return object;
        }
        assert!(began.elapsed() < PATIENCE, "{kind} of {name}: {object:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn stopped(router: &mut Router) {
    router.signal(Signal::TERM);
    assert_eq!(router.ended().code(), Some(0), "{:?}", router.log());
}

#[test]
fn a_folder_becomes_a_verified_model_and_is_pruned_when_nothing_names_it() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut router = embedded(home);
    let engine = get(home, "/api/engine").json();
    assert_eq!(engine["backend"], "embedded", "{engine:#}");
    assert_eq!(engine["chosen"], "flag");
    assert_eq!(engine["reachable"], true);
    assert_eq!(engine["gpu"], Value::Null);
    assert_eq!(engine["models"], json!([]));

    let digest = model(home, "v1", 1);
    let object = get(home, &format!("{GROUP}/layamodels/v1")).json();
    assert_eq!(object["status"]["digest"], digest.as_str(), "{object:#}");
    assert_eq!(object["spec"]["source"]["volume"]["name"], "models");
    assert_eq!(object["status"]["location"]["backend"], "embedded");
    let contract = object["spec"]["contract"].as_str().unwrap();
    let document = format!(
        "/apis/apps/v1/namespaces/default/controllerrevisions/contract-{}",
        &contract[7..19]
    );
    assert_eq!(get(home, &document).status, 200);
    let engine = get(home, "/api/engine").json();
    assert_eq!(engine["models"][0]["digest"], digest.as_str(), "{engine:#}");
    assert!(engine["modelsVolume"]["freeBytes"].as_u64().unwrap() > 0);

    // The same folder again is the same model; another one needs another name.
    let same = json!({"name": "v1", "namespace": "default", "path": home.join("v1-files")});
    assert_eq!(post(home, "/api/import", &same).status, 200);
    let (other, _) = checkpoint(home, "other", 2);
    let taken = post(
        home,
        "/api/import",
        &json!({"name": "v1", "namespace": "default", "path": other}),
    );
    assert_eq!(taken.status, 409, "{taken:?}");
    assert!(taken.body.contains("another name"), "{taken:?}");

    // It was found before anything was copied.
    let engine = get(home, "/api/engine").json();
    assert_eq!(engine["models"].as_array().unwrap().len(), 1, "{engine:#}");

    // Files that were damaged since, under right sizes, are mended by the good ones.
    let published = home.join("models").join(digest.replace(':', "-"));
    let weights = published.join("model.safetensors");
    let good = fs::read(&weights).unwrap();
    let mut wrong = good.clone();
    wrong[77] ^= 1;
    fs::remove_file(&weights).unwrap();
    fs::write(&weights, wrong).unwrap();
    assert_eq!(post(home, "/api/import", &same).status, 200);
    assert_eq!(fs::read(&weights).unwrap(), good);

    // What no object names goes, once it was said and agreed to; the model's own files stay.
    let fresh = json!({"name": "second", "namespace": "default", "path": other});
    assert_eq!(post(home, "/api/import", &fresh).status, 200);
    let second = format!("{GROUP}/layamodels/second");
    let deleted = call(home, "DELETE", &second, "application/json", "");
    assert!(deleted.status < 300, "{deleted:?}");
    wait_for("the object to be gone", || {
        (get(home, &second).status == 404).then_some(())
    });
    let dry = post(home, "/api/prune", &json!({"dryRun": true})).json();
    assert_eq!(dry["delete"].as_array().unwrap().len(), 1, "{dry:#}");
    assert_eq!(dry["keep"][0]["digest"], digest.as_str(), "{dry:#}");
    assert_eq!(dry["keep"][0]["why"], "LayaModel default/v1");
    let pruned = post(home, "/api/prune", &json!({"delete": []})).json();
    assert_eq!(pruned["deleted"], json!([]), "nothing was agreed to");
    let pruned = post(home, "/api/prune", &json!({})).json();
    assert_eq!(pruned["ok"], true, "{pruned:#}");
    assert_eq!(
        pruned["deleted"][0], dry["delete"][0]["digest"],
        "{pruned:#}"
    );
    let engine = get(home, "/api/engine").json();
    assert_eq!(engine["models"].as_array().unwrap().len(), 1);

    let unknown = get(home, "/api/logs/default/layamodels/nobody");
    assert_eq!(unknown.status, 404, "{unknown:?}");
    stopped(&mut router);
}

#[test]
fn fault_40_wrong_calls_are_refused_with_the_path_of_their_field() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut router = embedded(home);
    let (folder, _) = checkpoint(home, "files", 3);
    let other_wording =
        decision::RELAY_DECISIONS_JSON.replacen("instructions\": \"", "instructions\": \"Now: ", 1);
    let import = |body: Value| post(home, "/api/import", &body);
    for (name, answer, field) in [
        (
            "no name",
            import(json!({"namespace": "default", "path": folder})),
            "name",
        ),
        (
            "a climbing name",
            import(json!({"name": "../x", "namespace": "default", "path": folder})),
            "name",
        ),
        (
            "a relative path",
            import(json!({"name": "a", "namespace": "default", "path": "files"})),
            "path",
        ),
        (
            "no such folder",
            import(json!({"name": "a", "namespace": "default", "path": "/nothing/there"})),
            "path",
        ),
        (
            "no checkpoint",
            import(json!({"name": "a", "namespace": "default", "path": home.join("daemon/tls")})),
            "path",
        ),
        (
            "no path and no model",
            import(json!({"name": "a", "namespace": "default", "decisions": other_wording})),
            "path",
        ),
        (
            "no wording",
            import(
                json!({"name": "a", "namespace": "default", "path": folder, "decisions": {"a": 1}}),
            ),
            "decisions",
        ),
        (
            "an unknown field",
            import(json!({"name": "a", "namespace": "default", "more": 1})),
            "more",
        ),
        (
            "an unknown back end",
            post(home, "/api/backend", &json!({"backend": "podman"})),
            "backend",
        ),
        (
            "an unknown end",
            post(home, "/api/shutdown", &json!({"servers": "burn"})),
            "servers",
        ),
        (
            "a tail that is too long",
            get(home, "/api/logs/default/layaservers/main?tail=65537"),
            "tail",
        ),
    ] {
        assert_eq!(answer.status, 422, "{name}: {answer:?}");
        let causes = &answer.json()["details"]["causes"];
        assert_eq!(causes[0]["field"], field, "{name}: {answer:?}");
    }
    assert_eq!(
        get(home, "/api/logs/default/routingpolicies/default").status,
        404
    );
    assert_eq!(get(home, "/api/import").status, 405);
    assert_eq!(
        call(home, "POST", "/api/import", "application/json", "{").status,
        400
    );
    // Without the token nobody gets that far.
    let request = b"GET /api/engine HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!(ask(daemon(home), request).status, 401);
    // Nothing was made, and nothing was published.
    let models = get(home, &format!("{GROUP}/layamodels")).json();
    assert_eq!(models["items"], json!([]));
    stopped(&mut router);
}

#[test]
fn the_back_end_is_chosen_once_and_changed_by_a_wish_only() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let chosen = |more: &[&str]| {
        let mut router = local(home, more);
        let engine = get(home, "/api/engine").json();
        stopped(&mut router);
        let word = |key: &str| engine[key].as_str().unwrap().to_owned();
        (word("backend"), word("chosen"))
    };
    let pair = |backend: &str, by: &str| (backend.to_owned(), by.to_owned());
    assert_eq!(chosen(&["--no-docker"]), pair("embedded", "flag"));
    assert_eq!(chosen(&[]), pair("embedded", "meta"));
    let mut router = local(home, &[]);
    assert_eq!(
        post(home, "/api/backend", &json!({"backend": "docker"})).status,
        202
    );
    // Until the next start it is what it was.
    assert_eq!(get(home, "/api/engine").json()["backend"], "embedded");
    let ended = post(home, "/api/shutdown", &json!({"servers": "stop"}));
    assert_eq!(ended.status, 202, "{ended:?}");
    assert_eq!(router.ended().code(), Some(0), "{:?}", router.log());
    // An engine that is not there takes nothing from the choice, and is said.
    let mut command = relayd(&[
        "local",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
    ]);
    command.args(["--daemon-port", "0", "--log-format", "json"]);
    let nowhere = format!("unix://{}", home.join("nothing.sock").display());
    command.env("RELAY_HOME", home).env("DOCKER_HOST", nowhere);
    let mut router = Router::spawn(&mut command);
    let engine = get(home, "/api/engine").json();
    assert_eq!(engine["backend"], "docker", "{engine:#}");
    assert_eq!(engine["chosen"], "meta");
    assert_eq!(engine["reachable"], false);
    assert_eq!(engine["reason"], "EngineUnavailable", "{engine:#}");
    stopped(&mut router);
    assert_eq!(chosen(&["--backend", "embedded"]), pair("embedded", "flag"));
}

#[test]
fn fault_37_a_damaged_store_is_kept_aside_and_the_models_are_there_for_new_objects() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut router = embedded(home);
    let digest = model(home, "v1", 4);
    stopped(&mut router);
    fs::write(home.join("objects.db"), b"no database at all").unwrap();
    let mut router = embedded(home);
    let models = get(home, &format!("{GROUP}/layamodels")).json();
    assert_eq!(models["items"], json!([]));
    // Servers inside ended with the process: nothing is unclaimed, and that is said.
    let recovered = post(home, "/api/recover", &json!({})).json();
    assert_eq!(recovered["made"], json!([]), "{recovered:#}");
    assert!(
        recovered["message"]
            .as_str()
            .unwrap()
            .contains("nothing to recover")
    );
    assert_eq!(get(home, "/api/engine").json()["unclaimed"], json!([]));
    // The files are those of the same store, and are found by the next import.
    let again = json!({"name": "again", "namespace": "default", "path": home.join("v1-files")});
    let imported = post(home, "/api/import", &again);
    assert_eq!(imported.json()["digest"], digest.as_str(), "{imported:?}");
    until_true(home, "layamodels", "again", "Ready");
    stopped(&mut router);
}

#[test]
fn a_controller_of_its_own_reconciles_the_objects_of_a_laptop() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut router = local(home, &["--no-controller"]);
    let refused = get(home, "/api/engine");
    assert_eq!(refused.status, 409, "{refused:?}");
    let kubeconfig = home.join("daemon/kubeconfig");
    let kubeconfig = kubeconfig.to_str().unwrap();
    let mut command = relayd(&[
        "controller",
        "--backend",
        "embedded",
        "--kubeconfig",
        kubeconfig,
    ]);
    command.args(["--admin-listen", "127.0.0.1:0", "--log-format", "json"]);
    let mut controller = Controller::spawn(command.env("RELAY_HOME", home));
    let policy = json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "metadata": {"name": "default"}, "spec": {},
    });
    let made = post(home, &format!("{GROUP}/routingpolicies"), &policy);
    assert_eq!(made.status, 201, "{made:?}");
    wait_for("the policy to be accepted", || {
        let policy = get(home, &format!("{GROUP}/routingpolicies/default")).json();
        policy["status"]["acceptedRevision"]
            .as_str()
            .map(str::to_owned)
    });
    // What this process remembers as deleted is swept by the other one.
    let path = format!("{GROUP}/routingpolicies/default");
    let uid = get(home, &path).json()["metadata"]["uid"].clone();
    let uid = uid.as_str().unwrap();
    let asked = || get(home, &format!("/api/tombstones/{uid}")).json();
    assert_eq!(asked(), json!({"uid": uid, "deleted": false}));
    let deleted = call(home, "DELETE", &path, "application/json", "");
    assert!(deleted.status < 300, "{deleted:?}");
    wait_for("the policy to be remembered as deleted", || {
        (asked()["deleted"] == true).then_some(())
    });
    assert_eq!(get(home, "/api/tombstones/a%3Fb").status, 422);
    controller.stop();
    stopped(&mut router);
}

/// A `relayd controller`; killed when dropped.
struct Controller(std::process::Child);

impl Controller {
    fn spawn(command: &mut std::process::Command) -> Self {
        let command = command.stderr(std::process::Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn stop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, Signal::TERM).unwrap();
        let code = wait_for("the controller to end", || self.0.try_wait().unwrap());
        assert_eq!(code.code(), Some(0));
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
