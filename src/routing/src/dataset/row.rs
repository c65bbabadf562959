//! One row of `dataset.jsonl` (training.md 2.4). A row *is* its line: what we know of it is read through accessors, what
//! we do not know stays, and a line that nobody changed is written back byte for byte.

use std::fmt;

use decision::json::{self, Object, Value};
use decision::labels::{Label, Labels};
use jiff::Timestamp;

use super::line;
use super::origin::{LabelSource, Source, Split};
use super::standing::InForce;
use crate::memory::merge_key;

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
            split: word_of(&object, "split", Split::ALL, Split::as_str)?,
            label_source: word_of(
                &object,
                "label_source",
                LabelSource::ALL,
                LabelSource::as_str,
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
            None => self.reread(&line::without_member(&self.line, "lesson")),
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
    /// The row with another request; the rest of its state stays.
    pub(super) fn with_request(&self, request: &str) -> Self {
        let state = self.state().and_then(Value::as_object);
        let others = state.into_iter().flat_map(Object::iter);
        let others = others.filter(|(key, _)| *key != "request");
        let mut state = Object::new();
        state.push("request", request);
        for (key, value) in others {
            state.push(key.clone(), value.clone());
        }
        self.with("state", &state.into())
    }

    fn with(&self, key: &'static str, value: &Value) -> Self {
        let before = KEYS.split(|known| *known == key).next().unwrap_or_default();
        self.reread(&line::with_member(
            &self.line,
            key,
            &json::write(value),
            before,
        ))
    }

    /// A changed line of this row. What we put in is of the right form, so reading it cannot fail; were it to, the row
    /// would stay as it was.
    fn reread(&self, line: &str) -> Self {
        let row = Self::read(line);
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

fn word_of<T: Copy>(
    object: &Object,
    key: &'static str,
    all: &[T],
    as_str: fn(T) -> &'static str,
) -> Result<Option<T>, RowError> {
    let Some(word) = text_of(object, key)? else {
        return Ok(None);
    };
    let found = all.iter().copied().find(|one| as_str(*one) == word);
    found.map(Some).ok_or_else(|| {
        let words: Vec<_> = all.iter().map(|one| as_str(*one)).collect();
        let allowed = words.join(", ");
        key_error(
            key,
            format!("unknown word `{word}`: expected one of {allowed}"),
        )
    })
}
