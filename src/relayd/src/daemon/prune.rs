//! `POST /api/prune`: checkpoints that nothing names are deleted from the models volume, on both engines. What is in use,
//! what an object names and what is marked to be kept stays, and so does what the layout does not know. With `dryRun` it is
//! said what would go; with `delete` nothing else goes than what is listed there, such as what a person has agreed to.

use std::collections::BTreeMap;

use api::group::Kind;
use api::kinds::{LayaModel, LayaServer};
use axum::extract::State;
use backend::{ModelsView, Owner, ServerSeen, StoredModel};
use bytes::Bytes;
use controller::layamodel::manifest_digest;
use http::StatusCode;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Daemon;
use super::answer::{Answer, Refusal, json_answer, parse};
use crate::engine::LocalEngine;

/// Body of the call.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Prune {
    /// Only say what would go.
    #[serde(default)]
    dry_run: bool,
    /// Nothing else goes than these.
    #[serde(default)]
    delete: Option<Vec<String>>,
}

pub(super) async fn prune(State(daemon): State<Daemon>, body: Bytes) -> Answer {
    let asked = parse(&body)?;
    // It goes on, and holds the lock, when whoever asked goes away: its container does too.
    let done = tokio::spawn(async move { Box::pin(judge_and_delete(&daemon, asked)).await });
    done.await.map_err(|error| {
        let message = format!("the prune ended early: {error}");
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    })?
}

async fn judge_and_delete(daemon: &Daemon, asked: Prune) -> Answer {
    let Prune { dry_run, delete } = asked;
    let engine = daemon.engine()?;
    // No import may publish between the look, the list and the end.
    let _still = daemon.0.models.lock().await;
    let lying = Box::pin(engine.look_at_models()).await?;
    // Read after what lies there: what is published meanwhile is not in the list and stays.
    let named = Box::pin(who_names(daemon, engine)).await?;
    let judged = judge(&lying, &named, delete.as_deref());
    if dry_run {
        return Ok(json_answer(StatusCode::OK, &judged.said(&lying)));
    }
    // From here on no fetch builds on them, and what a model named before that is seen by one more look.
    let _doomed = engine.parts.doomed.during(&judged.digests());
    let named = Box::pin(who_names(daemon, engine)).await?;
    let gone = judge(&lying, &named, Some(&judged.digests())).digests();
    if gone.is_empty() {
        let nothing = json!({
            "ok": true, "deleted": [], "kept": [], "freedBytes": 0, "unknown": lying.unknown,
        });
        return Ok(json_answer(StatusCode::OK, &nothing));
    }
    let result = Box::pin(engine.prune_models(&gone)).await?;
    if result["ok"] != true {
        return Err(refused(&result));
    }
    tracing::info!(
        deleted = gone.join(","),
        "checkpoints that nothing names were deleted"
    );
    Ok(json_answer(StatusCode::OK, &result))
}

/// Digests that an object names or a server on the engine has, each with who does. The engine is asked too: what a lost
/// store knew runs on, and nothing else says which files it reads.
async fn who_names(
    daemon: &Daemon,
    engine: &LocalEngine,
) -> Result<BTreeMap<String, String>, Refusal> {
    let client = &daemon.0.client;
    let models: Api<LayaModel> = Api::all(client.clone());
    let servers: Api<LayaServer> = Api::all(client.clone());
    let models = models.list(&ListParams::default()).await?.items;
    let servers = servers.list(&ListParams::default()).await?.items;
    let mut by = named(&models, &servers)?;
    for owner in engine.parts.backend.owners().await? {
        if owner.kind == Kind::LayaServer {
            let seen = engine.observe_servers(&owner).await?;
            name_those_of(&owner, &seen, &mut by)?;
        }
    }
    Ok(by)
}

/// Adds what the replicas of an owner have.
fn name_those_of(
    owner: &Owner,
    seen: &[ServerSeen],
    by: &mut BTreeMap<String, String>,
) -> Result<(), Refusal> {
    let Owner {
        namespace, name, ..
    } = owner;
    for server in seen {
        let Some(inputs) = &server.inputs else {
            let message = format!(
                "a container of LayaServer {namespace}/{name} does not say which files it has, so nothing is deleted. Delete \
                 the container, or the server"
            );
            return Err(Refusal::new(StatusCode::CONFLICT, "Conflict", message));
        };
        by.entry(inputs.digest.clone())
            .or_insert_with(|| format!("a container of LayaServer {namespace}/{name}"));
    }
    Ok(())
}

/// What becomes of what lies in the volume.
#[derive(Debug, PartialEq, Eq)]
struct Judged<'a> {
    /// What goes.
    gone: Vec<&'a StoredModel>,
    /// What stays, and why.
    stays: Vec<(&'a StoredModel, String)>,
}

impl Judged<'_> {
    /// Of what goes.
    fn digests(&self) -> Vec<String> {
        self.gone.iter().map(|one| one.digest.clone()).collect()
    }

    fn said(&self, lying: &ModelsView) -> Value {
        let gone = self
            .gone
            .iter()
            .map(|one| json!({"digest": one.digest, "sizeBytes": one.size_bytes}));
        let stays = self.stays.iter().map(
            |(one, why)| json!({"digest": one.digest, "sizeBytes": one.size_bytes, "why": why}),
        );
        json!({
            "ok": true, "dryRun": true,
            "delete": gone.collect::<Vec<_>>(), "keep": stays.collect::<Vec<_>>(),
            "unknown": lying.unknown, "freeBytes": lying.free_bytes, "totalBytes": lying.total_bytes,
        })
    }
}

/// Judges each version that lies there: `named` tells what names a digest, `only` what may go at all.
fn judge<'a>(
    lying: &'a ModelsView,
    named: &BTreeMap<String, String>,
    only: Option<&[String]>,
) -> Judged<'a> {
    let mut judged = Judged {
        gone: Vec::new(),
        stays: Vec::new(),
    };
    for one in &lying.published {
        let why = if let Some(name) = named.get(&one.digest) {
            Some(name.clone())
        } else if one.keep {
            Some("marked to be kept (.keep)".to_owned())
        } else if only.is_some_and(|only| !only.contains(&one.digest)) {
            Some("not asked for".to_owned())
        } else {
            None
        };
        match why {
            Some(why) => judged.stays.push((one, why)),
            None => judged.gone.push(one),
        }
    }
    judged
}

/// Why nothing, or not everything, was deleted.
fn refused(result: &Value) -> Refusal {
    let message = result["message"].as_str().unwrap_or("it failed");
    match result["code"].as_u64() {
        // Another writer has the volume: what it brings may be named by then, so the list must be made anew.
        Some(75) => Refusal::new(StatusCode::CONFLICT, "Conflict", message),
        _ => Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message),
    }
}

/// Checkpoint digests that objects name, or that serve, each with who does. Refused where a model does not say yet which it
/// is: its files may lie there already.
fn named(
    models: &[LayaModel],
    servers: &[LayaServer],
) -> Result<BTreeMap<String, String>, Refusal> {
    let mut by = BTreeMap::new();
    for model in models {
        let (namespace, name) = (model.namespace().unwrap_or_default(), model.name_any());
        let digests = digests(model);
        // One that is being deleted has its own files removed or marked, so they are its own until then; one without any
        // holds nothing up.
        let goes = model.metadata.deletion_timestamp.is_some();
        if digests.is_empty() && model.spec.source.volume.is_none() && !goes {
            return Err(Refusal::new(
                StatusCode::CONFLICT,
                "Conflict",
                format!(
                    "LayaModel {namespace}/{name} has no digest yet, so its files cannot be told from those that nothing \
                     names. Wait until it is fetched, set its spec.manifestDigest, or delete it"
                ),
            ));
        }
        let deleting = if goes { ", which is being deleted" } else { "" };
        for digest in digests {
            by.entry(digest)
                .or_insert_with(|| format!("LayaModel {namespace}/{name}{deleting}"));
        }
    }
    for server in servers {
        let Some(status) = &server.status else {
            continue;
        };
        let (namespace, name) = (server.namespace().unwrap_or_default(), server.name_any());
        for (role, version) in [
            ("champion", &status.champion),
            ("candidate", &status.candidate),
            ("previous", &status.previous),
        ] {
            if let Some(digest) = version.as_ref().and_then(|version| version.digest.clone()) {
                by.entry(digest)
                    .or_insert_with(|| format!("{role} of LayaServer {namespace}/{name}"));
            }
        }
    }
    Ok(by)
}

/// Digests that a model has or asks for. That of files over HTTP follows from their list.
fn digests(model: &LayaModel) -> Vec<String> {
    let status = model.status.as_ref();
    let found = status.and_then(|status| status.digest.clone());
    let wished = model.spec.manifest_digest.as_ref();
    let wished = wished.map(|digest| digest.0.clone());
    let listed = model.spec.source.http.as_ref();
    let listed = listed.map(|http| manifest_digest(&http.files));
    found.into_iter().chain(wished).chain(listed).collect()
}

#[cfg(test)]
mod tests {
    use api::kinds::laya_server::{ServerApi, Serving};
    use api::kinds::shared::{Device, DevicePolicy};
    use backend::{RENDER_VERSION, RevisionInputs, RunState};
    use serde_json::json;

    use super::*;

    fn server_of(digest: Option<&str>) -> ServerSeen {
        let inputs = digest.map(|digest| RevisionInputs {
            owner_uid: "u1".to_owned(),
            digest: digest.to_owned(),
            contract: None,
            image: String::new(),
            server_api: ServerApi::Relay,
            device: Device::Auto,
            device_policy: DevicePolicy::Require,
            gpu: None,
            resources: None,
            serving: Serving::default(),
            pod: None,
            render_version: RENDER_VERSION,
        });
        ServerSeen {
            revision: "0123456789".to_owned(),
            ordinal: 0,
            state: RunState::Exited,
            started_at: None,
            restarts: 0,
            exit_code: None,
            oom_killed: false,
            image_id: None,
            url: None,
            spec_hash: None,
            hash_matches: None,
            tampered: Vec::new(),
            waiting: None,
            memory_bytes: 0,
            model: None,
            inputs,
            checkpoint: None,
            log_tail: String::new(),
        }
    }

    #[test]
    fn what_a_container_has_is_named_and_one_that_does_not_say_it_holds_all_up() {
        let owner = Owner {
            kind: Kind::LayaServer,
            namespace: "space".to_owned(),
            name: "main".to_owned(),
            uid: "u1".to_owned(),
        };
        let mut by: BTreeMap<_, _> =
            [("sha256:a".to_owned(), "LayaModel space/m".to_owned())].into();
        // One that is stopped is started again from the same files.
        let seen = [server_of(Some("sha256:a")), server_of(Some("sha256:b"))];
        name_those_of(&owner, &seen, &mut by).unwrap();
        assert_eq!(by["sha256:a"], "LayaModel space/m");
        assert_eq!(by["sha256:b"], "a container of LayaServer space/main");
        assert!(name_those_of(&owner, &[server_of(None)], &mut by).is_err());
    }

    #[test]
    fn what_an_object_names_or_what_serves_is_not_to_go() {
        let digest = |digit: char| format!("sha256:{}", digit.to_string().repeat(64));
        let model = |status, wished: Option<String>| -> LayaModel {
            serde_json::from_value(json!({
                "apiVersion": "relay.dev/v1alpha1", "kind": "LayaModel", "metadata": {"name": "m"},
                "spec": {"source": {"volume": {"name": "models", "path": "x"}}, "manifestDigest": wished},
                "status": {"digest": status},
            }))
            .unwrap()
        };
        let server: LayaServer = serde_json::from_value(json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer", "metadata": {"name": "s"},
            "spec": {"modelRef": {"name": "m"}},
            "status": {"champion": {"digest": digest('c')}, "previous": {"digest": digest('d')}},
        }))
        .unwrap();
        let models = [
            model(Some(digest('a')), None),
            model(None, Some(digest('b'))),
        ];
        let named = named(&models, &[server]).unwrap();
        let digests: Vec<&String> = named.keys().collect();
        assert_eq!(
            digests,
            ['a', 'b', 'c', 'd'].map(digest).iter().collect::<Vec<_>>()
        );
        assert_eq!(named[&digest('d')], "previous of LayaServer /s");
    }

    #[test]
    fn what_nothing_names_goes_and_no_more_than_was_agreed_to() {
        let digest = |digit: char| format!("sha256:{}", digit.to_string().repeat(64));
        let stored = |digit, keep| StoredModel {
            digest: digest(digit),
            size_bytes: 7,
            keep,
            damage: None,
        };
        let lying = ModelsView {
            published: vec![
                stored('a', false),
                stored('b', true),
                stored('c', false),
                stored('d', false),
            ],
            omitted: 0,
            unknown: vec!["local-1".to_owned()],
            free_bytes: 1,
            total_bytes: 2,
        };
        let named = [(digest('a'), "LayaModel default/v1".to_owned())].into();
        let all = judge(&lying, &named, None);
        assert_eq!(all.gone, [&lying.published[2], &lying.published[3]]);
        let said = all.said(&lying);
        assert_eq!(
            said["delete"][0],
            json!({"digest": digest('c'), "sizeBytes": 7})
        );
        assert_eq!(said["keep"][0]["why"], "LayaModel default/v1");
        assert_eq!(said["unknown"], json!(["local-1"]));
        // Of what was agreed to, what is named by now stays; what came since stays too.
        let agreed = ['a', 'b', 'c'].map(digest);
        let some = judge(&lying, &named, Some(&agreed));
        assert_eq!(some.gone, [&lying.published[2]]);
        assert_eq!(
            judge(&lying, &named, Some(&[])).gone,
            Vec::<&StoredModel>::new()
        );
    }

    #[test]
    fn a_model_that_says_no_digest_is_waited_for_and_one_of_listed_files_says_it() {
        let model = |source: Value| -> LayaModel {
            serde_json::from_value(json!({
                "apiVersion": "relay.dev/v1alpha1", "kind": "LayaModel", "metadata": {"name": "m", "namespace": "space"},
                "spec": {"source": source},
            }))
            .unwrap()
        };
        let files = json!([{"path": "config.json", "size": 4, "sha256": "1".repeat(64)}]);
        let http = model(json!({"http": {"baseUrl": "https://example.org/", "files": files}}));
        let listed = manifest_digest(&http.spec.source.http.as_ref().unwrap().files);
        assert_eq!(
            named(&[http], &[]).unwrap(),
            [(listed, "LayaModel space/m".to_owned())].into()
        );
        let reference = format!("registry.example/laya@sha256:{}", "7".repeat(64));
        let mut oci = model(json!({"oci": {"reference": reference}}));
        assert!(named(std::slice::from_ref(&oci), &[]).is_err());
        // One that is being deleted may never say it.
        oci.metadata.deletion_timestamp =
            serde_json::from_value(json!("2026-11-30T10:00:00Z")).unwrap();
        assert!(named(&[oci], &[]).unwrap().is_empty());
    }
}
