//! Properties of rows and of what is done with them that hold for any text (training.md 2).

use decision::relay_contract;
use jiff::Timestamp;
use proptest::prelude::*;
use routing::dataset::{
    DatasetView, InForce, LearnBody, Mirror, Row, Source, Split, has_secret, import_mirror, learn,
    redact, seed, snapshot, write_file,
};
use routing::memory::merge_key;
use serde_json::{Value, json};

fn in_force() -> InForce {
    InForce::of(relay_contract())
}

fn labels() -> Value {
    json!({
        "task_type": "feature", "complexity": 2, "scope": "module", "risk": 1, "ambiguity": 2,
        "reasoning_requirement": 2, "capability_tier": "balanced", "reasoning_effort": "medium",
        "agent": "software-engineer", "validation_level": "unit_test", "requires_write": true,
        "requires_shell": true, "requires_tests": true, "requires_web": false,
        "requires_browser": false, "requires_database": false, "requires_git": false,
        "security_sensitive": true
    })
}

/// Requests that are the same task often enough, mixed with any text.
fn request() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => "(fix|FIX| fix)  ?(the|a) (date|form)( |\t)?",
        1 => any::<String>(),
    ]
    .prop_filter("not blank", |text| !text.trim().is_empty())
}

fn body(requests: &[String]) -> LearnBody {
    let exercises: Vec<Value> = requests
        .iter()
        .map(|request| json!({ "request": request, "labels": labels() }))
        .collect();
    let body = json!({
        "session": "one", "shape": in_force().shape.to_string(), "exercises": exercises
    });
    serde_json::from_value(body).expect("a body")
}

fn learned(rows: &[Row], requests: &[String]) -> Vec<Row> {
    let view = DatasetView {
        rows,
        highest_session_number: 0,
    };
    learn(
        &view,
        &body(requests),
        Timestamp::UNIX_EPOCH,
        &in_force(),
        |_| Vec::new(),
    )
    .expect("valid")
    .applied(rows)
}

/// A credential of some form, and the text it stands in.
fn secret() -> impl Strategy<Value = (String, String)> {
    prop_oneof![
        "ghp_[A-Za-z0-9]{36}".prop_map(|token| (token.clone(), token)),
        "glpat-[A-Za-z0-9]{20}".prop_map(|token| (token.clone(), token)),
        "AKIA[A-Z0-9]{16}".prop_map(|token| (token.clone(), token)),
        "xoxb-[0-9]{11}-[A-Za-z0-9]{24}".prop_map(|token| (token.clone(), token)),
        "eyJ[A-Za-z0-9]{20}\\.eyJ[A-Za-z0-9]{20}\\.[A-Za-z0-9]{20}"
            .prop_map(|token| (token.clone(), token)),
        "[a-z]{3}[0-9]{3}[A-Z]{4}".prop_map(|value| (value.clone(), format!("password={value}"))),
        "[a-z]{3}[0-9]{3}[A-Z]{4}"
            .prop_map(|value| (value.clone(), format!("\"api_key\": \"{value}\""))),
        "[a-z]{3}[0-9]{3}[A-Z]{4}"
            .prop_map(|value| (value.clone(), format!("https://me:{value}@host/x"))),
    ]
}

proptest! {
    #[test]
    fn redaction_leaves_no_secret_and_is_done_once((value, text) in secret(), before in "\\PC{0,30}", after in "\\PC{0,30}") {
        let text = format!("{before} {text} {after}");
        let clean = redact(&text);
        prop_assert!(!clean.contains(&value), "{clean}");
        prop_assert!(!has_secret(&clean), "{clean}");
    }

    #[test]
    fn any_text_can_be_searched_for_secrets(text in any::<String>(), more in "[-:=@/\"' a-zé]{0,40}(password|token|bearer|://|-----BEGIN | PRIVATE KEY-----)[-:=@/\"' a-zé]{0,40}") {
        for text in [text, more] {
            let clean = redact(&text);
            prop_assert_eq!(redact(&clean), clean.clone());
        }
    }

    #[test]
    fn rows_survive_their_line(request in any::<String>().prop_filter("not blank", |text| !text.trim().is_empty()), lesson in any::<String>()) {
        let rows = learned(&[], &[request]);
        let row = rows[0].with_lesson(Some(&lesson)).with_split(Split::Test).with_id("s00042").stamped(&in_force());
        prop_assert_eq!(Row::read(row.line()).expect("reads"), row.clone());
        prop_assert!(!row.line().contains('\n'));
        let lesson = Some(lesson.trim()).filter(|lesson| !lesson.is_empty());
        prop_assert_eq!(row.lesson(), lesson);
        prop_assert_eq!((row.id(), row.split(), row.source()), ("s00042", Some(Split::Test), &Source::Session));
        prop_assert_eq!(Row::read(&row.canonical()).expect("reads").canonical(), row.canonical());
    }

    #[test]
    fn learning_again_changes_nothing_and_each_task_is_one_row(first in prop::collection::vec(request(), 1..8), second in prop::collection::vec(request(), 1..8)) {
        let rows = learned(&[], &first);
        prop_assert_eq!(learned(&rows, &first).len(), rows.len());
        let after = learned(&rows, &second);
        let mut keys: Vec<String> = after.iter().map(Row::merge_key).collect();
        let mut expected: Vec<String> =
            first.iter().chain(&second).map(|request| merge_key(&redact(request))).collect();
        for list in [&mut keys, &mut expected] {
            list.sort();
        }
        expected.dedup();
        prop_assert_eq!(keys, expected, "one row per task");
        for (old, new) in rows.iter().zip(&after) {
            prop_assert_eq!((old.id(), old.split()), (new.id(), new.split()));
        }
        let mut ids: Vec<&str> = after.iter().map(Row::id).collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), after.len());
    }

    #[test]
    fn a_file_that_was_written_is_imported_as_it_is(requests in prop::collection::vec(request(), 1..8), cut in 0..400_usize) {
        let mut rows = learned(&[], &requests);
        rows.extend(seed(3, &in_force()));
        let view = DatasetView { rows: &rows, highest_session_number: 0 };
        let text = write_file(&rows);
        let whole = import_mirror(&view, Mirror { text: &text, written: None }, &in_force());
        prop_assert!(whole.edit.is_empty(), "{:?}", whole.edit);
        // A file cut in the middle of a line may lose whole lines, but never the row of the broken one.
        let cut = text.len().saturating_sub(cut + 1);
        let Some(part) = text.get(..cut) else { return Ok(()) };
        let cut = import_mirror(&view, Mirror { text: part, written: None }, &in_force());
        let read = part.lines().count();
        prop_assert!(cut.edit.puts.is_empty());
        prop_assert!(cut.edit.removes.len() <= rows.len() - read);
    }

    #[test]
    fn a_snapshot_does_not_depend_on_the_order(requests in prop::collection::vec(request(), 1..8), turn in 0..8_usize) {
        let rows = learned(&[], &requests);
        let mut turned = rows.clone();
        turned.rotate_left(turn % rows.len());
        prop_assert_eq!(snapshot(&rows, &in_force(), 1), snapshot(&turned, &in_force(), 1));
    }
}
