//! Reading a body within bounds of size and time (wire.md 2.3). The clock runs from the first byte to the last, so a
//! client that trickles does not hold a slot.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;

/// Largest body in bytes.
pub(super) const MAX_BODY_BYTES: usize = 2_097_152;

/// Why there is no body.
#[derive(Debug)]
pub(super) enum BodyError {
    /// It is too large; what is left of it.
    TooLarge(Body),
    /// It did not arrive in time; what is left of it.
    TooSlow(Body),
    /// It is no body of HTTP: chunks without a size.
    Malformed,
    /// The client went away.
    Gone,
}

/// Whether the head says that the body is too large.
pub(super) fn is_too_large(headers: &HeaderMap) -> bool {
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok());
    let digits = length
        .filter(|length| !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit()));
    digits.is_some_and(|digits| {
        digits
            .parse()
            .map_or(true, |length: usize| length > MAX_BODY_BYTES)
    })
}

/// Reads the whole body.
pub(super) async fn read(mut body: Body, wait: Duration) -> Result<Bytes, BodyError> {
    match tokio::time::timeout(wait, collect(&mut body)).await {
        Err(_) => Err(BodyError::TooSlow(body)),
        Ok(Collected::Malformed) => Err(BodyError::Malformed),
        Ok(Collected::Gone) => Err(BodyError::Gone),
        Ok(Collected::TooLarge) => Err(BodyError::TooLarge(body)),
        Ok(Collected::Whole(bytes)) => Ok(bytes),
    }
}

enum Collected {
    Whole(Bytes),
    TooLarge,
    Malformed,
    Gone,
}

/// Whether bytes came that are no body, rather than none. The connection says so by the kind of its I/O error.
fn is_malformed(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| {
            matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::InvalidData
            )
        })
}

async fn collect(body: &mut Body) -> Collected {
    let mut whole = BytesMut::new();
    let mut first = None;
    loop {
        let data = match body.frame().await {
            None => break,
            Some(Err(error)) if is_malformed(&error) => return Collected::Malformed,
            Some(Err(_)) => return Collected::Gone,
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => data,
                // Trailers say nothing.
                Err(_) => continue,
            },
        };
        if whole.len() + first.as_ref().map_or(0, Bytes::len) + data.len() > MAX_BODY_BYTES {
            return Collected::TooLarge;
        }
        // Most bodies come in one piece, which need not be copied.
        match first.take() {
            None if whole.is_empty() => first = Some(data),
            None => whole.extend_from_slice(&data),
            Some(earlier) => {
                whole.extend_from_slice(&earlier);
                whole.extend_from_slice(&data);
            }
        }
    }
    Collected::Whole(first.unwrap_or_else(|| whole.freeze()))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{StreamExt, stream};

    use super::*;

    fn pieces(pieces: Vec<Vec<u8>>) -> Body {
        Body::from_stream(stream::iter(pieces.into_iter().map(Ok::<_, Infallible>)))
    }

    #[tokio::test]
    async fn joins_pieces_and_stops_at_the_bound() {
        let wait = Duration::from_secs(5);
        for (name, parts, expected) in [
            ("none", vec![], Some(0)),
            ("one", vec![vec![1; 7]], Some(7)),
            ("three", vec![vec![1; 7], vec![2; 8], vec![3; 9]], Some(24)),
            (
                "an empty first",
                vec![vec![], vec![2; 8], vec![3; 9]],
                Some(17),
            ),
            (
                "the bound",
                vec![vec![1; MAX_BODY_BYTES - 1], vec![2]],
                Some(MAX_BODY_BYTES),
            ),
            ("one more", vec![vec![1; MAX_BODY_BYTES], vec![2]], None),
            (
                "one piece too large",
                vec![vec![1; MAX_BODY_BYTES + 1]],
                None,
            ),
        ] {
            let whole: Vec<u8> = parts.concat();
            match read(pieces(parts), wait).await {
                Ok(bytes) => {
                    assert_eq!(Some(bytes.len()), expected, "{name}");
                    assert_eq!(bytes, whole, "{name}");
                }
                Err(error) => {
                    assert!(matches!(error, BodyError::TooLarge(_)), "{name}");
                    assert_eq!(expected, None, "{name}");
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_trickle_ends_at_the_deadline() {
        let trickle = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(900)).await;
            Some((Ok::<_, Infallible>(vec![b'x']), ()))
        });
        let body = Body::from_stream(trickle.boxed());
        let began = tokio::time::Instant::now();
        assert!(matches!(
            read(body, Duration::from_secs(10)).await,
            Err(BodyError::TooSlow(_))
        ));
        assert_eq!(began.elapsed(), Duration::from_secs(10));
    }

    #[test]
    fn the_head_alone_may_refuse() {
        for (length, too_large) in [
            ("2097152", false),
            ("2097153", true),
            ("99999999999999999999999999", true),
            ("0", false),
            ("-1", false),
            ("x", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_LENGTH, length.parse().unwrap());
            assert_eq!(is_too_large(&headers), too_large, "{length}");
        }
        assert!(!is_too_large(&HeaderMap::new()));
    }
}
