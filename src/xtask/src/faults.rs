//! `cargo xtask faults`: `docs/faults.md`, the page that names the tests of each numbered fault. A test says by its name
//! which one it injects (`fault_NN_…`), so the page is read from the sources and cannot promise what is not there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::command::root;

/// The page.
const PAGE: &str = "docs/faults.md";
/// Where tests are.
const SOURCES: [&str; 2] = ["src", "tests"];
/// What the name of such a test begins with.
const MARK: &str = "fn fault_";
/// What makes a function a test, in one of the lines before it.
const ATTRIBUTES: [&str; 3] = ["#[test]", "#[tokio::test", "#[ignore"];
/// How many lines before it.
const NEAR: usize = 6;
/// Where a macro makes tests of plain functions.
const BY_MACRO: &str = "src/controller/tests/policies";

/// What goes wrong, in the order of the numbers.
const FAULTS: [&str; 40] = [
    "the API server goes away in the middle of a pass",
    "busy answers, with and without `Retry-After`",
    "conflicts of two writers",
    "an object or a right that the API refuses",
    "a watch that is too old",
    "a watch that says nothing any more",
    "a deletion that nobody saw",
    "events twice, late, out of order",
    "a crash before or after any action or status write",
    "two controllers at once",
    "clocks that jump, machines that sleep",
    "deletion while something is made",
    "the same name again with another uid",
    "people who stop, edit or delete what is managed",
    "a spec that changes during a rollout or its way back",
    "an engine that restarts, is gone, refuses or never answers",
    "a gap in the events of an engine",
    "ends whose outcome is not known",
    "names and ports taken by strangers",
    "images that cannot be pulled",
    "checkpoints that are wrong, damaged or half written",
    "full and read-only disks",
    "too little memory",
    "crash loops, slow loads, loads that hang",
    "GPUs that are missing, lost or silently not used",
    "servers that are healthy and serve something else",
    "answers that are slow, broken or no numbers",
    "training that is killed or does not learn",
    "held-out sets that prove nothing",
    "reports that are not there",
    "a candidate that is better on average and worse where it matters",
    "a candidate that dies right after its promotion",
    "a router without model, budget or prices",
    "crowds, and clients that vanish",
    "secrets, tokens and certificates that change",
    "CRDs that are older or newer than the program",
    "a store that is cut, damaged or from a newer version",
    "signals and kills in every phase",
    "the same error over and over",
    "hostile input",
];

/// Faults that no test injects yet, and why.
const LATER: [(usize, &str); 3] = [
    (28, "Comes with training."),
    (29, "Comes with gates that judge."),
    (35, "No test yet; a changed token file needs a restart."),
];

/// Writes the page.
pub(crate) fn write() -> Result<(), String> {
    let path = root().join(PAGE);
    fs::write(&path, page()?).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Fails when the committed page is old, or a fault has no test.
pub(crate) fn check() -> Result<(), String> {
    let path = root().join(PAGE);
    let committed = fs::read_to_string(&path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    if committed == page()? {
        Ok(())
    } else {
        Err(format!("{PAGE} is old: run `cargo xtask faults`"))
    }
}

/// Tests by fault and file.
type Tests = BTreeMap<usize, BTreeMap<String, Vec<String>>>;

fn page() -> Result<String, String> {
    let mut tests = Tests::new();
    for folder in SOURCES {
        collect(&root().join(folder), &mut tests)?;
    }
    render(&tests)
}

fn collect(folder: &Path, tests: &mut Tests) -> Result<(), String> {
    let tell = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(tell)? {
        let path = entry.map_err(tell)?.path();
        if path.is_dir() {
            collect(&path, tests)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(tell)?;
            let file = path.strip_prefix(root()).unwrap_or(&path);
            for (fault, name) in tests_of(&text, file.starts_with(BY_MACRO)) {
                let files = tests.entry(fault).or_default();
                files
                    .entry(file.display().to_string())
                    .or_default()
                    .push(name.to_owned());
            }
        }
    }
    Ok(())
}

/// Numbers and names of the tests of a file. A function that nothing runs injects nothing.
fn tests_of(text: &str, by_macro: bool) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_attribute = |line: &&str| {
        let line = line.trim_start();
        ATTRIBUTES.iter().any(|begin| line.starts_with(begin))
    };
    let tests = lines.iter().enumerate().filter_map(|(at, line)| {
        let found = test_of(line)?;
        let mut before = lines.iter().take(at).skip(at.saturating_sub(NEAR));
        (by_macro || before.any(is_attribute)).then_some(found)
    });
    tests.collect()
}

/// Number and name of the function for a fault that a line declares.
fn test_of(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_start();
    let line = line.strip_prefix("async ").unwrap_or(line);
    let line = line.strip_prefix("pub(crate) async ").unwrap_or(line);
    let rest = line.strip_prefix(MARK)?;
    let number = rest.get(..2)?.parse().ok()?;
    let end = rest.find('(')?;
    Some((number, rest.get(..end)?))
}

fn render(tests: &Tests) -> Result<String, String> {
    let mut page = String::from(
        "# Faults\n\nForty things that go wrong, and the tests that make them go wrong. Written from the sources by \
         `cargo xtask faults`;\na test's name begins with `fault_` and the number. Tests below `tests/docker` run on a real \
         Docker Engine, those below\n`tests/kube` and `controller/tests/policies` on a real API server too \
         (`cargo xtask test`).\nWhere a kill was put, point by point: [crash matrix](crash-matrix.md).\n",
    );
    for (number, what) in (1..).zip(FAULTS) {
        let _ = write!(page, "\n## {number}. {what}\n\n");
        let later = LATER.iter().find(|(later, _)| *later == number);
        match (tests.get(&number), later) {
            (None, Some((_, why))) => page.push_str(&format!("{why}\n")),
            (None, None) => return Err(format!("no test injects fault {number}: {what}")),
            (Some(_), Some(_)) => {
                return Err(format!(
                    "fault {number} has tests: remove it from LATER ({what})"
                ));
            }
            (Some(files), None) => {
                for (file, names) in files {
                    let _ = writeln!(page, "- `{file}`");
                    for name in names {
                        let name = name.get(3..).unwrap_or(name).replace('_', " ");
                        let _ = writeln!(page, "  - {name}");
                    }
                }
            }
        }
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_known_by_its_name() {
        for (line, wanted) in [
            ("fn fault_07_it_goes() {", Some((7, "07_it_goes"))),
            ("    async fn fault_40_it(x: u8) {", Some((40, "40_it"))),
            ("fn default_07() {", None),
            ("// fn fault_07_it() {", None),
            ("fn fault_x() {", None),
        ] {
            assert_eq!(test_of(line), wanted, "{line}");
        }
    }

    #[test]
    fn a_function_that_nothing_runs_is_no_test() {
        let text = "#[test]\nfn fault_01_a() {\n}\n\n\n\n\n\nfn fault_02_b() {}\n\n\n\n\n\n\n\
                    #[tokio::test(start_paused = true)]\n#[ignore = \"it is slow\"]\nasync fn fault_03_c() {}\n";
        assert_eq!(tests_of(text, false), [(1, "01_a"), (3, "03_c")]);
        assert_eq!(tests_of(text, true).len(), 3);
    }

    #[test]
    fn a_fault_of_later_that_has_a_test_is_an_error() {
        let (later, _) = LATER[0];
        let files = BTreeMap::from([("a.rs".to_owned(), vec!["01_a".to_owned()])]);
        let all: Tests = (1..=later).map(|number| (number, files.clone())).collect();
        let error = render(&all).unwrap_err();
        assert!(
            error.contains(&format!("fault {later} has tests")),
            "{error}"
        );
    }

    #[test]
    fn a_fault_without_a_test_is_an_error() {
        let error = render(&Tests::new()).unwrap_err();
        assert!(error.contains("fault 1:"), "{error}");
    }
}
