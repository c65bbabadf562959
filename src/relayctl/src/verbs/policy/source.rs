//! Where a policy comes from: the accepted revision of an object, or a file. Both are compiled, so what is compared are
//! policies, not texts.

use std::path::Path;

use api::document;
use api::routing_policy::{PolicyError, Ratio, RoutingPolicySpec};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use routing::policy::Policy;
use serde_json::Value;

use crate::error::CliError;
use crate::input::{self, Input};
use crate::kinds;
use crate::server::{Form, Server};
use crate::verbs::validate;
use api::exit::Exit;

/// A policy and what to call it.
#[derive(Debug, Clone)]
pub(super) struct Named {
    /// `policy.yaml`, or `default@0123456789`.
    pub(super) title: String,
    pub(super) name: String,
    pub(super) spec: RoutingPolicySpec,
}

impl Named {
    /// Compiled as a decider needs it, but without exploration: the same request must get the same decision.
    ///
    /// # Errors
    /// What does not hold.
    pub(super) fn decider(&self) -> Result<Policy, CliError> {
        let mut spec = self.spec.clone();
        spec.exploration =
            Ratio::try_from("0".to_owned()).map_err(|error| CliError::new(Exit::Failed, error))?;
        let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
        spec.compile(&self.name, today).map_err(|error| {
            let why = match &error {
                PolicyError::Problems(_) | PolicyError::Document(_) => error.to_string(),
            };
            CliError::refused(format!("{}: {why}", self.title))
        })
    }
}

/// The revision of an object that routers use.
///
/// # Errors
/// There is no such object, or none of its revisions was accepted.
pub(super) async fn in_force(server: &Server, name: &str) -> Result<(Named, Value), CliError> {
    let kind = kinds::routing_policy();
    let object = server
        .get(kind, &server.namespace, name, Form::Objects)
        .await
        .map_err(|error| server.failed(error))?;
    let Some(revision) = object["status"]["acceptedRevision"].as_str() else {
        let line = format!("no revision of {} was accepted yet", kind.brief(name));
        return Err(CliError::new(Exit::NotFound, line)
            .hint(format!("`relayctl explain {}` tells why", kind.brief(name))));
    };
    let document = format!("rp-{name}-{revision}");
    let stored = server
        .get(
            kinds::controller_revision(),
            &server.namespace,
            &document,
            Form::Objects,
        )
        .await
        .map_err(|error| server.failed(error))?;
    let spec = document::typed(stored["data"].clone()).map_err(|error| {
        CliError::new(
            Exit::Failed,
            format!("the stored revision {document} is no policy of this version: {error}"),
        )
    })?;
    let named = Named {
        title: format!("{name}@{revision}"),
        name: name.to_owned(),
        spec,
    };
    Ok((named, object))
}

/// The one policy of a file, checked as `validate` does.
///
/// # Errors
/// It is none, holds several, or is not valid.
pub(super) fn of_file(path: &Path) -> Result<Named, CliError> {
    let mut policies: Vec<Input> = input::objects(&[path.to_owned()])?
        .into_iter()
        .filter(|input| input.kind.kind == "RoutingPolicy")
        .collect();
    let input = match (policies.pop(), policies.is_empty()) {
        (Some(input), true) => input,
        (None, _) => {
            return Err(CliError::refused(format!(
                "{}: holds no RoutingPolicy",
                path.display()
            )));
        }
        (Some(_), false) => {
            return Err(CliError::refused(format!(
                "{}: holds more than one RoutingPolicy",
                path.display()
            )));
        }
    };
    validate::refuse_invalid(&input)?;
    let spec = validate::policy_spec(&input)?;
    Ok(Named {
        title: input.place.file().to_owned(),
        name: input.name,
        spec,
    })
}
