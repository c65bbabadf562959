//! The engines that the suite runs against.

use store::{Location, Store, StoreOptions};
use tempfile::TempDir;

/// A database of its own.
pub(crate) struct Database {
    location: Location,
    _folder: Option<TempDir>,
}

impl Database {
    /// A SQLite file.
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            location: Location::Sqlite(folder.path().join("relay.db")),
            _folder: Some(folder),
        }
    }

    /// A store on it, up.
    pub(crate) async fn open(&self) -> Store {
        self.open_with(StoreOptions::default()).await
    }

    /// The same with other bounds.
    pub(crate) async fn open_with(&self, options: StoreOptions) -> Store {
        let opened = Store::open(self.location.clone(), options).await.unwrap();
        assert_eq!(opened.notices, []);
        let mut up = opened.store.reconnected();
        tokio::time::timeout(std::time::Duration::from_secs(20), up.wait_for(|up| *up))
            .await
            .expect("the store came up within 20 s")
            .unwrap();
        opened.store
    }
}
