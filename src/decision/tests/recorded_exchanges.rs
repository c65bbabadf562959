//! Recorded exchanges of a Laya server (wire.md 21): everything about them that needs no model. Refusals come out byte for
//! byte; replies are taken apart into typed answers and written again, byte for byte.

use std::path::{Path, PathBuf};

use decision::json::{self, Object, Value};
use decision::wire::{
    Answer, Controls, Form, Label, ModelNames, OptionLimit, OptionUsage, Outcome, Payload,
    Question, Refusal, RequestRules, StateUsage, Surface, Tournament, Usage, check_questions,
    read_batch_request, read_request, write_batch, write_reply,
};

/// Refused for what only the tokens of a row show (wire.md 10.3).
const NEEDS_TOKENS: [&str; 2] = ["err_options_over_max_len", "max_len_small_markers_422"];

struct Exchange {
    name: String,
    profile: String,
    batch: bool,
    request: Vec<u8>,
    status: u16,
    reply: String,
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn exchanges() -> Vec<Exchange> {
    let mut files: Vec<_> = std::fs::read_dir(data().join("http"))
        .expect("folder")
        .map(|entry| entry.expect("entry").path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| exchange(&json::read(&std::fs::read(file).expect("file")).expect("JSON")))
        .collect()
}

fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter()
        .try_fold(value, |value, key| value.as_object()?.get(key))
}

fn text(value: &Value, path: &[&str]) -> String {
    at(value, path)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no text at {path:?}"))
        .to_owned()
}

fn exchange(file: &Value) -> Exchange {
    let name = text(file, &["name"]);
    let body = at(file, &["request", "body"]).expect("a body");
    let request = match (at(body, &["utf8"]), at(body, &["base64"])) {
        (Some(utf8), _) => utf8.as_str().expect("text").as_bytes().to_vec(),
        (_, Some(base64)) => decode_base64(base64.as_str().expect("text")),
        // The only body described in words.
        _ if name == "deep_nesting_400" => format!(
            "{{\"state\":{}{},\"questions\":{{}}}}",
            "[".repeat(100_000),
            "]".repeat(100_000)
        )
        .into_bytes(),
        _ => panic!("{name} has no body"),
    };
    Exchange {
        profile: text(file, &["profile"]),
        batch: text(file, &["request", "path"]).contains("batch"),
        request,
        status: at(file, &["response", "status"])
            .and_then(Value::as_f64)
            .expect("a status") as u16,
        reply: text(file, &["response", "body", "utf8"]),
        name,
    }
}

fn decode_base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<usize> = text
        .bytes()
        .filter_map(|byte| ALPHABET.iter().position(|letter| *letter == byte))
        .collect();
    let byte = |high: usize, low: usize| u8::try_from((high | low) & 0xFF).expect("masked");
    let mut bytes = Vec::new();
    for group in digits.chunks(4) {
        for (index, pair) in group.windows(2).enumerate() {
            bytes.push(byte(pair[0] << (2 + 2 * index), pair[1] >> (4 - 2 * index)));
        }
    }
    bytes
}

impl Exchange {
    fn read(&self) -> Result<(Vec<Question>, Controls, usize), Refusal> {
        let names = ModelNames::built_in_and(Vec::<String>::new());
        let option_limit = if self.profile == "tournament" {
            OptionLimit::Tournament
        } else {
            OptionLimit::OnePass
        };
        let rules = RequestRules {
            max_token_budget: 8192,
            option_limit,
            models: Some(&names),
        };
        let (questions, controls, states) = if self.batch {
            let batch = read_batch_request(&self.request, &rules)?;
            (batch.questions, batch.controls, batch.states.len())
        } else {
            let request = read_request(&self.request, &rules)?;
            (request.questions, request.controls, 1)
        };
        Ok((check_questions(&questions)?, controls, states))
    }
}

#[test]
fn every_refusal_reads_as_recorded() {
    let mut refused = 0;
    for exchange in exchanges().iter().filter(|exchange| exchange.status != 200) {
        let name = &exchange.name;
        if NEEDS_TOKENS.contains(&name.as_str()) {
            exchange.read().expect(name);
            continue;
        }
        let refusal = exchange.read().expect_err(name);
        assert_eq!(
            (refusal.status.code(), refusal.body()),
            (exchange.status, exchange.reply.clone()),
            "{name}"
        );
        refused += 1;
    }
    assert_eq!(refused, 43);
}

#[test]
fn every_reply_is_written_as_recorded() {
    let mut replies = 0;
    for exchange in exchanges().iter().filter(|exchange| exchange.status == 200) {
        let name = &exchange.name;
        let (questions, controls, states) = exchange.read().expect(name);
        let reply = json::read(exchange.reply.as_bytes()).expect(name);
        assert_eq!(
            json::write(&reply),
            exchange.reply,
            "{name}: read and written"
        );
        let surface = if exchange.profile == "jev_strict" {
            Surface::HttpStrict
        } else {
            Surface::Http
        };
        let written = if exchange.batch {
            let results = at(&reply, &["results"])
                .and_then(Value::as_list)
                .expect(name);
            assert_eq!(results.len(), states, "{name}");
            let payloads: Vec<_> = results
                .iter()
                .map(|result| payload(result, &questions, &controls))
                .collect();
            write_batch(&payloads, surface)
        } else {
            write_reply(&payload(&reply, &questions, &controls), surface)
        };
        assert_eq!(
            written.expect(name),
            exchange.reply,
            "{name}: taken apart and written"
        );
        replies += 1;
    }
    assert_eq!(replies, 47);
}

/// A recorded payload as types. What is computed from other fields (`x_jev_confidence`, the gate, `truncated`) is not
/// taken from the record.
fn payload(reply: &Value, questions: &[Question], controls: &Controls) -> Payload {
    let answers = questions.iter().map(|question| {
        let recorded = at(reply, &["answers", &question.id]).expect("an answer");
        (question.id.clone(), answer(recorded, question, controls))
    });
    Payload {
        answers: answers.collect(),
        usage: usage(at(reply, &["usage"]).expect("usage")),
        routing: at(reply, &["routing"]).cloned().unwrap_or(Value::Null),
    }
}

fn numbers(recorded: &Value) -> Vec<f64> {
    let object = at(recorded, &["probabilities"])
        .and_then(Value::as_object)
        .expect("probabilities");
    object
        .values()
        .map(|value| value.as_f64().expect("a number"))
        .collect()
}

fn answer(recorded: &Value, question: &Question, controls: &Controls) -> Answer {
    let number = |path: &[&str]| at(recorded, path).and_then(Value::as_f64);
    let outcome = match &question.form {
        Form::Choice(options) => {
            let labels: Vec<Label> = options.iter().map(|option| option.label.clone()).collect();
            let winner = at(recorded, &["choice"])
                .and_then(|chosen| labels.iter().position(|one| one.value() == chosen));
            Outcome::Choice {
                labels,
                probabilities: numbers(recorded),
                winner: winner.expect("a label"),
            }
        }
        Form::Score(levels) => Outcome::Score {
            score: number(&["score"]).expect("a score"),
            legend: levels.iter().map(decision::wire::value_text).collect(),
            probabilities: numbers(recorded),
        },
        Form::Noul { .. } => Outcome::Noul {
            noul: number(&["noul"]).expect("noul"),
        },
    };
    let mut answer = Answer {
        outcome,
        // Strict replies have fewer fields.
        confidence: number(&["confidence"]).unwrap_or(0.0),
        answer_confidence: number(&["answer_confidence"]).unwrap_or(0.0),
        act_probability: number(&["action", "act_probability"]).unwrap_or(0.0),
        window: None,
        gate: None,
        tournament: None,
    };
    if let Some(gate) = &controls.gate {
        answer.apply_gate(gate);
    }
    if let Some(tournament) = at(recorded, &["x_tournament"]) {
        let finalists = at(tournament, &["finalists"])
            .and_then(Value::as_list)
            .expect("finalists");
        answer.tournament = Some(Tournament {
            finalists: finalists
                .iter()
                .map(|label| Label::new(label).expect("a label"))
                .collect(),
            rounds: at(tournament, &["rounds"])
                .and_then(Value::as_f64)
                .expect("rounds") as usize,
            option_order_dropped: at(tournament, &["option_order_dropped"]).is_some(),
        });
    }
    answer
}

fn usage(recorded: &Value) -> Usage {
    let count = |value: &Value, key: &str| {
        at(value, &[key])
            .and_then(Value::as_f64)
            .map(|number| number as usize)
    };
    let ids = |key: &str| {
        let list = at(recorded, &[key])
            .and_then(Value::as_list)
            .unwrap_or_default();
        list.iter()
            .map(|id| id.as_str().expect("an id").to_owned())
            .collect()
    };
    let options = at(recorded, &["options"])
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    Usage {
        input_tokens: count(recorded, "input_tokens").expect("input tokens"),
        state: count(recorded, "state_tokens").map(|state_tokens| StateUsage {
            state_tokens,
            state_tokens_dropped: count(recorded, "state_tokens_dropped").expect("dropped"),
            truncated_questions: ids("truncated_questions"),
            options: options
                .iter()
                .map(|(id, options)| OptionUsage {
                    question: id.to_string_lossy(),
                    total: count(options, "total").expect("total"),
                    distinct: count(options, "distinct").expect("distinct"),
                    tokens_per_option: count(options, "tokens_per_option"),
                })
                .collect(),
        }),
    }
}

/// Logits of the reference checkpoint against the answers it gave.
#[test]
fn logits_become_the_recorded_answers() {
    let cases =
        json::read(&std::fs::read(data().join("numeric.json")).expect("file")).expect("JSON");
    let floats = |value: &Value, key: &str| -> Vec<f32> {
        let list = at(value, &[key]).and_then(Value::as_list).expect("numbers");
        list.iter()
            .map(|number| number.as_f64().expect("a number") as f32)
            .collect()
    };
    let mut answers = 0;
    for case in cases.as_list().expect("a list") {
        let name = text(case, &["name"]);
        let questions = at(case, &["questions"])
            .and_then(Value::as_object)
            .expect("questions");
        let questions = check_questions(questions).expect(&name);
        for (question, row) in questions
            .iter()
            .zip(at(case, &["rows"]).and_then(Value::as_list).expect("rows"))
        {
            assert_eq!(question.id, text(row, &["qid"]), "{name}");
            let temperature = at(row, &["temperature_applied"])
                .and_then(Value::as_f64)
                .expect("temperature") as f32;
            let order = question.option_order.as_deref();
            let probabilities =
                decision::wire::probabilities(&floats(row, "raw_logits"), temperature, order);
            let act = floats(row, "act_softmax")[0];
            let answer = Answer::new(question, &probabilities, act);
            assert_eq!(
                answer.outcome.bucket().to_string(),
                text(row, &["bucket"]),
                "{name}"
            );
            let recorded = at(case, &["result", "answers", &question.id])
                .and_then(Value::as_object)
                .expect("answer");
            assert_close(&answer.to_object(Surface::Library), recorded, &name);
            answers += 1;
        }
    }
    assert_eq!(answers, 17);
}

/// Same keys in the same order, same values; numbers within 1e-4 (wire.md 6.2).
fn assert_close(written: &Object, recorded: &Object, name: &str) {
    assert!(
        written.keys().eq(recorded.keys()),
        "{name}: {written:?} and {recorded:?}"
    );
    for ((key, written), recorded) in written.iter().zip(recorded.values()) {
        match (written, recorded) {
            (Value::Object(written), Value::Object(recorded)) => {
                assert_close(written, recorded, name)
            }
            (Value::Float(written), Value::Float(recorded)) => {
                assert!(
                    (written - recorded).abs() <= 1e-4 + 1e-12,
                    "{name} {key:?}: {written} and {recorded}"
                );
            }
            _ => assert_eq!(written, recorded, "{name} {key:?}"),
        }
    }
}
