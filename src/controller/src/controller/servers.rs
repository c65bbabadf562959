//! LayaServers: their caches, the task that asks replicas, and what asks for passes: themselves, what they name, hints of
//! the engine, answers of replicas.

use std::collections::HashMap;
use std::sync::Arc;

use api::group::Kind;
use api::kinds::{LayaModel, LayaServer, TrainingRun};
use kube::runtime::reflector::Store;
use kube::runtime::watcher;
use tokio::sync::watch;

use super::Controller;
use super::engine::Engine;
use crate::driver::{Driver, Feed};
use crate::layaserver::{
    Concerns, Endings, LayaServers, ServerDocuments, ServerParts, StoredDocument, gauges_of,
    names_model,
};
use crate::merge::Change;
use crate::probe::Prober;
use crate::queue::{Key, Queue};
use crate::watched::Watched;

impl Controller {
    /// After the models: their cache is read.
    pub(super) fn add_servers(&mut self, engine: &Engine) {
        let Some(models) = &self.models else { return };
        let models = models.store();
        let context = self.context.clone();
        let queue = Queue::default();
        let (schema, compared) = watch::channel(Arc::default());
        let woken = queue.clone();
        let prober = Prober::new(
            context.clock.clone(),
            context.metrics.probe_counts(),
            move |server| woken.push(server.clone()),
        );
        let stored =
            Feed::<StoredDocument>::new(&context, &StoredDocument::watched(), StoredDocument::slim);
        let runs = Feed::<Watched<TrainingRun>>::new(&context, &watcher::Config::default(), |_| {});
        let documents = Arc::new(ServerDocuments::default());
        let servers = LayaServers::new(ServerParts {
            client: context.client.clone(),
            backend: engine.backend.clone(),
            default_image: engine.laya_image.clone(),
            models,
            runs: runs.store(),
            documents: documents.clone(),
            prober: prober.clone(),
            reports: engine.reports.clone(),
            own_addresses: engine.own_addresses.clone(),
            clock: context.clock.clone(),
        });
        let (driver, feed) = Driver::new(servers, context, queue.clone(), compared);
        self.cache("LayaServer", feed.complete());
        self.cache("ControllerRevision", stored.complete());
        self.cache("TrainingRun", runs.complete());
        self.measure(feed.store(), prober.clone());
        let asking = prober.clone();
        self.tasks.spawn(async move { asking.run().await });
        self.hear(&driver, &queue, feed.store());
        let pushed = queue.clone();
        let all = driver.clone();
        self.tasks.spawn(stored.run(move |change| {
            match documents.changed(&change) {
                Concerns::Server(server) => pushed.push(server),
                // Both come once in the life of a version.
                Concerns::Contract(_) | Concerns::Checkpoint(_) => all.push_all(),
                Concerns::Nobody => {}
            }
        }));
        self.tasks.spawn(runs.run(move |change| {
            if let Some(server) = promotes_into(&change) {
                queue.push(server);
            }
        }));
        let changed = driver.clone();
        let metrics = self.context.metrics.clone();
        let mut endings = Endings::default();
        self.tasks.spawn(feed.run(move |change| {
            for ended in endings.changed(&change) {
                metrics.rollout_ended(&ended);
            }
            changed.changed(change);
        }));
        self.compare_schema(Kind::LayaServer, schema, driver.clone());
        self.drive(driver);
    }

    /// Models that servers name, and hints of the engine, ask for passes.
    fn hear(
        &mut self,
        driver: &Arc<Driver<LayaServers>>,
        queue: &Queue,
        servers: Store<Watched<LayaServer>>,
    ) {
        let pushed = queue.clone();
        let mut known = Known::default();
        if let Some(models) = &mut self.models {
            models.listen(move |change| {
                let (Change::Applied(model) | Change::Deleted(model)) = change;
                if !known.changed(change) {
                    return;
                }
                let model = Key::of(model.as_ref());
                for server in servers.state() {
                    if names(server.as_ref(), &model) {
                        pushed.push(Key::of(server.as_ref()));
                    }
                }
            });
        }
        let hinted = driver.clone();
        let pushed = queue.clone();
        self.hints
            .listen(Kind::LayaServer, move |owner| match owner {
                Some(owner) => pushed.push(Key {
                    namespace: owner.namespace.clone(),
                    name: owner.name.clone(),
                }),
                None => hinted.push_all(),
            });
    }

    /// Gauges of each server, computed when they are read.
    fn measure(&self, servers: Store<Watched<LayaServer>>, prober: Prober) {
        self.context.metrics.measure_servers(move |gauge| {
            for server in servers.state() {
                if let Watched::Parsed(server) = server.as_ref() {
                    gauges_of(server, &prober, gauge);
                }
            }
        });
    }
}

/// What of each model concerns servers: progress of a fetch does not.
#[derive(Default)]
struct Known(HashMap<Key, String>);

impl Known {
    /// Takes a change. Whether it concerns servers.
    fn changed(&mut self, change: &Change<Watched<LayaModel>>) -> bool {
        match change {
            Change::Deleted(model) => {
                self.0.remove(&Key::of(model.as_ref()));
                true
            }
            Change::Applied(model) => {
                let said = said(model);
                let before = self.0.insert(Key::of(model.as_ref()), said.clone());
                before != Some(said)
            }
        }
    }
}

fn said(model: &Watched<LayaModel>) -> String {
    let Watched::Parsed(model) = model else {
        return "not understood".to_owned();
    };
    let status = model.status.clone().unwrap_or_default();
    let conditions: Vec<_> = status
        .conditions
        .iter()
        .map(|condition| (&condition.type_, condition.status, &condition.reason))
        .collect();
    let metadata = &model.metadata;
    let identity = (
        &metadata.uid,
        metadata.generation,
        &metadata.deletion_timestamp,
    );
    format!(
        "{identity:?} {conditions:?} {:?} {:?} {:?} {:?}",
        status.digest, status.contract, status.location, status.verified_at
    )
}

/// Whether a server names a model.
fn names(server: &Watched<LayaServer>, model: &Key) -> bool {
    let Watched::Parsed(server) = server else {
        return false;
    };
    server.metadata.namespace.as_deref() == Some(&model.namespace)
        && names_model(server, &model.name)
}

/// The server that a run promotes into.
fn promotes_into(change: &Change<Watched<TrainingRun>>) -> Option<Key> {
    let (Change::Applied(run) | Change::Deleted(run)) = change;
    let Watched::Parsed(run) = run.as_ref() else {
        return None;
    };
    let name = run.spec.promote.server_ref.as_ref()?.name.clone();
    let namespace = run.metadata.namespace.clone().unwrap_or_default();
    Some(Key { namespace, name })
}
