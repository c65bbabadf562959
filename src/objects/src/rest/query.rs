//! The options of a request, from its query. Go's rules: a flag is on unless it is empty, `0` or `false`.

use crate::failure::{About, Failure};
use crate::fields::Force;
use crate::operation::Run;
use crate::schema::{Cause, CauseReason};

/// How old a list may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    Unset,
    NotOlderThan,
    Exact,
}

/// What the query of a request says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) is_watch: bool,
    pub(super) wants_bookmarks: bool,
    pub(super) initial_events: Option<bool>,
    pub(super) timeout_seconds: Option<u64>,
    pub(super) resource_version: String,
    pub(super) version_match: Match,
    pub(super) limit: Option<usize>,
    pub(super) continue_token: String,
    pub(super) labels: String,
    pub(super) fields: String,
    pub(super) manager: String,
    pub(super) force: Option<Force>,
    pub(super) run: Run,
    /// How much of an object a row of a table has: `None`, `Metadata` or `Object`.
    pub(super) include_object: String,
    pub(super) propagation: Option<String>,
}

/// Longest name of a field manager.
const MAX_MANAGER: usize = 128;

impl Query {
    /// Reads a query.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let mut query = Self {
            is_watch: false,
            wants_bookmarks: false,
            initial_events: None,
            timeout_seconds: None,
            resource_version: String::new(),
            version_match: Match::Unset,
            limit: None,
            continue_token: String::new(),
            labels: String::new(),
            fields: String::new(),
            manager: String::new(),
            force: None,
            run: Run::Real,
            include_object: String::new(),
            propagation: None,
        };
        for (key, value) in form_urlencoded::parse(text.as_bytes()) {
            let value = value.into_owned();
            match &*key {
                "watch" => query.is_watch = flag(&value),
                "allowWatchBookmarks" => query.wants_bookmarks = flag(&value),
                "sendInitialEvents" => query.initial_events = Some(flag(&value)),
                "timeoutSeconds" => query.timeout_seconds = u64::try_from(number(&value)?).ok(),
                "resourceVersion" => query.resource_version = value,
                "resourceVersionMatch" => query.version_match = version_match(&value)?,
                "limit" => {
                    let limit = usize::try_from(number(&value)?);
                    query.limit = limit.ok().filter(|limit| *limit > 0);
                }
                "continue" => query.continue_token = value,
                "labelSelector" => query.labels = value,
                "fieldSelector" => query.fields = value,
                "fieldManager" => query.manager = value,
                "force" => {
                    query.force = Some(if flag(&value) { Force::Yes } else { Force::No });
                }
                // Said twice, it is a dry run if either says so.
                "dryRun" if dry_run(&value)? == Run::Dry => query.run = Run::Dry,
                "dryRun" => {}
                "fieldValidation" => field_validation(&value)?,
                "includeObject" => query.include_object = value,
                "propagationPolicy" => query.propagation = Some(value),
                // What we do not know may be of a later version, as for the API server.
                _ => {}
            }
        }
        field_manager(&query.manager)?;
        Ok(query)
    }
}

fn flag(value: &str) -> bool {
    !matches!(value, "" | "0" | "false" | "False" | "FALSE")
}

fn number(value: &str) -> Result<i64, Failure> {
    value.parse().map_err(|_| {
        Failure::bad_request(format!(
            "strconv.ParseInt: parsing {value:?}: invalid syntax"
        ))
    })
}

/// What options are called in refusals.
const fn about(kind: &'static str) -> About<'static> {
    About {
        group: "meta.k8s.io",
        kind,
        name: "",
    }
}

fn unsupported(kind: &'static str, field: &str, value: &str, supported: &[&str]) -> Failure {
    let supported: Vec<String> = supported.iter().map(|text| format!("{text:?}")).collect();
    let cause = Cause::with_value(
        CauseReason::NotSupported,
        field.to_owned(),
        &value.into(),
        &format!("supported values: {}", supported.join(", ")),
    );
    Failure::invalid(about(kind), &[cause])
}

fn version_match(value: &str) -> Result<Match, Failure> {
    match value {
        "" => Ok(Match::Unset),
        "NotOlderThan" => Ok(Match::NotOlderThan),
        "Exact" => Ok(Match::Exact),
        other => Err(unsupported(
            "ListOptions",
            "resourceVersionMatch",
            other,
            &["Exact", "NotOlderThan"],
        )),
    }
}

fn dry_run(value: &str) -> Result<Run, Failure> {
    match value {
        "" => Ok(Run::Real),
        "All" => Ok(Run::Dry),
        other => Err(unsupported("PatchOptions", "dryRun", other, &["All"])),
    }
}

/// Unknown fields are always errors here; what a client asks for must only be one of the words.
fn field_validation(value: &str) -> Result<(), Failure> {
    match value {
        "" | "Ignore" | "Warn" | "Strict" => Ok(()),
        other => Err(unsupported(
            "PatchOptions",
            "fieldValidation",
            other,
            &["", "Ignore", "Strict", "Warn"],
        )),
    }
}

fn field_manager(value: &str) -> Result<(), Failure> {
    let mut causes = Vec::new();
    let field = || "fieldManager".to_owned();
    if value.len() > MAX_MANAGER {
        let detail = format!("may not be more than {MAX_MANAGER} bytes");
        causes.push(Cause::without_value(CauseReason::TooLong, field(), &detail));
    }
    for (at, c) in value.char_indices().filter(|(_, c)| c.is_control()) {
        let detail = format!(
            "invalid character U+{:04X} (at position {at})",
            u32::from(c)
        );
        causes.push(Cause::with_value(
            CauseReason::Invalid,
            field(),
            &value.into(),
            &detail,
        ));
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid(about("PatchOptions"), &causes))
}

/// An apply needs a manager; other patches have no force.
pub(super) fn patch_options(query: &Query, is_apply: bool) -> Result<(), Failure> {
    let cause = match (is_apply, query.manager.is_empty(), query.force) {
        (true, true, _) => Cause::without_value(
            CauseReason::Required,
            "fieldManager".to_owned(),
            "is required for apply patch",
        ),
        (false, _, Some(_)) => Cause::without_value(
            CauseReason::Forbidden,
            "force".to_owned(),
            "may not be specified for non-apply patch",
        ),
        _ => return Ok(()),
    };
    Err(Failure::invalid(about("PatchOptions"), &[cause]))
}

/// What a list or a watch must not ask for at once.
pub(super) fn list_options(query: &Query) -> Result<(), Failure> {
    let forbidden = |field: &str, detail: &str| {
        let cause = Cause::without_value(CauseReason::Forbidden, field.to_owned(), detail);
        Err(Failure::invalid(about("ListOptions"), &[cause]))
    };
    let has_match = query.version_match != Match::Unset;
    if query.is_watch {
        return match (query.initial_events, query.version_match) {
            (Some(_), Match::Unset | Match::Exact) => forbidden(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ),
            (None, Match::NotOlderThan | Match::Exact) => forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ),
            _ => Ok(()),
        };
    }
    if query.initial_events.is_some() {
        return forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        );
    }
    if has_match && query.resource_version.is_empty() {
        return forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        );
    }
    if has_match && !query.continue_token.is_empty() {
        return forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden when continue is provided",
        );
    }
    if query.version_match == Match::Exact && query.resource_version == "0" {
        return forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        );
    }
    Ok(())
}

/// A version as a number.
pub(super) fn version(text: &str) -> Result<u64, Failure> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        let cause = Cause::with_value(
            CauseReason::Invalid,
            "resourceVersion".to_owned(),
            &text.into(),
            &format!("strconv.ParseUint: parsing {text:?}: invalid syntax"),
        );
        Failure::invalid(about("ListOptions"), &[cause])
    })
}

/// What happens to what a deleted object owns: whether it stays.
pub(super) fn is_orphaning(policy: Option<&str>) -> Result<bool, Failure> {
    match policy {
        None | Some("" | "Background" | "Foreground") => Ok(false),
        Some("Orphan") => Ok(true),
        Some(other) => Err(unsupported(
            "DeleteOptions",
            "propagationPolicy",
            other,
            &["Foreground", "Background", "Orphan", "nil"],
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_do_not_exist_are_refused() {
        for (query, said) in [
            (
                "dryRun=Some",
                "PatchOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: \"Some\": supported values: \"All\"",
            ),
            (
                "resourceVersionMatch=Newest",
                "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: \"Newest\": supported values: \"Exact\", \"NotOlderThan\"",
            ),
            (
                "limit=many",
                "strconv.ParseInt: parsing \"many\": invalid syntax",
            ),
            (
                "fieldManager=a%07",
                "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"a\\a\": invalid character U+0007 (at position 1)",
            ),
        ] {
            assert_eq!(Query::parse(query).unwrap_err().message, said, "{query}");
        }
        let query =
            Query::parse("watch=1&allowWatchBookmarks=true&limit=0&force=false&new=thing").unwrap();
        assert!(query.is_watch && query.wants_bookmarks);
        assert_eq!((query.limit, query.force), (None, Some(Force::No)));
    }
}
