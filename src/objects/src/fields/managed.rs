//! `metadata.managedFields`: who owns which fields, read and written as the API server does.

use jiff::Timestamp;
use serde_json::{Map as JsonMap, Value, json};
use thiserror::Error;

use super::Operation;
use super::set::FieldSet;

/// How many entries with the operation Update an object keeps.
const UPDATE_ENTRIES: usize = 10;

/// The manager of what was merged to keep to [`UPDATE_ENTRIES`].
const ANCIENT_CHANGES: &str = "ancient-changes";

/// What makes two entries the same one. An applier is the same whatever version it applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) manager: String,
    pub(super) operation: Operation,
    /// Empty for [`Operation::Apply`].
    api_version: String,
    pub(super) subresource: String,
}

impl Identity {
    pub(super) fn new(
        manager: &str,
        operation: Operation,
        api_version: &str,
        subresource: &str,
    ) -> Self {
        let api_version = match operation {
            Operation::Apply => "",
            Operation::Update => api_version,
        };
        Self {
            manager: manager.into(),
            operation,
            api_version: api_version.into(),
            subresource: subresource.into(),
        }
    }

    /// The text by which the API server sorts managers.
    pub(super) fn sort_key(&self) -> String {
        let mut parts = Vec::new();
        for (name, value) in [
            ("manager", self.manager.as_str()),
            ("operation", self.operation.as_str()),
            ("apiVersion", &self.api_version),
            ("subresource", &self.subresource),
        ] {
            if !value.is_empty() {
                parts.push(format!("\"{name}\":{}", super::text::json_string(value)));
            }
        }
        format!("{{{}}}", parts.join(","))
    }
}

/// What one manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) identity: Identity,
    pub(super) api_version: String,
    pub(super) set: FieldSet,
    pub(super) time: Option<Timestamp>,
}

/// All entries of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Managed {
    pub(super) entries: Vec<Entry>,
}

/// Why managed fields cannot be read, in the API server's words.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub(super) struct Unreadable(String);

/// The managed fields of a request or an object, before they are decoded.
#[derive(Debug, PartialEq)]
pub(super) enum Sent<'a> {
    /// Nothing, or something that is no list of entries.
    Absent,
    /// An empty list or one empty entry: ownership shall be cleared.
    Reset,
    Entries(Vec<RawEntry<'a>>),
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct RawEntry<'a> {
    manager: &'a str,
    operation: &'a str,
    api_version: &'a str,
    subresource: &'a str,
    fields_type: &'a str,
    fields: Option<&'a Value>,
    time: Option<Timestamp>,
}

impl<'a> Sent<'a> {
    /// Reads the value of `metadata.managedFields`.
    pub(super) fn read(value: Option<&'a Value>) -> Self {
        let Some(Value::Array(items)) = value else {
            return Self::Absent;
        };
        let entries: Option<Vec<_>> = items.iter().map(RawEntry::read).collect();
        match entries.as_deref() {
            None => Self::Absent,
            Some([]) => Self::Reset,
            Some([one]) if *one == RawEntry::default() => Self::Reset,
            Some(_) => Self::Entries(entries.unwrap_or_default()),
        }
    }
}

impl<'a> RawEntry<'a> {
    fn read(value: &'a Value) -> Option<Self> {
        let object = value.as_object()?;
        let text = |name: &str| match object.get(name) {
            None | Some(Value::Null) => Some(""),
            Some(value) => value.as_str(),
        };
        let time = match text("time")? {
            "" => None,
            time => Some(parse_time(time)?),
        };
        Some(Self {
            manager: text("manager")?,
            operation: text("operation")?,
            api_version: text("apiVersion")?,
            subresource: text("subresource")?,
            fields_type: text("fieldsType")?,
            fields: object.get("fieldsV1").filter(|fields| !fields.is_null()),
            time,
        })
    }
}

/// A time of managed fields, to the second.
pub(super) fn parse_time(text: &str) -> Option<Timestamp> {
    let time: Timestamp = text.parse().ok()?;
    Timestamp::from_second(time.as_second()).ok()
}

/// Takes `managedFields` out of an object.
pub(super) fn take(object: &mut Value) -> Option<Value> {
    object
        .get_mut("metadata")?
        .as_object_mut()?
        .remove("managedFields")
}

/// An object without `managedFields`, which is the largest part of many and nobody's to own.
pub(super) fn bare(object: &Value) -> Value {
    let Some(fields) = object.as_object() else {
        return object.clone();
    };
    let without = |metadata: &Value| match metadata {
        Value::Object(metadata) => Value::Object(
            metadata
                .iter()
                .filter(|(name, _)| *name != "managedFields")
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        ),
        other => other.clone(),
    };
    let fields = fields.iter().map(|(name, value)| {
        let kept = if name == "metadata" {
            without(value)
        } else {
            value.clone()
        };
        (name.clone(), kept)
    });
    Value::Object(fields.collect())
}

impl Managed {
    /// Decodes the managed fields of an object.
    pub(super) fn of(object: &Value) -> Result<Self, Unreadable> {
        Self::decode(&Sent::read(object.pointer("/metadata/managedFields")))
    }

    pub(super) fn decode(sent: &Sent<'_>) -> Result<Self, Unreadable> {
        let entries = match sent {
            Sent::Absent => return Ok(Self::default()),
            // One empty entry is not readable; an empty list is.
            Sent::Reset => return Ok(Self::default()),
            Sent::Entries(entries) => entries,
        };
        let mut managed = Self::default();
        for (at, raw) in entries.iter().enumerate() {
            managed.put(raw.decode(at)?);
        }
        Ok(managed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn get(&self, identity: &Identity) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.identity == *identity)
    }

    pub(super) fn get_mut(&mut self, identity: &Identity) -> Option<&mut Entry> {
        self.entries
            .iter_mut()
            .find(|entry| entry.identity == *identity)
    }

    /// Replaces the entry of this identity, or adds it.
    pub(super) fn put(&mut self, entry: Entry) {
        match self.get_mut(&entry.identity) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
    }

    pub(super) fn remove(&mut self, identity: &Identity) {
        self.entries.retain(|entry| entry.identity != *identity);
    }

    /// Everything that anybody owns.
    pub(super) fn all(&self) -> FieldSet {
        let mut all = FieldSet::default();
        for entry in &self.entries {
            all.absorb(&entry.set);
        }
        all
    }

    /// Writes the entries into an object, sorted; none at all leaves no `managedFields`.
    pub(super) fn write(&self, object: &mut Value) {
        if self.is_empty() {
            take(object);
            return;
        }
        let Some(object) = object.as_object_mut() else {
            return;
        };
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        let Some(metadata) = metadata.as_object_mut() else {
            return;
        };
        let mut sorted: Vec<&Entry> = self.entries.iter().collect();
        sorted.sort_by(|a, b| a.order().cmp(&b.order()));
        let entries = sorted.into_iter().map(Entry::encode).collect();
        metadata.insert("managedFields".into(), Value::Array(entries));
    }

    /// Merges the oldest Update entries of a version until there are no more than [`UPDATE_ENTRIES`].
    pub(super) fn cap_updates(&mut self) {
        let updates = |entry: &&Entry| entry.identity.operation == Operation::Update;
        let mut oldest: Vec<(i64, String, Identity)> = self
            .entries
            .iter()
            .filter(updates)
            .map(|entry| {
                (
                    entry.seconds(),
                    entry.identity.sort_key(),
                    entry.identity.clone(),
                )
            })
            .collect();
        oldest.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let mut excess = oldest.len().saturating_sub(UPDATE_ENTRIES);
        let mut first_of_version: Vec<(String, Identity)> = Vec::new();
        for (_, _, identity) in oldest {
            if excess == 0 {
                break;
            }
            let version = identity.api_version.clone();
            match first_of_version.iter().find(|(seen, _)| *seen == version) {
                Some((_, first)) => {
                    self.merge_into_bucket(&first.clone(), &identity);
                    excess -= 1;
                }
                None => first_of_version.push((version, identity)),
            }
        }
    }

    fn merge_into_bucket(&mut self, first: &Identity, younger: &Identity) {
        let bucket = Identity::new(ANCIENT_CHANGES, Operation::Update, &first.api_version, "");
        // Where the younger one is the bucket itself, the first goes into it; the API server would lose the set here.
        let (from, into) = if *younger == bucket {
            (younger, first)
        } else {
            (first, younger)
        };
        if self.get(&bucket).is_none()
            && let Some(entry) = self.get_mut(from)
        {
            entry.identity = bucket.clone();
        }
        let Some(merged) = self.get(into).cloned() else {
            return;
        };
        self.remove(into);
        if let Some(entry) = self.get_mut(&bucket) {
            entry.set.absorb(&merged.set);
            entry.time = merged.time.max(entry.time);
        }
    }
}

impl RawEntry<'_> {
    fn decode(&self, at: usize) -> Result<Entry, Unreadable> {
        let fail = |problem: String| Err(Unreadable(problem));
        let operation = match self.operation {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return fail("operation must be `Apply` or `Update`".into()),
        };
        if self.api_version.is_empty() {
            return fail("apiVersion must not be empty".into());
        }
        match self.fields_type {
            "FieldsV1" => {}
            "" => return fail(format!("missing fieldsType in managed fields entry {at}")),
            other => {
                let other = super::text::quoted(other);
                return fail(format!(
                    "invalid fieldsType {other} in managed fields entry {at}"
                ));
            }
        }
        let set = match self.fields {
            None => FieldSet::default(),
            Some(fields) => FieldSet::from_fields_v1(fields)
                .map_err(|error| Unreadable(format!("error decoding set: {error}")))?,
        };
        Ok(Entry {
            identity: Identity::new(self.manager, operation, self.api_version, self.subresource),
            api_version: self.api_version.into(),
            set,
            time: self.time,
        })
    }
}

impl Entry {
    fn seconds(&self) -> i64 {
        self.time.map_or(0, Timestamp::as_second)
    }

    /// Appliers before updaters, then the oldest first.
    fn order(&self) -> (&'static str, i64, &str, &str, &str) {
        let Identity {
            manager,
            operation,
            subresource,
            ..
        } = &self.identity;
        (
            operation.as_str(),
            self.seconds(),
            manager,
            &self.api_version,
            subresource,
        )
    }

    fn encode(&self) -> Value {
        let mut out = JsonMap::new();
        let mut text = |name: &str, value: &str| {
            if !value.is_empty() {
                out.insert(name.into(), value.into());
            }
        };
        text("manager", &self.identity.manager);
        text("operation", self.identity.operation.as_str());
        text("apiVersion", &self.api_version);
        if let Some(time) = self.time {
            text("time", &time.to_string());
        }
        text("fieldsType", "FieldsV1");
        text("subresource", &self.identity.subresource);
        out.insert("fieldsV1".into(), self.set.to_fields_v1());
        Value::Object(out)
    }
}

/// Takes back new times where nothing but times would change: such a write is no write.
///
/// Call it once more at the very end, before the comparison that decides whether anything is written: defaults, and fields
/// that the write must not change and that were put back, can make the object equal to the stored one.
pub fn settle_times(old: &Value, new: &mut Value) {
    let stored = match (
        old.pointer("/metadata/managedFields"),
        new.pointer("/metadata/managedFields"),
    ) {
        (Some(stored), Some(now))
            if differ_in_times_only(stored, now) && equal_otherwise(old, new) =>
        {
            Some(stored.clone())
        }
        _ => return,
    };
    if let (Some(stored), Some(metadata)) = (
        stored,
        new.get_mut("metadata").and_then(Value::as_object_mut),
    ) {
        metadata.insert("managedFields".into(), stored);
    }
}

fn differ_in_times_only(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_array(), b.as_array()) else {
        return false;
    };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal_but(a, b, "time"))
}

/// Whether two objects are equal when one field of theirs is left out.
fn equal_but(a: &Value, b: &Value, left_out: &str) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else {
        return false;
    };
    let count =
        |object: &JsonMap<String, Value>| object.len() - usize::from(object.contains_key(left_out));
    count(a) == count(b)
        && a.iter()
            .all(|(name, value)| name == left_out || b.get(name) == Some(value))
}

fn equal_otherwise(a: &Value, b: &Value) -> bool {
    equal_but(a, b, "metadata") && equal_but(&a["metadata"], &b["metadata"], "managedFields")
}
