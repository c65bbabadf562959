//! Getting one object and listing many.

use std::sync::Arc;

use http::Response;
use serde_json::{Value, json};

use super::accept::Form;
use super::body::ObjectBody;
use super::continuation::Continuation;
use super::path::Objects;
use super::query::{self, Match, Query};
use super::selector::Selection;
use super::table::{Columns, Include, metadata_only};
use crate::catalog::event_view::to_core;
use crate::catalog::{Resource, View};
use crate::database::{Page, Want, snapshot};
use crate::failure::Failure;
use crate::store::Inner;
use crate::write::{Part, scale};

/// How answers are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    pub(super) form: Form,
    pub(super) include: Include,
}

/// Answers one object.
pub(super) async fn get(
    inner: &Arc<Inner>,
    objects: &Objects,
    name: &str,
    shown: Shown,
) -> Result<Response<ObjectBody>, Failure> {
    let (resource, namespace) = (objects.resource.clone(), objects.namespace.clone());
    let asked = name.to_owned();
    let text = inner
        .read("read an object", move |connection| {
            // The rows are those of the kind as it is stored, whatever version of it was asked for.
            snapshot::text(connection, &resource, &namespace, &asked)
        })
        .await?
        .ok_or_else(|| Failure::not_found(objects.resource.about(name)))?;
    let resource = &objects.resource;
    let is_plain =
        objects.part != Part::Scale && shown.form == Form::Object && resource.view == View::Stored;
    if is_plain {
        return Ok(super::bytes(200, text));
    }
    let object = viewed(resource, parse(&text)?);
    Ok(super::json(200, &one(inner, objects, object, shown)))
}

/// One object in the form that was asked for.
pub(super) fn one(inner: &Inner, objects: &Objects, object: Value, shown: Shown) -> Value {
    let resource = &objects.resource;
    if let (Part::Scale, Some(of)) = (objects.part, &resource.definition.scale) {
        return scale::of(of, &object);
    }
    match shown.form {
        Form::Object => object,
        Form::Metadata => metadata_only(&object),
        Form::Table => {
            let columns = Columns::of(resource);
            let now = (inner.clock)();
            json!({
                "kind": "Table",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": object["metadata"]["resourceVersion"]},
                "columnDefinitions": columns.definitions(),
                "rows": [columns.row(&object, shown.include, now)],
            })
        }
    }
}

/// A stored object as the version of a path has it.
pub(super) fn viewed(resource: &Resource, object: Value) -> Value {
    match resource.view {
        View::Stored => object,
        View::CoreEvent => to_core(object),
    }
}

fn parse(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text)
        .map_err(|error| Failure::internal(&format!("a stored object is not readable: {error}")))
}

/// Answers a list.
pub(super) async fn list(
    inner: &Arc<Inner>,
    objects: &Objects,
    query: &Query,
    shown: Shown,
) -> Result<Response<ObjectBody>, Failure> {
    query::list_options(query)?;
    let selection = Selection::parse(&objects.resource, &query.labels, &query.fields)?;
    let page = page(inner, objects, query, &selection).await?;
    let mut metadata = json!({"resourceVersion": page.version.to_string()});
    if page.is_cut
        && let Some(last) = page.items.last()
    {
        let place = Continuation {
            version: page.version,
            after: (last.namespace.clone(), last.name.clone()),
        };
        metadata["continue"] = place.token().into();
        if let Some(remaining) = page.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
    }
    let (inner, objects) = (inner.clone(), objects.clone());
    // Long lists take long to print, and the threads that answer have others to serve.
    let printed =
        tokio::task::spawn_blocking(move || print(&inner, &objects, &metadata, &page, shown));
    let text = printed
        .await
        .map_err(|error| Failure::internal(&format!("printing the list: {error}")))??;
    Ok(super::bytes(200, text))
}

fn print(
    inner: &Inner,
    objects: &Objects,
    metadata: &Value,
    page: &Page,
    shown: Shown,
) -> Result<String, Failure> {
    let definition = &objects.resource.definition;
    if shown.form == Form::Object && objects.resource.view == View::Stored {
        let length: usize = page.items.iter().map(|item| item.text.len() + 1).sum();
        let mut text = String::with_capacity(length + 256);
        text.push_str(&format!(
            "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
            definition.list_kind,
            objects.resource.api_version()
        ));
        for (item, number) in page.items.iter().zip(0_usize..) {
            if number > 0 {
                text.push(',');
            }
            text.push_str(&item.text);
        }
        text.push_str("]}");
        return Ok(text);
    }
    let values = page.items.iter().map(|item| {
        let object = parse(&item.text)?;
        Ok(viewed(&objects.resource, object))
    });
    let values: Vec<Value> = values.collect::<Result<_, Failure>>()?;
    Ok(many(inner, objects, metadata, &values, shown).to_string())
}

/// Many objects in the form that was asked for.
pub(super) fn many(
    inner: &Inner,
    objects: &Objects,
    metadata: &Value,
    values: &[Value],
    shown: Shown,
) -> Value {
    let resource = &objects.resource;
    match shown.form {
        Form::Object => json!({
            "kind": resource.definition.list_kind,
            "apiVersion": resource.api_version(),
            "metadata": metadata,
            "items": values,
        }),
        Form::Metadata => json!({
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "items": values.iter().map(metadata_only).collect::<Vec<_>>(),
        }),
        Form::Table => {
            let columns = Columns::of(resource);
            let now = (inner.clock)();
            let rows = values
                .iter()
                .map(|object| columns.row(object, shown.include, now));
            json!({
                "kind": "Table",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "columnDefinitions": columns.definitions(),
                "rows": rows.collect::<Vec<_>>(),
            })
        }
    }
}

/// Reads what a list asks for.
pub(super) async fn page(
    inner: &Arc<Inner>,
    objects: &Objects,
    query: &Query,
    selection: &Selection,
) -> Result<Page, Failure> {
    let mut want = Want {
        namespace: objects.namespace.clone(),
        name: selection.name().unwrap_or_default().to_owned(),
        limit: query.limit,
        ..Want::default()
    };
    if want.namespace.is_empty() {
        selection
            .namespace()
            .unwrap_or_default()
            .clone_into(&mut want.namespace);
    }
    if query.continue_token.is_empty() {
        let asked = query::version(&query.resource_version)?;
        // Paging from a version means that version, as without a match it always did.
        let is_exact = query.version_match == Match::Exact
            || (query.version_match == Match::Unset && query.limit.is_some() && asked > 0);
        if is_exact {
            want.at = Some(asked);
        }
        reached(inner, asked).await?;
    } else {
        let place = Continuation::parse(&query.continue_token)?;
        if reached(inner, place.version).await.is_err() {
            // Of a store that this one took the place of.
            return Err(Failure::expired(STALE_CONTINUE));
        }
        want.at = Some(place.version);
        want.after = place.after;
    }
    let at = want.at;
    still_known(inner, at, query)?;
    let (resource, selection) = (objects.resource.clone(), selection.clone());
    let page = inner.read("list objects", move |connection| {
        let keep = |object: &Value| selection.wants(object);
        let keep = (!selection.is_empty()).then_some(&keep as &dyn Fn(&Value) -> bool);
        snapshot::list(connection, &resource, &want, keep)
    });
    let page = page.await?;
    // While it was read, some of it may have been forgotten.
    still_known(inner, at, query)?;
    Ok(page)
}

/// What a client hears whose list cannot go on.
const STALE_CONTINUE: &str = "The provided continue parameter is too old to display a consistent list result. You must start a \
                              new list without the continue parameter.";

fn still_known(inner: &Inner, at: Option<u64>, query: &Query) -> Result<(), Failure> {
    let floor = inner.feed.floor();
    match at {
        Some(at) if at < floor => Err(Failure::expired(if query.continue_token.is_empty() {
            format!("The resourceVersion for the provided list is too old: {at} ({floor})")
        } else {
            STALE_CONTINUE.to_owned()
        })),
        _ => Ok(()),
    }
}

/// Refuses to answer from before a version that the client has seen.
async fn reached(inner: &Arc<Inner>, asked: u64) -> Result<(), Failure> {
    if asked == 0 || asked <= inner.feed.head() {
        return Ok(());
    }
    let version = inner.read("read the version", snapshot::version).await?;
    if asked > version {
        return Err(Failure::too_large_version(asked, version));
    }
    Ok(())
}
