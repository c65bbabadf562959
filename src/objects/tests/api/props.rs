//! Random histories against a model that is a map.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use crate::support::{Home, POLICIES, at, policy, version};

#[derive(Debug, Clone)]
enum Step {
    Create(usize),
    Wish(usize, u8),
    Label(usize, u8),
    Status(usize, u8),
    Hold(usize),
    Free(usize),
    Delete(usize),
}

/// What the model knows of an object.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    wish: u8,
    label: Option<u8>,
    status: Option<u8>,
    generation: i64,
    held: bool,
    deleting: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0..4_usize;
    let value = 0..3_u8;
    prop_oneof![
        name.clone().prop_map(Step::Create),
        (name.clone(), value.clone()).prop_map(|(name, value)| Step::Wish(name, value)),
        (name.clone(), value.clone()).prop_map(|(name, value)| Step::Label(name, value)),
        (name.clone(), value).prop_map(|(name, value)| Step::Status(name, value)),
        name.clone().prop_map(Step::Hold),
        name.clone().prop_map(Step::Free),
        name.prop_map(Step::Delete),
    ]
}

fn name(number: usize) -> String {
    format!("p{number}")
}

/// What the model says of a step: whether the object is there, and what comes of it.
fn expect(model: &mut BTreeMap<usize, Known>, step: &Step) -> u16 {
    let (Step::Create(at)
    | Step::Wish(at, _)
    | Step::Label(at, _)
    | Step::Status(at, _)
    | Step::Hold(at)
    | Step::Free(at)
    | Step::Delete(at)) = step;
    if let Step::Create(_) = step {
        if model.contains_key(at) {
            return 409;
        }
        let known = Known {
            wish: 0,
            label: None,
            status: None,
            generation: 1,
            held: false,
            deleting: false,
        };
        model.insert(*at, known);
        return 201;
    }
    let Some(known) = model.get_mut(at) else {
        return 404;
    };
    match step {
        Step::Create(_) => {}
        Step::Wish(_, value) => {
            known.generation += i64::from(known.wish != *value);
            known.wish = *value;
        }
        Step::Label(_, value) => known.label = Some(*value),
        Step::Status(_, value) => known.status = Some(*value),
        Step::Hold(_) if known.deleting && !known.held => return 422,
        Step::Hold(_) => known.held = true,
        Step::Free(_) => known.held = false,
        Step::Delete(_) => {
            if known.held && !known.deleting {
                known.deleting = true;
                known.generation += 1;
            } else if !known.held {
                known.deleting = true;
            }
        }
    }
    if known.deleting && !known.held {
        model.remove(at);
    }
    200
}

async fn take(home: &Home, step: &Step) -> u16 {
    let one = |number: &usize| at(POLICIES, &name(*number));
    let (code, _) = match step {
        Step::Create(number) => {
            let mut object = policy(&name(*number));
            object["spec"]["serverRef"]["name"] = "s0".into();
            home.post(POLICIES, &object).await
        }
        Step::Wish(number, value) => {
            let patch = json!({"spec": {"serverRef": {"name": format!("s{value}")}}});
            home.merge(&one(number), &patch).await
        }
        Step::Label(number, value) => {
            let patch = json!({"metadata": {"labels": {"l": value.to_string()}}});
            home.merge(&one(number), &patch).await
        }
        Step::Status(number, value) => {
            let patch = json!({"status": {"observedGeneration": value}});
            home.merge(&format!("{}/status", one(number)), &patch).await
        }
        Step::Hold(number) => {
            home.merge(
                &one(number),
                &json!({"metadata": {"finalizers": ["relay.dev/x"]}}),
            )
            .await
        }
        Step::Free(number) => {
            home.merge(&one(number), &json!({"metadata": {"finalizers": null}}))
                .await
        }
        Step::Delete(number) => home.delete(&one(number)).await,
    };
    code
}

async fn check(steps: Vec<Step>) {
    let home = Home::new();
    let start = version(&home.get(POLICIES).await.1);
    let mut model = BTreeMap::new();
    let mut last = start;
    for step in &steps {
        let before = model.clone();
        let wanted = expect(&mut model, step);
        assert_eq!(take(&home, step).await, wanted, "{step:?} of {steps:?}");
        let now = version(&home.get(POLICIES).await.1);
        let grown = now - last;
        assert_eq!(grown, u64::from(model != before), "{step:?} of {steps:?}");
        last = now;
    }
    let (_, list) = home.get(POLICIES).await;
    let items = list["items"].as_array().unwrap();
    let names: Vec<_> = items
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        model.keys().map(|number| name(*number)).collect::<Vec<_>>()
    );
    for (item, known) in items.iter().zip(model.values()) {
        assert_eq!(item["metadata"]["generation"], known.generation, "{item}");
        assert_eq!(
            item["spec"]["serverRef"]["name"],
            format!("s{}", known.wish)
        );
        let status = item
            .get("status")
            .map(|status| status["observedGeneration"].as_u64());
        assert_eq!(status, known.status.map(|value| Some(u64::from(value))));
    }
    // Replayed, the feed is the list, and each version is above the one before.
    let mut replayed = BTreeMap::new();
    let mut watch = home
        .watch(&format!("{POLICIES}?watch=1&resourceVersion={start}"))
        .await;
    let mut seen = start;
    while seen < last {
        let event = watch.next().await.unwrap();
        let object = event["object"].clone();
        assert!(version(&object) > seen);
        seen = version(&object);
        let key = object["metadata"]["name"].as_str().unwrap().to_owned();
        match event["type"].as_str().unwrap() {
            "ADDED" => assert!(replayed.insert(key, object).is_none()),
            "MODIFIED" => assert!(replayed.insert(key, object).is_some()),
            "DELETED" => assert!(replayed.remove(&key).is_some()),
            other => panic!("{other}"),
        }
    }
    assert_eq!(replayed.into_values().collect::<Vec<_>>(), *items);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_history_is_that_of_the_model(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(steps));
    }
}
