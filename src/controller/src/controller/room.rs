//! `relay_model_volume_free_bytes`: the engine is asked from time to time how much room the volume of models has, where that
//! costs nothing (control-plane 15).

use std::sync::Arc;
use std::time::Duration;

use backend::Backend;

use crate::metrics::ControllerMetrics;

/// Between two looks: space goes in minutes, and alerts look at minutes.
const EVERY: Duration = Duration::from_secs(60);
/// For one look.
const PATIENCE: Duration = Duration::from_secs(10);

/// Never returns; cancel safe.
pub(super) async fn watch(backend: Arc<dyn Backend>, metrics: ControllerMetrics) {
    loop {
        let room = tokio::time::timeout(PATIENCE, backend.models_room()).await;
        let room = room.ok().flatten();
        let known = room.as_ref();
        metrics.model_volume_seen(known.map(|room| (room.volume.as_str(), room.free_bytes)));
        tokio::time::sleep(EVERY).await;
    }
}
