//! A damaged version is mended while servers have its files open.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use volumes::{Existing, FetchRequest, Run, fetch};

use crate::support::{assert_published, folder_of, http, made, names, request, server};

const WEIGHTS: &str = "model.safetensors";

fn repair(models: &Path, server: &testkit::files::FileServer) -> FetchRequest {
    FetchRequest {
        existing: Existing::Repair,
        ..request(models, http(server))
    }
}

fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn good_files_are_linked_and_only_bad_ones_are_fetched() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    fetch(&request(base.path(), http(&server)), &Run::quiet()).unwrap();
    let folder = folder_of(base.path(), &made().digest);
    let tokenizer = folder.join("tokenizer/tokenizer.json");
    let inode = tokenizer.metadata().unwrap().ino();
    let mut wrong = made().bytes(WEIGHTS);
    wrong[77] ^= 1;
    replace(&folder.join(WEIGHTS), &wrong);
    let mut open = File::open(folder.join(WEIGHTS)).unwrap();

    server.forget();
    let fetched = fetch(&repair(base.path(), &server), &Run::quiet()).unwrap();
    assert!(!fetched.present);
    assert_published(base.path(), made());
    let asked: Vec<String> = server
        .seen()
        .iter()
        .map(|seen| seen.target().to_owned())
        .collect();
    assert_eq!(asked, [format!("/{WEIGHTS}")]);
    assert_eq!(
        tokenizer.metadata().unwrap().ino(),
        inode,
        "not the same file"
    );
    assert!(
        fetched.notes.iter().any(|note| note.contains(WEIGHTS)),
        "{:?}",
        fetched.notes
    );
    // Who had the old file open reads it to its end.
    let mut read = Vec::new();
    open.read_to_end(&mut read).unwrap();
    assert_eq!(read, wrong);
}

#[test]
fn what_is_whole_stays_as_it_is_without_a_byte_fetched() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    fetch(&request(base.path(), http(&server)), &Run::quiet()).unwrap();
    let manifest = folder_of(base.path(), &made().digest).join("relay-manifest.json");
    let inode = manifest.metadata().unwrap().ino();
    server.forget();
    let fetched = fetch(&repair(base.path(), &server), &Run::quiet()).unwrap();
    assert!(fetched.present);
    assert_eq!(server.seen(), vec![]);
    assert_eq!(manifest.metadata().unwrap().ino(), inode, "not exchanged");
    assert_published(base.path(), made());
}

#[test]
fn what_lies_beside_the_files_of_a_version_is_mended_away() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    fetch(&request(base.path(), http(&server)), &Run::quiet()).unwrap();
    let extra = folder_of(base.path(), &made().digest).join("notes.txt");
    fs::write(&extra, b"mine").unwrap();
    let fetched = fetch(&repair(base.path(), &server), &Run::quiet()).unwrap();
    assert!(!fetched.present && !extra.exists());
    assert_published(base.path(), made());
}

#[test]
fn fault_21_a_half_written_version_is_never_present_and_a_plain_fetch_mends_it() {
    // What no run of ours leaves, but a disk or a hand may.
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 5] = [
        ("a file is missing", |folder| {
            fs::remove_file(folder.join(WEIGHTS)).unwrap();
        }),
        ("a file is short", |folder| {
            replace(&folder.join(WEIGHTS), b"short");
        }),
        ("no manifest", |folder| {
            fs::remove_file(folder.join("relay-manifest.json")).unwrap();
        }),
        ("a broken manifest", |folder| {
            replace(&folder.join("relay-manifest.json"), b"{");
        }),
        ("a link", |folder| {
            fs::remove_file(folder.join(WEIGHTS)).unwrap();
            std::os::unix::fs::symlink("/dev/zero", folder.join(WEIGHTS)).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let (server, base) = (server(), tempfile::tempdir().unwrap());
        let request = request(base.path(), http(&server));
        fetch(&request, &Run::quiet()).unwrap();
        damage(&folder_of(base.path(), &made().digest));
        let fetched = fetch(&request, &Run::quiet()).unwrap();
        assert!(!fetched.present, "{name}");
        assert_published(base.path(), made());
    }
}

#[test]
fn a_repair_that_cannot_fetch_leaves_the_old_version() {
    let (server, base) = (server(), tempfile::tempdir().unwrap());
    fetch(&request(base.path(), http(&server)), &Run::quiet()).unwrap();
    let folder = folder_of(base.path(), &made().digest);
    replace(&folder.join(WEIGHTS), b"bad");
    server.fail(WEIGHTS, testkit::SiteFault::Status(503, None));
    fetch(&repair(base.path(), &server), &Run::quiet()).unwrap_err();
    assert_eq!(fs::read(folder.join(WEIGHTS)).unwrap(), b"bad");
    server.heal();
    fetch(&repair(base.path(), &server), &Run::quiet()).unwrap();
    assert_published(base.path(), made());
    assert_eq!(
        names(base.path()),
        [
            ".lock",
            ".staging",
            ".store.json",
            ".trash",
            made().digest.folder().as_str()
        ]
    );
}
