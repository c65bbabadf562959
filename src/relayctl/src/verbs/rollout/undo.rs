//! `relayctl rollout undo`: the previous version becomes the wish again. Going back is never gated.

use crate::call::Call;
use crate::error::CliError;
use crate::facts::{Laya, is_deleting};
use crate::kinds;
use crate::verbs::model::{change, find_server, not_there};
use api::exit::Exit;

/// Goes back.
pub(super) async fn run(call: &Call, name: &str) -> Result<Exit, CliError> {
    let server = call.connect_to_change().await?;
    let object = find_server(&server, name).await?;
    let previous = previous(Laya(&object))?;
    let kind = kinds::laya_model();
    let found = server.find(kind, &server.namespace, previous).await;
    match found.map_err(|error| server.failed(error))? {
        Some(model) if !is_deleting(&model) => change(call, &server, &object, &model, None).await,
        Some(_) => {
            let line = format!(
                "{} is being deleted, so there is no way back to it",
                kind.brief(previous)
            );
            Err(CliError::new(Exit::Conflict, line).hint("`relayctl model ls` lists the others"))
        }
        None => Err(not_there(kind, previous, &server)
            .hint("`relayctl model ls` lists those that are there")),
    }
}

/// The model to go back to.
fn previous(laya: Laya<'_>) -> Result<&str, CliError> {
    let name = laya.name();
    match laya.previous() {
        Some(previous) => Ok(previous.model()),
        None if laya.open_rollout().is_some() => Err(CliError::new(
            Exit::NotFound,
            format!("{name} has no previous version; its first rollout goes on"),
        )
        .hint(format!(
            "`relayctl rollout abort {name}` takes the candidate back"
        ))),
        None => Err(CliError::new(
            Exit::NotFound,
            format!("{name} has no previous version (NoPrevious)"),
        )
        .hint(format!(
            "`relayctl model ls` lists versions, `relayctl use NAME --server {name}` names one"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn without_a_previous_version_there_is_no_way_back() {
        let object = json!({"metadata": {"name": "main"}, "status": {"previous": {"model": "v1"}}});
        assert_eq!(previous(Laya(&object)).unwrap(), "v1");
        let object: Value = json!({"metadata": {"name": "main"}, "status": {}});
        assert_eq!(previous(Laya(&object)).unwrap_err().exit, Exit::NotFound);
    }
}
