//! Watches: what was there, what happened since, what happens; bookmarks in between, and a clear end.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use serde_json::{Value, json};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, interval_at, sleep};

use super::accept::Form;
use super::query::{self, Query};
use super::selector::Selection;
use super::table::{Columns, Include, metadata_only};
use crate::catalog::event_view::to_core;
use crate::catalog::{Resource, View};
use crate::database::{Change, Ended, Span, Subscription, Verb, Want, snapshot};
use crate::failure::Failure;
use crate::store::Inner;

/// Shortest and longest life of a watch whose client did not say.
const LIFE_SECONDS: (u64, u64) = (1_800, 3_600);
/// Longest life that a client gets.
const MAX_LIFE_SECONDS: u64 = 24 * 3_600;
/// Lines that go out in one piece at most, and bytes after which no line is added to it.
const TOGETHER: (usize, usize) = (64, 256 << 10);
/// Objects that are printed without a pause.
const AT_ONCE: usize = 64;

/// What is watched, and how it is shown.
pub(super) struct Watched {
    pub(super) resource: Arc<Resource>,
    pub(super) namespace: String,
    pub(super) selection: Selection,
    pub(super) form: Form,
    pub(super) include: Include,
}

/// Shows changes as lines.
struct Printer {
    watched: Watched,
    columns: Columns,
    /// Column definitions come once.
    told_columns: bool,
    clock: crate::options::Clock,
}

/// Where a watch stands.
struct Watch {
    inner: Arc<Inner>,
    printer: Printer,
    subscription: Subscription,
    lines: VecDeque<Bytes>,
    /// Changes after this one up to the other are read from the tables.
    replay: Option<Span>,
    /// The last change that the client has, or does not want.
    position: u64,
    bookmarks: Option<Interval>,
    /// Kept, since to set a timer anew with each change costs more than the change.
    end: Pin<Box<Sleep>>,
    ended: bool,
}

/// Starts a watch.
pub(super) async fn start(
    inner: &Arc<Inner>,
    watched: Watched,
    query: &Query,
) -> Result<impl Stream<Item = Bytes> + Send + use<>, Failure> {
    let asked = query::version(&query.resource_version)?;
    // What was not there yet when it began is in the queue.
    let subscription = inner
        .feed
        .follow(&watched.resource.key, &watched.namespace)
        .ok_or_else(|| Failure::unavailable("it was closed, or too many watch it"))?;
    let life = query
        .timeout_seconds
        .filter(|seconds| *seconds > 0)
        .unwrap_or_else(random_life)
        .min(MAX_LIFE_SECONDS);
    let printer = Printer {
        columns: Columns::of(&watched.resource),
        told_columns: false,
        clock: inner.clock.clone(),
        watched,
    };
    let mut watch = Watch {
        inner: inner.clone(),
        printer,
        lines: VecDeque::new(),
        replay: None,
        position: asked,
        bookmarks: query.wants_bookmarks.then(|| ticks(inner.bookmarks)),
        end: Box::pin(sleep(Duration::from_secs(life))),
        ended: false,
        subscription,
    };
    let from_now = asked == 0;
    if from_now && query.initial_events == Some(false) {
        watch.position = watch.subscription.after;
    } else if from_now || query.initial_events == Some(true) {
        watch.initial(query).await?;
    } else {
        watch.since(asked).await?;
    }
    Ok(unfold(watch, |mut watch| async move {
        watch.next().await.map(|lines| (lines, watch))
    }))
}

fn ticks(every: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Watches that began together must not end together.
fn random_life() -> u64 {
    let (shortest, longest) = LIFE_SECONDS;
    let random = u64::from(uuid::Uuid::new_v4().as_u128() as u16);
    shortest + random % (longest - shortest)
}

impl Watch {
    /// Begins with all that is there.
    async fn initial(&mut self, query: &Query) -> Result<(), Failure> {
        let watched = &self.printer.watched;
        let resource = watched.resource.clone();
        let selection = watched.selection.clone();
        let want = Want {
            namespace: watched.namespace.clone(),
            name: selection.name().unwrap_or_default().to_owned(),
            ..Want::default()
        };
        let page = self
            .inner
            .read("list what is watched", move |connection| {
                let keep = |object: &Value| selection.wants(object);
                let keep = (!selection.is_empty()).then_some(&keep as &dyn Fn(&Value) -> bool);
                snapshot::list(connection, &resource, &want, keep)
            })
            .await?;
        let asked = query::version(&query.resource_version)?;
        if asked > page.version {
            return Err(Failure::too_large_version(asked, page.version));
        }
        for (item, number) in page.items.iter().zip(1_usize..) {
            let line = self.printer.stored(&item.text)?;
            self.lines.push_back(line);
            if number % AT_ONCE == 0 {
                // Others share this thread.
                tokio::task::yield_now().await;
            }
        }
        self.position = page.version;
        if query.initial_events == Some(true) && query.wants_bookmarks {
            let line = self.printer.bookmark(self.position, true);
            self.lines.push_back(line);
        }
        Ok(())
    }

    /// Begins with what happened since.
    async fn since(&mut self, asked: u64) -> Result<(), Failure> {
        self.still_known(asked)?;
        if asked > self.subscription.after {
            // Committed and not handed on yet, or of a store that is no more.
            let version = self
                .inner
                .read("read the version", snapshot::version)
                .await?;
            if asked > version {
                return Err(Failure::expired(format!(
                    "too old resource version: {asked} is of another store, whose last is {version}"
                )));
            }
        } else if asked < self.subscription.after {
            self.replay = Some(Span {
                after: asked,
                up_to: self.subscription.after,
            });
        }
        Ok(())
    }

    fn still_known(&self, version: u64) -> Result<(), Failure> {
        let floor = self.inner.feed.floor();
        if version < floor {
            return Err(Failure::expired(format!(
                "too old resource version: {version} ({floor})"
            )));
        }
        Ok(())
    }

    /// The next lines; nothing at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.lines.is_empty() {
                return Some(self.take_lines());
            }
            if self.ended {
                return None;
            }
            if let Some(span) = self.replay.take() {
                self.read_more(span).await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.end.as_mut() => return None,
                change = self.subscription.next() => match change {
                    Ok(change) => self.see(&change),
                    Err(Ended::Closed) => self.ended = true,
                    Err(Ended::TooSlow) => {
                        let why = format!("too old resource version: {} (the watch did not keep up)", self.position);
                        self.fail(&Failure::expired(why));
                    }
                },
                () = tick(self.bookmarks.as_mut()) => self.mark(),
            }
        }
    }

    /// Lines that are there go out together.
    fn take_lines(&mut self) -> Bytes {
        let (most, bytes) = TOGETHER;
        while self.lines.len() < most
            && self.replay.is_none()
            && let Some(change) = self.subscription.ready()
        {
            self.see(&change);
        }
        if self.lines.len() == 1 {
            return self.lines.pop_front().unwrap_or_default();
        }
        let mut all = Vec::new();
        let mut count = 0;
        while count < most
            && all.len() < bytes
            && let Some(line) = self.lines.pop_front()
        {
            all.extend_from_slice(&line);
            count += 1;
        }
        all.into()
    }

    async fn read_more(&mut self, span: Span) {
        let kind = self.printer.watched.resource.key.clone();
        let namespace = self.printer.watched.namespace.clone();
        let read = self
            .inner
            .read("read changes", move |connection| {
                snapshot::changes(connection, &kind, &namespace, span)
            })
            .await;
        let (changes, is_more) = match read {
            Ok(read) => read,
            Err(failure) => return self.fail(&failure),
        };
        // While they were read, they may have been forgotten.
        if let Err(failure) = self.still_known(span.after) {
            return self.fail(&failure);
        }
        for change in &changes {
            self.see(change);
        }
        match changes.last() {
            Some(last) if is_more => {
                self.replay = Some(Span {
                    after: last.version,
                    ..span
                });
            }
            _ => self.position = self.position.max(span.up_to),
        }
    }

    fn see(&mut self, change: &Arc<Change>) {
        if change.version <= self.position {
            return;
        }
        self.position = change.version;
        if let Some(line) = self.printer.change(change) {
            self.lines.push_back(line);
        }
    }

    /// A bookmark, after all that happened before it.
    fn mark(&mut self) {
        let head = self.inner.feed.head();
        while let Some(change) = self.subscription.ready() {
            self.see(&change);
        }
        if self.subscription.is_cut() {
            // What it was cut from is not in the queue: a client that went on from here would never see it.
            return;
        }
        self.position = self.position.max(head);
        let line = self.printer.bookmark(self.position, false);
        self.lines.push_back(line);
    }

    fn fail(&mut self, failure: &Failure) {
        self.lines.push_back(raw_line("ERROR", &failure.status()));
        self.ended = true;
    }
}

/// The next tick, or never.
async fn tick(interval: Option<&mut Interval>) {
    match interval {
        Some(interval) => {
            interval.tick().await;
        }
        None => std::future::pending().await,
    }
}

fn raw_line(verb: &str, object: &Value) -> Bytes {
    format!("{{\"type\":\"{verb}\",\"object\":{object}}}\n").into()
}

impl Printer {
    /// What a change is to those who want some objects only.
    fn verb(&self, change: &Change) -> Option<Verb> {
        let selection = &self.watched.selection;
        if selection.is_empty() {
            return Some(change.verb);
        }
        let before = change
            .before
            .as_ref()
            .is_some_and(|before| selection.wants(before));
        let after = change.verb != Verb::Deleted && selection.wants(&change.object);
        match (before, after) {
            (false, false) => None,
            (false, true) => Some(Verb::Added),
            (true, true) => Some(Verb::Modified),
            (true, false) => Some(Verb::Deleted),
        }
    }

    fn change(&mut self, change: &Change) -> Option<Bytes> {
        let verb = self.verb(change)?;
        if verb == Verb::Deleted && change.verb != Verb::Deleted {
            // As it was when it was wanted last, at the version at which it no longer is.
            let mut last = change.before.clone().unwrap_or_default();
            last["metadata"]["resourceVersion"] = change.version.to_string().into();
            return Some(self.line(verb.as_str(), last));
        }
        if self.is_plain() {
            return Some(change.line(verb));
        }
        Some(self.line(verb.as_str(), change.object.clone()))
    }

    /// Whether lines have objects as they are stored.
    fn is_plain(&self) -> bool {
        self.watched.form == Form::Object && self.watched.resource.view == View::Stored
    }

    /// What was there when a watch begins.
    fn stored(&mut self, text: &str) -> Result<Bytes, Failure> {
        let verb = Verb::Added.as_str();
        if self.is_plain() {
            return Ok(format!("{{\"type\":\"{verb}\",\"object\":{text}}}\n").into());
        }
        let object = serde_json::from_str(text).map_err(|error| {
            Failure::internal(&format!("a stored object is not readable: {error}"))
        })?;
        Ok(self.line(verb, object))
    }

    /// A stored object as a line.
    fn line(&mut self, verb: &str, object: Value) -> Bytes {
        let object = match self.watched.resource.view {
            View::Stored => object,
            View::CoreEvent => to_core(object),
        };
        match self.watched.form {
            Form::Object => raw_line(verb, &object),
            Form::Metadata => raw_line(verb, &metadata_only(&object)),
            Form::Table => {
                let now = (self.clock)();
                let row = self.columns.row(&object, self.watched.include, now);
                let version = object["metadata"]["resourceVersion"].clone();
                let table = self.table(&json!({"resourceVersion": version}), &json!([row]));
                raw_line(verb, &table)
            }
        }
    }

    fn table(&mut self, metadata: &Value, rows: &Value) -> Value {
        let mut table = json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "rows": rows,
            "columnDefinitions": null,
        });
        if !std::mem::replace(&mut self.told_columns, true) {
            table["columnDefinitions"] = self.columns.definitions().clone();
        }
        table
    }

    fn bookmark(&mut self, version: u64, is_first: bool) -> Bytes {
        let resource = &self.watched.resource;
        let mut metadata =
            json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
        if is_first {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let plain = json!({
            "kind": resource.definition.kind, "apiVersion": resource.api_version(), "metadata": metadata,
        });
        let object = match self.watched.form {
            Form::Object => plain,
            Form::Metadata => metadata_only(&plain),
            Form::Table => {
                // kubectl looks for the annotation in the object of a row.
                let row = json!({"cells": [], "object": metadata_only(&plain)});
                self.table(
                    &json!({"resourceVersion": version.to_string()}),
                    &json!([row]),
                )
            }
        };
        raw_line("BOOKMARK", &object)
    }
}
