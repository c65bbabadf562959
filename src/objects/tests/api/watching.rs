//! Watches and lists: order, selectors, bookmarks, the end.

use std::time::Duration;

use serde_json::{Value, json};

use objects::ObjectStoreOptions;

use crate::support::{Hand, Home, PATIENCE, POLICIES, SERVERS, at, policy, server, version};

fn labelled(name: &str, value: &str) -> Value {
    let mut object = policy(name);
    object["metadata"]["labels"] = json!({"l": value});
    object
}

fn brief(verb: &str, name: &str) -> (String, String) {
    (verb.to_owned(), name.to_owned())
}

#[tokio::test]
async fn a_watch_goes_on_from_a_version_in_order_and_of_its_kind_alone() {
    let home = Home::new();
    let first = home.made(POLICIES, &policy("one")).await;
    home.made(SERVERS, &server("main")).await;
    home.made(POLICIES, &policy("two")).await;
    let since = version(&first);
    let mut watch = home
        .watch(&format!("{POLICIES}?watch=true&resourceVersion={since}"))
        .await;
    assert_eq!(
        watch.brief().await,
        brief("ADDED", "two"),
        "from the tables"
    );
    home.merge(
        &at(POLICIES, "one"),
        &json!({"metadata": {"labels": {"a": "b"}}}),
    )
    .await;
    home.delete(&at(POLICIES, "two")).await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "MODIFIED");
    assert_eq!(event["object"], home.get(&at(POLICIES, "one")).await.1);
    let last = watch.next().await.unwrap();
    assert_eq!(last["type"], "DELETED");
    assert!(
        version(&last["object"]) > version(&event["object"]),
        "its end has a version too"
    );
}

#[tokio::test]
async fn what_was_there_comes_first_where_it_was_asked_for() {
    let home = Home::new();
    home.made(POLICIES, &policy("one")).await;
    let mut plain = home.watch(&format!("{POLICIES}?watch=1")).await;
    assert_eq!(plain.brief().await, brief("ADDED", "one"));
    let mut all = home
        .watch(&format!("{POLICIES}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"))
        .await;
    assert_eq!(all.brief().await, brief("ADDED", "one"));
    let bookmark = all.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["kind"], "RoutingPolicy");
    assert_eq!(
        bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    let (code, status) = home
        .get(&format!("{POLICIES}?watch=1&sendInitialEvents=true"))
        .await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
}

#[tokio::test]
async fn objects_come_and_go_for_those_who_follow_a_label() {
    let home = Home::new();
    let start = version(&home.get(POLICIES).await.1);
    let mut watch = home
        .watch(&format!(
            "{POLICIES}?watch=1&resourceVersion={start}&labelSelector=l%3Dx"
        ))
        .await;
    home.made(POLICIES, &labelled("a", "x")).await;
    home.made(POLICIES, &labelled("b", "y")).await;
    home.merge(
        &at(POLICIES, "b"),
        &json!({"metadata": {"labels": {"l": "x"}}}),
    )
    .await;
    home.merge(
        &at(POLICIES, "a"),
        &json!({"metadata": {"labels": {"l": "y"}}}),
    )
    .await;
    home.merge(
        &at(POLICIES, "b"),
        &json!({"spec": {"serverRef": {"name": "z"}}}),
    )
    .await;
    home.delete(&at(POLICIES, "a")).await;
    home.delete(&at(POLICIES, "b")).await;
    let expected = [
        brief("ADDED", "a"),
        brief("ADDED", "b"),
        brief("DELETED", "a"),
        brief("MODIFIED", "b"),
        brief("DELETED", "b"),
    ];
    for expected in &expected {
        assert_eq!(&watch.brief().await, expected);
    }
    let mut replay = home
        .watch(&format!(
            "{POLICIES}?watch=1&resourceVersion={start}&labelSelector=l%3Dx"
        ))
        .await;
    for expected in &expected {
        assert_eq!(
            &replay.brief().await,
            expected,
            "from the tables it is the same"
        );
    }
    let mut named = home
        .watch(&format!(
            "{POLICIES}?watch=1&resourceVersion={start}&fieldSelector=metadata.name%3Db"
        ))
        .await;
    for verb in ["ADDED", "MODIFIED", "MODIFIED", "DELETED"] {
        assert_eq!(named.brief().await, brief(verb, "b"));
    }
}

#[tokio::test]
async fn who_follows_a_label_hears_of_an_end_that_takes_the_label_too() {
    let home = Home::new();
    let mut held = policy("held");
    held["metadata"]["labels"] = json!({"team": "a"});
    held["metadata"]["finalizers"] = json!(["relay.dev/x"]);
    home.made(POLICIES, &held).await;
    let held = at(POLICIES, "held");
    home.delete(&held).await;
    let start = version(&home.get(POLICIES).await.1);
    let path = format!("{POLICIES}?watch=1&labelSelector=team%3Da&resourceVersion={start}");
    let mut follows = home.watch(&path).await;
    home.merge(
        &held,
        &json!({"metadata": {"labels": null, "finalizers": null}}),
    )
    .await;
    assert_eq!(home.get(&held).await.0, 404);
    assert_eq!(
        follows.brief().await,
        ("DELETED".to_owned(), "held".to_owned())
    );
    let mut later = home.watch(&path).await;
    assert_eq!(
        later.brief().await,
        ("DELETED".to_owned(), "held".to_owned()),
        "read from the tables"
    );
}

#[tokio::test]
async fn an_object_that_loses_its_label_goes_as_it_was_at_its_new_version() {
    let home = Home::new();
    let mut one = policy("one");
    one["metadata"]["labels"] = json!({"team": "a"});
    let made = home.made(POLICIES, &one).await;
    let path = format!(
        "{POLICIES}?watch=1&labelSelector=team%3Da&resourceVersion={}",
        version(&made)
    );
    let mut follows = home.watch(&path).await;
    let (_, now) = home
        .merge(
            &at(POLICIES, "one"),
            &json!({"metadata": {"labels": {"team": "b"}}}),
        )
        .await;
    let mut later = home.watch(&path).await;
    for watch in [&mut follows, &mut later] {
        let event = watch.next().await.unwrap();
        assert_eq!(event["type"], "DELETED");
        assert_eq!(event["object"]["metadata"]["labels"]["team"], "a");
        assert_eq!(version(&event["object"]), version(&now));
    }
}

#[tokio::test]
async fn a_watch_without_initial_events_begins_now() {
    let home = Home::new();
    home.made(POLICIES, &policy("before")).await;
    let path =
        format!("{POLICIES}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
    let mut watch = home.watch(&path).await;
    home.made(POLICIES, &policy("after")).await;
    assert_eq!(
        watch.brief().await,
        ("ADDED".to_owned(), "after".to_owned())
    );
}

#[tokio::test]
async fn bookmarks_come_at_their_time_and_a_watch_ends_in_its_own() {
    assert_eq!(
        ObjectStoreOptions::default().bookmarks,
        Duration::from_secs(30)
    );
    let home = Home::with(ObjectStoreOptions {
        bookmarks: Duration::from_millis(300),
        ..ObjectStoreOptions::default()
    });
    home.made(SERVERS, &server("main")).await;
    let began = std::time::Instant::now();
    let path =
        format!("{POLICIES}?watch=1&resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=2");
    let mut watch = home.watch(&path).await;
    let mut bookmarks = 0;
    while let Some(event) = watch.next().await {
        assert_eq!(event["type"], "BOOKMARK");
        assert_eq!(
            version(&event["object"]),
            2,
            "of the store, not of the kind"
        );
        bookmarks += 1;
    }
    assert!((1..=6).contains(&bookmarks), "{bookmarks}");
    assert!(began.elapsed() >= Duration::from_secs(2));
    let mut plain = home
        .watch(&format!(
            "{POLICIES}?watch=1&resourceVersion=1&timeoutSeconds=1"
        ))
        .await;
    assert_eq!(
        plain.next().await,
        None,
        "bookmarks only where they were asked for"
    );
}

#[tokio::test]
async fn a_list_is_the_same_over_all_its_pages() {
    let home = Home::new();
    for name in ["a", "b", "c", "d", "e"] {
        home.made(POLICIES, &policy(name)).await;
    }
    let (code, first) = home.get(&format!("{POLICIES}?limit=2")).await;
    assert_eq!(code, 200);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    home.delete(&at(POLICIES, "c")).await;
    home.made(POLICIES, &policy("bb")).await;
    home.merge(
        &at(POLICIES, "d"),
        &json!({"spec": {"serverRef": {"name": "later"}}}),
    )
    .await;
    let mut names = Vec::new();
    let mut page = first.clone();
    loop {
        assert_eq!(
            version(&page),
            version(&first),
            "all pages are of one moment"
        );
        for item in page["items"].as_array().unwrap() {
            names.push(item["metadata"]["name"].as_str().unwrap().to_owned());
            assert_eq!(item["spec"]["serverRef"]["name"], "main");
        }
        let Some(token) = page["metadata"]["continue"].as_str() else {
            break;
        };
        page = home
            .get(&format!("{POLICIES}?limit=2&continue={token}"))
            .await
            .1;
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    let now = home.get(POLICIES).await.1;
    let names: Vec<_> = now["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].clone())
        .collect();
    assert_eq!(names, ["a", "b", "bb", "d", "e"]);
    let (code, then) = home
        .get(&format!(
            "{POLICIES}?resourceVersion={}&resourceVersionMatch=Exact",
            version(&first)
        ))
        .await;
    assert_eq!(
        (code, then["items"].as_array().map(Vec::len)),
        (200, Some(5))
    );
    let (code, status) = home.get(&format!("{POLICIES}?resourceVersion=999")).await;
    assert_eq!(
        (code, &status["details"]["causes"][0]["reason"]),
        (504, &json!("ResourceVersionTooLarge"))
    );
}

#[tokio::test]
async fn events_are_selected_by_what_they_are_about_in_both_versions() {
    let home = Home::new();
    for (name, about) in [("a", "one"), ("b", "two")] {
        let event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name},
            "eventTime": "2026-11-30T12:00:00.000000Z", "reportingController": "relay.dev/controller",
            "reportingInstance": "laptop", "action": "Accept", "reason": "PolicyAccepted", "type": "Normal",
            "note": "accepted", "regarding": {"kind": "RoutingPolicy", "name": about, "namespace": "default"},
        });
        home.made("/apis/events.k8s.io/v1/namespaces/default/events", &event)
            .await;
    }
    let (code, core) = home
        .get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dtwo,involvedObject.kind%3DRoutingPolicy")
        .await;
    assert_eq!(code, 200);
    let items = core["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{core}");
    assert_eq!(
        (&items[0]["message"], &items[0]["apiVersion"]),
        (&json!("accepted"), &json!("v1"))
    );
    assert_eq!(core["kind"], "EventList");
    let (_, newer) = home
        .get("/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Done")
        .await;
    assert_eq!(newer["items"].as_array().map(Vec::len), Some(1));
    let (code, status) = home
        .get(&format!("{POLICIES}?fieldSelector=spec.x%3D1"))
        .await;
    assert_eq!(
        (code, &status["message"]),
        (400, &json!("field label not supported: spec.x"))
    );
}

#[tokio::test]
async fn the_feed_keeps_a_day_and_ten_thousand_changes_and_older_is_expired() {
    let hand = Hand::new();
    let home = Home::with(hand.options());
    home.made(POLICIES, &policy("kept")).await;
    let (_, first) = home.get(&format!("{POLICIES}?limit=1")).await;
    let start = version(&first);
    let rounds: Vec<usize> = (0..10_100).collect();
    for some in rounds.chunks(64) {
        let written = some.iter().map(|round| {
            let (home, patch) = (
                &home,
                json!({"metadata": {"labels": {"r": round.to_string()}}}),
            );
            async move { home.merge(&at(POLICIES, "kept"), &patch).await.0 }
        });
        let codes = futures_util::future::join_all(written).await;
        assert!(codes.iter().all(|code| *code == 200), "{codes:?}");
    }
    let folder = home.close().await;
    hand.forward(25);
    let opened = crate::support::open(folder.path(), hand.options());
    let service = opened.store.service();
    let ask = |path: String| {
        let service = service.clone();
        async move {
            let request = http::Request::get(path)
                .body(http_body_util::Full::<bytes::Bytes>::default())
                .unwrap();
            let response = tower::ServiceExt::oneshot(service, request).await.unwrap();
            crate::support::read(response).await
        }
    };
    // The writer looks after the feed once it runs; that it has is seen by the refusal.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let (code, status) = ask(format!(
            "{POLICIES}?resourceVersion={start}&resourceVersionMatch=Exact"
        ))
        .await;
        if code == 410 {
            assert_eq!(status["reason"], "Expired");
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{status}");
        tokio::task::yield_now().await;
    }
    let (code, status) = ask(format!("{POLICIES}?watch=1&resourceVersion={start}")).await;
    assert_eq!(
        (code, &status["reason"]),
        (410, &json!("Expired")),
        "{status}"
    );
    let young = start + 150;
    let (code, then) = ask(format!(
        "{POLICIES}?resourceVersion={young}&resourceVersionMatch=Exact"
    ))
    .await;
    assert_eq!(code, 200);
    assert_eq!(version(&then["items"][0]), young, "as it was then");
}
