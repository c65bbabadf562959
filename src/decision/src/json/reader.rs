//! Bytes to values (wire.md 4.1). No recursion: depth costs heap, never stack.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::encoding::{self, Malformed};
use super::text::push_code_point;
use super::{Integer, Object, Text, Value};

/// At most this many containers inside each other, the outermost included.
pub const MAX_DEPTH: usize = 962;

/// At most this many digits in an integer, its sign not counted.
pub const MAX_INTEGER_DIGITS: usize = 4300;

/// Why bytes are no JSON. Offsets count bytes of the input after a byte order mark, in UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A sequence that its encoding does not allow.
    #[error("malformed text at byte {offset}")]
    MalformedText {
        /// Where, in bytes as sent.
        offset: usize,
    },
    /// Something else stands where `expected` should.
    #[error("expected {expected} at byte {offset}")]
    Expected {
        /// What was looked for.
        expected: &'static str,
        /// Where.
        offset: usize,
    },
    /// A raw control character in a string.
    #[error("unescaped control character in a string at byte {offset}")]
    ControlCharacter {
        /// Where.
        offset: usize,
    },
    /// An escape that JSON does not have.
    #[error("invalid escape at byte {offset}")]
    InvalidEscape {
        /// Where.
        offset: usize,
    },
    /// Too many containers inside each other.
    #[error("more than {MAX_DEPTH} levels of nesting at byte {offset}")]
    TooDeep {
        /// Where.
        offset: usize,
    },
    /// Too many digits.
    #[error("an integer of more than {MAX_INTEGER_DIGITS} digits at byte {offset}")]
    IntegerTooLong {
        /// Where.
        offset: usize,
    },
}

/// Reads one JSON value. A repeated key keeps its first position and takes its last value, at every depth.
///
/// # Errors
/// Every way in which the bytes are not one JSON value, see [`ReadError`].
pub fn read(bytes: &[u8]) -> Result<Value, ReadError> {
    read_with(bytes, Duplicates::LastValue)
}

/// Like [`read`], but keeps every member of an object, for readers that refuse repeated keys by their path.
///
/// # Errors
/// As [`read`].
pub fn read_keeping_duplicates(bytes: &[u8]) -> Result<Value, ReadError> {
    read_with(bytes, Duplicates::Keep)
}

#[derive(Clone, Copy)]
enum Duplicates {
    LastValue,
    Keep,
}

fn read_with(bytes: &[u8], duplicates: Duplicates) -> Result<Value, ReadError> {
    let text = encoding::decode(bytes)
        .map_err(|Malformed { offset }| ReadError::MalformedText { offset })?;
    let mut reader = Reader {
        text: &text,
        at: 0,
        duplicates,
    };
    let value = reader.document()?;
    reader.skip_space();
    if reader.peek().is_some() {
        return Err(reader.expected("the end of the text"));
    }
    Ok(value)
}

/// A container that is still open.
enum Open {
    List(Vec<Value>),
    Object { members: Members, key: Text },
}

/// What a token opened or completed.
enum Step {
    Opened(Open),
    Value(Value),
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    duplicates: Duplicates,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Value, ReadError> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            let mut value = match self.begin_value(open.len())? {
                Step::Opened(container) => {
                    open.push(container);
                    continue;
                }
                Step::Value(value) => value,
            };
            // Hand the value to its container, and close as many containers as end here.
            loop {
                let Some(container) = open.pop() else {
                    return Ok(value);
                };
                match self.put(container, value)? {
                    Step::Opened(container) => {
                        open.push(container);
                        break;
                    }
                    Step::Value(closed) => value = closed,
                }
            }
        }
    }

    /// Reads a scalar or an empty container, or opens a container up to its first value.
    fn begin_value(&mut self, depth: usize) -> Result<Step, ReadError> {
        self.skip_space();
        let Some(first) = self.peek() else {
            return Err(self.expected("a value"));
        };
        if matches!(first, b'{' | b'[') && depth == MAX_DEPTH {
            return Err(ReadError::TooDeep { offset: self.at });
        }
        match first {
            b'{' => {
                self.at += 1;
                self.skip_space();
                if self.take(b'}') {
                    return Ok(Step::Value(Value::Object(Object::new())));
                }
                let key = self.key()?;
                Ok(Step::Opened(Open::Object {
                    members: Members::new(self.duplicates),
                    key,
                }))
            }
            b'[' => {
                self.at += 1;
                self.skip_space();
                Ok(if self.take(b']') {
                    Step::Value(Value::List(Vec::new()))
                } else {
                    Step::Opened(Open::List(Vec::new()))
                })
            }
            _ => self.scalar(first).map(Step::Value),
        }
    }

    /// Adds a value to its container and reads on to the next value or to the end of the container.
    fn put(&mut self, container: Open, value: Value) -> Result<Step, ReadError> {
        self.skip_space();
        match container {
            Open::List(mut items) => {
                items.push(value);
                if self.take(b',') {
                    Ok(Step::Opened(Open::List(items)))
                } else if self.take(b']') {
                    Ok(Step::Value(Value::List(items)))
                } else {
                    Err(self.expected("`,` or `]`"))
                }
            }
            Open::Object { mut members, key } => {
                members.insert(key, value);
                if self.take(b',') {
                    self.skip_space();
                    let key = self.key()?;
                    Ok(Step::Opened(Open::Object { members, key }))
                } else if self.take(b'}') {
                    Ok(Step::Value(Value::Object(members.finish())))
                } else {
                    Err(self.expected("`,` or `}`"))
                }
            }
        }
    }

    fn key(&mut self) -> Result<Text, ReadError> {
        if !self.take(b'"') {
            return Err(self.expected("a key in double quotes"));
        }
        let key = self.string()?;
        self.skip_space();
        if self.take(b':') {
            Ok(key)
        } else {
            Err(self.expected("`:`"))
        }
    }

    fn scalar(&mut self, first: u8) -> Result<Value, ReadError> {
        if first == b'"' {
            self.at += 1;
            return self.string().map(Value::String);
        }
        for (word, value) in [
            (&b"null"[..], Value::Null),
            (b"true", Value::Bool(true)),
            (b"false", Value::Bool(false)),
            (b"NaN", Value::Float(f64::NAN)),
            (b"Infinity", Value::Float(f64::INFINITY)),
            (b"-Infinity", Value::Float(f64::NEG_INFINITY)),
        ] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        self.number()
    }

    /// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?` of RFC 8259.
    fn number(&mut self) -> Result<Value, ReadError> {
        let start = self.at;
        self.take(b'-');
        let digits_from = self.at;
        if !self.take(b'0') && self.skip_digits() == 0 {
            self.at = start;
            return Err(self.expected("a value"));
        }
        let digits = self.at - digits_from;
        let mut is_float = false;
        if self.take(b'.') {
            is_float = true;
            if self.skip_digits() == 0 {
                return Err(self.expected("a digit"));
            }
        }
        if self.take(b'e') || self.take(b'E') {
            is_float = true;
            let _signed = self.take(b'+') || self.take(b'-');
            if self.skip_digits() == 0 {
                return Err(self.expected("a digit"));
            }
        }
        let unreadable = ReadError::Expected {
            expected: "a number",
            offset: start,
        };
        let Ok(literal) = std::str::from_utf8(&self.text[start..self.at]) else {
            return Err(unreadable);
        };
        if is_float {
            return literal.parse().map(Value::Float).map_err(|_| unreadable);
        }
        if digits > MAX_INTEGER_DIGITS {
            return Err(ReadError::IntegerTooLong { offset: start });
        }
        Ok(Value::Integer(Integer::from_json_digits(literal)))
    }

    /// The rest of a string whose opening quote has been read.
    fn string(&mut self) -> Result<Text, ReadError> {
        let mut bytes = Vec::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0x00..=0x1F))
                .unwrap_or(rest.len());
            bytes.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Text::from_generalised_utf8(bytes));
                }
                Some(b'\\') => self.escape(&mut bytes)?,
                Some(_) => return Err(ReadError::ControlCharacter { offset: self.at }),
                None => return Err(self.expected("`\"`")),
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let invalid = ReadError::InvalidEscape { offset: self.at };
        self.at += 1;
        let Some(letter) = self.peek() else {
            return Err(invalid);
        };
        self.at += 1;
        bytes.push(match letter {
            b'"' | b'\\' | b'/' => letter,
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let Some(code) = self.hex_unit(self.at) else {
                    return Err(invalid);
                };
                self.at += 4;
                push_code_point(bytes, self.join_low_surrogate(code));
                return Ok(());
            }
            _ => return Err(invalid),
        });
        Ok(())
    }

    /// Only two escapes side by side join: a high surrogate takes a following `\u` low surrogate.
    fn join_low_surrogate(&mut self, code: u32) -> u32 {
        if (0xD800..0xDC00).contains(&code)
            && self.text[self.at..].starts_with(b"\\u")
            && let Some(low @ 0xDC00..=0xDFFF) = self.hex_unit(self.at + 2)
        {
            self.at += 6;
            return 0x1_0000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        }
        code
    }

    /// Four hexadecimal digits from an offset.
    fn hex_unit(&self, from: usize) -> Option<u32> {
        self.text
            .get(from..from + 4)?
            .iter()
            .try_fold(0, |code, digit| {
                Some((code << 4) | char::from(*digit).to_digit(16)?)
            })
    }

    fn skip_digits(&mut self) -> usize {
        let rest = &self.text[self.at..];
        let digits = rest
            .iter()
            .position(|byte| !byte.is_ascii_digit())
            .unwrap_or(rest.len());
        self.at += digits;
        digits
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expected(&self, expected: &'static str) -> ReadError {
        ReadError::Expected {
            expected,
            offset: self.at,
        }
    }
}

/// Members of an object under construction. Small objects look their keys up by walking, large ones by hash, so that a
/// body of a hundred thousand keys costs no quadratic time.
struct Members {
    list: Vec<(Text, Value)>,
    /// Hash of a key → positions with that hash; filled once the list is long.
    by_hash: HashMap<u64, Vec<usize>>,
    duplicates: Duplicates,
}

impl Members {
    const WALK_UP_TO: usize = 16;

    fn new(duplicates: Duplicates) -> Self {
        Self {
            list: Vec::new(),
            by_hash: HashMap::new(),
            duplicates,
        }
    }

    fn insert(&mut self, key: Text, value: Value) {
        if matches!(self.duplicates, Duplicates::Keep) {
            self.list.push((key, value));
            return;
        }
        match self.position(&key) {
            Some(position) => self.list[position].1 = value,
            None => {
                if !self.by_hash.is_empty() {
                    self.by_hash
                        .entry(hash(&key))
                        .or_default()
                        .push(self.list.len());
                }
                self.list.push((key, value));
                if self.list.len() == Self::WALK_UP_TO {
                    for (position, (key, _)) in self.list.iter().enumerate() {
                        self.by_hash.entry(hash(key)).or_default().push(position);
                    }
                }
            }
        }
    }

    fn position(&self, key: &Text) -> Option<usize> {
        if self.by_hash.is_empty() {
            return self.list.iter().position(|(name, _)| name == key);
        }
        self.by_hash
            .get(&hash(key))?
            .iter()
            .copied()
            .find(|&position| self.list[position].0 == *key)
    }

    fn finish(self) -> Object {
        Object::from_members(self.list)
    }
}

fn hash(key: &Text) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
