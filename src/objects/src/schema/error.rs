//! Why a CRD document cannot be compiled.

/// A CRD document that we refuse, with the place in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// A part of the document is missing or of the wrong form.
    #[error("{path}: {problem}")]
    Malformed {
        /// Where in the document.
        path: String,
        /// What is wrong there.
        problem: String,
    },
    /// The API server would honour it and we do not, so it must not be passed over.
    #[error("{path}: {what} is not supported here")]
    Unsupported {
        /// Where in the document.
        path: String,
        /// The keyword or value.
        what: String,
    },
    /// The schema is not structural, or breaks another demand of the API server.
    #[error("{path}: {problem}")]
    NotStructural {
        /// Where in the document.
        path: String,
        /// What is wrong there.
        problem: String,
    },
    /// A regular expression that Go's or ours does not take.
    #[error("{path}: pattern {pattern:?}: {problem}")]
    Pattern {
        /// Where in the document.
        path: String,
        /// The expression.
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A CEL rule that cannot be used.
    #[error("{path}: rule {rule:?}: {problem}")]
    Rule {
        /// Where in the document.
        path: String,
        /// The rule.
        rule: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A default that its own schema refuses.
    #[error("{path}: default is refused by its own schema: {problem}")]
    Default {
        /// Where in the document.
        path: String,
        /// The first fault.
        problem: String,
    },
}
