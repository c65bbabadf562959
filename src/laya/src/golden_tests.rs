//! `numeric.json`: token ids, markers, statistics, temperatures and numbers of the original (wire.md 21), on every
//! instruction set this machine has.

use std::path::PathBuf;

use decision::json::{Object, Value, read, write};
use decision::wire::{Bucket, Question, Surface, check_questions};

use crate::checkpoint::{Checkpoint, LoadOptions};
use crate::engine::{Engine, EngineOptions};
use crate::kernels::CpuFeatures;
use crate::model::{Precision, TokenRow};
use crate::predict::{EncodedRow, Lengths, decode, encode, predict, temperature};

pub(crate) fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/golden")
        .join(name)
}

/// Copies the files of a checkpoint and lists them as a manifest does.
pub(crate) fn copy_checkpoint(
    from: &std::path::Path,
    to: &std::path::Path,
) -> Vec<crate::checkpoint::FileEntry> {
    let names = [
        "rl_agent_config.json",
        "model.safetensors",
        "encoder/config.json",
        "tokenizer/tokenizer.json",
        "tokenizer/tokenizer_config.json",
    ];
    let copy = |name: &str| {
        let bytes = std::fs::read(from.join(name)).unwrap();
        std::fs::create_dir_all(to.join(name).parent().unwrap()).unwrap();
        std::fs::write(to.join(name), &bytes).unwrap();
        let sha256 = crate::checkpoint::hex(&<sha2::Sha256 as sha2::Digest>::digest(&bytes));
        crate::checkpoint::FileEntry {
            path: name.to_owned(),
            sha256,
            size: bytes.len() as u64,
        }
    };
    names.into_iter().map(copy).collect()
}

pub(crate) fn engines() -> Vec<Engine> {
    [CpuFeatures::Portable, CpuFeatures::Avx2, CpuFeatures::All]
        .into_iter()
        .flat_map(|cpu| {
            [1, 3].map(|threads| {
                Engine::new(EngineOptions {
                    threads: Some(threads),
                    cpu,
                })
                .unwrap()
            })
        })
        .collect()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value:?} is no number"))
}

fn numbers(value: Option<&Value>) -> Vec<f64> {
    value
        .and_then(Value::as_list)
        .expect("a list")
        .iter()
        .map(number)
        .collect()
}

fn close(what: &str, got: &[f32], want: &[f64], bound: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!(
            (f64::from(*got) - want).abs() <= bound,
            "{what}[{i}]: {got}, recorded {want}"
        );
    }
}

struct Case {
    name: String,
    state: Value,
    questions: Vec<Question>,
    lengths: Lengths,
    rows: Vec<Object>,
    result: Object,
}

fn cases() -> Vec<Case> {
    let file = read(&std::fs::read(golden("laya/numeric.json")).unwrap()).unwrap();
    let cases = file.as_list().unwrap().iter().map(|case| {
        let case = case.as_object().unwrap();
        let overrides = case.get("overrides").and_then(Value::as_object).unwrap();
        let size = |key: &str| overrides.get(key).map(|v| number(v) as usize);
        Case {
            name: case.get("name").and_then(Value::as_str).unwrap().to_owned(),
            state: case.get("state").unwrap().clone(),
            questions: check_questions(case.get("questions").and_then(Value::as_object).unwrap())
                .unwrap(),
            lengths: Lengths {
                max_len: size("max_len"),
                head_max_len: size("head_max_len"),
            },
            rows: case
                .get("rows")
                .and_then(Value::as_list)
                .unwrap()
                .iter()
                .map(|r| r.as_object().unwrap().clone())
                .collect(),
            result: case
                .get("result")
                .and_then(Value::as_object)
                .unwrap()
                .clone(),
        }
    });
    cases.collect()
}

#[test]
fn numbers_agree_with_the_original() {
    for engine in engines() {
        let tiny = engine
            .load(&golden("tiny-laya"), &LoadOptions::default())
            .unwrap();
        for case in cases() {
            let name = format!("{} on {}", case.name, engine.kernels());
            let encoded = encode(&tiny, &case.state, &case.questions, case.lengths).unwrap();
            let rows: Vec<TokenRow<'_>> = encoded.rows.iter().map(EncodedRow::as_tokens).collect();
            let outputs = engine.run(&tiny, &rows).unwrap();
            let cls = engine.encode_cls(&tiny, &rows);
            assert_eq!(rows.len(), case.rows.len(), "{name}");
            for (i, want) in case.rows.iter().enumerate() {
                let name = format!("{name} {}", case.questions[i].id);
                let whole = |key: &str| {
                    numbers(want.get(key))
                        .iter()
                        .map(|v| *v as usize)
                        .collect::<Vec<_>>()
                };
                assert_eq!(
                    rows[i]
                        .ids
                        .iter()
                        .map(|id| *id as usize)
                        .collect::<Vec<_>>(),
                    whole("ids"),
                    "{name}"
                );
                assert_eq!(rows[i].markers, whole("markers"), "{name}");
                let (kind, options) = (case.questions[i].kind(), case.questions[i].option_count());
                assert_eq!(
                    want.get("bucket").and_then(Value::as_str),
                    Some(Bucket::of(kind, options).to_string().as_str())
                );
                let applied = temperature(&tiny.info().agent.temperatures, kind, options);
                close(
                    &name,
                    &[applied],
                    &[number(want.get("temperature_applied").unwrap())],
                    0.0,
                );
                close(
                    &format!("{name} logits"),
                    &outputs[i].logits,
                    &numbers(want.get("raw_logits")),
                    5e-4,
                );
                let act = crate::model::softmax(&outputs[i].act_logits);
                close(
                    &format!("{name} act"),
                    &act,
                    &numbers(want.get("act_softmax")),
                    5e-4,
                );
                close(
                    &format!("{name} encoder"),
                    &cls[i][..8],
                    &numbers(want.get("encoder_cls_first8")),
                    5e-4,
                );
            }
        }
    }
}

#[test]
fn results_read_like_those_of_the_original() {
    for engine in engines() {
        let tiny = engine
            .load(&golden("tiny-laya"), &LoadOptions::default())
            .unwrap();
        for case in cases() {
            let prediction =
                predict(&engine, &tiny, &case.state, &case.questions, case.lengths).unwrap();
            let answers: Object = prediction
                .answers
                .iter()
                .map(|(id, a)| (id.as_str(), a.to_object(Surface::Library)))
                .collect();
            let want = Value::Object(
                case.result
                    .get("answers")
                    .and_then(Value::as_object)
                    .unwrap()
                    .clone(),
            );
            assert_eq!(
                write(&Value::Object(answers)),
                write(&want),
                "{} on {}",
                case.name,
                engine.kernels()
            );
            let usage = Value::Object(prediction.usage.to_object());
            assert_eq!(
                write(&usage),
                write(case.result.get("usage").unwrap()),
                "{}",
                case.name
            );
        }
    }
}

/// All rows of all cases, in one pass and alone, in order and reversed.
#[test]
fn a_row_has_the_same_bits_alone_and_in_company() {
    for engine in engines().into_iter().filter(|engine| engine.threads() > 1) {
        for precision in [Precision::F32, Precision::Int8] {
            let tiny = engine
                .load(
                    &golden("tiny-laya"),
                    &LoadOptions {
                        precision,
                        ..LoadOptions::default()
                    },
                )
                .unwrap();
            let encoded: Vec<EncodedRow> = cases()
                .iter()
                .flat_map(|c| {
                    encode(&tiny, &c.state, &c.questions, c.lengths)
                        .unwrap()
                        .rows
                })
                .collect();
            let rows: Vec<TokenRow<'_>> = encoded.iter().map(EncodedRow::as_tokens).collect();
            let together = engine.run(&tiny, &rows).unwrap();
            let backwards: Vec<TokenRow<'_>> = rows.iter().rev().copied().collect();
            let mut reversed = engine.run(&tiny, &backwards).unwrap();
            reversed.reverse();
            assert_eq!(together, reversed, "{precision} on {}", engine.kernels());
            for (row, output) in rows.iter().zip(&together) {
                let alone = engine.run(&tiny, std::slice::from_ref(row)).unwrap();
                assert_eq!(alone[0], *output, "{precision} on {}", engine.kernels());
            }
        }
    }
}

#[test]
fn bytes_stay_close_to_f32_and_answer_the_same() {
    for engine in engines() {
        let load = |precision| {
            engine
                .load(
                    &golden("tiny-laya"),
                    &LoadOptions {
                        precision,
                        ..LoadOptions::default()
                    },
                )
                .unwrap()
        };
        let (reference, reduced) = (load(Precision::F32), load(Precision::Int8));
        assert!(reduced.weight_bytes() * 3 < reference.weight_bytes());
        let mut differences: Vec<f32> = Vec::new();
        for case in cases() {
            let run = |checkpoint: &Checkpoint| {
                let encoded =
                    encode(checkpoint, &case.state, &case.questions, case.lengths).unwrap();
                let rows: Vec<TokenRow<'_>> =
                    encoded.rows.iter().map(EncodedRow::as_tokens).collect();
                let outputs = engine.run(checkpoint, &rows).unwrap();
                assert_eq!(
                    decode(checkpoint, &case.questions, &outputs).unwrap().len(),
                    case.questions.len()
                );
                outputs
            };
            for (a, b) in run(&reference).iter().zip(run(&reduced)) {
                differences.extend(a.logits.iter().zip(&b.logits).map(|(a, b)| (a - b).abs()));
            }
        }
        let mean = differences.iter().sum::<f32>() / differences.len() as f32;
        let largest = differences.iter().fold(0f32, |m, d| m.max(*d));
        assert!(
            mean < 0.12 && largest < 0.5,
            "{}: mean {mean}, largest {largest}",
            engine.kernels()
        );
    }
}

/// Whether two replies are equal but for numbers that differ by at most 1e-4.
fn same_but_for_rounding(got: &Value, want: &Value) -> bool {
    match (got, want) {
        (Value::Object(got), Value::Object(want)) => {
            got.len() == want.len()
                && got
                    .iter()
                    .zip(want)
                    .all(|((a, x), (b, y))| a == b && same_but_for_rounding(x, y))
        }
        (Value::List(got), Value::List(want)) => {
            got.len() == want.len()
                && got
                    .iter()
                    .zip(want)
                    .all(|(x, y)| same_but_for_rounding(x, y))
        }
        (Value::Float(got), Value::Float(want)) => (got - want).abs() < 1.01e-4,
        (got, want) => got == want,
    }
}

/// Requests of every kind to both tiny checkpoints, answered by the original.
#[test]
fn recorded_requests_are_answered_alike() {
    let engine = engines().pop().unwrap();
    let load = |folder: &str| {
        engine
            .load(&golden(folder), &LoadOptions::default())
            .unwrap()
    };
    let (english, multilingual) = (load("tiny-laya"), load("tiny-laya/multilingual"));
    let path = std::env::var("LAYA_MORE")
        .map_or_else(|_| golden("laya/predict-more.jsonl"), PathBuf::from);
    let (mut wrong, mut exact, mut answered) = (Vec::new(), 0, 0);
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let row = read(line.as_bytes()).unwrap();
        let row = row.as_object().unwrap();
        let object = |key: &str| row.get(key).and_then(Value::as_object).unwrap();
        let checkpoint = match row.get("checkpoint").and_then(Value::as_str) {
            Some("english") => &english,
            _ => &multilingual,
        };
        let size = |key: &str| object("overrides").get(key).map(|v| number(v) as usize);
        let lengths = Lengths {
            max_len: size("max_len"),
            head_max_len: size("head_max_len"),
        };
        let questions = check_questions(object("questions")).unwrap();
        let got = match predict(
            &engine,
            checkpoint,
            row.get("state").unwrap(),
            &questions,
            lengths,
        ) {
            Ok(prediction) => {
                let mut got = Object::new();
                let answers: Object = prediction
                    .answers
                    .iter()
                    .map(|(id, a)| (id.as_str(), a.to_object(Surface::Library)))
                    .collect();
                got.push("model", "laya-rl-agent");
                got.push("answers", answers);
                got.push("usage", prediction.usage.to_object());
                got
            }
            Err(error) => [("error", Value::from(format!("ValueError: {error}")))]
                .into_iter()
                .collect(),
        };
        let want = row.get("result").unwrap();
        answered += 1;
        exact += usize::from(write(&Value::Object(got.clone())) == write(want));
        if !same_but_for_rounding(&Value::Object(got.clone()), want) {
            wrong.push(format!(
                "{line}\n got {}\nwant {}",
                write(&Value::Object(got)),
                write(want)
            ));
        }
    }
    eprintln!("{exact} of {answered} to the last digit");
    assert!(
        answered > 0 && wrong.is_empty(),
        "{} of {answered} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
