//! What kubectl asks for: tables, metadata alone, discovery, OpenAPI, versions.

use serde_json::{Value, json};

use crate::support::{Hand, Home, POLICIES, at, policy};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

#[tokio::test]
async fn a_table_has_the_columns_of_the_kind_and_ages() {
    let hand = Hand::new();
    let home = Home::with(hand.options());
    home.made(POLICIES, &policy("one")).await;
    let status = json!({"status": {"acceptedRevision": "r1", "conditions": [
        {"type": "Ready", "status": "False", "reason": "Waiting", "message": "", "lastTransitionTime": "2026-11-30T12:00:00Z"},
        {"type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "lastTransitionTime": "2026-11-30T12:00:00Z"},
    ]}});
    let (code, told) = home.merge(&at(POLICIES, "one/status"), &status).await;
    assert_eq!(code, 200, "{told}");
    hand.forward(3);
    let (code, table) = home.get_as(POLICIES, TABLE).await;
    assert_eq!(code, 200);
    assert_eq!(
        (&table["kind"], &table["apiVersion"]),
        (&json!("Table"), &json!("meta.k8s.io/v1"))
    );
    let names: Vec<_> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "Name", "Profile", "Accepted", "Reason", "Revision", "Age", "Server", "Models", "Rules"
        ]
    );
    let cell = |name: &str| {
        let at = names.iter().position(|column| *column == name).unwrap();
        table["rows"][0]["cells"][at].clone()
    };
    assert_eq!(cell("Name"), "one");
    assert_eq!(cell("Accepted"), "True");
    assert_eq!(cell("Reason"), "Accepted");
    assert_eq!(cell("Age"), "3h");
    assert_eq!(cell("Models"), Value::Null);
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let (_, one) = home
        .get_as(&format!("{POLICIES}/one?includeObject=Object"), TABLE)
        .await;
    assert_eq!(
        one["rows"][0]["object"]["spec"]["serverRef"]["name"],
        "main"
    );
    let mut watch = home.watch_as(&format!("{POLICIES}?watch=1"), TABLE).await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["object"]["rows"][0]["cells"][0], "one");
    assert!(event["object"]["columnDefinitions"].is_array());
    home.merge(
        &at(POLICIES, "one"),
        &json!({"metadata": {"labels": {"a": "b"}}}),
    )
    .await;
    let event = watch.next().await.unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["columnDefinitions"]),
        (&json!("MODIFIED"), &Value::Null)
    );
}

#[tokio::test]
async fn metadata_alone_is_shown_where_it_was_asked_for() {
    let home = Home::new();
    home.made(POLICIES, &policy("one")).await;
    let (_, list) = home.get_as(POLICIES, METADATA).await;
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0].get("spec"), None);
    let (code, status) = home
        .get_as(POLICIES, "application/vnd.kubernetes.protobuf")
        .await;
    assert_eq!((code, &status["reason"]), (406, &json!("NotAcceptable")));
    assert_eq!(
        home.get_as(POLICIES, "application/vnd.kubernetes.protobuf,*/*")
            .await
            .0,
        200
    );
}

#[tokio::test]
async fn discovery_names_every_kind_and_part() {
    let home = Home::new();
    assert_eq!(home.get("/api").await.1["versions"], json!(["v1"]));
    let (_, groups) = home.get("/apis").await;
    let names: Vec<_> = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["name"].clone())
        .collect();
    assert_eq!(names, ["apps", "events.k8s.io", "relay.dev"]);
    assert_eq!(
        home.get("/apis/relay.dev").await.1["preferredVersion"]["version"],
        "v1alpha1"
    );
    let (_, resources) = home.get("/apis/relay.dev/v1alpha1").await;
    let resources = resources["resources"].as_array().unwrap();
    let find = |name: &str| {
        resources
            .iter()
            .find(|resource| resource["name"] == name)
            .unwrap()
    };
    assert_eq!(find("routingpolicies")["shortNames"], json!(["rp"]));
    assert_eq!(find("routingpolicies")["categories"], json!(["relay"]));
    assert_eq!(find("layaservers/scale")["kind"], "Scale");
    assert_eq!(resources.len(), 11, "five kinds, five statuses, one scale");
    let aggregated =
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let (_, all) = home.get_as("/apis", aggregated).await;
    assert_eq!(all["kind"], "APIGroupDiscoveryList");
    let (_, core) = home.get_as("/api", aggregated).await;
    let plain: Vec<_> = core["items"][0]["versions"][0]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["resource"].clone())
        .collect();
    assert_eq!(plain, ["namespaces", "events"]);
    assert_eq!(home.get("/readyz").await, (200, json!("ok")));
    assert_eq!(home.get("/version").await.1["gitVersion"], "v1.35.4-relay");
}

#[tokio::test]
async fn open_api_says_what_kubectl_looks_for() {
    let home = Home::new();
    let (_, index) = home.get("/openapi/v3").await;
    let url = index["paths"]["apis/relay.dev/v1alpha1"]["serverRelativeURL"]
        .as_str()
        .unwrap();
    let (code, document) = home.get(url).await;
    assert_eq!(code, 200);
    let kind = json!({"group": "relay.dev", "version": "v1alpha1", "kind": "RoutingPolicy"});
    let schema = &document["components"]["schemas"]["dev.relay.v1alpha1.RoutingPolicy"];
    assert_eq!(schema["x-kubernetes-group-version-kind"], json!([kind]));
    assert!(schema["properties"]["spec"]["properties"]["tiers"].is_object());
    let patch = &document["paths"]["/apis/relay.dev/v1alpha1/namespaces/{namespace}/routingpolicies/{name}"]
        ["patch"];
    assert_eq!(patch["x-kubernetes-group-version-kind"], kind);
    assert!(
        patch["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .any(|parameter| parameter["name"] == "fieldValidation")
    );
    assert_eq!(home.get("/openapi/v2").await.0, 404);
}

#[tokio::test]
async fn what_does_not_exist_is_not_found_and_what_cannot_be_done_not_allowed() {
    let home = Home::new();
    for (method, path, code) in [
        ("GET", "/", 404),
        ("GET", "/apis/relay.dev/v2", 404),
        ("GET", "/apis/relay.dev/v1alpha1/unknown", 404),
        ("GET", "/apis/relay.dev/v1alpha1/routingpolicies/one", 404),
        ("GET", "/api/v1/namespaces/default/routingpolicies", 404),
        ("POST", "/apis/relay.dev/v1alpha1/routingpolicies", 405),
        ("POST", "/version", 405),
        ("DELETE", "/api/v1/namespaces", 405),
        (
            "DELETE",
            "/apis/relay.dev/v1alpha1/namespaces/default/routingpolicies/one/status",
            405,
        ),
        (
            "GET",
            "/apis/relay.dev/v1alpha1/namespaces/default/routingpolicies/one/log",
            404,
        ),
    ] {
        let (got, status) = home.send(method, path, ("", String::new())).await;
        assert_eq!(
            (got, &status["kind"]),
            (code, &json!("Status")),
            "{method} {path}: {status}"
        );
    }
}
