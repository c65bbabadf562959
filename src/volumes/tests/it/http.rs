//! HTTP sources: what every kind of broken server leads to.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use testkit::SiteFault;
use volumes::{
    Cancel, Credential, Digest, FetchRequest, Limits, Progress, Run, Source, SourceFault,
    TaskError, TaskExit, fetch, task,
};

use crate::support::{
    assert_published, digest_of, folder_of, http, limits, made, names, request, server,
};

const WEIGHTS: &str = "model.safetensors";

fn fault_of(error: &TaskError) -> SourceFault {
    match error {
        TaskError::Source { fault, .. } => *fault,
        other => panic!("not the source: {other}"),
    }
}

/// The `range` headers that the server saw for a file.
fn ranges(server: &testkit::files::FileServer, path: &str) -> Vec<Option<String>> {
    server
        .seen()
        .iter()
        .filter(|seen| seen.target().ends_with(path))
        .map(|seen| seen.header("range").map(str::to_owned))
        .collect()
}

#[test]
fn a_checkpoint_is_fetched_and_the_next_run_finds_it() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    let models = base.path().join("models");
    let request = FetchRequest {
        digest: Some(made().digest.clone()),
        store: Some("abc".to_owned()),
        ..request(&models, http(&server))
    };
    let fetched = fetch(&request, &Run::quiet()).unwrap();
    assert_eq!(fetched.digest, made().digest);
    assert_eq!(fetched.size_bytes, made().size());
    assert_eq!(fetched.file_count, made().files.len() as u64);
    assert!(!fetched.present);
    assert_published(&models, made());
    let store = std::fs::read_to_string(models.join(".store.json")).unwrap();
    assert_eq!(store, "{\"layout\":1,\"store\":\"abc\"}\n");

    server.forget();
    let again = fetch(&request, &Run::quiet()).unwrap();
    assert!(again.present);
    assert_eq!(server.seen(), vec![], "the source was asked all the same");
    let outcome = task::fetch_result(&Ok(again));
    let outcome: serde_json::Value = serde_json::from_str(&outcome).unwrap();
    assert_eq!(outcome["ok"], true);
    assert_eq!(outcome["present"], true);
}

#[test]
fn a_volume_of_another_store_is_left_alone() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    std::fs::write(
        base.path().join(".store.json"),
        r#"{"layout":1,"store":"theirs"}"#,
    )
    .unwrap();
    let mine = FetchRequest {
        store: Some("mine".to_owned()),
        ..request(base.path(), http(&server))
    };
    let error = fetch(&mine, &Run::quiet()).unwrap_err();
    assert_eq!(error.exit(), TaskExit::Refused);
    assert!(error.to_string().contains("'theirs'"), "{error}");
    std::fs::write(
        base.path().join(".store.json"),
        r#"{"layout":2,"store":""}"#,
    )
    .unwrap();
    let error = fetch(&mine, &Run::quiet()).unwrap_err();
    assert!(error.to_string().contains("layout 2"), "{error}");
}

#[test]
fn an_asset_has_its_own_name_at_the_source() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    let mut files = made().files.clone();
    for file in &mut files {
        let asset = file.path.replace('/', "__");
        server.put(&asset, made().bytes(&file.path));
        file.asset = Some(asset);
    }
    let source = Source::Http {
        // Without a slash at its end.
        base_url: server.url().trim_end_matches('/').to_owned(),
        files,
    };
    fetch(&request(base.path(), source), &Run::quiet()).unwrap();
    assert_published(base.path(), made());
    assert!(
        server
            .seen()
            .iter()
            .any(|seen| seen.target() == "/tokenizer__tokenizer.json")
    );
}

#[test]
fn fault_21_a_cut_stream_is_gone_on_with() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    server.fail_next(WEIGHTS, SiteFault::CutAfter(100_000));
    let request = request(base.path(), http(&server));
    let error = fetch(&request, &Run::quiet()).unwrap_err();
    assert_eq!(fault_of(&error), SourceFault::Interrupted);
    assert_eq!(error.exit(), TaskExit::Source);
    let part = base
        .path()
        .join(".staging")
        .join(&made().digest.hex()[..16])
        .join(WEIGHTS);
    assert_eq!(part.metadata().unwrap().len(), 100_000);
    assert!(!folder_of(base.path(), &made().digest).exists());

    fetch(&request, &Run::quiet()).unwrap();
    assert_published(base.path(), made());
    assert_eq!(
        ranges(&server, WEIGHTS),
        [None, Some("bytes=100000-".to_owned())]
    );
}

#[test]
fn fault_21_a_server_that_ignores_ranges_starts_over() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    server.fail_next(WEIGHTS, SiteFault::CutAfter(5000));
    server.fail_next(WEIGHTS, SiteFault::IgnoreRange);
    let request = request(base.path(), http(&server));
    fetch(&request, &Run::quiet()).unwrap_err();
    fetch(&request, &Run::quiet()).unwrap();
    assert_published(base.path(), made());
}

#[test]
fn fault_21_a_range_that_is_refused_shows_the_size() {
    let size = made()
        .files
        .iter()
        .find(|file| file.path == WEIGHTS)
        .unwrap()
        .size;
    // The size as expected, or unknown: the whole is asked for. Another one, twice: refused.
    for said in [Some(size), None] {
        let (server, base) = (server(), tempfile::tempdir().unwrap());
        server.fail_next(WEIGHTS, SiteFault::CutAfter(5000));
        server.fail_next(WEIGHTS, SiteFault::NotSatisfiable(said));
        let request = request(base.path(), http(&server));
        fetch(&request, &Run::quiet()).unwrap_err();
        fetch(&request, &Run::quiet()).unwrap();
        assert_published(base.path(), made());
    }
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    server.fail(WEIGHTS, SiteFault::NotSatisfiable(Some(7)));
    let error = fetch(&request(base.path(), http(&server)), &Run::quiet()).unwrap_err();
    assert!(
        matches!(error, TaskError::SizeMismatch { got: 7, .. }),
        "{error}"
    );
    let (server, base) = (crate::support::server(), tempfile::tempdir().unwrap());
    server.fail(WEIGHTS, SiteFault::NotSatisfiable(None));
    let error = fetch(&request(base.path(), http(&server)), &Run::quiet()).unwrap_err();
    assert_eq!(fault_of(&error), SourceFault::NotFound);
}

#[test]
fn fault_21_wrong_bytes_are_fetched_again_once_and_then_refused() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    server.fail_next(WEIGHTS, SiteFault::WrongByte(70_000));
    let request = request(base.path(), http(&server));
    fetch(&request, &Run::quiet()).unwrap();
    assert_published(base.path(), made());

    let base = tempfile::tempdir().unwrap();
    server.forget();
    server.fail(WEIGHTS, SiteFault::WrongByte(70_000));
    let request = crate::support::request(base.path(), http(&server));
    let error = fetch(&request, &Run::quiet()).unwrap_err();
    assert!(matches!(error, TaskError::DigestMismatch { .. }), "{error}");
    assert_eq!(error.exit(), TaskExit::Refused);
    assert_eq!(ranges(&server, WEIGHTS).len(), 2);
    assert!(!folder_of(base.path(), &made().digest).exists());
    let part = base
        .path()
        .join(".staging")
        .join(&made().digest.hex()[..16])
        .join(WEIGHTS);
    assert!(!part.exists(), "the wrong part is kept");
    let result: serde_json::Value = serde_json::from_str(&task::failure(&error)).unwrap();
    assert_eq!(result["reason"], "DigestMismatch");
    assert_eq!(result["code"], 3);
    assert_eq!(result["ok"], false);
}

#[test]
fn fault_21_a_damaged_part_is_found_when_it_is_gone_on_with() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    server.fail_next(WEIGHTS, SiteFault::CutAfter(100_000));
    let request = request(base.path(), http(&server));
    fetch(&request, &Run::quiet()).unwrap_err();
    let part = base
        .path()
        .join(".staging")
        .join(&made().digest.hex()[..16])
        .join(WEIGHTS);
    let mut bytes = std::fs::read(&part).unwrap();
    bytes[50] ^= 1;
    std::fs::write(&part, bytes).unwrap();
    fetch(&request, &Run::quiet()).unwrap();
    assert_published(base.path(), made());
}

#[test]
fn fault_21_too_long_and_too_short_are_sizes_that_do_not_match() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    server.fail(WEIGHTS, SiteFault::Longer(1 << 20));
    let error = fetch(&request(base.path(), http(&server)), &Run::quiet()).unwrap_err();
    let size = made()
        .files
        .iter()
        .find(|file| file.path == WEIGHTS)
        .unwrap()
        .size;
    match error {
        TaskError::SizeMismatch { expected, got, .. } => {
            assert_eq!((expected, got), (size, size + 1), "no more is read");
        }
        other => panic!("{other}"),
    }
    // A head that says another length: no byte is read.
    let server = crate::support::server();
    server.put(WEIGHTS, vec![0; 10]);
    let error = fetch(&request(base.path(), http(&server)), &Run::quiet()).unwrap_err();
    assert!(
        matches!(error, TaskError::SizeMismatch { got: 10, .. }),
        "{error}"
    );
    assert_eq!(names(base.path()), [".lock", ".staging", ".store.json"]);
}

#[test]
fn statuses_have_their_words() {
    let rows = [
        (401, SourceFault::Unauthorized, 3),
        (403, SourceFault::Unauthorized, 3),
        (404, SourceFault::NotFound, 6),
        (429, SourceFault::Busy, 6),
        (503, SourceFault::Busy, 6),
    ];
    for (status, fault, code) in rows {
        let (server, base) = (server(), tempfile::tempdir().unwrap());
        server.fail(WEIGHTS, SiteFault::Status(status, Some("7".to_owned())));
        let error = fetch(&request(base.path(), http(&server)), &Run::quiet()).unwrap_err();
        assert_eq!(fault_of(&error), fault, "{status}");
        assert_eq!(error.exit().code(), code, "{status}");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
        assert!(error.to_string().contains(&status.to_string()), "{error}");
    }
}

#[test]
fn a_server_that_is_not_there_or_hangs_up_is_an_interrupted_source() {
    let base = tempfile::tempdir().unwrap();
    let gone = {
        let server = server();
        http(&server)
    };
    let error = fetch(&request(base.path(), gone), &Run::quiet()).unwrap_err();
    assert_eq!(fault_of(&error), SourceFault::Interrupted);
    let server = server();
    server.fail(WEIGHTS, SiteFault::Reset);
    let error = fetch(&request(base.path(), http(&server)), &Run::quiet()).unwrap_err();
    assert_eq!(fault_of(&error), SourceFault::Interrupted);
}

#[test]
fn a_silent_source_is_given_up_before_and_in_the_body() {
    for fault in [SiteFault::NoHead, SiteFault::SilentAfter(1000)] {
        let (server, base) = (server(), tempfile::tempdir().unwrap());
        server.fail(WEIGHTS, fault.clone());
        let request = FetchRequest {
            limits: Limits {
                silence: Duration::from_millis(600),
                ..limits()
            },
            ..request(base.path(), http(&server))
        };
        let began = Instant::now();
        let error = fetch(&request, &Run::quiet()).unwrap_err();
        assert_eq!(fault_of(&error), SourceFault::Interrupted, "{fault:?}");
        assert!(error.to_string().contains("no bytes for"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(15), "{fault:?}");
    }
}

#[test]
fn a_slow_source_is_given_up() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    server.fail(WEIGHTS, SiteFault::Slow(100, Duration::from_millis(50)));
    let request = FetchRequest {
        limits: Limits {
            silence: Duration::from_millis(800),
            min_bytes_per_second: 1 << 20,
            ..limits()
        },
        ..request(base.path(), http(&server))
    };
    let error = fetch(&request, &Run::quiet()).unwrap_err();
    assert_eq!(fault_of(&error), SourceFault::Interrupted);
    assert!(error.to_string().contains("bytes per second"), "{error}");
}

#[test]
fn the_switch_and_the_deadline_end_a_wait_and_parts_are_kept() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    server.fail(WEIGHTS, SiteFault::SilentAfter(300_000));
    let wanted = request(base.path(), http(&server));
    let cancel = Cancel::new();
    let (switch, began) = (cancel.clone(), Instant::now());
    // Once bytes of the weights have come.
    let run = Run::new(
        cancel,
        Arc::new(move |progress: &Progress| {
            if progress.file.as_deref() == Some(WEIGHTS) {
                switch.cancel();
            }
        }),
    );
    let slow = FetchRequest {
        limits: Limits {
            silence: Duration::from_secs(300),
            ..limits()
        },
        ..wanted.clone()
    };
    // Progress of the weights comes with the next look after half a second, or with the bytes.
    server.fail_next(WEIGHTS, SiteFault::Slow(20_000, Duration::from_millis(100)));
    let error = fetch(&slow, &run).unwrap_err();
    assert!(matches!(error, TaskError::Interrupted), "{error}");
    assert_eq!(error.exit().code(), 75);
    assert!(began.elapsed() < Duration::from_secs(30));

    let hurried = FetchRequest {
        limits: Limits {
            deadline: Some(Duration::from_millis(700)),
            ..limits()
        },
        ..wanted.clone()
    };
    let error = fetch(&hurried, &Run::quiet()).unwrap_err();
    assert!(
        matches!(error, TaskError::DeadlineExceeded { .. }),
        "{error}"
    );
    assert_eq!(
        error.reason(),
        Some(api::reason::Reason::FetchDeadlineExceeded)
    );

    server.heal();
    fetch(&wanted, &Run::quiet()).unwrap();
    assert_published(base.path(), made());
}

#[test]
fn redirects_are_followed_five_times_and_credentials_stay_at_home() {
    let (home, away, base) = (server(), server(), tempfile::tempdir().unwrap());
    home.demand("secret");
    let elsewhere = format!("{}{WEIGHTS}?signature=s", away.url());
    home.fail(WEIGHTS, SiteFault::Redirect(302, elsewhere));
    let wanted = FetchRequest {
        credential: Some(Credential::Token("secret".to_owned())),
        ..request(base.path(), http(&home))
    };
    fetch(&wanted, &Run::quiet()).unwrap();
    assert_published(base.path(), made());
    let away_saw = away.seen();
    assert_eq!(away_saw.len(), 1);
    assert_eq!(away_saw[0].header("authorization"), None);
    assert!(
        home.seen()
            .iter()
            .all(|seen| seen.header("authorization") == Some("Bearer secret"))
    );

    // Round in circles.
    let base = tempfile::tempdir().unwrap();
    away.heal();
    away.forget();
    away.fail(WEIGHTS, SiteFault::Redirect(307, format!("/{WEIGHTS}")));
    let error = fetch(&request(base.path(), http(&away)), &Run::quiet()).unwrap_err();
    assert_eq!(fault_of(&error), SourceFault::NotFound);
    assert!(error.to_string().contains("more than 5 times"), "{error}");
    let asked = away
        .seen()
        .iter()
        .filter(|seen| seen.target().contains(WEIGHTS))
        .count();
    assert_eq!(asked, 6);

    // Somewhere that is no address.
    let base = tempfile::tempdir().unwrap();
    away.fail(
        WEIGHTS,
        SiteFault::Redirect(302, "file:///etc/passwd".to_owned()),
    );
    let error = fetch(&request(base.path(), http(&away)), &Run::quiet()).unwrap_err();
    assert!(
        error.to_string().contains("redirects to nowhere"),
        "{error}"
    );
}

#[test]
fn a_token_that_is_missing_or_wrong_is_said_without_the_token() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    server.demand("right");
    for credential in [None, Some(Credential::Token("wrong-secret".to_owned()))] {
        let wanted = FetchRequest {
            credential,
            ..request(base.path(), http(&server))
        };
        let error = fetch(&wanted, &Run::quiet()).unwrap_err();
        assert_eq!(fault_of(&error), SourceFault::Unauthorized);
        assert!(!format!("{error} {error:?} {wanted:?}").contains("wrong-secret"));
    }
}

#[test]
fn another_digest_or_contract_is_refused_before_and_after() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    let other = Digest::parse(&format!("sha256:{}", "1".repeat(64))).unwrap();
    let wanted = FetchRequest {
        digest: Some(other.clone()),
        ..request(base.path(), http(&server))
    };
    let error = fetch(&wanted, &Run::quiet()).unwrap_err();
    assert!(matches!(error, TaskError::DigestMismatch { .. }), "{error}");
    assert_eq!(server.seen(), vec![], "nothing was asked for");

    // A checkpoint that names its contract.
    let contract = decision::relay_contract();
    let decisions = contract.export();
    server.put("decisions.json", decisions.clone());
    let mut files = made().files.clone();
    files.retain(|file| file.path != "decisions.json");
    files.push(volumes::SourceFile {
        path: "decisions.json".to_owned(),
        size: decisions.len() as u64,
        sha256: crate::support::hex(decisions.as_bytes()),
        asset: None,
    });
    let digest = digest_of(&files);
    let source = Source::Http {
        base_url: server.url(),
        files,
    };
    let wrong = FetchRequest {
        contract: Some(other.clone()),
        ..request(base.path(), source.clone())
    };
    let error = fetch(&wrong, &Run::quiet()).unwrap_err();
    assert!(
        matches!(error, TaskError::ContractMismatch { .. }),
        "{error}"
    );
    assert!(!folder_of(base.path(), &digest).exists());

    let right = FetchRequest {
        contract: Digest::parse(&contract.digest().to_string()).ok(),
        ..request(base.path(), source)
    };
    let fetched = fetch(&right, &Run::quiet()).unwrap();
    assert_eq!(
        fetched.contract.as_ref().map(|c| c.digest.clone()),
        Some(contract.digest().to_string())
    );
    // The wording comes whole and in its order, in the result as in the library.
    let result = task::fetch_result(&Ok(fetched.clone()));
    assert!(result.len() <= task::MAX_RESULT_BYTES);
    let value: serde_json::Value = serde_json::from_str(&result).unwrap();
    for text in [
        fetched.decisions.clone().unwrap(),
        value["decisionsText"].as_str().unwrap().to_owned(),
    ] {
        let read = decision::contract::Contract::import(text.as_bytes()).unwrap();
        assert_eq!(read.digest(), contract.digest());
    }
    let ordered = decision::json::read(result.as_bytes()).unwrap();
    let object = ordered.as_object().unwrap().get("decisions").unwrap();
    let text = decision::json::write(object);
    let read = decision::contract::Contract::import(text.as_bytes()).unwrap();
    assert_eq!(read.digest(), contract.digest());

    // And again where it is there.
    let error = fetch(
        &FetchRequest {
            contract: Some(other),
            ..right
        },
        &Run::quiet(),
    )
    .unwrap_err();
    assert!(
        matches!(error, TaskError::ContractMismatch { .. }),
        "{error}"
    );
}

#[test]
fn whole_files_that_mean_nothing_are_refused() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    let mut files = made().files.clone();
    let nonsense = b"no checkpoint at all".to_vec();
    for file in &mut files {
        if file.path == WEIGHTS {
            file.size = nonsense.len() as u64;
            file.sha256 = crate::support::hex(&nonsense);
        }
    }
    server.put(WEIGHTS, nonsense);
    let source = Source::Http {
        base_url: server.url(),
        files,
    };
    let error = fetch(&request(base.path(), source), &Run::quiet()).unwrap_err();
    assert!(matches!(error, TaskError::BadCheckpoint { .. }), "{error}");
    assert!(error.to_string().contains(WEIGHTS), "{error}");
    assert_eq!(error.exit().code(), 3);
    assert_eq!(
        names(&base.path().join(".staging")),
        Vec::<String>::new(),
        "what is useless does not stay"
    );
}

#[test]
fn fault_40_a_name_that_leads_out_is_refused_before_the_source_is_asked() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    let mut files = made().files.clone();
    files[0].path = "../escaped".to_owned();
    let source = Source::Http {
        base_url: server.url(),
        files,
    };
    let models = base.path().join("models");
    let error = fetch(&request(&models, source), &Run::quiet()).unwrap_err();
    assert!(matches!(error, TaskError::UnsafePath { .. }), "{error}");
    assert_eq!(error.reason(), Some(api::reason::Reason::UnsafePath));
    assert_eq!(server.seen(), vec![]);
    assert_eq!(names(base.path()), ["models"]);
}

#[test]
fn fault_40_a_link_in_the_staging_folder_is_not_followed() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    let staging = base
        .path()
        .join(".staging")
        .join(&made().digest.hex()[..16]);
    std::fs::create_dir_all(&staging).unwrap();
    let outside = base.path().join("outside");
    std::fs::write(&outside, "precious").unwrap();
    std::os::unix::fs::symlink(&outside, staging.join(WEIGHTS)).unwrap();
    fetch(&request(base.path(), http(&server)), &Run::quiet()).unwrap();
    assert_published(base.path(), made());
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "precious");
}

#[test]
fn progress_is_said_at_least_once_a_second_while_bytes_move() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    server.fail(
        WEIGHTS,
        SiteFault::Slow(64 << 10, Duration::from_millis(150)),
    );
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&heard);
    let run = Run::new(
        Cancel::new(),
        Arc::new(move |progress: &Progress| {
            ear.lock().unwrap().push((Instant::now(), progress.clone()));
        }),
    );
    fetch(&request(base.path(), http(&server)), &run).unwrap();
    let heard = heard.lock().unwrap();
    for pair in heard.windows(2) {
        assert!(
            pair[1].0 - pair[0].0 < Duration::from_millis(1500),
            "{:?} then {:?}",
            pair[0].1,
            pair[1].1
        );
        if pair[0].1.phase == pair[1].1.phase {
            assert!(pair[0].1.bytes <= pair[1].1.bytes);
        }
    }
    let last = &heard.last().unwrap().1;
    assert_eq!((last.bytes, last.total), (made().size(), made().size()));
    for (_, progress) in heard.iter() {
        let line = task::progress_line(progress);
        let json = line.strip_prefix("PROGRESS ").unwrap();
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        assert!((0.0..=1.0).contains(&json["done"].as_f64().unwrap()));
        assert!(line.len() < 64 << 10);
    }
}

#[test]
fn two_writers_take_turns_and_the_second_gives_up() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    let _held = files::Lock::try_take(&base.path().join(".lock"))
        .unwrap()
        .unwrap();
    let wanted = FetchRequest {
        limits: Limits {
            lock_wait: Duration::from_millis(300),
            ..limits()
        },
        ..request(base.path(), http(&server))
    };
    let error = fetch(&wanted, &Run::quiet()).unwrap_err();
    assert!(matches!(error, TaskError::Locked { .. }), "{error}");
    assert_eq!(error.exit().code(), 75);
}
