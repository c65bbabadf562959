//! Which of the known skills suit a request (routing.md 16): by words that speak for the role, and by the skill's own
//! name in the request.

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use decision::vocabulary::Agent;
use serde::{Deserialize, Serialize};

use crate::memory::folded_words;

/// Most skills a plan names.
const MOST_SKILLS: usize = 3;

/// Shorter words of a request say nothing about a skill.
const LEAST_CHARACTERS: usize = 4;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keywords {
    #[serde(rename = "version")]
    _version: u32,
    agents: BTreeMap<Agent, Vec<String>>,
}

static KEYWORDS: LazyLock<BTreeMap<Agent, Vec<String>>> = LazyLock::new(|| {
    let file: Keywords =
        toml::from_str(include_str!("../data/skills.toml")).expect("a test reads data/skills.toml");
    file.agents
});

/// A skill as the client knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// Its name, for example `postgres-migrations`.
    pub name: String,
    /// What it is for.
    pub description: String,
}

/// Names of the at most three skills that suit best, best first; equal ones in code-point order of their names.
#[must_use]
pub fn suitable_skills(agent: Agent, request: &str, skills: &[Skill]) -> Vec<String> {
    let words = request_words(request);
    let mut scored: Vec<(usize, &str)> = skills
        .iter()
        .map(|skill| (score(agent, &words, skill), skill.name.as_str()))
        .filter(|(score, _)| *score > 0)
        .collect();
    scored.sort_by(|(one, name), (other, other_name)| {
        other.cmp(one).then_with(|| name.cmp(other_name))
    });
    scored
        .into_iter()
        .take(MOST_SKILLS)
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// Keywords of the role in the skill's name and description, plus two per part of its name that the request has.
fn score(agent: Agent, request: &HashSet<String>, skill: &Skill) -> usize {
    let text = format!("{} {}", skill.name, skill.description).to_lowercase();
    let keywords = KEYWORDS.get(&agent).map_or(&[][..], Vec::as_slice);
    let spoken = keywords
        .iter()
        .filter(|keyword| text.contains(keyword.as_str()))
        .count();
    // Folded in lower case, so that a name is not opened at lower→Upper: `typeScript` is one part.
    let named = folded_words(&skill.name.to_lowercase())
        .iter()
        .filter(|part| request.contains(*part))
        .count();
    spoken + 2 * named
}

/// The longer words of a request, with identifiers both whole and opened.
fn request_words(request: &str) -> HashSet<String> {
    let whole = folded_words(&request.to_lowercase());
    let opened = folded_words(request);
    whole
        .into_iter()
        .chain(opened)
        .filter(|word| word.chars().count() >= LEAST_CHARACTERS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str, description: &str) -> Skill {
        Skill {
            name: name.to_owned(),
            description: description.to_owned(),
        }
    }

    #[test]
    fn every_role_has_about_ten_keywords_in_lower_case() {
        for agent in Agent::ALL {
            let keywords = KEYWORDS.get(agent).map_or(&[][..], Vec::as_slice);
            assert!(
                (8..=12).contains(&keywords.len()),
                "{agent} has {}",
                keywords.len()
            );
            let distinct: HashSet<_> = keywords.iter().collect();
            assert_eq!(distinct.len(), keywords.len(), "{agent}");
            assert!(
                keywords
                    .iter()
                    .all(|keyword| *keyword == keyword.to_lowercase() && !keyword.is_empty()),
                "{agent}"
            );
        }
    }

    #[test]
    fn ranks_by_role_and_by_name() {
        let skills = [
            skill("cooking", "Recipes"),
            skill(
                "postgres-migrations",
                "Write a schema migration for a SQL database",
            ),
            skill("sql-style", "How we format a query"),
            skill("release-notes", "Write notes"),
            skill("data", "Anything about a database"),
        ];
        let rows: &[(&str, Agent, &str, &[&str])] = &[
            (
                "keywords: 5 and 2 and 1",
                Agent::DatabaseEngineer,
                "Add an index",
                &["postgres-migrations", "sql-style", "data"],
            ),
            (
                "two per part of the name: 4 beats 2",
                Agent::DatabaseEngineer,
                "Write the release notes of the sql change",
                &["postgres-migrations", "release-notes", "sql-style"],
            ),
            (
                "words of three letters do not count",
                Agent::Researcher,
                "What is sql?",
                &[],
            ),
            (
                "marks and case do not matter",
                Agent::Researcher,
                "Explain RELEASE",
                &["release-notes"],
            ),
        ];
        for (name, agent, request, expected) in rows {
            assert_eq!(
                suitable_skills(*agent, request, &skills),
                *expected,
                "{name}"
            );
        }
    }

    #[test]
    fn equal_skills_come_in_code_point_order() {
        let skills = ["b-mock", "B-mock", "a-mock", "c-mock"].map(|name| skill(name, ""));
        assert_eq!(
            suitable_skills(Agent::QaEngineer, "x", &skills),
            ["B-mock", "a-mock", "b-mock"]
        );
    }

    #[test]
    fn finds_a_name_inside_an_identifier_and_whole() {
        let skills = [skill("typescript", ""), skill("invoice-tools", "")];
        assert_eq!(
            suitable_skills(Agent::Researcher, "TypeScript", &skills),
            ["typescript"]
        );
        assert_eq!(
            suitable_skills(Agent::Researcher, "where is parseInvoice?", &skills),
            ["invoice-tools"]
        );
    }
}
