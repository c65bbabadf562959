//! Looks at servers beside the requests: `/health` and `/ready` at intervals that no two routers share, more often while
//! something is wrong. Also reads key files again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Response;

use super::server::Server;
use super::standing::{Health, Ready, Standing, Wording, judge};
use super::upstream::{Call, CallError};

/// Between two looks at a server that serves.
const EVERY: Duration = Duration::from_secs(5);
/// Between two looks at one that does not.
const EVERY_WHILE_WRONG: Duration = Duration::from_secs(1);
/// For both answers of one look.
const WAIT: Duration = Duration::from_secs(2);
/// Longest answer that is read, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// Looks at a server for ever. Cancel safe.
pub(super) async fn follow(server: Arc<Server>, ours: Arc<Wording>) {
    // What a table waited for need not be asked again at once.
    let mut looked_at = !matches!(server.standing(), Standing::Unknown);
    loop {
        if !std::mem::take(&mut looked_at) {
            refresh_key(&server);
            once(server.clone(), ours.clone()).await;
        }
        let every = if server.serves().is_some() {
            EVERY
        } else {
            EVERY_WHILE_WRONG
        };
        tokio::select! {
            () = tokio::time::sleep(jittered(every)) => {}
            () = server.look_again.notified() => {}
        }
    }
}

/// Looks at a server once.
pub(super) async fn once(server: Arc<Server>, ours: Arc<Wording>) {
    let found = look(&server, &ours).await;
    note(&server, found);
}

/// 80 to 120 % of a time, so that many routers do not look at once.
fn jittered(every: Duration) -> Duration {
    let mut random = [0; 2];
    // Without random numbers there is no jitter, which is no harm.
    let _ = getrandom::fill(&mut random);
    let share = f64::from(u16::from_le_bytes(random)) / f64::from(u16::MAX);
    every.mul_f64(0.8 + 0.4 * share)
}

async fn look(server: &Server, ours: &Arc<Wording>) -> Standing {
    let deadline = Instant::now() + WAIT;
    let get = async |path| {
        let call = Call::get(path);
        server.line.ask(&call, deadline, MAX_BYTES).await
    };
    let answers: Result<(Response<Bytes>, Response<Bytes>), CallError> =
        async { Ok((get("/health").await?, get("/ready").await?)) }.await;
    let (health, ready) = match answers {
        Ok(answers) => answers,
        Err(error) => {
            return Standing::Unreachable {
                problem: error.to_string(),
            };
        }
    };
    let ready = Ready::read(ready.status().as_u16(), ready.body());
    match Health::read(health.status().as_u16(), health.body()) {
        Err(wrong) => Standing::Wrong(wrong),
        Ok(health) => {
            let identity = server.identity();
            let own = identity.wording.as_ref();
            judge(&health, &ready, &identity.expected, ours, own)
        }
    }
}

fn note(server: &Server, found: Standing) {
    let Some(known) = server.looked(found, Instant::now()) else {
        return;
    };
    let server = server.name();
    match known {
        Standing::Serves(serves) => tracing::info!(
            server,
            contract = serves.contract.as_deref().unwrap_or("none"),
            checkpoint = serves.checkpoint.as_deref().unwrap_or("unknown"),
            device = serves.device.as_deref().unwrap_or("unknown"),
            "decision model serves"
        ),
        Standing::Wrong(wrong) => tracing::warn!(server, "decision model is not asked: {wrong}"),
        Standing::NotReady { message } => {
            tracing::warn!(server, "decision model is not ready: {message}");
        }
        Standing::Unreachable { problem } => {
            tracing::warn!(server, "decision model cannot be reached: {problem}");
        }
        Standing::Unknown => {}
    }
}

fn refresh_key(server: &Server) {
    let Some(key) = server.line.key() else {
        return;
    };
    match key.refresh() {
        Ok(changed) => {
            if let Some(count) = server.look_errors.recovered() {
                tracing::info!(path = %key.path().display(), count, "key file is readable again");
            }
            if changed {
                tracing::info!(path = %key.path().display(), "key file read again");
            }
        }
        Err(error) => {
            if let Some(count) = server.look_errors.occurred() {
                tracing::error!(%error, count, "the key read before stays in force");
            }
        }
    }
}
