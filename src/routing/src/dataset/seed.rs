//! The first rows of a dataset (training.md 12): requests made from our own templates, with labels by one rule, the same
//! on every run and platform. The templates are data (`data/seed/`).

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use decision::labels::Labels;
use decision::vocabulary::{Effort, Tier};
use serde::Deserialize;

use super::generator::Generator;
use super::origin::Source;
use super::row::{NewRow, Row};
use super::standing::InForce;
use super::view::{DatasetView, Edit};
use crate::memory::merge_key;

/// Rows of a first use.
pub const SEED_COUNT: usize = 1100;
/// Seed of the generator.
const SEED: u64 = 2026;
/// Tries per row that is wanted.
const TRIES: usize = 50;

/// A file of templates.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateFile {
    /// What may stand in `{name}`, in order.
    #[serde(default)]
    slots: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    template: Vec<TemplateEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateEntry {
    /// The request, with slots.
    text: String,
    /// `type complexity scope risk ambiguity reasoning agent validation tools`; tools are the letters of labels.md 4
    /// (w s t W B d g, `-` for none), `!` after them for security_sensitive.
    labels: String,
}

/// What a template is made of: fixed text and slots, in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// Position among the slots of the template.
    Slot(usize),
}

/// A slot in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Slot {
    values: Vec<String>,
    /// The slot it must differ from (`{other_file}` from `{file}`).
    other_than: Option<usize>,
}

#[derive(Debug)]
struct Template {
    parts: Vec<Part>,
    slots: Vec<Slot>,
    labels: Labels,
}

static TEMPLATES: LazyLock<Vec<Template>> = LazyLock::new(|| {
    let shared = file(include_str!("../../data/seed/shared.toml"));
    [
        include_str!("../../data/seed/en.toml"),
        include_str!("../../data/seed/pt.toml"),
    ]
    .into_iter()
    .flat_map(|text| {
        let TemplateFile {
            mut slots,
            template,
        } = file(text);
        for (name, values) in &shared.slots {
            slots.entry(name.clone()).or_insert_with(|| values.clone());
        }
        template.into_iter().map(move |entry| {
            compile(&entry, &slots).unwrap_or_else(|problem| panic!("{}: {problem}", entry.text))
        })
    })
    .collect()
});

fn file(text: &str) -> TemplateFile {
    toml::from_str(text).expect("the files of data/seed are read by a test")
}

fn compile(entry: &TemplateEntry, all: &BTreeMap<String, Vec<String>>) -> Result<Template, String> {
    let mut template = Template {
        parts: Vec::new(),
        slots: Vec::new(),
        labels: labels(&entry.labels)?,
    };
    let mut names: Vec<&str> = Vec::new();
    let mut rest = entry.text.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or("a `{` is not closed")?;
        template.parts.push(Part::Text(before.to_owned()));
        let at = names.iter().position(|known| *known == name).map_or_else(
            || {
                let values = all.get(name.strip_prefix("other_").unwrap_or(name));
                let other_than = name
                    .strip_prefix("other_")
                    .and_then(|name| names.iter().position(|known| *known == name));
                let values = values.ok_or_else(|| format!("no slot `{name}`"))?.clone();
                names.push(name);
                template.slots.push(Slot { values, other_than });
                Ok::<usize, String>(names.len() - 1)
            },
            Ok,
        )?;
        template.parts.push(Part::Slot(at));
        rest = after;
    }
    template.parts.push(Part::Text(rest.to_owned()));
    Ok(template)
}

impl Template {
    fn fill(&self, generator: &mut Generator) -> String {
        let mut drawn: Vec<usize> = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            let other = slot.other_than.and_then(|at| drawn.get(at)).copied();
            // One value less to draw from where one is taken; those behind it move up.
            let at = generator.below(slot.values.len() - usize::from(other.is_some()));
            drawn.push(at + usize::from(other.is_some_and(|other| at >= other)));
        }
        let text = self.parts.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Slot(at) => self.slots[*at].values[drawn[*at]].as_str(),
        });
        text.collect()
    }
}

/// Labels from the short form, tier and effort by the one rule of training.md 12: d = max(complexity, reasoning); tier
/// index d ≤ 1 ? 0 : d − 1, at least 2 when risk ≥ 2 or security, at most 3; effort by reasoning.
fn labels(short: &str) -> Result<Labels, String> {
    let words: Vec<&str> = short.split_whitespace().collect();
    let [
        task_type,
        complexity,
        scope,
        risk,
        ambiguity,
        reasoning,
        agent,
        validation,
        tools,
    ] = words[..]
    else {
        return Err(format!("expected 9 words, got {}", words.len()));
    };
    fn word<T: std::str::FromStr<Err: std::fmt::Display>>(word: &str) -> Result<T, String> {
        word.parse().map_err(|error: T::Err| error.to_string())
    }
    let (complexity, risk): (u8, u8) = (word(complexity)?, word(risk)?);
    let reasoning: u8 = word(reasoning)?;
    let (tools, security_sensitive) = tools
        .strip_suffix('!')
        .map_or((tools, false), |tools| (tools, true));
    if let Some(unknown) = tools.chars().find(|c| !"wstWBdg-".contains(*c)) {
        return Err(format!("unknown tool `{unknown}`"));
    }
    let depth = usize::from(complexity.max(reasoning));
    let floor = if risk >= 2 || security_sensitive {
        2
    } else {
        0
    };
    let tier = depth.saturating_sub(1).max(floor).min(3);
    Ok(Labels {
        task_type: word(task_type)?,
        complexity,
        scope: word(scope)?,
        risk,
        ambiguity: word(ambiguity)?,
        reasoning_requirement: reasoning,
        capability_tier: Tier::from_index(tier).ok_or("no such tier")?,
        reasoning_effort: Effort::from_index(usize::from(reasoning)).ok_or("no such effort")?,
        agent: word(agent)?,
        validation_level: word(validation)?,
        requires_write: tools.contains('w'),
        requires_shell: tools.contains('s'),
        requires_tests: tools.contains('t'),
        requires_web: tools.contains('W'),
        requires_browser: tools.contains('B'),
        requires_database: tools.contains('d'),
        requires_git: tools.contains('g'),
        security_sensitive,
    })
}

/// How many templates there are.
#[must_use]
pub fn template_count() -> usize {
    TEMPLATES.len()
}

/// `count` different requests, each with the template it was made from; the same each time. Every template gives at most
/// ceil(count / templates) of them. Fewer where the templates do not give that many within 50 tries each.
fn requests(count: usize) -> Vec<(&'static Template, String)> {
    let templates = &*TEMPLATES;
    let quota = count.div_ceil(templates.len().max(1));
    let mut generator = Generator::new(SEED);
    let mut given = vec![0; templates.len()];
    let mut known = HashSet::new();
    let mut requests = Vec::with_capacity(count.min(SEED_COUNT));
    for _ in 0..count.saturating_mul(TRIES) {
        if requests.len() == count {
            break;
        }
        let at = generator.below(templates.len());
        let (Some(template), Some(given)) = (templates.get(at), given.get_mut(at)) else {
            break;
        };
        if *given == quota {
            continue;
        }
        let request = template.fill(&mut generator);
        if known.insert(merge_key(&request)) {
            *given += 1;
            requests.push((template, request));
        }
    }
    requests
}

/// `count` rows with different requests, ids from `r00001`, stamped with the questions in force and without a time: the
/// same bytes each time. Fewer where the templates do not give that many.
#[must_use]
pub fn seed(count: usize, in_force: &InForce) -> Vec<Row> {
    let made = requests(count).into_iter().enumerate();
    made.map(|(at, (template, request))| {
        Row::new(NewRow {
            id: &format!("r{:05}", at + 1),
            request: &request,
            labels: &template.labels,
            source: Source::Synthetic,
            split: None,
            session: None,
            label_source: None,
            note: None,
            lesson: None,
            created: None,
            in_force,
            evidence: None,
        })
    })
    .collect()
}

/// The edit of a first use: [`SEED_COUNT`] rows for a dataset that never had one. Any other is left as it is.
#[must_use]
pub fn first_use(view: &DatasetView<'_>, in_force: &InForce) -> Edit {
    let edit = view.edit();
    if !view.rows.is_empty() || edit.highest_session_number > 0 {
        return edit;
    }
    let puts = seed(SEED_COUNT, in_force);
    Edit {
        added: puts.len(),
        ids: puts.iter().map(|row| row.id().to_owned()).collect(),
        puts,
        ..edit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_template_gives_its_share() {
        let share = 11;
        let made = requests(share * TEMPLATES.len());
        for template in &*TEMPLATES {
            let given = made
                .iter()
                .filter(|(from, _)| std::ptr::eq(*from, template));
            assert_eq!(given.count(), share, "{:?}", template.parts);
        }
    }

    #[test]
    fn slots_have_values_that_differ() {
        for template in &*TEMPLATES {
            for slot in &template.slots {
                let values: HashSet<&String> = slot.values.iter().collect();
                assert!(
                    values.len() >= 2 && values.len() == slot.values.len(),
                    "{:?}",
                    slot.values
                );
            }
        }
    }

    #[test]
    fn refuses_templates_that_are_wrong() {
        let slots = BTreeMap::from([("file".to_owned(), vec!["a".to_owned()])]);
        let short = "test 1 single_file 0 0 1 qa-engineer unit_test wt";
        let problem = |text: &str, labels: &str| {
            let entry = TemplateEntry {
                text: text.to_owned(),
                labels: labels.to_owned(),
            };
            compile(&entry, &slots).err().unwrap_or_default()
        };
        assert_eq!(problem("a {file} b {file}", short), "");
        assert_eq!(problem("a {folder}", short), "no slot `folder`");
        assert_eq!(problem("a {file", short), "a `{` is not closed");
        assert_eq!(problem("a", "test 1"), "expected 9 words, got 2");
        assert_eq!(problem("a", &short.replace("wt", "wx")), "unknown tool `x`");
    }
}
