//! Our CRDs as they are shipped, in `crds/`.

use std::path::PathBuf;

use api::document::read_yaml;
use serde_json::Value;

use crate::corpus::Kind;

/// Where they are.
pub(crate) fn folder() -> PathBuf {
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .parent()
        .unwrap()
        .join("crds")
        .canonicalize()
        .unwrap()
}

/// Each with its kind.
pub(crate) fn all() -> Vec<(Kind, Value)> {
    let mut found: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let crd = read_yaml(&std::fs::read_to_string(&path).unwrap())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (
                Kind::named(crd["spec"]["names"]["kind"].as_str().unwrap()),
                crd,
            )
        })
        .collect();
    found.sort_by_key(|(kind, _)| kind.kind);
    found
}

/// The schema of a CRD's only version.
pub(crate) fn schema(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}
