//! Requests that no client of ours sends: they are refused, and nothing else suffers. And the one that only `kubectl` sends.

use serde_json::{Value, json};

use crate::support::{Home, POLICIES, REVISIONS, at, policy};

const NAMESPACES: &str = "/api/v1/namespaces";

fn revision(data: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "r"}, "data": data, "revision": 1,
    })
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }))
}

#[tokio::test]
async fn a_json_patch_that_multiplies_or_nests_without_end_is_refused() {
    let home = Home::new();
    let made = home.made(POLICIES, &policy("one")).await;
    let one = at(POLICIES, "one");
    let mut multiplies =
        vec![json!({"op": "add", "path": "/x", "value": {"a": "x".repeat(1_000)}})];
    multiplies.extend(
        (0..40).map(|number| json!({"op": "copy", "from": "/x", "path": format!("/x/c{number}")})),
    );
    // Each operation hangs fifty levels below the last.
    let mut deeper = vec![json!({"op": "add", "path": "/x", "value": {}})];
    let mut path = "/x".to_owned();
    for _ in 0..100 {
        deeper.push(json!({"op": "add", "path": format!("{path}/a"), "value": nested(50)}));
        path.push_str(&"/a".repeat(50));
    }
    // And this one doubles its depth with each.
    let mut doubles = vec![json!({"op": "add", "path": "/x", "value": {"a": {}}})];
    let mut path = "/x/a".to_owned();
    for _ in 0..16 {
        doubles.push(json!({"op": "copy", "from": "/x", "path": format!("{path}/a")}));
        path = format!("{path}/a{}", &path[2..]);
        if path.len() > 60_000 {
            break;
        }
    }
    for (what, patch) in [
        ("multiplies", multiplies),
        ("deeper", deeper),
        ("doubles", doubles),
    ] {
        let (code, status) = home.json_patch(&one, &Value::Array(patch)).await;
        assert_eq!(
            (code, &status["reason"]),
            (422, &json!("Invalid")),
            "{what}: {status}"
        );
    }
    assert_eq!(home.get(&one).await, (200, made), "nothing changed");
}

#[tokio::test]
async fn what_clients_could_not_read_inside_of_a_list_is_not_stored() {
    let home = Home::new();
    for (levels, code) in [(98, 201), (99, 400), (120, 400), (100_000, 400)] {
        let body = format!(
            "{{\"apiVersion\":\"apps/v1\",\"kind\":\"ControllerRevision\",\"metadata\":{{\"name\":\"r{levels}\"}},\
             \"revision\":1,\"data\":{{\"x\":{}1{}}}}}",
            "[".repeat(levels),
            "]".repeat(levels)
        );
        let (got, status) = home
            .send("POST", REVISIONS, ("application/json", body))
            .await;
        assert_eq!(got, code, "{levels}: {status}");
    }
    let client = home.client();
    let api: kube::Api<k8s_openapi::api::apps::v1::ControllerRevision> =
        kube::Api::default_namespaced(client);
    let list = api.list(&kube::api::ListParams::default()).await.unwrap();
    assert_eq!(list.items.len(), 1);
}

#[tokio::test]
async fn no_time_of_a_watch_is_too_long() {
    let home = Home::new();
    for seconds in ["9223372036854775807", "86400", "-1", "0"] {
        let path = format!("{POLICIES}?watch=1&timeoutSeconds={seconds}");
        let mut watch = home.watch(&path).await;
        let name = format!("w{}", seconds.replace('-', "m"));
        home.made(POLICIES, &policy(&name)).await;
        while watch.brief().await.1 != name {}
    }
}

#[tokio::test]
async fn options_of_a_delete_that_cannot_be_read_delete_nothing() {
    let home = Home::new();
    home.made(POLICIES, &policy("one")).await;
    let one = at(POLICIES, "one");
    for options in [
        json!({"dryRun": "All"}),
        json!({"preconditions": {"uid": 5}}),
        json!({"preconditions": {"resourceVersion": 4711}}),
        json!({"preconditions": "x"}),
        json!({"propagationPolicy": 1}),
        json!({"orphanDependents": "yes"}),
        json!([]),
    ] {
        let (code, status) = home.delete_with(&one, &options).await;
        assert_eq!(code, 400, "{options}: {status}");
    }
    for options in [
        json!({"dryRun": ["Some"]}),
        json!({"dryRun": ["All", "Some"]}),
        json!({"orphanDependents": true, "propagationPolicy": "Background"}),
    ] {
        let (code, status) = home.delete_with(&one, &options).await;
        assert_eq!(code, 422, "{options}: {status}");
    }
    for query in ["dryRun=All", "dryRun=All&dryRun=", "dryRun=&dryRun=All"] {
        assert_eq!(
            home.delete(&format!("{one}?{query}")).await.0,
            200,
            "{query}"
        );
        assert_eq!(home.get(&one).await.0, 200, "{query} deleted it");
    }
}

#[tokio::test]
async fn odd_bytes_and_numbers_are_refused_or_kept() {
    let home = Home::new();
    let body = |text: &str| format!("{{\"metadata\":{{\"name\":\"n\"}}{text}}}");
    for (text, code) in [
        (body(",\"x\":1e999"), 400),
        (body(",\"x\":99999999999999999999999"), 400),
        (body("") + "x", 400),
        (body("\u{0}"), 400),
        ("[1]".to_owned(), 400),
        (String::new(), 400),
        ("{\"metadata\":{\"name\":\"a\\u0000b\"}}".to_owned(), 422),
        (
            "{\"metadata\":{\"name\":\"ok\",\"annotations\":{\"a\":\"x\\u0000y\"}}}".to_owned(),
            201,
        ),
    ] {
        let (got, status) = home
            .send("POST", NAMESPACES, ("application/json", text.clone()))
            .await;
        assert_eq!(got, code, "{text:?}: {status}");
    }
    let (_, ok) = home.get(&at(NAMESPACES, "ok")).await;
    assert_eq!(ok["metadata"]["annotations"]["a"], "x\u{0}y");
    for query in [
        "labelSelector=a%00",
        "fieldSelector=metadata.name%3D%ff%00",
        "continue=%00",
        "limit=99999999999999999999",
    ] {
        let (code, answer) = home.get(&format!("{NAMESPACES}?{query}")).await;
        assert!(
            code == 400 || (code == 200 && answer["items"] == json!([])),
            "{query}: {answer}"
        );
    }
}

#[tokio::test]
async fn a_list_goes_on_only_where_it_can_have_begun() {
    let home = Home::new();
    let token = r#"{"v":"relay.dev/v1","rv":4711,"namespace":"","name":""}"#;
    let token: String = token.bytes().map(|byte| format!("{byte:02x}")).collect();
    let (code, status) = home
        .get(&format!("{POLICIES}?limit=1&continue={token}"))
        .await;
    assert_eq!(
        (code, &status["reason"]),
        (410, &json!("Expired")),
        "{status}"
    );
}

#[tokio::test]
async fn the_largest_object_can_still_go() {
    let home = Home::new();
    let mut large = revision(&json!({"x": ""}));
    large["metadata"]["finalizers"] = json!(["relay.dev/x"]);
    let (_, made) = home.post(&format!("{REVISIONS}?dryRun=All"), &large).await;
    let room = (1 << 20) - made.to_string().len() - r#""resourceVersion":"2","#.len();
    large["data"]["x"] = "x".repeat(room + 1).into();
    assert_eq!(
        home.post(REVISIONS, &large).await.0,
        413,
        "one byte more than an object may have"
    );
    large["data"]["x"] = "x".repeat(room).into();
    home.made(REVISIONS, &large).await;
    let r = at(REVISIONS, "r");
    let (code, status) = home.delete(&r).await;
    assert_eq!(code, 200, "{}", status["message"]);
    home.merge(&r, &json!({"metadata": {"finalizers": null}}))
        .await;
    assert_eq!(home.get(&r).await.0, 404);
}

#[tokio::test]
async fn kubectl_create_namespace_is_understood_though_it_speaks_protobuf_only() {
    let home = Home::new();
    let sent = "k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x19\n\x11\n\x01x\x12\0\x1a\0\"\0*\x002\x008\0B\0\x12\0\x1a\x02\n\0\x1a\0\"\0";
    let protobuf = "application/vnd.kubernetes.protobuf";
    let (code, made) = home
        .send("POST", NAMESPACES, (protobuf, sent.to_owned()))
        .await;
    assert_eq!(
        (code, &made["metadata"]["name"]),
        (201, &json!("x")),
        "{made}"
    );
    let (code, _) = home
        .send("POST", NAMESPACES, (protobuf, sent.replace('x', "")))
        .await;
    assert_eq!(code, 400);
    let (code, _) = home
        .send("POST", POLICIES, (protobuf, sent.to_owned()))
        .await;
    assert_eq!(code, 415, "nothing else is read from it");
}
