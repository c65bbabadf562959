//! Faults of engineering 14 that a local store can have (column S), and a kill in the middle of commits.

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use objects::{Notice, ObjectStore, ObjectStoreOptions};
use serde_json::{Value, json};

use crate::support::{Home, POLICIES, REVISIONS, SERVERS, at, file, open, policy, server, version};

#[tokio::test]
async fn fault_03_two_clients_at_once_lose_nothing() {
    let home = Home::new();
    home.made(SERVERS, &server("main")).await;
    let main = at(SERVERS, "main");
    // Each adds a label of its own by read, change, write; who is late reads again.
    let add = |client: usize, round: usize| {
        let (home, main) = (&home, &main);
        async move {
            let mut conflicts = 0;
            loop {
                let (_, mut object) = home.get(main).await;
                object["metadata"]["labels"][format!("c{client}-{round}")] = "1".into();
                tokio::task::yield_now().await;
                match home.put(main, &object).await {
                    (200, _) => return conflicts,
                    (409, status) => assert_eq!(status["reason"], "Conflict"),
                    other => panic!("{other:?}"),
                }
                conflicts += 1;
            }
        }
    };
    let mut conflicts = 0;
    for round in 0..25 {
        let both = futures_util::future::join(add(1, round), add(2, round)).await;
        conflicts += both.0 + both.1;
    }
    let (_, object) = home.get(&main).await;
    assert_eq!(
        object["metadata"]["labels"]
            .as_object()
            .map(serde_json::Map::len),
        Some(50)
    );
    assert!(conflicts > 0, "they never met: the test shows nothing");
}

#[tokio::test]
async fn fault_05_a_version_that_is_not_known_is_410_at_the_start_and_in_the_stream() {
    let home = Home::new();
    home.made(POLICIES, &policy("one")).await;
    let (code, status) = home
        .get(&format!("{POLICIES}?watch=1&resourceVersion=4711"))
        .await;
    assert_eq!(
        (code, &status["reason"]),
        (410, &json!("Expired")),
        "of a store that is no more: {status}"
    );
    // A watcher that was cut lists again, and so notices what was deleted in the gap.
    let start = version(&home.get(POLICIES).await.1);
    let mut slow = home
        .watch(&format!("{POLICIES}?watch=1&resourceVersion={start}"))
        .await;
    for round in 0..1_030 {
        home.merge(
            &at(POLICIES, "one"),
            &json!({"metadata": {"labels": {"r": round.to_string()}}}),
        )
        .await;
    }
    home.delete(&at(POLICIES, "one")).await;
    let end = loop {
        let event = slow.next().await.unwrap();
        assert_ne!(event["type"], "DELETED", "the deletion is in the gap");
        if event["type"] == "ERROR" {
            break event;
        }
    };
    assert_eq!(end["object"]["code"], 410);
    assert_eq!(home.get(POLICIES).await.1["items"], json!([]));
}

#[tokio::test]
async fn fault_12_a_namespace_that_ends_takes_all_along_and_takes_nothing_new() {
    let home = Home::new();
    home.made(
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}),
    )
    .await;
    let there = POLICIES.replace("default", "team");
    home.made(&there, &policy("free")).await;
    let mut held = policy("held");
    held["metadata"]["finalizers"] = json!(["relay.dev/x"]);
    home.made(&there, &held).await;
    let (code, ending) = home.delete("/api/v1/namespaces/team").await;
    assert_eq!(
        (code, &ending["status"]["phase"]),
        (200, &json!("Terminating")),
        "{ending}"
    );
    assert_eq!(home.get(&at(&there, "free")).await.0, 404);
    let (code, status) = home.post(&there, &policy("new")).await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("because it is being terminated"),
        "{status}"
    );
    let (code, status) = home
        .apply(&format!("{there}/new?fieldManager=a"), &policy("new"))
        .await;
    assert_eq!(code, 403, "nothing is made anew by an apply: {status}");
    home.merge(
        &at(&there, "held"),
        &json!({"metadata": {"finalizers": null}}),
    )
    .await;
    assert_eq!(
        home.get("/api/v1/namespaces/team").await.0,
        404,
        "with its last object the namespace goes"
    );
}

#[tokio::test]
async fn fault_12_a_finalizer_on_what_has_gone_is_not_found() {
    let home = Home::new();
    let made = home.made(POLICIES, &policy("one")).await;
    home.delete(&at(POLICIES, "one")).await;
    let patch =
        json!({"metadata": {"uid": made["metadata"]["uid"], "finalizers": ["relay.dev/x"]}});
    assert_eq!(home.merge(&at(POLICIES, "one"), &patch).await.0, 404);
    home.made(POLICIES, &policy("one")).await;
    let (code, _) = home.merge(&at(POLICIES, "one"), &patch).await;
    assert_eq!(code, 422, "another object of the name is not meant");
}

#[tokio::test]
async fn fault_36_an_object_of_a_newer_program_is_served_and_the_others_go_on() {
    let home = Home::new();
    home.made(POLICIES, &policy("one")).await;
    home.made(POLICIES, &policy("two")).await;
    let folder = home.close().await;
    // A later version stored a field and a value that this one does not know.
    let file = rusqlite::Connection::open(file(folder.path())).unwrap();
    file.execute(
        "UPDATE objects SET spec = json_set(spec, '$.spec.later', 'x'), status = '{\"phase\": \"Later\"}' WHERE name = 'one'",
        [],
    )
    .unwrap();
    drop(file);
    let opened = open(folder.path(), ObjectStoreOptions::default());
    assert_eq!(opened.notices, []);
    let client = kube::Client::new(opened.store.service(), "default");
    let kind = kube::api::ApiResource::from_gvk_with_plural(
        &kube::api::GroupVersionKind::gvk("relay.dev", "v1alpha1", "RoutingPolicy"),
        "routingpolicies",
    );
    let api: kube::Api<kube::api::DynamicObject> =
        kube::Api::default_namespaced_with(client, &kind);
    let all = api.list(&kube::api::ListParams::default()).await.unwrap();
    assert_eq!(all.items.len(), 2, "nothing is hidden");
    assert_eq!(all.items[0].data["spec"]["later"], "x");
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let patch = kube::api::Patch::Merge(&labels);
    let params = kube::api::PatchParams::default();
    let refused = api.patch("one", &params, &patch).await.unwrap_err();
    assert!(
        refused.to_string().contains("unknown field"),
        "said, not pruned in silence: {refused}"
    );
    api.patch("two", &params, &patch).await.unwrap();
}

fn set_aside(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| {
            name.starts_with("objects.db.damaged-")
                && !name.ends_with("-wal")
                && !name.ends_with("-shm")
        })
        .collect()
}

#[tokio::test]
async fn fault_37_a_store_that_was_cut_corrupted_or_is_newer_is_kept_aside_and_keeps_its_id() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 4] = [
        ("cut in half", |path| {
            let length = std::fs::metadata(path).unwrap().len();
            std::fs::OpenOptions::new()
                .write(true)
                .open(path)
                .unwrap()
                .set_len(length / 2)
                .unwrap();
        }),
        ("corrupted", |path| {
            let mut bytes = std::fs::read(path).unwrap();
            let length = bytes.len();
            for byte in &mut bytes[4_096..length.min(40_960)] {
                *byte ^= 0xa5;
            }
            std::fs::write(path, bytes).unwrap();
        }),
        ("no database", |path| {
            std::fs::write(path, "hello".repeat(2_000)).unwrap()
        }),
        ("of a newer version", |path| {
            rusqlite::Connection::open(path)
                .unwrap()
                .pragma_update(None, "user_version", 99)
                .unwrap();
        }),
    ];
    for (what, damage) in damages {
        let home = Home::new();
        let id = home.store.id().to_owned();
        for number in 0..20 {
            home.made(POLICIES, &policy(&format!("p{number}"))).await;
        }
        let folder = home.close().await;
        damage(&file(folder.path()));
        let opened = open(folder.path(), ObjectStoreOptions::default());
        assert!(
            matches!(&opened.notices[..], [Notice::SetAside { .. }]),
            "{what}: {:?}",
            opened.notices
        );
        assert_eq!(set_aside(folder.path()).len(), 1, "{what}");
        assert_eq!(opened.store.id(), id, "{what}");
        let home = ("GET", format!("{POLICIES}?watch=1&resourceVersion=21"));
        let request = http::Request::builder()
            .method(home.0)
            .uri(home.1)
            .body(http_body_util::Full::<bytes::Bytes>::default())
            .unwrap();
        let response = tower::ServiceExt::oneshot(opened.store.service(), request)
            .await
            .unwrap();
        assert_eq!(
            response.status(),
            410,
            "{what}: versions of the old store mean nothing here"
        );
        opened.store.close(crate::support::PATIENCE).await.unwrap();
        let again = open(folder.path(), ObjectStoreOptions::default());
        assert_eq!(again.notices, [], "{what}: said once");
    }
}

#[tokio::test]
async fn fault_37_a_lost_id_is_taken_from_what_still_runs() {
    let folder = tempfile::tempdir().unwrap();
    let options = ObjectStoreOptions {
        recovered_id: Some("0123456789ab".to_owned()),
        ..ObjectStoreOptions::default()
    };
    let opened = open(folder.path(), options);
    assert_eq!(opened.store.id(), "0123456789ab");
    assert_eq!(
        std::fs::read_to_string(folder.path().join("instance")).unwrap(),
        "0123456789ab\n"
    );
    opened.store.close(crate::support::PATIENCE).await.unwrap();
    std::fs::write(folder.path().join("instance"), "../../etc").unwrap();
    let opened = open(folder.path(), ObjectStoreOptions::default());
    assert_eq!(
        opened.notices,
        [Notice::OtherInstance {
            found: "../../etc".to_owned()
        }]
    );
    assert_eq!(opened.store.id(), "0123456789ab");
}

#[tokio::test]
async fn fault_40_names_that_lead_elsewhere_are_refused_with_their_path() {
    let home = Home::new();
    for name in [
        "../x",
        "a/b",
        ".",
        "..",
        "A",
        "a\u{1b}[31m",
        "a\nb",
        &"a".repeat(300),
        "x%2fy",
        "",
    ] {
        let (code, status) = home.post(POLICIES, &policy(name)).await;
        assert_eq!(code, 422, "{name:?}: {status}");
        assert!(
            status["details"]["causes"]
                .as_array()
                .unwrap()
                .iter()
                .all(|cause| cause["field"] == "metadata.name" || cause["field"] == "<nil>"),
            "{name:?}: {status}"
        );
    }
    for path in [
        "/apis/relay.dev/v1alpha1/namespaces/default/routingpolicies/%2e%2e%2fx",
        "/apis/%2e%2e/version",
        "/..%2f",
    ] {
        assert_eq!(home.get(path).await.0, 404, "{path}");
    }
    let mut huge = policy("one");
    huge["metadata"]["labels"] = json!({"k": "v".repeat(100_000)});
    let (code, status) = home.post(POLICIES, &huge).await;
    assert_eq!(
        (code, &status["details"]["causes"][0]["field"]),
        (422, &json!("metadata.labels"))
    );
    let names = std::fs::read_dir(home.path()).unwrap().count();
    assert!(names <= 6, "the store's own files alone");
}

#[tokio::test]
async fn a_second_process_or_store_is_refused() {
    let home = Home::new();
    let other = ObjectStore::open(
        &file(home.path()),
        &home.path().join("instance"),
        ObjectStoreOptions::default(),
    );
    let said = other.unwrap_err().to_string();
    assert!(said.ends_with("is in use by another process"), "{said}");
}

#[tokio::test]
async fn a_full_disk_is_said_and_nothing_is_half_written() {
    let home = Home::new();
    let made = home.made(POLICIES, &policy("one")).await;
    let folder = home.close().await;
    // To SQLite a store at its limit is a full disk.
    let length = std::fs::metadata(file(folder.path())).unwrap().len();
    let options = ObjectStoreOptions {
        max_file_bytes: length + (1 << 20),
        ..ObjectStoreOptions::default()
    };
    let opened = open(folder.path(), options);
    let client = Home::from_opened(opened, folder);
    let revision = |number: usize| {
        json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": format!("r{number}")},
            "data": {"x": "x".repeat(200_000)}, "revision": 1,
        })
    };
    let mut stored = 0;
    let refused = loop {
        let (code, status) = client.post(REVISIONS, &revision(stored)).await;
        if code != 201 {
            break (code, status);
        }
        stored += 1;
        assert!(stored < 100, "the disk never was full");
    };
    assert_eq!(
        (refused.0, &refused.1["reason"]),
        (507, &json!("InsufficientStorage")),
        "{}",
        refused.1
    );
    assert_eq!(
        client.get(&at(POLICIES, "one")).await,
        (200, made),
        "reading goes on"
    );
    let (_, list) = client.get(REVISIONS).await;
    assert_eq!(
        list["items"].as_array().map(Vec::len),
        Some(stored),
        "all or nothing"
    );
    let folder = client.close().await;
    let opened = open(folder.path(), ObjectStoreOptions::default());
    assert_eq!(opened.notices, [], "the file is whole");
    let home = Home::from_opened(opened, folder);
    assert_eq!(
        home.post(REVISIONS, &revision(stored)).await.0,
        201,
        "with room it goes on"
    );
}

/// Not a test by itself: the child of the next one. Writes until it is killed, and says what was acknowledged.
#[tokio::test]
async fn child_that_writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os("RELAY_TEST_KILL_FOLDER") else {
        return;
    };
    let opened = open(Path::new(&folder), ObjectStoreOptions::default());
    let client = kube::Client::new(opened.store.service(), "default");
    let api: kube::Api<k8s_openapi::api::apps::v1::ControllerRevision> =
        kube::Api::default_namespaced(client);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let writers = (0..8).map(|_| async {
        loop {
            let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let name = format!("r{}-{number}", std::process::id());
            let revision: Value =
                json!({"metadata": {"name": name}, "data": {"n": number}, "revision": number});
            let revision = serde_json::from_value(revision).unwrap();
            api.create(&kube::api::PostParams::default(), &revision)
                .await
                .unwrap();
            let mut out = std::io::stdout().lock();
            writeln!(out, "done {name}").unwrap();
            out.flush().unwrap();
        }
    });
    futures_util::future::join_all(writers).await;
}

#[tokio::test]
async fn a_kill_in_the_middle_of_commits_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..4 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "faults::child_that_writes_until_it_is_killed",
                "--nocapture",
            ])
            .env("RELAY_TEST_KILL_FOLDER", folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let enough = acknowledged.len() + 40 + 17 * round;
        while acknowledged.len() < enough {
            let line = lines.next().expect("the child writes").unwrap();
            if let Some(name) = line.split("done ").nth(1) {
                acknowledged.push(name.to_owned());
            }
        }
        child.kill().unwrap();
        for line in lines.map_while(Result::ok) {
            if let Some(name) = line.strip_prefix("done ").filter(|name| name.contains('-')) {
                acknowledged.push(name.to_owned());
            }
        }
        child.wait().unwrap();
    }
    let opened = open(folder.path(), ObjectStoreOptions::default());
    assert_eq!(opened.notices, []);
    let home = Home::from_opened(opened, folder);
    let (_, list) = home.get(REVISIONS).await;
    let items = list["items"].as_array().unwrap();
    let stored: std::collections::HashSet<_> = items
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|name| !stored.contains(name.as_str()))
        .collect();
    assert!(lost.is_empty(), "{lost:?} of {}", acknowledged.len());
    // The feed tells the same as the list.
    let mut replayed = std::collections::HashSet::new();
    let mut watch = home
        .watch(&format!("{REVISIONS}?watch=1&resourceVersion=1"))
        .await;
    while replayed.len() < items.len() {
        let (verb, name) = watch.brief().await;
        assert_eq!(verb, "ADDED");
        assert!(replayed.insert(name));
    }
}

#[tokio::test]
async fn fault_37_versions_of_a_file_that_was_deleted_are_not_given_out_again() {
    let home = Home::new();
    for number in 0..5 {
        home.made(POLICIES, &policy(&format!("p{number}"))).await;
    }
    let folder = home.close().await;
    std::fs::remove_file(file(folder.path())).unwrap();
    let home = Home::from_opened(open(folder.path(), ObjectStoreOptions::default()), folder);
    for number in 0..9 {
        home.made(POLICIES, &policy(&format!("q{number}"))).await;
    }
    let (code, status) = home
        .get(&format!("{POLICIES}?watch=1&resourceVersion=6"))
        .await;
    assert_eq!(
        (code, &status["reason"]),
        (410, &json!("Expired")),
        "{status}"
    );
}

#[tokio::test]
async fn one_file_says_that_the_store_is_taken() {
    let home = Home::new();
    let names = std::fs::read_dir(home.path()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let locks: Vec<String> = names.filter(|name| name.ends_with("lock")).collect();
    assert_eq!(locks, ["objects.db.lock"]);
}
