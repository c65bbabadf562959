//! Files that are no objects (issue 6, “Bad input”): one clear line with file, line and field, the right code, and nobody
//! is asked.

use crate::support::{Home, first};

const OBJECT: &str =
    "apiVersion: relay.dev/v1alpha1\nkind: RoutingPolicy\nmetadata:\n  name: default\n";

#[test]
fn fault_40_hostile_files_are_refused_before_anybody_is_asked() {
    let home = Home::new();
    let bomb = {
        let mut text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (name, before) in ["b", "c", "d", "e", "f", "g", "h", "i", "j"]
            .iter()
            .zip("abcdefghi".chars())
        {
            let list = vec![format!("*{before}"); 10].join(", ");
            text.push_str(&format!("{name}: &{name} [{list}]\n"));
        }
        text
    };
    home.write("bomb.yaml", bomb);
    home.write("twice.yaml", format!("{OBJECT}kind: RoutingPolicy\n"));
    home.write("tab.yaml", format!("{OBJECT}spec:\n\tprofile: quality\n"));
    home.write(
        "indent.yaml",
        format!("{OBJECT}spec:\n    profile: quality\n  memory: true\n"),
    );
    home.write("second.yaml", format!("{OBJECT}---\nkind: [\n"));
    home.write(
        "kind.yaml",
        "apiVersion: relay.dev/v1alpha1\nkind: RoutingPolitics\nmetadata: {name: a}\n",
    );
    home.write(
        "path.yaml",
        "apiVersion: relay.dev/v1alpha1\nkind: LayaModel\nmetadata:\n  name: ../../etc/passwd\n",
    );
    home.write(
        "large.yaml",
        format!("{OBJECT}spec: {{profile: \"{}\"}}\n", "x".repeat(2 << 20)),
    );
    home.write("binary.yaml", b"\x7fELF\x02\x01\xff");
    home.write(
        "escape.yaml",
        format!("{OBJECT}\"\\e[2J\": 1\n\"\\e[2J\": 2\n"),
    );
    std::fs::create_dir(home.path("hollow")).unwrap();
    home.write("empty.yaml", "");
    home.write("comment.yaml", "# nothing\n---\n");
    for (file, code, line) in [
        ("bomb.yaml", 4, "relayctl: bomb.yaml:"),
        (
            "twice.yaml",
            4,
            "relayctl: twice.yaml:5:1: the key `kind` stands there twice",
        ),
        ("tab.yaml", 4, "relayctl: tab.yaml:6:"),
        ("indent.yaml", 4, "relayctl: indent.yaml:7:"),
        ("second.yaml", 4, "relayctl: second.yaml:"),
        (
            "kind.yaml",
            4,
            "relayctl: kind.yaml:2: kind: `RoutingPolitics` is no kind of ours",
        ),
        (
            "path.yaml",
            4,
            "relayctl: path.yaml:4: metadata.name: `../../etc/passwd` is no name: only a-z, 0-9, `-` and `.` may be in it",
        ),
        (
            "large.yaml",
            4,
            "relayctl: large.yaml: has 2097249 bytes, limit 1048576",
        ),
        (
            "binary.yaml",
            4,
            "relayctl: binary.yaml: is not valid UTF-8 at byte 6",
        ),
        (
            "escape.yaml",
            4,
            "relayctl: escape.yaml:6:1: the key `\\u{1b}[2J` stands there twice",
        ),
        (
            "empty.yaml",
            4,
            "relayctl: empty.yaml: holds no object, only nothing or comments",
        ),
        (
            "comment.yaml",
            4,
            "relayctl: comment.yaml: holds no object, only nothing or comments",
        ),
        (
            "hollow",
            4,
            "relayctl: hollow: holds no file that ends with .yaml, .yml or .json",
        ),
        (
            "missing.yaml",
            3,
            "relayctl: cannot read missing.yaml: No such file or directory",
        ),
    ] {
        for verb in ["apply", "diff", "validate", "delete"] {
            let ran = home.run(&[verb, "-f", file]);
            assert_eq!(
                (ran.code, ran.out.as_str()),
                (Some(code), ""),
                "{verb} {file}: {}",
                ran.err
            );
            assert!(first(&ran).starts_with(line), "{verb} {file}: {}", ran.err);
            assert!(!ran.err.contains('\u{1b}'), "{verb} {file}");
        }
    }
}

#[test]
fn a_folder_with_one_bad_file_sends_nothing() {
    let home = Home::new();
    home.write("folder/a.yaml", OBJECT);
    home.write("folder/b.yaml", "kind: [\n");
    let asked = crate::scripted::serve(&home, |_| {
        crate::scripted::Answer::Text(500, "nobody should ask")
    });
    let ran = home.run(&["apply", "-f", "folder"]);
    assert_eq!(ran.code, Some(4));
    assert!(asked.lock().unwrap().is_empty());
}

#[test]
fn validate_names_every_field_with_its_line() {
    let home = Home::new();
    home.write(
        "policy.yaml",
        format!(
            "{OBJECT}spec:\n  profile: nothing\n  tiers:\n    - name: fast\n      models: []\n"
        ),
    );
    let ran = home.run(&["validate", "-f", "policy.yaml"]);
    assert_eq!(ran.code, Some(4), "{}{}", ran.out, ran.err);
    assert!(
        ran.out
            .contains("policy.yaml:9: routingpolicy/default: spec.tiers[0].models: "),
        "{}",
        ran.out
    );

    home.write(
        "unknown.yaml",
        format!("{OBJECT}spec:\n  profle: quality\n"),
    );
    let ran = home.run(&["validate", "-f", "unknown.yaml"]);
    assert_eq!(ran.code, Some(4));
    assert_eq!(
        ran.out,
        "unknown.yaml:6: routingpolicy/default: spec.profle: unknown field\n"
    );

    home.write(
        "rule.yaml",
        format!("{OBJECT}spec:\n  disabledRules:\n    - no-such-rule\n"),
    );
    let ran = home.run(&["validate", "-f", "rule.yaml", "-o", "json"]);
    assert_eq!(ran.code, Some(4), "{}", ran.out);
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["findings"][0]["line"], 7, "{document}");
    assert_eq!(document["valid"], false);

    home.write("good.yaml", format!("{OBJECT}spec: {{profile: quality}}\n"));
    let ran = home.run(&["validate", "-f", "good.yaml"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{}", ran.err);
    assert_eq!(ran.err, "1 object, 0 errors, 0 warnings\n");
    let ran = home.run(&["apply", "-f", "good.yaml", "--dry-run=client"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (
            Some(0),
            "routingpolicy.relay.dev/default valid (client dry run)\n"
        ),
        "{}",
        ran.err
    );
}

#[test]
fn a_policy_is_tried_without_any_server() {
    let home = Home::new();
    home.write("policy.yaml", format!("{OBJECT}spec:\n  rules:\n    - id: flux\n      patterns: [flux capacitor]\n      floor: {{tier: strong}}\n"));
    home.write(
        "requests.jsonl",
        "{\"request\": \"rename the flux capacitor\", \"tier\": \"strong\"}\n",
    );
    let ran = home.run(&[
        "policy",
        "test",
        "requests.jsonl",
        "--policy",
        "policy.yaml",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(
        ran.out,
        "policy.yaml: 1 requests by rules alone, 0 failed\n"
    );
    assert!(
        ran.err
            .starts_with("note: what changes is not shown: cannot reach"),
        "{}",
        ran.err
    );
    home.write(
        "requests.jsonl",
        "{\"request\": \"rename the flux capacitor\", \"tier\": \"fast\"}\n",
    );
    let ran = home.run(&[
        "policy",
        "test",
        "requests.jsonl",
        "--policy",
        "policy.yaml",
    ]);
    assert_eq!(ran.code, Some(15), "{}", ran.out);
    home.write(
        "requests.jsonl",
        "{\"request\": \"x\", \"teir\": \"fast\"}\n",
    );
    let ran = home.run(&[
        "policy",
        "test",
        "requests.jsonl",
        "--policy",
        "policy.yaml",
    ]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
}
