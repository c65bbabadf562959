//! Bearer tokens.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{Answer, Router, ask, wait_for};

fn write(path: &Path, text: &str) {
    let fresh = path.with_extension("fresh");
    fs::write(&fresh, text).unwrap();
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(fresh, path).unwrap();
}

fn with_token(router: &Router, path: &str, token: &str) -> Answer {
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
    ask(router.address, head.as_bytes())
}

#[test]
fn a_token_file_holds_on_loopback_too_and_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    write(&path, "red red-token-0123456789\n");
    let router = Router::start(&["--token-file", path.to_str().unwrap()]);
    for route in ["/v1/policy", "/v1/models", "/v1/contract", "/metrics"] {
        let refused = router.get(route);
        assert_eq!(
            (refused.status, refused.slug().as_str()),
            (401, "unauthorized"),
            "{route}"
        );
        assert_eq!(
            with_token(&router, route, "red-token-0123456789").status,
            200,
            "{route}"
        );
    }
    for route in ["/health", "/ready"] {
        assert_eq!(router.get(route).status, 200, "{route} is open");
    }
    assert_eq!(router.get("/v3").slug(), "not-found");
    assert_eq!(with_token(&router, "/v1/policy", "local").status, 401);

    write(&path, "red new-red-token-9876543210\n");
    wait_for("the new token to work", || {
        (with_token(&router, "/v1/policy", "new-red-token-9876543210").status == 200).then_some(())
    });
    assert_eq!(
        with_token(&router, "/v1/policy", "red-token-0123456789").status,
        401,
        "the old one is gone"
    );

    write(&path, "this is no token file\n");
    wait_for("the damage to be logged", || {
        router
            .log()
            .iter()
            .any(|line| line.contains("cannot be used"))
            .then_some(())
    });
    assert_eq!(
        with_token(&router, "/v1/policy", "new-red-token-9876543210").status,
        200
    );
    assert!(
        router.log().iter().all(|line| !line.contains("red-token")),
        "tokens are never logged"
    );
}

#[test]
fn on_loopback_without_a_token_file_any_bearer_is_accepted() {
    let router = Router::start(&[]);
    assert_eq!(with_token(&router, "/v1/policy", "local").status, 200);
    assert_eq!(router.get("/v1/policy").status, 200);
}
