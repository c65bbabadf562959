//! What the writer's thread runs: reads what is stored, has `write` decide, stores the result. Runs whole in one transaction,
//! and may run again before it is answered, so it draws nothing at random.

mod removal;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::catalog::event_view::{from_core, to_core};
use crate::catalog::{Nature, Resource, Scope, View};
use crate::database::{Stop, Transaction};
use crate::failure::Failure;
use crate::fields::Force;
use crate::write::{self, Call, DeleteOptions, Part, Patch, metadata};

/// What is to be done with one object.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    Create(Value),
    Replace(Value),
    Patch(Patch),
    Apply { config: Value, force: Force },
    Delete(DeleteOptions),
}

/// Whether it happens, or is only tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    Real,
    Dry,
}

/// A request to change one object.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: String,
    /// Empty when an object is made.
    pub(crate) name: String,
    pub(crate) part: Part,
    pub(crate) action: Action,
    pub(crate) manager: String,
    pub(crate) now: Timestamp,
    /// For an object that it makes.
    pub(crate) uid: String,
    pub(crate) run: Run,
}

/// What came of it: the object as the path's version shows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Done {
    Created(Value),
    Changed(Value),
    /// It is gone; this was its last state.
    Deleted(Value),
}

/// RFC 3339 in whole seconds, as all times of objects are.
pub(crate) fn seconds(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Characters of generated names: none that make words.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// What a generated name ends with.
fn suffix(uid: &str) -> String {
    let hex = uid.bytes().filter(u8::is_ascii_hexdigit).take(10);
    let digits: Vec<u8> = hex.collect();
    digits
        .chunks(2)
        .map(|pair| {
            let text = str::from_utf8(pair).unwrap_or_default();
            let number = u8::from_str_radix(text, 16).unwrap_or(0);
            char::from(ALPHABET[usize::from(number) % ALPHABET.len()])
        })
        .collect()
}

fn shown(resource: &Resource, object: Value) -> Value {
    match resource.view {
        View::Stored => object,
        View::CoreEvent => to_core(object),
    }
}

fn stored(resource: &Resource, object: Value) -> Value {
    match resource.view {
        View::Stored => object,
        View::CoreEvent => from_core(object),
    }
}

impl Operation {
    /// Runs it on the writer's thread.
    pub(crate) fn run(&self, all: &mut Transaction<'_>) -> Result<Done, Stop> {
        match self.run {
            Run::Real => self.act(all),
            Run::Dry => all
                .dry(|all| {
                    let before = all.get(&self.resource.key, &self.namespace, &self.name)?;
                    Ok((before, self.act(all)?))
                })
                .map(|(before, done)| without_version(before.as_ref(), done)),
        }
    }

    fn act(&self, all: &mut Transaction<'_>) -> Result<Done, Stop> {
        let now = seconds(self.now);
        let suffix = suffix(&self.uid);
        let api_version = self.resource.api_version();
        let call = Call {
            resource: &self.resource,
            namespace: &self.namespace,
            name: &self.name,
            part: self.part,
            manager: &self.manager,
            now: &now,
            uid: &self.uid,
            suffix: &suffix,
            api_version: &api_version,
        };
        if let Action::Create(object) = &self.action {
            return self.create(all, write::create(&call, object.clone()));
        }
        let current = all.get(&self.resource.key, &self.namespace, &self.name)?;
        let view = current.clone().map(|object| shown(&self.resource, object));
        let new = match (&self.action, &view) {
            (Action::Create(_), _) => return Err(Failure::internal("made above").into()),
            (Action::Apply { config, force }, None) => {
                return self.create(all, write::apply_new(&call, config, *force));
            }
            (Action::Apply { config, force }, Some(view)) => {
                write::apply(&call, view, config, *force)?
            }
            (Action::Replace(object), _) => self.replace(&call, view.as_ref(), object)?,
            (Action::Patch(patch), _) => self.patch(&call, view.as_ref(), patch)?,
            (Action::Delete(options), _) => {
                let current = current.ok_or_else(|| self.not_found())?;
                return self.delete(all, &call, current, options);
            }
        };
        let current = current.ok_or_else(|| self.not_found())?;
        self.change(all, current, stored(&self.resource, new))
    }

    fn not_found(&self) -> Failure {
        Failure::not_found(self.resource.about(&self.name))
    }

    fn replace(
        &self,
        call: &Call<'_>,
        current: Option<&Value>,
        object: &Value,
    ) -> Result<Value, Failure> {
        match (self.part, &self.resource.definition.scale) {
            (Part::Scale, Some(scale)) => write::scale::update(call, scale, current, object),
            _ => write::replace(call, current, object.clone()),
        }
    }

    fn patch(
        &self,
        call: &Call<'_>,
        current: Option<&Value>,
        patch: &Patch,
    ) -> Result<Value, Failure> {
        match (self.part, &self.resource.definition.scale) {
            (Part::Scale, Some(scale)) => write::scale::patch(call, scale, current, patch),
            _ => write::patch(call, current, patch),
        }
    }

    /// Stores a new object, if there is a namespace for it and the name is free.
    fn create(
        &self,
        all: &mut Transaction<'_>,
        made: Result<Value, Failure>,
    ) -> Result<Done, Stop> {
        // What cannot be read at all is refused before anybody looks for its namespace, the rest after.
        if let Err(failure) = &made
            && failure.code == 400
        {
            return Err(failure.clone().into());
        }
        let name = match &made {
            Ok(object) => metadata::text(object, "name").to_owned(),
            Err(_) => self.name.clone(),
        };
        self.is_open(all, &name)?;
        let object = made?;
        let was_generated = self.name.is_empty()
            && matches!(&self.action, Action::Create(sent) if metadata::text(sent, "name").is_empty());
        let taken = all.get(&self.resource.key, &self.namespace, &name)?;
        if let Some(taken) = taken {
            let about = self.resource.about(&name);
            let failure = if was_generated {
                Failure::generated_name_taken(about)
            } else {
                Failure::already_exists(about)
            };
            return Err(if metadata::is_deleting(&taken) {
                failure.while_deleting().into()
            } else {
                failure.into()
            });
        }
        let change = all.put(
            self.stored_resource(all)?,
            stored(&self.resource, object),
            None,
        )?;
        Ok(Done::Created(shown(&self.resource, change.object.clone())))
    }

    /// Whether the namespace takes new objects.
    fn is_open(&self, all: &Transaction<'_>, name: &str) -> Result<(), Stop> {
        if self.resource.scope == Scope::Cluster {
            return Ok(());
        }
        let namespaces = all.catalog().namespaces();
        let about = namespaces.about(&self.namespace);
        match all.get(&namespaces.key, "", &self.namespace)? {
            None => Err(Failure::not_found(about).into()),
            Some(namespace) if metadata::is_deleting(&namespace) => {
                let why = format!(
                    "unable to create new content in namespace {} because it is being terminated",
                    self.namespace
                );
                Err(Failure::forbidden(self.resource.about(name), &why).into())
            }
            Some(_) => Ok(()),
        }
    }

    fn stored_resource<'a>(&self, all: &Transaction<'a>) -> Result<&'a Resource, Stop> {
        let found = all.catalog().stored(&self.resource.key);
        found
            .map(|resource| &**resource)
            .ok_or_else(|| Failure::internal("the kind is not stored").into())
    }

    /// Stores a change, if it is one; an object that nothing holds any more goes.
    fn change(&self, all: &mut Transaction<'_>, current: Value, new: Value) -> Result<Done, Stop> {
        let resource = self.stored_resource(all)?;
        let is_held = resource.nature == Nature::Namespace;
        if write::is_finished(&new) && !is_held {
            let last = removal::remove(all, resource, new, current)?;
            return Ok(Done::Changed(shown(&self.resource, last)));
        }
        if new == current {
            return Ok(Done::Changed(shown(&self.resource, current)));
        }
        let change = all.put(resource, new, Some(current))?;
        if is_held {
            removal::end_if_empty(all, &self.name)?;
        }
        Ok(Done::Changed(shown(&self.resource, change.object.clone())))
    }

    fn delete(
        &self,
        all: &mut Transaction<'_>,
        call: &Call<'_>,
        current: Value,
        options: &DeleteOptions,
    ) -> Result<Done, Stop> {
        let resource = self.stored_resource(all)?;
        let done = removal::delete(all, resource, call, current, options)?;
        Ok(match done {
            Done::Created(object) => Done::Created(shown(&self.resource, object)),
            Done::Changed(object) => Done::Changed(shown(&self.resource, object)),
            Done::Deleted(object) => Done::Deleted(shown(&self.resource, object)),
        })
    }
}

/// What was not written has no version, or the one it had.
fn without_version(before: Option<&Value>, done: Done) -> Done {
    let had = before.map(|before| before["metadata"]["resourceVersion"].clone());
    let fix = |mut object: Value| {
        metadata::put(&mut object, "resourceVersion", had.clone());
        object
    };
    match done {
        Done::Created(object) => Done::Created(fix(object)),
        Done::Changed(object) => Done::Changed(fix(object)),
        Done::Deleted(object) => Done::Deleted(fix(object)),
    }
}

/// Makes the namespace that always exists.
pub(crate) fn default_namespace(all: &mut Transaction<'_>) -> rusqlite::Result<()> {
    let resource = all.catalog().namespaces().clone();
    let made = Operation {
        resource,
        namespace: String::new(),
        name: String::new(),
        part: Part::Whole,
        action: Action::Create(json!({"metadata": {"name": "default"}})),
        manager: "relay".to_owned(),
        now: all.at(),
        uid: uuid::Uuid::new_v4().to_string(),
        run: Run::Real,
    }
    .act(all);
    match made {
        Err(Stop::Sql(error)) => Err(error),
        Err(Stop::Refused(failure)) if failure.reason != "AlreadyExists" => {
            tracing::error!(error = failure.message, "no namespace `default`");
            Ok(())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_name_ends_with_five_letters_that_make_no_words() {
        let end = suffix("0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f0");
        assert_eq!(end.len(), 5);
        assert!(end.bytes().all(|c| ALPHABET.contains(&c)), "{end}");
    }
}
