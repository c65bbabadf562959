//! A contract as JSON: the file `decisions.json` and the `questions` of a System One request.

use super::{Contract, Criteria, Question};
use crate::json::{Object, Value, write_pretty};

impl Contract {
    /// The file `decisions.json`: indent of two spaces, keys in the documented order, final newline (routing.md 1.2).
    #[must_use]
    pub fn export(&self) -> String {
        let mut file = Object::new();
        file.push("description", self.description());
        file.push("language", self.language());
        file.push("decisions", self.request_questions());
        write_pretty(&Value::Object(file)) + "\n"
    }

    /// The `questions` object of a System One request that asks every question in this wording.
    #[must_use]
    pub fn request_questions(&self) -> Object {
        self.questions()
            .iter()
            .map(|question| (question.id.as_str(), members(question)))
            .collect()
    }
}

fn members(question: &Question) -> Object {
    let mut object = Object::new();
    object.push("type", question.kind().as_str());
    object.push("instructions", question.instructions.as_str());
    match &question.criteria {
        Criteria::Choice(options) => {
            let texts: Object = options
                .iter()
                .map(|option| (option.id.as_str(), option.text.clone()))
                .collect();
            object.push("criteria", texts);
        }
        Criteria::Score(levels) => {
            let texts: Vec<Value> = levels.iter().map(|level| level.as_str().into()).collect();
            object.push("criteria", texts);
        }
        Criteria::Noul(None) => {}
        Criteria::Noul(Some(texts)) => {
            let mut both = Object::new();
            both.push("true", texts.when_true.clone());
            both.push("false", texts.when_false.clone());
            object.push("criteria", both);
        }
    }
    object
}
