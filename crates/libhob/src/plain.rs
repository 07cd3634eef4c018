//! Not started by hob: the environment and standard input are one CGI request, standard output its
//! answer. After it there is no other.

use std::io::{Read, Write};
use std::sync::Mutex;
use std::sync::PoisonError;

use hob_ipc::request::{BlockBuilder, OwnedBlock};

use crate::environment;
use crate::failure::CallFailure;

/// What is collected before it is written.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// The one request.
#[derive(Debug)]
pub(crate) struct Plain {
    state: Mutex<CgiExchangeState>,
}

#[derive(Debug)]
struct CgiExchangeState {
    is_begun: bool,
    is_head_written: bool,
    body_left: u64,
    output: Vec<u8>,
}

impl Plain {
    pub(crate) fn new() -> Plain {
        Plain {
            state: Mutex::new(CgiExchangeState {
                is_begun: false,
                is_head_written: false,
                body_left: 0,
                output: Vec::new(),
            }),
        }
    }

    /// The request's variables; `None` after the first time.
    pub(crate) fn begin(&self) -> Result<Option<OwnedBlock>, CallFailure> {
        let mut state = self.lock();
        if std::mem::replace(&mut state.is_begun, true) {
            return Ok(None);
        }
        let length = environment::value_of(c"CONTENT_LENGTH")
            .and_then(|text| std::str::from_utf8(text).ok())
            .and_then(|text| text.trim().parse().ok());
        state.body_left = length.unwrap_or(0);
        let mut block = BlockBuilder::new(Some(state.body_left));
        for entry in environment::all() {
            let Some(at) = entry.iter().position(|&byte| byte == b'=') else {
                continue;
            };
            // Names that are empty are no variables; what is longer than a block is not CGI.
            if at > 0 {
                let pushed = block.push(&entry[..at], &entry[at + 1..]);
                pushed.map_err(|_| CallFailure::TooLong)?;
            }
        }
        Ok(Some(OwnedBlock::check(
            block.finish().map_err(|_| CallFailure::TooLong)?,
        )?))
    }

    pub(crate) fn read(&self, into: &mut [u8]) -> Result<usize, CallFailure> {
        let mut state = self.lock();
        let left = usize::try_from(state.body_left).unwrap_or(usize::MAX);
        let count = left.min(into.len());
        let count = std::io::stdin().read(&mut into[..count]);
        let count = count.map_err(|_| CallFailure::System)?;
        state.body_left -= count as u64;
        if count == 0 {
            state.body_left = 0;
        }
        Ok(count)
    }

    pub(crate) fn write(
        &self,
        status: u16,
        fields: &[u8],
        bytes: &[u8],
    ) -> Result<(), CallFailure> {
        let mut state = self.lock();
        if !std::mem::replace(&mut state.is_head_written, true) {
            state.output.extend_from_slice(&head(status, fields));
        }
        state.output.extend_from_slice(bytes);
        if state.output.len() < OUTPUT_BYTES_MAX {
            return Ok(());
        }
        write_out(&mut state.output)
    }

    pub(crate) fn flush(&self, status: u16, fields: &[u8]) -> Result<(), CallFailure> {
        self.write(status, fields, b"")?;
        write_out(&mut self.lock().output)
    }

    pub(crate) fn fail(&self, is_head_sent: bool, reason: &[u8]) -> Result<(), CallFailure> {
        let _ = std::io::stderr().write_all(&[reason, b"\n"].concat());
        if is_head_sent {
            return Ok(());
        }
        let lines = b"Content-Type: text/plain\n";
        self.write(500, lines, b"The program failed.\n")?;
        self.flush(500, lines)
    }

    /// Log and trace lines go to standard error; there is nobody to ask anything else.
    pub(crate) fn callout(&self, text: &[u8]) -> Result<usize, CallFailure> {
        let is_line = [&b"LOG:"[..], b"TRACE:"]
            .iter()
            .any(|word| text.starts_with(word));
        if !is_line {
            return Err(CallFailure::Unsupported);
        }
        let line = text
            .splitn(2, |&byte| byte == b':')
            .nth(1)
            .unwrap_or_default();
        let line = [line.trim_ascii(), b"\n"].concat();
        std::io::stderr()
            .write_all(&line)
            .map_err(|_| CallFailure::System)?;
        Ok(0)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CgiExchangeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write_out(output: &mut Vec<u8>) -> Result<(), CallFailure> {
    let mut rest = &output[..];
    while !rest.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), rest) {
            Ok(count) => rest = &rest[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    output.clear();
    Ok(())
}

/// The head of a CGI answer.
fn head(status: u16, fields: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    if status != 0 {
        head.extend_from_slice(format!("Status: {status}\n").as_bytes());
    }
    head.extend_from_slice(fields);
    if !fields.is_empty() && !fields.ends_with(b"\n") {
        head.push(b'\n');
    }
    if head.is_empty() {
        head.extend_from_slice(b"Status: 200\n");
    }
    head.push(b'\n');
    head
}
