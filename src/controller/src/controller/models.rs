//! LayaModels: their cache and what asks for their passes: themselves, LayaServers that use them, hints of the engine.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use api::group::Kind;
use kube::runtime::watcher;
use tokio::sync::watch;

use super::Controller;
use super::engine::Engine;
use super::shared::Shared;
use crate::driver::{Driver, Feed};
use crate::layamodel::{Inputs, LayaModels, is_trained};
use crate::merge::Change;
use crate::queue::{Key, Queue};
use crate::routingpolicy::ServerView;
use crate::watched::Watched;

impl Controller {
    pub(super) fn add_models(&mut self, engine: &Engine) {
        let context = self.context.clone();
        let queue = Queue::default();
        let (schema, compared) = watch::channel(Arc::default());
        let feed = Feed::new(&context, &watcher::Config::default(), |_| {});
        let inputs = Inputs::new(feed.store(), self.servers.store(), engine);
        let models = LayaModels::new(
            context.client.clone(),
            engine.backend.clone(),
            inputs,
            context.metrics.clone(),
            context.clock.clone(),
        );
        let (driver, feed) = Driver::with_feed(models, context, queue.clone(), compared, feed);
        let mut models = Shared::of(feed);
        self.cache("LayaModel", models.complete());
        let changed = driver.clone();
        models.listen(move |change| changed.changed(change.clone()));
        let store = models.store();
        let mut users = Users::default();
        let pushed = queue.clone();
        self.servers.listen(move |change| {
            let concerned = users.changed(change);
            if concerned.is_empty() {
                return;
            }
            for model in store.state() {
                let key = Key::of(model.as_ref());
                // What a server has decides which trained versions stay, too.
                let trained = matches!(model.as_ref(), Watched::Parsed(model) if is_trained(model));
                if trained || concerned.contains(&key) {
                    pushed.push(key);
                }
            }
        });
        let hinted = driver.clone();
        self.hints
            .listen(Kind::LayaModel, move |owner| match owner {
                Some(owner) => queue.push(Key {
                    namespace: owner.namespace.clone(),
                    name: owner.name.clone(),
                }),
                None => hinted.push_all(),
            });
        self.compare_schema(Kind::LayaModel, schema, driver.clone());
        self.drive(driver);
        self.models = Some(models);
    }
}

/// What servers have, so that only a change of that asks for passes: a server's status changes much more often.
#[derive(Default)]
struct Users(HashMap<Key, Uses>);

/// What of a server concerns models.
#[derive(Default, PartialEq)]
struct Uses {
    models: BTreeSet<String>,
    damage: Option<(Option<String>, Option<jiff::Timestamp>)>,
    rolls_out: bool,
}

impl Users {
    /// Takes a change: the models it is about.
    fn changed(&mut self, change: &Change<ServerView>) -> BTreeSet<Key> {
        let (Change::Applied(server) | Change::Deleted(server)) = change;
        let key = Key::of(server.as_ref());
        let goes = server.metadata.deletion_timestamp.is_some();
        let uses = match change {
            Change::Applied(server) if !goes => uses(server),
            _ => Uses::default(),
        };
        let before = match change {
            Change::Applied(_) => self.0.get(&key),
            Change::Deleted(_) => None,
        };
        if before == Some(&uses) {
            return BTreeSet::new();
        }
        let named = |model: &String| Key {
            namespace: key.namespace.clone(),
            name: model.clone(),
        };
        let mut concerned: BTreeSet<_> = uses.models.iter().map(named).collect();
        let before = match change {
            Change::Applied(_) => self.0.insert(key.clone(), uses),
            Change::Deleted(_) => self.0.remove(&key),
        };
        concerned.extend(
            before
                .iter()
                .flat_map(|before| before.models.iter().map(named)),
        );
        concerned
    }
}

fn uses(server: &ServerView) -> Uses {
    let status = &server.status;
    let versions = [&status.champion, &status.candidate, &status.previous];
    let models = versions
        .into_iter()
        .flatten()
        .filter_map(|version| version.model.clone());
    let wished = Some(server.spec.model_ref.name.clone()).filter(|name| !name.is_empty());
    let damage = status.damage.as_ref();
    Uses {
        models: models.chain(wished).collect(),
        damage: damage.map(|damage| (damage.digest.clone(), damage.at)),
        rolls_out: status.rolls_out(),
    }
}
