//! Tables over small schemas. How objects are judged is told by the golden files under `tests/golden/schema`; these are
//! the things a server cannot be asked.

use serde_json::{Value, json};

use super::{CauseReason, Column, Definition, DefinitionError, Scale};

/// A CRD whose `spec` has this schema.
fn crd(spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.test.dev"},
        "spec": {
            "group": "test.dev", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

/// A CRD whose `spec` has one field `x` with this schema.
fn with_field(schema: &Value) -> Value {
    crd(&json!({"type": "object", "properties": {"x": schema}}))
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "test.dev/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec})
}

fn refusal(document: &Value) -> String {
    match Definition::compile(document) {
        Ok(_) => panic!("compiled: {document}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_keyword_that_is_not_implemented_is_refused_with_its_place() {
    let place = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[x]";
    for (schema, said) in [
        (json!({"type": "string", "patternProperties": {}}), "keyword patternProperties is not supported here"),
        (json!({"type": "string", "$ref": "#/x"}), "keyword $ref is not supported here"),
        (json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}), "keyword uniqueItems is not supported here"),
        (json!({"type": "object", "x-kubernetes-embedded-resource": true}), "keyword x-kubernetes-embedded-resource is not supported here"),
        (json!({"type": "string", "made-up": 1}), "keyword made-up is not supported here"),
    ] {
        assert_eq!(refusal(&with_field(&schema)), format!("{place}: {said}"));
    }
    assert_eq!(
        refusal(&with_field(&json!({"type": "string", "format": "email"}))),
        format!("{place}.format: format \"email\" of this type is not supported here")
    );
    assert_eq!(
        refusal(&with_field(&json!({"type": "null"}))),
        format!("{place}.type: type \"null\" is not supported here")
    );
}

#[test]
fn a_schema_that_is_not_structural_is_refused() {
    let named = json!({"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]});
    for (schema, said) in [
        (json!({}), "must not be empty for specified object fields"),
        (json!({"type": "array"}), "items: must be specified"),
        (json!({"type": "array", "items": {}}), "must not be empty for specified array items"),
        (json!({"type": "string", "items": {"type": "string"}}), "items: does not fit the type"),
        (json!({"type": "object", "additionalProperties": false}), "cannot be set to false"),
        (json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}), "mutual exclusive"),
        (json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}), "must be true or undefined"),
        (json!({"type": "array", "items": named, "x-kubernetes-list-type": "map"}), "must not be empty if x-kubernetes-list-type is map"),
        (json!({"type": "array", "items": named, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["q"]}), "entries must all be names of item properties"),
        (json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}), "must have a default or be a required property"),
        (json!({"type": "object", "anyOf": [{"type": "string"}]}), "type: must be empty to be structural"),
        (json!({"type": "object", "allOf": [{"properties": {"a": {"minLength": 1}}}]}), "must also be specified outside of the junctor"),
        (json!({"type": "object", "not": {"x-kubernetes-validations": []}}), "must be empty to be structural"),
        (json!({"type": "string", "x-kubernetes-int-or-string": true}), "must be empty if x-kubernetes-int-or-string is true"),
        (json!({"type": "string", "pattern": "(?=a)"}), "pattern \"(?=a)\""),
        (json!({"type": "string", "maxLength": -1}), "maxLength: must be a whole number that is not negative"),
    ] {
        let refused = refusal(&with_field(&schema));
        assert!(refused.contains(said), "{schema}: {refused}");
    }
}

#[test]
fn a_rule_that_cannot_be_evaluated_is_refused() {
    for (rule, said) in [
        (json!({"rule": "self ="}), "rule \"self =\""),
        (json!({"rule": "self.matches(other)"}), "undeclared reference to 'other'"),
        (json!({"rule": "self.frobnicate()"}), "function frobnicate is not known"),
        (json!({"rule": "self.?a.hasValue()"}), "is not known"),
        (json!({"rule": ""}), "rule is not specified"),
        (json!({"rule": "true", "message": "two\nlines"}), "message must be one line"),
        (json!({"rule": "true", "reason": "FieldValueTooLong"}), "is none of the API server's"),
        (json!({"rule": "true", "optionalOldSelf": true}), "optionalOldSelf is not supported here"),
        (json!({"rule": "true", "fieldPath": ".a"}), "does not refer to a valid field"),
        (json!({"rule": "true", "what": 1}), "keyword what is not supported here"),
    ] {
        let refused = refusal(&with_field(&json!({"type": "string", "x-kubernetes-validations": [rule]})));
        assert!(refused.contains(said), "{rule}: {refused}");
    }
    let below_a_list = json!({"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}});
    assert!(refusal(&with_field(&below_a_list)).contains("oldSelf cannot be used on the uncorrelatable portion"));
}

#[test]
fn a_default_that_its_own_schema_refuses_is_refused() {
    let reads = json!([{"rule": "self.a > 0"}]);
    for (schema, said) in [
        (json!({"type": "integer", "minimum": 1, "default": 0}), "should be greater than or equal to 1"),
        (json!({"type": "object", "properties": {"a": {"type": "integer"}}, "default": {"b": 1}}), "unknown field \"b\""),
        (json!({"type": "object", "properties": {"a": {"type": "integer", "default": 1}}, "default": {}, "x-kubernetes-validations": reads}), "no such key: a"),
    ] {
        let error = Definition::compile(&with_field(&schema)).map(|_| ()).unwrap_err();
        assert!(matches!(&error, DefinitionError::Default { path, problem } if path == "spec.x" && problem.contains(said)), "{error}");
    }
}

#[test]
fn a_document_that_we_cannot_serve_is_refused() {
    let good = crd(&json!({"type": "object"}));
    for (pointer, value, said) in [
        ("/kind", json!("Deployment"), "kind: must be CustomResourceDefinition"),
        ("/spec/scope", json!("Cluster"), "a scope other than Namespaced is not supported here"),
        ("/spec/versions", json!([]), "more or less than one version"),
        ("/spec/versions/0/storage", json!(false), "must be true for the only version"),
        ("/spec/versions/0/schema", json!({}), "openAPIV3Schema: is missing"),
        ("/spec/versions/0/schema/openAPIV3Schema/type", json!("string"), "must be object at the root"),
        ("/spec/names/plural", json!(5), "spec.names.plural: must be a string"),
        ("/spec/versions/0/schema/openAPIV3Schema/properties", json!({"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}), "must be object and not specify anything other than name and generateName"),
    ] {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap() = value;
        let refused = refusal(&document);
        assert!(refused.contains(said), "{pointer}: {refused}");
    }
    let mut document = good;
    document["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert!(refusal(&document).contains("conversion is not supported here"));
}

#[test]
fn names_columns_and_subresources_are_read() {
    let mut document = crd(&json!({"type": "object"}));
    document["spec"]["names"] = json!({"kind": "Thing", "plural": "things", "shortNames": ["th"], "categories": ["all"]});
    document["spec"]["versions"][0]["subresources"] =
        json!({"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}});
    document["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "N", "type": "integer", "jsonPath": ".spec.n", "priority": 1}]);
    let definition = Definition::compile(&document).unwrap();
    assert_eq!((definition.kind.as_str(), definition.list_kind.as_str()), ("Thing", "ThingList"));
    assert_eq!((definition.singular.as_str(), definition.plural.as_str()), ("thing", "things"));
    assert_eq!((definition.group.as_str(), definition.version.as_str()), ("test.dev", "v1"));
    assert_eq!((definition.short_names, definition.categories), (vec!["th".to_owned()], vec!["all".to_owned()]));
    assert!(definition.has_status);
    assert_eq!(
        definition.scale,
        Some(Scale { spec_replicas: ".spec.n".to_owned(), status_replicas: ".status.n".to_owned(), selector: None })
    );
    assert_eq!(
        definition.columns,
        [Column {
            name: "N".to_owned(),
            type_: "integer".to_owned(),
            format: None,
            description: String::new(),
            priority: 1,
            json_path: ".spec.n".to_owned(),
        }]
    );
}

#[test]
fn a_definition_can_be_shared_between_threads() {
    const fn shared<T: Send + Sync>() {}
    shared::<Definition>();
}

#[test]
fn an_object_of_another_kind_is_refused_for_that_alone() {
    let definition = Definition::compile(&with_field(&json!({"type": "string"}))).unwrap();
    let causes = definition.validate(&json!({"apiVersion": "test.dev/v2", "kind": "Thin", "spec": {"x": 5}}), None);
    let said: Vec<_> = causes.iter().map(|cause| (cause.field.as_str(), cause.message.as_str())).collect();
    assert_eq!(
        said,
        [
            ("kind", "Invalid value: \"Thin\": must be Thing"),
            ("apiVersion", "Invalid value: \"test.dev/v2\": must be test.dev/v1")
        ]
    );
}

#[test]
fn grave_faults_of_metadata_keep_rules_from_running() {
    let schema = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == 'a'", "message": "must be a"}]});
    let definition = Definition::compile(&with_field(&schema)).unwrap();
    let bad = object(&json!({"x": "b"}));
    let earlier = |reason| super::Cause { reason, message: "m".to_owned(), field: "metadata.name".to_owned() };
    for (reason, last) in [(CauseReason::Required, "<nil>"), (CauseReason::Invalid, "spec.x")] {
        let causes = definition.validate_after(vec![earlier(reason)], &bad, None);
        assert_eq!(causes.len(), 2, "{causes:?}");
        assert_eq!((causes[0].reason, causes[1].field.as_str()), (reason, last));
    }
}

#[test]
fn a_rule_sees_of_metadata_only_the_name() {
    let mut document = crd(&json!({"type": "object"}));
    document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] =
        json!([{"rule": "!has(self.metadata.labels) && self.metadata.name == 't' && self.kind == 'Thing'"}]);
    let definition = Definition::compile(&document).unwrap();
    let mut labelled = object(&json!({}));
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(definition.validate(&labelled, None), []);
}
