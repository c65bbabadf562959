//! Create, get, update, patch, delete: the table of control-plane 9, row by row.

use serde_json::{Value, json};

use crate::support::{Home, POLICIES, REVISIONS, SERVERS, at, policy, server, version};

#[tokio::test]
async fn a_new_object_gets_what_the_server_says_of_it() {
    let home = Home::new();
    let mut sent = policy("one");
    sent["metadata"]["uid"] = "mine".into();
    sent["metadata"]["generation"] = 9.into();
    sent["status"] = json!({"observedGeneration": 3});
    let made = home.made(POLICIES, &sent).await;
    let metadata = &made["metadata"];
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["generation"], 1);
    assert_ne!(metadata["uid"], "mine");
    assert_eq!(metadata["uid"].as_str().map(str::len), Some(36));
    assert!(
        metadata["creationTimestamp"]
            .as_str()
            .unwrap()
            .ends_with('Z')
    );
    assert_eq!(metadata["managedFields"][0]["manager"], "tester");
    assert_eq!(made.get("status"), None, "create never sets the status");
    let (code, read) = home.get(&at(POLICIES, "one")).await;
    assert_eq!((code, &read), (200, &made));
}

#[tokio::test]
async fn a_name_is_taken_once_and_another_time_it_is_another_object() {
    let home = Home::new();
    let first = home.made(POLICIES, &policy("one")).await;
    let (code, status) = home.post(POLICIES, &policy("one")).await;
    assert_eq!(code, 409);
    assert_eq!(status["reason"], "AlreadyExists");
    assert_eq!(
        status["message"],
        "routingpolicies.relay.dev \"one\" already exists"
    );
    assert_eq!(
        status["details"],
        json!({"name": "one", "group": "relay.dev", "kind": "routingpolicies"})
    );
    let (code, gone) = home.delete(&at(POLICIES, "one")).await;
    assert_eq!((code, &gone["status"]), (200, &json!("Success")));
    assert_eq!(gone["details"]["uid"], first["metadata"]["uid"]);
    let (code, status) = home.get(&at(POLICIES, "one")).await;
    assert_eq!(code, 404);
    assert_eq!(
        status["message"],
        "routingpolicies.relay.dev \"one\" not found"
    );
    let second = home.made(POLICIES, &policy("one")).await;
    assert_ne!(second["metadata"]["uid"], first["metadata"]["uid"]);
    let uid = first["metadata"]["uid"].as_str().unwrap();
    assert!(home.store.was_deleted(uid).await.unwrap(), "a tombstone");
}

#[tokio::test]
async fn a_generated_name_has_five_more_letters() {
    let home = Home::new();
    let mut sent = policy("x");
    sent["metadata"] = json!({"generateName": "run-"});
    let made = home.made(POLICIES, &sent).await;
    let name = made["metadata"]["name"].as_str().unwrap();
    assert_eq!((name.len(), &name[..4]), (9, "run-"));
}

#[tokio::test]
async fn the_version_grows_by_one_with_each_write_and_not_without() {
    let home = Home::new();
    let made = home.made(POLICIES, &policy("one")).await;
    let one = at(POLICIES, "one");
    let (code, same) = home.put(&one, &made).await;
    assert_eq!((code, &same), (200, &made), "no change is no write");
    let (_, same) = home
        .merge(&one, &json!({"spec": {"serverRef": {"name": "main"}}}))
        .await;
    assert_eq!(version(&same), version(&made));
    let (_, other) = home
        .merge(&one, &json!({"metadata": {"labels": {"a": "b"}}}))
        .await;
    assert_eq!(version(&other), version(&made) + 1);
    let server = home.made(SERVERS, &server("main")).await;
    assert_eq!(
        version(&server),
        version(&made) + 2,
        "one counter for all kinds"
    );
}

#[tokio::test]
async fn the_generation_counts_changes_of_the_wish_alone() {
    let home = Home::new();
    home.made(POLICIES, &policy("one")).await;
    let one = at(POLICIES, "one");
    let generation = |object: &Value| object["metadata"]["generation"].as_i64();
    let (_, labelled) = home
        .merge(&one, &json!({"metadata": {"labels": {"a": "b"}}}))
        .await;
    assert_eq!(generation(&labelled), Some(1));
    let status = json!({"status": {"observedGeneration": 1}});
    let (code, told) = home.merge(&at(&one, "status"), &status).await;
    assert_eq!((code, generation(&told)), (200, Some(1)), "{told}");
    let (_, changed) = home
        .merge(&one, &json!({"spec": {"serverRef": {"name": "other"}}}))
        .await;
    assert_eq!(generation(&changed), Some(2));
    let (_, held) = home
        .merge(&one, &json!({"metadata": {"finalizers": ["relay.dev/x"]}}))
        .await;
    assert_eq!(generation(&held), Some(2));
    let (_, deleting) = home.delete(&one).await;
    assert_eq!(generation(&deleting), Some(3), "deletionTimestamp counts");
}

#[tokio::test]
async fn status_changes_only_status_and_others_never_do() {
    let home = Home::new();
    let made = home.made(POLICIES, &policy("one")).await;
    let one = at(POLICIES, "one");
    let mut sent = made.clone();
    sent["status"] = json!({"observedGeneration": 1});
    sent["spec"]["serverRef"]["name"] = "other".into();
    sent["metadata"]["labels"] = json!({"a": "b"});
    let (code, told) = home.put(&at(&one, "status"), &sent).await;
    assert_eq!(code, 200, "{told}");
    assert_eq!(told["status"], json!({"observedGeneration": 1}));
    assert_eq!(told["spec"], made["spec"]);
    assert_eq!(told["metadata"].get("labels"), None);
    let mut sent = told.clone();
    sent["status"] = json!({"observedGeneration": 7});
    sent["spec"]["serverRef"]["name"] = "third".into();
    let (code, changed) = home.put(&one, &sent).await;
    assert_eq!(code, 200, "{changed}");
    assert_eq!(changed["status"], told["status"]);
    assert_eq!(changed["spec"]["serverRef"]["name"], "third");
    let entries = changed["metadata"]["managedFields"].as_array().unwrap();
    let parts: Vec<_> = entries
        .iter()
        .map(|entry| entry["subresource"].as_str())
        .collect();
    assert!(parts.contains(&Some("status")), "{parts:?}");
}

#[tokio::test]
async fn an_old_version_is_a_conflict_and_none_is_invalid() {
    let home = Home::new();
    let made = home.made(POLICIES, &policy("one")).await;
    let one = at(POLICIES, "one");
    home.merge(&one, &json!({"metadata": {"labels": {"a": "b"}}}))
        .await;
    let (code, status) = home.put(&one, &made).await;
    assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on routingpolicies.relay.dev \"one\": the object has been modified; please apply \
         your changes to the latest version and try again"
    );
    let (code, status) = home.put(&one, &policy("one")).await;
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "routingpolicies.relay.dev \"one\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for \
         an update"
    );
    let old = made["metadata"]["resourceVersion"].clone();
    let (code, _) = home
        .merge(
            &one,
            &json!({"metadata": {"resourceVersion": old}, "spec": {"serverRef": {"name": "x"}}}),
        )
        .await;
    assert_eq!(code, 409, "a patch may name a version");
    let (code, status) = home
        .merge(&one, &json!({"metadata": {"uid": "other"}}))
        .await;
    assert_eq!(
        code, 422,
        "a patch cannot say which object of the name it means"
    );
    assert_eq!(
        status["message"],
        "RoutingPolicy.relay.dev \"one\" is invalid: metadata.uid: Invalid value: \"other\": field is immutable"
    );
    let mut other = home.get(&one).await.1;
    other["metadata"]["uid"] = "other".into();
    let (code, status) = home.put(&one, &other).await;
    assert_eq!(code, 409);
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("Precondition failed: UID in precondition: other"),
        "{status}"
    );
    let (code, _) = home
        .put(&at(POLICIES, "none"), &{
            let mut none = made.clone();
            none["metadata"]["name"] = "none".into();
            none
        })
        .await;
    assert_eq!(code, 404, "an update makes nothing");
    let (code, status) = home.put(&at(POLICIES, "two"), &made).await;
    assert_eq!(code, 400);
    assert_eq!(
        status["message"],
        "the name of the object (one) does not match the name on the URL (two)"
    );
}

#[tokio::test]
async fn finalizers_hold_an_object_until_the_last_has_gone() {
    let home = Home::new();
    let mut sent = policy("one");
    sent["metadata"]["finalizers"] = json!(["relay.dev/a", "relay.dev/b"]);
    home.made(POLICIES, &sent).await;
    let one = at(POLICIES, "one");
    let (code, deleting) = home.delete(&one).await;
    assert_eq!(code, 200);
    assert_eq!(deleting["kind"], "RoutingPolicy");
    assert!(deleting["metadata"]["deletionTimestamp"].is_string());
    let (_, again) = home.delete(&one).await;
    assert_eq!(
        version(&again),
        version(&deleting),
        "asked for once is enough"
    );
    let (code, status) = home
        .merge(
            &one,
            &json!({"metadata": {"finalizers": ["relay.dev/a", "relay.dev/b", "relay.dev/c"]}}),
        )
        .await;
    assert_eq!(code, 422);
    assert!(
        status["message"].as_str().unwrap().contains(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{\"relay.dev/c\"}"
        ),
        "{status}"
    );
    let (_, held) = home
        .merge(&one, &json!({"metadata": {"finalizers": ["relay.dev/b"]}}))
        .await;
    assert_eq!(held["metadata"]["finalizers"], json!(["relay.dev/b"]));
    let (code, last) = home
        .json_patch(
            &one,
            &json!([{"op": "remove", "path": "/metadata/finalizers"}]),
        )
        .await;
    assert_eq!(code, 200, "{last}");
    assert_eq!(home.get(&one).await.0, 404);
}

#[tokio::test]
async fn preconditions_of_a_delete_are_kept() {
    let home = Home::new();
    let made = home.made(POLICIES, &policy("one")).await;
    let one = at(POLICIES, "one");
    for (preconditions, said) in [
        (
            json!({"uid": "other"}),
            "the UID in the precondition (other) does not match the UID in record",
        ),
        (
            json!({"resourceVersion": "1"}),
            "the ResourceVersion in the precondition (1) does not match",
        ),
    ] {
        let (code, status) = home
            .delete_with(&one, &json!({"preconditions": preconditions}))
            .await;
        assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
        assert!(
            status["message"].as_str().unwrap().contains(said),
            "{status}"
        );
    }
    let right = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
        "gracePeriodSeconds": 0, "preconditions": {"uid": made["metadata"]["uid"]}});
    assert_eq!(home.delete_with(&one, &right).await.0, 200);
    let (code, status) = home
        .delete_with(&one, &json!({"propagationPolicy": "Sideways"}))
        .await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
}

#[tokio::test]
async fn what_is_wrong_is_said_first_and_alone_or_all_at_once() {
    let home = Home::new();
    let mut unknown = policy("one");
    unknown["spec"]["serverRef"]["colour"] = "red".into();
    unknown["spec"]["tiers"] = json!([]);
    let (code, status) = home.post(POLICIES, &unknown).await;
    assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")));
    assert_eq!(
        status["message"],
        "RoutingPolicy in version \"v1alpha1\" cannot be handled as a RoutingPolicy: strict decoding error: \
         unknown field \"spec.serverRef.colour\""
    );
    let mut wrong = policy("Not_A_Name");
    wrong["spec"]["tiers"][0]["name"] = 7.into();
    let (code, status) = home.post(POLICIES, &wrong).await;
    assert_eq!(
        (code, &status["reason"]),
        (422, &json!("Invalid")),
        "{status}"
    );
    let causes = status["details"]["causes"].as_array().unwrap();
    let fields: Vec<_> = causes
        .iter()
        .map(|cause| cause["field"].as_str().unwrap())
        .collect();
    assert!(
        fields.contains(&"metadata.name") && fields.contains(&"spec.tiers[0].name"),
        "{fields:?}"
    );
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .starts_with("RoutingPolicy.relay.dev \"Not_A_Name\" is invalid: [")
    );
    let (code, status) = home
        .send(
            "POST",
            POLICIES,
            (
                "application/json",
                r#"{"kind": "RoutingPolicy", "kind": "x"}"#.to_owned(),
            ),
        )
        .await;
    assert_eq!(code, 400);
    assert_eq!(
        status["message"],
        "x in version \"\" cannot be handled as a RoutingPolicy: strict decoding error: duplicate field \"kind\""
    );
    home.made(POLICIES, &policy("two")).await;
    let (code, status) = home
        .merge(&at(POLICIES, "two"), &json!({"spec": {"colour": "red"}}))
        .await;
    assert_eq!(
        (code, &status["details"]["causes"][0]["field"]),
        (422, &json!("patch"))
    );
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .ends_with("strict decoding error: unknown field \"spec.colour\"")
    );
}

#[tokio::test]
async fn objects_that_are_no_object_of_the_kind_are_refused() {
    let home = Home::new();
    for (change, code, said) in [
        (
            json!({"apiVersion": "relay.dev/v2"}),
            400,
            "RoutingPolicy in version \"v2\" cannot be handled as a RoutingPolicy: strict decoding error: unknown field \"spec\"",
        ),
        (
            json!({"apiVersion": "other.dev/v1"}),
            400,
            "the API version in the data (other.dev/v1) does not match the expected API version (relay.dev/v1alpha1)",
        ),
        (
            json!({"kind": "LayaServer"}),
            422,
            "LayaServer.relay.dev \"one\" is invalid: [kind: Invalid value: \"LayaServer\": must be RoutingPolicy, spec: Invalid value: \"object\": no such key: profile evaluating rule: must be economy, balanced, quality, critical, or the name of an entry of profiles]",
        ),
        (
            json!({"metadata": {"name": "one", "namespace": "other"}}),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            json!({"metadata": {"name": "one", "labels": {"a": 1}}}),
            400,
            "RoutingPolicy in version \"v1alpha1\" cannot be handled as a RoutingPolicy: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
        ),
        (
            json!({"metadata": {"name": "one", "resourceVersion": "5"}}),
            500,
            "resourceVersion should not be set on objects to be created",
        ),
    ] {
        let mut object = policy("one");
        object
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let (got, status) = home.post(POLICIES, &object).await;
        assert_eq!((got, status["message"].as_str().unwrap()), (code, said));
    }
    for (body, media_type, code) in [
        ("{", "application/json", 400),
        ("[]", "application/json", 400),
        ("kind: RoutingPolicy", "text/plain", 415),
        ("k8s\u{0}", "application/vnd.kubernetes.protobuf", 415),
    ] {
        let (got, status) = home
            .send("POST", POLICIES, (media_type, body.to_owned()))
            .await;
        assert_eq!(got, code, "{body}: {status}");
    }
    let (code, made) = home
        .send(
            "POST",
            POLICIES,
            (
                "application/yaml",
                serde_json::to_string_pretty(&policy("yaml")).unwrap(),
            ),
        )
        .await;
    assert_eq!(code, 201, "{made}");
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_and_stores_nothing() {
    let home = Home::new();
    let (code, would) = home
        .post(&format!("{POLICIES}?dryRun=All"), &policy("one"))
        .await;
    assert_eq!(code, 201);
    assert_eq!(would["metadata"]["generation"], 1);
    assert_eq!(would["metadata"].get("resourceVersion"), None);
    assert_eq!(home.get(&at(POLICIES, "one")).await.0, 404);
    let made = home.made(POLICIES, &policy("one")).await;
    let one = format!("{POLICIES}/one");
    let (_, would) = home
        .merge(
            &format!("{one}?dryRun=All"),
            &json!({"spec": {"serverRef": {"name": "x"}}}),
        )
        .await;
    assert_eq!(would["metadata"]["generation"], 2);
    assert_eq!(version(&would), version(&made));
    assert_eq!(home.delete(&format!("{one}?dryRun=All")).await.0, 200);
    assert_eq!(
        home.delete_with(&one, &json!({"dryRun": ["All"]})).await.0,
        200
    );
    assert_eq!(home.get(&one).await, (200, made));
    let (code, _) = home
        .post(&format!("{POLICIES}?dryRun=All"), &policy("one"))
        .await;
    assert_eq!(code, 409);
}

#[tokio::test]
async fn patches_are_those_of_a_custom_resource() {
    let home = Home::new();
    home.made(POLICIES, &policy("one")).await;
    let one = at(POLICIES, "one");
    let (code, changed) = home
        .json_patch(
            &one,
            &json!([{"op": "test", "path": "/spec/serverRef/name", "value": "main"},
            {"op": "replace", "path": "/spec/serverRef/name", "value": "x"}]),
        )
        .await;
    assert_eq!(
        (code, &changed["spec"]["serverRef"]["name"]),
        (200, &json!("x"))
    );
    let (code, status) = home
        .json_patch(
            &one,
            &json!([{"op": "test", "path": "/spec/serverRef/name", "value": "main"}]),
        )
        .await;
    assert_eq!(
        (code, &status["message"]),
        (
            422,
            &json!("the server rejected our request due to an error in our request")
        )
    );
    let (code, status) = home
        .send(
            "PATCH",
            &one,
            ("application/strategic-merge-patch+json", "{}".to_owned()),
        )
        .await;
    assert_eq!(code, 415);
    assert_eq!(
        status["message"],
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, \
         application/merge-patch+json, application/apply-patch+yaml"
    );
    let (code, _) = home.merge(&at(POLICIES, "none"), &json!({})).await;
    assert_eq!(code, 404);
    let (code, status) = home.merge(&format!("{one}?force=true"), &json!({})).await;
    assert_eq!(code, 422, "{status}");
}

#[tokio::test]
async fn a_server_is_scaled_through_its_scale() {
    let home = Home::new();
    let made = home.made(SERVERS, &server("main")).await;
    let scale = format!("{SERVERS}/main/scale");
    let (code, shown) = home.get(&scale).await;
    assert_eq!(code, 200);
    assert_eq!(
        (&shown["kind"], &shown["apiVersion"]),
        (&json!("Scale"), &json!("autoscaling/v1"))
    );
    assert_eq!(shown["spec"], json!({"replicas": 1}));
    let mut wanted = shown.clone();
    wanted["spec"]["replicas"] = 3.into();
    let (code, scaled) = home.put(&scale, &wanted).await;
    assert_eq!(
        (code, &scaled["spec"]["replicas"]),
        (200, &json!(3)),
        "{scaled}"
    );
    let (_, object) = home.get(&at(SERVERS, "main")).await;
    assert_eq!(object["spec"]["replicas"], 3);
    assert_eq!(object["metadata"]["generation"], 2);
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    assert!(
        entries.iter().any(|entry| entry["subresource"] == "scale"),
        "{entries:?}"
    );
    let (code, scaled) = home.merge(&scale, &json!({"spec": {"replicas": 2}})).await;
    assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(2)));
    assert_eq!(home.put(&scale, &wanted).await.0, 409, "of an old version");
    let (code, status) = home.merge(&scale, &json!({"spec": {"replicas": -1}})).await;
    assert_eq!(code, 422, "{status}");
    let (code, status) = home.merge(&scale, &json!({"spec": {"replicas": 65}})).await;
    assert_eq!(code, 422, "the limit of the kind: {status}");
    let uid = json!({"metadata": {"uid": made["metadata"]["uid"]}, "spec": {"replicas": 1}});
    assert_eq!(home.merge(&scale, &uid).await.0, 200);
    assert_eq!(home.get(&format!("{POLICIES}/one/scale")).await.0, 404);
}

#[tokio::test]
async fn a_revision_keeps_its_data_for_ever() {
    let home = Home::new();
    let revision = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "policy-1"},
        "data": {"any": [1, {"form": null}], "x": "y"}, "revision": 1,
    });
    let made = home.made(REVISIONS, &revision).await;
    assert_eq!(made["data"], revision["data"]);
    let one = at(REVISIONS, "policy-1");
    let (code, status) = home.merge(&one, &json!({"data": {"x": "z"}})).await;
    assert_eq!(code, 422);
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .ends_with("field is immutable"),
        "{status}"
    );
    let (code, _) = home
        .merge(
            &one,
            &json!({"revision": 2, "metadata": {"labels": {"a": "b"}}}),
        )
        .await;
    assert_eq!(code, 200);
    for (field, value, wanted) in [
        ("data", Value::Null, "data"),
        ("revision", json!(-1), "revision"),
    ] {
        let mut bad = revision.clone();
        bad["metadata"]["name"] = "other".into();
        bad[field] = value;
        let (code, status) = home.post(REVISIONS, &bad).await;
        assert_eq!(code, 422, "{status}");
        assert_eq!(status["details"]["causes"][0]["field"], wanted);
    }
}

#[tokio::test]
async fn namespaces_can_be_made_and_hold_their_own_names() {
    let home = Home::new();
    let (code, namespace) = home.get("/api/v1/namespaces/default").await;
    assert_eq!(
        (code, &namespace["status"]["phase"]),
        (200, &json!("Active"))
    );
    let other = "/apis/relay.dev/v1alpha1/namespaces/team/routingpolicies";
    let (code, status) = home.post(other, &policy("one")).await;
    assert_eq!(
        (code, &status["message"]),
        (404, &json!("namespaces \"team\" not found"))
    );
    home.made(
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}),
    )
    .await;
    home.made(other, &policy("one")).await;
    home.made(POLICIES, &policy("one")).await;
    let (_, all) = home.get("/apis/relay.dev/v1alpha1/routingpolicies").await;
    let places: Vec<_> = all["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["namespace"].clone())
        .collect();
    assert_eq!(places, ["default", "team"]);
    assert_eq!(home.delete("/api/v1/namespaces/team").await.0, 200);
    assert_eq!(home.get(&at(other, "one")).await.0, 404);
    assert_eq!(home.get("/api/v1/namespaces/team").await.0, 404);
    let (code, status) = home.delete("/api/v1/namespaces/default").await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
}

#[tokio::test]
async fn what_is_owned_goes_with_its_last_owner() {
    let home = Home::new();
    let owner = home.made(POLICIES, &policy("one")).await;
    let second = home.made(POLICIES, &policy("two")).await;
    let reference = |owner: &Value| {
        json!({"apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy",
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]})
    };
    for (name, owners) in [
        ("a", json!([reference(&owner)])),
        ("b", json!([reference(&owner), reference(&second)])),
    ] {
        let revision = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "data": {}, "revision": 1,
            "metadata": {"name": name, "ownerReferences": owners},
        });
        home.made(REVISIONS, &revision).await;
    }
    home.delete(&at(POLICIES, "one")).await;
    assert_eq!(home.get(&at(REVISIONS, "a")).await.0, 404);
    let (code, left) = home.get(&at(REVISIONS, "b")).await;
    assert_eq!(
        (code, &left["metadata"]["ownerReferences"][0]["name"]),
        (200, &json!("two"))
    );
    home.delete_with(
        &at(POLICIES, "two"),
        &json!({"propagationPolicy": "Orphan"}),
    )
    .await;
    let (code, left) = home.get(&at(REVISIONS, "b")).await;
    assert_eq!((code, left["metadata"].get("ownerReferences")), (200, None));
}

#[tokio::test]
async fn many_are_deleted_by_selector() {
    let home = Home::new();
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let mut object = policy(name);
        object["metadata"]["labels"] = json!({"l": label});
        home.made(POLICIES, &object).await;
    }
    let (code, gone) = home
        .delete(&format!("{POLICIES}?labelSelector=l%3Dx"))
        .await;
    assert_eq!(code, 200);
    assert_eq!(gone["items"].as_array().map(Vec::len), Some(2));
    let (_, left) = home.get(POLICIES).await;
    assert_eq!(left["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn an_owner_that_waits_for_a_finalizer_still_leaves_its_orphans() {
    let home = Home::new();
    let mut owner = policy("owner");
    owner["metadata"]["finalizers"] = json!(["relay.dev/x"]);
    let owner = home.made(POLICIES, &owner).await;
    let mut child = policy("child");
    child["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "name": "owner", "uid": owner["metadata"]["uid"],
    }]);
    home.made(POLICIES, &child).await;
    let path = at(POLICIES, "owner");
    let options = json!({"propagationPolicy": "Orphan"});
    assert_eq!(home.delete_with(&path, &options).await.0, 200);
    home.merge(&path, &json!({"metadata": {"finalizers": null}}))
        .await;
    assert_eq!(home.get(&path).await.0, 404);
    let (code, child) = home.get(&at(POLICIES, "child")).await;
    assert_eq!(code, 200, "it was to stay");
    assert_eq!(child["metadata"].get("ownerReferences"), None);
}
