//! `relayctl rollout status`: where a rollout stands, what was measured, what comes next and when. Pure but for the two
//! objects it asks for; times are UTC.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::going::sentence;
use crate::call::Call;
use crate::conditions;
use crate::duration;
use crate::error::CliError;
use crate::facts::{self, Laya, Pause, Rollout, Version};
use crate::kinds;
use crate::output::{self, CLI_VERSION};
use crate::refusal::one_line;
use crate::server::Server;
use crate::terminal;
use crate::verbs::model::find_server;
use api::exit::Exit;

/// Shows it.
pub(super) async fn run(call: &Call, name: &str) -> Result<Exit, CliError> {
    let server = call.connect().await?;
    let object = find_server(&server, name).await?;
    let gate = gate(&server, Laya(&object)).await;
    let now = Timestamp::now();
    if call.format().is_table() {
        let text = render(Laya(&object), gate.as_ref(), now);
        terminal::print(&output::visible(&call.program.speak(&text)))?;
    } else {
        output::tree(&document(Laya(&object), gate.as_ref(), now), &call.format())?;
    }
    Ok(Exit::Done)
}

/// The gate, for the number of its checks. One that cannot be read leaves the number out.
async fn gate(server: &Server, laya: Laya<'_>) -> Option<Value> {
    let name = laya.gate()?;
    let found = server.find(kinds::evaluation_gate(), &server.namespace, name);
    found.await.ok().flatten()
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Next {
    what: String,
    at: Option<Timestamp>,
}

impl Next {
    fn new(what: impl Into<String>) -> Option<Self> {
        let what = what.into();
        Some(Self { what, at: None })
    }

    fn at(what: impl Into<String>, at: Option<Timestamp>) -> Option<Self> {
        let what = what.into();
        Some(Self { what, at })
    }
}

fn render(laya: Laya<'_>, gate: Option<&Value>, now: Timestamp) -> String {
    let mut out = format!("{}\n", one_line(&head(laya, now)));
    let mut line = |parts: &[String], gap: &str| {
        let parts: Vec<_> = parts.iter().map(|part| one_line(part)).collect();
        if !parts.is_empty() {
            out.push_str(&format!("  {}\n", parts.join(gap)));
        }
    };
    let Some(rollout) = laya.open_rollout() else {
        for rest in at_rest(laya) {
            line(&[rest], "");
        }
        return out;
    };
    line(&measured(laya, rollout, gate), "  ");
    let next = next(laya, rollout).map(|next| {
        let at = next
            .at
            .map_or(String::new(), |at| format!(" at {}", clock(at, now)));
        format!("next: {}{at}", next.what)
    });
    let abort =
        can_abort(rollout).then(|| format!("abort: relayctl rollout abort {}", laya.name()));
    let last: Vec<_> = next.into_iter().chain(abort).collect();
    line(&last, " · ");
    out
}

/// From what to what, how, and how far.
pub(crate) fn head(laya: Laya<'_>, now: Timestamp) -> String {
    let name = laya.name();
    let Some(rollout) = laya.open_rollout() else {
        return match (laya.champion(), laya.external()) {
            (_, Some(url)) => format!("{name}: {}", external(laya, url)),
            (Some(champion), None) => {
                let since = champion
                    .since()
                    .map_or(String::new(), |since| format!(" for {}", age(since, now)));
                format!("{name}: {} serves{since}, no rollout", champion.title())
            }
            (None, None) => format!("{name}: no model serves, no rollout"),
        };
    };
    let (from, to) = ends(laya, rollout);
    let title = |version: Option<Version<'_>>| version.map(Version::title);
    let to = title(to)
        .or(laya.wished().map(str::to_owned))
        .unwrap_or_default();
    let path = match title(from) {
        Some(from) => format!("{from} -> {to}"),
        None => to,
    };
    format!(
        "{name}: {path}, {}, {}",
        way(laya, rollout),
        place(laya, rollout, now)
    )
}

/// Whether a server of somebody else serves, as the controller found it.
fn external(laya: Laya<'_>, url: &str) -> String {
    let said = laya
        .condition("Adopted")
        .or_else(|| laya.condition("Available"));
    match said.filter(|_| conditions::is_current(laya.0)) {
        Some(said) if said.is_true() => format!("the server at {url} serves"),
        Some(said) if said.status == "False" => format!(
            "the server at {url} does not serve ({}): {}",
            said.reason, said.message
        ),
        _ => format!("the server at {url} is to serve; nobody knows yet whether it does"),
    }
}

/// Old and new one.
fn ends<'a>(laya: Laya<'a>, rollout: Rollout<'a>) -> (Option<Version<'a>>, Option<Version<'a>>) {
    if rollout.is_promoted() || (laya.candidate().is_none() && laya.previous().is_some()) {
        (laya.previous(), laya.champion())
    } else {
        (laya.champion(), laya.candidate())
    }
}

fn way(laya: Laya<'_>, rollout: Rollout<'_>) -> &'static str {
    match (rollout.kind(), laya.strategy()) {
        (Some("First"), _) => "first start",
        (Some("Revert"), _) => "going back",
        (_, "Canary") => "canary",
        (_, "Shadow") => "shadow",
        (_, "Replace") => "replace",
        _ => "blue-green",
    }
}

fn place(laya: Laya<'_>, rollout: Rollout<'_>, now: Timestamp) -> String {
    let still = match laya.pause() {
        Some(Pause::ByHand) => ", paused",
        _ => "",
    };
    let of = |began: Option<Timestamp>, whole: i64| {
        let now = began.filter(|_| laya.pause().is_some()).unwrap_or(now);
        let running = began.map_or(0, |began| now.duration_since(began).as_secs());
        let held = rollout.ran_before() + running;
        format!("{} of {}", duration::human(held), duration::human(whole))
    };
    let message = rollout
        .message()
        .map_or(String::new(), |message| format!(": {message}"));
    let steps = laya.steps();
    match (rollout.state(), rollout.step()) {
        ("Shifting", Some(step)) if step <= steps.len() => {
            let (weight, hold) = steps[step - 1];
            let held = of(rollout.step_started(), hold);
            format!("step {step} of {}: {weight} %, {held}{still}", steps.len())
        }
        ("Baking", _) => {
            let window = laya.rollout_seconds("rollbackWindowSeconds", 600);
            let since = rollout
                .step_started()
                .or(laya.champion().and_then(Version::since));
            format!("baking: {}{still}", of(since, window))
        }
        ("Paused", _) => {
            let from = rollout
                .paused_from()
                .map_or(String::new(), |from| format!(" while {}", sentence(from)));
            format!("stands still{from}{message}")
        }
        (state, _) => format!("{}{still}{message}", sentence(state)),
    }
}

/// What was measured, against its limits.
fn measured(laya: Laya<'_>, rollout: Rollout<'_>, gate: Option<&Value>) -> Vec<String> {
    let checks = rollout.checks();
    let limits = &laya.rollout_spec()["canary"]["limits"];
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<f64>().ok());
    let limit =
        |text: Option<String>| text.map_or(String::new(), |text| format!(" (limit {text})"));
    let mut parts = Vec::new();
    if let Some(requests) = checks["requests"].as_u64() {
        parts.push(format!("requests {requests}"));
    }
    if let Some(errors) = number(&checks["errorRatio"]) {
        let most = limit(number(&limits["maxErrorRatio"]).map(facts::limit_percent));
        parts.push(format!("errors {}{most}", facts::percent(errors, 1)));
    }
    if let Some(p95) = checks["p95Millis"].as_u64() {
        let champion = checks["championP95Millis"].as_u64();
        let against = champion.map_or(String::new(), |p95| format!(" vs {p95} ms"));
        let most = limit(number(&limits["maxP95Ratio"]).map(|ratio| format!("{ratio}x")));
        parts.push(format!("p95 {p95} ms{against}{most}"));
    }
    let shadow = &laya.rollout_spec()["shadow"];
    if let Some(comparisons) = checks["comparisons"].as_u64() {
        let wanted = shadow["minComparisons"].as_u64();
        let of = wanted.map_or(String::new(), |wanted| format!(" of {wanted}"));
        parts.push(format!("comparisons {comparisons}{of}"));
    }
    if let Some(other) = number(&checks["disagreement"]) {
        let most = limit(number(&shadow["maxDisagreement"]).map(facts::limit_percent));
        parts.push(format!("disagreement {}{most}", facts::percent(other, 1)));
    }
    if let Some(name) = laya.gate() {
        let verdict = rollout.verdict().unwrap_or("not judged yet");
        let count = checks_of(gate, rollout).unwrap_or_default();
        parts.push(format!("gate {name}: {verdict}{count}"));
    }
    parts
}

/// ` 27/27`: required checks that passed, of those that were judged.
fn checks_of(gate: Option<&Value>, rollout: Rollout<'_>) -> Option<String> {
    let id = rollout.evaluation()?;
    let evaluations = gate?["status"]["evaluations"].as_array()?;
    let summary = &evaluations.iter().find(|one| one["id"] == id)?["summary"];
    let count = |name: &str| summary[name].as_u64().unwrap_or(0);
    let passed = summary["passed"].as_u64()?;
    let all = passed + count("failed") + count("inconclusive");
    Some(format!(" {passed}/{all}"))
}

/// The next thing that happens, and when at the earliest.
fn next(laya: Laya<'_>, rollout: Rollout<'_>) -> Option<Next> {
    let name = laya.name();
    match laya.pause() {
        Some(Pause::ByHand) => return Next::new(format!("relayctl rollout resume {name}")),
        Some(Pause::Verdict) => return Next::new("goes on when the gate says more"),
        Some(Pause::Report) => return Next::new("goes on when the router's report is back"),
        Some(Pause::Suspended) => {
            return Next::new("goes on when spec.suspend is taken away: relayctl apply -f FILE");
        }
        Some(Pause::Failure) => return Next::new(format!("relayctl rollout retry {name}")),
        None => {}
    }
    let after = |from: Option<Timestamp>, seconds: i64| {
        from.and_then(|from| from.checked_add(SignedDuration::from_secs(seconds)).ok())
    };
    let deadline = after(
        rollout.started(),
        laya.rollout_seconds("progressDeadlineSeconds", 900),
    );
    let steps = laya.steps();
    match rollout.state() {
        "Shifting" => {
            let step = rollout.step().filter(|step| *step <= steps.len())?;
            let left = steps[step - 1].1 - rollout.ran_before();
            let at = after(rollout.step_started(), left);
            match steps.get(step) {
                Some((weight, _)) => Next::at(format!("step {} ({weight} %)", step + 1), at),
                None => Next::at("all traffic", at),
            }
        }
        "Preparing" | "Starting" | "Loading" | "Probing" => Next::at("given up", deadline),
        "Shadowing" => {
            let most = laya.rollout_spec()["shadow"]["maxSeconds"]
                .as_i64()
                .unwrap_or(86_400);
            Next::at(
                "goes on without more comparisons",
                after(rollout.step_started(), most),
            )
        }
        "Gating" => Next::new(match laya.gate() {
            Some(gate) => format!("the verdict of gate {gate}"),
            None => "the verdict".to_owned(),
        }),
        "AwaitingApproval" => Next::new(format!("relayctl rollout approve {name}")),
        "Baking" => {
            let since = rollout
                .step_started()
                .or(laya.champion().and_then(Version::since));
            let window = laya.rollout_seconds("rollbackWindowSeconds", 600);
            Next::at(
                "the old one drains",
                after(since, window - rollout.ran_before()),
            )
        }
        "Draining" => Next::new("the old one stops and is kept for rollback"),
        _ => None,
    }
}

/// What comes next and when, for `explain`.
pub(crate) fn coming(laya: Laya<'_>) -> Option<(String, Option<Timestamp>)> {
    let next = next(laya, laya.open_rollout()?)?;
    Some((next.what, next.at))
}

fn can_abort(rollout: Rollout<'_>) -> bool {
    !matches!(
        rollout.state(),
        "Draining" | "RollingBack" | "Done" | "Unknown"
    )
}

/// What there is to say when nothing goes on.
fn at_rest(laya: Laya<'_>) -> Vec<String> {
    let name = laya.name();
    let mut lines = Vec::new();
    if let Some(previous) = laya.previous() {
        lines.push(format!(
            "previous {} · back to it: relayctl rollout undo {name}",
            previous.title()
        ));
    }
    let rolled_out = laya
        .condition("RolledOut")
        .filter(|condition| !condition.is_true());
    if let Some(taken_back) = laya.taken_back() {
        lines.push(format!(
            "{}: {} · once more: relayctl rollout retry {name}",
            taken_back.reason, taken_back.message
        ));
    } else if let Some(condition) = rolled_out {
        lines.push(format!("{}: {}", condition.reason, condition.message));
    }
    lines
}

/// The same for programs.
fn document(laya: Laya<'_>, gate: Option<&Value>, now: Timestamp) -> Value {
    let status = &laya.0["status"];
    let rollout = laya.open_rollout();
    let next = rollout.and_then(|rollout| next(laya, rollout));
    let mut document = json!({
        "apiVersion": CLI_VERSION,
        "kind": "RolloutStatus",
        "server": laya.name(),
        "namespace": laya.0["metadata"]["namespace"],
        "time": now.to_string(),
        "summary": head(laya, now),
        "wished": laya.wished(),
        "inProgress": rollout.is_some(),
        "strategy": laya.strategy(),
        "pause": laya.pause().map(|pause| match pause {
            Pause::ByHand => "ByHand",
            Pause::Verdict => "Verdict",
            Pause::Report => "Report",
            Pause::Suspended => "Suspended",
            Pause::Failure => "Failure",
        }),
        "steps": laya.steps().iter().filter(|_| laya.strategy() == "Canary").map(|(weight, hold)| json!({"weight": weight, "holdSeconds": hold})).collect::<Vec<_>>(),
        "measured": rollout.map(|rollout| measured(laya, rollout, gate)),
        "next": next.map(|next| json!({"what": next.what, "at": next.at.map(|at| at.to_string())})),
        "rejected": laya.rejected(),
    });
    for field in [
        "wish",
        "champion",
        "candidate",
        "previous",
        "traffic",
        "rollout",
    ] {
        if !status[field].is_null() {
            document[field] = status[field].clone();
        }
    }
    document
}

fn age(since: Timestamp, now: Timestamp) -> String {
    duration::human(now.duration_since(since).as_secs())
}

/// The time of day, with the day where it is another one.
pub(super) fn clock(at: Timestamp, now: Timestamp) -> String {
    let text = at.strftime("%Y-%m-%d %H:%M:%S").to_string();
    let today = now.strftime("%Y-%m-%d ").to_string();
    text.strip_prefix(&today)
        .map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests;
