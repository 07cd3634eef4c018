//! Follows the markup of a page, and writes data as it is safe where it stands.
//!
//! ```text
//! text <tag name=value name="value" name='value'> text <script>...</script> <!-- comment -->
//! ```

use std::borrow::Cow;

use crate::value::Marks;

use super::encode::{
    html_decode, html_encode_all, html_encode_comment, html_encode_marked, html_encode_unquoted,
    percent_encode, percent_encode_address, script_encode,
};
use super::script::{ScriptPlace, ScriptSpot};
use super::url::{UrlByte, UrlData, UrlPlace};

/// How data is escaped.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum EscapeMode {
    /// By where it stands.
    #[default]
    Context,
    /// Everywhere as text of HTML.
    Html,
    /// Not at all.
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HtmlState {
    Text,
    /// Behind `<`.
    TagOpen,
    /// Behind `</`.
    EndTagOpen,
    TagName,
    InTag,
    AttributeName,
    BehindName,
    BeforeValue,
    Value(Quotes),
    /// Behind `<!`, with how many `-` came.
    Bang(u8),
    /// With how many `-` came last.
    Comment(u8),
    /// The inside of an element without markup, up to its end tag.
    Raw,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Quotes {
    Double,
    Single,
    Without,
}

/// Whether a script is inside `<!--`, and there inside `<script`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ScriptNesting {
    None,
    Comment,
    Inner,
}

/// What the value of an attribute, or the inside of a raw element, is.
#[derive(Clone, Debug)]
enum Content {
    Plain,
    Url(UrlPlace),
    Script(ScriptPlace),
    Style,
    /// Nothing of data belongs here.
    Foreign,
}

const URL_ATTRIBUTES: &[&str] = &[
    "action",
    "background",
    "cite",
    "classid",
    "codebase",
    "data",
    "formaction",
    "href",
    "icon",
    "longdesc",
    "lowsrc",
    "manifest",
    "ping",
    "poster",
    "profile",
    "src",
    "srcset",
    "usemap",
    "xlink:href",
];
/// Elements whose inside has no tags.
const RAW_ELEMENTS: &[&str] = &[
    "iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp",
];
/// Words that data may be between attributes.
const FLAGS: &[&str] = &[
    "checked", "disabled", "multiple", "readonly", "required", "selected",
];
/// More than the longest name that matters.
const NAME_BYTES_MAX: usize = 16;

/// A name in lower case, as long as it has to be to be known.
#[derive(Clone, Copy, Default, Debug)]
struct ShortName {
    bytes: [u8; NAME_BYTES_MAX],
    length: usize,
}

impl ShortName {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte.to_ascii_lowercase();
            self.length += 1;
        }
    }

    fn clear(&mut self) {
        self.length = 0;
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The place in a page. See the head of this file.
#[derive(Clone, Debug)]
pub struct HtmlPlace {
    mode: EscapeMode,
    state: HtmlState,
    /// The tag's name, lower case.
    tag: ShortName,
    is_end_tag: bool,
    attribute: ShortName,
    content: Content,
    /// How much of `</name` has come, inside a raw element.
    end_matched: usize,
    nesting: ScriptNesting,
    /// The last bytes of a script, lower case.
    recent: [u8; 8],
    /// A value without quotes was empty so far; without a pair of quotes it would not end.
    owes_quotes: bool,
    /// A reference in a value that holds a script or an address.
    reference: Option<Vec<u8>>,
}

impl HtmlPlace {
    /// The start of a page.
    pub fn new(mode: EscapeMode) -> Self {
        Self {
            mode,
            state: HtmlState::Text,
            tag: ShortName::default(),
            is_end_tag: false,
            attribute: ShortName::default(),
            content: Content::Plain,
            end_matched: 0,
            nesting: ScriptNesting::None,
            recent: [0; 8],
            owes_quotes: false,
            reference: None,
        }
    }

    /// Whether nothing is open: what was passed before does not matter any more.
    pub(crate) fn is_clear(&self) -> bool {
        self.mode == EscapeMode::Context && self.state == HtmlState::Text
    }

    /// The place behind some text of the author that begins where nothing is open.
    pub(crate) fn behind(bytes: &[u8]) -> Self {
        let mut place = Self::new(EscapeMode::Context);
        place.author(bytes, &mut Vec::new());
        place
    }

    /// Whether blanks may be taken out here without a change of meaning.
    pub(crate) fn is_plain_text(&self) -> bool {
        matches!(self.state, HtmlState::Text | HtmlState::InTag)
    }

    /// Text of the author.
    pub fn author(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.mode != EscapeMode::Context {
            return out.extend_from_slice(bytes);
        }
        // Most text needs no change: it is copied in as few steps as there are changes.
        let (mut at, mut copied) = (0, 0);
        while at < bytes.len() {
            if self.state == HtmlState::Text {
                let Some(tag) = memchr::memchr(b'<', &bytes[at..]) else {
                    break;
                };
                at += tag;
                match simple_tag(&bytes[at..]) {
                    Some(length) => at += length,
                    None => {
                        self.state = HtmlState::TagOpen;
                        at += 1;
                    }
                }
                continue;
            }
            out.extend_from_slice(&bytes[copied..at]);
            self.author_byte(bytes[at], out);
            at += 1;
            copied = at;
        }
        out.extend_from_slice(&bytes[copied..]);
    }

    fn author_byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        match self.state {
            HtmlState::Text => {
                if byte == b'<' {
                    self.state = HtmlState::TagOpen;
                }
            }
            HtmlState::TagOpen | HtmlState::EndTagOpen => self.tag_open(byte),
            HtmlState::TagName => match byte {
                b'>' => self.end_tag(),
                b'/' => self.state = HtmlState::InTag,
                _ if byte.is_ascii_whitespace() => self.state = HtmlState::InTag,
                _ => self.tag.push(byte),
            },
            HtmlState::InTag | HtmlState::AttributeName | HtmlState::BehindName => {
                self.in_tag(byte);
            }
            HtmlState::BeforeValue => return self.before_value(byte, out),
            HtmlState::Value(quotes) => return self.value_byte(quotes, byte, out),
            HtmlState::Bang(dashes) => {
                self.state = match (dashes, byte) {
                    (_, b'>') => HtmlState::Text,
                    (0, b'-') => HtmlState::Bang(1),
                    (1, b'-') => HtmlState::Comment(2),
                    _ => HtmlState::Bang(9),
                };
            }
            HtmlState::Comment(dashes) => {
                self.state = match byte {
                    b'>' if dashes >= 2 => HtmlState::Text,
                    b'-' => HtmlState::Comment((dashes + 1).min(2)),
                    b'!' if dashes >= 2 => HtmlState::Comment(dashes),
                    _ => HtmlState::Comment(0),
                };
            }
            HtmlState::Raw => self.raw_byte(byte),
        }
        out.push(byte);
    }

    fn tag_open(&mut self, byte: u8) {
        let is_end = self.state == HtmlState::EndTagOpen;
        self.state = match byte {
            b'/' if !is_end => HtmlState::EndTagOpen,
            b'!' | b'?' if !is_end => HtmlState::Bang(if byte == b'!' { 0 } else { 9 }),
            b'<' => HtmlState::TagOpen,
            _ if byte.is_ascii_alphabetic() => {
                self.tag.clear();
                self.is_end_tag = is_end;
                self.tag.push(byte);
                HtmlState::TagName
            }
            b'>' => HtmlState::Text,
            // `</` and no letter begins a comment up to `>`.
            _ if is_end => HtmlState::Bang(9),
            _ => HtmlState::Text,
        };
    }

    /// A `>` ended the tag.
    fn end_tag(&mut self) {
        let is_raw = !self.is_end_tag && is_raw_element(self.tag.bytes());
        self.state = match is_raw {
            true => HtmlState::Raw,
            false => HtmlState::Text,
        };
        self.end_matched = 0;
        self.nesting = ScriptNesting::None;
        self.recent = [0; 8];
        self.content = match self.tag.bytes() {
            b"script" => Content::Script(ScriptPlace::new()),
            b"style" => Content::Style,
            b"textarea" | b"title" => Content::Plain,
            _ => Content::Foreign,
        };
    }

    fn in_tag(&mut self, byte: u8) {
        let is_name = self.state == HtmlState::AttributeName;
        match byte {
            b'>' => self.end_tag(),
            b'/' => self.state = HtmlState::InTag,
            b'=' if self.state != HtmlState::InTag => {
                self.state = HtmlState::BeforeValue;
                self.owes_quotes = false;
            }
            _ if byte.is_ascii_whitespace() => {
                if is_name {
                    self.state = HtmlState::BehindName;
                }
            }
            _ => {
                if !is_name {
                    self.attribute.clear();
                    self.state = HtmlState::AttributeName;
                }
                self.attribute.push(byte);
            }
        }
    }

    fn before_value(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b'>' | b' ' | b'\t' | b'\r' | b'\n' | 0x0c if self.owes_quotes => {
                out.extend_from_slice(b"\"\"");
                self.owes_quotes = false;
                self.state = HtmlState::InTag;
                return self.author_byte(byte, out);
            }
            b'"' => self.begin_value(Quotes::Double),
            b'\'' => self.begin_value(Quotes::Single),
            b'>' => self.end_tag(),
            _ if byte.is_ascii_whitespace() => {}
            _ => {
                self.begin_value(Quotes::Without);
                return self.value_byte(Quotes::Without, byte, out);
            }
        }
        out.push(byte);
    }

    fn begin_value(&mut self, quotes: Quotes) {
        self.state = HtmlState::Value(quotes);
        self.reference = None;
        self.owes_quotes = false;
        let name = self.attribute.bytes();
        self.content = if URL_ATTRIBUTES.iter().any(|known| known.as_bytes() == name) {
            Content::Url(UrlPlace::new())
        } else if name.starts_with(b"on") {
            Content::Script(ScriptPlace::new())
        } else if name == b"style" {
            Content::Style
        } else if name == b"srcdoc" {
            Content::Foreign
        } else {
            Content::Plain
        };
    }

    fn value_byte(&mut self, quotes: Quotes, byte: u8, out: &mut Vec<u8>) {
        let is_end = match quotes {
            Quotes::Double => byte == b'"',
            Quotes::Single => byte == b'\'',
            Quotes::Without => byte == b'>' || byte.is_ascii_whitespace(),
        };
        if is_end {
            self.state = HtmlState::InTag;
            if byte == b'>' {
                self.end_tag();
            }
            return out.push(byte);
        }
        if matches!(self.content, Content::Plain | Content::Style) {
            return out.push(byte);
        }
        // A reference counts as the character it stands for.
        match (&mut self.reference, byte) {
            (Some(reference), b';') => {
                reference.push(byte);
                let text = html_decode(reference);
                self.reference = None;
                if let [character] = text[..] {
                    self.content_byte(character);
                }
                out.push(byte);
            }
            (Some(reference), _) if byte.is_ascii_alphanumeric() || byte == b'#' => {
                reference.push(byte);
                if reference.len() > 10 {
                    self.reference = None;
                }
                out.push(byte);
            }
            (_, b'&') => {
                self.reference = Some(vec![b'&']);
                out.push(byte);
            }
            _ => {
                self.reference = None;
                match self.content_byte(byte) {
                    UrlByte::Defused => out.extend_from_slice(b"%3A"),
                    _ => out.push(byte),
                }
            }
        }
    }

    /// A byte of an address or a script in a value.
    fn content_byte(&mut self, byte: u8) -> UrlByte {
        match &mut self.content {
            Content::Script(place) => place.author(byte),
            Content::Url(place) => {
                let seen = place.author(byte);
                match seen {
                    UrlByte::Script => self.content = Content::Script(ScriptPlace::new()),
                    UrlByte::Foreign => self.content = Content::Foreign,
                    UrlByte::Plain | UrlByte::Defused => {}
                }
                return seen;
            }
            _ => {}
        }
        UrlByte::Plain
    }

    fn raw_byte(&mut self, byte: u8) {
        let matched = self.end_matched;
        let wanted = match matched {
            0 => Some(b'<'),
            1 => Some(b'/'),
            _ => self.tag.bytes().get(matched - 2).copied(),
        };
        match wanted {
            Some(wanted) if byte.to_ascii_lowercase() == wanted => self.end_matched += 1,
            None if self.nesting == ScriptNesting::Inner && is_name_end(byte) => {
                self.nesting = ScriptNesting::Comment;
                self.end_matched = 0;
            }
            None if is_name_end(byte) => {
                self.is_end_tag = true;
                self.state = HtmlState::InTag;
                if byte == b'>' {
                    self.end_tag();
                }
                return;
            }
            _ => self.end_matched = usize::from(byte == b'<'),
        }
        if let Content::Script(place) = &mut self.content {
            place.author(byte);
            self.follow_nesting(byte);
        }
    }

    /// Inside `<!--` of a script, `<script` makes the next `</script` end nothing.
    fn follow_nesting(&mut self, byte: u8) {
        self.recent.rotate_left(1);
        self.recent[7] = byte.to_ascii_lowercase();
        self.nesting = match self.nesting {
            ScriptNesting::None if self.recent.ends_with(b"<!--") => ScriptNesting::Comment,
            ScriptNesting::Comment if is_name_end(byte) && self.recent[..7] == *b"<script" => {
                ScriptNesting::Inner
            }
            _ if self.recent.ends_with(b"-->") => ScriptNesting::None,
            nesting => nesting,
        };
    }

    /// Data. What nothing makes safe here is left out, and the reason told.
    pub fn data(
        &mut self,
        bytes: &[u8],
        marks: Marks,
        out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        if marks.has(Marks::RAW) {
            self.author(bytes, out);
            return Ok(());
        }
        match self.mode {
            EscapeMode::Off => out.extend_from_slice(bytes),
            EscapeMode::Html if marks.has(Marks::HTML) => html_encode_marked(bytes, out),
            EscapeMode::Html => html_encode_all(bytes, out),
            EscapeMode::Context => return self.data_in_context(bytes, marks, out),
        }
        Ok(())
    }

    fn data_in_context(
        &mut self,
        bytes: &[u8],
        marks: Marks,
        out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        match self.state {
            HtmlState::BeforeValue if bytes.is_empty() => {
                self.owes_quotes = true;
                return Ok(());
            }
            HtmlState::BeforeValue => self.begin_value(Quotes::Without),
            _ if bytes.is_empty() => return Ok(()),
            // `<` and then data is a sign, not a tag.
            HtmlState::TagOpen => {
                out.extend_from_slice(b" ");
                self.state = HtmlState::Text;
            }
            _ => {}
        }
        match self.state {
            HtmlState::Text => write_text(bytes, marks, out),
            HtmlState::Value(quotes) => return self.data_in_value(quotes, bytes, marks, out),
            HtmlState::Comment(_) => {
                html_encode_comment(bytes, out);
                self.state = HtmlState::Comment(0);
            }
            HtmlState::Raw => return self.data_in_raw(bytes, marks, out),
            HtmlState::InTag if is_flag(bytes) => out.extend_from_slice(bytes),
            HtmlState::Bang(_) => return Err("data stands in a declaration of markup"),
            _ => return Err("data stands in a tag, where only its author's names may"),
        }
        Ok(())
    }

    fn data_in_value(
        &mut self,
        quotes: Quotes,
        bytes: &[u8],
        marks: Marks,
        out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        if self.reference.take().is_some() && matches!(self.content, Content::Script(_)) {
            return Err("data stands in a script where it could end a reference");
        }
        let plain = &*decoded(bytes, marks);
        match &mut self.content {
            Content::Plain => match quotes {
                Quotes::Without => html_encode_unquoted(plain, out),
                _ => write_text(bytes, marks, out),
            },
            Content::Url(place) => match place.data(plain) {
                _ if marks.has(Marks::URL) => write_text(bytes, marks, out),
                UrlData::Address => percent_encode_address(plain, out),
                UrlData::Part => percent_encode(plain, out),
                UrlData::Refused => {
                    out.push(b'#');
                    return Err("data brings an address of a scheme that is not allowed");
                }
            },
            Content::Script(place) => {
                write_script(place, plain, quotes != Quotes::Without, out)?;
            }
            Content::Style => write_style(plain, quotes != Quotes::Without, out)?,
            Content::Foreign => return Err("data stands where it would be a page of its own"),
        }
        Ok(())
    }

    fn data_in_raw(
        &mut self,
        bytes: &[u8],
        marks: Marks,
        out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        // Only text may begin with a `/`, which `<` before it would make an end tag.
        let matched_max = usize::from(!matches!(self.content, Content::Plain));
        if self.end_matched > matched_max {
            return Err("data stands where it could end the element around it");
        }
        self.end_matched = 0;
        let plain = &*decoded(bytes, marks);
        match &mut self.content {
            Content::Plain => write_text(bytes, marks, out),
            Content::Script(place) => write_script(place, plain, true, out)?,
            Content::Style => write_style(plain, true, out)?,
            Content::Url(_) | Content::Foreign => {
                return Err("data stands in an element that has no text of its own");
            }
        }
        Ok(())
    }
}

/// The bytes as they were before their markup was encoded.
fn decoded(bytes: &[u8], marks: Marks) -> Cow<'_, [u8]> {
    match marks.has(Marks::HTML) {
        true => Cow::Owned(html_decode(bytes)),
        false => Cow::Borrowed(bytes),
    }
}

fn write_text(bytes: &[u8], marks: Marks, out: &mut Vec<u8>) {
    match marks.has(Marks::HTML) {
        true => html_encode_marked(bytes, out),
        false => html_encode_all(bytes, out),
    }
}

fn write_script(
    place: &mut ScriptPlace,
    bytes: &[u8],
    is_quoted: bool,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    match place.spot() {
        ScriptSpot::Text => script_encode(bytes, is_quoted, out),
        ScriptSpot::Code if is_number(bytes) => out.extend_from_slice(bytes),
        ScriptSpot::Comment if bytes.iter().all(u8::is_ascii_alphanumeric) => {
            out.extend_from_slice(bytes);
        }
        ScriptSpot::Code => return Err("data stands in a script outside of quotes"),
        _ => return Err("data stands in a script where it could end something"),
    }
    place.pass_data();
    Ok(())
}

fn write_style(bytes: &[u8], is_quoted: bool, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let is_safe = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'#' | b'.' | b'%' | b'-' | b'_')
            || (*byte == b' ' && is_quoted)
    };
    match bytes.iter().all(is_safe) {
        true => out.extend_from_slice(bytes),
        false => return Err("data stands in a style and is more than a word or a number"),
    }
    Ok(())
}

/// The length of the tag that begins here, if it is one that leaves the page as it was: its end is
/// here, its values are in `"`, and what follows it is text.
fn simple_tag(bytes: &[u8]) -> Option<usize> {
    let start = if bytes.get(1) == Some(&b'/') { 2 } else { 1 };
    let name = bytes.get(start..)?;
    let end = name.iter().position(|byte| !byte.is_ascii_alphanumeric())?;
    if end == 0 || !name[0].is_ascii_alphabetic() || start == 1 && is_raw_element(&name[..end]) {
        return None;
    }
    let mut at = start + end;
    loop {
        match bytes.get(at)? {
            b'>' => return Some(at + 1),
            b'=' => {
                let is_named = bytes[at - 1].is_ascii_alphanumeric();
                if !is_named || bytes.get(at + 1) != Some(&b'"') {
                    return None;
                }
                at += 2 + memchr::memchr(b'"', &bytes[at + 2..])?;
            }
            b'"' | b'\'' | b'<' => return None,
            byte if at == start + end && !matches!(byte, b' ' | b'\n' | b'/') => return None,
            _ => {}
        }
        at += 1;
    }
}

fn is_name_end(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>')
}

fn is_raw_element(name: &[u8]) -> bool {
    let mut known = RAW_ELEMENTS.iter();
    known.any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

fn is_number(bytes: &[u8]) -> bool {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let mut points = 0;
    let is_number = digits.iter().all(|byte| {
        points += usize::from(*byte == b'.');
        byte.is_ascii_digit() || *byte == b'.'
    });
    is_number && points <= 1 && digits.first().is_some_and(u8::is_ascii_digit)
}

fn is_flag(bytes: &[u8]) -> bool {
    FLAGS
        .iter()
        .any(|flag| flag.as_bytes().eq_ignore_ascii_case(bytes))
}
