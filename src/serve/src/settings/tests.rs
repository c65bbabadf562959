use super::*;

fn read(pairs: &[(&str, &str)]) -> Result<(Settings, Vec<String>), SettingError> {
    let environment = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let (values, _) = Values::new([], environment);
    Settings::read(&values, &Extras::default())
}

#[test]
fn defaults_are_those_of_the_page() {
    let (settings, warnings) = read(&[]).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(
        (settings.bind.host.as_str(), settings.bind.port),
        ("127.0.0.1", 8000)
    );
    assert_eq!(
        settings.loading.preload,
        ["english", "multilingual", "typed-decisions"]
    );
    assert_eq!(
        settings.loading.max_loaded, 3,
        "raised to what is preloaded"
    );
    assert_eq!(settings.loading.device, Device::Auto);
    let serving = &settings.serving;
    assert_eq!(
        (serving.max_concurrent, serving.max_token_budget),
        (16, 8192)
    );
    assert_eq!(serving.default_model, "multilingual");
    assert_eq!(
        (
            serving.body_read_timeout,
            serving.request_timeout,
            settings.drain_timeout
        ),
        (
            Duration::from_secs(10),
            Duration::from_secs(60),
            Duration::from_secs(30)
        )
    );
    assert_eq!(settings.passes.max_tokens, 131_072);
}

#[test]
fn bad_values_end_the_start_with_these_words() {
    for (name, value, expected) in [
        (
            "LAYA_PORT",
            "99999",
            "invalid LAYA_PORT '99999': must be an integer 1-65535",
        ),
        (
            "LAYA_PORT",
            "0",
            "invalid LAYA_PORT '0': must be an integer 1-65535",
        ),
        (
            "LAYA_PORT",
            "x",
            "invalid LAYA_PORT 'x': must be an integer 1-65535",
        ),
        (
            "LAYA_DEVICE",
            "tpu",
            "invalid LAYA_DEVICE 'tpu': must be auto, cpu or cuda",
        ),
        (
            "LAYA_DEFAULT_MODEL",
            "x",
            "invalid LAYA_DEFAULT_MODEL 'x': unknown model 'x'; choose one of ['english', 'multilingual', \
             'typed-decisions'] (or an alias: ['decisions', 'default', 'en', 'laya', 'laya-multilingual', \
             'laya-typed-decisions', 'ml', 'multi', 'typed', 'typed_decisions'])",
        ),
        (
            "LAYA_LOG_LEVEL",
            "x",
            "invalid LAYA_LOG_LEVEL 'x': must be one of critical, debug, error, info, trace, warning",
        ),
        (
            "LAYA_EXTRA_MODELS",
            "[]",
            "invalid LAYA_EXTRA_MODELS: must be a JSON object of name -> source, got list",
        ),
        (
            "LAYA_REQUEST_TIMEOUT",
            "0",
            "invalid LAYA_REQUEST_TIMEOUT '0': must be a positive number of seconds",
        ),
        (
            "LAYA_DRAIN_TIMEOUT",
            "nan",
            "invalid LAYA_DRAIN_TIMEOUT 'nan': must be a positive number of seconds",
        ),
        (
            "LAYA_PRECISION",
            "bf16",
            "invalid LAYA_PRECISION 'bf16': unknown precision `bf16`: expected f32 or int8",
        ),
        (
            "LAYA_CPU_FEATURES",
            "sse",
            "invalid LAYA_CPU_FEATURES 'sse': unknown CPU feature level `sse`: expected portable, avx2, avx512 or neon",
        ),
        (
            "LAYA_SHA256_DIGESTS",
            "1",
            "invalid LAYA_SHA256_DIGESTS: must be a JSON object, got int",
        ),
        (
            "LAYA_CPU_AMP",
            "BF16",
            "invalid LAYA_CPU_AMP 'BF16': is not served by this build; set LAYA_PRECISION to f32 or int8",
        ),
    ] {
        let error = read(&[(name, value)]).expect_err(name);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn what_is_ignored_keeps_the_default_and_says_so() {
    for (name, value) in [
        ("LAYA_MAX_LOADED", "0"),
        ("LAYA_THREADS", "many"),
        ("LAYA_MAX_CONCURRENT", "-1"),
        ("LAYA_MAX_TOKEN_BUDGET", "1.5"),
        ("LAYA_MAX_BATCH_TOKENS", "0"),
        ("LAYA_BODY_READ_TIMEOUT", "soon"),
        ("LAYA_IDLE_UNLOAD_SECONDS", "-3"),
        ("LAYA_TOURNAMENT_GROUP", "101"),
        ("LAYA_TOURNAMENT_GROUP", "1"),
        ("LAYA_CPU_AMP", "fp16"),
        ("LAYA_CPU_AMP", "1"),
    ] {
        let (settings, warnings) = read(&[(name, value)]).expect(name);
        let (defaults, _) = read(&[]).unwrap();
        assert_eq!(settings.serving, defaults.serving, "{name}");
        assert_eq!(settings.passes, defaults.passes, "{name}");
        assert_eq!(settings.loading.idle_unload, None, "{name}");
        assert_eq!(warnings.len(), 1, "{name}: {warnings:?}");
    }
}

#[test]
fn values_are_taken() {
    let (settings, warnings) = read(&[
        ("LAYA_MODELS", "en, Typed_Decisions, english"),
        ("LAYA_DEVICE", "CUDA:1"),
        ("LAYA_AUTO_TASK", "YES"),
        ("LAYA_JEV_STRICT", "2"),
        ("LAYA_DEFAULT_MODEL", " EN "),
        ("LAYA_TOURNAMENT_GROUP", "8"),
        ("LAYA_IDLE_UNLOAD_SECONDS", "1.5"),
        ("LAYA_ALLOWED_ORIGINS", "https://A.example/, null"),
        ("LAYA_API_KEY", "s3cret"),
        ("LAYA_MAX_LOADED", "1"),
    ])
    .unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(settings.loading.preload, ["english", "typed-decisions"]);
    assert_eq!(settings.loading.max_loaded, 2);
    assert_eq!(settings.loading.device, Device::Absent("cuda:1".to_owned()));
    assert_eq!(
        settings.loading.idle_unload,
        Some(Duration::from_millis(1500))
    );
    assert!(settings.serving.auto_task && !settings.serving.strict);
    assert_eq!(settings.serving.default_model, "english");
    assert_eq!(settings.serving.tournament_group, Some(8));
    assert_eq!(
        settings.serving.allowed_origins,
        ["https://a.example", "null"]
    );
    let header = settings.serving.api_key.as_ref().map(ApiKey::header);
    assert_eq!(header.as_deref(), Some(&b"Bearer s3cret"[..]));
    assert!(
        !format!("{settings:?}").contains("s3cret"),
        "a key is not shown"
    );
}

#[test]
fn one_folder_is_the_whole_registry() {
    let (values, _) = Values::new([], [("LAYA_EXTRA_MODELS".to_owned(), "{}".to_owned())]);
    let extras = Extras {
        model: Some("/m".to_owned()),
        ..Extras::default()
    };
    let (settings, warnings) = Settings::read(&values, &extras).unwrap();
    assert_eq!(settings.loading.preload, ["model"]);
    assert!(settings.loading.registry.names().is_none());
    assert_eq!(warnings.len(), 1);
}

#[test]
fn a_flag_may_ask_for_any_free_port() {
    let (values, _) = Values::new([("LAYA_PORT", "0".to_owned())], []);
    let (settings, _) = Settings::read(&values, &Extras::default()).unwrap();
    assert_eq!(settings.bind.port, 0);
    let (values, _) = Values::new([("LAYA_PORT", "70000".to_owned())], []);
    let error = Settings::read(&values, &Extras::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid --port '70000': must be an integer 1-65535"
    );
}

#[test]
fn a_precision_leaves_cpu_amp_without_a_meaning() {
    let (settings, warnings) =
        read(&[("LAYA_CPU_AMP", "bf16"), ("LAYA_PRECISION", "int8")]).unwrap();
    assert_eq!(settings.loading.precision, Precision::Int8);
    assert_eq!(
        warnings,
        ["LAYA_CPU_AMP 'bf16' is ignored: precision is set by LAYA_PRECISION"]
    );
}

#[test]
fn a_wrong_name_is_refused_though_nothing_is_preloaded() {
    let error = read(&[("LAYA_PRELOAD", "0"), ("LAYA_MODELS", "en,frensh")]).unwrap_err();
    let expected = "invalid LAYA_MODELS 'en,frensh': unknown model 'frensh'; choose one of";
    assert!(error.to_string().starts_with(expected), "{error}");
    let (settings, _) = read(&[("LAYA_PRELOAD", "0"), ("LAYA_MODELS", "en")]).unwrap();
    assert!(settings.loading.preload.is_empty());
}

#[test]
fn threads_are_at_most_four_for_each_core() {
    let cores = std::thread::available_parallelism().unwrap().get();
    for (asked, threads, warned) in [
        (1, 1, false),
        (4 * cores, 4 * cores, false),
        (4 * cores + 1, 4 * cores, true),
        (usize::MAX, 4 * cores, true),
    ] {
        let (settings, warnings) = read(&[("LAYA_THREADS", &asked.to_string())]).unwrap();
        assert_eq!(settings.passes.threads, Some(threads), "{asked}");
        assert_eq!(!warnings.is_empty(), warned, "{asked}: {warnings:?}");
    }
}
