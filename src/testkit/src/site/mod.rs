//! What a file server and a registry have in common: content by path, over HTTP/1.1 written by hand so that it can break
//! anywhere. Runs on threads of its own, so that tests with and without a runtime can use it.

mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Seen;
use wire::Server;

/// What goes wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SiteFault {
    /// The connection is closed after so many bytes of the body.
    CutAfter(u64),
    /// One byte of the whole content is another one.
    WrongByte(u64),
    /// So many bytes more than there should be, without a length in the head.
    Longer(u64),
    /// The body comes in pieces of so many bytes, with a pause before each.
    Slow(usize, Duration),
    /// The head and so many bytes come, and then nothing, until the client goes away.
    SilentAfter(u64),
    /// The request is read, and nothing ever comes.
    NoHead,
    /// `Range` is not looked at: 200 and the whole.
    IgnoreRange,
    /// 416, with this size of the content where there is one.
    NotSatisfiable(Option<u64>),
    /// A redirect to this address, with this status.
    Redirect(u16, String),
    /// This status, with `Retry-After` where there is one.
    Status(u16, Option<String>),
    /// The connection is reset once the request was read.
    Reset,
}

/// Content of a path.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) media_type: String,
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// An answer without content of its own.
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

/// Decides what a request gets.
pub(crate) type Answer = dyn Fn(&Seen) -> Result<Content, Refusal> + Send + Sync;

#[derive(Debug, Default)]
struct State {
    /// Part of a path → faults of the next requests.
    next: BTreeMap<String, VecDeque<SiteFault>>,
    /// Part of a path → fault of every request.
    always: BTreeMap<String, SiteFault>,
    seen: Vec<Seen>,
}

/// The common part.
pub(crate) struct Site {
    server: Server,
    state: Arc<Mutex<State>>,
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site")
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}

impl Site {
    pub(crate) fn start(answer: Arc<Answer>) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let server = Server::start(Arc::new(move |seen: &Seen, stream: &mut TcpStream| {
            let fault = {
                let mut state = locked(&shared);
                state.seen.push(seen.clone());
                state.fault(seen.target())
            };
            wire::respond(stream, seen, answer(seen), fault.as_ref())
        }));
        Self { server, state }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(crate) fn fail(&self, part: &str, fault: SiteFault) {
        locked(&self.state).always.insert(part.to_owned(), fault);
    }

    pub(crate) fn fail_next(&self, part: &str, fault: SiteFault) {
        let mut state = locked(&self.state);
        state
            .next
            .entry(part.to_owned())
            .or_default()
            .push_back(fault);
    }

    pub(crate) fn heal(&self) {
        let mut state = locked(&self.state);
        state.next.clear();
        state.always.clear();
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        locked(&self.state).seen.clone()
    }

    pub(crate) fn forget(&self) {
        locked(&self.state).seen.clear();
    }
}

impl State {
    fn fault(&mut self, target: &str) -> Option<SiteFault> {
        let next = self
            .next
            .iter_mut()
            .filter(|(part, _)| target.contains(part.as_str()))
            .find_map(|(_, queue)| queue.pop_front());
        next.or_else(|| {
            self.always
                .iter()
                .find(|(part, _)| target.contains(part.as_str()))
                .map(|(_, fault)| fault.clone())
        })
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a handler says of the connection.
pub(crate) enum Then {
    /// The next request may come.
    GoOn,
    /// It is over.
    Close,
}

pub(crate) type Handler = dyn Fn(&Seen, &mut TcpStream) -> io::Result<Then> + Send + Sync;
