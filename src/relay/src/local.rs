//! Decides in this process: the same code as the router's, with the built-in policy, the user's settings, this
//! machine's clock and randomness. Nothing is stored, so nothing is learned or explored.

use std::path::Path;
use std::time::Instant;

use api::routing_policy::{PrivacySpec, RequestTextSpec, RoutingPolicySpec};
use api::{FieldError, RouteRequest};
use jiff::Timestamp;
use routing::decide::{Client, Decided, Explain, Judgement, Moment, NothingKnown, decide, prepare};
use routing::keywords::GroupFile;
use routing::policy::Policy;
use routing::reason::Fallback;
use routing::settings::LayaSettings;

use crate::error::{CliError, Exit};
use crate::recent::Recent;

/// Largest keyword file, in bytes.
const MAX_KEYWORDS: u64 = 1 << 20;

/// A decider of this process.
pub(crate) struct Local {
    policy: Policy,
}

/// Why nothing was decided.
pub(crate) enum LocalError {
    /// Fields of the request.
    Refused(Vec<FieldError>),
    /// Anything else.
    Other(CliError),
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
            let file = files::read_text(path, MAX_KEYWORDS)
                .map_err(|error| CliError::file(path, error))?;
            let edits =
                GroupFile::parse_toml(&file.text).map_err(|error| CliError::file(path, error))?;
            policy = policy.with_keywords(&edits, today).map_err(|problems| {
                let lines: Vec<_> = problems
                    .iter()
                    .map(|problem| format!("{}: {}", problem.path, problem.message))
                    .collect();
                CliError::file(path, lines.join("; "))
            })?;
        }
        // They are compiled when they are first needed, which is no part of judging a request.
        let _ = policy.keywords();
        Ok(Self { policy })
    }

    /// Decides one request; one with a conversation follows the last of the same conversation in this run.
    pub(crate) fn decide(
        &self,
        request: &RouteRequest,
        recent: &mut Recent,
        fallback: Option<Fallback>,
        explain: Explain,
    ) -> Result<Decided, LocalError> {
        let arrived = Instant::now();
        let now = Timestamp::now();
        let mut random = [0; 28];
        getrandom::fill(&mut random).map_err(|error| {
            let line = format!("cannot get random numbers: {error}");
            LocalError::Other(CliError::new(Exit::Failed, line))
        })?;
        let previous = recent.previous(request);
        let prepared = prepare(request, &self.policy, Client::Own, previous.as_deref(), now)
            .map_err(LocalError::Refused)?;
        let elapsed_millis = || arrived.elapsed().as_secs_f64() * 1e3;
        let moment = Moment::new(now, random, &elapsed_millis, explain);
        let judgement = Judgement::Rules { fallback };
        let decided = decide(&prepared, judgement, &NothingKnown, moment)
            .map_err(|none| LocalError::Other(CliError::no_candidate(none.to_string())))?;
        if decided.store {
            recent.insert(&decided.decision);
        }
        Ok(decided)
    }
}
