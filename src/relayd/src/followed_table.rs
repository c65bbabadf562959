//! The traffic of a LayaServer as a table of servers (control-plane 10). Pure: wordings are loaded elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::kinds::laya_server::{Target as Revision, TargetRole};
use controller::follow::FollowedServer;
use router::servers::{Expected, Role, ServerUrl, Silence, Target, Traffic, Upstream, Wording};

/// How a server is called that no revision names: one that is not ours.
const EXTERNAL: &str = "external";
/// How the address that outlives versions is called.
const STABLE: &str = "stable";

/// Whether `stableUrl` is asked when others failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StableUrl {
    /// In a cluster it is a Service.
    Asked,
    /// On a laptop the router itself is the address that outlives versions.
    Ignored,
}

/// Wordings by contract digest.
pub(crate) type Wordings = BTreeMap<String, Arc<Wording>>;

/// The numbers of the servers of each revision. A server keeps its number for as long as it has traffic, so that nothing
/// known about it is lost when another one comes or goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Numbers(BTreeMap<String, BTreeMap<String, usize>>);

impl Numbers {
    /// Those of the next table: known servers keep theirs, new ones get the lowest free ones.
    fn next(&self, revisions: &[(Role, &Revision)]) -> Self {
        let mut next = BTreeMap::new();
        for (_, revision) in revisions {
            let known = self.0.get(name_of(revision));
            let kept = |url: &String| Some((url.clone(), *known?.get(url)?));
            let mut numbers: BTreeMap<_, _> = revision.urls.iter().filter_map(kept).collect();
            for url in &revision.urls {
                let free = (0..).find(|number| !numbers.values().any(|taken| taken == number));
                if !numbers.contains_key(url) {
                    numbers.extend(free.map(|number| (url.clone(), number)));
                }
            }
            next.insert(name_of(revision).to_owned(), numbers);
        }
        Self(next)
    }
}

/// A table, and what of the traffic is not in it.
#[derive(Debug)]
pub(crate) struct FollowedTable {
    pub(crate) targets: Vec<Target>,
    pub(crate) traffic: Traffic,
    pub(crate) numbers: Numbers,
    pub(crate) problems: Vec<String>,
}

fn name_of(revision: &Revision) -> &str {
    revision.revision.as_deref().unwrap_or(EXTERNAL)
}

/// What a table of that LayaServer is called.
pub(crate) fn traffic(server: &FollowedServer) -> Traffic {
    Traffic {
        server: format!("{}/{}", server.namespace, server.name),
        generation: server.generation,
        copied_millionths: server.copied_millionths,
    }
}

/// Contracts whose wording must be loaded: those that are not ours.
pub(crate) fn foreign_contracts(server: &FollowedServer) -> Vec<String> {
    let ours = decision_contract();
    let mut contracts: Vec<String> = server
        .traffic
        .targets
        .iter()
        .filter_map(|target| target.contract.clone())
        .filter(|contract| *contract != ours)
        .collect();
    contracts.sort();
    contracts.dedup();
    contracts
}

fn decision_contract() -> String {
    Wording::ours().contract().digest().to_string()
}

/// The table that a LayaServer's traffic stands for. Candidates come first: theirs are the lowest places (training 10).
pub(crate) fn table(
    server: &FollowedServer,
    before: &Numbers,
    wordings: &Wordings,
    stable: StableUrl,
) -> FollowedTable {
    let mut problems = Vec::new();
    let mut revisions: Vec<_> = server
        .traffic
        .targets
        .iter()
        .filter_map(|revision| match role(revision) {
            Some(role) => Some((role, revision)),
            None => {
                let name = name_of(revision);
                problems.push(format!(
                    "revision {name} has a role this program does not know"
                ));
                None
            }
        })
        .filter(|(role, revision)| *role == Role::Shadow || weight(revision) > 0)
        .collect();
    revisions.sort_by_key(|(role, _)| match role {
        Role::Candidate => 0,
        Role::Champion => 1,
        Role::Shadow => 2,
    });
    let numbers = before.next(&revisions);
    let mut targets = Vec::new();
    for (role, revision) in &revisions {
        for url in &revision.urls {
            match server_of(server, (*role, revision), url, &numbers, wordings) {
                Some(target) => targets.push(target),
                None => problems.push(format!("`{url}` is no address of a server")),
            }
        }
    }
    let last = stable_target(server, &targets, stable);
    // A table of shadows alone would answer nobody.
    if targets.iter().all(|target| target.role == Role::Shadow) {
        targets.clear();
    } else {
        targets.extend(last);
    }
    FollowedTable {
        targets,
        traffic: traffic(server),
        numbers,
        problems,
    }
}

fn role(revision: &Revision) -> Option<Role> {
    match revision.role {
        // One that is alone need not say what it is.
        None | Some(TargetRole::Champion) => Some(Role::Champion),
        Some(TargetRole::Candidate) => Some(Role::Candidate),
        Some(TargetRole::Shadow) => Some(Role::Shadow),
        Some(_) => None,
    }
}

fn weight(revision: &Revision) -> u32 {
    let weight = revision.weight.unwrap_or(100);
    u32::try_from(weight).unwrap_or(0)
}

fn server_of(
    server: &FollowedServer,
    (role, revision): (Role, &Revision),
    url: &str,
    numbers: &Numbers,
    wordings: &Wordings,
) -> Option<Target> {
    let address: ServerUrl = url.parse().ok()?;
    let name = name_of(revision);
    let number = numbers.0.get(name)?.get(url)?;
    let contract = revision.contract.as_ref();
    Some(Target {
        name: format!("{name}-{number}"),
        version: version(server, name),
        upstream: Upstream::Http {
            url: address,
            key: None,
        },
        revision: Some(name.to_owned()),
        weight: match role {
            Role::Shadow => 0,
            Role::Champion | Role::Candidate => weight(revision),
        },
        role,
        wording: contract
            .and_then(|contract| wordings.get(contract))
            .cloned(),
        expected: Expected {
            contract: contract.cloned(),
            checkpoint: revision.digest.clone(),
            // A Laya before ours names neither; the controller asked it before it got traffic.
            silence: Silence::Accepted,
        },
    })
}

/// The LayaModel of a revision; its revision where nobody says.
fn version(server: &FollowedServer, revision: &str) -> String {
    let model = server.models.get(revision);
    model.cloned().unwrap_or_else(|| revision.to_owned())
}

/// The address that outlives versions, asked last. Whichever version answers there says so itself.
fn stable_target(server: &FollowedServer, targets: &[Target], stable: StableUrl) -> Option<Target> {
    let champion = targets
        .iter()
        .find(|target| target.role == Role::Champion)?;
    let url = server.traffic.stable_url.as_deref()?;
    let url: ServerUrl = match stable {
        StableUrl::Asked => url.parse().ok()?,
        StableUrl::Ignored => return None,
    };
    let upstream = Upstream::Http { url, key: None };
    if targets.iter().any(|target| target.upstream == upstream) {
        return None;
    }
    Some(Target {
        name: STABLE.to_owned(),
        upstream,
        revision: None,
        weight: 0,
        expected: Expected::default(),
        ..champion.clone()
    })
}

#[cfg(test)]
mod tests {
    use controller::follow::FollowedChampion;

    use super::*;

    fn revision(name: &str, role: TargetRole, weight: i32, urls: &[&str]) -> Revision {
        Revision {
            revision: Some(name.to_owned()),
            digest: Some(format!("sha256:{name}")),
            contract: Some(decision_contract()),
            urls: urls.iter().map(|url| (*url).to_owned()).collect(),
            weight: Some(weight),
            role: Some(role),
        }
    }

    fn server(targets: Vec<Revision>) -> FollowedServer {
        FollowedServer {
            namespace: "ns".to_owned(),
            name: "main".to_owned(),
            uid: "u".to_owned(),
            generation: 7,
            traffic: api::kinds::laya_server::Traffic {
                generation: Some(7),
                targets,
                ..Default::default()
            },
            champion: Some(FollowedChampion {
                model: Some("v1".to_owned()),
                digest: None,
                contract: None,
            }),
            models: [("aaaa".to_owned(), "v1".to_owned())].into(),
            copied_millionths: 100_000,
            drain_seconds: 30,
        }
    }

    fn made(server: &FollowedServer, before: &Numbers) -> FollowedTable {
        table(server, before, &Wordings::new(), StableUrl::Asked)
    }

    /// Names with weights, in order.
    fn names(table: &FollowedTable) -> Vec<(&str, u32)> {
        let targets = table.targets.iter();
        targets
            .map(|target| (&*target.name, target.weight))
            .collect()
    }

    #[test]
    fn traffic_becomes_a_table_with_the_candidate_first() {
        use TargetRole::{Candidate, Champion, Shadow};
        let (one, two, three) = (
            "http://127.0.0.1:1",
            "http://127.0.0.1:2",
            "http://127.0.0.1:3",
        );
        for (name, targets, expected) in [
            ("nothing serves", vec![], vec![]),
            (
                "all at once",
                vec![revision("aaaa", Champion, 100, &[one, two])],
                vec![("aaaa-0", 100), ("aaaa-1", 100)],
            ),
            (
                "a step",
                vec![
                    revision("aaaa", Champion, 95, &[one]),
                    revision("bbbb", Candidate, 5, &[two]),
                ],
                vec![("bbbb-0", 5), ("aaaa-0", 95)],
            ),
            (
                "copies",
                vec![
                    revision("bbbb", Shadow, 0, &[two]),
                    revision("aaaa", Champion, 100, &[one]),
                ],
                vec![("aaaa-0", 100), ("bbbb-0", 0)],
            ),
            (
                "a candidate without a share is not asked, not even when the champion fails",
                vec![
                    revision("aaaa", Champion, 100, &[one]),
                    revision("bbbb", Candidate, 0, &[two]),
                ],
                vec![("aaaa-0", 100)],
            ),
            (
                "copies alone answer nobody",
                vec![revision("bbbb", Shadow, 0, &[two])],
                vec![],
            ),
            (
                "a weight below zero",
                vec![revision("aaaa", Champion, -1, &[one])],
                vec![],
            ),
            (
                "one address is wrong",
                vec![revision("aaaa", Champion, 100, &["nonsense", three])],
                vec![("aaaa-1", 100)],
            ),
        ] {
            let table = made(&server(targets), &Numbers::default());
            assert_eq!(names(&table), expected, "{name}");
            assert_eq!(table.traffic.server, "ns/main");
            assert_eq!(table.traffic.generation, 7);
            assert_eq!(
                table.problems.len(),
                usize::from(name.contains("wrong")),
                "{name}"
            );
        }
    }

    #[test]
    fn a_server_must_be_what_its_revision_is() {
        let table = made(
            &server(vec![
                revision("aaaa", TargetRole::Champion, 90, &["http://127.0.0.1:1"]),
                revision("bbbb", TargetRole::Candidate, 10, &["http://127.0.0.1:2"]),
            ]),
            &Numbers::default(),
        );
        let [candidate, champion] = &*table.targets else {
            panic!("{table:?}");
        };
        assert_eq!((&*champion.version, &*candidate.version), ("v1", "bbbb"));
        assert_eq!(candidate.revision.as_deref(), Some("bbbb"));
        let expected = Expected {
            contract: Some(decision_contract()),
            checkpoint: Some("sha256:bbbb".to_owned()),
            silence: Silence::Accepted,
        };
        assert_eq!(candidate.expected, expected);
        assert_eq!(
            (candidate.role, champion.role),
            (Role::Candidate, Role::Champion)
        );
    }

    #[test]
    fn an_external_server_has_no_revision_and_its_role_may_be_unknown() {
        let external = Revision {
            urls: vec!["http://127.0.0.1:8737".to_owned()],
            ..Revision::default()
        };
        let sideways: Revision =
            serde_json::from_value(serde_json::json!({"revision": "cccc", "role": "Sideways", "urls": ["http://x"], "weight": 5}))
                .unwrap();
        let table = made(&server(vec![external, sideways]), &Numbers::default());
        assert_eq!(names(&table), [("external-0", 100)]);
        assert_eq!(table.targets[0].expected.contract, None);
        assert_eq!(table.problems.len(), 1);
    }

    #[test]
    fn servers_keep_their_numbers() {
        let with = |urls: &[&str]| server(vec![revision("aaaa", TargetRole::Champion, 100, urls)]);
        let (one, two, three) = (
            "http://127.0.0.1:1",
            "http://127.0.0.1:2",
            "http://127.0.0.1:3",
        );
        let first = made(&with(&[one, two]), &Numbers::default());
        let second = made(&with(&[two]), &first.numbers);
        assert_eq!(names(&second), [("aaaa-1", 100)]);
        let third = made(&with(&[three, two]), &second.numbers);
        assert_eq!(names(&third), [("aaaa-0", 100), ("aaaa-1", 100)]);
        assert_eq!(
            third.targets[1], first.targets[1],
            "nothing known about it is lost"
        );
    }

    #[test]
    fn a_wording_that_is_not_ours_is_asked_for_and_given_to_its_servers() {
        let other = format!("sha256:{}", "0".repeat(64));
        let mut tuned = revision("bbbb", TargetRole::Candidate, 50, &["http://127.0.0.1:2"]);
        tuned.contract = Some(other.clone());
        let champion = revision("aaaa", TargetRole::Champion, 50, &["http://127.0.0.1:1"]);
        let server = server(vec![champion, tuned]);
        assert_eq!(foreign_contracts(&server), std::slice::from_ref(&other));
        let wording = Arc::new(Wording::ours());
        let wordings = Wordings::from([(other, wording.clone())]);
        let table = table(&server, &Numbers::default(), &wordings, StableUrl::Asked);
        let given: Vec<_> = table
            .targets
            .iter()
            .map(|target| target.wording.clone())
            .collect();
        assert_eq!(given, [Some(wording), None]);
    }

    #[test]
    fn the_address_that_outlives_versions_is_asked_last() {
        let champion = revision("aaaa", TargetRole::Champion, 100, &["http://127.0.0.1:1"]);
        for (name, url, stable, asked) in [
            (
                "a Service",
                Some("http://laya-main:8000"),
                StableUrl::Asked,
                true,
            ),
            (
                "a laptop",
                Some("http://127.0.0.1:8737"),
                StableUrl::Ignored,
                false,
            ),
            (
                "one of the servers",
                Some("http://127.0.0.1:1/"),
                StableUrl::Asked,
                false,
            ),
            ("no address", Some("laya"), StableUrl::Asked, false),
            ("none", None, StableUrl::Asked, false),
        ] {
            let mut server = server(vec![champion.clone()]);
            server.traffic.stable_url = url.map(str::to_owned);
            let table = table(&server, &Numbers::default(), &Wordings::new(), stable);
            let last = table.targets.last().unwrap();
            assert_eq!(last.name == STABLE, asked, "{name}");
            if asked {
                assert_eq!((last.weight, &last.revision), (0, &None), "{name}");
                assert_eq!(last.expected, Expected::default(), "{name}");
            }
        }
        let mut empty = server(Vec::new());
        empty.traffic.stable_url = Some("http://laya-main:8000".to_owned());
        assert!(
            made(&empty, &Numbers::default()).targets.is_empty(),
            "rules answer then"
        );
    }
}
