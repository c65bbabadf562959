//! An engine in memory, replicas that answer as a test says, and a controller over them. Engine and replicas outlive a
//! controller that is killed.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use api::kinds::LayaServerStatus;
use api::revisions::{RevisionReport, RevisionReports};
use backend::Hint;
use controller::clock::Clock;
use controller::faults::FaultPoints;
use controller::reports::InProcessReports;
use decision::contract::Digest;
use decision::relay_contract;
use serde_json::json;
use testkit::backend::FakeBackend;
use testkit::{FakeLaya, Fault, Says};

pub(crate) use crate::parts::objects::{NAMESPACE, PATIENCE, merge, until, until_within};
use crate::parts::objects::{Objects, Running};
pub(crate) use crate::parts::status::{
    champion, condition, holds, is_at_rest, is_reason, message, serves, targets, told,
};

/// What replicas with a checkpoint do.
#[derive(Debug, Clone)]
pub(crate) struct Plays {
    pub(crate) says: Says,
    pub(crate) fault: Fault,
}

/// Replicas by uid of the server, revision and number.
type Fleet = HashMap<(String, String, u32), FakeLaya>;

/// Everything but a controller.
pub(crate) struct World {
    objects: Objects,
    pub(crate) engine: Arc<FakeBackend>,
    fleet: Arc<Mutex<Fleet>>,
    plays: Arc<Mutex<HashMap<String, Plays>>>,
    report: Arc<Mutex<RevisionReports>>,
}

impl Deref for World {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.objects
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(FakeBackend::docker()).await
    }

    pub(crate) async fn with(engine: Arc<FakeBackend>) -> Self {
        let objects = Objects::new().await;
        let fleet = Arc::new(Mutex::new(Fleet::new()));
        let plays = Arc::new(Mutex::new(HashMap::<String, Plays>::new()));
        let (replicas, roles) = (fleet.clone(), plays.clone());
        engine.addresses(move |owner, spec, ordinal| {
            let digest = &spec.inputs.digest;
            let plays = roles.lock().unwrap().get(digest).cloned();
            let plays = plays.unwrap_or_else(|| good(digest));
            let fake = FakeLaya::start_now(plays.says);
            fake.fail(plays.fault);
            let url = fake.url();
            let key = (owner.uid.clone(), spec.revision.clone(), ordinal);
            // One that ran there before ends.
            replicas.lock().unwrap().insert(key, fake);
            Some(url)
        });
        let engine_clock = objects.clock.clone();
        engine.time(move || engine_clock.now().wall);
        Self {
            objects,
            engine,
            fleet,
            plays,
            report: Arc::default(),
        }
    }

    /// From now on replicas with the checkpoint of this model are made so.
    pub(crate) fn play(&self, model: &str, says: Says, fault: Fault) {
        let mut plays = self.plays.lock().unwrap();
        plays.insert(digest(model), Plays { says, fault });
    }

    /// Does something with the replica of a revision that was made last.
    pub(crate) fn replica<T>(&self, revision: &str, act: impl FnOnce(&FakeLaya) -> T) -> T {
        let fleet = self.fleet.lock().unwrap();
        let mut of = fleet.iter().filter(|((_, of, _), _)| of == revision);
        act(of.next().expect("a replica of the revision").1)
    }

    /// Time passes: deadlines, not sleeps.
    pub(crate) fn forward(&self, seconds: u64) {
        self.clock.forward(seconds);
        self.engine.hint(Hint::Everything);
    }

    /// The router has seen this many requests of each revision.
    pub(crate) fn report(&self, server: &str, revisions: &[(&str, u64, u64)]) {
        let revisions = revisions
            .iter()
            .map(|(revision, requests, errors)| RevisionReport {
                revision: (*revision).to_owned(),
                requests: *requests,
                errors: *errors,
                p50_millis: Some(5),
                p95_millis: Some(9),
                ..RevisionReport::default()
            });
        *self.report.lock().unwrap() = RevisionReports {
            instance: "router".to_owned(),
            server: format!("{NAMESPACE}/{server}"),
            // Of a router that has every change at once.
            traffic_generation: i64::MAX,
            revisions: revisions.collect(),
        };
    }

    /// A model whose checkpoint has the digest [`digest`] gives its name.
    pub(crate) async fn create_model(&self, name: &str) {
        let spec = json!({
            "contract": relay_contract().digest().to_string(), "manifestDigest": digest(name),
            "source": {"oci": {"reference": format!("registry.example/{name}@{}", digest(name))}},
        });
        self.create_model_of(name, &spec).await;
    }

    /// A server that serves a model.
    pub(crate) async fn serving(&self, name: &str, model: &str) -> LayaServerStatus {
        self.create_model(model).await;
        self.create(name, model, &json!({})).await;
        self.until_serves(name, model).await
    }

    pub(crate) fn start(&self) -> Running {
        self.start_with(FaultPoints::none())
    }

    pub(crate) fn start_with(&self, faults: FaultPoints) -> Running {
        let report = self.report.clone();
        let reports = InProcessReports(move || report.lock().unwrap().clone());
        let engine = self.engine.clone();
        self.run(engine, "laya:test", Arc::new(reports), faults)
    }
}

/// Digest of the checkpoint of a model.
pub(crate) fn digest(model: &str) -> String {
    Digest::of(model.as_bytes()).to_string()
}

/// A replica that works.
pub(crate) fn good(digest: &str) -> Plays {
    Plays {
        says: Says::relay().serving(digest),
        fault: Fault::None,
    }
}
