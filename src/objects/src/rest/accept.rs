//! In which form a client wants its answer.

use http::{HeaderMap, header};

use crate::failure::Failure;

/// A form of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As they are.
    Object,
    /// Rows for people.
    Table,
    /// Metadata alone.
    Metadata,
}

/// One of the forms that a client accepts.
struct Accepted<'a> {
    media_type: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl Accepted<'_> {
    fn parameter(&self, name: &str) -> &str {
        let found = self.parameters.iter().find(|(key, _)| *key == name);
        found.map_or("", |(_, value)| value)
    }

    fn is_json(&self) -> bool {
        matches!(
            self.media_type,
            "" | "*/*" | "application/*" | "application/json"
        )
    }
}

fn accepted(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::ACCEPT).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

fn parse(text: &str) -> Accepted<'_> {
    let mut parts = text.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default();
    Accepted {
        media_type,
        parameters: parts
            .filter_map(|parameter| parameter.split_once('='))
            .map(|(key, value)| (key.trim(), value.trim()))
            .collect(),
    }
}

/// The first form that a client accepts and we have.
pub(super) fn form(headers: &HeaderMap) -> Result<Form, Failure> {
    let all = accepted(headers);
    if all.is_empty() {
        return Ok(Form::Object);
    }
    let known = |accepted: &Accepted<'_>| {
        if !accepted.is_json() {
            return None;
        }
        match (
            accepted.parameter("as"),
            accepted.parameter("g"),
            accepted.parameter("v"),
        ) {
            ("", _, _) => Some(Form::Object),
            ("Table", "meta.k8s.io", "v1") => Some(Form::Table),
            ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => {
                Some(Form::Metadata)
            }
            _ => None,
        }
    };
    all.iter()
        .find_map(|text| known(&parse(text)))
        .ok_or_else(Failure::not_acceptable)
}

/// Whether a client takes all of discovery in one document before the single ones.
pub(super) fn wants_aggregated(headers: &HeaderMap) -> bool {
    let all = accepted(headers);
    let first = all
        .iter()
        .map(|text| parse(text))
        .find(|accepted| accepted.is_json() && matches!(accepted.parameter("v"), "" | "v2"));
    first.is_some_and(|accepted| {
        accepted.parameter("as") == "APIGroupDiscoveryList"
            && accepted.parameter("g") == "apidiscovery.k8s.io"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_we_have_is_taken() {
        for (text, wanted) in [
            ("", Some(Form::Object)),
            ("*/*", Some(Form::Object)),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
                Some(Form::Table),
            ),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
                Some(Form::Metadata),
            ),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                Some(Form::Object),
            ),
            ("application/vnd.kubernetes.protobuf", None),
            ("application/json;as=Table;v=v2;g=meta.k8s.io", None),
            ("text/html", None),
        ] {
            let mut headers = HeaderMap::new();
            if !text.is_empty() {
                headers.insert(header::ACCEPT, text.parse().unwrap());
            }
            assert_eq!(form(&headers).ok(), wanted, "{text}");
        }
    }
}
