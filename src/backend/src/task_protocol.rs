//! What a task says (control-plane 13): lines `PROGRESS {json}` on either stream, one `RESULT {json}` at the end, and log
//! text between. Everything here is read from a program that may be anybody's, so it is bounded, and control characters
//! are escaped before they reach a status or a terminal. Pure.

use serde_json::Value;

use crate::observed::Progress;

/// Longest line that is looked at; the rest of a longer one is not.
pub const MAX_LINE_BYTES: usize = 64 << 10;
/// Longest RESULT.
pub const MAX_RESULT_BYTES: usize = 256 << 10;
/// Most bytes of log text that are kept of one that ended.
pub const MAX_TAIL_BYTES: usize = 4 << 10;
/// Longest word of a PROGRESS line: a phase, a file.
const MAX_WORD_CHARS: usize = 256;

/// What the output of a task says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Said {
    /// The last PROGRESS line that can be read.
    pub progress: Option<Progress>,
    /// The last RESULT, or the last line where that is a JSON object with `ok`.
    pub result: Option<Value>,
    /// The end of the log text: no PROGRESS or RESULT that could be read, at most [`MAX_TAIL_BYTES`], escaped.
    pub tail: String,
}

/// Reads whole output, both streams mixed.
#[must_use]
pub fn read(output: &[u8]) -> Said {
    let mut said = Said::default();
    let mut text = String::new();
    let mut last = None;
    for line in output.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let read = Line::read(line);
        match read {
            Line::Progress(progress) => said.progress = Some(progress),
            Line::Result(result) => said.result = Some(result),
            Line::Text(ref words) => push_bounded(&mut text, words),
        }
        last = Some(line);
    }
    // A trainer of another hand may end with the bare object; only the very last line counts.
    if said.result.is_none()
        && let Some(result) = last.and_then(object_with_ok)
    {
        said.result = Some(result);
    }
    said.tail = tail(&text, MAX_TAIL_BYTES);
    said
}

/// A result as a file holds it: `/work/result.json`.
#[must_use]
pub fn result_file(content: &[u8]) -> Option<Value> {
    object_with_ok(content)
}

/// Control characters but tab and newline become `\x1b` and so on: what is shown moves no cursor and rings no bell.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            // The second range of controls, the marks that turn text around, and the separators that break lines.
            c if c.is_control()
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}') =>
            {
                let code = u32::from(c);
                if code < 0x100 {
                    out.push_str(&format!("\\x{code:02x}"));
                } else {
                    out.push_str(&format!("\\u{{{code:x}}}"));
                }
            }
            c => out.push(c),
        }
    }
    out
}

/// The last `limit` bytes of escaped text at most, whole characters, and whole lines where one fits.
#[must_use]
pub fn tail(text: &str, limit: usize) -> String {
    let escaped = escape(text.trim_end());
    if escaped.len() <= limit {
        return escaped;
    }
    let mut from = escaped.len() - limit;
    while !escaped.is_char_boundary(from) {
        from += 1;
    }
    let cut = &escaped[from..];
    match cut.split_once('\n') {
        Some((_, rest)) if !rest.is_empty() => rest.to_owned(),
        _ => cut.to_owned(),
    }
}

enum Line {
    Progress(Progress),
    Result(Value),
    Text(String),
}

impl Line {
    fn read(line: &[u8]) -> Self {
        if let Some(json) = after_word(line, b"RESULT")
            && let Some(result) = object_with_ok(json)
        {
            return Self::Result(result);
        }
        let line = &line[..line.len().min(MAX_LINE_BYTES)];
        if let Some(json) = after_word(line, b"PROGRESS")
            && let Ok(progress) = serde_json::from_slice::<Progress>(json)
        {
            return Self::Progress(bounded(progress));
        }
        Self::Text(String::from_utf8_lossy(line).into_owned())
    }
}

fn after_word<'a>(line: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    line.strip_prefix(word)?.strip_prefix(b" ")
}

fn object_with_ok(json: &[u8]) -> Option<Value> {
    let json = json.trim_ascii();
    if json.len() > MAX_RESULT_BYTES || json.first() != Some(&b'{') {
        return None;
    }
    let value: Value = serde_json::from_slice(json).ok()?;
    value["ok"].is_boolean().then_some(value)
}

fn bounded(progress: Progress) -> Progress {
    let word = |text: String| escape(&text.chars().take(MAX_WORD_CHARS).collect::<String>());
    Progress {
        phase: word(progress.phase),
        done: progress.done.clamp(0.0, 1.0),
        file: progress.file.map(word),
        ..progress
    }
}

/// Adds a line, and forgets what no tail can need: escaping makes nothing shorter.
fn push_bounded(text: &mut String, line: &str) {
    if text.len() + line.len() > 2 * MAX_LINE_BYTES {
        let mut from = text.len().saturating_sub(MAX_TAIL_BYTES);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        text.drain(..from);
    }
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_progress_and_the_result_are_found_among_log_text() {
        let output = b"starting\nPROGRESS {\"phase\":\"fetch\",\"done\":0.25,\"file\":\"a\",\"bytes\":5,\"total\":20}\n\
            PROGRESS {\"phase\":\"fetch\",\"done\":7,\"loss\":0.5}\r\nPROGRESS not json\nwarning: \x1b[31mred\n\
            RESULT {\"ok\":true,\"digest\":\"sha256:0\"}\n";
        let said = read(output);
        let progress = said.progress.unwrap();
        assert_eq!((progress.phase.as_str(), progress.done), ("fetch", 1.0));
        assert_eq!(said.result, Some(json!({"ok": true, "digest": "sha256:0"})));
        assert_eq!(
            said.tail,
            "starting\nPROGRESS not json\nwarning: \\x1b[31mred"
        );
    }

    #[test]
    fn what_counts_as_a_result() {
        let long = format!(r#"{{"ok":true,"x":"{}"}}"#, "y".repeat(MAX_RESULT_BYTES));
        let middle = format!(r#"RESULT {{"ok":true,"x":"{}"}}"#, "y".repeat(100 << 10));
        let cases: [(&str, &str, bool); 9] = [
            ("bare last line", "a\n{\"ok\":false}\n\n", true),
            ("bare line, not the last", "{\"ok\":false}\nbye\n", false),
            ("without ok", "RESULT {\"digest\":1}", false),
            ("ok is no boolean", "RESULT {\"ok\":1}", false),
            ("cut", "RESULT {\"ok\":true", false),
            ("a list", "RESULT [true]", false),
            ("nothing", "", false),
            ("too long", &long, false),
            ("longer than a log line may be", &middle, true),
        ];
        for (name, output, found) in cases {
            assert_eq!(read(output.as_bytes()).result.is_some(), found, "{name}");
        }
        let both = read(b"RESULT {\"ok\":true}\n{\"ok\":false}");
        assert_eq!(both.result, Some(json!({"ok": true})), "the word wins");
    }

    #[test]
    fn a_tail_is_bounded_escaped_and_begins_with_a_line() {
        let text: String = (0..2000).map(|n| format!("line {n}\u{7}\n")).collect();
        let said = read(text.as_bytes());
        assert!(said.tail.len() <= MAX_TAIL_BYTES);
        assert!(said.tail.starts_with("line "), "{}", &said.tail[..20]);
        assert!(said.tail.ends_with("line 1999\\x07"));
        assert_eq!(tail("äöü", 3), "ü", "no half characters");
        assert_eq!(escape("a\u{202e}b\u{9b}c\r"), "a\\u{202e}b\\x9bc\\x0d");
    }
}
