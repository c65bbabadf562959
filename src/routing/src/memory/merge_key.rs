//! The key under which two rows are the same task (training.md 2.4).

/// `request` trimmed, lower-cased and with every run of white space as one space. Marks stay: `botão` and `botao` are
/// two tasks.
#[must_use]
pub fn merge_key(request: &str) -> String {
    let mut key = String::with_capacity(request.len());
    for word in request.split_whitespace() {
        if !key.is_empty() {
            key.push(' ');
        }
        key.push_str(&word.to_lowercase());
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_case_and_white_space_only() {
        assert_eq!(
            merge_key("  fix THE   date\r\n\tparser "),
            "fix the date parser"
        );
        assert_eq!(
            merge_key("Fix the date parser"),
            merge_key("  fix THE   date parser ")
        );
        assert_eq!(merge_key("BOTÃO\u{a0}Salvar"), "botão salvar");
        assert_eq!(merge_key(" \n"), "");
    }
}
