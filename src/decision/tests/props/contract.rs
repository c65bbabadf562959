//! Contracts survive their file, and differ exactly when their digests do.

use decision::Contract;
use decision::json::{self, Object, Value};
use proptest::prelude::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z\"\\\\\u{1}\n é😀]{1,8}x", Just("same".to_owned())]
}

fn question() -> impl Strategy<Value = Value> {
    let texts = prop::collection::vec((text(), prop::option::of(text())), 1..4);
    let noul = prop::option::of((prop::option::of(text()), prop::option::of(text())));
    prop_oneof![
        (text(), texts).prop_map(|(instructions, texts)| {
            let mut options = Object::new();
            for (id, text) in texts {
                if options.get(&id).is_none() {
                    options.push(id, text);
                }
            }
            definition("choice", instructions, Some(options.into()))
        }),
        (text(), prop::collection::vec(text(), 1..5)).prop_map(|(instructions, levels)| {
            definition(
                "score",
                instructions,
                Some(
                    levels
                        .into_iter()
                        .map(Value::from)
                        .collect::<Vec<_>>()
                        .into(),
                ),
            )
        }),
        (text(), noul).prop_map(|(instructions, texts)| {
            let criteria = texts.map(|(when_true, when_false)| {
                let both: Object = [
                    ("false", Value::from(when_false)),
                    ("true", when_true.into()),
                ]
                .into_iter()
                .collect();
                Value::from(both)
            });
            definition("noul", instructions, criteria)
        }),
    ]
}

fn definition(kind: &str, instructions: String, criteria: Option<Value>) -> Value {
    let mut object = Object::new();
    object.push("criteria", criteria);
    object.push("instructions", instructions);
    object.push("type", kind);
    object.into()
}

fn contract() -> impl Strategy<Value = Contract> {
    (text(), prop::collection::vec(question(), 1..4)).prop_map(|(description, questions)| {
        let decisions: Object = questions
            .into_iter()
            .enumerate()
            .map(|(index, question)| (format!("q{index}"), question))
            .collect();
        let mut file = Object::new();
        file.push("decisions", decisions);
        file.push("description", description);
        Contract::import(json::write(&Value::Object(file)).as_bytes())
            .expect("valid by construction")
    })
}

proptest! {
    #[test]
    fn a_file_gives_back_its_contract(contract in contract()) {
        let file = contract.export();
        let again = Contract::import(file.as_bytes()).expect("our own file");
        prop_assert_eq!(&again, &contract);
        prop_assert_eq!(again.export(), file);
        let questions = json::write(&Value::Object(contract.request_questions()));
        let bare = Contract::import_questions(questions.as_bytes()).expect("our own questions");
        prop_assert_eq!(bare.digest(), contract.digest());
    }

    #[test]
    fn a_difference_is_found_exactly_when_digests_differ(one in contract(), other in contract()) {
        prop_assert_eq!(one.first_difference(&other).is_some(), one.digest() != other.digest());
        prop_assert_eq!(one.first_shape_difference(&other).is_some(), one.shape_digest() != other.shape_digest());
        prop_assert_eq!(one.first_difference(&one.clone()), None);
    }

    #[test]
    fn noise_is_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Contract::import(&bytes).is_err());
    }
}
