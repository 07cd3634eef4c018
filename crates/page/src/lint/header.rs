//! Whether a page that says that it prints its own header begins with one, as far as that can be
//! seen without running it.

use std::sync::Arc;

use crate::escape::{HeaderSign, HeaderStart};
use crate::host::Sources;
use crate::tree::{
    BodyNode, Call, Callee, FunctionBlock, FunctionBody, Language, Page, PageContents,
};
use crate::value::Text;

use super::guess::{Definitions, Guess, fixed};

const DEPTH_MAX: u32 = 20;

/// Whether the page says that it prints its header itself.
pub(super) fn is_announced(known: &Definitions) -> bool {
    let value = known.named_text("DTW_PRINT_HEADER", &Guess::default());
    let value = value.filter(|value| !value.has_data());
    value.is_some_and(|value| {
        let value = value.to_str().trim().to_owned();
        !value.is_empty() && !value.eq_ignore_ascii_case("YES")
    })
}

/// How a block begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockStart {
    /// Nothing that tells was printed yet.
    Open,
    /// With a header, or it cannot be seen.
    MayBeHeader,
    /// With something else, in one case at least and never with a header.
    Body,
}

/// Follows what a block prints first.
pub(super) struct StartSeeker<'p> {
    known: &'p Definitions,
    sources: &'p dyn Sources,
    page: &'p Arc<Page>,
    depth: u32,
}

impl<'p> StartSeeker<'p> {
    pub(super) fn new(
        page: &'p Arc<Page>,
        known: &'p Definitions,
        sources: &'p dyn Sources,
    ) -> Self {
        Self {
            known,
            sources,
            page,
            depth: 0,
        }
    }

    pub(super) fn block(&mut self, body: &[BodyNode]) -> BlockStart {
        self.body(self.page, body, &mut HeaderStart::default())
    }

    fn body(&mut self, page: &Page, body: &[BodyNode], start: &mut HeaderStart) -> BlockStart {
        if self.depth == DEPTH_MAX {
            return BlockStart::MayBeHeader;
        }
        self.depth += 1;
        let mut signs = body.iter().map(|node| self.node(page, node, start));
        let sign = signs.find(|sign| *sign != BlockStart::Open);
        self.depth -= 1;
        sign.unwrap_or(BlockStart::Open)
    }

    fn node(&mut self, page: &Page, node: &BodyNode, start: &mut HeaderStart) -> BlockStart {
        match node {
            BodyNode::Call(call) if matches!(call.callee, Callee::User(_)) => {
                self.user_call(page, call, start)
            }
            BodyNode::If(node) => {
                let bodies = node.arms.iter().map(|(_, body)| body);
                let bodies = bodies.chain(&node.otherwise);
                let signs = bodies.map(|body| self.body(page, body, &mut start.clone()));
                one_of(signs.collect())
            }
            BodyNode::While(node) => self.body(page, &node.body, &mut start.clone()),
            BodyNode::Include { file, .. } => self.include(page, file, start),
            BodyNode::IncludeUrl { .. } => BlockStart::MayBeHeader,
            _ => {
                let guess = Guess::default();
                let text = self.known.text(page, std::slice::from_ref(node), &guess);
                of_text(&text, start)
            }
        }
    }

    fn include(&mut self, page: &Page, file: &[BodyNode], start: &mut HeaderStart) -> BlockStart {
        let guessed = || {
            let name = self.known.text(page, file, &Guess::default());
            (!name.has_data()).then(|| name.to_str().into_owned())
        };
        let Some(name) = fixed(page, file).or_else(guessed) else {
            return BlockStart::MayBeHeader;
        };
        let Ok(file) = self.sources.body(&name) else {
            return BlockStart::MayBeHeader;
        };
        match &file.contents {
            PageContents::Body(body) => self.body(&file, body, start),
            PageContents::Declarations(_) => BlockStart::MayBeHeader,
        }
    }

    fn user_call(&mut self, page: &Page, call: &Call, start: &mut HeaderStart) -> BlockStart {
        let Callee::User(name) = call.callee else {
            return BlockStart::MayBeHeader;
        };
        let Some((page, function)) = self.function(page.name(name)) else {
            return BlockStart::MayBeHeader;
        };
        let mut parts: Vec<&[BodyNode]> = Vec::new();
        match (&function.language, &function.body) {
            (Language::Macro, FunctionBody::Statements(body)) => parts.push(body),
            // What it prints where it has no report is markup, or nothing.
            (Language::Sql, _) if function.reports.is_empty() => return BlockStart::MayBeHeader,
            (Language::Sql, _) => {}
            _ => return BlockStart::MayBeHeader,
        }
        for report in &function.reports {
            parts.push(&report.header);
            parts.extend(report.row.as_deref());
            parts.push(&report.footer);
        }
        let mut signs = parts.into_iter().map(|part| self.body(&page, part, start));
        let sign = signs.find(|sign| *sign != BlockStart::Open);
        sign.unwrap_or(BlockStart::Open)
    }

    fn function(&self, name: &str) -> Option<(Arc<Page>, Arc<FunctionBlock>)> {
        let files = std::iter::once(self.page).chain(&self.known.included);
        let mut found = files.flat_map(|file| {
            let functions = file.functions.iter();
            let functions = functions.filter(|known| known.name.eq_ignore_ascii_case(name));
            functions.map(move |function| (Arc::clone(file), Arc::clone(function)))
        });
        found.next()
    }
}

/// What one of several bodies makes of a block.
fn one_of(signs: Vec<BlockStart>) -> BlockStart {
    let has = |wanted| signs.contains(&wanted);
    match (has(BlockStart::MayBeHeader), has(BlockStart::Body)) {
        (true, _) => BlockStart::MayBeHeader,
        (false, true) => BlockStart::Body,
        (false, false) => BlockStart::Open,
    }
}

/// Data is no sign of either.
fn of_text(text: &Text, start: &mut HeaderStart) -> BlockStart {
    let authors = text.runs().filter(|(_, provenance)| !provenance.is_data());
    for (bytes, _) in authors {
        match start.author(bytes) {
            HeaderSign::Open => {}
            HeaderSign::Field => return BlockStart::MayBeHeader,
            HeaderSign::Body => return BlockStart::Body,
        }
    }
    BlockStart::Open
}
