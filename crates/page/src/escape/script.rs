//! Where in a script the author's text is: code, a string, a comment, a regular expression.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ScriptState {
    Code,
    /// Behind a `/` in code, which is not decided yet.
    Slash,
    Text(u8),
    TextEscape(u8),
    /// Behind a `$` in a template.
    TemplateDollar,
    LineComment,
    BlockComment,
    /// Behind a `*` in a comment.
    BlockStar,
    Regex,
    RegexEscape,
    RegexClass,
    RegexClassEscape,
}

/// What data may be in a script here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ScriptSpot {
    /// The inside of a string.
    Text,
    /// Code: a number.
    Code,
    /// Letters and digits, of a comment.
    Comment,
    /// Nothing.
    Nowhere,
}

/// Follows a script.
#[derive(Clone, Debug)]
pub(super) struct ScriptPlace {
    state: ScriptState,
    /// The last bytes of code that are no blanks.
    recent: [u8; 10],
    /// For each template whose `${` is open, how many `{` are open in it.
    templates: Vec<u32>,
}

/// Words behind which a `/` begins a regular expression.
const BEFORE_REGEX: &[&[u8]] = &[
    b"return", b"typeof", b"case", b"delete", b"void", b"in", b"of",
];

impl ScriptPlace {
    pub(super) fn new() -> Self {
        Self {
            state: ScriptState::Code,
            recent: [b';'; 10],
            templates: Vec::new(),
        }
    }

    pub(super) fn spot(&self) -> ScriptSpot {
        match self.state {
            ScriptState::Text(_) | ScriptState::TemplateDollar => ScriptSpot::Text,
            ScriptState::Code => ScriptSpot::Code,
            ScriptState::LineComment | ScriptState::BlockComment | ScriptState::BlockStar => {
                ScriptSpot::Comment
            }
            _ => ScriptSpot::Nowhere,
        }
    }

    /// Data was written here. It has nothing in it that could move the place.
    pub(super) fn pass_data(&mut self) {
        match self.state {
            ScriptState::Code => self.remember(b'0'),
            ScriptState::TemplateDollar => self.state = ScriptState::Text(b'`'),
            ScriptState::BlockStar => self.state = ScriptState::BlockComment,
            _ => {}
        }
    }

    /// A byte of the author's script.
    pub(super) fn author(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (ScriptState::Code, _) => self.code(byte),
            (ScriptState::Slash, b'/') => ScriptState::LineComment,
            (ScriptState::Slash, b'*') => ScriptState::BlockComment,
            (ScriptState::Slash, _) => self.behind_slash(byte),
            (ScriptState::Text(quote), b'\\') => ScriptState::TextEscape(quote),
            (ScriptState::Text(b'`'), b'$') => ScriptState::TemplateDollar,
            (ScriptState::Text(quote), _) if byte == quote => self.end_text(quote),
            (ScriptState::Text(quote), b'\n') if quote != b'`' => ScriptState::Code,
            (ScriptState::TextEscape(quote), _) => ScriptState::Text(quote),
            (ScriptState::TemplateDollar, b'{') => {
                self.templates.push(0);
                self.remember(b'{');
                ScriptState::Code
            }
            (ScriptState::TemplateDollar, b'`') => self.end_text(b'`'),
            (ScriptState::TemplateDollar, b'$') => ScriptState::TemplateDollar,
            (ScriptState::TemplateDollar, b'\\') => ScriptState::TextEscape(b'`'),
            (ScriptState::TemplateDollar, _) => ScriptState::Text(b'`'),
            (ScriptState::LineComment, b'\n') => ScriptState::Code,
            (ScriptState::BlockComment, b'*') => ScriptState::BlockStar,
            (ScriptState::BlockStar, b'/') => ScriptState::Code,
            (ScriptState::BlockStar, b'*') => ScriptState::BlockStar,
            (ScriptState::BlockStar, _) => ScriptState::BlockComment,
            (ScriptState::Regex | ScriptState::RegexClass, b'\n') => ScriptState::Code,
            (ScriptState::Regex, _) => self.regex(byte),
            (ScriptState::RegexEscape, _) => ScriptState::Regex,
            (ScriptState::RegexClass, b']') => ScriptState::Regex,
            (ScriptState::RegexClass, b'\\') => ScriptState::RegexClassEscape,
            (ScriptState::RegexClassEscape, _) => ScriptState::RegexClass,
            (state, _) => state,
        };
    }

    fn code(&mut self, byte: u8) -> ScriptState {
        match byte {
            b'"' | b'\'' | b'`' => return ScriptState::Text(byte),
            b'/' => return ScriptState::Slash,
            b'{' => {
                if let Some(open) = self.templates.last_mut() {
                    *open += 1;
                }
            }
            b'}' => match self.templates.last_mut() {
                Some(0) => {
                    self.templates.pop();
                    return ScriptState::Text(b'`');
                }
                Some(open) => *open -= 1,
                None => {}
            },
            _ if byte.is_ascii_whitespace() => {
                // A word that ended is still the last one; what follows is not part of it.
                if self.recent[9].is_ascii_alphanumeric() {
                    self.remember(b' ');
                }
                return ScriptState::Code;
            }
            _ => {}
        }
        self.remember(byte);
        match self.recent.ends_with(b"<!--") {
            true => ScriptState::LineComment,
            false => ScriptState::Code,
        }
    }

    fn behind_slash(&mut self, byte: u8) -> ScriptState {
        if self.begins_regex() {
            return self.regex(byte);
        }
        self.remember(b'/');
        self.code(byte)
    }

    fn regex(&mut self, byte: u8) -> ScriptState {
        match byte {
            b'\\' => ScriptState::RegexEscape,
            b'[' => ScriptState::RegexClass,
            b'/' => {
                self.remember(b'0');
                ScriptState::Code
            }
            _ => ScriptState::Regex,
        }
    }

    fn begins_regex(&self) -> bool {
        let before = self.recent.trim_ascii_end();
        match before.last() {
            None => true,
            Some(byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') => {
                BEFORE_REGEX.iter().any(|word| {
                    let start = before.len() - word.len().min(before.len());
                    let is_alone = start == 0 || !before[start - 1].is_ascii_alphanumeric();
                    before.ends_with(word) && is_alone
                })
            }
            Some(byte) => !matches!(byte, b')' | b']' | b'}'),
        }
    }

    fn end_text(&mut self, _quote: u8) -> ScriptState {
        self.remember(b'0');
        ScriptState::Code
    }

    fn remember(&mut self, byte: u8) {
        self.recent.rotate_left(1);
        self.recent[9] = byte;
    }
}
