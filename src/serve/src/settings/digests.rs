//! `LAYA_SHA256_DIGESTS` (wire.md 12.4): digests of single files, for every checkpoint or by name.

use decision::json::{self, Object, Value};
use laya::checkpoint::is_inner_path;

/// Path inside a checkpoint → 64 hexadecimal digits.
type Files = Vec<(String, String)>;

/// The digests that files must have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sha256Digests {
    every: Files,
    by_name: Vec<(String, Files)>,
}

impl Sha256Digests {
    /// Those of one checkpoint.
    #[must_use]
    pub fn of(&self, name: &str) -> Files {
        let own = self.by_name.iter().find(|(known, _)| known == name);
        let own = own.map(|(_, files)| files.clone()).unwrap_or_default();
        self.every.iter().cloned().chain(own).collect()
    }
}

/// Reads `{path: hex}` or `{name: {path: hex}}`; both may stand in one object.
///
/// # Errors
/// One sentence about what is wrong with it.
pub fn read_sha256_digests(text: &str) -> Result<Sha256Digests, String> {
    let value = json::read(text.as_bytes()).map_err(|error| format!("not valid JSON: {error}"))?;
    let Value::Object(object) = &value else {
        return Err(format!("must be a JSON object, got {}", value.type_name()));
    };
    let mut digests = Sha256Digests::default();
    for (key, value) in object {
        let key = key.to_string_lossy();
        match value {
            Value::Object(inner) => digests
                .by_name
                .push((key.trim().to_lowercase(), files(inner)?)),
            digest => digests.every.push(file(key, digest)?),
        }
    }
    Ok(digests)
}

fn files(object: &Object) -> Result<Files, String> {
    object
        .iter()
        .map(|(path, digest)| file(path.to_string_lossy(), digest))
        .collect()
}

fn file(path: String, digest: &Value) -> Result<(String, String), String> {
    if !is_inner_path(&path) {
        return Err(format!(
            "path '{}' leads out of the checkpoint",
            path.escape_default()
        ));
    }
    let digest = digest
        .as_str()
        .map(|digest| digest.trim().to_ascii_lowercase());
    let digest = digest
        .filter(|digest| digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    match digest {
        Some(digest) => Ok((path, digest)),
        None => Err(format!(
            "the digest of '{path}' must be 64 hexadecimal digits"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_forms_and_refuses_the_rest() {
        let hex = "ab".repeat(32);
        let read = read_sha256_digests(&format!(
            r#"{{"model.safetensors":"{hex}","English":{{"encoder/config.json":"{}"}}}}"#,
            hex.to_uppercase()
        ))
        .unwrap();
        let paths = |name: &str| {
            read.of(name)
                .into_iter()
                .map(|(path, _)| path)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            paths("english"),
            ["model.safetensors", "encoder/config.json"]
        );
        assert_eq!(paths("multilingual"), ["model.safetensors"]);
        assert!(read.of("english").iter().all(|(_, digest)| *digest == hex));
        for (text, expected) in [
            ("x".to_owned(), "not valid JSON"),
            ("[]".to_owned(), "must be a JSON object"),
            (format!(r#"{{"/etc/passwd":"{hex}"}}"#), "leads out"),
            (format!(r#"{{"a/../b":"{hex}"}}"#), "leads out"),
            (format!(r#"{{"a":{{"../b":"{hex}"}}}}"#), "leads out"),
            (r#"{"a":"12"}"#.to_owned(), "64 hexadecimal"),
            (r#"{"a":1}"#.to_owned(), "64 hexadecimal"),
        ] {
            let error = read_sha256_digests(&text).expect_err(&text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
