//! `POST /drain` to a server of ours. By hand: one request on loopback, and of the answer nothing but its status counts.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::BackendError;

/// Health call and the like (control-plane 7.2) are shorter; a drain may wait for the server's own threads.
const WITHIN: Duration = Duration::from_secs(5);

/// Tells a server to take no more. One that does not answer, or knows no drain, needs none: it is stopped all the same.
///
/// # Errors
/// When it answers that it failed, or is no server of this kind.
pub(super) async fn drain(url: &str) -> Result<(), BackendError> {
    let what = format!("drain {url}");
    let failed = |message: String| BackendError::Failed {
        what: what.clone(),
        message,
    };
    let Some(address) = url
        .strip_prefix("http://")
        .map(|rest| rest.trim_end_matches('/'))
    else {
        return Err(failed("it is no http address".to_owned()));
    };
    match tokio::time::timeout(WITHIN, post(address)).await {
        Err(_) => {
            tracing::info!(%url, "no answer to a drain within {} s", WITHIN.as_secs());
            Ok(())
        }
        Ok(Err(error)) if is_gone(error.kind()) => Ok(()),
        Ok(Err(error)) => Err(failed(error.to_string())),
        // A server of another make knows no such path.
        Ok(Ok(200..=299 | 404 | 405)) => Ok(()),
        Ok(Ok(status)) => Err(failed(format!("it answered {status}"))),
    }
}

/// Nobody listens there, or not any more.
const fn is_gone(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof
    )
}

async fn post(address: &str) -> std::io::Result<u16> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "POST /drain HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    // `HTTP/1.1 200`
    let mut head = [0; 12];
    stream.read_exact(&mut head).await?;
    let status = std::str::from_utf8(&head)
        .ok()
        .and_then(|head| head.strip_prefix("HTTP/1."))
        .and_then(|rest| rest.get(2..))
        .and_then(|status| status.parse().ok());
    status.ok_or_else(|| std::io::Error::other("what answers there is no HTTP server"))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// A server that gives every request this answer; what was asked comes back.
    async fn answering(answer: &'static str) -> (String, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 1024];
            let length = stream.read(&mut request).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        (url, served)
    }

    #[tokio::test]
    async fn a_server_is_told_and_one_that_knows_no_drain_needs_none() {
        for answer in [
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 202 Accepted\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\n\r\n",
        ] {
            let (url, served) = answering(answer).await;
            assert_eq!(drain(&url).await, Ok(()), "{answer}");
            assert!(
                served
                    .await
                    .unwrap()
                    .starts_with("POST /drain HTTP/1.1\r\n")
            );
        }
    }

    #[tokio::test]
    async fn nobody_there_is_drained_and_a_failure_is_said() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        assert_eq!(drain(&url).await, Ok(()));
        let (url, _served) = answering("HTTP").await;
        assert_eq!(drain(&url).await, Ok(()), "gone in the middle");
        for answer in ["HTTP/1.1 500 No\r\n\r\n", "garbage garbage garbage"] {
            let (url, _served) = answering(answer).await;
            assert!(drain(&url).await.is_err(), "{answer}");
        }
        assert!(drain("ftp://x").await.is_err());
    }
}
