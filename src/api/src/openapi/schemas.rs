//! JSON Schemas of every type that crosses HTTP. What a client sends is described as it is read (absent fields have
//! defaults, unknown ones are refused), what it gets as it is written. A type that goes both ways and looks different
//! has two schemas; the one of requests is then named `<Type>Input`.

use std::collections::BTreeMap;

use decision::contract::Digest;
use routing::dataset::{LearnAnswer, LearnBody};
use routing::decide::Trace;
use routing::outcome::OutcomeReport;
use routing::record::Decision;
use routing::request::RouteRequest;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;

use crate::exchange::{
    DecisionWithOutcomes, DecisionsResponse, EscalateRequest, EscalateResponse, ForgetResponse,
    MemoryPatch, MemoryResponse, MemoryTask, OutcomeResponse, ReportResponse,
};
use crate::problem::Problem;
use crate::responses::{ContractResponse, HealthResponse, ModelsResponse, PolicyResponse};

const PLACE: &str = "#/components/schemas/";

/// Answer of `POST /v1/route`: the decision record, and how it came about where that was asked for.
#[derive(Serialize, JsonSchema)]
struct DecisionAnswer {
    #[serde(flatten)]
    decision: Decision,
    /// Only with `explain=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Trace>,
}

/// What was frozen.
#[derive(Serialize, JsonSchema)]
struct Snapshot {
    /// Digest of the file of every row that is not stale.
    #[schemars(with = "DigestText")]
    digest: Digest,
    /// How many rows it has.
    rows: usize,
    /// Those with split `test`, a file of their own.
    held_out: HeldOut,
    /// Digest of the questions in force, with wording.
    #[schemars(with = "DigestText")]
    contract: Digest,
    /// Without.
    #[schemars(with = "DigestText")]
    shape: Digest,
    /// The revision of the data set that was frozen.
    revision: u64,
}

/// The rows that are held out.
#[derive(Serialize, JsonSchema)]
struct HeldOut {
    /// Digest of the file.
    #[schemars(with = "DigestText")]
    digest: Digest,
    /// How many rows it has.
    rows: usize,
}

/// `sha256:` and 64 lower-case hexadecimal digits.
#[derive(JsonSchema)]
#[schemars(extend("pattern" = "^sha256:[0-9a-f]{64}$"), inline)]
#[allow(dead_code)]
struct DigestText(String);

/// Answer of `GET /ready`.
#[derive(Serialize, JsonSchema)]
struct Readiness {
    /// Whether every check is on.
    ready: bool,
    /// The checks that are off, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<NotReady>,
}

/// A check that is off.
#[derive(Serialize, JsonSchema)]
struct NotReady {
    /// Which.
    check: String,
    /// What is missing and what to do.
    message: String,
}

/// An error in Laya's form.
#[derive(Serialize, JsonSchema)]
struct Detail {
    /// What happened.
    detail: String,
}

/// All of them by name.
pub(super) fn all() -> BTreeMap<String, Value> {
    let mut read = generator(|settings| settings.for_deserialize());
    read.subschema_for::<RouteRequest>();
    read.subschema_for::<EscalateRequest>();
    read.subschema_for::<OutcomeReport>();
    read.subschema_for::<LearnBody>();
    read.subschema_for::<MemoryPatch>();
    let mut written = generator(|settings| settings.for_serialize());
    written.subschema_for::<Problem>();
    written.subschema_for::<Detail>();
    written.subschema_for::<DecisionAnswer>();
    written.subschema_for::<EscalateResponse>();
    written.subschema_for::<OutcomeResponse>();
    written.subschema_for::<LearnAnswer>();
    written.subschema_for::<MemoryResponse>();
    written.subschema_for::<MemoryTask>();
    written.subschema_for::<ForgetResponse>();
    written.subschema_for::<Snapshot>();
    written.subschema_for::<DecisionsResponse>();
    written.subschema_for::<DecisionWithOutcomes>();
    written.subschema_for::<ReportResponse>();
    written.subschema_for::<PolicyResponse>();
    written.subschema_for::<ModelsResponse>();
    written.subschema_for::<ContractResponse>();
    written.subschema_for::<HealthResponse>();
    written.subschema_for::<Readiness>();
    merged(definitions(read), definitions(written))
}

fn generator(contract: impl FnOnce(SchemaSettings) -> SchemaSettings) -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
    });
    contract(settings).into_generator()
}

fn definitions(mut generator: SchemaGenerator) -> BTreeMap<String, Value> {
    generator.take_definitions(true).into_iter().collect()
}

/// Both sets; of a name that means two things the one that is read is renamed, and with it what refers to it.
fn merged(
    mut read: BTreeMap<String, Value>,
    written: BTreeMap<String, Value>,
) -> BTreeMap<String, Value> {
    // A schema that refers to a renamed one differs too, so this goes on until nothing changes.
    loop {
        let differs = |(name, schema): (&String, &Value)| {
            let twin = written.get(name)?;
            (twin != schema).then(|| name.clone())
        };
        let Some(name) = read.iter().find_map(differs) else {
            break;
        };
        let new = format!("{name}Input");
        if let Some(schema) = read.remove(&name) {
            read.insert(new.clone(), schema);
        }
        let (from, to) = (format!("{PLACE}{name}"), format!("{PLACE}{new}"));
        read.values_mut()
            .for_each(|schema| redirect(schema, &from, &to));
    }
    read.extend(written);
    read
}

fn redirect(schema: &mut Value, from: &str, to: &str) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get_mut("$ref")
                && reference == from
            {
                to.clone_into(reference);
            }
            map.values_mut().for_each(|one| redirect(one, from, to));
        }
        Value::Array(list) => list.iter_mut().for_each(|one| redirect(one, from, to)),
        _ => {}
    }
}
