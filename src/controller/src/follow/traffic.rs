//! A LayaServer as far as a router looks at it, and when what it says is another table than the one before. Pure.

use std::collections::BTreeMap;

use api::kinds::LayaServer;
use api::kinds::laya_server::Traffic;
use kube::ResourceExt;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::view::View;

/// What a router reads of a LayaServer.
pub(super) type Glimpse = View<LayaServer, StatusGlimpse, SpecGlimpse>;

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct SpecGlimpse {
    #[serde(default)]
    rollout: RolloutGlimpse,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RolloutGlimpse {
    shadow: Option<ShadowGlimpse>,
    drain_seconds: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ShadowGlimpse {
    sample_ratio: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct StatusGlimpse {
    /// Why it cannot be read where it cannot.
    #[serde(deserialize_with = "readable")]
    traffic: Option<Result<Traffic, String>>,
    champion: VersionGlimpse,
    candidate: VersionGlimpse,
    previous: VersionGlimpse,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct VersionGlimpse {
    model: Option<String>,
    revision: Option<String>,
    digest: Option<String>,
    contract: Option<String>,
}

fn readable<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Result<Traffic, String>>, D::Error> {
    let tree = Value::deserialize(deserializer)?;
    let read = || serde_json::from_value(tree.clone()).map_err(|error| error.to_string());
    Ok((!tree.is_null()).then(read))
}

/// Share of the requests that is copied where spec does not say: the default of `rollout.shadow.sampleRatio`.
const COPIED_MILLIONTHS: u32 = 100_000;

/// A LayaServer and where its requests go.
#[derive(Debug, Clone, PartialEq)]
pub struct FollowedServer {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// `status.traffic.generation`, which grows with each change; 0 before the first.
    pub generation: i64,
    /// Where requests go.
    pub traffic: Traffic,
    /// What serves.
    pub champion: Option<FollowedChampion>,
    /// Names of the LayaModels by revision, as far as status names them.
    pub models: BTreeMap<String, String>,
    /// Share of the requests that is copied to a shadow, in millionths.
    pub copied_millionths: u32,
    /// How long a server that lost its traffic may finish requests.
    pub drain_seconds: u32,
}

/// What serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedChampion {
    /// Name of the LayaModel.
    pub model: Option<String>,
    /// Checkpoint digest.
    pub digest: Option<String>,
    /// Contract digest, where it names one.
    pub contract: Option<String>,
}

impl FollowedServer {
    /// What an object says.
    ///
    /// # Errors
    /// When its traffic is of a form that this program does not know.
    pub(super) fn read(seen: &Glimpse) -> Result<Self, String> {
        let StatusGlimpse {
            traffic,
            champion,
            candidate,
            previous,
        } = &seen.status;
        let traffic = traffic.clone().transpose()?.unwrap_or_default();
        let RolloutGlimpse {
            shadow,
            drain_seconds,
        } = &seen.spec.rollout;
        let ratio = shadow
            .as_ref()
            .and_then(|shadow| shadow.sample_ratio.as_deref());
        // What serves names a revision last, should two name the same.
        let versions = [previous, candidate, champion].into_iter();
        let models = versions
            .filter_map(|version| Some((version.revision.clone()?, version.model.clone()?)));
        Ok(Self {
            namespace: seen.namespace().unwrap_or_default(),
            name: seen.name_any(),
            uid: seen.uid().unwrap_or_default(),
            generation: traffic.generation.unwrap_or(0),
            traffic,
            champion: (*champion != VersionGlimpse::default()).then(|| FollowedChampion {
                model: champion.model.clone(),
                digest: champion.digest.clone(),
                contract: champion.contract.clone(),
            }),
            models: models.collect(),
            copied_millionths: ratio.and_then(millionths).unwrap_or(COPIED_MILLIONTHS),
            drain_seconds: drain_seconds.unwrap_or(0),
        })
    }

    /// Whether what came later takes the place of this. Within one object the generation decides; an older one is only
    /// believed when it was written later (`order` is that of the resource versions), as after a status that was lost.
    pub(super) fn gives_way_to(&self, later: &Self, order: Order) -> bool {
        let is_same_object =
            (&self.namespace, &self.name, &self.uid) == (&later.namespace, &later.name, &later.uid);
        if !is_same_object || later.generation > self.generation {
            return true;
        }
        if later.generation < self.generation {
            return order == Order::Later;
        }
        self != later
    }
}

/// How the resource version of one observation is to that of the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// It was written later.
    Later,
    /// It was not, or nobody knows.
    Unknown,
}

impl Order {
    /// Of two resource versions; both stores count with them.
    pub(super) fn of(before: Option<&str>, now: Option<&str>) -> Self {
        let number = |version: Option<&str>| version?.parse::<u64>().ok();
        match (number(before), number(now)) {
            (Some(before), Some(now)) if now > before => Self::Later,
            _ => Self::Unknown,
        }
    }
}

/// A ratio of at most six decimals, in millionths.
fn millionths(ratio: &str) -> Option<u32> {
    let (whole, decimals) = ratio.split_once('.').unwrap_or((ratio, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || decimals.len() > 6 || !digits(whole) || !digits(decimals) {
        return None;
    }
    let whole: u32 = whole.parse().ok()?;
    let decimals: u32 = format!("{decimals:0<6}").parse().ok()?;
    let all = whole.checked_mul(1_000_000)?.checked_add(decimals)?;
    (all <= 1_000_000).then_some(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(spec: &Value, status: &Value) -> Result<FollowedServer, String> {
        let object = json!({
            "metadata": {"name": "main", "namespace": "ns", "uid": "u1"},
            "spec": spec, "status": status,
        });
        FollowedServer::read(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_server_is_read_with_what_a_router_needs() {
        let spec = json!({
            "modelRef": {"name": "v2"}, "new": 1,
            "rollout": {"drainSeconds": 12, "shadow": {"sampleRatio": "0.25", "minComparisons": 7}},
        });
        let status = json!({
            "champion": {"model": "v1", "revision": "aaaa", "digest": "sha256:1", "contract": "sha256:c"},
            "candidate": {"model": "v2", "revision": "bbbb"},
            "traffic": {"generation": 7, "stableUrl": "http://s", "targets": [
                {"revision": "aaaa", "urls": ["http://127.0.0.1:1"], "weight": 90, "role": "Champion"},
                {"revision": "bbbb", "urls": ["http://127.0.0.1:2"], "weight": 10, "role": "Sideways"}]},
        });
        let server = seen(&spec, &status).unwrap();
        assert_eq!((&*server.namespace, &*server.name), ("ns", "main"));
        assert_eq!((server.generation, server.traffic.targets.len()), (7, 2));
        assert_eq!(
            (server.copied_millionths, server.drain_seconds),
            (250_000, 12)
        );
        let models: Vec<_> = server.models.iter().collect();
        assert_eq!(
            models,
            [
                (&"aaaa".to_owned(), &"v1".to_owned()),
                (&"bbbb".to_owned(), &"v2".to_owned())
            ]
        );
        let contract = server.champion.unwrap().contract;
        assert_eq!(contract.as_deref(), Some("sha256:c"));
        // A new one, and one of a form nobody here knows.
        let new = seen(&json!({}), &json!({})).unwrap();
        assert_eq!((new.generation, new.traffic), (0, Traffic::default()));
        assert_eq!((new.champion, new.copied_millionths), (None, 100_000));
        assert!(seen(&json!({}), &json!({"traffic": {"targets": "all"}})).is_err());
    }

    #[test]
    fn a_later_table_takes_the_place_of_an_earlier_one() {
        let server = |uid: &str, generation: i64, copied: u32| FollowedServer {
            uid: uid.to_owned(),
            generation,
            copied_millionths: copied,
            ..seen(&json!({}), &json!({})).unwrap()
        };
        let first = server("u1", 5, 1);
        for (name, later, order, expected) in [
            ("the same", server("u1", 5, 1), Order::Later, false),
            ("grown", server("u1", 6, 1), Order::Unknown, true),
            (
                "another share of copies",
                server("u1", 5, 2),
                Order::Unknown,
                true,
            ),
            (
                "an old one that comes late",
                server("u1", 4, 1),
                Order::Unknown,
                false,
            ),
            ("counted anew", server("u1", 1, 1), Order::Later, true),
            ("made anew", server("u2", 1, 1), Order::Unknown, true),
        ] {
            assert_eq!(first.gives_way_to(&later, order), expected, "{name}");
        }
        for (before, now, expected) in [
            (Some("9"), Some("10"), Order::Later),
            (Some("10"), Some("9"), Order::Unknown),
            (Some("10"), Some("10"), Order::Unknown),
            (None, Some("9"), Order::Unknown),
            (Some("a"), Some("9"), Order::Unknown),
        ] {
            assert_eq!(Order::of(before, now), expected, "{before:?} {now:?}");
        }
    }

    #[test]
    fn ratios_are_read_exactly() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1", Some(1_000_000)),
            ("0.1", Some(100_000)),
            ("0.000001", Some(1)),
            ("1.000000", Some(1_000_000)),
            ("1.1", None),
            ("0.0000001", None),
            (".5", None),
            ("-0.5", None),
            ("half", None),
        ] {
            assert_eq!(millionths(text), expected, "{text}");
        }
    }
}
