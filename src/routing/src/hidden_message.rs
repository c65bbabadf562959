//! What hidden messages have in common (routing.md 15): how the harness's own messages are recognised, and how text
//! that somebody else wrote is made safe to stand on one line of them.

/// Whether a message was put there by Relay or its harness (`[laya:…]`, `[harness:…]`) and not by the user. Such
/// messages get no plan and no lessons, and are no start of a task.
#[must_use]
pub fn is_harness_message(text: &str) -> bool {
    ["[laya:", "[harness:"].iter().any(|opening| {
        let Some((name, _)) = text
            .strip_prefix(opening)
            .and_then(|rest| rest.split_once(']'))
        else {
            return false;
        };
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    })
}

/// `text` as one line: runs of white space become one space, control characters and marks that reorder text are
/// removed, ends are trimmed.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let start = line.len();
        if start > 0 {
            line.push(' ');
        }
        let before = line.len();
        line.extend(word.chars().filter(|c| !is_unsafe(*c)));
        if line.len() == before {
            line.truncate(start);
        }
    }
    line
}

/// Control characters (Cc) and the bidirectional controls, with which a line can be shown as another one.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A share as whole percent, half away from zero. What is no number is 0 %.
#[must_use]
pub fn percent(share: f64) -> String {
    let share = if share.is_finite() { share } else { 0.0 };
    format!("{}%", (share * 100.0).round())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_harness_from_the_user() {
        let rows = [
            ("[laya:plan] guidance", true),
            ("[laya:learn] label these", true),
            ("[harness:evidence]\nrun the tests", true),
            ("[laya:plan", false),
            ("[laya:] x", false),
            ("[laya:see this list: a, b] fix it", false),
            ("Explain [laya:plan] to me", false),
            ("[ui] fix the button", false),
            ("", false),
        ];
        for (text, expected) in rows {
            assert_eq!(is_harness_message(text), expected, "{text}");
        }
    }

    #[test]
    fn keeps_one_clean_line() {
        assert_eq!(
            one_line("  a\r\n\tb\u{7} \u{1b}[2Jc \u{0} d\u{202e}e "),
            "a b [2Jc de"
        );
        assert_eq!(one_line("\u{0}\n"), "");
        assert_eq!(one_line("ação 修复 👍🏽"), "ação 修复 👍🏽");
    }

    #[test]
    fn rounds_half_away_from_zero() {
        assert_eq!(percent(0.870_407), "87%");
        assert_eq!(percent(0.125), "13%");
        assert_eq!(percent(0.0), "0%");
        assert_eq!(percent(1.0), "100%");
        assert_eq!(percent(f64::NAN), "0%");
    }
}
