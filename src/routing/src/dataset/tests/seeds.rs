use std::collections::{BTreeMap, HashSet};

use decision::contract::Digest;
use decision::labels::Labels;
use decision::vocabulary::{Effort, QuestionId, TaskType, Tier, Validation};

use super::*;
use crate::keywords::Keywords;
use crate::memory::merge_key;
use crate::rules;

/// Digests that do not change with our wording, so that the golden digest is that of the templates alone.
fn fixed() -> InForce {
    InForce {
        shape: Digest::of(b"shape"),
        contract: Digest::of(b"contract"),
    }
}

fn rows_with_labels(count: usize) -> Vec<(Row, Labels)> {
    let rows = seed(count, &in_force()).into_iter();
    rows.map(|row| {
        let labels = row.labels().expect("valid");
        (row, labels)
    })
    .collect()
}

#[test]
fn the_first_rows_are_the_same_on_every_run_and_platform() {
    assert!(template_count() >= 60);
    let rows = seed(SEED_COUNT, &fixed());
    assert_eq!(rows.len(), SEED_COUNT);
    assert_eq!((rows[0].id(), rows[1099].id()), ("r00001", "r01100"));
    let digest = Digest::of(write_file(&rows).as_bytes());
    assert_eq!(
        digest.to_string(),
        "sha256:7894435ca8ff5e6e5f8ddb3ceb3d5f93197a88fba08d09fd9dfa10802df60f2a"
    );
}

#[test]
fn requests_differ_and_templates_have_equal_shares() {
    let rows = rows_with_labels(SEED_COUNT);
    let keys: HashSet<String> = rows
        .iter()
        .map(|(row, _)| merge_key(row.request()))
        .collect();
    assert_eq!(keys.len(), SEED_COUNT);
    let mut shares: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for (_, labels) in &rows {
        *shares
            .entry(serde_json::to_vec(labels).expect("writes"))
            .or_default() += 1;
    }
    assert!(shares.len() >= 40, "{} kinds of rows", shares.len());
    let quota = SEED_COUNT.div_ceil(template_count());
    assert!(quota * template_count() >= SEED_COUNT);
    for (row, _) in &rows {
        assert!(!row.request().contains(['{', '}']), "{}", row.request());
        assert_eq!(row.source(), &Source::Synthetic);
        assert_eq!((row.created(), row.split()), (None, None));
    }
    assert_eq!(seed(10, &in_force()).len(), 10);
    assert_eq!(seed(0, &in_force()).len(), 0);
    let many = seed(12_000, &in_force());
    assert!(
        many.len() > 3000 && many.len() < 12_000,
        "{}: what the templates give",
        many.len()
    );
}

#[test]
fn labels_obey_the_checks_of_the_label_page() {
    for (row, labels) in rows_with_labels(SEED_COUNT) {
        let text = row.request();
        let depth = labels.complexity.max(labels.reasoning_requirement);
        // Section 1, capability_tier; the one rule of training.md 12 must come to the same for each template.
        let mut tier = Tier::from_index(usize::from(depth).saturating_sub(1)).expect("a tier");
        if labels.security_sensitive {
            tier = tier.max(Tier::Strong);
        }
        if labels.risk >= 2 && (labels.requires_write || labels.requires_shell) {
            tier = tier.max(Tier::Balanced);
        }
        assert_eq!(labels.capability_tier, tier, "{text}");
        assert_eq!(
            labels.reasoning_effort,
            Effort::from_index(labels.reasoning_requirement.into()).expect("an effort"),
            "{text}"
        );
        // Section 5.
        let reads = matches!(labels.task_type, TaskType::Question | TaskType::Research);
        let code_checked = matches!(
            labels.validation_level,
            Validation::Compile | Validation::UnitTest
        );
        let checks = [
            (
                !reads || (!labels.requires_write && labels.validation_level == Validation::None),
                "question, research",
            ),
            (
                labels.task_type != TaskType::CodeEdit || labels.complexity <= 1,
                "code_edit",
            ),
            (
                labels.scope != decision::vocabulary::Scope::SingleLine || labels.complexity <= 1,
                "single_line",
            ),
            (
                labels.task_type != TaskType::Security
                    || (labels.security_sensitive && labels.validation_level == Validation::Review),
                "security",
            ),
            (
                labels.capability_tier != Tier::Fast || (depth <= 1 && !labels.security_sensitive),
                "fast",
            ),
            (!code_checked || labels.requires_tests, "compile, unit_test"),
            (
                labels.validation_level != Validation::None || !labels.requires_write,
                "none",
            ),
            (
                labels.risk < 3 || labels.capability_tier >= Tier::Strong,
                "risk 3",
            ),
        ];
        for (holds, rule) in checks {
            assert!(holds, "{rule}: {text}");
        }
    }
}

#[test]
fn no_deterministic_rule_contradicts_a_row() {
    const NONE: [&str; 0] = [];
    for (row, labels) in rows_with_labels(4 * SEED_COUNT) {
        let fired = rules::fired(&Keywords::builtin().scan(row.request()), &NONE, &NONE);
        assert!(
            fired.is_empty() || labels.security_sensitive,
            "{}: {fired:?}",
            row.request()
        );
        assert!(!has_secret(row.request()), "{}", row.request());
    }
}

#[test]
fn every_option_and_level_occurs_in_both_languages() {
    let mut seen: BTreeMap<(QuestionId, String), usize> = BTreeMap::new();
    for (row, _) in rows_with_labels(SEED_COUNT) {
        for (question, value) in row.labels().expect("valid").values() {
            *seen.entry((question, format!("{value:?}"))).or_default() += 1;
        }
    }
    // 6 choices of 11, 6, 4, 5, 10, 6 options, 4 scores of 5, 4, 3, 5 levels, 8 truths.
    assert_eq!(seen.len(), 42 + 17 + 16, "{seen:?}");
    for ((question, value), count) in seen {
        assert!(count >= 10, "{question} {value}: {count}");
    }
}
