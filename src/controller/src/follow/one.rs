//! One object by its name, for ever: what the API says of it at first and whenever that changes. A list that does not hold it
//! says that it is not there, as a deletion does.

use std::fmt::Debug;
use std::future::ready;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use service::telemetry::RepeatedError;

/// What the API says of the object.
#[derive(Debug)]
pub(super) enum Said<K> {
    /// It is so.
    Is(K),
    /// There is none.
    Absent,
    /// Nothing: the watch broke, and begins again after a while.
    Lost(watcher::Error),
}

/// Watches the object of a name.
pub(super) fn watch_one<K>(api: Api<K>, name: &str) -> BoxStream<'static, Said<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut listed = false;
    watcher(api, config)
        .default_backoff()
        .filter_map(move |event| {
            ready(match event {
                Err(error) => Some(Said::Lost(error)),
                Ok(Event::Init) => {
                    listed = false;
                    None
                }
                Ok(Event::InitDone) if listed => None,
                Ok(Event::InitDone | Event::Delete(_)) => Some(Said::Absent),
                Ok(Event::InitApply(object) | Event::Apply(object)) => {
                    listed = true;
                    Some(Said::Is(object))
                }
            })
        })
        .boxed()
}

/// Says once that the API answers after it did not.
pub(super) fn answers(errors: &RepeatedError) {
    if let Some(count) = errors.recovered() {
        tracing::info!(failures = count, "the object API answers again");
    }
}
