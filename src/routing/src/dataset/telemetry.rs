//! `telemetry.jsonl`, one line per finished task (routing.md 19): read for the history that an older installation left,
//! written and exported for tools that know the format. Lines keep what we do not know of them.

use std::collections::HashSet;

use decision::json::{self, Object, Value};
use decision::vocabulary::{TaskType, Tier};
use jiff::Timestamp;

use super::evidence::Outcome;
use super::file::{RejectedLine, lines};
use super::row::MAX_LINE_BYTES;
use super::secrets::redact;
use crate::assessment::Source;
use crate::bounded::Ratio;
use crate::history::{Counts, HistoryKey, Observation, key};
use crate::record::Decision;
use crate::registry::ModelRef;
use crate::text;

/// Longest request in a line, in UTF-16 units.
const REQUEST_UNITS: usize = 2000;

/// One finished task.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryLine {
    line: String,
    /// Which task; a task is imported once.
    pub task_id: String,
    /// When it was finished.
    pub at: Timestamp,
    /// What was asked; may be empty.
    pub request: String,
    /// Its class in the history.
    pub class: HistoryKey,
    /// The selected model.
    pub model: ModelRef,
    /// Its tier.
    pub tier: Tier,
    /// As the line has it.
    pub success: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// What the last check said.
    pub tests_passed: Option<bool>,
}

/// Why a line is no finished task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Damage {
    #[error("the line has {0} bytes, limit {MAX_LINE_BYTES}")]
    TooLong(usize),
    #[error("no JSON: {0}")]
    Json(#[from] json::ReadError),
    #[error("expected an object")]
    NotAnObject,
    #[error("{path}: {message}")]
    Field { path: &'static str, message: String },
}

impl TelemetryLine {
    fn read(line: &str) -> Result<Self, Damage> {
        if line.len() > MAX_LINE_BYTES {
            return Err(Damage::TooLong(line.len()));
        }
        let Value::Object(object) = json::read(line.as_bytes())? else {
            return Err(Damage::NotAnObject);
        };
        let field = Fields(&object);
        let class = field.word::<TaskType>("classification.type")?;
        let complexity = field.required("classification.complexity", Value::as_f64, "a number")?;
        let complexity = Ratio::clamped(complexity)
            .map_err(|error| damage("classification.complexity", error.to_string()))?;
        let provider = field.text("selected.provider")?;
        let model = ModelRef::parse(&format!("{provider}/{}", field.text("selected.model")?))
            .map_err(|error| damage("selected.model", error.to_string()))?;
        let outcome = match field.text("result.outcome")? {
            "completed" => Outcome::Completed,
            "error" => Outcome::Error,
            "aborted" => Outcome::Aborted,
            other => {
                return Err(damage(
                    "result.outcome",
                    format!("unknown word `{other}`: expected one of completed, error, aborted"),
                ));
            }
        };
        Ok(Self {
            task_id: field.text("task_id")?.to_owned(),
            at: field.time()?,
            request: field
                .get("request")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            class: key(class, complexity),
            model,
            tier: field.word("selected.tier")?,
            success: field.required("result.success", Value::as_bool, "true or false")?,
            outcome,
            tests_passed: field.get("result.tests_passed").and_then(Value::as_bool),
            line: line.to_owned(),
        })
    }

    /// The line as it was read, without a line break.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }

    /// What it says about the selected model: nothing when the user stopped it; a success weighs 1 with passed checks and
    /// 0.5 without; a failure 1, and 0.5 after an error, as the line does not say whose fault that was.
    #[must_use]
    pub fn observation(&self) -> Option<Observation> {
        const HALF: Ratio = Ratio::constant(0.5);
        let (counts, weight) = match (self.outcome, self.success) {
            (Outcome::Aborted, _) => return None,
            (_, true) if self.tests_passed == Some(true) => (Counts::Success, Ratio::ONE),
            (_, true) => (Counts::Success, HALF),
            (Outcome::Error, false) => (Counts::Failure, HALF),
            (Outcome::Completed, false) => (Counts::Failure, Ratio::ONE),
        };
        Some(Observation {
            at: self.at,
            counts,
            weight,
        })
    }

    /// The row that `/laya export` writes for it: one for a successful task whose request is known.
    #[must_use]
    pub fn export_row(&self) -> Option<String> {
        if !self.success || self.request.trim().is_empty() {
            return None;
        }
        let request = redact(&self.request).into_owned();
        let row = Object::from_iter([
            (
                "state",
                Value::from(Object::from_iter([("request", request)])),
            ),
            (
                "expected",
                Object::from_iter([("capability_tier", self.tier.as_str())]).into(),
            ),
            ("source", "harness".into()),
        ]);
        Some(json::write(&row.into()))
    }
}

fn damage(path: &'static str, message: impl Into<String>) -> Damage {
    Damage::Field {
        path,
        message: message.into(),
    }
}

/// The fields of a line by path, one dot deep at most.
struct Fields<'a>(&'a Object);

impl<'a> Fields<'a> {
    fn get(&self, path: &'static str) -> Option<&'a Value> {
        match path.split_once('.') {
            None => self.0.get(path),
            Some((group, name)) => self.0.get(group)?.as_object()?.get(name),
        }
    }

    fn required<T>(
        &self,
        path: &'static str,
        read: impl Fn(&'a Value) -> Option<T>,
        expected: &str,
    ) -> Result<T, Damage> {
        let value = self.get(path).ok_or_else(|| damage(path, "is missing"))?;
        read(value).ok_or_else(|| damage(path, format!("expected {expected}")))
    }

    fn text(&self, path: &'static str) -> Result<&'a str, Damage> {
        let text = |value: &'a Value| value.as_str().filter(|text| !text.trim().is_empty());
        self.required(path, text, "a text")
    }

    fn word<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        path: &'static str,
    ) -> Result<T, Damage> {
        let word = self.text(path)?;
        word.parse()
            .map_err(|error: T::Err| damage(path, error.to_string()))
    }

    /// RFC 3339, or milliseconds since 1970 as JavaScript has them.
    fn time(&self) -> Result<Timestamp, Damage> {
        let read = |value: &Value| match value {
            Value::String(text) => text.as_str()?.parse().ok(),
            Value::Integer(millis) => Timestamp::from_millisecond(millis.as_i64()?).ok(),
            _ => None,
        };
        self.required("timestamp", read, "an RFC 3339 time")
    }
}

/// A telemetry file that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TelemetryFile {
    /// Its tasks, in order.
    pub lines: Vec<TelemetryLine>,
    /// Lines that are none, for `telemetry.jsonl.rejected`.
    pub rejected: Vec<RejectedLine>,
}

/// Reads a telemetry file; blank lines count as nothing.
#[must_use]
pub fn read_telemetry(text: &str) -> TelemetryFile {
    let mut file = TelemetryFile::default();
    for (number, line) in lines(text) {
        match TelemetryLine::read(line) {
            Ok(line) => file.lines.push(line),
            Err(damage) => file.rejected.push(RejectedLine {
                line: number,
                text: line.to_owned(),
                reason: damage.to_string(),
            }),
        }
    }
    file
}

/// What one task says about the model it was given to.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// Key of the import.
    pub task_id: String,
    /// Class of the task.
    pub class: HistoryKey,
    /// The selected model.
    pub model: ModelRef,
    /// For or against.
    pub observation: Observation,
}

/// What an import of telemetry takes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TelemetryImport {
    /// Observations to add.
    pub observed: Vec<Observed>,
    /// Ids of every task that was taken, those that say nothing included: to be remembered.
    pub taken: Vec<String>,
    /// How many tasks were imported before, or stand twice in the file.
    pub known: usize,
    /// Lines that are no tasks.
    pub rejected: Vec<RejectedLine>,
}

/// Takes the tasks of a file that were not taken before; `imported` are the ids of those that were.
#[must_use]
pub fn import_telemetry(text: &str, imported: &HashSet<String>) -> TelemetryImport {
    let TelemetryFile { lines, rejected } = read_telemetry(text);
    let mut import = TelemetryImport {
        rejected,
        ..TelemetryImport::default()
    };
    let mut seen = HashSet::new();
    for line in lines {
        if imported.contains(&line.task_id) || !seen.insert(line.task_id.clone()) {
            import.known += 1;
            continue;
        }
        import.taken.push(line.task_id.clone());
        if let Some(observation) = line.observation() {
            let TelemetryLine {
                task_id,
                class,
                model,
                ..
            } = line;
            import.observed.push(Observed {
                task_id,
                class,
                model,
                observation,
            });
        }
    }
    import
}

/// `relay-telemetry.jsonl`: one row per successful task with a request, a final line break.
#[must_use]
pub fn export_rows<'a>(lines: impl IntoIterator<Item = &'a TelemetryLine>) -> String {
    let rows = lines.into_iter().filter_map(TelemetryLine::export_row);
    rows.map(|row| row + "\n").collect()
}

/// How a task ended, as its outcomes say.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedTask {
    /// When.
    pub at: Timestamp,
    /// How.
    pub outcome: Outcome,
    /// What the last check said.
    pub tests_passed: Option<bool>,
    /// Attempts, from 1.
    pub attempts: u32,
    /// How often another model took over.
    pub escalations: u32,
    /// Tool calls that failed.
    pub tool_failures: u64,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// USD; none where a price is not known.
    pub cost_usd: Option<f64>,
    /// From the request to the end.
    pub duration_ms: u64,
    /// Models that ran, in order of use.
    pub models: Vec<ModelRef>,
}

impl FinishedTask {
    /// Whether the task succeeded: completed, and no check failed.
    #[must_use]
    pub fn success(&self) -> bool {
        self.outcome == Outcome::Completed && self.tests_passed != Some(false)
    }

    /// The telemetry line of a task from the decision that selected its last model.
    #[must_use]
    pub fn telemetry_line(&self, decision: &Decision) -> String {
        let request = redact(decision.request.as_deref().unwrap_or_default());
        let line = Object::from_iter([
            ("task_id", Value::from(decision.task_id.to_string())),
            ("timestamp", crate::timestamp::format(self.at).into()),
            ("request", text::prefix(&request, REQUEST_UNITS).into()),
            ("classification", classification(decision).into()),
            ("policy", policy(decision).into()),
            ("selected", selected(decision).into()),
            ("result", self.result().into()),
            ("usage", self.usage().into()),
        ]);
        json::write(&line.into())
    }

    fn result(&self) -> Object {
        Object::from_iter([
            ("success", Value::from(self.success())),
            ("outcome", self.outcome.as_str().into()),
            ("attempts", i64::from(self.attempts).into()),
            ("escalations", i64::from(self.escalations).into()),
            ("tests_passed", self.tests_passed.into()),
            ("tool_failures", whole(self.tool_failures)),
        ])
    }

    fn usage(&self) -> Object {
        let models: Vec<Value> = self
            .models
            .iter()
            .map(|model| model.as_str().into())
            .collect();
        Object::from_iter([
            ("tokens", whole(self.tokens)),
            ("cost", self.cost_usd.map(|cost| rounded(cost, 1e6)).into()),
            ("duration_ms", whole(self.duration_ms)),
            ("models", models.into()),
        ])
    }
}

fn classification(decision: &Decision) -> Object {
    let assessment = &decision.assessment;
    let source = match assessment.source {
        Source::Model => "laya",
        Source::Memory => "memory",
        Source::Rules => "heuristic",
    };
    Object::from_iter([
        ("source", Value::from(source)),
        ("type", assessment.task.task_type.as_str().into()),
        ("complexity", assessment.task.complexity.into()),
        ("risk", assessment.task.risk.into()),
        ("ambiguity", assessment.task.ambiguity.into()),
        ("reasoning", assessment.task.reasoning.into()),
        ("scope", assessment.task.scope.as_str().into()),
        ("agent", assessment.agent.as_str().into()),
        ("validation", assessment.validation.as_str().into()),
        ("confidence", rounded(assessment.confidence, 1e3).into()),
        (
            "recommended_tier",
            assessment.recommendation.tier.as_str().into(),
        ),
        (
            "recommended_effort",
            assessment.recommendation.effort.as_str().into(),
        ),
    ])
}

fn policy(decision: &Decision) -> Object {
    let rules: Vec<Value> = decision
        .policy
        .rules
        .iter()
        .map(|rule| rule.as_str().into())
        .collect();
    Object::from_iter([
        ("profile", Value::from(decision.profile.as_str())),
        (
            "required_tier",
            decision.policy.required_tier.as_str().into(),
        ),
        ("rules", rules.into()),
    ])
}

fn selected(decision: &Decision) -> Object {
    let selected = &decision.selected;
    Object::from_iter([
        ("provider", Value::from(selected.provider.as_str())),
        ("model", selected.id.as_str().into()),
        ("tier", selected.tier.as_str().into()),
        ("thinking_level", selected.thinking_level.as_str().into()),
    ])
}

fn whole(number: u64) -> Value {
    i64::try_from(number).unwrap_or(i64::MAX).into()
}

/// Rounded to one part of `parts`, half away from zero. What is no number is 0: no file can hold it.
fn rounded(value: f64, parts: f64) -> f64 {
    let rounded = (value * parts).round() / parts;
    if rounded.is_finite() { rounded } else { 0.0 }
}
