//! A router on one's own machine, as its user meets it: `relayd local` with the model inside, and `relay`, which finds it.

use serde_json::json;

use crate::programs::{Ended, Home, Http, PATIENCE, Router, checkpoint, run, teach, until};

/// Runs `relay` without being told where the router is; it must end well.
fn relay(home: &Home, arguments: &[&str]) -> Ended {
    let ended = run(&mut home.relay_alone(arguments));
    assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
    ended
}

fn endpoint(home: &Home) -> serde_json::Value {
    serde_json::from_str(&home.text("daemon/endpoint.json").unwrap()).unwrap()
}

#[test]
fn the_model_inside_answers_and_what_is_taught_answers_from_then_on() {
    let home = Home::new();
    let checkpoint = checkpoint(&home);
    let mut router = Router::local(&home, &["--checkpoint", checkpoint.to_str().unwrap()]);
    assert_eq!(endpoint(&home)["router"], router.url());
    assert_eq!(endpoint(&home)["pid"], router.pid());
    until("the model inside serves", || {
        let health = router.get("/health").ok();
        match (&health["ok"], &health["model"]) {
            (ok, model) if *ok == true && *model == "embedded" => Ok(()),
            _ => Err(health.to_string()),
        }
    });

    let text = "Fix the date parser of the calendar page";
    let before = relay(&home, &["route", "-o", "json", text]);
    assert_eq!(before.err, "", "the router was found");
    let before = before.record();
    assert_eq!(before["assessment"]["source"], "model", "{before}");
    assert_eq!(
        before["provenance"]["model"]["server"], "embedded",
        "{before}"
    );
    assert_eq!(before["request"], text, "the user's own router keeps texts");

    let http = Http::new(PATIENCE);
    let lesson = "Dates come in three formats.";
    let id = teach(&http, &router.url(), text, "strong", Some(lesson));
    let shown = relay(&home, &["route", text]);
    assert!(shown.out.starts_with("strong  "), "{}", shown.out);
    assert!(shown.out.contains("(memory"), "{}", shown.out);
    let after = relay(&home, &["route", "-o", "json", text]).record();
    assert_eq!(after["provenance"]["memory"]["task"], id.as_str());

    let explained = relay(&home, &["explain", after["id"].as_str().unwrap()]);
    for wanted in [text, &id, "memory"] {
        assert!(
            explained.out.contains(wanted),
            "{wanted}: {}",
            explained.out
        );
    }
    let report = relay(&home, &["report", "-o", "json"]).document();
    assert_eq!(report["total"]["decisions"], 3, "{report}");
    assert_eq!(report["by_source"]["memory"]["decisions"], 2, "{report}");
    assert_eq!(report["by_source"]["model"]["decisions"], 1, "{report}");

    router.terminate();
    assert_eq!(router.ended().code(), Some(0));
    assert!(
        home.text("daemon/endpoint.json").is_err(),
        "nobody is there"
    );
}

#[test]
fn learned_tasks_can_be_listed_found_changed_and_forgotten() {
    let home = Home::new();
    let router = Router::local(&home, &[]);
    let http = Http::new(PATIENCE);
    let parser = "Fix the date parser of the calendar page";
    let pager = "Repair the pager of the archive list";
    let ids = [parser, pager].map(|text| teach(&http, &router.url(), text, "strong", None));
    let memory = |arguments: &[&str]| {
        let all = [&["laya", "memory"], arguments, &["-o", "json"]].concat();
        relay(&home, &all).document()
    };
    let listed = memory(&["list"]);
    assert_eq!(listed["total"], 2, "{listed}");
    let requests: Vec<_> = listed["tasks"].as_array().unwrap().iter().collect();
    assert_eq!(requests[0]["request"], parser);
    assert_eq!(requests[1]["request"], pager);
    let found = memory(&["search", "the", "pager"]);
    assert_eq!(found["tasks"][0]["id"], ids[1].as_str(), "{found}");
    let lesson = "The pager is in two places.";
    memory(&["edit", &ids[1], "--lesson", lesson]);
    assert_eq!(memory(&["show", &ids[1]])["lesson"], lesson);
    until("the copy beside the agent's files has the lesson", || {
        let copy = home.text("agent/laya/training/data/dataset.jsonl")?;
        if copy.contains(lesson) {
            Ok(())
        } else {
            Err(format!("{} bytes", copy.len()))
        }
    });

    let source = |text: &str| {
        let record = relay(&home, &["route", "--dry-run", "-o", "json", text]).record();
        record["assessment"]["source"].as_str().unwrap().to_owned()
    };
    assert_eq!(source(pager), "memory");
    memory(&["forget", &ids[1], "--yes"]);
    assert_eq!(memory(&["list"])["total"], 1);
    assert_ne!(source(pager), "memory");
    assert_eq!(source(parser), "memory");
    until("the copy has forgotten it too", || {
        let copy = home.text("agent/laya/training/data/dataset.jsonl")?;
        if copy.contains(pager) {
            Err("it is there".to_owned())
        } else {
            Ok(())
        }
    });
}

#[test]
fn one_process_at_a_time_has_a_home_and_leaves_it_on_any_end() {
    let home = Home::new();
    let mut first = Router::local(&home, &[]);
    let second = run(&mut home.local(&[]));
    assert_eq!(second.code, 4, "{second:?}");
    assert!(
        second.err.contains("another `relayd local`"),
        "{}",
        second.err
    );
    assert_eq!(
        endpoint(&home)["router"],
        first.url(),
        "it took nothing away"
    );

    first.kill();
    // What it left names a process that is gone: nobody is asked.
    let alone = run(&mut home.relay_alone(&["route", "-o", "json", "Rename the author field"]));
    assert_eq!(alone.code, 0, "{alone:?}");
    let fallback = &alone.record()["provenance"]["fallback"];
    assert_eq!(*fallback, json!("router_unreachable"), "{alone:?}");
    let next = Router::local(&home, &[]);
    assert_eq!(endpoint(&home)["router"], next.url());
    let routed = relay(&home, &["route", "-o", "json", "Rename the author field"]);
    assert_eq!(routed.err, "");
}
