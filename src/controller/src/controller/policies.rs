//! RoutingPolicies: their caches and what asks for their passes.

use std::sync::Arc;

use api::group::Kind;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::api::PartialObjectMeta;
use tokio::sync::watch;

use super::Controller;
use crate::driver::{Driver, Feed};
use crate::merge::Change;
use crate::queue::{Key, Queue};
use crate::routingpolicy::{Documents, Inputs, RoutingPolicies};
use crate::watched::Watched;

impl Controller {
    pub(super) fn add_policies(&mut self) {
        let context = self.context.clone();
        let queue = Queue::default();
        let (schema, compared) = watch::channel(Arc::default());
        let revisions = Feed::<PartialObjectMeta<ControllerRevision>>::new(
            &context,
            &Documents::watched(),
            Documents::slim,
        );
        let documents = Arc::new(Documents::default());
        let policies = RoutingPolicies::new(
            context.client.clone(),
            Inputs::new(self.servers.store()),
            documents.clone(),
        );
        let (driver, feed) = Driver::new(policies, context, queue.clone(), compared);
        let policies = feed.store();
        self.cache("RoutingPolicy", feed.complete());
        self.cache("ControllerRevision", revisions.complete());
        let changed = driver.clone();
        self.tasks
            .spawn(feed.run(move |change| changed.changed(change)));
        let pushed = queue.clone();
        self.servers.listen(move |change| {
            let (Change::Applied(server) | Change::Deleted(server)) = change;
            let server = Key::of(server.as_ref());
            for policy in policies.state() {
                if names(policy.as_ref(), &server) {
                    pushed.push(Key::of(policy.as_ref()));
                }
            }
        });
        self.tasks.spawn(revisions.run(move |change| {
            if let Some(policy) = documents.changed(&change) {
                queue.push(policy);
            }
        }));
        self.compare_schema(Kind::RoutingPolicy, schema, driver.clone());
        self.drive(driver);
    }
}

/// Whether a policy names a server.
fn names(policy: &Watched<api::kinds::RoutingPolicy>, server: &Key) -> bool {
    let Watched::Parsed(policy) = policy else {
        return false;
    };
    policy.metadata.namespace.as_deref() == Some(&server.namespace)
        && policy
            .spec
            .server_ref
            .as_ref()
            .is_some_and(|reference| reference.name == server.name)
}
