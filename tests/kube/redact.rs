//! What two servers can never have in common is taken out of their answers, here and nowhere else.

use serde_json::{Map, Value};

/// What the servers of a comparison chose themselves.
pub(crate) struct Redaction<'a> {
    pub(crate) namespace: &'a str,
    /// What a server put five random characters behind: `generateName`.
    pub(crate) prefix: Option<&'a str>,
}

impl Redaction<'_> {
    /// Identities, times, versions and the namespace of a run become their names; what has no order gets one.
    pub(crate) fn redact(&self, value: &Value) -> Value {
        let mut value = value.clone();
        if value["kind"] == "Status" {
            without_objects(&mut value);
            sort_causes(&mut value);
        }
        self.walk(&mut value);
        value
    }

    fn walk(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item)),
            Value::Object(fields) => {
                for (key, value) in fields.iter_mut() {
                    match (key.as_str(), &*value) {
                        ("resourceVersion", Value::String(version))
                            if !version.is_empty()
                                && version.bytes().all(|b| b.is_ascii_digit()) =>
                        {
                            *value = "<version>".into();
                        }
                        (
                            "creationTimestamp" | "deletionTimestamp" | "time",
                            Value::String(time),
                        ) if is_whole_second(time) => {
                            *value = "<time>".into();
                        }
                        // Their order is that of times, of which many fall into one second, or not.
                        ("managedFields", _) => {
                            self.walk(value);
                            sort_managers(value);
                        }
                        _ => self.walk(value),
                    }
                }
            }
            _ => {}
        }
    }

    pub(crate) fn text(&self, text: &str) -> String {
        let mut text = text.replace(self.namespace, "<namespace>");
        if let Some(prefix) = self.prefix {
            text = without_suffixes(&text, prefix);
        }
        for before in [
            "ResourceVersion in precondition: ",
            "ResourceVersion in object meta: ",
        ] {
            text = without_number_after(&text, before);
        }
        without_uids(&text)
    }
}

/// Every name of a text that begins so and ends with five random letters and digits.
fn without_suffixes(text: &str, prefix: &str) -> String {
    const RANDOM: usize = 5;
    let mut parts = text.split(prefix);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(prefix);
        let random = |suffix: &&str| {
            suffix
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        match part.get(..RANDOM).filter(random) {
            Some(_) => {
                out.push_str("<random>");
                out.push_str(&part[RANDOM..]);
            }
            None => out.push_str(part),
        }
    }
    out
}

/// `2026-11-30T17:20:00Z`, the only form of a time in metadata.
fn is_whole_second(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00Z";
    let fits = |(is, form): (u8, &u8)| match form {
        b'0' => is.is_ascii_digit(),
        other => is == *other,
    };
    text.len() == FORM.len() && text.bytes().zip(FORM).all(fits)
}

fn without_number_after(text: &str, before: &str) -> String {
    let Some((head, tail)) = text.split_once(before) else {
        return text.to_owned();
    };
    let rest = tail.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{head}{before}<version>{rest}")
}

/// Every uid of a text, by its form: 8-4-4-4-12 lower-case hexadecimal digits.
fn without_uids(text: &str) -> String {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    const LENGTH: usize = 36;
    let is_uid = |candidate: &str| {
        let groups: Vec<_> = candidate.split('-').collect();
        let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        groups.len() == GROUPS.len()
            && groups
                .iter()
                .zip(GROUPS)
                .all(|(group, length)| group.len() == length)
            && groups.iter().all(|group| group.chars().all(hex))
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        match rest.get(..LENGTH) {
            Some(candidate) if is_uid(candidate) => {
                out.push_str("<uid>");
                rest = &rest[LENGTH..];
            }
            _ => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

fn sort_managers(value: &mut Value) {
    if let Value::Array(entries) = value {
        let key = |entry: &Value| {
            ["operation", "manager", "subresource", "apiVersion"].map(|key| entry[key].to_string())
        };
        entries.sort_by_key(key);
    }
}

/// The real server walks maps of Go, so that the order of causes, and of the parts of the message that tell them, is
/// another each time.
fn sort_causes(status: &mut Value) {
    let Some(causes) = status["details"]["causes"].as_array() else {
        return;
    };
    let part = |cause: &Map<String, Value>| {
        let text = |key: &str| cause.get(key).and_then(Value::as_str).unwrap_or_default();
        let message = text("message");
        match text("reason") {
            // Told with the field each time.
            "FieldManagerConflict" => message.to_owned(),
            _ => format!("{}: {message}", text("field")),
        }
    };
    let mut parts: Vec<_> = causes
        .iter()
        .filter_map(Value::as_object)
        .map(part)
        .collect();
    let told = format!("[{}]", parts.join(", "));
    parts.sort();
    let sorted = format!("[{}]", parts.join(", "));
    let message = status["message"].as_str().unwrap_or_default();
    let message = message.replace(&told, &sorted);
    let mut causes = causes.clone();
    causes.sort_by_key(|cause| ["field", "message", "reason"].map(|key| cause[key].to_string()));
    status["message"] = message.into();
    status["details"]["causes"] = causes.into();
}

/// A patch that makes an object nobody can read is refused with that whole object in quotes, times and versions included.
fn without_objects(status: &mut Value) {
    let Some(causes) = status["details"]["causes"].as_array() else {
        return;
    };
    let refused = causes.iter().find(|cause| cause["field"] == "patch");
    let Some(object) = refused.and_then(|cause| quoted(cause["message"].as_str()?)) else {
        return;
    };
    let object = object.to_owned();
    for cause in status["details"]["causes"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        replace(&mut cause["message"], &object);
    }
    replace(&mut status["message"], &object);
}

fn replace(text: &mut Value, object: &str) {
    if let Value::String(text) = text {
        *text = text.replace(object, "<object>");
    }
}

/// The first text in quotes that is an object, without them.
fn quoted(message: &str) -> Option<&str> {
    let (_, text) = message.split_once("Invalid value: \"")?;
    let mut escaped = false;
    let end = text.find(|c: char| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    text.starts_with('{').then(|| &text[..end])
}
