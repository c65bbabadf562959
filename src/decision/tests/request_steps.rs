//! The order of checks of wire.md 4.4 and 4.5: a body with several faults is refused for the first of them.

use decision::wire::{
    BatchRequest, ModelChoice, ModelNames, OptionLimit, Refusal, Request, RequestRules,
    read_batch_request, read_request,
};

fn with_rules<T>(
    read: impl FnOnce(&RequestRules<'_>) -> Result<T, Refusal>,
) -> Result<T, (u16, String)> {
    let models = ModelNames::built_in_and(Vec::<String>::new());
    let rules = RequestRules {
        max_token_budget: 8192,
        option_limit: OptionLimit::OnePass,
        models: Some(&models),
    };
    read(&rules).map_err(|refusal| (refusal.status.code(), refusal.detail))
}

fn single(body: &str) -> Result<Request, (u16, String)> {
    with_rules(|rules| read_request(body.as_bytes(), rules))
}

fn batch(body: &str) -> Result<BatchRequest, (u16, String)> {
    with_rules(|rules| read_batch_request(body.as_bytes(), rules))
}

/// Each row repairs the fault of the row before; the faults after it are still there.
#[test]
fn the_first_failing_step_answers() {
    let many: Vec<String> = (0..65).map(|index| format!(r#""q{index}":1"#)).collect();
    let levels = |count: usize| {
        format!(
            r#"{{"type":"score","criteria":[{}]}}"#,
            vec!["1"; count].join(",")
        )
    };
    let list = |count: usize| {
        format!(
            r#"{{"type":"choice","criteria":[{}]}}"#,
            vec!["1"; count].join(",")
        )
    };
    let sum: Vec<String> = (0..17)
        .map(|index| format!(r#""q{index}":{}"#, levels(31)))
        .collect();
    let long = format!("\"{}\"", "x".repeat(50_001));
    let rest = r#""hooks":1,"model":"a/b","max_len":0,"head_max_len":1.0,"lang":1,"lang_guess":[],"min_confidence":2"#;
    let tail = format!(r#""x":"\ud800",{rest}"#);
    let rows: Vec<(&str, String, u16, &str)> = vec![
        ("5", "{".into(), 400, "request body must be valid JSON"),
        (
            "5 empty",
            String::new(),
            400,
            "request body must be valid JSON",
        ),
        (
            "6 no key",
            format!(r#"{{"state":null,{tail}}}"#),
            400,
            "request body must be an object with a 'questions' field",
        ),
        (
            "7",
            format!(r#"{{"state":null,"questions":[],{tail}}}"#),
            400,
            "'state' is required",
        ),
        (
            "8",
            format!(r#"{{"state":{long},"questions":null,{tail}}}"#),
            400,
            "'questions' must be an object",
        ),
        (
            "9",
            format!(
                r#"{{"state":{long},"questions":{{{}}},{tail}}}"#,
                many.join(",")
            ),
            413,
            "too many questions (65 > 64)",
        ),
        (
            "10 in question order",
            format!(
                r#"{{"state":{long},"questions":{{"a":[],"s":{},"c":{}}},{tail}}}"#,
                levels(33),
                list(101)
            ),
            413,
            "too many score levels for 's' (33 > 32)",
        ),
        (
            "10 choice",
            format!(
                r#"{{"state":{long},"questions":{{"c":{},"s":{}}},{tail}}}"#,
                list(101),
                levels(33)
            ),
            413,
            "too many choice options for 'c' (101 > 100)",
        ),
        (
            "10 null level",
            format!(
                r#"{{"state":{long},"questions":{{"s":{{"type":"score","criteria":["a",null]}}}},{tail}}}"#
            ),
            422,
            "score question 's' has a null level at index 1; give every level a description",
        ),
        (
            "11",
            format!(
                r#"{{"state":{long},"questions":{{{}}},{tail}}}"#,
                sum.join(",")
            ),
            413,
            "too many answer options across questions (527 > 512)",
        ),
        (
            "12",
            format!(r#"{{"state":{long},"questions":{{}},{tail}}}"#),
            413,
            "state too large (50001 > 50000 chars)",
        ),
        (
            "13",
            format!(
                r#"{{"state":1,"questions":{{}},"hooks_timeout":0,"on_predict_end":null,{tail}}}"#
            ),
            422,
            "hooks, hooks_timeout run inside the server process and cannot be sent to this endpoint; install them where \
             laya-serve runs, or drop them",
        ),
        (
            "14 in a key",
            r#"{"state":{"\udc00":1},"questions":{},"model":"a/b"}"#.into(),
            400,
            "request body contains an unpaired surrogate escape; those cannot be encoded as UTF-8",
        ),
        (
            "15",
            r#"{"state":1,"questions":{},"model":"a/b","max_len":0}"#.into(),
            422,
            "unknown model 'a/b'; choose one of ['english', 'multilingual', 'typed-decisions'] (or an alias: \
             ['decisions', 'default', 'en', 'laya', 'laya-multilingual', 'laya-typed-decisions', 'ml', 'multi', 'typed', \
             'typed_decisions']), or omit model to let the router choose",
        ),
        (
            "16 max_len first",
            r#"{"state":1,"questions":{},"head_max_len":1.0,"max_len":0}"#.into(),
            422,
            "max_len must be a positive integer",
        ),
        (
            "16 bool",
            r#"{"state":1,"questions":{},"max_len":true}"#.into(),
            422,
            "max_len must be an integer",
        ),
        (
            "16 beyond any machine integer",
            r#"{"state":1,"questions":{},"max_len":99999999999999999999}"#.into(),
            422,
            "max_len exceeds server limit (99999999999999999999 > 8192)",
        ),
        (
            "16 head_max_len",
            r#"{"state":1,"questions":{},"head_max_len":-99999999999999999999,"lang":1}"#.into(),
            422,
            "head_max_len must be a positive integer",
        ),
        (
            "18 lang",
            r#"{"state":1,"questions":{},"lang":1,"lang_guess":1}"#.into(),
            422,
            "lang must be a language code string such as \"de\", or null",
        ),
        (
            "18 lang_guess",
            r#"{"state":1,"questions":{},"lang":"","lang_guess":{},"min_confidence":2}"#.into(),
            422,
            "lang_guess must be a language code string such as \"de\", or null",
        ),
        (
            "19",
            r#"{"state":1,"questions":{},"min_confidence":2}"#.into(),
            422,
            "min_confidence must be a float in [0.0, 1.0], got 2",
        ),
    ];
    for (name, body, status, detail) in rows {
        assert_eq!(
            single(&body).expect_err(name),
            (status, detail.to_owned()),
            "step {name}"
        );
    }
}

#[test]
fn nulls_are_absent_and_unknown_fields_ignored() {
    let body = r#"{"state":false,"questions":{},"model":null,"task":null,"lang":null,"lang_guess":null,"max_len":null,
        "head_max_len":null,"min_confidence":null,"hooks":null,"batch_size":"x","new":1}"#;
    let request = single(body).expect("accepted");
    assert_eq!(request.controls.model, ModelChoice::Automatic);
    assert_eq!(
        (
            request.controls.task,
            request.controls.gate,
            request.controls.max_len
        ),
        (None, None, None)
    );
    let full =
        single(r#"{"state":"","questions":{},"task":7,"lang":"de","max_len":8192,"model":"EN"}"#)
            .expect("accepted");
    assert_eq!(full.controls.task, Some(7.into()));
    assert_eq!(full.controls.max_len, Some(8192));
    assert_eq!(
        full.controls.model,
        ModelChoice::Checkpoint("english".to_owned())
    );
}

#[test]
fn one_checkpoint_ignores_model() {
    let rules = RequestRules {
        max_token_budget: 8192,
        option_limit: OptionLimit::Tournament,
        models: None,
    };
    let request =
        read_request(br#"{"state":1,"questions":{},"model":"a/b"}"#, &rules).expect("accepted");
    assert_eq!(request.controls.model, ModelChoice::Automatic);
}

#[test]
fn batches_have_steps_of_their_own() {
    let keys = "request body must be an object with 'states' and 'questions' fields";
    let list = "'states' must be a non-empty list";
    let diagnostics = "diagnostics is filled in place for an in-process caller and cannot be returned over HTTP; read the \
                       per-group report from the CLI or a local Router";
    for (name, body, status, detail) in [
        ("no states", r#"{"questions":{}}"#, 400, keys),
        ("no questions", r#"{"states":[]}"#, 400, keys),
        (
            "states null",
            r#"{"states":null,"questions":[]}"#,
            400,
            list,
        ),
        ("states empty", r#"{"states":[],"questions":[]}"#, 400, list),
        (
            "a null state",
            r#"{"states":[1,null],"questions":{}}"#,
            400,
            "'state' is required",
        ),
        (
            "state before questions",
            r#"{"states":[null],"questions":[]}"#,
            400,
            "'state' is required",
        ),
        (
            "questions",
            r#"{"states":[1],"questions":[]}"#,
            400,
            "'questions' must be an object",
        ),
        (
            "diagnostics",
            r#"{"states":[1],"questions":{},"diagnostics":false,"batch_size":0}"#,
            422,
            diagnostics,
        ),
        (
            "batch size a bool",
            r#"{"states":[1],"questions":{},"batch_size":true}"#,
            422,
            "batch_size must be an integer",
        ),
        (
            "batch size negative",
            r#"{"states":[1],"questions":{},"batch_size":-3,"sort_by_length":1}"#,
            422,
            "batch_size must be a positive integer, got -3",
        ),
        (
            "sort",
            r#"{"states":[1],"questions":{},"sort_by_length":1}"#,
            422,
            "sort_by_length must be a boolean",
        ),
    ] {
        assert_eq!(
            batch(body).expect_err(name),
            (status, detail.to_owned()),
            "{name}"
        );
    }
    let read = batch(
        r#"{"states":[1,"a"],"questions":{},"batch_size":99999999999999999999,"sort_by_length":null}"#,
    );
    let read = read.expect("accepted");
    assert_eq!(
        (read.states.len(), read.batch_size, read.sort_by_length),
        (2, Some(usize::MAX), None)
    );
}
