//! This machine: home, space, program, socket, files with secrets, daemon, router, ports.

use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use super::{Check, GIB, TOO_LITTLE};
use crate::call::Call;
use crate::daemon::{self, Model, State};
use crate::error::CliError;
use crate::router::Router;
use crate::verbs::status::{Missing, lost, port_problem};
use crate::verbs::up;
use crate::verbs::version::VERSION;

/// Ports of `relayd local` (design 7).
const PORTS: [(u16, &str, &str); 3] = [
    (8737, "router", "RELAYD_LISTEN=127.0.0.1:0"),
    (4748, "object API", "RELAYD_DAEMON_PORT=0"),
    (9737, "metrics", "RELAYD_ADMIN_LISTEN=127.0.0.1:0"),
];
/// Files with secrets below the daemon's folder.
const SECRETS: [&str; 5] = ["sock", "token", "kubeconfig", "tls/key.pem", "lock"];

/// This machine; whether its API is worth asking.
pub(super) async fn check(call: &Call, checks: &mut Vec<Check>) -> Result<bool, CliError> {
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
    let own = up::has_own_address(&endpoint);
    let taken = port_problem(endpoint.router.as_deref(), own, None, daemon::port_holder);
    if let Some(Missing { what, fix }) = taken {
        checks.push(Check::warn("ports", what, fix));
    }
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
        Ok(bytes) => judge_space(path, bytes),
        Err(error) => Check::warn(
            "space",
            format!("{}: {error}", path.display()),
            "look at the disk",
        ),
    }
}

fn judge_space(path: &Path, bytes: u64) -> Check {
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let free = format!("{:.1} GiB free", bytes as f64 / GIB as f64);
    let found = if bytes < GIB {
        let place = path.display();
        let need = TOO_LITTLE.div_ceil(1 << 20);
        format!("{place}: {free}; below {need} MiB nothing new is stored, a version needs 1 GiB")
    } else {
        free
    };
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
    let by = daemon::port_holder(port).map_or(String::new(), |holder| format!(", {holder} has it"));
    let found = format!("port {port} of the {what} cannot be had: {error}{by}");
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
            "relayctl status tells which command brings one",
        ),
        Err(error) => Check::fail(
            "router",
            format!("{url}: {error}"),
            "relayctl down && relayctl up",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::doctor::Health;

    #[test]
    fn space_is_judged() {
        for (bytes, health) in [
            (0, Health::Fail),
            (GIB / 2, Health::Warn),
            (20 * GIB, Health::Ok),
        ] {
            let check = judge_space(Path::new("/home/relay"), bytes);
            assert_eq!(check.health, health, "{bytes}");
        }
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
