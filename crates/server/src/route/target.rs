//! A request's path in the one form that routes, handlers and the file system see.
//!
//! What is refused, because two readers could understand it differently: control bytes and NUL, raw
//! or encoded; a backslash, raw or encoded; an encoded slash (`%2F`), whose segment would change
//! its meaning when decoded; `%` without two hex digits; a raw space, `?` or `#`; dot segments that
//! lead above the root. What is rewritten: every other `%XX` is decoded, once (`%252e` becomes the
//! three characters `%2e`); `.` and `..` segments are taken out, whether they were encoded or not;
//! runs of slashes become one, before dot segments count (`/a//../b` is `/b`). What is kept: bytes
//! above 0x7F, encoded or raw, whether or not they are UTF-8.

use std::fmt;

use super::percent::decode_pair;

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
    /// An encoded slash.
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
            BadPath::Slash => "encoded slash in path",
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

/// Splits a request target into its path and its query, at the first `?`.
//= rfc3986#3.4
pub fn split_target(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'?', target) {
        Some(mark) => (&target[..mark], Some(&target[mark + 1..])),
        None => (target, None),
    }
}

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
    join_segments(raw, out, append_decoded)?;
    Ok(Normal::Rewritten)
}

/// Takes dot segments and double slashes out of a path that is decoded already.
///
/// This is for paths put together from captures. They are made of normal pieces, but two normal
/// pieces side by side may form a dot segment.
pub fn collapse(decoded: &[u8], out: &mut Vec<u8>) -> Result<Normal, BadPath> {
    if decoded.first() != Some(&b'/') {
        return Err(BadPath::NotAbsolute);
    }
    if !may_have_dot_or_empty_segments(decoded) {
        return Ok(Normal::Clean);
    }
    join_segments(decoded, out, |segment, out| {
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

/// Writes the segments of `path` to `out`, each through `append`, without empty and dot segments.
///
/// `out` ends in `/` whenever a segment begins, so a `..` cuts back to the slash before it.
fn join_segments(
    path: &[u8],
    out: &mut Vec<u8>,
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
            b"" => {}
            b"." => out.truncate(begin),
            b".." => {
                let parent = memchr::memrchr(b'/', &out[..begin - 1]);
                out.truncate(parent.ok_or(BadPath::AboveRoot)? + 1);
            }
            _ if slash.is_some() => out.push(b'/'),
            _ => {}
        }
        match slash {
            Some(slash) => rest = &rest[slash + 1..],
            None => return Ok(()),
        }
    }
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
                return Err(BadPath::Slash);
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
