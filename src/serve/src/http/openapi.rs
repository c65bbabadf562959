//! `/openapi.json`: our own description of the surface. Bodies and refusals are described in words, since their rules
//! are not those of JSON Schema.

use decision::json::write_string;

/// The document, with every path below `root_path`.
pub(super) fn document(root_path: &str) -> String {
    const TEMPLATE: &str = include_str!("openapi.json");
    let mut prefix = String::new();
    write_string(&mut prefix, root_path.trim_end_matches('/'));
    let prefix = &prefix[1..prefix.len() - 1];
    let document = TEMPLATE.replace("\"/", &format!("\"{prefix}/"));
    document.replace("VERSION", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_json_and_knows_every_path_with_its_prefix() {
        for (root, path) in [
            ("", "/v1/systemone"),
            ("/laya/", "/laya/v1/systemone"),
            ("/a\"b", "/a\"b/v1/systemone"),
        ] {
            let document: serde_json::Value = serde_json::from_str(&document(root)).expect(root);
            let paths = document["paths"].as_object().unwrap();
            assert_eq!(paths.len(), 7, "{root}");
            assert!(paths.contains_key(path), "{root}");
        }
    }
}
