//! Writes a tested router into the user's files: `laya.baseUrl` of `settings.json`, and a key with its address as
//! `laya` of `auth.json` (agent.md 9.3). Everything else in them stays as it was written; one that cannot be read is left alone.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use files::{Lock, PRIVATE, lock_path};
use serde_json::{Value, json};

use crate::error::CliError;
use crate::home::{Home, KeyFrom, MAX_FILE, Router, StoredKey};
use crate::json_splice;

/// How long others that write the same files are waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    /// Its owner alone, whatever was before: keys.
    Owner,
    /// Whoever could before; of a new file its owner alone.
    AsBefore,
}

/// A file that is to change.
struct Change {
    path: PathBuf,
    /// Text before; `None` where there is no file.
    before: Option<String>,
    after: String,
    /// Who may read it afterwards.
    mode: u32,
}

/// Writes both files, or neither; returns those that changed.
pub(super) fn write(home: &Home, router: &Router) -> Result<Vec<PathBuf>, CliError> {
    let (settings, credentials) = (home.settings_file(), home.credentials());
    files::make_private_folder(home.agent())
        .map_err(|error| CliError::file(home.agent(), error))?;
    let lock = |path: &Path| {
        let lock = lock_path(path);
        Lock::take_within(&lock, PATIENCE)
            .map_err(|error| CliError::file(&lock, error))?
            .ok_or_else(|| CliError::file(path, "another process is changing it"))
    };
    // Always in this order, so that two of these cannot wait for each other.
    let _credentials_lock = lock(&credentials)?;
    let _settings_lock = lock(&settings)?;
    let mut changes = Vec::new();
    // The key first: until the address follows, it goes nowhere, and the old address is not given the new key.
    if router.key_from == KeyFrom::File {
        changes.push(with_key(&credentials, &router.key, &router.origin)?);
    } else if let Some(StoredKey {
        key,
        address: Some(address),
    }) = &router.keys.stored
        && *address != router.origin
    {
        changes.extend(with_address(&credentials, key, address)?);
    }
    let url = Value::from(format!("{}/v1", router.origin)).to_string();
    changes.push(changed(
        &settings,
        read(&settings)?,
        &[(&["laya", "baseUrl"], &url)],
        Audience::AsBefore,
    )?);
    changes.retain(|change| change.before.as_ref() != Some(&change.after));
    for (at, change) in changes.iter().enumerate() {
        let written = files::write_whole(&change.path, change.after.as_bytes(), change.mode);
        if let Err(error) = written {
            undo(&changes[..at]);
            return Err(CliError::file(&change.path, error));
        }
    }
    Ok(changes.into_iter().map(|change| change.path).collect())
}

/// As it was before, as far as that goes: the error that led here is the one to tell.
fn undo(changes: &[Change]) {
    for change in changes {
        let _ = match &change.before {
            Some(before) => files::write_whole(&change.path, before.as_bytes(), change.mode),
            None => std::fs::remove_file(&change.path),
        };
    }
}

/// A key of ours is changed in its place, with what else stands there; anything else is replaced.
fn with_key(path: &Path, key: &str, origin: &str) -> Result<Change, CliError> {
    let before = read(path)?;
    if entry(before.as_deref()).is_some() {
        let (key, origin) = (
            Value::from(key).to_string(),
            Value::from(origin).to_string(),
        );
        let values: [(&[&str], &str); 2] =
            [(&["laya", "key"], &key), (&["laya", "address"], &origin)];
        changed(path, before, &values, Audience::Owner)
    } else {
        let entry = json!({"type": "api_key", "key": key, "address": origin}).to_string();
        changed(path, before, &[(&["laya"], &entry)], Audience::Owner)
    }
}

/// A key of ours that belongs nowhere yet belongs to this address from now on; nothing if that key is no longer there.
fn with_address(path: &Path, key: &str, address: &str) -> Result<Option<Change>, CliError> {
    let before = read(path)?;
    let is_free = entry(before.as_deref())
        .is_some_and(|entry| entry["key"] == key && entry["address"].is_null());
    if !is_free {
        return Ok(None);
    }
    let address = Value::from(address).to_string();
    changed(
        path,
        before,
        &[(&["laya", "address"], &address)],
        Audience::Owner,
    )
    .map(Some)
}

/// The entry of ours in a text, if it is a key.
fn entry(text: Option<&str>) -> Option<Value> {
    let mut tree = serde_json::from_str::<Value>(text?).ok()?;
    let entry = tree.get_mut("laya")?.take();
    (entry["type"] == "api_key").then_some(entry)
}

/// The file with these values set, one after the other.
fn changed(
    path: &Path,
    before: Option<String>,
    values: &[(&[&str], &str)],
    audience: Audience,
) -> Result<Change, CliError> {
    let mode = match (audience, std::fs::metadata(path)) {
        (Audience::AsBefore, Ok(metadata)) => metadata.mode() & 0o777,
        _ => PRIVATE,
    };
    let mut after = before.clone().unwrap_or_else(|| "{}\n".to_owned());
    for (keys, value) in values {
        after = json_splice::set(&after, keys, value)
            .filter(|after| is_set(after, keys, value))
            .ok_or_else(|| CliError::file(path, "must be a JSON object"))?;
    }
    Ok(Change {
        path: path.to_owned(),
        before,
        after,
        mode,
    })
}

/// Whether a reader finds the value there.
fn is_set(text: &str, keys: &[&str], value: &str) -> bool {
    let (Ok(tree), Ok(value)) = (
        serde_json::from_str::<Value>(text),
        serde_json::from_str::<Value>(value),
    ) else {
        return false;
    };
    keys.iter().try_fold(&tree, |tree, key| tree.get(key)) == Some(&value)
}

/// The text of a file that is JSON, `None` where there is none.
fn read(path: &Path) -> Result<Option<String>, CliError> {
    let text = match files::read_text(path, MAX_FILE) {
        Ok(file) => file.text,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(CliError::file(path, error)),
    };
    match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        Ok(_) => Ok(Some(text)),
        Err(error) => Err(CliError::file(path, error)
            .hint("correct it or move it away; it is yours, so it is not overwritten")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::home::{AddressFrom, Keys};

    fn router(key_from: KeyFrom) -> Router {
        Router {
            origin: "https://new.example".to_owned(),
            address_from: AddressFrom::Argument,
            key: "new-key".to_owned(),
            key_from,
            keys: Keys::default(),
            notes: Vec::new(),
        }
    }

    fn home(folder: &Path) -> Home {
        Home::find(&|name| (name == "RELAY_HOME").then(|| folder.as_os_str().to_owned())).unwrap()
    }

    #[test]
    fn new_files_are_private_and_hold_what_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        let home = home(folder.path());
        let written = write(&home, &router(KeyFrom::File)).unwrap();
        assert_eq!(written, [home.credentials(), home.settings_file()]);
        for (path, expected) in [
            (
                home.settings_file(),
                json!({"laya": {"baseUrl": "https://new.example/v1"}}),
            ),
            (
                home.credentials(),
                json!({"laya": {"type": "api_key", "key": "new-key", "address": "https://new.example"}}),
            ),
        ] {
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        }
        let mode = std::fs::metadata(home.agent())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        // The second time there is nothing to do.
        assert!(write(&home, &router(KeyFrom::File)).unwrap().is_empty());
    }

    #[test]
    fn what_is_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let home = home(folder.path());
        std::fs::create_dir(home.agent()).unwrap();
        let settings = "{\n  \"zeta\": 1.50,\n  \"laya\": {\"policy\": \"economy\"}\n}\n";
        std::fs::write(home.settings_file(), settings).unwrap();
        let shared = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(home.settings_file(), shared).unwrap();
        let credentials = |laya: &str| {
            format!("{{\"openai\": {{\"type\": \"api_key\", \"key\": \"o\"}}{laya}}}\n")
        };
        for (name, before, after) in [
            (
                "no key of ours",
                "",
                r#", "laya": {"address":"https://new.example","key":"new-key","type":"api_key"}"#,
            ),
            (
                "one of ours",
                r#", "laya": {"type": "api_key", "env": "X", "key": "old"}"#,
                r#", "laya": {"type": "api_key", "env": "X", "key": "new-key", "address": "https://new.example"}"#,
            ),
            (
                "one of ours for another address",
                r#", "laya": {"address": "http://old.example", "type": "api_key", "key": "old", "env": "X"}"#,
                r#", "laya": {"address": "https://new.example", "type": "api_key", "key": "new-key", "env": "X"}"#,
            ),
            (
                "another kind",
                r#", "laya": {"type": "oauth", "refresh": "x"}"#,
                r#", "laya": {"address":"https://new.example","key":"new-key","type":"api_key"}"#,
            ),
        ] {
            std::fs::write(home.credentials(), credentials(before)).unwrap();
            write(&home, &router(KeyFrom::File)).unwrap();
            let text = std::fs::read_to_string(home.credentials()).unwrap();
            assert_eq!(text, credentials(after), "{name}");
        }
        assert_eq!(
            std::fs::read_to_string(home.settings_file()).unwrap(),
            "{\n  \"zeta\": 1.50,\n  \"laya\": {\"policy\": \"economy\", \"baseUrl\": \"https://new.example/v1\"}\n}\n"
        );
        for (name, mode) in [("settings.json", 0o644), ("auth.json", 0o600)] {
            let metadata = std::fs::metadata(home.agent().join(name)).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o777, mode, "{name}");
        }
        // Without a new key, keys are left alone.
        let before = std::fs::read_to_string(home.credentials()).unwrap();
        assert!(write(&home, &router(KeyFrom::Stored)).unwrap().is_empty());
        assert_eq!(std::fs::read_to_string(home.credentials()).unwrap(), before);
    }

    #[test]
    fn a_key_that_belongs_nowhere_gets_the_address_it_was_for() {
        let folder = tempfile::tempdir().unwrap();
        let home = home(folder.path());
        std::fs::create_dir(home.agent()).unwrap();
        let mut router = router(KeyFrom::Nobody);
        router.keys.stored = Some(StoredKey {
            key: "old".to_owned(),
            address: Some("https://old.example".to_owned()),
        });
        for (name, before, after) in [
            (
                "no address",
                r#"{"laya": {"type": "api_key", "key": "old", "env": "X"}}"#,
                r#"{"laya": {"type": "api_key", "key": "old", "env": "X", "address": "https://old.example"}}"#,
            ),
            (
                "one already",
                r#"{"laya": {"type": "api_key", "key": "old", "address": "https://a.example"}}"#,
                r#"{"laya": {"type": "api_key", "key": "old", "address": "https://a.example"}}"#,
            ),
            (
                "changed meanwhile",
                r#"{"laya": {"type": "api_key", "key": "newer"}}"#,
                r#"{"laya": {"type": "api_key", "key": "newer"}}"#,
            ),
        ] {
            std::fs::write(home.credentials(), before).unwrap();
            write(&home, &router).unwrap();
            let text = std::fs::read_to_string(home.credentials()).unwrap();
            assert_eq!(text, after, "{name}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_not_overwritten_and_neither_is_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let home = home(folder.path());
        std::fs::create_dir(home.agent()).unwrap();
        for (settings, credentials) in [
            ("{\"a\": 1,}", "{}"),
            ("{}", "{\"a\""),
            ("[]", "{}"),
            ("{}", "3"),
        ] {
            std::fs::write(home.settings_file(), settings).unwrap();
            std::fs::write(home.credentials(), credentials).unwrap();
            let error = write(&home, &router(KeyFrom::File)).unwrap_err().render();
            assert!(!error.contains("new-key"), "{error}");
            assert_eq!(
                std::fs::read_to_string(home.settings_file()).unwrap(),
                settings
            );
            assert_eq!(
                std::fs::read_to_string(home.credentials()).unwrap(),
                credentials
            );
        }
    }

    #[test]
    fn a_second_file_that_fails_takes_the_first_back() {
        let folder = tempfile::tempdir().unwrap();
        let home = home(folder.path());
        std::fs::create_dir(home.agent()).unwrap();
        let change = Change {
            path: home.credentials(),
            before: None,
            after: String::new(),
            mode: PRIVATE,
        };
        std::fs::write(&change.path, "x").unwrap();
        undo(&[change]);
        assert!(!home.credentials().exists());
    }
}
