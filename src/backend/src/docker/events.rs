//! The engine's event stream as a hint (control-plane 7.2, 8.1): children that changed, and `Everything` after each
//! connection and every minute. What is missed is found by the next full look.

use std::sync::Arc;
use std::time::Duration;

use api::label;
use bollard::models::EventMessage;
use bollard::query_parameters::EventsOptionsBuilder;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

use super::Inner;
use super::labels;
use crate::Hint;

/// A full look.
const FULL: Duration = Duration::from_secs(60);
/// How often the engine is asked whether it is there, and how long it has: with the look that follows, an engine that is
/// gone is said to be within 10 s.
const PING: Duration = Duration::from_secs(3);
const PING_WITHIN: Duration = Duration::from_secs(2);
/// Pauses between attempts to connect.
const PAUSES: [Duration; 6] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
    Duration::from_secs(30),
];

/// Follows the engine for as long as the task runs.
pub(super) async fn follow(inner: Arc<Inner>) {
    let mut failures = 0;
    loop {
        match inner.engine.live().await {
            Ok(live) => {
                failures = 0;
                let filters = [(
                    "label".to_owned(),
                    vec![format!("{}={}", label::INSTANCE, inner.instance().as_str())],
                )]
                .into_iter()
                .collect();
                let options = EventsOptionsBuilder::default().filters(&filters).build();
                inner.hint(Hint::Everything);
                let stream = std::pin::pin!(live.docker.events(Some(options)));
                // Beside it: what is removed may take its time, and nothing waits for it.
                tokio::select! {
                    () = inner.listen(stream) => {}
                    () = inner.keep_removing_left_over_helpers() => {}
                }
                // What broke the stream may have been the engine itself.
                inner.engine.forget(&live);
                // Whoever looks now finds out, and says so.
                inner.hint(Hint::Everything);
            }
            Err(error) => {
                if failures == 0 {
                    tracing::warn!(%error, "no events from the container engine");
                }
                failures += 1;
            }
        }
        let pause = PAUSES[usize::min(failures, PAUSES.len() - 1)];
        sleep(jittered(pause)).await;
    }
}

/// ± 20 %.
fn jittered(pause: Duration) -> Duration {
    let mut byte = [0_u8; 1];
    // Without randomness the pause is as it stands.
    let part = if getrandom::fill(&mut byte).is_ok() {
        u32::from(byte[0])
    } else {
        128
    };
    pause * (205 + part * 102 / 255) / 256
}

impl Inner {
    /// Nobody listening is fine.
    pub(super) fn hint(&self, hint: Hint) {
        let _ = self.hints.send(hint);
    }

    /// Until the stream ends or the engine does not answer.
    async fn listen<S, E>(&self, mut events: std::pin::Pin<&mut S>)
    where
        S: Stream<Item = Result<EventMessage, E>>,
    {
        let mut full = interval_at(Instant::now() + FULL, FULL);
        full.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ping = interval_at(Instant::now() + PING, PING);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(event)) => self.learn(event),
                    Some(Err(_)) | None => return,
                },
                _ = full.tick() => self.hint(Hint::Everything),
                _ = ping.tick() => {
                    // Silence is normal; an engine that is gone behind an open connection is not.
                    let Ok(live) = self.engine.live().await else { return };
                    if !matches!(timeout(PING_WITHIN, live.docker.ping()).await, Ok(Ok(_))) {
                        return;
                    }
                }
            }
        }
    }

    fn learn(&self, event: EventMessage) {
        let Some(actor) = event.actor else { return };
        let attributes = actor.attributes.unwrap_or_default();
        // The one place where the code of one that was started again can be read.
        if event.action.as_deref() == Some("die")
            && let Some(id) = actor.id
            && let Some(code) = attributes
                .get("exitCode")
                .and_then(|code| code.parse().ok())
        {
            self.memory.remember_exit(id, code);
        }
        if let Some(owner) = labels::owner(&attributes) {
            self.hint(Hint::Owner(owner));
        }
    }
}

/// Hints of one listener. One that fell behind is told to look at everything.
pub(super) fn hints(receiver: broadcast::Receiver<Hint>) -> BoxStream<'static, Hint> {
    stream::unfold(receiver, |mut receiver| async move {
        match receiver.recv().await {
            Ok(hint) => Some((hint, receiver)),
            Err(RecvError::Lagged(_)) => Some((Hint::Everything, receiver)),
            // The back end is gone, and this never ends.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_jittered_by_a_fifth() {
        for _ in 0..1000 {
            let pause = jittered(Duration::from_secs(10));
            let millis = pause.as_millis();
            assert!((8000..=12000).contains(&millis), "{millis}");
        }
    }

    #[tokio::test]
    async fn who_falls_behind_looks_at_everything() {
        let (sender, receiver) = broadcast::channel(2);
        for _ in 0..5 {
            sender.send(Hint::Everything).unwrap();
        }
        let mut hints = hints(receiver);
        assert_eq!(hints.next().await, Some(Hint::Everything));
    }
}
