//! What tells the folder of models from another one that is put in its place: 16 random hex digits in a file in it. Device
//! and inode do not: a disk may have another number after each start of the machine, and a new folder the inode of an old.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use volumes::VOLUME_UID;

/// Its digits.
const DIGITS: usize = 16;
/// Longest file that is read: the digits and an end of line, and what an editor may put around them.
const MAX_BYTES: u64 = 64;

/// The uid of a folder that is there. One that has none gets one: it is new, or is from before there were any. So does one
/// whose file says nothing that is a uid; it is written whole or not at all, so that was somebody's hand.
///
/// # Errors
/// When the file can neither be read nor made.
pub(super) fn of(folder: &Path, one_at_a_time: &Mutex<()>) -> io::Result<String> {
    let _one = one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
    let path = folder.join(VOLUME_UID);
    match files::read_text(&path, MAX_BYTES) {
        Ok(file) => {
            if let Some(uid) = parse(&file.text) {
                return Ok(uid);
            }
            tracing::warn!(path = %path.display(), "is no uid of a volume, and is written anew");
        }
        Err(error) if error.is_not_found() => {}
        // It may well be there: another one would make all that is known of the models void.
        Err(files::ReadError::Io(error)) => return Err(error),
        Err(error) => return Err(io::Error::other(format!("{}: {error}", path.display()))),
    }
    let uid = random()?;
    files::write_whole(&path, format!("{uid}\n").as_bytes(), files::PRIVATE)?;
    Ok(uid)
}

fn parse(text: &str) -> Option<String> {
    let text = text.trim();
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    (text.len() == DIGITS && text.chars().all(is_hex)).then(|| text.to_owned())
}

fn random() -> io::Result<String> {
    let mut bytes = [0_u8; DIGITS / 2];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_its_uid_and_another_has_another() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let lock = Mutex::new(());
        let uid = of(one.path(), &lock).unwrap();
        assert_eq!(parse(&uid), Some(uid.clone()));
        assert_eq!(of(one.path(), &lock).unwrap(), uid);
        assert_ne!(of(two.path(), &lock).unwrap(), uid);
        std::fs::remove_file(one.path().join(VOLUME_UID)).unwrap();
        assert_ne!(of(one.path(), &lock).unwrap(), uid);
        assert!(of(&one.path().join("none"), &lock).is_err());
        let view = volumes::view(one.path()).unwrap();
        assert!(view.unknown.is_empty(), "{view:?}");
    }

    #[test]
    fn uids_are_sixteen_hex_digits() {
        let cases = [
            ("0123456789abcdef", true),
            (" 0123456789abcdef\n", true),
            ("", false),
            ("0123456789abcde", false),
            ("0123456789abcdef0", false),
            ("0123456789ABCDEF", false),
            ("fd01-1a2b3c4d5e6", false),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).is_some(), expected, "{text:?}");
        }
    }
}
