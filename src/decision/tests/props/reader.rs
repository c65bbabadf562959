//! The JSON reader against `serde_json`, against itself in other encodings, and against noise.

use decision::json::{self, MAX_DEPTH, ReadError, Value};
use decision::wire::{
    ModelNames, OptionLimit, RequestRules, check_questions, read_batch_request, read_request,
};
use proptest::prelude::*;

/// Any JSON value that `serde_json` can hold.
fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>()
            .prop_filter("finite", |float| float.is_finite())
            .prop_map(Into::into),
        ".{0,12}".prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::vec((".{0,3}", inner), 0..40)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Text made of the pieces of JSON, so that a good part of it is nearly JSON.
fn nearly_json() -> impl Strategy<Value = String> {
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\"a\"",
        "\"\"",
        "null",
        "true",
        "false",
        "NaN",
        "-Infinity",
        "0",
        "-0",
        "1",
        "01",
        "1.",
        "1.5",
        "-",
        "1e5",
        "1E+5",
        "2e-3",
        "1e999",
        " ",
        "\t",
        "\n",
        "\r",
        "\u{b}",
        "\\",
        "\\n",
        "\\u00e9",
        "\\ud83d\\ude00",
        "\\ud800",
        "\\u12",
        "é",
        "😀",
        "\u{feff}",
        "\u{0}",
        "\u{1f}",
        "123456789012345678901234567890",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..12)
        .prop_map(|pieces| pieces.concat())
}

/// Same value, key order and number forms aside.
fn same(ours: &Value, theirs: &serde_json::Value) -> bool {
    use serde_json::Value as Theirs;
    match (ours, theirs) {
        (Value::Null, Theirs::Null) => true,
        (Value::Bool(ours), Theirs::Bool(theirs)) => ours == theirs,
        (Value::String(ours), Theirs::String(theirs)) => ours.as_str() == Some(theirs),
        (Value::Integer(ours), Theirs::Number(theirs)) if !theirs.is_f64() => {
            ours.to_string() == theirs.to_string()
        }
        (Value::Integer(_) | Value::Float(_), Theirs::Number(theirs)) => {
            // serde_json reads floats to within one unit in the last place.
            let (ours, theirs) = (
                ours.as_f64().expect("a number"),
                theirs.as_f64().expect("a number"),
            );
            ours == theirs || (ours - theirs).abs() <= 4.0 * f64::EPSILON * ours.abs()
        }
        (Value::List(ours), Theirs::Array(theirs)) => {
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .zip(theirs)
                    .all(|(ours, theirs)| same(ours, theirs))
        }
        (Value::Object(ours), Theirs::Object(theirs)) => {
            ours.len() == theirs.len()
                && theirs
                    .iter()
                    .all(|(key, theirs)| ours.get(key).is_some_and(|ours| same(ours, theirs)))
        }
        _ => false,
    }
}

proptest! {
    #[test]
    fn reads_what_serde_json_writes(value in any_json()) {
        let text = value.to_string();
        let ours = json::read(text.as_bytes()).expect("valid JSON");
        prop_assert!(same(&ours, &value), "{text}");
    }

    #[test]
    fn accepts_what_serde_json_accepts(text in nearly_json()) {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        let ours = json::read(text.as_bytes());
        match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) => prop_assert!(same(ours, theirs), "{text:?}"),
            (Err(error), Ok(_)) => prop_assert!(false, "refused {text:?}: {error}"),
            // What we accept beyond RFC 8259 must hold one of the known extensions; as in Python, a number beyond the range
            // of a float is infinite and no error.
            (Ok(_), Err(error)) => prop_assert!(
                error.to_string().starts_with("number out of range") || ["NaN", "Infinity", "\\ud", "\u{feff}", "\u{0}"].iter().any(|known| text.contains(known)),
                "accepted {text:?}: {error}"
            ),
            (Err(_), Err(_)) => {}
        }
    }

    #[test]
    fn never_panics_on_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = json::read(&bytes);
        let _ = json::read_keeping_duplicates(&bytes);
    }

    #[test]
    fn never_panics_on_damaged_json(value in any_json(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = value.to_string().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = json::read(&bytes);
        bytes.truncate(at);
        prop_assert!(json::read(&bytes).is_err() || value.is_number(), "a cut text is no JSON, unless it is a number");
    }

    #[test]
    fn writing_and_reading_settle(text in nearly_json()) {
        if let Ok(value) = json::read(text.as_bytes()) {
            let written = json::write(&value);
            let again = json::read(written.as_bytes()).expect("our own writing");
            prop_assert_eq!(json::write(&again), &*written);
            let pretty = json::read(json::write_pretty(&value).as_bytes()).expect("our own pretty writing");
            prop_assert_eq!(json::write(&pretty), &*written);
            let spaced = json::read(json::json_text(&value).as_bytes()).expect("our own spaced writing");
            prop_assert_eq!(json::write(&spaced), &*written);
        }
    }

    #[test]
    fn other_encodings_read_the_same(value in any_json()) {
        let text = value.to_string();
        let expected = json::read(text.as_bytes()).expect("valid JSON");
        let units: Vec<u16> = text.encode_utf16().collect();
        let codes: Vec<u32> = text.chars().map(u32::from).collect();
        let encoded: [(&str, Vec<u8>); 8] = [
            ("utf-8 with a mark", [b"\xEF\xBB\xBF", text.as_bytes()].concat()),
            ("utf-16-le", units.iter().flat_map(|unit| unit.to_le_bytes()).collect()),
            ("utf-16-be", units.iter().flat_map(|unit| unit.to_be_bytes()).collect()),
            ("utf-32-le", codes.iter().flat_map(|code| code.to_le_bytes()).collect()),
            ("utf-32-be", codes.iter().flat_map(|code| code.to_be_bytes()).collect()),
            ("utf-16-le with a mark", [0xFEFF].iter().chain(&units).flat_map(|unit| unit.to_le_bytes()).collect()),
            ("utf-16-be with a mark", [0xFEFF].iter().chain(&units).flat_map(|unit| unit.to_be_bytes()).collect()),
            ("utf-32-be with a mark", [0xFEFF].iter().chain(&codes).flat_map(|code| code.to_be_bytes()).collect()),
        ];
        for (name, bytes) in encoded {
            let read = json::read(&bytes);
            prop_assert_eq!(read.as_ref(), Ok(&expected), "{}", name);
        }
    }

    #[test]
    fn a_repeated_key_keeps_its_place_and_takes_its_last_value(keys in prop::collection::vec("[a-c]{1,4}", 0..80)) {
        let members: Vec<String> = keys.iter().enumerate().map(|(index, key)| format!("\"{key}\":{index}")).collect();
        let text = format!("{{{}}}", members.join(","));
        let mut expected: Vec<(&str, i64)> = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let value = i64::try_from(index).expect("small");
            match expected.iter_mut().find(|(known, _)| known == key) {
                Some((_, old)) => *old = value,
                None => expected.push((key, value)),
            }
        }
        let expected = Value::Object(expected.into_iter().collect());
        prop_assert_eq!(json::read(text.as_bytes()), Ok(expected));
        let kept = json::read_keeping_duplicates(text.as_bytes()).expect("valid JSON");
        prop_assert_eq!(kept.as_object().map(|object| object.len()), Some(keys.len()));
    }

    #[test]
    fn requests_of_any_form_are_answered(state in any_json(), questions in any_json(), field in any_json(), which in 0..9usize) {
        const FIELDS: [&str; 9] =
            ["model", "max_len", "head_max_len", "task", "lang", "min_confidence", "batch_size", "hooks", "diagnostics"];
        let models = ModelNames::built_in_and(Vec::<String>::new());
        let rules =
            RequestRules { max_token_budget: 8192, option_limit: OptionLimit::OnePass, models: Some(&models) };
        for definition in [questions.to_string(), format!(r#"{{"q":{questions}}}"#),
            format!(r#"{{"q":{{"type":"choice","instructions":{state},"criteria":{questions},"option_order":{field}}}}}"#),
            format!(r#"{{"q":{{"type":"noul","instructions":"x","criteria":{questions},"labels":{field}}}}}"#)]
        {
            let body = format!(r#"{{"state":{state},"states":[{state}],"questions":{definition},"{}":{field}}}"#, FIELDS[which]);
            let refused = match read_request(body.as_bytes(), &rules) {
                Ok(request) => check_questions(&request.questions).err(),
                Err(refusal) => Some(refusal),
            };
            if let Some(refusal) = refused {
                json::read(refusal.body().as_bytes()).expect("a refusal is JSON");
            }
            let _ = read_batch_request(body.as_bytes(), &rules);
        }
    }
}

fn nested(depth: usize, open: &str, close: &str) -> Vec<u8> {
    [open.repeat(depth), "0".to_owned(), close.repeat(depth)]
        .concat()
        .into_bytes()
}

#[test]
fn depth_is_bounded_and_costs_little_stack() {
    assert_eq!(MAX_DEPTH, 962, "wire.md 4.1");
    let body = || {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let deepest = json::read(&nested(MAX_DEPTH, open, close)).expect("the limit itself");
            assert!(!deepest.has_lone_surrogate());
            assert_eq!(
                json::read(json::write(&deepest).as_bytes()),
                Ok(deepest.clone())
            );
            assert_eq!(json::python_repr(&deepest).matches('0').count(), 1);
            let offset = MAX_DEPTH * open.len();
            assert_eq!(
                json::read(&nested(MAX_DEPTH + 1, open, close)),
                Err(ReadError::TooDeep { offset })
            );
            assert_eq!(
                json::read(&nested(1_000_000, open, "")),
                Err(ReadError::TooDeep { offset })
            );
        }
        assert!(json::read(&nested(MAX_DEPTH - 1, "[", "]")).is_ok());
        assert!(
            json::read(format!("[{}]", "[],".repeat(5_000) + "[]").as_bytes()).is_ok(),
            "width is not depth"
        );
    };
    // A fraction of what threads of a server have.
    std::thread::Builder::new()
        .stack_size(1024 * 1024)
        .spawn(body)
        .expect("a thread")
        .join()
        .expect("no overflow");
}

#[test]
fn integers_end_at_4300_digits() {
    for (digits, accepted) in [(1, true), (4299, true), (4300, true), (4301, false)] {
        for sign in ["", "-"] {
            let text = format!("{sign}{}", "7".repeat(digits));
            assert_eq!(
                json::read(text.as_bytes()).is_ok(),
                accepted,
                "{digits} digits after {sign:?}"
            );
        }
    }
    let float = format!("{}.0", "7".repeat(5000));
    assert_eq!(
        json::read(float.as_bytes()),
        Ok(Value::Float(f64::INFINITY))
    );
}

#[test]
fn only_escapes_side_by_side_join() {
    let points = |bytes: &[u8]| match json::read(bytes).expect("valid") {
        Value::String(text) => text.code_points().collect::<Vec<_>>(),
        other => panic!("{other:?} is no string"),
    };
    assert_eq!(points(br#""\ud83d\ude00""#), [0x1_F600]);
    assert_eq!(points(br#""\ud83d\ud83d\ude00""#), [0xD83D, 0x1_F600]);
    assert_eq!(points(br#""\ude00\ud83d""#), [0xDE00, 0xD83D]);
    assert_eq!(points(br#""\ud83d \ude00""#), [0xD83D, 0x20, 0xDE00]);
    assert_eq!(points(b"\"\xED\xA0\xBD\xED\xB8\x80\""), [0xD83D, 0xDE00]);
    assert_eq!(points(b"\"\xED\xA0\xBD\\ude00\""), [0xD83D, 0xDE00]);
    assert_eq!(points(b"\"\\ud83d\xED\xB8\x80\""), [0xD83D, 0xDE00]);
}
