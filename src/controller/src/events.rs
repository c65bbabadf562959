//! Events for people (control-plane 14), published beside the passes: a pass never waits for one and never fails by one.
//! An object may have ten a minute; the eleventh is one that says so, the others are counted.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::event::{EventReason, EventType, MAX_NOTE_BYTES, MAX_PER_MINUTE};
use api::field_manager;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType as Type, Recorder, Reporter};
use prometheus::IntCounter;
use service::telemetry::{RepeatedError, causes};
use tokio::sync::mpsc;

use crate::clock::Now;
use crate::metrics::ControllerMetrics;
use crate::reconciler::EventDraft;

/// Events that wait to be published; more are dropped and counted.
const MAX_WAITING: usize = 256;
/// What the limit of an object counts in.
const WINDOW: Duration = Duration::from_secs(60);
/// Most objects whose events are counted.
const MAX_OBJECTS: usize = 10_000;

/// Hands events to the publisher. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Events {
    sender: mpsc::Sender<(ObjectReference, EventDraft)>,
    limits: Arc<Mutex<Limits>>,
    dropped: IntCounter,
}

/// Does the publishing.
pub struct Publishing {
    receiver: mpsc::Receiver<(ObjectReference, EventDraft)>,
    recorder: Recorder,
    dropped: IntCounter,
    errors: RepeatedError,
}

impl fmt::Debug for Publishing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publishing").finish_non_exhaustive()
    }
}

impl Events {
    /// A sender, and the work it takes to publish, which runs as a task of its own. `instance` tells several controllers
    /// apart: the name of the pod or of the machine.
    #[must_use]
    pub fn new(
        client: Client,
        instance: Option<String>,
        metrics: &ControllerMetrics,
    ) -> (Self, Publishing) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let reporter = Reporter {
            controller: field_manager::CONTROLLER.to_owned(),
            instance,
        };
        let publishing = Publishing {
            receiver,
            recorder: Recorder::new(client, reporter),
            dropped: metrics.events_dropped.clone(),
            errors: RepeatedError::new(metrics.process.log_suppressed.clone()),
        };
        let events = Self {
            sender,
            limits: Arc::default(),
            dropped: metrics.events_dropped.clone(),
        };
        (events, publishing)
    }

    /// Publishes an event about an object, or counts it as dropped.
    pub fn publish(&self, regarding: &ObjectReference, draft: EventDraft, now: &Now) {
        let uid = regarding.uid.as_deref().unwrap_or_default();
        let verdict = {
            let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
            limits.admit(uid, now.boot)
        };
        let draft = match verdict {
            Verdict::Publish => draft,
            Verdict::SaySuppressed => {
                self.dropped.inc();
                EventDraft {
                    reason: EventReason::EventsSuppressed,
                    note: format!(
                        "more than {MAX_PER_MINUTE} events within a minute; further ones are only counted"
                    ),
                }
            }
            Verdict::Drop => return self.dropped.inc(),
        };
        if self.sender.try_send((regarding.clone(), draft)).is_err() {
            self.dropped.inc();
        }
    }
}

impl Publishing {
    /// Publishes until every sender is gone. Cancel safe; what waits is lost with it.
    pub async fn run(mut self) {
        while let Some((regarding, draft)) = self.receiver.recv().await {
            let event = Event {
                type_: match draft.reason.event_type() {
                    EventType::Normal => Type::Normal,
                    EventType::Warning => Type::Warning,
                },
                reason: draft.reason.as_str().to_owned(),
                action: draft.reason.action().as_str().to_owned(),
                note: Some(cut(draft.note, MAX_NOTE_BYTES)),
                secondary: None,
            };
            match self.recorder.publish(&event, &regarding).await {
                Ok(()) => {
                    if let Some(count) = self.errors.recovered() {
                        tracing::info!(failures = count, "events are published again");
                    }
                }
                Err(error) => {
                    self.dropped.inc();
                    if let Some(count) = self.errors.occurred() {
                        tracing::warn!(count, error = causes(&error), "cannot publish an event");
                    }
                }
            }
        }
    }
}

/// At most so many bytes, on a character boundary, and says so where it cuts.
pub(crate) fn cut(mut note: String, bytes: usize) -> String {
    const CUT: &str = " … (cut)";
    if note.len() > bytes {
        let end = note.floor_char_boundary(bytes.saturating_sub(CUT.len()));
        note.truncate(end);
        note.push_str(CUT);
    }
    note
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Publish,
    SaySuppressed,
    Drop,
}

/// Events of each object in its current minute.
#[derive(Debug, Default)]
struct Limits {
    windows: HashMap<String, (Duration, u32)>,
}

impl Limits {
    fn admit(&mut self, uid: &str, boot: Duration) -> Verdict {
        let current = |began: &Duration| boot.saturating_sub(*began) < WINDOW;
        if !self.windows.contains_key(uid) && self.windows.len() >= MAX_OBJECTS {
            self.windows.retain(|_, (began, _)| current(began));
            if self.windows.len() >= MAX_OBJECTS {
                return Verdict::Drop;
            }
        }
        let (began, count) = self.windows.entry(uid.to_owned()).or_insert((boot, 0));
        if !current(began) {
            (*began, *count) = (boot, 0);
        }
        *count = count.saturating_add(1);
        match *count {
            count if count <= MAX_PER_MINUTE => Verdict::Publish,
            count if count == MAX_PER_MINUTE + 1 => Verdict::SaySuppressed,
            _ => Verdict::Drop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::tests::metrics;

    #[test]
    fn fault_39_a_flood_of_events_is_ten_a_minute_and_one_that_says_so() {
        let mut limits = Limits::default();
        let second = Duration::from_secs(1);
        let mut verdicts: HashMap<&str, u32> = HashMap::new();
        for _ in 0..100_000 {
            let word = match limits.admit("a", second) {
                Verdict::Publish => "published",
                Verdict::SaySuppressed => "said",
                Verdict::Drop => "dropped",
            };
            *verdicts.entry(word).or_default() += 1;
        }
        assert_eq!(
            (verdicts["published"], verdicts["said"], verdicts["dropped"]),
            (10, 1, 99_989)
        );
        assert_eq!(
            limits.admit("b", second),
            Verdict::Publish,
            "another object"
        );
        assert_eq!(limits.admit("a", second * 60), Verdict::Drop);
        assert_eq!(
            limits.admit("a", second * 61),
            Verdict::Publish,
            "another minute"
        );
    }

    #[test]
    fn fault_39_events_of_very_many_objects_are_counted_within_a_bound() {
        let mut limits = Limits::default();
        for object in 0..20_000 {
            let _ = limits.admit(&format!("uid-{object}"), Duration::from_secs(1));
        }
        assert_eq!(limits.windows.len(), MAX_OBJECTS);
        assert_eq!(
            limits.admit("new", Duration::from_secs(70)),
            Verdict::Publish
        );
        assert_eq!(limits.windows.len(), 1);
    }

    #[test]
    fn a_long_note_is_cut_between_characters() {
        for length in 980..1_010 {
            let long = format!("{}{}", "a".repeat(length % 4), "€".repeat(length / 2));
            let note = cut(long, MAX_NOTE_BYTES);
            assert!(
                note.len() <= MAX_NOTE_BYTES && note.ends_with("(cut)"),
                "{length}"
            );
        }
        assert_eq!(cut("short".to_owned(), MAX_NOTE_BYTES), "short");
    }

    #[tokio::test]
    async fn fault_39_a_publisher_that_hangs_holds_nobody_up() {
        let hangs = tower::service_fn(|_: http::Request<kube::client::Body>| {
            std::future::pending::<Result<http::Response<kube::client::Body>, tower::BoxError>>()
        });
        let metrics = metrics();
        let (events, publishing) = Events::new(Client::new(hangs, "space"), None, &metrics);
        let running = tokio::spawn(publishing.run());
        let now = Now {
            wall: "2026-11-30T10:00:00Z".parse().unwrap(),
            boot: Duration::from_secs(5),
        };
        for object in 0..1_000 {
            let regarding = ObjectReference {
                uid: Some(format!("uid-{object}")),
                ..ObjectReference::default()
            };
            let draft = EventDraft {
                reason: EventReason::PolicyAccepted,
                note: "revision 0123456789".to_owned(),
            };
            events.publish(&regarding, draft, &now);
        }
        assert!(metrics.events_dropped.get() >= 1_000 - MAX_WAITING as u64 - 1);
        running.abort();
    }
}
