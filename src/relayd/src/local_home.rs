//! What `relayd local` leaves in the user's home: the lock that keeps it alone, and `endpoint.json`, where clients find it
//! (design.md 7).

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use controller::fence::Fence;
use files::{Lock, PRIVATE, Places, make_private_folder, process_start, write_whole};
use serde_json::json;

use crate::error::RelaydError;

/// The home of one running `relayd local`; given back when dropped.
#[derive(Debug)]
pub(crate) struct LocalHome {
    pub(crate) places: Places,
    lock: Fence,
    written: bool,
}

/// What `endpoint.json` says, and says again when the router moves.
#[derive(Debug, Clone)]
pub(crate) struct Announcement {
    path: PathBuf,
    daemon: Option<SocketAddr>,
}

impl Announcement {
    /// Says where router and object API listen, and since when this process runs, so that its number cannot be mistaken.
    pub(crate) fn write(&self, router: SocketAddr) -> Result<(), RelaydError> {
        let pid = std::process::id();
        let text = json!({
            "url": self.daemon.map(|daemon| format!("http://{daemon}")),
            "router": format!("http://{router}"),
            "pid": pid,
            "pidStart": process_start(pid),
            "version": env!("CARGO_PKG_VERSION"),
        });
        let text = format!("{text:#}\n");
        write_whole(&self.path, text.as_bytes(), PRIVATE).map_err(|source| RelaydError::Home {
            path: self.path.clone(),
            source,
        })
    }
}

impl LocalHome {
    /// Makes the folders and takes the lock.
    pub(crate) fn take(places: Places) -> Result<Self, RelaydError> {
        let refused = |path: PathBuf| move |source: io::Error| RelaydError::Home { path, source };
        for folder in [&places.relay, &places.daemon()] {
            make_private_folder(folder).map_err(refused(folder.clone()))?;
        }
        let path = places.daemon().join("lock");
        let taken = Lock::try_take(&path).map_err(refused(path.clone()))?;
        let Some(mut lock) = taken else {
            return Err(RelaydError::AlreadyRuns { lock: path });
        };
        let note = format!("{}\n", std::process::id());
        lock.note(&note).map_err(refused(path))?;
        Ok(Self {
            places,
            lock: Fence::lock(lock),
            written: false,
        })
    }

    /// The right of this process to write objects: it is the one that has the lock.
    pub(crate) fn fence(&self) -> Fence {
        self.lock.clone()
    }

    /// Says where router and object API listen. What is given back says it again.
    pub(crate) fn announce(
        &mut self,
        router: SocketAddr,
        daemon: Option<SocketAddr>,
    ) -> Result<Announcement, RelaydError> {
        let announcement = Announcement {
            path: self.places.endpoint(),
            daemon,
        };
        announcement.write(router)?;
        self.written = true;
        Ok(announcement)
    }
}

impl Drop for LocalHome {
    fn drop(&mut self) {
        if self.written {
            // A file that stays names a process that is gone, which clients notice.
            let _ = std::fs::remove_file(self.places.endpoint());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_has_the_home_and_clients_find_it() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places {
            relay: folder.path().join("home"),
            agent: folder.path().join("agent"),
        };
        let mut home = LocalHome::take(places.clone()).unwrap();
        assert!(matches!(
            LocalHome::take(places.clone()),
            Err(RelaydError::AlreadyRuns { .. })
        ));
        let at = |port: u16| ([127, 0, 0, 1], port).into();
        home.announce(at(8738), Some(at(4748))).unwrap();
        let text = std::fs::read_to_string(places.endpoint()).unwrap();
        let endpoint: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(endpoint["router"], "http://127.0.0.1:8738");
        assert_eq!(endpoint["url"], "http://127.0.0.1:4748");
        assert_eq!(endpoint["pid"], std::process::id());
        let moved = home.announce(at(8738), None).unwrap();
        moved.write(at(8737)).unwrap();
        let text = std::fs::read_to_string(places.endpoint()).unwrap();
        assert!(text.contains("http://127.0.0.1:8737"), "{text}");
        drop(home);
        assert!(!places.endpoint().exists());
        LocalHome::take(places).unwrap();
    }
}
