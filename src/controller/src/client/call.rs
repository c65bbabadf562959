//! What a request asks for, read from its method and path: the labels of metrics, and whether it may be sent twice.

use api::group::Kind;
use http::header::CONTENT_TYPE;
use http::{Method, Request};

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    /// Server-side apply: the same body twice is the same object.
    Apply,
    Patch,
    Delete,
    Other,
}

impl Verb {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Apply => "apply",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::Other => "other",
        }
    }
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) verb: Verb,
    /// A kind of ours, of Kubernetes as far as we use it, or `Other`.
    pub(super) kind: &'static str,
}

impl Call {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        let uri = request.uri();
        let (plural, named) = resource(uri.path());
        let kind = plural.map_or("Other", kind_of);
        let watches = uri
            .query()
            .is_some_and(|query| query.split('&').any(|pair| pair == "watch=true"));
        let applies = request
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/apply-patch"));
        let verb = match *request.method() {
            Method::GET if watches => Verb::Watch,
            Method::GET if plural.is_some() && !named => Verb::List,
            Method::GET => Verb::Get,
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH if applies => Verb::Apply,
            Method::PATCH => Verb::Patch,
            Method::DELETE => Verb::Delete,
            _ => Verb::Other,
        };
        Self { verb, kind }
    }

    pub(super) const fn is_watch(self) -> bool {
        matches!(self.verb, Verb::Watch)
    }

    /// Whether sending it again after an answer that was lost changes nothing. A deletion has a uid as precondition, and
    /// an apply a resource version: the second is answered with 404 or 409, which its caller can tell from success.
    pub(super) const fn is_idempotent(self) -> bool {
        match self.verb {
            Verb::Get | Verb::List | Verb::Watch | Verb::Apply | Verb::Delete => true,
            Verb::Create | Verb::Update | Verb::Patch | Verb::Other => false,
        }
    }
}

/// The plural in a path of the API, and whether one object is named.
fn resource(path: &str) -> (Option<&str>, bool) {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let skipped = match parts.next() {
        Some("api") => parts.next(),
        Some("apis") => parts.next().and_then(|_| parts.next()),
        _ => None,
    };
    if skipped.is_none() {
        return (None, false);
    }
    let mut plural = parts.next();
    let mut name = parts.next();
    if plural == Some("namespaces") && name.is_some() {
        let inner = parts.next();
        if inner.is_some() {
            (plural, name) = (inner, parts.next());
        }
    }
    (plural, name.is_some())
}

fn kind_of(plural: &str) -> &'static str {
    let ours = Kind::ALL.into_iter().find(|kind| kind.plural() == plural);
    match plural {
        "controllerrevisions" => "ControllerRevision",
        "events" => "Event",
        "leases" => "Lease",
        "namespaces" => "Namespace",
        _ => ours.map_or("Other", Kind::as_str),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_verb_and_kind_from_a_request() {
        for (method, uri, verb, kind) in [
            ("GET", "/apis/relay.dev/v1alpha1/namespaces/a/routingpolicies?&limit=500", Verb::List, "RoutingPolicy"),
            ("GET", "/apis/relay.dev/v1alpha1/routingpolicies?&watch=true&timeoutSeconds=290", Verb::Watch, "RoutingPolicy"),
            ("GET", "/apis/apps/v1/namespaces/a/controllerrevisions/rp-x-1", Verb::Get, "ControllerRevision"),
            ("DELETE", "/apis/apps/v1/namespaces/a/controllerrevisions/rp-x-1?", Verb::Delete, "ControllerRevision"),
            ("POST", "/apis/events.k8s.io/v1/namespaces/a/events?", Verb::Create, "Event"),
            ("GET", "/api/v1/namespaces", Verb::List, "Namespace"),
            ("GET", "/api/v1/namespaces/a", Verb::Get, "Namespace"),
            ("GET", "/api/v1/namespaces/a/pods/p", Verb::Get, "Other"),
            ("GET", "/openapi/v3/apis/relay.dev/v1alpha1", Verb::Get, "Other"),
            ("GET", "/version", Verb::Get, "Other"),
            ("PATCH", "/apis/relay.dev/v1alpha1/namespaces/a/routingpolicies/x/status?", Verb::Patch, "RoutingPolicy"),
        ] {
            let request = Request::builder().method(method).uri(uri).body(()).unwrap();
            assert_eq!(Call::of(&request), Call { verb, kind }, "{method} {uri}");
        }
        let apply = Request::patch("/apis/relay.dev/v1alpha1/namespaces/a/layaservers/x/status")
            .header(CONTENT_TYPE, "application/apply-patch+yaml")
            .body(())
            .unwrap();
        let apply = Call::of(&apply);
        assert_eq!((apply.verb, apply.kind), (Verb::Apply, "LayaServer"));
        assert!(apply.is_idempotent());
    }
}
