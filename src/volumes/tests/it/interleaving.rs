//! Any order of crashes, broken sources, damage and prunes: what has the name of a version is whole unless somebody damaged
//! it, and a last undisturbed run ends published.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use testkit::SiteFault;
use testkit::files::FileServer;
use volumes::{Existing, FetchRequest, PruneRequest, Run, VerifyRequest, fetch, prune, verify};

use crate::support::{
    DieAt, assert_published, folder_of, http, limits, made, request, run_with, server,
};

#[derive(Debug, Clone)]
enum Act {
    /// Fetch, dead after so many steps.
    Fetch(usize, Existing),
    /// Fetch from a source that breaks once.
    Broken(usize, Breakage),
    /// Somebody damages the published version.
    Damage(usize),
    /// Prune, dead after so many steps.
    Prune(usize),
}

#[derive(Debug, Clone, Copy)]
enum Breakage {
    Cut,
    WrongByte,
    Busy,
}

fn act() -> impl Strategy<Value = Act> {
    let breakage = prop_oneof![
        Just(Breakage::Cut),
        Just(Breakage::WrongByte),
        Just(Breakage::Busy)
    ];
    prop_oneof![
        4 => (0..45usize, prop_oneof![Just(Existing::Trust), Just(Existing::Repair)])
            .prop_map(|(at, existing)| Act::Fetch(at, existing)),
        2 => (0..5usize, breakage).prop_map(|(file, breakage)| Act::Broken(file, breakage)),
        1 => (0..5usize).prop_map(Act::Damage),
        1 => (0..4usize).prop_map(Act::Prune),
    ]
}

/// Does it; whether the published version may be damaged now.
fn perform(act: &Act, models: &Path, server: &FileServer, damaged: bool) -> bool {
    match act {
        Act::Fetch(at, existing) => {
            let wanted = FetchRequest {
                existing: *existing,
                ..request(models, http(server))
            };
            let done = fetch(&wanted, &run_with(&DieAt::step(*at))).is_ok();
            damaged && !(done && *existing == Existing::Repair)
        }
        Act::Broken(file, breakage) => {
            let file = &made().files[file % made().files.len()];
            let fault = match breakage {
                Breakage::Cut => SiteFault::CutAfter(file.size / 2),
                Breakage::WrongByte => SiteFault::WrongByte(file.size / 3),
                Breakage::Busy => SiteFault::Status(503, None),
            };
            server.fail_next(&file.path, fault);
            let _ = fetch(&request(models, http(server)), &Run::quiet());
            server.heal();
            damaged
        }
        Act::Damage(file) => {
            let file = &made().files[file % made().files.len()];
            let path = folder_of(models, &made().digest).join(&file.path);
            let Ok(mut bytes) = fs::read(&path) else {
                return damaged;
            };
            bytes[0] ^= 1;
            // A new file: links of a repair under way are another matter than a disk that rots.
            fs::remove_file(&path).unwrap();
            fs::write(&path, bytes).unwrap();
            true
        }
        Act::Prune(at) => {
            let asked = PruneRequest {
                models: models.to_owned(),
                delete: vec![made().digest.clone()],
                keep: vec![],
                limits: limits(),
            };
            let _ = prune(&asked, &run_with(&DieAt::step(*at)));
            damaged && folder_of(models, &made().digest).exists()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn fault_21_any_interleaving_ends_published(acts in prop::collection::vec(act(), 1..8)) {
        let (server, base) = (server(), tempfile::tempdir().unwrap());
        let mut damaged = false;
        for act in &acts {
            damaged = perform(act, base.path(), &server, damaged);
            let published = folder_of(base.path(), &made().digest).exists();
            if published && !damaged {
                let check = VerifyRequest {
                    models: base.path().to_owned(),
                    digest: made().digest.clone(),
                    path: None,
                    contract: None,
                    limits: limits(),
                };
                let seen = verify(&check, &Run::quiet());
                prop_assert!(seen.is_ok(), "after {act:?}: {}", seen.unwrap_err());
            }
        }
        let last = FetchRequest {
            existing: if damaged { Existing::Repair } else { Existing::Trust },
            ..request(base.path(), http(&server))
        };
        fetch(&last, &Run::quiet()).unwrap();
        assert_published(base.path(), made());
    }
}
