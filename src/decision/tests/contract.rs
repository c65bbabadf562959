//! Contracts from the outside: digests of the specification, refused files, files of other programs.

use decision::contract::{Contract, Criteria, Digest};
use decision::json::{self, Object, Value};
use decision::{RELAY_DECISIONS_JSON, relay_contract};

/// Vectors of routing.md 23.9; their questions keep the order of the file.
fn vectors() -> Vec<Object> {
    let file = json::read(include_bytes!("data/contract_vectors.json")).expect("vectors");
    let vectors = file
        .as_object()
        .and_then(|file| file.get("vectors"))
        .and_then(Value::as_list)
        .expect("a list");
    vectors
        .iter()
        .map(|vector| vector.as_object().expect("an object").clone())
        .collect()
}

fn import(decisions: &Value) -> Contract {
    let file: Object = [("decisions", decisions.clone())].into_iter().collect();
    Contract::import(json::write(&Value::Object(file)).as_bytes()).expect("imports")
}

#[test]
fn digests_and_differences_are_those_of_the_vectors() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 11);
    let base = import(vectors[0].get("decisions").expect("decisions"));
    for vector in &vectors {
        let text = |key| vector.get(key).and_then(Value::as_str);
        let name = text("name").expect("name");
        let contract = import(vector.get("decisions").expect("decisions"));
        if let Some(bytes) = vector.get("bytes") {
            assert_eq!(
                &Value::from(contract.canonical_form().len() as i64),
                bytes,
                "{name}"
            );
        }
        if let Some(digest) = text("digest") {
            assert_eq!(contract.digest().to_string(), digest, "{name}");
            assert_eq!(
                contract.digest(),
                &digest.parse::<Digest>().expect("a digest"),
                "{name}"
            );
        }
        if let Some(start) = text("digest_begins") {
            assert_eq!(
                format!("sha256:{}", contract.digest().short()),
                start,
                "{name}"
            );
        }
        if let Some(shape) = text("shape") {
            assert_eq!(contract.shape_digest().to_string(), shape, "{name}");
        }
        let difference = base
            .first_difference(&contract)
            .map(|difference| difference.to_string());
        assert_eq!(difference.as_deref(), text("first_difference"), "{name}");
        assert_eq!(
            difference.is_none(),
            base.digest() == contract.digest(),
            "{name}"
        );
        let shape_differs = base.first_shape_difference(&contract).is_some();
        assert_eq!(
            shape_differs,
            base.shape_digest() != contract.shape_digest(),
            "{name}"
        );
        assert_eq!(
            Contract::import(contract.export().as_bytes())
                .expect("imports again")
                .digest(),
            contract.digest()
        );
    }
}

#[test]
fn names_the_first_difference_to_relays_own_questions() {
    let question = r#""extra": {"type": "noul", "instructions": "x"}}}"#;
    let longer = RELAY_DECISIONS_JSON
        .trim_end()
        .strip_suffix("}\n}")
        .expect("ends so")
        .trim_end();
    let rows = [
        (
            "one question more",
            format!("{longer},{question}"),
            "question 19 `extra` is one too many",
        ),
        (
            "an agent more",
            RELAY_DECISIONS_JSON.replace(r#""researcher":"#, r#""tester": null, "researcher":"#),
            "question `agent`: option 10 is `tester` instead of `researcher`",
        ),
        (
            "20 agents",
            RELAY_DECISIONS_JSON.replace(
                r#""researcher": "reading and explaining only""#,
                &(10..20).fold(r#""researcher": null"#.to_owned(), |text, index| {
                    text + &format!(r#","a{index}": null"#)
                }),
            ),
            "question `agent`: option 11 `a10` is one too many",
        ),
    ];
    for (name, file, difference) in rows {
        let other = Contract::import(file.as_bytes()).expect(name);
        assert_eq!(
            relay_contract()
                .first_difference(&other)
                .map(|found| found.to_string())
                .as_deref(),
            Some(difference)
        );
    }
}

#[test]
fn refuses_files_with_the_path() {
    let with = |question: &str| format!(r#"{{"decisions":{{"agent":{question}}}}}"#);
    let many = |count: usize, entry: &dyn Fn(usize) -> String| {
        (0..count).map(entry).collect::<Vec<_>>().join(",")
    };
    let options = |count| many(count, &|index| format!(r#""o{index}":null"#));
    let rows: Vec<(&str, String, &str)> = vec![
        ("no JSON", "{".into(), "the file is not JSON: expected a key in double quotes at byte 1"),
        ("two values", "{} {}".into(), "the file is not JSON: expected the end of the text at byte 3"),
        ("an array", "[]".into(), "expected an object, got an array"),
        ("no decisions", r#"{"description":"d"}"#.into(), "decisions: is missing"),
        ("decisions an array", r#"{"decisions":[]}"#.into(), "decisions: expected an object, got an array"),
        ("no question", r#"{"decisions":{}}"#.into(), "decisions: needs at least one entry"),
        ("decisions twice", r#"{"decisions":{},"decisions":{}}"#.into(), "`decisions` occurs twice"),
        (
            "description no string",
            r#"{"description":1,"decisions":{}}"#.into(),
            "description: expected a string, got a number",
        ),
        ("language null", r#"{"language":null,"decisions":{}}"#.into(), "language: expected a string, got null"),
        (
            "id twice",
            r#"{"decisions":{"a":{"type":"noul","instructions":"x"},"a":{"type":"noul","instructions":"x"}}}"#.into(),
            "decisions: `a` occurs twice",
        ),
        (
            "empty id",
            r#"{"decisions":{"":{"type":"noul","instructions":"x"}}}"#.into(),
            "decisions.: must not be blank",
        ),
        ("question a string", with(r#""x""#), "decisions.agent: expected an object, got a string"),
        (
            "unknown key",
            with(r#"{"type":"noul","instructions":"x","labels":{}}"#),
            "decisions.agent: unknown key `labels`: a question has `type`, `instructions` and `criteria`",
        ),
        (
            "key twice",
            with(r#"{"type":"noul","type":"noul","instructions":"x"}"#),
            "decisions.agent: `type` occurs twice",
        ),
        ("no type", with(r#"{"instructions":"x"}"#), "decisions.agent.type: is missing"),
        (
            "other type",
            with(r#"{"type":"Choice","instructions":"x"}"#),
            "decisions.agent.type: unknown type `Choice`: expected one of choice, score, noul",
        ),
        ("no instructions", with(r#"{"type":"noul"}"#), "decisions.agent.instructions: is missing"),
        (
            "blank instructions",
            with(r#"{"type":"noul","instructions":" \t"}"#),
            "decisions.agent.instructions: must not be blank",
        ),
        (
            "unpaired surrogate",
            with(r#"{"type":"noul","instructions":"\ud800"}"#),
            "decisions.agent.instructions: holds an unpaired surrogate",
        ),
        (
            "no criteria",
            with(r#"{"type":"choice","instructions":"x"}"#),
            "decisions.agent.criteria: is missing",
        ),
        (
            "criteria a list",
            with(r#"{"type":"choice","instructions":"x","criteria":["a"]}"#),
            "decisions.agent.criteria: expected an object of option and text, got an array",
        ),
        (
            "no option",
            with(r#"{"type":"choice","instructions":"x","criteria":{}}"#),
            "decisions.agent.criteria: needs at least one entry",
        ),
        (
            "option twice",
            with(r#"{"type":"choice","instructions":"x","criteria":{"a":null,"b":null,"a":"c"}}"#),
            "decisions.agent.criteria: `a` occurs twice",
        ),
        (
            "101 options",
            with(&format!(r#"{{"type":"choice","instructions":"x","criteria":{{{}}}}}"#, options(101))),
            "decisions.agent.criteria: has 101 entries, limit 100",
        ),
        (
            "option text a number",
            with(r#"{"type":"choice","instructions":"x","criteria":{"a":1}}"#),
            "decisions.agent.criteria.a: expected a string or null, got a number",
        ),
        (
            "score with an object",
            with(r#"{"type":"score","instructions":"x","criteria":{"0":"a"}}"#),
            "decisions.agent.criteria: expected an array of level texts, got an object",
        ),
        (
            "null level",
            with(r#"{"type":"score","instructions":"x","criteria":["a",null]}"#),
            "decisions.agent.criteria[1]: expected a string, got null",
        ),
        (
            "other noul answer",
            with(r#"{"type":"noul","instructions":"x","criteria":{"yes":"a"}}"#),
            "decisions.agent.criteria: unknown answer `yes`: a noul question has `true` and `false`",
        ),
        (
            "65 questions",
            format!(
                r#"{{"decisions":{{{}}}}}"#,
                many(65, &|index| format!(r#""q{index}":{{"type":"noul","instructions":"x"}}"#))
            ),
            "decisions: has 65 entries, limit 64",
        ),
        ("over 1 MiB", " ".repeat(1024 * 1024 + 1), "the file has 1048577 bytes, limit 1048576"),
        ("zero bytes", "{\0}\0".into(), "the file is not UTF-8 text"),
    ];
    for (name, file, message) in rows {
        let error = Contract::import(file.as_bytes()).expect_err(name);
        assert_eq!(error.to_string(), message, "{name}");
    }
    assert_eq!(
        Contract::import(b"\"\xFF\"")
            .expect_err("latin-1")
            .to_string(),
        "the file is not UTF-8 text"
    );
}

#[test]
fn accepts_the_limits_themselves() {
    let options: Vec<_> = (0..100)
        .map(|index| format!(r#""o{index}":null"#))
        .collect();
    let question = format!(
        r#"{{"type":"choice","instructions":"x","criteria":{{{}}}}}"#,
        options.join(",")
    );
    let questions: Vec<_> = (0..64)
        .map(|index| format!(r#""q{index}":{question}"#))
        .collect();
    let file = format!(
        r#"{{"decisions":{{{}}},"unknown":[NaN]}}"#,
        questions.join(",")
    );
    let contract = Contract::import(file.as_bytes()).expect("within the limits");
    assert_eq!(contract.questions().len(), 64);
    assert_eq!((contract.description(), contract.language()), ("", "auto"));
}

#[test]
fn reads_the_questions_of_a_trained_checkpoint() {
    let contract =
        Contract::import_questions(include_bytes!("data/questions.json")).expect("imports");
    let ids: Vec<_> = contract
        .questions()
        .iter()
        .map(|question| question.id.as_str())
        .collect();
    assert_eq!(ids, ["d", "u", "c"]);
    assert_eq!(contract.questions()[2].criteria, Criteria::Noul(None));
    assert!(
        contract
            .canonical_form()
            .ends_with(r#"["c","noul","Does the user threaten to cancel or leave?",[]]]"#)
    );
}

#[test]
fn exports_what_a_request_asks() {
    let object = relay_contract().request_questions();
    assert_eq!(object.len(), 18);
    let file = json::read(RELAY_DECISIONS_JSON.as_bytes()).expect("reads");
    assert_eq!(
        file.as_object().and_then(|file| file.get("decisions")),
        Some(&Value::Object(object))
    );
}

#[test]
fn refuses_texts_that_are_no_digest() {
    let digest = relay_contract().digest().to_string();
    for (name, text) in [
        ("no prefix", digest[7..].to_owned()),
        ("upper case", digest.to_uppercase()),
        (
            "upper case digits",
            format!("sha256:{}", digest[7..].to_uppercase()),
        ),
        ("short", digest[..70].to_owned()),
        ("long", digest.clone() + "0"),
        ("other letter", digest[..70].to_owned() + "g"),
    ] {
        assert!(text.parse::<Digest>().is_err(), "{name}");
    }
}
