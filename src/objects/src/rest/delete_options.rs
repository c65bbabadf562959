//! The options of a delete: those of its body, or of its query where it has no body.

use serde_json::Value;

use super::query::{self, Query, about, not_supported};
use crate::failure::Failure;
use crate::operation::Run;
use crate::schema::{Cause, CauseReason};
use crate::write::DeleteOptions;
use crate::write::metadata::cannot_unmarshal_field;

const KIND: &str = "DeleteOptions";

/// A field with the type that Go has of it.
const TYPES: [(&str, &str); 9] = [
    ("kind", "string"),
    ("apiVersion", "string"),
    ("gracePeriodSeconds", "int64"),
    ("preconditions", "v1.Preconditions"),
    ("orphanDependents", "bool"),
    ("propagationPolicy", "v1.DeletionPropagation"),
    ("dryRun", "[]string"),
    ("uid", "types.UID"),
    ("resourceVersion", "string"),
];

/// What is to happen to the object, and whether it does.
pub(super) fn read(body: &Value, query: &Query) -> Result<(DeleteOptions, Run), Failure> {
    if !body.is_null() && !body.is_object() {
        return Err(Failure::bad_request(
            "decoded object cannot be converted to DeleteOptions",
        ));
    }
    let preconditions = &body["preconditions"];
    let wrong = mistyped(body, KIND, "")
        .or_else(|| mistyped(preconditions, "Preconditions", "preconditions."));
    if let Some(said) = wrong {
        return Err(Failure::bad_request(said));
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let policy = text(&body["propagationPolicy"]).or_else(|| query.propagation.clone());
    let words = match &body["dryRun"] {
        Value::Array(words) => words.iter().filter_map(text).collect(),
        _ => query.dry_run().to_vec(),
    };
    let mut causes = Vec::new();
    if let (Some(policy), false) = (&policy, body["orphanDependents"].is_null()) {
        causes.push(Cause::with_value(
            CauseReason::Invalid,
            "propagationPolicy".to_owned(),
            &policy.as_str().into(),
            "orphanDependents and deletionPropagation cannot be both set",
        ));
    }
    let policies = ["Foreground", "Background", "Orphan", "nil"];
    if let Some(policy) = policy
        .as_deref()
        .filter(|policy| !policies[..3].contains(policy))
    {
        causes.push(not_supported(
            "propagationPolicy",
            &policy.into(),
            &policies,
        ));
    }
    causes.extend(query::unknown_words(&words));
    if !causes.is_empty() {
        return Err(Failure::invalid(about(KIND), &causes));
    }
    let options = DeleteOptions {
        uid: text(&preconditions["uid"]),
        resource_version: text(&preconditions["resourceVersion"]),
        orphan: policy.as_deref() == Some("Orphan") || body["orphanDependents"] == true,
    };
    Ok((options, query::run(&words)))
}

/// What Go says of the first field that has another type than it should.
fn mistyped(object: &Value, of: &str, above: &str) -> Option<String> {
    let fields = object.as_object()?.iter();
    let mut fields = fields.filter(|(_, value)| !value.is_null());
    fields.find_map(|(key, value)| {
        let (_, wanted) = TYPES.iter().find(|(known, _)| known == key)?;
        let path = format!("{above}{key}");
        let bad = |value: &Value, wanted| Some(cannot_unmarshal_field(value, of, &path, wanted));
        let fits = match (*wanted, value) {
            ("int64", value) => value.is_i64(),
            ("bool", value) => value.is_boolean(),
            ("v1.Preconditions", value) => value.is_object(),
            ("[]string", Value::Array(words)) => {
                let odd = words.iter().find(|word| !word.is_string());
                return odd.and_then(|word| bad(word, "string"));
            }
            ("[]string", _) => false,
            (_, value) => value.is_string(),
        };
        if fits { None } else { bad(value, wanted) }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_that_are_none_delete_nothing() {
        let query = Query::parse("").unwrap();
        for (body, code, said) in [
            (
                json!({"gracePeriodSeconds": "soon"}),
                400,
                "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
            ),
            (
                json!({"preconditions": {"uid": 1}}),
                400,
                "json: cannot unmarshal number into Go struct field Preconditions.preconditions.uid of type types.UID",
            ),
            (
                json!({"dryRun": ["Some"]}),
                422,
                "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"",
            ),
            (
                json!({"orphanDependents": false, "propagationPolicy": "Orphan"}),
                422,
                "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": orphanDependents \
                 and deletionPropagation cannot be both set",
            ),
        ] {
            let failure = read(&body, &query).unwrap_err();
            assert_eq!((failure.code, failure.message.as_str()), (code, said));
        }
    }

    #[test]
    fn a_query_is_read_where_there_is_no_body() {
        let query = Query::parse("dryRun=All&propagationPolicy=Orphan").unwrap();
        let (options, run) = read(&Value::Null, &query).unwrap();
        assert_eq!((options.orphan, run), (true, Run::Dry));
    }
}
