//! Strings, numbers, calls and conditions.

use crate::builtin;
use crate::tree::{Body, BodyNode, Call, Callee, Comparison, Condition, Operand};

use super::body::BlockKind;
use super::parser::{PageParser, Parsed, SourceMark};

impl PageParser<'_> {
    /// A string in quotes.
    pub(super) fn quoted(&mut self, of: &str) -> Parsed<Body> {
        self.skip()?;
        if !self.scanner.rest().starts_with(b"\"") {
            return self.fail_here(format!("a text in quotes is missing {of}"));
        }
        self.string()
    }

    /// A string in quotes, or a block.
    pub(super) fn string_or_block(&mut self, of: &str) -> Parsed<Body> {
        self.skip()?;
        match self.scanner.peek() {
            Some(b'{') => self.block(BlockKind::Plain, "this text"),
            _ => self.quoted(of),
        }
    }

    /// The string that begins here. Calls inside of it may have strings of their own.
    pub(super) fn string(&mut self) -> Parsed<Body> {
        self.enter()?;
        let begin = self.scanner.at;
        self.scanner.at += 1;
        let mut nodes = Vec::new();
        loop {
            let start = self.at();
            self.scanner.inner_text(b'"');
            let end = self.at();
            if self.scanner.source[start as usize..end as usize].contains(&b'\n') {
                return self.fail(begin, "this text has no closing quote on its line");
            }
            if start < end {
                nodes.push(BodyNode::text(start, end));
            }
            match self.scanner.peek() {
                None => return self.fail(begin, "this text has no closing quote"),
                Some(b'"') if self.scanner.eat(b"\"\"") => nodes.push(BodyNode::Quote),
                Some(b'"') => break self.scanner.at += 1,
                Some(_) => nodes.push(self.live_node()?),
            }
        }
        self.leave();
        Ok(nodes.into())
    }

    /// `@name(argument, ...)`.
    pub(super) fn call(&mut self) -> Parsed<Call> {
        self.enter()?;
        let at = self.at();
        self.scanner.at += 1;
        let start = self.scanner.at;
        let name = self.name_text("behind `@`")?;
        let callee = match builtin::find(name) {
            Some((function, form)) => {
                self.mark(start, SourceMark::BuiltIn(function, form));
                Callee::BuiltIn(function, form)
            }
            None => Callee::User(self.symbol(name)),
        };
        self.expect("(", "behind the function's name")?;
        let mut arguments = Vec::new();
        self.skip()?;
        if !self.scanner.eat(b")") {
            loop {
                self.skip()?;
                arguments.push(match self.scanner.peek() {
                    Some(b',' | b')') => Operand::Value {
                        body: Body::from([]),
                        at: self.at(),
                    },
                    _ => self.operand("as an argument")?,
                });
                self.skip()?;
                if self.scanner.eat(b")") {
                    break;
                }
                self.expect(",", &format!("between the arguments of {name}, or `)`"))?;
            }
        }
        self.leave();
        Ok(Call {
            at,
            callee,
            arguments,
        })
    }

    /// A string, a number, a name, a reference or a call.
    pub(super) fn operand(&mut self, of: &str) -> Parsed<Operand> {
        self.skip()?;
        let at = self.at();
        let body: Body = match self.scanner.peek() {
            Some(b'"') => self.string()?,
            Some(b'$' | b'@') if self.scanner.special().is_some() => [self.live_node()?].into(),
            _ => {
                if let Some(body) = self.number() {
                    body
                } else {
                    let name = self.name(of)?;
                    return Ok(Operand::Variable { name, at });
                }
            }
        };
        Ok(Operand::Value { body, at })
    }

    /// A number without quotes, unless it is the start of a name.
    fn number(&mut self) -> Option<Body> {
        let start = self.at();
        let mut ahead = self.scanner;
        let _ = ahead.eat(b"-") || ahead.eat(b"+");
        let digits = ahead.at;
        while ahead
            .peek()
            .is_some_and(|byte| byte.is_ascii_digit() || byte == b'.')
        {
            ahead.at += 1;
        }
        let is_name = ahead
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'#'));
        if ahead.at == digits || is_name {
            return None;
        }
        self.scanner = ahead;
        let end = self.at();
        Some([BodyNode::text(start, end)].into())
    }

    /// `(condition)`.
    pub(super) fn condition_in_parentheses(&mut self) -> Parsed<Condition> {
        self.expect("(", "before the condition")?;
        let condition = self.condition()?;
        self.expect(")", "behind the condition")?;
        Ok(condition)
    }

    fn condition(&mut self) -> Parsed<Condition> {
        self.enter()?;
        let mut any = vec![self.all_of()?];
        loop {
            self.skip()?;
            if !self.scanner.eat(b"||") {
                break;
            }
            any.push(self.all_of()?);
        }
        self.leave();
        Ok(match any.len() {
            1 => any.remove(0),
            _ => Condition::Any(any),
        })
    }

    fn all_of(&mut self) -> Parsed<Condition> {
        let mut all = vec![self.not()?];
        loop {
            self.skip()?;
            if !self.scanner.eat(b"&&") {
                break;
            }
            all.push(self.not()?);
        }
        Ok(match all.len() {
            1 => all.remove(0),
            _ => Condition::All(all),
        })
    }

    fn not(&mut self) -> Parsed<Condition> {
        self.skip()?;
        if self.scanner.peek() == Some(b'!') {
            self.scanner.at += 1;
            self.enter()?;
            let negated = self.not()?;
            self.leave();
            return Ok(Condition::Not(Box::new(negated)));
        }
        if self.scanner.eat(b"(") {
            let inner = self.condition()?;
            self.expect(")", "behind the condition")?;
            return Ok(inner);
        }
        let left = self.operand("in the condition")?;
        Ok(match self.comparison()? {
            None => Condition::Holds(left),
            Some(comparison) => {
                let right = self.operand("behind the comparison")?;
                Condition::Compares(left, comparison, right)
            }
        })
    }

    fn comparison(&mut self) -> Parsed<Option<Comparison>> {
        self.skip()?;
        let all: [(&[u8], Comparison); 6] = [
            (b"==", Comparison::Equal),
            (b"!=", Comparison::Unequal),
            (b"<=", Comparison::AtMost),
            (b">=", Comparison::AtLeast),
            (b"<", Comparison::Less),
            (b">", Comparison::Greater),
        ];
        for (sign, comparison) in all {
            if self.scanner.eat(sign) {
                return Ok(Some(comparison));
            }
        }
        match self.scanner.peek() {
            Some(b'=') => self.fail_here("`=` compares nothing here; `==` does"),
            _ => Ok(None),
        }
    }
}
