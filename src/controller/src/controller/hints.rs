//! Hints of the engine become passes. A hint says that something may have changed; what is missed is found by the next
//! full look, which is a hint too.

use backend::{Hint, Owner};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

/// Asks for the pass of an owner of the listener's kind, or of all (`None`).
type Listener = Box<dyn Fn(Option<&Owner>) + Send + Sync>;

/// Who hears hints, by kind.
#[derive(Default)]
pub(super) struct Listeners(Vec<(api::group::Kind, Listener)>);

impl Listeners {
    pub(super) fn listen(
        &mut self,
        kind: api::group::Kind,
        listener: impl Fn(Option<&Owner>) + Send + Sync + 'static,
    ) {
        self.0.push((kind, Box::new(listener)));
    }

    fn tell(&self, hint: &Hint) {
        for (kind, listener) in &self.0 {
            match hint {
                Hint::Everything => listener(None),
                Hint::Owner(owner) if owner.kind == *kind => listener(Some(owner)),
                Hint::Owner(_) => {}
            }
        }
    }

    /// Never returns; cancel safe.
    pub(super) async fn run(self, mut hints: BoxStream<'static, Hint>) {
        while let Some(hint) = hints.next().await {
            self.tell(&hint);
        }
        // A source of hints that ended leaves the looks that are due anyway.
        tracing::warn!("the engine gives no hints any more");
        std::future::pending::<()>().await;
    }
}
