//! Numbers of answers stay in their ranges, whatever a model gives.

use decision::json::{Value, float_text};
use decision::wire::{
    Answer, Gate, GateState, Outcome, Surface, check_questions, probabilities, round4,
};
use proptest::prelude::*;

fn question(kind: &str, options: usize) -> decision::wire::Question {
    let list: Vec<String> = (0..options).map(|index| format!("\"o{index}\"")).collect();
    let criteria = if kind == "noul" {
        "null".to_owned()
    } else {
        format!("[{}]", list.join(","))
    };
    let text = format!(r#"{{"q":{{"type":"{kind}","instructions":"x","criteria":{criteria}}}}}"#);
    let value = decision::json::read(text.as_bytes()).expect("JSON");
    check_questions(value.as_object().expect("an object"))
        .expect("valid")
        .remove(0)
}

proptest! {
    #[test]
    fn floats_read_back(float in any::<f64>().prop_filter("a number", |float| float.is_finite())) {
        let text = float_text(float);
        prop_assert_eq!(text.parse::<f64>().expect("a float").to_bits(), float.to_bits());
        prop_assert!(text.contains(['.', 'e']), "{} is written like an integer", text);
        prop_assert_eq!(decision::json::read(text.as_bytes()), Ok(Value::Float(float)));
    }

    #[test]
    fn rounding_moves_by_half_a_step_at_most(number in 0.0..32.0f64) {
        prop_assert!((round4(number) - number).abs() <= 0.5e-4 + 1e-12);
    }

    #[test]
    fn answers_stay_in_range(
        logits in prop::collection::vec(-1e4..1e4f32, 1..100),
        temperature in 0.5..5.0f32,
        threshold in 0.0..=1.0f64,
        kind in prop::sample::select(vec!["choice", "score", "noul"]),
    ) {
        let logits = if kind == "noul" { vec![logits[0], -logits[0]] } else { logits };
        let probabilities = probabilities(&logits, temperature, None);
        prop_assert!((probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-4);
        let mut answer = Answer::new(&question(kind, logits.len()), &probabilities, 0.25);
        answer.apply_gate(&Gate::Single(threshold));
        for number in [answer.confidence, answer.answer_confidence, answer.jev_confidence().unwrap_or(0.0)] {
            prop_assert!((0.0..=1.0).contains(&number), "{}", number);
        }
        match &answer.outcome {
            Outcome::Choice { winner, .. } => {
                let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                prop_assert!(probabilities[*winner] >= probabilities.iter().copied().fold(0.0, f32::max));
                prop_assert!(logits[*winner] / temperature >= largest / temperature - 1e-2);
            }
            Outcome::Score { score, .. } => prop_assert!((0.0..=logits.len() as f64).contains(score)),
            Outcome::Noul { noul } => prop_assert!((0.0..=1.0).contains(noul)),
        }
        let verdict = answer.gate.expect("judged");
        prop_assert_eq!(verdict.state == GateState::Abstained, answer.answer_confidence < threshold);
        let object = answer.to_object(Surface::Http);
        prop_assert_eq!(object.get("low_confidence").is_some(), verdict.state == GateState::Abstained);
    }

    #[test]
    fn option_order_only_moves_probabilities(logits in prop::collection::vec(-9.0..9.0f32, 1..12), seed in any::<u64>()) {
        // A rotation is order enough.
        let n = logits.len();
        let order: Vec<usize> = (0..n).map(|slot| (slot + usize::try_from(seed % 97).expect("small")) % n).collect();
        let slots = probabilities(&logits, 1.0, None);
        let options = probabilities(&logits, 1.0, Some(&order));
        for (slot, option) in order.iter().enumerate() {
            prop_assert_eq!(options[*option].to_bits(), slots[slot].to_bits());
        }
    }
}
