//! The closed list of variables that `laya serve` knows (wire.md 3), and where each value came from. Every variable but
//! the key has a flag of the same name, which wins.

use std::collections::BTreeMap;

use service::config::suggest;

/// One variable.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// `LAYA_…`
    pub name: &'static str,
    /// Whether it may stand in argv. A key may not.
    pub flag: Flag,
    /// What a value is called in help.
    pub value: &'static str,
    /// One line of help.
    pub help: &'static str,
}

/// What a variable's flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// A value.
    Value,
    /// A value, or nothing, which means 1.
    Switch,
    /// There is none.
    None,
}

impl Variable {
    /// The flag's long name, without dashes in front: `max-loaded`.
    #[must_use]
    pub fn flag_name(&self) -> String {
        self.name
            .trim_start_matches("LAYA_")
            .to_ascii_lowercase()
            .replace('_', "-")
    }
}

const fn value(name: &'static str, value: &'static str, help: &'static str) -> Variable {
    Variable {
        name,
        flag: Flag::Value,
        value,
        help,
    }
}

const fn switch(name: &'static str, help: &'static str) -> Variable {
    Variable {
        name,
        flag: Flag::Switch,
        value: "0|1",
        help,
    }
}

/// All of them, in the order of help.
pub const VARIABLES: &[Variable] = &[
    value(
        "LAYA_HOST",
        "ADDRESS",
        "Address to listen on [default: 127.0.0.1]",
    ),
    value("LAYA_PORT", "PORT", "Port to listen on [default: 8000]"),
    value(
        "LAYA_DEVICE",
        "DEVICE",
        "Device: auto, cpu or cuda [default: auto]",
    ),
    switch(
        "LAYA_PRELOAD",
        "Load at start; 0 loads on first use [default: 1]",
    ),
    value(
        "LAYA_MODELS",
        "NAMES",
        "Checkpoints to preload, separated by commas [default: all]",
    ),
    value(
        "LAYA_THREADS",
        "N",
        "Engine threads [default: the cores granted]",
    ),
    switch(
        "LAYA_AUTO_TASK",
        "Choose typed-decisions by the ids of the questions [default: 0]",
    ),
    value(
        "LAYA_DEFAULT_MODEL",
        "NAME",
        "Checkpoint when the language says nothing [default: multilingual]",
    ),
    value(
        "LAYA_MAX_LOADED",
        "N",
        "Checkpoints in memory at once [default: 2, or what is preloaded]",
    ),
    value(
        "LAYA_IDLE_UNLOAD_SECONDS",
        "SECONDS",
        "Unload after this much idleness; 0 never does [default: 0]",
    ),
    Variable {
        name: "LAYA_API_KEY",
        flag: Flag::None,
        value: "KEY",
        help: "Bearer token that clients must send",
    },
    value(
        "LAYA_ROOT_PATH",
        "PATH",
        "Prefix of the paths in /openapi.json",
    ),
    value(
        "LAYA_LOG_LEVEL",
        "LEVEL",
        "critical, error, warning, info, debug or trace [default: info]",
    ),
    value(
        "LAYA_MAX_CONCURRENT",
        "N",
        "Decision requests in the server at once [default: 16]",
    ),
    value(
        "LAYA_EXTRA_MODELS",
        "JSON",
        r#"More checkpoints: {name: "repo or dir" | ["repo", "folder"]}"#,
    ),
    value(
        "LAYA_MAX_TOKEN_BUDGET",
        "TOKENS",
        "Largest max_len a request may ask for [default: 8192]",
    ),
    value(
        "LAYA_MAX_BATCH_TOKENS",
        "TOKENS",
        "Most tokens of one pass [default: 131072]",
    ),
    value(
        "LAYA_BODY_READ_TIMEOUT",
        "SECONDS",
        "Time to receive a body [default: 10]",
    ),
    switch(
        "LAYA_JEV_STRICT",
        "Answer with the least fields [default: 0]",
    ),
    value(
        "LAYA_TOURNAMENT_GROUP",
        "N",
        "Narrow larger choices in groups of this size, 2 to 100; else off [default: 0]",
    ),
    value(
        "LAYA_REVISION",
        "REVISION",
        "Commit of the checkpoints in the local cache, or `reviewed`",
    ),
    value(
        "LAYA_SHA256_DIGESTS",
        "JSON",
        "Digests of files: {path: hex} or {name: {path: hex}}",
    ),
    value("LAYA_PRECISION", "PRECISION", "f32 or int8 [default: f32]"),
    value(
        "LAYA_PARITY",
        "PATH",
        "Parity report, or a folder of them; int8 needs one",
    ),
    switch(
        "LAYA_REQUIRE_VERIFIED",
        "Refuse checkpoints that nothing verifies [default: 0]",
    ),
    value(
        "LAYA_CONTRACT",
        "DIGEST",
        "Contract that every preloaded checkpoint must name",
    ),
    value(
        "LAYA_REQUEST_TIMEOUT",
        "SECONDS",
        "Longest time for a request [default: 60]",
    ),
    value(
        "LAYA_DRAIN_TIMEOUT",
        "SECONDS",
        "Longest time for open requests after a signal [default: 30]",
    ),
    value(
        "LAYA_BATCH_WINDOW_US",
        "MICROSECONDS",
        "Wait for more rows before a pass [default: 0]",
    ),
    value(
        "LAYA_ALLOWED_ORIGINS",
        "ORIGINS",
        "Browser origins that may call, separated by commas",
    ),
    switch(
        "LAYA_ALLOW_UNAUTHENTICATED",
        "Listen beyond loopback without a key [default: 0]",
    ),
    value(
        "LAYA_CALIBRATION",
        "JSON",
        "Calibration files: {name: file}",
    ),
    value(
        "LAYA_CPU_FEATURES",
        "LEVEL",
        "Cap on instruction sets: portable, avx2, avx512 or neon",
    ),
];

/// Read by other parts of the program, or by clients of it; not unknown, and not ours here.
const ELSEWHERE: [&str; 3] = ["LAYA_BASE_URL", "LAYA_REMOTE_TIMEOUT", "LAYA_CPU_AMP"];

/// A value and the name under which it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Not blank.
    pub value: String,
    /// `LAYA_PORT` or `--port`.
    pub name: String,
}

/// The values that were given, by variable.
#[derive(Debug, Clone, Default)]
pub struct Values(BTreeMap<&'static str, Given>);

impl Values {
    /// Flags, as (variable, value), over the environment. Blank means unset. The second part are lines to warn with:
    /// variables nobody knows.
    #[must_use]
    pub fn new(
        flags: impl IntoIterator<Item = (&'static str, String)>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> (Self, Vec<String>) {
        let mut values = BTreeMap::new();
        let mut warnings = Vec::new();
        for (name, value) in environment {
            if !name.starts_with("LAYA_") {
                continue;
            }
            let known = VARIABLES
                .iter()
                .map(|variable| variable.name)
                .chain(ELSEWHERE)
                .find(|known| *known == name);
            match known {
                Some(known) if !value.trim().is_empty() => {
                    values.insert(known, Given { value, name });
                }
                Some(_) => {}
                None => warnings.push(unknown(&name)),
            }
        }
        for (known, value) in flags {
            let variable = VARIABLES.iter().find(|variable| variable.name == known);
            if let Some(variable) = variable.filter(|_| !value.trim().is_empty()) {
                let name = format!("--{}", variable.flag_name());
                values.insert(known, Given { value, name });
            }
        }
        (Self(values), warnings)
    }

    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Given> {
        self.0.get(name)
    }
}

fn unknown(name: &str) -> String {
    if name.contains("_AMP") {
        return format!("{name} is ignored: precision is set by LAYA_PRECISION");
    }
    let known = VARIABLES.iter().map(|variable| variable.name);
    match suggest(name, known) {
        Some(close) => format!("unknown variable {name} is ignored; did you mean {close}?"),
        None => format!("unknown variable {name} is ignored"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn flags_win_and_blank_means_unset() {
        let environment = owned(&[
            ("LAYA_PORT", "1"),
            ("LAYA_HOST", "  "),
            ("LAYA_MODELS", "en"),
            ("PATH", "/bin"),
        ]);
        let (values, warnings) = Values::new([("LAYA_PORT", "2".to_owned())], environment);
        let given = |name| {
            values
                .get(name)
                .map(|given| (given.value.as_str(), given.name.as_str()))
        };
        assert_eq!(given("LAYA_PORT"), Some(("2", "--port")));
        assert_eq!(given("LAYA_HOST"), None);
        assert_eq!(given("LAYA_MODELS"), Some(("en", "LAYA_MODELS")));
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn what_nobody_knows_is_said() {
        let environment = owned(&[
            ("LAYA_PROT", "1"),
            ("LAYA_CUDA_AMP_DTYPE", "x"),
            ("LAYA_CPU_AMP", "bf16"),
            ("LAYA_BASE_URL", "http://x"),
        ]);
        let (_, warnings) = Values::new([], environment);
        assert_eq!(
            warnings,
            [
                "unknown variable LAYA_PROT is ignored; did you mean LAYA_PORT?",
                "LAYA_CUDA_AMP_DTYPE is ignored: precision is set by LAYA_PRECISION",
            ]
        );
    }

    #[test]
    fn a_key_has_no_flag() {
        let keyless = VARIABLES
            .iter()
            .filter(|variable| variable.flag == Flag::None);
        assert_eq!(
            keyless.map(|variable| variable.name).collect::<Vec<_>>(),
            ["LAYA_API_KEY"]
        );
    }
}
