//! `relayctl doctor`: what Relay needs, checked in order, each ok, warn or fail with what helps. What a check means is
//! pure where it can be; asking is not.

use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use kube::client::Body;
use serde::Serialize;
use serde_json::{Value, json};

use super::status::lost;
use super::version::VERSION;
use super::{up, validate};
use crate::call::Call;
use crate::daemon::{self, Model, State};
use crate::error::CliError;
use crate::kinds::{self, Kind};
use crate::output::table::Table;
use crate::output::{self, CLI_VERSION};
use crate::router::Router;
use crate::server::Server;
use crate::terminal;
use api::exit::Exit;

const GIB: u64 = 1 << 30;
/// Clocks that differ more make deadlines and ages wrong.
const MAX_SKEW_SECONDS: i64 = 5;
/// Ports of `relayd local` (design 7).
const PORTS: [(u16, &str, &str); 3] = [
    (8737, "router", "RELAYD_LISTEN=127.0.0.1:0"),
    (4748, "object API", "RELAYD_DAEMON_PORT=0"),
    (9737, "metrics", "RELAYD_ADMIN_LISTEN=127.0.0.1:0"),
];
/// Files with secrets below the daemon's folder.
const SECRETS: [&str; 5] = ["sock", "token", "kubeconfig", "tls/key.pem", "lock"];
/// Less free space is a failure, in bytes.
pub(crate) const TOO_LITTLE: u64 = GIB / 10;
/// What a person who runs Relay does with objects.
const VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Health {
    Ok,
    Warn,
    Fail,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    health: Health,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            health: Health::Ok,
            found: found.into(),
            fix: None,
        }
    }

    fn warn(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            name,
            health: Health::Warn,
            found: found.into(),
            fix: Some(fix.into()),
        }
    }

    fn fail(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            health: Health::Fail,
            ..Self::warn(name, found, fix)
        }
    }
}

/// Checks everything.
pub(crate) async fn run(call: &Call) -> Result<Exit, CliError> {
    let server = call.connect().await?;
    let mut checks = Vec::new();
    let mut serves = true;
    if server.context.is_local() {
        serves = machine(call, &mut checks).await?;
    }
    if serves {
        api(&server, &mut checks).await?;
    }
    let failed = checks.iter().any(|check| check.health == Health::Fail);
    if call.format().is_table() {
        let mut table = Table::new(&["CHECK", "STATE", "FOUND", "FIX"]);
        for check in &checks {
            let state = match check.health {
                Health::Ok => "ok",
                Health::Warn => "warn",
                Health::Fail => "fail",
            };
            let fix = check.fix.clone().unwrap_or_default();
            let fix = call.program.speak(&fix).into_owned();
            table.push(vec![
                check.name.to_owned(),
                state.to_owned(),
                check.found.clone(),
                fix,
            ]);
        }
        terminal::print(&table.render(call.headers(), call.styles()))?;
    } else {
        let document = json!({
            "apiVersion": CLI_VERSION,
            "kind": "Doctor",
            "context": server.context.name,
            "healthy": !failed,
            "checks": checks,
        });
        output::tree(&document, &call.format())?;
    }
    Ok(if failed {
        Exit::Differences
    } else {
        Exit::Done
    })
}

/// This machine; whether its API is worth asking.
async fn machine(call: &Call, checks: &mut Vec<Check>) -> Result<bool, CliError> {
    let places = call.places()?;
    checks.push(home(&places.relay));
    checks.push(space(&places.relay));
    checks.push(program());
    checks.extend(socket(&places.socket()));
    for name in SECRETS {
        checks.extend(exposed(&places.daemon().join(name)));
    }
    for lost in lost(&places) {
        checks.push(Check::warn("stores", lost.what, lost.fix));
    }
    let state = daemon::look(&places);
    checks.push(match &state {
        State::Absent => Check::fail("daemon", "`relayd local` is not running", "relayctl up"),
        State::Crashed(how) => Check::fail(
            "daemon",
            format!("it ended without cleaning up: {how}"),
            "relayctl up",
        ),
        State::Runs(endpoint) if endpoint.version != VERSION => Check::warn(
            "daemon",
            format!(
                "process {} is of version {}, this program of {VERSION}",
                endpoint.process.pid, endpoint.version
            ),
            "relayctl down && relayctl up",
        ),
        State::Runs(endpoint) => Check::ok("daemon", format!("process {}", endpoint.process.pid)),
    });
    let State::Runs(endpoint) = state else {
        checks.extend(
            PORTS
                .into_iter()
                .filter_map(|(port, what, other)| port_taken(port, what, other)),
        );
        return Ok(false);
    };
    checks.push(match &endpoint.router {
        None => Check::fail(
            "router",
            "endpoint.json names none",
            "relayctl down && relayctl up",
        ),
        Some(url) => router(url, up::model_said(&places, &endpoint)).await,
    });
    Ok(true)
}

fn home(path: &Path) -> Check {
    let shown = path.display();
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Check::warn("home", format!("{shown} is not there yet"), "relayctl up")
        }
        Err(error) => Check::fail(
            "home",
            format!("{shown}: {error}"),
            "set RELAY_HOME to a folder of yours",
        ),
        Ok(metadata) if !metadata.is_dir() => Check::fail(
            "home",
            format!("{shown} is no folder"),
            "set RELAY_HOME to a folder of yours",
        ),
        Ok(_) if rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_err() => Check::fail(
            "home",
            format!("{shown} cannot be written"),
            format!("chmod u+w {shown}"),
        ),
        Ok(metadata) if metadata.permissions().mode() & 0o022 != 0 => Check::warn(
            "home",
            format!("others can write to {shown}"),
            format!("chmod 700 {shown}"),
        ),
        Ok(_) => Check::ok("home", shown.to_string()),
    }
}

/// What stands where the socket belongs, or that nothing can.
fn socket(path: &Path) -> Option<Check> {
    let shown = path.display();
    let length = path.as_os_str().len();
    if length > up::MAX_SOCKET {
        return Some(Check::fail(
            "socket",
            format!(
                "{shown} has {length} bytes, and a socket at most {}",
                up::MAX_SOCKET
            ),
            "set RELAY_HOME to a shorter folder",
        ));
    }
    let metadata = std::fs::symlink_metadata(path).ok()?;
    (!metadata.file_type().is_socket()).then(|| {
        Check::fail(
            "socket",
            format!("{shown} is no socket"),
            format!("mv {shown} {shown}.old && relayctl up"),
        )
    })
}

/// Files with secrets are their owner's alone; the socket lets in whoever can write to it.
fn exposed(path: &Path) -> Option<Check> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    let shown = path.display();
    (mode & 0o077 != 0).then(|| {
        Check::fail(
            "files",
            format!("others can use {shown} (mode {mode:04o})"),
            format!("chmod 600 {shown}"),
        )
    })
}

fn space(path: &Path) -> Check {
    match daemon::free_bytes(path) {
        Ok(bytes) => judge_space(bytes),
        Err(error) => Check::warn(
            "space",
            format!("{}: {error}", path.display()),
            "look at the disk",
        ),
    }
}

fn judge_space(bytes: u64) -> Check {
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let found = format!("{:.1} GiB free", bytes as f64 / GIB as f64);
    let fix = "free some space, or move RELAY_HOME";
    if bytes < TOO_LITTLE {
        Check::fail("space", found, fix)
    } else if bytes < GIB {
        Check::warn("space", found, fix)
    } else {
        Check::ok("space", found)
    }
}

/// The daemon that `up` would start.
fn program() -> Check {
    let program = match daemon::find_program() {
        Ok(program) => program,
        Err(error) => {
            return Check::fail(
                "program",
                error.line(),
                error.hint_text().unwrap_or_default(),
            );
        }
    };
    let shown = program.display();
    let said = std::process::Command::new(&program)
        .arg("--version")
        .output();
    let version = said
        .ok()
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match version
        .as_deref()
        .and_then(|text| text.strip_prefix("relayd "))
    {
        Some(VERSION) => Check::ok("program", format!("{shown} {VERSION}")),
        Some(other) => Check::warn(
            "program",
            format!("{shown} is of version {other}, this program of {VERSION}"),
            "install both from one release",
        ),
        None => Check::fail(
            "program",
            format!("{shown} does not run"),
            "install it anew",
        ),
    }
}

fn port_taken(port: u16, what: &str, other: &str) -> Option<Check> {
    let error = TcpListener::bind(("127.0.0.1", port)).err()?;
    let found = format!("port {port} of the {what} cannot be had: {error}");
    Some(Check::warn(
        "ports",
        found,
        format!("nothing: a free one is taken instead; `{other} relayctl up` asks for one"),
    ))
}

async fn router(url: &str, model: Option<Model>) -> Check {
    let answer = match Router::at(url) {
        Ok(router) => router.ask("/health").await,
        Err(error) => Err(error),
    };
    match answer {
        Ok(health) if health["ok"] == true => Check::ok("router", format!("{url}, a model serves")),
        Ok(_) => Check::warn(
            "router",
            match model {
                Some(Model::Refused(why)) => {
                    format!("{url}, keyword rules answer: there is no decision model: {why}")
                }
                Some(Model::Loading) => format!("{url}, the decision model is being loaded"),
                None => format!("{url}, keyword rules answer: there is no decision model"),
            },
            "relayctl down && RELAYD_CHECKPOINT=<folder of a checkpoint> relayctl up",
        ),
        Err(error) => Check::fail(
            "router",
            format!("{url}: {error}"),
            "relayctl down && relayctl up",
        ),
    }
}

/// What the object API of any context must do.
async fn api(server: &Server, checks: &mut Vec<Check>) -> Result<(), CliError> {
    match server.read("/version").await {
        Ok(version) => {
            let version = version["gitVersion"]
                .as_str()
                .unwrap_or("of unknown version");
            checks.push(Check::ok(
                "api",
                format!("context {}, {version}", server.context.name),
            ));
        }
        Err(error) => {
            let error = server.failed(error);
            checks.push(Check::fail(
                "api",
                error.line(),
                error.hint_text().unwrap_or("relayctl context show"),
            ));
            return Ok(());
        }
    }
    if !server.context.is_local() {
        checks.extend(clock(server).await);
    }
    checks.push(served(server).await);
    if !server.context.is_local() {
        checks.push(schemas(server).await?);
        checks.push(rights(server).await);
    }
    Ok(())
}

/// The server's clock against ours.
async fn clock(server: &Server) -> Option<Check> {
    let request = http::Request::get("/version").body(Body::empty()).ok()?;
    let response = tokio::time::timeout(server.timeout, server.client.send(request))
        .await
        .ok()?
        .ok()?;
    let date = response.headers().get(http::header::DATE)?.to_str().ok()?;
    let theirs = DateTimeParser::new().parse_timestamp(date).ok()?;
    Some(judge_clock(
        Timestamp::now().duration_since(theirs).as_secs(),
    ))
}

fn judge_clock(ahead: i64) -> Check {
    if ahead.abs() <= MAX_SKEW_SECONDS {
        return Check::ok("clock", "as the server's");
    }
    let direction = if ahead > 0 { "ahead of" } else { "behind" };
    let found = format!("this clock is {} s {direction} the server's", ahead.abs());
    Check::warn("clock", found, "synchronise both clocks")
}

/// Whether every kind is there.
async fn served(server: &Server) -> Check {
    let name = "kinds";
    let path = format!("/apis/{}/{}", kinds::GROUP, kinds::VERSION);
    let list = match server.read(&path).await {
        Ok(list) => list,
        Err(error) if error.is_not_found() => Value::Null,
        Err(error) => {
            return Check::fail(name, server.failed(error).line(), "relayctl context show");
        }
    };
    let resources = list["resources"].as_array().cloned().unwrap_or_default();
    let missing: Vec<_> = kinds::own()
        .filter(|kind| {
            !resources
                .iter()
                .any(|resource| resource["name"] == kind.plural)
        })
        .map(|kind| kind.kind)
        .collect();
    if missing.is_empty() {
        Check::ok(name, "all of them are served")
    } else {
        Check::fail(
            name,
            format!("not served: {}", missing.join(", ")),
            "install the CRDs of this release (crds/)",
        )
    }
}

/// Whether the CRDs of a cluster are those of this program.
async fn schemas(server: &Server) -> Result<Check, CliError> {
    let name = "schemas";
    let mut other = Vec::new();
    for kind in kinds::own() {
        let path = format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}.{}",
            kind.plural, kind.group
        );
        let theirs = match server.read(&path).await {
            Ok(theirs) => theirs,
            Err(error) if error.is_not_found() => continue,
            Err(error) => {
                let found = format!("cannot be compared: {}", server.failed(error).line());
                return Ok(Check::warn(
                    name,
                    found,
                    "ask for the right to get customresourcedefinitions",
                ));
            }
        };
        if let Some(ours) = validate::crd(kind)?
            && schema(&ours) != schema(&theirs)
        {
            other.push(kind.kind);
        }
    }
    Ok(if other.is_empty() {
        Check::ok(name, "those of this release")
    } else {
        let found = format!("other than in this program: {}", other.join(", "));
        Check::warn(name, found, "install CRDs and relayctl from one release")
    })
}

fn schema(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// What may not be done, by asking.
async fn rights(server: &Server) -> Check {
    let name = "rights";
    let mut missing = Vec::new();
    for kind in kinds::own() {
        for verb in VERBS {
            match may(server, kind, verb).await {
                Ok(true) => {}
                Ok(false) => missing.push(format!("{verb} {}", kind.plural)),
                Err(error) => {
                    return Check::warn(
                        name,
                        format!("cannot be asked: {error}"),
                        "ask an administrator",
                    );
                }
            }
        }
    }
    if missing.is_empty() {
        return Check::ok(name, format!("all, in namespace {}", server.namespace));
    }
    let reads = missing
        .iter()
        .any(|right| right.starts_with("get ") || right.starts_with("list "));
    let found = format!(
        "missing in namespace {}: {}",
        server.namespace,
        missing.join(", ")
    );
    let fix = "ask for a role with these verbs on relay.dev";
    if reads {
        Check::fail(name, found, fix)
    } else {
        Check::warn(name, found, fix)
    }
}

async fn may(server: &Server, kind: &Kind, verb: &str) -> Result<bool, String> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "namespace": server.namespace, "group": kind.group, "resource": kind.plural, "verb": verb,
        }},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = server
        .create(path, &review)
        .await
        .map_err(|error| error.to_string())?;
    Ok(answer["status"]["allowed"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_and_clocks_are_judged() {
        for (bytes, health) in [
            (0, Health::Fail),
            (GIB / 2, Health::Warn),
            (20 * GIB, Health::Ok),
        ] {
            assert_eq!(judge_space(bytes).health, health, "{bytes}");
        }
        for (seconds, health) in [
            (0, Health::Ok),
            (-5, Health::Ok),
            (6, Health::Warn),
            (-3600, Health::Warn),
        ] {
            assert_eq!(judge_clock(seconds).health, health, "{seconds}");
        }
        assert_eq!(
            judge_clock(-3600).found,
            "this clock is 3600 s behind the server's"
        );
    }

    #[test]
    fn a_home_that_others_write_to_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let set = |mode| {
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap()
        };
        set(0o700);
        assert_eq!(home(folder.path()).health, Health::Ok);
        set(0o777);
        assert_eq!(home(folder.path()).health, Health::Warn);
        set(0o700);
        assert_eq!(home(&folder.path().join("none")).health, Health::Warn);
        let file = folder.path().join("token");
        std::fs::write(&file, "x").unwrap();
        assert_eq!(home(&file).health, Health::Fail);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(exposed(&file).is_some());
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(exposed(&file).is_none() && exposed(&folder.path().join("none")).is_none());
    }

    #[test]
    fn a_socket_that_cannot_be_is_said_with_what_helps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sock");
        assert_eq!(socket(&path), None);
        std::fs::write(&path, "x").unwrap();
        let check = socket(&path).unwrap();
        assert!(check.fix.unwrap().starts_with("mv "));
        std::fs::remove_file(&path).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(socket(&path), None);
        let long = folder.path().join("x".repeat(200)).join("sock");
        assert!(socket(&long).unwrap().fix.unwrap().contains("shorter"));
    }
}
