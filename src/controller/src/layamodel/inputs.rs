//! What a model is to others: who uses it, who found it damaged, which other versions share its volume. From caches that
//! are complete.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::kinds::LayaModel;
use api::kinds::laya_model::{ModelRole, ModelUse, OnDelete};
use api::label;
use backend::Capabilities;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::Store;

use super::retention::{self, Trained};
use super::source::{Wanted, wanted};
use crate::doomed::Doomed;
use crate::routingpolicy::{ChampionView, ServerView};
use crate::watched::Watched;

/// A model and what it references or is used by, checked.
#[derive(Debug, Clone)]
pub struct Checked {
    /// What its spec asks for, or what is wrong with it.
    pub wanted: Result<Arc<Wanted>, String>,
    /// Servers that have it, but those being deleted; in order.
    pub uses: Vec<ModelUse>,
    /// When a server found its checkpoint damaged last.
    pub damaged_at: Option<Timestamp>,
    /// Whether its files are another's too: a model that does not leave with them has the digest, or a server has, or there
    /// is a model that cannot be read.
    pub shared: bool,
    /// Whether the files of its digest are being removed from the volume of all models: with another model that is being
    /// deleted, or by hand.
    pub leaving_twin: bool,
    /// Its digest, where it is being deleted and no model of its namespace stays that has it too.
    pub last_of: Option<String>,
    /// Digests that a fetch may remove for space.
    pub prunable: Vec<String>,
    /// Whether it is a trained version beyond those that are kept.
    pub surplus: bool,
    /// What the engine can do.
    pub engine: Capabilities,
    /// Image of tasks.
    pub image: String,
    /// How long this process has known that the fetch began; `None` when it began before this process looked first.
    pub fetch_age: Option<Duration>,
    /// Whether progress may be written: the last was at least 10 s ago.
    pub progress_due: bool,
}

/// Where references are looked up.
pub struct Inputs {
    models: Store<Watched<LayaModel>>,
    servers: Store<ServerView>,
    engine: Capabilities,
    image: String,
    keep_trained: usize,
    doomed: Doomed,
    /// What each source asks for, by uid: it cannot change.
    known: Mutex<HashMap<String, Result<Arc<Wanted>, String>>>,
}

impl std::fmt::Debug for Inputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inputs").finish_non_exhaustive()
    }
}

impl Inputs {
    /// Over these caches.
    #[must_use]
    pub fn new(
        models: Store<Watched<LayaModel>>,
        servers: Store<ServerView>,
        engine: &crate::Engine,
    ) -> Self {
        Self {
            models,
            servers,
            engine: engine.backend.capabilities().clone(),
            image: engine.laya_image.clone(),
            keep_trained: engine.keep_trained,
            doomed: engine.doomed.clone(),
            known: Mutex::default(),
        }
    }

    /// Looks a model's surroundings up. Ages are added by the caller.
    #[must_use]
    pub fn of(&self, model: &LayaModel) -> Checked {
        let servers = self.servers.state();
        let servers: Vec<_> = servers.iter().map(AsRef::as_ref).collect();
        let own = self.digest(model);
        let (leaving, mut staying) = self.digests(model);
        let serving = digests_of_servers(&servers);
        // Which files a model has that this program cannot read, nobody knows: they may be any.
        let is_unknown = self.has_unparsed();
        let shared = is_unknown
            || own
                .as_ref()
                .is_some_and(|digest| staying.contains(digest) || serving.contains(digest));
        // What serves is not removed, so nobody need wait for its end.
        let leaving_twin = !self.engine.pods
            && own.as_ref().is_some_and(|digest| {
                let goes = leaving.contains(digest) && !serving.contains(digest);
                goes || self.doomed.has(digest)
            });
        let damaged_at = own.as_ref().and_then(|digest| damaged_at(&servers, digest));
        let is_last = |digest: &String| !is_unknown && self.is_last(model, digest);
        let last_of = own.clone().filter(is_last);
        staying.extend(own);
        let prunable = if self.engine.pods || is_unknown {
            Vec::new()
        } else {
            retention::prunable(&leaving, &staying, &serving)
        };
        Checked {
            wanted: self.wanted(model),
            uses: uses(model, &servers),
            damaged_at,
            shared,
            leaving_twin,
            last_of,
            prunable,
            surplus: self.is_surplus(model, &servers),
            engine: self.engine.clone(),
            image: self.image.clone(),
            fetch_age: None,
            progress_due: true,
        }
    }

    /// The object is gone.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn wanted(&self, model: &LayaModel) -> Result<Arc<Wanted>, String> {
        let uid = model.uid().unwrap_or_default();
        if let Some(known) = self.lock().get(&uid)
            // The one field of it that may be added later.
            && known.as_ref().is_ok_and(|known| {
                known.digest.is_some() || model.spec.manifest_digest.is_none()
            })
        {
            return known.clone();
        }
        let wanted = wanted(&model.spec, &self.engine).map(Arc::new);
        self.lock().insert(uid, wanted.clone());
        wanted
    }

    /// Digests of the other models: of those that are being deleted with their data, and of all others. One that is deleted
    /// and retains its files, or uses them in place, needs them to the end.
    fn digests(&self, model: &LayaModel) -> (BTreeSet<String>, BTreeSet<String>) {
        let mut leaving = BTreeSet::new();
        let mut staying = BTreeSet::new();
        for other in self.models.state() {
            let Watched::Parsed(other) = other.as_ref() else {
                continue;
            };
            if other.uid() == model.uid() {
                continue;
            }
            let Some(digest) = self.digest(other) else {
                continue;
            };
            let goes = other.metadata.deletion_timestamp.is_some();
            let is_ours = other.spec.source.volume.is_none();
            if goes && is_ours && other.spec.storage.on_delete == OnDelete::Delete {
                leaving.insert(digest);
            } else {
                staying.insert(digest);
            }
        }
        (leaving, staying)
    }

    /// Whether a model goes and none of its namespace stays with this digest.
    fn is_last(&self, model: &LayaModel, digest: &str) -> bool {
        let models = self.models.state();
        let stays = models.iter().any(|other| match other.as_ref() {
            Watched::Parsed(other) => {
                other.metadata.namespace == model.metadata.namespace
                    && other.metadata.deletion_timestamp.is_none()
                    && other.uid() != model.uid()
                    && self.digest(other).as_deref() == Some(digest)
            }
            Watched::Unparsed(_) => false,
        });
        model.metadata.deletion_timestamp.is_some() && !stays
    }

    fn has_unparsed(&self) -> bool {
        let models = self.models.state();
        models
            .iter()
            .any(|model| matches!(model.as_ref(), Watched::Unparsed(_)))
    }

    /// The digest that a model has or is to have.
    fn digest(&self, model: &LayaModel) -> Option<String> {
        let status = model.status.as_ref();
        let known = status.and_then(|status| status.digest.clone());
        known.or_else(|| self.wanted(model).ok()?.digest.clone())
    }

    /// Whether retention deletes it (training 9). Never while a server of its namespace rolls out.
    fn is_surplus(&self, model: &LayaModel, servers: &[&ServerView]) -> bool {
        if !is_trained(model) || model.metadata.deletion_timestamp.is_some() {
            return false;
        }
        let near: Vec<_> = servers
            .iter()
            .filter(|server| server.metadata.namespace == model.metadata.namespace)
            .collect();
        if near.iter().any(|server| server.status.rolls_out()) {
            return false;
        }
        let mut champions = BTreeSet::new();
        let mut pinned = BTreeSet::new();
        for server in near {
            let name = |version: &Option<ChampionView>| version.as_ref()?.model.clone();
            champions.extend(name(&server.status.champion));
            pinned.extend(name(&server.status.candidate));
            pinned.extend(name(&server.status.previous));
            pinned.insert(server.spec.model_ref.name.clone());
        }
        let all = self.models.state();
        let trained = all.iter().filter_map(|other| match other.as_ref() {
            Watched::Parsed(other)
                if is_trained(other)
                    && other.metadata.deletion_timestamp.is_none()
                    && other.metadata.namespace == model.metadata.namespace =>
            {
                Some(Trained {
                    name: other.name_any(),
                    made: made(other),
                })
            }
            _ => None,
        });
        let trained: Vec<_> = trained.collect();
        retention::surplus(&trained, &champions, &pinned, self.keep_trained)
            .contains(&model.name_any())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Result<Arc<Wanted>, String>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a training run made it.
#[must_use]
pub fn is_trained(model: &LayaModel) -> bool {
    model
        .metadata
        .labels
        .as_ref()
        .is_some_and(|labels| labels.contains_key(label::RUN))
}

fn made(model: &LayaModel) -> i64 {
    let created = model.metadata.creation_timestamp.as_ref();
    created.map_or(0, |time| time.0.as_second())
}

/// Versions that a server has, with what it has them as.
fn versions(server: &ServerView) -> [(ModelRole, Option<&ChampionView>); 3] {
    let status = &server.status;
    [
        (ModelRole::Champion, status.champion.as_ref()),
        (ModelRole::Candidate, status.candidate.as_ref()),
        (ModelRole::Previous, status.previous.as_ref()),
    ]
}

fn uses(model: &LayaModel, servers: &[&ServerView]) -> Vec<ModelUse> {
    let mut uses = Vec::new();
    for server in servers {
        if server.metadata.namespace != model.metadata.namespace
            || server.metadata.deletion_timestamp.is_some()
        {
            continue;
        }
        for (role, version) in versions(server) {
            if version.is_some_and(|version| version.model == model.metadata.name) {
                uses.push(ModelUse {
                    server: server.metadata.name.clone(),
                    role: Some(role),
                });
            }
        }
    }
    uses.sort_by(|a, b| (&a.server, a.role.map(place)).cmp(&(&b.server, b.role.map(place))));
    uses
}

const fn place(role: ModelRole) -> u8 {
    match role {
        ModelRole::Champion => 0,
        ModelRole::Candidate => 1,
        ModelRole::Previous => 2,
        ModelRole::Unknown => 3,
    }
}

fn digests_of_servers(servers: &[&ServerView]) -> BTreeSet<String> {
    let mut digests = BTreeSet::new();
    for server in servers {
        if server.metadata.deletion_timestamp.is_none() {
            let versions = versions(server);
            digests.extend(
                versions
                    .into_iter()
                    .filter_map(|(_, version)| version?.digest.clone()),
            );
        }
    }
    digests
}

fn damaged_at(servers: &[&ServerView], digest: &str) -> Option<Timestamp> {
    let damages = servers
        .iter()
        .filter_map(|server| server.status.damage.as_ref());
    damages
        .filter(|damage| damage.digest.as_deref() == Some(digest))
        .filter_map(|damage| damage.at)
        .max()
}
