use super::*;

#[test]
fn a_line_is_written_back_as_it_was_read() {
    let rows = [
        old_line(
            "s00001",
            "Fix it",
            "session",
            r#","split":"train","label_source":"agent","created":"2026-01-02T03:04:05.678Z""#,
        ),
        old_line(
            "r00002",
            "Fix it",
            "synthetic",
            r#","weight":1e5,"tags":["a","b"],"x":null"#,
        ),
        // Written by other hands: spaces, escapes, another order, numbers in other forms.
        r#"{"source": "harness", "state": {"request": "caf\u00e9 \ud83d\ude00", "n": 1.50}, "expected": {"capability_tier": "fast"}, "id": "h1" }"#.to_owned(),
    ];
    let file = rows.join("\n") + "\n";
    let read = read_file(&file);
    assert_eq!(read.rejected, []);
    assert_eq!(write_file(&read.rows), file);
    assert_eq!(read.rows[2].request(), "café 😀");
    assert_eq!(
        read.rows[2].standing(&in_force()),
        RowStanding::TierOnly(decision::vocabulary::Tier::Fast)
    );
}

#[test]
fn added_keys_stand_in_their_place_and_the_rest_stays() {
    let InForce { shape, contract } = in_force();
    let old = old_line(
        "s00001",
        "Fix it",
        "session",
        r#","split":"train","created":"2026-01-02T03:04:05.678Z","mood":{"a": 1.50}"#,
    );
    let stamped = row(&old).stamped(&in_force());
    let added =
        format!(r#""2026-01-02T03:04:05.678Z","shape":"{shape}","contract":"{contract}","mood""#);
    assert_eq!(
        stamped.line(),
        old.replace(r#""2026-01-02T03:04:05.678Z","mood""#, &added)
    );
    let with_lesson = stamped.with_lesson(Some("  Look \"twice\". "));
    assert!(
        with_lesson
            .line()
            .contains(r#""split":"train","lesson":"Look \"twice\".","created""#)
    );
    assert_eq!(with_lesson.lesson(), Some("Look \"twice\"."));
    assert_eq!(with_lesson.with_lesson(Some(" ")), stamped);
    assert_eq!(
        row(&old).with_id("s00009").line(),
        old.replace("s00001", "s00009")
    );
}

#[test]
fn says_why_a_line_is_no_row() {
    let rows = [
        ("no JSON: expected a value at byte 0", "nonsense"),
        ("expected an object", "[1]"),
        (
            "state: expected an object with the text `request`",
            r#"{"expected":{},"source":"session"}"#,
        ),
        (
            "state: `request` must not be blank",
            r#"{"state":{"request":" "},"expected":{},"source":"session"}"#,
        ),
        (
            "expected: expected an object of labels",
            r#"{"state":{"request":"a"},"source":"session"}"#,
        ),
        (
            "source: expected a word",
            r#"{"state":{"request":"a"},"expected":{}}"#,
        ),
        (
            "lesson: expected a text",
            r#"{"state":{"request":"a"},"expected":{},"source":"session","lesson":3}"#,
        ),
        (
            "split: unknown word `dev`: expected one of train, val, test",
            r#"{"state":{"request":"a"},"expected":{},"source":"session","split":"dev"}"#,
        ),
        (
            "id: must have at most 128 bytes and no control characters",
            r#"{"id":"a\u0007","state":{"request":"a"},"expected":{},"source":"session"}"#,
        ),
    ];
    for (reason, line) in rows {
        let file = read_file(&format!("\n{line}\n"));
        assert_eq!(file.rows, []);
        let expected = RejectedLine {
            line: 2,
            text: line.to_owned(),
            reason: reason.to_owned(),
        };
        assert_eq!(file.rejected, [expected]);
    }
    let twice = format!(
        "{}\n{}",
        old_line("s1", "a", "session", ""),
        old_line("s1", "b", "session", "")
    );
    assert_eq!(
        read_file(&twice).rejected[0].reason,
        "id `s1` is used twice"
    );
    let long = old_line("s1", &"a".repeat(MAX_LINE_BYTES), "session", "");
    assert!(
        read_file(&long).rejected[0]
            .reason
            .ends_with("limit 1048576")
    );
}

#[test]
fn other_sources_are_kept_as_pool_rows() {
    let other = row(&old_line("x1", "Fix it", "imported by hand", ""));
    assert_eq!(
        other.source(),
        &Source::Other("imported by hand".to_owned())
    );
    assert!(!other.is_session());
    assert_eq!(other.learned(&in_force()), None);
}

#[test]
fn a_snapshot_has_the_rows_in_force_with_their_split() {
    let rows = [
        pool("r00002", "Migrate the product page to Vue"), // h = 8: test
        session("s00001", "Fix the date parser", r#","split":"train""#),
        row(&old_line(
            "s00003",
            "Old",
            "session",
            r#","split":"test","shape":"sha256:0""#,
        )),
        row(
            r#"{"zeta":1,"source":"harness","alpha":2,"id":"h1","state":{"request":"Write release notes"},"expected":{"capability_tier":"fast"}}"#,
        ),
    ];
    let frozen = snapshot(&rows, &in_force(), 12);
    assert_eq!((frozen.file.rows, frozen.held_out.rows), (3, 1));
    let lines: Vec<&str> = frozen.file.jsonl.lines().collect();
    assert_eq!(
        lines[0],
        r#"{"id":"h1","state":{"request":"Write release notes"},"expected":{"capability_tier":"fast"},"source":"harness","split":"train","alpha":2,"zeta":1}"#
    );
    assert!(lines[1].starts_with(r#"{"id":"r00002","#) && lines[1].contains(r#""split":"test""#));
    assert_eq!(frozen.held_out.jsonl, format!("{}\n", lines[1]));
    assert_eq!(
        frozen.file.digest,
        decision::contract::Digest::of(frozen.file.jsonl.as_bytes())
    );
    let answer = serde_json::to_value(&frozen).expect("writes");
    assert_eq!(answer["held_out"]["rows"], 1);
    assert_eq!(answer["revision"], 12);
    assert_eq!(answer["shape"], in_force().shape.to_string());
    let mut turned = rows.to_vec();
    turned.reverse();
    assert_eq!(
        snapshot(&turned, &in_force(), 12),
        frozen,
        "the order of the store does not matter"
    );
    assert_eq!(snapshot(&[], &in_force(), 1).file.jsonl, "");
}
