//! What the keyword groups find in texts, one per line on standard input, and what is concluded from it. With `--short`
//! one line each.

use std::io::BufRead as _;

use routing::derive::derive;
use routing::keywords::{Group, Keywords};

fn main() -> Result<(), std::io::Error> {
    let short = std::env::args().nth(1).as_deref() == Some("--short");
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let scan = Keywords::builtin().scan(&line);
        let derived = derive(&scan);
        let task = &derived.assessment.task;
        let tier = derived.assessment.recommendation.tier;
        let confidence = derived.assessment.confidence;
        if short {
            println!("{tier:<9} {confidence} {:<13} {line}", task.task_type);
            continue;
        }
        println!("{line}\n  {} {tier} {confidence}", task.task_type);
        println!(
            "  question {} polite {} explanatory {}",
            scan.question_form(),
            scan.polite(),
            scan.explanatory()
        );
        for group in Group::ALL.iter().filter(|group| scan.matches(**group)) {
            let terms = scan.matched_terms(*group, 9);
            let terms: Vec<_> = terms
                .iter()
                .map(|found| format!("{} <{}>", found.words, found.term))
                .collect();
            println!("    {group}: {}", terms.join("; "));
        }
    }
    Ok(())
}
