//! What else goes when an object goes: what it owns, and the namespace that waited for it. On Kubernetes the garbage
//! collector and the namespace controller do this; here it is part of the same transaction.

use std::collections::VecDeque;

use serde_json::Value;

use super::Done;
use crate::catalog::{Nature, Resource};
use crate::database::{Stop, Transaction, snapshot};
use crate::write::{self, Call, DeleteOptions, Deletion, metadata};

/// Deletes an object as far as its finalizers allow.
pub(super) fn delete(
    all: &mut Transaction<'_>,
    resource: &Resource,
    call: &Call<'_>,
    current: Value,
    options: &DeleteOptions,
) -> Result<Done, Stop> {
    if resource.nature == Nature::Namespace {
        return delete_namespace(all, resource, call, current, options);
    }
    let deletion = write::delete(call, &current, options)?;
    if options.orphan {
        // Now and not when its last finalizer goes: nobody knows then that it was asked for.
        set_free(all, metadata::text(&current, "uid"))?;
    }
    match deletion {
        Deletion::Waits => Ok(Done::Changed(current)),
        Deletion::Mark(object) => {
            let change = all.put(resource, object, Some(current))?;
            Ok(Done::Changed(change.object.clone()))
        }
        Deletion::Remove => {
            let last = current.clone();
            remove(all, resource, last, current).map(Done::Deleted)
        }
    }
}

/// Removes an object, then what only it owned, then its namespace if that waited for it. `object` is the last state, as it
/// is told and answered; `stored` is what is there now.
pub(super) fn remove(
    all: &mut Transaction<'_>,
    resource: &Resource,
    object: Value,
    stored: Value,
) -> Result<Value, Stop> {
    let namespace = metadata::text(&object, "namespace").to_owned();
    let last = all.remove_as(resource, object, stored)?.object.clone();
    let mut gone = VecDeque::from([metadata::text(&last, "uid").to_owned()]);
    while let Some(uid) = gone.pop_front() {
        for (kind, namespace, name) in snapshot::owned_by(all.connection(), &uid)? {
            if let Some(uid) = lose_owner(all, &kind, &namespace, &name, &uid)? {
                gone.push_back(uid);
            }
        }
    }
    if !namespace.is_empty() {
        end_if_empty(all, &namespace)?;
    }
    Ok(last)
}

/// Takes an owner away from an object; the object goes with its last one. Answers the uid of an object that has gone.
fn lose_owner(
    all: &mut Transaction<'_>,
    kind: &str,
    namespace: &str,
    name: &str,
    owner: &str,
) -> Result<Option<String>, Stop> {
    let catalog = all.catalog();
    let (Some(resource), Some(object)) = (catalog.stored(kind), all.get(kind, namespace, name)?)
    else {
        return Ok(None);
    };
    let left = others(&object, owner);
    let mut has_owner = false;
    for owner in &left {
        let uid = owner["uid"].as_str().unwrap_or_default();
        has_owner |= snapshot::is_alive(all.connection(), uid)?;
    }
    if has_owner {
        let mut new = object.clone();
        metadata::put(&mut new, "ownerReferences", Some(left.into()));
        all.put(resource, new, Some(object))?;
        return Ok(None);
    }
    let now = super::seconds(all.at());
    let api_version = resource.api_version();
    let call = plain_call(resource, namespace, name, &now, &api_version);
    match write::delete(&call, &object, &DeleteOptions::default())? {
        Deletion::Waits => Ok(None),
        Deletion::Mark(new) => all.put(resource, new, Some(object)).map(|_| None),
        Deletion::Remove => {
            let uid = metadata::text(&object, "uid").to_owned();
            all.remove(resource, object)?;
            Ok(Some(uid))
        }
    }
}

fn others(object: &Value, owner: &str) -> Vec<Value> {
    let list = object["metadata"]["ownerReferences"].as_array();
    let list = list.map(Vec::as_slice).unwrap_or_default();
    let others = list.iter().filter(|reference| reference["uid"] != owner);
    others.cloned().collect()
}

/// What an object owns stays when it goes.
fn set_free(all: &mut Transaction<'_>, uid: &str) -> Result<(), Stop> {
    let catalog = all.catalog();
    for (kind, namespace, name) in snapshot::owned_by(all.connection(), uid)? {
        let (Some(resource), Some(object)) =
            (catalog.stored(&kind), all.get(&kind, &namespace, &name)?)
        else {
            continue;
        };
        let left = others(&object, uid);
        let mut new = object.clone();
        let left = (!left.is_empty()).then(|| left.into());
        metadata::put(&mut new, "ownerReferences", left);
        all.put(resource, new, Some(object))?;
    }
    Ok(())
}

const fn plain_call<'a>(
    resource: &'a Resource,
    namespace: &'a str,
    name: &'a str,
    now: &'a str,
    api_version: &'a str,
) -> Call<'a> {
    Call {
        resource,
        namespace,
        name,
        part: write::Part::Whole,
        manager: "relay",
        now,
        uid: "",
        suffix: "",
        api_version,
    }
}

/// A namespace takes all that is in it along, and waits for what does not go at once.
fn delete_namespace(
    all: &mut Transaction<'_>,
    resource: &Resource,
    call: &Call<'_>,
    current: Value,
    options: &DeleteOptions,
) -> Result<Done, Stop> {
    write::delete(call, &current, options)?;
    let name = metadata::text(&current, "name").to_owned();
    if !metadata::is_deleting(&current) {
        all.put(resource, write::marked(call, &current), Some(current))?;
    }
    let catalog = all.catalog();
    for (kind, object) in snapshot::in_namespace(all.connection(), &name)? {
        let (Some(of), Some(current)) = (catalog.stored(&kind), all.get(&kind, &name, &object)?)
        else {
            continue;
        };
        let api_version = of.api_version();
        let call = plain_call(of, &name, &object, call.now, &api_version);
        delete(all, of, &call, current, &DeleteOptions::default())?;
    }
    end_if_empty(all, &name)?;
    let namespace = all.get(&resource.key, "", &name)?;
    match namespace {
        Some(namespace) => Ok(Done::Changed(namespace)),
        None => Ok(Done::Deleted(last_of(all, resource, &name)?)),
    }
}

/// The last state of a namespace that has just gone.
fn last_of(all: &Transaction<'_>, resource: &Resource, name: &str) -> Result<Value, Stop> {
    let changes = all.changes().iter().rev();
    let last = changes
        .filter(|change| change.kind == resource.key)
        .find(|change| change.object["metadata"]["name"] == name);
    last.map(|change| change.object.clone())
        .ok_or_else(|| crate::failure::Failure::internal("the namespace left no trace").into())
}

/// Removes a namespace that is to go, once nothing is in it and no finalizer holds it.
pub(super) fn end_if_empty(all: &mut Transaction<'_>, name: &str) -> Result<(), Stop> {
    let resource = all.catalog().namespaces().clone();
    let Some(namespace) = all.get(&resource.key, "", name)? else {
        return Ok(());
    };
    let is_held = !metadata::finalizers(&namespace).is_empty();
    if !metadata::is_deleting(&namespace) || is_held || snapshot::has_any(all.connection(), name)? {
        return Ok(());
    }
    all.remove(&resource, namespace)?;
    Ok(())
}
