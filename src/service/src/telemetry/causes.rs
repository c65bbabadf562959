//! An error in one line, for logs and for people.

use std::error::Error;

/// An error and what caused it, outermost first: `cannot read x: permission denied`. A cause that an error quotes at its
/// end already, as many of other crates do, is not told again.
#[must_use]
pub fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let told = cause.to_string();
        if !text.ends_with(&told) {
            text.push_str(": ");
            text.push_str(&told);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot {what}")]
    struct Cannot<E: Error + 'static> {
        what: &'static str,
        source: E,
    }

    #[test]
    fn every_cause_is_told_outermost_first() {
        let gone = || io::Error::other("it is gone");
        let read = || Cannot {
            what: "read x",
            source: gone(),
        };
        let start = Cannot {
            what: "start",
            source: read(),
        };
        let quotes = Cannot {
            what: "read y: it is gone",
            source: gone(),
        };
        assert_eq!(causes(&quotes), "cannot read y: it is gone");
        assert_eq!(causes(&gone()), "it is gone");
        assert_eq!(causes(&read()), "cannot read x: it is gone");
        assert_eq!(causes(&start), "cannot start: cannot read x: it is gone");
    }
}
