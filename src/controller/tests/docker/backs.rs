//! A back end between controller and engine that a test watches: when it looked, and hints that are kept back.

use std::sync::Mutex;
use std::time::Instant;

use backend::docker::Docker;
use backend::{
    Action, Backend, BackendError, Capabilities, Child, Hint, Observed, Owner, Question,
};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};

/// The Docker back end, watched.
#[derive(Debug)]
pub(crate) struct Watched {
    docker: Docker,
    /// Only full looks are hinted at: what an engine tells of single containers is lost.
    deaf: bool,
    /// When the last look ended.
    looked: Mutex<Option<Instant>>,
}

impl Watched {
    pub(crate) fn new(docker: Docker) -> Self {
        Self {
            docker,
            deaf: false,
            looked: Mutex::new(None),
        }
    }

    /// One whose engine tells nothing of single containers.
    pub(crate) fn deaf(docker: Docker) -> Self {
        Self {
            deaf: true,
            ..Self::new(docker)
        }
    }

    /// When the last look ended.
    pub(crate) fn looked(&self) -> Option<Instant> {
        *self.looked.lock().unwrap()
    }
}

impl Backend for Watched {
    fn capabilities(&self) -> &Capabilities {
        self.docker.capabilities()
    }

    fn observe<'a>(
        &'a self,
        owner: &'a Owner,
        question: &'a Question,
    ) -> BoxFuture<'a, Result<Observed, BackendError>> {
        async move {
            let seen = self.docker.observe(owner, question).await;
            *self.looked.lock().unwrap() = Some(Instant::now());
            seen
        }
        .boxed()
    }

    fn apply<'a>(
        &'a self,
        owner: &'a Owner,
        action: &'a Action,
    ) -> BoxFuture<'a, Result<(), BackendError>> {
        self.docker.apply(owner, action)
    }

    fn changes(&self) -> BoxStream<'static, Hint> {
        let deaf = self.deaf;
        let heard = move |hint: &Hint| std::future::ready(!deaf || *hint == Hint::Everything);
        self.docker.changes().filter(heard).boxed()
    }

    fn logs<'a>(
        &'a self,
        owner: &'a Owner,
        child: &'a Child,
        limit: usize,
    ) -> BoxFuture<'a, Result<String, BackendError>> {
        self.docker.logs(owner, child, limit)
    }

    fn owners(&self) -> BoxFuture<'_, Result<Vec<Owner>, BackendError>> {
        self.docker.owners()
    }
}
