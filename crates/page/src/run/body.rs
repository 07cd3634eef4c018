//! Prints bodies to the page, and computes them to texts.

use std::rc::Rc;
use std::sync::Arc;

use crate::tree::{Body, BodyNode, If, Name, NameKind, While};
use crate::value::Text;

use super::runner::{NO_INCLUDE_URL, Ran, RunFile, Runner};
use super::variables::Variable;

impl Runner<'_> {
    /// Prints what stands in a block.
    pub(super) fn print(&mut self, file: &Rc<RunFile>, body: &[BodyNode]) -> Ran<()> {
        for node in body {
            match node {
                BodyNode::Text { start, end, behind } => {
                    self.step(file, *start)?;
                    let bytes = file.page.text(*start, *end);
                    self.print_author(file, *start, bytes, behind)?;
                }
                BodyNode::Quote => self.print_bytes(file, 0, b"\"")?,
                BodyNode::Reference { name, at } => self.print_reference(file, name, *at)?,
                BodyNode::Hidden { name, at } => {
                    let token = self.hidden_token(file.page.name(*name));
                    self.print_bytes(file, *at, token.as_bytes())?;
                }
                BodyNode::Call(call) => {
                    let mut value = Text::new();
                    self.call(file, call, Some(&mut value))?;
                    self.print_text(file, call.at, &value)?;
                }
                BodyNode::If(node) => {
                    if let Some(body) = self.chosen(file, node)? {
                        self.deeper(file, node.at, |runner| runner.print(file, &body))?;
                    }
                }
                BodyNode::While(node) => {
                    while self.goes_on(file, node)? {
                        self.deeper(file, node.at, |runner| runner.print(file, &node.body))?;
                    }
                }
                BodyNode::Include { file: name, at } => self.print_include(file, name, *at)?,
                BodyNode::IncludeUrl { at } => return file.stop(*at, NO_INCLUDE_URL),
            }
        }
        Ok(())
    }

    /// A reference. What was defined by a text is printed without being put together first.
    fn print_reference(&mut self, file: &Rc<RunFile>, name: &Name, at: u32) -> Ran<()> {
        let Name::Fixed(symbol) = name else {
            let value = self.reference_text(file, name, at)?;
            return self.print_text(file, at, &value);
        };
        let kind = file.page.names[symbol.0 as usize].kind;
        if kind != NameKind::Plain {
            if self.print_named_cell(file, at, kind, *symbol)? {
                return Ok(());
            }
            let value = self.name_text(file, at, *symbol)?;
            return self.print_text(file, at, &value);
        }
        let slot = self.slot(file, at, *symbol)?;
        if let [Variable::Text(text)] = &self.variables.at(slot).items[..] {
            let text = Rc::clone(text);
            self.step(file, at)?;
            return self.print_text(file, at, &text);
        }
        let value = self.slot_text(file, at, slot)?;
        self.print_text(file, at, &value)
    }

    /// What stands in a string.
    pub(super) fn value(&mut self, file: &Rc<RunFile>, body: &[BodyNode]) -> Ran<Text> {
        let mut text = Text::new();
        self.add_value(file, body, &mut text)?;
        Ok(text)
    }

    fn add_value(&mut self, file: &Rc<RunFile>, body: &[BodyNode], text: &mut Text) -> Ran<()> {
        for node in body {
            match node {
                BodyNode::Text { start, end, .. } => {
                    self.step(file, *start)?;
                    text.push_macro(file.page.text(*start, *end));
                }
                BodyNode::Quote => text.push_macro(b"\""),
                BodyNode::Reference { name, at } => {
                    let value = self.reference_text(file, name, *at)?;
                    text.push_text(&value);
                }
                BodyNode::Hidden { name, .. } => {
                    let token = self.hidden_token(file.page.name(*name));
                    text.push_macro(token.as_bytes());
                }
                BodyNode::Call(call) => self.call(file, call, Some(text))?,
                BodyNode::If(node) => {
                    if let Some(body) = self.chosen(file, node)? {
                        self.deeper(file, node.at, |runner| runner.add_value(file, &body, text))?;
                    }
                }
                BodyNode::While(node) => {
                    while self.goes_on(file, node)? {
                        self.deeper(file, node.at, |runner| {
                            runner.add_value(file, &node.body, text)
                        })?;
                    }
                }
                BodyNode::Include { file: name, at } => {
                    let name = self.value(file, name)?;
                    let included = self.include(file, *at, &name, true)?;
                    let page = Arc::clone(&included.page);
                    if let crate::tree::PageContents::Body(body) = &page.contents {
                        self.deeper(file, *at, |runner| runner.add_value(&included, body, text))?;
                    }
                }
                BodyNode::IncludeUrl { at } => return file.stop(*at, NO_INCLUDE_URL),
            }
            if text.bytes().len() > self.settings.limits.value_bytes_max {
                return self.over(file, 0, "value_bytes_max");
            }
        }
        Ok(())
    }

    fn reference_text(&mut self, file: &Rc<RunFile>, name: &Name, at: u32) -> Ran<Text> {
        match name {
            Name::Fixed(symbol) => self.name_text(file, at, *symbol),
            Name::Computed(body) => {
                let name = self.deeper(file, at, |runner| runner.value(file, body))?;
                self.computed_text(file, at, &name)
            }
        }
    }

    /// The body of the `%IF` that holds.
    fn chosen(&mut self, file: &Rc<RunFile>, node: &If<Body>) -> Ran<Option<Body>> {
        for (condition, body) in &node.arms {
            if self.holds(file, node.at, condition)? {
                return Ok(Some(Arc::clone(body)));
            }
        }
        Ok(node.otherwise.clone())
    }

    /// Whether a loop turns once more.
    fn goes_on(&mut self, file: &Rc<RunFile>, node: &While) -> Ran<bool> {
        self.used.turns += 1;
        if self.used.turns > self.settings.limits.turns_max {
            return self.over(file, node.at, "turns_max");
        }
        self.holds(file, node.at, &node.condition)
    }
}
