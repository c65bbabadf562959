//! Learned tasks for people.

use api::exchange::{ForgetResponse, MemoryResponse, MemoryTask};
use serde_json::Value;

use crate::output::{counted, day, field, indented, one_line, time};
use crate::terminal::{Styles, escape};

/// Longest text of a request in a list, in characters.
const MAX_REQUEST: usize = 60;
/// Longest lesson in a list, in characters.
const MAX_LESSON: usize = 40;

/// One line a task.
pub(super) fn list(tasks: &[MemoryTask], styles: Styles) -> String {
    if tasks.is_empty() {
        return String::new();
    }
    let id = |task: &MemoryTask| one_line(&task.id, 64);
    let request = |task: &MemoryTask| one_line(&task.request, MAX_REQUEST);
    let width = |text: &dyn Fn(&MemoryTask) -> String, least: usize| {
        let widths = tasks.iter().map(|task| text(task).chars().count());
        widths.max().unwrap_or(0).max(least)
    };
    let (ids, requests) = (width(&id, 6), width(&request, 7));
    let similar = tasks.iter().any(|task| task.similarity.is_some());
    let similarity = |text: &str| {
        if similar {
            format!("{text:<8}")
        } else {
            String::new()
        }
    };
    let head = format!(
        "{:<ids$}  {}{:<11} {:<9} {:<13}  {:<requests$}  lesson",
        "id",
        similarity("similar"),
        "learned",
        "tier",
        "type",
        "request"
    );
    let mut text = styles.dim(&head) + "\n";
    for task in tasks {
        let close = task
            .similarity
            .map_or_else(String::new, |share| format!("{share:.2}"));
        let lesson = match (&task.lesson, task.stale) {
            (_, true) => "(stale) ".to_owned(),
            (Some(_), false) | (None, false) => String::new(),
        } + &one_line(task.lesson.as_deref().unwrap_or_default(), MAX_LESSON);
        let line = format!(
            "{:<ids$}  {}{:<11} {:<9} {:<13}  {:<requests$}  {lesson}",
            id(task),
            similarity(&close),
            task.created.map_or_else(|| "-".to_owned(), day),
            label(task, "capability_tier"),
            label(task, "task_type"),
            request(task),
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// How many there are.
pub(super) fn totals(memory: &MemoryResponse, only_stale: bool) -> String {
    match (memory.total, memory.stale) {
        (0, _) => {
            "no learned tasks yet; `/laya learn` in the agent saves those of a session\n".to_owned()
        }
        (_, 0) if only_stale => "no learned task is stale\n".to_owned(),
        (total, 0) => {
            let total = counted(total as u64, "learned task", "learned tasks");
            format!("{total}\n")
        }
        (total, stale) => format!(
            "{}, {stale} of them stale: their labels do not fit the questions in force\n",
            counted(total as u64, "learned task", "learned tasks")
        ),
    }
}

/// One task with everything.
pub(super) fn task(task: &MemoryTask, styles: Styles) -> String {
    let mut text = styles.bold(&one_line(&task.id, 64)) + "\n";
    if let Some(created) = task.created {
        text.push_str(&field("learned", &time(created), styles));
    }
    for (name, value) in [("session", &task.session), ("split", &task.split)] {
        if let Some(value) = value {
            text.push_str(&field(name, &one_line(value, 200), styles));
        }
    }
    if let Some(similarity) = task.similarity {
        text.push_str(&field("similar", &format!("{similarity:.2}"), styles));
    }
    if task.stale {
        let told = "its labels do not fit the questions in force: `relay laya migrate` maps them";
        text.push_str(&field("stale", told, styles));
    }
    text.push_str(&format!(
        "\n{}\n{}",
        styles.bold("Request"),
        indented(&task.request)
    ));
    if let Some(lesson) = &task.lesson {
        text.push_str(&format!(
            "\n{}\n{}",
            styles.bold("Lesson"),
            indented(lesson)
        ));
    }
    text.push_str(&format!("\n{}\n", styles.bold("Labels")));
    match &task.labels {
        Value::Object(labels) => {
            for (question, label) in in_order(labels) {
                text.push_str(&format!(
                    "  {}{}\n",
                    styles.dim(&format!("{:<22}", one_line(question, 64))),
                    shown(label)
                ));
            }
        }
        other => text.push_str(&format!("  {}\n", shown(other))),
    }
    text
}

/// Labels in the order of the questions, then what is no question in force.
fn in_order(labels: &serde_json::Map<String, Value>) -> Vec<(&str, &Value)> {
    use decision::vocabulary::QuestionId;
    let known = QuestionId::ALL
        .iter()
        .filter_map(|id| labels.get_key_value(id.as_str()));
    let others = labels.iter().filter(|(id, _)| {
        !QuestionId::ALL
            .iter()
            .any(|known| known.as_str() == id.as_str())
    });
    known
        .chain(others)
        .map(|(id, label)| (id.as_str(), label))
        .collect()
}

fn label(task: &MemoryTask, question: &str) -> String {
    task.labels
        .get(question)
        .map_or_else(|| "-".to_owned(), shown)
}

/// A label as it was given, texts without their quotes.
fn shown(label: &Value) -> String {
    match label {
        Value::String(text) => one_line(text, 40),
        other => one_line(&other.to_string(), 40),
    }
}

/// What is gone, and who still knows it.
pub(super) fn forgotten(answer: &ForgetResponse) -> String {
    let mut text = match answer.forgotten.as_slice() {
        [] => "nothing was forgotten\n".to_owned(),
        [id] => format!("forgotten: {}\n", escape(id)),
        ids => format!("{} forgotten: {}\n", ids.len(), escape(&ids.join(", "))),
    };
    if !answer.trained_models.is_empty() {
        text.push_str(&format!(
            "already trained on them, and what they learned stays in them: {}\n",
            escape(&answer.trained_models.join(", "))
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task_of(id: &str, request: &str, similarity: Option<f64>) -> MemoryTask {
        MemoryTask {
            id: id.to_owned(),
            request: request.to_owned(),
            lesson: None,
            created: Some("2026-11-30T10:41:00Z".parse().unwrap()),
            labels: json!({"task_type": "bug_fix", "capability_tier": "fast", "agent": "qa-engineer", "zeal": 1}),
            stale: false,
            session: Some("s\u{1b}1".to_owned()),
            split: Some("train".to_owned()),
            similarity,
        }
    }

    #[test]
    fn a_list_has_one_safe_line_a_task() {
        let lesson = MemoryTask {
            lesson: Some("Change\nboth places\u{7}.".to_owned()),
            ..task_of("s00001", "Fix the date parser", None)
        };
        let stale = MemoryTask {
            stale: true,
            labels: json!(null),
            created: None,
            ..task_of("s00002", "Add a\u{202e} form", None)
        };
        assert_eq!(
            list(&[lesson.clone(), stale], Styles::PLAIN),
            "id      learned     tier      type           request              lesson
s00001  2026-11-30  fast      bug_fix        Fix the date parser  Change both places\\u{7}.
s00002  -           -         -              Add a\\u{202e} form   (stale)
"
        );
        let found = MemoryTask {
            similarity: Some(0.7573),
            ..lesson
        };
        let text = list(&[found], Styles::PLAIN);
        assert!(text.starts_with("id      similar learned "), "{text}");
        assert!(text.contains("\ns00001  0.76    2026-11-30 "), "{text}");
        assert_eq!(list(&[], Styles::PLAIN), "");
    }

    #[test]
    fn a_task_is_shown_whole() {
        let shown = MemoryTask {
            lesson: Some("Change both.".to_owned()),
            stale: true,
            ..task_of(
                "s00001",
                "Fix the date parser\nand \u{1b}[2Jthe tests",
                None,
            )
        };
        assert_eq!(
            task(&shown, Styles::PLAIN),
            "s00001
learned     2026-11-30 10:41 UTC
session     s\\u{1b}1
split       train
stale       its labels do not fit the questions in force: `relay laya migrate` maps them

Request
  Fix the date parser
  and \\u{1b}[2Jthe tests

Lesson
  Change both.

Labels
  task_type             bug_fix
  capability_tier       fast
  agent                 qa-engineer
  zeal                  1
"
        );
    }

    #[test]
    fn a_task_without_a_date_shows_none() {
        let shown = MemoryTask {
            created: None,
            ..task_of("s00001", "Fix the date parser", None)
        };
        let text = task(&shown, Styles::PLAIN);
        assert!(text.starts_with("s00001\nsession "), "{text}");
    }

    #[test]
    fn what_is_forgotten_and_who_still_knows_it_is_said() {
        let answer = |ids: &[&str], models: &[&str]| ForgetResponse {
            forgotten: ids.iter().map(ToString::to_string).collect(),
            trained_models: models.iter().map(ToString::to_string).collect(),
        };
        for (given, expected) in [
            (answer(&[], &[]), "nothing was forgotten\n"),
            (answer(&["s1"], &[]), "forgotten: s1\n"),
            (
                answer(&["s1", "s2"], &["local-3"]),
                "2 forgotten: s1, s2\nalready trained on them, and what they learned stays in them: local-3\n",
            ),
        ] {
            assert_eq!(forgotten(&given), expected);
        }
    }
}
