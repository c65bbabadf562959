//! `cargo xtask quality`: how often the keyword rules pick the tier that people would, on labelled requests. A
//! dashboard, not a test: rules are not bent to sentences (docs/adding-rules-and-languages.md).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use decision::vocabulary::{TaskType, Tier};
use jiff::Timestamp;
use routing::decide::{Client, Explain, Judgement, Moment, NothingKnown, decide, prepare};
use routing::policy::{Policy, PolicySource};
use routing::request::RouteRequest;
use serde::Deserialize;

/// What one decision costs by tier (labels.md 6).
const COST: [f64; 4] = [0.10, 0.35, 0.60, 0.85];

#[derive(Debug, Deserialize)]
struct Row {
    id: String,
    lang: String,
    request: String,
    expected: Expected,
    tiers: Tiers,
}

#[derive(Debug, Deserialize)]
struct Expected {
    task_type: TaskType,
    capability_tier: Tier,
    security_sensitive: bool,
}

/// The tiers a careful engineer accepts (labels.md 6).
#[derive(Debug, Deserialize)]
struct Tiers {
    lowest: Tier,
    highest: Tier,
    right: Vec<Tier>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Score {
    rows: usize,
    exact: usize,
    under: usize,
    over: usize,
    types: usize,
    cost: f64,
    perfect: f64,
}

impl Score {
    fn add(&mut self, row: &Row, got: Tier, got_type: TaskType) {
        self.rows += 1;
        self.exact += usize::from(row.tiers.right.contains(&got));
        self.under += usize::from(got < row.tiers.lowest);
        self.over += usize::from(got > row.tiers.highest);
        self.types += usize::from(got_type == row.expected.task_type);
        self.cost += COST[got.index()];
        self.perfect += COST[row.expected.capability_tier.index()];
    }

    fn line(&self, name: &str) -> String {
        let share = |count: usize| count as f64 / self.rows as f64;
        let always_strong = COST[Tier::Strong.index()] * self.rows as f64;
        format!(
            "{name:<14} {:>5} {:>7.3} {:>7.3} {:>7.3} {:>7.3} {:>9.3} {:>7.3}\n",
            self.rows,
            share(self.exact),
            share(self.under),
            share(self.over),
            self.cost / always_strong,
            self.perfect / always_strong,
            share(self.types),
        )
    }
}

/// Prints agreement by language, tier and type; with `wrong` also each row that missed.
pub(crate) fn run(path: &Path, wrong: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let now = Timestamp::now();
    let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
    let policy = Policy::compile("quality", "", PolicySource::default(), today)
        .map_err(|problems| format!("the built-in policy does not compile: {problems:?}"))?;
    let mut all = Score::default();
    let (mut by_language, mut by_tier, mut by_type) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut confusion = [[0usize; 4]; 4];
    let mut misses = String::new();
    for (at, line) in text.lines().enumerate() {
        let row: Row = serde_json::from_str(line)
            .map_err(|error| format!("{} line {}: {error}", path.display(), at + 1))?;
        let (got, got_type, security) = route(&policy, &row.request, now)?;
        for score in [
            &mut all,
            by_language.entry(row.lang.clone()).or_default(),
            by_tier.entry(row.expected.capability_tier).or_default(),
            by_type.entry(row.expected.task_type).or_default(),
        ] {
            score.add(&row, got, got_type);
        }
        confusion[row.expected.capability_tier.index()][got.index()] += 1;
        if wrong && !row.tiers.right.contains(&got) {
            let Row {
                id,
                lang,
                request,
                expected,
                ..
            } = &row;
            let flag = if security == expected.security_sensitive {
                ""
            } else {
                " flag"
            };
            let request: String = request.chars().take(160).collect();
            let _ = writeln!(
                misses,
                "{id} {lang} {} {} -> {got} {got_type}{flag}: {}",
                expected.capability_tier,
                expected.task_type,
                request.replace('\n', " ⏎ ")
            );
        }
    }
    print!("{misses}");
    let head = "rows   exact   under    over    cost   perfect   types";
    println!("{:<15} {head}", "language");
    for (name, score) in &by_language {
        print!("{}", score.line(name));
    }
    println!("{:<15} {head}", "expected tier");
    for (name, score) in &by_tier {
        print!("{}", score.line(name.as_str()));
    }
    println!("{:<15} {head}", "expected type");
    for (name, score) in &by_type {
        print!("{}", score.line(name.as_str()));
    }
    println!("expected \\ got     fast balanced   strong frontier");
    for tier in Tier::ALL {
        let [fast, balanced, strong, frontier] = confusion[tier.index()];
        println!(
            "{:<14} {fast:>8} {balanced:>8} {strong:>8} {frontier:>8}",
            tier.as_str()
        );
    }
    print!("{}", all.line("all"));
    Ok(())
}

fn route(policy: &Policy, text: &str, now: Timestamp) -> Result<(Tier, TaskType, bool), String> {
    let request = RouteRequest::new(text);
    let prepared = prepare(&request, policy, Client::Own, None, now)
        .map_err(|errors| format!("{text}: {errors:?}"))?;
    let moment = Moment::new(now, [0; 28], &|| 0.0, Explain::No);
    let decided = decide(
        &prepared,
        Judgement::Rules { fallback: None },
        &NothingKnown,
        moment,
    );
    let decision = decided
        .map_err(|error| format!("{text}: {error}"))?
        .decision;
    Ok((
        decision.selected.tier,
        decision.assessment.task.task_type,
        decision.assessment.security_sensitive,
    ))
}
