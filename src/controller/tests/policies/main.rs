//! RoutingPolicies on a real object source: the same tests over the local object API, and over a kube-apiserver where one
//! is there (`RELAY_TEST_KUBECONFIG`, run with `--ignored`).

#![allow(clippy::unwrap_used)]

mod bars;
mod crash;
mod faults;
mod follow;
mod follow_server;
mod life;
mod page;
mod proxy;
mod restart;
mod rights;
mod sources;
mod traces;
mod world;

/// The same test on both sources.
macro_rules! on_both {
    ($($(#[$doc:meta])* $name:ident;)+) => {
        mod on_local {
            $($(#[$doc])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::sources::local().await).await;
            })+
        }
        mod on_kube {
            $($(#[$doc])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs a kube-apiserver"]
            async fn $name() {
                super::$name(crate::sources::kube().await).await;
            })+
        }
    };
}
pub(crate) use on_both;
