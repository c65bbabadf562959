//! How the API server of a cluster is reached: by a kubeconfig, else by the account of the pod this runs in.

use controller::client::{Deadlines, guarded};
use controller::metrics::ControllerMetrics;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use service::telemetry::ProcessMetrics;

use crate::error::RelaydError;
use crate::settings::ClusterAddress;

/// A client of it; its default namespace is the one that was asked for, else that of the kubeconfig or the pod.
pub(crate) async fn client(address: &ClusterAddress) -> Result<Client, RelaydError> {
    let mut config = match &address.kubeconfig {
        Some(path) => {
            let refused = |source| RelaydError::Kubeconfig {
                path: path.clone(),
                source: Box::new(source),
            };
            let file = Kubeconfig::read_from(path).map_err(refused)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .map_err(refused)?
        }
        None => Config::incluster().map_err(|source| RelaydError::NoCluster {
            source: Box::new(source),
        })?,
    };
    // It waits for minutes; the controller has a layer of its own (control-plane 7.2).
    config.default_retry = false;
    if let Some(namespace) = &address.namespace {
        config.default_namespace.clone_from(namespace);
    }
    Client::try_from(config).map_err(|source| RelaydError::ClusterClient {
        kubeconfig: address.kubeconfig.clone(),
        source: Box::new(source),
    })
}

/// The same with deadlines, and with retries that end.
pub(crate) fn guarded_client(
    client: Client,
    process: &ProcessMetrics,
) -> Result<Client, RelaydError> {
    let metrics =
        ControllerMetrics::register(process).map_err(RelaydError::start("register metrics"))?;
    Ok(guarded(client, Deadlines::default(), metrics))
}
