//! Which control plane is talked to: `local`, or a context of the kubeconfig; from the flag, the environment, or what
//! `relayctl context use` kept.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use files::{Environment, Lock, PRIVATE, Places, ReadError};
use serde::{Deserialize, Serialize};

use crate::error::CliError;
use api::exit::Exit;

/// The control plane of this machine.
pub(crate) const LOCAL: &str = "local";
/// Names a context instead of the flag.
pub(crate) const VARIABLE: &str = "RELAY_CONTEXT";
const MAX_SETTINGS: u64 = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(5);

/// What chose a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Source {
    /// `--context`.
    Flag,
    /// `RELAY_CONTEXT`.
    Environment,
    /// `relayctl.toml`.
    File,
    /// Nothing.
    Default,
}

impl Source {
    /// In a sentence.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Flag => "--context",
            Self::Environment => VARIABLE,
            Self::File => "relayctl.toml",
            Self::Default => "default",
        }
    }
}

/// A context that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) name: String,
    pub(crate) source: Source,
}

impl Chosen {
    pub(crate) fn is_local(&self) -> bool {
        self.name == LOCAL
    }
}

/// `<RELAY_HOME>/relayctl.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The context used when neither flag nor environment name one.
    #[serde(default)]
    context: Option<String>,
}

fn path(places: &Places) -> PathBuf {
    places.relay.join("relayctl.toml")
}

/// Flag over environment over file over `local`.
///
/// # Errors
/// A settings file that cannot be read.
pub(crate) fn choose(
    flag: Option<&str>,
    environment: Environment<'_>,
    places: &Places,
) -> Result<Chosen, CliError> {
    let chosen = |name: &str, source| Chosen {
        name: name.to_owned(),
        source,
    };
    if let Some(name) = flag {
        return Ok(chosen(name, Source::Flag));
    }
    if let Some(name) = environment(VARIABLE).filter(|name| !name.is_empty()) {
        let name = name
            .into_string()
            .map_err(|_| CliError::usage(format!("{VARIABLE} is not valid UTF-8")))?;
        return Ok(Chosen {
            name,
            source: Source::Environment,
        });
    }
    Ok(match read(places)?.context {
        Some(name) => chosen(&name, Source::File),
        None => chosen(LOCAL, Source::Default),
    })
}

fn read(places: &Places) -> Result<Settings, CliError> {
    let path = path(places);
    let text = match files::read_text(&path, MAX_SETTINGS) {
        Ok(file) => file.text,
        Err(error) if error.is_not_found() => return Ok(Settings::default()),
        // RELAY_HOME is a file: nothing is kept there, and what uses the home says it with what helps.
        Err(ReadError::Io(error)) if error.kind() == ErrorKind::NotADirectory => {
            return Ok(Settings::default());
        }
        Err(error) => return Err(CliError::file(&path, error)),
    };
    toml::from_str(&text).map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let message: Vec<_> = error.message().split_whitespace().collect();
        CliError::new(
            Exit::Failed,
            format!("{}:{line}: {}", path.display(), message.join(" ")),
        )
        .hint("it holds one line, `context = \"<name>\"`; `relayctl context use` writes it anew when it is gone")
    })
}

/// Keeps a context.
///
/// # Errors
/// When the file cannot be written, or is damaged.
pub(crate) fn keep(places: &Places, name: &str) -> Result<(), CliError> {
    let path = path(places);
    let refused = |error: std::io::Error| CliError::file(&path, error);
    files::make_private_folder(&places.relay).map_err(refused)?;
    let lock = Lock::take_within(&files::lock_path(&path), PATIENCE).map_err(refused)?;
    if lock.is_none() {
        return Err(CliError::file(&path, "somebody else is writing it"));
    }
    // One that is damaged is its user's to look at.
    let Settings { context: _ } = read(places)?;
    // A string of JSON is one of TOML.
    let text = format!("context = {}\n", serde_json::Value::from(name));
    files::write_whole(&path, text.as_bytes(), PRIVATE).map_err(refused)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn places(folder: &tempfile::TempDir) -> Places {
        Places {
            relay: folder.path().join("home"),
            agent: folder.path().join("agent"),
        }
    }

    #[test]
    fn the_nearest_choice_wins() {
        let folder = tempfile::tempdir().unwrap();
        let places = places(&folder);
        let none = |_: &str| None;
        let set = |name: &str| (name == VARIABLE).then(|| OsString::from("team"));
        let pick = |flag, environment: Environment<'_>| {
            let chosen = choose(flag, environment, &places).unwrap();
            (chosen.name, chosen.source)
        };
        assert_eq!(pick(None, &none), ("local".into(), Source::Default));
        keep(&places, "kept").unwrap();
        assert_eq!(pick(None, &none), ("kept".into(), Source::File));
        assert_eq!(pick(None, &set), ("team".into(), Source::Environment));
        assert_eq!(pick(Some("flag"), &set), ("flag".into(), Source::Flag));
        let empty = |_: &str| Some(OsString::new());
        assert_eq!(pick(None, &empty), ("kept".into(), Source::File));
    }

    #[test]
    fn a_damaged_file_is_named_with_its_line_and_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let places = places(&folder);
        std::fs::create_dir_all(&places.relay).unwrap();
        let file = path(&places);
        for text in ["context = \"a\"\ncolour = true\n", "context = \"a\"\n= 3\n"] {
            std::fs::write(&file, text).unwrap();
            let error = choose(None, &|_| None, &places).unwrap_err();
            assert!(error.line().contains("relayctl.toml:2: "), "{error}");
            assert!(keep(&places, "x").is_err());
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }
}
