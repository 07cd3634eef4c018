//! What a script tells the server in fields of its answer: `Script-Control`, and what other servers
//! call parts of it.
//!
//! The fields are taken out: clients never see them. What they say is the same for every handler
//! that runs scripts, and it is done by the steps after a handler. Nothing here is an error: a word
//! that means nothing is left out and noted.
//!
//! | field | is |
//! | --- | --- |
//! | `Script-Control: WORD; WORD` | `buffer=on` or `off`, `compress=off`, `timeout=10s` |
//! | | `redirect=PATH`, `sendfile=PATH`; WASD's `X-stream-mode`, `X-record-mode` |
//! | `X-Sendfile: PATH` | `sendfile=PATH` |
//! | `X-Accel-Redirect: PATH`, `X-LiteSpeed-Location: PATH` | `redirect=PATH` |
//! | `X-Accel-Buffering: no` | `buffer=off` |
//!
//! A value with `;` in it stands in quotes, with `\` before a quote or `\` of its own.

use std::time::Duration;

use hob_http::Fields;

use crate::handle::config::parse_duration;
use crate::step::weights::unquoted;

/// True for a stream of events: an answer that goes on for as long as there is something to tell,
/// and each piece of which is for the client at once.
pub(crate) fn is_event_stream(fields: &Fields) -> bool {
    const EVENTS: &[u8] = b"text/event-stream";
    let media_type = fields.value(b"Content-Type").unwrap_or_default();
    let begin = media_type.get(..EVENTS.len());
    begin.is_some_and(|begin| begin.eq_ignore_ascii_case(EVENTS))
        && !matches!(media_type.get(EVENTS.len()), Some(byte) if !b"; \t".contains(byte))
}

/// What a script asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// How its output is passed on.
    pub buffer: Buffer,
    /// Whether its output may be compressed.
    pub compress: Compress,
    /// How long it may take from now on, instead of what the config says. The handler that runs the
    /// script sees to it.
    pub timeout: Option<Duration>,
    /// What is sent in the place of its output.
    pub instead: Option<Instead>,
    /// What the record is to say of words that mean nothing.
    pub note: Option<&'static str>,
}

/// How a script's output is passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buffer {
    /// As it comes, several pieces at once where they come together.
    #[default]
    AsItComes,
    /// Collected, and sent when it is complete, with its length.
    Whole,
    /// Each piece at once.
    Never,
}

/// Whether a script's output may be compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compress {
    /// As the route says.
    #[default]
    AsConfigured,
    /// Not this answer.
    Never,
}

/// What is sent in the place of a script's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// What this site answers for a path (and query), which begins with `/`.
    Redirect(Vec<u8>),
    /// A file, by its absolute path.
    SendFile(Vec<u8>),
}

impl Control {
    /// Reads what the fields say and leaves them as they are.
    pub fn read(fields: &Fields) -> Control {
        let mut control = Control::default();
        let mut by_alias = Control::default();
        for (name, value) in fields.iter() {
            match word_of(name) {
                Some(Word::Control) => control.take_words(value),
                Some(Word::Alias(alias)) => by_alias.take_alias(alias, value),
                None => {}
            }
        }
        // What `Script-Control` says comes first, wherever it stands.
        control.instead = control.instead.or(by_alias.instead);
        if control.buffer == Buffer::AsItComes {
            control.buffer = by_alias.buffer;
        }
        control.note = control.note.or(by_alias.note);
        control
    }

    /// Reads what the fields say and takes them out.
    pub fn take(fields: &mut Fields) -> Control {
        if !fields.iter().any(|(name, _)| word_of(name).is_some()) {
            return Control::default();
        }
        let control = Control::read(fields);
        fields.retain(|name, _| word_of(name).is_none());
        control
    }

    /// The same of an upstream's answer. Unless it may steer, what could have other things sent
    /// than its answer is taken out and has no effect.
    pub(crate) fn of_upstream(fields: &mut Fields, may_steer: bool) -> Control {
        if may_steer {
            return Control::read(fields);
        }
        let control = Control::take(fields);
        if control.buffer == Buffer::Never {
            fields.set(b"X-Accel-Buffering", b"no");
        }
        Control {
            buffer: control.buffer,
            ..Control::default()
        }
    }

    fn take_words(&mut self, value: &[u8]) {
        for word in unquoted(value, b';').map(<[u8]>::trim_ascii) {
            if word.is_empty() {
                continue;
            }
            let equals = memchr::memchr(b'=', word);
            let name = word[..equals.unwrap_or(word.len())].trim_ascii_end();
            match equals {
                _ if is_of_bytes(name) => {}
                Some(equals) => self.take_word(name, &plain(word[equals + 1..].trim_ascii_start())),
                None => self.note(UNKNOWN_WORD),
            }
        }
    }

    fn take_word(&mut self, name: &[u8], value: &[u8]) {
        let is = |word: &[u8]| name.eq_ignore_ascii_case(word);
        let says = |word: &[u8]| value.eq_ignore_ascii_case(word);
        if is(b"buffer") {
            match () {
                () if says(b"on") => self.buffer = Buffer::Whole,
                () if says(b"off") => self.buffer = Buffer::Never,
                () => self.note(BAD_VALUE),
            }
        } else if is(b"compress") {
            match () {
                () if says(b"on") => self.compress = Compress::AsConfigured,
                () if says(b"off") => self.compress = Compress::Never,
                () => self.note(BAD_VALUE),
            }
        } else if is(b"timeout") {
            match time_of(value) {
                Some(time) => self.timeout = Some(time),
                None => self.note(BAD_VALUE),
            }
        } else if is(b"redirect") {
            self.send_instead(redirect(value));
        } else if is(b"sendfile") {
            self.send_instead(file(value));
        } else {
            self.note(UNKNOWN_WORD);
        }
    }

    fn take_alias(&mut self, alias: Alias, value: &[u8]) {
        match alias {
            Alias::SendFile => self.send_instead(file(value)),
            Alias::Redirect => self.send_instead(redirect(value)),
            Alias::Buffering if value.eq_ignore_ascii_case(b"no") => self.buffer = Buffer::Never,
            Alias::Buffering if value.eq_ignore_ascii_case(b"yes") => {}
            Alias::Buffering => self.note(BAD_VALUE),
            Alias::WithoutMeaning => self.note(NO_MEANING),
        }
    }

    /// The first that is right counts.
    fn send_instead(&mut self, instead: Option<Instead>) {
        match (instead, &self.instead) {
            (None, _) => self.note(BAD_PATH),
            (Some(_), Some(_)) => self.note(TWO_PLACES),
            (instead, None) => self.instead = instead,
        }
    }

    fn note(&mut self, note: &'static str) {
        self.note.get_or_insert(note);
    }
}

/// A word of WASD that says whether line ends are added to what the script writes. Here bytes are
/// passed on as they are, so it holds already, or cannot matter.
fn is_of_bytes(name: &[u8]) -> bool {
    let words: [&[u8]; 2] = [b"X-stream-mode", b"X-record-mode"];
    words.iter().any(|word| name.eq_ignore_ascii_case(word))
}

/// Has the steps after the handler answer with what this site has for `target`: a local redirect as
/// CGI knows it. The target is a path with an optional query; false when it has control characters.
pub fn redirect_inside(fields: &mut Fields, target: &[u8]) -> bool {
    fields.set(b"X-Accel-Redirect", target)
}

/// Most internal redirects of one request.
pub const REDIRECTS_MAX: usize = 10;

const TIME_MIN: Duration = Duration::from_millis(1);
const TIME_MAX: Duration = Duration::from_secs(86_400);

const UNKNOWN_WORD: &str = "Script-Control: a word of it is not known";
const BAD_VALUE: &str = "Script-Control: a value of it is not known";
const BAD_PATH: &str = "Script-Control: a path of it does not begin with `/`";
const TWO_PLACES: &str = "Script-Control: two places to send from; the first counts";
const NO_MEANING: &str = "an X-Accel field without meaning here was left out";

enum Word {
    Control,
    Alias(Alias),
}

#[derive(Clone, Copy)]
enum Alias {
    SendFile,
    Redirect,
    Buffering,
    WithoutMeaning,
}

fn word_of(name: &[u8]) -> Option<Word> {
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    // All others end here.
    match name.first()? {
        b'S' | b's' => is(b"Script-Control").then_some(Word::Control),
        b'X' | b'x' => {
            let alias = if is(b"X-Sendfile") {
                Alias::SendFile
            } else if is(b"X-Accel-Redirect") || is(b"X-LiteSpeed-Location") {
                Alias::Redirect
            } else if is(b"X-Accel-Buffering") {
                Alias::Buffering
            } else if name
                .get(..8)
                .is_some_and(|begin| begin.eq_ignore_ascii_case(b"X-Accel-"))
            {
                Alias::WithoutMeaning
            } else {
                return None;
            };
            Some(Word::Alias(alias))
        }
        _ => None,
    }
}

/// A target that can be routed: what scripts often leave as it is in names of files is encoded.
fn redirect(value: &[u8]) -> Option<Instead> {
    if value.first() != Some(&b'/') {
        return None;
    }
    let mut target = Vec::with_capacity(value.len());
    for &byte in value {
        match byte {
            b' ' => target.extend_from_slice(b"%20"),
            b'#' => target.extend_from_slice(b"%23"),
            b'\t' => target.extend_from_slice(b"%09"),
            _ => target.push(byte),
        }
    }
    Some(Instead::Redirect(target))
}

fn file(value: &[u8]) -> Option<Instead> {
    (value.first() == Some(&b'/')).then(|| Instead::SendFile(value.to_vec()))
}

/// `10s`, `250ms`, `1m30s`: as the config has it.
fn time_of(value: &[u8]) -> Option<Duration> {
    let time = parse_duration(std::str::from_utf8(value).ok()?).ok()?;
    (TIME_MIN..=TIME_MAX).contains(&time).then_some(time)
}

/// A value without its quotes.
//= rfc9110#5.6.4
fn plain(value: &[u8]) -> Vec<u8> {
    let Some(inner) = value
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""))
    else {
        return value.to_vec();
    };
    let mut out = Vec::with_capacity(inner.len());
    let mut is_escaped = false;
    for &byte in inner {
        if byte == b'\\' && !is_escaped {
            is_escaped = true;
            continue;
        }
        is_escaped = false;
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::new();
        for (name, value) in lines {
            assert!(fields.add(name.as_bytes(), value.as_bytes()));
        }
        fields
    }

    fn of(lines: &[(&str, &str)]) -> Control {
        Control::read(&fields(lines))
    }

    fn control(value: &str) -> Control {
        of(&[("script-control", value)])
    }

    fn redirect_to(path: &str) -> Option<Instead> {
        Some(Instead::Redirect(path.into()))
    }

    fn sendfile(path: &str) -> Option<Instead> {
        Some(Instead::SendFile(path.into()))
    }

    #[test]
    fn words_of_script_control() {
        let all = control(" Buffer = ON ;compress=off;; timeout=1m ; sendfile=\"/a;b \\\" c\" ");
        let expected = Control {
            buffer: Buffer::Whole,
            compress: Compress::Never,
            timeout: Some(Duration::from_secs(60)),
            instead: sendfile("/a;b \" c"),
            note: None,
        };
        assert_eq!(all, expected);
        assert_eq!(control("buffer=off").buffer, Buffer::Never);
        assert_eq!(
            control("redirect=/a b#c?d").instead,
            redirect_to("/a%20b%23c?d")
        );
        assert_eq!(control("redirect=/a=b").instead, redirect_to("/a=b"));
        let two_lines = of(&[
            ("Script-Control", "buffer=on"),
            ("Script-Control", "timeout=2s"),
        ]);
        assert_eq!(two_lines.timeout, Some(Duration::from_secs(2)));
        assert_eq!(two_lines.buffer, Buffer::Whole);
    }

    #[test]
    fn names_that_other_servers_have_for_it() {
        let cases = [
            (
                "X-Sendfile",
                "/srv/a b",
                sendfile("/srv/a b"),
                Buffer::AsItComes,
            ),
            (
                "x-accel-redirect",
                "/a?b=c",
                redirect_to("/a?b=c"),
                Buffer::AsItComes,
            ),
            (
                "X-LiteSpeed-Location",
                "/a",
                redirect_to("/a"),
                Buffer::AsItComes,
            ),
            ("X-Accel-Buffering", "no", None, Buffer::Never),
            ("X-Accel-Buffering", "Yes", None, Buffer::AsItComes),
        ];
        for (name, value, instead, buffer) in cases {
            let control = of(&[(name, value)]);
            assert_eq!(
                (control.instead, control.buffer),
                (instead, buffer),
                "{name}"
            );
            assert_eq!(control.note, None, "{name}");
        }
        let own_name_first = of(&[
            ("X-Accel-Redirect", "/alias"),
            ("Script-Control", "redirect=/own"),
        ]);
        assert_eq!(own_name_first.instead, redirect_to("/own"));
    }

    #[test]
    fn words_of_wasd_about_line_ends_are_taken_without_a_note() {
        for value in [
            "X-stream-mode; buffer=off",
            "X-record-mode; buffer=off",
            "buffer=off; x-stream-mode=1",
        ] {
            let control = control(value);
            assert_eq!(
                (control.note, control.buffer),
                (None, Buffer::Never),
                "{value}"
            );
        }
        assert_eq!(control("X-stream; buffer=off").note, Some(UNKNOWN_WORD));
    }

    #[test]
    fn what_means_nothing_is_noted_and_the_rest_holds() {
        for (value, note) in [
            ("no-abort; buffer=off", UNKNOWN_WORD),
            ("stream=yes; buffer=off", UNKNOWN_WORD),
            ("compress=gzip; buffer=off", BAD_VALUE),
            ("timeout=10; buffer=off", BAD_VALUE),
            ("timeout=2d; buffer=off", BAD_VALUE),
            ("timeout=0s; buffer=off", BAD_VALUE),
            ("redirect=http://a/; buffer=off", BAD_PATH),
            ("sendfile=a; buffer=off", BAD_PATH),
            ("sendfile=; buffer=off", BAD_PATH),
        ] {
            let control = control(value);
            assert_eq!(
                (control.note, control.buffer),
                (Some(note), Buffer::Never),
                "{value}"
            );
            assert_eq!((control.instead, control.timeout), (None, None), "{value}");
        }
        let two = control("sendfile=/a; redirect=/b");
        assert_eq!((two.instead, two.note), (sendfile("/a"), Some(TWO_PLACES)));
        let ignored = of(&[("X-Accel-Expires", "10")]);
        assert_eq!(ignored.note, Some(NO_MEANING));
    }

    #[test]
    fn taken_fields_are_gone_and_the_others_stay() {
        let mut given = fields(&[
            ("X-Other", "1"),
            ("Script-Control", "buffer=on"),
            ("X-Accel-Expires", "1"),
            ("Set-Cookie", "a=b"),
            ("X-SENDFILE", "/a"),
            ("Set-Cookie", "c=d"),
        ]);
        assert_eq!(Control::take(&mut given).instead, sendfile("/a"));
        let rest = [
            ("X-Other", "1"),
            ("Set-Cookie", "a=b"),
            ("Set-Cookie", "c=d"),
        ];
        assert_eq!(given, fields(&rest));
        assert_eq!(Control::take(&mut given), Control::default());
        assert_eq!(given, fields(&rest));
    }

    /// Numbers that are the same in every run: xorshift64*.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
        }

        /// One of the words in letters of either case, a few random bytes, or both.
        fn text(&mut self, words: &[&str]) -> Vec<u8> {
            let mut text = Vec::new();
            for _ in 0..=self.below(3) {
                if self.below(4) > 0 {
                    let word = words[self.below(words.len())].bytes();
                    text.extend(word.map(|byte| match self.below(8) {
                        0 => byte.to_ascii_uppercase(),
                        _ => byte,
                    }));
                } else {
                    text.extend((0..self.below(6)).map(|_| self.below(256) as u8));
                }
                if self.below(2) == 0 {
                    break;
                }
            }
            text
        }
    }

    fn is_consumed(name: &[u8]) -> bool {
        let name = name.to_ascii_lowercase();
        let known: [&[u8]; 3] = [b"script-control", b"x-sendfile", b"x-litespeed-location"];
        known.contains(&&name[..]) || name.starts_with(b"x-accel-")
    }

    #[test]
    fn random_fields_never_panic_and_none_of_the_servers_own_is_left() {
        #[rustfmt::skip]
        let names = [
            "Script-Control", "X-Sendfile", "X-Accel-Redirect", "X-Accel-Buffering", "X-Accel-",
            "X-LiteSpeed-Location", "Set-Cookie", "Script-Controls", "X-Accel", "S", "X",
        ];
        #[rustfmt::skip]
        let values = [
            "buffer=on", "buffer=off", "compress=off", "timeout=", "1s", "9999999999999999999h",
            "redirect=", "sendfile=", "/", "/a b", "\"", "\\", ";", "=", " ", "\"/a;b\"", "no",
        ];
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
        let (mut taken_count, mut instead_count) = (0, 0);
        for _ in 0..20_000 {
            let mut given = Fields::new();
            for _ in 0..=numbers.below(4) {
                // What cannot stand in a field is refused here, as it is when a head is read.
                given.add(&numbers.text(&names), &numbers.text(&values));
            }
            let own = |fields: &Fields| -> Vec<(Vec<u8>, Vec<u8>)> {
                let others = fields.iter().filter(|(name, _)| !is_consumed(name));
                others.map(|(n, v)| (n.to_vec(), v.to_vec())).collect()
            };
            let (others, read) = (own(&given), Control::read(&given));
            taken_count += usize::from(others.len() < given.iter().count());
            let mut rest = given.clone();
            assert_eq!(Control::take(&mut rest), read, "{given:?}");
            assert!(!rest.iter().any(|(name, _)| is_consumed(name)), "{given:?}");
            assert_eq!(own(&rest), others, "{given:?}");
            assert_eq!(Control::read(&rest), Control::default(), "{given:?}");
            if let Some(Instead::Redirect(path) | Instead::SendFile(path)) = read.instead {
                instead_count += 1;
                assert!(path.starts_with(b"/"), "{given:?}");
            }
        }
        assert!(
            taken_count > 10_000 && instead_count > 500,
            "{taken_count} {instead_count}"
        );
    }
}
