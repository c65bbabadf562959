//! Answers as a living model gives them: whole distributions that sum to 1, other ones for other states, the same ones
//! each time. Recorded probes are answered as recorded.

use serde_json::{Map, Value, json};

use super::Fault;

/// The payload for one state.
pub(super) fn answers(
    state: &Value,
    questions: &Map<String, Value>,
    known: &[Value],
    fault: &Fault,
) -> Value {
    let recorded = known
        .iter()
        .find(|probe| probe["state"] == *state)
        .map(|probe| &probe["answers"]);
    let answers: Map<String, Value> = questions
        .iter()
        .filter(|(id, _)| !matches!(fault, Fault::MissingId(missing) if missing == *id))
        .map(|(id, question)| {
            let expected = recorded.and_then(|answers| answers.get(id));
            (id.clone(), answer(state, id, question, expected, fault))
        })
        .collect();
    json!({
        "model": "laya-rl-agent",
        "answers": answers,
        "usage": {
            "input_tokens": 7, "output_tokens": 0, "state_tokens": 7, "state_tokens_dropped": 0, "truncated": false,
            "truncated_questions": [],
        },
    })
}

fn answer(
    state: &Value,
    id: &str,
    question: &Value,
    expected: Option<&Value>,
    fault: &Fault,
) -> Value {
    let kind = question["type"].as_str().unwrap_or_default();
    let labels = labels(kind, &question["criteria"]);
    let seed = match fault {
        Fault::DeadHead => id.to_owned(),
        _ => format!("{state}\n{id}"),
    };
    let mut shares = match expected {
        Some(expected) => recorded_shares(&labels, expected),
        None => shares(&seed, labels.len()),
    };
    if *fault == Fault::UnknownChoice && !shares.is_empty() {
        let most = position(&shares, |share, best| share > best);
        let least = position(&shares, |share, best| share < best);
        shares.swap(most, least);
    }
    let best = position(&shares, |share, best| share > best);
    let top = shares.get(best).copied().unwrap_or(1.0);
    let action = json!({"act_probability": 0.5});
    match kind {
        "choice" if *fault == Fault::WrongKind => json!({"type": "score", "score": 1.0}),
        "choice" => json!({
            "type": "choice", "choice": labels.get(best), "probabilities": by_label(&labels, &shares),
            "confidence": 0.5, "answer_confidence": top, "action": action,
        }),
        "score" => {
            let levels: Vec<String> = (0..labels.len()).map(|level| level.to_string()).collect();
            let score: f64 = (0_u32..)
                .zip(&shares)
                .map(|(at, share)| f64::from(at) * share)
                .sum();
            json!({
                "type": "score", "score": round(score),
                "legend": levels.iter().cloned().zip(labels.iter().map(|label| json!(label))).collect::<Map<_, _>>(),
                "probabilities": by_label(&levels, &shares), "confidence": 0.5, "answer_confidence": top,
                "action": action,
            })
        }
        _ => json!({
            "type": "noul", "noul": shares.get(1), "confidence": 0.5, "answer_confidence": top, "action": action,
        }),
    }
}

/// Where the first share is that is better than all others.
fn position(shares: &[f64], better: fn(f64, f64) -> bool) -> usize {
    let mut best = 0;
    for (at, share) in shares.iter().enumerate() {
        if better(*share, shares[best]) {
            best = at;
        }
    }
    best
}

fn labels(kind: &str, criteria: &Value) -> Vec<String> {
    match (kind, criteria) {
        ("choice" | "score", Value::Object(options)) => options.keys().cloned().collect(),
        ("choice" | "score", Value::Array(options)) => options
            .iter()
            .map(|option| {
                option
                    .as_str()
                    .map_or_else(|| option.to_string(), str::to_owned)
            })
            .collect(),
        _ => vec!["false".to_owned(), "true".to_owned()],
    }
}

fn by_label(labels: &[String], shares: &[f64]) -> Map<String, Value> {
    labels
        .iter()
        .cloned()
        .zip(shares.iter().map(|share| json!(share)))
        .collect()
}

/// The expected label with its probability; the others share the rest. Levels of a score are told by number.
fn recorded_shares(labels: &[String], expected: &Value) -> Vec<f64> {
    let label = expected["label"].as_str().unwrap_or_default();
    let probability = expected["probability"].as_f64().unwrap_or(1.0);
    let at = labels
        .iter()
        .position(|known| known == label)
        .or_else(|| label.parse().ok())
        .unwrap_or_default();
    let others = u32::try_from(labels.len().saturating_sub(1).max(1)).unwrap_or(1);
    (0..labels.len())
        .map(|option| match option == at {
            true => probability,
            false => (1.0 - probability) / f64::from(others),
        })
        .collect()
}

/// Weights from 1 to 256, divided by their sum.
fn shares(seed: &str, options: usize) -> Vec<f64> {
    let weights: Vec<f64> = (0..options)
        .map(|option| f64::from(1 + hash(&format!("{seed}\n{option}")) % 256))
        .collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| round(weight / sum)).collect()
}

/// To six decimals.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// FNV-1a, folded so that its low bits are as good as the others.
fn hash(text: &str) -> u32 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    u32::try_from((hash ^ (hash >> 32)) & 0xffff_ffff).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(state: &str, known: &[Value], fault: &Fault) -> Value {
        let questions = json!({
            "kind": {"type": "choice", "criteria": {"bug": "", "idea": "", "chore": ""}},
            "size": {"type": "score", "criteria": ["small", "middling", "large"]},
            "urgent": {"type": "noul"},
        });
        let questions = questions.as_object().cloned().unwrap_or_default();
        answers(&json!(state), &questions, known, fault)["answers"].clone()
    }

    #[test]
    fn distributions_are_whole_and_depend_on_the_state() {
        let one = ask("one", &[], &Fault::None);
        assert_eq!(one, ask("one", &[], &Fault::None));
        assert_ne!(one, ask("two", &[], &Fault::None));
        for id in ["kind", "size"] {
            let all = one[id]["probabilities"]
                .as_object()
                .cloned()
                .unwrap_or_default();
            let sum: f64 = all.values().filter_map(Value::as_f64).sum();
            assert_eq!(all.len(), 3);
            assert!((sum - 1.0).abs() < 1e-5, "{sum}");
        }
    }

    #[test]
    fn recorded_probes_are_answered_as_recorded_and_a_liar_says_another() {
        let known = [json!({"state": "one", "answers": {
            "kind": {"label": "idea", "probability": 0.8}, "size": {"label": "2", "probability": 0.7},
            "urgent": {"label": "true", "probability": 0.9},
        }})];
        let told = ask("one", &known, &Fault::None);
        assert_eq!(told["kind"]["choice"], "idea");
        assert_eq!(told["kind"]["probabilities"]["idea"], 0.8);
        assert_eq!(told["size"]["probabilities"]["2"], 0.7);
        assert_eq!(told["urgent"]["noul"], 0.9);
        let lie = ask("one", &known, &Fault::UnknownChoice);
        assert_ne!(lie["kind"]["choice"], "idea");
        assert!(lie["urgent"]["noul"].as_f64() < Some(0.5));
    }
}
