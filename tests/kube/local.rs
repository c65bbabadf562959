//! The local object API in this process, over a store of its own: plain HTTP requests into its service, nothing between.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use objects::{ObjectService, ObjectStore, ObjectStoreOptions};
use tower::ServiceExt as _;

use crate::target::{Ask, Target, Told, body_of};

/// A store that is gone with the test.
pub(crate) struct Local {
    runtime: tokio::runtime::Runtime,
    service: ObjectService,
    _store: ObjectStore,
    _folder: tempfile::TempDir,
}

impl Local {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let opened = runtime.block_on(async {
            let (path, instance) = (
                folder.path().join("objects.db"),
                folder.path().join("instance"),
            );
            ObjectStore::open(&path, &instance, ObjectStoreOptions::default()).unwrap()
        });
        assert!(opened.notices.is_empty(), "{:?}", opened.notices);
        Self {
            service: opened.store.service(),
            _store: opened.store,
            runtime,
            _folder: folder,
        }
    }
}

impl Target for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn ask(&self, ask: &Ask) -> Told {
        let mut request = Request::builder().method(ask.method).uri(&ask.path);
        if !ask.body.is_empty() {
            request = request.header("content-type", ask.content_type);
        }
        let body = Full::new(Bytes::copy_from_slice(&ask.body));
        let request = request.body(body).unwrap();
        let service = self.service.clone();
        self.runtime.block_on(async {
            let response = service.oneshot(request).await.unwrap();
            let code = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            Told {
                code,
                body: body_of(&body),
            }
        })
    }
}
