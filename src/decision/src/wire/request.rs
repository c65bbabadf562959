//! Bodies of the two decision routes: steps 5 to 19 of wire.md 4.4 and their batch form (4.5), in their order.

use super::gate::Gate;
use super::limits::{self, MAX_STATES, OptionLimit};
use super::model_choice::{ModelChoice, ModelNames};
use super::refusal::Refusal;
use crate::json::{Object, Value, read};

/// What a server's configuration adds to the rules.
#[derive(Debug, Clone, Copy)]
pub struct RequestRules<'a> {
    /// Largest `max_len` and `head_max_len`, in tokens (`LAYA_MAX_TOKEN_BUDGET`).
    pub max_token_budget: usize,
    /// How many options a choice may have.
    pub option_limit: OptionLimit,
    /// Names that `model` may choose; none where one checkpoint answers everything (wire.md 3).
    pub models: Option<&'a ModelNames>,
}

/// Fields that a request and a batch have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Controls {
    /// `model`
    pub model: ModelChoice,
    /// `max_len`, tokens of a row.
    pub max_len: Option<usize>,
    /// `head_max_len`, tokens of question and options.
    pub head_max_len: Option<usize>,
    /// `task` as sent; resolved where a checkpoint is routed to.
    pub task: Option<Value>,
    /// `lang`
    pub lang: Option<String>,
    /// `lang_guess`
    pub lang_guess: Option<String>,
    /// `min_confidence`
    pub gate: Option<Gate>,
}

/// A request about one state. Its questions are counted, not yet checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Anything but null.
    pub state: Value,
    /// Id → definition.
    pub questions: Object,
    /// The rest.
    pub controls: Controls,
}

/// A request about several states.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchRequest {
    /// At least one, none of them null.
    pub states: Vec<Value>,
    /// Id → definition.
    pub questions: Object,
    /// The rest.
    pub controls: Controls,
    /// `batch_size`, at least 1.
    pub batch_size: Option<usize>,
    /// `sort_by_length`
    pub sort_by_length: Option<bool>,
}

/// Reads the body of the single route.
///
/// # Errors
/// The first step that the body fails.
pub fn read_request(body: &[u8], rules: &RequestRules<'_>) -> Result<Request, Refusal> {
    let body = read_body(body)?;
    let fields = Fields::new(&body, &["questions"]).ok_or_else(|| {
        Refusal::bad_request("request body must be an object with a 'questions' field")
    })?;
    let state = fields.object.get("state");
    let questions = limits::check(state, fields.required("questions"), rules.option_limit)?.clone();
    fields.refuse_hooks()?;
    refuse_surrogates(&body)?;
    let controls = fields.controls(rules)?;
    Ok(Request {
        state: state.cloned().unwrap_or(Value::Null),
        questions,
        controls,
    })
}

/// Reads the body of the batch route.
///
/// # Errors
/// The first step that the body fails.
pub fn read_batch_request(body: &[u8], rules: &RequestRules<'_>) -> Result<BatchRequest, Refusal> {
    let body = read_body(body)?;
    let fields = Fields::new(&body, &["states", "questions"]).ok_or_else(|| {
        Refusal::bad_request("request body must be an object with 'states' and 'questions' fields")
    })?;
    let states = fields
        .required("states")
        .as_list()
        .filter(|states| !states.is_empty());
    let states = states.ok_or_else(|| Refusal::bad_request("'states' must be a non-empty list"))?;
    if states.len() > MAX_STATES {
        return Err(Refusal::too_large(format!(
            "too many states in batch ({} > {MAX_STATES})",
            states.len()
        )));
    }
    let questions = fields.required("questions");
    let mut counted = &Object::new();
    for state in states {
        counted = limits::check(Some(state), questions, rules.option_limit)?;
    }
    fields.refuse_hooks()?;
    if fields.present("diagnostics").is_some() {
        return Err(Refusal::unprocessable(
            "diagnostics is filled in place for an in-process caller and cannot be returned over HTTP; read the \
             per-group report from the CLI or a local Router",
        ));
    }
    refuse_surrogates(&body)?;
    let controls = fields.controls(rules)?;
    let batch_size = fields.batch_size()?;
    let sort_by_length = match fields.present("sort_by_length") {
        None => None,
        Some(Value::Bool(sort)) => Some(*sort),
        Some(_) => return Err(Refusal::unprocessable("sort_by_length must be a boolean")),
    };
    Ok(BatchRequest {
        states: states.to_vec(),
        questions: counted.clone(),
        controls,
        batch_size,
        sort_by_length,
    })
}

/// Step 5.
fn read_body(body: &[u8]) -> Result<Value, Refusal> {
    read(body).map_err(|_| Refusal::bad_request("request body must be valid JSON"))
}

/// Step 14.
fn refuse_surrogates(body: &Value) -> Result<(), Refusal> {
    if body.has_lone_surrogate() {
        return Err(Refusal::bad_request(
            "request body contains an unpaired surrogate escape; those cannot be encoded as UTF-8",
        ));
    }
    Ok(())
}

/// The members of a body.
struct Fields<'a> {
    object: &'a Object,
}

impl<'a> Fields<'a> {
    /// None unless the body is an object with all of these keys.
    fn new(body: &'a Value, required: &[&str]) -> Option<Self> {
        let object = body.as_object()?;
        required
            .iter()
            .all(|key| object.get(key).is_some())
            .then_some(Self { object })
    }

    /// A key that `new` has seen.
    fn required(&self, key: &str) -> &'a Value {
        self.object.get(key).unwrap_or(&Value::Null)
    }

    /// An optional field; null means absent.
    fn present(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    /// Step 13.
    fn refuse_hooks(&self) -> Result<(), Refusal> {
        /// Sorted, as the message names them.
        const HOOKS: [&str; 5] = [
            "hooks",
            "hooks_raise",
            "hooks_timeout",
            "on_predict_end",
            "on_predict_start",
        ];
        let sent: Vec<&str> = HOOKS
            .into_iter()
            .filter(|name| self.present(name).is_some())
            .collect();
        if sent.is_empty() {
            return Ok(());
        }
        Err(Refusal::unprocessable(format!(
            "{} run inside the server process and cannot be sent to this endpoint; install them where laya-serve runs, or \
             drop them",
            sent.join(", ")
        )))
    }

    /// Steps 15 to 19.
    fn controls(&self, rules: &RequestRules<'_>) -> Result<Controls, Refusal> {
        let model = match (self.present("model"), rules.models) {
            (Some(value), Some(names)) => names.choose(value)?,
            _ => ModelChoice::Automatic,
        };
        let max_len = self.token_budget("max_len", rules.max_token_budget)?;
        let head_max_len = self.token_budget("head_max_len", rules.max_token_budget)?;
        let task = self.present("task").cloned();
        let lang = self.language("lang")?;
        let lang_guess = self.language("lang_guess")?;
        let gate = self
            .present("min_confidence")
            .map_or(Ok(None), Gate::from_value)?;
        Ok(Controls {
            model,
            max_len,
            head_max_len,
            task,
            lang,
            lang_guess,
            gate,
        })
    }

    fn token_budget(&self, name: &str, limit: usize) -> Result<Option<usize>, Refusal> {
        let Some(value) = self.present(name) else {
            return Ok(None);
        };
        let Value::Integer(integer) = value else {
            return Err(Refusal::unprocessable(format!("{name} must be an integer")));
        };
        if integer.is_negative() || integer.is_zero() {
            return Err(Refusal::unprocessable(format!(
                "{name} must be a positive integer"
            )));
        }
        match integer
            .as_i64()
            .and_then(|tokens| usize::try_from(tokens).ok())
            .filter(|tokens| *tokens <= limit)
        {
            Some(tokens) => Ok(Some(tokens)),
            None => Err(Refusal::unprocessable(format!(
                "{name} exceeds server limit ({integer} > {limit})"
            ))),
        }
    }

    fn language(&self, name: &str) -> Result<Option<String>, Refusal> {
        match self.present(name) {
            None => Ok(None),
            Some(Value::String(code)) => Ok(Some(code.to_string_lossy())),
            Some(_) => Err(Refusal::unprocessable(format!(
                "{name} must be a language code string such as \"de\", or null"
            ))),
        }
    }

    fn batch_size(&self) -> Result<Option<usize>, Refusal> {
        match self.present("batch_size") {
            None => Ok(None),
            Some(Value::Integer(size)) if size.is_negative() || size.is_zero() => {
                Err(Refusal::unprocessable(format!(
                    "batch_size must be a positive integer, got {size}"
                )))
            }
            // Beyond the machine's integers any bound is as good as none.
            Some(Value::Integer(size)) => Ok(Some(
                size.as_i64()
                    .and_then(|size| usize::try_from(size).ok())
                    .unwrap_or(usize::MAX),
            )),
            Some(_) => Err(Refusal::unprocessable("batch_size must be an integer")),
        }
    }
}
