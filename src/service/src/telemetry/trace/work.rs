//! Spans of work that no request asked for: a pass of a reconciler over one object, and the parts of it. Where traces are
//! off they are nothing and cost nothing.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use opentelemetry::trace::{Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};

use super::{Sent, Traces, names};

/// What a pass is over.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Kind of the object.
    pub kind: &'static str,
    /// Where it is.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Generation of its spec.
    pub generation: Option<i64>,
}

/// The span of a pass; it ends when this is dropped.
#[derive(Default)]
pub struct Pass {
    span: Option<Open>,
}

/// A span that is open; it ends when this is dropped.
struct Open {
    sent: Arc<Sent>,
    context: Context,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.context.span().end();
    }
}

impl Open {
    fn set(&self, key: &'static str, value: impl Into<opentelemetry::Value>) {
        self.context.span().set_attribute(KeyValue::new(key, value));
    }

    fn failed(&self, error: &'static str) {
        self.set(names::ERROR, error);
        self.context.span().set_status(Status::error(""));
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass")
            .field("traced", &self.span.is_some())
            .finish()
    }
}

impl Traces {
    /// Begins the span of a pass.
    #[must_use]
    pub fn pass(&self, subject: &Subject<'_>) -> Pass {
        let open = |sent: &Arc<Sent>| {
            let mut attributes = vec![
                KeyValue::new(names::OBJECT_KIND, subject.kind),
                KeyValue::new(names::OBJECT_NAMESPACE, subject.namespace.to_owned()),
                KeyValue::new(names::OBJECT_NAME, subject.name.to_owned()),
            ];
            let generation = subject.generation;
            attributes
                .extend(generation.map(|number| KeyValue::new(names::OBJECT_GENERATION, number)));
            // Passes are no part of what began before them.
            let root = Context::new();
            let span = sent
                .tracer
                .span_builder(format!("pass {}", subject.kind))
                .with_attributes(attributes)
                .start_with_context(&sent.tracer, &root);
            Open {
                sent: sent.clone(),
                context: root.with_span(span),
            }
        };
        Pass {
            span: self.sent.as_ref().map(open),
        }
    }
}

impl Pass {
    /// How it ended; `error` where something was to blame, by a word of a closed set.
    pub fn ended(self, result: &'static str, error: Option<&'static str>) {
        let Some(span) = self.span else { return };
        span.set(names::PASS_RESULT, result);
        if let Some(error) = error {
            span.failed(error);
        }
    }

    fn part(&self, name: &str) -> Option<Open> {
        let Open { sent, context } = self.span.as_ref()?;
        let span = sent
            .tracer
            .span_builder(name.to_owned())
            .start_with_context(&sent.tracer, context);
        Some(Open {
            sent: sent.clone(),
            context: context.with_span(span),
        })
    }
}

/// Does a part of a pass in a span of its own; `word` says of an error which of a closed set it is. As cancel safe as the
/// work: a span that was cut short ends there.
///
/// # Errors
/// Those of the work.
pub async fn within<T, E>(
    pass: &Pass,
    name: &str,
    word: impl FnOnce(&E) -> &'static str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let part = pass.part(name);
    let done = work.await;
    if let (Some(part), Err(error)) = (part, &done) {
        part.failed(word(error));
    }
    done
}
