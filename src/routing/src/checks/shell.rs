//! A small reader of POSIX-like command lines: enough to know which simple commands run and whose exit status the
//! line ends with. It does not expand anything. Published splitters (`shlex` and its like) give words without
//! operators, and here the operators are the point.

/// A word of a simple command, quotes taken off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// Whether any part of it was quoted: a quoted `if` is no reserved word.
    pub(super) quoted: Quoted,
}

/// Whether quotes or backslashes made part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoted {
    Yes,
    No,
}

/// What stands between and around simple commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;`, a line break, and what ends a branch of `case`.
    Then,
    /// `&`
    Background,
    /// `|` and `|&`
    Pipe,
    /// `(`
    Open,
    /// `)`
    Close,
}

/// A piece of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    Operator(Operator),
}

/// Cuts a command line into words and operators. Redirections, comments and here-documents are left out. Total: what
/// is not closed ends with the text.
pub(super) fn tokens(line: &str) -> Vec<Token> {
    let mut reader = Reader {
        chars: line.chars().collect(),
        at: 0,
        tokens: Vec::new(),
        documents: Vec::new(),
    };
    while let Some(c) = reader.peek(0) {
        reader.step(c);
    }
    reader.tokens
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    tokens: Vec<Token>,
    /// Delimiters of here-documents that begin after this line.
    documents: Vec<String>,
}

impl Reader {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn operator(&mut self, operator: Operator, length: usize) {
        self.at += length;
        self.tokens.push(Token::Operator(operator));
    }

    fn step(&mut self, c: char) {
        let next = self.peek(1);
        match c {
            '\n' => {
                self.operator(Operator::Then, 1);
                self.skip_documents();
            }
            _ if c.is_whitespace() => self.at += 1,
            '\\' if next == Some('\n') => self.at += 2,
            '#' => self.skip_comment(),
            '&' if next == Some('&') => self.operator(Operator::And, 2),
            '&' if next == Some('>') => self.redirection(),
            '&' => self.operator(Operator::Background, 1),
            '|' if next == Some('|') => self.operator(Operator::Or, 2),
            '|' if next == Some('&') => self.operator(Operator::Pipe, 2),
            '|' => self.operator(Operator::Pipe, 1),
            ';' => self.operator(Operator::Then, 1),
            '(' => self.operator(Operator::Open, 1),
            ')' => self.operator(Operator::Close, 1),
            '<' | '>' if next != Some('(') => self.redirection(),
            _ => {
                if let Some(word) = self.word() {
                    self.tokens.push(Token::Word(word));
                }
            }
        }
    }

    fn skip_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    /// Skips an operator like `2>&1`, `>>`, `<<<` or `<<EOF` with its target.
    fn redirection(&mut self) {
        let start = self.at;
        while self
            .peek(0)
            .is_some_and(|c| matches!(c, '<' | '>' | '&' | '|' | '-'))
        {
            self.at += 1;
        }
        let operator: String = self.chars[start..self.at].iter().collect();
        while self.peek(0).is_some_and(|c| c == ' ' || c == '\t') {
            self.at += 1;
        }
        let target = self.word();
        if matches!(operator.as_str(), "<<" | "<<-")
            && let Some(delimiter) = target
        {
            self.documents.push(delimiter.text);
        }
    }

    /// Skips the lines of the here-documents that begin here.
    fn skip_documents(&mut self) {
        for delimiter in std::mem::take(&mut self.documents) {
            while self.at < self.chars.len() {
                let end = self.chars[self.at..]
                    .iter()
                    .position(|c| *c == '\n')
                    .map_or(self.chars.len(), |n| self.at + n);
                let line: String = self.chars[self.at..end].iter().collect();
                self.at = (end + 1).min(self.chars.len());
                if line.trim_start_matches('\t') == delimiter {
                    break;
                }
            }
        }
    }

    /// Reads one word, or `None` where an operator stands or a number turned out to name a file descriptor.
    fn word(&mut self) -> Option<Word> {
        let mut word = Word {
            text: String::new(),
            quoted: Quoted::No,
        };
        let start = self.at;
        while let Some(c) = self.peek(0) {
            match c {
                '\'' | '"' => {
                    word.quoted = Quoted::Yes;
                    self.quoted(c, &mut word.text);
                }
                '\\' => {
                    word.quoted = Quoted::Yes;
                    word.text
                        .extend(self.peek(1).filter(|escaped| *escaped != '\n'));
                    self.at = (self.at + 2).min(self.chars.len());
                }
                '`' => self.quoted(c, &mut word.text),
                '$' | '<' | '>' if self.peek(1) == Some('(') => self.substitution(&mut word.text),
                '<' | '>' => {
                    let descriptor = self.chars[start..self.at].iter().all(char::is_ascii_digit);
                    return (!descriptor && self.at > start).then_some(word);
                }
                '&' | '|' | ';' | '(' | ')' => break,
                _ if c.is_whitespace() => break,
                _ => {
                    word.text.push(c);
                    self.at += 1;
                }
            }
        }
        (self.at > start).then_some(word)
    }

    /// Reads up to the closing `quote`. In double quotes and backticks a backslash protects the next character.
    fn quoted(&mut self, quote: char, text: &mut String) {
        self.at += 1;
        while let Some(c) = self.peek(0) {
            self.at += 1;
            if c == quote {
                return;
            }
            if c == '\\' && quote != '\'' {
                if let Some(escaped) = self.peek(0) {
                    if !matches!(escaped, '"' | '\\' | '$' | '`' | '\n') {
                        text.push(c);
                    }
                    text.extend((escaped != '\n').then_some(escaped));
                    self.at += 1;
                }
            } else {
                text.push(c);
            }
        }
    }

    /// Reads `$(…)` or `<(…)` whole: its commands do not decide the status of this one.
    fn substitution(&mut self, text: &mut String) {
        let mut depth = 0_usize;
        while let Some(c) = self.peek(0) {
            match c {
                '\'' | '"' | '`' => {
                    self.quoted(c, text);
                    continue;
                }
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            text.push(c);
            self.at += 1;
            if c == ')' && depth == 0 {
                return;
            }
        }
    }
}

/// A list of commands, each after the other.
pub(super) type List = Vec<AndOr>;

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct AndOr {
    pub(super) pipelines: Vec<Pipeline>,
    /// What stands between them, one less than there are pipelines.
    pub(super) joins: Vec<Operator>,
    /// Whether it ends with `&`.
    pub(super) background: bool,
}

/// Commands joined by `|`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Pipeline {
    pub(super) commands: Vec<Command>,
}

/// One command of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Simple(Vec<Word>),
    /// `( … )`; `{ … }` is read as one too.
    Group(List),
}

/// Deepest nesting of groups; what is deeper is read flat.
const MOST_GROUPS: usize = 32;

/// Reads a command line as a list.
pub(super) fn parse(line: &str) -> List {
    let tokens = tokens(line);
    let mut at = 0;
    let mut list = Vec::new();
    while at < tokens.len() {
        list.extend(parse_list(&tokens, &mut at, 0));
        at += 1; // a closing bracket without an opening one ends a list like `;`
    }
    list
}

fn parse_list(tokens: &[Token], at: &mut usize, depth: usize) -> List {
    let mut list = Vec::new();
    let mut item = AndOr::default();
    let mut pipeline = Pipeline::default();
    let mut words: Vec<Word> = Vec::new();
    while let Some(token) = tokens.get(*at) {
        if opens_group(token, &words) && depth < MOST_GROUPS {
            *at += 1;
            pipeline
                .commands
                .push(Command::Group(parse_list(tokens, at, depth + 1)));
            *at += 1;
            continue;
        }
        if depth > 0 && closes_group(token, &words) {
            break;
        }
        match token {
            Token::Word(word) => words.push(word.clone()),
            Token::Operator(Operator::Close) if depth == 0 => break,
            Token::Operator(operator) => {
                end_command(&mut words, &mut pipeline);
                match operator {
                    Operator::Pipe => {}
                    Operator::And | Operator::Or => {
                        item.pipelines.push(std::mem::take(&mut pipeline));
                        item.joins.push(*operator);
                    }
                    _ => {
                        item.background = *operator == Operator::Background;
                        end_item(&mut item, &mut pipeline, &mut list);
                    }
                }
            }
        }
        *at += 1;
    }
    end_command(&mut words, &mut pipeline);
    end_item(&mut item, &mut pipeline, &mut list);
    list
}

fn opens_group(token: &Token, words: &[Word]) -> bool {
    match token {
        Token::Operator(Operator::Open) => true,
        Token::Word(word) => words.is_empty() && word.text == "{" && word.quoted == Quoted::No,
        Token::Operator(_) => false,
    }
}

fn closes_group(token: &Token, words: &[Word]) -> bool {
    match token {
        Token::Operator(Operator::Close) => true,
        Token::Word(word) => words.is_empty() && word.text == "}" && word.quoted == Quoted::No,
        Token::Operator(_) => false,
    }
}

fn end_command(words: &mut Vec<Word>, pipeline: &mut Pipeline) {
    if !words.is_empty() {
        pipeline
            .commands
            .push(Command::Simple(std::mem::take(words)));
    }
}

fn end_item(item: &mut AndOr, pipeline: &mut Pipeline, list: &mut List) {
    if !pipeline.commands.is_empty() {
        item.pipelines.push(std::mem::take(pipeline));
    }
    let ended = std::mem::take(item);
    if !ended.pipelines.is_empty() {
        list.push(ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words as they are, operators as signs.
    fn shown(line: &str) -> String {
        let sign = |operator: &Operator| match operator {
            Operator::And => "&&",
            Operator::Or => "||",
            Operator::Then => ";",
            Operator::Background => "&",
            Operator::Pipe => "|",
            Operator::Open => "(",
            Operator::Close => ")",
        };
        let show = |token: &Token| match token {
            Token::Word(word) => format!("<{}>", word.text),
            Token::Operator(operator) => sign(operator).to_owned(),
        };
        tokens(line).iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn reads_words_and_operators() {
        let rows = [
            ("words", "cargo  test -p\tx", "<cargo> <test> <-p> <x>"),
            (
                "operators without spaces",
                "a&&b||c;d|e&f",
                "<a> && <b> || <c> ; <d> | <e> & <f>",
            ),
            (
                "quotes hide operators",
                r#"echo "a && b" 'c; d' e\ f"#,
                "<echo> <a && b> <c; d> <e f>",
            ),
            ("quotes inside a word", r#"--x="a b"c"#, "<--x=a bc>"),
            (
                "escapes in double quotes",
                r#"echo "a\"b\n""#,
                r#"<echo> <a"b\n>"#,
            ),
            (
                "redirections go",
                "a 2>&1 >out.txt 2>/dev/null </in b &>log c",
                "<a> <b> <c>",
            ),
            (
                "a number is no descriptor elsewhere",
                "exit 2",
                "<exit> <2>",
            ),
            ("a word may end at a redirection", "a>b c", "<a> <c>"),
            ("comments go", "a # b && c\nd#e", "<a> ; <d#e>"),
            ("line continuation", "a \\\n b", "<a> <b>"),
            ("pipe with errors", "a |& b", "<a> | <b>"),
            (
                "here-documents go",
                "cat <<'EOF' | a\npytest\n EOF\nEOF\nb",
                "<cat> | <a> ; <b>",
            ),
            (
                "indented here-document",
                "cat <<-X\n\tpytest\n\tX\nb",
                "<cat> ; <b>",
            ),
            ("here-strings go", "a <<< 'b c' d", "<a> <d>"),
            (
                "substitutions stay inside their word",
                "a $(b && c (d)) <(e; f)",
                "<a> <$(b && c (d))> <<(e; f)>",
            ),
            ("groups", "(a; b)", "( <a> ; <b> )"),
            (
                "what is not closed ends with the text",
                "a 'b && c",
                "<a> <b && c>",
            ),
            ("an empty word is a word", "a '' b", "<a> <> <b>"),
            ("trailing backslash", "a \\", "<a> <>"),
        ];
        for (name, line, expected) in rows {
            assert_eq!(shown(line), expected, "{name}");
        }
    }

    #[test]
    fn reads_lists_pipelines_and_groups() {
        let list = parse("a && b | c; { d; (e) } & f )  g");
        let sizes: Vec<_> = list
            .iter()
            .map(|item| (item.pipelines.len(), item.background))
            .collect();
        assert_eq!(sizes, [(2, false), (1, true), (1, false), (1, false)]);
        assert_eq!(list[0].joins, [Operator::And]);
        assert_eq!(list[0].pipelines[1].commands.len(), 2);
        let Command::Group(inner) = &list[1].pipelines[0].commands[0] else {
            panic!("a group")
        };
        assert_eq!(inner.len(), 2);
        assert!(matches!(
            inner[1].pipelines[0].commands[0],
            Command::Group(_)
        ));
        assert!(parse(" ;; \n").is_empty());
        assert_eq!(
            parse(&"(".repeat(10_000)).len(),
            1,
            "deep nesting is read flat"
        );
    }
}
