//! Every HTTP route of the router as data (routing.md 18): what it takes, what it answers, which errors it has. The OpenAPI
//! document and the reference page are written from this table, and a test of the router asks each route for what is
//! promised here.

mod table;

use crate::problem::Slug;

pub use table::ROUTES;

/// An HTTP method the router has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Reads.
    Get,
    /// Decides, records.
    Post,
    /// Changes a part.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// As in a request line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// What a route asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    Open,
    /// The token, and no slot: it answers while the router is full.
    Token,
    /// The token, and a slot among the requests in flight.
    Slot,
}

/// In which form a route says what is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorForm {
    /// `application/problem+json`.
    Problem,
    /// `{"detail": …}`, as a Laya server does.
    Detail,
}

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the path; always there.
    Path,
    /// In the query.
    Query,
    /// In a header.
    Header,
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Any text.
    Text,
    /// `true` or `false`.
    Switch,
    /// A whole number in a range.
    Number {
        /// Smallest.
        least: u64,
        /// Largest.
        most: u64,
        /// When it is absent.
        default: Option<u64>,
    },
    /// A UUID.
    Uuid,
    /// RFC 3339.
    Time,
    /// RFC 3339, or an age such as `2w`, `7d`, `12h`, `30m`.
    Since,
    /// `sha256:` and 64 hexadecimal digits.
    Digest,
}

/// One parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Where it stands.
    pub place: Place,
    /// What it may be.
    pub form: Form,
    /// Whether it must be there.
    pub required: bool,
    /// What it does.
    pub about: &'static str,
}

/// What a body holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// JSON of a type, named as in the schemas of the document.
    Json(&'static str),
    /// JSON that is somebody else's contract.
    AnyJson,
    /// One JSON object a line.
    JsonLines,
    /// Prometheus' text form.
    Metrics,
}

impl Content {
    /// Its media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json(_) | Self::AnyJson => "application/json",
            Self::JsonLines => "application/jsonl",
            Self::Metrics => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The body of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body {
    /// What it holds.
    pub content: Content,
    /// Longest, in bytes.
    pub limit: usize,
}

/// One answer that is no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// What it holds.
    pub content: Content,
    /// When it comes.
    pub about: &'static str,
}

/// One route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Its method.
    pub method: Method,
    /// Its path; parameters in braces.
    pub path: &'static str,
    /// Name of the operation.
    pub id: &'static str,
    /// One line.
    pub summary: &'static str,
    /// More, if there is more to say.
    pub about: &'static str,
    /// What it asks of its caller.
    pub access: Access,
    /// How it says what is wrong.
    pub errors: ErrorForm,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// The body it takes.
    pub body: Option<Body>,
    /// What it answers when all is well.
    pub answers: &'static [Answer],
    /// Errors of its own, beside those that come with access, parameters and body.
    pub own_problems: &'static [Slug],
}

impl Route {
    /// Every kind of error it can answer with, in the order of [`Slug::ALL`].
    #[must_use]
    pub fn problems(&self) -> Vec<Slug> {
        let all = Slug::ALL.iter().copied();
        all.filter(|slug| self.has_problem(*slug)).collect()
    }

    fn has_problem(&self, slug: Slug) -> bool {
        let reads_body = self.body.is_some();
        self.own_problems.contains(&slug)
            || match slug {
                Slug::OriginRefused | Slug::Internal => true,
                Slug::Unauthorized => self.access != Access::Open,
                Slug::Overloaded => self.access == Access::Slot,
                Slug::MalformedJson | Slug::RequestTimeout | Slug::TooLarge => reads_body,
                // A Laya server does not ask how a body is declared.
                Slug::UnsupportedMediaType => reads_body && self.errors == ErrorForm::Problem,
                Slug::InvalidRequest => {
                    reads_body || self.parameters.iter().any(|one| one.place != Place::Header)
                }
                _ => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_route_stands_there_once_and_names_the_parameters_of_its_path() {
        let mut ids = BTreeSet::new();
        let mut places = BTreeSet::new();
        for route in ROUTES {
            assert!(ids.insert(route.id), "{}", route.id);
            assert!(places.insert((route.path, route.method)), "{}", route.id);
            let in_path: BTreeSet<_> = route
                .path
                .split('/')
                .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
                .collect();
            let named: BTreeSet<_> = route
                .parameters
                .iter()
                .filter(|one| one.place == Place::Path)
                .inspect(|one| assert!(one.required, "{}", route.id))
                .map(|one| one.name)
                .collect();
            assert_eq!(named, in_path, "{}", route.id);
            assert!(!route.answers.is_empty(), "{}", route.id);
        }
    }

    #[test]
    fn errors_follow_from_what_a_route_asks_for() {
        let of = |id: &str| {
            let route = ROUTES.iter().find(|route| route.id == id).unwrap();
            let slugs = route.problems();
            slugs.iter().map(|slug| slug.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(of("health"), ["origin-refused", "internal"]);
        assert_eq!(
            of("metrics"),
            ["unauthorized", "origin-refused", "internal"]
        );
        for slug in ["malformed-json", "no-candidate", "overloaded"] {
            assert!(of("route").contains(&slug), "{slug}");
        }
        assert!(!of("policy").contains(&"invalid-request"));
        assert!(of("decisions").contains(&"invalid-request"));
    }
}
