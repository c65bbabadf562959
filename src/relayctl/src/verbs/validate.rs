//! `relayctl validate`: files against the schemas and rules that this release carries, and policies compiled, without any
//! server. What it refuses an API server or the controller would refuse too.

use std::path::PathBuf;

use api::document;
use api::routing_policy::{PolicyError, RoutingPolicySpec};
use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use objects::schema::Definition;
use serde::Serialize;
use serde_json::Value;

use crate::call::Call;
use crate::error::CliError;
use crate::input::{self, Input};
use crate::kinds::Kind;
use crate::output::{self, CLI_VERSION};
use crate::refusal::{one_line, without_noise};
use crate::terminal;
use api::exit::Exit;

/// Arguments of `relayctl validate`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  relayctl validate -f policy.yaml\n\nExit code 4 when something is not valid; warnings alone are none."
)]
pub(crate) struct ValidateArguments {
    /// A file of YAML or JSON, a folder, or `-`; repeatable
    #[arg(short, long = "filename", required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum Severity {
    Error,
    Warning,
}

/// Something that is wrong with an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    file: String,
    line: u64,
    object: String,
    field: String,
    severity: Severity,
    message: String,
}

impl Finding {
    fn new(input: &Input, field: &str, severity: Severity, message: impl Into<String>) -> Self {
        Self {
            file: input.place.file().to_owned(),
            line: input.place.line_of(field),
            object: input.kind.brief(&input.name),
            field: field.to_owned(),
            severity,
            message: message.into(),
        }
    }

    /// `policy.yaml:12: routingpolicy/default: spec.profile: why`.
    fn render(&self) -> String {
        let severity = match self.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        let field = match self.field.as_str() {
            "" | "<nil>" => String::new(),
            field => format!("{field}: "),
        };
        one_line(&format!(
            "{}:{}: {}: {severity}{field}{}",
            self.file, self.line, self.object, self.message
        ))
    }
}

/// Checks files.
pub(crate) fn run(call: &Call, arguments: &ValidateArguments) -> Result<Exit, CliError> {
    let inputs = input::objects(&arguments.files)?;
    let mut findings = Vec::new();
    for input in &inputs {
        findings.extend(find(input)?);
    }
    let errors = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .count();
    if call.format().is_table() {
        let mut text = String::new();
        for finding in &findings {
            text.push_str(&format!("{}\n", finding.render()));
        }
        terminal::print(&text)?;
        let objects = match inputs.len() {
            1 => "1 object".to_owned(),
            many => format!("{many} objects"),
        };
        let warnings = findings.len() - errors;
        call.tell(&format!("{objects}, {errors} errors, {warnings} warnings"));
    } else {
        let document = serde_json::json!({
            "apiVersion": CLI_VERSION,
            "kind": "Validation",
            "objects": inputs.len(),
            "valid": errors == 0,
            "findings": findings,
        });
        output::tree(&document, &call.format())?;
    }
    Ok(if errors == 0 {
        Exit::Done
    } else {
        Exit::Refused
    })
}

/// The same for a command that needs a valid object.
///
/// # Errors
/// Everything that is wrong, in one line.
pub(crate) fn refuse_invalid(input: &Input) -> Result<(), CliError> {
    let errors: Vec<_> = find(input)?
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(Finding::render)
        .collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(CliError::refused(errors.join("; ")))
    }
}

fn find(input: &Input) -> Result<Vec<Finding>, CliError> {
    let Some(definition) = definition(input.kind)? else {
        return Ok(Vec::new());
    };
    let error = |field: &str, message: &str| Finding::new(input, field, Severity::Error, message);
    let unknown = definition.unknown_fields(&input.object);
    if !unknown.is_empty() {
        return Ok(unknown
            .iter()
            .map(|field| error(field, "unknown field"))
            .collect());
    }
    let mut object = input.object.clone();
    definition.default(&mut object);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.entry("namespace").or_insert("default".into());
    }
    let mut causes = objects::metadata_faults(&object);
    causes.extend(definition.validate(&object, None));
    let causes = without_noise(causes, |cause| (&cause.field, &cause.message));
    if !causes.is_empty() {
        return Ok(causes
            .iter()
            .map(|cause| error(&cause.field, &cause.message))
            .collect());
    }
    if input.kind.kind == api::routing_policy::KIND {
        return Ok(compile(input, &object));
    }
    Ok(Vec::new())
}

/// What a policy says must hold, too.
fn compile(input: &Input, object: &Value) -> Vec<Finding> {
    let spec = match spec_of(object) {
        Ok(spec) => spec,
        Err(error) => {
            let field = format!("spec.{}", error.path);
            let finding = Finding::new(
                input,
                field.trim_end_matches('.'),
                Severity::Error,
                error.message,
            );
            return vec![finding];
        }
    };
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let problems = match spec.compile(&input.name, today) {
        Ok(policy) => policy.warnings,
        Err(PolicyError::Problems(problems)) => problems,
        Err(PolicyError::Document(error)) => {
            return vec![Finding::new(
                input,
                "spec",
                Severity::Error,
                error.to_string(),
            )];
        }
    };
    problems
        .into_iter()
        .map(|problem| {
            let severity = match problem.severity {
                routing::policy::Severity::Error => Severity::Error,
                routing::policy::Severity::Warning => Severity::Warning,
            };
            Finding::new(input, &problem.path, severity, problem.message)
        })
        .collect()
}

fn spec_of(object: &Value) -> Result<RoutingPolicySpec, api::FieldError> {
    match object.get("spec") {
        None | Some(Value::Null) => Ok(RoutingPolicySpec::default()),
        Some(spec) => document::typed(spec.clone()),
    }
}

/// The spec of a policy that was checked.
///
/// # Errors
/// It was not.
pub(crate) fn policy_spec(input: &Input) -> Result<RoutingPolicySpec, CliError> {
    spec_of(&input.object).map_err(|error| {
        let field = format!("spec.{}", error.path);
        CliError::refused(format!("{}: {}", input.at(&field), error.message))
    })
}

/// The schema of one of our kinds, as this release carries it.
fn definition(kind: &Kind) -> Result<Option<Definition>, CliError> {
    let Some(crd) = crd(kind)? else {
        return Ok(None);
    };
    let broken = |why: String| {
        CliError::new(
            Exit::Failed,
            format!(
                "the schema of {} in this program is broken: {why}",
                kind.kind
            ),
        )
    };
    Definition::compile(&crd)
        .map(Some)
        .map_err(|error| broken(error.to_string()))
}

/// The CRD of one of our kinds.
///
/// # Errors
/// A defect of this release.
pub(crate) fn crd(kind: &Kind) -> Result<Option<Value>, CliError> {
    let documents = api::crds::DOCUMENTS;
    let Some((_, text)) = documents
        .iter()
        .find(|(name, _)| *name == kind.kind)
        .filter(|_| kind.is_ours())
    else {
        return Ok(None);
    };
    document::read_yaml(text).map(Some).map_err(|error| {
        CliError::new(
            Exit::Failed,
            format!(
                "the CRD of {} in this program is broken: {error}",
                kind.kind
            ),
        )
    })
}
