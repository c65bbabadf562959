use std::ffi::OsString;

use super::*;

fn home(folder: &Path) -> Home {
    Home::find(&|name| (name == "RELAY_HOME").then(|| folder.as_os_str().to_owned())).unwrap()
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn the_setting_wins_over_the_environment_and_both_over_the_default() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(folder.path());
    let none = LayaSettings::default();
    let set = LayaSettings {
        base_url: Some("https://router.test".to_owned()),
        ..LayaSettings::default()
    };
    for (settings, variable, origin, from) in [
        (&none, None, "http://127.0.0.1:8737", AddressFrom::Default),
        (
            &none,
            Some(" "),
            "http://127.0.0.1:8737",
            AddressFrom::Default,
        ),
        (
            &none,
            Some("http://10.0.0.1:9/v1/"),
            "http://10.0.0.1:9",
            AddressFrom::Environment,
        ),
        (
            &set,
            Some("http://10.0.0.1:9/v1/"),
            "https://router.test",
            AddressFrom::Settings,
        ),
    ] {
        let environment = |name: &str| {
            variable
                .filter(|_| name == "LAYA_BASE_URL")
                .map(OsString::from)
        };
        let router = home.router(settings, &environment).unwrap();
        assert_eq!(
            (router.origin.as_str(), router.address_from),
            (origin, from)
        );
    }
}

#[test]
fn a_running_daemon_is_found_and_a_dead_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(folder.path());
    let pid = std::process::id();
    let start = process_start(pid).unwrap();
    let endpoint = |start: u64| {
        format!(
            r#"{{"url":"http://127.0.0.1:4748","router":"http://127.0.0.1:8738","pid":{pid},"pidStart":{start},"version":"1"}}"#
        )
    };
    let none = LayaSettings::default();
    write(folder.path(), "daemon/endpoint.json", &endpoint(start));
    assert_eq!(
        home.router(&none, &|_| None).unwrap().origin,
        "http://127.0.0.1:8738"
    );
    write(folder.path(), "daemon/endpoint.json", &endpoint(start + 1));
    assert_eq!(
        home.router(&none, &|_| None).unwrap().origin,
        "http://127.0.0.1:8737",
        "the number was used again"
    );
}

#[test]
fn a_damaged_file_of_the_daemon_is_no_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(folder.path());
    let none = LayaSettings::default();
    let pid = std::process::id();
    let bad_address = format!(r#"{{"router":"http://me:hunter2@a","pid":{pid}}}"#);
    for (name, text) in [
        ("empty", ""),
        ("broken off", "{\"url\":\"http://127"),
        ("another shape", "[]"),
        ("no process", r#"{"router":"http://127.0.0.1:8738"}"#),
        ("no address", &bad_address),
    ] {
        write(folder.path(), "daemon/endpoint.json", text);
        let router = home.router(&none, &|_| None).unwrap();
        assert_eq!(
            (router.origin.as_str(), router.address_from),
            ("http://127.0.0.1:8737", AddressFrom::Default),
            "{name}"
        );
        let [note] = router.notes.as_slice() else {
            panic!("{name}: {:?}", router.notes);
        };
        assert!(
            note.contains("endpoint.json") && note.ends_with("counts as no running router"),
            "{name}: {note}"
        );
        assert!(!note.contains("hunter2"), "{name}: {note}");
    }
    std::fs::write(folder.path().join("daemon/endpoint.json"), b"\xff").unwrap();
    assert_eq!(home.router(&none, &|_| None).unwrap().notes.len(), 1);
}

#[test]
fn the_stored_key_wins_and_is_never_in_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(folder.path());
    let none = LayaSettings::default();
    let environment = |name: &str| (name == "LAYA_API_KEY").then(|| "from-environment".into());
    assert_eq!(home.router(&none, &|_| None).unwrap().key, "local");
    assert_eq!(
        home.router(&none, &environment).unwrap().key,
        "from-environment"
    );
    write(
        folder.path(),
        "agent/auth.json",
        r#"{"laya":{"type":"api_key","key":"stored"}}"#,
    );
    assert_eq!(home.router(&none, &environment).unwrap().key, "stored");
    for text in [
        r#"{"laya":{"type":7,"key":"hunter2"}}"#,
        r#"{"laya":{"type":"api_key","key":"hunter2 "}}"#,
        r#"{"laya":{"type":"api_key","key":"!hunter2"}}"#,
    ] {
        write(folder.path(), "agent/auth.json", text);
        let error = home.router(&none, &environment).unwrap_err().render();
        assert!(
            error.contains("auth.json") && !error.contains("hunter2"),
            "{error}"
        );
    }
}

#[test]
fn a_damaged_settings_file_is_named_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(folder.path());
    assert!(home.settings().unwrap().notes.is_empty());
    write(folder.path(), "agent/settings.json", "{\n  \"laya\": {\n");
    let error = home.settings().unwrap_err().to_string();
    assert!(
        error.contains("settings.json") && error.contains("line 3"),
        "{error}"
    );
}

#[test]
fn loopback_is_told_from_the_rest() {
    for (origin, expected) in [
        ("http://127.0.0.1:8737", true),
        ("http://127.8.9.1", true),
        ("http://[::1]:8737", true),
        ("https://LOCALHOST/relay", true),
        ("http://10.0.0.1:8737", false),
        ("https://127.0.0.1.example", false),
        ("https://localhost.example", false),
        ("https://router.example/127.0.0.1", false),
        ("http://[::2]", false),
    ] {
        assert_eq!(is_loopback(origin), expected, "{origin}");
    }
}

/// What is wrong is said, and nothing that may be a password.
#[test]
fn refuses_addresses_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let home = home(folder.path());
    let none = LayaSettings::default();
    for (url, told) in [
        ("localhost:8737", "`localhost:8737` must begin with http"),
        ("http://:8737", "names no host"),
        (
            "http://a:65536",
            "`http://a:65536` must have a port from 1 to 65535",
        ),
        (
            "http://me:hunter2@a",
            "must not hold a user name or a password",
        ),
        ("me:hunter2@a", "must begin with http"),
        ("http://me:hunt/er2@a", "must have a port"),
    ] {
        let environment = |name: &str| (name == "LAYA_BASE_URL").then(|| url.into());
        let error = home.router(&none, &environment).unwrap_err().render();
        assert!(error.contains(told), "{url}: {error}");
        assert!(error.contains("LAYA_BASE_URL"), "{url}: {error}");
        for secret in ["hunt", "er2", "me:"] {
            assert!(!error.contains(secret), "{url}: {error}");
        }
    }
}

#[test]
fn keys_that_others_can_read_are_noted() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let home = home(folder.path());
    let none = LayaSettings::default();
    write(
        folder.path(),
        "agent/auth.json",
        "\u{feff}{\"laya\":{\"type\":\"api_key\",\"key\":\"stored\"}}",
    );
    let path = folder.path().join("agent/auth.json");
    for (mode, noted) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let router = home.router(&none, &|_| None).unwrap();
        assert_eq!(
            (router.key.as_str(), !router.notes.is_empty()),
            ("stored", noted),
            "{mode:o}"
        );
    }
    let notes = home.router(&none, &|_| None).unwrap().notes;
    assert!(
        notes[0].contains("auth.json") && notes[0].contains("0604"),
        "{notes:?}"
    );
}
