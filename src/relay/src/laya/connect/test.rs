//! The test of a router: it answers, asks the questions we know, and takes the key.

use std::time::Instant;

use api::responses::{HealthResponse, PolicyResponse, ServingState};
use decision::relay_contract;
use serde::Serialize;

use crate::client::{Asked, Client, Question};
use crate::error::{CliError, Exit};
use crate::output::{field, one_line};
use crate::terminal::Styles;

/// What a router says of itself.
#[derive(Debug, Serialize)]
pub(super) struct Tested {
    contract: String,
    shape: String,
    serving: ServingState,
    model: Option<String>,
    device: Option<String>,
    policy: String,
    revision: String,
    profile: String,
    warnings: usize,
    /// Of the second question, with a connection that is open.
    answer_ms: f64,
}

/// Asks for health, compares the questions, and asks a route that takes the key.
pub(super) fn test(client: &Client) -> Result<Tested, CliError> {
    let health: HealthResponse = client.need(Question::get("/health"), "health of a router")?;
    let ours = relay_contract().shape_digest().to_string();
    if health.shape != ours {
        let first = ours_missing(&health).map_or_else(String::new, |id| {
            format!("; the first that differs is `{id}`")
        });
        let line = format!(
            "the router at {} asks other questions than this program (shape {} instead of {}{first})",
            client.router().origin,
            short(&health.shape),
            short(&ours)
        );
        return Err(CliError::new(Exit::Failed, line)
            .hint("use a router and a `relay` of the same version"));
    }
    let began = Instant::now();
    let policy: PolicyResponse = match client.ask(Question::get("/v1/policy"), "policy") {
        Asked::Answered(policy) => policy,
        Asked::Refused(problem) if problem.slug() == "unauthorized" => {
            let line = format!("the router at {} refused the key", client.router().origin);
            return Err(CliError::new(Exit::Failed, line)
                .hint("name the file of its key with `--token-file`"));
        }
        Asked::Refused(problem) => return Err(client.refusal(&problem)),
        Asked::Unanswered(why) => return Err(why.into_error(&client.router().origin)),
    };
    Ok(Tested {
        contract: health.contract,
        shape: health.shape,
        serving: health.serving,
        model: health.model,
        device: health.device,
        policy: policy.name,
        revision: policy.revision,
        profile: policy.profile,
        warnings: policy.warnings.len(),
        answer_ms: (began.elapsed().as_secs_f64() * 1e4).round() / 10.0,
    })
}

/// The first of our questions that is not the router's at the same place; nothing where only options differ.
fn ours_missing(health: &HealthResponse) -> Option<&'static str> {
    let ours = relay_contract().questions().iter();
    ours.enumerate()
        .find(|(at, question)| health.decisions.get(*at) != Some(&question.id))
        .map(|(_, question)| question.id.as_str())
}

pub(super) fn render(tested: &Tested, styles: Styles) -> String {
    let model = tested.model.as_deref().map(|model| one_line(model, 64));
    let device = tested.device.as_deref().map(|device| one_line(device, 64));
    let name = match (model, device) {
        (Some(model), Some(device)) => format!(" {model} on {device}"),
        (Some(model), None) => format!(" {model}"),
        (None, _) => String::new(),
    };
    let serving = match tested.serving {
        ServingState::Ready => format!("the decision model{name}"),
        ServingState::Degraded => format!("the decision model{name}, not all of its servers"),
        ServingState::RulesOnly => "rules; no decision model is serving".to_owned(),
    };
    let policy = format!(
        "{}, revision {}, profile {}",
        one_line(&tested.policy, 64),
        one_line(&tested.revision, 64),
        one_line(&tested.profile, 64)
    );
    let mut text = field(
        "questions",
        &format!("ours (shape {})", short(&tested.shape)),
        styles,
    );
    text.push_str(&field("answers by", &serving, styles));
    text.push_str(&field("policy", &policy, styles));
    if tested.warnings > 0 {
        let told = format!(
            "{} of the policy; GET /v1/policy tells them",
            tested.warnings
        );
        text.push_str(&field("warnings", &told, styles));
    }
    text.push_str(&field(
        "answers in",
        &format!("{:.1} ms", tested.answer_ms),
        styles,
    ));
    text
}

/// The first 12 hexadecimal digits, for people.
fn short(digest: &str) -> String {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    one_line(&hex.chars().take(12).collect::<String>(), 12)
}
