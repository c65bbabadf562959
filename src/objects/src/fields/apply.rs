//! Server-side apply: the configuration merged into the live object, what its manager no longer names taken out, and
//! conflicts with other owners.

use jiff::Timestamp;
use serde_json::Value;
use thiserror::Error;

use super::check::{Duplicates, check};
use super::compare::compare;
use super::conflict::{Conflicts, Disputed, conflicts_of};
use super::element::same;
use super::last_applied;
use super::managed::{Entry, Identity, Managed, Sent, bare, settle_times, take};
use super::members::members;
use super::merge::merge;
use super::remove::prune;
use super::set::FieldSet;
use super::shape::Shape;
use super::update::{Step, empty_of, present, without_identity};
use super::{FieldsError, Force, Operation, Writer};

/// The manager of what was there before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Why a configuration was not applied. The texts are those of the API server.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ApplyError {
    /// Other managers own fields with other values: 409 `Conflict`, one cause a field.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The configuration is of another kind or carries `managedFields`: 400 `BadRequest`.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration or the live object does not fit the schema, or its ownership cannot be read: 500 without a reason.
    #[error("{0}")]
    Unfit(String),
    /// The caller's mistake.
    #[error(transparent)]
    Caller(#[from] FieldsError),
}

/// Applies a configuration (as the client sent it) to the live object, `None` to create one.
///
/// The result has new `managedFields`; it is to be defaulted, validated and compared with the live object
/// ([`settle_times`]) before it is written.
///
/// # Errors
/// As the variants of [`ApplyError`] say.
pub fn apply(
    shape: &Shape,
    live: Option<&Value>,
    config: &Value,
    writer: &Writer<'_>,
    force: Force,
) -> Result<Value, ApplyError> {
    let now = writer.now()?;
    let managed = match live {
        None => Managed::default(),
        Some(live) => Managed::of(live).map_err(|error| {
            ApplyError::Unfit(format!("failed to decode managed fields: {error}"))
        })?,
    };
    let empty = empty_of(config);
    check_kind(config, live.unwrap_or(&empty), writer)?;
    let bare_live = live.map_or(empty, bare);
    let attempt = Attempt {
        shape,
        live: &bare_live,
        config,
        writer,
        now,
    };
    let managed = attempt.with_former_fields(managed)?;
    let again = (writer.manager == last_applied::MANAGER).then(|| managed.clone());
    let outcome = match (attempt.run(managed, force), again) {
        (Err(ApplyError::Conflicts(conflicts)), Some(managed)) => {
            let left =
                last_applied::without_allowed(shape, attempt.live, conflicts, writer.api_version);
            if left.0.is_empty() {
                attempt.run(managed, Force::Yes)
            } else {
                Err(ApplyError::Conflicts(left))
            }
        }
        (outcome, _) => outcome,
    };
    let (merged, managed) = outcome?;
    let mut object = merged.unwrap_or_else(|| attempt.live.clone());
    if writer.manager == last_applied::MANAGER {
        last_applied::refresh(&mut object, config);
    }
    take(&mut object);
    managed.write(&mut object);
    if let Some(live) = live {
        settle_times(live, &mut object);
    }
    Ok(object)
}

fn check_kind(config: &Value, live: &Value, writer: &Writer<'_>) -> Result<(), ApplyError> {
    if config["apiVersion"] == writer.api_version && config["kind"] == live["kind"] {
        return Ok(());
    }
    Err(ApplyError::BadRequest(format!(
        "invalid object type: {}",
        kind_text(config)
    )))
}

/// `relay.dev/v1alpha1, Kind=LayaServer`.
fn kind_text(object: &Value) -> String {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let api_version = text("apiVersion");
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={}", text("kind"))
}

/// `namespace/name; relay.dev/v1alpha1, Kind=LayaServer`.
fn object_text(object: &Value) -> String {
    let text = |path: &str| {
        object
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    format!(
        "{}/{}; {}",
        text("/metadata/namespace"),
        text("/metadata/name"),
        kind_text(object)
    )
}

struct Attempt<'a> {
    shape: &'a Shape,
    live: &'a Value,
    config: &'a Value,
    writer: &'a Writer<'a>,
    now: Timestamp,
}

impl Attempt<'_> {
    /// Where nobody owns anything, what is there is owned by a manager of its own, or the first apply would take it all.
    fn with_former_fields(&self, managed: Managed) -> Result<Managed, ApplyError> {
        if !managed.is_empty() {
            return Ok(managed);
        }
        let empty = empty_of(self.config);
        let step = Step {
            shape: self.shape,
            old: &empty,
            new: self.live,
            reset: self.shape.reset(self.writer.subresource),
        };
        let former = Writer {
            manager: BEFORE_FIRST_APPLY,
            ..*self.writer
        };
        step.track(
            managed,
            &former.identity(Operation::Update),
            self.writer.api_version,
            self.now,
        )
        .map_err(|error| {
            ApplyError::Unfit(format!(
                "failed to create manager for existing fields: {error}"
            ))
        })
    }

    /// The merged object (`None` when it equals the live one) and who owns what.
    fn run(&self, managed: Managed, force: Force) -> Result<(Option<Value>, Managed), ApplyError> {
        let shape = self.shape;
        self.check()?;
        let mut managed =
            present(shape, managed, self.writer.api_version).map_err(ApplyError::Unfit)?;
        let merged = merge(shape, self.live, self.config);
        let identity = self.writer.identity(Operation::Apply);
        let reset = shape.reset(self.writer.subresource);
        let set = members(shape, self.config).without_subtrees(&reset);
        let mut mine = Entry {
            identity: identity.clone(),
            api_version: self.writer.api_version.into(),
            set,
            time: None,
        };
        let last = match managed.get_mut(&identity) {
            Some(place) => {
                mine.time = place.time;
                Some(std::mem::replace(place, mine))
            }
            None => {
                managed.put(mine);
                None
            }
        };
        let merged = match &last {
            Some(last) => prune(shape, merged, &last.set, &managed.all()),
            None => merged,
        };
        self.take_from_others(&mut managed, &identity, &merged, &reset, force)?;
        let unchanged = same(self.live, &merged);
        if let Some(mine) = managed.get_mut(&identity) {
            mine.set = without_identity(&mine.set);
            if !unchanged {
                mine.time = Some(self.now);
            }
        }
        managed.entries.retain(|entry| !entry.set.is_empty());
        Ok(((!unchanged).then_some(merged), managed))
    }

    fn check(&self) -> Result<(), ApplyError> {
        let sent = self.config.pointer("/metadata/managedFields");
        if Sent::read(sent) != Sent::Absent {
            return Err(ApplyError::BadRequest(
                "metadata.managedFields must be nil".into(),
            ));
        }
        for (what, object, duplicates) in [
            ("patch", self.config, Duplicates::Refused),
            ("live", self.live, Duplicates::Allowed),
        ] {
            check(self.shape, object, duplicates).map_err(|misfits| {
                let object = object_text(object);
                ApplyError::Unfit(format!(
                    "failed to create typed {what} object ({object}): {misfits}"
                ))
            })?;
        }
        Ok(())
    }

    /// Ends what others own of changed fields, or refuses.
    fn take_from_others(
        &self,
        managed: &mut Managed,
        identity: &Identity,
        merged: &Value,
        reset: &FieldSet,
        force: Force,
    ) -> Result<(), ApplyError> {
        let changes = compare(self.shape, self.live, merged).without(reset);
        let written = changes.written();
        let others = managed
            .entries
            .iter()
            .filter(|entry| entry.identity != *identity);
        let disputed: Vec<Disputed> = others
            .map(|entry| Disputed {
                identity: entry.identity.clone(),
                fields: entry.set.intersection(&written),
            })
            .filter(|disputed| !disputed.fields.is_empty())
            .collect();
        if force == Force::No && !disputed.is_empty() {
            return Err(ApplyError::Conflicts(conflicts_of(managed, disputed)));
        }
        for entry in managed
            .entries
            .iter_mut()
            .filter(|entry| entry.identity != *identity)
        {
            entry.set.subtract(&written);
            entry.set.subtract(&changes.removed);
        }
        managed.entries.retain(|entry| !entry.set.is_empty());
        Ok(())
    }
}
