//! The way from a body to the sink: through the place in the page, in pieces.

use std::sync::OnceLock;

use crate::escape::HtmlPlace;
use crate::fault::PageFaultKind;
use crate::host::SinkGone;
use crate::value::{Provenance, Text};

use super::runner::{Ran, RunFile, Runner, Stop, UNTOLD_VISIT};
use super::variables::REMOVE_BLANKS;

impl Runner<'_> {
    /// A range of the file's source. Where it leads to is found out once, not in every run.
    pub(super) fn print_author(
        &mut self,
        file: &RunFile,
        at: u32,
        bytes: &[u8],
        behind: &OnceLock<Box<HtmlPlace>>,
    ) -> Ran<()> {
        let is_simple = self.has_printed
            && self.header.is_over()
            && self.html.is_clear()
            && !self.removes_blanks(file)?;
        if !is_simple {
            return self.print_bytes(file, at, bytes);
        }
        let behind = behind.get_or_init(|| Box::new(HtmlPlace::behind(bytes)));
        let before = self.out.len();
        self.out.extend_from_slice(bytes);
        if !behind.is_clear() {
            self.html.clone_from(behind);
        }
        self.count_output(file, at, before)
    }

    /// Text of the author.
    pub(super) fn print_bytes(&mut self, file: &RunFile, at: u32, bytes: &[u8]) -> Ran<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.look_at_visit(file, at, bytes)?;
        let bytes = match self.header.is_over() {
            true => bytes,
            false => &bytes[self.print_in_header(file, at, bytes)?..],
        };
        if bytes.is_empty() {
            return Ok(());
        }
        let before = self.out.len();
        match self.removes_blanks(file)? && self.html.is_plain_text() {
            true => {
                let fewer = without_blanks(bytes);
                self.html.author(&fewer, &mut self.out);
            }
            false => self.html.author(bytes, &mut self.out),
        }
        self.count_output(file, at, before)
    }

    /// The first byte that is no blank: what becomes of the visit has to be said before it.
    fn look_at_visit(&mut self, file: &RunFile, at: u32, bytes: &[u8]) -> Ran<()> {
        if self.has_printed || bytes.trim_ascii_start().is_empty() {
            return Ok(());
        }
        self.has_printed = true;
        match self.is_lasting && !self.has_told_visit {
            true => file.stop(at, UNTOLD_VISIT),
            false => Ok(()),
        }
    }

    /// A value: the author's parts as they are, data as it is safe here.
    pub(super) fn print_text(&mut self, file: &RunFile, at: u32, text: &Text) -> Ran<()> {
        for (bytes, provenance) in text.runs() {
            match provenance.is_data() {
                true => self.print_data(file, at, bytes, provenance)?,
                false => self.print_bytes(file, at, bytes)?,
            }
        }
        Ok(())
    }

    pub(super) fn print_data(
        &mut self,
        file: &RunFile,
        at: u32,
        bytes: &[u8],
        provenance: Provenance,
    ) -> Ran<()> {
        self.look_at_visit(file, at, bytes)?;
        if !self.header.is_over() && self.print_data_in_header(file, at, bytes, provenance)? {
            return Ok(());
        }
        let before = self.out.len();
        let written = self.html.data(bytes, provenance.marks, &mut self.out);
        self.count_data(file, at, before, written)
    }

    /// Data was written from here on, or refused.
    pub(super) fn count_data(
        &mut self,
        file: &RunFile,
        at: u32,
        before: usize,
        written: Result<(), &'static str>,
    ) -> Ran<()> {
        if let Err(reason) = written {
            self.tell_refused(file, at, reason);
        }
        self.count_output(file, at, before)
    }

    pub(super) fn removes_blanks(&mut self, file: &RunFile) -> Ran<bool> {
        match self.variables.at(REMOVE_BLANKS).items.is_empty() {
            true => Ok(self.removes_blanks),
            false => self.control_is(file, "DTW_REMOVE_WS", false),
        }
    }

    pub(super) fn count_output(&mut self, file: &RunFile, at: u32, before: usize) -> Ran<()> {
        self.used.output_bytes += (self.out.len() - before) as u64;
        if self.used.output_bytes > self.settings.limits.output_bytes_max {
            return self.over(file, at, "output_bytes_max");
        }
        if self.out.len() >= self.settings.limits.piece_bytes {
            return self.hand_over(file, at);
        }
        Ok(())
    }

    fn hand_over(&mut self, file: &RunFile, at: u32) -> Ran<()> {
        let begun = match self.has_begun {
            true => Ok(()),
            false => self.sink.begin(&self.head),
        };
        self.has_begun = true;
        let handed = begun.and_then(|()| match self.out.is_empty() {
            true => Ok(()),
            false => self.sink.piece(&mut self.out),
        });
        self.out.clear();
        match handed {
            Ok(()) => Ok(()),
            Err(SinkGone) => {
                let message = "nobody reads the page any more".to_string();
                Err(Stop::Fault(file.page.fault(
                    at,
                    PageFaultKind::Gone,
                    message,
                )))
            }
        }
    }

    pub(super) fn finish_output(&mut self, file: &RunFile) -> Ran<()> {
        self.settle_header(file)?;
        self.hand_over(file, 0)
    }
}

/// One blank for several; a line end if there was one among them.
fn without_blanks(bytes: &[u8]) -> Vec<u8> {
    let mut fewer = Vec::with_capacity(bytes.len());
    let mut blank = None;
    for byte in bytes {
        match byte {
            b'\n' => blank = Some(b'\n'),
            b' ' | b'\t' | b'\r' => blank = blank.or(Some(b' ')),
            _ => {
                fewer.extend(blank.take());
                fewer.push(*byte);
            }
        }
    }
    fewer.extend(blank);
    fewer
}
