//! Relay's own contract: the 18 questions in our wording (`data/decisions.json`, written from labels.md). Option and
//! level texts are short on purpose: a published checkpoint reads question and options together in 192 tokens
//! (wire.md 10.3), and what does not fit is cut.

use std::sync::LazyLock;

use crate::contract::Contract;

/// The file that `/laya decisions` writes and from which the contract is read.
pub const RELAY_DECISIONS_JSON: &str = include_str!("../data/decisions.json");

static RELAY_CONTRACT: LazyLock<Contract> = LazyLock::new(|| {
    Contract::import(RELAY_DECISIONS_JSON.as_bytes())
        .expect("the compiled-in decisions.json obeys its own rules, see the test")
});

/// Relay's own 18 questions (routing.md 1.1).
#[must_use]
pub fn relay_contract() -> &'static Contract {
    &RELAY_CONTRACT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Criteria;
    use crate::vocabulary::{Agent, Effort, QuestionId, Scope, TaskType, Tier, Validation};

    fn words<T: ToString>(all: &[T]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn has_the_shape_of_the_specification() {
        let contract = relay_contract();
        assert_eq!(contract.canonical_shape().len(), 1022);
        assert_eq!(
            contract.shape_digest().to_string(),
            "sha256:69666a987e7b5a1b481806b092cf70de9eb5d00db05cb73b9a63b2129e5b780c"
        );
    }

    #[test]
    fn agrees_with_the_vocabulary() {
        let contract = relay_contract();
        let ids: Vec<_> = contract
            .questions()
            .iter()
            .map(|question| question.id.as_str())
            .collect();
        assert_eq!(
            ids,
            QuestionId::ALL
                .iter()
                .map(|id| id.as_str())
                .collect::<Vec<_>>()
        );
        for (id, expected) in [
            (QuestionId::TaskType, words(TaskType::ALL)),
            (QuestionId::Scope, words(Scope::ALL)),
            (QuestionId::CapabilityTier, words(Tier::ALL)),
            (QuestionId::ReasoningEffort, words(Effort::ALL)),
            (QuestionId::Agent, words(Agent::ALL)),
            (QuestionId::ValidationLevel, words(Validation::ALL)),
        ] {
            let question = contract.question(id.as_str()).expect("asked above");
            let Criteria::Choice(options) = &question.criteria else {
                panic!("{id} is no choice")
            };
            assert_eq!(
                options
                    .iter()
                    .map(|option| option.id.clone())
                    .collect::<Vec<_>>(),
                expected,
                "{id}"
            );
        }
    }

    #[test]
    fn is_exported_byte_for_byte() {
        assert_eq!(relay_contract().export(), RELAY_DECISIONS_JSON);
    }

    #[test]
    fn keeps_its_wording() {
        // A change of wording is a change of contract: every checkpoint tuned to it must be trained again.
        assert_eq!(relay_contract().digest().short(), "5adbe92776f8");
    }

    #[test]
    fn every_option_and_level_has_a_text() {
        for question in relay_contract().questions() {
            match &question.criteria {
                Criteria::Choice(options) => {
                    assert!(
                        options.iter().all(|option| option.text.is_some()),
                        "{}",
                        question.id
                    );
                }
                Criteria::Score(levels) => assert!(
                    levels.iter().all(|level| !level.is_empty()),
                    "{}",
                    question.id
                ),
                Criteria::Noul(texts) => {
                    let texts = texts.as_ref().expect("noul texts");
                    assert!(
                        texts.when_true.is_some() && texts.when_false.is_some(),
                        "{}",
                        question.id
                    );
                }
            }
        }
    }
}
