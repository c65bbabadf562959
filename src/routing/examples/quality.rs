//! How well the keyword rules agree with labelled requests (`labels.md` 6).
//!
//! `cargo run -p routing --example quality -- requests.jsonl [--wrong] [--lang xx] [--must f.tsv] [--must-not f.tsv]`
//! prints exact, under- and over-routing and cost by language, tiers and types against each other, and with `--wrong`
//! every request that was missed, with the words that decided. A line of the file has at least `request`, `lang`,
//! `expected.task_type` and `tiers` {lowest, highest, right}.

use std::collections::BTreeMap;
use std::error::Error;

use decision::vocabulary::{TaskType, Tier};
use routing::derive::{Derived, derive};
use routing::keywords::{Keywords, Scan};
use routing::rules;
use serde::Deserialize;

const NONE: [&str; 0] = [];
/// What a tier costs (`labels.md` 6).
const COST: [f64; 4] = [0.10, 0.35, 0.60, 0.85];

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    id: String,
    #[serde(default)]
    lang: String,
    request: String,
    expected: Labels,
    tiers: Tiers,
}

#[derive(Deserialize)]
struct Labels {
    task_type: TaskType,
    security_sensitive: bool,
}

#[derive(Deserialize)]
struct Tiers {
    lowest: Tier,
    highest: Tier,
    right: Vec<Tier>,
}

#[derive(Default, Clone, Copy)]
struct Tally {
    rows: u32,
    exact: u32,
    under: u32,
    over: u32,
    same_type: u32,
    unknown: u32,
    cost: f64,
    perfect: f64,
}

impl Tally {
    fn add(&mut self, row: &Row, tier: Tier, derived: &Derived) {
        self.rows += 1;
        self.exact += u32::from(row.tiers.right.contains(&tier));
        self.under += u32::from(tier < row.tiers.lowest);
        self.over += u32::from(tier > row.tiers.highest);
        self.same_type += u32::from(derived.assessment.task.task_type == row.expected.task_type);
        self.unknown += u32::from(derived.assessment.confidence < 0.5);
        self.cost += COST[tier.index()];
        self.perfect += row
            .tiers
            .right
            .iter()
            .map(|t| COST[t.index()])
            .fold(1.0, f64::min);
    }

    fn line(&self, name: &str) -> String {
        let of = |n: u32| f64::from(n) / f64::from(self.rows);
        let strong = f64::from(self.rows) * COST[Tier::Strong.index()];
        format!(
            "{name:<8} {:>5}  exact {:.3}  under {:.3}  over {:.3}  cost {:.3} (perfect {:.3})  type {:.3}  unknown {:.3}",
            self.rows,
            of(self.exact),
            of(self.under),
            of(self.over),
            self.cost / strong,
            self.perfect / strong,
            of(self.same_type),
            of(self.unknown),
        )
    }
}

/// The tier after the floors of routing.md 6.
fn required(scan: &Scan<'_>, derived: &Derived) -> Tier {
    let assessment = &derived.assessment;
    let floor = !rules::fired(scan, &NONE, &NONE).is_empty()
        || assessment.security_sensitive
        || assessment.task.task_type == TaskType::Security
        || assessment.task.risk >= 0.66 - 1e-9
        || (assessment.task.task_type == TaskType::Architecture
            && assessment.task.complexity >= 0.75 - 1e-9);
    let tier = assessment
        .recommendation
        .tier
        .max(if floor { Tier::Strong } else { Tier::Fast });
    if assessment.confidence < 0.5 {
        tier.up()
    } else {
        tier
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (mut file, mut lang, mut wrong) = (None, None, false);
    let mut phrases = Vec::new();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--wrong" => wrong = true,
            "--lang" => lang = args.next(),
            "--must" | "--must-not" => {
                phrases.push((arg == "--must", args.next().ok_or("a file is missing")?))
            }
            _ => file = Some(arg),
        }
    }
    for (must, path) in phrases {
        check_phrases(must, &std::fs::read_to_string(path)?);
    }
    let Some(file) = file else { return Ok(()) };
    let mut by_lang: BTreeMap<String, Tally> = BTreeMap::new();
    let mut total = Tally::default();
    let mut tiers = [[0_u32; 4]; 4];
    let mut types: BTreeMap<(TaskType, TaskType), u32> = BTreeMap::new();
    let (mut flag_missed, mut flag_wrong) = (0, 0);
    for (number, line) in std::fs::read_to_string(&file)?.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let row: Row =
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))?;
        if lang.as_ref().is_some_and(|lang| *lang != row.lang) {
            continue;
        }
        let scan = Keywords::builtin().scan(&row.request);
        let derived = derive(&scan);
        let tier = required(&scan, &derived);
        by_lang
            .entry(row.lang.clone())
            .or_default()
            .add(&row, tier, &derived);
        total.add(&row, tier, &derived);
        let right = row.tiers.right.first().copied().unwrap_or(row.tiers.lowest);
        tiers[right.index()][tier.index()] += 1;
        let found = derived.assessment.task.task_type;
        *types.entry((row.expected.task_type, found)).or_default() += 1;
        flag_missed +=
            u32::from(row.expected.security_sensitive && !derived.assessment.security_sensitive);
        flag_wrong +=
            u32::from(!row.expected.security_sensitive && derived.assessment.security_sensitive);
        if wrong && !row.tiers.right.contains(&tier) {
            show(&row, tier, &derived, &scan);
        }
    }
    for (lang, tally) in &by_lang {
        println!("{}", tally.line(lang));
    }
    println!("{}", total.line("all"));
    println!("security flag: {flag_missed} missed, {flag_wrong} wrongly set");
    println!("\nright tier (rows) against chosen tier: fast balanced strong frontier");
    for (tier, row) in Tier::ALL.iter().zip(tiers) {
        println!("{:<10} {row:>4?}", tier.as_str());
    }
    println!("\ntypes that differ most (expected -> found):");
    let mut differing: Vec<_> = types
        .into_iter()
        .filter(|((expected, found), _)| expected != found)
        .collect();
    differing.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for ((expected, found), count) in differing.iter().take(20) {
        println!("{count:>4}  {expected} -> {found}");
    }
    Ok(())
}

fn show(row: &Row, tier: Tier, derived: &Derived, scan: &Scan<'_>) {
    let kind = match tier {
        t if t < row.tiers.lowest => "UNDER",
        t if t > row.tiers.highest => "OVER",
        t if t < row.tiers.right[0] => "below",
        _ => "above",
    };
    let right: Vec<_> = row.tiers.right.iter().map(|tier| tier.as_str()).collect();
    println!(
        "{kind} {} {} {tier} for {} | {}",
        row.id,
        row.lang,
        right.join("/"),
        row.expected.task_type
    );
    println!(
        "    {}",
        row.request
            .chars()
            .take(300)
            .collect::<String>()
            .replace('\n', " ⏎ ")
    );
    for reason in derived.reasons(scan) {
        let words: Vec<_> = reason
            .terms
            .iter()
            .map(|t| format!("{} <{}>", t.words, t.term))
            .collect();
        println!(
            "      {}: {} [{}]",
            reason.field.as_str(),
            reason.conclusion,
            words.join("; ")
        );
    }
}

fn check_phrases(must: bool, text: &str) {
    let (mut count, mut wrong) = (0, 0);
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let mut parts = line.splitn(if must { 3 } else { 2 }, '\t');
        let lang = parts.next().unwrap_or_default();
        let wanted: Vec<&str> = if must {
            parts.next().unwrap_or_default().split(',').collect()
        } else {
            Vec::new()
        };
        let phrase = parts.next().unwrap_or_default().replace('⏎', "\n");
        let scan = Keywords::builtin().scan(&phrase);
        let fired = rules::fired(&scan, &NONE, &NONE);
        let ok = if must {
            wanted
                .iter()
                .all(|id| fired.iter().any(|rule| rule.as_str() == *id))
        } else {
            fired.is_empty()
        };
        count += 1;
        if !ok {
            wrong += 1;
            let ids: Vec<_> = fired.iter().map(rules::RuleId::as_str).collect();
            println!(
                "{lang}\t{}\t{phrase:?}\twanted {wanted:?} fired {ids:?} explanatory {}",
                if must { "MISSED" } else { "FIRED" },
                scan.explanatory()
            );
        }
    }
    println!("{wrong} of {count} phrases are wrong");
}
