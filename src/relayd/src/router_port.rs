//! The port of the router. Where nobody asked for one and the default is taken, a laptop's router takes the next free one,
//! says so in `endpoint.json`, and tries the default again every second: a server that stood there is meant to go one day
//! (training 11). Then it listens on both, for clients that have read the other one.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use controller::OwnAddresses;
use prometheus::IntCounter;
use service::http::accept::{ConnectionLimits, serve};
use service::listen::{ListenAddress, ListenError, PortTaken, bind};
use service::runtime::Shutdown;
use service::telemetry::RepeatedError;
use tokio::net::TcpListener;

use crate::error::RelaydError;
use crate::local_home::Announcement;
use crate::settings::RouterSettings;

/// Ports a `relayd local` takes when the default one is taken (design.md 7).
const NEXT_PORTS: std::ops::RangeInclusive<u16> = 8738..=8747;
/// How often the default one is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Where the router listens.
#[derive(Debug)]
pub(crate) struct RouterPort {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
    /// The default address, where another one stands in for it.
    wanted: Option<ListenAddress>,
}

impl RouterPort {
    /// The address that was asked for; for a laptop that asked for none, the next free one where it is taken.
    pub(crate) async fn take(
        settings: &RouterSettings,
        is_local: bool,
    ) -> Result<Self, RelaydError> {
        let wanted = settings.listen.value;
        let refused = match bind(wanted, PortTaken::Refuse).await {
            Ok(listener) => return Self::of(listener, None),
            Err(error) => error,
        };
        if !is_local || settings.listen_was_asked_for() || !refused.is_taken() {
            return Err(RelaydError::Listen(refused));
        }
        let listener = next_free(wanted, refused).await?;
        Self::of(listener, Some(wanted))
    }

    fn of(listener: TcpListener, wanted: Option<ListenAddress>) -> Result<Self, RelaydError> {
        let address = listener
            .local_addr()
            .map_err(RelaydError::start("read the address of the listener"))?;
        Ok(Self {
            listener,
            address,
            wanted,
        })
    }

    /// What tries the default address again, where another one stands in for it.
    pub(crate) fn comeback(&self) -> Option<Comeback> {
        self.wanted.map(|wanted| Comeback { wanted })
    }
}

async fn next_free(
    wanted: ListenAddress,
    refused: ListenError,
) -> Result<TcpListener, RelaydError> {
    for port in NEXT_PORTS {
        let mut next = wanted;
        next.0.set_port(port);
        if let Ok(listener) = bind(next, PortTaken::Refuse).await {
            tracing::warn!(
                %wanted,
                taken = %next,
                "the router's port was taken, the next free one is used; `relayctl status` says by whom"
            );
            return Ok(listener);
        }
    }
    Err(RelaydError::Listen(refused))
}

/// Who hears of the default address once it is taken.
#[derive(Debug)]
pub(crate) struct Beside {
    /// Clients.
    pub(crate) announcement: Option<Announcement>,
    /// Reconcilers.
    pub(crate) own_addresses: OwnAddresses,
}

/// Tries the default address until it is free, and serves it then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Comeback {
    wanted: ListenAddress,
}

impl Comeback {
    /// Ends when the process drains.
    pub(crate) async fn run(
        self,
        app: Router,
        beside: Beside,
        suppressed: IntCounter,
        shutdown: Shutdown,
    ) {
        let listener = tokio::select! {
            () = shutdown.draining() => return,
            listener = self.free() => listener,
        };
        let wanted = self.wanted;
        tracing::info!(address = %wanted, "the router's own port is free again and is used");
        beside.own_addresses.add(wanted.0);
        if let Some(announcement) = beside.announcement
            && let Err(error) = announcement.write(wanted.0)
        {
            tracing::warn!(%error, "clients do not hear of the router's port");
        }
        let errors = RepeatedError::new(suppressed);
        serve(listener, app, ConnectionLimits::default(), errors, shutdown).await;
    }

    async fn free(self) -> TcpListener {
        let mut again = tokio::time::interval(AGAIN);
        loop {
            again.tick().await;
            if let Ok(listener) = bind(self.wanted, PortTaken::Refuse).await {
                return listener;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_that_becomes_free_is_taken_served_and_announced() {
        use axum::routing::get;
        use service::runtime::{Phase, ShutdownTrigger};
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        let home = tempfile::tempdir().unwrap();
        let places = files::Places {
            relay: home.path().join("home"),
            agent: home.path().join("agent"),
        };
        let mut own = crate::local_home::LocalHome::take(places.clone()).unwrap();
        let holder = bind(ListenAddress(([127, 0, 0, 1], 0).into()), PortTaken::Refuse)
            .await
            .unwrap();
        let wanted = ListenAddress(holder.local_addr().unwrap());
        let elsewhere = ([127, 0, 0, 1], 1).into();
        let announcement = own.announce(elsewhere, None).unwrap();
        let (trigger, shutdown) = ShutdownTrigger::new();
        let app = Router::new().route("/", get(|| async { "here" }));
        let suppressed = IntCounter::new("a", "b").unwrap();
        let comeback = Comeback { wanted };
        let own_addresses = OwnAddresses::default();
        let beside = Beside {
            announcement: Some(announcement),
            own_addresses: own_addresses.clone(),
        };
        let running = tokio::spawn(comeback.run(app, beside, suppressed, shutdown));
        let endpoint = || std::fs::read_to_string(places.endpoint()).unwrap();
        assert!(endpoint().contains("127.0.0.1:1\""), "{}", endpoint());
        drop(holder);
        let asked = async {
            loop {
                if let Ok(mut stream) = tokio::net::TcpStream::connect(wanted.0).await {
                    let request = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
                    stream.write_all(request).await.unwrap();
                    let mut answer = String::new();
                    stream.read_to_string(&mut answer).await.unwrap();
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let answer = tokio::time::timeout(Duration::from_secs(30), asked).await;
        assert!(answer.unwrap().ends_with("here"));
        assert!(endpoint().contains(&wanted.to_string()), "{}", endpoint());
        assert!(
            own_addresses
                .meant_by(&format!("http://{wanted}"))
                .is_some()
        );
        trigger.advance(Phase::Draining);
        running.await.unwrap();
    }
}
