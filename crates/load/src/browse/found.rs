//! What a document or a stylesheet names.

use crate::limits::{ASSET_COUNT_MAX, TARGET_BYTES_MAX};

/// What something is loaded as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The page itself.
    Document,
    /// A document within it.
    Frame,
    /// A stylesheet.
    Style,
    /// A script.
    Script,
    /// A font.
    Font,
    /// An image.
    Image,
    /// The icon of the page.
    Icon,
    /// What is loaded for a script or a plug-in.
    Other,
}

/// Each kind with its name in results, in the order of the enum.
const KINDS: &[(Kind, &str)] = &[
    (Kind::Document, "document"),
    (Kind::Frame, "frame"),
    (Kind::Style, "style"),
    (Kind::Script, "script"),
    (Kind::Font, "font"),
    (Kind::Image, "image"),
    (Kind::Icon, "icon"),
    (Kind::Other, "other"),
];

impl Kind {
    /// As results name it.
    pub(crate) fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// The one that results name so.
    pub(crate) fn named(name: &str) -> Option<Kind> {
        let found = KINDS.iter().find(|(_, own)| *own == name);
        found.map(|(kind, _)| *kind)
    }

    /// What browsers accept for it.
    pub(crate) fn accept(self) -> &'static str {
        match self {
            Kind::Document | Kind::Frame => {
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
            }
            Kind::Style => "text/css,*/*;q=0.1",
            Kind::Image | Kind::Icon => {
                "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
            }
            Kind::Script | Kind::Font | Kind::Other => "*/*",
        }
    }

    /// Browsers ask for it before what only decorates.
    pub(crate) fn is_urgent(self) -> bool {
        matches!(
            self,
            Kind::Document | Kind::Style | Kind::Script | Kind::Font
        )
    }

    /// It may name more.
    pub(crate) fn is_scanned(self) -> bool {
        matches!(self, Kind::Document | Kind::Frame | Kind::Style)
    }
}

/// One thing that is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What it is loaded as.
    pub kind: Kind,
    /// The reference as it was written, relative or not.
    pub reference: String,
}

/// Everything that is named, in the order of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// What references are relative to, where the document says so.
    pub base: Option<String>,
    /// What is named.
    pub found: Vec<Found>,
    /// What was found beyond the limits.
    pub left_out: u64,
}

impl Scan {
    /// Adds something, if it can be a reference at all.
    pub(super) fn push(&mut self, kind: Kind, reference: &str) {
        let reference = reference.trim();
        // What lies in the document itself is the most frequent of all, and long.
        let scheme = reference.get(..5).unwrap_or_default();
        if reference.is_empty()
            || reference.starts_with('#')
            || scheme.eq_ignore_ascii_case("data:")
        {
            return;
        }
        if self.found.len() >= ASSET_COUNT_MAX || reference.len() > TARGET_BYTES_MAX {
            self.left_out += 1;
            return;
        }
        self.found.push(Found {
            kind,
            reference: reference.to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_the_order_of_the_kinds() {
        for (index, (kind, name)) in KINDS.iter().enumerate() {
            assert_eq!((*kind as usize, Kind::named(name)), (index, Some(*kind)));
        }
    }
}
