//! Where a model stands, in words. Pure.

use api::condition::ConditionType;
use api::kinds::laya_model::{FetchProgress, ModelPhase};
use api::kinds::{ConditionStatus, LayaModelStatus};
use api::reason::Reason;
use backend::VolumeRole;
use jiff::Timestamp;

use super::Pass;
use crate::layamodel::retry;
use crate::layamodel::status::{Stand, Word, short};

/// The spec cannot be done.
pub(super) fn invalid(problem: &str) -> Stand {
    Stand::not_ready(ModelPhase::Failed, Reason::InvalidSpec, problem).stalled(Reason::InvalidSpec)
}

/// It can be used.
pub(super) fn published(pass: &Pass<'_>, phase: ModelPhase) -> Stand {
    let facts = &pass.facts;
    let digest = short(facts.digest.as_deref().unwrap_or_default());
    let lies = facts
        .location
        .as_ref()
        .and_then(|location| location.volume.as_deref());
    let lies = lies.unwrap_or_default();
    Stand {
        phase,
        ready: Word::yes(Reason::Reconciled, format!("{digest} lies in {lies}")),
        fetched: Some(Word::yes(
            Reason::Observed,
            format!("the files lie in {lies}"),
        )),
        verified: Some(verified(facts)),
        stalled: None,
        working: None,
    }
}

fn verified(facts: &LayaModelStatus) -> Word {
    if facts.contract.is_some() {
        return Word::yes(Reason::Observed, "the files are those of the manifest");
    }
    Word::yes(
        Reason::ContractUnverified,
        "the files are those of the manifest; the checkpoint names no contract and is taken to be ours. Set it with \
         `relayctl model import`",
    )
}

/// The checkpoint answers other questions than the spec names.
pub(super) fn other_contract(facts: &LayaModelStatus, asked: &str) -> Stand {
    let named = facts.contract.as_deref().unwrap_or_default();
    let message = format!(
        "the checkpoint is for contract {}, spec.contract is {}. Use a checkpoint that was made for it",
        short(named),
        short(asked)
    );
    Stand::not_ready(ModelPhase::Failed, Reason::ContractMismatch, message)
        .verified_too()
        .stalled(Reason::ContractMismatch)
}

/// Files are coming.
pub(super) fn fetching(pass: &Pass<'_>, message: String) -> Stand {
    let repairs = is_damaged(&pass.facts);
    if repairs {
        return damaged(ModelPhase::Repairing, &message).working();
    }
    let mut stand = Stand::not_ready(ModelPhase::Fetching, Reason::Fetching, message)
        .fetched_too()
        .working();
    stand.verified = lost_word(&pass.facts);
    stand
}

/// Files are here and not right.
pub(super) fn damaged(phase: ModelPhase, message: &str) -> Stand {
    let message = format!("files differ from the manifest: {message}");
    let mut stand = Stand::not_ready(phase, Reason::ModelDamaged, message).verified_too();
    stand.fetched = Some(Word::yes(Reason::Observed, "the files are there"));
    stand
}

/// Whether files are here that were found wrong.
pub(super) const fn is_damaged(facts: &LayaModelStatus) -> bool {
    facts.location.is_some() && facts.verified_at.is_none()
}

/// Whether it can be used.
pub(super) const fn is_published(facts: &LayaModelStatus) -> bool {
    facts.location.is_some() && facts.verified_at.is_some()
}

/// A version that was here and whose volume is gone.
pub(super) fn lost_word(facts: &LayaModelStatus) -> Option<Word> {
    let lost = facts.digest.is_some() && facts.location.is_none();
    lost.then(|| {
        Word::no(
            Reason::VolumeLost,
            "the volume with the files is gone or is another one",
        )
    })
}

/// An attempt failed: it waits for the next, or for somebody.
pub(super) fn after_failure(pass: &Pass<'_>, fetch: &FetchProgress) -> Stand {
    let error = fetch.last_error.clone().unwrap_or_default();
    let reason = error.reason.as_deref().and_then(Reason::by_word);
    let reason = reason.unwrap_or(Reason::SourceInterrupted);
    let gave_up = retry::gave_up(fetch);
    let why = error.message.unwrap_or_default();
    let message = match (gave_up, fetch.next_attempt_at) {
        (_, at) if reason == Reason::NoSpace => no_space(pass, &why, at),
        (false, Some(at)) => format!("{why}; tried again at {at}"),
        _ => format!("{why}. {}", remedy(reason)),
    };
    let for_people = matches!(
        reason,
        Reason::NoSpace | Reason::ReadOnlyVolume | Reason::SourceUnauthorized
    );
    let repairs = is_damaged(&pass.facts);
    // The bytes are those of the manifest, and mean nothing to the engine: no repair changes that.
    let unfit = reason == Reason::BadCheckpoint;
    let phase = match (gave_up || for_people, repairs) {
        (true, _) => ModelPhase::Failed,
        (false, true) => ModelPhase::Repairing,
        (false, false) => ModelPhase::Fetching,
    };
    let mut stand = if repairs && !unfit {
        damaged(phase, &message)
    } else {
        Stand::not_ready(phase, reason, message)
            .fetched_too()
            .verified_too()
    };
    if repairs && unfit {
        stand.fetched = Some(Word::yes(Reason::Observed, "the files are there"));
    }
    if !repairs && stand.fetched.is_none() && stand.verified.is_none() {
        // A word that belongs to neither, such as OutOfMemory.
        stand.fetched = Some(Word::no(Reason::Fetching, stand.ready.message.clone()));
    }
    if !repairs && stand.verified.is_none() {
        stand.verified = lost_word(&pass.facts);
    }
    if gave_up || reason == Reason::SourceUnauthorized {
        if let Some(word) = stall_word(reason) {
            return stand.stalled(word);
        }
        return stand;
    }
    if for_people { stand } else { stand.working() }
}

/// The task says what it needs and what is free; here the volume gets the name that people know it by.
fn no_space(pass: &Pass<'_>, why: &str, again: Option<Timestamp>) -> String {
    let volume = pass.seen.volume(&VolumeRole::Models);
    let place = volume.map_or(String::new(), |volume| format!(" (volume {})", volume.name));
    let again = again.map_or(String::new(), |at| format!("; tried again at {at}"));
    format!(
        "{why}{place}{again}. Make room there: `relayctl model ls` lists versions, `relayctl model rm NAME` removes one"
    )
}

/// The word on `Stalled` for a failure that only a change helps against, where the page has one.
const fn stall_word(reason: Reason) -> Option<Reason> {
    match reason {
        Reason::DigestMismatch
        | Reason::ContractMismatch
        | Reason::UnsafePath
        | Reason::BadCheckpoint
        | Reason::SourceUnauthorized
        | Reason::SourceNotFound
        | Reason::InvalidSpec => Some(reason),
        // Bytes that are not those of the digest either.
        Reason::SizeMismatch => Some(Reason::DigestMismatch),
        _ => None,
    }
}

const fn remedy(reason: Reason) -> &'static str {
    match reason {
        Reason::SourceUnauthorized => "Correct the Secret that the spec names",
        Reason::SourceNotFound => "Correct the address or the names of the files",
        Reason::FetchDeadlineExceeded => "Raise spec.fetch.deadlineSeconds, or use a faster source",
        Reason::DigestMismatch | Reason::SizeMismatch => {
            "Make the object again with the right digest, or put the right files there and change annotation relay.dev/verify"
        }
        Reason::ContractMismatch => "Use a checkpoint that was made for this contract",
        Reason::UnsafePath => "Correct the manifest",
        Reason::BadCheckpoint => "Publish the checkpoint again",
        Reason::ModelDamaged => "Repair the volume, then change annotation relay.dev/verify",
        Reason::InvalidSpec => "Correct the spec",
        _ => "Raise spec.fetch.maxAttempts, or change annotation relay.dev/verify to try again",
    }
}

/// It was asked to rest before anything was here.
pub(super) fn suspended(pass: &Pass<'_>) -> Stand {
    let message = "spec.suspend is set, so no fetch is started. Remove it to fetch";
    if is_damaged(&pass.facts) {
        return damaged(ModelPhase::Repairing, message);
    }
    let mut stand = Stand::not_ready(ModelPhase::Pending, Reason::Suspended, message);
    stand.fetched = Some(Word::no(Reason::NotStarted, message));
    stand.verified = lost_word(&pass.facts);
    stand
}

/// Something it needs is not there yet.
pub(super) fn pending(pass: &Pass<'_>, reason: Reason, message: String) -> Stand {
    let mut stand = Stand::not_ready(ModelPhase::Pending, reason, message).fetched_too();
    stand.verified = lost_word(&pass.facts);
    if stand.verified.is_some() && reason == Reason::NotStarted {
        stand.ready.reason = Reason::VolumeLost;
    }
    stand
}

/// A verification runs or is about to; what could be used still can.
pub(super) fn verifying(pass: &Pass<'_>, message: &str) -> Stand {
    if is_published(&pass.facts) {
        return published(pass, ModelPhase::Verifying);
    }
    let mut stand = Stand::not_ready(ModelPhase::Verifying, Reason::Fetching, message)
        .fetched_too()
        .working();
    stand.verified = match lost_word(&pass.facts) {
        None if is_damaged(&pass.facts) => Some(Word::no(Reason::ModelDamaged, message)),
        lost => lost,
    };
    stand
}

/// Something of a needed name is not ours.
pub(super) fn name_taken(pass: &Pass<'_>) -> Option<(Stand, String)> {
    let stranger = pass.seen.strangers.first()?;
    let message = format!(
        "{} is there and belongs to {}, not to relay. Remove or rename it",
        stranger.name, stranger.holder
    );
    let ready = is_published(&pass.facts);
    let mut stand = Stand::not_ready(ModelPhase::Pending, Reason::NameTaken, message.clone())
        .stalled(Reason::NameTaken);
    stand.verified = lost_word(&pass.facts);
    if ready {
        let fine = published(pass, ModelPhase::Published);
        stand = Stand {
            stalled: stand.stalled,
            ..fine
        };
    }
    debug_assert!(Reason::NameTaken.may_stand_on(ConditionType::Stalled));
    debug_assert!(stand.ready.status != ConditionStatus::Unknown);
    Some((stand, message))
}
