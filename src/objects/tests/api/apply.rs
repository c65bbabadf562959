//! Server-side apply through the API: ownership, conflicts, and who makes what.

use serde_json::{Value, json};

use crate::support::{Hand, Home, POLICIES, SERVERS, at, policy, server, version};

fn labels(names: &[(&str, &str)]) -> Value {
    let labels: serde_json::Map<_, _> = names
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).into()))
        .collect();
    json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy",
        "metadata": {"name": "one", "labels": labels},
    })
}

#[tokio::test]
async fn an_apply_makes_what_is_not_there_and_owns_it() {
    let home = Home::new();
    let one = format!("{POLICIES}/one?fieldManager=relayctl");
    let (code, made) = home.apply(&one, &policy("one")).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(made["metadata"]["generation"], 1);
    let entry = &made["metadata"]["managedFields"][0];
    assert_eq!(
        (&entry["manager"], &entry["operation"]),
        (&json!("relayctl"), &json!("Apply"))
    );
    let (code, same) = home.apply(&one, &policy("one")).await;
    assert_eq!(code, 200);
    assert_eq!(same, made, "the same again is no write");
    let (code, status) = home.apply(&at(POLICIES, "two"), &policy("two")).await;
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
    );
}

#[tokio::test]
async fn what_a_manager_no_longer_names_goes() {
    let home = Home::new();
    let one = |manager: &str| format!("{POLICIES}/one?fieldManager={manager}");
    home.apply(&one("base"), &policy("one")).await;
    home.apply(&one("a"), &labels(&[("x", "1"), ("y", "2")]))
        .await;
    home.apply(&one("b"), &labels(&[("y", "2")])).await;
    let (code, left) = home.apply(&one("a"), &labels(&[])).await;
    assert_eq!(code, 200, "{left}");
    assert_eq!(
        left["metadata"]["labels"],
        json!({"y": "2"}),
        "another manager still owns it"
    );
}

#[tokio::test]
async fn another_value_of_what_another_owns_is_a_conflict_unless_forced() {
    let home = Home::new();
    let path = format!("{POLICIES}/one");
    home.made(
        &format!("{POLICIES}?fieldManager=kubectl-create"),
        &policy("one"),
    )
    .await;
    let mut other = policy("one");
    other["spec"]["serverRef"]["name"] = "other".into();
    let (code, status) = home
        .apply(&format!("{path}?fieldManager=relayctl"), &other)
        .await;
    assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
    assert_eq!(
        status["details"]["causes"][0],
        json!({"reason": "FieldManagerConflict", "field": ".spec.serverRef.name",
            "message": "conflict with \"kubectl-create\" using relay.dev/v1alpha1"}),
        "{status}"
    );
    let (code, taken) = home
        .apply(&format!("{path}?fieldManager=relayctl&force=true"), &other)
        .await;
    assert_eq!(code, 200, "{taken}");
    assert_eq!(taken["spec"]["serverRef"]["name"], "other");
    assert_eq!(taken["metadata"]["generation"], 2);
}

#[tokio::test]
async fn a_version_in_the_configuration_is_a_precondition() {
    let home = Home::new();
    let one = format!("{POLICIES}/one?fieldManager=relayctl");
    let (_, made) = home.apply(&one, &policy("one")).await;
    let mut next = policy("one");
    next["spec"]["serverRef"]["name"] = "other".into();
    next["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    let (code, changed) = home.apply(&one, &next).await;
    assert_eq!(
        (code, version(&changed)),
        (200, version(&made) + 1),
        "{changed}"
    );
    next["spec"]["serverRef"]["name"] = "third".into();
    let (code, status) = home.apply(&one, &next).await;
    assert_eq!(
        (code, &status["reason"]),
        (409, &json!("Conflict")),
        "{status}"
    );
}

#[tokio::test]
async fn a_status_is_applied_whole_and_alone() {
    let home = Home::new();
    home.made(POLICIES, &policy("one")).await;
    let path = format!("{POLICIES}/one/status?fieldManager=relay-controller&force=true");
    let status = |count: i64| {
        json!({
            "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "metadata": {"name": "one"},
            "status": {"observedGeneration": count, "conditions": [{
                "type": "Ready", "status": "True", "reason": "Reconciled", "message": "",
                "lastTransitionTime": "2026-11-30T12:00:00Z", "observedGeneration": count,
            }]},
        })
    };
    let (code, told) = home.apply(&path, &status(1)).await;
    assert_eq!(code, 200, "{told}");
    assert_eq!(told["metadata"]["generation"], 1);
    let (_, same) = home.apply(&path, &status(1)).await;
    assert_eq!(
        version(&same),
        version(&told),
        "an unchanged status costs no write"
    );
    let mut with_spec = status(2);
    with_spec["spec"] = json!({"serverRef": {"name": "stolen"}});
    let (code, told) = home.apply(&path, &with_spec).await;
    assert_eq!(code, 200, "{told}");
    assert_eq!(told["spec"]["serverRef"]["name"], "main");
    assert_eq!(told["status"]["observedGeneration"], 2);
}

#[tokio::test]
async fn what_ownership_demands_of_writes_holds_for_each_kind_of_write() {
    let home = Home::new();
    let mut one = policy("one");
    one["spec"]["escalateAfterFailures"] = json!(4.0);
    let made = home.made(POLICIES, &one).await;
    let path = at(POLICIES, "one");
    // As the API server does: `4.0` is stored as `4`, and counts as a change of it unless it is applied.
    let stored = |object: &Value| object["spec"]["escalateAfterFailures"].to_string();
    assert_eq!(stored(&made), "4");
    let float = json!({"spec": {"escalateAfterFailures": 4.0}});
    let (_, now) = home.merge(&path, &float).await;
    assert_eq!(
        (stored(&now), &now["metadata"]["generation"]),
        ("4".to_owned(), &json!(2))
    );
    let patch = json!([{"op": "replace", "path": "/spec/escalateAfterFailures", "value": 4}]);
    let (_, same) = home.json_patch(&path, &patch).await;
    assert_eq!(same, now);
    let mut config = one.clone();
    config["spec"] = json!({"escalateAfterFailures": 4.0});
    let applied = format!("{path}?fieldManager=a");
    let (_, first) = home.apply(&applied, &config).await;
    assert_eq!(
        (stored(&first), &first["metadata"]["generation"]),
        ("4".to_owned(), &json!(2))
    );
    assert_eq!(home.apply(&applied, &config).await, (200, first.clone()));
    let made = first;
    for wrong in [
        json!({"labels": 5}),
        json!({"labels": {"a": 5}}),
        json!({"finalizers": "x"}),
        json!([]),
    ] {
        let body = json!({"metadata": wrong});
        let (code, status) = home.merge(&path, &body).await;
        assert_eq!(code, 422, "{body}: {status}");
        assert_eq!(status["details"]["causes"][0]["field"], "patch");
        let mut config = policy("one");
        if wrong.is_object() {
            let name = config["metadata"]["name"].take();
            config["metadata"] = wrong.clone();
            config["metadata"]["name"] = name;
        } else {
            config["metadata"] = wrong.clone();
        }
        let (code, status) = home.apply(&format!("{path}?fieldManager=a"), &config).await;
        assert_eq!(code, 400, "{body}: {status}");
    }
    assert_eq!(version(&home.get(&path).await.1), version(&made));
}

#[tokio::test]
async fn an_apply_that_repeats_itself_writes_nothing_though_time_goes_on() {
    let hand = Hand::new();
    let home = Home::with(hand.options());
    let path = format!("{}?fieldManager=a", at(SERVERS, "main"));
    let (code, first) = home.apply(&path, &server("main")).await;
    assert_eq!(code, 201, "{first}");
    let status = json!({"status": {"replicas": 1}});
    let (_, first) = home
        .merge(&format!("{}/status", at(SERVERS, "main")), &status)
        .await;
    for _ in 0..3 {
        hand.forward(1);
        let (code, again) = home.apply(&path, &server("main")).await;
        assert_eq!((code, again), (200, first.clone()));
        let (code, again) = home
            .merge(&format!("{}/status", at(SERVERS, "main")), &status)
            .await;
        assert_eq!((code, again), (200, first.clone()));
    }
}
