//! `laya [text…]`, `laya predict`, `laya route`: one text, a file of them, or a prompt. Output is that of 0.4.15.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;

use decision::json::{Object, Value, json_text, trim, write_pretty};
use decision::wire::{Answer, Controls, Gate, GateState, ModelChoice, Outcome, Payload, Surface};
use laya::route::{Route, RouteRules, route};
use laya::{Engine, EngineOptions};

use super::query::Query;
use super::questions::{Questions, questions};
use super::{CliError, EXIT_REFUSED, Environment};
use crate::decide::{Decider, Failure};
use crate::host::Host;
use crate::metrics::Metrics;
use crate::readiness::Readiness;
use crate::registry::{ONLY, Registry};
use crate::settings::{Extras, Settings, Values};
use crate::source::Places;

/// Which form was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// No word: what the flags say.
    Asked,
    /// `laya predict`
    Predict,
    /// `laya route`
    Route,
}

/// Code points of a text that a listing shows.
const ROUTE_CHARS: usize = 48;
const PREDICT_CHARS: usize = 72;
/// Largest file of requests, in bytes.
const MAX_BATCH_BYTES: u64 = 64 << 20;

pub(super) fn run(query: Query, mode: Mode, environment: &Environment) -> Result<u8, CliError> {
    let answers = match mode {
        Mode::Predict => true,
        Mode::Route => false,
        Mode::Asked => query.predict || query.preset.is_some() || query.questions.is_some(),
    };
    if query.explain && answers {
        return Err(CliError::refused(
            "--explain is for routing only; omit --predict, --preset and --questions.",
        ));
    }
    if query.min_confidence.is_some() && !answers {
        return Err(CliError::refused(
            "--min-confidence gates answers, so it needs --predict, --preset or --questions.",
        ));
    }
    let text = trim(&query.text.join(" ")).to_owned();
    let lines = match &query.batch {
        Some(_) if !text.is_empty() => {
            return Err(CliError::refused(
                "pass either a text or --batch FILE, not both.",
            ));
        }
        Some(file) => Some(read_lines(file)?),
        None => None,
    };
    let asker = Asker::new(query, answers, environment)?;
    match lines {
        Some(lines) => asker.batch(&lines),
        None if text.is_empty() => Ok(asker.prompt()),
        None => asker.one(&text).map(|()| 0),
    }
}

fn read_lines(file: &Path) -> Result<Vec<String>, CliError> {
    let shown = file.display();
    let cannot =
        |error: std::io::Error| CliError::refused(format!("could not read {shown} ({error})."));
    let mut text = String::new();
    let reader: Box<dyn std::io::Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(cannot)?)
    };
    std::io::Read::read_to_string(
        &mut std::io::Read::take(reader, MAX_BATCH_BYTES + 1),
        &mut text,
    )
    .map_err(cannot)?;
    if text.len() as u64 > MAX_BATCH_BYTES {
        return Err(CliError::refused(format!(
            "{shown} has more than {MAX_BATCH_BYTES} bytes."
        )));
    }
    let text = text.trim_start_matches('\u{FEFF}');
    let lines: Vec<String> = text
        .lines()
        .map(trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    if lines.is_empty() {
        return Err(CliError::refused(format!("no requests found in {shown}.")));
    }
    Ok(lines)
}

/// Asks as the arguments say.
struct Asker {
    query: Query,
    settings: Settings,
    controls: Controls,
    answers: Option<Answering>,
}

/// What answering needs and routing does not.
struct Answering {
    questions: Questions,
    runtime: tokio::runtime::Runtime,
    decider: Decider,
}

impl Asker {
    fn new(query: Query, answers: bool, environment: &Environment) -> Result<Self, CliError> {
        let flags = query.device.clone().map(|device| ("LAYA_DEVICE", device));
        let variables = environment
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()));
        let (values, _) = Values::new(flags, variables);
        let extras = Extras {
            model: query
                .checkpoint
                .as_ref()
                .map(|folder| folder.display().to_string()),
            ..Extras::default()
        };
        let (settings, warnings) = Settings::read(&values, &extras)
            .map_err(|error| CliError::refused(error.to_string()))?;
        for warning in warnings {
            eprintln!("laya: warning: {warning}");
        }
        let controls = controls(&query, &settings.loading.registry)?;
        let answers = if answers {
            Some(Answering::new(&query, &settings, environment)?)
        } else {
            None
        };
        Ok(Self {
            query,
            settings,
            controls,
            answers,
        })
    }

    fn one(&self, text: &str) -> Result<(), CliError> {
        match &self.answers {
            None => {
                let (route, repo) = self.route(text)?;
                if self.query.json {
                    println!("{}", write_pretty(&Value::Object(route.to_object(&repo))));
                } else {
                    show_route(&route.to_object(&repo));
                }
            }
            Some(answering) => {
                for payload in answering.ask(&[text.to_owned()], &self.controls)? {
                    let object = payload.to_object(Surface::Library);
                    if self.query.json {
                        println!("{}", write_pretty(&Value::Object(object)));
                    } else {
                        show_answers(&payload, &object);
                    }
                }
            }
        }
        Ok(())
    }

    fn batch(&self, lines: &[String]) -> Result<u8, CliError> {
        let Some(answering) = &self.answers else {
            for line in lines {
                let (route, repo) = self.route(line)?;
                let object = route.to_object(&repo);
                if self.query.json {
                    println!("{}", json_text(&Value::Object(object)));
                } else if self.query.explain {
                    show_route(&object);
                } else {
                    println!(
                        "{:<14} {}  <- {}",
                        route.model,
                        route.reason,
                        cut(line, ROUTE_CHARS)
                    );
                }
            }
            return Ok(0);
        };
        for (line, payload) in lines.iter().zip(answering.ask(lines, &self.controls)?) {
            let object = payload.to_object(Surface::Library);
            if self.query.json {
                println!("{}", json_text(&Value::Object(object)));
            } else {
                println!("# {}", cut(line, PREDICT_CHARS));
                show_answers(&payload, &object);
                println!();
            }
        }
        Ok(0)
    }

    /// Asks for lines until the end or `quit`. A request that fails does not end it, but its exit code remains.
    fn prompt(&self) -> u8 {
        let mut code = 0;
        let mut lines = std::io::stdin().lock().lines();
        loop {
            print!("laya> ");
            // A prompt that cannot be seen is not worth an error.
            let _ = std::io::stdout().flush();
            let Some(Ok(line)) = lines.next() else {
                println!();
                return code;
            };
            let line = trim(&line);
            if line.is_empty() || ["quit", "exit"].contains(&line.to_lowercase().as_str()) {
                return code;
            }
            if let Err(error) = self.one(line) {
                error.print();
                code = EXIT_REFUSED;
            }
        }
    }

    fn route(&self, text: &str) -> Result<(Route, String), CliError> {
        let registry = &self.settings.loading.registry;
        let state: Object = [("text", text)].into_iter().collect();
        let route = match registry.names() {
            None => Route::only(ONLY),
            Some(names) => {
                let rules = RouteRules {
                    names,
                    default_model: &self.settings.serving.default_model,
                    auto_task: self.settings.serving.auto_task,
                };
                route(rules, &self.controls, &Value::Object(state), &Object::new())
                    .map_err(|refusal| CliError::refused(refusal.detail))?
            }
        };
        let repo = registry
            .source(&route.model)
            .map(|source| source.label())
            .unwrap_or_default();
        Ok((route, repo))
    }
}

impl Answering {
    fn new(
        query: &Query,
        settings: &Settings,
        environment: &Environment,
    ) -> Result<Self, CliError> {
        let failed = |what: &str, why: String| CliError::refused(format!("{what}: {why}"));
        let questions = questions(query).map_err(CliError::refused)?;
        let engine = Engine::new(EngineOptions {
            threads: settings.passes.threads,
            cpu: settings.passes.cpu,
        })
        .map_err(|error| CliError::refused(error.to_string()))?;
        let metrics = Metrics::new().map_err(|error| failed("metrics", error.to_string()))?;
        let revision = settings.loading.revision.clone();
        let places = Places::from_environment(|name| environment.get(name).cloned(), revision);
        let readiness = Arc::new(Readiness::default());
        let host = Host::new(
            settings.loading.clone(),
            places,
            &settings.passes,
            Arc::new(engine),
            metrics.clone(),
            readiness,
        );
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        Ok(Self {
            questions,
            runtime: runtime.map_err(|error| failed("cannot start", error.to_string()))?,
            decider: Decider::new(settings.serving.clone(), Arc::new(host), metrics),
        })
    }

    fn ask(&self, lines: &[String], controls: &Controls) -> Result<Vec<Payload>, CliError> {
        let key = self.questions.state_key.as_str();
        let state = |line: &String| Value::Object([(key, line.as_str())].into_iter().collect());
        let states = lines.iter().map(state).collect();
        let asked = self
            .decider
            .ask(states, self.questions.questions.clone(), controls.clone());
        let payloads = self
            .runtime
            .block_on(asked)
            .map_err(|failure| match failure {
                Failure::Refused(refusal) => CliError::refused(refusal.detail),
                other => CliError::refused(format!("could not run Laya ({other}).")),
            })?;
        let cut = |payload: &&Payload| {
            payload
                .usage
                .state
                .as_ref()
                .is_some_and(|state| state.state_tokens_dropped > 0)
        };
        let count = payloads.iter().filter(cut).count();
        if count > 0 {
            eprintln!(
                "laya: warning: {count} of {} texts were cut to fit; see usage in --json",
                payloads.len()
            );
        }
        Ok(payloads)
    }
}

fn controls(query: &Query, registry: &Registry) -> Result<Controls, CliError> {
    let model = match (&query.model, registry.names()) {
        (Some(name), Some(names)) if !trim(name).eq_ignore_ascii_case("auto") => {
            match names.resolve(name) {
                Some(known) => ModelChoice::Checkpoint(known.to_owned()),
                None => {
                    let unknown = names.unknown(&Value::from(name.as_str()));
                    return Err(CliError::refused(format!("{unknown}, or 'auto'")));
                }
            }
        }
        _ => ModelChoice::Automatic,
    };
    let positive = |name: &str, value: Option<usize>| match value {
        Some(0) => Err(CliError::refused(format!(
            "{name} must be a positive integer"
        ))),
        value => Ok(value),
    };
    let gate = query.min_confidence.map_or(Ok(None), |threshold| {
        Gate::from_value(&Value::from(threshold))
    });
    Ok(Controls {
        model,
        max_len: positive("max_len", query.max_len)?,
        head_max_len: positive("head_max_len", query.head_max_len)?,
        task: query.task.as_deref().map(Value::from),
        lang: query.lang.clone(),
        lang_guess: query.lang_guess.clone(),
        gate: gate.map_err(|refusal| CliError::refused(refusal.detail))?,
    })
}

fn show_route(route: &Object) {
    let text = |key: &str| {
        route
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    println!("Model     : {}", text("model"));
    println!("Reason    : {}", text("reason"));
    if let Some(detection) = route
        .get("detection")
        .filter(|detection| !detection.is_null())
    {
        println!("Detected  : {}", json_text(detection));
    }
}

fn show_answers(payload: &Payload, object: &Object) {
    if let Some(route) = object.get("routing").and_then(Value::as_object) {
        show_route(route);
        println!();
    }
    for (id, answer) in &payload.answers {
        println!("{id:<12}: {}", detail(answer));
    }
}

fn detail(answer: &Answer) -> String {
    let mut detail = match &answer.outcome {
        Outcome::Choice {
            labels,
            probabilities,
            winner,
        } => {
            let label = labels
                .get(*winner)
                .map(|label| label.text())
                .unwrap_or_default();
            let probability = probabilities.get(*winner).copied().unwrap_or(0.0);
            format!("{label} (p={probability:.3})")
        }
        Outcome::Score { score, .. } => format!("{score:.2}"),
        Outcome::Noul { noul } => format!("{noul:.3}"),
    };
    if answer
        .gate
        .is_some_and(|verdict| verdict.state == GateState::Abstained)
    {
        detail.push_str("  [low-confidence]");
    }
    detail
}

/// At most so many code points, the last three dots if something is missing.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 3).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        for (text, shown) in [
            ("abcdef", "abcdef"),
            ("abcdefg", "abc..."),
            ("éééééé", "éééééé"),
            ("", ""),
        ] {
            assert_eq!(cut(text, 6), shown);
        }
    }
}
