//! Registry credentials out of files in the format of `docker login` and of pull Secrets. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bollard::auth::DockerCredentials;
use serde::Deserialize;

/// The key of a Secret that holds credentials, as Kubernetes names it.
pub(super) const KEY: &str = ".dockerconfigjson";

/// Credentials of one registry.
#[derive(Clone, PartialEq, Eq)]
pub struct RegistryCredentials {
    /// Host and port; `docker.io` for the default one.
    pub registry: String,
    /// User.
    pub username: String,
    /// Password or token.
    pub password: String,
}

/// Without the password.
impl std::fmt::Debug for RegistryCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegistryCredentials")
            .field("registry", &self.registry)
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct File {
    auths: std::collections::BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
}

/// Reads a file; entries without a user and a password are left out.
///
/// # Errors
/// When it has another form. The text holds none of the content.
pub(super) fn read(content: &[u8]) -> Result<Vec<RegistryCredentials>, String> {
    let file: File = serde_json::from_slice(content).map_err(|error| {
        format!(
            "it is no docker configuration with `auths` (line {}, column {})",
            error.line(),
            error.column()
        )
    })?;
    let read = |(registry, entry): (String, Entry)| {
        let (username, password) = match (entry.username, entry.password) {
            (Some(username), Some(password)) => (username, password),
            _ => {
                let plain = STANDARD.decode(entry.auth?.trim()).ok()?;
                let plain = String::from_utf8(plain).ok()?;
                let (username, password) = plain.split_once(':')?;
                (username.to_owned(), password.to_owned())
            }
        };
        Some(RegistryCredentials {
            registry: host(&registry).to_owned(),
            username,
            password,
        })
    };
    Ok(file.auths.into_iter().filter_map(read).collect())
}

/// The ones for a registry; the first wins.
pub(super) fn for_registry(
    known: &[RegistryCredentials],
    registry: &str,
) -> Option<DockerCredentials> {
    let found = known
        .iter()
        .find(|known| host(&known.registry) == registry)?;
    Some(DockerCredentials {
        username: Some(found.username.clone()),
        password: Some(found.password.clone()),
        serveraddress: Some(registry.to_owned()),
        ..DockerCredentials::default()
    })
}

/// `https://index.docker.io/v1/` and the like are written for a host.
fn host(registry: &str) -> &str {
    let rest = registry
        .trim_start_matches("https://")
        .trim_start_matches("http://");
    match rest.split('/').next().unwrap_or_default() {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        host => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_found_by_host() {
        let file = br#"{"auths": {"https://index.docker.io/v1/": {"auth": "bWU6c2VjcmV0"},
            "r.example:5000": {"username": "you", "password": "p:w"}, "broken": {"auth": "?"}, "empty": {}}}"#;
        let known = read(file).unwrap();
        assert_eq!(known.len(), 2);
        let hub = for_registry(&known, "docker.io").unwrap();
        assert_eq!(hub.username.as_deref(), Some("me"));
        assert_eq!(hub.password.as_deref(), Some("secret"));
        let other = for_registry(&known, "r.example:5000").unwrap();
        assert_eq!(other.password.as_deref(), Some("p:w"));
        assert_eq!(for_registry(&known, "r.example"), None);
        assert!(!format!("{known:?}").contains("secret"));
        assert!(
            !read(b"{\"auths\": \"hunter2\"}")
                .unwrap_err()
                .contains("hunter2")
        );
    }
}
