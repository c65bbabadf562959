//! What reading a request costs: compiling the built-in keywords, and text to assessment for short and long texts.
//! `cargo run --release -p routing --example cost`

use std::hint::black_box;
use std::time::{Duration, Instant};

use routing::derive::derive;
use routing::keywords::Keywords;
use routing::{rules, text};

const NONE: [&str; 0] = [];
/// Ordinary prose about code, with camel case and a stack trace.
const SAMPLE: &str = "Please look at why the nightly export hangs after the retryPolicy change, sometimes for hours. \
    The worker in src/jobs/exportCustomers.ts logs nothing; the queue grows and the dashboard shows stale rows. \
    Error: timeout of 3000ms exceeded\n    at createError (node_modules/axios/lib/core/createError.js:16:15)\n\
    Também corrija o texto do botão e escreva testes. 修复登录页面的错误，然后更新文档。 ";

fn sample(units: usize) -> String {
    let repeated = SAMPLE.repeat(units / SAMPLE.len() + 2);
    text::prefix(&repeated, units).to_owned()
}

fn decide(keywords: &Keywords, request: &str) -> usize {
    let scan = keywords.scan(black_box(request));
    let derived = derive(&scan);
    rules::fired(&scan, &NONE, &NONE).len() + usize::from(derived.complexity)
}

fn percentile(times: &mut [Duration], part: usize) -> Duration {
    times.sort();
    times[(times.len() * part / 100).min(times.len() - 1)]
}

fn main() {
    let start = Instant::now();
    let keywords = Keywords::builtin();
    println!("compile built-in keywords, cold   {:?}", start.elapsed());
    let start = Instant::now();
    println!("digest {} {:?}", keywords.digest(), start.elapsed());
    let start = Instant::now();
    black_box(decide(keywords, "Fix the login token expiry"));
    println!("first short request               {:?}", start.elapsed());
    for (units, rounds) in [(30, 5000), (2_000, 2000), (20_000, 200), (100_000, 60)] {
        let request = sample(units);
        let mut times: Vec<Duration> = (0..rounds)
            .map(|_| {
                let start = Instant::now();
                black_box(decide(keywords, &request));
                start.elapsed()
            })
            .collect();
        println!(
            "{units:>7} units  p50 {:?}  p99 {:?}",
            percentile(&mut times, 50),
            percentile(&mut times, 99)
        );
    }
    for (name, word) in [
        ("write ", "write "),
        ("fix test", "fix test "),
        ("one word", "a"),
        ("han", "修复"),
        ("camel", "fooBar"),
    ] {
        let request = word.repeat(100_000 / word.chars().count());
        let start = Instant::now();
        black_box(decide(keywords, &request));
        println!("100000 units of {name:?}  {:?}", start.elapsed());
    }
}
