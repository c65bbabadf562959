//! Regular expressions of Go (RE2) for the `regex` crate. The two agree on most of the syntax; where they do not, the text
//! is translated: `\d`, `\w`, `\s` and `\b` are ASCII in Go, `[` and `&&` inside a class are literal there, `{` that opens
//! no repetition is literal, `\Q…\E` and octal escapes exist. What Go refuses is refused: stacked repetitions, counts
//! above 1,000, look-around, back-references. Known gaps: `\B` is refused, and Go's limit on the product of nested counts
//! is not looked at.

use std::iter::Peekable;
use std::str::Chars;

use regex::Regex;

/// Go refuses larger counts.
const COUNT_MAX: u32 = 1_000;
/// What one expression may take compiled.
const SIZE_MAX: usize = 4 << 20;

/// A compiled expression and its Go source.
#[derive(Debug)]
pub(super) struct Pattern {
    source: String,
    regex: Regex,
}

impl Pattern {
    /// Compiles Go syntax.
    pub(super) fn compile(source: &str) -> Result<Self, String> {
        Ok(Self { source: source.to_owned(), regex: go_regex(source)? })
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// An expression in Go's syntax.
pub(super) fn go_regex(source: &str) -> Result<Regex, String> {
    let translated = Translation::new(source).run()?;
    regex::RegexBuilder::new(&translated).size_limit(SIZE_MAX).build().map_err(|error| error.to_string())
}

/// What the last thing written was, so that stacked repetitions are seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Nothing that can be repeated.
    Nothing,
    Atom,
    Repeat,
    /// A repetition with its mark for laziness.
    LazyRepeat,
}

struct Translation<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
    last: Last,
}

impl<'a> Translation<'a> {
    fn new(source: &'a str) -> Self {
        Self { rest: source.chars().peekable(), out: String::with_capacity(source.len() + 16), last: Last::Nothing }
    }

    fn run(mut self) -> Result<String, String> {
        while let Some(c) = self.rest.next() {
            match c {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '{' => self.brace()?,
                '*' | '+' => self.repeat(&c.to_string())?,
                '?' if self.last == Last::Repeat => {
                    self.out.push('?');
                    self.last = Last::LazyRepeat;
                }
                '?' => self.repeat("?")?,
                '(' => self.group()?,
                '|' => self.write("|", Last::Nothing),
                '^' | '$' | '.' | ')' => self.write(&c.to_string(), Last::Atom),
                c => self.literal(c),
            }
        }
        Ok(self.out)
    }

    fn write(&mut self, text: &str, last: Last) {
        self.out.push_str(text);
        self.last = last;
    }

    fn literal(&mut self, c: char) {
        self.write(&regex::escape(&c.to_string()), Last::Atom);
    }

    fn repeat(&mut self, operator: &str) -> Result<(), String> {
        match self.last {
            Last::Atom => {
                self.write(operator, Last::Repeat);
                Ok(())
            }
            Last::Nothing => Err(format!("missing argument to repetition operator {operator:?}")),
            Last::Repeat | Last::LazyRepeat => Err(format!("nested repetition operator {operator:?}")),
        }
    }

    /// `{2}`, `{2,}`, `{2,5}`; anything else is a literal brace.
    fn brace(&mut self) -> Result<(), String> {
        let ahead: String = self.rest.clone().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
        let closed = self.rest.clone().nth(ahead.chars().count()) == Some('}');
        let (low, high) = ahead.split_once(',').map_or((ahead.as_str(), None), |(low, high)| (low, Some(high)));
        let is_count = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let valid = closed && is_count(low) && high.is_none_or(|high| high.is_empty() || is_count(high));
        if !valid {
            self.literal('{');
            return Ok(());
        }
        let count = |text: &str| text.parse::<u32>().ok().filter(|count| *count <= COUNT_MAX);
        let least = count(low).ok_or_else(|| format!("repeat count {low} is above {COUNT_MAX}"))?;
        if let Some(high) = high.filter(|high| !high.is_empty())
            && count(high).is_none_or(|most| most < least)
        {
            return Err(format!("invalid repeat count {{{ahead}}}"));
        }
        for _ in 0..=ahead.chars().count() {
            self.rest.next();
        }
        self.repeat(&format!("{{{ahead}}}"))
    }

    /// `(…)`, `(?:…)`, `(?P<name>…)`, `(?<name>…)` and flags.
    fn group(&mut self) -> Result<(), String> {
        if self.rest.peek() != Some(&'?') {
            self.write("(", Last::Nothing);
            return Ok(());
        }
        self.rest.next();
        let head: String = self.rest.clone().take_while(|c| !matches!(c, ':' | ')' | '>')).collect();
        let named = head.strip_prefix("P<").or_else(|| head.strip_prefix('<')).is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        let flags = head.chars().all(|c| matches!(c, 'i' | 'm' | 's' | 'U' | '-'));
        if !named && !flags {
            return Err(format!("group (?{head} is not known"));
        }
        for _ in 0..head.chars().count() {
            self.rest.next();
        }
        let end = self.rest.next().ok_or("missing closing )")?;
        self.write(&format!("(?{head}{end}"), Last::Nothing);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), String> {
        let c = self.rest.next().ok_or("trailing backslash at end of expression")?;
        match c {
            'd' | 'w' | 's' => self.write(&format!("[{}]", perl_class(c)), Last::Atom),
            'D' | 'W' | 'S' => self.write(&format!("[^{}]", perl_class(c)), Last::Atom),
            'b' => self.write(r"(?-u:\b)", Last::Atom),
            'A' => self.write(r"\A", Last::Atom),
            'z' => self.write(r"\z", Last::Atom),
            'p' | 'P' => {
                let property = self.property(c)?;
                self.write(&property, Last::Atom);
            }
            'Q' => self.quoted(),
            c => {
                let plain = self.escaped_char(c)?;
                self.literal(plain);
            }
        }
        Ok(())
    }

    /// `\Q…\E`: every character stands for itself.
    fn quoted(&mut self) {
        while let Some(c) = self.rest.next() {
            if c == '\\' && self.rest.peek() == Some(&'E') {
                self.rest.next();
                return;
            }
            self.literal(c);
        }
    }

    /// `\pL` and `\p{Greek}`.
    fn property(&mut self, mark: char) -> Result<String, String> {
        let first = self.rest.next().ok_or("unfinished \\p")?;
        if first != '{' {
            return Ok(format!("\\{mark}{first}"));
        }
        let name: String = self.rest.by_ref().take_while(|c| *c != '}').collect();
        Ok(format!("\\{mark}{{{name}}}"))
    }

    /// The character that an escape stands for, in a class as outside.
    fn escaped_char(&mut self, c: char) -> Result<char, String> {
        match c {
            'a' => Ok('\u{7}'),
            'f' => Ok('\u{c}'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\u{b}'),
            'x' => self.hexadecimal(),
            '0'..='7' => self.octal(c),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Ok(c),
            c => Err(format!("invalid escape sequence \\{c}")),
        }
    }

    fn hexadecimal(&mut self) -> Result<char, String> {
        let digits: String = if self.rest.peek() == Some(&'{') {
            self.rest.next();
            self.rest.by_ref().take_while(|c| *c != '}').collect()
        } else {
            self.rest.by_ref().take(2).collect()
        };
        u32::from_str_radix(&digits, 16)
            .ok()
            .filter(|_| digits.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(char::from_u32)
            .ok_or_else(|| format!("invalid escape sequence \\x{digits}"))
    }

    /// `\0`, `\07`, `\123`; a single `\1` would be a back-reference, which Go has not.
    fn octal(&mut self, first: char) -> Result<char, String> {
        let mut digits = first.to_string();
        while digits.len() < 3 && self.rest.peek().is_some_and(|c| ('0'..='7').contains(c)) {
            digits.extend(self.rest.next());
        }
        if first != '0' && digits.len() == 1 {
            return Err(format!("invalid escape sequence \\{first}"));
        }
        u32::from_str_radix(&digits, 8)
            .ok()
            .and_then(char::from_u32)
            .ok_or_else(|| format!("invalid escape sequence \\{digits}"))
    }

    fn class(&mut self) -> Result<(), String> {
        let mut class = String::from("[");
        if self.rest.peek() == Some(&'^') {
            self.rest.next();
            class.push('^');
        }
        let mut first = true;
        loop {
            match self.rest.next().ok_or("missing closing ]")? {
                ']' if !first => break,
                '[' if self.rest.peek() == Some(&':') && self.named_class(&mut class)? => {}
                '\\' if matches!(self.rest.peek(), Some('d' | 'w' | 's' | 'D' | 'W' | 'S' | 'p' | 'P')) => {
                    self.class_shorthand(&mut class)?;
                }
                c => self.class_range(c, &mut class)?,
            }
            first = false;
        }
        class.push(']');
        self.write(&class, Last::Atom);
        Ok(())
    }

    /// `[:alpha:]`; answers whether there was one.
    fn named_class(&mut self, class: &mut String) -> Result<bool, String> {
        let ahead: String = self.rest.clone().skip(1).take_while(|c| c.is_ascii_lowercase() || *c == '^').collect();
        let end: String = self.rest.clone().skip(1 + ahead.len()).take(2).collect();
        if end != ":]" {
            return Ok(false);
        }
        const NAMES: [&str; 14] = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
            "word", "xdigit",
        ];
        if !NAMES.contains(&ahead.trim_start_matches('^')) {
            return Err(format!("invalid character class range [:{ahead}:]"));
        }
        for _ in 0..ahead.len() + 3 {
            self.rest.next();
        }
        class.push_str(&format!("[:{ahead}:]"));
        Ok(true)
    }

    fn class_shorthand(&mut self, class: &mut String) -> Result<(), String> {
        let c = self.rest.next().ok_or("missing closing ]")?;
        match c {
            'd' | 'w' | 's' => class.push_str(perl_class(c)),
            'D' | 'W' | 'S' => class.push_str(&format!("[^{}]", perl_class(c))),
            mark => class.push_str(&self.property(mark)?),
        }
        Ok(())
    }

    fn class_range(&mut self, first: char, class: &mut String) -> Result<(), String> {
        let low = self.class_char(first)?;
        let mut ahead = self.rest.clone();
        if ahead.next() == Some('-') && ahead.next().is_some_and(|c| c != ']') {
            self.rest.next();
            let next = self.rest.next().ok_or("missing closing ]")?;
            let high = self.class_char(next)?;
            if high < low {
                return Err(format!("invalid character class range {low}-{high}"));
            }
            class.push_str(&format!("\\x{{{:x}}}-\\x{{{:x}}}", u32::from(low), u32::from(high)));
        } else {
            class.push_str(&format!("\\x{{{:x}}}", u32::from(low)));
        }
        Ok(())
    }

    fn class_char(&mut self, c: char) -> Result<char, String> {
        match c {
            '\\' => {
                let escaped = self.rest.next().ok_or("missing closing ]")?;
                self.escaped_char(escaped)
            }
            c => Ok(c),
        }
    }
}

/// Go's Perl classes hold ASCII only.
const fn perl_class(mark: char) -> &'static str {
    match mark {
        'd' | 'D' => "0-9",
        'w' | 'W' => "0-9A-Za-z_",
        _ => r"\t\n\f\r ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_they_mean_in_go() {
        for (pattern, text, matches) in [
            ("^[a-z]([-a-z0-9]*[a-z0-9])?$", "a-b", true),
            ("^[a-z]([-a-z0-9]*[a-z0-9])?$", "a-", false),
            ("^(0(\\.[0-9]{1,6})?|1(\\.0{1,6})?)$", "0.95", true),
            ("^\\d+$", "12", true),
            ("^\\d+$", "١٢", false),
            ("^\\w$", "é", false),
            ("^[\\w-]+$", "a-b_9", true),
            ("^[^\\s]$", "\u{a0}", true),
            ("^\\S$", "\u{a0}", true),
            ("^[[]$", "[", true),
            ("^[a&&b]+$", "a&b", true),
            ("^[]a]$", "]", true),
            ("^[^]a]$", "b", true),
            ("^a{$", "a{", true),
            ("^a{,2}$", "a{,2}", true),
            ("^a{2,3}$", "aaa", true),
            ("^\\Qa.b\\E$", "a.b", true),
            ("^\\Qa.b\\E$", "axb", false),
            ("^\\x41\\x{42}\\103$", "ABC", true),
            ("^[[:alpha:]]+$", "abc", true),
            ("(?i)^abc$", "ABC", true),
            ("(?s)^a.b$", "a\nb", true),
            ("^a.b$", "a\nb", false),
            ("a$", "a\n", false),
            ("^[^D]$", "\n", true),
            ("^(?P<x>a)(?<y>b)$", "ab", true),
            ("^[\\]\\-]$", "-", true),
            ("^[--/]$", ".", true),
            ("^[~~a]$", "~", true),
            ("\\bfoo\\b", "éfoo", true),
            ("^a+?b*?$", "aab", true),
            ("^\\p{Greek}\\pL$", "αb", true),
            ("^\\_\\/$", "_/", true),
            ("^é$", "é", true),
        ] {
            let compiled = Pattern::compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(compiled.is_match(text), matches, "{pattern} on {text:?}");
            assert_eq!(compiled.source(), pattern);
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for pattern in [
            "a**", "a{2}{3}", "*a", "a|*", "(+", "a{1001}", "a{3,2}", "[b-a]", "[a", "(a", "a)", "\\1", "\\y", "[\\y]",
            "(?=a)", "(?<!a)", "(?x)a", "\\", "[[:what:]]", "\\x{110000}", "\\xg1", "\\p{Nonsense}", "(?P<a-b>c)", "a??*",
        ] {
            assert!(Pattern::compile(pattern).is_err(), "{pattern} should be refused");
        }
    }
}
