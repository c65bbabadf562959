//! The last part of vector 23.8, and what it does not reach.

use decision::vocabulary::{Agent, Scope, TaskType, Validation};

use super::*;
use crate::assessment::Source;

#[derive(Deserialize)]
struct Vectors {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    facts: Facts,
    minutes: Option<i64>,
    kind: FollowUp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Facts {
    chat: bool,
    go_on: bool,
    words: usize,
    content: usize,
    wrong: bool,
    adding: bool,
}

#[test]
fn vectors_23_8_follow_ups() {
    let file = include_str!("../../tests/vectors/follow_ups.json");
    let vectors: Vectors = serde_json::from_str(file).unwrap();
    assert_eq!(vectors.rows.len(), 20);
    for row in vectors.rows {
        let facts = TextFacts {
            is_chat: row.facts.chat,
            only_go_on_words: row.facts.go_on,
            word_count: row.facts.words,
            content_words: row.facts.content,
            correction_mark: row.facts.wrong,
            adding_word: row.facts.adding,
        };
        let kind = classify(&facts, row.minutes.map(SignedDuration::from_mins));
        assert_eq!(kind, row.kind, "{}", row.name);
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
}

#[test]
fn each_kind_takes_over_what_the_table_says() {
    let previous = Previous {
        tier: Tier::Strong,
        effort: Effort::Medium,
        required_tier: Tier::Balanced,
        required_effort: Effort::Low,
    };
    for (kind, wanted) in [
        (
            FollowUp::Acknowledgement,
            Effect::Answer {
                effort: Effort::Minimal,
            },
        ),
        (
            FollowUp::Continuation,
            Effect::GoOn {
                tier: Tier::Strong,
                effort: Effort::Medium,
            },
        ),
        (
            FollowUp::Correction,
            Effect::Repair {
                min_tier: Tier::Strong,
                effort: Effort::High,
                failures: Score::constant(1.5),
            },
        ),
        (
            FollowUp::Amendment,
            Effect::Extend {
                tier: Tier::Balanced,
                effort: Effort::Low,
            },
        ),
        (FollowUp::New, Effect::Fresh),
    ] {
        assert_eq!(effect(kind, &previous), wanted, "{}", kind.as_str());
    }
    for (effort, raised) in [
        (Effort::High, Effort::High),
        (Effort::ExtraHigh, Effort::ExtraHigh),
    ] {
        let repaired = effect(FollowUp::Correction, &Previous { effort, ..previous });
        assert!(
            matches!(repaired, Effect::Repair { effort, .. } if effort == raised),
            "{effort}"
        );
    }
}

#[test]
fn combines_texts_and_keeps_the_end() {
    assert_eq!(
        combine("Fix the header", "também no rodapé"),
        "Fix the header\ntambém no rodapé"
    );
    let long = combine(&"é".repeat(3000), "end");
    assert_eq!(crate::text::units(&long), 2000);
    assert!(long.ends_with("é\nend"));
}

fn assessment(task_type: TaskType, tier: Tier, effort: Effort, number: f64) -> Assessment {
    Assessment {
        source: Source::Rules,
        task: Task {
            task_type,
            scope: Scope::Module,
            complexity: number,
            risk: 1.0 - number,
            ambiguity: number,
            reasoning: number,
        },
        recommendation: Recommendation { tier, effort },
        agent: Agent::SoftwareEngineer,
        validation: Validation::Compile,
        tools: ToolNeeds::default(),
        security_sensitive: false,
        confidence: number,
        confidences: Assessment::uniform_confidences(number),
    }
}

#[test]
fn takes_the_higher_of_each_field() {
    let previous = Assessment {
        security_sensitive: true,
        tools: ToolNeeds {
            requires_git: true,
            ..ToolNeeds::default()
        },
        ..assessment(TaskType::BugFix, Tier::Strong, Effort::Low, 0.25)
    };
    let new = Assessment {
        source: Source::Model,
        agent: Agent::QaEngineer,
        validation: Validation::Review,
        tools: ToolNeeds {
            requires_tests: true,
            ..ToolNeeds::default()
        },
        ..assessment(TaskType::CodeEdit, Tier::Fast, Effort::High, 0.5)
    };
    let wanted = Assessment {
        source: Source::Model,
        task: Task {
            task_type: TaskType::BugFix,
            scope: Scope::Module,
            complexity: 0.5,
            risk: 0.75,
            ambiguity: 0.5,
            reasoning: 0.5,
        },
        recommendation: Recommendation {
            tier: Tier::Strong,
            effort: Effort::High,
        },
        agent: Agent::SoftwareEngineer,
        validation: Validation::Review,
        tools: ToolNeeds {
            requires_git: true,
            requires_tests: true,
            ..ToolNeeds::default()
        },
        security_sensitive: true,
        confidence: 0.5,
        confidences: Assessment::uniform_confidences(0.5),
    };
    assert_eq!(higher_of(&previous, &new), wanted);
    let equal = assessment(TaskType::CodeEdit, Tier::Strong, Effort::Low, 0.0);
    assert_eq!(
        higher_of(&previous, &equal).task.task_type,
        TaskType::BugFix,
        "the task is the previous one"
    );
    let harder = assessment(TaskType::Security, Tier::Frontier, Effort::Low, 0.0);
    assert_eq!(
        higher_of(&previous, &harder).task.task_type,
        TaskType::Security
    );
}

#[test]
fn the_switching_price_is_of_tokens_and_time() {
    let now = Timestamp::constant(1_800_000_000, 0);
    for (name, tokens, seconds, price) in [
        ("half", 100_000, 60, 0.5),
        ("the break-even of the example", 114_933, 60, 0.574_665),
        ("full", 200_000, 60, 1.0),
        ("more than full", u64::MAX, 60, 1.0),
        ("nothing cached", 0, 60, 0.0),
        ("just cached", 100_000, 299, 0.5),
        ("no longer cached", 100_000, 300, 0.0),
        ("a clock that went back", 100_000, -60, 0.5),
    ] {
        let used = now - SignedDuration::from_secs(seconds);
        assert_eq!(switch_price(tokens, used, now).get(), price, "{name}");
    }
}
