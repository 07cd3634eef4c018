//! Loading a page as a browser does: which assets a document names, what a browser asks for them
//! with, what it keeps, and what came of each view of a page.
//!
//! Nothing here knows a socket: `visitor` says what is to be asked for next and is told what came
//! of it; `send::visits` drives it over the same connections that single requests use. `html` and
//! `css` find what is named, `reference` says where that is, `unpack` undoes codings, `cache` is
//! what a second view need not ask for, `ahead` reads documents that are still coming, `ask` writes
//! requests; what came of it is counted in `measure::pages`.

mod ahead;
mod ask;
mod cache;
mod css;
mod found;
mod html;
mod reference;
mod unpack;
mod visitor;

pub(crate) use ahead::Ahead;
pub(crate) use ask::Asker;
pub use found::{AssetReference, Scan};
pub(crate) use reference::Base;
pub(crate) use visitor::{
    Answered, AssetRequest, FetchOutcome, PageViewOutcome, Readings, Visitor, What,
};

/// Where a reference in a document at `path` of `http://localhost` leads: the target there, the other
/// server, or nothing. Tests and the fuzz target call it.
pub fn resolve(path: &str, reference: &str) -> Option<Result<String, String>> {
    let base = Base {
        is_secure: false,
        host: "localhost".to_owned(),
        port: 80,
        target: path.to_owned(),
    };
    match base.join(reference) {
        reference::ResolvedReference::Here(target) => Some(Ok(target)),
        reference::ResolvedReference::Elsewhere(origin) => Some(Err(origin)),
        reference::ResolvedReference::Nowhere => None,
    }
}

/// What a document of HTML names. Tests and the fuzz target call it.
pub fn scan_html(text: &[u8]) -> Scan {
    html::scan(text)
}

/// What is found of a document that comes in pieces of a length, before it is known to be whole.
/// The fuzz target calls it.
pub fn scan_ahead(text: &[u8], piece_bytes: usize) -> Vec<AssetReference> {
    let mut ahead = Ahead::new("");
    let ends = (0..text.len()).step_by(piece_bytes.max(1)).skip(1);
    let mut found = Vec::new();
    for end in ends.chain([text.len()]) {
        found.extend(
            ahead
                .look(&text[..end])
                .into_iter()
                .flat_map(|scan| scan.found),
        );
    }
    found
}

/// What a stylesheet names.
pub fn scan_css(text: &[u8]) -> Scan {
    let mut scan = Scan::default();
    css::scan(text, &mut scan);
    scan
}
