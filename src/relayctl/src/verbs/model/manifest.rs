//! `relayctl model manifest`: the files of a folder with sizes and hashes, as the manifest file of training 12. No server is
//! asked; links and what lies beside a checkpoint are refused, not skipped in silence.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use sha2::{Digest as _, Sha256};

use crate::call::Call;
use crate::error::CliError;
use crate::facts;
use crate::manifest::{self, Manifest, published};
use crate::terminal::{self, Progress};
use api::exit::Exit;

/// Most files, parts and characters of a path of a LayaModel (control-plane 2).
const MAX_FILES: usize = 256;
const MAX_PARTS: usize = 8;
const MAX_PATH: usize = 255;
/// Read at once.
const BUFFER: usize = 1 << 20;
/// The manifest of a folder lists every file but itself.
const OWN: &str = "relay-manifest.json";

/// Arguments of `relayctl model manifest`.
#[derive(Debug, Args)]
#[command(after_help = "\
The manifest goes to standard output, the checkpoint digest to standard error. Files are those of the project's repository at
the revision, by default one that is called as the version; with --base-url anywhere else, under names without folders
(`encoder/config.json` is `encoder__config.json`), as attachments of a release have.

Example:
  relayctl model manifest --dir ./v2 --version v2 --revision deb313b0… > v2.json")]
pub(crate) struct ManifestArguments {
    /// Folder of the checkpoint
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// What the version is called
    #[arg(long, value_name = "NAME")]
    version: String,
    /// Commit or tag of the repository that it was uploaded as
    #[arg(long, value_name = "REVISION", conflicts_with = "base_url")]
    revision: Option<String>,
    /// Where else its files can be had, under flat names with `__` for `/`, as a release page has them
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
}

/// Writes it.
pub(super) fn run(call: &Call, arguments: &ManifestArguments) -> Result<Exit, CliError> {
    let ManifestArguments {
        dir,
        version,
        revision,
        base_url,
    } = arguments;
    check_word("--version", version)?;
    if let Some(revision) = revision {
        check_word("--revision", revision)?;
    }
    let base_url = match base_url {
        Some(url) => checked_url(url)?,
        None => published(revision.as_deref().unwrap_or(version)),
    };
    let flat = arguments.base_url.is_some();
    let mut found = Vec::new();
    collect(dir, "", &mut found)?;
    if found.is_empty() {
        return Err(CliError::refused(format!(
            "{} holds no file",
            dir.display()
        )));
    }
    found.sort();
    let mut files = Vec::new();
    let mut progress = Progress::new();
    for path in found {
        let (size, sha256) = hash(&dir.join(&path), &path, &mut progress)?;
        let asset = if flat {
            path.replace('/', "__")
        } else {
            path.clone()
        };
        files.push(manifest::File {
            path,
            asset,
            size,
            sha256,
        });
    }
    drop(progress);
    let manifest = Manifest { base_url, files };
    call.tell(&format!(
        "{version}: {}, {} files, {}",
        manifest.digest(),
        manifest.files.len(),
        facts::bytes(manifest.size())
    ));
    terminal::print(&manifest.to_text())?;
    Ok(Exit::Done)
}

/// A word that becomes part of an address.
fn check_word(flag: &str, word: &str) -> Result<(), CliError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let good = !word.is_empty()
        && word.len() <= 100
        && word.chars().all(is_plain)
        && !word.starts_with('.');
    if good {
        return Ok(());
    }
    let shown: String = word.chars().take(80).collect();
    Err(CliError::usage(format!(
        "`{flag} {shown}` is no name: only a-z, A-Z, 0-9, `-`, `_` and `.` may be in it"
    )))
}

/// An address that a LayaModel takes, with a slash at its end.
fn checked_url(url: &str) -> Result<String, CliError> {
    let uri: Option<http::Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(|uri| uri.host());
    let is_secure = url.starts_with("https://") && host.is_some();
    let is_here = url.starts_with("http://") && matches!(host, Some("127.0.0.1" | "localhost"));
    if !is_secure && !is_here {
        let shown: String = url.chars().take(200).collect();
        return Err(CliError::usage(format!(
            "`--base-url {shown}` is no address of https, or of this machine"
        )));
    }
    Ok(if url.ends_with('/') {
        url.to_owned()
    } else {
        format!("{url}/")
    })
}

/// Every file below a folder by its path in it.
fn collect(root: &Path, inner: &str, found: &mut Vec<String>) -> Result<(), CliError> {
    let folder = root.join(inner);
    let unread = |path: &Path, error: std::io::Error| {
        let exit = if error.kind() == std::io::ErrorKind::NotFound {
            Exit::NotFound
        } else {
            Exit::Refused
        };
        CliError::new(exit, format!("cannot read {}: {error}", path.display()))
    };
    let entries = std::fs::read_dir(&folder).map_err(|error| unread(&folder, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unread(&folder, error))?;
        let path = entry.path();
        let refused = |why: &str| CliError::refused(format!("{} {why}", path.display()));
        let name = entry.file_name();
        let name = name
            .to_str()
            .ok_or_else(|| refused("has a name that is no UTF-8"))?;
        let inside = if inner.is_empty() {
            name.to_owned()
        } else {
            format!("{inner}/{name}")
        };
        if inside == OWN {
            continue;
        }
        if !is_inner_path(&inside) {
            return Err(refused("has a name that no checkpoint may have (UnsafePath)")
                .hint("letters, digits, `_`, `.` and `-`, none hidden, at most eight parts; move it elsewhere"));
        }
        let kind = entry.file_type().map_err(|error| unread(&path, error))?;
        if kind.is_dir() {
            collect(root, &inside, found)?;
        } else if kind.is_file() {
            found.push(inside);
        } else {
            return Err(refused("is neither a file nor a folder")
                .hint("links and pipes are no part of a checkpoint; copy the file there"));
        }
        if found.len() > MAX_FILES {
            return Err(CliError::refused(format!(
                "{} holds more than {MAX_FILES} files",
                root.display()
            )));
        }
    }
    Ok(())
}

/// As the schema of a LayaModel wants it.
fn is_inner_path(path: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
    };
    path.len() <= MAX_PATH && path.split('/').count() <= MAX_PARTS && path.split('/').all(part)
}

/// Size and SHA-256 of a file, of the very bytes that were read.
fn hash(path: &Path, shown: &str, progress: &mut Progress) -> Result<(u64, String), CliError> {
    let unread = |error: &dyn std::fmt::Display| {
        CliError::refused(format!("cannot read {}: {error}", path.display()))
    };
    let (mut file, metadata): (File, _) = files::open(path).map_err(|error| unread(&error))?;
    if metadata.len() == 0 {
        return Err(CliError::refused(format!(
            "{} is empty, and no file of a checkpoint is",
            path.display()
        )));
    }
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; BUFFER];
    let mut done: u64 = 0;
    let mut tenths = 0;
    loop {
        let count = file.read(&mut buffer).map_err(|error| unread(&error))?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        done += count as u64;
        let now = done * 10 / metadata.len().max(1);
        // Only what takes a while is worth a line.
        if now > tenths && now < 10 && metadata.len() > 64 * BUFFER as u64 {
            tenths = now;
            progress.show(&format!("hashing {shown}: {} %", now * 10));
        }
    }
    let hex = hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok((done, hex))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_addresses_are_checked() {
        for (word, good) in [
            ("v2", true),
            ("deb313b03518f282a7c4", true),
            ("", false),
            ("../x", false),
            ("a/b", false),
            (".x", false),
        ] {
            assert_eq!(check_word("--version", word).is_ok(), good, "{word}");
        }
        for (url, expected) in [
            ("https://example.com/m", Some("https://example.com/m/")),
            ("http://127.0.0.1:8000/", Some("http://127.0.0.1:8000/")),
            ("http://example.com/", None),
            ("file:///etc", None),
            ("https://", None),
        ] {
            assert_eq!(checked_url(url).ok().as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn only_plain_files_with_plain_names_are_a_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir(root.join("encoder")).unwrap();
        std::fs::write(root.join("encoder/config.json"), "{}").unwrap();
        std::fs::write(root.join(OWN), "{}").unwrap();
        let found = |root: &Path| {
            let mut found = Vec::new();
            collect(root, "", &mut found).map(|()| found)
        };
        assert_eq!(found(root).unwrap(), ["encoder/config.json"]);
        std::os::unix::fs::symlink("/etc/passwd", root.join("link")).unwrap();
        assert!(
            found(root)
                .unwrap_err()
                .line()
                .ends_with("is neither a file nor a folder")
        );
        std::fs::remove_file(root.join("link")).unwrap();
        std::fs::write(root.join(".hidden"), "x").unwrap();
        assert!(found(root).unwrap_err().line().contains("UnsafePath"));
        assert_eq!(found(&root.join("none")).unwrap_err().exit, Exit::NotFound);
        let (size, sha256) =
            hash(&root.join("encoder/config.json"), "", &mut Progress::new()).unwrap();
        assert_eq!(size, 2);
        assert_eq!(
            sha256,
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
    }
}
