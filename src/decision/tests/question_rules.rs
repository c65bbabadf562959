//! The rules of wire.md 5 beyond the recorded exchanges: one row per rule and border, messages in full.

use decision::json::{self, Value};
use decision::wire::{Form, Question, check_questions};

fn check(questions: &str) -> Result<Vec<Question>, String> {
    let questions = json::read(questions.as_bytes()).expect("JSON");
    check_questions(questions.as_object().expect("an object")).map_err(|refusal| {
        assert_eq!(refusal.status.code(), 422);
        refusal.detail
    })
}

fn check_one(definition: &str) -> Result<Question, String> {
    check(&format!(r#"{{"q":{definition}}}"#)).map(|mut questions| questions.remove(0))
}

#[test]
fn refuses_with_the_message_of_the_rule() {
    let order = |n: usize, got: &str| {
        format!(
            "'option_order' must be a permutation of range({n}) -- one slot per option, each option once -- got {got}"
        )
    };
    let noul_labels =
        "noul labels must map exactly 'false' and 'true' to distinct non-empty strings";
    let foreign = |got: &str| {
        format!(
            "a noul question takes 'criteria' keyed only 'true'/'false' (either or both, and omitted is fine), got {got}. \
             Those keys are the option texts the model reads; any other key was silently dropped and replaced with the \
             defaults. If you want the answer worded differently, keep 'criteria' keyed 'true'/'false' and set 'labels' \
             instead."
        )
    };
    let empty = "'instructions' must not be empty; add the text the model should answer";
    let rows: Vec<(&str, &str, String)> = vec![
        ("2 list", "[]", "definition must be a dict, got list".into()),
        ("2 null", "null", "definition must be a dict, got NoneType".into()),
        ("2 number", "1.0", "definition must be a dict, got float".into()),
        ("2 integer", "1", "definition must be a dict, got int".into()),
        ("2 bool", "true", "definition must be a dict, got bool".into()),
        ("2 string", "\"\"", "definition must be a dict, got str".into()),
        ("3 missing", "{}", "unknown type None; use one of ['choice', 'noul', 'score']".into()),
        (
            "3 list, before instructions",
            r#"{"type":["noul"]}"#,
            "unknown type ['noul']; use one of ['choice', 'noul', 'score']".into(),
        ),
        ("4 missing", r#"{"type":"noul"}"#, "no 'instructions'; add the text the model should answer".into()),
        (
            "4 null",
            r#"{"type":"noul","instructions":null}"#,
            "'instructions' must not be None; add the text the model should answer".into(),
        ),
        ("4 blank, odd white space", r#"{"type":"noul","instructions":"\u001c\u0085\u00a0"}"#, empty.into()),
        ("4 empty object", r#"{"type":"noul","instructions":{}}"#, empty.into()),
        (
            "5 no criteria",
            r#"{"type":"choice","instructions":1}"#,
            "a choice question takes 'criteria' as a dict of label -> description, or a list of labels".into(),
        ),
        (
            "5 empty list",
            r#"{"type":"choice","instructions":"x","criteria":[]}"#,
            "a choice question needs at least one criterion".into(),
        ),
        (
            "5 object label",
            r#"{"type":"choice","instructions":"x","criteria":["a","a",{"b":[1]}]}"#,
            "choice label 2 is a dict; a label is rendered as option text and used as the answer key, so it must be a \
             scalar (a string, number or bool), got {'b': [1]}"
                .into(),
        ),
        (
            "5 null label",
            r#"{"type":"choice","instructions":"x","criteria":["a",null]}"#,
            "choice label 1 is null; a label is rendered as option text and used as the answer key, so it must be a \
             string, number or bool -- a null label renders as the text \"None\" while its answer key is \"null\""
                .into(),
        ),
        (
            "5 repeated, first earlier one",
            r#"{"type":"choice","instructions":"x","criteria":[0,"a",false,-0.0]}"#,
            "choice label 2 (False) repeats label 0; the labels are the answer keys, so every option needs its own (1, \
             1.0 and True are one key)"
                .into(),
        ),
        (
            "6 object",
            r#"{"type":"score","instructions":"x","criteria":{"0":"a"}}"#,
            "a score question takes 'criteria' as a list of level descriptions, index 0 first".into(),
        ),
        (
            "6 null level",
            r#"{"type":"score","instructions":"x","criteria":["a",null]}"#,
            "score level 1 is null; give every level a description, index 0 first".into(),
        ),
        (
            "7 string",
            r#"{"type":"noul","instructions":"x","criteria":"yes"}"#,
            "a noul question takes 'criteria' as a dict with optional 'true'/'false' descriptions, or omits it".into(),
        ),
        (
            "7 keys distinct, lower, sorted",
            r#"{"type":"noul","instructions":"x","criteria":{"Yes":1,"TRUE":2,"true":3,"yes":4,"it's":5}}"#,
            foreign(r#"["it's", 'true', 'yes']"#),
        ),
        ("8 null", r#"{"type":"noul","instructions":"x","option_order":null}"#, order(2, "None")),
        ("8 too short", r#"{"type":"noul","instructions":"x","option_order":[0]}"#, order(2, "[0]")),
        ("8 twice", r#"{"type":"noul","instructions":"x","option_order":[0,0]}"#, order(2, "[0, 0]")),
        ("8 beyond", r#"{"type":"noul","instructions":"x","option_order":[0,2]}"#, order(2, "[0, 2]")),
        ("8 negative", r#"{"type":"noul","instructions":"x","option_order":[0,-1]}"#, order(2, "[0, -1]")),
        ("8 bools", r#"{"type":"noul","instructions":"x","option_order":[false,true]}"#, order(2, "[False, True]")),
        (
            "8 three levels",
            r#"{"type":"score","instructions":"x","criteria":[1,2,3],"option_order":{}}"#,
            order(3, "{}"),
        ),
        (
            "9 null on a choice",
            r#"{"type":"choice","instructions":"x","criteria":["a"],"labels":null}"#,
            "'labels' is only supported for noul questions".into(),
        ),
        ("9 list", r#"{"type":"noul","instructions":"x","labels":["a","b"]}"#, noul_labels.into()),
        ("9 one", r#"{"type":"noul","instructions":"x","labels":{"true":"a"}}"#, noul_labels.into()),
        (
            "9 three",
            r#"{"type":"noul","instructions":"x","labels":{"true":"a","false":"b","x":"c"}}"#,
            noul_labels.into(),
        ),
        ("9 upper case", r#"{"type":"noul","instructions":"x","labels":{"True":"a","false":"b"}}"#, noul_labels.into()),
        ("9 same", r#"{"type":"noul","instructions":"x","labels":{"true":"a ","false":" a"}}"#, noul_labels.into()),
        ("9 blank", r#"{"type":"noul","instructions":"x","labels":{"true":" ","false":"a"}}"#, noul_labels.into()),
        ("9 number", r#"{"type":"noul","instructions":"x","labels":{"true":1,"false":"a"}}"#, noul_labels.into()),
        ("8 before 9", r#"{"type":"noul","instructions":"x","labels":1,"option_order":1}"#, order(2, "1")),
    ];
    for (name, definition, message) in rows {
        assert_eq!(
            check_one(definition),
            Err(format!("question 'q': {message}")),
            "{name}"
        );
    }
}

#[test]
fn names_blank_ids_and_the_first_bad_question() {
    for (questions, message) in [
        (
            r#"{"":{}}"#,
            "question id must be a non-empty string, got ''",
        ),
        (
            r#"{" \t":{}}"#,
            r"question id must be a non-empty string, got ' \t'",
        ),
        (
            r#"{"a":{"type":"noul","instructions":"x"},"it's":1,"c":2}"#,
            r#"question "it's": definition must be a dict, got int"#,
        ),
    ] {
        assert_eq!(check(questions), Err(message.to_owned()), "{questions}");
    }
    assert_eq!(check("{}"), Ok(Vec::new()));
}

#[test]
fn normal_form_and_texts() {
    let rows: [(&str, &str, &str, &[&str]); 8] = [
        (
            "listed labels",
            r#"{"type":"choice","instructions":"pick","criteria":[true,2,1.50,"x"]}"#,
            "choice question: pick",
            &["True", "2", "1.5", "x"],
        ),
        (
            "descriptions",
            r#"{"type":"choice","instructions":"pick","criteria":{"a":"one","b":null,"c":"","d":0,"e":false,"f":[]}}"#,
            "choice question: pick",
            &["a: one", "b", "c", "d: 0", "e: false", "f: []"],
        ),
        (
            "structured levels and instructions",
            r#"{"type":"score","instructions":{"ask":[1,true]},"criteria":["low",{"é":1.0},5]}"#,
            r#"score question: {"ask": [1, true]}"#,
            &["level 0: low", r#"level 1: {"é": 1.0}"#, "level 2: 5"],
        ),
        (
            "false instructions",
            r#"{"type":"score","instructions":false,"criteria":[""]}"#,
            "score question: false",
            &["level 0: "],
        ),
        (
            "noul defaults",
            r#"{"type":"noul","instructions":"x","criteria":null,"labels":null}"#,
            "noul question: x",
            &[
                "false: no, the statement does not hold",
                "true: yes, the statement holds",
            ],
        ),
        (
            "noul criteria in any case, later ones win",
            r#"{"type":"noul","instructions":"x","criteria":{"TRUE":"a","false":"","true":"b"}}"#,
            "noul question: x",
            &["false: no, the statement does not hold", "true: b"],
        ),
        (
            "noul labels are trimmed",
            r#"{"type":"noul","instructions":"x","criteria":{"false":0},"labels":{"true":" yes ","false":"no"}}"#,
            "noul question: x",
            &["no: 0", "yes: yes, the statement holds"],
        ),
        (
            "other keys are ignored",
            r#"{"type":"noul","instructions":"x","weight":[]}"#,
            "noul question: x",
            &[
                "false: no, the statement does not hold",
                "true: yes, the statement holds",
            ],
        ),
    ];
    for (name, definition, prompt, options) in rows {
        let question = check_one(definition).expect(name);
        assert_eq!(
            (
                question.prompt().as_str(),
                question.option_texts().as_slice()
            ),
            (prompt, &strings(options)[..]),
            "{name}"
        );
        assert_eq!(question.option_count(), options.len(), "{name}");
    }
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[test]
fn keeps_option_order_and_typed_labels() {
    let question = check_one(
        r#"{"type":"choice","instructions":"x","criteria":[1,"1"],"option_order":[1,0]}"#,
    );
    let question = question.expect("1 and \"1\" are two labels");
    assert_eq!(question.option_order, Some(vec![1, 0]));
    let Form::Choice(options) = &question.form else {
        panic!("no choice")
    };
    assert_eq!(options[0].label.value(), &Value::from(1));
    assert_eq!(options[1].label.value(), &Value::from("1"));
    assert_eq!(options[0].label.key(), options[1].label.key());
}
