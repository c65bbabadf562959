//! Where this user's files are and what they say: `RELAY_HOME`, the agent folder, `settings.json`, the stored key and
//! the address of the router (design.md 7, routing.md 20). Reads; writes nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use routing::settings::LayaSettings;
use serde::Deserialize;
use serde_json::Value;

use crate::error::CliError;

/// Key that a router on loopback accepts from anyone.
const LOCAL_KEY: &str = "local";
/// Largest file that is read here, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Looks up an environment variable; a parameter so that tests need no process-wide state.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The user's folders.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    relay: PathBuf,
    agent: PathBuf,
}

/// What `settings.json` says of Laya, with the file it came from.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) laya: LayaSettings,
    /// One line per key that is not understood; such files are shared with other programs.
    pub(crate) notes: Vec<String>,
}

/// Where the router is and with which key it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Router {
    /// Without a trailing slash and without `/v1`.
    pub(crate) origin: String,
    pub(crate) key: String,
}

impl Home {
    /// Finds the folders.
    pub(crate) fn find(environment: Environment<'_>) -> Result<Self, CliError> {
        let set = |name: &str| {
            environment(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let relay = match set("RELAY_HOME") {
            Some(home) => home,
            None => match set("HOME") {
                Some(home) => home.join(".relay"),
                None => {
                    return Err(CliError::usage(
                        "cannot find your files: neither RELAY_HOME nor HOME is set",
                    ));
                }
            },
        };
        let agent = set("RELAY_CODING_AGENT_DIR").unwrap_or_else(|| relay.join("agent"));
        Ok(Self { relay, agent })
    }

    /// Reads `laya.*` of the user's `settings.json`. Project files are not read until trust is built (agent.md 3.2).
    pub(crate) fn settings(&self) -> Result<Settings, CliError> {
        let path = self.agent.join("settings.json");
        let Some(tree) = read_json(&path)? else {
            return Ok(Settings {
                laya: LayaSettings::default(),
                notes: Vec::new(),
            });
        };
        let laya = match tree {
            Value::Object(mut settings) => settings.remove("laya"),
            _ => return Err(CliError::file(&path, "must be a JSON object")),
        };
        let Some(laya) = laya else {
            return Ok(Settings {
                laya: LayaSettings::default(),
                notes: Vec::new(),
            });
        };
        let laya = LayaSettings::from_layers(Some(&laya), None)
            .map_err(|error| CliError::file(&path, error))?;
        let told = laya.unknown.iter();
        let notes = told
            .map(|key| format!("{}: {}: {}", path.display(), key.path, key.message))
            .collect();
        Ok(Settings { laya, notes })
    }

    /// Finds the router: the setting, else `LAYA_BASE_URL`, else a living `relayd local`, else the default.
    pub(crate) fn router(
        &self,
        laya: &LayaSettings,
        environment: Environment<'_>,
    ) -> Result<Router, CliError> {
        let from_environment =
            environment("LAYA_BASE_URL").and_then(|value| value.into_string().ok());
        // The daemon's file is only looked at where nothing else names an address.
        let running = match (&laya.base_url, &from_environment) {
            (None, None) => self.running_router()?,
            _ => None,
        };
        let (url, _) = laya.address(from_environment.as_deref(), running.as_deref());
        let stored = self.stored_key()?;
        let from_environment =
            environment("LAYA_API_KEY").and_then(|value| value.into_string().ok());
        let key = stored
            .or(from_environment)
            .filter(|key| !key.is_empty())
            .unwrap_or_else(|| LOCAL_KEY.to_owned());
        Ok(Router {
            origin: origin(url)?,
            key,
        })
    }

    fn stored_key(&self) -> Result<Option<String>, CliError> {
        #[derive(Deserialize)]
        struct Credential {
            #[serde(rename = "type")]
            kind: String,
            key: Option<String>,
        }
        let path = self.agent.join("auth.json");
        let Some(Value::Object(mut credentials)) = read_json(&path)? else {
            return Ok(None);
        };
        let Some(laya) = credentials.remove("laya") else {
            return Ok(None);
        };
        let credential: Credential = serde_json::from_value(laya)
            // The text of the error could hold the key, so only the place is told.
            .map_err(|_| CliError::file(&path, "laya: must be an object with `type` and `key`"))?;
        Ok((credential.kind == "api_key")
            .then_some(credential.key)
            .flatten())
    }

    /// The address in `daemon/endpoint.json`, if the process that wrote it lives.
    fn running_router(&self) -> Result<Option<String>, CliError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Endpoint {
            router: Option<String>,
            pid: u32,
            pid_start: Option<u64>,
        }
        let path = self.relay.join("daemon").join("endpoint.json");
        let Some(tree) = read_json(&path)? else {
            return Ok(None);
        };
        let endpoint: Endpoint =
            serde_json::from_value(tree).map_err(|error| CliError::file(&path, error))?;
        let started = process_start(endpoint.pid);
        let lives = match (started, endpoint.pid_start) {
            (Some(now), Some(then)) => now == then,
            (started, _) => started.is_some(),
        };
        Ok(endpoint.router.filter(|_| lives))
    }
}

/// Start time of a process in clock ticks since boot (field 22 of `/proc/<pid>/stat`), if it lives.
fn process_start(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may hold anything, spaces and parentheses too.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(19)?.parse().ok()
}

/// A file as a JSON tree, `None` if it is not there.
fn read_json(path: &Path) -> Result<Option<Value>, CliError> {
    let size = match std::fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CliError::file(path, error)),
    };
    if size > MAX_FILE {
        return Err(CliError::file(
            path,
            format!("has {size} bytes, limit {MAX_FILE}"),
        ));
    }
    let bytes = std::fs::read(path).map_err(|error| CliError::file(path, error))?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| CliError::file(path, error))
}

/// Scheme, host and port of a base URL; a trailing `/v1` is left out, since both forms are in circulation.
fn origin(url: &str) -> Result<String, CliError> {
    let url = url.trim().trim_end_matches('/');
    let origin = url.strip_suffix("/v1").unwrap_or(url).trim_end_matches('/');
    let host = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    match host {
        Some(host)
            if !host.is_empty()
                && !host.contains(|c: char| c.is_whitespace() || c.is_control()) =>
        {
            Ok(origin.to_owned())
        }
        _ => Err(CliError::usage(format!(
            "`{url}` is no address of a router: it must start with http:// or https://"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(folder: &Path) -> Home {
        Home::find(&|name| (name == "RELAY_HOME").then(|| folder.as_os_str().to_owned())).unwrap()
    }

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn the_setting_wins_over_the_environment_and_both_over_the_default() {
        let folder = tempfile::tempdir().unwrap();
        let home = home(folder.path());
        let none = LayaSettings::default();
        assert_eq!(
            home.router(&none, &|_| None).unwrap().origin,
            "http://127.0.0.1:8737"
        );
        let environment =
            |name: &str| (name == "LAYA_BASE_URL").then(|| "http://10.0.0.1:9/v1/".into());
        assert_eq!(
            home.router(&none, &environment).unwrap().origin,
            "http://10.0.0.1:9"
        );
        let set = LayaSettings {
            base_url: Some("https://router.test".to_owned()),
            ..LayaSettings::default()
        };
        assert_eq!(
            home.router(&set, &environment).unwrap().origin,
            "https://router.test"
        );
    }

    #[test]
    fn a_running_daemon_is_found_and_a_dead_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let home = home(folder.path());
        let pid = std::process::id();
        let start = process_start(pid).unwrap();
        let endpoint = |start: u64| {
            format!(
                r#"{{"url":"http://127.0.0.1:4748","router":"http://127.0.0.1:8738","pid":{pid},"pidStart":{start},"version":"1"}}"#
            )
        };
        let none = LayaSettings::default();
        write(folder.path(), "daemon/endpoint.json", &endpoint(start));
        assert_eq!(
            home.router(&none, &|_| None).unwrap().origin,
            "http://127.0.0.1:8738"
        );
        write(folder.path(), "daemon/endpoint.json", &endpoint(start + 1));
        assert_eq!(
            home.router(&none, &|_| None).unwrap().origin,
            "http://127.0.0.1:8737",
            "the number was used again"
        );
    }

    #[test]
    fn the_stored_key_wins_and_is_never_in_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let home = home(folder.path());
        let none = LayaSettings::default();
        let environment = |name: &str| (name == "LAYA_API_KEY").then(|| "from-environment".into());
        assert_eq!(home.router(&none, &|_| None).unwrap().key, "local");
        assert_eq!(
            home.router(&none, &environment).unwrap().key,
            "from-environment"
        );
        write(
            folder.path(),
            "agent/auth.json",
            r#"{"laya":{"type":"api_key","key":"stored"}}"#,
        );
        assert_eq!(home.router(&none, &environment).unwrap().key, "stored");
        write(
            folder.path(),
            "agent/auth.json",
            r#"{"laya":{"type":7,"key":"hunter2"}}"#,
        );
        let error = home.router(&none, &environment).unwrap_err().to_string();
        assert!(
            error.contains("auth.json") && !error.contains("hunter2"),
            "{error}"
        );
    }

    #[test]
    fn a_damaged_settings_file_is_named_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let home = home(folder.path());
        assert!(home.settings().unwrap().notes.is_empty());
        write(folder.path(), "agent/settings.json", "{\n  \"laya\": {\n");
        let error = home.settings().unwrap_err().to_string();
        assert!(
            error.contains("settings.json") && error.contains("line 3"),
            "{error}"
        );
    }

    #[test]
    fn refuses_addresses_that_are_none() {
        for bad in ["", "localhost:8737", "ftp://x", "http://", "http://a b"] {
            assert!(origin(bad).is_err(), "{bad}");
        }
    }
}
