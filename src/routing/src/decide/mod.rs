//! From a request to a decision: the one function Relay exists for. [`prepare`] looks at the text and at what came
//! before and says what a decision model would have to answer; the caller asks whom it has; [`decide`] does the rest.
//! Pure: clock, randomness, history and quota are arguments.

mod choose;
mod during;
mod judge;
mod knobs;
mod select;
mod state;
mod trace;
mod write;

use std::borrow::Cow;

use decision::vocabulary::{Effort, Tier, Validation};
use jiff::Timestamp;
use uuid::Uuid;

pub use during::{
    During, EscalateError, FailureReport, ProviderErrorReport, RunningTask, escalate,
    provider_failed,
};
pub use judge::{Judgement, NO_MODEL};
pub use knobs::{Client, Knobs};
pub use state::{NothingKnown, State};
pub use trace::{Step, Trace};

use crate::derive::{Derived, derive};
use crate::follow_up::{self, Effect, FollowUp, Previous, TextFacts};
use crate::keywords::{Group, Scan};
use crate::lessons::{Lesson, lessons_message};
use crate::memory;
use crate::policy::Policy;
use crate::record::Decision;
use crate::request::{FieldError, RequestKind, RouteRequest};
use crate::rules::{self, RuleId};
use crate::selection::NoCandidate;
use crate::words::Stream;

/// A request that was checked and read, before anybody judged it.
#[derive(Debug)]
pub struct Prepared<'a> {
    request: &'a RouteRequest,
    policy: &'a Policy,
    knobs: Knobs,
    previous: Option<&'a Decision>,
    follow_up: FollowUp,
    effect: Effect,
    text: Cow<'a, str>,
    derived: Derived,
    fired: Vec<RuleId>,
    labels: Option<crate::assessment::Assessment>,
    lessons: Option<String>,
}

/// Checks a request against its policy and reads its text. `previous` is the last decision of its conversation.
///
/// # Errors
/// Every field that is refused; nothing else is refused later.
pub fn prepare<'a>(
    request: &'a RouteRequest,
    policy: &'a Policy,
    client: Client,
    previous: Option<&'a Decision>,
    now: Timestamp,
) -> Result<Prepared<'a>, Vec<FieldError>> {
    request.check()?;
    let knobs = Knobs::of(request, policy, client)?;
    let labels = judge::from_labels(request)?;
    let (follow_up, effect) = match request.kind {
        RequestKind::Direct => (FollowUp::New, Effect::Fresh),
        RequestKind::User => relate(policy, &request.request, previous, now),
    };
    let text = match (effect, previous.and_then(task_text)) {
        (Effect::Extend { .. }, Some(before)) => {
            Cow::Owned(follow_up::combine(before, &request.request))
        }
        _ => Cow::Borrowed(request.request.as_str()),
    };
    let scan = policy.keywords().scan(&text);
    let derived = derive(&scan);
    let fired = match request.kind {
        RequestKind::Direct => Vec::new(),
        RequestKind::User => rules::fired(
            &scan,
            &policy.added_rule_ids(),
            &policy.source.disabled_rules,
        ),
    };
    Ok(Prepared {
        request,
        policy,
        knobs,
        previous,
        follow_up,
        effect,
        text,
        derived,
        fired,
        labels,
        lessons: None,
    })
}

/// The text of a decision's task, if it was kept and the decision is where the task began.
fn task_text(decision: &Decision) -> Option<&str> {
    let begins = decision.follow_up == FollowUp::New;
    decision.request.as_deref().filter(|_| begins)
}

/// How a text relates to the last decision, and what follows from that.
fn relate(
    policy: &Policy,
    text: &str,
    previous: Option<&Decision>,
    now: Timestamp,
) -> (FollowUp, Effect) {
    let Some(previous) = previous else {
        return (FollowUp::New, Effect::Fresh);
    };
    let facts = text_facts(&policy.keywords().scan(text));
    let kind = follow_up::classify(&facts, Some(now.duration_since(previous.created)));
    let before = Previous {
        tier: previous.selected.tier,
        effort: previous.policy.effort,
        required_tier: previous.policy.required_tier,
        required_effort: previous.policy.effort,
    };
    (kind, follow_up::effect(kind, &before))
}

fn text_facts(scan: &Scan<'_>) -> TextFacts {
    TextFacts {
        is_chat: scan.whole_text_is(Group::MarkChat, false),
        only_go_on_words: scan.whole_text_is(Group::FollowGoOn, true),
        word_count: scan.words().len(Stream::Plain),
        content_words: scan.content_words(),
        correction_mark: scan.corrects(),
        adding_word: scan.starts_with(Group::FollowAdd),
    }
}

impl Prepared<'_> {
    /// The text a decision model or the memory would be asked about, or `None` where nobody needs to be asked: labels
    /// were given, the request is direct, or the task of the decision before goes on.
    #[must_use]
    pub fn question(&self) -> Option<&str> {
        let fresh = matches!(self.effect, Effect::Fresh | Effect::Extend { .. });
        (fresh && self.labels.is_none() && self.request.kind == RequestKind::User)
            .then_some(&*self.text)
    }

    /// The text learned tasks would be asked about: [`Self::question`], where memory is on.
    #[must_use]
    pub fn memory_question(&self) -> Option<&str> {
        self.question().filter(|_| self.knobs.memory)
    }

    /// How close learned tasks must be, by the policy.
    #[must_use]
    pub fn memory_thresholds(&self) -> memory::Thresholds {
        let thresholds = &self.policy.source.thresholds;
        memory::Thresholds {
            route: thresholds.memory_similarity,
            lesson: thresholds.memory_lesson,
        }
    }

    /// Shows the lessons of similar tasks to the model that will work (routing.md 15).
    pub fn teach(&mut self, lessons: &[Lesson<'_>]) {
        self.lessons = lessons_message(&self.request.request, lessons);
    }

    fn task_text(&self) -> Option<&str> {
        self.previous.and_then(task_text)
    }

    /// How the request relates to the decision before.
    #[must_use]
    pub fn follow_up(&self) -> FollowUp {
        self.follow_up
    }
}

/// What changes from one decision to the next without being part of the request.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// Now.
    pub now: Timestamp,
    /// Uniform in 0..1, for exploration.
    pub draw: f64,
    /// Id of the decision.
    pub id: Uuid,
    /// Id of the task, should it be a new one.
    pub task_id: Uuid,
    /// Milliseconds since the request arrived; called twice.
    pub elapsed_millis: &'a dyn Fn() -> f64,
    /// Whether somebody wants to read how the decision came about.
    pub explain: Explain,
}

impl<'a> Moment<'a> {
    /// A moment whose ids and draw come from 28 random bytes.
    #[must_use]
    pub fn new(
        now: Timestamp,
        random: [u8; 28],
        elapsed_millis: &'a dyn Fn() -> f64,
        explain: Explain,
    ) -> Self {
        let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
        let id = |at: usize| {
            let mut bytes = [0; 10];
            bytes.copy_from_slice(&random[at..at + 10]);
            uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid()
        };
        let mut draw = [0; 8];
        draw.copy_from_slice(&random[20..]);
        // 53 bits, so that every value is exact and below 1.
        let draw = (u64::from_le_bytes(draw) >> 11) as f64 / (1u64 << 53) as f64;
        Self {
            now,
            draw,
            id: id(0),
            task_id: id(10),
            elapsed_millis,
            explain,
        }
    }
}

/// Whether a trace is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Explain {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// A decision with what else its maker should know.
#[derive(Debug, Clone)]
pub struct Decided {
    /// The record.
    pub decision: Decision,
    /// Whether it belongs into the store.
    pub store: bool,
    /// Whether what comes of it may be recorded (`laya.telemetry`).
    pub records: bool,
    /// The decision whose last attempt this message corrects.
    pub corrects: Option<Uuid>,
    /// Each step, for people, if somebody asked.
    pub trace: Option<Trace>,
}

/// Decides.
///
/// # Errors
/// When no model can run the request.
pub fn decide(
    prepared: &Prepared<'_>,
    judgement: Judgement<'_>,
    state: &dyn State,
    moment: Moment<'_>,
) -> Result<Decided, NoCandidate> {
    let judged = judge::judge(prepared, judgement);
    let assessed_at = (moment.elapsed_millis)();
    let wish = choose::wish(prepared, &judged);
    let choice = select::choose(prepared, &judged, &wish, state, moment)?;
    let trace =
        (moment.explain == Explain::Yes).then(|| trace::tell(prepared, &judged, &wish, &choice));
    let mut decided = write::write(prepared, judged, wish, choice, moment, assessed_at);
    decided.trace = trace;
    Ok(decided)
}

/// What a direct request gets: no judgement is worth its time there.
const DIRECT: (Tier, Tier, Effort, Validation) =
    (Tier::Balanced, Tier::Fast, Effort::Low, Validation::None);
