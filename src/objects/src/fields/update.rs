//! Ownership after a create, an update or a patch: who writes a field owns it, and nobody is asked.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::check::{Duplicates, check};
use super::compare::{Changes, compare};
use super::managed::{Entry, Identity, Managed, Sent, bare, parse_time, settle_times, take};
use super::members::reconcile;
use super::set::FieldSet;
use super::shape::{Served, Shape};
use super::{FieldsError, Operation, PathElement, Writer};

/// The manager of a request that names none.
const UNKNOWN_MANAGER: &str = "unknown";

/// Recomputes `metadata.managedFields` of `new` for a create (`old` is `None`), an update or a patch.
///
/// `new` is the object as the client wants it, defaulted, but before fields that the write must not change (`status`, or
/// everything else of a write of `/status`) are put back; its `managedFields` are what the client sent: absent or
/// unreadable ones are taken from `old`, `[{}]` clears them, others stand. Ownership that cannot be computed is
/// dropped, as the API server does, and never fails a write.
///
/// # Errors
/// When `new` is no object with metadata, or the writer's time is not RFC 3339.
pub fn record_update(
    shape: &Shape,
    old: Option<&Value>,
    new: &mut Value,
    writer: &Writer<'_>,
) -> Result<(), FieldsError> {
    let now = writer.now()?;
    if !new.get("metadata").is_some_and(Value::is_object) {
        return Err(FieldsError::NoMetadata);
    }
    let sent = take(new);
    let start = starting_point(shape, old, sent.as_ref(), writer.subresource);
    let exists = old.is_some_and(|old| {
        old.pointer("/metadata/uid")
            .and_then(Value::as_str)
            .is_some_and(|uid| !uid.is_empty())
    });
    if start.is_empty() && exists {
        // Ownership was cleared; it is tracked again from the next apply on.
        return Ok(());
    }
    let bare_old = old.map_or_else(|| empty_of(new), bare);
    let step = Step {
        shape,
        old: &bare_old,
        new,
        reset: shape.reset(writer.subresource),
    };
    let identity = writer.identity(Operation::Update);
    let managed = match writer.subresource {
        Some("scale") => step.track_scale(start, &identity, writer.api_version, now),
        _ => step.track(start, &identity, writer.api_version, now),
    };
    if let Ok(managed) = managed {
        managed.write(new);
        if let Some(old) = old {
            settle_times(old, new);
        }
    }
    Ok(())
}

/// The managed fields that a write begins with.
fn starting_point(
    shape: &Shape,
    old: Option<&Value>,
    sent: Option<&Value>,
    subresource: Option<&str>,
) -> Managed {
    let stored = || {
        old.and_then(|old| Managed::of(old).ok())
            .unwrap_or_default()
    };
    // The metadata of a custom resource loses an empty list before anybody looks at it.
    let lost = shape.served() == Served::OneVersion && sent == Some(&json!([]));
    if subresource.is_some() || lost {
        return stored();
    }
    match Sent::read(sent) {
        Sent::Reset => Managed::default(),
        sent => match Managed::decode(&sent) {
            Ok(managed) if !managed.is_empty() => managed,
            _ => stored(),
        },
    }
}

/// What an object is compared with when there is none yet.
pub(super) fn empty_of(object: &Value) -> Value {
    json!({ "apiVersion": object["apiVersion"], "kind": object["kind"] })
}

impl Writer<'_> {
    pub(super) fn now(&self) -> Result<Timestamp, FieldsError> {
        parse_time(self.time).ok_or_else(|| FieldsError::Time {
            time: self.time.into(),
        })
    }

    pub(super) fn identity(&self, operation: Operation) -> Identity {
        let manager = if self.manager.is_empty() {
            UNKNOWN_MANAGER
        } else {
            self.manager
        };
        Identity::new(
            manager,
            operation,
            self.api_version,
            self.subresource.unwrap_or_default(),
        )
    }
}

/// From one object to the next.
pub(super) struct Step<'a> {
    pub(super) shape: &'a Shape,
    pub(super) old: &'a Value,
    pub(super) new: &'a Value,
    pub(super) reset: FieldSet,
}

impl Step<'_> {
    /// Gives what changed to the writer.
    pub(super) fn track(
        &self,
        managed: Managed,
        identity: &Identity,
        api_version: &str,
        now: Timestamp,
    ) -> Result<Managed, String> {
        let (managed, changes) = self.changes(managed, api_version)?;
        Ok(give(managed, &changes, identity, api_version, Some(now)))
    }

    /// As [`track`](Self::track) for a write of `/scale`, which the API server records apart: only where somebody owned
    /// the number of replicas, and without a time for a new entry.
    fn track_scale(
        &self,
        managed: Managed,
        identity: &Identity,
        api_version: &str,
        _now: Timestamp,
    ) -> Result<Managed, String> {
        let (managed, changes) = self.changes(managed, api_version)?;
        let touched = changes.written().union(&changes.removed);
        if touched.intersection(&managed.all()).is_empty() {
            return Ok(managed);
        }
        let time = managed.get(identity).and_then(|entry| entry.time);
        Ok(give(managed, &changes, identity, api_version, time))
    }

    fn changes(&self, managed: Managed, api_version: &str) -> Result<(Managed, Changes), String> {
        for object in [self.old, self.new] {
            check(self.shape, object, Duplicates::Allowed)
                .map_err(|misfits| misfits.to_string())?;
        }
        let managed = present(self.shape, managed, api_version)?;
        let changes = compare(self.shape, self.old, self.new).without(&self.reset);
        Ok((managed, changes))
    }
}

fn give(
    mut managed: Managed,
    changes: &Changes,
    identity: &Identity,
    api_version: &str,
    time: Option<Timestamp>,
) -> Managed {
    let written = changes.written();
    for entry in &mut managed.entries {
        entry.set.subtract(&written);
        entry.set.subtract(&changes.removed);
    }
    managed.entries.retain(|entry| !entry.set.is_empty());
    let mut set = without_identity(&written);
    if !set.is_empty() {
        if let Some(former) = managed.get(identity) {
            set.absorb(&former.set);
        }
        managed.put(Entry {
            identity: identity.clone(),
            api_version: api_version.into(),
            set,
            time,
        });
    }
    managed.cap_updates();
    managed
}

/// The entries as the present schema has them.
pub(super) fn present(
    shape: &Shape,
    mut managed: Managed,
    api_version: &str,
) -> Result<Managed, String> {
    if let Some(other) = managed
        .entries
        .iter()
        .find(|entry| entry.api_version != api_version)
    {
        match shape.served() {
            Served::OneVersion => {
                let version = &other.api_version;
                return Err(format!(
                    "request to convert CR to an invalid group/version: {version}"
                ));
            }
            Served::Dropped => managed
                .entries
                .retain(|entry| entry.api_version == api_version),
        }
    }
    for entry in &mut managed.entries {
        if let Some(set) = reconcile(shape, &entry.set) {
            entry.set = set;
        }
    }
    Ok(managed)
}

/// A set without the fields that nobody ever owns.
pub(super) fn without_identity(set: &FieldSet) -> FieldSet {
    let field = PathElement::field;
    let metadata = || field("metadata");
    let of_metadata = [
        "clusterName",
        "creationTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    ];
    let mut paths = vec![
        vec![field("apiVersion")],
        vec![field("kind")],
        vec![metadata()],
    ];
    paths.extend(of_metadata.map(|name| vec![metadata(), field(name)]));
    set.difference(&FieldSet::of_paths(paths))
}
