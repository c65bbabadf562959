//! The documents: what they show is what the programs print.

use crate::programs::{Home, NOWHERE, Router, run, workspace};

fn page(name: &str) -> String {
    std::fs::read_to_string(workspace().join("docs").join(name)).unwrap()
}

/// A command of a page with what it is said to print.
#[derive(Debug)]
struct Shown {
    /// The `examples/….yaml` that the heading before it names.
    policy: Option<String>,
    request: String,
    lines: Vec<String>,
}

/// Every `$ relay route "…"` of a page.
fn shown(page: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut policy = None;
    let mut open = false;
    for line in page.lines() {
        if line.starts_with("## ") {
            let file = line.split('`').find(|part| part.ends_with(".yaml"));
            policy = file.map(str::to_owned);
        }
        match line.strip_prefix("    ") {
            Some(text) => match text.strip_prefix("$ relay route \"") {
                Some(request) => {
                    all.push(Shown {
                        policy: policy.clone(),
                        request: request.trim_end_matches('"').to_owned(),
                        lines: Vec::new(),
                    });
                    open = true;
                }
                None if open => all.last_mut().unwrap().lines.push(text.to_owned()),
                None => {}
            },
            None => open = false,
        }
    }
    all
}

fn printed(home: &Home, url: &str, request: &str) -> Vec<String> {
    let ended = run(&mut home.relay(url, &["route", request]));
    assert_eq!(ended.code, 0, "{}", ended.err);
    let lines = ended.out.lines().filter(|line| !line.starts_with("id  "));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_examples_of_the_policy_page_print_what_it_says() {
    let all = shown(&page("routing-policy.md"));
    assert_eq!(all.len(), 5, "{all:#?}");
    for file in ["examples/policy-minimal.yaml", "examples/policy-full.yaml"] {
        let home = Home::new().without_exploration();
        let path = workspace().join("docs").join(file);
        let router = Router::start(&home, &["--policy", path.to_str().unwrap()]);
        let of_file = all
            .iter()
            .filter(|shown| shown.policy.as_deref() == Some(file));
        let mut seen = 0;
        for shown in of_file {
            let printed = printed(&home, &router.url(), &shown.request);
            assert_eq!(printed, shown.lines, "{shown:?}");
            seen += 1;
        }
        assert!(seen >= 2, "{file}");
    }
}

#[test]
fn the_worked_example_of_how_routing_decides_is_true() {
    let all = shown(&page("how-routing-decides.md"));
    assert_eq!(all.len(), 1, "{all:#?}");
    let home = Home::new().without_exploration();
    assert_eq!(printed(&home, NOWHERE, &all[0].request), all[0].lines);
}

/// The page and `--help` name the same codes; that each comes as described is tested where its cause is.
#[test]
fn the_page_of_exit_codes_names_the_codes_of_the_help() {
    let page = page("exit-codes.md");
    let section = |name: &str| {
        let rest = page.split(&format!("## `{name}`")).nth(1).unwrap();
        rest.split("\n## ").next().unwrap().to_owned()
    };
    let codes = |text: &str| {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
        let cells = rows.filter_map(|row| row.split(" |").next());
        let digits = cells.filter(|cell| cell.starts_with(|c: char| c.is_ascii_digit()));
        digits.map(str::to_owned).collect::<Vec<_>>()
    };
    let home = Home::new().without_exploration();
    let help = run(&mut home.relay(NOWHERE, &["route", "--help"])).out;
    let told = help.split("Exit codes:").nth(1).unwrap();
    for code in codes(&section("relay route")) {
        let word = told.split([' ', '\n', ',']).any(|word| word == code);
        assert!(word, "{code} is not in: {told}");
    }
    assert_eq!(codes(&section("relay route")), ["0", "1", "2", "3", "4"]);
    assert_eq!(
        codes(&section("relayd router")),
        ["0", "1", "2", "3", "4", "130, 143"]
    );
    let help = run(&mut home.relayd(&["--help"])).out;
    let told = help.split("Exit codes:").nth(1).unwrap();
    let told: Vec<_> = told
        .lines()
        .filter_map(|line| line.trim().split(' ').next())
        .filter(|word| !word.is_empty())
        .collect();
    assert_eq!(told, ["0", "1", "2", "3", "4", "130"]);
}

/// Policies that do not hold are refused with code 2 and the path, once.
#[test]
fn a_bad_policy_keeps_the_router_from_starting() {
    let home = Home::new().without_exploration();
    let head = "apiVersion: relay.dev/v1alpha1\nkind: RoutingPolicy\nmetadata: {name: a}\n";
    for (name, text, told) in [
        (
            "unknown profile",
            format!("{head}spec: {{profile: cheap}}\n"),
            "spec.profile: `cheap` is unknown",
        ),
        (
            "unknown field",
            format!("{head}spec: {{rules: [{{id: r, pattern: x}}]}}\n"),
            "spec.rules[0].pattern: unknown field",
        ),
        ("no YAML", format!("{head}spec: [\n"), "line 4, column 7: "),
        ("empty", String::new(), ""),
    ] {
        let file = home.file("policy.yaml", text);
        let ended = run(&mut home.relayd(&["--policy", file.to_str().unwrap()]));
        assert_eq!(ended.code, 2, "{name}: {}", ended.err);
        let line = ended.err.lines().next().unwrap();
        assert!(line.starts_with("relayd: policy "), "{name}: {line}");
        assert_eq!(
            line.matches(told).count().min(2),
            if told.is_empty() { 2 } else { 1 },
            "{name}: {line}"
        );
        assert!(!ended.err.contains("panicked"), "{name}: {}", ended.err);
    }
    let ended = run(&mut home.relayd(&["--policy", "/nowhere/policy.yaml"]));
    assert_eq!(ended.code, 2, "{}", ended.err);
    assert!(ended.err.contains("/nowhere/policy.yaml"), "{}", ended.err);
}
