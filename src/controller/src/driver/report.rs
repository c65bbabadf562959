//! Objects that are not reconciled because this program and the server do not know the same: they are told so on the
//! object itself, by a status that is patched untyped, and everything else goes on.

use api::kinds::Condition;
use api::reason::Reason;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};
use service::telemetry::trace::Pass;

use super::Driver;
use super::pass::{Ended, Wrote};
use crate::conditions::Conditions;
use crate::failure::Failure;
use crate::metrics::PassResult;
use crate::queue::Key;
use crate::reconciler::{Reconciler, Requeue};
use crate::watched::Unparsed;

impl<R: Reconciler> Driver<R> {
    /// An object that this program cannot read.
    pub(super) async fn report_unparsed(
        &self,
        key: &Key,
        unparsed: &Unparsed,
        span: &Pass,
    ) -> Result<Ended, Failure> {
        let Unparsed { metadata, error } = unparsed;
        let newer = !self.schema.borrow().unknown.is_empty();
        let (reason, advice) = if newer {
            (
                Reason::SchemaMismatch,
                "The CRD is newer than this program: update relay",
            )
        } else {
            (Reason::InvalidSpec, "Correct the field")
        };
        let message = format!("not understood: {error}. {advice}");
        self.report(key, metadata, reason, &message, span).await
    }

    /// An object that has something the server drops, if it is one.
    pub(super) async fn report_mismatch(
        &self,
        key: &Key,
        known: &R::Object,
        span: &Pass,
    ) -> Result<Option<Ended>, Failure> {
        let concerns: Vec<String> = {
            let difference = self.schema.borrow();
            if difference.missing.is_empty() {
                return Ok(None);
            }
            let tree = serde_json::to_value(known).unwrap_or(Value::Null);
            let concerns = difference.concerns(&tree).into_iter();
            concerns.map(str::to_owned).collect()
        };
        if concerns.is_empty() {
            return Ok(None);
        }
        let message = format!(
            "the server does not know {}. Install the CRDs of relay {}",
            concerns.join(", "),
            env!("CARGO_PKG_VERSION")
        );
        let reported = self.report(key, known.meta(), Reason::SchemaMismatch, &message, span);
        reported.await.map(Some)
    }

    async fn report(
        &self,
        key: &Key,
        metadata: &ObjectMeta,
        reason: Reason,
        message: &str,
        span: &Pass,
    ) -> Result<Ended, Failure> {
        // The status of such an object may have fields we do not know; they stay as they are.
        let object = self.read(key).await?;
        let mut status = match &object["status"] {
            Value::Object(status) => status.clone(),
            _ => serde_json::Map::new(),
        };
        let before =
            Vec::<Condition>::deserialize(&object["status"]["conditions"]).unwrap_or_default();
        let now = self.context.clock.now();
        let mut conditions = Conditions::of(&before, metadata.generation, now.wall);
        conditions.fail(reason, message);
        status.insert("conditions".to_owned(), json!(conditions.into_list()));
        if let Some(generation) = metadata.generation {
            status.insert("observedGeneration".to_owned(), json!(generation));
        }
        let status = Value::Object(status);
        let wrote = if status == object["status"] {
            Wrote::Nothing
        } else {
            let fresh = ObjectMeta::deserialize(&object["metadata"]).unwrap_or_default();
            self.write_tree(&fresh, key, status, span).await?
        };
        let result = match wrote {
            Wrote::Something => PassResult::Changed,
            Wrote::Nothing => PassResult::Stalled,
        };
        Ok(Ended {
            result,
            requeue: Requeue::Stalled,
        })
    }
}
