//! Every document of `docs/examples` is one that the schemas take, as it stands there.

use std::collections::BTreeMap;
use std::path::Path;

use objects::schema::Definition;
use serde_json::Value;

#[test]
fn every_example_is_accepted() {
    let definitions: BTreeMap<&str, Definition> = api::crds::DOCUMENTS
        .iter()
        .map(|(kind, text)| {
            let crd = api::document::read_yaml(text).unwrap();
            (*kind, Definition::compile(&crd).unwrap())
        })
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let documents = api::document::read_yaml_stream::<Value>(&text).unwrap();
        assert!(!documents.is_empty(), "{}", path.display());
        for mut document in documents {
            let kind = document["kind"].as_str().unwrap_or_default().to_owned();
            let Some(definition) = definitions.get(kind.as_str()) else {
                panic!("{}: {kind:?} is no kind of ours", path.display());
            };
            let said = format!(
                "{}: {kind} {}",
                path.display(),
                document["metadata"]["name"]
            );
            assert_eq!(
                definition.unknown_fields(&document),
                Vec::<String>::new(),
                "{said}"
            );
            definition.default(&mut document);
            assert_eq!(definition.validate(&document, None), [], "{said}");
            *seen.entry(kind).or_default() += 1;
        }
    }
    let kinds: Vec<&str> = seen.keys().map(String::as_str).collect();
    let all: Vec<&str> = definitions.keys().copied().collect();
    assert_eq!(kinds, all, "an example of each kind");
}
