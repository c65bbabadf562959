//! Volumes without space, without inodes, and read-only: small tmpfs mounts, which need root. Without it these tests say so
//! and check nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use api::reason::Reason;
use tempfile::TempDir;
use volumes::{FetchRequest, Run, TaskError, fetch};

use crate::support::{Made, assert_published, folder_of, http, made, make, request, server};

/// A mounted tmpfs; unmounted when dropped.
struct Mount {
    base: TempDir,
}

impl Mount {
    fn new(options: &str) -> Option<Self> {
        let base = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(base.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { base }),
            other => {
                eprintln!(
                    "\n*** NOT TESTED: no tmpfs can be mounted here ({other:?}); run as root ***\n"
                );
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.base.path()
    }

    fn models(&self) -> PathBuf {
        self.path().join("models")
    }

    fn remount(&self, options: &str) {
        let status = Command::new("mount")
            .args(["-o", &format!("remount,{options}")])
            .arg(self.path())
            .status()
            .unwrap();
        assert!(status.success(), "cannot remount {options}");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

#[test]
fn fault_22_no_space_is_seen_before_the_first_byte_with_both_numbers() {
    let Some(mount) = Mount::new("size=40m") else {
        return;
    };
    let server = server();
    let error = fetch(&request(&mount.models(), http(&server)), &Run::quiet()).unwrap_err();
    let TaskError::NoSpace {
        need_bytes,
        free_bytes,
        ..
    } = &error
    else {
        panic!("{error}");
    };
    assert!(need_bytes > free_bytes);
    let text = error.to_string();
    assert!(text.contains(&need_bytes.to_string()), "{text}");
    assert!(text.contains(&free_bytes.to_string()), "{text}");
    assert_eq!(error.exit().code(), 5);
    assert_eq!(error.reason(), Some(Reason::NoSpace));
    assert_eq!(server.seen(), vec![], "a byte was asked for");
}

#[test]
fn fault_22_no_inodes_are_seen_too() {
    let Some(mount) = Mount::new("size=200m,nr_inodes=20") else {
        return;
    };
    let server = server();
    let error = fetch(&request(&mount.models(), http(&server)), &Run::quiet()).unwrap_err();
    assert!(
        matches!(&error, TaskError::NoSpace { need_inodes, free_inodes, .. } if need_inodes > free_inodes),
        "{error}"
    );
}

#[test]
fn fault_22_space_that_goes_under_way_ends_with_code_5_and_the_next_run_goes_on() {
    let Some(mount) = Mount::new("size=120m") else {
        return;
    };
    let server = server();
    let weights = "model.safetensors";
    server.fail_next(weights, testkit::SiteFault::CutAfter(1000));
    let wanted = request(&mount.models(), http(&server));
    fetch(&wanted, &Run::quiet()).unwrap_err();
    // Enough for the check, which counts on a reserve of 64 MiB, and then somebody else takes it all.
    struct Fill(PathBuf);
    impl volumes::CrashPoints for Fill {
        fn passed(&self, step: &volumes::Step) -> Result<(), TaskError> {
            if *step == volumes::Step::SpaceChecked {
                let mut file = std::fs::File::create(&self.0).unwrap();
                let zeros = vec![0; 64 << 10];
                while std::io::Write::write_all(&mut file, &zeros).is_ok() {}
            }
            Ok(())
        }
    }
    let filler = mount.path().join("filler");
    // What the first run had preallocated must not help.
    std::fs::remove_dir_all(mount.models().join(".staging")).unwrap();
    let run = Run::quiet().with_points(std::sync::Arc::new(Fill(filler.clone())));
    let error = fetch(&wanted, &run).unwrap_err();
    assert!(matches!(error, TaskError::Full { .. }), "{error}");
    assert_eq!(error.exit().code(), 5);
    assert_eq!(error.reason(), Some(Reason::NoSpace));
    assert!(!folder_of(&mount.models(), &made().digest).exists());
    std::fs::remove_file(filler).unwrap();
    fetch(&wanted, &Run::quiet()).unwrap();
    assert_published(&mount.models(), made());
}

#[test]
fn fault_22_a_read_only_volume_is_code_5_and_serves_on() {
    let Some(mount) = Mount::new("size=200m") else {
        return;
    };
    let server = server();
    let wanted = request(&mount.models(), http(&server));
    fetch(&wanted, &Run::quiet()).unwrap();
    mount.remount("ro");
    let error = fetch(&wanted, &Run::quiet()).unwrap_err();
    assert_eq!(error.exit().code(), 5, "{error}");
    assert_eq!(error.reason(), Some(Reason::ReadOnlyVolume), "{error}");
    // Verify needs no writing.
    let check = volumes::VerifyRequest {
        models: mount.models(),
        digest: made().digest.clone(),
        path: None,
        contract: None,
        limits: crate::support::limits(),
    };
    volumes::verify(&check, &Run::quiet()).unwrap();
    mount.remount("rw");
    assert_published(&mount.models(), made());
}

#[test]
fn fault_22_what_may_go_goes_where_there_is_no_room_and_nothing_else() {
    let old: [Made; 2] = [make(11), make(12)];
    // With both old ones, 0.6 of a checkpoint is left beside the reserve; without one of them, 1.6.
    let kib = (64 << 10) + (made().size() >> 10) * 13 / 5;
    let Some(mount) = Mount::new(&format!("size={kib}k")) else {
        return;
    };
    let server = server();
    let plenty = |made: &Made| {
        // Put there without the check of space, as an older volume might be.
        let folder = folder_of(&mount.models(), &made.digest);
        for file in &made.files {
            let to = folder.join(&file.path);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(made.dir.join(&file.path), to).unwrap();
        }
    };
    old.iter().for_each(plenty);
    let wanted = request(&mount.models(), http(&server));
    let error = fetch(&wanted, &Run::quiet()).unwrap_err();
    assert!(matches!(error, TaskError::NoSpace { .. }), "{error}");
    let wanted = FetchRequest {
        prunable: old.iter().map(|made| made.digest.clone()).collect(),
        ..wanted
    };
    fetch(&wanted, &Run::quiet()).unwrap();
    assert_published(&mount.models(), made());
    assert!(!folder_of(&mount.models(), &old[0].digest).exists());
    assert!(
        folder_of(&mount.models(), &old[1].digest).exists(),
        "more went than was needed"
    );
}
