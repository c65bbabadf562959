//! Properties of the surface in process (wire.md 23): no bytes make it fail, and who else asks changes no answer.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use laya::{Engine, EngineOptions};
use proptest::prelude::*;
use serve::host::Host;
use serve::http::Surface;
use serve::metrics::Metrics;
use serve::readiness::Readiness;
use serve::settings::{Extras, Settings, Values};
use serve::source::Places;
use tokio::runtime::Runtime;

struct Bench {
    runtime: Runtime,
    surface: Arc<Surface>,
    metrics: Metrics,
}

static BENCH: LazyLock<Bench> = LazyLock::new(|| bench(&[]));
static NARROWING: LazyLock<Bench> = LazyLock::new(|| bench(&[("LAYA_TOURNAMENT_GROUP", "3")]));

fn bench(variables: &[(&str, &str)]) -> Bench {
    let tiny = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/tiny-laya");
    let tiny = tiny.display();
    let models = format!(
        r#"{{"english":"{tiny}","multilingual":["{tiny}","multilingual"],"typed-decisions":"{tiny}"}}"#
    );
    let all = variables.iter().chain(&[("LAYA_MAX_CONCURRENT", "256")]);
    let environment = all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let (values, _) = Values::new(
        [],
        environment.chain([("LAYA_EXTRA_MODELS".to_owned(), models)]),
    );
    let (settings, _) = Settings::read(&values, &Extras::default()).expect("settings");
    let engine = Arc::new(Engine::new(EngineOptions::default()).expect("threads"));
    let (metrics, readiness) = (
        Metrics::new().expect("metrics"),
        Arc::new(Readiness::default()),
    );
    let host = Host::new(
        settings.loading,
        Places::default(),
        &settings.passes,
        engine,
        metrics.clone(),
        Arc::clone(&readiness),
    );
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let surface = Surface::new(
        settings.serving,
        address,
        Arc::new(host),
        readiness,
        metrics.clone(),
    );
    Bench {
        runtime: Runtime::new().expect("a runtime"),
        surface: Arc::new(surface),
        metrics,
    }
}

impl Bench {
    async fn send(surface: Arc<Surface>, path: &str, body: Vec<u8>) -> (u16, Vec<u8>) {
        let request = Request::post(path)
            .body(Body::from(body))
            .expect("a request");
        let response = surface.answer(request).await;
        let status = response.status().as_u16();
        let body = response
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        (status, body.to_vec())
    }

    fn ask(&self, path: &str, body: Vec<u8>) -> (u16, Vec<u8>) {
        self.runtime
            .block_on(Self::send(Arc::clone(&self.surface), path, body))
    }

    /// The reply is one that clients know, and JSON.
    fn must_be_sound(&self, body: &[u8]) -> Result<(), TestCaseError> {
        for path in ["/v1/systemone", "/v1/systemone/batch"] {
            let (status, reply) = self.ask(path, body.to_vec());
            prop_assert!(
                [200, 400, 413, 422].contains(&status),
                "{path}: {status} to {body:?}"
            );
            let json: serde_json::Value = serde_json::from_slice(&reply).expect("JSON");
            prop_assert_eq!(status == 200, json.get("detail").is_none());
        }
        prop_assert_eq!(self.metrics.process.task_panics.get(), 0);
        Ok(())
    }
}

/// Any JSON, small.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "null",
            "true",
            "false",
            "0",
            "-0",
            "1",
            "1.0",
            "1e999",
            "NaN",
            "-Infinity",
            "0.5",
            "9007199254740993",
            "\"\"",
            "\" \"",
            "\"a\"",
            "\"\\ud800\"",
            "\"de\"",
            "\"en_US\"",
            "\"english\"",
            "\"[MASK]\"",
            "\"İ\"",
            "\"x/y\"",
            "[]",
            "{}",
        ])
        .prop_map(str::to_owned),
        "[a-zA-Zéß商, .]{0,40}".prop_map(|text| format!("{text:?}")),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5)
                .prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(("[a-d]{0,2}", inner), 0..5).prop_map(|members| {
                let members: Vec<String> = members
                    .iter()
                    .map(|(key, value)| format!("{key:?}:{value}"))
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// A question, nearly right.
fn question() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(vec![
        "\"choice\"",
        "\"score\"",
        "\"noul\"",
        "\"other\"",
        "1",
    ]);
    let criteria = prop_oneof![
        4 => prop::collection::vec(json(), 0..9).prop_map(|items| format!("[{}]", items.join(","))),
        4 => prop::collection::btree_map("[a-z]{1,6}", json(), 0..9).prop_map(|members| {
            let members: Vec<String> = members.iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
            format!("{{{}}}", members.join(","))
        }),
        1 => json(),
    ];
    let instructions = prop_oneof![3 => Just("\"which?\"".to_owned()), 1 => json()];
    (
        kind,
        instructions,
        criteria,
        prop::option::weighted(0.2, json()),
        prop::option::weighted(0.2, json()),
    )
        .prop_map(|(kind, instructions, criteria, order, labels)| {
            let mut text =
                format!(r#"{{"type":{kind},"instructions":{instructions},"criteria":{criteria}"#);
            for (key, value) in [("option_order", order), ("labels", labels)] {
                if let Some(value) = value {
                    text.push_str(&format!(",{key:?}:{value}"));
                }
            }
            text + "}"
        })
}

/// A body, nearly right, for either route.
fn body() -> impl Strategy<Value = String> {
    let fields = prop::sample::select(vec![
        "model",
        "task",
        "lang",
        "lang_guess",
        "max_len",
        "head_max_len",
        "min_confidence",
        "batch_size",
        "sort_by_length",
        "hooks",
        "diagnostics",
        "other",
    ]);
    (
        json(),
        prop::collection::vec(json(), 0..3),
        prop::collection::vec(question(), 0..3),
        prop::collection::vec((fields, json()), 0..3),
    )
        .prop_map(|(state, states, questions, fields)| {
            let questions: Vec<String> = questions
                .iter()
                .enumerate()
                .map(|(index, question)| format!("\"q{index}\":{question}"))
                .collect();
            let mut text = format!(
                r#"{{"state":{state},"states":[{}],"questions":{{{}}}"#,
                states.join(","),
                questions.join(",")
            );
            for (key, value) in fields {
                text.push_str(&format!(",{key:?}:{value}"));
            }
            text + "}"
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        BENCH.must_be_sound(&bytes)?;
    }

    #[test]
    fn no_json_makes_it_fail(text in json()) {
        BENCH.must_be_sound(text.as_bytes())?;
    }

    #[test]
    fn no_request_makes_it_fail(text in body()) {
        BENCH.must_be_sound(text.as_bytes())?;
        NARROWING.must_be_sound(text.as_bytes())?;
    }

    #[test]
    fn a_cut_or_changed_request_does_not_make_it_fail(text in body(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        BENCH.must_be_sound(&bytes)?;
        BENCH.must_be_sound(&bytes[..at])?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn answers_do_not_depend_on_batch_mates(
        texts in prop::collection::vec("[a-z .]{1,200}", 2..6),
        size in 1..4_usize,
        sort in any::<bool>(),
    ) {
        let questions = r#"{"c":{"type":"choice","instructions":"which?","criteria":["a","b","c"]},"n":{"type":"noul","instructions":"so?"}}"#;
        let single = |text: &String| format!(r#"{{"state":{text:?},"questions":{questions}}}"#).into_bytes();
        let states: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
        let batch = format!(
            r#"{{"states":[{}],"questions":{questions},"batch_size":{size},"sort_by_length":{sort}}}"#,
            states.join(",")
        );
        let bench = &*BENCH;
        let alone: Vec<String> = texts
            .iter()
            .map(|text| String::from_utf8(bench.ask("/v1/systemone", single(text)).1).expect("UTF-8"))
            .collect();
        let (status, reply) = bench.ask("/v1/systemone/batch", batch.into_bytes());
        let reply = String::from_utf8(reply).expect("UTF-8");
        prop_assert_eq!(status, 200);
        prop_assert!(reply.starts_with(&format!(r#"{{"results":[{}],"#, alone.join(","))), "{}", reply);
        let together: Vec<String> = bench.runtime.block_on(async {
            let asked = texts.iter().map(|text| Bench::send(Arc::clone(&bench.surface), "/v1/systemone", single(text)));
            let replies = futures_util::future::join_all(asked).await;
            replies.into_iter().map(|(_, body)| String::from_utf8(body).expect("UTF-8")).collect()
        });
        prop_assert_eq!(together, alone);
    }
}
