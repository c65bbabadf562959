//! Whether a command checked the work, and what its exit status says about it (routing.md 19). A status counts only
//! where it is the check's own: what `||`, `;` or a pipe may have replaced says nothing.

mod known;
mod shell;

use known::{is_assignment, is_check, program};
use shell::{AndOr, Command, List, Operator, Pipeline, Quoted, Word, parse};

/// Exit statuses by which a shell says that it could not run a program at all.
const NOT_RUN: [i32; 2] = [126, 127];

/// Deepest nesting of `sh -c`.
const MOST_SHELLS: usize = 4;

/// Words that make the status of a line depend on more than its last command.
const COMPOUND: [&str; 15] = [
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "select", "function", "coproc",
];

/// What a command says about the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckResult {
    /// It is no check.
    NotACheck,
    /// The check passed.
    Passed,
    /// The check failed.
    Failed,
    /// A check ran, but the status is not its own, or there is none.
    Unknown,
}

/// What a command line with this exit status says; `exit` is `None` when it was stopped before it ended.
#[must_use]
pub fn check_result(command: &str, exit: Option<i32>) -> CheckResult {
    let mut checks = Vec::new();
    let mut options = Options::default();
    find_in_list(
        &parse(command),
        Standing::Decides,
        &mut options,
        0,
        &mut checks,
    );
    match (checks.last(), exit) {
        (None, _) => CheckResult::NotACheck,
        (Some(Standing::Decides), Some(0)) => CheckResult::Passed,
        (Some(Standing::Decides), Some(status)) if !NOT_RUN.contains(&status) => {
            CheckResult::Failed
        }
        (Some(_), _) => CheckResult::Unknown,
    }
}

/// Whether the checks of a task passed: the last command that is a check decides. `None` when none ran or the last
/// one says nothing.
#[must_use]
pub fn tests_passed<'a>(
    commands: impl IntoIterator<Item = (&'a str, Option<i32>)>,
) -> Option<bool> {
    let results = commands
        .into_iter()
        .map(|(command, exit)| check_result(command, exit));
    match results
        .filter(|result| *result != CheckResult::NotACheck)
        .last()?
    {
        CheckResult::Passed => Some(true),
        CheckResult::Failed => Some(false),
        CheckResult::Unknown | CheckResult::NotACheck => None,
    }
}

/// Whether the status of a part is the status of the whole line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Decides,
    Masked,
}

impl Standing {
    fn only_if(self, condition: bool) -> Self {
        if condition { self } else { Self::Masked }
    }
}

/// Shell options that change whose status counts.
#[derive(Debug, Clone, Copy, Default)]
struct Options {
    /// `set -e`: a failing command ends the script.
    exit_on_error: bool,
    /// `set -o pipefail`: a pipeline fails with any of its commands.
    pipe_fail: bool,
}

fn find_in_list(
    list: &List,
    standing: Standing,
    options: &mut Options,
    depth: usize,
    checks: &mut Vec<Standing>,
) {
    let standing = standing.only_if(!list.iter().any(is_compound));
    for (at, item) in list.iter().enumerate() {
        let is_last = at + 1 == list.len();
        let either = item.joins.contains(&Operator::Or);
        for (place, pipeline) in item.pipelines.iter().enumerate() {
            // `set -e` does not look at what stands before `&&`.
            let ends_script = options.exit_on_error && place + 1 == item.pipelines.len();
            let own = (is_last || ends_script) && !either && !item.background;
            find_in_pipeline(pipeline, standing.only_if(own), options, depth, checks);
        }
    }
}

fn find_in_pipeline(
    pipeline: &Pipeline,
    standing: Standing,
    options: &mut Options,
    depth: usize,
    checks: &mut Vec<Standing>,
) {
    let negated = matches!(pipeline.commands.first(), Some(Command::Simple(words)) if words.first().is_some_and(|word| word.text == "!"));
    for (at, command) in pipeline.commands.iter().enumerate() {
        let own = !negated && (at + 1 == pipeline.commands.len() || options.pipe_fail);
        let standing = standing.only_if(own);
        match command {
            Command::Group(list) => {
                find_in_list(list, standing, &mut options.clone(), depth, checks)
            }
            Command::Simple(words) => find_in_command(words, standing, options, depth, checks),
        }
    }
}

fn find_in_command(
    words: &[Word],
    standing: Standing,
    options: &mut Options,
    depth: usize,
    checks: &mut Vec<Standing>,
) {
    if let Some((first, rest)) = words.split_first()
        && first.text == "set"
    {
        set_options(options, rest);
    } else if let Some((script, mut inner)) = inner_script(words)
        && depth < MOST_SHELLS
    {
        find_in_list(&parse(script), standing, &mut inner, depth + 1, checks);
    } else if is_check(words) {
        checks.push(standing);
    }
}

/// Whether an item begins with a reserved word of a compound command.
fn is_compound(item: &AndOr) -> bool {
    let commands = item
        .pipelines
        .iter()
        .flat_map(|pipeline| &pipeline.commands);
    commands.into_iter().any(|command| match command {
        Command::Simple(words) => words.first().is_some_and(|word| {
            word.quoted == Quoted::No && COMPOUND.contains(&word.text.as_str())
        }),
        Command::Group(_) => false,
    })
}

/// The script of `sh -c script` in a command, with the options that shell starts with.
fn inner_script(words: &[Word]) -> Option<(&str, Options)> {
    let is_shell =
        |word: &Word| matches!(program(&word.text), "sh" | "bash" | "zsh" | "dash" | "ksh");
    let mut rest = words.iter().skip_while(|word| !is_shell(word)).skip(1);
    let mut options = Options::default();
    let mut has_script = false;
    loop {
        let word = rest.next()?.text.as_str();
        let Some(letters) = word.strip_prefix(['-', '+']) else {
            return (has_script && !is_assignment(word)).then_some((word, options));
        };
        if letters.starts_with('-') {
            continue;
        }
        has_script |= letters.contains('c');
        options.exit_on_error |= letters.contains('e');
        if letters.ends_with('o') {
            options.pipe_fail |= rest.next()?.text == "pipefail";
        }
    }
}

/// Follows `set -euo pipefail` and its like.
fn set_options(options: &mut Options, words: &[Word]) {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let on = word.text.starts_with('-');
        if !on && !word.text.starts_with('+') {
            return;
        }
        if word.text.contains('e') {
            options.exit_on_error = on;
        }
        if word.text.ends_with('o') {
            match words.next().map(|name| name.text.as_str()) {
                Some("pipefail") => options.pipe_fail = on,
                Some("errexit") => options.exit_on_error = on,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_checks_by_whole_words() {
        let checks = [
            "pytest",
            "python -m pytest -q tests/",
            "uv run pytest",
            "PYTHONPATH=. python3 -m unittest discover",
            "tox -e py312",
            "npm test -- date",
            "npm run lint",
            "npm --prefix web run build",
            "npm run test:unit",
            "pnpm -r --filter web test",
            "yarn workspace shop test",
            "yarn lint",
            "bun test",
            "npx vitest run",
            "npx --yes vitest@latest",
            "./node_modules/.bin/tsc -p .",
            "cargo test",
            "cargo +nightly test -p routing",
            "cargo --locked nextest run",
            "cargo clippy --all-targets -- -D warnings",
            "cargo fmt --all -- --check",
            "go test ./...",
            "go vet ./...",
            "golangci-lint run",
            "make",
            "make -j 4",
            "make -C lib test",
            "make clean test",
            "just lint",
            "./gradlew :app:testDebugUnitTest",
            "mvn -q -f shop clean verify",
            "./mvnw test",
            "bash scripts/test.sh",
            "./test.sh --fast",
            "sudo -E ./ci/run-tests.sh",
            "time make check",
            "timeout 60 cargo test",
            "docker compose exec app pytest",
            "docker run --rm -v .:/src img sh -c 'cd /src && npm test'",
            "bash -lc \"pytest -x\"",
            "dotnet test",
            "bundle exec rspec",
            "bin/rails test",
            "mix test",
            "php artisan test",
            "swift build",
            "shellcheck x.sh",
            "cmake --build build",
            "terraform validate",
            "(cd web && npm test)",
            "pytest > log.txt 2>&1",
        ];
        for command in checks {
            assert_eq!(
                check_result(command, Some(0)),
                CheckResult::Passed,
                "{command}"
            );
            assert_eq!(
                check_result(command, Some(1)),
                CheckResult::Failed,
                "{command}"
            );
        }
    }

    #[test]
    fn is_not_fooled_by_what_only_speaks_of_checks() {
        let others = [
            "",
            "ls",
            "echo pytest",
            "echo 'cargo test'",
            "grep -rn pytest .",
            "cat pytest.ini",
            "vim test.sh",
            "chmod +x test.sh",
            "pip install pytest",
            "python -m pip install -U pytest",
            "npm install -D vitest",
            "npm i jest",
            "pnpm add -D eslint",
            "cargo add proptest",
            "cargo install cargo-nextest",
            "cargo run --bin tests",
            "git commit -m 'cargo test passes'",
            "git add test.sh",
            "which pytest",
            "command -v pytest",
            "pytest --version",
            "npx tsc --help",
            "npm start",
            "npm run dev",
            "node server.js",
            "make deploy",
            "make install",
            "latest.sh",
            "contest.sh",
            "cat <<EOF\npytest\nEOF",
            "# pytest",
            "docker compose up -d",
            "npm publish",
            "set -e",
            "go run .",
            "cargo-test",
            "python test_data.py",
            "curl localhost/test.sh",
            "sudo apt-get install -y shellcheck",
        ];
        for command in others {
            assert_eq!(
                check_result(command, Some(1)),
                CheckResult::NotACheck,
                "{command}"
            );
        }
    }

    #[test]
    fn a_status_counts_only_where_it_is_the_checks_own() {
        use CheckResult::{Failed, Unknown};
        let rows = [
            ("alone", "cargo test", Failed),
            ("after a change of folder", "cd web && npm test", Failed),
            ("the first of and", "npm test && echo done", Failed),
            ("last of a list", "export A=1; npm test", Failed),
            ("last line", "cd web\nnpm test\n", Failed),
            ("or", "npm test || true", Unknown),
            ("or with an exit", "npm test || exit 1", Unknown),
            ("second of or", "false || npm test", Unknown),
            ("or behind and", "npm test && echo ok || echo bad", Unknown),
            ("not last", "npm test; echo done", Unknown),
            ("not the last line", "npm test\necho done", Unknown),
            ("trailing semicolon", "npm test;", Failed),
            ("pipe", "cargo test 2>&1 | tail -20", Unknown),
            ("pipe with errors", "cargo test |& tee log", Unknown),
            ("last of a pipe", "yes | npm test", Failed),
            ("pipefail", "set -o pipefail; cargo test | tail -20", Failed),
            (
                "pipefail among others",
                "set -euo pipefail && cargo test | tee log",
                Failed,
            ),
            (
                "pipefail off again",
                "set -o pipefail; set +o pipefail; cargo test | cat",
                Unknown,
            ),
            ("stop at errors", "set -e; npm test; echo done", Failed),
            (
                "stop at errors does not look before and",
                "set -e; npm test && true; echo done",
                Unknown,
            ),
            (
                "stop at errors off again",
                "set -e; set +e; npm test; echo done",
                Unknown,
            ),
            ("background", "npm test &", Unknown),
            ("negated", "! npm test", Unknown),
            ("negated pipe", "! true | npm test", Unknown),
            ("condition", "if npm test; then echo ok; fi", Unknown),
            ("loop", "for d in a b; do cargo test; done", Unknown),
            ("group", "{ npm test; }", Failed),
            ("group that masks", "(npm test; echo done)", Unknown),
            ("group that is masked", "(npm test); echo done", Unknown),
            ("shell", "bash -c 'npm test | tail'", Unknown),
            (
                "shell with pipefail",
                "bash -eo pipefail -c 'npm test | tail; echo done'",
                Failed,
            ),
            ("shell that is masked", "bash -c 'npm test' | tail", Unknown),
            ("quoted operators are text", "pytest -k 'a; b || c'", Failed),
            (
                "the last check decides: its own",
                "npm run lint; npm test",
                Failed,
            ),
            (
                "the last check decides: masked",
                "npm run lint && npm test | tail",
                Unknown,
            ),
        ];
        for (name, command, expected) in rows {
            assert_eq!(
                check_result(command, Some(1)),
                expected,
                "{name}: {command}"
            );
            let passed = if expected == Failed {
                CheckResult::Passed
            } else {
                expected
            };
            assert_eq!(
                check_result(command, Some(0)),
                passed,
                "{name}, exit 0: {command}"
            );
            assert_eq!(
                check_result(command, None),
                Unknown,
                "{name}, stopped: {command}"
            );
        }
        assert_eq!(
            check_result("pytest", Some(127)),
            Unknown,
            "the shell found no such program"
        );
    }

    #[test]
    fn the_last_check_of_a_task_decides() {
        type Row = (
            &'static str,
            &'static [(&'static str, Option<i32>)],
            Option<bool>,
        );
        let rows: &[Row] = &[
            (
                "training.md 15.1",
                &[("npm test -- date", Some(0))],
                Some(true),
            ),
            ("no check", &[("ls", Some(0)), ("git diff", Some(0))], None),
            (
                "repaired",
                &[
                    ("npm test", Some(1)),
                    ("npm test", Some(0)),
                    ("ls", Some(2)),
                ],
                Some(true),
            ),
            (
                "broken again",
                &[("npm test", Some(0)), ("npm run lint", Some(1))],
                Some(false),
            ),
            (
                "the last one says nothing",
                &[("npm test", Some(0)), ("npm test | tail", Some(0))],
                None,
            ),
            (
                "stopped",
                &[("npm test", Some(0)), ("npm test", None)],
                None,
            ),
            ("nothing ran", &[], None),
        ];
        for (name, commands, expected) in rows {
            assert_eq!(tests_passed(commands.iter().copied()), *expected, "{name}");
        }
    }
}
