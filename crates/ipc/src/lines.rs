//! The carrier of lines: the classic protocol for anything that can read and print lines.
//!
//! Server to program (standard input, or the pipe CGIPLUSIN names), for each request:
//!
//! ```text
//! record, the default:  !                         struct, asked for by a callout:  !!<decimal>
//!                       NAME=value                  so many bytes: repeated
//!                       (empty line)                {u16 length, NAME=value, NUL}, 0 at the end
//! ```
//!
//! Program to server (standard output): a CGI answer, then the end-of-output string. Three strings
//! are fixed for a worker's life and random, and stand in its environment; each is recognised
//! anywhere in the output, and one newline after it is eaten:
//!
//! ```text
//! CGIPLUSEOF  $F-<24 hex>-   the answer is whole
//! CGIPLUSESC  $E-<24 hex>-   a callout begins: text follows
//! CGIPLUSEOT  $D-<24 hex>-   the callout ends
//! ```
//!
//! Pure: bytes in, [`OutputEvent`]s out.

use std::fmt;
use std::io;

use memchr::{memchr, memchr3};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::limits::CALLOUT_BYTES_MAX;
use crate::malformed::MalformedMessage;

const RANDOM_BYTES: usize = 12;
/// `$F-`, 24 hexadecimal digits, `-`.
const SENTINEL_BYTES: usize = 4 + 2 * RANDOM_BYTES;
/// Room for a read, and what it becomes once a read has filled it: more than a pipe usually holds,
/// so that whoever reads a full one can tell that nothing is left in it.
const READ_BYTES: usize = 16 * 1024;
const READ_BYTES_MAX: usize = 65 * 1024;
/// The length of an entry in struct mode has 16 bits and counts the NUL.
const ENTRY_BYTES_MAX: usize = u16::MAX as usize;

/// The three strings of one worker.
#[derive(Clone, PartialEq, Eq)]
pub struct Sentinels {
    /// CGIPLUSEOF, CGIPLUSESC, CGIPLUSEOT.
    strings: [[u8; SENTINEL_BYTES]; 3],
}

impl Sentinels {
    /// Strings that nobody can guess.
    ///
    /// # Errors
    ///
    /// When the system has no random numbers.
    pub fn random() -> io::Result<Sentinels> {
        let mut random = [0; 3 * RANDOM_BYTES];
        let mut filled = 0;
        while filled < random.len() {
            filled += getrandom(&mut random[filled..], GetRandomFlags::empty())?;
        }
        Ok(Sentinels::from_random(random))
    }

    /// The strings for these numbers.
    pub fn from_random(random: [u8; 36]) -> Sentinels {
        let mut strings = [[0; SENTINEL_BYTES]; 3];
        for (place, (string, letter)) in strings.iter_mut().zip(*b"FED").enumerate() {
            let random = &random[place * RANDOM_BYTES..][..RANDOM_BYTES];
            string[..3].copy_from_slice(&[b'$', letter, b'-']);
            for (place, byte) in random.iter().enumerate() {
                string[3 + 2 * place] = hex_digit(byte >> 4);
                string[4 + 2 * place] = hex_digit(byte & 15);
            }
            string[SENTINEL_BYTES - 1] = b'-';
        }
        Sentinels { strings }
    }

    /// What goes into the worker's environment.
    pub fn environment(&self) -> [(&'static str, &str); 3] {
        let text = |place: usize| {
            std::str::from_utf8(&self.strings[place]).expect("letters, digits, $ and - only")
        };
        [
            ("CGIPLUSEOF", text(0)),
            ("CGIPLUSESC", text(1)),
            ("CGIPLUSEOT", text(2)),
        ]
    }
}

impl fmt::Debug for Sentinels {
    /// Without the strings: whoever knows them could end an answer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sentinels")
    }
}

fn hex_digit(number: u8) -> u8 {
    match number {
        0..=9 => b'0' + number,
        _ => b'a' + number - 10,
    }
}

/// How variables are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VariableFormat {
    /// One line each.
    #[default]
    Record,
    /// A block of entries.
    Struct,
}

impl VariableFormat {
    /// The format that a callout asks for, from the next request on: `CGIPLUS: struct` or
    /// `CGIPLUS: record`.
    pub fn asked_by(callout: &[u8]) -> Option<VariableFormat> {
        let text = std::str::from_utf8(callout).ok()?;
        let (keyword, parameter) = text.split_once(':')?;
        if !keyword.trim().eq_ignore_ascii_case("CGIPLUS") {
            return None;
        }
        match parameter.trim().to_ascii_lowercase().as_str() {
            "struct" => Some(VariableFormat::Struct),
            "record" => Some(VariableFormat::Record),
            _ => None,
        }
    }
}

/// A variable cannot be written as the format wants it; the request cannot be handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfitVariable {
    /// A line break or NUL in a name or value, or a `=` in a name: it would be read as another
    /// variable.
    Broken,
    /// Longer than 64 KiB.
    TooLong,
}

impl fmt::Display for UnfitVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnfitVariable::Broken => "a variable holds a line break, which a line cannot carry",
            UnfitVariable::TooLong => "a variable is longer than 64 KiB",
        })
    }
}

impl std::error::Error for UnfitVariable {}

/// Appends a request's variables, start marker and end included.
///
/// # Errors
///
/// [`UnfitVariable`]; nothing was appended.
pub fn append<'a>(
    out: &mut Vec<u8>,
    format: VariableFormat,
    variables: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<(), UnfitVariable> {
    let begin = out.len();
    match format {
        VariableFormat::Record => out.extend_from_slice(b"!\n"),
        // How many bytes follow is known at the end.
        VariableFormat::Struct => out.extend_from_slice(&[0; MARKER_BYTES_MAX]),
    }
    let entries = out.len();
    for (name, value) in variables {
        if let Err(unfit) = check(format, name, value) {
            out.truncate(begin);
            return Err(unfit);
        }
        if format == VariableFormat::Struct {
            let bytes = name.len() + value.len() + 2;
            out.extend_from_slice(&(bytes as u16).to_le_bytes());
        }
        out.extend_from_slice(name);
        out.push(b'=');
        out.extend_from_slice(value);
        out.push(match format {
            VariableFormat::Record => b'\n',
            VariableFormat::Struct => 0,
        });
    }
    match format {
        VariableFormat::Record => out.push(b'\n'),
        VariableFormat::Struct => {
            out.extend_from_slice(&[0, 0]);
            let marker = format!("!!{}\n", out.len() - entries);
            let room = entries - marker.len();
            out[room..entries].copy_from_slice(marker.as_bytes());
            out.drain(begin..room);
        }
    }
    Ok(())
}

/// `!!`, a number and a line end.
const MARKER_BYTES_MAX: usize = 3 + 20;

fn check(format: VariableFormat, name: &[u8], value: &[u8]) -> Result<(), UnfitVariable> {
    let breaks = |bytes: &[u8]| match format {
        VariableFormat::Record => memchr3(b'\n', b'\r', 0, bytes).is_some(),
        VariableFormat::Struct => memchr(0, bytes).is_some(),
    };
    if name.is_empty() || breaks(name) || breaks(value) || memchr(b'=', name).is_some() {
        return Err(UnfitVariable::Broken);
    }
    if name.len() + value.len() + 2 > ENTRY_BYTES_MAX {
        return Err(UnfitVariable::TooLong);
    }
    Ok(())
}

/// Appends the answer to a callout: one line.
pub fn append_reply(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(text.iter().map(|&byte| match byte {
        b'\r' | b'\n' => b' ',
        byte => byte,
    }));
    out.push(b'\n');
}

/// What a program's output says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputEvent<'a> {
    /// Bytes of the answer, head and all, as CGI has them.
    Output(&'a [u8]),
    /// A callout: `KEYWORD: parameters`, without the mark for a reply that is not wanted.
    Callout {
        /// Its text.
        text: &'a [u8],
        /// A reply is expected on the program's input.
        wants_reply: bool,
    },
    /// The answer is whole.
    End,
}

/// Finds the sentinels in a program's output, however it is cut into reads.
#[derive(Debug)]
pub struct SentinelScanner {
    sentinels: Sentinels,
    /// `start..end` holds what has not been told.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// How much is read at once.
    read_bytes: usize,
    /// The newline after a sentinel has not been seen.
    eats_newline: bool,
    in_callout: bool,
}

impl SentinelScanner {
    /// For the output of the worker that was given these.
    pub fn new(sentinels: Sentinels) -> SentinelScanner {
        SentinelScanner {
            sentinels,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            read_bytes: READ_BYTES,
            eats_newline: false,
            in_callout: false,
        }
    }

    /// Where the next bytes of output go; never empty.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let wanted = self.end + self.read_bytes;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Bytes that were filled in and not told yet: the beginning of what may become a sentinel, or
    /// of a callout, once there is no further event.
    pub fn held_bytes(&self) -> usize {
        self.end - self.start
    }

    /// Passes over white space. True when bytes are left that are no sentinel and cannot become
    /// one: output.
    pub fn skip_blank(&mut self) -> bool {
        let held = &self.buffer[self.start..self.end];
        let blank = held.len() - held.trim_ascii_start().len();
        self.start += blank;
        self.eats_newline &= blank == 0;
        let found = find(&self.sentinels, &self.buffer[self.start..self.end]);
        !self.in_callout && found.before > 0
    }

    /// So many bytes were put into [`SentinelScanner::space`].
    ///
    /// # Panics
    ///
    /// When that is more than there was room for.
    pub fn filled(&mut self, count: usize) {
        assert!(
            count <= self.buffer.len() - self.end,
            "no more is filled in than there was space"
        );
        self.end += count;
        if self.end == self.buffer.len() {
            self.read_bytes = READ_BYTES_MAX;
        }
    }

    /// What comes next in the output, or `None` when more bytes are needed.
    ///
    /// # Errors
    ///
    /// [`MalformedMessage::Lines`] when a callout is too long, or cut by another sentinel.
    pub fn next_event(&mut self) -> Result<Option<OutputEvent<'_>>, MalformedMessage> {
        loop {
            if self.eats_newline && self.start < self.end {
                self.eats_newline = false;
                self.start += usize::from(self.buffer[self.start] == b'\n');
            }
            let from = self.start;
            let found = find(&self.sentinels, &self.buffer[from..self.end]);
            if self.in_callout {
                return self.callout(from, found);
            }
            match found {
                // What stands before a sentinel, or cannot be the beginning of one.
                SentinelMatch { before, .. } if before > 0 => {
                    self.start += before;
                    return Ok(Some(OutputEvent::Output(&self.buffer[from..from + before])));
                }
                SentinelMatch { which: None, .. } => return Ok(None),
                SentinelMatch {
                    which: Some(which), ..
                } => {
                    self.pass();
                    match which {
                        0 => return Ok(Some(OutputEvent::End)),
                        1 => self.in_callout = true,
                        _ => {
                            return Err(MalformedMessage::Lines("a callout ends that never began"));
                        }
                    }
                }
            }
        }
    }

    /// The end of the output: fine between two answers.
    ///
    /// # Errors
    ///
    /// [`MalformedMessage::Lines`] inside a callout. Bytes that began like a sentinel and were none
    /// are given by [`SentinelScanner::rest`].
    pub fn finish(&self) -> Result<(), MalformedMessage> {
        if self.in_callout {
            return Err(MalformedMessage::Lines("the output ended inside a callout"));
        }
        Ok(())
    }

    /// What was kept back because it could have become a sentinel: output after all, once the
    /// output has ended.
    pub fn rest(&mut self) -> &[u8] {
        let from = self.start;
        self.start = self.end;
        &self.buffer[from..self.end]
    }

    fn pass(&mut self) {
        self.start += SENTINEL_BYTES;
        self.eats_newline = true;
    }

    fn callout(
        &mut self,
        from: usize,
        found: SentinelMatch,
    ) -> Result<Option<OutputEvent<'_>>, MalformedMessage> {
        if found.before > CALLOUT_BYTES_MAX {
            return Err(MalformedMessage::Lines("a callout is longer than 4 KiB"));
        }
        match found.which {
            None => Ok(None),
            Some(2) => {
                self.start += found.before;
                self.pass();
                self.in_callout = false;
                let text = self.buffer[from..from + found.before].trim_ascii();
                let quiet = text.strip_prefix(b"!").or_else(|| text.strip_prefix(b"#"));
                Ok(Some(OutputEvent::Callout {
                    text: quiet.unwrap_or(text).trim_ascii_start(),
                    wants_reply: quiet.is_none(),
                }))
            }
            Some(_) => Err(MalformedMessage::Lines(
                "a callout is cut by another sentinel",
            )),
        }
    }
}

/// Bytes before the first sentinel, or before what may become one; and which it is.
struct SentinelMatch {
    before: usize,
    which: Option<usize>,
}

fn find(sentinels: &Sentinels, bytes: &[u8]) -> SentinelMatch {
    let mut from = 0;
    while let Some(at) = memchr(b'$', &bytes[from..]) {
        let before = from + at;
        let rest = &bytes[before..];
        let compared = rest.len().min(SENTINEL_BYTES);
        let alike = |string: &[u8; SENTINEL_BYTES]| string[..compared] == rest[..compared];
        if let Some(which) = sentinels.strings.iter().position(alike) {
            let which = (compared == SENTINEL_BYTES).then_some(which);
            return SentinelMatch { before, which };
        }
        from = before + 1;
    }
    SentinelMatch {
        before: bytes.len(),
        which: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentinels() -> Sentinels {
        Sentinels::from_random(std::array::from_fn(|n| n as u8 * 7))
    }

    /// Everything that comes out when the output comes in pieces of that size.
    fn scan(output: &[u8], step: usize) -> Result<Vec<String>, MalformedMessage> {
        let mut scanner = SentinelScanner::new(sentinels());
        let mut told: Vec<String> = Vec::new();
        let mut is_output = false;
        for piece in output.chunks(step) {
            scanner.space()[..piece.len()].copy_from_slice(piece);
            scanner.filled(piece.len());
            while let Some(event) = scanner.next_event()? {
                match event {
                    OutputEvent::Output(bytes) => {
                        if !is_output {
                            told.push(String::new());
                        }
                        let text = String::from_utf8_lossy(bytes);
                        told.last_mut().unwrap().push_str(&text);
                    }
                    OutputEvent::Callout { text, wants_reply } => {
                        let text = String::from_utf8_lossy(text);
                        told.push(format!("callout {wants_reply} {text}"));
                    }
                    OutputEvent::End => told.push("end".to_string()),
                }
                is_output = matches!(event, OutputEvent::Output(_));
            }
        }
        scanner.finish()?;
        Ok(told)
    }

    #[test]
    fn sentinels_are_found_anywhere_and_one_newline_after_them_is_eaten() {
        let known = sentinels();
        let [(_, end), (_, escape), (_, over)] = known.environment();
        let output = format!(
            "Status: 200\n\nno newline{end}\n$F-0{end}{escape}\nNOOP:\n{over}\nx{escape}! cgiplus: \
             STRUCT{over}{end}\n\n{end}"
        );
        let expected = [
            "Status: 200\n\nno newline",
            "end",
            "$F-0",
            "end",
            "callout true NOOP:",
            "x",
            "callout false cgiplus: STRUCT",
            "end",
            "\n",
            "end",
        ];
        for step in [1, 2, 3, 27, 28, 29, 4096] {
            assert_eq!(
                scan(output.as_bytes(), step).unwrap(),
                expected,
                "in pieces of {step}"
            );
        }
    }

    #[test]
    fn blank_after_an_end_is_passed_over_and_output_there_is_told() {
        let known = sentinels();
        let [(_, end), (_, escape), _] = known.environment();
        for (after, is_output) in [
            ("", false),
            ("\n", false),
            ("\n \r\n\t", false),
            ("\nmore", true),
            (" more", true),
            ("$E-", false),
            ("$E-x", true),
            (escape, false),
        ] {
            let output = format!("{end}{after}");
            let mut scanner = SentinelScanner::new(sentinels());
            scanner.space()[..output.len()].copy_from_slice(output.as_bytes());
            scanner.filled(output.len());
            assert_eq!(scanner.next_event().unwrap(), Some(OutputEvent::End));
            assert_eq!(scanner.skip_blank(), is_output, "{after:?}");
            assert_eq!(scanner.held_bytes(), after.trim().len());
        }
    }

    #[test]
    fn callouts_that_do_not_end_are_malformed() {
        let known = sentinels();
        let [(_, end), (_, escape), (_, over)] = known.environment();
        for output in [
            format!("{escape}NOOP:{end}"),
            format!("{escape}{escape}"),
            over.to_string(),
            format!("{escape}{}", "x".repeat(5000)),
            format!("{escape}NOOP:"),
        ] {
            for step in [1, 4096] {
                let refused = scan(output.as_bytes(), step).expect_err(&output);
                assert!(matches!(refused, MalformedMessage::Lines(_)));
            }
        }
    }

    #[test]
    fn variables_are_written_in_both_formats() {
        let variables: [(&[u8], &[u8]); 2] = [(b"A", b"1"), (b"B", b"")];
        let mut out = Vec::new();
        append(&mut out, VariableFormat::Record, variables).unwrap();
        append(&mut out, VariableFormat::Struct, variables).unwrap();
        let struct_block = b"!!13\n\x04\0A=1\0\x03\0B=\0\0\0";
        assert_eq!(out, [&b"!\nA=1\nB=\n\n"[..], struct_block].concat());
        let mut out = b"200 ok\n".to_vec();
        append(&mut out, VariableFormat::Struct, []).unwrap();
        assert_eq!(out, b"200 ok\n!!2\n\0\0");
    }

    #[test]
    fn a_line_break_in_a_value_cannot_become_a_variable() {
        let broken: [(&[u8], &[u8]); 1] = [(b"PATH_INFO", b"/x\nREMOTE_USER=root")];
        let mut out = Vec::new();
        assert_eq!(
            append(&mut out, VariableFormat::Record, broken),
            Err(UnfitVariable::Broken)
        );
        assert!(out.is_empty());
        assert_eq!(append(&mut out, VariableFormat::Struct, broken), Ok(()));
        let long = vec![b'x'; 65_536];
        let long: [(&[u8], &[u8]); 1] = [(b"A", &long)];
        assert_eq!(
            append(&mut out, VariableFormat::Struct, long),
            Err(UnfitVariable::TooLong)
        );
    }

    #[test]
    fn random_sentinels_differ_and_are_not_shown() {
        let (one, two) = (Sentinels::random().unwrap(), Sentinels::random().unwrap());
        assert!(one != two);
        assert_eq!(format!("{one:?}"), "Sentinels");
        assert_eq!(
            VariableFormat::asked_by(b"CGIPLUS: struct"),
            Some(VariableFormat::Struct)
        );
        assert_eq!(VariableFormat::asked_by(b"NOOP:"), None);
    }
}
