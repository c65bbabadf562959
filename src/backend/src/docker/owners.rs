//! Whose children run here.

use std::collections::BTreeMap;

use super::Inner;
use crate::{BackendError, Owner};

/// Most owners that are named.
const MAX_OWNERS: usize = 4096;

impl Inner {
    /// Owners of the containers of ours, each once.
    pub(super) async fn owners(&self) -> Result<Vec<Owner>, BackendError> {
        let all = self.children(None).await?;
        let owners: BTreeMap<String, Owner> = all
            .into_iter()
            .filter_map(|listed| listed.owner)
            .map(|owner| (owner.uid.clone(), owner))
            .collect();
        Ok(owners.into_values().take(MAX_OWNERS).collect())
    }
}
