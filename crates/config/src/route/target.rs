//! A request's path in the one form that routes, handlers and the file system see.
//!
//! What is refused, because two readers could understand it differently: control bytes and NUL, raw
//! or encoded; a backslash, raw or encoded; `.` or `..` between slashes of which one is encoded
//! (`..%2F`); `%` without two hex digits; a raw space, `?` or `#`; dot segments that lead above the
//! root. What is rewritten: every other `%XX` is decoded, once (`%252e` becomes the three
//! characters `%2e`); `.` and `..` segments are taken out, whether they were encoded or not; runs
//! of slashes become one, before dot segments count (`/a//../b` is `/b`). What is kept: bytes above
//! 0x7F, encoded or raw, whether or not they are UTF-8.
//!
//! An encoded slash (`%2F`) is no separator, but a byte of its segment: [`ENCODED_SLASH`]. That is
//! NUL, which nothing else can bring into a path, so that it is told from the text `%2F` (sent as
//! `%252F`), which stays three characters; and which no name of a file and no variable can hold, so
//! that who forgets about it finds nothing instead of something else. Keeping the three characters
//! was weighed: then every reader of a path would have to escape and unescape them. Programs are
//! told a slash ([`told`]), people and URLs `%2F` ([`PathDisplay`], `percent`).

use std::borrow::Cow;
use std::fmt;

use super::percent::decode_pair;

/// What an encoded slash is in a normal path.
pub const ENCODED_SLASH: u8 = 0;

/// Where a normalised path is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normal {
    /// The raw path is normal as it stands.
    Clean,
    /// The normal path was written to the output buffer.
    Rewritten,
}

impl Normal {
    /// The normal path, given the two places it can be in.
    pub fn path<'a>(self, raw: &'a [u8], out: &'a [u8]) -> &'a [u8] {
        match self {
            Normal::Clean => raw,
            Normal::Rewritten => out,
        }
    }
}

/// Why a path is refused (400, the client's fault).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPath {
    /// It does not begin with `/`.
    NotAbsolute,
    /// A `%` without two hex digits behind it.
    Percent,
    /// A control byte, raw or encoded; NUL is one.
    Control,
    /// A dot segment beside an encoded slash.
    Slash,
    /// A backslash, raw or encoded.
    Backslash,
    /// A raw space, `?` or `#`, none of which can be part of a path.
    Delimiter,
    /// Dot segments that lead above the root.
    AboveRoot,
}

impl BadPath {
    /// The reason in words, for the record.
    pub const fn reason(self) -> &'static str {
        match self {
            BadPath::NotAbsolute => "path does not begin with `/`",
            BadPath::Percent => "`%` in path without two hex digits",
            BadPath::Control => "control byte in path",
            BadPath::Slash => "dot segment beside an encoded slash",
            BadPath::Backslash => "backslash in path",
            BadPath::Delimiter => "unencoded space, `?` or `#` in path",
            BadPath::AboveRoot => "dot segments lead above the root",
        }
    }
}

impl fmt::Display for BadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl std::error::Error for BadPath {}

/// Brings a raw path into its normal form.
///
/// A path that is normal already is recognised in one pass and not copied; else the normal form
/// replaces the content of `out`. Normalising an outcome as raw path again may decode again: it is
/// done once per request.
//= rfc3986#5.2.4
//= rfc3986#6.2.2
pub fn normalise(raw: &[u8], out: &mut Vec<u8>) -> Result<Normal, BadPath> {
    if raw.first() != Some(&b'/') {
        return Err(BadPath::NotAbsolute);
    }
    if is_clean(raw) {
        return Ok(Normal::Clean);
    }
    join_segments(raw, out, Slashes::MadeOne, append_decoded)?;
    Ok(Normal::Rewritten)
}

/// What follows the first bytes of a normal path, with as many slashes as were sent in it.
///
/// `raw` is the path that was sent. If it is not the one that `normal` was made of, because that
/// was rewritten, all stays as it is there. `named` bytes of it end with a segment, or all of it
/// follows. The outcome is the same as the rest of the normal path but for slashes that follow each
/// other: which dot segments are taken out does not depend on them.
pub fn rest_as_sent<'n>(raw: &[u8], normal: &'n [u8], named: usize) -> Cow<'n, [u8]> {
    let (name, rest) = normal.split_at(named);
    if rest.first() != Some(&b'/') || !has_double_slash(raw) {
        return Cow::Borrowed(rest);
    }
    let mut sent = Vec::new();
    let joined = join_segments(raw, &mut sent, Slashes::Kept, append_decoded);
    if joined.is_err() || !is_same_path(&sent, normal) {
        return Cow::Borrowed(rest);
    }
    let mut begin = 0;
    for _ in memchr::memchr_iter(b'/', name) {
        let is_slash = |byte: &&u8| **byte == b'/';
        begin += sent[begin..].iter().take_while(is_slash).count();
        begin += memchr::memchr(b'/', &sent[begin..]).unwrap_or(sent.len() - begin);
    }
    Cow::Owned(sent.split_off(begin))
}

/// A part of a normal path as programs are told it: an encoded slash is one.
//= rfc3875#4.1.5
pub fn told(path: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    told_as(path, b'/')
}

/// The same, with another byte for an encoded slash.
pub fn told_as(mut path: Cow<'_, [u8]>, slash: u8) -> Cow<'_, [u8]> {
    if memchr::memchr(ENCODED_SLASH, &path).is_some() {
        for byte in path.to_mut() {
            if *byte == ENCODED_SLASH {
                *byte = slash;
            }
        }
    }
    path
}

/// Decoded text of a config as it stands in a normal path: there, `%2F` is an encoded slash.
pub fn with_encoded_slashes(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        (rest, _) = match rest {
            [b'%', b'2', b'F' | b'f', beyond @ ..] => (beyond, out.push(ENCODED_SLASH)),
            _ => (after, out.push(*first)),
        };
    }
    out
}

/// A normal path, or a part of it, for people: `%2F` is an encoded slash, and a `%` is `%25` where
/// it could be taken for the begin of either. Other bytes stand as they are, and with `{:#}` those
/// that are not ASCII are escaped.
pub struct PathDisplay<'a>(pub &'a [u8]);

impl fmt::Display for PathDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |f: &mut fmt::Formatter<'_>, bytes: &[u8]| match f.alternate() {
            true => write!(f, "{}", bytes.escape_ascii()),
            false => f.write_str(&String::from_utf8_lossy(bytes)),
        };
        let mut begin = 0;
        for at in memchr::memchr2_iter(ENCODED_SLASH, b'%', self.0) {
            let instead = match &self.0[at..] {
                [ENCODED_SLASH, ..] => "%2F",
                [_, b'2', b'F' | b'f' | b'5', ..] => "%25",
                _ => continue,
            };
            plain(f, &self.0[begin..at])?;
            f.write_str(instead)?;
            begin = at + 1;
        }
        plain(f, &self.0[begin..])
    }
}

/// Takes dot segments and double slashes out of a path that is decoded already.
///
/// This is for paths put together from captures. They are made of normal pieces, but two normal
/// pieces side by side may form a dot segment.
pub fn collapse(decoded: &[u8], out: &mut Vec<u8>) -> Result<Normal, BadPath> {
    if decoded.first() != Some(&b'/') {
        return Err(BadPath::NotAbsolute);
    }
    let has_encoded_slash = memchr::memchr(ENCODED_SLASH, decoded).is_some();
    if !may_have_dot_or_empty_segments(decoded) && !has_encoded_slash {
        return Ok(Normal::Clean);
    }
    join_segments(decoded, out, Slashes::MadeOne, |segment, out| {
        out.extend_from_slice(segment);
        Ok(())
    })?;
    Ok(Normal::Rewritten)
}

/// True when a request can name this file of a folder: what it cannot is refused above.
pub fn can_be_segment(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
        && !name
            .iter()
            .any(|&byte| is_control(byte) || matches!(byte, b'\\' | b'/'))
}

const NEEDS_WORK: u8 = 0x80;
const SLASH: u8 = 0b10;
const AFTER_SLASH: u8 = 0b01;

/// What a byte means for the quick look: bit 7 asks for a closer look, bit 1 is a slash, bit 0 is a
/// byte that asks for a closer look when it follows a slash.
const CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte <= b' ' as usize {
        table[byte] = NEEDS_WORK;
        byte += 1;
    }
    table[0x7f] = NEEDS_WORK;
    table[b'%' as usize] = NEEDS_WORK;
    table[b'\\' as usize] = NEEDS_WORK;
    table[b'?' as usize] = NEEDS_WORK;
    table[b'#' as usize] = NEEDS_WORK;
    table[b'/' as usize] = SLASH | AFTER_SLASH;
    table[b'.' as usize] = AFTER_SLASH;
    table
};

/// True when nothing needs a closer look: no escape, no forbidden byte, no `//`, no `/.`.
fn is_clean(path: &[u8]) -> bool {
    look_closer(path) == 0
}

fn may_have_dot_or_empty_segments(path: &[u8]) -> bool {
    look_closer(path) & AFTER_SLASH != 0
}

fn look_closer(path: &[u8]) -> u8 {
    let mut before = 0;
    let mut found = 0;
    for &byte in path {
        let class = CLASS[usize::from(byte)];
        found |= (class & NEEDS_WORK) | (class & (before >> 1) & AFTER_SLASH);
        before = class;
    }
    found
}

fn has_double_slash(path: &[u8]) -> bool {
    memchr::memchr_iter(b'/', path).any(|at| path.get(at + 1) == Some(&b'/'))
}

/// True when a path is the normal one but for slashes that follow each other.
fn is_same_path(path: &[u8], normal: &[u8]) -> bool {
    let follows = |at: &usize| *at > 0 && path[*at - 1..=*at] == *b"//";
    let kept = (0..path.len()).filter(|at| !follows(at));
    kept.map(|at| path[at]).eq(normal.iter().copied())
}

/// What becomes of slashes that follow each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slashes {
    MadeOne,
    /// They stay, but for those around dot segments and what these take out.
    Kept,
}

/// Writes the segments of `path` to `out`, each through `append`, without empty and dot segments.
///
/// `out` ends in `/` whenever a segment begins, so a `..` cuts back to the slashes before the last
/// segment that is not empty.
fn join_segments(
    path: &[u8],
    out: &mut Vec<u8>,
    slashes: Slashes,
    append: impl Fn(&[u8], &mut Vec<u8>) -> Result<(), BadPath>,
) -> Result<(), BadPath> {
    out.clear();
    out.reserve(path.len());
    out.push(b'/');
    let mut rest = &path[1..];
    loop {
        let slash = memchr::memchr(b'/', rest);
        let begin = out.len();
        append(&rest[..slash.unwrap_or(rest.len())], out)?;
        match &out[begin..] {
            b"" if slash.is_some() && slashes == Slashes::Kept => out.push(b'/'),
            b"" => {}
            b"." => out.truncate(begin),
            b".." => {
                let name_end = out[..begin].iter().rposition(|&byte| byte != b'/');
                let name_end = name_end.ok_or(BadPath::AboveRoot)?;
                let parent = memchr::memrchr(b'/', &out[..name_end]);
                out.truncate(parent.ok_or(BadPath::AboveRoot)? + 1);
            }
            segment if has_dots_beside_encoded_slash(segment) => return Err(BadPath::Slash),
            _ if slash.is_some() => out.push(b'/'),
            _ => {}
        }
        match slash {
            Some(slash) => rest = &rest[slash + 1..],
            None => return Ok(()),
        }
    }
}

/// A reader who takes encoded slashes for separators would find a dot segment in it.
pub(super) fn has_dots_beside_encoded_slash(segment: &[u8]) -> bool {
    memchr::memchr(ENCODED_SLASH, segment).is_some()
        && segment
            .split(|&byte| byte == ENCODED_SLASH)
            .any(|piece| matches!(piece, b"." | b".."))
}

fn append_decoded(segment: &[u8], out: &mut Vec<u8>) -> Result<(), BadPath> {
    let mut index = 0;
    while index < segment.len() {
        let mut byte = segment[index];
        index += 1;
        if byte == b'%' {
            let pair = segment.get(index..index + 2).ok_or(BadPath::Percent)?;
            byte = decode_pair(pair).ok_or(BadPath::Percent)?;
            index += 2;
            if byte == b'/' {
                out.push(ENCODED_SLASH);
                continue;
            }
        } else if matches!(byte, b' ' | b'?' | b'#') {
            return Err(BadPath::Delimiter);
        }
        match byte {
            _ if is_control(byte) => return Err(BadPath::Control),
            b'\\' => return Err(BadPath::Backslash),
            _ => out.push(byte),
        }
    }
    Ok(())
}

fn is_control(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f
}

#[cfg(test)]
mod tests;
