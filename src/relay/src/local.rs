//! Decides in this process: the same code as the router's, with the built-in policy, the user's settings, this
//! machine's clock and randomness. Nothing is stored, so nothing is learned or explored.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use api::routing_policy::RoutingPolicySpec;
use api::{Decision, RouteRequest};
use jiff::Timestamp;
use routing::decide::{Client, Decided, Explain, Judgement, Moment, NothingKnown, decide, prepare};
use routing::keywords::GroupFile;
use routing::policy::Policy;
use routing::reason::Fallback;
use routing::settings::LayaSettings;

use crate::error::{CliError, Exit};

/// Most conversations whose last decision is remembered within one run.
const MOST_CONVERSATIONS: usize = 10_000;

/// A decider of this process.
pub(crate) struct Local {
    policy: Policy,
    conversations: HashMap<String, Decision>,
}

impl Local {
    /// Compiles the built-in policy with the user's keyword file.
    pub(crate) fn new(settings: &LayaSettings) -> Result<Self, CliError> {
        let today = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
        let mut policy = RoutingPolicySpec::default()
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
            conversations: HashMap::new(),
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
        let previous = request
            .conversation_id
            .as_ref()
            .and_then(|id| self.conversations.get(id));
        let prepared =
            prepare(request, &self.policy, Client::Own, previous, now).map_err(|errors| {
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
        self.remember(&decided);
        Ok(decided)
    }

    fn remember(&mut self, decided: &Decided) {
        let Some(id) = &decided.decision.conversation_id else {
            return;
        };
        if decided.store
            && (self.conversations.len() < MOST_CONVERSATIONS
                || self.conversations.contains_key(id))
        {
            self.conversations
                .insert(id.clone(), decided.decision.clone());
        }
    }
}
