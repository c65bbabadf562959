use service::http::HostRule;
use service::runtime::ShutdownTrigger;
use tower::{ServiceExt, service_fn};

use super::*;
use crate::listen::Door;

async fn echo(_: Request) -> Result<Response, Infallible> {
    Ok(Response::new(Body::from("answered")))
}

fn ask(path: &str, headers: &[(&str, &str)]) -> Request {
    let mut request = http::Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).unwrap()
}

#[tokio::test]
async fn a_port_asks_for_the_token_and_a_socket_does_not() {
    let (_running, shutdown) = ShutdownTrigger::new();
    let folder = tempfile::tempdir().unwrap();
    let token = Door::of_folder(folder.path()).unwrap().token;
    let origins = Arc::new(Origins::new(Vec::new(), HostRule::LoopbackOnly));
    let port = Caller::Token {
        token: token.clone(),
        origins,
    };
    let port = router(service_fn(echo), port, shutdown.clone());
    let socket = router(service_fn(echo), Caller::SameUser, shutdown.clone());
    let right = format!("Bearer {}", token.text());
    let right = right.as_str();
    type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], StatusCode);
    let rows: &[Row<'_>] = &[
        (
            "no token",
            &[("host", "127.0.0.1:4748")],
            StatusCode::UNAUTHORIZED,
        ),
        (
            "wrong token",
            &[("authorization", "Bearer x")],
            StatusCode::UNAUTHORIZED,
        ),
        (
            "another scheme",
            &[("authorization", "Basic eDp4")],
            StatusCode::UNAUTHORIZED,
        ),
        ("right", &[("authorization", right)], StatusCode::OK),
        (
            "a page of a browser",
            &[("authorization", right), ("origin", "https://evil.example")],
            StatusCode::FORBIDDEN,
        ),
        (
            "a re-pointed name",
            &[("authorization", right), ("host", "evil.example:4748")],
            StatusCode::FORBIDDEN,
        ),
    ];
    for (name, headers, expected) in rows {
        let response = port.clone().oneshot(ask("/api/v1", headers)).await.unwrap();
        assert_eq!(response.status(), *expected, "{name}");
    }
    let response = socket
        .clone()
        .oneshot(ask("/apis/relay.dev/v1alpha1", &[]))
        .await;
    assert_eq!(response.unwrap().status(), StatusCode::OK);
    let response = socket.oneshot(ask("/api/sessions", &[])).await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}
