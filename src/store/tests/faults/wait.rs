//! Waiting for a condition, with a deadline.

use std::time::{Duration, Instant};

/// Asks again and again until the answer is yes.
pub(crate) async fn until(what: &str, deadline: Duration, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(
            began.elapsed() < deadline,
            "{what}: not within {deadline:?}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
