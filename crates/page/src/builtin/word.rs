//! Functions of words: parts of a text between blanks. They count from one.

use std::ops::Range;

use crate::value::Text;

use super::call::{Answer, BuiltInCall};

/// Where the words of a text are.
fn words_of(text: &Text) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, byte) in text.bytes().iter().enumerate() {
        match (byte.is_ascii_whitespace(), start) {
            (false, None) => start = Some(at),
            (true, Some(from)) => {
                words.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    if let Some(from) = start {
        words.push(from..text.bytes().len());
    }
    words
}

pub(super) fn word(call: &mut BuiltInCall<'_>) -> Answer {
    let text = call.text(0);
    let word = words_of(&text).get(call.index(1)?).cloned();
    Ok(text.slice(word.unwrap_or(0..0)))
}

pub(super) fn words(call: &mut BuiltInCall<'_>) -> Answer {
    Ok(Text::of_count(words_of(&call.text(0)).len()))
}

/// From the first to the last of some words, with the blanks between them.
fn range(text: &Text, first: usize, count: usize) -> Option<Range<usize>> {
    let words = words_of(text);
    let last = first.saturating_add(count).min(words.len());
    (first < last).then(|| words[first].start..words[last - 1].end)
}

pub(super) fn subword(call: &mut BuiltInCall<'_>) -> Answer {
    let text = call.text(0);
    let range = range(&text, call.index(1)?, call.count_or(2, usize::MAX)?);
    Ok(text.slice(range.unwrap_or(0..0)))
}

pub(super) fn delword(call: &mut BuiltInCall<'_>) -> Answer {
    let text = call.text(0);
    let Some(range) = range(&text, call.index(1)?, call.count_or(2, usize::MAX)?) else {
        return Ok(text);
    };
    let blanks = text.bytes()[range.end..].iter();
    let blanks = blanks.take_while(|byte| byte.is_ascii_whitespace()).count();
    let mut made = text.slice(0..range.start);
    made.push_text(&text.slice(range.end + blanks..text.bytes().len()));
    Ok(made)
}

pub(super) fn wordindex(call: &mut BuiltInCall<'_>) -> Answer {
    let text = call.text(0);
    let word = words_of(&text).get(call.index(1)?).cloned();
    let position = word.map(|word| crate::value::char_count(&text.bytes()[..word.start]) + 1);
    Ok(Text::of_count(position.unwrap_or(0)))
}

pub(super) fn wordlength(call: &mut BuiltInCall<'_>) -> Answer {
    let text = call.text(0);
    let word = words_of(&text).get(call.index(1)?).cloned();
    Ok(Text::of_count(
        text.slice(word.unwrap_or(0..0)).char_count(),
    ))
}

pub(super) fn wordpos(call: &mut BuiltInCall<'_>) -> Answer {
    let (phrase, text) = (call.text(0), call.text(1));
    let (sought, words) = (words_of(&phrase), words_of(&text));
    let start = call.count_or(2, 1)?.saturating_sub(1);
    let is_same = |at: usize| {
        let mut pairs = sought.iter().zip(words[at..].iter());
        pairs.all(|(a, b)| phrase.bytes()[a.clone()] == text.bytes()[b.clone()])
    };
    let last = (words.len() + 1).saturating_sub(sought.len());
    let found = match sought.is_empty() {
        true => None,
        false => (start..last).find(|at| is_same(*at)),
    };
    Ok(Text::of_count(found.map_or(0, |at| at + 1)))
}
