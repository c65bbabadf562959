//! `EvaluationGate`: what must be shown before a model may serve (control-plane 5). What is measured and how it is judged
//! is training 7 and 8; here are the fields.

use jiff::Timestamp;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Condition;
use super::shared::{
    ConfigMapSource, Decimal, Device, Digest, HttpSource, ModelVersion, Precision, Reference,
    Resources, StoreSource, VolumeSource, pattern_string, status_enum,
};

/// What is measured, on which rows, and what is enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "relay.dev",
    version = "v1alpha1",
    kind = "EvaluationGate",
    plural = "evaluationgates",
    singular = "evaluationgate",
    shortname = "eg",
    category = "relay",
    namespaced,
    status = "EvaluationGateStatus",
    derive = "PartialEq",
    doc = "What must be shown before a model may serve: rows, checks, limits.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        description = "Whether it does its work"
    ),
    printcolumn(
        name = "Candidate",
        type_ = "string",
        json_path = ".status.lastVerdict.candidate",
        description = "LayaModel that was judged last"
    ),
    printcolumn(
        name = "Verdict",
        type_ = "string",
        json_path = ".status.lastVerdict.verdict",
        description = "What was said of it"
    ),
    printcolumn(
        name = "Evaluated",
        type_ = "date",
        json_path = ".status.lastVerdict.at",
        description = "Time since then"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    ),
    printcolumn(
        name = "Checks",
        type_ = "integer",
        json_path = ".status.evaluations[0].summary.passed",
        description = "Checks that the newest evaluation passed",
        priority = 1
    ),
    printcolumn(
        name = "Anchor",
        type_ = "string",
        json_path = ".spec.shippedRef.name",
        description = "LayaModel that is the anchor",
        priority = 1
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        description = "Why, of condition Ready",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("self.checks.exists(c, c.required)").message("must have at least one that is required").field_path(".checks"))]
pub struct EvaluationGateSpec {
    /// Rows that no training saw. A change makes all verdicts stale.
    #[schemars(length(min = 1, max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub held_out: Vec<HeldOut>,
    /// LayaModel that is the anchor, judged next to the champion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Reference")]
    pub shipped_ref: Option<Reference>,
    /// What must hold; all required ones must.
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub checks: Vec<Check>,
    /// One-sided confidence of the judgement, 0.80 to 0.999.
    #[serde(default = "confidence")]
    pub confidence: Confidence,
    /// LayaModels to judge, beside those that runs and rollouts ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub candidates: Vec<Reference>,
    /// Where models are scored; latency needs the server's device.
    #[serde(default)]
    pub device: Device,
    /// Image of the evaluator; the one of the controller when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 512))]
    pub image: Option<String>,
    /// CPU and memory of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Resources")]
    pub resources: Option<Resources>,
    /// Numbers models are computed with.
    #[serde(default)]
    pub precision: Precision,
    /// For the scoring of one evaluation.
    #[serde(default = "one_hour")]
    #[schemars(range(min = 60, max = 86400))]
    pub deadline_seconds: i32,
}

fn confidence() -> Confidence {
    Confidence("0.95".to_owned())
}

const fn one_hour() -> i32 {
    3600
}

pattern_string!(
    /// A decimal from 0.80 to 0.999, as a string.
    Confidence, 8, r"^0\.(8[0-9]{0,5}|9([0-8][0-9]{0,4}|9([0-8][0-9]{0,3}|90{0,3})?)?)$"
);
pattern_string!(
    /// Id of a question, or * for one check for each of the contract.
    QuestionId, 64, r"^(\*|[a-z][a-z0-9_]*)$"
);

/// Rows that no training saw; exactly one source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("[has(self.shipped), has(self.store), has(self.http), has(self.volume), has(self.configMap)].filter(x, x).size() == 1").message("must have exactly one of shipped, store, http, volume, configMap"), validation = Rule::new("(has(self.shipped) || has(self.store)) != has(self.digest)").message("is needed for http, volume and configMap, and only there").field_path(".digest"))]
pub struct HeldOut {
    /// How reports name them.
    #[schemars(length(min = 1, max = 40), regex(pattern = crate::group::NAME_PATTERN))]
    pub name: String,
    /// The evaluation set inside the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Shipped")]
    pub shipped: Option<Shipped>,
    /// Learned rows with split test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "StoreSource")]
    pub store: Option<StoreSource>,
    /// A file behind a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HttpSource")]
    pub http: Option<HttpSource>,
    /// A file in a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "VolumeSource")]
    pub volume: Option<VolumeSource>,
    /// A file in a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ConfigMapSource")]
    pub config_map: Option<ConfigMapSource>,
    /// Digest of the file; needed for http, volume, configMap, and only there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Digest")]
    pub digest: Option<Digest>,
}

/// The evaluation set inside the image: nothing to say about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shipped {}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Metric {
    /// Share of right answers.
    Accuracy,
    /// F1, the mean over answers.
    MacroF1,
    /// Share of positives that are found.
    Recall,
    /// Squared error of probabilities.
    Brier,
    /// Distance of confidence and accuracy.
    CalibrationError,
    /// Share of answers that change with the order of options.
    OptionOrderFlips,
    /// Latency, 95th percentile.
    LatencyP95Millis,
    /// Share of rows whose tier is not below the label.
    NotUnderTier,
    /// Share of missing, invalid or non-finite answers.
    MissingAnswers,
}

/// Which rows are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Slice {
    /// Rows about security.
    #[serde(rename = "security")]
    Security,
    /// English rows.
    #[serde(rename = "lang:en")]
    English,
    /// Portuguese rows.
    #[serde(rename = "lang:pt")]
    Portuguese,
    /// Rows of sessions.
    #[serde(rename = "session")]
    Session,
    /// Long rows.
    #[serde(rename = "long")]
    Long,
}

/// What a candidate is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Against {
    /// Champion and anchor; the worse counts.
    #[default]
    Both,
    /// What serves.
    Champion,
    /// The model of shippedRef.
    Anchor,
}

/// What loosens a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RelaxAgainst {
    /// What serves.
    Champion,
    /// The model of shippedRef.
    Anchor,
}

/// What a check says when it has too few rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum OnFewSamples {
    /// That it cannot say.
    #[default]
    Inconclusive,
    /// Nothing: it is required only when there are enough.
    Inform,
}

/// One thing that must hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("(has(self.floor) || has(self.ceiling) || has(self.maxRegression)) && !(has(self.floor) && has(self.ceiling))").message("must have floor, ceiling or maxRegression, and not floor and ceiling together"))]
pub struct Check {
    /// How reports name it.
    #[schemars(
        length(min = 1, max = 64),
        regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// What is measured.
    pub metric: Metric,
    /// One question; * = one check for each of the contract; absent = all pooled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "QuestionId")]
    pub question: Option<QuestionId>,
    /// Only these rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Slice")]
    pub slice: Option<Slice>,
    /// Least value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Decimal")]
    pub floor: Option<Decimal>,
    /// Greatest value; not with floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Decimal")]
    pub ceiling: Option<Decimal>,
    /// How much worse than the reference it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Decimal")]
    pub max_regression: Option<Decimal>,
    /// Added to maxRegression, in percent of the reference's value.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000))]
    pub max_regression_percent: i32,
    /// Loosens floor or ceiling to what a reference reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Relax")]
    pub relax: Option<Relax>,
    /// References of maxRegression.
    #[serde(default)]
    pub against: Against,
    /// Fewer are too few; not used by MissingAnswers.
    #[serde(default = "hundred")]
    #[schemars(range(min = 10, max = 1000000))]
    pub min_samples: i32,
    /// What it says then.
    #[serde(default)]
    pub on_few_samples: OnFewSamples,
    /// false = it informs only.
    #[serde(default = "required")]
    pub required: bool,
}

const fn hundred() -> i32 {
    100
}

const fn required() -> bool {
    true
}

/// Loosens a limit to what a reference reaches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Relax {
    /// The reference.
    pub against: RelaxAgainst,
    /// How much worse than it is enough.
    #[serde(default = "no_margin")]
    pub margin: Decimal,
}

fn no_margin() -> Decimal {
    Decimal::constant("0")
}

status_enum!(
    /// What a gate says.
    Verdict {
        /// It is good enough.
        Passed,
        /// It is not.
        Failed,
        /// There is too little to judge by.
        Inconclusive,
    }
);

status_enum!(
    /// Where an evaluation stands.
    EvaluationState {
        /// Something is missing.
        Pending,
        /// A model answers the rows.
        Scoring,
        /// Answers are compared.
        Comparing,
        /// There is a verdict.
        Done,
        /// The judging failed.
        Error,
    }
);

/// What the controller found and did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvaluationGateStatus {
    /// Generation that was looked at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub observed_generation: Option<i64>,
    /// What is observed, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// What was said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LastVerdict")]
    pub last_verdict: Option<LastVerdict>,
    /// Evaluations, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["id".into()]))]
    pub evaluations: Vec<Evaluation>,
}

/// What was said last.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastVerdict {
    /// Name of the LayaModel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub candidate: Option<String>,
    /// What was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Verdict")]
    pub verdict: Option<Verdict>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub at: Option<Timestamp>,
}

/// One candidate, judged or to be judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// 16 hex digits of the digest of everything that goes in.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), inner(length(max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub requested_by: Vec<String>,
    /// What is judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ModelVersion")]
    pub candidate: Option<ModelVersion>,
    /// What it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ModelVersion")]
    pub champion: Option<ModelVersion>,
    /// What it is compared with too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ModelVersion")]
    pub anchor: Option<ModelVersion>,
    /// Rows it was judged by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub held_out: Vec<HeldOutSeen>,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "EvaluationState")]
    pub state: Option<EvaluationState>,
    /// What was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Verdict")]
    pub verdict: Option<Verdict>,
    /// Checks by verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CheckCounts")]
    pub summary: Option<CheckCounts>,
    /// Checks, worst first; the first 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub checks: Vec<CheckResult>,
    /// Where the predictions are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Evidence")]
    pub evidence: Option<Evidence>,
    /// How many models these rows judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub uses: Option<i64>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub finished_at: Option<Timestamp>,
    /// Why the judging failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "EvaluationFailure")]
    pub error: Option<EvaluationFailure>,
}

/// Rows that judged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldOutSeen {
    /// Their name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub name: Option<String>,
    /// Their digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub digest: Option<String>,
    /// How many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub rows: Option<i64>,
}

/// Checks by verdict.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckCounts {
    /// Passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub passed: Option<i32>,
    /// Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub failed: Option<i32>,
    /// Too little to judge by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub inconclusive: Option<i32>,
    /// Inform only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub informed: Option<i32>,
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub name: Option<String>,
    /// Question it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub question: Option<String>,
    /// Rows it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub slice: Option<String>,
    /// Rows that counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub n: Option<i64>,
    /// Measured value, a decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 24))]
    pub value: Option<String>,
    /// Lower end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 24))]
    pub low: Option<String>,
    /// Upper end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 24))]
    pub high: Option<String>,
    /// Limit that counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 24))]
    pub limit: Option<String>,
    /// What it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub verdict: Option<String>,
}

/// Where the predictions are.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// Volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub volume: Option<String>,
    /// Place in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 512))]
    pub path: Option<String>,
    /// Digest of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub digest: Option<String>,
}

/// Why the judging failed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvaluationFailure {
    /// In one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 256))]
    pub reason: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 1024))]
    pub message: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub at: Option<Timestamp>,
}
