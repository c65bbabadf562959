//! A server that a kubeconfig names, over HTTPS with its own certificate and a bearer token.

use std::path::Path;
use std::time::Duration;

use api::document::read_yaml;
use serde_json::Value;
use ureq::http::Request;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::target::{Ask, Target, Told, body_of};

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Largest answer that is read, in bytes.
const MAX_ANSWER: u64 = 64 << 20;

/// The server, as one of its users.
pub(crate) struct Remote {
    name: &'static str,
    agent: ureq::Agent,
    address: String,
    token: String,
}

impl Remote {
    /// The current context of a kubeconfig.
    pub(crate) fn of_kubeconfig(name: &'static str, path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        let config = read_yaml(&text).unwrap();
        let context = named(&config, "contexts", &config["current-context"]);
        let cluster = &named(&config, "clusters", &context["context"]["cluster"])["cluster"];
        let user = &named(&config, "users", &context["context"]["user"])["user"];
        let certificate = from_base64(cluster["certificate-authority-data"].as_str().unwrap());
        let certificate = Certificate::from_pem(&certificate).unwrap();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&[certificate]))
            .build();
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(PATIENCE))
            .max_redirects(0)
            .proxy(None)
            .tls_config(tls)
            .build();
        Self {
            name,
            agent: ureq::Agent::new_with_config(config),
            address: cluster["server"].as_str().unwrap().to_owned(),
            token: user["token"].as_str().unwrap().to_owned(),
        }
    }
}

impl Target for Remote {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ask(&self, ask: &Ask) -> Told {
        let url = format!("{}{}", self.address, ask.path);
        let bearer = format!("Bearer {}", self.token);
        let sent = if ask.method == "DELETE" && !ask.body.is_empty() {
            // A body of a DELETE is unusual enough for the client to want it said.
            let request = self.agent.delete(&url).header("authorization", bearer);
            let request = request.header("content-type", ask.content_type);
            request.force_send_body().send(&ask.body[..])
        } else {
            let request = Request::builder().method(ask.method).uri(&url);
            let request = request.header("authorization", bearer);
            if ask.body.is_empty() {
                self.agent.run(request.body(()).unwrap())
            } else {
                let request = request.header("content-type", ask.content_type);
                self.agent.run(request.body(&ask.body[..]).unwrap())
            }
        };
        let mut response = sent.unwrap_or_else(|error| panic!("{}: {error}", ask.path));
        let code = response.status().as_u16();
        let body = response.body_mut().with_config().limit(MAX_ANSWER);
        let body = body_of(&body.read_to_vec().unwrap());
        Told { code, body }
    }
}

/// The entry of a kubeconfig's list that has a name.
fn named<'a>(config: &'a Value, list: &str, name: &Value) -> &'a Value {
    let entries = config[list].as_array().unwrap();
    entries
        .iter()
        .find(|entry| entry["name"] == *name)
        .unwrap_or_else(|| panic!("no {name} in {list}"))
}

/// Base64 is what stands in a PEM block, so its reader does for any bytes.
fn from_base64(text: &str) -> Vec<u8> {
    let block = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
    let block = Certificate::from_pem(block.as_bytes()).unwrap();
    block.der().to_vec()
}
