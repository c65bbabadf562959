//! Random histories: people edit, delete documents and create the policy again, the controller passes, is killed between
//! two effects, and sees caches that are behind. Whatever happened, once the edits stop the wish is reached and stays.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::documents::Document;
use super::*;
use crate::reconciler::{Destroys, Effect};

/// A revision in the store.
#[derive(Debug, Clone)]
struct Stored {
    owner: String,
    created: u64,
}

/// The object API as far as it matters: the policy and its documents.
#[derive(Debug)]
struct World {
    policy: RoutingPolicy,
    documents: BTreeMap<String, Stored>,
    /// What a cache that is behind still shows.
    behind: BTreeMap<String, Stored>,
    counter: u64,
    lives: u32,
}

/// Where a pass is killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kill {
    Never,
    /// Before its nth effect, or after the last.
    Before(usize),
}

#[derive(Debug, Clone)]
enum Step {
    Edit(u8),
    Pass(Kill),
    PassOnOldCache,
    DeleteDocument(usize),
    CreateAgain(u8),
}

/// 0..6 compile, 6 and 7 do not.
fn spec(number: u8) -> Value {
    match number {
        6 => json!({"disabledRules": ["pay"]}),
        7 => json!({"rules": [{"id": "r", "patterns": ["a*b"]}]}),
        number => good(u32::from(number)),
    }
}

fn edits() -> impl Strategy<Value = u8> {
    prop_oneof![4 => 0_u8..6, 1 => 6_u8..8]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kill = prop_oneof![3 => Just(Kill::Never), 2 => (0_usize..3).prop_map(Kill::Before)];
    let step = prop_oneof![
        4 => edits().prop_map(Step::Edit),
        8 => kill.prop_map(Step::Pass),
        2 => Just(Step::PassOnOldCache),
        1 => (0_usize..20).prop_map(Step::DeleteDocument),
        1 => edits().prop_map(Step::CreateAgain),
    ];
    proptest::collection::vec(step, 1..60)
}

impl World {
    fn new(number: u8) -> Self {
        Self {
            policy: policy(&spec(number), 1, None),
            documents: BTreeMap::new(),
            behind: BTreeMap::new(),
            counter: 0,
            lives: 0,
        }
    }

    fn uid(&self) -> String {
        self.policy.metadata.uid.clone().unwrap()
    }

    fn accepted(&self) -> Option<String> {
        self.policy.status.as_ref().and_then(|status| status.accepted_revision.clone())
    }

    fn observe(&self, cache: &BTreeMap<String, Stored>) -> Observation {
        let wanted = format!("rp-team-{}", super::super::revision_of(&self.policy.spec));
        // As the reconciler does: the cache where the revision is in force already, else the API itself.
        let in_force = self.accepted().map(|revision| format!("rp-team-{revision}")) == Some(wanted.clone());
        let cached = cache.get(&wanted).is_some_and(|stored| stored.owner == self.uid());
        let presence = if in_force && cached {
            Presence::Stored
        } else {
            match self.documents.get(&wanted) {
                None => Presence::Absent,
                Some(stored) if stored.owner == self.uid() => Presence::Stored,
                Some(_) => Presence::Unusable {
                    name: wanted.clone(),
                    uid: wanted,
                },
            }
        };
        let second = |created: u64| jiff::Timestamp::from_second(1_796_000_000 + i64::try_from(created).unwrap()).unwrap();
        let documents = cache.iter().map(|(name, stored)| Document {
            name: name.clone(),
            uid: name.clone(),
            owner: Some(stored.owner.clone()),
            created: second(stored.created),
            version: stored.created,
        });
        Observation {
            wanted: presence,
            documents: documents.collect(),
        }
    }

    /// One pass; how many effects it had. Checks what must hold of each.
    fn pass(&mut self, cache: &BTreeMap<String, Stored>, kill: Kill) -> usize {
        let object = self.policy.clone();
        let plan = planned(&object, ServerState::Unnamed, self.observe(cache));
        let destructive = plan.actions.iter().filter(|action| action.destroys() == Destroys::Something);
        assert!(destructive.count() <= 1);
        let mut effects = 0;
        for action in &plan.actions {
            if kill == Kill::Before(effects) {
                return effects;
            }
            self.act(action);
            effects += 1;
        }
        if kill == Kill::Before(effects) || object.status.as_ref() == Some(plan.status.get()) {
            return effects;
        }
        self.policy.status = Some(plan.status.get().clone());
        effects + 1
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::StoreRevision { revision } => {
                self.counter += 1;
                let stored = Stored {
                    owner: self.uid(),
                    created: self.counter,
                };
                self.documents.entry(format!("rp-team-{revision}")).or_insert(stored);
            }
            Action::DeleteRevision { name, .. } => {
                let accepted = self.accepted().map(|revision| format!("rp-team-{revision}"));
                let own = self.documents.get(name).is_some_and(|stored| stored.owner == self.uid());
                assert!(!own || accepted.as_ref() != Some(name), "the accepted revision is never removed");
                self.documents.remove(name);
            }
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Edit(number) => self.edit(*number),
            Step::Pass(kill) => {
                let cache = self.documents.clone();
                self.behind = cache.clone();
                let _ = self.pass(&cache, *kill);
            }
            Step::PassOnOldCache => {
                let cache = self.behind.clone();
                let _ = self.pass(&cache, Kill::Never);
            }
            Step::DeleteDocument(at) => {
                if let Some(name) = self.documents.keys().nth(*at).cloned() {
                    self.documents.remove(&name);
                }
            }
            Step::CreateAgain(number) => {
                self.lives += 1;
                self.counter += 1;
                let created = jiff::Timestamp::from_second(1_796_000_000 + i64::try_from(self.counter).unwrap()).unwrap();
                self.policy = policy(&spec(*number), 1, None);
                self.policy.metadata.uid = Some(format!("life {}", self.lives));
                self.policy.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(created));
            }
        }
    }

    fn edit(&mut self, number: u8) {
        let edited = policy(&spec(number), 1, None).spec;
        if edited != self.policy.spec {
            self.policy.spec = edited;
            self.policy.metadata.generation = self.policy.metadata.generation.map(|generation| generation + 1);
        }
    }

    /// Passes until nothing happens any more.
    fn settle(&mut self) {
        for _ in 0..64 {
            let cache = self.documents.clone();
            if self.pass(&cache, Kill::Never) == 0 {
                return;
            }
        }
        panic!("it does not come to rest: {:#?}", self.policy.status);
    }
}

proptest! {
    #[test]
    fn fault_09_any_history_with_kills_ends_where_the_spec_says(steps in steps(), last in 0_u8..6) {
        let mut world = World::new(0);
        for step in &steps {
            world.take(step);
        }
        world.edit(last);
        world.settle();
        let wanted = revision(&spec(last));
        prop_assert_eq!(world.accepted(), Some(wanted.clone()));
        let name = format!("rp-team-{wanted}");
        prop_assert_eq!(&world.documents[&name].owner, &world.uid());
        prop_assert!(world.documents.values().all(|stored| stored.owner == world.uid()), "nothing of earlier lives");
        prop_assert!(world.documents.len() <= 11);
        let status = world.policy.status.clone().unwrap();
        prop_assert_eq!(told(&status), ["Accepted=True/Accepted", "Ready=True/Reconciled"]);
        let cache = world.documents.clone();
        prop_assert_eq!(world.pass(&cache, Kill::Never), 0, "the second pass changes nothing");
    }

    #[test]
    fn a_bad_edit_never_changes_what_is_in_force(before in 0_u8..6, bad in 6_u8..8, passes in 1_usize..5) {
        let mut world = World::new(before);
        world.settle();
        world.edit(bad);
        for _ in 0..passes {
            let cache = world.documents.clone();
            let _ = world.pass(&cache, Kill::Never);
            prop_assert_eq!(world.accepted(), Some(revision(&spec(before))));
        }
        world.settle();
    }

    #[test]
    fn the_revision_in_force_is_always_stored(steps in steps()) {
        let mut world = World::new(1);
        for step in &steps {
            let somebody = matches!(step, Step::DeleteDocument(_));
            let had = world.documents.clone();
            world.take(step);
            if somebody { continue; }
            if let Some(revision) = world.accepted() {
                let name = format!("rp-team-{revision}");
                // What a person deleted is not counted, until it is stored again.
                prop_assert!(world.documents.contains_key(&name) || !had.contains_key(&name));
            }
        }
    }
}
