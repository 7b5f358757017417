//! The grammar of JAAS files, as Java reads it:
//!
//! ```text
//! Server {
//!     org.apache.zookeeper.server.auth.DigestLoginModule required
//!     user_super="adminsecret"
//!     user_bob="bobsecret";
//! };
//! ```
//!
//! Own code because a file that a Java server takes has to be taken here, whatever its corners: the tests compare with
//! a Java runtime, `golden/jaas.txt`.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

/// Entries by the name of their section.
pub type Sections = BTreeMap<String, Vec<Entry>>;

/// One login module of a section.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// The Java class.
    pub module: String,
    /// The line it stands in.
    pub line: usize,
    /// Its options by name; of one that stands twice the last counts.
    pub options: BTreeMap<String, String>,
}

/// What is wrong with a file, and where. It shows nothing of what stands in quotes, which may be a password.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct Malformed {
    /// The line.
    pub line: usize,
    /// What was wanted, what was found.
    pub problem: String,
}

/// Reads a text.
///
/// # Errors
/// It is not of the grammar.
pub fn parse(text: &str) -> Result<Sections, Malformed> {
    let mut parser = Parser::new(text);
    let mut sections = Sections::new();
    while parser.token != Token::End {
        let line = parser.line;
        let (name, entries) = parser.section()?;
        // A name that is no word belongs to no section that can be asked for.
        let Some(name) = name else {
            continue;
        };
        if sections.insert(name.clone(), entries).is_some() {
            return Err(Malformed {
                line,
                problem: format!("a second section named {name}"),
            });
        }
    }
    Ok(sections)
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Quoted(String),
    /// Java reads numbers where they stand without quotes, and has no use for them.
    Number,
    Sign(char),
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => formatter.write_str(word),
            Token::Quoted(_) => formatter.write_str("a text in quotes"),
            Token::Number => formatter.write_str("a number (put it in quotes)"),
            Token::Sign(sign) => formatter.write_str(sign.encode_utf8(&mut [0; 4])),
            Token::End => formatter.write_str("the end of the file"),
        }
    }
}

/// One token ahead.
struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    line: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        let mut parser = Parser {
            lexer: Lexer::new(text),
            token: Token::End,
            line: 1,
        };
        parser.advance();
        parser
    }

    fn advance(&mut self) -> Token {
        let next = self.lexer.next();
        self.line = self.lexer.token_line;
        std::mem::replace(&mut self.token, next)
    }

    /// Java takes any token for the name.
    fn section(&mut self) -> Result<(Option<String>, Vec<Entry>), Malformed> {
        let name = match self.advance() {
            Token::Word(name) | Token::Quoted(name) => Some(name),
            Token::Number | Token::Sign(_) | Token::End => None,
        };
        self.sign('{')?;
        let mut entries = Vec::new();
        while self.token != Token::Sign('}') {
            entries.push(self.entry()?);
        }
        self.sign('}')?;
        self.sign(';')?;
        Ok((name, entries))
    }

    fn entry(&mut self) -> Result<Entry, Malformed> {
        const FLAGS: [&str; 4] = ["required", "requisite", "sufficient", "optional"];
        let line = self.line;
        let module = self.text("the class of a login module")?;
        let flag_line = self.line;
        let flag = self.text(&format!("one of {FLAGS:?}"))?;
        if !FLAGS.iter().any(|known| known.eq_ignore_ascii_case(&flag)) {
            return Err(Malformed {
                line: flag_line,
                problem: format!("{module} is not followed by one of {FLAGS:?}"),
            });
        }
        let mut options = BTreeMap::new();
        while self.token != Token::Sign(';') {
            let name = self.text("the name of an option, or ; behind the last one")?;
            self.sign('=')?;
            let line = self.line;
            let value = self.text(&format!("the value of {name}"))?;
            // Java puts properties of its own there.
            if value.contains("${") {
                let problem = format!("the value of {name} holds ${{, which is not expanded here");
                return Err(Malformed { line, problem });
            }
            options.insert(name, value);
        }
        self.sign(';')?;
        Ok(Entry {
            module,
            line,
            options,
        })
    }

    fn text(&mut self, what: &str) -> Result<String, Malformed> {
        match &self.token {
            Token::Word(_) | Token::Quoted(_) => match self.advance() {
                Token::Word(text) | Token::Quoted(text) => Ok(text),
                Token::Number | Token::Sign(_) | Token::End => Err(self.unexpected(what)),
            },
            Token::Number | Token::Sign(_) | Token::End => Err(self.unexpected(what)),
        }
    }

    fn sign(&mut self, sign: char) -> Result<(), Malformed> {
        if self.token != Token::Sign(sign) {
            return Err(self.unexpected(&sign.to_string()));
        }
        self.advance();
        Ok(())
    }

    fn unexpected(&self, wanted: &str) -> Malformed {
        Malformed {
            line: self.line,
            problem: format!("wanted {wanted}, found {}", self.token),
        }
    }
}

/// Cuts a text into tokens as Java's `StreamTokenizer` does with the settings of its JAAS reader.
struct Lexer<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
    /// Where the last token began.
    token_line: usize,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Lexer<'a> {
        Lexer {
            rest: text.chars().peekable(),
            line: 1,
            token_line: 1,
        }
    }

    fn take(&mut self) -> Option<char> {
        let sign = self.rest.next()?;
        let ends_line = sign == '\n' || (sign == '\r' && self.rest.peek() != Some(&'\n'));
        self.line += usize::from(ends_line);
        Some(sign)
    }

    fn next(&mut self) -> Token {
        loop {
            self.token_line = self.line;
            let Some(sign) = self.take() else {
                return Token::End;
            };
            match sign {
                '\0'..=' ' => {}
                '/' => self.skip_comment(),
                '"' => return Token::Quoted(self.quoted('"')),
                // Java's tokenizer knows these quotes too; the grammar has no place for them.
                '\'' => {
                    self.quoted('\'');
                    return Token::Sign('\'');
                }
                '-' | '.' | '0'..='9' => return self.number(sign),
                sign if is_word(sign) => return Token::Word(self.word(sign)),
                sign => return Token::Sign(sign),
            }
        }
    }

    /// A single slash begins a comment too; the sign behind it belongs to it, even the end of the line.
    fn skip_comment(&mut self) {
        if self.rest.peek() == Some(&'*') {
            self.take();
            let mut before = ' ';
            while let Some(sign) = self.take() {
                if (before, sign) == ('*', '/') {
                    return;
                }
                before = sign;
            }
        } else {
            self.take();
            while self
                .rest
                .peek()
                .is_some_and(|sign| !matches!(sign, '\n' | '\r'))
            {
                self.take();
            }
        }
    }

    /// Up to the closing quote, or the end of the line.
    fn quoted(&mut self, quote: char) -> String {
        let mut text = String::new();
        while let Some(&sign) = self.rest.peek() {
            if matches!(sign, '\n' | '\r') {
                break;
            }
            self.take();
            match sign {
                '\\' => text.extend(self.escaped()),
                sign if sign == quote => break,
                sign => text.push(sign),
            }
        }
        text
    }

    fn escaped(&mut self) -> Option<char> {
        let sign = self.take()?;
        Some(match sign {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '0'..='7' => self.octal(sign),
            sign => sign,
        })
    }

    /// Up to three digits, up to 377.
    fn octal(&mut self, first: char) -> char {
        let mut value = first.to_digit(8).unwrap_or_default();
        let digits = if first <= '3' { 2 } else { 1 };
        for _ in 0..digits {
            let Some(digit) = self.rest.peek().and_then(|sign| sign.to_digit(8)) else {
                break;
            };
            self.take();
            value = value * 8 + digit;
        }
        char::from_u32(value).unwrap_or_default()
    }

    fn number(&mut self, first: char) -> Token {
        if first == '-'
            && !self
                .rest
                .peek()
                .is_some_and(|sign| *sign == '.' || sign.is_ascii_digit())
        {
            return Token::Sign('-');
        }
        let mut points = usize::from(first == '.');
        while let Some(&sign) = self.rest.peek() {
            match sign {
                '.' if points == 0 => points = 1,
                '0'..='9' => {}
                _ => break,
            }
            self.take();
        }
        Token::Number
    }

    fn word(&mut self, first: char) -> String {
        let mut word = String::from(first);
        while let Some(&sign) = self.rest.peek() {
            if !is_word(sign) && !matches!(sign, '-' | '.' | '0'..='9') {
                break;
            }
            self.take();
            word.push(sign);
        }
        word
    }
}

fn is_word(sign: char) -> bool {
    sign.is_ascii_alphabetic() || matches!(sign, '$' | '_' | '*') || sign >= '\u{a0}'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden_text::unquote;

    /// Modules with their options, from the columns of a golden.
    fn expected(columns: &[&str]) -> Vec<(String, BTreeMap<String, String>)> {
        let mut entries = Vec::new();
        for pair in columns.chunks(2) {
            if pair[0] == "module" {
                entries.push((unquote(pair[1]), BTreeMap::new()));
            } else {
                let (_, options) = entries.last_mut().expect("a module first");
                options.insert(unquote(pair[0]), unquote(pair[1]));
            }
        }
        entries
    }

    #[test]
    fn files_mean_what_they_mean_to_java() {
        let mut seen = 0;
        let golden = include_str!("golden/jaas.txt");
        for line in golden.lines().filter(|line| !line.starts_with('#')) {
            let columns: Vec<&str> = line.split('\t').collect();
            let parsed = parse(&unquote(columns[0]));
            match &columns[1..] {
                ["broken"] => assert!(parsed.is_err(), "{line}: {parsed:?}"),
                ["none"] => {
                    let sections = parsed.expect(line);
                    let entries = sections.get("Server");
                    assert!(entries.is_none_or(Vec::is_empty), "{line}: {entries:?}");
                }
                columns => {
                    let mut sections = parsed.expect(line);
                    let entries = sections.remove("Server").expect(line);
                    let found: Vec<_> = entries
                        .into_iter()
                        .map(|entry| (entry.module, entry.options))
                        .collect();
                    assert_eq!(found, expected(columns), "{line}");
                }
            }
            seen += 1;
        }
        assert!(seen > 400, "only {seen} texts");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_without_passwords() {
        let problem = |text: &str| parse(text).expect_err(text).to_string();
        let module = "org.apache.zookeeper.server.auth.DigestLoginModule";
        let cases = [
            (
                format!("Server {{\n  {module} required\n  user_bob=\"secret\"\n}};\n"),
                "line 4: wanted the name of an option, or ; behind the last one, found }",
            ),
            (
                format!("Server {{\n  {module} required\n  user_bob \"secret\";\n}};\n"),
                "line 3: wanted =, found a text in quotes",
            ),
            (
                format!("Server {{\n  {module} required\n  user_bob=12;\n}};\n"),
                "line 3: wanted the value of user_bob, found a number (put it in quotes)",
            ),
            (
                format!("Server {{\n  {module}\n  user_bob=\"secret\";\n}};\n"),
                "line 3: org.apache.zookeeper.server.auth.DigestLoginModule is not followed by one of \
                 [\"required\", \"requisite\", \"sufficient\", \"optional\"]",
            ),
            (
                format!("Server {{\n  {module} required\n  user_bob=\"secret\";\n}}\n"),
                "line 5: wanted ;, found the end of the file",
            ),
            (
                "\n\nServer {\n};\nServer {\n};\n".to_owned(),
                "line 5: a second section named Server",
            ),
            (
                format!("Server {{\n  {module} required\n  user_bob=\"${{x}}\";\n}};\n"),
                "line 3: the value of user_bob holds ${, which is not expanded here",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(problem(&text), expected, "{text}");
        }
    }
}
