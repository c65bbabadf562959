//! Every history that was recorded from a real kube-apiserver (golden/fields/), replayed: the same object with the same
//! owners and times, or the same refusal, at every step.
//!
//! What surrounds field ownership in an API server (defaults, `status` kept apart, fields that the server sets) is played
//! here in its simplest form, from the same CRDs.

use std::fs;
use std::path::PathBuf;

use objects::fields::{self, ApplyError, Force, Shape, Writer, record_update, settle_times};
use objects::patch::{PatchError, json_patch, merge_patch};
use serde_json::{Value, json};

#[test]
fn owns_merges_and_refuses_as_the_api_server_did() {
    let mut failures = Vec::new();
    let histories = histories();
    assert!(histories.len() >= 60, "{} histories", histories.len());
    for (name, history) in &histories {
        let kind = Kind::named(text(&history["kind"]));
        let mut live = Value::Null;
        for (at, step) in history["steps"]
            .as_array()
            .expect("steps")
            .iter()
            .enumerate()
        {
            if let Err(difference) = kind.replay(&live, step, at) {
                failures.push(format!("{name}, step {at}: {difference}"));
            }
            live = step["object"].clone();
        }
    }
    assert!(
        failures.is_empty(),
        "{} steps differ\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/fields")
}

fn read(path: PathBuf) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("readable")).expect("JSON")
}

fn histories() -> Vec<(String, Value)> {
    let mut all: Vec<_> = fs::read_dir(golden())
        .expect("folder")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .filter(|path| path.file_name().is_some_and(|name| name != "crds.json"))
        .map(|path| {
            (
                path.file_stem()
                    .expect("name")
                    .to_string_lossy()
                    .into_owned(),
                read(path),
            )
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

struct Kind {
    kind: String,
    api_version: String,
    schema: Value,
    shape: Shape,
    has_status: bool,
}

impl Kind {
    fn named(kind: &str) -> Self {
        let crds = read(golden().join("crds.json"));
        let crd = crds
            .as_array()
            .expect("list")
            .iter()
            .find(|crd| crd["spec"]["names"]["kind"] == kind);
        let spec = &crd.expect("CRD")["spec"];
        let version = &spec["versions"][0];
        let schema = version["schema"]["openAPIV3Schema"].clone();
        let has_status = version["subresources"]["status"].is_object();
        let status = match has_status {
            true => fields::StatusSubresource::Present,
            false => fields::StatusSubresource::Absent,
        };
        Self {
            kind: kind.into(),
            api_version: format!("{}/{}", text(&spec["group"]), text(&version["name"])),
            shape: Shape::of_schema(&schema).with_status(status),
            schema,
            has_status,
        }
    }

    fn replay(&self, live: &Value, step: &Value, at: usize) -> Result<(), String> {
        let time = format!("2026-01-01T00:00:{at:02}Z");
        let writer = Writer {
            manager: text(&step["manager"]),
            subresource: step["subresource"].as_str(),
            api_version: &self.api_version,
            time: &time,
        };
        let outcome = match text(&step["verb"]) {
            "apply" => self.apply(live, step, &writer),
            _ => self.write(live, step, &writer),
        };
        match outcome {
            Ok(object) => {
                let code = step["code"].as_u64().expect("code");
                let wrong_nulls = self.wrong_nulls(&object);
                if code == 422 && !wrong_nulls.is_empty() {
                    // Ownership has no objection; validation refuses the nulls, and names the same places.
                    let causes = step["answer"]["details"]["causes"]
                        .as_array()
                        .expect("causes");
                    let mut named: Vec<&str> =
                        causes.iter().map(|cause| text(&cause["field"])).collect();
                    named.sort_unstable();
                    return if named == wrong_nulls {
                        Ok(())
                    } else {
                        Err(format!("nulls at {wrong_nulls:?}, not {named:?}"))
                    };
                }
                if code >= 300 {
                    return Err(format!(
                        "accepted, was {code}: {}",
                        step["answer"]["message"]
                    ));
                }
                if object != step["object"] {
                    return Err(difference("", &object, &step["object"]));
                }
                let written = object != *live;
                if written != step["written"].as_bool().expect("flag") {
                    return Err(format!("written: {written}"));
                }
                Ok(())
            }
            Err(refusal) => {
                let answer = &step["answer"];
                let recorded = json!({
                    "code": answer["code"],
                    "message": answer["message"],
                    "causes": sorted(answer["details"]["causes"].as_array().cloned().unwrap_or_default()),
                });
                if refusal == recorded {
                    Ok(())
                } else {
                    Err(format!("refusal\n   {refusal}\n   {recorded}"))
                }
            }
        }
    }

    fn apply(&self, live: &Value, step: &Value, writer: &Writer<'_>) -> Result<Value, Value> {
        let force = if step["force"] == true {
            Force::Yes
        } else {
            Force::No
        };
        let stored = Some(live).filter(|live| !live.is_null());
        let mut object = fields::apply(&self.shape, stored, &step["body"], writer, force)
            .map_err(|error| refusal(&error))?;
        self.default(&mut object);
        Ok(self.settle(live, object, step, writer))
    }

    fn write(&self, live: &Value, step: &Value, writer: &Writer<'_>) -> Result<Value, Value> {
        let body = &step["body"];
        let patched = match text(&step["verb"]) {
            "merge" if writer.subresource == Some("scale") => {
                merge_patch(live, &json!({"spec": {"n": body["spec"]["replicas"]}}))
            }
            "merge" => merge_patch(live, body),
            "json" => json_patch(live, body),
            _ => Ok(body.clone()),
        };
        let mut object = patched.map_err(|error| match error {
            PatchError::Malformed(message) => {
                json!({"code": 400, "message": message, "causes": []})
            }
            PatchError::TooManyOperations { .. } => json!({"code": 413}),
            // The API server keeps the reason to itself.
            PatchError::DoesNotApply(_) => json!({
                "code": 422,
                "message": "the server rejected our request due to an error in our request",
                "causes": [],
            }),
        })?;
        self.default(&mut object);
        let stored = Some(live).filter(|live| !live.is_null());
        record_update(&self.shape, stored, &mut object, writer).expect("an object with metadata");
        Ok(self.settle(live, object, step, writer))
    }

    /// What the server does after ownership is known.
    fn settle(&self, live: &Value, mut object: Value, step: &Value, writer: &Writer<'_>) -> Value {
        if self.has_status && writer.subresource != Some("status") {
            put_back(&mut object, live, "status");
        }
        if writer.subresource == Some("status") {
            let (managed, status) = (
                object["metadata"]["managedFields"].take(),
                object["status"].take(),
            );
            object = live.clone();
            object["metadata"]["managedFields"] = managed;
            if status.is_null() {
                object.as_object_mut().expect("object").remove("status");
            } else {
                object["status"] = status;
            }
        }
        let metadata = object["metadata"].as_object_mut().expect("metadata");
        for name in [
            "creationTimestamp",
            "generation",
            "name",
            "namespace",
            "resourceVersion",
            "uid",
        ] {
            if let Some(value) = step["object"]["metadata"].get(name) {
                metadata.insert(name.into(), value.clone());
            }
        }
        if *live == Value::Null {
            object["kind"] = self.kind.clone().into();
        } else {
            settle_times(live, &mut object);
        }
        whole_numbers(&mut object);
        object
    }

    /// Fields of `spec` that are null and must not be.
    fn wrong_nulls(&self, object: &Value) -> Vec<String> {
        let members = &self.schema["properties"]["spec"]["properties"];
        let fields = object["spec"].as_object().into_iter().flatten();
        fields
            .filter(|(name, value)| value.is_null() && members[name]["nullable"] != true)
            .map(|(name, _)| format!("spec.{name}"))
            .collect()
    }

    fn default(&self, object: &mut Value) {
        default(&self.schema, object);
    }
}

fn put_back(object: &mut Value, live: &Value, name: &str) {
    let fields = object.as_object_mut().expect("object");
    match live.get(name) {
        Some(value) => fields.insert(name.into(), value.clone()),
        None => fields.remove(name),
    };
}

/// `1.0` is stored as `1`.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Number(number) => {
            if let Some(float) = number
                .as_f64()
                .filter(|float| number.is_f64() && float.fract() == 0.0)
            {
                *value = json!(float as i64);
            }
        }
        _ => {}
    }
}

/// Nulls that the schema does not allow go, and what is missing gets its default.
fn default(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                let drop = fields.get(name).is_some_and(Value::is_null)
                    && member["nullable"] != true
                    && member.get("default").is_some();
                if drop {
                    fields.remove(name);
                }
                if let Some(default) = member.get("default")
                    && !fields.contains_key(name)
                {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields.iter_mut() {
                let member = match schema["properties"].get(name) {
                    Some(member) => member,
                    None => &schema["additionalProperties"],
                };
                default(member, value);
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| default(&schema["items"], item)),
        _ => {}
    }
}

fn refusal(error: &ApplyError) -> Value {
    let (code, causes) = match error {
        ApplyError::Conflicts(conflicts) => {
            let cause = |conflict: &fields::Conflict| json!({"reason": "FieldManagerConflict", "message": conflict.message(), "field": conflict.field});
            (409, conflicts.0.iter().map(cause).collect())
        }
        ApplyError::BadRequest(_) => (400, Vec::new()),
        ApplyError::Unfit(_) => (500, Vec::new()),
        ApplyError::Caller(error) => panic!("{error}"),
    };
    json!({"code": code, "message": error.to_string(), "causes": sorted(causes)})
}

fn sorted(mut causes: Vec<Value>) -> Vec<Value> {
    causes.sort_by_key(ToString::to_string);
    causes
}

/// Where two values differ, as lines.
fn difference(path: &str, ours: &Value, theirs: &Value) -> String {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let mut names: Vec<_> = a.keys().chain(b.keys()).collect();
            names.sort();
            names.dedup();
            names
                .into_iter()
                .map(|name| difference(&format!("{path}/{name}"), &ours[name], &theirs[name]))
                .collect()
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .map(|(at, (a, b))| difference(&format!("{path}/{at}"), a, b))
            .collect(),
        _ if ours == theirs => String::new(),
        _ => format!("\n   {path}\n      ours   {ours}\n      theirs {theirs}"),
    }
}
