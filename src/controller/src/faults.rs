//! Points at which a test may stop the controller, as a kill would: before and after every action and status write. A
//! program passes [`FaultPoints::none`]; there is no other build for tests.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

/// What is about to happen, or just did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultPoint {
    /// An action of this name.
    BeforeAction(&'static str),
    /// It was done.
    AfterAction(&'static str),
    /// A status write of this kind.
    BeforeStatus(&'static str),
    /// It was written.
    AfterStatus(&'static str),
}

type Hook = dyn Fn(FaultPoint) -> BoxFuture<'static, ()> + Send + Sync;

/// What happens at a point: nothing in a program, anything in a test. Cheap to clone.
#[derive(Clone, Default)]
pub struct FaultPoints {
    hook: Option<Arc<Hook>>,
}

impl FaultPoints {
    /// Nothing happens.
    #[must_use]
    pub const fn none() -> Self {
        Self { hook: None }
    }

    /// The hook is awaited at each point; one that never returns is a process that was killed there, once its task is
    /// dropped.
    pub fn hooked(hook: impl Fn(FaultPoint) -> BoxFuture<'static, ()> + Send + Sync + 'static) -> Self {
        Self {
            hook: Some(Arc::new(hook)),
        }
    }

    /// Passes a point. Cancel safe.
    pub async fn reach(&self, point: FaultPoint) {
        if let Some(hook) = &self.hook {
            hook(point).await;
        }
    }
}

impl fmt::Debug for FaultPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultPoints")
            .field("hooked", &self.hook.is_some())
            .finish()
    }
}
