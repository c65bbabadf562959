//! Which checkpoint answers a state, and why (wire.md 8): explicit wishes first, then the language. Pure; the server
//! loads what is chosen.

use decision::json::{Object, Text, Value, python_repr, repr_text, trim};
use decision::wire::{Controls, ModelChoice, ModelNames, Refusal};

use crate::lang::{Detection, detect};

/// Checkpoint for English.
const ENGLISH: &str = "english";
/// Checkpoint for everything else.
const MULTILINGUAL: &str = "multilingual";
/// Checkpoint for known workflows.
const TYPED_DECISIONS: &str = "typed-decisions";
/// Code points of a foreign segment that a reason quotes.
const QUOTED_CHARS: usize = 60;

/// Which rule decided, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Branch {
    /// `model` named it.
    Model,
    /// `task` named it.
    Task,
    /// The question ids are those of a workflow.
    Workflow,
    /// `lang` said which language.
    Lang,
    /// `lang_guess` said which language.
    LangGuess,
    /// No letters.
    NoLetters,
    /// Another script than Latin.
    OtherScript,
    /// A foreign line in English text.
    Mixed,
    /// Another language than English.
    Named,
    /// Letters that English does not use.
    Letters,
    /// Nothing known.
    Undecided,
    /// English.
    English,
    /// There is one checkpoint only.
    Only,
}

impl Branch {
    /// The word used in metric labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Task => "task",
            Self::Workflow => "workflow",
            Self::Lang => "lang",
            Self::LangGuess => "lang_guess",
            Self::NoLetters => "no_letters",
            Self::OtherScript => "other_script",
            Self::Mixed => "mixed",
            Self::Named => "named",
            Self::Letters => "letters",
            Self::Undecided => "undecided",
            Self::English => "english",
            Self::Only => "only",
        }
    }
}

/// A decision between checkpoints.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Name of the checkpoint.
    pub model: String,
    /// Why, in a sentence.
    pub reason: String,
    /// The rule that decided.
    pub branch: Branch,
    /// What was detected, where detection ran.
    pub detection: Option<Detection>,
    /// The workflow whose question ids these are, where language or the workflow decided.
    pub workflow: Option<&'static str>,
}

impl Route {
    /// The route of a server that has one checkpoint (`laya serve --model`).
    #[must_use]
    pub fn only(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            reason: "only checkpoint".to_owned(),
            branch: Branch::Only,
            detection: None,
            workflow: None,
        }
    }

    /// The object as replies show it; `repo` is the source of the checkpoint as configured.
    #[must_use]
    pub fn to_object(&self, repo: &str) -> Object {
        let mut object = Object::new();
        object.push("model", self.model.as_str());
        object.push("repo", repo);
        object.push("reason", self.reason.as_str());
        object.push(
            "detection",
            self.detection.as_ref().map(Detection::to_object),
        );
        object.push("workflow", self.workflow);
        object
    }
}

/// What a server's configuration says about routing.
#[derive(Debug, Clone, Copy)]
pub struct RouteRules<'a> {
    /// Registered names and aliases.
    pub names: &'a ModelNames,
    /// The checkpoint for states without a language (`LAYA_DEFAULT_MODEL`), a registered name.
    pub default_model: &'a str,
    /// Whether question ids may choose (`LAYA_AUTO_TASK`).
    pub auto_task: bool,
}

/// The known workflows and their question ids.
const WORKFLOWS: [(&str, [&str; 5]); 4] = [
    (
        "agent_trace_observability",
        ["action", "needs_review", "outcome", "risk", "urgency"],
    ),
    (
        "customer_service",
        ["action", "category", "churn_risk", "needs_human", "urgency"],
    ),
    (
        "invoice_processing",
        [
            "discrepancy_severity",
            "disposition",
            "duplicate",
            "matches_order",
            "urgency",
        ],
    ),
    (
        "security_incidents",
        [
            "credential_compromise",
            "disposition",
            "severity",
            "true_positive",
            "urgency",
        ],
    ),
];

/// The workflow that has exactly these question ids.
#[must_use]
pub fn workflow(questions: &Object) -> Option<&'static str> {
    let same = |ids: &[&str; 5]| {
        questions.len() == ids.len() && ids.iter().all(|id| questions.get(id).is_some())
    };
    WORKFLOWS
        .iter()
        .find(|(_, ids)| same(ids))
        .map(|(name, _)| *name)
}

/// Chooses a checkpoint.
///
/// # Errors
/// A `task` that names nothing, as a refusal of status 422.
pub fn route(
    rules: RouteRules<'_>,
    controls: &Controls,
    state: &Value,
    questions: &Object,
) -> Result<Route, Refusal> {
    let explicit = |model: &str, reason, branch| Route {
        model: model.to_owned(),
        reason,
        branch,
        detection: None,
        workflow: None,
    };
    if let ModelChoice::Checkpoint(name) = &controls.model {
        return Ok(explicit(
            name,
            format!("explicit model={}", quoted(name)),
            Branch::Model,
        ));
    }
    if let Some(task) = &controls.task {
        let name = rules.names.resolve_task(task)?;
        return Ok(explicit(
            name,
            format!("explicit task={}", python_repr(task)),
            Branch::Task,
        ));
    }
    let workflow = workflow(questions);
    if let (true, Some(name)) = (rules.auto_task, workflow) {
        let reason = format!(
            "question ids match the {} typed-decisions workflow",
            quoted(name)
        );
        return Ok(Route {
            workflow,
            ..explicit(TYPED_DECISIONS, reason, Branch::Workflow)
        });
    }
    for (code, branch) in [
        (&controls.lang, Branch::Lang),
        (&controls.lang_guess, Branch::LangGuess),
    ] {
        let Some(sent) = code else { continue };
        let Some(english) = is_english(sent) else {
            continue;
        };
        let reason = match (branch, english) {
            (Branch::Lang, _) => format!("explicit lang={}", quoted(sent)),
            (_, true) => "lang_guess: the caller identified this as English text".to_owned(),
            (_, false) => "lang_guess: the caller identified this as non-English text".to_owned(),
        };
        let model = if english { ENGLISH } else { MULTILINGUAL };
        return Ok(Route {
            workflow,
            ..explicit(model, reason, branch)
        });
    }
    let detection = detect(state);
    let (branch, reason) = by_language(&detection, rules.default_model);
    let model = match branch {
        Branch::NoLetters | Branch::Undecided => rules.default_model,
        Branch::English => ENGLISH,
        _ => MULTILINGUAL,
    };
    Ok(Route {
        model: model.to_owned(),
        reason,
        branch,
        detection: Some(detection),
        workflow,
    })
}

fn by_language(d: &Detection, default: &str) -> (Branch, String) {
    let percent = |share: f64| format!("{:.0}", (100.0 * share).round_ties_even());
    if d.script == "unknown" {
        return (
            Branch::NoLetters,
            format!("no letters detected in state; using default ({default})"),
        );
    }
    if d.script != "latin" {
        let share = percent(d.non_latin_fraction);
        let reason = format!(
            "non-Latin script ({}, {share}% of letters); the English checkpoint cannot read it",
            d.script
        );
        return (Branch::OtherScript, reason);
    }
    match (&d.mixed_segment, d.language) {
        (Some(segment), language) => {
            let start: String = segment.chars().take(QUOTED_CHARS).collect();
            let reason = format!(
                "Latin script, mostly English, but a line or field reads as {} ({}); the English checkpoint cannot read it",
                quoted(language.unwrap_or_default()),
                quoted(&start)
            );
            (Branch::Mixed, reason)
        }
        (None, Some("en")) => (Branch::English, "English Latin text".to_owned()),
        (None, Some(code)) => (
            Branch::Named,
            format!(
                "Latin script but language looks like {}, not English",
                quoted(code)
            ),
        ),
        (None, None) if !d.is_english => {
            let share = percent(d.diacritic_rate);
            let reason = format!(
                "Latin script, language not identified but {share}% non-English letters; not safe for the English checkpoint"
            );
            (Branch::Letters, reason)
        }
        (None, None) => {
            let reason = format!(
                "Latin script, language not identified and no non-English letters; using default ({default})"
            );
            (Branch::Undecided, reason)
        }
    }
}

/// Whether a language code means English; none where it says nothing.
fn is_english(code: &str) -> Option<bool> {
    let code = trim(code).to_lowercase();
    let code = code.split('.').next().unwrap_or_default().replace('_', "-");
    match code.split('-').next().unwrap_or_default() {
        "" | "c" | "posix" | "und" | "zxx" | "mul" => None,
        "en" | "eng" | "english" => Some(true),
        _ => Some(false),
    }
}

fn quoted(text: &str) -> String {
    repr_text(&Text::from(text))
}

#[cfg(test)]
mod tests {
    use decision::json::read;

    use super::*;

    fn controls() -> Controls {
        Controls {
            model: ModelChoice::Automatic,
            max_len: None,
            head_max_len: None,
            task: None,
            lang: None,
            lang_guess: None,
            gate: None,
        }
    }

    fn ask(
        auto_task: bool,
        change: &dyn Fn(&mut Controls),
        state: &str,
        ids: &[&str],
    ) -> Result<(String, String, Option<&'static str>, bool), String> {
        let names = ModelNames::built_in_and(Vec::<String>::new());
        let rules = RouteRules {
            names: &names,
            default_model: "multilingual",
            auto_task,
        };
        let mut controls = controls();
        change(&mut controls);
        let questions: Object = ids.iter().map(|id| (*id, Object::new())).collect();
        let route =
            route(rules, &controls, &state.into(), &questions).map_err(|refusal| refusal.detail)?;
        Ok((
            route.model,
            route.reason,
            route.workflow,
            route.detection.is_some(),
        ))
    }

    #[test]
    fn every_recorded_state_goes_where_it_went() {
        let read_file =
            |name: &str| std::fs::read_to_string(crate::golden_tests::golden(name)).unwrap();
        let file = read_file("laya/lang.jsonl") + &read_file("laya/lang-more.jsonl");
        let names = ModelNames::built_in_and(Vec::<String>::new());
        let rules = RouteRules {
            names: &names,
            default_model: "multilingual",
            auto_task: false,
        };
        for line in file.lines() {
            let row = read(line.as_bytes()).unwrap();
            let row = row.as_object().unwrap();
            let state = row.get("state").unwrap();
            let route = route(rules, &controls(), state, &Object::new()).unwrap();
            let want = [row.get("model"), row.get("reason")]
                .map(|v| v.and_then(Value::as_str).unwrap().to_owned());
            assert_eq!([route.model, route.reason], want, "{state:?}");
        }
    }

    #[test]
    fn wishes_come_before_language() {
        let service = ["urgency", "action", "category", "churn_risk", "needs_human"];
        let to = |model: &str, reason: &str, workflow: Option<&'static str>, detected: bool| {
            Ok((model.to_owned(), reason.to_owned(), workflow, detected))
        };
        let english = "I was charged twice for this";
        let matched = Some("customer_service");
        assert_eq!(
            ask(
                true,
                &|c| c.model = ModelChoice::Checkpoint("multilingual".into()),
                english,
                &service
            ),
            to("multilingual", "explicit model='multilingual'", None, false)
        );
        assert_eq!(
            ask(
                true,
                &|c| c.task = Some("Typed-Decisions".into()),
                english,
                &service
            ),
            to(
                "typed-decisions",
                "explicit task='Typed-Decisions'",
                None,
                false
            )
        );
        assert!(
            ask(true, &|c| c.task = Some("x".into()), english, &[])
                .unwrap_err()
                .starts_with("unknown model 'x'")
        );
        assert_eq!(
            ask(true, &|c| c.lang = Some("de".into()), english, &service),
            to(
                "typed-decisions",
                "question ids match the 'customer_service' typed-decisions workflow",
                matched,
                false
            )
        );
        assert_eq!(
            ask(false, &|c| c.lang = Some("de-AT".into()), english, &service),
            to("multilingual", "explicit lang='de-AT'", matched, false)
        );
        assert_eq!(
            ask(
                false,
                &|c| (c.lang, c.lang_guess) = (Some("und".into()), Some("EN_us.UTF-8".into())),
                "Das ist ein Test",
                &[]
            ),
            to(
                "english",
                "lang_guess: the caller identified this as English text",
                None,
                false
            )
        );
        assert_eq!(
            ask(
                false,
                &|c| (c.lang, c.lang_guess) = (Some(" ".into()), Some("c".into())),
                english,
                &service
            ),
            to("english", "English Latin text", matched, true)
        );
    }
}
