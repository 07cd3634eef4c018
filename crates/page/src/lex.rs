//! The scanner: it knows what a keyword, a name, a string's special places and a comment are.
//!
//! Text is everything between special places, so there is no list of tokens: the parser asks for
//! what may come next. `%` without a keyword, `@` without a call and `$` without `(` are text.

/// Words that may stand behind `%`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keyword {
    Define,
    Elif,
    Else,
    Endif,
    EnvVar,
    Exec,
    ExecSql,
    Function,
    Html,
    HtmlInput,
    HtmlReport,
    If,
    Include,
    IncludeUrl,
    List,
    MacroFunction,
    Message,
    Report,
    Row,
    Sql,
    SqlMessage,
    SqlReport,
    Table,
    While,
    Xml,
}

const KEYWORDS: &[(&str, Keyword)] = &[
    ("DEFINE", Keyword::Define),
    ("ELIF", Keyword::Elif),
    ("ELSE", Keyword::Else),
    ("ENDIF", Keyword::Endif),
    ("ENVVAR", Keyword::EnvVar),
    ("EXEC", Keyword::Exec),
    ("EXEC_SQL", Keyword::ExecSql),
    ("FUNCTION", Keyword::Function),
    ("HTML", Keyword::Html),
    ("HTML_INPUT", Keyword::HtmlInput),
    ("HTML_REPORT", Keyword::HtmlReport),
    ("IF", Keyword::If),
    ("INCLUDE", Keyword::Include),
    ("INCLUDE_URL", Keyword::IncludeUrl),
    ("LIST", Keyword::List),
    ("MACRO_FUNCTION", Keyword::MacroFunction),
    ("MESSAGE", Keyword::Message),
    ("REPORT", Keyword::Report),
    ("ROW", Keyword::Row),
    ("SQL", Keyword::Sql),
    ("SQL_MESSAGE", Keyword::SqlMessage),
    ("SQL_REPORT", Keyword::SqlReport),
    ("TABLE", Keyword::Table),
    ("WHILE", Keyword::While),
    ("XML", Keyword::Xml),
];

/// Words behind `%` as they are written, for the grammar of editors.
pub fn keywords() -> impl Iterator<Item = &'static str> {
    KEYWORDS.iter().map(|(word, _)| *word)
}

/// A place of a source that is not plain text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Special {
    /// `%{`.
    Comment,
    /// `%}`.
    Close,
    Keyword(Keyword),
    /// `$(`.
    Reference,
    /// `$$(name)`.
    Hidden,
    /// `@name(`.
    Call,
}

/// Walks over a source.
#[derive(Clone, Copy)]
pub(crate) struct Scanner<'a> {
    pub(crate) source: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(source: &'a [u8]) -> Self {
        Self { source, at: 0 }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.source[self.at..]
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.source.get(self.at).copied()
    }

    /// Passes these bytes if they come next.
    pub(crate) fn eat(&mut self, bytes: &[u8]) -> bool {
        let is_next = self.rest().starts_with(bytes);
        if is_next {
            self.at += bytes.len();
        }
        is_next
    }

    /// Passes blanks and line ends.
    pub(crate) fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Passes blanks of one line.
    pub(crate) fn skip_line_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    /// Passes blanks and comments; `Err` is where a comment begins that does not end.
    pub(crate) fn skip(&mut self) -> Result<(), usize> {
        loop {
            self.skip_blanks();
            if !self.rest().starts_with(b"%{") {
                return Ok(());
            }
            self.skip_comment()?;
        }
    }

    /// Passes one comment, which begins here.
    pub(crate) fn skip_comment(&mut self) -> Result<(), usize> {
        let start = self.at;
        let end = memchr::memmem::find(&self.source[start + 2..], b"%}").ok_or(start)?;
        self.at = start + 2 + end + 2;
        Ok(())
    }

    /// The name that begins here.
    pub(crate) fn name(&mut self) -> Option<&'a str> {
        let end = name_end(self.source, self.at);
        let name = std::str::from_utf8(&self.source[self.at..end]).ok()?;
        self.at = end;
        (!name.is_empty()).then_some(name)
    }

    /// A word of letters, digits and `_`, as keywords and types are.
    pub(crate) fn word(&mut self) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(is_word_byte) {
            self.at += 1;
        }
        std::str::from_utf8(&self.source[start..self.at]).unwrap_or_default()
    }

    /// Passes this word, whatever its case.
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let mut ahead = *self;
        let is_next = ahead.word().eq_ignore_ascii_case(word);
        if is_next {
            *self = ahead;
        }
        is_next
    }

    /// The keyword behind the `%` that stands here.
    pub(crate) fn keyword(&self) -> Option<Keyword> {
        let mut ahead = *self;
        if !ahead.eat(b"%") {
            return None;
        }
        let word = ahead.word();
        let found = KEYWORDS
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(word));
        found.map(|(_, keyword)| *keyword)
    }

    /// Passes this keyword.
    pub(crate) fn eat_keyword(&mut self, keyword: Keyword) -> bool {
        let is_next = self.keyword() == Some(keyword);
        if is_next {
            self.at += 1;
            self.word();
        }
        is_next
    }

    /// What is special about this place.
    pub(crate) fn special(&self) -> Option<Special> {
        let next = self.source.get(self.at + 1).copied();
        match (self.peek()?, next) {
            (b'%', Some(b'{')) => Some(Special::Comment),
            (b'%', Some(b'}')) => Some(Special::Close),
            (b'%', _) => self.keyword().map(Special::Keyword),
            (b'$', Some(b'(')) if self.is_reference() => Some(Special::Reference),
            (b'$', Some(b'$')) if self.is_hidden() => Some(Special::Hidden),
            (b'@', _) if self.is_call() => Some(Special::Call),
            _ => None,
        }
    }

    /// Whether a name may stand behind the `$(` here. Scripts have `$("#id")`, which is text.
    fn is_reference(&self) -> bool {
        let mut ahead = Self {
            at: self.at + 2,
            ..*self
        };
        ahead.skip_line_blanks();
        match ahead.peek() {
            Some(b'@') => ahead.is_call(),
            Some(b'$') => ahead.source.get(ahead.at + 1) == Some(&b'('),
            Some(byte) => is_word_byte(byte),
            None => false,
        }
    }

    /// Whether `$$(name)` stands here.
    fn is_hidden(&self) -> bool {
        let mut ahead = Self {
            at: self.at + 2,
            ..*self
        };
        if !ahead.eat(b"(") {
            return false;
        }
        ahead.skip_line_blanks();
        let is_named = ahead.name().is_some();
        ahead.skip_line_blanks();
        is_named && ahead.eat(b")")
    }

    /// Whether `@name(` stands here.
    fn is_call(&self) -> bool {
        let end = name_end(self.source, self.at + 1);
        end > self.at + 1 && self.source.get(end) == Some(&b'(')
    }

    /// Passes text up to the next special place, or to the end.
    pub(crate) fn text(&mut self) {
        while self.at < self.source.len() && self.special().is_none() {
            self.at += 1;
            let next = memchr::memchr3(b'%', b'$', b'@', self.rest());
            self.at += next.unwrap_or(self.rest().len());
        }
    }

    /// Passes text inside a string or a computed name: up to `end`, a reference or a call. `%` is
    /// nothing special there.
    pub(crate) fn inner_text(&mut self, end: u8) {
        while let Some(byte) = self.peek() {
            let is_special = match byte {
                b'$' | b'@' => self.special().is_some(),
                _ => byte == end,
            };
            if is_special {
                return;
            }
            self.at += 1;
            let next = memchr::memchr3(end, b'$', b'@', self.rest());
            self.at += next.unwrap_or(self.rest().len());
        }
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where the name ends that begins here; here if none does.
fn name_end(source: &[u8], start: usize) -> usize {
    let is_first = |byte: &u8| is_word_byte(*byte);
    let is_later = |byte: &&u8| is_word_byte(**byte) || matches!(byte, b'.' | b'#');
    match source.get(start) {
        Some(byte) if is_first(byte) => start + source[start..].iter().take_while(is_later).count(),
        _ => start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_construct_is_text() {
        for text in [
            "100% of it",
            "a@b.example",
            "@media print",
            "$5",
            "50%off",
            "$$",
            "$(\"#id\")",
        ] {
            let mut scanner = Scanner::new(text.as_bytes());
            scanner.text();
            assert_eq!(scanner.at, text.len(), "{text}");
        }
    }

    #[test]
    fn keywords_are_whole_words_of_any_case() {
        let keyword = |text: &str| Scanner::new(text.as_bytes()).keyword();
        assert_eq!(keyword("%Define{"), Some(Keyword::Define));
        assert_eq!(keyword("%eLsE"), Some(Keyword::Else));
        assert_eq!(keyword("%elsewhere"), None);
        assert_eq!(keyword("%include_url \"x\""), Some(Keyword::IncludeUrl));
    }
}
