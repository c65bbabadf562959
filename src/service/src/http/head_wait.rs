//! How long a connection may take over a request's head, and how long it may idle between two. The protocol library has
//! one timer for both; here the timer starts at the idle bound and is shortened when the first byte of a head arrives.
//! Writes that make no progress end too, so that a client which never reads cannot hold a connection.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Sleep, Timer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Waits of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waits {
    /// From the first byte of a head to its last.
    pub(super) head: Duration,
    /// From one request to the first byte of the next.
    pub(super) idle: Duration,
    /// Without progress while an answer is written.
    pub(super) write: Duration,
}

/// Set by the connection when bytes arrive, taken back by the timer when it starts to wait for a head.
type BytesArrived = Arc<AtomicBool>;

/// A connection and the timer for its protocol.
pub(super) fn watched<S>(stream: S, waits: Waits) -> (WatchedStream<S>, HeadTimer) {
    let arrived = BytesArrived::default();
    let stream = WatchedStream {
        stream,
        arrived: arrived.clone(),
        write_wait: waits.write,
        stalled: None,
    };
    (
        stream,
        HeadTimer {
            arrived,
            head: waits.head,
        },
    )
}

/// Notes when bytes arrive and ends writes that stall.
pub(super) struct WatchedStream<S> {
    stream: S,
    arrived: BytesArrived,
    write_wait: Duration,
    stalled: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl<S> WatchedStream<S> {
    /// Passes progress on; a write that waits longer than it may is an error.
    fn progress<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let wait = self.write_wait;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(wait)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client does not read its answer",
        )))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.arrived.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.progress(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.progress(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.progress(flushed, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The timer the protocol library asks for its wait on a head.
pub(super) struct HeadTimer {
    arrived: BytesArrived,
    head: Duration,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(std::time::Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        self.arrived.store(false, Ordering::Relaxed);
        Box::pin(HeadSleep {
            sleep: Box::pin(tokio::time::sleep_until(deadline.into())),
            arrived: self.arrived.clone(),
            head: self.head,
            shortened: false,
        })
    }

    fn now(&self) -> std::time::Instant {
        // Tokio's clock, so that tests with paused time see it move.
        Instant::now().into_std()
    }
}

/// Waits for the idle bound, or for the head bound from the moment the first byte came.
struct HeadSleep {
    sleep: Pin<Box<tokio::time::Sleep>>,
    arrived: BytesArrived,
    head: Duration,
    shortened: bool,
}

impl Sleep for HeadSleep {}

impl Future for HeadSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.shortened && self.arrived.load(Ordering::Relaxed) {
            self.shortened = true;
            let sooner = self.sleep.deadline().min(Instant::now() + self.head);
            self.sleep.as_mut().reset(sooner);
        }
        self.sleep.as_mut().poll(cx)
    }
}
