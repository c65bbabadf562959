//! Decides in this process: the same code as the router's, with the built-in policy, the user's settings, this
//! machine's clock and randomness. Nothing is stored, so nothing is learned or explored.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use api::RouteRequest;
use api::routing_policy::{PrivacySpec, RequestTextSpec, RoutingPolicySpec};
use jiff::Timestamp;
use routing::decide::{Client, Decided, Explain, Judgement, Moment, NothingKnown, decide, prepare};
use routing::keywords::GroupFile;
use routing::policy::Policy;
use routing::reason::Fallback;
use routing::recent::RecentDecisions;
use routing::settings::LayaSettings;

use crate::error::{CliError, Exit};

/// Most decisions remembered within one run, for follow-ups.
const MOST_DECISIONS: usize = 10_000;
/// One person decides here.
const TENANT: &str = "local";

/// A decider of this process.
pub(crate) struct Local {
    policy: Policy,
    recent: RecentDecisions,
}

impl Local {
    /// Compiles the built-in policy with the user's keyword file.
    pub(crate) fn new(settings: &LayaSettings) -> Result<Self, CliError> {
        let today = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
        // On the user's own machine the text of a request stays in its record.
        let privacy = PrivacySpec {
            request_text: Some(RequestTextSpec::Full),
            ..PrivacySpec::default()
        };
        let mut policy = RoutingPolicySpec {
            privacy,
            ..RoutingPolicySpec::default()
        }
        .compile("default", today)
        .map_err(|error| {
            CliError::new(
                Exit::Failed,
                format!("the built-in policy does not compile: {error}"),
            )
        })?;
        if let Some(path) = &settings.keywords {
            let path = Path::new(path);
            let text =
                std::fs::read_to_string(path).map_err(|error| CliError::file(path, error))?;
            let edits =
                GroupFile::parse_toml(&text).map_err(|error| CliError::file(path, error))?;
            policy = policy.with_keywords(&edits, today).map_err(|problems| {
                let lines: Vec<_> = problems
                    .iter()
                    .map(|problem| format!("{}: {}", problem.path, problem.message))
                    .collect();
                CliError::file(path, lines.join("; "))
            })?;
        }
        Ok(Self {
            policy,
            recent: RecentDecisions::new(MOST_DECISIONS),
        })
    }

    /// Decides one request; one with a conversation follows the last of the same conversation in this run.
    pub(crate) fn decide(
        &mut self,
        request: &RouteRequest,
        fallback: Option<Fallback>,
        explain: Explain,
    ) -> Result<Decided, CliError> {
        let arrived = Instant::now();
        let now = Timestamp::now();
        let mut random = [0; 28];
        getrandom::fill(&mut random).map_err(|error| {
            CliError::new(Exit::Failed, format!("cannot get random numbers: {error}"))
        })?;
        let previous = self.recent.previous(TENANT, request);
        let prepared = prepare(request, &self.policy, Client::Own, previous.as_deref(), now)
            .map_err(|errors| {
                let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
                CliError::usage(lines.join("; "))
            })?;
        let elapsed_millis = || arrived.elapsed().as_secs_f64() * 1e3;
        let moment = Moment::new(now, random, &elapsed_millis, explain);
        let judgement = Judgement::Rules { fallback };
        let decided = decide(&prepared, judgement, &NothingKnown, moment).map_err(|none| {
            CliError::new(Exit::NoCandidate, none.to_string())
                .hint("name providers with `--providers`, or models of a tier in `laya.models` of settings.json")
        })?;
        if decided.store {
            self.recent
                .insert(TENANT, Arc::new(decided.decision.clone()));
        }
        Ok(decided)
    }
}
