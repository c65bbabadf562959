//! What the read routes say about the decision model: `/health`, `/v1/models`, `/v1/contract`.

use std::sync::Arc;
use std::time::Instant;

use api::responses::{Serving, ServingState};

use super::Servers;
use super::standing::Wording;
use super::table::{Role, Table};

/// What serves now.
#[derive(Debug, Clone)]
pub struct Facts {
    /// State, versions, server and device.
    pub serving: Serving,
    /// The questions in force: those of the version that serves, else ours.
    pub wording: Arc<Wording>,
}

impl Servers {
    /// What serves now. Asks nobody.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let table = self.table();
        let champion = table.champion();
        let (usable, all) = table.usable(Instant::now());
        let state = match (usable, all) {
            (0, _) => ServingState::RulesOnly,
            (usable, all) if usable == all => ServingState::Ready,
            _ => ServingState::Degraded,
        };
        let version = |role| {
            let (entry, _) = table.best(role)?;
            Some(entry.server.identity().version.clone())
        };
        let wording = match &champion {
            Some((_, serves)) => serves.wording.clone(),
            None => self.0.ours.clone(),
        };
        Facts {
            serving: Serving {
                state,
                champion: version(Role::Champion),
                candidate: version(Role::Candidate),
                server: champion
                    .as_ref()
                    .map(|(entry, _)| entry.server.name().to_owned()),
                device: champion
                    .as_ref()
                    .and_then(|(_, serves)| serves.device.clone()),
            },
            wording,
        }
    }

    /// The same without the questions.
    #[must_use]
    pub fn serving(&self) -> Serving {
        self.facts().serving
    }
}

impl Table {
    /// Digest of the contract in force: that of the version that serves. One whose server names none is asked in a
    /// wording nobody vouches for, so nothing matches it.
    pub(super) fn in_force(&self) -> Option<String> {
        let (_, serves) = self.champion()?;
        serves.known_contract.clone()
    }
}
