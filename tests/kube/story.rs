//! One case told to one server: each step becomes a request, and what is stored is read after it.

use serde_json::{Map, Value, json};

use crate::corpus::{Case, Kind, Raw, Step, Verb};
use crate::redact::Redaction;
use crate::target::{Ask, Target, Told};

/// Who writes where a step names nobody.
const MANAGER: &str = "corpus";

/// What a step came to, as it is compared.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// As it was answered.
    pub(crate) told: Told,
    /// Code, answer, stored object and whether anything was written, without what differs between two servers by nature.
    pub(crate) compared: Value,
}

/// A case under way on a server.
pub(crate) struct Story<'a> {
    target: &'a dyn Target,
    namespace: &'a str,
    case: &'a Case,
    /// Versions after each step.
    versions: Vec<String>,
    uid: String,
    /// Its name, when the server chose it.
    generated: Option<String>,
}

impl<'a> Story<'a> {
    pub(crate) fn new(target: &'a dyn Target, namespace: &'a str, case: &'a Case) -> Self {
        Self {
            target,
            namespace,
            case,
            versions: Vec::new(),
            uid: String::new(),
            generated: None,
        }
    }

    /// Does a step and reads what is stored.
    pub(crate) fn step(&mut self, step: &Step) -> Outcome {
        let name = step.options.name.clone();
        let name = name.or_else(|| self.generated.clone());
        let name = name.unwrap_or_else(|| self.case.object.clone());
        let before = self.stored(&name);
        let ask = self.ask(step, &name, &before.body);
        let sent: Value = serde_json::from_slice(&ask.body).unwrap_or_default();
        let prefix = sent["metadata"]["generateName"].as_str();
        let told = self.target.ask(&ask);
        let name = match (&step.verb, told.body["metadata"]["name"].as_str()) {
            (Verb::Create(_), Some(given)) if given != name => {
                self.generated = Some(given.to_owned());
                given.to_owned()
            }
            _ => name,
        };
        let after = self.stored(&name);
        let version = |told: &Told| told.body["metadata"]["resourceVersion"].clone();
        let written = version(&before) != version(&after);
        self.versions
            .push(version(&after).as_str().unwrap_or_default().to_owned());
        if let Some(uid) = after.body["metadata"]["uid"].as_str() {
            uid.clone_into(&mut self.uid);
        }
        let redaction = Redaction {
            namespace: self.namespace,
            prefix: prefix.filter(|_| sent["metadata"].get("name").is_none()),
        };
        let compared = json!({
            "code": told.code,
            "answer": redaction.redact(&told.body),
            "stored": redaction.redact(&after.body),
            "written": written,
        });
        Outcome { told, compared }
    }

    /// Takes away what the case left.
    pub(crate) fn end(&self) {
        let steps = self.case.steps.iter();
        let mut names: Vec<_> = steps.filter_map(|step| step.options.name.clone()).collect();
        names.push(self.case.object.clone());
        names.extend(self.generated.clone());
        for name in names {
            let path = self.path(self.case.kind, &name, None);
            if self.target.ask(&Ask::get(&path)).code == 404 {
                continue;
            }
            let mut free = Ask::json("PATCH", &path, &json!({"metadata": {"finalizers": null}}));
            free.content_type = "application/merge-patch+json";
            self.target.ask(&free);
            let delete = Ask {
                method: "DELETE",
                ..Ask::get(path)
            };
            self.target.ask(&delete);
        }
    }

    fn stored(&self, name: &str) -> Told {
        let path = self.path(self.case.kind, name, None);
        self.target.ask(&Ask::get(path))
    }

    fn path(&self, kind: Kind, name: &str, subresource: Option<&str>) -> String {
        let mut path = kind.path(self.namespace);
        for part in [Some(name), subresource].into_iter().flatten() {
            path.push('/');
            path.push_str(part);
        }
        path
    }

    fn ask(&self, step: &Step, name: &str, stored: &Value) -> Ask {
        let kind = self.case.kind;
        let (method, content_type, mut body) = match &step.verb {
            Verb::Create(edit) => {
                let mut object = kind.object(name, &self.case.base);
                edit.change(&mut object);
                ("POST", "application/json", object)
            }
            Verb::Update(edit) => {
                let mut object = stored.clone();
                edit.change(&mut object);
                ("PUT", "application/json", object)
            }
            Verb::Merge(patch) => ("PATCH", "application/merge-patch+json", patch.clone()),
            Verb::Json(patch) => ("PATCH", "application/json-patch+json", patch.clone()),
            Verb::Apply(config) => {
                let object = kind.object(name, config);
                ("PATCH", "application/apply-patch+yaml", object)
            }
            Verb::Delete(options) => ("DELETE", "application/json", options.clone()),
            Verb::Raw(raw) => return self.raw(step, raw, name),
        };
        self.fill(&mut body);
        let mut ask = Ask::json(method, self.path_of(step, name, method), &body);
        ask.content_type = content_type;
        if method == "DELETE" && body == Value::Object(Map::new()) {
            ask.body.clear();
        }
        ask
    }

    fn raw(&self, step: &Step, raw: &Raw, name: &str) -> Ask {
        let methods = ["POST", "PUT", "PATCH", "DELETE"];
        let method = methods.into_iter().find(|known| *known == raw.method);
        let method = method.unwrap_or_else(|| panic!("no method {}", raw.method));
        let body = raw.body.replace("$namespace", self.namespace);
        Ask {
            method,
            path: self.path_of(step, name, method),
            content_type: CONTENT_TYPES
                .into_iter()
                .find(|known| *known == raw.content_type)
                .unwrap_or_else(|| panic!("no content type {}", raw.content_type)),
            body: body.replace("$name", name).into_bytes(),
        }
    }

    fn path_of(&self, step: &Step, name: &str, method: &str) -> String {
        let options = &step.options;
        let mut path = if method == "POST" && options.subresource.is_none() {
            self.case.kind.path(self.namespace)
        } else {
            self.path(self.case.kind, name, options.subresource.as_deref())
        };
        let mut query = vec![];
        if method != "DELETE" {
            let manager = options.manager.as_deref().unwrap_or(MANAGER);
            query.push(("fieldManager", Some(manager.to_owned())));
            query.push(("fieldValidation", Some("Strict".to_owned())));
        }
        if options.force {
            query.push(("force", Some("true".to_owned())));
        }
        if options.dry_run {
            query.push(("dryRun", Some("All".to_owned())));
        }
        for (key, value) in &options.query {
            query.retain(|(usual, _)| usual != key);
            query.push((key, value.clone()));
        }
        let mut separator = '?';
        for (key, value) in query {
            if let Some(value) = value {
                path.push(separator);
                path.push_str(&format!("{key}={}", self.filled(&value)));
                separator = '&';
            }
        }
        path
    }

    /// `$rv` is the last step's version, `$rv0` the first step's; `$uid` the object's.
    fn filled(&self, text: &str) -> String {
        let Some(name) = text.strip_prefix('$') else {
            return text.to_owned();
        };
        match (name, name.strip_prefix("rv")) {
            ("uid", _) => self.uid.clone(),
            ("namespace", _) => self.namespace.to_owned(),
            ("name", _) => self.case.object.clone(),
            (_, Some("")) => self.versions.last().cloned().unwrap(),
            (_, Some(index)) => self.versions[index.parse::<usize>().unwrap()].clone(),
            _ => panic!("nothing is called {text}"),
        }
    }

    fn fill(&self, tree: &mut Value) {
        match tree {
            Value::String(text) if text.starts_with('$') => *text = self.filled(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill(item)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.fill(value)),
            _ => {}
        }
    }
}

/// All that a step may send.
const CONTENT_TYPES: [&str; 7] = [
    "application/json",
    "application/yaml",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
    "application/strategic-merge-patch+json",
    "text/plain",
];
