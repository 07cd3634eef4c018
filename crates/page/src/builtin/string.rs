//! Functions of strings. Positions count characters, from one.

use crate::escape::{html_encode, html_encode_all, percent_encode};
use crate::value::{Marks, Text};

use super::call::{Answer, BuiltInCall, bad_value};

pub(super) fn assign(call: &mut BuiltInCall<'_>) -> Answer {
    Ok(call.text(1))
}

pub(super) fn concat(call: &mut BuiltInCall<'_>) -> Answer {
    let mut text = call.text(0);
    text.push_text(&call.text(1));
    Ok(text)
}

pub(super) fn length(call: &mut BuiltInCall<'_>) -> Answer {
    Ok(Text::of_count(call.text(0).char_count()))
}

/// Letters of ASCII change their case; inside a reference of encoded text they do not.
pub(super) fn uppercase(call: &mut BuiltInCall<'_>) -> Answer {
    Ok(with_case(&call.text(0), |byte| byte.to_ascii_uppercase()))
}

pub(super) fn lowercase(call: &mut BuiltInCall<'_>) -> Answer {
    Ok(with_case(&call.text(0), |byte| byte.to_ascii_lowercase()))
}

fn with_case(text: &Text, change: fn(u8) -> u8) -> Text {
    let mut changed = Text::new();
    for (bytes, provenance) in text.runs() {
        let mut in_reference = false;
        let is_encoded = provenance.marks.has(Marks::HTML);
        let bytes: Vec<u8> = bytes
            .iter()
            .map(|byte| {
                in_reference = is_encoded && (*byte == b'&' || in_reference && *byte != b';');
                match in_reference {
                    true => *byte,
                    false => change(*byte),
                }
            })
            .collect();
        changed.push(&bytes, provenance);
    }
    changed
}

pub(super) fn substr(call: &mut BuiltInCall<'_>) -> Answer {
    let text = call.text(0);
    let start = call.index(1)?;
    let from = text.char_start(start);
    if !call.has(2) {
        return Ok(text.slice(from..text.bytes().len()));
    }
    let length = call.count(2)?;
    call.allow_bytes(length)?;
    let mut part = text.slice(from..text.char_start(start.saturating_add(length)));
    let filling = call.filling(3);
    for _ in part.char_count()..length {
        part.push_text(&filling);
    }
    Ok(part)
}

pub(super) fn pos(call: &mut BuiltInCall<'_>) -> Answer {
    let (needle, text) = (call.text(0), call.text(1));
    let from = text.char_start(call.count_or(2, 1)?.saturating_sub(1));
    let found = match needle.is_empty() {
        true => None,
        false => memchr::memmem::find(&text.bytes()[from..], needle.bytes()),
    };
    Ok(position(&text, found.map(|at| from + at)))
}

pub(super) fn lastpos(call: &mut BuiltInCall<'_>) -> Answer {
    let (needle, text) = (call.text(0), call.text(1));
    let end = match call.has(2) {
        true => text.char_start(call.count(2)?),
        false => text.bytes().len(),
    };
    let found = match needle.is_empty() {
        true => None,
        false => memchr::memmem::rfind(&text.bytes()[..end], needle.bytes()),
    };
    Ok(position(&text, found))
}

/// The position of a byte, counted from one in characters; 0 if there is none.
fn position(text: &Text, at: Option<usize>) -> Text {
    let position = at.map(|at| crate::value::char_count(&text.bytes()[..at]) + 1);
    Text::of_count(position.unwrap_or(0))
}

pub(super) fn replace(call: &mut BuiltInCall<'_>) -> Answer {
    let (text, from, to) = (call.text(0), call.text(1), call.text(2));
    let start = text.char_start(call.count_or(3, 1)?.saturating_sub(1));
    let is_first_only = call.option(4, b'A') == b'F';
    if from.is_empty() {
        return Ok(text);
    }
    let mut made = text.slice(0..start);
    if start == 0 {
        made = Text::new();
    }
    let mut at = start;
    while let Some(found) = memchr::memmem::find(&text.bytes()[at..], from.bytes()) {
        let (begin, end) = (at + found, at + found + from.bytes().len());
        if begin > at {
            made.push_text(&text.slice(at..begin));
        }
        // What is put into data, or beside it, is data.
        let around = text.slice(begin.saturating_sub(1)..(end + 1).min(text.bytes().len()));
        match around.data_origin() {
            Some(origin) if !to.has_data() => {
                made.push_text(&Text::of_data(to.bytes(), origin));
            }
            _ => made.push_text(&to),
        }
        at = end;
        call.allow_bytes(made.bytes().len())?;
        if is_first_only {
            break;
        }
    }
    if at < text.bytes().len() || made.is_empty() {
        made.push_text(&text.slice(at..text.bytes().len()));
    }
    Ok(made)
}

pub(super) fn strip(call: &mut BuiltInCall<'_>) -> Answer {
    let text = call.text(0);
    let side = call.option(1, b'B');
    let unwanted = call.filling(2);
    let unwanted = unwanted.bytes();
    let (mut from, mut to) = (0, text.bytes().len());
    while side != b'T' && text.bytes()[from..to].starts_with(unwanted) {
        from += unwanted.len();
    }
    while side != b'L' && text.bytes()[from..to].ends_with(unwanted) {
        to -= unwanted.len();
    }
    Ok(text.slice(from..to))
}

pub(super) fn pad(call: &mut BuiltInCall<'_>) -> Answer {
    let text = call.text(0);
    let length = call.count(1)?;
    call.allow_bytes(length)?;
    let (filling, side) = (call.filling(2), call.option(3, b'L'));
    let mut fill = Text::new();
    for _ in text.char_count()..length {
        fill.push_text(&filling);
    }
    let (mut first, second) = match side {
        b'R' => (text, fill),
        _ => (fill, text),
    };
    first.push_text(&second);
    Ok(first)
}

pub(super) fn insert(call: &mut BuiltInCall<'_>) -> Answer {
    let (new, target) = (call.text(0), call.text(1));
    let after = call.count_or(2, 0)?;
    let filling = call.filling(4);
    call.allow_bytes(after)?;
    let mut made = target.slice(0..target.char_start(after));
    for _ in target.char_count()..after {
        made.push_text(&filling);
    }
    let length = call.count_or(3, new.char_count())?;
    call.allow_bytes(length)?;
    made.push_text(&new.slice(0..new.char_start(length)));
    for _ in new.char_count()..length {
        made.push_text(&filling);
    }
    made.push_text(&target.slice(target.char_start(after)..target.bytes().len()));
    Ok(made)
}

pub(super) fn delstr(call: &mut BuiltInCall<'_>) -> Answer {
    let text = call.text(0);
    let start = call.index(1)?;
    let length = call.count_or(2, usize::MAX)?;
    let mut made = text.slice(0..text.char_start(start));
    let end = text.char_start(start.saturating_add(length));
    made.push_text(&text.slice(end..text.bytes().len()));
    Ok(made)
}

pub(super) fn reverse(call: &mut BuiltInCall<'_>) -> Answer {
    let text = call.text(0).without_marks();
    let mut made = Text::new();
    let mut end = text.bytes().len();
    while end > 0 {
        let mut start = end - 1;
        while start > 0 && text.bytes()[start] & 0xc0 == 0x80 {
            start -= 1;
        }
        made.push_text(&text.slice(start..end));
        end = start;
    }
    Ok(made)
}

/// Without tables, upper case; else each character of the second table becomes that of the first.
pub(super) fn translate(call: &mut BuiltInCall<'_>) -> Answer {
    if !call.has(1) && !call.has(2) {
        return uppercase(call);
    }
    let (text, to, from) = (call.text(0).without_marks(), call.text(1), call.text(2));
    let default = call.filling(3);
    let (to, from) = (to.to_str(), from.to_str());
    let mut made = Text::new();
    for (bytes, provenance) in text.runs() {
        let mut run = String::new();
        for character in String::from_utf8_lossy(bytes).chars() {
            let place = from.chars().position(|known| known == character);
            run.push(match place {
                None => character,
                Some(place) => match to.chars().nth(place) {
                    Some(translated) => translated,
                    None => default.to_str().chars().next().unwrap_or(' '),
                },
            });
        }
        made.push(run.as_bytes(), provenance);
    }
    Ok(made)
}

pub(super) fn chartohex(call: &mut BuiltInCall<'_>) -> Answer {
    let text = call.text(0);
    let hex: String = text.bytes().iter().map(|b| format!("{b:02X}")).collect();
    let mut made = Text::of_macro(hex);
    if let Some(origin) = text.data_origin() {
        made = Text::of_data(made.bytes(), origin);
    }
    Ok(made)
}

pub(super) fn hextochar(call: &mut BuiltInCall<'_>) -> Answer {
    let text = call.text(0);
    let hex = text.to_str();
    let hex = hex.trim();
    let is_hex = hex.len().is_multiple_of(2) && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex {
        return bad_value("the value is no pairs of hexadecimal digits");
    }
    let bytes = (0..hex.len()).step_by(2);
    let bytes = bytes.filter_map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok());
    let mut bytes: Vec<u8> = bytes.collect();
    // In EBCDIC these are CR and LF: old pages end the lines of their own headers so.
    if bytes == *b"\x0d\x25" {
        bytes = b"\r\n".to_vec();
    }
    Ok(match text.data_origin() {
        Some(origin) => Text::of_data(bytes, origin),
        None => Text::of_macro(bytes),
    })
}

pub(super) fn addquote(call: &mut BuiltInCall<'_>) -> Answer {
    let double = |bytes: &[u8], out: &mut Vec<u8>| {
        for byte in bytes {
            out.push(*byte);
            if *byte == b'\'' {
                out.push(b'\'');
            }
        }
    };
    Ok(call.text(0).encode(Marks::QUOTED, double))
}

pub(super) fn htmlencode(call: &mut BuiltInCall<'_>) -> Answer {
    Ok(call.text(0).encode(Marks::HTML, html_encode))
}

pub(super) fn qhtmlencode(call: &mut BuiltInCall<'_>) -> Answer {
    Ok(call.text(0).encode(Marks::HTML, html_encode_all))
}

pub(super) fn urlescseq(call: &mut BuiltInCall<'_>) -> Answer {
    Ok(call.text(0).encode(Marks::URL, percent_encode))
}

/// Trusted markup: data that is printed as it is, by the author's word.
pub(super) fn raw(call: &mut BuiltInCall<'_>) -> Answer {
    let copy = |bytes: &[u8], out: &mut Vec<u8>| out.extend_from_slice(bytes);
    Ok(call.text(0).encode(Marks::RAW, copy))
}

/// `CHAR`, or `NUM` if it is a number.
pub(super) fn datatype(call: &mut BuiltInCall<'_>) -> Answer {
    let text = call.text(0);
    let is_number = super::decimal::Decimal::parse(&text.to_str()).is_some();
    Ok(Text::of_macro(if is_number { "NUM" } else { "CHAR" }))
}
