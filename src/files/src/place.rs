//! Where the user's files lie (design.md 7): `RELAY_HOME` and the agent folder, from the environment; and whether the
//! process that a file names still lives.

use std::ffi::OsString;
use std::path::PathBuf;

/// Looks up an environment variable; a parameter so that tests need no process-wide state.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The user's folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// `RELAY_HOME`, else `~/.relay`.
    pub relay: PathBuf,
    /// `RELAY_CODING_AGENT_DIR`, else `<RELAY_HOME>/agent`.
    pub agent: PathBuf,
}

/// Neither `RELAY_HOME` nor `HOME` is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("neither RELAY_HOME nor HOME is set")]
pub struct NoHome;

impl Places {
    /// Finds the folders; makes none. One that is named relative to the working folder is made absolute: a daemon that is
    /// started by another program has another one, and would look elsewhere.
    ///
    /// # Errors
    /// When nothing names them.
    pub fn find(environment: Environment<'_>) -> Result<Self, NoHome> {
        let set = |name: &str| {
            environment(name)
                .filter(|value| !value.is_empty())
                .map(|value| {
                    let path = PathBuf::from(value);
                    // Fails only where there is no working folder; the path is refused then when it is used.
                    std::path::absolute(&path).unwrap_or(path)
                })
        };
        let relay = set("RELAY_HOME")
            .or_else(|| set("HOME").map(|home| home.join(".relay")))
            .ok_or(NoHome)?;
        let agent = set("RELAY_CODING_AGENT_DIR").unwrap_or_else(|| relay.join("agent"));
        Ok(Self { relay, agent })
    }

    /// `<RELAY_HOME>/relay.db`: decisions, outcomes, learned tasks.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.relay.join("relay.db")
    }

    /// `<RELAY_HOME>/objects.db`: control objects.
    #[must_use]
    pub fn objects(&self) -> PathBuf {
        self.relay.join("objects.db")
    }

    /// `<RELAY_HOME>/instance`: the id of the store of objects.
    #[must_use]
    pub fn instance(&self) -> PathBuf {
        self.relay.join("instance")
    }

    /// `<RELAY_HOME>/daemon/sock`: where programs of the same user reach the object API.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.daemon().join("sock")
    }

    /// `<RELAY_HOME>/daemon`.
    #[must_use]
    pub fn daemon(&self) -> PathBuf {
        self.relay.join("daemon")
    }

    /// `<RELAY_HOME>/daemon/endpoint.json`: where a running `relayd local` listens.
    #[must_use]
    pub fn endpoint(&self) -> PathBuf {
        self.daemon().join("endpoint.json")
    }

    /// `<RELAY_HOME>/router/tokens`.
    #[must_use]
    pub fn tokens(&self) -> PathBuf {
        self.relay.join("router").join("tokens")
    }

    /// `<agent folder>/laya`: what Laya keeps beside the agent's files.
    #[must_use]
    pub fn laya(&self) -> PathBuf {
        self.agent.join("laya")
    }
}

/// Start time of a process in clock ticks since boot (field 22 of `/proc/<pid>/stat`), if it lives. A number that was
/// given to another process meanwhile has another start time; one that ended and whose parent has not noticed, as in a
/// container without an init, lives no more.
#[must_use]
pub fn process_start(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may hold anything, spaces and parentheses too.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_folders() {
        type Row = (
            &'static str,
            &'static [(&'static str, &'static str)],
            Option<(&'static str, &'static str)>,
        );
        let rows: &[Row] = &[
            (
                "home",
                &[("HOME", "/h")],
                Some(("/h/.relay", "/h/.relay/agent")),
            ),
            (
                "relay home",
                &[("HOME", "/h"), ("RELAY_HOME", "/r")],
                Some(("/r", "/r/agent")),
            ),
            (
                "empty is unset",
                &[("HOME", "/h"), ("RELAY_HOME", "")],
                Some(("/h/.relay", "/h/.relay/agent")),
            ),
            (
                "agent folder",
                &[("RELAY_HOME", "/r"), ("RELAY_CODING_AGENT_DIR", "/a")],
                Some(("/r", "/a")),
            ),
            ("nothing", &[], None),
        ];
        for (name, environment, expected) in rows {
            let look = |wanted: &str| {
                let found = environment.iter().find(|(name, _)| *name == wanted);
                found.map(|(_, value)| OsString::from(value))
            };
            let found = Places::find(&look).ok();
            let expected = expected.map(|(relay, agent)| Places {
                relay: relay.into(),
                agent: agent.into(),
            });
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn folders_are_absolute() {
        let here = std::env::current_dir().unwrap();
        let look = |wanted: &str| match wanted {
            "RELAY_HOME" => Some(OsString::from("rel/home")),
            "RELAY_CODING_AGENT_DIR" => Some(OsString::from("./agent")),
            _ => None,
        };
        let found = Places::find(&look).unwrap();
        assert_eq!(found.relay, here.join("rel/home"));
        assert_eq!(found.agent, here.join("agent"));
    }

    #[test]
    fn knows_when_this_process_started() {
        let own = process_start(std::process::id()).unwrap();
        assert_eq!(process_start(std::process::id()), Some(own));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        // It ends, and nobody waits for it yet.
        while process_start(child.id()).is_some() {
            assert!(
                std::time::Instant::now() < deadline,
                "a zombie counts as alive"
            );
        }
        child.wait().unwrap();
        assert_eq!(process_start(u32::MAX), None);
    }
}
