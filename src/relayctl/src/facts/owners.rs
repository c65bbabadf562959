//! Who owns which field, by `metadata.managedFields`.

use api::field_manager;
use serde_json::Value;

/// Managers that are not programs of ours and own a field, so that they will write it again. A path is its parts below the
/// object, as `["spec", "modelRef"]`.
pub(crate) fn foreign_owners(object: &Value, path: &[&str]) -> Vec<String> {
    let is_foreign = |manager: &&str| !field_manager::ALL.contains(manager);
    owners(object, path)
        .filter(is_foreign)
        .map(str::to_owned)
        .collect()
}

fn owners<'a>(object: &'a Value, path: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .filter(|entry| entry["subresource"].as_str().unwrap_or_default().is_empty())
        .filter(move |entry| {
            let mut fields = &entry["fieldsV1"];
            for part in path {
                fields = &fields[format!("f:{part}")];
            }
            !fields.is_null()
        })
        .filter_map(|entry| entry["manager"].as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_others_who_name_the_field_are_told_of() {
        let entry = |manager: &str, subresource: &str, fields: Value| json!({"manager": manager, "subresource": subresource, "fieldsV1": fields});
        let model = json!({"f:spec": {"f:modelRef": {"f:name": {}}}});
        let paused = json!({"f:spec": {"f:rollout": {"f:paused": {}}}});
        let object = json!({"metadata": {"managedFields": [
            entry("relayctl", "", model.clone()),
            entry("argocd-controller", "", model.clone()),
            entry("relay-controller", "status", json!({"f:status": {}})),
            entry("flux", "", paused),
            entry("kubectl", "status", model),
        ]}});
        assert_eq!(
            foreign_owners(&object, &["spec", "modelRef"]),
            ["argocd-controller"]
        );
        assert_eq!(
            foreign_owners(&object, &["spec", "rollout", "paused"]),
            ["flux"]
        );
        assert!(foreign_owners(&object, &["spec", "rollout", "abort"]).is_empty());
        assert!(foreign_owners(&json!({}), &["spec"]).is_empty());
    }
}
