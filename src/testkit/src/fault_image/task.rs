//! `fault-laya task …`: what a test has a task do, in order of its arguments: `--line TEXT` prints, `--error TEXT` prints on
//! the other stream, `--show FILE` prints a file, `--write FILE TEXT` writes one, `--sleep MS` waits, `--exit CODE` ends.

use std::io::Write;
use std::time::Duration;

pub(crate) fn run(arguments: &[String]) -> u8 {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let done = match word.as_str() {
            "--line" => next(&mut rest).map(|text| println!("{text}")),
            "--error" => next(&mut rest).map(|text| eprintln!("{text}")),
            "--show" => next(&mut rest).and_then(|file| {
                let text = std::fs::read_to_string(file)
                    .map_err(|error| format!("cannot read {file}: {error}"))?;
                println!("{text}");
                Ok(())
            }),
            "--write" => next(&mut rest).and_then(|file| {
                let text = next(&mut rest)?;
                std::fs::write(file, text).map_err(|error| format!("cannot write {file}: {error}"))
            }),
            "--sleep" => number(&mut rest).map(|millis| {
                let _ = std::io::stdout().flush();
                std::thread::sleep(Duration::from_millis(millis));
            }),
            "--exit" => match number(&mut rest) {
                Ok(code) => return u8::try_from(code).unwrap_or(1),
                Err(error) => Err(error),
            },
            other => Err(format!("`{other}` is not understood")),
        };
        if let Err(error) = done {
            eprintln!("fault-laya task: {error}");
            return 2;
        }
    }
    0
}

fn next<'a>(rest: &mut impl Iterator<Item = &'a String>) -> Result<&'a str, String> {
    rest.next()
        .map(String::as_str)
        .ok_or_else(|| "an argument is missing".to_owned())
}

fn number<'a>(rest: &mut impl Iterator<Item = &'a String>) -> Result<u64, String> {
    let text = next(rest)?;
    text.parse().map_err(|_| format!("`{text}` is no number"))
}
