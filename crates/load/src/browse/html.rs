//! What a document of HTML names, in its order: a tolerant scanner that knows tags, attributes,
//! comments and elements whose content is text. It builds no tree and runs no script.

use std::borrow::Cow;

use memchr::{memchr, memmem};

use super::css;
use super::found::Scan;
use crate::limits::ATTRIBUTE_COUNT_MAX;
use crate::measure::AssetKind;

/// Elements whose content is text up to their end tag. Browsers run scripts, so what `noscript`
/// holds is text too.
const TEXT: &[&str] = &[
    "script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "noscript",
];
/// Kinds of scripts, besides none and `module`.
const SCRIPTS: &[&str] = &[
    "text/javascript",
    "application/javascript",
    "application/x-javascript",
    "text/ecmascript",
    "application/ecmascript",
];
/// Images that browsers read.
const IMAGES: &[&str] = &[
    "image/avif",
    "image/jxl",
    "image/webp",
    "image/apng",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/svg+xml",
    "image/bmp",
    "image/x-icon",
];

/// Finds everything.
pub(super) fn scan(text: &[u8]) -> Scan {
    let mut reader = HtmlReader::default();
    // What has no end is taken to end with the text.
    while let Some(len) = reader.step(text).or_else(|| reader.last_step(text)) {
        reader.at += len;
    }
    reader.scanner.finish()
}

/// Reads a document of which there is more and more.
#[derive(Default)]
pub(super) struct HtmlReader {
    scanner: TagScanner,
    /// Where the first thing begins that was not whole.
    at: usize,
    /// How long the text was last.
    seen: usize,
    /// Without this nothing becomes whole: something long that drips in is not read each time.
    awaits: &'static [u8],
}

/// Longest end tag of an element that holds text, with room: as much is looked at again for an end
/// that came in parts.
const END_BYTES_MAX: usize = 32;

impl HtmlReader {
    /// The text has become so long.
    pub(super) fn advance(&mut self, text: &[u8]) {
        let from = self.seen.saturating_sub(END_BYTES_MAX);
        let has_end = memmem::find(&text[from..], self.awaits).is_some();
        self.seen = text.len();
        if !has_end {
            return;
        }
        while let Some(len) = self.step(text) {
            self.at += len;
        }
        let rest = &text[self.at..];
        self.awaits = match rest.strip_prefix(b"<").and_then(Tag::read) {
            _ if rest.starts_with(b"<!--") => b"-->",
            Some((tag, _)) if TEXT.contains(&tag.name.as_str()) => b"</",
            _ => b">",
        };
    }

    /// What was found; which icon it is shows at the end.
    pub(super) fn so_far(&self) -> &Scan {
        &self.scanner.scan
    }

    /// Reads what comes next and says how long it is; none where its end is missing.
    fn step(&mut self, text: &[u8]) -> Option<usize> {
        self.at += memchr(b'<', &text[self.at..])?;
        let rest = &text[self.at..];
        Some(match *rest.get(1)? {
            b'!' if rest.starts_with(b"<!--") => memmem::find(&rest[2..], b"-->")? + 5,
            b'!' | b'?' => memchr(b'>', rest)? + 1,
            b'/' if rest.get(2)?.is_ascii_alphabetic() => {
                let (tag, len) = Tag::read(&rest[2..])?;
                self.scanner.end(&tag.name);
                2 + len
            }
            byte if byte.is_ascii_alphabetic() => {
                let (tag, len) = Tag::read(&rest[1..])?;
                let content = content(&tag.name, &rest[1 + len..])?;
                self.scanner.begin(&tag, content);
                1 + len + content.len()
            }
            _ => 1,
        })
    }

    /// The same of an element whose content has no end; a tag that has none is no tag.
    fn last_step(&mut self, text: &[u8]) -> Option<usize> {
        let rest = text[self.at..].strip_prefix(b"<")?;
        let is_tag = rest.first()?.is_ascii_alphabetic();
        let (tag, len) = Tag::read(rest).filter(|_| is_tag)?;
        self.scanner.begin(&tag, &rest[len..]);
        Some(1 + rest.len())
    }
}

/// The content of an element that holds text, nothing for the others; none where the element has no
/// end.
fn content<'a>(name: &str, rest: &'a [u8]) -> Option<&'a [u8]> {
    if !TEXT.contains(&name) {
        return Some(&[]);
    }
    let mut at = 0;
    while let Some(found) = memmem::find(&rest[at..], b"</") {
        at += found;
        let end = &rest[at + 2..];
        let is_it = end
            .get(..name.len())
            .is_some_and(|text| text.eq_ignore_ascii_case(name.as_bytes()));
        let is_over = end
            .get(name.len())
            .is_some_and(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'));
        if is_it && is_over {
            return Some(&rest[..at]);
        }
        at += 2;
    }
    None
}

/// A tag with its attributes, as they lie in the text.
struct Tag<'a> {
    /// In small letters.
    name: String,
    attributes: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> Tag<'a> {
    /// Reads from the name on, and says how long it is with the bracket that ends it; none where
    /// the text ends before.
    fn read(text: &'a [u8]) -> Option<(Tag<'a>, usize)> {
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
        let until = |from: usize, stop: &dyn Fn(&u8) -> bool| {
            let rest = &text[from..];
            from + rest.iter().position(stop).unwrap_or(rest.len())
        };
        let mut at = until(0, &ends);
        let mut tag = Tag {
            name: String::from_utf8_lossy(&text[..at]).to_ascii_lowercase(),
            attributes: Vec::new(),
        };
        loop {
            at = until(at, &|byte| !byte.is_ascii_whitespace() && *byte != b'/');
            if *text.get(at)? == b'>' {
                return Some((tag, at + 1));
            }
            let begin = at;
            at = until(at + 1, &|byte| ends(byte) || *byte == b'=');
            let name = &text[begin..at];
            let after = until(at, &|byte| !byte.is_ascii_whitespace());
            let mut value: &[u8] = &[];
            if text.get(after) == Some(&b'=') {
                at = until(after + 1, &|byte| !byte.is_ascii_whitespace());
                match text.get(at) {
                    Some(quote @ (b'"' | b'\'')) => {
                        let end = until(at + 1, &|byte| byte == quote);
                        value = &text[at + 1..end];
                        at = (end + 1).min(text.len());
                    }
                    _ => {
                        let begin = at;
                        at = until(at, &|byte| byte.is_ascii_whitespace() || *byte == b'>');
                        value = &text[begin..at];
                    }
                }
            }
            if tag.attributes.len() < ATTRIBUTE_COUNT_MAX {
                tag.attributes.push((name, value));
            }
        }
    }

    /// The first attribute of a name, with its entities resolved.
    fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        let mut all = self.attributes.iter();
        let (_, value) = all.find(|(own, _)| own.eq_ignore_ascii_case(name.as_bytes()))?;
        Some(resolved(value))
    }

    fn has(&self, name: &str) -> bool {
        let mut all = self.attributes.iter();
        all.any(|(own, _)| own.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// Is an attribute missing, empty, or one of these?
    fn is_any(&self, name: &str, known: &[&str]) -> bool {
        let value = self.get(name).unwrap_or_default();
        let value = value.split(';').next().unwrap_or_default().trim();
        value.is_empty() || known.iter().any(|known| known.eq_ignore_ascii_case(value))
    }
}

/// Text with the entities that references are written with.
fn resolved(text: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(text);
    if !text.contains('&') {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match entity(rest) {
            Some((letter, len)) => {
                out.push(letter);
                rest = &rest[len..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// An entity at the beginning of a text, and how long it is.
fn entity(text: &str) -> Option<(char, usize)> {
    const NAMED: &[(&str, char)] = &[
        ("&amp;", '&'),
        ("&lt;", '<'),
        ("&gt;", '>'),
        ("&quot;", '"'),
        ("&apos;", '\''),
        ("&nbsp;", '\u{a0}'),
        ("&colon;", ':'),
        ("&sol;", '/'),
        ("&period;", '.'),
        ("&quest;", '?'),
        ("&equals;", '='),
    ];
    let named = NAMED.iter().find(|(name, _)| text.starts_with(name));
    if let Some((name, letter)) = named {
        return Some((*letter, name.len()));
    }
    let digits = text.strip_prefix("&#")?;
    let (digits, radix, before) = match digits.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16, 3),
        None => (digits, 10, 2),
    };
    let len = digits.find(|letter: char| !letter.is_digit(radix));
    let len = len.unwrap_or(digits.len());
    let letter = u32::from_str_radix(&digits[..len], radix).ok();
    let letter = letter.and_then(char::from_u32)?;
    let end = usize::from(digits[len..].starts_with(';'));
    Some((letter, before + len + end))
}

/// What the tags so far have come to.
#[derive(Default)]
struct TagScanner {
    scan: Scan,
    /// How deep in templates, whose content is not shown.
    templates: usize,
    /// Within a `picture`: was a source chosen?
    picture: Option<bool>,
    /// The icon, and whether it is one that fits every size.
    icon: Option<(bool, String)>,
}

impl TagScanner {
    fn end(&mut self, name: &str) {
        match name {
            "template" => self.templates = self.templates.saturating_sub(1),
            "picture" => self.picture = None,
            _ => {}
        }
    }

    fn begin(&mut self, tag: &Tag<'_>, content: &[u8]) {
        if tag.name == "template" {
            self.templates += 1;
        }
        if self.templates > 0 {
            return;
        }
        match tag.name.as_str() {
            "base" if self.scan.base.is_none() => {
                self.scan.base = tag.get("href").map(Cow::into_owned);
            }
            "link" => self.link(tag),
            "style" => css::scan(content, &mut self.scan),
            "script" => self.script(tag),
            "picture" => self.picture = Some(false),
            "source" => self.source(tag),
            "img" => self.image(tag),
            "input"
                if tag
                    .get("type")
                    .is_some_and(|kind| kind.eq_ignore_ascii_case("image")) =>
            {
                self.push(tag, "src", AssetKind::Image);
            }
            "video" => self.push(tag, "poster", AssetKind::Image),
            "body" | "table" | "td" | "th" => self.push(tag, "background", AssetKind::Image),
            "image" | "feimage" => self.vector(tag, AssetKind::Image),
            "use" => self.vector(tag, AssetKind::Other),
            "iframe" | "frame" => self.push(tag, "src", AssetKind::Frame),
            "embed" => self.push(tag, "src", AssetKind::Other),
            "object" => self.push(tag, "data", AssetKind::Other),
            _ => {}
        }
        if let Some(style) = tag.get("style") {
            css::scan(style.as_bytes(), &mut self.scan);
        }
    }

    fn push(&mut self, tag: &Tag<'_>, attribute: &str, kind: AssetKind) {
        if let Some(reference) = tag.get(attribute) {
            self.scan.push(kind, &reference);
        }
    }

    fn link(&mut self, tag: &Tag<'_>) {
        let Some(href) = tag.get("href") else {
            return;
        };
        let words = tag.get("rel").unwrap_or_default().to_ascii_lowercase();
        let is = |wanted: &str| words.split_ascii_whitespace().any(|word| word == wanted);
        if is("stylesheet") && !tag.has("disabled") && tag.is_any("type", &["text/css"]) {
            self.scan.push(AssetKind::Style, &href);
        } else if is("icon") {
            // Of several the last one, unless one fits every size.
            let fits_all = tag.get("type").is_some_and(|kind| kind.contains("svg"))
                || tag.get("sizes").is_some_and(|sizes| sizes == "any");
            if fits_all || !matches!(self.icon, Some((true, _))) {
                self.icon = Some((fits_all, href.into_owned()));
            }
        } else if is("modulepreload") {
            self.scan.push(AssetKind::Script, &href);
        } else if is("preload") {
            let kind = match &*tag.get("as").unwrap_or_default() {
                "style" => AssetKind::Style,
                "script" => AssetKind::Script,
                "font" => AssetKind::Font,
                "image" => AssetKind::Image,
                _ => AssetKind::Other,
            };
            let several = tag.get("imagesrcset").filter(|_| kind == AssetKind::Image);
            let first = several.as_deref().and_then(first_candidate);
            self.scan.push(kind, first.unwrap_or(&href));
        }
    }

    fn script(&mut self, tag: &Tag<'_>) {
        let kind = tag.get("type").unwrap_or_default();
        let is_module = kind.trim().eq_ignore_ascii_case("module");
        if is_module || !tag.has("nomodule") && tag.is_any("type", SCRIPTS) {
            self.push(tag, "src", AssetKind::Script);
            self.vector(tag, AssetKind::Script);
        }
    }

    /// A source of a picture: the first that may be shown takes the place of the image. Whether a
    /// condition on the screen is met is not known here, so such a source is passed over.
    fn source(&mut self, tag: &Tag<'_>) {
        if self.picture != Some(false) || tag.has("media") || !tag.is_any("type", IMAGES) {
            return;
        }
        let several = tag.get("srcset").unwrap_or_default();
        if let Some(first) = first_candidate(&several) {
            self.scan.push(AssetKind::Image, first);
            self.picture = Some(true);
        }
    }

    fn image(&mut self, tag: &Tag<'_>) {
        if self.picture == Some(true) {
            return;
        }
        let several = tag.get("srcset").unwrap_or_default();
        match first_candidate(&several) {
            Some(first) => self.scan.push(AssetKind::Image, first),
            None => self.push(tag, "src", AssetKind::Image),
        }
    }

    /// What a drawing within the document refers to.
    fn vector(&mut self, tag: &Tag<'_>, kind: AssetKind) {
        let attribute = if tag.has("href") {
            "href"
        } else {
            "xlink:href"
        };
        self.push(tag, attribute, kind);
    }

    fn finish(mut self) -> Scan {
        if let Some((_, icon)) = self.icon {
            self.scan.push(AssetKind::Icon, &icon);
        }
        self.scan
    }
}

/// The first of several images for screens of several kinds.
fn first_candidate(several: &str) -> Option<&str> {
    let is_between = |letter: char| letter.is_ascii_whitespace() || letter == ',';
    let several = several.trim_start_matches(is_between);
    let end = several.find(|letter: char| letter.is_ascii_whitespace());
    let first = several[..end.unwrap_or(several.len())].trim_end_matches(',');
    Some(first).filter(|first| !first.is_empty())
}

#[cfg(test)]
#[path = "tests/html.rs"]
mod tests;
