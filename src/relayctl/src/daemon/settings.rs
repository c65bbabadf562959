//! The variables that `relayd local` was started with against those of this call: a daemon that runs already does not see
//! new ones. Their names are told, never their values, which may be secrets.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

const PREFIX: &str = "RELAYD_";
/// Those that name a file: the daemon has another working folder.
const PATHS: [&str; 5] = [
    "RELAYD_CHECKPOINT",
    "RELAYD_CONFIG",
    "RELAYD_DATABASE_URL_FILE",
    "RELAYD_POLICY",
    "RELAYD_TOKEN_FILE",
];

/// Variables of the daemon by name.
pub(crate) type Variables = BTreeMap<String, OsString>;

/// Those of this call, as the daemon is to see them.
pub(crate) fn own() -> Variables {
    of(std::env::vars_os())
}

fn of(variables: impl Iterator<Item = (OsString, OsString)>) -> Variables {
    variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty())
        .map(|(name, value)| {
            let value = match PATHS.contains(&name.as_str()) {
                true => std::path::absolute(Path::new(&value)).map_or(value, OsString::from),
                false => value,
            };
            (name, value)
        })
        .collect()
}

/// Those a process was started with, if it may be asked.
pub(crate) fn of_process(pid: u32) -> Option<Variables> {
    use std::os::unix::ffi::OsStringExt;
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let pairs = bytes.split(|byte| *byte == 0).filter_map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let text = |part: &[u8]| OsString::from_vec(part.to_vec());
        Some((text(&pair[..at]), text(&pair[at + 1..])))
    });
    Some(of(pairs))
}

/// Names of those of this call that the daemon has not, or with another value.
pub(crate) fn unused<'a>(own: &'a Variables, theirs: &Variables) -> Vec<&'a str> {
    own.iter()
        .filter(|(name, value)| theirs.get(*name) != Some(*value))
        .map(|(name, _)| name.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_running_daemon_does_not_know_is_named() {
        let variables = |pairs: &[(&str, &str)]| {
            of(pairs
                .iter()
                .map(|(name, value)| (OsString::from(name), OsString::from(value))))
        };
        let theirs = variables(&[("RELAYD_LISTEN", "127.0.0.1:1"), ("HOME", "/x")]);
        let own = variables(&[
            ("RELAYD_LISTEN", "127.0.0.1:1"),
            ("RELAYD_CHECKPOINT", "model"),
            ("RELAYD_POLICY", ""),
            ("PATH", "/y"),
        ]);
        assert_eq!(unused(&own, &theirs), ["RELAYD_CHECKPOINT"]);
        let here = std::env::current_dir().unwrap();
        assert_eq!(own["RELAYD_CHECKPOINT"], here.join("model"));
        assert_eq!(unused(&theirs, &theirs), Vec::<&str>::new());
    }

    #[test]
    fn a_process_is_asked_for_its_variables() {
        let mut child = std::process::Command::new("/bin/sleep")
            .arg("60")
            .env_clear()
            .env("RELAYD_LISTEN", "127.0.0.1:1")
            .env("OTHER", "x")
            .spawn()
            .unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        // Until the child is no copy of this process any more.
        let found = loop {
            let found = of_process(child.id()).unwrap();
            if found.len() == 1 || std::time::Instant::now() > deadline {
                break found;
            }
            std::thread::yield_now();
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found["RELAYD_LISTEN"], "127.0.0.1:1");
    }
}
