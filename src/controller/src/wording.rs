//! The wording of a version's questions as a stored document (control-plane 2): an `apps/v1 ControllerRevision` named
//! after the digest of its contract, so that routers can ask each version in its own words. A document holds the text of
//! `decisions.json`, since the order of its keys is part of the contract and trees lose it. One that holds the tree is read
//! too where its questions are Relay's in other words: then their order is known.

use decision::contract::{Criteria, ImportError};
use decision::{Contract, relay_contract};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::{Api, Client};
use serde_json::{Map, Value, json};

use crate::failure::Failure;

/// Hex digits of the digest in the name of a document.
const DIGITS: usize = 12;

/// Name of the document with the wording of a contract.
#[must_use]
pub fn document_name(contract: &str) -> String {
    let hex = contract.strip_prefix("sha256:").unwrap_or(contract);
    let short: String = hex.chars().take(DIGITS).collect();
    format!("contract-{short}")
}

/// Where in a document the text is; its data must be an object.
const TEXT: &str = "decisions.json";

/// What a document holds: the text of `decisions.json` as it is.
#[must_use]
pub fn document_data(decisions: &str) -> RawExtension {
    RawExtension(json!({ TEXT: decisions }))
}

/// The contract of a `decisions.json`: its text, what a document of it holds, or the tree of it. A tree has lost its order;
/// if its questions and options are Relay's, Relay's order is that of the contract.
///
/// # Errors
/// What is wrong with it, with its place.
pub fn contract(data: &Value) -> Result<Contract, ImportError> {
    let text = match data {
        Value::String(text) => text.clone(),
        tree => match tree.get(TEXT).and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => in_our_order(tree).unwrap_or_else(|| tree.to_string()),
        },
    };
    Contract::import(text.as_bytes())
}

/// The contract that a document holds, if it is the one with this digest.
#[must_use]
pub fn document_contract(data: &Value, digest: &str) -> Option<Contract> {
    let found = contract(data).ok()?;
    (found.digest().to_string() == digest).then_some(found)
}

/// The text of `decisions.json` with the questions and options of an object in the order of ours.
fn in_our_order(data: &Value) -> Option<String> {
    let decisions = data.get("decisions")?.as_object()?;
    let ours = relay_contract().questions();
    if decisions.len() != ours.len() {
        return None;
    }
    let mut whole = Vec::new();
    for key in ["description", "language"] {
        whole.extend(data.get(key).map(|value| member(key, &value.to_string())));
    }
    let mut questions = Vec::new();
    for question in ours {
        let definition = decisions.get(&question.id)?.as_object()?;
        let mut fields = Vec::new();
        for (key, value) in definition {
            let value = match (&question.criteria, value) {
                (Criteria::Choice(options), Value::Object(texts)) if key == "criteria" => {
                    let order = options.iter().map(|option| option.id.as_str());
                    ordered(texts, order)?
                }
                _ => value.to_string(),
            };
            fields.push(member(key, &value));
        }
        let definition = format!("{{{}}}", fields.join(","));
        questions.push(member(&question.id, &definition));
    }
    whole.push(member("decisions", &format!("{{{}}}", questions.join(","))));
    Some(format!("{{{}}}", whole.join(",")))
}

fn ordered<'a>(texts: &Map<String, Value>, order: impl Iterator<Item = &'a str>) -> Option<String> {
    let members: Option<Vec<_>> = order
        .map(|key| Some(member(key, &texts.get(key)?.to_string())))
        .collect();
    let members = members?;
    (members.len() == texts.len()).then(|| format!("{{{}}}", members.join(",")))
}

fn member(key: &str, value: &str) -> String {
    format!("{}:{value}", Value::from(key))
}

/// Reads the wording of a contract from its document.
///
/// # Errors
/// When the API does not answer, there is no such document, or it does not hold what its name says.
pub async fn read(client: &Client, namespace: &str, contract: &str) -> Result<Contract, Failure> {
    let name = document_name(contract);
    let what = || format!("ControllerRevision {namespace}/{name}");
    let api = Api::<ControllerRevision>::namespaced(client.clone(), namespace);
    let document = api.get(&name).await;
    let document = document.map_err(|error| Failure::of("get", what(), &error))?;
    let data = document.data.map(|data| data.0).unwrap_or_default();
    document_contract(&data, contract).ok_or_else(|| Failure::Refused {
        verb: "get",
        resource: what(),
        message: "it does not hold the questions of its digest".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use decision::RELAY_DECISIONS_JSON;

    use super::*;

    #[test]
    fn a_wording_is_found_again_as_text_and_as_an_object_that_lost_its_order() {
        let text =
            RELAY_DECISIONS_JSON.replace("\"instructions\": \"", "\"instructions\": \"Now: ");
        let reworded = Contract::import(text.as_bytes()).unwrap();
        let digest = reworded.digest().to_string();
        assert_ne!(digest, relay_contract().digest().to_string());
        let tree: Value = serde_json::from_str(&text).unwrap();
        let mut less = tree.clone();
        less["decisions"].as_object_mut().unwrap().remove("risk");
        let mut more = tree.clone();
        more["decisions"]["agent"]["criteria"]["poet"] = Value::Null;
        let other = RELAY_DECISIONS_JSON.to_owned();
        for (name, data, found) in [
            ("a document", document_data(&text).0, true),
            ("text", Value::from(text.clone()), true),
            ("an object", tree, true),
            ("a question less", less, false),
            ("an option more", more, false),
            ("another wording", Value::from(other), false),
            ("no JSON", Value::from("{"), false),
            ("nothing", Value::Null, false),
        ] {
            let contract = document_contract(&data, &digest);
            assert_eq!(contract.is_some(), found, "{name}");
            if let Some(contract) = contract {
                assert_eq!(contract, reworded, "{name}");
            }
        }
        assert_eq!(
            document_name(&digest),
            format!("contract-{}", &digest[7..19])
        );
        assert_eq!(document_name(&digest).len(), "contract-".len() + DIGITS);
    }
}
