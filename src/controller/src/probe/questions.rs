//! Questions that replicas are probed with: those of the contract of the checkpoint, put to built-in requests or to those
//! that the checkpoint's manifest recorded answers to.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use decision::contract::Question;
use decision::json::{Object, Value, write, write_string};
pub use decision::probe::REQUESTS as BUILT_IN;
use decision::{Contract, relay_contract};
use serde::{Deserialize, Serialize};

/// The questions of a contract as they are put to a server.
#[derive(Debug, PartialEq)]
pub struct QuestionSet {
    contract: Contract,
    digest: String,
    /// All of them, as `questions` of a request.
    all: String,
    /// The first alone, for measuring.
    first: String,
}

impl QuestionSet {
    /// Those of a contract.
    #[must_use]
    pub fn new(contract: Contract) -> Self {
        let questions = contract.request_questions();
        let first: Object = questions
            .iter()
            .take(1)
            .map(|(id, question)| (id.clone(), question.clone()))
            .collect();
        Self {
            digest: contract.digest().to_string(),
            all: write(&Value::Object(questions)),
            first: write(&Value::Object(first)),
            contract,
        }
    }

    /// Relay's own; made once.
    #[must_use]
    pub fn ours() -> Arc<Self> {
        static OURS: LazyLock<Arc<QuestionSet>> =
            LazyLock::new(|| Arc::new(QuestionSet::new(relay_contract().clone())));
        OURS.clone()
    }

    /// Digest of the contract.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The questions, in order.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        self.contract.questions()
    }

    /// Body of a request that asks all of them about a state, which is JSON.
    #[must_use]
    pub fn body(&self, state: &str) -> String {
        format!(r#"{{"state":{state},"questions":{}}}"#, self.all)
    }

    /// Body of a short request: one question about a short text.
    #[must_use]
    pub fn short_body(&self) -> String {
        let state = built_in(0);
        format!(r#"{{"state":{state},"questions":{}}}"#, self.first)
    }
}

/// A built-in request as JSON.
pub(super) fn built_in(at: usize) -> String {
    let mut text = String::new();
    write_string(&mut text, BUILT_IN[at % BUILT_IN.len()]);
    text
}

/// A state with the answers that the checkpoint gave to it when it was made (`probes` of the manifest).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedProbe {
    /// What is asked about.
    pub state: serde_json::Value,
    /// By id of the question.
    pub answers: BTreeMap<String, RecordedAnswer>,
}

/// A recorded answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedAnswer {
    /// The likeliest label: an option, a level by number, `true` or `false`.
    pub label: String,
    /// Its probability.
    pub probability: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_json_with_the_questions_in_order() {
        let ours = QuestionSet::ours();
        let body: serde_json::Value = serde_json::from_str(&ours.body(&built_in(1))).unwrap();
        assert_eq!(body["state"], BUILT_IN[1]);
        let asked = body["questions"].as_object().unwrap();
        assert_eq!(asked.len(), ours.questions().len());
        let short: serde_json::Value = serde_json::from_str(&ours.short_body()).unwrap();
        let id = &ours.questions()[0].id;
        assert_eq!(
            short["questions"]
                .as_object()
                .unwrap()
                .keys()
                .collect::<Vec<_>>(),
            [id]
        );
        assert_eq!(ours.digest(), relay_contract().digest().to_string());
    }
}
