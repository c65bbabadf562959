//! Properties of what is read from outside: policies as YAML and requests as JSON. Nothing panics, nothing hangs, and
//! what is read means the same however it was written.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use api::document::{MAX_BYTES, canonical, read_yaml, typed};
use api::routing_policy::RoutingPolicy;
use api::{FieldError, RouteRequest};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

/// Far more than any text takes, far less than for ever: a debug build on a busy machine.
const LONG: Duration = Duration::from_secs(20);

/// Reads a text as a policy and, if it is one, compiles it.
fn take(text: &str) -> Option<RoutingPolicy> {
    let start = Instant::now();
    let read = RoutingPolicy::read(text);
    if let Err(error) = &read {
        let told = error.to_string();
        assert!(
            !told.is_empty() && told.len() < 4500,
            "{} bytes",
            told.len()
        );
    }
    let policy = read.ok();
    if let Some(policy) = &policy {
        let _ = policy.compile("2026-11-30".parse().unwrap());
    }
    let took = start.elapsed();
    assert!(
        took < LONG,
        "{took:?} for {} bytes: {:.200}",
        text.len(),
        text
    );
    policy
}

/// A policy that uses every field.
const FULL: &str = include_str!("../../../docs/examples/policy-full.yaml");

/// Pieces that mean something to a YAML reader or to ours.
const PIECES: &[&str] = &[
    "\n",
    "\n  ",
    "\n    ",
    " ",
    "- ",
    ": ",
    ":",
    "? ",
    ", ",
    "[",
    "]",
    "{",
    "}",
    "&a ",
    "*a",
    "<<: ",
    "!!int ",
    "!x ",
    "| ",
    "|-\n",
    ">+\n",
    "'",
    "\"",
    "\\",
    "#",
    "%YAML 1.2\n",
    "---\n",
    "...\n",
    "~",
    "null",
    "true",
    "yes",
    "0.5",
    ".nan",
    "1e999",
    "0x1F",
    "-0",
    "9223372036854775808",
    "\t",
    "\r\n",
    "\u{feff}",
    "\u{0}",
    "\u{85}",
    "é",
    "😀",
    "apiVersion: relay.dev/v1alpha1",
    "kind: RoutingPolicy",
    "metadata: {name: a}",
    "spec:",
    "rules",
    "patterns",
    "tiers",
    "thresholds: {highRisk: \"0.5\"}",
];

fn yamlish() -> impl Strategy<Value = String> {
    vec(select(PIECES), 0..60).prop_map(|pieces| pieces.concat())
}

/// One change to a text.
#[derive(Debug, Clone)]
enum Edit {
    Insert(Index, &'static str),
    Delete(Index, usize),
    Double(Index),
    Truncate(Index),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => (any::<Index>(), select(PIECES)).prop_map(|(at, piece)| Edit::Insert(at, piece)),
        3 => (any::<Index>(), 1..40_usize).prop_map(|(at, len)| Edit::Delete(at, len)),
        2 => any::<Index>().prop_map(Edit::Double),
        1 => any::<Index>().prop_map(Edit::Truncate),
    ]
}

fn edited(text: &str, edits: &[Edit]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for edit in edits {
        let place = |at: &Index| at.index(chars.len() + 1);
        match edit {
            Edit::Insert(at, piece) => {
                let at = place(at);
                chars.splice(at..at, piece.chars());
            }
            Edit::Delete(at, len) => {
                let at = place(at);
                chars.drain(at..(at + len).min(chars.len()));
            }
            Edit::Double(at) => {
                let at = place(at);
                let line: Vec<char> = chars[at..].iter().take(60).copied().collect();
                chars.splice(at..at, line);
            }
            Edit::Truncate(at) => chars.truncate(place(at)),
        }
    }
    chars.into_iter().collect()
}

fn ratio() -> impl Strategy<Value = Value> {
    select(vec!["0", "1", "0.5", "0.05", "0.333333", "1.0"]).prop_map(Value::from)
}

fn word() -> impl Strategy<Value = String> {
    "[a-z]{2,8}|é[a-z ]{1,5}x|登录"
}

fn words() -> impl Strategy<Value = Vec<String>> {
    vec(word(), 0..4)
}

/// An object of some of these fields.
fn some(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let optional: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| proptest::option::of(value).prop_map(move |value| (name, value)))
        .collect();
    optional
        .prop_map(|fields| {
            let present = fields
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Value::Object(present.collect())
        })
        .boxed()
}

/// A list of objects with a key of their own and some of these fields.
fn keyed(
    key: &'static str,
    names: impl Strategy<Value = String> + 'static,
    rest: BoxedStrategy<Value>,
) -> BoxedStrategy<Value> {
    btree_map(names, rest, 0..3)
        .prop_map(move |items| {
            items
                .into_iter()
                .map(|(name, mut item)| {
                    item[key] = name.into();
                    item
                })
                .collect()
        })
        .boxed()
}

fn any_of(values: &[&'static str]) -> BoxedStrategy<Value> {
    select(values.to_vec()).prop_map(Value::from).boxed()
}

/// Specs that the reader accepts: every field, each sometimes absent.
fn spec() -> BoxedStrategy<Value> {
    let strings = || words().prop_map(|words| json!(words)).boxed();
    let number = |range: std::ops::Range<u32>| range.prop_map(Value::from).boxed();
    let switch = || any::<bool>().prop_map(Value::from).boxed();
    let decimal = || any_of(&["0", "1", "12.50", "999999999.999999"]);
    let ratio = || ratio().boxed();
    let prices =
        some(vec![("cachedInput", decimal()), ("cacheWrite", decimal())]).prop_map(|mut prices| {
            for (name, value) in [
                ("input", "1.25"),
                ("output", "10"),
                ("asOf", "2026-11-01"),
                ("source", "s"),
            ] {
                prices[name] = value.into();
            }
            prices
        });
    let models = some(vec![
        ("contextWindow", number(1..2_000_000)),
        (
            "efforts",
            vec(select(vec!["low", "high", "minimal"]), 1..4)
                .prop_map(|set| json!(set))
                .boxed(),
        ),
        (
            "capabilities",
            vec(select(vec!["tools", "vision"]), 0..3)
                .prop_map(|set| json!(set))
                .boxed(),
        ),
        ("prices", prices.boxed()),
        ("disabled", switch()),
    ]);
    let floor = some(vec![
        ("tier", any_of(&["fast", "balanced", "strong", "frontier"])),
        (
            "effort",
            any_of(&["minimal", "low", "medium", "high", "extra_high"]),
        ),
        (
            "validation",
            any_of(&[
                "none",
                "syntax",
                "compile",
                "unit_test",
                "integration_test",
                "review",
            ]),
        ),
    ]);
    let rules = (
        some(vec![
            ("unless", strings()),
            ("languages", strings()),
            ("floor", floor),
            ("note", word().prop_map(Value::from).boxed()),
        ]),
        vec(word(), 1..4),
    )
        .prop_map(|(mut rule, patterns)| {
            rule["patterns"] = json!(patterns);
            rule
        })
        .boxed();
    let profiles = vec(ratio(), 5).prop_map(|five| {
        let names = ["quality", "cost", "latency", "risk", "minSuccess"];
        let fields = names.iter().map(|name| (*name).to_owned()).zip(five);
        Value::Object(fields.collect())
    });
    let tiers = btree_map(
        select(vec!["fast", "balanced", "strong", "frontier"]),
        "[a-z]{1,6}",
        1..4,
    )
    .prop_map(|tiers| {
        tiers
            .into_iter()
            .map(|(name, model)| json!({"name": name, "models": [format!("acme/{name}-{model}")]}))
            .collect::<Value>()
    });
    some(vec![
        ("serverRef", Just(json!({"name": "main"})).boxed()),
        (
            "profile",
            any_of(&["economy", "balanced", "quality", "critical"]),
        ),
        (
            "profiles",
            keyed("name", "own-[a-z]{1,4}", profiles.boxed()),
        ),
        ("tiers", tiers.boxed()),
        ("models", keyed("ref", "acme/[a-z]{1,6}", models)),
        (
            "providers",
            words().prop_map(|words| json!(unique(words))).boxed(),
        ),
        ("baseline", Just(json!("acme/large")).boxed()),
        ("rules", keyed("id", "own-[a-z]{1,4}", rules)),
        ("disabledRules", Just(json!(["authentication"])).boxed()),
        (
            "keywords",
            keyed(
                "id",
                select(vec!["topic.auth".to_owned(), "type.test".to_owned()]),
                some(vec![("any", strings()), ("unless", strings())]),
            ),
        ),
        (
            "thresholds",
            some(vec![
                ("minConfidence", ratio()),
                ("memorySimilarity", ratio()),
                ("memoryLesson", ratio()),
                ("highRisk", ratio()),
            ]),
        ),
        (
            "deadlines",
            some(vec![
                ("timeoutMillis", number(100..60_001)),
                ("breakerSeconds", number(1..3601)),
            ]),
        ),
        ("escalateAfterFailures", number(0..21)),
        ("toolRouting", any_of(&["Advise", "Enforce"])),
        ("memory", switch()),
        ("telemetry", switch()),
        ("exploration", ratio()),
        ("switchPrice", switch()),
        ("costBasis", any_of(&["Tiers", "Prices"])),
        ("onFloorUnmet", any_of(&["Strongest", "Refuse"])),
        (
            "quota",
            keyed(
                "provider",
                word(),
                some(vec![("share", ratio()), ("budgetPerDay", decimal())]),
            ),
        ),
        (
            "privacy",
            some(vec![
                ("requestText", any_of(&["Full", "Hashed", "None"])),
                ("retentionDays", number(1..3651)),
            ]),
        ),
    ])
}

fn unique(mut words: Vec<String>) -> Vec<String> {
    words.sort();
    words.dedup();
    words
}

fn document(spec: &Value) -> Value {
    json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy",
        "metadata": {"name": "default"}, "spec": spec,
    })
}

fn read(document: &Value) -> RoutingPolicy {
    RoutingPolicy::read(&document.to_string()).unwrap_or_else(|error| panic!("{error}: {document}"))
}

/// JSON text whose keys come in the order that the numbers give them.
fn in_order(tree: &Value, order: &mut impl Iterator<Item = u64>) -> String {
    match tree {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().map(|entry| (order.next(), entry)).collect();
            entries.sort_by_key(|(number, _)| *number);
            let fields: Vec<_> = entries
                .into_iter()
                .map(|(_, (key, value))| format!("{}: {}", json!(key), in_order(value, order)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| in_order(item, order)).collect();
            format!("[{}]", items.join(", "))
        }
        plain => plain.to_string(),
    }
}

/// Adds the defaults that the page spells out where the spec leaves them to the reader.
fn spelled_out(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let defaults = json!({
        "profile": "balanced", "profiles": [], "models": [], "providers": [], "rules": [], "disabledRules": [], "keywords": [],
        "thresholds": {"minConfidence": "0.5", "memorySimilarity": "0.6", "memoryLesson": "0.45", "highRisk": "0.66"},
        "deadlines": {"timeoutMillis": 5000, "breakerSeconds": 60},
        "escalateAfterFailures": 3, "toolRouting": "Advise", "memory": true, "telemetry": true, "exploration": "0.05",
        "switchPrice": true, "costBasis": "Tiers", "onFloorUnmet": "Strongest", "quota": [],
        "privacy": {"retentionDays": 90},
    });
    fill(&mut spec, &defaults);
    let items = [
        ("models", json!({"disabled": false})),
        ("quota", json!({"share": "1"})),
        ("rules", json!({"unless": [], "languages": []})),
        ("keywords", json!({"any": [], "unless": [], "remove": []})),
    ];
    for (list, defaults) in items {
        for item in spec[list].as_array_mut().unwrap() {
            fill(item, &defaults);
        }
    }
    spec
}

fn fill(tree: &mut Value, defaults: &Value) {
    let (Value::Object(map), Value::Object(defaults)) = (tree, defaults) else {
        return;
    };
    for (key, default) in defaults {
        match map.get_mut(key) {
            Some(value) => fill(value, default),
            None => {
                map.insert(key.clone(), default.clone());
            }
        }
    }
}

/// Any JSON there is, small.
fn tree() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        select(vec![
            "user",
            "direct",
            "fast",
            "huge",
            "anthropic/claude-opus-5-5",
            "low",
            "2026-11-30T10:00:00Z"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let key = prop_oneof![select(FIELDS.to_vec()).prop_map(str::to_owned), ".{0,6}"];
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(key, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
    .boxed()
}

/// Names of fields of a request.
const FIELDS: &[&str] = &[
    "request",
    "kind",
    "profile",
    "conversation_id",
    "previous_decision_id",
    "providers",
    "models",
    "quota",
    "settings",
    "constraints",
    "context",
    "tools",
    "skills",
    "labels",
    "dry_run",
    "ref",
    "tier",
    "efforts",
    "prices",
    "context_window",
    "min_confidence",
    "tiers",
    "exploration",
    "model",
    "effort",
    "exclude",
    "capabilities",
    "current",
    "tokens",
    "last_used",
    "name",
    "description",
];

/// A request that uses every field.
fn full_request() -> Value {
    json!({
        "request": "Fix the login token expiry", "kind": "user", "profile": "quality", "conversation_id": "c-1",
        "previous_decision_id": "0193d2b1-0000-7000-8000-000000000000", "providers": ["anthropic", "acme"],
        "models": [{"ref": "acme/small", "tier": "fast", "context_window": 200_000, "efforts": ["low", "high"],
            "prices": {"input": 1.0, "cached_input": 0.1, "cache_write": 1.25, "output": 5.0, "as_of": "2026-11-01", "source": "s"}}],
        "quota": {"anthropic": 0.5},
        "settings": {"min_confidence": 0.6, "escalate_after_failures": 2, "memory": false, "telemetry": false,
            "tool_routing": "advise", "tiers": {"fast": ["acme/small"]}, "exploration": 0.0, "switch_price": true,
            "baseline": "acme/large"},
        "constraints": {"model": "acme/small", "tier": "fast", "effort": "low", "exclude": ["acme/x"], "capabilities": ["tools"]},
        "context": {"current": {"model": "acme/small", "effort": "low"}, "tokens": 5, "cached_tokens": 3,
            "last_used": "2026-11-30T10:00:00Z"},
        "tools": ["bash"], "skills": [{"name": "review", "description": "reads diffs"}],
        "labels": {"task_type": "bug_fix"}, "dry_run": true,
    })
}

/// The request, or the path of what is wrong.
fn request(tree: Value) -> Result<RouteRequest, FieldError> {
    let request: RouteRequest = typed(tree)?;
    match request.check() {
        Ok(()) => Ok(request),
        Err(errors) => Err(errors.into_iter().next().expect("never an empty list")),
    }
}

/// Every place of a tree, as JSON pointers.
fn places(tree: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match tree {
        Value::Object(map) => {
            for (key, value) in map {
                places(value, &format!("{at}/{key}"), all);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{index}"), all);
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        take(&text);
    }

    #[test]
    fn any_text_that_looks_like_yaml_is_read_or_refused(text in yamlish()) {
        take(&text);
        if let Ok(tree) = read_yaml(&text) {
            // What was read has a canonical form that is read as the same.
            let again = read_yaml(&canonical(&tree));
            prop_assert_eq!(again.as_ref().map(canonical), Ok(canonical(&tree)));
        }
    }

    #[test]
    fn a_damaged_policy_is_read_or_refused(edits in vec(edit(), 1..6)) {
        take(&edited(FULL, &edits));
    }

    #[test]
    fn a_policy_survives_being_written_and_read(spec in spec()) {
        let policy = read(&document(&spec));
        let written = document(&policy.spec.tree());
        let again = read(&written);
        prop_assert_eq!(&again.spec, &policy.spec);
        prop_assert_eq!(again.spec.digest(), policy.spec.digest());
        prop_assert_eq!(again.spec.tree(), policy.spec.tree());
    }

    #[test]
    fn the_digest_does_not_depend_on_how_a_policy_is_written(spec in spec(), order in vec(any::<u64>(), 1..200)) {
        let policy = read(&document(&spec));
        let full = document(&spelled_out(&spec));
        let shuffled = in_order(&full, &mut order.iter().copied().cycle());
        let written = RoutingPolicy::read(&shuffled).unwrap_or_else(|error| panic!("{error}: {shuffled}"));
        prop_assert_eq!(&written.spec, &policy.spec);
        prop_assert_eq!(written.spec.digest(), policy.spec.digest());
    }

    #[test]
    fn the_digest_depends_on_what_a_policy_says(one in spec(), other in spec()) {
        let (one, other) = (read(&document(&one)).spec, read(&document(&other)).spec);
        prop_assert_eq!(one.digest() == other.digest(), one == other);
    }

    #[test]
    fn any_json_is_a_request_or_refused(tree in tree()) {
        let _ = request(tree);
    }

    #[test]
    fn a_damaged_request_is_read_or_refused(at in any::<Index>(), value in tree()) {
        let mut body = full_request();
        let mut all = Vec::new();
        places(&body, "", &mut all);
        let place = all[at.index(all.len())].clone();
        *body.pointer_mut(&place).unwrap() = value;
        match request(body) {
            Ok(request) => {
                let text = serde_json::to_string(&request).unwrap();
                let again: RouteRequest = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(again, request);
            }
            // A refusal lies where the damage is, above it, or below it.
            Err(error) => {
                let damaged = place.split('/').nth(1).unwrap_or_default();
                prop_assert!(error.path.starts_with(damaged), "{} for damage at {}", error, place);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_request_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        let _ = serde_json::from_slice::<RouteRequest>(&bytes);
    }
}

#[test]
fn a_full_policy_and_a_full_request_are_read() {
    assert!(take(FULL).is_some(), "{:?}", RoutingPolicy::read(FULL));
    let request = request(full_request()).unwrap();
    assert_eq!(serde_json::to_value(&request).unwrap(), full_request());
}

/// Texts made to cost a reader much: each is read or refused soon, however long it is.
#[test]
fn hostile_texts_cost_little() {
    let filled = |piece: &str| piece.repeat(MAX_BYTES / piece.len());
    let laughs = |levels: usize, wide: usize| {
        let mut text = String::from("a0: &a0 [x]\n");
        for level in 1..levels {
            let before = format!("*a{}, ", level - 1).repeat(wide);
            text.push_str(&format!("a{level}: &a{level} [{before}]\n"));
        }
        text
    };
    let large = format!("base: &base \"{}\"\n", "x".repeat(MAX_BYTES / 2));
    for (name, text) in [
        ("a billion laughs", laughs(12, 8)),
        ("wide laughs", laughs(3, 49)),
        (
            "a large alias, often",
            large + "all: [" + &"*base, ".repeat(99) + "]\n",
        ),
        ("an alias of itself", "a: &a [*a]\n".to_owned()),
        ("brackets", filled("[")),
        ("braces", filled("{a: ")),
        ("dashes", filled("- ")),
        ("questions", filled("? ")),
        ("anchors", filled("&a ")),
        (
            "many anchors",
            (0..40_000).map(|at| format!("- &a{at} x\n")).collect(),
        ),
        ("tags", filled("!x ")),
        ("quotes", filled("\"")),
        ("spaces", filled(" ")),
        ("line breaks", filled("\n")),
        ("comments", filled("#\n")),
        ("documents", filled("---\n")),
        ("directives", filled("%YAML 1.2\n")),
        ("a long word in every place that is quoted", {
            let long = "x".repeat(MAX_BYTES / 8);
            format!(
                "apiVersion: {long}\nkind: {long}\nmetadata: {{name: {long}}}\nspec: {{{long}: 1}}\n"
            )
        }),
        (
            "a long version",
            format!(
                "apiVersion: {}\nkind: a\nmetadata: {{name: a}}\n",
                "x".repeat(MAX_BYTES / 2)
            ),
        ),
        (
            "a long key twice",
            format!("{0}: 1\n{0}: 2\n", "x".repeat(MAX_BYTES / 3)),
        ),
        (
            "a long alias",
            format!("a: *{}\n", "x".repeat(MAX_BYTES / 2)),
        ),
        ("one long line", filled("x")),
        ("one long key", filled("x") + ": 1"),
        (
            "many keys",
            (0..60_000).map(|at| format!("k{at}: {at}\n")).collect(),
        ),
        ("the same key", filled("a: 1\n")),
        ("a long list", filled("- a\n")),
        (
            "a long flow",
            format!("[{}]", "1,".repeat(MAX_BYTES / 2 - 2)),
        ),
        (
            "a block of many lines",
            format!("a: |\n{}", " x\n".repeat(MAX_BYTES / 4)),
        ),
        (
            "a folded quote",
            format!("a: \"{}\"", "x\n ".repeat(MAX_BYTES / 4)),
        ),
        (
            "escapes",
            format!("a: \"{}\"", "\\u0041".repeat(MAX_BYTES / 7)),
        ),
        ("digits", format!("a: {}", "9".repeat(MAX_BYTES - 10))),
        (
            "a date of digits",
            format!("a: 1e{}", "9".repeat(MAX_BYTES - 10)),
        ),
        (
            "merges",
            format!("a: &a {{x: 1}}\n{}", "b: {<<: *a}\n".repeat(50)),
        ),
    ] {
        let start = Instant::now();
        let _ = read_yaml(&text);
        take(&text);
        let took = start.elapsed();
        println!("{name}: {took:?}");
        assert!(took < LONG, "{name} took {took:?}");
    }
}
