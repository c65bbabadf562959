//! The Kubernetes API as HTTP: what a request asks for, and in which form the answer goes out. Knows no socket, no token.

mod accept;
mod body;
mod change;
mod continuation;
mod delete_options;
mod discovery;
mod documents;
mod json_path;
mod open_api;
mod path;
mod protobuf;
mod query;
mod read;
mod selector;
mod table;
mod watch;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, header};
use http_body::Body;
use serde_json::Value;

pub use body::ObjectBody;
pub(crate) use documents::Documents;

use crate::failure::Failure;
use crate::store::Inner;
use path::{Objects, Target};
use query::Query;

/// An error of a request's body.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// An extension of a request inside the process: the object it creates gets this uid. For objects that are made again from
/// the labels of what still runs (control-plane 1.4); no request from outside can carry one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptUid(pub String);

/// The service of a store. Cheap to clone. Who may call it is for the server around it to decide; it never fails, every
/// refusal is a `Status`.
#[derive(Clone)]
pub struct ObjectService(Arc<Inner>);

impl std::fmt::Debug for ObjectService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectService").finish_non_exhaustive()
    }
}

impl ObjectService {
    pub(crate) const fn new(inner: Arc<Inner>) -> Self {
        Self(inner)
    }

    /// Answers one request. When the future is dropped, a write may still happen.
    async fn answer<B>(self, request: Request<B>) -> Response<ObjectBody>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        let answer = self.dispatch(&parts, body).await;
        answer.unwrap_or_else(|failure| refusal(&failure))
    }

    async fn dispatch<B>(&self, parts: &Parts, body: B) -> Result<Response<ObjectBody>, Failure>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let catalog = &self.0.catalog;
        let target = path::parse(catalog, parts.uri.path())?;
        if let Target::Objects(objects) = target {
            return self.objects(objects, parts, body).await;
        }
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return Err(Failure::method_not_allowed());
        }
        let document = match target {
            Target::Document(document) => document,
            Target::Health => return Ok(plain_text("ok")),
            Target::Objects(_) => return Err(Failure::internal("answered above")),
        };
        let wanted = if accept::wants_aggregated(&parts.headers) {
            document.clone().aggregated()
        } else {
            document.clone()
        };
        let is_aggregated = wanted != document;
        let text = self.0.documents.text(wanted, catalog);
        let text = text.ok_or_else(Failure::no_such_path)?;
        let media_type = if is_aggregated {
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        } else {
            "application/json"
        };
        Ok(response(200, media_type, ObjectBody::whole(text)))
    }

    async fn objects<B>(
        &self,
        objects: Objects,
        parts: &Parts,
        body: B,
    ) -> Result<Response<ObjectBody>, Failure>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let query = Query::parse(parts.uri.query().unwrap_or_default())?;
        let view = read::Shown {
            form: accept::form(&parts.headers)?,
            include: table::Include::parse(&query.include_object).ok_or_else(|| {
                Failure::bad_request(format!(
                    "unrecognized includeObject value: {:?}",
                    query.include_object
                ))
            })?,
        };
        if parts.method == Method::GET {
            return match &objects.name {
                Some(name) => read::get(&self.0, &objects, name, view).await,
                None if query.is_watch => self.watch(objects, &query, view).await,
                None => read::list(&self.0, &objects, &query, view).await,
            };
        }
        let verb = change::verb(&objects, &parts.method)?;
        let _permit =
            (self.0.writes.acquire().await).map_err(|_| Failure::unavailable("it was closed"))?;
        let body = body::read(body).await?;
        let write = change::Write {
            inner: &self.0,
            objects,
            query,
            headers: &parts.headers,
            view,
            kept_uid: parts.extensions.get::<KeptUid>(),
        };
        write.run(verb, &body).await
    }

    async fn watch(
        &self,
        objects: Objects,
        query: &Query,
        view: read::Shown,
    ) -> Result<Response<ObjectBody>, Failure> {
        query::list_options(query)?;
        let selection =
            selector::Selection::parse(&objects.resource, &query.labels, &query.fields)?;
        let watched = watch::Watched {
            resource: objects.resource,
            namespace: objects.namespace,
            selection,
            form: view.form,
            include: view.include,
        };
        let lines = watch::start(&self.0, watched, query).await?;
        Ok(response(200, "application/json", ObjectBody::lines(lines)))
    }
}

impl<B> tower::Service<Request<B>> for ObjectService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ObjectBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

fn response(code: u16, media_type: &'static str, body: ObjectBody) -> Response<ObjectBody> {
    let mut response = Response::new(body);
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    response
}

fn bytes(code: u16, body: impl Into<Bytes>) -> Response<ObjectBody> {
    response(code, "application/json", ObjectBody::whole(body.into()))
}

fn json(code: u16, value: &Value) -> Response<ObjectBody> {
    bytes(code, value.to_string())
}

fn plain_text(text: &'static str) -> Response<ObjectBody> {
    let body = ObjectBody::whole(Bytes::from_static(text.as_bytes()));
    response(200, "text/plain; charset=utf-8", body)
}

fn refusal(failure: &Failure) -> Response<ObjectBody> {
    let mut response = json(failure.code, &failure.status());
    if let Some(seconds) = failure.retry_after_seconds() {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
