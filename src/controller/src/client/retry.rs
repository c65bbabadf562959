//! Whether a request is sent again, and when. Pure.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{Response, StatusCode};
use tower::BoxError;

use super::CallTimedOut;
use super::call::Call;

/// Most times that a request is sent.
const TRIES: u32 = 3;
/// Wait before the second try where the server names none; doubled for the third.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// What must be left of the deadline after the wait, or the try could not end.
const WORTH_TRYING: Duration = Duration::from_millis(50);

/// How long to wait before the next try, if there is one.
pub(super) fn wait<B>(
    call: &Call,
    attempt: u32,
    sent: &Result<Response<B>, BoxError>,
    left: Duration,
) -> Option<Duration> {
    if attempt >= TRIES || !call.is_idempotent() {
        return None;
    }
    let own = FIRST_WAIT * (1 << (attempt - 1));
    let wait = match sent {
        Err(error) if error.is::<CallTimedOut>() => return None,
        Err(_) => own,
        Ok(response) => match response.status() {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => retry_after(response).unwrap_or(own),
            _ => return None,
        },
    };
    (wait + WORTH_TRYING <= left).then_some(wait)
}

/// Seconds; the other form, a date, is not sent by API servers.
fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn call(method: &str) -> Call {
        let uri = "/apis/relay.dev/v1alpha1/namespaces/a/routingpolicies/x";
        Call::of(&Request::builder().method(method).uri(uri).body(()).unwrap())
    }

    #[test]
    fn fault_02_a_retry_after_is_honoured_up_to_the_deadline() {
        let answer = |code: u16, after: Option<&str>| {
            let mut response = Response::builder().status(code);
            if let Some(after) = after {
                response = response.header(RETRY_AFTER, after);
            }
            Ok(response.body(()).unwrap())
        };
        let seconds = Duration::from_secs;
        let millis = Duration::from_millis;
        for (name, method, attempt, sent, left, expected) in [
            ("as long as it says", "GET", 1, answer(429, Some("2")), seconds(5), Some(seconds(2))),
            ("longer than is left", "GET", 1, answer(429, Some("30")), seconds(5), None),
            ("unavailable, no time named", "GET", 1, answer(503, None), seconds(5), Some(millis(100))),
            ("the third try", "DELETE", 2, answer(503, None), seconds(5), Some(millis(200))),
            ("no fourth", "GET", 3, answer(503, None), seconds(5), None),
            ("nonsense", "GET", 1, answer(503, Some("soon")), seconds(5), Some(millis(100))),
            ("no time left", "GET", 1, answer(503, None), millis(120), None),
            ("a create may have worked", "POST", 1, answer(503, Some("1")), seconds(5), None),
            ("refused", "GET", 1, answer(403, None), seconds(5), None),
            ("fine", "GET", 1, answer(200, None), seconds(5), None),
            ("cut", "GET", 1, Err("connection reset".into()), seconds(5), Some(millis(100))),
            ("too slow", "GET", 1, Err(CallTimedOut { after: seconds(5) }.into()), seconds(5), None),
        ] {
            assert_eq!(wait(&call(method), attempt, &sent, left), expected, "{name}");
        }
    }
}
