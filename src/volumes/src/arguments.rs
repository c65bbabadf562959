//! The words `fetch`, `verify` and `prune` as a task container and a person write them, and as the embedded back end is
//! given them: one reader for all, so that they cannot drift apart.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Command, FromArgMatches};

use crate::task::{self, Outcome};
use crate::{
    Credential, Digest, Existing, FetchRequest, Limits, PruneRequest, Run, Source, SourceManifest,
    TaskError, VerifyRequest,
};

/// Largest `--manifest` file, in bytes.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// Largest `--auth-file`, in bytes.
const MAX_AUTH_BYTES: u64 = 64 << 10;

// No doc comments on these three: clap would show them in place of the words' descriptions.
#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["manifest", "oci", "from_dir"]))]
struct FetchArguments {
    /// Root of the volume
    #[arg(long, value_name = "DIR")]
    models: PathBuf,
    /// JSON file with baseUrl and files (path, size, sha256 and, where its name there differs, asset)
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// OCI artifact, registry/repository@sha256:…
    #[arg(long, value_name = "REF")]
    oci: Option<String>,
    /// Folder of this machine
    #[arg(long, value_name = "DIR")]
    from_dir: Option<PathBuf>,
    /// Address in place of the manifest's
    #[arg(long, value_name = "URL", requires = "manifest")]
    base_url: Option<String>,
    /// Checkpoint digest that is expected
    #[arg(long, value_name = "DIGEST")]
    digest: Option<Digest>,
    /// Contract digest that the checkpoint must have, if it names one
    #[arg(long, value_name = "DIGEST")]
    contract: Option<Digest>,
    /// Give up after so long
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    deadline_seconds: Option<u64>,
    /// Give a source up that gives less, averaged over a minute
    #[arg(long, value_name = "N", default_value_t = 1024)]
    min_bytes_per_second: u64,
    /// Checkpoint that may go where there is no room otherwise; may be given again
    #[arg(long, value_name = "DIGEST")]
    prunable: Vec<Digest>,
    /// File with a token, or for a registry with user:password
    #[arg(long, value_name = "FILE")]
    auth_file: Option<PathBuf>,
    /// Hash what is published already, fetch what is bad, and exchange it
    #[arg(long)]
    repair: bool,
    /// Id of the store that the volume belongs to
    #[arg(long, value_name = "ID")]
    store: Option<String>,
}

#[derive(Debug, Clone, Args)]
struct VerifyArguments {
    /// Root of the volume
    #[arg(long, value_name = "DIR")]
    models: PathBuf,
    /// Checkpoint digest
    #[arg(long, value_name = "DIGEST")]
    digest: Digest,
    /// A folder that Relay did not write; relative to the root of the volume
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Contract digest that the checkpoint must have, if it names one
    #[arg(long, value_name = "DIGEST")]
    contract: Option<Digest>,
    /// Give up after so long
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    deadline_seconds: Option<u64>,
}

#[derive(Debug, Clone, Args)]
struct PruneArguments {
    /// Root of the volume
    #[arg(long, value_name = "DIR")]
    models: PathBuf,
    /// Checkpoint to delete; may be given again
    #[arg(long, value_name = "DIGEST")]
    delete: Vec<Digest>,
    /// Checkpoint to mark, so that no prune deletes it; may be given again
    #[arg(long, value_name = "DIGEST")]
    keep: Vec<Digest>,
    /// End at once where another writer has the volume
    #[arg(long)]
    no_wait: bool,
    /// Delete and mark nothing: say what lies in the volume and how much room there is
    #[arg(long, conflicts_with_all = ["delete", "keep", "no_wait"])]
    list: bool,
}

/// A task, read from its words.
#[derive(Debug, Clone)]
pub enum Task {
    /// `fetch`.
    Fetch(FetchRequest),
    /// `verify`.
    Verify(VerifyRequest),
    /// `prune`.
    Prune(PruneRequest),
    /// `prune --list`.
    Look {
        /// Root of the volume.
        models: PathBuf,
    },
}

/// The three words with their arguments, for a command line, completions and the manual page.
#[must_use]
pub fn commands() -> [Command; 3] {
    const LINES: &str = "Prints PROGRESS lines while it works and one RESULT line at the end. ";
    const CODES: &str = "Exit codes: 0 done, 1 failed, 2 arguments, 3 refused (digest, size, contract, path, checkpoint, \
         credentials), 5 no space or read-only, 6 source unreachable, slow or cut, 75 interrupted (run it again).";
    let with_help = |command: Command, own: &str| {
        command
            .after_help(format!("{LINES}{own}{CODES}"))
            .disable_version_flag(true)
    };
    [
        with_help(
            FetchArguments::augment_args(
                Command::new("fetch").about("Bring a checkpoint into a volume, verified"),
            ),
            "A run that was cut goes on where it stopped; what is there already is not fetched again. ",
        ),
        with_help(
            VerifyArguments::augment_args(
                Command::new("verify")
                    .about("Hash every file of a checkpoint and check its meaning"),
            ),
            "Writes nothing. ",
        ),
        with_help(
            PruneArguments::augment_args(
                Command::new("prune").about("Delete checkpoints from a volume"),
            ),
            "Deletes what --delete names and nothing else; without it only leftovers are tidied up. ",
        ),
    ]
}

impl Task {
    /// Reads `["fetch", "--models", …]`. Files that arguments name are read here.
    ///
    /// # Errors
    /// [`TaskError::Usage`].
    pub fn parse<T: AsRef<OsStr>>(words: &[T]) -> Result<Self, TaskError> {
        let words: Vec<OsString> = words.iter().map(|word| word.as_ref().to_owned()).collect();
        let word = words.first().cloned().unwrap_or_default();
        let command = commands()
            .into_iter()
            .find(|command| *command.get_name() == *word)
            .ok_or_else(|| TaskError::Usage {
                why: format!(
                    "'{}' is no task on a volume: expected fetch, verify or prune",
                    word.to_string_lossy().escape_default()
                ),
            })?;
        let name = command.get_name().to_owned();
        let matches = command
            .try_get_matches_from(words)
            .map_err(|error| TaskError::Usage {
                why: error.to_string().trim_end().to_owned(),
            })?;
        Self::of_matches(&name, &matches)
    }

    /// The task of a word whose arguments were read with [`commands`].
    ///
    /// # Errors
    /// [`TaskError::Usage`] where a file that is named cannot be read.
    pub fn of_matches(word: &str, matches: &clap::ArgMatches) -> Result<Self, TaskError> {
        fn read<T: FromArgMatches>(matches: &clap::ArgMatches) -> Result<T, TaskError> {
            T::from_arg_matches(matches).map_err(|error| TaskError::Usage {
                why: error.to_string(),
            })
        }
        Ok(match word {
            "fetch" => Self::Fetch(fetch(read(matches)?)?),
            "verify" => Self::Verify(verify(read(matches)?)),
            _ => prune(read(matches)?),
        })
    }

    /// Runs it. Blocks.
    #[must_use]
    pub fn run(&self, run: &Run) -> Outcome {
        match self {
            Self::Fetch(request) => {
                let result = crate::fetch(request, run);
                Outcome::new(task::fetch_result(&result), task::exit_of(&result))
            }
            Self::Verify(request) => {
                let result = crate::verify(request, run);
                Outcome::new(task::verify_result(&result), task::exit_of(&result))
            }
            Self::Prune(request) => {
                let result = crate::prune(request, run);
                Outcome::new(task::prune_result(&result), task::exit_of(&result))
            }
            Self::Look { models } => {
                let result = crate::view(models)
                    .map_err(|source| TaskError::io("look into", models, source));
                Outcome::new(task::view_result(&result), task::exit_of(&result))
            }
        }
    }
}

fn fetch(arguments: FetchArguments) -> Result<FetchRequest, TaskError> {
    let FetchArguments {
        models,
        manifest,
        oci,
        from_dir,
        base_url,
        digest,
        contract,
        deadline_seconds,
        min_bytes_per_second,
        prunable,
        auth_file,
        repair,
        store,
    } = arguments;
    let source = match (manifest, oci, from_dir) {
        (Some(file), _, _) => {
            let text = text_of(&file, MAX_MANIFEST_BYTES)?;
            let read: SourceManifest =
                serde_json::from_str(&text).map_err(|error| TaskError::Usage {
                    why: format!("{} is no manifest: {error}", file.display()),
                })?;
            Source::Http {
                base_url: base_url.unwrap_or(read.base_url),
                files: read.files,
            }
        }
        (_, Some(reference), _) => Source::Oci { reference },
        (_, _, Some(path)) => Source::Folder { path },
        (None, None, None) => {
            return Err(TaskError::Usage {
                why: "no source: give --manifest, --oci or --from-dir".to_owned(),
            });
        }
    };
    let credential = match auth_file {
        Some(file) => Credential::read(&text_of(&file, MAX_AUTH_BYTES)?, &source),
        None => None,
    };
    Ok(FetchRequest {
        models,
        source,
        digest,
        contract,
        existing: if repair {
            Existing::Repair
        } else {
            Existing::Trust
        },
        prunable,
        credential,
        store,
        limits: Limits {
            min_bytes_per_second,
            ..limits(deadline_seconds)
        },
    })
}

fn verify(arguments: VerifyArguments) -> VerifyRequest {
    let VerifyArguments {
        models,
        digest,
        path,
        contract,
        deadline_seconds,
    } = arguments;
    VerifyRequest {
        models,
        digest,
        path,
        contract,
        limits: limits(deadline_seconds),
    }
}

fn prune(arguments: PruneArguments) -> Task {
    let PruneArguments {
        models,
        delete,
        keep,
        no_wait,
        list,
    } = arguments;
    if list {
        return Task::Look { models };
    }
    let mut limits = limits(None);
    if no_wait {
        limits.lock_wait = Duration::ZERO;
    }
    Task::Prune(PruneRequest {
        models,
        delete,
        keep,
        limits,
    })
}

fn limits(deadline_seconds: Option<u64>) -> Limits {
    Limits {
        deadline: deadline_seconds.map(Duration::from_secs),
        ..Limits::default()
    }
}

/// Says which file, never what is in it.
fn text_of(path: &Path, limit: u64) -> Result<String, TaskError> {
    files::read_text(path, limit)
        .map(|file| file.text)
        .map_err(|error| TaskError::Usage {
            why: format!("cannot use {}: {error}", path.display()),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(digit: char) -> String {
        format!("sha256:{}", digit.to_string().repeat(64))
    }

    #[test]
    fn the_definitions_are_sound() {
        for command in commands() {
            command.debug_assert();
        }
    }

    #[test]
    fn words_become_requests() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name).display().to_string();
        std::fs::write(
            at("manifest.json"),
            format!(
                r#"{{"baseUrl":"https://a.example/","files":[{{"path":"x","size":1,"sha256":"{}"}}]}}"#,
                "a".repeat(64)
            ),
        )
        .unwrap();
        std::fs::write(at("auth"), "token\n").unwrap();
        let words = [
            "fetch",
            "--models",
            "/data/models",
            "--manifest",
            &at("manifest.json"),
            "--base-url",
            "https://b.example/",
            "--digest",
            &digest('1'),
            "--contract",
            &digest('2'),
            "--deadline-seconds",
            "60",
            "--min-bytes-per-second",
            "5",
            "--prunable",
            &digest('3'),
            "--prunable",
            &digest('4'),
            "--auth-file",
            &at("auth"),
            "--repair",
            "--store",
            "abc",
        ];
        let Task::Fetch(request) = Task::parse(&words).unwrap() else {
            panic!("another task");
        };
        let Source::Http { base_url, files } = &request.source else {
            panic!("another source");
        };
        assert_eq!((base_url.as_str(), files.len()), ("https://b.example/", 1));
        assert_eq!(request.models, Path::new("/data/models"));
        assert_eq!(request.digest, Digest::parse(&digest('1')).ok());
        assert_eq!(request.contract, Digest::parse(&digest('2')).ok());
        assert_eq!(request.limits.deadline, Some(Duration::from_secs(60)));
        assert_eq!(request.limits.min_bytes_per_second, 5);
        assert_eq!(request.prunable.len(), 2);
        assert_eq!(
            request.credential,
            Some(Credential::Token("token".to_owned()))
        );
        assert_eq!(request.existing, Existing::Repair);
        assert_eq!(request.store.as_deref(), Some("abc"));

        let (a, b) = (digest('a'), digest('b'));
        let words = ["prune", "--models", "m", "--delete", &a, "--keep", &b];
        let Task::Prune(request) = Task::parse(&words).unwrap() else {
            panic!("another task");
        };
        assert_eq!(request.delete, [Digest::parse(&a).unwrap()]);
        assert_eq!(request.keep, [Digest::parse(&b).unwrap()]);
        assert_eq!(request.limits.lock_wait, Limits::default().lock_wait);
        let words = ["prune", "--models", "m", "--delete", &a, "--no-wait"];
        let Task::Prune(request) = Task::parse(&words).unwrap() else {
            panic!("another task");
        };
        assert_eq!(request.limits.lock_wait, Duration::ZERO);
        let words = ["prune", "--models", "m", "--list"];
        let Task::Look { models } = Task::parse(&words).unwrap() else {
            panic!("another task");
        };
        assert_eq!(models, Path::new("m"));

        let words = [
            "verify", "--models", "m", "--digest", &a, "--path", "local-1",
        ];
        let Task::Verify(request) = Task::parse(&words).unwrap() else {
            panic!("another task");
        };
        assert_eq!(request.path.as_deref(), Some(Path::new("local-1")));
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let a = digest('a');
        for (words, says) in [
            (vec![], "is no task"),
            (vec!["train"], "is no task"),
            (vec!["fetch", "--models", "m"], "required"),
            (
                vec!["fetch", "--models", "m", "--oci", "r", "--from-dir", "d"],
                "cannot be used with",
            ),
            (
                vec!["fetch", "--models", "m", "--manifest", "/nothing/there"],
                "/nothing/there",
            ),
            (
                vec!["verify", "--models", "m", "--digest", "sha256:12"],
                "is no digest",
            ),
            (
                vec!["prune", "--models", "m", "--delete", &a, "--all"],
                "--all",
            ),
            (
                vec!["prune", "--models", "m", "--delete", &a, "--list"],
                "cannot be used with",
            ),
        ] {
            let error = Task::parse(&words).unwrap_err();
            assert!(matches!(error, TaskError::Usage { .. }), "{words:?}");
            assert!(error.to_string().contains(says), "{words:?}: {error}");
        }
    }
}
