//! Choices with many options, narrowed by elimination before the request is asked as a whole (wire.md 15.2). A plan that
//! knows which questions come next; who asks them, and with which checkpoint, is the caller's.

use decision::json::{Object, Text, Value, python_repr, repr_text};
use decision::wire::{Answer, Label, Outcome, Refusal, Tournament as Mark, check_question};

/// Labels above which narrowing is not optional.
const ALWAYS_ABOVE: usize = 100;

/// Group sizes that `LAYA_TOURNAMENT_GROUP` may have; any other value is off.
pub const GROUPS: std::ops::RangeInclusive<usize> = 2..=100;

/// A running elimination.
#[derive(Debug, Clone, PartialEq)]
pub struct Tournament {
    group: usize,
    questions: Object,
    narrowed: Vec<Narrowed>,
}

/// One large choice.
#[derive(Debug, Clone, PartialEq)]
struct Narrowed {
    id: Text,
    all: Vec<Label>,
    /// Positions of the labels that are left, ascending.
    left: Vec<usize>,
    option_order_dropped: bool,
    /// Rounds this choice took part in.
    rounds: usize,
}

/// Decides whether a request is narrowed with groups of `group`; none: it is one pass as always.
///
/// # Errors
/// The refusals of wire.md 15.2, all of which come before routing.
pub fn plan(questions: &Object, group: usize) -> Result<Option<Tournament>, Refusal> {
    let mut narrowed = Vec::new();
    let mut optional = true;
    let mut not_all_text: Option<&Text> = None;
    for (id, definition) in choices(questions) {
        let Some(count) = definition
            .get("criteria")
            .and_then(criteria_count)
            .filter(|count| *count > group)
        else {
            continue;
        };
        let labels = labels(id, definition)?;
        let all: Vec<Label> = labels.iter().flatten().cloned().collect();
        let is_text = |label: &Label| matches!(label.value(), Value::String(_));
        if all.len() < labels.len() || !all.iter().all(is_text) {
            not_all_text = not_all_text.or(Some(id));
        }
        optional &= count <= ALWAYS_ABOVE;
        let option_order_dropped = definition
            .get("option_order")
            .is_some_and(|order| !order.is_null());
        narrowed.push(Narrowed {
            id: id.clone(),
            left: (0..all.len()).collect(),
            all,
            option_order_dropped,
            rounds: 0,
        });
    }
    let ordered = narrowed.iter().any(|n| n.option_order_dropped);
    if narrowed.is_empty() || (optional && (not_all_text.is_some() || ordered)) {
        return Ok(None);
    }
    if let Some(id) = not_all_text {
        return Err(Refusal::unprocessable(format!(
            "question {}: a choice is narrowed by elimination once a request has one over {ALWAYS_ABOVE} options, and that \
             needs every label to be a string",
            repr_text(id)
        )));
    }
    for (id, definition) in choices(questions) {
        look_at(id, definition)?;
    }
    Ok(Some(Tournament {
        group,
        questions: questions.clone(),
        narrowed,
    }))
}

/// What every choice must be before the first round.
fn look_at(id: &Text, definition: &Object) -> Result<(), Refusal> {
    match definition.get("criteria") {
        None | Some(Value::Null) => {
            return Err(Refusal::unprocessable(format!(
                "question {} is a choice but has no criteria",
                repr_text(id)
            )));
        }
        Some(criteria) if criteria_count(criteria) == Some(0) => {
            return Err(Refusal::unprocessable(
                "choice criteria must contain at least one option",
            ));
        }
        Some(_) => {}
    }
    labels(id, definition).map(|_| ())
}

fn choices(questions: &Object) -> impl Iterator<Item = (&Text, &Object)> {
    let objects = questions
        .iter()
        .filter_map(|(id, definition)| definition.as_object().map(|d| (id, d)));
    objects
        .filter(|(_, definition)| definition.get("type").and_then(Value::as_str) == Some("choice"))
}

fn criteria_count(criteria: &Value) -> Option<usize> {
    match criteria {
        Value::Object(object) => Some(object.len()),
        Value::List(items) => Some(items.len()),
        _ => None,
    }
}

/// The labels of a choice in order, none of them twice; a null, which the question rules refuse later, is `None`. What
/// cannot be a label at all gets the refusal of the question rules, unless a repeat stands before it.
fn labels(id: &Text, definition: &Object) -> Result<Vec<Option<Label>>, Refusal> {
    let ill_typed = || match check_question(id, &Value::Object(definition.clone())) {
        Err(refusal) => refusal,
        Ok(_) => Refusal::unprocessable(format!(
            "question {}: criteria are no choice",
            repr_text(id)
        )),
    };
    let items: Vec<Value> = match definition.get("criteria") {
        Some(Value::Object(object)) => object.keys().cloned().map(Value::String).collect(),
        Some(Value::List(items)) => items.clone(),
        _ => return Err(ill_typed()),
    };
    let mut labels: Vec<Option<Label>> = Vec::with_capacity(items.len());
    for item in &items {
        let label = match (Label::new(item), item.is_null()) {
            (Some(label), _) => Some(label),
            (None, true) => None,
            (None, false) => return Err(ill_typed()),
        };
        let is_same = |earlier: &Option<Label>| match (earlier, &label) {
            (Some(earlier), Some(label)) => earlier.is_same(label),
            (None, None) => true,
            _ => false,
        };
        if labels.iter().any(is_same) {
            return Err(Refusal::unprocessable(format!(
                "choice criteria label {} is duplicated",
                python_repr(item)
            )));
        }
        labels.push(label);
    }
    Ok(labels)
}

impl Tournament {
    /// The questions of the next round, named `"0"`, `"1"`, …; none once every choice is small enough.
    #[must_use]
    pub fn next_round(&self) -> Option<Object> {
        let mut round = Object::new();
        for (choice, group) in self.groups() {
            let name = round.len().to_string();
            round.push(name, self.question_with(choice, group));
        }
        (!round.is_empty()).then_some(round)
    }

    /// Takes the answers of the round that [`Self::next_round`] asked for, in its order. Their winners stay.
    pub fn advance(&mut self, answers: &[(String, Answer)]) {
        let mut kept: Vec<Vec<usize>> = vec![Vec::new(); self.narrowed.len()];
        for ((choice, group), (_, answer)) in self.groups().zip(answers) {
            if let Outcome::Choice { winner, .. } = &answer.outcome
                && let Some(label) = group.get(*winner)
            {
                kept[choice].push(*label);
            }
        }
        for (narrowed, kept) in self.narrowed.iter_mut().zip(kept) {
            if narrowed.left.len() > self.group && !kept.is_empty() {
                narrowed.left = kept;
                narrowed.rounds += 1;
            }
        }
    }

    /// The whole request with the finalists, the last call.
    #[must_use]
    pub fn last_call(&self) -> Object {
        let question = |(id, definition): &(Text, Value)| {
            let narrowed = self.narrowed.iter().position(|n| n.id == *id);
            let definition = match narrowed {
                Some(choice) => {
                    Value::Object(self.question_with(choice, &self.narrowed[choice].left))
                }
                None => definition.clone(),
            };
            (id.clone(), definition)
        };
        self.questions.iter().map(question).collect()
    }

    /// Spreads the answers of the last call over all labels. The gate must have judged them before.
    pub fn finish(&self, answers: &mut [(String, Answer)]) {
        for narrowed in &self.narrowed {
            let Some((_, answer)) = answers
                .iter_mut()
                .find(|(id, _)| narrowed.id == id.as_str())
            else {
                continue;
            };
            let finalists = narrowed
                .left
                .iter()
                .filter_map(|i| narrowed.all.get(*i))
                .cloned()
                .collect();
            let mark = Mark {
                finalists,
                rounds: narrowed.rounds,
                option_order_dropped: narrowed.option_order_dropped,
            };
            answer.spread_over(&narrowed.all, mark);
        }
    }

    /// The groups of the next round: which choice, and which of its labels.
    fn groups(&self) -> impl Iterator<Item = (usize, &[usize])> {
        let large = self
            .narrowed
            .iter()
            .enumerate()
            .filter(|(_, n)| n.left.len() > self.group);
        large.flat_map(|(choice, narrowed)| {
            let n = narrowed.left.len();
            let p = n.div_ceil(self.group);
            (0..p).map(move |i| (choice, &narrowed.left[i * n / p..(i + 1) * n / p]))
        })
    }

    /// The definition of a choice with some of its labels, without `option_order`.
    fn question_with(&self, choice: usize, labels: &[usize]) -> Object {
        let Some(Value::Object(definition)) = self
            .narrowed
            .get(choice)
            .and_then(|n| self.questions.iter().find(|(id, _)| *id == n.id))
            .map(|(_, d)| d)
        else {
            return Object::new();
        };
        let fields = definition
            .iter()
            .filter(|(key, _)| *key != "option_order")
            .map(|(key, value)| {
                let value = match value {
                    Value::Object(criteria) if *key == "criteria" => {
                        let all: Vec<&(Text, Value)> = criteria.iter().collect();
                        Value::Object(
                            labels
                                .iter()
                                .filter_map(|i| all.get(*i))
                                .map(|(label, text)| (label.clone(), text.clone()))
                                .collect(),
                        )
                    }
                    Value::List(criteria) if *key == "criteria" => Value::List(
                        labels
                            .iter()
                            .filter_map(|i| criteria.get(*i))
                            .cloned()
                            .collect(),
                    ),
                    other => other.clone(),
                };
                (key.clone(), value)
            });
        fields.collect()
    }
}

#[cfg(test)]
mod tests {
    use decision::json::{read, write};
    use decision::wire::check_questions;

    use super::*;

    fn questions(json: &str) -> Object {
        read(json.as_bytes()).unwrap().as_object().unwrap().clone()
    }

    fn choice(labels: &str, more: &str) -> String {
        format!(r#"{{"type":"choice","instructions":"which?","criteria":{labels}{more}}}"#)
    }

    fn numbered(n: usize) -> String {
        format!(
            "[{}]",
            (0..n)
                .map(|i| format!(r#""l{i}""#))
                .collect::<Vec<_>>()
                .join(",")
        )
    }

    #[test]
    fn requests_are_narrowed_refused_or_left_alone() {
        let small = choice(r#"["a","b"]"#, "");
        let rows = [
            ("nothing large", small.clone(), Ok(false)),
            ("large", choice(&numbered(5), ""), Ok(true)),
            (
                "an order keeps it whole",
                choice(&numbered(5), r#","option_order":[0,1,2,3,4]"#),
                Ok(false),
            ),
            (
                "a null order does not",
                choice(&numbered(5), r#","option_order":null"#),
                Ok(true),
            ),
            (
                "a number keeps it whole",
                choice(r#"[1,2,3,4,"x"]"#, ""),
                Ok(false),
            ),
            (
                "over a hundred, with an order",
                choice(&numbered(101), r#","option_order":[0]"#),
                Ok(true),
            ),
            (
                "a repeat",
                choice(r#"["a","b","c","d","a"]"#, ""),
                Err("choice criteria label 'a' is duplicated"),
            ),
            (
                "a repeat by value",
                choice(r#"[1,2,3,4,true]"#, ""),
                Err("choice criteria label True is duplicated"),
            ),
            (
                "a repeat before a list",
                choice(r#"["a","a","c",["x"],"d"]"#, ""),
                Err("choice criteria label 'a' is duplicated"),
            ),
            (
                "a repeat around a null",
                choice(r#"["a",null,"c","a","d"]"#, ""),
                Err("choice criteria label 'a' is duplicated"),
            ),
            (
                "two nulls",
                choice(r#"["a",null,"c",null,"d"]"#, ""),
                Err("choice criteria label None is duplicated"),
            ),
            (
                "one null is for the question rules",
                choice(r#"["a","b","c",null,"d"]"#, ""),
                Ok(false),
            ),
            (
                "a list for a label",
                choice(r#"["a","b","c","d",[]]"#, ""),
                Err("question 'q': choice label 4 is a list"),
            ),
        ];
        for (name, question, want) in rows {
            let got = plan(&questions(&format!(r#"{{"q":{question}}}"#)), 4);
            match (got, want) {
                (Ok(plan), Ok(narrowed)) => assert_eq!(plan.is_some(), narrowed, "{name}"),
                (Err(refusal), Err(text)) => assert!(
                    refusal.detail.starts_with(text),
                    "{name}: {}",
                    refusal.detail
                ),
                (got, want) => panic!("{name}: {got:?}, expected {want:?}"),
            }
        }
    }

    #[test]
    fn other_choices_are_looked_at_once_one_is_narrowed() {
        let large = choice(&numbered(101), "");
        let rows = [
            (
                r#"{"type":"choice","instructions":"x"}"#.to_owned(),
                "question 'b' is a choice but has no criteria",
            ),
            (
                choice("[]", ""),
                "choice criteria must contain at least one option",
            ),
            (
                choice(r#"["a","a"]"#, ""),
                "choice criteria label 'a' is duplicated",
            ),
            (
                choice(r#""text""#, ""),
                "question 'b': a choice question takes 'criteria'",
            ),
            (
                choice("[1,2,3,4,5]", ""),
                "question 'b': a choice is narrowed by elimination once a request has one over 100 options",
            ),
        ];
        for (other, text) in rows {
            let refusal =
                plan(&questions(&format!(r#"{{"a":{large},"b":{other}}}"#)), 4).unwrap_err();
            assert!(refusal.detail.starts_with(text), "{}", refusal.detail);
        }
    }

    /// Answers of a round, each for the option at `best` or the last there is.
    fn answers(questions: &Object, best: usize) -> Vec<(String, Answer)> {
        let checked = check_questions(questions).unwrap();
        let answer = |q: &decision::wire::Question| {
            let chosen = best.min(q.option_count() - 1);
            let share = |i| if i == chosen { 0.9 } else { 0.05 };
            let p: Vec<f32> = (0..q.option_count()).map(share).collect();
            (q.id.clone(), Answer::new(q, &p, 0.5))
        };
        checked.iter().map(answer).collect()
    }

    #[test]
    fn a_repeat_in_any_large_choice_comes_before_labels_that_are_no_text() {
        let request = format!(
            r#"{{"q":{},"r":{}}}"#,
            choice(r#"["a","b","c",null,"d"]"#, ""),
            choice(r#"["a","b","c","d","a"]"#, "")
        );
        let refusal = plan(&questions(&request), 4).unwrap_err();
        assert_eq!(refusal.detail, "choice criteria label 'a' is duplicated");
    }

    #[test]
    fn each_choice_counts_the_rounds_it_took_part_in() {
        let request = format!(
            r#"{{"few":{},"many":{}}}"#,
            choice(&numbered(5), ""),
            choice(&numbered(20), "")
        );
        let mut tournament = plan(&questions(&request), 4).unwrap().unwrap();
        while let Some(round) = tournament.next_round() {
            tournament.advance(&answers(&round, 1));
        }
        let rounds: Vec<_> = tournament.narrowed.iter().map(|n| n.rounds).collect();
        assert_eq!(rounds, [1, 2]);
    }

    #[test]
    fn rounds_end_with_finalists_and_answers_cover_all_labels() {
        let all = format!(
            r#"{{"big":{},"n":{{"type":"noul","instructions":"so?"}}}}"#,
            choice(
                r#"{"a":"1","b":null,"c":"3","d":"4","e":"5","f":"6","g":"7"}"#,
                r#","other":1"#
            )
        );
        let mut tournament = plan(&questions(&all), 3).unwrap().unwrap();
        let round = tournament.next_round().unwrap();
        let groups: Vec<String> = round
            .iter()
            .map(|(id, q)| {
                format!(
                    "{id:?} {}",
                    write(q.as_object().unwrap().get("criteria").unwrap())
                )
            })
            .collect();
        assert_eq!(
            groups,
            [
                r#""0" {"a":"1","b":null}"#,
                r#""1" {"c":"3","d":"4"}"#,
                r#""2" {"e":"5","f":"6","g":"7"}"#
            ]
        );

        tournament.advance(&answers(&round, 1));
        assert_eq!(tournament.next_round(), None);
        let last = tournament.last_call();
        assert_eq!(
            write(
                last.get("big")
                    .unwrap()
                    .as_object()
                    .unwrap()
                    .get("criteria")
                    .unwrap()
            ),
            r#"{"b":null,"d":"4","f":"6"}"#
        );
        let mut answers = answers(&last, 2);
        tournament.finish(&mut answers);
        let Outcome::Choice {
            labels,
            probabilities,
            winner,
        } = &answers[0].1.outcome
        else {
            panic!("a choice")
        };
        assert_eq!((labels.len(), *winner), (7, 5));
        assert_eq!(*probabilities, [0.0, 0.05, 0.0, 0.05, 0.0, 0.9, 0.0]);
        let mark = answers[0].1.tournament.as_ref().unwrap();
        assert_eq!(
            (mark.rounds, mark.finalists.len(), mark.option_order_dropped),
            (1, 3, false)
        );
    }
}
