//! OCI artifacts (`source.oci`): a manifest by digest, whose layers are plain files with their names in
//! `org.opencontainers.image.title`. Archives are refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use ureq::Body;
use ureq::http::header::WWW_AUTHENTICATE;
use ureq::http::{Response, StatusCode, Uri};

use super::client::{Client, Get};
use super::reference::{Challenge, Reference};
use super::{Opened, Origin, http, url};
use crate::TaskError;
use crate::digest::is_hex64;
use crate::error::SourceFault;
use crate::request::{Credential, SourceFile};
use crate::watch::Watch;

/// Largest manifest.
const MAX_MANIFEST_BYTES: u64 = 4 << 20;
/// Largest answer with a token.
const MAX_TOKEN_BYTES: u64 = 64 << 10;
const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";
const TITLE: &str = "org.opencontainers.image.title";

#[derive(Debug, Deserialize)]
struct ManifestFile {
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    #[serde(default)]
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

pub(super) struct OciOrigin {
    reference: Reference,
    credential: Option<Credential>,
    /// What the registry was last shown, and took.
    authorization: Option<String>,
    client: Option<Client>,
}

impl OciOrigin {
    pub(super) fn new(reference: &str, credential: Option<&Credential>) -> Result<Self, TaskError> {
        let reference = Reference::parse(reference).map_err(|why| TaskError::Usage { why })?;
        url::absolute(&reference.base()).map_err(|why| TaskError::Usage { why })?;
        Ok(Self {
            reference,
            credential: credential.cloned(),
            authorization: None,
            client: None,
        })
    }

    fn address(&self, kind: &str, sha256: &str) -> Result<Uri, TaskError> {
        url::absolute(&format!("{}/{kind}/sha256:{sha256}", self.reference.base()))
            .map_err(|why| TaskError::Usage { why })
    }

    /// Asks; where the registry wants to know who asks, gets a token and asks once more.
    fn get(
        &mut self,
        uri: &Uri,
        what: &str,
        accept: Option<&str>,
        from: u64,
        watch: &Arc<Watch>,
    ) -> Result<Response<Body>, TaskError> {
        let authorization = self.authorization.clone();
        let client = self.client.get_or_insert_with(|| Client::new(watch));
        let get = Get {
            uri,
            what,
            authorization: authorization.as_deref(),
            accept,
            from,
        };
        let answer = client.get(&get)?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        let challenge = answer
            .headers()
            .get(WWW_AUTHENTICATE)
            .and_then(|value| value.to_str().ok())
            .and_then(Challenge::parse);
        let shown = match challenge {
            None => return Err(client.refusal(&get, answer)),
            Some(Challenge::Basic) => match &self.credential {
                Some(basic @ Credential::Basic { .. }) => http::authorization(basic),
                _ => return Err(client.refusal(&get, answer)),
            },
            Some(Challenge::Bearer {
                realm,
                service,
                scope,
            }) => {
                let scope = scope
                    .unwrap_or_else(|| format!("repository:{}:pull", self.reference.repository));
                // A token of the user's own is shown as it is, once.
                match &self.credential {
                    Some(Credential::Token(token)) if authorization.is_none() => {
                        format!("Bearer {token}")
                    }
                    credential => {
                        let basic = credential
                            .as_ref()
                            .filter(|c| matches!(c, Credential::Basic { .. }));
                        token(client, uri, &realm, service.as_deref(), &scope, basic)?
                    }
                }
            }
        };
        let again = client.get(&Get {
            authorization: Some(&shown),
            ..get
        })?;
        self.authorization = Some(shown);
        Ok(again)
    }
}

/// The dance for a token.
fn token(
    client: &Client,
    registry: &Uri,
    realm: &str,
    service: Option<&str>,
    scope: &str,
    credential: Option<&Credential>,
) -> Result<String, TaskError> {
    const WHAT: &str = "a token of the registry";
    let bad = |why: String| TaskError::source(SourceFault::NotFound, WHAT, why);
    let realm_uri = url::absolute(realm).map_err(bad)?;
    // What is secret must not leave the safe way because the answer says so.
    if registry.scheme_str() == Some("https") && realm_uri.scheme_str() == Some("http") {
        return Err(bad(format!(
            "{} is asked without TLS, which is refused",
            url::shown(&realm_uri)
        )));
    }
    let mut query = vec![format!("scope={}", url::encoded(scope))];
    query.extend(service.map(|service| format!("service={}", url::encoded(service))));
    let joint = if realm.contains('?') { '&' } else { '?' };
    let uri = url::absolute(&format!("{realm}{joint}{}", query.join("&"))).map_err(bad)?;
    let authorization = credential.map(http::authorization);
    let get = Get {
        uri: &uri,
        what: WHAT,
        authorization: authorization.as_deref(),
        accept: None,
        from: 0,
    };
    let answer = client.get(&get)?;
    if answer.status() != StatusCode::OK {
        return Err(client.refusal(&get, answer));
    }
    let unreadable = || bad(format!("{} gives none that can be read", url::shown(&uri)));
    let bytes = client
        .whole(WHAT, answer, MAX_TOKEN_BYTES)?
        .ok_or_else(unreadable)?;
    let token: Token = serde_json::from_slice(&bytes).map_err(|_| unreadable())?;
    let token = token.token.or(token.access_token).ok_or_else(unreadable)?;
    Ok(format!("Bearer {token}"))
}

impl Origin for OciOrigin {
    fn list(&mut self, watch: &Arc<Watch>) -> Result<Vec<SourceFile>, TaskError> {
        const WHAT: &str = "the artifact's manifest";
        let expected = self.reference.sha256.clone();
        let uri = self.address("manifests", &expected)?;
        let answer = self.get(&uri, WHAT, Some(ACCEPT), 0, watch)?;
        let client = self.client.get_or_insert_with(|| Client::new(watch));
        if answer.status() != StatusCode::OK {
            let get = Get {
                uri: &uri,
                what: WHAT,
                authorization: None,
                accept: None,
                from: 0,
            };
            return Err(client.refusal(&get, answer));
        }
        let bytes = client.whole(WHAT, answer, MAX_MANIFEST_BYTES)?;
        let bytes = bytes.ok_or_else(|| TaskError::BadCheckpoint {
            why: format!("{WHAT} has more than {MAX_MANIFEST_BYTES} bytes"),
        })?;
        let got = laya::checkpoint::hex(&Sha256::digest(&bytes));
        if got != expected {
            return Err(TaskError::DigestMismatch {
                what: WHAT.to_owned(),
                expected,
                got,
            });
        }
        files_of(&bytes)
    }

    fn open(
        &mut self,
        file: &SourceFile,
        from: u64,
        watch: &Arc<Watch>,
    ) -> Result<Opened<'_>, TaskError> {
        let uri = self.address("blobs", &file.sha256)?;
        let answer = self.get(&uri, &file.path, None, from, watch)?;
        let client = self.client.get_or_insert_with(|| Client::new(watch));
        let get = Get {
            uri: &uri,
            what: &file.path,
            authorization: None,
            accept: None,
            from,
        };
        http::opened(client, &get, file, answer)
    }
}

/// The files of a manifest.
fn files_of(bytes: &[u8]) -> Result<Vec<SourceFile>, TaskError> {
    let bad = |why: String| TaskError::BadCheckpoint { why };
    let manifest: ManifestFile = serde_json::from_slice(bytes)
        .map_err(|error| bad(format!("the artifact's manifest cannot be read: {error}")))?;
    manifest
        .layers
        .into_iter()
        .map(|layer| {
            let Some(path) = layer.annotations.get(TITLE) else {
                return Err(bad(format!(
                    "layer {} has no {TITLE}; push the files of the checkpoint as plain layers",
                    layer.digest.escape_default()
                )));
            };
            if layer.media_type.contains("tar") || layer.media_type.contains("zip") {
                return Err(bad(format!(
                    "layer '{}' is an archive ({}); push the files as plain layers",
                    path.escape_default(),
                    layer.media_type.escape_default()
                )));
            }
            let sha256 = layer
                .digest
                .strip_prefix("sha256:")
                .filter(|hex| is_hex64(hex));
            let sha256 = sha256.ok_or_else(|| {
                bad(format!(
                    "digest of layer '{}' is no SHA-256",
                    path.escape_default()
                ))
            })?;
            Ok(SourceFile {
                path: path.clone(),
                size: layer.size,
                sha256: sha256.to_owned(),
                asset: None,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_become_files() {
        let layer = |kind: &str, title: Option<&str>, digest: &str| {
            let annotations = title.map(|title| serde_json::json!({TITLE: title}));
            serde_json::json!({"layers": [{
                "mediaType": kind, "digest": digest, "size": 3,
                "annotations": annotations.unwrap_or_else(|| serde_json::json!({})),
            }]})
            .to_string()
        };
        let hex = format!("sha256:{}", "a".repeat(64));
        let plain = "application/octet-stream";
        let files = files_of(layer(plain, Some("encoder/config.json"), &hex).as_bytes()).unwrap();
        assert_eq!(files[0].path, "encoder/config.json");
        assert_eq!(files[0].size, 3);

        let tar = "application/vnd.oci.image.layer.v1.tar+gzip";
        for (text, says) in [
            (layer(tar, Some("x"), &hex), "is an archive"),
            (layer(plain, None, &hex), "has no org.opencontainers"),
            (layer(plain, Some("x"), "sha512:12"), "no SHA-256"),
            ("nonsense".to_owned(), "cannot be read"),
        ] {
            let error = files_of(text.as_bytes()).unwrap_err();
            assert!(matches!(error, TaskError::BadCheckpoint { .. }));
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
