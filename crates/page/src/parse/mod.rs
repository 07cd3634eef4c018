//! From text to tree. The grammar stands in `docs/src/reference/pages.md`.
//!
//! `parser` holds the place and the names, `declare` reads what stands outside of blocks,
//! `function` the blocks of functions, `body` what stands inside of blocks, and `operand` strings,
//! references, calls and conditions. `layout` lays a page out.

mod body;
mod declare;
mod function;
mod layout;
mod operand;
mod parser;

use crate::fault::PageFault;
use crate::tree::{Page, PageContents};

use parser::PageParser;

impl Page {
    /// Reads a macro, or a file that is included among declarations.
    pub fn parse(file: &str, source: &[u8]) -> Result<Page, PageFault> {
        let mut parser = PageParser::new(file, source)?;
        let declarations = parser.declarations(None)?;
        Ok(parser.page(PageContents::Declarations(declarations)))
    }

    /// Reads a file that is included inside a block.
    pub fn parse_body(file: &str, source: &[u8]) -> Result<Page, PageFault> {
        let mut parser = PageParser::new(file, source)?;
        parser.is_included = true;
        let body = parser.whole_body()?;
        Ok(parser.page(PageContents::Body(body)))
    }

    /// The text of a macro, laid out: it does the same and reads better.
    pub fn format(file: &str, source: &[u8]) -> Result<Vec<u8>, PageFault> {
        layout::format(file, source)
    }
}
