//! Every limit of a `RoutingPolicy` document (control-plane 6): what is refused, at which path, and that the bound itself
//! is let through.

#![allow(clippy::unwrap_used)]

use api::routing_policy::RoutingPolicy;
use serde_json::{Value, json};

fn document(spec: &Value) -> Value {
    json!({
        "apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy",
        "metadata": {"name": "default"}, "spec": spec,
    })
}

/// Reads a document; a refusal as its text, which begins with the path.
fn read(document: &Value) -> Result<RoutingPolicy, String> {
    RoutingPolicy::read(&document.to_string()).map_err(|error| error.to_string())
}

fn refused(name: &str, document: &Value, path: &str, told: &str) {
    let error = match read(document) {
        Err(error) => error,
        Ok(_) => panic!("{name}: accepted"),
    };
    let rest = error
        .strip_prefix(path)
        .and_then(|rest| rest.strip_prefix(": "));
    let rest = rest.unwrap_or_else(|| panic!("{name}: expected path `{path}` in: {error}"));
    assert!(rest.contains(told), "{name}: expected `{told}` in: {error}");
}

fn many(count: usize, item: impl Fn(usize) -> Value) -> Value {
    (0..count).map(item).collect()
}

fn profile(name: &str) -> Value {
    json!({"name": name, "quality": "0.4", "cost": "0.3", "latency": "0.2", "risk": "0.1", "minSuccess": "0.8"})
}

fn rule(id: &str) -> Value {
    json!({"id": id, "patterns": ["gdpr"]})
}

fn model(name: &str) -> Value {
    json!({"ref": format!("acme/{name}")})
}

fn prices(change: &Value) -> Value {
    let mut prices = json!({"input": "1", "output": "5.50", "asOf": "2026-11-01", "source": "https://example.com"});
    for (key, value) in change.as_object().unwrap() {
        prices[key] = value.clone();
    }
    json!({"models": [{"ref": "acme/small", "prices": prices}]})
}

fn text(length: usize) -> String {
    "x".repeat(length)
}

/// Name, spec, path, part of the message.
type Row = (&'static str, Value, &'static str, &'static str);

fn check(rows: Vec<Row>) {
    for (name, spec, path, told) in rows {
        refused(name, &document(&spec), path, told);
    }
}

#[test]
fn lists_have_bounds() {
    let word = |at| json!(format!("word{at}"));
    check(vec![
        (
            "9 profiles",
            json!({"profiles": many(9, |at| profile(&format!("p{at}")))}),
            "spec.profiles",
            "more than 8",
        ),
        (
            "no tier",
            json!({"tiers": []}),
            "spec.tiers",
            "has 0 entries, allowed are 1 to 4",
        ),
        (
            "5 tiers",
            json!({"tiers": many(5, |_| json!({"name": "fast", "models": ["a/b"]}))}),
            "spec.tiers",
            "has 5 entries",
        ),
        (
            "no model in a tier",
            json!({"tiers": [{"name": "fast", "models": []}]}),
            "spec.tiers[0].models",
            "has 0 entries, allowed are 1 to 32",
        ),
        (
            "33 models in a tier",
            json!({"tiers": [{"name": "fast", "models": many(33, |at| json!(format!("a/{at}")))}]}),
            "spec.tiers[0].models",
            "has 33 entries",
        ),
        (
            "257 models",
            json!({"models": many(257, |at| model(&at.to_string()))}),
            "spec.models",
            "more than 256",
        ),
        (
            "no effort",
            json!({"models": [{"ref": "a/b", "efforts": []}]}),
            "spec.models[0].efforts",
            "has 0 entries",
        ),
        (
            "9 efforts",
            json!({"models": [model("a"), {"ref": "a/b", "efforts": many(9, |_| json!("low"))}]}),
            "spec.models[1].efforts",
            "has 9 entries, allowed are 1 to 8",
        ),
        (
            "9 capabilities",
            json!({"models": [{"ref": "a/b", "capabilities": many(9, |_| json!("tools"))}]}),
            "spec.models[0].capabilities",
            "has 9 entries",
        ),
        (
            "65 providers",
            json!({"providers": many(65, word)}),
            "spec.providers",
            "more than 64",
        ),
        (
            "129 rules",
            json!({"rules": many(129, |at| rule(&format!("r{at}")))}),
            "spec.rules",
            "more than 128",
        ),
        (
            "no pattern",
            json!({"rules": [{"id": "r", "patterns": []}]}),
            "spec.rules[0].patterns",
            "has 0 entries, allowed are 1 to 32",
        ),
        (
            "33 patterns",
            json!({"rules": [rule("a"), {"id": "r", "patterns": many(33, word)}]}),
            "spec.rules[1].patterns",
            "has 33 entries",
        ),
        (
            "33 exceptions",
            json!({"rules": [{"id": "r", "patterns": ["x"], "unless": many(33, word)}]}),
            "spec.rules[0].unless",
            "has 33 entries, allowed are 0 to 32",
        ),
        (
            "33 languages",
            json!({"rules": [{"id": "r", "patterns": ["x"], "languages": many(33, word)}]}),
            "spec.rules[0].languages",
            "has 33 entries",
        ),
        (
            "17 disabled rules",
            json!({"disabledRules": many(17, word)}),
            "spec.disabledRules",
            "more than 16",
        ),
        (
            "129 groups",
            json!({"keywords": many(129, |at| json!({"id": format!("g{at}")}))}),
            "spec.keywords",
            "more than 128",
        ),
        (
            "257 words",
            json!({"keywords": [{"id": "topic.auth", "any": many(257, word)}]}),
            "spec.keywords[0].any",
            "has 257 entries, allowed are 0 to 256",
        ),
        (
            "257 exceptions of a group",
            json!({"keywords": [{"id": "topic.auth", "unless": many(257, word)}]}),
            "spec.keywords[0].unless",
            "has 257",
        ),
        (
            "257 removals",
            json!({"keywords": [{"id": "topic.auth", "remove": many(257, word)}]}),
            "spec.keywords[0].remove",
            "has 257",
        ),
        (
            "65 quotas",
            json!({"quota": many(65, |at| json!({"provider": format!("p{at}")}))}),
            "spec.quota",
            "more than 64",
        ),
    ]);
}

#[test]
fn the_bounds_themselves_are_let_through() {
    let word = |at| json!(format!("word{at}"));
    for (name, spec) in [
        (
            "profiles",
            json!({"profiles": many(8, |at| profile(&format!("p{at}")))}),
        ),
        (
            "models of a tier",
            json!({"tiers": [{"name": "fast", "models": many(32, |at| json!(format!("a/{at}")))}]}),
        ),
        (
            "models",
            json!({"models": many(256, |at| model(&at.to_string()))}),
        ),
        (
            "a model reference",
            json!({"models": [{"ref": format!("a/{}", text(158))}]}),
        ),
        (
            "efforts",
            json!({"models": [{"ref": "a/b", "efforts": ["minimal", "low", "medium", "high", "extra_high", "low", "low", "low"]}]}),
        ),
        (
            "no capability",
            json!({"models": [{"ref": "a/b", "capabilities": []}]}),
        ),
        ("source of a price", prices(&json!({"source": text(128)}))),
        ("providers", json!({"providers": many(64, word)})),
        (
            "rules",
            json!({"rules": many(128, |at| rule(&format!("r{at}")))}),
        ),
        (
            "patterns",
            json!({"rules": [{"id": "r", "patterns": many(32, word), "unless": many(32, word)}]}),
        ),
        (
            "a pattern, in characters",
            json!({"rules": [{"id": text(128), "patterns": ["é".repeat(256)], "note": text(1024)}]}),
        ),
        ("disabled rules", json!({"disabledRules": many(16, word)})),
        (
            "groups",
            json!({"keywords": many(128, |at| json!({"id": format!("g{at}")}))}),
        ),
        (
            "words",
            json!({"keywords": [{"id": "topic.auth", "any": many(256, word), "unless": many(256, word), "remove": many(256, word)}]}),
        ),
        (
            "quotas",
            json!({"quota": many(64, |at| json!({"provider": format!("p{at}")}))}),
        ),
        (
            "all tiers",
            json!({"tiers": [
                {"name": "fast", "models": ["a/1"]}, {"name": "balanced", "models": ["a/2"]},
                {"name": "strong", "models": ["a/3"]}, {"name": "frontier", "models": ["a/4"]},
            ]}),
        ),
        ("nothing", json!({})),
    ] {
        let read = read(&document(&spec));
        assert!(read.is_ok(), "{name}: {read:?}");
    }
}

#[test]
fn keys_of_lists_are_there_once() {
    check(vec![
        (
            "profile",
            json!({"profiles": [profile("own"), profile("own")]}),
            "spec.profiles[1]",
            "`own` stands in the list twice",
        ),
        (
            "tier",
            json!({"tiers": [{"name": "fast", "models": ["a/b"]}, {"name": "fast", "models": ["a/c"]}]}),
            "spec.tiers[1]",
            "twice",
        ),
        (
            "model",
            json!({"models": [model("a"), model("b"), model("a")]}),
            "spec.models[2]",
            "`acme/a` stands",
        ),
        (
            "provider",
            json!({"providers": ["a", "a"]}),
            "spec.providers[1]",
            "twice",
        ),
        (
            "rule",
            json!({"rules": [rule("r"), rule("r")]}),
            "spec.rules[1]",
            "twice",
        ),
        (
            "disabled rule",
            json!({"disabledRules": ["authentication", "authentication"]}),
            "spec.disabledRules[1]",
            "twice",
        ),
        (
            "group",
            json!({"keywords": [{"id": "topic.auth"}, {"id": "topic.auth"}]}),
            "spec.keywords[1]",
            "twice",
        ),
        (
            "quota",
            json!({"quota": [{"provider": "a"}, {"provider": "a"}]}),
            "spec.quota[1]",
            "twice",
        ),
        (
            "blank profile",
            json!({"profiles": [profile(" ")]}),
            "spec.profiles[0]",
            "blank",
        ),
        (
            "blank provider",
            json!({"providers": ["a", ""]}),
            "spec.providers[1]",
            "blank",
        ),
        (
            "blank rule",
            json!({"rules": [rule("")]}),
            "spec.rules[0]",
            "blank",
        ),
        (
            "long rule",
            json!({"rules": [rule(&text(129))]}),
            "spec.rules[0]",
            "a key of 129 characters",
        ),
        (
            "long provider",
            json!({"quota": [{"provider": text(129)}]}),
            "spec.quota[0]",
            "a key of 129 characters",
        ),
    ]);
}

#[test]
fn strings_have_bounds_and_forms() {
    let pattern = |pattern: String| json!({"rules": [{"id": "r", "patterns": ["ok", pattern]}]});
    check(vec![
        (
            "empty pattern",
            pattern(String::new()),
            "spec.rules[0].patterns[1]",
            "has 0 characters, allowed are 1 to 256",
        ),
        (
            "long pattern",
            pattern(text(257)),
            "spec.rules[0].patterns[1]",
            "has 257 characters",
        ),
        (
            "long exception",
            json!({"rules": [{"id": "r", "patterns": ["x"], "unless": [text(257)]}]}),
            "spec.rules[0].unless[0]",
            "has 257",
        ),
        (
            "long language",
            json!({"rules": [{"id": "r", "patterns": ["x"], "languages": [text(33)]}]}),
            "spec.rules[0].languages[0]",
            "has 33",
        ),
        (
            "long note",
            json!({"rules": [{"id": "r", "patterns": ["x"], "note": text(1025)}]}),
            "spec.rules[0].note",
            "has 1025",
        ),
        (
            "long profile",
            json!({"profile": text(129)}),
            "spec.profile",
            "has 129 characters, allowed are 1 to 128",
        ),
        (
            "empty profile",
            json!({"profile": ""}),
            "spec.profile",
            "has 0 characters",
        ),
        (
            "long word",
            json!({"keywords": [{"id": "topic.auth", "any": [text(257)]}]}),
            "spec.keywords[0].any[0]",
            "has 257",
        ),
        (
            "long source",
            prices(&json!({"source": text(129)})),
            "spec.models[0].prices.source",
            "has 129",
        ),
        (
            "long reference",
            json!({"tiers": [{"name": "fast", "models": [format!("a/{}", text(159))]}]}),
            "spec.tiers[0].models[0]",
            "limit 160",
        ),
        (
            "no reference",
            json!({"models": [{"ref": "opus"}]}),
            "spec.models[0].ref",
            "expected `provider/model`",
        ),
        (
            "no baseline",
            json!({"baseline": "opus"}),
            "spec.baseline",
            "expected `provider/model`",
        ),
        (
            "unknown tier",
            json!({"tiers": [{"name": "huge", "models": ["a/b"]}]}),
            "spec.tiers[0].name",
            "huge",
        ),
        (
            "unknown effort",
            json!({"models": [{"ref": "a/b", "efforts": ["low", "max"]}]}),
            "spec.models[0].efforts[1]",
            "max",
        ),
        (
            "unknown capability",
            json!({"models": [{"ref": "a/b", "capabilities": ["fly"]}]}),
            "spec.models[0].capabilities[0]",
            "fly",
        ),
        (
            "unknown floor",
            json!({"rules": [{"id": "r", "patterns": ["x"], "floor": {"tier": "Strong"}}]}),
            "spec.rules[0].floor.tier",
            "Strong",
        ),
        (
            "enums are Pascal case",
            json!({"toolRouting": "enforce"}),
            "spec.toolRouting",
            "expected `Advise` or `Enforce`",
        ),
        (
            "cost basis",
            json!({"costBasis": "Money"}),
            "spec.costBasis",
            "expected `Tiers` or `Prices`",
        ),
        (
            "floor unmet",
            json!({"onFloorUnmet": "Panic"}),
            "spec.onFloorUnmet",
            "expected `Strongest` or `Refuse`",
        ),
        (
            "request text",
            json!({"privacy": {"requestText": "full"}}),
            "spec.privacy.requestText",
            "`Full`",
        ),
        (
            "server name",
            json!({"serverRef": {"name": "Main"}}),
            "spec.serverRef.name",
            "1 to 40 characters",
        ),
        (
            "empty server name",
            json!({"serverRef": {"name": ""}}),
            "spec.serverRef.name",
            "1 to 40 characters",
        ),
        (
            "no date",
            prices(&json!({"asOf": "yesterday"})),
            "spec.models[0].prices.asOf",
            "no date like 2026-11-30",
        ),
        (
            "no such day",
            prices(&json!({"asOf": "2026-02-30"})),
            "spec.models[0].prices.asOf",
            "no date",
        ),
        (
            "another form of date",
            prices(&json!({"asOf": "20261130"})),
            "spec.models[0].prices.asOf",
            "no date",
        ),
        (
            "a time",
            prices(&json!({"asOf": "2026-11-30T10:00:00Z"})),
            "spec.models[0].prices.asOf",
            "no date",
        ),
    ]);
}

#[test]
fn numbers_are_strings_of_the_given_form() {
    let quality = |value: Value| {
        let mut own = profile("own");
        own["quality"] = value;
        json!({"profiles": [own]})
    };
    check(vec![
        (
            "a float",
            quality(json!(0.5)),
            "spec.profiles[0].quality",
            "expected a string",
        ),
        (
            "an integer",
            json!({"exploration": 0}),
            "spec.exploration",
            "expected a string",
        ),
        (
            "more than 1",
            quality(json!("1.1")),
            "spec.profiles[0].quality",
            "between \"0\" and \"1\"",
        ),
        (
            "negative",
            json!({"thresholds": {"highRisk": "-0.1"}}),
            "spec.thresholds.highRisk",
            "between",
        ),
        (
            "seven places",
            json!({"thresholds": {"minConfidence": "0.1234567"}}),
            "spec.thresholds.minConfidence",
            "six places",
        ),
        (
            "leading zero",
            json!({"thresholds": {"memorySimilarity": "00.5"}}),
            "spec.thresholds.memorySimilarity",
            "between",
        ),
        (
            "no digit behind the point",
            json!({"thresholds": {"memoryLesson": "0."}}),
            "spec.thresholds.memoryLesson",
            "between",
        ),
        (
            "exponent",
            json!({"quota": [{"provider": "a", "share": "1e-1"}]}),
            "spec.quota[0].share",
            "between",
        ),
        (
            "not a number",
            json!({"exploration": "NaN"}),
            "spec.exploration",
            "between",
        ),
        (
            "ten digits",
            prices(&json!({"input": "1234567890"})),
            "spec.models[0].prices.input",
            "at most nine digits",
        ),
        (
            "negative price",
            prices(&json!({"output": "-1"})),
            "spec.models[0].prices.output",
            "nine digits",
        ),
        (
            "a price as number",
            prices(&json!({"cacheWrite": 1.5})),
            "spec.models[0].prices.cacheWrite",
            "expected a string",
        ),
        (
            "budget",
            json!({"quota": [{"provider": "a", "budgetPerDay": "1,5"}]}),
            "spec.quota[0].budgetPerDay",
            "nine digits",
        ),
        (
            "window",
            json!({"models": [{"ref": "a/b", "contextWindow": -1}]}),
            "spec.models[0].contextWindow",
            "-1",
        ),
        (
            "window as text",
            json!({"models": [{"ref": "a/b", "contextWindow": "1"}]}),
            "spec.models[0].contextWindow",
            "string",
        ),
        (
            "a float for a count",
            json!({"escalateAfterFailures": 2.5}),
            "spec.escalateAfterFailures",
            "2.5",
        ),
        (
            "a negative count",
            json!({"privacy": {"retentionDays": -1}}),
            "spec.privacy.retentionDays",
            "-1",
        ),
        (
            "a text for a switch",
            json!({"memory": "yes"}),
            "spec.memory",
            "boolean",
        ),
    ]);
}

#[test]
fn unknown_and_missing_fields_are_named_where_they_are() {
    for (name, document, path, told) in [
        (
            "top",
            json!({"apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "metadata": {"name": "a"}, "specs": {}}),
            "specs",
            "unknown field `specs`",
        ),
        (
            "metadata",
            json!({"apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "metadata": {"name": "a", "title": "x"}}),
            "metadata.title",
            "unknown field `title`",
        ),
        (
            "other version",
            json!({"apiVersion": "relay.dev/v1", "kind": "RoutingPolicy", "metadata": {"name": "a"}}),
            "apiVersion",
            "must be `relay.dev/v1alpha1`",
        ),
        (
            "other kind",
            json!({"apiVersion": "relay.dev/v1alpha1", "kind": "LayaServer", "metadata": {"name": "a"}}),
            "kind",
            "must be `RoutingPolicy`",
        ),
        (
            "upper case name",
            json!({"apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "metadata": {"name": "Team"}}),
            "metadata.name",
            "1 to 40",
        ),
        (
            "long name",
            json!({"apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "metadata": {"name": text(41)}}),
            "metadata.name",
            "1 to 40",
        ),
        (
            "name ends with -",
            json!({"apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "metadata": {"name": "a-"}}),
            "metadata.name",
            "not end with",
        ),
        (
            "name begins with a digit",
            json!({"apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "metadata": {"name": "1a"}}),
            "metadata.name",
            "start with a letter",
        ),
        (
            "no name",
            json!({"apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy", "metadata": {}}),
            "metadata.name",
            "missing field `name`",
        ),
        (
            "no metadata",
            json!({"apiVersion": "relay.dev/v1alpha1", "kind": "RoutingPolicy"}),
            "metadata",
            "missing field `metadata`",
        ),
        (
            "spec",
            document(&json!({"model": []})),
            "spec.model",
            "unknown field `model`",
        ),
        (
            "snake case",
            document(&json!({"tool_routing": "Advise"})),
            "spec.tool_routing",
            "unknown field",
        ),
        (
            "in a rule",
            document(
                &json!({"rules": [rule("a"), {"id": "b", "patterns": ["x"], "pattern": "y"}]}),
            ),
            "spec.rules[1].pattern",
            "unknown field `pattern`",
        ),
        (
            "in a floor",
            document(
                &json!({"rules": [{"id": "b", "patterns": ["x"], "floor": {"model": "a/b"}}]}),
            ),
            "spec.rules[0].floor.model",
            "unknown field `model`",
        ),
        (
            "in a profile",
            document(&json!({"profiles": [{"name": "own", "speed": "1"}]})),
            "spec.profiles[0].speed",
            "unknown field `speed`",
        ),
        (
            "in thresholds",
            document(&json!({"thresholds": {"confidence": "1"}})),
            "spec.thresholds.confidence",
            "unknown field",
        ),
        (
            "in prices",
            document(&prices(&json!({"currency": "EUR"}))),
            "spec.models[0].prices.currency",
            "unknown field `currency`",
        ),
        (
            "missing in a profile",
            document(&json!({"profiles": [{"name": "own"}]})),
            "spec.profiles[0].quality",
            "missing field `quality`",
        ),
        (
            "missing in prices",
            document(&json!({"models": [{"ref": "a/b", "prices": {"input": "1"}}]})),
            "spec.models[0].prices.output",
            "missing field `output`",
        ),
        (
            "pattern of another type",
            document(&json!({"rules": [{"id": "r", "patterns": ["x", 5]}]})),
            "spec.rules[0].patterns[1]",
            "expected a string",
        ),
        (
            "a list for the spec",
            document(&json!([])),
            "spec",
            "invalid type: sequence, expected an object",
        ),
        (
            "a list for a rule",
            document(&json!({"rules": [["id", ["x"]]]})),
            "spec.rules[0]",
            "invalid type: sequence",
        ),
        (
            "a list for thresholds",
            document(&json!({"thresholds": ["0.9"]})),
            "spec.thresholds",
            "invalid type: sequence",
        ),
        (
            "a list for prices",
            document(
                &json!({"models": [{"ref": "a/b", "prices": ["1", "1", "1", "1", "2026-11-01", "s"]}]}),
            ),
            "spec.models[0].prices",
            "invalid type: sequence",
        ),
        (
            "nothing for the spec",
            document(&Value::Null),
            "spec",
            "invalid type: null, expected an object",
        ),
        (
            "an object for a list",
            document(&json!({"rules": {"id": "r"}})),
            "spec.rules",
            "expected a sequence",
        ),
    ] {
        refused(name, &document, path, told);
    }
}

/// What `kubectl get -o yaml` prints is read: a policy moves from a cluster to a file as it is.
#[test]
fn what_a_server_adds_to_metadata_is_let_through() {
    let text = "\
apiVersion: relay.dev/v1alpha1
kind: RoutingPolicy
metadata:
  name: team
  namespace: relay
  generateName: te
  selfLink: /x
  uid: 0f1d
  resourceVersion: \"12\"
  generation: 3
  creationTimestamp: \"2026-11-30T10:00:00Z\"
  deletionTimestamp: \"2026-11-30T10:00:00Z\"
  deletionGracePeriodSeconds: 0
  labels: {team: payments}
  annotations: {a: b}
  finalizers: [x]
  ownerReferences: [{kind: Deployment, name: x}]
  managedFields: [{manager: kubectl, fieldsV1: {}}]
spec: {profile: quality}
status: {conditions: []}
";
    let policy = RoutingPolicy::read(text).unwrap();
    assert_eq!(policy.spec.profile, "quality");
}
