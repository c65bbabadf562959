//! One row of `dataset.jsonl` (training.md 2.4). A row *is* its line: what we know of it is read through accessors, what
//! we do not know stays, and a line that nobody changed is written back byte for byte.

use std::fmt;

use decision::json::{self, Object, Value};
use decision::labels::{LabelProblems, Labels};
use decision::vocabulary::Tier;
use decision::{Contract, contract::Digest};
use jiff::Timestamp;

use super::line;
use crate::memory::{LearnedTask, Standing, merge_key};

/// Longest line of a dataset or telemetry file, in bytes.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// The keys of a row, in the order they are written.
const KEYS: [&str; 14] = [
    "id",
    "state",
    "expected",
    "source",
    "split",
    "session",
    "label_source",
    "note",
    "lesson",
    "created",
    "shape",
    "contract",
    "decision_id",
    "evidence",
];

/// Where a row comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// Taught in a session: focus of a training, and memory.
    Session,
    /// Made from templates.
    Synthetic,
    /// Exported from telemetry.
    Harness,
    /// Held out for gates: never trained on.
    Evaluation,
    /// Something else: kept, and treated as a pool row.
    Other(String),
}

impl Source {
    /// The word in the file.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Session => "session",
            Self::Synthetic => "synthetic",
            Self::Harness => "harness",
            Self::Evaluation => "evaluation",
            Self::Other(word) => word,
        }
    }

    fn from_word(word: &str) -> Self {
        match word {
            "session" => Self::Session,
            "synthetic" => Self::Synthetic,
            "harness" => Self::Harness,
            "evaluation" => Self::Evaluation,
            other => Self::Other(other.to_owned()),
        }
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word in the file.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

words!(
    /// What a row is used for.
    Split {
        /// Trained on.
        Train = "train",
        /// Watched during training.
        Val = "val",
        /// Held out.
        Test = "test"
    }
);

words!(
    /// Who labelled a row.
    LabelSource {
        /// The agent that did the task.
        Agent = "agent",
        /// A person.
        Human = "human",
        /// The outcome alone.
        Telemetry = "telemetry"
    }
);

/// Digests of the questions in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// Without wording: what rows are compared with.
    pub shape: Digest,
    /// With wording.
    pub contract: Digest,
}

impl InForce {
    /// The digests of a contract.
    #[must_use]
    pub fn of(contract: &Contract) -> Self {
        Self {
            shape: contract.shape_digest().clone(),
            contract: contract.digest().clone(),
        }
    }
}

/// Whether a row may be used under the questions in force (routing.md 1.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowStanding {
    /// All 18 labels are valid.
    InForce(Labels),
    /// A `harness` row: the tier alone is known.
    TierOnly(Tier),
    /// Kept and listed, never used.
    Stale(StaleReason),
}

impl RowStanding {
    /// Whether the row is kept without being used.
    #[must_use]
    pub const fn is_stale(&self) -> bool {
        matches!(self, Self::Stale(_))
    }
}

/// Why a row is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StaleReason {
    /// It was labelled under other questions.
    #[error("labelled under the questions {shape}")]
    OtherShape {
        /// As the row has it.
        shape: String,
    },
    /// Its labels do not fit.
    #[error(transparent)]
    Labels(LabelProblems),
}

/// Why a line is no row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// Too long to be looked at.
    #[error("the line has {bytes} bytes, limit {MAX_LINE_BYTES}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// No JSON.
    #[error("no JSON: {0}")]
    Json(#[from] json::ReadError),
    /// JSON, but no object.
    #[error("expected an object")]
    NotAnObject,
    /// A key whose value has the wrong form.
    #[error("{key}: {message}")]
    Key {
        /// Which.
        key: &'static str,
        /// What is wrong, and what is allowed.
        message: String,
    },
    /// The id of another row of the same file.
    #[error("id `{id}` is used twice")]
    RepeatedId {
        /// Which.
        id: String,
    },
}

fn key_error(key: &'static str, message: impl Into<String>) -> RowError {
    RowError::Key {
        key,
        message: message.into(),
    }
}

/// One row. Cheap to compare; equal rows have equal bytes.
#[derive(Debug, Clone)]
pub struct Row {
    line: String,
    object: Object,
    id: String,
    request: String,
    source: Source,
    split: Option<Split>,
    label_source: Option<LabelSource>,
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.line == other.line
    }
}

impl Eq for Row {}

/// What a new row is made of; everything else of a row is added to it with `with_…`.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRow<'a> {
    /// For example `s00012`.
    pub id: &'a str,
    /// The request as it is kept.
    pub request: &'a str,
    /// All 18 labels.
    pub labels: &'a Labels,
    /// Where it comes from.
    pub source: Source,
    /// What it is used for; a session row has one.
    pub split: Option<Split>,
    /// The session it was taught in.
    pub session: Option<&'a str>,
    /// Who labelled it.
    pub label_source: Option<LabelSource>,
    /// A remark; blank counts as none.
    pub note: Option<&'a str>,
    /// What the task taught; trimmed, blank counts as none.
    pub lesson: Option<&'a str>,
    /// When it was labelled.
    pub created: Option<Timestamp>,
    /// The questions it was labelled under.
    pub in_force: &'a InForce,
    /// What was seen of the task.
    pub evidence: Option<Value>,
}

impl Row {
    /// Makes a row.
    #[must_use]
    pub fn new(new: NewRow<'_>) -> Self {
        let NewRow {
            id,
            request,
            labels,
            source,
            split,
            session,
            label_source,
            note,
            lesson,
            created,
            in_force,
            evidence,
        } = new;
        let text = |text: Option<&str>| {
            let text = text.map(str::trim).filter(|text| !text.is_empty())?;
            Some(Value::from(text))
        };
        let members: [(&str, Option<Value>); 14] = [
            ("id", Some(id.into())),
            (
                "state",
                Some(Object::from_iter([("request", request)]).into()),
            ),
            ("expected", Some(labels_value(labels).into())),
            ("source", Some(source.as_str().into())),
            ("split", split.map(|split| split.as_str().into())),
            ("session", session.map(Value::from)),
            ("label_source", label_source.map(|who| who.as_str().into())),
            ("note", text(note)),
            ("lesson", text(lesson)),
            (
                "created",
                created.map(|at| crate::timestamp::format(at).into()),
            ),
            ("shape", Some(in_force.shape.to_string().into())),
            ("contract", Some(in_force.contract.to_string().into())),
            ("decision_id", None),
            ("evidence", evidence),
        ];
        let object: Object = members
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect();
        Self {
            line: json::write(&object.clone().into()),
            object,
            id: id.to_owned(),
            request: request.to_owned(),
            source,
            split,
            label_source,
        }
    }

    /// Reads one line. A row without an id (as exports have none) has the empty id.
    ///
    /// # Errors
    /// When the line is no JSON object, or a key that we know has another form than training.md 2.4 gives it.
    pub fn read(line: &str) -> Result<Self, RowError> {
        if line.len() > MAX_LINE_BYTES {
            return Err(RowError::TooLong { bytes: line.len() });
        }
        let Value::Object(object) = json::read(line.as_bytes())? else {
            return Err(RowError::NotAnObject);
        };
        let state = object.get("state").and_then(Value::as_object);
        let request = state
            .and_then(|state| state.get("request"))
            .and_then(Value::as_text)
            .ok_or_else(|| key_error("state", "expected an object with the text `request`"))?
            .to_string_lossy();
        if request.trim().is_empty() {
            return Err(key_error("state", "`request` must not be blank"));
        }
        if object.get("expected").and_then(Value::as_object).is_none() {
            return Err(key_error("expected", "expected an object of labels"));
        }
        let source = text_of(&object, "source")?
            .filter(|source| !source.is_empty())
            .ok_or_else(|| key_error("source", "expected a word"))?;
        for key in [
            "session",
            "note",
            "lesson",
            "created",
            "shape",
            "contract",
            "decision_id",
        ] {
            text_of(&object, key)?;
        }
        let id = text_of(&object, "id")?.unwrap_or_default();
        if id.chars().any(char::is_control) || id.len() > 128 {
            return Err(key_error(
                "id",
                "must have at most 128 bytes and no control characters",
            ));
        }
        let evidence = object
            .get("evidence")
            .filter(|evidence| !evidence.is_null());
        if evidence.is_some_and(|evidence| evidence.as_object().is_none()) {
            return Err(key_error("evidence", "expected an object"));
        }
        Ok(Self {
            split: word_of(&object, "split", "train, val, test", Split::from_word)?,
            label_source: word_of(
                &object,
                "label_source",
                "agent, human, telemetry",
                LabelSource::from_word,
            )?,
            id: id.to_owned(),
            source: Source::from_word(source),
            line: line.to_owned(),
            request,
            object,
        })
    }

    /// The line, as it was read or made; no line break.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }

    /// For example `s00012`; empty for a line that has none.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The request; a lone surrogate of the file is U+FFFD here.
    #[must_use]
    pub fn request(&self) -> &str {
        &self.request
    }

    /// `state`, whole.
    #[must_use]
    pub fn state(&self) -> Option<&Value> {
        self.object.get("state")
    }

    /// `expected`: labels by question id, as the file has them.
    #[must_use]
    pub fn expected(&self) -> &Object {
        static NONE: Object = Object::new();
        self.object
            .get("expected")
            .and_then(Value::as_object)
            .unwrap_or(&NONE)
    }

    /// Where it comes from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Whether it was taught in a session.
    #[must_use]
    pub fn is_session(&self) -> bool {
        self.source == Source::Session
    }

    /// What it is used for, where the row says so.
    #[must_use]
    pub fn split(&self) -> Option<Split> {
        self.split
    }

    /// The session it was taught in.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.text("session")
    }

    /// Who labelled it.
    #[must_use]
    pub fn label_source(&self) -> Option<LabelSource> {
        self.label_source
    }

    /// A remark.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.text("note").filter(|note| !note.trim().is_empty())
    }

    /// What the task taught, trimmed; blank is none.
    #[must_use]
    pub fn lesson(&self) -> Option<&str> {
        self.text("lesson")
            .map(str::trim)
            .filter(|lesson| !lesson.is_empty())
    }

    /// When it was labelled; none where the text is no time.
    #[must_use]
    pub fn created(&self) -> Option<Timestamp> {
        self.text("created").and_then(|text| text.parse().ok())
    }

    /// Digest of the questions without wording, as the row has it.
    #[must_use]
    pub fn shape(&self) -> Option<&str> {
        self.text("shape")
    }

    /// Digest of the questions with wording, as the row has it.
    #[must_use]
    pub fn contract(&self) -> Option<&str> {
        self.text("contract")
    }

    /// The decision that planned the task.
    #[must_use]
    pub fn decision_id(&self) -> Option<&str> {
        self.text("decision_id")
    }

    /// What was seen of the task.
    #[must_use]
    pub fn evidence(&self) -> Option<&Object> {
        self.object.get("evidence").and_then(Value::as_object)
    }

    /// The key under which two rows are the same task.
    #[must_use]
    pub fn merge_key(&self) -> String {
        merge_key(&self.request)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.object.get(key).and_then(Value::as_str)
    }

    /// Reads the labels: all 18, and nothing else.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn labels(&self) -> Result<Labels, LabelProblems> {
        let expected = json::write(&self.expected().clone().into());
        // `NaN` is the one thing that one of the readers takes and the other does not: no label either way.
        Labels::from_json(&serde_json::from_str(&expected).unwrap_or_default())
    }

    /// Whether the row may be used under the questions in force.
    #[must_use]
    pub fn standing(&self, in_force: &InForce) -> RowStanding {
        if let Some(shape) = self
            .shape()
            .filter(|shape| *shape != in_force.shape.to_string())
        {
            let shape = shape.to_owned();
            return RowStanding::Stale(StaleReason::OtherShape { shape });
        }
        if let Some(tier) = self.only_tier() {
            return RowStanding::TierOnly(tier);
        }
        match self.labels() {
            Ok(labels) => RowStanding::InForce(labels),
            Err(problems) => RowStanding::Stale(StaleReason::Labels(problems)),
        }
    }

    /// The tier of a `harness` row that has no other label.
    fn only_tier(&self) -> Option<Tier> {
        let expected = self.expected();
        let only = self.source == Source::Harness && expected.len() == 1;
        let tier = expected.get("capability_tier").and_then(Value::as_str);
        tier.filter(|_| only)?.parse().ok()
    }

    /// The row as memory has it; none for a row that was not taught in a session.
    #[must_use]
    pub fn learned(&self, in_force: &InForce) -> Option<LearnedTask<Labels>> {
        if !self.is_session() {
            return None;
        }
        let standing = match self.standing(in_force) {
            RowStanding::InForce(labels) => Standing::InForce {
                tier: labels.capability_tier,
                effort: labels.reasoning_effort,
                labels,
            },
            RowStanding::TierOnly(_) | RowStanding::Stale(_) => Standing::Stale,
        };
        Some(LearnedTask {
            id: self.id.clone(),
            request: self.request.clone(),
            lesson: self.lesson().map(str::to_owned),
            created: self.created().unwrap_or(Timestamp::UNIX_EPOCH),
            standing,
        })
    }

    /// The row under another id.
    #[must_use]
    pub fn with_id(&self, id: &str) -> Self {
        self.with("id", &id.into())
    }

    /// The row with a split of its own.
    #[must_use]
    pub fn with_split(&self, split: Split) -> Self {
        self.with("split", &split.as_str().into())
    }

    /// The row with another lesson; blank or none takes it away.
    #[must_use]
    pub fn with_lesson(&self, lesson: Option<&str>) -> Self {
        match lesson.map(str::trim).filter(|lesson| !lesson.is_empty()) {
            Some(lesson) => self.with("lesson", &lesson.into()),
            None => self.reread(line::without_member(&self.line, "lesson")),
        }
    }

    /// The row with the digests of the questions it was labelled under.
    #[must_use]
    pub fn stamped(&self, in_force: &InForce) -> Self {
        self.with("shape", &in_force.shape.to_string().into())
            .with("contract", &in_force.contract.to_string().into())
    }

    /// The row with other labels.
    #[must_use]
    pub fn with_expected(&self, expected: Object) -> Self {
        self.with("expected", &expected.into())
    }

    /// The row with one of our keys set, every other byte as it was.
    fn with(&self, key: &'static str, value: &Value) -> Self {
        let before = KEYS.split(|known| *known == key).next().unwrap_or_default();
        self.reread(line::with_member(
            &self.line,
            key,
            &json::write(value),
            before,
        ))
    }

    /// A changed line of this row. What we put in is of the right form, so reading it cannot fail; were it to, the row
    /// would stay as it was.
    fn reread(&self, line: String) -> Self {
        let row = Self::read(&line);
        debug_assert!(row.is_ok(), "{line}");
        row.unwrap_or_else(|_| self.clone())
    }

    /// The row in the one form that digests are made of: compact, our keys in their order, then the others in that of
    /// their code points.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut members: Vec<_> = self.object.iter().collect();
        members.sort_by_key(|(key, _)| {
            let known = key
                .as_str()
                .and_then(|key| KEYS.iter().position(|known| *known == key));
            (known.unwrap_or(KEYS.len()), key.as_bytes())
        });
        let object: Object = members.into_iter().cloned().collect();
        json::write(&object.into())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

/// Labels as the object `expected`, in question order.
fn labels_value(labels: &Labels) -> Object {
    use decision::labels::Label;
    let value = |label| match label {
        Label::Choice(word, _) => Value::from(word),
        Label::Level(level) => i64::from(level).into(),
        Label::Truth(truth) => truth.into(),
    };
    let labels = labels.values().into_iter();
    labels
        .map(|(id, label)| (id.as_str(), value(label)))
        .collect()
}

/// The text at a key; `null` counts as absent.
fn text_of<'a>(object: &'a Object, key: &'static str) -> Result<Option<&'a str>, RowError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => match text.as_str() {
            Some(text) => Ok(Some(text)),
            None => Err(key_error(key, "has half a surrogate pair")),
        },
        Some(_) => Err(key_error(key, "expected a text")),
    }
}

fn word_of<T>(
    object: &Object,
    key: &'static str,
    allowed: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, RowError> {
    text_of(object, key)?
        .map(|word| {
            parse(word).ok_or_else(|| {
                key_error(
                    key,
                    format!("unknown word `{word}`: expected one of {allowed}"),
                )
            })
        })
        .transpose()
}

/// A line that is no row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedLine {
    /// From 1.
    pub line: usize,
    /// As it stands in the file.
    pub text: String,
    /// Why.
    pub reason: String,
}

/// A dataset file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowFile {
    /// Its rows, in order.
    pub rows: Vec<Row>,
    /// Its other lines, for `dataset.jsonl.rejected`.
    pub rejected: Vec<RejectedLine>,
}

/// Reads a dataset file. Blank lines count as nothing; a line that is no row, or repeats an id, is rejected by its number.
#[must_use]
pub fn read_file(text: &str) -> RowFile {
    let mut file = RowFile::default();
    let mut ids = std::collections::HashSet::new();
    for (number, line) in lines(text) {
        let row = Row::read(line).and_then(|row| {
            if !row.id.is_empty() && !ids.insert(row.id.clone()) {
                return Err(RowError::RepeatedId { id: row.id });
            }
            Ok(row)
        });
        match row {
            Ok(row) => file.rows.push(row),
            Err(error) => file.rejected.push(RejectedLine {
                line: number,
                text: line.to_owned(),
                reason: error.to_string(),
            }),
        }
    }
    file
}

/// The lines of a JSONL file that are not blank, with their numbers from 1.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let numbered = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    numbered.filter(|(_, line)| !line.trim().is_empty())
}

/// The rows as a file: one line each, a final line break.
#[must_use]
pub fn write_file<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let mut text = String::new();
    for row in rows {
        text.push_str(&row.line);
        text.push('\n');
    }
    text
}
