//! Bounds: of an object, of a body, of how many there are, of those who follow.

use serde_json::json;

use crate::support::{Hand, Home, POLICIES, REVISIONS, at, policy};

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

fn event(number: usize) -> serde_json::Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": format!("e{number:05}")},
        "eventTime": "2026-11-30T12:00:00.000000Z", "reportingController": "relay.dev/controller",
        "reportingInstance": "laptop", "action": "Accept", "reason": "PolicyAccepted", "type": "Normal",
        "regarding": {"kind": "RoutingPolicy", "name": "one", "namespace": "default"},
    })
}

#[tokio::test]
async fn large_objects_and_bodies_are_refused_with_the_limit() {
    let home = Home::new();
    let revision = |bytes: usize| {
        json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "big"},
            "data": {"x": "x".repeat(bytes)}, "revision": 1,
        })
    };
    let (code, status) = home.post(REVISIONS, &revision(1 << 20)).await;
    assert_eq!(
        (code, &status["reason"]),
        (413, &json!("RequestEntityTooLarge"))
    );
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .ends_with("limit is 1048576"),
        "{status}"
    );
    let (code, status) = home.post(REVISIONS, &revision(3 << 20)).await;
    assert_eq!(code, 413);
    assert_eq!(
        status["message"],
        "Request entity too large: limit is 3145728"
    );
    assert_eq!(home.get(&at(REVISIONS, "big")).await.0, 404);
    assert_eq!(home.post(REVISIONS, &revision(1_000_000)).await.0, 201);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let (code, _) = home
        .send("POST", POLICIES, ("application/json", deep))
        .await;
    assert_eq!(code, 400, "a hostile depth does not end the process");
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n";
    let (code, _) = home
        .send("POST", POLICIES, ("application/yaml", bomb.to_owned()))
        .await;
    assert_eq!(code, 400);
}

#[tokio::test]
async fn ten_thousand_objects_are_the_most() {
    let home = Home::new();
    let revision = |number: usize| {
        json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": format!("r{number}")}, "data": {}, "revision": 1,
        })
    };
    // The namespace counts.
    let numbers: Vec<usize> = (0..9_999).collect();
    for some in numbers.chunks(64) {
        let made = some.iter().map(|number| {
            let home = &home;
            async move { home.post(REVISIONS, &revision(*number)).await.0 }
        });
        assert!(
            futures_util::future::join_all(made)
                .await
                .iter()
                .all(|code| *code == 201)
        );
    }
    let (code, status) = home.post(REVISIONS, &revision(9_999)).await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .ends_with("the local store holds at most 10000 objects"),
        "{status}"
    );
    assert_eq!(
        home.post(EVENTS, &event(1)).await.0,
        201,
        "events have their own limit"
    );
    assert_eq!(home.delete(&at(REVISIONS, "r7")).await.0, 200);
    assert_eq!(home.post(REVISIONS, &revision(9_999)).await.0, 201);
}

#[tokio::test]
async fn the_newest_thousand_events_of_a_day_are_kept() {
    let hand = Hand::new();
    let home = Home::with(hand.options());
    for number in 0..1_010 {
        assert_eq!(home.post(EVENTS, &event(number)).await.0, 201);
    }
    let (_, list) = home.get(EVENTS).await;
    let names: Vec<_> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].clone())
        .collect();
    assert_eq!((names.len(), &names[0]), (1_000, &json!("e00010")));
    let folder = home.close().await;
    hand.forward(25);
    let opened = crate::support::open(folder.path(), hand.options());
    let client = kube::Client::new(opened.store.service(), "default");
    let api: kube::Api<k8s_openapi::api::events::v1::Event> = kube::Api::default_namespaced(client);
    let deadline = tokio::time::Instant::now() + crate::support::PATIENCE;
    while !api
        .list(&kube::api::ListParams::default())
        .await
        .unwrap()
        .items
        .is_empty()
    {
        assert!(
            tokio::time::Instant::now() < deadline,
            "events of yesterday are still there"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_watch_that_is_not_read_is_cut_and_the_others_go_on() {
    let home = Home::new();
    home.made(POLICIES, &policy("one")).await;
    let start = home.get(POLICIES).await.1["metadata"]["resourceVersion"].clone();
    let path = format!(
        "{POLICIES}?watch=1&resourceVersion={}",
        start.as_str().unwrap()
    );
    let mut slow = home.watch(&path).await;
    let mut quick = home.watch(&path).await;
    for round in 0..1_100 {
        home.merge(
            &at(POLICIES, "one"),
            &json!({"metadata": {"labels": {"r": round.to_string()}}}),
        )
        .await;
        let event = quick.next().await.unwrap();
        assert_eq!(
            event["object"]["metadata"]["labels"]["r"],
            round.to_string()
        );
    }
    let mut seen = 0;
    let end = loop {
        let event = slow.next().await.expect("an end with a word");
        if event["type"] == "ERROR" {
            break event;
        }
        seen += 1;
    };
    assert_eq!(seen, 1_024, "what fits into its queue it gets");
    assert_eq!(
        (&end["object"]["code"], &end["object"]["reason"]),
        (&json!(410), &json!("Expired"))
    );
    assert_eq!(slow.next().await, None);
}

#[tokio::test]
async fn a_thousand_follow_and_each_sees_every_change() {
    let home = Home::new();
    let start = home.get(POLICIES).await.1["metadata"]["resourceVersion"].clone();
    let path = format!(
        "{POLICIES}?watch=1&resourceVersion={}",
        start.as_str().unwrap()
    );
    let mut watches = Vec::new();
    for _ in 0..1_000 {
        watches.push(home.watch(&path).await);
    }
    for number in 0..20 {
        home.made(POLICIES, &policy(&format!("p{number:02}"))).await;
    }
    for watch in &mut watches {
        for number in 0..20 {
            assert_eq!(
                watch.brief().await,
                ("ADDED".to_owned(), format!("p{number:02}"))
            );
        }
    }
}
