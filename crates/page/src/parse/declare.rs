//! What stands outside of blocks: definitions, blocks, functions, messages, includes, `%IF`.

use std::sync::Arc;

use crate::lex::{Keyword, Special};
use crate::tree::{
    Conditional, Declaration, DefineEntry, DefineKind, DefineValue, Entry, If, Operand, Symbol,
};
use crate::value::TableShape;

use super::body::BlockKind;
use super::parser::{PageParser, Parsed, SourceMark};

impl<'a> PageParser<'a> {
    /// Declarations up to the end of the file, or to the next part of the `%IF` that began at
    /// `inside`. Text between them means nothing.
    pub(super) fn declarations(&mut self, inside: Option<usize>) -> Parsed<Vec<Declaration>> {
        self.enter()?;
        let mut declarations = Vec::new();
        loop {
            let start = self.scanner.at;
            self.scanner.text();
            self.mark(start, SourceMark::Gap);
            let Some(special) = self.scanner.special() else {
                break;
            };
            match special {
                Special::Comment => self.skip_comment()?,
                Special::Call => {
                    declarations.push(Declaration::Call(Box::new(self.call()?)));
                }
                Special::Close | Special::Reference | Special::Hidden => self.scanner.at += 2,
                Special::Keyword(Keyword::Elif | Keyword::Else | Keyword::Endif) => {
                    if inside.is_some() {
                        break;
                    }
                    return self.fail_here("no `%IF` is open here");
                }
                Special::Keyword(keyword) => {
                    if let Some(declaration) = self.declaration(keyword)? {
                        declarations.push(declaration);
                    }
                }
            }
        }
        self.leave();
        Ok(declarations)
    }

    fn declaration(&mut self, keyword: Keyword) -> Parsed<Option<Declaration>> {
        let at = self.at();
        if keyword == Keyword::If {
            return Ok(Some(Declaration::If(Box::new(self.declaration_if()?))));
        }
        self.take_keyword(keyword);
        Ok(Some(match keyword {
            Keyword::Define => self.define()?,
            Keyword::Function => return self.function(at),
            Keyword::MacroFunction => return self.macro_function(at),
            Keyword::Sql => return self.old_sql(at),
            Keyword::Message => Declaration::Message(self.messages()?.into()),
            Keyword::Html | Keyword::Xml => {
                self.expect("(", "behind `%HTML`")?;
                let name = self.name_text("behind `%HTML(`")?;
                self.expect(")", "behind the block's name")?;
                self.entry(name, keyword == Keyword::Xml)?
            }
            Keyword::HtmlInput => self.entry("INPUT", false)?,
            Keyword::HtmlReport => self.entry("REPORT", false)?,
            Keyword::Include => {
                let file = self.quoted("behind `%INCLUDE`")?;
                Declaration::Include { file, at }
            }
            Keyword::IncludeUrl => {
                self.quoted("behind `%INCLUDE_URL`")?;
                Declaration::IncludeUrl { at }
            }
            _ => return Ok(None),
        }))
    }

    fn entry(&mut self, name: &str, is_xml: bool) -> Parsed<Declaration> {
        let body = self.block(BlockKind::Plain, &format!("block {name}"))?;
        Ok(Declaration::Entry(Entry {
            name: name.into(),
            is_xml,
            body,
        }))
    }

    fn declaration_if(&mut self) -> Parsed<If<Vec<Declaration>>> {
        let start = self.scanner.at;
        let at = self.at();
        let mut arms = Vec::new();
        let mut otherwise = None;
        self.declaration_depth += 1;
        self.take_keyword(Keyword::If);
        loop {
            let condition = self.condition_in_parentheses()?;
            let declarations = self.declarations(Some(start))?;
            arms.push((condition, declarations));
            if !self.take_keyword(Keyword::Elif) {
                break;
            }
        }
        if self.take_keyword(Keyword::Else) {
            otherwise = Some(self.declarations(Some(start))?);
        }
        if !self.take_keyword(Keyword::Endif) {
            return self.fail(start, "this `%IF` has no `%ENDIF`");
        }
        self.declaration_depth -= 1;
        Ok(If {
            arms,
            otherwise,
            at,
        })
    }

    /// What stands behind `%DEFINE`.
    fn define(&mut self) -> Parsed<Declaration> {
        let kind = self.define_kind()?;
        self.skip()?;
        let mut entries = Vec::new();
        let start = self.scanner.at;
        if !self.scanner.eat(b"{") {
            entries.push(self.define_entry()?);
            return Ok(Declaration::Define { kind, entries });
        }
        loop {
            self.skip()?;
            if self.scanner.eat(b"%}") {
                return Ok(Declaration::Define { kind, entries });
            }
            if self.scanner.peek().is_none() {
                return self.fail(start, "this %DEFINE has no end; `%}` ends it");
            }
            entries.push(self.define_entry()?);
        }
    }

    fn define_kind(&mut self) -> Parsed<DefineKind> {
        self.skip()?;
        if !self.scanner.eat(b"(") {
            return Ok(DefineKind::Plain);
        }
        self.skip()?;
        let at = self.scanner.at;
        let word = self.scanner.word().to_ascii_uppercase();
        let kind = match &*word {
            "STATIC" => DefineKind::Static,
            "TRANSIENT" => DefineKind::Transient,
            "PROTECTED" => DefineKind::Protected,
            _ => return self.fail(at, "STATIC, TRANSIENT or PROTECTED is missing here"),
        };
        self.expect(")", "behind the word")?;
        Ok(kind)
    }

    fn define_entry(&mut self) -> Parsed<DefineEntry> {
        let at = self.at();
        if self.take_keyword(Keyword::List) {
            let separator = self.quoted("behind `%LIST`")?;
            let name = self.name("behind the separator of `%LIST`")?;
            return Ok(DefineEntry::List {
                separator,
                name,
                at,
            });
        }
        if self.take_keyword(Keyword::Include) {
            let file = self.quoted("behind `%INCLUDE`")?;
            return Ok(DefineEntry::Include { file, at });
        }
        let name = self.name("in this %DEFINE")?;
        self.expect("=", "behind the variable's name")?;
        self.skip()?;
        let value = self.define_value(name)?;
        Ok(DefineEntry::Variable { name, at, value })
    }

    fn define_value(&mut self, name: Symbol) -> Parsed<DefineValue> {
        if self.take_keyword(Keyword::Table) {
            return Ok(DefineValue::Table(self.table_shape()?));
        }
        if self.take_keyword(Keyword::EnvVar) {
            return Ok(DefineValue::Environment);
        }
        if self.take_keyword(Keyword::Exec) {
            let command = self.string_or_block("behind `%EXEC`")?;
            return Ok(DefineValue::Exec(command));
        }
        match self.scanner.peek() {
            Some(b'{') => {
                let block = self.block(BlockKind::Plain, "this value")?;
                Ok(DefineValue::Text(block))
            }
            Some(b'?') => self.conditional(None),
            _ => {
                let operand = self.operand("or a value")?;
                self.scanner.skip_line_blanks();
                match (self.scanner.peek(), operand) {
                    (Some(b'?'), operand) => self.conditional(Some(operand)),
                    (_, Operand::Value { body, .. }) => Ok(DefineValue::Text(body)),
                    (_, Operand::Variable { at, .. }) => self.fail(
                        at as usize,
                        format!("the value of {} is not in quotes", self.name_of(name)),
                    ),
                }
            }
        }
    }

    fn name_of(&self, symbol: Symbol) -> &str {
        self.names()[symbol.0 as usize].text.as_ref()
    }

    /// `? "then" [: "otherwise"]`.
    fn conditional(&mut self, test: Option<Operand>) -> Parsed<DefineValue> {
        self.scanner.at += 1;
        let then = self.string_or_block("behind `?`")?;
        let mut ahead = self.scanner;
        ahead.skip_blanks();
        let otherwise = match ahead.eat(b":") {
            true => {
                self.scanner = ahead;
                Some(self.string_or_block("behind `:`")?)
            }
            false => None,
        };
        Ok(DefineValue::Conditional(Arc::new(Conditional {
            test,
            then,
            otherwise,
        })))
    }

    /// `[(rows [, columns])]`, where `ALL` is any number.
    fn table_shape(&mut self) -> Parsed<TableShape> {
        let mut shape = TableShape::default();
        self.scanner.skip_line_blanks();
        if !self.scanner.eat(b"(") {
            return Ok(shape);
        }
        shape.rows_max = self.table_size()?;
        self.skip()?;
        if self.scanner.eat(b",") {
            shape.columns_max = self.table_size()?;
        }
        self.expect(")", "behind the table's size")?;
        Ok(shape)
    }

    fn table_size(&mut self) -> Parsed<Option<usize>> {
        self.skip()?;
        let at = self.scanner.at;
        let word = self.scanner.word();
        if word.eq_ignore_ascii_case("ALL") {
            return Ok(None);
        }
        match word.parse() {
            Ok(size) => Ok(Some(size)),
            Err(_) => self.fail(at, "a number or ALL is missing as the table's size"),
        }
    }
}
