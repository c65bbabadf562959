//! The daemon's token (daemon 4.1): 32 random bytes as 43 characters of base64url in a file of its user's own.

use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::DoorError;

/// Longest token file that is read, in bytes.
const MAX_BYTES: u64 = 1024;
/// Fewest characters of a token that is taken from a file.
const MIN_LENGTH: usize = 32;
/// Wrong tokens within a [`WINDOW`] before callers have to wait.
const WRONG_TOKENS: u32 = 20;
const WINDOW: Duration = Duration::from_secs(60);

/// The token, and how often a wrong one was sent.
pub struct Token {
    text: String,
    digest: [u8; 32],
    wrong: Mutex<Option<(Instant, u32)>>,
}

/// What a caller's token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The token.
    Right,
    /// None.
    Missing,
    /// Another one.
    Wrong,
    /// Another one, after too many wrong ones; the next wrong one is looked at after this.
    Wait(Duration),
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// The token of a file, made if the file is not there.
    pub(super) fn of_file(path: &Path) -> Result<Self, DoorError> {
        match files::read_text(path, MAX_BYTES) {
            Ok(file) => {
                if let Some(mode) = files::exposed_mode(&file.metadata) {
                    return Err(DoorError::new(
                        path,
                        &format!("other users can read it (mode {mode:03o}); run chmod 600 on it"),
                    ));
                }
                let text = file.text.trim();
                let is_token =
                    text.len() >= MIN_LENGTH && text.bytes().all(|b| b.is_ascii_graphic());
                if !is_token {
                    return Err(DoorError::new(
                        path,
                        &"it holds no token; remove it, and a new one is made",
                    ));
                }
                Ok(Self::of_text(text.to_owned()))
            }
            Err(error) if error.is_not_found() => {
                let mut bytes = [0; 32];
                getrandom::fill(&mut bytes).map_err(|error| DoorError::new(path, &error))?;
                let text = URL_SAFE_NO_PAD.encode(bytes);
                files::write_whole(path, text.as_bytes(), files::PRIVATE)
                    .map_err(|error| DoorError::new(path, &error))?;
                Ok(Self::of_text(text))
            }
            Err(error) => Err(DoorError::new(path, &error)),
        }
    }

    fn of_text(text: String) -> Self {
        Self {
            digest: Sha256::digest(&text).into(),
            text,
            wrong: Mutex::default(),
        }
    }

    /// The token itself, for the kubeconfig.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Judges what a caller sent. Digests are compared, so that time tells nothing of the token. The right one is always
    /// right: 32 random bytes are not guessed, and whoever reaches the port must not be able to lock its user out.
    pub fn judge(&self, sent: Option<&[u8]>, now: Instant) -> Sent {
        let Some(sent) = sent else {
            return Sent::Missing;
        };
        let digest: [u8; 32] = Sha256::digest(sent).into();
        if digest == self.digest {
            return Sent::Right;
        }
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, count)) = *wrong {
            let passed = now.saturating_duration_since(since);
            if passed >= WINDOW {
                *wrong = None;
            } else if count >= WRONG_TOKENS {
                return Sent::Wait(WINDOW - passed);
            }
        }
        let (since, count) = wrong.unwrap_or((now, 0));
        *wrong = Some((since, count + 1));
        Sent::Wrong
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn is_made_once_for_its_user_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let made = Token::of_file(&path).unwrap();
        assert_eq!(made.text.len(), 43);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(Token::of_file(&path).unwrap().text, made.text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = Token::of_file(&path).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(Token::of_file(&path).is_err());
    }

    #[test]
    fn guessing_has_to_wait_and_nobody_locks_the_user_out() {
        let token = Token::of_text("x".repeat(43));
        let start = Instant::now();
        for _ in 0..100 {
            assert_eq!(token.judge(None, start), Sent::Missing);
        }
        assert_eq!(
            token.judge(Some("x".repeat(43).as_bytes()), start),
            Sent::Right
        );
        let guess = Some("y".as_bytes());
        for _ in 0..WRONG_TOKENS {
            assert_eq!(token.judge(guess, start), Sent::Wrong);
        }
        let later = start + Duration::from_secs(20);
        assert_eq!(
            token.judge(guess, later),
            Sent::Wait(Duration::from_secs(40))
        );
        let right = "x".repeat(43);
        assert_eq!(token.judge(Some(right.as_bytes()), later), Sent::Right);
        assert_eq!(token.judge(guess, start + WINDOW), Sent::Wrong);
    }
}
