//! The keys of this user, and which of them an address is given: a stored key only the one it belongs to, the key of
//! `LAYA_API_KEY` any. No key is in an error or a note.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use routing::settings;
use serde::Deserialize;
use serde_json::Value;

use super::{KeyFrom, LOCAL_KEY, read_json, sendable};
use crate::error::CliError;

const RULE: &str = "must be of visible ASCII characters; is there a line break in it?";

/// The keys there are, whoever is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Keys {
    /// `auth.json`.
    pub(crate) file: PathBuf,
    pub(crate) stored: Option<StoredKey>,
    /// `LAYA_API_KEY`, never empty.
    pub(super) environment: Option<OsString>,
    /// What is to be said of the file.
    pub(crate) notes: Vec<String>,
}

/// `laya` of `auth.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredKey {
    /// Never empty.
    pub(crate) key: String,
    /// The origin it belongs to; without one it is given to any, as entries are that others wrote.
    pub(crate) address: Option<String>,
}

/// The key that an address is given.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) key: String,
    pub(crate) from: KeyFrom,
    /// The stored key belongs elsewhere; names both addresses.
    pub(crate) note: Option<String>,
}

impl Keys {
    /// Reads `laya` of the file, and takes the key of the environment as it is.
    ///
    /// # Errors
    /// When the file cannot be read, or the entry is none.
    pub(super) fn read(file: &Path, environment: Option<OsString>) -> Result<Self, CliError> {
        let mut keys = Self {
            file: file.to_owned(),
            environment: environment.filter(|key| !key.is_empty()),
            ..Self::default()
        };
        let Some((tree, metadata)) = read_json(file)? else {
            return Ok(keys);
        };
        let mode = metadata.mode() & 0o777;
        if mode & 0o077 != 0 {
            keys.notes.push(format!(
                "{0} holds keys and has mode {mode:04o}, so others can read or change it; to stop that: chmod 600 {0}",
                file.display()
            ));
        }
        if let Value::Object(mut credentials) = tree
            && let Some(laya) = credentials.remove("laya")
        {
            keys.stored = stored(file, laya)?;
        }
        Ok(keys)
    }

    /// The same, with a stored key that belongs nowhere yet belonging to an address.
    pub(crate) fn belonging_to(mut self, origin: &str) -> Self {
        if let Some(stored) = &mut self.stored {
            stored.address.get_or_insert_with(|| origin.to_owned());
        }
        self
    }

    /// The stored key if it belongs to this origin, else that of the environment, else the one of nobody.
    ///
    /// # Errors
    /// When that key is one that no header can carry: it could not be sent, and a router that was not asked is not absent.
    pub(crate) fn of(&self, origin: &str) -> Result<Key, CliError> {
        let elsewhere = match &self.stored {
            None => None,
            Some(StoredKey { key, address }) => match address {
                Some(address) if address != origin => Some(address),
                _ => return self.sendable_stored(key),
            },
        };
        let (key, from) = match &self.environment {
            None => (LOCAL_KEY.to_owned(), KeyFrom::Nobody),
            Some(key) => {
                let key = key.to_str().filter(|key| sendable(key));
                let key =
                    key.ok_or_else(|| CliError::usage(format!("the key in LAYA_API_KEY {RULE}")))?;
                (key.to_owned(), KeyFrom::Environment)
            }
        };
        let note = elsewhere.map(|address| {
            let instead = match from {
                KeyFrom::Environment => "that of LAYA_API_KEY goes there",
                _ => "none goes there",
            };
            format!(
                "the key in {} is for {address} and not for {origin}; {instead}",
                self.file.display()
            )
        });
        Ok(Key { key, from, note })
    }

    fn sendable_stored(&self, key: &str) -> Result<Key, CliError> {
        if key.starts_with('!') {
            return Err(CliError::file(
                &self.file,
                "laya.key is a command, and only the key itself can be used here",
            )
            .hint("to store the key: <command> | relay laya connect <url> --token-file -"));
        }
        if !sendable(key) {
            return Err(CliError::file(&self.file, format!("laya.key {RULE}")));
        }
        Ok(Key {
            key: key.to_owned(),
            from: KeyFrom::Stored,
            note: None,
        })
    }
}

fn stored(file: &Path, laya: Value) -> Result<Option<StoredKey>, CliError> {
    #[derive(Deserialize)]
    struct Credential {
        #[serde(rename = "type")]
        kind: String,
        key: Option<String>,
        address: Option<Value>,
    }
    let credential: Credential = serde_json::from_value(laya)
        // The text of the error could hold the key, so only the place is told.
        .map_err(|_| CliError::file(file, "laya: must be an object with `type` and `key`"))?;
    let Some(key) = credential.key.filter(|key| !key.is_empty()) else {
        return Ok(None);
    };
    if credential.kind != "api_key" {
        return Ok(None);
    }
    // An address that cannot be read must not turn into "any address", and may hold a password.
    let address = match credential.address {
        None => None,
        Some(Value::String(url)) => {
            let origin = settings::origin(&url)
                .map_err(|error| CliError::file(file, format!("laya.address {error}")))?;
            Some(origin.to_owned())
        }
        Some(_) => return Err(CliError::file(file, "laya.address must be a text")),
    };
    Ok(Some(StoredKey { key, address }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "https://a.example";
    const B: &str = "http://127.0.0.1:9";

    fn keys(entry: &str, environment: Option<&str>) -> Result<Keys, CliError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("auth.json");
        std::fs::write(&file, format!("{{\"laya\":{entry}}}")).unwrap();
        Keys::read(&file, environment.map(OsString::from))
    }

    #[test]
    fn a_stored_key_is_given_to_the_address_it_belongs_to() {
        let bound = r#"{"type":"api_key","key":"hunter2","address":"https://a.example/v1/","x":1}"#;
        let free = r#"{"type":"api_key","key":"hunter2"}"#;
        let null = r#"{"type":"api_key","key":"hunter2","address":null}"#;
        for (name, entry, environment, origin, key, from, noted) in [
            (
                "its address",
                bound,
                Some("e"),
                A,
                "hunter2",
                KeyFrom::Stored,
                false,
            ),
            ("another", bound, None, B, "local", KeyFrom::Nobody, true),
            (
                "another, a variable",
                bound,
                Some("e"),
                B,
                "e",
                KeyFrom::Environment,
                true,
            ),
            (
                "another scheme",
                bound,
                None,
                "http://a.example",
                "local",
                KeyFrom::Nobody,
                true,
            ),
            (
                "another port",
                bound,
                None,
                "https://a.example:8443",
                "local",
                KeyFrom::Nobody,
                true,
            ),
            (
                "no address",
                free,
                Some("e"),
                B,
                "hunter2",
                KeyFrom::Stored,
                false,
            ),
            ("a null", null, None, B, "hunter2", KeyFrom::Stored, false),
        ] {
            let given = keys(entry, environment).unwrap().of(origin).unwrap();
            assert_eq!((given.key.as_str(), given.from), (key, from), "{name}");
            assert_eq!(given.note.is_some(), noted, "{name}");
            if let Some(note) = given.note {
                assert!(note.contains(A) && note.contains(origin), "{name}: {note}");
                assert!(!note.contains("hunter2"), "{name}: {note}");
            }
        }
        let bound_later = keys(free, None).unwrap().belonging_to(A);
        assert_eq!(bound_later.of(B).unwrap().key, "local");
        let bound_before = keys(bound, None).unwrap().belonging_to(B);
        assert_eq!(bound_before.of(B).unwrap().key, "local");
    }

    #[test]
    fn an_address_that_is_none_is_refused() {
        for address in ["7", "{}", "\"\"", "\"router\"", "\"https://me:hunter2@a\""] {
            let entry = format!(r#"{{"type":"api_key","key":"hunter2","address":{address}}}"#);
            let error = keys(&entry, None).unwrap_err().render();
            assert!(error.contains("laya.address "), "{address}: {error}");
            assert!(!error.contains("hunter2"), "{address}: {error}");
        }
        let other = r#"{"type":"oauth","address":7}"#;
        assert_eq!(keys(other, None).unwrap().stored, None);
    }
}
