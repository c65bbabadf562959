//! What the keyword groups find in texts, one per line on standard input, and what is concluded from it.

use std::io::BufRead as _;

use routing::derive::derive;
use routing::keywords::{Group, Keywords};

fn main() -> Result<(), std::io::Error> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let scan = Keywords::builtin().scan(&line);
        let derived = derive(&scan);
        let task = &derived.assessment.task;
        println!(
            "{line}\n  {} {} {}",
            task.task_type, derived.assessment.recommendation.tier, derived.assessment.confidence
        );
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
