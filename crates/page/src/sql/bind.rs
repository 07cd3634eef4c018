//! Makes a statement of a text: each value of data becomes a parameter, or the text is refused.
//!
//! ```text
//! WHERE kind = '<DATA>' AND title LIKE '%<DATA>%' AND cents > <DATA>
//! WHERE kind = ?        AND title LIKE ?          AND cents > ?
//! ```
//!
//! A literal with data in it becomes one parameter. Data without quotes is one where a value may
//! stand (`place`). As a name, a keyword, an order, glued to something or in a comment it is
//! refused, unless the author has listed it. So the shape of a statement, which is its text, comes
//! from the author alone.

use crate::fault::FunctionFault;
use crate::value::{Direction, Marks, Provenance, Text};

use super::database::{BoundKind, BoundValue, Procedure, ProcedureParameter, Statement};
use super::place::SqlPlace;

/// The return code of a statement that was refused because data stood where none may.
pub const REFUSED: i64 = -9001;

/// What the author of a page says about statements.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BindRules {
    /// `DTW_SQL_IDENT`: what data may be where a name stands.
    pub names: Vec<String>,
    /// `DB_CASE`: `Some(true)` makes what is not quoted upper case, `Some(false)` lower case.
    pub is_upper: Option<bool>,
}

/// Makes a statement of a text, or says why it is refused.
pub fn bind(text: &Text, rules: &BindRules) -> Result<Statement, FunctionFault> {
    let mut binder = Binder::new(rules, text.bytes().len());
    for (bytes, provenance) in text.runs() {
        match provenance.is_data() {
            true => binder.data(bytes, provenance)?,
            false => binder.author_text(bytes)?,
        }
    }
    binder.finish()
}

/// A parameter of a function, as a call of a stored procedure needs it.
pub(crate) struct CallParameter<'a> {
    pub(crate) name: &'a str,
    pub(crate) sql_type: Option<&'a str>,
    pub(crate) direction: Direction,
    pub(crate) value: &'a Text,
}

/// If a statement is `CALL name` without arguments, gives it the parameters of its function.
pub(crate) fn bind_call(
    statement: &mut Statement,
    result_sets: usize,
    parameters: &[CallParameter<'_>],
) {
    let text = statement.text.trim();
    let is_call = text.len() > 5
        && text.is_char_boundary(4)
        && text[..4].eq_ignore_ascii_case("call")
        && text[4..].starts_with(char::is_whitespace);
    let name = text.get(4..).unwrap_or_default().trim();
    if !is_call || name.contains(|c: char| c == '(' || c.is_whitespace()) {
        return;
    }
    let procedure = Procedure {
        name: name.to_string(),
        parameters: parameters.iter().map(CallParameter::described).collect(),
        result_sets,
    };
    let marks = vec!["?"; parameters.len()].join(", ");
    statement.text = format!("CALL {}({marks})", procedure.name);
    let values = parameters
        .iter()
        .map(|parameter| match parameter.direction {
            Direction::Out => BoundValue {
                kind: BoundKind::Null,
                value: Vec::new(),
            },
            _ => typed(parameter.value.bytes(), parameter.sql_type),
        });
    statement.parameters = values.collect();
    statement.procedure = Some(procedure);
}

impl CallParameter<'_> {
    fn described(&self) -> ProcedureParameter {
        ProcedureParameter {
            name: self.name.into(),
            sql_type: self.sql_type.map(Into::into),
            is_out: self.direction != Direction::In,
            is_in: self.direction != Direction::Out,
        }
    }
}

/// A value of the type that its parameter has; text for types of characters.
fn typed(value: &[u8], sql_type: Option<&str>) -> BoundValue {
    let is_text = sql_type.is_some_and(|name| name.contains("CHAR") || name.contains("GRAPHIC"));
    match is_text {
        true => BoundValue {
            kind: BoundKind::Text,
            value: value.to_vec(),
        },
        false => unquoted(value),
    }
}

/// A value that stood without quotes.
fn unquoted(value: &[u8]) -> BoundValue {
    let digits = value
        .strip_prefix(b"-")
        .or_else(|| value.strip_prefix(b"+"))
        .unwrap_or(value);
    let is_digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let point = digits.iter().position(|byte| *byte == b'.');
    let kind = match point {
        _ if value.is_empty() => BoundKind::Null,
        None if is_digits(digits) && digits.len() <= 18 => BoundKind::Integer,
        Some(at) if is_digits(&digits[..at]) && is_digits(&digits[at + 1..]) => BoundKind::Decimal,
        _ => BoundKind::Text,
    };
    BoundValue {
        kind,
        value: value.to_vec(),
    }
}

/// What the text is inside of.
#[derive(Clone, PartialEq, Eq, Debug)]
enum SqlState {
    Normal,
    Literal,
    /// Behind a `'` in a literal: another one belongs to it, anything else is behind its end.
    LiteralQuote,
    /// Behind a `\` in a literal that knows escapes.
    LiteralEscape,
    /// A name in quotes, up to this byte.
    Name(u8),
    LineComment,
    BlockComment,
    /// `$tag$ ... $tag$`: its tag, and where its text begins.
    Dollar(Vec<u8>, usize),
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

struct Binder<'r> {
    rules: &'r BindRules,
    out: Vec<u8>,
    values: Vec<BoundValue>,
    state: SqlState,
    place: SqlPlace,
    /// Where in `out` the word begins that is being passed.
    word_start: Option<usize>,
    /// The last whole word before the token here, and where it began.
    last_word: Option<(usize, usize)>,
    /// A value was passed, and nothing since.
    is_behind_value: bool,
    has_own_mark: bool,
    /// A comment began inside a comment: databases do not agree about where it ends.
    is_unclear: bool,
    literal: LiteralPart,
}

/// The literal being passed.
#[derive(Default)]
struct LiteralPart {
    /// Where it begins in `out`, without its prefix.
    start: usize,
    content: Vec<u8>,
    has_data: bool,
    has_escapes: bool,
}

impl<'r> Binder<'r> {
    fn new(rules: &'r BindRules, byte_count: usize) -> Self {
        Self {
            rules,
            out: Vec::with_capacity(byte_count),
            values: Vec::new(),
            state: SqlState::Normal,
            place: SqlPlace::new(),
            word_start: None,
            last_word: None,
            is_behind_value: false,
            has_own_mark: false,
            is_unclear: false,
            literal: LiteralPart::default(),
        }
    }

    /// The author's text.
    fn author_text(&mut self, bytes: &[u8]) -> Result<(), FunctionFault> {
        let mut rest = bytes;
        while let Some(byte) = rest.first() {
            self.author(*byte)?;
            rest = &rest[1..];
            // What goes on with a word changes nothing.
            if self.word_start.is_some() && self.rules.is_upper.is_none() {
                let is_behind = |byte: &u8| !is_word(*byte);
                let end = rest.iter().position(is_behind).unwrap_or(rest.len());
                self.out.extend_from_slice(&rest[..end]);
                rest = &rest[end..];
            }
        }
        Ok(())
    }

    /// One byte of it.
    fn author(&mut self, byte: u8) -> Result<(), FunctionFault> {
        match &self.state {
            SqlState::Normal => return self.author_normal(byte),
            SqlState::LiteralQuote => return self.author_behind_quote(byte),
            SqlState::Literal => match byte {
                b'\'' => self.state = SqlState::LiteralQuote,
                b'\\' if self.literal.has_escapes => {
                    self.literal.content.push(byte);
                    self.state = SqlState::LiteralEscape;
                }
                _ => self.literal.content.push(byte),
            },
            SqlState::LiteralEscape => {
                self.literal.content.push(byte);
                self.state = SqlState::Literal;
            }
            SqlState::Name(end) => {
                if byte == *end {
                    self.state = SqlState::Normal;
                    self.place.operand();
                }
            }
            SqlState::LineComment => {
                if byte == b'\n' {
                    self.state = SqlState::Normal;
                }
            }
            SqlState::BlockComment => match (self.out.last(), byte) {
                (Some(b'*'), b'/') => {
                    self.out.push(byte);
                    // What ends a comment does not begin one.
                    self.out.push(b' ');
                    self.state = SqlState::Normal;
                    return Ok(());
                }
                (Some(b'/'), b'*') => self.is_unclear = true,
                _ => {}
            },
            SqlState::Dollar(tag, start) => {
                let text = &self.out[*start..];
                if byte == b'$' && text.ends_with(&tag[..tag.len() - 1]) {
                    self.state = SqlState::Normal;
                    self.place.operand();
                }
            }
        }
        self.out.push(byte);
        Ok(())
    }

    fn author_normal(&mut self, byte: u8) -> Result<(), FunctionFault> {
        let glues =
            is_word(byte) || matches!(byte, b'\'' | b'"' | b'`' | b'[' | b'.' | b'(' | b'#');
        if self.is_behind_value && glues {
            return refuse("data is glued to what stands behind it");
        }
        self.is_behind_value = false;
        if is_word(byte) {
            self.word_start.get_or_insert(self.out.len());
            self.out.push(match self.rules.is_upper {
                Some(true) => byte.to_ascii_uppercase(),
                Some(false) => byte.to_ascii_lowercase(),
                None => byte,
            });
            return Ok(());
        }
        let prefix = self.word_start;
        self.end_word();
        match byte {
            b'\'' => self.begin_literal(prefix)?,
            b'"' | b'`' => self.state = SqlState::Name(byte),
            b'[' => self.state = SqlState::Name(b']'),
            b'-' if self.out.last() == Some(&b'-') => self.state = SqlState::LineComment,
            b'*' if self.out.last() == Some(&b'/') => self.state = SqlState::BlockComment,
            b'$' => self.begin_dollar(prefix),
            b'?' => self.has_own_mark = true,
            _ if byte.is_ascii_whitespace() => {}
            _ => self.place.sign(byte),
        }
        self.out.push(byte);
        Ok(())
    }

    fn end_word(&mut self) {
        if let Some(start) = self.word_start.take() {
            self.place.word(&self.out[start..]);
            self.last_word = Some((start, self.out.len()));
        }
    }

    /// A `'` begins a literal. Right before it may stand a prefix like the one of `N'text'`.
    fn begin_literal(&mut self, prefix: Option<usize>) -> Result<(), FunctionFault> {
        let prefix = prefix.map(|start| self.out[start..].to_ascii_uppercase());
        self.literal.content.clear();
        self.literal.has_data = false;
        self.literal.start = self.out.len();
        self.literal.has_escapes = prefix.as_deref() == Some(b"E");
        self.state = SqlState::Literal;
        Ok(())
    }

    /// `$tag$` begins text that ends at the next `$tag$`.
    fn begin_dollar(&mut self, prefix: Option<usize>) {
        let before = prefix.unwrap_or(self.out.len());
        let is_second = before > 0 && self.out[before - 1] == b'$';
        if is_second {
            let mut tag = self.out[before - 1..].to_vec();
            tag.push(b'$');
            self.state = SqlState::Dollar(tag, self.out.len() + 1);
        } else {
            self.place.operand();
        }
    }

    /// Behind a `'` inside a literal.
    fn author_behind_quote(&mut self, byte: u8) -> Result<(), FunctionFault> {
        if byte == b'\'' {
            self.literal.content.push(b'\'');
            self.state = SqlState::Literal;
            self.out.push(byte);
            return Ok(());
        }
        self.end_literal()?;
        self.author_normal(byte)
    }

    /// The literal has ended; its last quote is still to be written.
    fn end_literal(&mut self) -> Result<(), FunctionFault> {
        self.state = SqlState::Normal;
        self.place.operand();
        if !self.literal.has_data {
            let start = self.literal.start;
            self.out.truncate(start + 1);
            for byte in &self.literal.content {
                self.out.push(*byte);
                if *byte == b'\'' && !self.literal.has_escapes {
                    self.out.push(b'\'');
                }
            }
            self.out.push(b'\'');
            return Ok(());
        }
        let mut start = self.literal.start;
        let mut cast = None;
        if let Some((word_start, word_end)) = self.last_word {
            let between = &self.out[word_end..start];
            let word = self.out[word_start..word_end].to_ascii_uppercase();
            match (&word[..], between) {
                (b"N", b"") => start = word_start,
                (b"B" | b"BX" | b"E" | b"G" | b"GX" | b"Q" | b"R" | b"U" | b"UX" | b"X", b"") => {
                    return refuse("data stands in a literal with a prefix");
                }
                (b"DATE" | b"INTERVAL" | b"TIME" | b"TIMESTAMP", _)
                    if between.trim_ascii().is_empty() =>
                {
                    start = word_start;
                    cast = Some(word);
                }
                _ => {}
            }
        }
        self.out.truncate(start);
        match cast {
            None => self.out.push(b'?'),
            Some(word) => {
                self.out.extend_from_slice(b"CAST(? AS ");
                self.out.extend_from_slice(&word);
                self.out.push(b')');
            }
        }
        self.last_word = None;
        self.values.push(BoundValue {
            kind: BoundKind::Text,
            value: std::mem::take(&mut self.literal.content),
        });
        self.is_behind_value = true;
        Ok(())
    }

    /// A value of data.
    fn data(&mut self, bytes: &[u8], provenance: Provenance) -> Result<(), FunctionFault> {
        if self.state == SqlState::LiteralQuote {
            self.end_literal()?;
        }
        let value = undoubled(bytes, provenance);
        match self.state {
            SqlState::Literal => {
                self.literal.has_data = true;
                self.literal.content.extend_from_slice(&value);
                return Ok(());
            }
            SqlState::Normal if self.takes_value() => {
                self.out.push(b'?');
                self.values.push(unquoted(&value));
                self.place.operand();
                self.last_word = None;
                self.is_behind_value = true;
                return Ok(());
            }
            _ if value.is_empty() => return Ok(()),
            _ => {}
        }
        if value.is_empty() {
            return Ok(());
        }
        let mut names = self.rules.names.iter();
        if names.any(|name| name.as_bytes() == &value[..]) {
            return self.author_text(&value);
        }
        refuse(match self.state {
            SqlState::Name(_) => "data stands in a name in quotes",
            SqlState::LineComment | SqlState::BlockComment => "data stands in a comment",
            SqlState::Dollar(..) => "data stands in a text between dollar signs",
            SqlState::LiteralEscape => "data stands behind a backslash",
            _ if self.word_start.is_some() || self.is_behind_value => {
                "data is glued to what stands before it"
            }
            _ => "data stands where a name or a keyword is expected",
        })
    }

    fn takes_value(&self) -> bool {
        self.word_start.is_none() && !self.is_behind_value && self.place.takes_value()
    }

    fn finish(mut self) -> Result<Statement, FunctionFault> {
        match self.state {
            SqlState::LiteralQuote => self.end_literal()?,
            SqlState::Normal => self.end_word(),
            SqlState::Literal | SqlState::LiteralEscape => {
                return refuse("a literal has no closing quote");
            }
            SqlState::LineComment => {}
            _ => return refuse("a name in quotes or a comment has no end"),
        }
        let has_values = !self.values.is_empty();
        if has_values && self.is_unclear {
            return refuse("a comment stands in a comment, and databases do not agree on its end");
        }
        if has_values && self.has_own_mark {
            return refuse("the statement has a `?` of its own beside data");
        }
        let text = String::from_utf8_lossy(&self.out);
        let text = text.trim().trim_end_matches(';').trim_end().to_string();
        Ok(Statement {
            text,
            parameters: self.values,
            procedure: None,
        })
    }
}

/// The value as it was before its quotes were doubled.
fn undoubled(bytes: &[u8], provenance: Provenance) -> Vec<u8> {
    if !provenance.marks.has(Marks::QUOTED) {
        return bytes.to_vec();
    }
    let mut value = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        value.push(*byte);
        if *byte == b'\'' && rest.as_slice().first() == Some(&b'\'') {
            rest.next();
        }
    }
    value
}

fn refuse<T>(why: &str) -> Result<T, FunctionFault> {
    let message = format!("the statement is refused: {why}");
    Err(FunctionFault::new(REFUSED, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::ValueOrigin;

    /// A statement of a text in which `«...»` is data of a client.
    fn bound(text: &str) -> Result<Statement, FunctionFault> {
        bind(&marked(text), &BindRules::default())
    }

    fn marked(text: &str) -> Text {
        let mut made = Text::new();
        for (index, part) in text.split(['«', '»']).enumerate() {
            match index % 2 {
                0 => made.push_macro(part.as_bytes()),
                _ => made.push(part.as_bytes(), Provenance::of(ValueOrigin::Client)),
            }
        }
        made
    }

    fn shape(text: &str) -> String {
        bound(text).expect("the statement is bound").text
    }

    #[test]
    fn a_literal_with_data_is_one_parameter() {
        let statement = bound("SELECT a FROM t WHERE k = '«x' OR '1'='1»' AND t LIKE '%«q»%';")
            .expect("the statement is bound");
        assert_eq!(statement.text, "SELECT a FROM t WHERE k = ? AND t LIKE ?");
        let values: Vec<_> = statement.parameters.iter().map(|p| &p.value[..]).collect();
        assert_eq!(values, [&b"x' OR '1'='1"[..], b"%q%"]);
    }

    #[test]
    fn values_without_quotes_are_parameters() {
        let text = "INSERT INTO t(a, b) VALUES («5», '«x»', «», lower(«x»))";
        assert_eq!(
            shape(text),
            "INSERT INTO t(a, b) VALUES (?, ?, ?, lower(?))"
        );
        assert_eq!(
            shape("SELECT a FROM t LIMIT «1»"),
            "SELECT a FROM t LIMIT ?"
        );
        assert_eq!(shape("UPDATE t SET a = «1»"), "UPDATE t SET a = ?");
        let text = "SELECT a FROM t WHERE a IN («1», «2») AND d > DATE '«2026-01-01»'";
        let wanted = "SELECT a FROM t WHERE a IN (?, ?) AND d > CAST(? AS DATE)";
        assert_eq!(shape(text), wanted);
        assert_eq!(shape("SELECT N'«x»', 'it''s'"), "SELECT ?, 'it''s'");
        let kinds = bound("VALUES («», «1», «1.5», «1e5»)").expect("the statement is bound");
        let kinds: Vec<_> = kinds.parameters.iter().map(|p| p.kind).collect();
        let (null, text) = (BoundKind::Null, BoundKind::Text);
        assert_eq!(kinds, [null, BoundKind::Integer, BoundKind::Decimal, text]);
    }

    #[test]
    fn data_as_anything_but_a_value_is_refused() {
        for text in [
            "SELECT a FROM «t»",
            "SELECT «a» FROM t",
            "SELECT a, «b» FROM t",
            "SELECT a FROM t ORDER BY «a»",
            "SELECT a FROM t ORDER BY a, «b»",
            "SELECT a FROM t ORDER BY a «DESC»",
            "SELECT a FROM t WHERE a «=» 5",
            "SELECT a FROM t WHERE x«y» = 5",
            "SELECT a FROM t WHERE a = «5»x",
            "SELECT a FROM t WHERE a = '«x»'«y»",
            "SELECT a FROM t -- «x»",
            "SELECT a FROM t /* «x» */",
            "SELECT \"«a»\" FROM t",
            "SELECT [«a»] FROM t",
            "SELECT $q$«a»$q$ FROM t",
            "SELECT E'\\«x»' FROM t",
            "SELECT X'«41»' FROM t",
            "UPDATE t SET «a» = 5",
            "INSERT INTO t(«a») VALUES (1)",
            "SELECT a FROM t WHERE a = ? AND b = «1»",
            "/* /* */ SELECT a FROM t WHERE b = «1»",
            "«DROP TABLE t»",
            "CALL «lib»PROC",
        ] {
            let refused = bound(text).map(|statement| statement.text);
            assert_eq!(refused.map_err(|fault| fault.code), Err(REFUSED), "{text}");
        }
    }

    #[test]
    fn names_the_author_lists_may_come_as_data() {
        let rules = BindRules {
            names: vec!["title".to_string(), "LIB.".to_string()],
            is_upper: None,
        };
        let bound = |text: &str| bind(&marked(text), &rules).map(|statement| statement.text);
        let wanted = "SELECT a FROM t WHERE b = ? ORDER BY title";
        let text = "SELECT a FROM t WHERE b = «title» ORDER BY «title»";
        assert_eq!(bound(text).as_deref(), Ok(wanted));
        assert_eq!(bound("CALL «LIB.»PROC").as_deref(), Ok("CALL LIB.PROC"));
        assert!(bound("SELECT a FROM t ORDER BY «cents»").is_err());
    }

    #[test]
    fn nothing_where_no_value_stands_is_nothing() {
        assert_eq!(
            shape("SELECT a FROM t «» ORDER BY a"),
            "SELECT a FROM t  ORDER BY a"
        );
        assert_eq!(shape("SELECT a FROM «»t"), "SELECT a FROM t");
    }
}
