use std::collections::HashSet;

use super::*;

fn taught() -> Vec<Row> {
    vec![
        pool("r00001", "Bump the version"),
        session(
            "s00001",
            "Fix the date parser",
            r#","split":"train","lesson":"Months count from 1.""#,
        ),
        session("s00002", "Write release notes", r#","split":"test""#),
    ]
}

fn import(rows: &[Row], text: &str) -> Import {
    import_mirror(
        &view(rows),
        Mirror {
            text,
            written: None,
        },
        &in_force(),
    )
}

#[test]
fn our_own_file_changes_nothing() {
    let rows = taught();
    let import = import(&rows, &write_file(&rows));
    assert!(import.edit.is_empty());
    assert_eq!((import.unchanged, import.lines, import.kept), (3, 3, 0));
}

#[test]
fn takes_changes_additions_and_deletions() {
    let rows = taught();
    let text = [
        rows[1].line().replace("Months count", "Days count"),
        old_line("s00007", "Add a form", "session", ""),
        old_line("", "Add a list", "session", "").replace(r#""id":"","#, ""),
        old_line("", "Add a tree", "synthetic", ""),
    ]
    .join("\n");
    let import = import(&rows, &text);
    let after = import.edit.applied(&rows);
    assert_eq!(ids(&after), ["s00001", "s00007", "s00008", "r00002"]);
    assert_eq!((import.edit.added, import.edit.updated), (3, 1));
    assert_eq!(import.edit.removes, ["r00001", "s00002"]);
    assert_eq!(import.edit.highest_session_number, 8);
    assert_eq!(after[0].lesson(), Some("Days count from 1."));
    assert!(after.iter().all(|row| row.shape().is_some()), "stamped");
    assert_eq!(
        after[1].split(),
        Some(Split::Train),
        "older installations trained on it"
    );
    assert_eq!(after[3].split(), None);
}

#[test]
fn the_same_task_keeps_its_id_its_split_and_its_lesson() {
    let rows = taught();
    let text = [
        rows[0].line().to_owned(),
        old_line("s00004", "fix THE date parser", "session", ""),
        rows[2]
            .line()
            .replace(r#""split":"test""#, r#""split":"train""#),
    ]
    .join("\n");
    let import = import(&rows, &text);
    let after = import.edit.applied(&rows);
    assert_eq!(ids(&after), ["r00001", "s00001", "s00002"]);
    assert_eq!(after[1].lesson(), Some("Months count from 1."));
    assert_eq!(after[1].request(), "fix THE date parser");
    assert_eq!(after[2], rows[2], "held out stays held out");
    assert_eq!(import.edit.warnings.len(), 1);
    assert_eq!(import.edit.warnings[0].path, "s00002");
}

#[test]
fn broken_lines_delete_nothing() {
    let rows = taught();
    let named = format!("{}\n{}", rows[0].line(), &rows[1].line()[..60]);
    let import_named = import(&rows, &named);
    assert_eq!(
        import_named.edit.removes,
        ["s00002"],
        "s00001 is named by the broken line"
    );
    assert_eq!(
        (
            import_named.kept,
            import_named.rejected.len(),
            import_named.rejected[0].line
        ),
        (1, 1, 2)
    );
    let nameless = format!("{}\n{{\"sta", rows[0].line());
    let import_nameless = import(&rows, &nameless);
    assert_eq!(import_nameless.edit.removes, Vec::<String>::new());
    assert_eq!(import_nameless.kept, 2);
}

#[test]
fn forgets_only_what_the_file_once_held() {
    let rows = taught();
    let written = HashSet::from(["s00001".to_owned()]);
    let mirror = Mirror {
        text: "",
        written: Some(&written),
    };
    let import = import_mirror(&view(&rows), mirror, &in_force());
    assert_eq!(
        import.edit.removes,
        ["s00001"],
        "the others were learned since"
    );
    let mirror = Mirror {
        text: "",
        written: Some(&HashSet::new()),
    };
    assert!(
        import_mirror(&view(&rows), mirror, &in_force())
            .edit
            .is_empty()
    );
}

#[test]
fn rows_of_other_questions_are_taken_without_a_stamp() {
    let line = old_line("s00001", "Fix it", "session", r#","split":"train""#)
        .replace("software-engineer", "game-engineer");
    let import = import(&[], &line);
    assert_eq!(import.edit.puts[0].line(), line);
    assert!(import.edit.puts[0].standing(&in_force()).is_stale());
}

#[test]
fn importing_twice_changes_nothing() {
    let text = format!(
        "{}\n{}\n{}\n",
        old_line("s00003", "Add a form", "session", ""),
        old_line("s00004", "ADD a form", "session", ""),
        old_line("r00001", "Add a tree", "synthetic", ""),
    );
    let first = import(&[], &text);
    assert_eq!(
        ids(&first.edit.puts),
        ["s00003", "r00001"],
        "one task, one row"
    );
    let rows = first.edit.applied(&[]);
    let again = import(&rows, &write_file(&rows));
    assert!(again.edit.is_empty());
}
