//! Fields of a request that are refused, in the words of who wrote them: most of a request comes from flags, the rest from
//! `settings.json`, and nobody ever saw the names that it has on its way.

use std::path::Path;

use api::FieldError;

use crate::error::CliError;

/// Who named the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProfileFrom {
    /// `laya.policy` of the settings.
    Settings,
    /// A flag or a line of a batch, or nobody.
    Request,
}

/// The refusal as a person should read it. `said` begins the line where the request itself is to blame.
pub(crate) fn refused(
    said: &str,
    errors: &[FieldError],
    settings: &Path,
    profile: ProfileFrom,
) -> CliError {
    let in_settings: Vec<_> = errors
        .iter()
        .filter_map(|error| Some(format!("{}: {}", key(&error.path, profile)?, error.message)))
        .collect();
    if in_settings.is_empty() {
        let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
        CliError::usage(format!("{said}{}", lines.join("; ")))
    } else {
        CliError::file(settings, in_settings.join("; "))
    }
}

/// The key of `settings.json` that a field was made from.
fn key(path: &str, profile: ProfileFrom) -> Option<String> {
    if path == "profile" {
        return (profile == ProfileFrom::Settings).then(|| "laya.policy".to_owned());
    }
    let end = path.find(['.', '[']).unwrap_or(path.len());
    if &path[..end] == "quota" {
        return Some(format!("laya.{path}"));
    }
    let knob = path.strip_prefix("settings.")?;
    let end = knob.find(['.', '[']).unwrap_or(knob.len());
    let (name, rest) = knob.split_at(end);
    let name = match name {
        "tiers" => "models",
        "min_confidence" => "minConfidence",
        "escalate_after_failures" => "escalateAfterFailures",
        "tool_routing" => "toolRouting",
        "switch_price" => "switchPrice",
        other => other,
    };
    Some(format!("laya.{name}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_called_as_it_was_written() {
        use ProfileFrom::{Request, Settings};
        for (path, profile, expected) in [
            ("request", Settings, None),
            ("profile", Request, None),
            ("profile", Settings, Some("laya.policy")),
            ("providers[1]", Settings, None),
            ("constraints.model", Settings, None),
            ("quota.anthropic", Request, Some("laya.quota.anthropic")),
            ("settings.tiers", Request, Some("laya.models")),
            ("settings.tiers.fast", Request, Some("laya.models.fast")),
            (
                "settings.min_confidence",
                Request,
                Some("laya.minConfidence"),
            ),
            ("settings.baseline", Request, Some("laya.baseline")),
        ] {
            assert_eq!(key(path, profile).as_deref(), expected, "{path}");
        }
    }
}
