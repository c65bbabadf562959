//! Fault 26 and what else a server says of itself: who is not known to have our questions is not asked, and who is
//! repaired is asked again at once.

use std::sync::Arc;
use std::time::Duration;

use api::responses::ServingState;
use decision::Contract;
use router::servers::Wording;
use routing::reason::Fallback;
use testkit::{FakeLaya, Fault, Says};

use crate::{Behind, target, until, within};

const OTHER: &str = "sha256:2222222222222222222222222222222222222222222222222222222222222222";

fn reworded() -> Contract {
    let text = decision::RELAY_DECISIONS_JSON
        .replace("\"instructions\": \"", "\"instructions\": \"Think. ");
    Contract::import(text.as_bytes()).unwrap()
}

fn says(contract: &Contract) -> Says {
    Says::contract(
        &contract.digest().to_string(),
        &contract.shape_digest().to_string(),
    )
}

async fn reason(behind: &Behind) -> Fallback {
    let answered = behind.servers.ask("Fix it", "task", within(5000)).await;
    answered.unwrap_err()
}

#[tokio::test]
async fn nobody_is_asked_before_somebody_has_looked() {
    let fake = FakeLaya::start(Says::relay()).await;
    let behind = Behind::unready(vec![target("one", &fake)], 1);
    // The look has not had a chance to run.
    assert_eq!(reason(&behind).await, Fallback::NoModel);
    assert_eq!(fake.calls(), 0);
    behind.until(|state| state == ServingState::Ready).await;
}

#[tokio::test]
async fn the_wrong_server_is_never_asked_until_it_is_the_right_one() {
    let shape = decision::relay_contract().shape_digest().to_string();
    let key = Says {
        health: (200, r#"{"status":"ok"}"#.to_owned()),
        ..Says::relay()
    };
    let broken = Says {
        health: (500, "broken".to_owned()),
        ..Says::relay()
    };
    for (name, wrong, held) in [
        ("another shape", Says::contract(OTHER, OTHER), true),
        (
            "our shape in an unknown wording",
            Says::contract(OTHER, &shape),
            true,
        ),
        ("wrong device", Says::relay().not_ready("WrongDevice"), true),
        ("a key is demanded", key, true),
        ("no Laya", broken, true),
        ("loading", Says::relay().not_ready("Starting"), false),
        ("draining", Says::relay().not_ready("Draining"), false),
    ] {
        let fake = FakeLaya::start(wrong).await;
        let behind = Behind::unready(vec![target("one", &fake)], 1);
        until("it is looked at", || fake.connections() == 1).await;
        if held {
            until("the breaker is open", || behind.is_open("one")).await;
        }
        assert_eq!(reason(&behind).await, Fallback::NoModel, "{name}");
        assert_eq!(fake.calls(), 0, "{name}");
        fake.say(Says::relay());
        behind.until(|state| state == ServingState::Ready).await;
        assert!(!behind.is_open("one"), "{name}");
        let answered = behind.servers.ask("Fix it", "task", within(5000)).await;
        assert!(answered.is_ok(), "{name}");
    }
}

#[tokio::test]
async fn another_checkpoint_than_expected_is_not_asked() {
    let fake = FakeLaya::start(Says::relay()).await;
    let mut wanted = target("one", &fake);
    wanted.expected.checkpoint = Some(OTHER.to_owned());
    let behind = Behind::unready(vec![wanted], 1);
    until("the breaker is open", || behind.is_open("one")).await;
    assert_eq!(reason(&behind).await, Fallback::NoModel);
    behind.servers.replace(vec![target("one", &fake)]).unwrap();
    behind.until(|state| state == ServingState::Ready).await;
    assert!(!behind.is_open("one"), "the configuration changed");
}

#[tokio::test]
async fn one_that_changes_between_two_looks_is_not_believed() {
    let fake = FakeLaya::start(Says::relay()).await;
    let behind = Behind::new(vec![target("one", &fake)], 5).await;
    fake.say(Says::contract(OTHER, OTHER));
    assert_eq!(reason(&behind).await, Fallback::NoModel, "it answers 409");
    assert!(behind.is_open("one"));
    assert_eq!(fake.calls(), 1);
    until("it is looked at", || fake.connections() >= 1).await;
    let mut other = Says::relay();
    other.health.1 = other.health.1.replace("1111", "3333");
    fake.say(other);
    behind.until(|state| state == ServingState::Ready).await;
}

#[tokio::test]
async fn one_that_refuses_what_it_says_it_serves_is_not_asked_again_and_again() {
    let says = Says {
        contract: Some(OTHER.to_owned()),
        ..Says::relay()
    };
    let fake = FakeLaya::start(says).await;
    let behind = Behind::new(vec![target("one", &fake)], 5).await;
    assert_eq!(reason(&behind).await, Fallback::NoModel);
    // Two looks later it still says the same.
    tokio::time::sleep(Duration::from_millis(2600)).await;
    assert_eq!(reason(&behind).await, Fallback::NoModel);
    assert_eq!(fake.calls(), 1);
    assert!(behind.is_open("one"));
}

#[tokio::test]
async fn a_version_is_asked_in_its_own_wording() {
    let contract = reworded();
    let fake = FakeLaya::start(says(&contract)).await;
    let mut tuned = target("one", &fake);
    tuned.wording = Some(Arc::new(Wording::new(contract.clone())));
    let behind = Behind::new(vec![tuned], 1).await;
    let answered = behind.servers.ask("Fix it", "task", within(5000)).await;
    assert!(answered.is_ok());
    let seen = fake.last().unwrap();
    let asked = seen.header("x-laya-contract");
    assert_eq!(asked, Some(&*contract.digest().to_string()));
    let body = String::from_utf8(seen.body).unwrap();
    assert!(body.contains(r#""instructions":"Think. "#));
    let facts = behind.servers.facts();
    assert_eq!(facts.wording.contract(), &contract);
}

#[tokio::test]
async fn a_laya_without_contracts_is_asked_in_ours() {
    let fake = FakeLaya::start(Says::original()).await;
    let behind = Behind::new(vec![target("one", &fake)], 1).await;
    let answered = behind
        .servers
        .ask("Fix it", "task", within(5000))
        .await
        .unwrap();
    assert_eq!(answered.provenance.checkpoint, "unknown");
    assert_eq!(fake.last().unwrap().header("x-laya-contract"), None);
    fake.fail(Fault::MissingId("agent".to_owned()));
    assert_eq!(reason(&behind).await, Fallback::InvalidAnswers);
}

#[tokio::test]
async fn one_that_is_gone_costs_no_call_and_is_asked_again_when_it_is_back() {
    let fake = FakeLaya::start(Says::relay()).await;
    let address = fake.address();
    let behind = Behind::new(vec![target("one", &fake)], 1).await;
    fake.stop().await;
    assert_eq!(reason(&behind).await, Fallback::Unreachable);
    assert_eq!(reason(&behind).await, Fallback::BreakerOpen);
    until("looks fail too", || {
        behind.servers.serving().server.is_none()
    })
    .await;
    assert_eq!(reason(&behind).await, Fallback::Unreachable);
    let _back = FakeLaya::start_at(address, Says::relay()).await;
    behind.until(|state| state == ServingState::Ready).await;
    assert!(
        !behind.is_open("one"),
        "a repaired server closes it at once"
    );
}

#[tokio::test]
async fn the_facts_name_what_serves() {
    let (one, two) = (
        FakeLaya::start(Says::relay()).await,
        FakeLaya::start(Says::relay().not_ready("Starting")).await,
    );
    let mut first = target("one", &one);
    first.version = "v7".to_owned();
    let behind = Behind::new(vec![first, target("two", &two)], 1).await;
    let serving = behind.servers.serving();
    assert_eq!(serving.state, ServingState::Degraded);
    assert_eq!(serving.champion.as_deref(), Some("v7"));
    assert_eq!(serving.server.as_deref(), Some("one"));
    assert_eq!(serving.device.as_deref(), Some("cpu"));
    assert_eq!(serving.candidate, None);
    two.say(Says::relay());
    behind.until(|state| state == ServingState::Ready).await;
    behind.servers.replace(Vec::new()).unwrap();
    let serving = behind.servers.serving();
    assert_eq!(serving, api::responses::Serving::rules_only());
}
