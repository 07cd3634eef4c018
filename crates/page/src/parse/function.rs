//! Blocks of functions, with their parameters, reports and messages.

use std::sync::Arc;

use crate::lex::Keyword;
use crate::tree::{
    Body, Declaration, FunctionBlock, FunctionBody, Language, MessageCode, MessageEntry, Parameter,
    Report,
};

use crate::value::Direction;

use super::body::BlockKind;
use super::parser::{PageParser, Parsed};

impl<'a> PageParser<'a> {
    /// `%FUNCTION(language) name(parameters) ...`.
    pub(super) fn function(&mut self, at: u32) -> Parsed<Option<Declaration>> {
        self.expect("(", "behind `%FUNCTION`")?;
        let word = self.name_text("as the language of the function")?;
        self.expect(")", "behind the language")?;
        let language = match &*word.to_ascii_uppercase() {
            "DTW_SQL" | "DTW_ODBC" | "DTW_ORA" | "DTW_SYB" => Language::Sql,
            upper => Language::Program(upper.into()),
        };
        self.function_rest(at, language)
    }

    /// `%MACRO_FUNCTION name(parameters) ...`.
    pub(super) fn macro_function(&mut self, at: u32) -> Parsed<Option<Declaration>> {
        self.function_rest(at, Language::Macro)
    }

    fn function_rest(&mut self, at: u32, language: Language) -> Parsed<Option<Declaration>> {
        let name = self.name_text("as the function's name")?;
        let parameters = self.parameters()?;
        self.skip()?;
        let mut returns = None;
        if self.scanner.eat_word("RETURNS") {
            self.expect("(", "behind `RETURNS`")?;
            returns = Some(self.name("behind `RETURNS(`")?);
            self.expect(")", "behind the name")?;
        }
        let mut function = FunctionBlock {
            name: name.into(),
            at,
            language,
            parameters,
            returns,
            body: FunctionBody::Nothing,
            reports: Vec::new(),
            messages: Vec::new(),
            is_conditional: self.declaration_depth > 0,
        };
        self.skip()?;
        if !self.scanner.eat(b";") {
            self.function_block(&mut function)?;
        }
        Ok(self.add(function))
    }

    /// Keeps the function; only one inside an `%IF` is a declaration to be passed.
    fn add(&mut self, function: FunctionBlock) -> Option<Declaration> {
        let index = self.functions.len();
        let is_conditional = function.is_conditional;
        self.functions.push(Arc::new(function));
        is_conditional.then_some(Declaration::Function(index))
    }

    fn function_block(&mut self, function: &mut FunctionBlock) -> Parsed<()> {
        let what = format!("function {}", function.name);
        self.expect("{", &format!("before the body of {what}"))?;
        let start = self.scanner.at;
        function.body = match function.language {
            Language::Macro => FunctionBody::Statements(self.body(BlockKind::Function, None)?),
            _ => {
                let mut ahead = self.scanner;
                let is_exec = ahead.skip().is_ok() && ahead.keyword() == Some(Keyword::Exec);
                if is_exec {
                    self.scanner = ahead;
                    self.take_keyword(Keyword::Exec);
                    FunctionBody::Exec(self.string_or_block("behind `%EXEC`")?)
                } else {
                    FunctionBody::Statements(self.body(BlockKind::Function, None)?)
                }
            }
        };
        loop {
            if self.eat_keyword(Keyword::Report)? {
                function.reports.push(self.report()?);
            } else if self.eat_keyword(Keyword::Message)? {
                function.messages.extend(self.messages()?);
            } else {
                return self.close(start, &what);
            }
        }
    }

    /// `%SQL { statement %SQL_REPORT { ... %} %SQL_MESSAGE { ... %} %}`, an old way to write a
    /// function without a name.
    pub(super) fn old_sql(&mut self, at: u32) -> Parsed<Option<Declaration>> {
        self.skip()?;
        let mut name = "%SQL";
        if self.scanner.eat(b"(") {
            name = self.name_text("behind `%SQL(`")?;
            self.expect(")", "behind the name")?;
        }
        self.expect("{", "behind `%SQL`")?;
        let start = self.scanner.at;
        let body = self.body(BlockKind::OldSql, None)?;
        let mut function = FunctionBlock {
            name: name.into(),
            at,
            language: Language::Sql,
            parameters: Vec::new(),
            returns: None,
            body: FunctionBody::Statements(body),
            reports: Vec::new(),
            messages: Vec::new(),
            is_conditional: self.declaration_depth > 0,
        };
        loop {
            if self.eat_keyword(Keyword::SqlReport)? {
                function.reports.push(self.report()?);
            } else if self.eat_keyword(Keyword::SqlMessage)? {
                function.messages.extend(self.messages()?);
            } else {
                self.close(start, "this %SQL block")?;
                return Ok(self.add(function));
            }
        }
    }

    /// `([IN | OUT | INOUT] [type] name, ...)`. A direction holds until the next one.
    fn parameters(&mut self) -> Parsed<Vec<Parameter>> {
        self.expect("(", "before the parameters")?;
        let mut parameters = Vec::new();
        let mut direction = Direction::In;
        self.skip()?;
        if self.scanner.eat(b")") {
            return Ok(parameters);
        }
        loop {
            self.skip()?;
            if self.scanner.eat_word("INOUT") {
                direction = Direction::InOut;
            } else if self.scanner.eat_word("IN") {
                direction = Direction::In;
            } else if self.scanner.eat_word("OUT") {
                direction = Direction::Out;
            }
            parameters.push(self.parameter(direction)?);
            self.skip()?;
            if self.scanner.eat(b")") {
                return Ok(parameters);
            }
            self.expect(",", "between the parameters, or `)`")?;
        }
    }

    fn parameter(&mut self, direction: Direction) -> Parsed<Parameter> {
        let mut sql_type = String::new();
        let mut name = self.name_text("as a parameter")?;
        loop {
            self.skip()?;
            match self.scanner.peek() {
                Some(b'(') => {
                    let start = self.scanner.at;
                    let end = memchr::memchr(b')', self.scanner.rest());
                    let Some(end) = end else {
                        return self.fail(start, "the size of this type has no `)`");
                    };
                    self.scanner.at += end + 1;
                    let size = &self.scanner.source[start..self.scanner.at];
                    push_word(&mut sql_type, name);
                    sql_type += &String::from_utf8_lossy(size);
                    name = self.name_text("behind the type of a parameter")?;
                }
                Some(b',' | b')') | None => break,
                Some(_) => {
                    push_word(&mut sql_type, name);
                    name = self.name_text("behind the type of a parameter")?;
                }
            }
        }
        let name = self.symbol(name);
        let sql_type = (!sql_type.is_empty()).then(|| sql_type.to_ascii_uppercase().into());
        Ok(Parameter {
            name,
            direction,
            sql_type,
        })
    }

    /// What stands behind `%REPORT`.
    fn report(&mut self) -> Parsed<Report> {
        self.skip()?;
        let mut result = None;
        if self.scanner.eat(b"(") {
            result = Some(self.name("behind `%REPORT(`")?);
            self.expect(")", "behind the result's name")?;
        }
        self.expect("{", "behind `%REPORT`")?;
        let start = self.scanner.at;
        let header = self.body(BlockKind::Report, None)?;
        let mut report = Report {
            result,
            header,
            row: None,
            footer: Body::from([]),
        };
        if self.take_keyword(Keyword::Row) {
            report.row = Some(self.block(BlockKind::Plain, "this %ROW block")?);
            report.footer = self.body(BlockKind::Report, None)?;
            if self.scanner.keyword() == Some(Keyword::Row) {
                return self.fail_here("a report has one %ROW block");
            }
        }
        self.close(start, "this %REPORT block")?;
        Ok(report)
    }

    /// What stands behind `%MESSAGE`.
    pub(super) fn messages(&mut self) -> Parsed<Vec<MessageEntry>> {
        self.expect("{", "behind `%MESSAGE`")?;
        let start = self.scanner.at;
        let mut entries = Vec::new();
        loop {
            self.skip()?;
            match self.scanner.peek() {
                Some(b'%') | None => break,
                Some(_) => entries.push(self.message()?),
            }
        }
        self.close(start, "this %MESSAGE block")?;
        Ok(entries)
    }

    fn message(&mut self) -> Parsed<MessageEntry> {
        let code = self.message_code()?;
        self.expect(":", "behind the code of a message")?;
        let text = self.string_or_block("behind the code of a message")?;
        let mut is_continue = false;
        self.skip()?;
        if self.scanner.eat(b":") {
            self.skip()?;
            is_continue = self.scanner.eat_word("CONTINUE");
            if !is_continue && !self.scanner.eat_word("EXIT") {
                return self.fail_here("EXIT or CONTINUE is missing behind the message");
            }
        }
        Ok(MessageEntry {
            code,
            text,
            is_continue,
        })
    }

    fn message_code(&mut self) -> Parsed<MessageCode> {
        let at = self.scanner.at;
        let sign = match self.scanner.peek() {
            Some(sign @ (b'+' | b'-')) => {
                self.scanner.at += 1;
                Some(sign)
            }
            _ => None,
        };
        self.skip()?;
        let word = self.scanner.word().to_ascii_uppercase();
        Ok(match (&*word, sign) {
            ("DEFAULT", None) => MessageCode::Default,
            ("DEFAULT", Some(b'-')) => MessageCode::NegativeDefault,
            ("DEFAULT", Some(_)) => MessageCode::PositiveDefault,
            ("SQLSTATE", None) => {
                self.expect(":", "behind SQLSTATE")?;
                self.skip()?;
                MessageCode::SqlState(self.scanner.word().into())
            }
            _ => match (word.parse::<i64>(), sign) {
                (Ok(code), Some(b'-')) => MessageCode::Exactly(-code),
                (Ok(code), _) => MessageCode::Exactly(code),
                (Err(_), _) => {
                    return self.fail(at, "a message begins with a number, DEFAULT or SQLSTATE");
                }
            },
        })
    }
}

fn push_word(text: &mut String, word: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(word);
}
