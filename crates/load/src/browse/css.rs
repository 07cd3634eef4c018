//! What a stylesheet names: `@import`, images, and of each font the first source that browsers
//! can read. Whatever is malformed is passed over, as browsers do.
//!
//! Whether a rule applies to anything is not looked at: browsers load an image or a font only once
//! something on the page needs it.

use super::found::Scan;
use crate::measure::AssetKind;

/// Formats of fonts that no browser reads any more.
const OLD_FORMATS: &[&str] = &["embedded-opentype", "svg"];

/// Adds what is named to `scan`.
pub(super) fn scan(text: &[u8], scan: &mut Scan) {
    let mut reader = CssReader { text, at: 0 };
    let mut font: Option<Font> = None;
    while let Some(byte) = reader.peek() {
        match byte {
            b'/' if reader.rest().starts_with(b"/*") => reader.skip_comment(),
            b'"' | b'\'' => {
                reader.string();
            }
            b'@' => {
                reader.at += 1;
                let word = reader.word();
                if word.eq_ignore_ascii_case("import") {
                    if let Some(reference) = reader.import() {
                        scan.push(AssetKind::Style, &reference);
                    }
                } else if word.eq_ignore_ascii_case("namespace") {
                    reader.skip_to(b';');
                } else if word.eq_ignore_ascii_case("font-face") {
                    font = Some(Font::default());
                }
            }
            b';' | b'}' => {
                reader.at += 1;
                if let Some(face) = &mut font {
                    face.end_declaration();
                }
                if byte == b'}'
                    && let Some(source) = font.take().and_then(|face| face.source)
                {
                    scan.push(AssetKind::Font, &source);
                }
            }
            _ if is_name(byte) => {
                let word = reader.word();
                if !word.eq_ignore_ascii_case("url") || reader.peek() != Some(b'(') {
                    continue;
                }
                reader.at += 1;
                let Some(reference) = reader.url() else {
                    continue;
                };
                match &mut font {
                    Some(face) => face.take(reference, reader.format()),
                    None => scan.push(AssetKind::Image, &reference),
                }
            }
            _ => reader.at += 1,
        }
    }
}

/// The sources of one font. Of several lists the last one counts, of a list the first entry that
/// can be read.
#[derive(Default)]
struct Font {
    source: Option<String>,
    of_list: Option<String>,
}

impl Font {
    fn take(&mut self, reference: String, format: Option<String>) {
        let is_old = format.is_some_and(|format| {
            let mut old = OLD_FORMATS.iter();
            old.any(|old| old.eq_ignore_ascii_case(&format))
        });
        if !is_old {
            self.of_list.get_or_insert(reference);
        }
    }

    fn end_declaration(&mut self) {
        self.source = self.of_list.take().or(self.source.take());
    }
}

struct CssReader<'a> {
    text: &'a [u8],
    at: usize,
}

impl CssReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn rest(&self) -> &[u8] {
        &self.text[self.at.min(self.text.len())..]
    }

    fn skip_comment(&mut self) {
        let end = memchr::memmem::find(&self.rest()[2..], b"*/");
        self.at = end.map_or(self.text.len(), |end| self.at + 2 + end + 2);
    }

    fn skip_to(&mut self, byte: u8) {
        let end = memchr::memchr(byte, self.rest());
        self.at = end.map_or(self.text.len(), |end| self.at + end);
    }

    /// Spaces and comments.
    fn skip_space(&mut self) {
        loop {
            match self.peek() {
                Some(byte) if byte.is_ascii_whitespace() => self.at += 1,
                Some(b'/') if self.rest().starts_with(b"/*") => self.skip_comment(),
                _ => return,
            }
        }
    }

    /// A name; nothing where there is none.
    fn word(&mut self) -> String {
        let mut word = Vec::new();
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => self.escape(&mut word),
                _ if is_name(byte) => {
                    word.push(byte);
                    self.at += 1;
                }
                _ => break,
            }
        }
        String::from_utf8_lossy(&word).into_owned()
    }

    /// What stands behind a backslash: a character's number, or the character.
    fn escape(&mut self, out: &mut Vec<u8>) {
        self.at += 1;
        let digits = self.rest().iter().take(6);
        let digits = digits.take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits == 0 {
            match self.peek() {
                // A line that goes on.
                Some(b'\n') | None => {}
                Some(byte) => out.push(byte),
            }
            self.at += 1;
            return;
        }
        let text = &self.text[self.at..self.at + digits];
        let number = text.iter().fold(0, |sum, byte| {
            sum * 16 + char::from(*byte).to_digit(16).unwrap_or(0)
        });
        let letter = char::from_u32(number).filter(|letter| *letter != '\0');
        let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        self.at += digits;
        if self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// A string in quotes; none where it breaks off.
    fn string(&mut self) -> Option<String> {
        let quote = self.peek()?;
        self.at += 1;
        let mut text = Vec::new();
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => self.escape(&mut text),
                b'\n' => return None,
                _ => {
                    self.at += 1;
                    if byte == quote {
                        return Some(String::from_utf8_lossy(&text).into_owned());
                    }
                    text.push(byte);
                }
            }
        }
        None
    }

    /// What follows `url(`.
    fn url(&mut self) -> Option<String> {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
        if matches!(self.peek(), Some(b'"' | b'\'')) {
            return self.string();
        }
        let mut text = Vec::new();
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => self.escape(&mut text),
                b')' => {
                    self.at += 1;
                    return Some(String::from_utf8_lossy(&text).trim().to_owned());
                }
                b'"' | b'\'' | b'(' => {
                    self.skip_to(b')');
                    return None;
                }
                _ => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
        None
    }

    /// What follows `@import`.
    fn import(&mut self) -> Option<String> {
        self.skip_space();
        match self.peek()? {
            b'"' | b'\'' => self.string(),
            _ if self.word().eq_ignore_ascii_case("url") && self.peek() == Some(b'(') => {
                self.at += 1;
                self.url()
            }
            _ => None,
        }
    }

    /// `format(...)` behind a font's source, if it is there.
    fn format(&mut self) -> Option<String> {
        // The bracket that ends a quoted URL is still to come.
        self.skip_space();
        if self.peek() == Some(b')') {
            self.at += 1;
            self.skip_space();
        }
        if !self.peek().is_some_and(is_name) {
            return None;
        }
        let word = self.word();
        if !word.eq_ignore_ascii_case("format") || self.peek() != Some(b'(') {
            return None;
        }
        self.at += 1;
        self.skip_space();
        match self.peek()? {
            b'"' | b'\'' => self.string(),
            _ => Some(self.word()),
        }
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'\\') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<(AssetKind, String)> {
        let mut all = Scan::default();
        scan(text.as_bytes(), &mut all);
        let found = all.found.into_iter();
        found.map(|one| (one.kind, one.reference)).collect()
    }

    fn pairs(all: &[(AssetKind, &str)]) -> Vec<(AssetKind, String)> {
        let all = all.iter();
        all.map(|(kind, text)| (*kind, (*text).to_owned()))
            .collect()
    }

    #[test]
    fn imports_images_and_fonts_are_found() {
        let text = r#"@charset "utf-8"; @import 'a.css' screen; @IMPORT url( b.css );
            @import/**/url("c.css") layer(x);
            @namespace svg url(http://www.w3.org/2000/svg);
            /* url(no.png) */ a { background: URL(d.png), url('e f.png') } b::after { content: "url(no)" }
            @font-face { font-family: x; src: local(y), url(f.woff2) format("woff2"), url(g.woff) }
            c { background: url(data:image/png;base64,AA==), url(#id), url(\68.png) }"#;
        let wanted = [
            (AssetKind::Style, "a.css"),
            (AssetKind::Style, "b.css"),
            (AssetKind::Style, "c.css"),
            (AssetKind::Image, "d.png"),
            (AssetKind::Image, "e f.png"),
            (AssetKind::Font, "f.woff2"),
            (AssetKind::Image, "h.png"),
        ];
        assert_eq!(named(text), pairs(&wanted));
    }

    #[test]
    fn font_has_the_first_source_of_its_last_list_that_can_be_read() {
        let text = r#"@font-face { src: url("a.eot"); src: url("a.eot?#iefix")
            format("embedded-opentype"), url(a.woff) format(woff), url(a.svg#a) format("svg"); }"#;
        assert_eq!(named(text), pairs(&[(AssetKind::Font, "a.woff")]));
    }

    #[test]
    fn what_is_malformed_is_passed_over() {
        for text in [
            "/*",
            "\"",
            "'\\",
            "@",
            "@import",
            "@import url(",
            "url(",
            "url('",
            "a{b:url(",
            "\\",
            "@import \"a",
            "url(a b",
            "@font-face{src:url(a",
            "@namespace",
            "url(a\"b)",
        ] {
            assert_eq!(named(text), [], "{text}");
        }
        assert_eq!(
            named("a{b:'x\n} c{d:url(e)}"),
            pairs(&[(AssetKind::Image, "e")])
        );
    }
}
