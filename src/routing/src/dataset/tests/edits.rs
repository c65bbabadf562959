use super::*;

fn taught() -> Vec<Row> {
    vec![
        pool("r00001", "Bump the version"),
        session(
            "s00001",
            "Fix the date parser",
            r#","split":"train","session":"one","lesson":"Months count from 1.""#,
        ),
        session(
            "s00002",
            "Write release notes",
            r#","split":"train","session":"two""#,
        ),
    ]
}

#[test]
fn another_lesson_or_none() {
    let rows = taught();
    let edit = edit_lesson(&view(&rows), "s00001", Some(" Run it twice. ")).expect("edits");
    assert_eq!(edit.applied(&rows)[1].lesson(), Some("Run it twice."));
    assert_eq!((edit.updated, edit.added), (1, 0));
    let edit = edit_lesson(&view(&rows), "s00001", None).expect("edits");
    assert_eq!(edit.applied(&rows)[1].lesson(), None);
    let same = edit_lesson(&view(&rows), "s00001", Some("Months count from 1.")).expect("edits");
    assert!(same.is_empty());
    for id in ["s00009", "r00001"] {
        let error = edit_lesson(&view(&rows), id, None).expect_err("no learned task");
        assert_eq!(
            error,
            EditError::NoTask {
                ids: vec![id.to_owned()]
            }
        );
    }
    for lesson in [
        "a".repeat(LESSON_UNITS + 1),
        "use password=hunter2".to_owned(),
    ] {
        let error = edit_lesson(&view(&rows), "s00001", Some(&lesson)).expect_err("refused");
        assert!(matches!(error, EditError::Lesson(field) if field.path == "lesson"));
    }
}

#[test]
fn forgets_by_id_by_session_and_all() {
    let rows = taught();
    let after = |what: Forget| {
        let edit = forget(&view(&rows), &what).expect("forgets");
        assert_eq!(edit.highest_session_number, 2, "ids are not given again");
        ids(&edit.applied(&rows)).join(" ")
    };
    assert_eq!(
        after(Forget::Ids(vec!["s00001".to_owned()])),
        "r00001 s00002"
    );
    assert_eq!(after(Forget::Session("two".to_owned())), "r00001 s00001");
    assert_eq!(after(Forget::All), "r00001");
    let some = Forget::Ids(vec![
        "s00001".to_owned(),
        "s00009".to_owned(),
        "r00001".to_owned(),
    ]);
    let missing = vec!["s00009".to_owned(), "r00001".to_owned()];
    assert_eq!(
        forget(&view(&rows), &some),
        Err(EditError::NoTask { ids: missing })
    );
    let none = Forget::Session("three".to_owned());
    assert_eq!(
        forget(&view(&rows), &none),
        Err(EditError::NoSession {
            session: "three".to_owned()
        })
    );
}

const MAP: &str = r#"
version = 1
drop = ["urgency"]
[questions.task_type]
was = "kind"
options = { defect = "bug_fix" }
"#;

fn foreign(id: &str, kind: &str, more: &str) -> Row {
    let line = old_line(id, &format!("Do {id}"), "session", r#","split":"train""#);
    row(&line
        .replace(r#""task_type":"bug_fix""#, &format!(r#""kind":"{kind}""#))
        .replace(
            r#""security_sensitive":false"#,
            &format!(r#""security_sensitive":false,"urgency":2{more}"#),
        ))
}

#[test]
fn migrates_by_the_map_and_by_nothing_else() {
    let rows = [
        foreign("s00001", "defect", ""),
        foreign("s00002", "feature", ""),
        foreign("s00003", "chore", ""),
        foreign("s00004", "defect", r#","mood":"good""#),
        session("s00005", "In force", r#","split":"train""#),
        foreign("s00006", "defect", "").stamped(&InForce {
            shape: decision::contract::Digest::of(b"x"),
            ..in_force()
        }),
    ];
    let map = MigrationMap::read(MAP).expect("a map");
    let migration = migrate(&view(&rows), &map, &in_force());
    assert_eq!(migration.edit.ids, ["s00001", "s00002"]);
    let RowStanding::InForce(labels) = migration.edit.puts[0].standing(&in_force()) else {
        panic!("in force");
    };
    assert_eq!(labels.task_type, decision::vocabulary::TaskType::BugFix);
    assert_eq!(
        migration.edit.puts[0].shape(),
        Some(in_force().shape.to_string().as_str())
    );
    let remaining: Vec<_> = migration
        .remaining
        .iter()
        .map(|left| (left.path.as_str(), left.message.as_str()))
        .collect();
    assert_eq!(remaining.len(), 2);
    assert!(
        remaining[0].0 == "s00003"
            && remaining[0]
                .1
                .starts_with("labels.task_type: unknown task type `chore`")
    );
    assert_eq!(remaining[1], ("s00004", "the map says nothing of mood"));
    let again = migrate(&view(&migration.edit.applied(&rows)), &map, &in_force());
    assert!(again.edit.is_empty(), "once is enough");
}

#[test]
fn a_map_is_for_the_rows_of_its_shape() {
    let other = InForce {
        shape: decision::contract::Digest::of(b"x"),
        ..in_force()
    };
    let rows = [
        foreign("s00001", "defect", "").stamped(&other),
        foreign("s00002", "defect", ""),
    ];
    let map = format!("from = \"{}\"\n{MAP}", other.shape);
    let migration = migrate(
        &view(&rows),
        &MigrationMap::read(&map).expect("a map"),
        &in_force(),
    );
    assert_eq!(migration.edit.ids, ["s00001"]);
}

#[test]
fn refuses_maps_that_lead_nowhere() {
    let rows = [
        (
            r#"{"version":2}"#,
            "migration map has version 2, this program reads 1",
        ),
        (
            "version = 1\n[questions.scope]\noptions = { all = \"everything\" }",
            "questions.scope.options.all: `everything` is no option of scope",
        ),
        (
            "version = 1\ndrop = [\"kind\"]\n[questions.task_type]\nwas = \"kind\"",
            "drop: `kind` is also the source of questions.task_type",
        ),
    ];
    for (text, message) in rows {
        assert_eq!(
            MigrationMap::read(text).expect_err("refused").to_string(),
            message
        );
    }
    assert!(matches!(
        MigrationMap::read("version = 1\nguess = true"),
        Err(MapError::Form { .. })
    ));
    let json = r#"{"version":1,"drop":["urgency"],"questions":{"task_type":{"was":"kind","options":{"defect":"bug_fix"}}}}"#;
    assert_eq!(MigrationMap::read(json), MigrationMap::read(MAP));
}
