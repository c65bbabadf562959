//! `relay laya migrate`.

use serde_json::{Value, json};

use crate::{Home, end};

const FILE: &str = "laya/training/data/dataset.jsonl";

/// A row with the 18 labels in force, but for what is replaced.
fn row(id: &str, shape: Option<&str>, agent: (&str, &str)) -> String {
    let mut expected = json!({
        "task_type": "bug_fix", "complexity": 1, "scope": "module", "risk": 0, "ambiguity": 0,
        "reasoning_requirement": 1, "capability_tier": "fast", "reasoning_effort": "low",
        "validation_level": "unit_test", "requires_write": true, "requires_shell": false, "requires_tests": true,
        "requires_web": false, "requires_browser": false, "requires_database": false, "requires_git": false,
        "security_sensitive": false,
    });
    expected[agent.0] = json!(agent.1);
    let mut row = json!({
        "id": id, "state": {"request": format!("Fix the {id} parser")}, "expected": expected, "source": "session",
        "split": "train", "session": "one", "label_source": "agent", "created": "2026-11-30T10:41:00.000Z", "mine": 1,
    });
    if let Some(shape) = shape {
        row["shape"] = json!(shape);
    }
    row.to_string()
}

fn old_shape() -> String {
    format!("sha256:{}", "0".repeat(64))
}

fn map() -> String {
    format!(
        "version = 1\nfrom = \"{}\"\n[questions.agent]\nwas = \"role\"\noptions = {{ tester = \"qa-engineer\" }}\n",
        old_shape()
    )
}

#[test]
fn maps_what_the_map_names_and_keeps_the_rest() {
    let home = Home::new();
    let old = old_shape();
    let lines = [
        row("s00001", Some(&old), ("role", "tester")),
        "  no row".to_owned(),
        row("s00002", None, ("agent", "qa-engineer")),
        String::new(),
        row("s00002", None, ("agent", "qa-engineer")),
        row("s00003", Some(&old), ("role", "plumber")),
        r#"{"id": "s00004", "state": {"#.to_owned(),
    ];
    let before = lines.join("\n") + "\n";
    home.write(FILE, &before);
    home.write("map.toml", &map());
    let map = home.agent("map.toml");
    let migrate = |more: &[&str]| {
        let arguments = [&["laya", "migrate", "--map", map.to_str().unwrap()], more].concat();
        end(&mut home.command(&arguments))
    };
    let ended = migrate(&["--dry-run"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(
        ended.out.starts_with(
            "3 rows: 1 would be mapped, 1 of those the map is for left stale, 3 lines are no row\n"
        ),
        "{}",
        ended.out
    );
    assert!(
        ended.out.contains("  s00003      ") && ended.out.contains("  line 2      "),
        "{}",
        ended.out
    );
    assert_eq!(home.read(FILE).unwrap(), before);

    let ended = migrate(&["--json"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        (&report["mapped"], &report["stale"][0]["path"]),
        (&json!(["s00001"]), &json!("s00003"))
    );
    let backup = std::fs::read_to_string(report["backup"].as_str().unwrap()).unwrap();
    assert_eq!(backup, before);
    let after = home.read(FILE).unwrap();
    let (mapped, rest) = after.split_once('\n').unwrap();
    let mapped: Value = serde_json::from_str(mapped).unwrap();
    assert_eq!(mapped["expected"]["agent"], "qa-engineer");
    assert_eq!(
        mapped["shape"],
        decision::relay_contract().shape_digest().to_string()
    );
    assert_eq!(mapped["mine"], 1, "unknown keys stay");
    assert_eq!(
        rest,
        lines[1..].join("\n") + "\n",
        "what is no row stays in its place: the router would forget a row whose line is gone"
    );

    // The second time there is nothing to do, and nothing is written.
    let ended = migrate(&["--json"]);
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        (&report["mapped"], report.get("backup")),
        (&json!([]), None)
    );
    assert_eq!(home.read(FILE).unwrap(), after);
}

#[test]
fn says_what_it_cannot_use() {
    let home = Home::new();
    home.write("map.toml", "version = 2\n");
    let map = home.agent("map.toml");
    let migrate = || end(&mut home.command(&["laya", "migrate", "--map", map.to_str().unwrap()]));
    let ended = migrate();
    assert_eq!((ended.code, ended.out.as_str()), (1, ""));
    assert!(
        ended.err.contains("migration map has version 2"),
        "{}",
        ended.err
    );
    home.write("map.toml", &self::map());
    let ended = migrate();
    assert_eq!(ended.code, 1);
    assert!(
        ended
            .err
            .contains("dataset.jsonl: there is no such file\nhint: "),
        "{}",
        ended.err
    );
    assert_eq!(end(&mut home.command(&["laya", "migrate"])).code, 2);
}
