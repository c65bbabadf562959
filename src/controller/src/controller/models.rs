//! LayaModels: their cache.

use kube::runtime::watcher;

use super::Controller;
use super::engine::Engine;
use super::shared::Shared;

impl Controller {
    pub(super) fn add_models(&mut self, _engine: &Engine) {
        let models = Shared::new(&self.context, &watcher::Config::default(), |_| {});
        self.cache("LayaModel", models.complete());
        self.models = Some(models);
    }
}
