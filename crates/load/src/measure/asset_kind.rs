//! What the parts of a page are loaded as.

/// What something is loaded as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AssetKind {
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
const KINDS: &[(AssetKind, &str)] = &[
    (AssetKind::Document, "document"),
    (AssetKind::Frame, "frame"),
    (AssetKind::Style, "style"),
    (AssetKind::Script, "script"),
    (AssetKind::Font, "font"),
    (AssetKind::Image, "image"),
    (AssetKind::Icon, "icon"),
    (AssetKind::Other, "other"),
];

impl AssetKind {
    /// As results name it.
    pub(crate) fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// The one that results name so.
    pub(crate) fn named(name: &str) -> Option<AssetKind> {
        let found = KINDS.iter().find(|(_, own)| *own == name);
        found.map(|(kind, _)| *kind)
    }

    /// What browsers accept for it.
    pub(crate) fn accept(self) -> &'static str {
        match self {
            AssetKind::Document | AssetKind::Frame => {
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
            }
            AssetKind::Style => "text/css,*/*;q=0.1",
            AssetKind::Image | AssetKind::Icon => {
                "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
            }
            AssetKind::Script | AssetKind::Font | AssetKind::Other => "*/*",
        }
    }

    /// Browsers ask for it before what only decorates.
    pub(crate) fn is_urgent(self) -> bool {
        matches!(
            self,
            AssetKind::Document | AssetKind::Style | AssetKind::Script | AssetKind::Font
        )
    }

    /// It may name more.
    pub(crate) fn is_scanned(self) -> bool {
        matches!(
            self,
            AssetKind::Document | AssetKind::Frame | AssetKind::Style
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_the_order_of_the_kinds() {
        for (index, (kind, name)) in KINDS.iter().enumerate() {
            assert_eq!(
                (*kind as usize, AssetKind::named(name)),
                (index, Some(*kind))
            );
        }
    }
}
