use std::collections::HashSet;

use super::*;

fn pool_rows(count: usize) -> Vec<Row> {
    (0..count)
        .map(|at| pool(&format!("r{at:05}"), &format!("Task {at}")).with_split(Split::Train))
        .collect()
}

#[test]
fn chooses_focus_replay_val_and_test() {
    let mut rows = pool_rows(150);
    rows.push(session(
        "s00001",
        "Fix the date parser",
        r#","split":"train""#,
    ));
    rows.push(session(
        "s00002",
        "Write release notes",
        r#","split":"test""#,
    ));
    rows.push(pool(
        "r90001",
        "Compare Redis and Kafka for our event queue",
    )); // h = 11: val
    rows.push(pool("r90002", "Migrate the product page to Vue")); // h = 8: test
    rows.push(row(&old_line(
        "e00001",
        "Where is parseDate defined?",
        "evaluation",
        "",
    )));
    let recipe = SelectionRecipe::default();
    let chosen = select(&rows, &HashSet::new(), &recipe).expect("chooses");
    let names = |rows: &[&Row]| {
        rows.iter()
            .map(|row| row.id().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&chosen.focus), ["s00001"]);
    assert_eq!(names(&chosen.val), ["r90001"]);
    assert_eq!(names(&chosen.test), ["s00002", "r90002", "e00001"]);
    assert_eq!(chosen.replay.len(), 100);
    assert_eq!(chosen.training(&recipe).count(), 104);
    assert_eq!(
        select(&rows, &HashSet::new(), &recipe).as_ref(),
        Ok(&chosen),
        "the same each time"
    );
    let other = SelectionRecipe { seed: 8, ..recipe };
    assert_ne!(
        select(&rows, &HashSet::new(), &other)
            .expect("chooses")
            .replay,
        chosen.replay
    );
}

#[test]
fn leaves_out_what_is_held_out_and_refuses_many_of_it() {
    let mut rows = pool_rows(99);
    rows.push(session(
        "s00001",
        "Fix the date parser",
        r#","split":"train""#,
    ));
    rows.push(pool("r90001", "TASK  3").with_split(Split::Test));
    let held_out = HashSet::from(["task 5".to_owned()]);
    let chosen = select(&rows, &held_out, &SelectionRecipe::default()).expect("chooses");
    assert_eq!(chosen.leaked, 2);
    assert!(
        chosen
            .replay
            .iter()
            .all(|row| !["Task 3", "Task 5"].contains(&row.request()))
    );
    let many: HashSet<String> = (0..6).map(|at| format!("task {at}")).collect();
    let error = select(&rows, &many, &SelectionRecipe::default()).expect_err("too many");
    assert_eq!(
        error.to_string(),
        "6 of 100 training rows are also in a held-out set, limit 5 %"
    );
    let five: HashSet<String> = (0..5).map(|at| format!("task {at}")).collect();
    assert!(
        select(&rows, &five, &SelectionRecipe::default()).is_ok(),
        "5 % is allowed"
    );
}

#[test]
fn needs_a_session_row_to_train_on() {
    let rows = [session(
        "s00001",
        "Write release notes",
        r#","split":"test""#,
    )];
    let chosen = select(&rows, &HashSet::new(), &SelectionRecipe::default());
    assert_eq!(chosen, Err(SelectionError::NoFocus));
}
