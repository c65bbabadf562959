//! A LayaServer: what serves, what is to serve, and where its rollout stands.

use jiff::Timestamp;
use serde_json::Value;

use super::{name, short, text, time};
use crate::conditions::{self, Condition};

/// A LayaServer as its object says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Laya<'a>(pub(crate) &'a Value);

/// One version: champion, candidate or previous.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Version<'a>(&'a Value);

impl<'a> Version<'a> {
    pub(crate) fn model(self) -> &'a str {
        text(&self.0["model"]).unwrap_or("unnamed")
    }

    pub(crate) fn digest(self) -> Option<&'a str> {
        text(&self.0["digest"])
    }

    pub(crate) fn revision(self) -> Option<&'a str> {
        text(&self.0["revision"])
    }

    pub(crate) fn contract(self) -> Option<&'a str> {
        text(&self.0["contract"])
    }

    /// The device that serves.
    pub(crate) fn device(self) -> Option<&'a str> {
        text(&self.0["device"]["actual"])
    }

    /// Median latency of one question when it was probed, in milliseconds.
    pub(crate) fn p50_millis(self) -> Option<u64> {
        self.0["device"]["p50Millis"].as_u64()
    }

    pub(crate) fn since(self) -> Option<Timestamp> {
        time(&self.0["since"])
    }

    /// `v1 (d5a13ee24047)`.
    pub(crate) fn title(self) -> String {
        let short_digest = text(&self.0["shortDigest"]).or(self.digest().map(short));
        match short_digest {
            Some(digest) => format!("{} ({digest})", self.model()),
            None => self.model().to_owned(),
        }
    }
}

/// The rollout that runs, or ran last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rollout<'a>(&'a Value);

impl<'a> Rollout<'a> {
    pub(crate) fn state(self) -> &'a str {
        text(&self.0["state"]).unwrap_or("Unknown")
    }

    pub(crate) fn kind(self) -> Option<&'a str> {
        text(&self.0["kind"])
    }

    pub(crate) fn paused_from(self) -> Option<&'a str> {
        text(&self.0["pausedFrom"])
    }

    /// Step of a canary, from 1.
    pub(crate) fn step(self) -> Option<usize> {
        let step = self.0["step"].as_u64().filter(|step| *step > 0)?;
        usize::try_from(step).ok()
    }

    pub(crate) fn step_started(self) -> Option<Timestamp> {
        time(&self.0["stepStartedAt"])
    }

    /// Seconds of the step that had run before its clock went on last: it stands still while the rollout does.
    pub(crate) fn ran_before(self) -> i64 {
        self.0["pausedSeconds"].as_i64().unwrap_or(0)
    }

    pub(crate) fn started(self) -> Option<Timestamp> {
        time(&self.0["startedAt"])
    }

    pub(crate) fn message(self) -> Option<&'a str> {
        text(&self.0["message"])
    }

    pub(crate) fn checks(self) -> &'a Value {
        &self.0["checks"]
    }

    pub(crate) fn verdict(self) -> Option<&'a str> {
        text(&self.0["gate"]["verdict"])
    }

    pub(crate) fn evaluation(self) -> Option<&'a str> {
        text(&self.0["gate"]["evaluation"])
    }

    /// Whether it goes on, or stands still on its way.
    pub(crate) fn is_open(self) -> bool {
        !matches!(self.state(), "Done" | "Unknown")
    }

    /// Whether the candidate has become the champion.
    pub(crate) fn is_promoted(self) -> bool {
        matches!(self.state(), "Promoted" | "Baking" | "Draining" | "Done")
    }
}

/// Why a rollout stands still (control-plane 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// `spec.rollout.paused`: until somebody removes it.
    ByHand,
    /// For a verdict: until the gate says more.
    Verdict,
    /// For the router's report: until it is back.
    Report,
    /// `spec.suspend`, or no replica is wanted: until somebody takes that away.
    Suspended,
    /// A failure with `autoRollback: false`: only abort, another wish or a raised retry end it.
    Failure,
}

impl<'a> Laya<'a> {
    pub(crate) fn name(self) -> &'a str {
        name(self.0)
    }

    pub(crate) fn spec(self) -> &'a Value {
        &self.0["spec"]
    }

    fn status(self) -> &'a Value {
        &self.0["status"]
    }

    /// `spec.modelRef.name`.
    pub(crate) fn wished(self) -> Option<&'a str> {
        text(&self.spec()["modelRef"]["name"])
    }

    /// The model of the wish in force, which a promotion may have made.
    pub(crate) fn wish(self) -> Option<&'a str> {
        text(&self.status()["wish"]["model"])
    }

    /// `spec.modelRef.name` as the controller saw it when it made the wish.
    pub(crate) fn wish_spec_model(self) -> Option<&'a str> {
        text(&self.status()["wish"]["specModel"])
    }

    fn version(self, role: &str) -> Option<Version<'a>> {
        let version = &self.status()[role];
        // Another writer may leave an empty one behind.
        (text(&version["model"]).or(text(&version["revision"])))
            .is_some()
            .then_some(Version(version))
    }

    pub(crate) fn champion(self) -> Option<Version<'a>> {
        self.version("champion")
    }

    pub(crate) fn candidate(self) -> Option<Version<'a>> {
        self.version("candidate")
    }

    pub(crate) fn previous(self) -> Option<Version<'a>> {
        self.version("previous")
    }

    /// What a version is here, for people: champion first.
    pub(crate) fn role_of(self, model: &str) -> Option<&'static str> {
        let roles = [
            ("champion", self.champion()),
            ("candidate", self.candidate()),
            ("previous", self.previous()),
        ];
        roles
            .into_iter()
            .find(|(_, version)| version.is_some_and(|version| version.model() == model))
            .map(|(role, _)| role)
    }

    pub(crate) fn rollout(self) -> Option<Rollout<'a>> {
        let rollout = &self.status()["rollout"];
        rollout.is_object().then_some(Rollout(rollout))
    }

    /// Rollout that goes on or stands still.
    pub(crate) fn open_rollout(self) -> Option<Rollout<'a>> {
        self.rollout().filter(|rollout| rollout.is_open())
    }

    pub(crate) fn rollout_spec(self) -> &'a Value {
        &self.spec()["rollout"]
    }

    /// The path that a rollout takes: of one that the back end cannot follow, what it does instead (control-plane 8.1).
    pub(crate) fn strategy(self) -> &'a str {
        let is_cut = self.condition("FieldsSupported").is_some_and(|fields| {
            fields.status == "False" && fields.message.contains("spec.rollout.strategy")
        });
        let asked = text(&self.rollout_spec()["strategy"]).filter(|_| !is_cut);
        asked.unwrap_or("BlueGreen")
    }

    /// Weight in percent and seconds of each step of a canary.
    pub(crate) fn steps(self) -> Vec<(u64, i64)> {
        let steps = self.rollout_spec()["canary"]["steps"].as_array();
        let steps = steps.into_iter().flatten();
        steps
            .filter_map(|step| Some((step["weight"].as_u64()?, step["holdSeconds"].as_i64()?)))
            .collect()
    }

    pub(crate) fn gate(self) -> Option<&'a str> {
        text(&self.rollout_spec()["gateRef"]["name"])
    }

    pub(crate) fn retry(self) -> i64 {
        self.rollout_spec()["retry"].as_i64().unwrap_or(0)
    }

    pub(crate) fn is_paused_by_hand(self) -> bool {
        self.rollout_spec()["paused"] == true
    }

    pub(crate) fn external(self) -> Option<&'a str> {
        text(&self.spec()["external"]["url"])
    }

    pub(crate) fn is_suspended(self) -> bool {
        self.spec()["suspend"] == true || self.spec()["replicas"] == 0
    }

    /// Seconds of a field of `spec.rollout`, or its default.
    pub(crate) fn rollout_seconds(self, field: &str, default: i64) -> i64 {
        self.rollout_spec()[field].as_i64().unwrap_or(default)
    }

    pub(crate) fn condition(self, kind: &str) -> Option<Condition> {
        conditions::find(self.0, kind)
    }

    /// Whether the wish was taken back and is not tried again, and why.
    pub(crate) fn taken_back(self) -> Option<Condition> {
        self.condition("Stalled").filter(|stalled| {
            stalled.is_true() && matches!(stalled.reason.as_str(), "Rejected" | "RollbackFailed")
        })
    }

    /// The newest entry of `status.rejected` for a checkpoint.
    pub(crate) fn rejection_of(self, digest: &str) -> Option<&'a Value> {
        let rejected = self.status()["rejected"].as_array()?;
        let of_digest = rejected.iter().filter(|entry| entry["digest"] == digest);
        of_digest.max_by_key(|entry| time(&entry["at"]))
    }

    pub(crate) fn rejected(self) -> &'a [Value] {
        self.status()["rejected"]
            .as_array()
            .map_or(&[], Vec::as_slice)
    }

    pub(crate) fn history(self) -> &'a [Value] {
        self.status()["history"]
            .as_array()
            .map_or(&[], Vec::as_slice)
    }

    /// Percent of the requests that the candidate gets.
    pub(crate) fn weight(self) -> Option<u64> {
        let targets = self.status()["traffic"]["targets"].as_array()?;
        let candidate = targets
            .iter()
            .find(|target| target["role"] == "Candidate")?;
        candidate["weight"].as_u64()
    }

    /// Why it stands still, if it does.
    pub(crate) fn pause(self) -> Option<Pause> {
        if self.is_paused_by_hand() {
            return Some(Pause::ByHand);
        }
        let rollout = self
            .rollout()
            .filter(|rollout| rollout.state() == "Paused")?;
        if self.failed_in_place() {
            return Some(Pause::Failure);
        }
        if self.is_suspended() {
            return Some(Pause::Suspended);
        }
        match rollout.paused_from() {
            Some("Gating") => Some(Pause::Verdict),
            Some("Shadowing" | "Shifting") => Some(Pause::Report),
            // What held it is gone, and it goes on with the next look.
            _ => None,
        }
    }

    /// Whether the revision that an open rollout is about was rejected and not taken back, as the controller records it.
    fn failed_in_place(self) -> bool {
        let revision = |version: Option<Version<'a>>| version.and_then(Version::revision);
        let rolled = revision(self.candidate()).or_else(|| revision(self.champion()));
        rolled.is_some_and(|revision| {
            let mut rejected = self.rejected().iter();
            rejected.any(|entry| entry["revision"] == revision)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_pause_is_told_from_the_others() {
        let paused = |from: &str| json!({"state": "Paused", "pausedFrom": from});
        let all = |spec: Value, rollout: Value, rejected: Value| {
            json!({"spec": spec, "status": {"rollout": rollout, "rejected": rejected,
                "candidate": {"model": "w", "revision": "r2"}, "champion": {"model": "v1", "revision": "r1"}}})
        };
        for (name, object, expected) in [
            (
                "failure",
                all(json!({}), paused("Baking"), json!([{"revision": "r2"}])),
                Some(Pause::Failure),
            ),
            (
                "another was rejected",
                all(json!({}), paused("Shifting"), json!([{"revision": "r1"}])),
                Some(Pause::Report),
            ),
            (
                "suspended",
                all(json!({"suspend": true}), paused("Loading"), json!([])),
                Some(Pause::Suspended),
            ),
            (
                "suspended after a failure",
                all(
                    json!({"suspend": true}),
                    paused("Loading"),
                    json!([{"revision": "r2"}]),
                ),
                Some(Pause::Failure),
            ),
        ] {
            assert_eq!(Laya(&object).pause(), expected, "{name}");
        }
        for (name, spec, rollout, expected) in [
            ("none", json!({}), json!({"state": "Loading"}), None),
            (
                "by hand",
                json!({"paused": true}),
                json!({}),
                Some(Pause::ByHand),
            ),
            ("verdict", json!({}), paused("Gating"), Some(Pause::Verdict)),
            ("report", json!({}), paused("Shifting"), Some(Pause::Report)),
            (
                "shadow",
                json!({}),
                paused("Shadowing"),
                Some(Pause::Report),
            ),
            (
                "no cause any more",
                json!({"autoRollback": false}),
                paused("Baking"),
                None,
            ),
        ] {
            let object = json!({"spec": {"rollout": spec}, "status": {"rollout": rollout}});
            assert_eq!(Laya(&object).pause(), expected, "{name}");
        }
    }

    #[test]
    fn versions_have_titles_and_roles() {
        let object = json!({"status": {
            "champion": {"model": "v1", "digest": "sha256:d5a13ee2404702eb", "revision": "r1"},
            "candidate": {"model": "w", "shortDigest": "41c07fe2a9d1"}, "previous": {}}});
        let laya = Laya(&object);
        assert_eq!(laya.champion().unwrap().title(), "v1 (d5a13ee24047)");
        assert_eq!(laya.candidate().unwrap().title(), "w (41c07fe2a9d1)");
        assert!(laya.previous().is_none());
        assert_eq!(laya.role_of("w"), Some("candidate"));
        assert_eq!(laya.role_of("x"), None);
    }
}
