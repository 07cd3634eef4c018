//! The beginning of the output of a page that says that it prints its own header.

use crate::escape::{DATA_IN_NAME, HeaderFields, HeaderSign, HeaderStart};
use crate::fault::PageFaultKind;
use crate::host::{OwnHeader, TraceEvent};
use crate::value::Provenance;

use super::runner::{Ran, RunFile, Runner, Stop};

/// How far the output is with the header that the page may print itself.
pub(super) enum HeaderProgress {
    /// Nothing was printed.
    Unasked,
    /// A header is announced, and what was printed so far is no sign of it, nor of a body.
    Held(Box<HeldStart>),
    Fields(HeaderFields),
    Body,
}

/// What a page printed first.
#[derive(Default)]
pub(super) struct HeldStart {
    start: HeaderStart,
    texts: Vec<HeldText>,
    bytes: usize,
}

enum HeldText {
    Author(Vec<u8>),
    Data(Vec<u8>, Provenance),
}

impl HeaderProgress {
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Body)
    }
}

impl Runner<'_> {
    /// Text of the author that may stand in a header. Gives how much of it did.
    pub(super) fn print_in_header(&mut self, file: &RunFile, at: u32, bytes: &[u8]) -> Ran<usize> {
        self.announce_header(file)?;
        let removes_blanks = self.removes_blanks(file)?;
        match &mut self.header {
            HeaderProgress::Unasked | HeaderProgress::Body => Ok(0),
            HeaderProgress::Held(held) => match held.start.author(bytes) {
                HeaderSign::Open => {
                    held.texts.push(HeldText::Author(bytes.to_vec()));
                    held.bytes += bytes.len();
                    self.look_at_held(file, at).map(|()| bytes.len())
                }
                HeaderSign::Field => {
                    self.begin_fields(file, at);
                    let bytes_left = match self.out.is_empty() {
                        true => bytes.trim_ascii_start(),
                        false => bytes,
                    };
                    let taken = self.print_in_header(file, at, bytes_left)?;
                    Ok(bytes.len() - bytes_left.len() + taken)
                }
                HeaderSign::Body => self.begin_body(file, at).map(|()| 0),
            },
            HeaderProgress::Fields(fields) => {
                let before = self.out.len();
                let taken = fields.author(bytes, removes_blanks, &mut self.out);
                if taken.is_some() {
                    self.header = HeaderProgress::Body;
                }
                self.count_output(file, at, before)?;
                Ok(taken.unwrap_or(bytes.len()))
            }
        }
    }

    /// Data that may stand in a header. Says whether it did.
    pub(super) fn print_data_in_header(
        &mut self,
        file: &RunFile,
        at: u32,
        bytes: &[u8],
        provenance: Provenance,
    ) -> Ran<bool> {
        self.announce_header(file)?;
        match &mut self.header {
            HeaderProgress::Unasked | HeaderProgress::Body => return Ok(false),
            HeaderProgress::Held(held) => {
                held.texts.push(HeldText::Data(bytes.to_vec(), provenance));
                held.bytes += bytes.len();
                self.look_at_held(file, at)?;
            }
            HeaderProgress::Fields(fields) => {
                let before = self.out.len();
                if let Err(reason) = fields.data(bytes, &mut self.out) {
                    self.tell_refused(file, at, reason);
                }
                self.count_output(file, at, before)?;
            }
        }
        Ok(true)
    }

    /// At the end of the output: what was no sign of a header is a body.
    pub(super) fn settle_header(&mut self, file: &RunFile) -> Ran<()> {
        match self.header {
            HeaderProgress::Held(_) => self.begin_body(file, 0),
            _ => Ok(()),
        }
    }

    /// Before the first byte: does the page say that it prints its own header?
    fn announce_header(&mut self, file: &RunFile) -> Ran<()> {
        if matches!(self.header, HeaderProgress::Unasked) {
            self.header = match self.control_is(file, "DTW_PRINT_HEADER", true)? {
                true => HeaderProgress::Body,
                false => HeaderProgress::Held(Box::default()),
            };
        }
        Ok(())
    }

    /// The author has begun a field: what stood before it is left out.
    fn begin_fields(&mut self, file: &RunFile, at: u32) {
        let fields = HeaderProgress::Fields(HeaderFields::new());
        let HeaderProgress::Held(held) = std::mem::replace(&mut self.header, fields) else {
            return;
        };
        self.head.header = OwnHeader::Printed;
        for text in held.texts {
            match text {
                HeldText::Author(bytes) if self.out.is_empty() => {
                    self.out.extend_from_slice(bytes.trim_ascii_start());
                }
                HeldText::Author(bytes) => self.out.extend(bytes),
                HeldText::Data(bytes, _) if bytes.is_empty() => {}
                HeldText::Data(..) => self.tell_refused(file, at, DATA_IN_NAME),
            }
        }
        self.used.output_bytes += self.out.len() as u64;
    }

    /// The author has begun something that is no header.
    fn begin_body(&mut self, file: &RunFile, at: u32) -> Ran<()> {
        let HeaderProgress::Held(held) = std::mem::replace(&mut self.header, HeaderProgress::Body)
        else {
            return Ok(());
        };
        self.head.header = OwnHeader::Missing;
        for text in held.texts {
            match text {
                HeldText::Author(bytes) => self.print_bytes(file, at, &bytes)?,
                HeldText::Data(bytes, provenance) => {
                    self.print_data(file, at, &bytes, provenance)?;
                }
            }
        }
        Ok(())
    }

    /// More than one piece is not held. If there is data in it, it must not be data that decides.
    fn look_at_held(&mut self, file: &RunFile, at: u32) -> Ran<()> {
        let HeaderProgress::Held(held) = &self.header else {
            return Ok(());
        };
        if held.bytes + HELD_TEXT_BYTES * held.texts.len() <= self.settings.limits.piece_bytes {
            return Ok(());
        }
        let mut texts = held.texts.iter();
        match texts.any(|text| matches!(text, HeldText::Data(..))) {
            true => {
                let message = UNTOLD_HEADER.to_owned();
                let fault = file.page.fault(at, PageFaultKind::Page, message);
                Err(Stop::Fault(fault))
            }
            false => self.begin_body(file, at),
        }
    }

    pub(super) fn tell_refused(&mut self, file: &RunFile, at: u32, reason: &'static str) {
        self.used.refused_outputs += 1;
        if let Some(trace) = &mut self.trace {
            let place = file.place(at);
            trace.event(TraceEvent::Refused { place, reason });
        }
    }
}

/// What holding a text takes beside its bytes.
const HELD_TEXT_BYTES: usize = size_of::<HeldText>();
const UNTOLD_HEADER: &str = "the page says that it prints its own header (DTW_PRINT_HEADER is \
     \"NO\") and prints data first, more than is kept until it begins one: the header has to come \
     before everything else";
