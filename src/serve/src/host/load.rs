//! One load: find the folder, share what is resident already, verify and read, ask the probe questions, put into service.

use std::sync::Arc;
use std::time::{Duration, Instant};

use laya::{Checkpoint, LoadOptions, Precision};

use super::{Host, Loaded, Origin, Outcome, Parity, Problem};
use crate::source::{Found, find};

impl Host {
    /// Loads a checkpoint, after loads that run.
    pub(super) async fn load_alone(self: &Arc<Self>, name: &str) -> Outcome {
        let _turn = self.turn.lock().await;
        if let Some(loaded) = self.resident(name) {
            return Ok(loaded);
        }
        let (host, owned) = (Arc::clone(self), name.to_owned());
        let loaded = tokio::task::spawn_blocking(move || host.load_blocking(&owned)).await;
        let loaded = match loaded {
            Ok(loaded) => loaded.map_err(Arc::new)?,
            Err(panic) => return Err(Arc::new(Problem::System(panic.to_string()))),
        };
        self.check_contract(name, &loaded).map_err(Arc::new)?;
        self.insert(name, &loaded);
        Ok(loaded)
    }

    fn load_blocking(&self, name: &str) -> Result<Arc<Loaded>, Problem> {
        let started = Instant::now();
        let source = self.loading.registry.source(name);
        let source =
            source.ok_or_else(|| Problem::System(format!("'{name}' is not registered")))?;
        let found = find(source, &self.places)?;
        let folder = found
            .folder
            .canonicalize()
            .unwrap_or_else(|_| found.folder.clone());
        let sha256 = self.loading.sha256.of(name);
        // The digests of this name may ask for more than what was verified for another.
        if sha256.is_empty()
            && let Some(shared) = self.shared(|loaded| loaded.folder == folder)
        {
            return Ok(shared);
        }
        self.make_room();
        let options = LoadOptions {
            origin: Some(source.label()),
            root: found.root.clone(),
            precision: self.loading.precision,
            verify: self.loading.verify,
            expect_digest: self.loading.expect_digest.clone(),
            sha256,
            require_verified: self.loading.require_verified,
        };
        let checkpoint = self.engine.load(&found.folder, &options)?;
        for warning in &checkpoint.info().warnings {
            tracing::warn!(checkpoint = name, "{warning}");
        }
        let digest = checkpoint.info().digest.clone();
        let shared = self.shared(|loaded| loaded.checkpoint().info().digest == digest);
        let loaded = match shared {
            Some(shared) => shared,
            None => self.put_into_service(checkpoint, found, folder)?,
        };
        let took = started.elapsed();
        self.metrics
            .load_seconds
            .with_label_values(&[name])
            .observe(took.as_secs_f64());
        tracing::info!(checkpoint = name, digest, millis = millis(took), "loaded");
        Ok(loaded)
    }

    fn put_into_service(
        &self,
        checkpoint: Checkpoint,
        found: Found,
        folder: std::path::PathBuf,
    ) -> Result<Arc<Loaded>, Problem> {
        let parity = self.parity(&checkpoint)?;
        let probing = Instant::now();
        laya::probe::probe(&self.engine, &checkpoint)?;
        let origin = Origin {
            folder,
            commit: found.commit,
            parity,
            probe: probing.elapsed(),
        };
        let loaded = Loaded::start(
            Arc::clone(&self.engine),
            checkpoint,
            self.limits,
            self.pass_seen(),
            origin,
        );
        loaded
            .map(Arc::new)
            .map_err(|error| Problem::System(error.to_string()))
    }

    fn parity(&self, checkpoint: &Checkpoint) -> Result<Parity, Problem> {
        if checkpoint.precision() == Precision::F32 {
            return Ok(Parity::NotNeeded);
        }
        if self.loading.unchecked {
            return Ok(Parity::Unchecked);
        }
        crate::parity::find_report(self.loading.parity.as_deref(), checkpoint, &self.engine)?;
        Ok(Parity::Passed)
    }

    fn check_contract(&self, name: &str, loaded: &Loaded) -> Result<(), Problem> {
        let preloaded = self.loading.preload.iter().any(|known| known == name);
        match &self.loading.contract {
            Some(expected) if preloaded && loaded.contract() != Some(expected) => {
                Err(Problem::Contract {
                    expected: expected.clone(),
                    got: loaded.contract().unwrap_or("none").to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    fn shared(&self, same: impl Fn(&Loaded) -> bool) -> Option<Arc<Loaded>> {
        let resident = self.all_resident();
        resident
            .into_iter()
            .map(|(_, loaded)| loaded)
            .find(|loaded| same(loaded))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
