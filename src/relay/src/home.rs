//! Where this user's files are and what they say: `RELAY_HOME`, the agent folder, `settings.json`, the stored key and
//! the address of the router (design.md 7, routing.md 20). Reads; writes nothing.

mod keys;

use std::fs::Metadata;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use files::{Environment, Places, process_start};
use routing::settings::{self, BadAddress, LayaSettings};
use serde::Deserialize;
use serde_json::Value;

pub(crate) use keys::{Keys, StoredKey};

use crate::error::CliError;

/// Key that a router on loopback accepts from anyone.
pub(crate) const LOCAL_KEY: &str = "local";
/// Largest file that is read here, in bytes.
pub(crate) const MAX_FILE: u64 = 1 << 20;
/// Most characters of an address that are shown.
const MAX_SHOWN: usize = 200;

/// The user's folders.
#[derive(Debug, Clone)]
pub(crate) struct Home(Places);

/// What `settings.json` says of Laya, with the file it came from.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) file: PathBuf,
    pub(crate) laya: LayaSettings,
    /// One line per key that is not understood; such files are shared with other programs.
    pub(crate) notes: Vec<String>,
}

/// Where the router is and with which key it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Router {
    /// Without a trailing slash and without `/v1`.
    pub(crate) origin: String,
    pub(crate) address_from: AddressFrom,
    pub(crate) key: String,
    pub(crate) key_from: KeyFrom,
    /// The keys there are, also those that are for others.
    pub(crate) keys: Keys,
    /// What is not as it should be, and no obstacle.
    pub(crate) notes: Vec<String>,
}

/// Who says where the router is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressFrom {
    /// `laya.baseUrl` of `settings.json`.
    Settings,
    /// `LAYA_BASE_URL`.
    Environment,
    /// `endpoint.json` of a process that lives.
    Daemon,
    /// Nobody.
    Default,
    /// An argument of this run.
    Argument,
}

/// Who gave the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyFrom {
    /// `laya` of `auth.json`.
    Stored,
    /// `LAYA_API_KEY`.
    Environment,
    /// Nobody: `local`, which a router on loopback takes from anyone.
    Nobody,
    /// A file named in this run.
    File,
}

impl Home {
    /// Finds the folders.
    pub(crate) fn find(environment: Environment<'_>) -> Result<Self, CliError> {
        Places::find(environment)
            .map(Self)
            .map_err(|error| CliError::usage(format!("cannot find your files: {error}")))
    }

    /// The agent folder.
    pub(crate) fn agent(&self) -> &Path {
        &self.0.agent
    }

    /// The user's settings.
    pub(crate) fn settings_file(&self) -> PathBuf {
        self.0.agent.join("settings.json")
    }

    /// Where keys are stored.
    pub(crate) fn credentials(&self) -> PathBuf {
        self.0.agent.join("auth.json")
    }

    /// Outcomes that wait for a router (agent.md 10.3).
    pub(crate) fn waiting_outcomes(&self) -> PathBuf {
        self.0.laya().join("outcomes.jsonl")
    }

    /// Reads `laya.*` of the user's `settings.json`. Project files are not read until trust is built (agent.md 3.2).
    pub(crate) fn settings(&self) -> Result<Settings, CliError> {
        let path = self.settings_file();
        let laya = match read_json(&path)? {
            None => None,
            Some((Value::Object(mut settings), _)) => settings.remove("laya"),
            Some(_) => return Err(CliError::file(&path, "must be a JSON object")),
        };
        let Some(laya) = laya else {
            return Ok(Settings {
                file: path,
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
        Ok(Settings {
            file: path,
            laya,
            notes,
        })
    }

    /// Finds the router: the setting, else `LAYA_BASE_URL`, else a living `relayd local`, else the default.
    pub(crate) fn router(
        &self,
        laya: &LayaSettings,
        environment: Environment<'_>,
    ) -> Result<Router, CliError> {
        let from_environment = environment("LAYA_BASE_URL")
            .and_then(|value| value.into_string().ok())
            .filter(|value| !value.trim().is_empty());
        let mut notes = Vec::new();
        // The daemon's file is only looked at where nothing else names an address.
        let running = match (&laya.base_url, &from_environment) {
            (None, None) => self.running_router(&mut notes),
            _ => None,
        };
        let (url, layer) = laya.address(from_environment.as_deref(), running.as_deref());
        let address_from = match (layer, &running, &from_environment) {
            (Some(_), _, _) => AddressFrom::Settings,
            (None, Some(_), _) => AddressFrom::Daemon,
            (None, None, Some(_)) => AddressFrom::Environment,
            (None, None, None) => AddressFrom::Default,
        };
        // Settings and daemons with such an address were set aside already.
        let origin = settings::origin(url).map_err(|error| bad_address(url, error))?;
        let keys = Keys::read(&self.credentials(), environment("LAYA_API_KEY"))?;
        let given = keys.of(origin)?;
        notes.extend(keys.notes.iter().cloned());
        notes.extend(given.note);
        Ok(Router {
            origin: origin.to_owned(),
            address_from,
            key: given.key,
            key_from: given.from,
            keys,
            notes,
        })
    }

    /// The address in `daemon/endpoint.json`, if the process that wrote it lives. The file is no file of the user's: one
    /// that says nothing is as good as none, and is noted.
    fn running_router(&self, notes: &mut Vec<String>) -> Option<String> {
        let router = self.endpoint_router();
        router.unwrap_or_else(|error| {
            notes.push(format!("{error}; it counts as no running router"));
            None
        })
    }

    fn endpoint_router(&self) -> Result<Option<String>, CliError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Endpoint {
            router: Option<String>,
            pid: u32,
            pid_start: Option<u64>,
        }
        let path = self.0.endpoint();
        let Some((tree, _)) = read_json(&path)? else {
            return Ok(None);
        };
        let endpoint: Endpoint =
            serde_json::from_value(tree).map_err(|error| CliError::file(&path, error))?;
        let started = process_start(endpoint.pid);
        let lives = match (started, endpoint.pid_start) {
            (Some(now), Some(then)) => now == then,
            (started, _) => started.is_some(),
        };
        let Some(url) = endpoint.router.filter(|_| lives) else {
            return Ok(None);
        };
        settings::origin(&url)
            .map_err(|error| CliError::file(&path, format!("router: {error}")))?;
        Ok(Some(url))
    }
}

/// Whether an address is of this machine: 127.0.0.0/8, `::1` or `localhost`.
pub(crate) fn is_loopback(origin: &str) -> bool {
    let authority = origin.split_once("://").map_or(origin, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// Whether a key can stand in a header.
pub(crate) fn sendable(key: &str) -> bool {
    key.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A file as a JSON tree, `None` if it is not there.
fn read_json(path: &Path) -> Result<Option<(Value, Metadata)>, CliError> {
    let file = match files::read_text(path, MAX_FILE) {
        Ok(file) => file,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(CliError::file(path, error)),
    };
    let tree = serde_json::from_str(&file.text).map_err(|error| CliError::file(path, error))?;
    Ok(Some((tree, file.metadata)))
}

/// An address that cannot be, shown unless it may hold a password.
fn bad_address(url: &str, error: BadAddress) -> CliError {
    let shown = if url.contains('@') {
        String::new()
    } else {
        format!(" `{}`", url.chars().take(MAX_SHOWN).collect::<String>())
    };
    let line = format!("the address of the router in LAYA_BASE_URL{shown} {error}");
    let wrong = CliError::usage(line);
    if error == BadAddress::Credentials {
        wrong.hint("the key of a router goes into LAYA_API_KEY or auth.json")
    } else {
        wrong
    }
}

#[cfg(test)]
mod tests;
