//! Which server is asked, and which one after it.

use std::time::Duration;

use routing::reason::Fallback;
use testkit::{FakeLaya, Fault, Says};

use crate::{Behind, target, within};

#[tokio::test]
async fn a_task_stays_with_its_server_by_weight() {
    let (candidate, champion) = (
        FakeLaya::start(Says::relay()).await,
        FakeLaya::start(Says::relay()).await,
    );
    let targets = |weight| {
        let mut first = target("candidate", &candidate);
        let mut second = target("champion", &champion);
        (first.weight, second.weight) = (weight, 100 - weight);
        vec![first, second]
    };
    let behind = Behind::new(targets(11), 1).await;
    behind
        .until(|state| state == api::responses::ServingState::Ready)
        .await;
    // training.md 15.5.
    for (weight, to_candidate) in [(11, &[3][..]), (12, &[1, 3])] {
        behind.servers.replace(targets(weight)).unwrap();
        assert!(!behind.servers.is_empty());
        for number in 1..=4 {
            let task = format!("0193d2b1-0000-7000-8000-00000000000{number}");
            let answered = behind.servers.ask("Fix it", &task, within(5000)).await;
            let server = answered.unwrap().provenance.server;
            let expected = if to_candidate.contains(&number) {
                "candidate"
            } else {
                "champion"
            };
            assert_eq!(server, expected, "{number} at {weight}");
        }
    }
}

#[tokio::test]
async fn a_second_server_is_asked_once_while_time_is_left() {
    let millis = Duration::from_millis;
    // Of 1000 ms the model has 750, so the second one may be asked until 525.
    for (name, fault, expected) in [
        (
            "at once",
            Fault::Status(500, None),
            Ok::<_, Fallback>("second"),
        ),
        ("reset", Fault::Reset, Ok("second")),
        ("busy", Fault::Status(503, Some(1)), Ok("second")),
        ("nonsense", Fault::UnknownChoice, Ok("second")),
        (
            "it hangs: it has 500 ms",
            Fault::HangBeforeHead,
            Ok("second"),
        ),
        ("its body hangs", Fault::HangInBody, Ok("second")),
        (
            "an answer that takes 600 ms is not waited for where another can give one",
            Fault::Latency(millis(600)),
            Ok("second"),
        ),
    ] {
        let (first, second) = (
            FakeLaya::start(Says::relay()).await,
            FakeLaya::start(Says::relay()).await,
        );
        let mut spare = target("second", &second);
        spare.weight = 0;
        let behind = Behind::new(vec![target("first", &first), spare], 5).await;
        crate::until("both are known", || {
            first.connections() + second.connections() >= 2
        })
        .await;
        tokio::time::sleep(millis(50)).await;
        first.fail(fault);
        let answered = behind.servers.ask("Fix it", "task", within(1000)).await;
        let server = answered.map(|answered| answered.provenance.server);
        assert_eq!(
            server.as_deref().map_err(|reason| *reason),
            expected,
            "{name}"
        );
    }
}

#[tokio::test]
async fn where_there_is_nobody_else_the_only_server_has_all_the_time() {
    let fake = FakeLaya::start(Says::relay()).await;
    let behind = Behind::new(vec![target("only", &fake)], 5).await;
    fake.fail(Fault::Latency(Duration::from_millis(600)));
    let answered = behind.servers.ask("Fix it", "task", within(1000)).await;
    assert!(answered.is_ok(), "of 750 ms");
}

#[tokio::test]
async fn three_failing_servers_cost_two_calls() {
    let fakes = [
        FakeLaya::start(Says::relay()).await,
        FakeLaya::start(Says::relay()).await,
        FakeLaya::start(Says::relay()).await,
    ];
    let targets = fakes.iter().enumerate();
    let targets = targets.map(|(at, fake)| target(&format!("server-{at}"), fake));
    let behind = Behind::new(targets.collect(), 5).await;
    behind
        .until(|state| state == api::responses::ServingState::Ready)
        .await;
    for fake in &fakes {
        fake.fail(Fault::Status(500, None));
    }
    let answered = behind.servers.ask("Fix it", "task", within(5000)).await;
    assert_eq!(answered.unwrap_err(), Fallback::Unreachable);
    assert_eq!(fakes.iter().map(FakeLaya::calls).sum::<usize>(), 2);
}

#[tokio::test]
async fn a_running_question_keeps_its_table() {
    let fake = FakeLaya::start(Says::relay()).await;
    let behind = Behind::new(vec![target("one", &fake)], 1).await;
    fake.fail(Fault::Latency(Duration::from_millis(200)));
    let servers = behind.servers.clone();
    let asking = tokio::spawn(async move { servers.ask("Fix it", "task", within(5000)).await });
    crate::until("it is asked", || fake.in_flight() == 1).await;
    behind.servers.replace(Vec::new()).unwrap();
    let after = behind.servers.ask("Fix it", "task", within(5000)).await;
    assert_eq!(after.unwrap_err(), Fallback::NoModel);
    assert_eq!(asking.await.unwrap().unwrap().provenance.server, "one");
}

#[tokio::test]
async fn a_table_that_cannot_work_is_refused_and_changes_nothing() {
    let fake = FakeLaya::start(Says::relay()).await;
    let behind = Behind::new(vec![target("one", &fake)], 1).await;
    let mut idle = target("idle", &fake);
    idle.weight = 0;
    for (targets, expected) in [
        (
            vec![target("two", &fake), target("two", &fake)],
            "two servers are called `two`; give one another name",
        ),
        (vec![idle], "no server has a weight above 0"),
    ] {
        let refused = behind.servers.replace(targets).unwrap_err();
        assert_eq!(refused.to_string(), expected);
    }
    assert!(
        behind
            .servers
            .ask("Fix it", "task", within(5000))
            .await
            .is_ok()
    );
}
