//! A cache that several kinds read: one watch, told to everybody who listens.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::runtime::reflector::Store;
use kube::runtime::watcher;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::context::Context;
use crate::driver::Feed;
use crate::merge::Change;

type Listener<K> = Box<dyn FnMut(&Change<K>) + Send>;

/// A feed and its listeners. All must listen before it runs.
pub(super) struct Shared<K: Resource<DynamicType = ()> + Clone + Debug + 'static> {
    feed: Feed<K>,
    listeners: Vec<Listener<K>>,
}

impl<K> Shared<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    pub(super) fn new(context: &Context, config: &watcher::Config, slim: fn(&mut K)) -> Self {
        Self::of(Feed::new(context, config, slim))
    }

    pub(super) fn of(feed: Feed<K>) -> Self {
        Self {
            feed,
            listeners: Vec::new(),
        }
    }

    pub(super) fn store(&self) -> Store<K> {
        self.feed.store()
    }

    pub(super) fn complete(&self) -> watch::Receiver<bool> {
        self.feed.complete()
    }

    pub(super) fn listen(&mut self, listener: impl FnMut(&Change<K>) + Send + 'static) {
        self.listeners.push(Box::new(listener));
    }

    /// Never returns; cancel safe.
    pub(super) async fn run(self) {
        let Self {
            feed,
            mut listeners,
        } = self;
        let tell = move |change: Change<K>| {
            for listener in &mut listeners {
                listener(&change);
            }
        };
        feed.run(tell).await;
    }
}
