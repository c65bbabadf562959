//! Names of what a span carries: those of the OpenTelemetry conventions where they have one, else ours. They still
//! move, so they are here only, with their version.

/// Version of the conventions the names are taken from.
pub(super) const CONVENTIONS: &str = "https://opentelemetry.io/schemas/1.37.0";

/// Method of the request, `_OTHER` where it is none of RFC 9110.
pub(super) const METHOD: &str = "http.request.method";
/// Pattern of the route, never the path: a path may hold an id.
pub(super) const ROUTE: &str = "http.route";
/// Status of the answer.
pub(super) const STATUS: &str = "http.response.status_code";
/// The status again, as text, where the server is to blame for it.
pub(super) const ERROR: &str = "error.type";
/// Id of the request, as in `x-request-id`.
pub(super) const REQUEST_ID: &str = "relay.request.id";
/// Id of the decision the request made or asked about.
pub(super) const DECISION_ID: &str = "relay.decision.id";
/// Kind of the object a pass is over, as its API names it.
pub(super) const OBJECT_KIND: &str = "relay.object.kind";
/// Its namespace.
pub(super) const OBJECT_NAMESPACE: &str = "relay.object.namespace";
/// Its name.
pub(super) const OBJECT_NAME: &str = "relay.object.name";
/// Generation of its spec.
pub(super) const OBJECT_GENERATION: &str = "relay.object.generation";
/// How a pass ended.
pub(super) const PASS_RESULT: &str = "relay.pass.result";
/// Version of the program.
pub(super) const SERVICE_VERSION: &str = "service.version";
/// Which of several replicas.
pub(super) const SERVICE_INSTANCE: &str = "service.instance.id";
