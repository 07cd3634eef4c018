//! What stands inside a block: text, references, calls, `%IF`, `%WHILE`, `%INCLUDE`.

use crate::lex::{Keyword, Special};
use crate::tree::{Body, BodyNode, Call, Callee, If, Name, While};

use super::parser::{PageParser, Parsed};

/// What kind of block it is; it says which keywords end its text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    Plain,
    /// Ends at `%ROW`.
    Report,
    /// Ends at `%REPORT` and `%MESSAGE`.
    Function,
    /// Ends at `%SQL_REPORT` and `%SQL_MESSAGE`.
    OldSql,
}

impl BlockKind {
    fn ends_at(self, keyword: Keyword) -> bool {
        match self {
            Self::Plain => false,
            Self::Report => keyword == Keyword::Row,
            Self::Function => matches!(keyword, Keyword::Report | Keyword::Message),
            Self::OldSql => matches!(keyword, Keyword::SqlReport | Keyword::SqlMessage),
        }
    }
}

impl PageParser<'_> {
    /// A file that is nothing but a body.
    pub(super) fn whole_body(&mut self) -> Parsed<Body> {
        let body = self.body(BlockKind::Plain, None)?;
        match self.scanner.peek() {
            None => Ok(body),
            Some(_) => self.fail_half(self.scanner.at, "`%}` closes nothing"),
        }
    }

    /// `{ body %}`.
    pub(super) fn block(&mut self, kind: BlockKind, what: &str) -> Parsed<Body> {
        self.expect("{", &format!("before {what}"))?;
        let start = self.scanner.at;
        let body = self.body(kind, None)?;
        self.close(start, what)?;
        Ok(body)
    }

    /// Everything up to `%}` or a keyword that ends it, which is left for the caller. `inside` is
    /// where the `%IF` began that this is a part of.
    pub(super) fn body(&mut self, kind: BlockKind, inside: Option<usize>) -> Parsed<Body> {
        self.enter()?;
        let mut nodes = Vec::new();
        loop {
            let start = self.at();
            self.scanner.text();
            let end = self.at();
            if start < end {
                nodes.push(BodyNode::text(start, end));
            }
            let Some(special) = self.scanner.special() else {
                break;
            };
            match special {
                Special::Close => break,
                Special::Comment => self.skip_comment()?,
                Special::Keyword(keyword) => {
                    if kind.ends_at(keyword) {
                        break;
                    }
                    if matches!(keyword, Keyword::Elif | Keyword::Else | Keyword::Endif) {
                        if inside.is_some() {
                            break;
                        }
                        return self.fail_half(self.scanner.at, "no `%IF` is open here");
                    }
                    nodes.push(self.keyword_node(kind, keyword)?);
                }
                Special::Reference | Special::Hidden | Special::Call => {
                    nodes.push(self.live_node()?);
                }
            }
        }
        self.leave();
        Ok(nodes.into())
    }

    pub(super) fn skip_comment(&mut self) -> Parsed<()> {
        match self.scanner.skip_comment() {
            Ok(()) => Ok(()),
            Err(at) => self.fail(at, "this comment has no end; `%}` ends it"),
        }
    }

    /// A reference, a hidden reference or a call, which is known to stand here.
    pub(super) fn live_node(&mut self) -> Parsed<BodyNode> {
        let at = self.at();
        Ok(match self.scanner.special() {
            Some(Special::Hidden) => {
                self.scanner.at += 3;
                let name = self.name("behind `$$(`")?;
                self.expect(")", "behind the name")?;
                self.hidden.push(name);
                BodyNode::Hidden { name, at }
            }
            Some(Special::Call) => BodyNode::Call(Box::new(self.call()?)),
            _ => {
                let name = self.reference()?;
                BodyNode::Reference { name, at }
            }
        })
    }

    fn keyword_node(&mut self, kind: BlockKind, keyword: Keyword) -> Parsed<BodyNode> {
        let at = self.at();
        match keyword {
            Keyword::If => Ok(BodyNode::If(Box::new(self.if_node(kind)?))),
            Keyword::While => {
                self.take_keyword(keyword);
                let condition = self.condition_in_parentheses()?;
                let body = self.block(BlockKind::Plain, "this %WHILE block")?;
                let node = While {
                    condition,
                    body,
                    at,
                };
                Ok(BodyNode::While(Box::new(node)))
            }
            Keyword::Include => {
                self.take_keyword(keyword);
                let file = self.quoted("behind `%INCLUDE`")?;
                Ok(BodyNode::Include { file, at })
            }
            Keyword::IncludeUrl => {
                self.take_keyword(keyword);
                self.quoted("behind `%INCLUDE_URL`")?;
                Ok(BodyNode::IncludeUrl { at })
            }
            Keyword::ExecSql => Ok(BodyNode::Call(Box::new(self.exec_sql()?))),
            Keyword::Define
            | Keyword::Function
            | Keyword::MacroFunction
            | Keyword::Html
            | Keyword::HtmlInput
            | Keyword::HtmlReport
            | Keyword::Sql => self.misplaced(keyword),
            _ => Ok(self.plain_word()),
        }
    }

    /// A keyword that means nothing here is text.
    fn plain_word(&mut self) -> BodyNode {
        let start = self.at();
        self.scanner.at += 1;
        self.scanner.word();
        let end = self.at();
        BodyNode::text(start, end)
    }

    /// A declaration inside a block: most likely the block was not closed.
    fn misplaced(&mut self, keyword: Keyword) -> Parsed<BodyNode> {
        let mut ahead = self.scanner;
        ahead.eat_keyword(keyword);
        ahead.skip_blanks();
        if !matches!(ahead.peek(), Some(b'(' | b'{')) {
            return Ok(self.plain_word());
        }
        let end = ahead.at;
        let word = &self.scanner.source[self.scanner.at..end];
        let word = String::from_utf8_lossy(word).trim().to_string();
        self.fail_here(format!(
            "`{word}` cannot stand inside a block; is a `%}}` missing before it?"
        ))
    }

    /// `%IF (condition) body [%ELIF (condition) body] [%ELSE body] %ENDIF`.
    fn if_node(&mut self, kind: BlockKind) -> Parsed<If<Body>> {
        let start = self.scanner.at;
        let at = self.at();
        let mut arms = Vec::new();
        let mut otherwise = None;
        self.take_keyword(Keyword::If);
        loop {
            let condition = self.condition_in_parentheses()?;
            let body = self.body(kind, Some(start))?;
            arms.push((condition, body));
            if !self.take_keyword(Keyword::Elif) {
                break;
            }
        }
        if self.take_keyword(Keyword::Else) {
            otherwise = Some(self.body(kind, Some(start))?);
        }
        if !self.take_keyword(Keyword::Endif) {
            return self.fail_half(start, "this `%IF` has no `%ENDIF` in its block");
        }
        Ok(If {
            arms,
            otherwise,
            at,
        })
    }

    /// `%EXEC_SQL`, an old way to run what `%SQL` blocks say.
    fn exec_sql(&mut self) -> Parsed<Call> {
        let at = self.at();
        self.take_keyword(Keyword::ExecSql);
        let mut name = "%SQL";
        let mut ahead = self.scanner;
        ahead.skip_line_blanks();
        if ahead.eat(b"(") {
            self.scanner = ahead;
            name = self.name_text("behind `%EXEC_SQL(`")?;
            self.expect(")", "behind the name")?;
        }
        let callee = Callee::User(self.symbol(name));
        Ok(Call {
            at,
            callee,
            arguments: Vec::new(),
        })
    }

    /// `$( ... )`: a name, or what a name is put together from.
    pub(super) fn reference(&mut self) -> Parsed<Name> {
        let start = self.scanner.at;
        self.scanner.at += 2;
        self.scanner.skip_line_blanks();
        let mut ahead = self.scanner;
        if let Some(name) = ahead.name() {
            ahead.skip_line_blanks();
            if ahead.eat(b")") {
                self.scanner = ahead;
                return Ok(Name::Fixed(self.symbol(name)));
            }
        }
        self.enter()?;
        let mut nodes = Vec::new();
        loop {
            let from = self.scanner.at;
            self.scanner.inner_text(b')');
            let text = &self.scanner.source[from..self.scanner.at];
            if text.contains(&b'\n') {
                return self.fail(start, "a reference ends on its line; `)` is missing");
            }
            let blanks = match self.scanner.peek() {
                Some(b')') => text.len() - text.trim_ascii_end().len(),
                _ => 0,
            };
            let (start, end) = (from as u32, (self.scanner.at - blanks) as u32);
            if start < end {
                nodes.push(BodyNode::text(start, end));
            }
            match self.scanner.peek() {
                Some(b')') => break self.scanner.at += 1,
                Some(_) => nodes.push(self.live_node()?),
                None => return self.fail(from, "a reference ends on its line; `)` is missing"),
            }
        }
        self.leave();
        Ok(Name::Computed(nodes.into()))
    }
}
