//! The engines that the suite runs against.

use std::sync::atomic::{AtomicU64, Ordering};

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

    /// What is at a place.
    pub(crate) fn at(location: Location) -> Self {
        Self {
            location,
            _folder: None,
        }
    }

    /// Path or address.
    pub(crate) fn place(&self) -> String {
        match &self.location {
            Location::Sqlite(path) => path.display().to_string(),
            Location::Postgres(address) => address.clone(),
        }
    }

    /// An empty database of the server that `cargo xtask test` starts.
    pub(crate) async fn postgres() -> Self {
        Self::at(Location::Postgres(new_database().await))
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

/// Address of a server for tests, which `tests/engines/postgres.sh start` prints.
pub(crate) fn server() -> String {
    std::env::var("RELAY_TEST_POSTGRES").expect(
        "RELAY_TEST_POSTGRES names no server: run `cargo xtask test`, \
         or give it what `tests/engines/postgres.sh start` prints",
    )
}

/// Runs statements on a server.
pub(crate) async fn administer(url: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .unwrap();
    let driver = tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
    drop(client);
    driver.await.unwrap().unwrap();
}

/// Makes an empty database; its address.
pub(crate) async fn new_database() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let server = server();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("t_{}_{number}", std::process::id());
    administer(&server, &format!("CREATE DATABASE {name}")).await;
    let (start, _) = server.rsplit_once('/').unwrap();
    format!("{start}/{name}")
}
