//! The options of a request, from its query. Go's rules: a flag is on unless it is empty, `0` or `false`.

use serde_json::Value;

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
    /// Words of `dryRun`.
    dry_run: Vec<String>,
    field_validation: String,
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
            dry_run: Vec::new(),
            field_validation: String::new(),
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
                "dryRun" => query
                    .dry_run
                    .extend(Some(value).filter(|word| !word.is_empty())),
                "fieldValidation" => query.field_validation = value,
                "includeObject" => query.include_object = value,
                "propagationPolicy" => query.propagation = Some(value),
                // What we do not know may be of a later version, as for the API server.
                _ => {}
            }
        }
        Ok(query)
    }

    /// What options of a delete that has none in its body say.
    pub(super) fn dry_run(&self) -> &[String] {
        &self.dry_run
    }

    /// Whether a write is only tried, if its options are good ones.
    pub(super) fn run(&self, options: Options) -> Result<Run, Failure> {
        let mut causes = Vec::new();
        let apply = options == Options::Apply;
        if apply && self.manager.is_empty() {
            causes.push(Cause::without_value(
                CauseReason::Required,
                "fieldManager".to_owned(),
                "is required for apply patch",
            ));
        }
        if options == Options::Patch && self.force.is_some() {
            causes.push(Cause::without_value(
                CauseReason::Forbidden,
                "force".to_owned(),
                "may not be specified for non-apply patch",
            ));
        }
        check_manager(&self.manager, &mut causes);
        causes.extend(unknown_words(&self.dry_run));
        check_validation(&self.field_validation, &mut causes);
        if !causes.is_empty() {
            return Err(Failure::invalid(about(options.kind()), &causes));
        }
        Ok(run(&self.dry_run))
    }
}

/// Whose options a query has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Options {
    Create,
    Update,
    Patch,
    Apply,
}

impl Options {
    const fn kind(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Patch | Self::Apply => "PatchOptions",
        }
    }
}

/// What words of `dryRun` say that are all known.
pub(super) fn run(words: &[String]) -> Run {
    if words.is_empty() {
        Run::Real
    } else {
        Run::Dry
    }
}

/// What is wrong with the words of `dryRun`.
pub(super) fn unknown_words(words: &[String]) -> Option<Cause> {
    let known = words.iter().all(|word| word == "All");
    (!known).then(|| not_supported("dryRun", &words.into(), &["All"]))
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
pub(super) const fn about(kind: &'static str) -> About<'static> {
    About {
        group: "meta.k8s.io",
        kind,
        name: "",
    }
}

/// A cause that names the words which would do.
pub(super) fn not_supported(field: &str, value: &Value, supported: &[&str]) -> Cause {
    let supported: Vec<String> = supported.iter().map(|text| format!("{text:?}")).collect();
    Cause::with_value(
        CauseReason::NotSupported,
        field.to_owned(),
        value,
        &format!("supported values: {}", supported.join(", ")),
    )
}

fn version_match(value: &str) -> Result<Match, Failure> {
    match value {
        "" => Ok(Match::Unset),
        "NotOlderThan" => Ok(Match::NotOlderThan),
        "Exact" => Ok(Match::Exact),
        other => {
            let supported = ["Exact", "NotOlderThan"];
            let cause = not_supported("resourceVersionMatch", &other.into(), &supported);
            Err(Failure::invalid(about("ListOptions"), &[cause]))
        }
    }
}

/// Unknown fields are always errors here; what a client asks for must only be one of the words.
fn check_validation(value: &str, causes: &mut Vec<Cause>) {
    const WORDS: [&str; 4] = ["", "Ignore", "Strict", "Warn"];
    if !WORDS.contains(&value) {
        causes.push(not_supported("fieldValidation", &value.into(), &WORDS));
    }
}

fn check_manager(value: &str, causes: &mut Vec<Cause>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_do_not_exist_are_refused() {
        for (query, said) in [
            (
                "dryRun=Some",
                "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"",
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
                "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"a\\a\": invalid character U+0007 (at position 1)",
            ),
        ] {
            let told = Query::parse(query).and_then(|query| query.run(Options::Create));
            assert_eq!(told.unwrap_err().message, said, "{query}");
        }
        let query =
            Query::parse("watch=1&allowWatchBookmarks=true&limit=0&force=false&new=thing").unwrap();
        assert!(query.is_watch && query.wants_bookmarks);
        assert_eq!((query.limit, query.force), (None, Some(Force::No)));
    }

    #[test]
    fn options_are_called_after_the_verb() {
        for (text, options, wanted) in [
            ("dryRun=All&dryRun=All", Options::Update, Ok(Run::Dry)),
            ("dryRun=", Options::Update, Ok(Run::Real)),
            ("force=true", Options::Create, Ok(Run::Real)),
            ("force=true", Options::Patch, Err("PatchOptions")),
            ("", Options::Apply, Err("PatchOptions")),
            ("fieldValidation=x", Options::Update, Err("UpdateOptions")),
        ] {
            let told = Query::parse(text).unwrap().run(options);
            match (told, wanted) {
                (Err(failure), Err(kind)) => {
                    assert!(failure.message.starts_with(kind), "{failure:?}")
                }
                (told, wanted) => assert_eq!(told.ok(), wanted.ok(), "{text}"),
            }
        }
    }
}
