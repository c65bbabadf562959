//! A server as an operator writes it: `[[servers]]` of a configuration file, or an address on the command line.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use decision::{Contract, contract::MAX_FILE_BYTES};

use super::address::ServerUrl;
use super::key::{KeyError, KeyFile};
use super::standing::Wording;
use super::table::Target;
use super::upstream::Upstream;

/// Where the control plane does not say which servers there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredServer {
    /// Where it answers.
    pub url: ServerUrl,
    /// Its name; else `host:port`.
    pub name: Option<String>,
    /// Its share of the tasks.
    pub weight: u32,
    /// File with the key it demands.
    pub api_key_file: Option<PathBuf>,
    /// `decisions.json` with the wording its version is tuned to, where that is not ours.
    pub decisions: Option<PathBuf>,
}

/// A server cannot be set up as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum ConfiguredServerError {
    /// Its key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The file with its questions cannot be read.
    #[error("cannot read the questions {}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: files::ReadError,
    },
    /// The file with its questions is no contract, or has another shape than ours.
    #[error("the questions {}: {problem}", path.display())]
    Questions {
        /// Which file.
        path: PathBuf,
        /// What is wrong, with the place.
        problem: String,
    },
}

impl ConfiguredServer {
    /// A server with nothing but an address.
    #[must_use]
    pub const fn at(url: ServerUrl) -> Self {
        Self {
            url,
            name: None,
            weight: 1,
            api_key_file: None,
            decisions: None,
        }
    }

    /// The server for the table. Reads its files.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub fn target(&self) -> Result<Target, ConfiguredServerError> {
        let key = self
            .api_key_file
            .as_deref()
            .map(KeyFile::open)
            .transpose()?
            .map(Arc::new);
        let name = self.name.clone();
        let name = name.unwrap_or_else(|| self.url.default_name());
        let upstream = Upstream::Http {
            url: self.url.clone(),
            key,
        };
        let mut target = Target::new(name, upstream);
        target.weight = self.weight;
        target.wording = self.decisions.as_deref().map(wording).transpose()?;
        Ok(target)
    }
}

fn wording(path: &Path) -> Result<Arc<Wording>, ConfiguredServerError> {
    let file = files::read_text(path, MAX_FILE_BYTES as u64).map_err(|source| {
        ConfiguredServerError::Unreadable {
            path: path.to_owned(),
            source,
        }
    })?;
    let refused = |problem: String| ConfiguredServerError::Questions {
        path: path.to_owned(),
        problem,
    };
    let contract =
        Contract::import(file.text.as_bytes()).map_err(|error| refused(error.to_string()))?;
    match decision::relay_contract().first_shape_difference(&contract) {
        None => Ok(Arc::new(Wording::new(contract))),
        Some(difference) => Err(refused(format!(
            "their shape is not that of Relay's questions: {difference}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_their_mistakes_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("decisions.json");
        let questions = decision::RELAY_DECISIONS_JSON;
        for (name, text, problem) in [
            ("ours", questions.to_owned(), None),
            (
                "reworded",
                questions.replace("instructions\": \"", "instructions\": \"Now: "),
                None,
            ),
            ("no JSON", "{".to_owned(), Some("")),
            (
                "an option more",
                questions.replacen("\"question\":", "\"poem\": null, \"question\":", 1),
                Some("their shape is not"),
            ),
        ] {
            std::fs::write(&path, &text).unwrap();
            let server = ConfiguredServer {
                decisions: Some(path.clone()),
                ..ConfiguredServer::at("http://127.0.0.1:8000".parse().unwrap())
            };
            match (server.target(), problem) {
                (Ok(target), None) => assert_eq!(target.name, "127.0.0.1:8000", "{name}"),
                (Err(error), Some(problem)) => {
                    assert!(error.to_string().contains(problem), "{name}: {error}");
                }
                (other, _) => panic!("{name}: {other:?}"),
            }
        }
    }
}
