//! The settings `laya.*` of a client (routing.md 20): parsed from the `laya` object of its settings files, every value
//! checked, unknown keys told. Reading files, trust and environment belong to the client.

mod address;
mod read;

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use decision::vocabulary::Tier;
use serde_json::{Map, Value};

use crate::registry::ModelRef;
use crate::tool_routing::ToolRouting;
use read::Reader;

pub use address::{BadAddress, origin};

/// Where clients find the router when nothing says otherwise.
pub const DEFAULT_BASE_URL: &str = "http://127.0.0.1:8737/v1";

/// Most models a tier may list (control-plane.md 6).
const MOST_MODELS: usize = 32;

/// What the user set. What is `None` is left to the policy.
#[derive(Debug, Clone, PartialEq)]
pub struct LayaSettings {
    /// `baseUrl`: the address as written, with or without `/v1`.
    pub base_url: Option<String>,
    /// The file that says `baseUrl`: an address from a project must not be given a stored key.
    pub base_url_layer: Layer,
    /// `policy`: name of the profile; default `balanced`. A router may know more names than the four built-in ones.
    pub profile: Option<String>,
    /// `models`: per tier the references that replace it, in order.
    pub tiers: BTreeMap<Tier, Vec<ModelRef>>,
    /// `quota`: share left per provider, 0..=1; a provider not listed has 1.
    pub quota: BTreeMap<String, f64>,
    /// `minConfidence`, 0..=1; the policy's when absent.
    pub min_confidence: Option<f64>,
    /// `escalateAfterFailures`, 0..=20; the policy's when absent.
    pub escalate_after_failures: Option<u32>,
    /// `exploration`, probability 0..=1; the policy's when absent.
    pub exploration: Option<f64>,
    /// `switchPrice`: whether a change of model in a conversation has a price; the policy's when absent.
    pub switch_price: Option<bool>,
    /// `toolRouting`; the policy's when absent.
    pub tool_routing: Option<ToolRouting>,
    /// `autostart`: whether interactive clients start the services; default true.
    pub autostart: bool,
    /// `image`: read by `relayctl` only.
    pub image: Option<String>,
    /// `telemetry`: whether outcomes are stored; the policy's when absent.
    pub telemetry: Option<bool>,
    /// `telemetryFile`: whether they are written to `telemetry.jsonl` too; default false.
    pub telemetry_file: bool,
    /// `memory`: whether learned tasks answer; the policy's when absent.
    pub memory: Option<bool>,
    /// `timeoutMs`, 100..=60 000; default 5000.
    pub timeout_millis: u32,
    /// `keywords`: path of an extra keyword file.
    pub keywords: Option<String>,
    /// `baseline`: reference whose cost savings are measured against.
    pub baseline: Option<ModelRef>,
    /// Keys that are not understood; the file is shared with other programs, so they are told and not refused.
    pub unknown: Vec<Problem>,
}

impl Default for LayaSettings {
    fn default() -> Self {
        Self {
            base_url: None,
            base_url_layer: Layer::Global,
            profile: None,
            tiers: BTreeMap::new(),
            quota: BTreeMap::new(),
            min_confidence: None,
            escalate_after_failures: None,
            exploration: None,
            switch_price: None,
            tool_routing: None,
            autostart: true,
            image: None,
            telemetry: None,
            telemetry_file: false,
            memory: None,
            timeout_millis: 5000,
            keywords: None,
            baseline: None,
            unknown: Vec::new(),
        }
    }
}

/// Which settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// The user's own.
    Global,
    /// The project's, which counts only where the project is trusted. What it names is not given stored keys.
    Project,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Global => "global settings",
            Self::Project => "project settings",
        })
    }
}

/// One value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file it is in.
    pub layer: Layer,
    /// Where, for example `laya.quota.anthropic` or `laya.models.fast[1]`.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Settings that cannot be used, with every problem there is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid settings: {}", shown(.problems))]
pub struct SettingsError {
    /// At least one, in the order of files and keys.
    pub problems: Vec<Problem>,
}

fn shown(problems: &[Problem]) -> String {
    let lines = problems
        .iter()
        .map(|problem| format!("{}: {} ({})", problem.path, problem.message, problem.layer));
    lines.collect::<Vec<_>>().join("; ")
}

impl LayaSettings {
    /// Settings of the user's `laya` object alone.
    ///
    /// # Errors
    /// When it has an unknown key, or a value of the wrong type or range.
    pub fn parse(global: &Value) -> Result<Self, SettingsError> {
        Self::from_layers(Some(global), None)
    }

    /// Settings of the user's and the project's `laya` objects: objects merge deeply, the project wins. Pass the
    /// project's only when the project is trusted.
    ///
    /// # Errors
    /// When either object has a value of the wrong type or range.
    pub fn from_layers(
        global: Option<&Value>,
        project: Option<&Value>,
    ) -> Result<Self, SettingsError> {
        let layers = [(Layer::Global, global), (Layer::Project, project)];
        let mut settings = Self::default();
        let mut problems = Vec::new();
        for (layer, value) in layers {
            if let Some(value) = value {
                let mut reader = Reader::new(layer);
                settings.apply(&mut reader, value);
                problems.append(&mut reader.problems);
                settings.unknown.append(&mut reader.unknown);
            }
        }
        if problems.is_empty() {
            Ok(settings)
        } else {
            Err(SettingsError { problems })
        }
    }

    /// The address of the router and the layer that named it, if a file did: the setting, else `LAYA_BASE_URL`, else
    /// the `router` of `endpoint.json` when its process lives, else the default.
    #[must_use]
    pub fn address<'a>(
        &'a self,
        environment: Option<&'a str>,
        endpoint: Option<&'a str>,
    ) -> (&'a str, Option<Layer>) {
        if let Some(url) = &self.base_url {
            return (url, Some(self.base_url_layer));
        }
        let known = [environment, endpoint]
            .into_iter()
            .flatten()
            .map(str::trim)
            .find(|url| !url.is_empty());
        (known.unwrap_or(DEFAULT_BASE_URL), None)
    }

    /// Puts the values of one file over what is there.
    fn apply(&mut self, reader: &mut Reader, value: &Value) {
        let layer = reader.layer;
        reader.object("laya", value, KEYS, |reader, key, path, value| match key {
            "baseUrl" => {
                if let Some(url) = reader.url(path, value) {
                    (self.base_url, self.base_url_layer) = (Some(url), layer);
                }
            }
            "policy" => set_some(&mut self.profile, reader.name(path, value)),
            "models" => self.apply_models(reader, path, value),
            "quota" => self.apply_quota(reader, path, value),
            "minConfidence" => set_some(&mut self.min_confidence, reader.share(path, value)),
            "escalateAfterFailures" => set_some(
                &mut self.escalate_after_failures,
                reader.integer(path, value, 0..=20),
            ),
            "exploration" => set_some(&mut self.exploration, reader.share(path, value)),
            "switchPrice" => set_some(&mut self.switch_price, reader.boolean(path, value)),
            "toolRouting" => set_some(&mut self.tool_routing, reader.tool_routing(path, value)),
            "autostart" => set(&mut self.autostart, reader.boolean(path, value)),
            "image" => set_some(&mut self.image, reader.text(path, value)),
            "telemetry" => set_some(&mut self.telemetry, reader.boolean(path, value)),
            "telemetryFile" => set(&mut self.telemetry_file, reader.boolean(path, value)),
            "memory" => set_some(&mut self.memory, reader.boolean(path, value)),
            "timeoutMs" => set(
                &mut self.timeout_millis,
                reader.integer(path, value, 100..=60_000),
            ),
            "keywords" => set_some(&mut self.keywords, reader.text(path, value)),
            "baseline" => set_some(&mut self.baseline, reader.model(path, value)),
            _ => {}
        });
    }

    /// Each tier that is named is replaced whole.
    fn apply_models(&mut self, reader: &mut Reader, path: &str, value: &Value) {
        let tiers: Vec<&str> = Tier::ALL.iter().map(|tier| tier.as_str()).collect();
        let mut named = HashSet::new();
        reader.object(path, value, &tiers, |reader, key, path, value| {
            let models = reader.models(path, value, MOST_MODELS);
            for (at, model) in models.iter().flatten().enumerate() {
                if !named.insert(model.clone()) {
                    let message = format!("`{model}` is listed twice; a model has one tier");
                    reader.problem(&format!("{path}[{at}]"), message);
                }
            }
            if let (Ok(tier), Some(models)) = (key.parse(), models) {
                self.tiers.insert(tier, models);
            }
        });
    }

    fn apply_quota(&mut self, reader: &mut Reader, path: &str, value: &Value) {
        reader.map(path, value, |reader, provider, path, value| {
            if let Some(share) = reader.share(path, value) {
                self.quota.insert(provider.to_owned(), share);
            }
        });
    }
}

/// Every key, for suggestions.
const KEYS: &[&str] = &[
    "baseUrl",
    "policy",
    "models",
    "quota",
    "minConfidence",
    "escalateAfterFailures",
    "exploration",
    "switchPrice",
    "toolRouting",
    "autostart",
    "image",
    "telemetry",
    "telemetryFile",
    "memory",
    "timeoutMs",
    "keywords",
    "baseline",
];

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn set_some<T>(field: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *field = value;
    }
}

/// Two settings objects as one: objects merge deeply, everything else of `over` replaces what `under` has.
#[must_use]
pub fn merge(under: Value, over: Value) -> Value {
    match (under, over) {
        (Value::Object(mut under), Value::Object(over)) => {
            merge_into(&mut under, over);
            Value::Object(under)
        }
        (_, over) => over,
    }
}

fn merge_into(under: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, value) in over {
        let merged = match under.remove(&key) {
            Some(before) => merge(before, value),
            None => value,
        };
        under.insert(key, merged);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn model(text: &str) -> ModelRef {
        ModelRef::parse(text).unwrap()
    }

    fn problem(value: &Value) -> (String, String) {
        let error = LayaSettings::parse(value).unwrap_err();
        assert_eq!(error.problems.len(), 1, "{value}: {error}");
        (
            error.problems[0].path.clone(),
            error.problems[0].message.clone(),
        )
    }

    #[test]
    fn every_key_has_its_documented_default() {
        let settings = LayaSettings::from_layers(None, None).unwrap();
        assert_eq!(settings, LayaSettings::default());
        assert_eq!(
            LayaSettings::from_layers(Some(&json!({})), Some(&json!({}))).unwrap(),
            settings
        );
        assert_eq!(
            (
                settings.min_confidence,
                settings.escalate_after_failures,
                settings.exploration
            ),
            (None, None, None)
        );
        assert!(settings.autostart && settings.unknown.is_empty());
        assert!(!settings.telemetry_file);
        assert_eq!(
            (settings.timeout_millis, settings.tool_routing),
            (5000, None)
        );
        assert_eq!(
            settings.address(None, None),
            ("http://127.0.0.1:8737/v1", None)
        );
    }

    #[test]
    fn reads_every_key() {
        let value = json!({
            "baseUrl": "https://router.example:8443", "policy": "economy",
            "models": {"fast": ["openai-codex/gpt-6-luna", "local/a/b"]}, "quota": {"anthropic": 0.8, "openai-codex": 0},
            "minConfidence": 0.7, "escalateAfterFailures": 0, "exploration": 0, "switchPrice": false,
            "toolRouting": "enforce", "autostart": false, "image": "mine:1", "telemetry": false, "telemetryFile": true,
            "memory": false, "timeoutMs": 100, "keywords": "words.toml", "baseline": "anthropic/claude-opus-5-5",
        });
        assert_eq!(value.as_object().unwrap().len(), KEYS.len());
        let settings = LayaSettings::parse(&value).unwrap();
        let expected = LayaSettings {
            base_url: Some("https://router.example:8443".into()),
            base_url_layer: Layer::Global,
            profile: Some("economy".into()),
            tiers: [(
                Tier::Fast,
                vec![model("openai-codex/gpt-6-luna"), model("local/a/b")],
            )]
            .into(),
            quota: [("anthropic".into(), 0.8), ("openai-codex".into(), 0.0)].into(),
            min_confidence: Some(0.7),
            escalate_after_failures: Some(0),
            exploration: Some(0.0),
            switch_price: Some(false),
            tool_routing: Some(ToolRouting::Enforce),
            autostart: false,
            image: Some("mine:1".into()),
            telemetry: Some(false),
            telemetry_file: true,
            memory: Some(false),
            timeout_millis: 100,
            keywords: Some("words.toml".into()),
            baseline: Some(model("anthropic/claude-opus-5-5")),
            unknown: Vec::new(),
        };
        assert_eq!(settings, expected);
    }

    #[test]
    fn names_the_path_of_a_wrong_value() {
        let rows = [
            (json!([]), "laya", "expected an object, got a list"),
            (
                json!({"quota": {"anthropic": -1}}),
                "laya.quota.anthropic",
                "expected a number from 0 to 1, got -1",
            ),
            (
                json!({"quota": {"anthropic": "0.8"}}),
                "laya.quota.anthropic",
                "expected a number from 0 to 1, got a string",
            ),
            (
                json!({"quota": {" ": 1}}),
                "laya.quota. ",
                "a provider name may not be blank",
            ),
            (
                json!({"quota": 1}),
                "laya.quota",
                "expected an object, got a number",
            ),
            (
                json!({"minConfidence": 1.01}),
                "laya.minConfidence",
                "expected a number from 0 to 1, got 1.01",
            ),
            (
                json!({"minConfidence": null}),
                "laya.minConfidence",
                "expected a number from 0 to 1, got null",
            ),
            (
                json!({"escalateAfterFailures": 21}),
                "laya.escalateAfterFailures",
                "expected a whole number from 0 to 20, got 21",
            ),
            (
                json!({"escalateAfterFailures": 2.5}),
                "laya.escalateAfterFailures",
                "expected a whole number from 0 to 20, got 2.5",
            ),
            (
                json!({"timeoutMs": 99}),
                "laya.timeoutMs",
                "expected a whole number from 100 to 60000, got 99",
            ),
            (
                json!({"timeoutMs": 1e99}),
                "laya.timeoutMs",
                "expected a whole number from 100 to 60000, got 1e+99",
            ),
            (
                json!({"memory": "yes"}),
                "laya.memory",
                "expected true or false, got a string",
            ),
            (
                json!({"toolRouting": "enforced"}),
                "laya.toolRouting",
                "expected advise or enforce, got `enforced`",
            ),
            (
                json!({"toolRouting": true}),
                "laya.toolRouting",
                "expected advise or enforce, got a boolean",
            ),
            (
                json!({"policy": ""}),
                "laya.policy",
                "expected the name of a profile: lower-case letters, digits and `-`, at most 63, got ``",
            ),
            (
                json!({"policy": 3}),
                "laya.policy",
                "expected the name of a profile, got a number",
            ),
            (
                json!({"models": {"fast": ["a/b", "a/b"]}}),
                "laya.models.fast[1]",
                "`a/b` is listed twice; a model has one tier",
            ),
            (
                json!({"models": {"fast": ["a/b"], "strong": ["a/c", "a/b"]}}),
                "laya.models.strong[1]",
                "`a/b` is listed twice; a model has one tier",
            ),
            (
                json!({"baseUrl": "https://me:secret@router.example"}),
                "laya.baseUrl",
                "must not hold a user name or a password",
            ),
            (
                json!({"baseUrl": "me:secret@router.example"}),
                "laya.baseUrl",
                "must begin with http:// or https://",
            ),
            (
                json!({"baseUrl": "127.0.0.1:8737"}),
                "laya.baseUrl",
                "expected an address that begins with http:// or https://, got `127.0.0.1:8737`",
            ),
            (
                json!({"models": {"fast": []}}),
                "laya.models.fast",
                "expected 1 to 32 models, got 0",
            ),
            (
                json!({"models": {"fast": "a/b"}}),
                "laya.models.fast",
                "expected a list of models, got a string",
            ),
            (
                json!({"models": {"fast": ["a/b", "/b"]}}),
                "laya.models.fast[1]",
                "expected provider/model, got `/b`",
            ),
            (
                json!({"models": {"medium": ["a/b"]}}),
                "laya.models.medium",
                "unknown key; one of fast, balanced, strong, frontier",
            ),
            (
                json!({"models": {"string": ["a/b"]}}),
                "laya.models.string",
                "unknown key; did you mean `strong`?",
            ),
            (
                json!({"baseline": "opus"}),
                "laya.baseline",
                "expected provider/model, got `opus`",
            ),
            (
                json!({"keywords": " "}),
                "laya.keywords",
                "expected a text that is not blank, got ` `",
            ),
        ];
        for (value, path, message) in rows {
            assert_eq!(
                problem(&value),
                (path.to_owned(), message.to_owned()),
                "{value}"
            );
        }
    }

    #[test]
    fn tells_keys_that_are_not_understood() {
        let rows = [
            (
                json!({"minConfidense": 1}),
                "laya.minConfidense",
                "unknown key; did you mean `minConfidence`?",
            ),
            (
                json!({"min_confidence": 1}),
                "laya.min_confidence",
                "unknown key; did you mean `minConfidence`?",
            ),
            (
                json!({"timeout": 1}),
                "laya.timeout",
                "unknown key; did you mean `timeoutMs`?",
            ),
        ];
        for (value, path, message) in rows {
            let unknown = LayaSettings::from_layers(Some(&value), None)
                .unwrap()
                .unknown;
            let told: Vec<_> = unknown
                .iter()
                .map(|problem| (&*problem.path, &*problem.message))
                .collect();
            assert_eq!(told, [(path, message)], "{value}");
        }
    }

    #[test]
    fn reports_every_problem_with_its_file() {
        let error = LayaSettings::from_layers(
            Some(&json!({"memory": 1, "timeoutMs": 1})),
            Some(&json!({"quota": {"a": 2}})),
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid settings: laya.memory: expected true or false, got a number (global settings); \
             laya.timeoutMs: expected a whole number from 100 to 60000, got 1 (global settings); \
             laya.quota.a: expected a number from 0 to 1, got 2 (project settings)"
        );
    }

    #[test]
    fn merges_deeply_and_the_project_wins() {
        let global = json!({
            "baseUrl": "http://a", "memory": false, "quota": {"a": 0.5, "b": 0.5}, "models": {"fast": ["a/1", "a/2"], "strong": ["a/3"]},
        });
        let project = json!({"memory": true, "quota": {"b": 0.1}, "models": {"fast": ["b/1"]}});
        let settings = LayaSettings::from_layers(Some(&global), Some(&project)).unwrap();
        assert_eq!(settings.memory, Some(true));
        assert_eq!(
            settings.quota,
            [("a".into(), 0.5), ("b".into(), 0.1)].into()
        );
        assert_eq!(settings.tiers[&Tier::Fast], [model("b/1")], "lists replace");
        assert_eq!(settings.tiers[&Tier::Strong], [model("a/3")]);
        let merged = merge(global, project);
        assert_eq!(merged["quota"], json!({"a": 0.5, "b": 0.1}));
        assert_eq!(
            LayaSettings::parse(&merged).unwrap(),
            settings,
            "both ways are one"
        );
    }

    #[test]
    fn an_address_of_the_project_is_known_as_such() {
        let (global, project) = (
            json!({"baseUrl": "http://a/v1"}),
            json!({"baseUrl": "http://b"}),
        );
        let settings = |project| LayaSettings::from_layers(Some(&global), project).unwrap();
        assert_eq!(
            settings(Some(&project)).address(Some("http://env"), None),
            ("http://b", Some(Layer::Project))
        );
        assert_eq!(
            settings(None).address(Some("http://env"), None),
            ("http://a/v1", Some(Layer::Global))
        );
        let unset = LayaSettings::default();
        assert_eq!(
            unset.address(Some("http://env"), Some("http://endpoint")),
            ("http://env", None)
        );
        assert_eq!(
            unset.address(Some(" "), Some("http://endpoint")),
            ("http://endpoint", None)
        );
    }
}
