//! What `hob status` tells of a certificate that comes from an authority.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::memory;
use crate::wire::{MalformedPart, WireReader, WireValue, WireWriter, cut};
use hob_http::acme::ChallengeMethod;

/// How it stands with a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateState {
    /// Its names; the first one names it.
    pub names: Vec<String>,
    /// How they are proved.
    pub method: ChallengeMethod,
    /// Until when the one that is served is good, as Unix time in seconds; `None` while there is
    /// none.
    pub until_unix_s: Option<i64>,
    /// When the next one is asked for.
    pub next_unix_s: Option<i64>,
    /// It is being asked for.
    pub is_ordering: bool,
    /// What went wrong last time, with what to do.
    pub error: Option<String>,
}

const ERROR_BYTES_MAX: usize = 4 * 1024;
const STATES_MAX: usize = 10_000;

impl CertificateState {
    pub(super) fn encode(&self, writer: &mut WireWriter) {
        self.names.put(writer);
        self.method.put(writer);
        put_time(writer, self.until_unix_s);
        put_time(writer, self.next_unix_s);
        writer.u8(self.is_ordering.into());
        writer.text(cut(
            self.error.as_deref().unwrap_or_default(),
            ERROR_BYTES_MAX,
        ));
    }

    pub(super) fn decode(reader: &mut WireReader<'_>) -> Result<CertificateState, MalformedPart> {
        Ok(CertificateState {
            names: WireValue::take(reader)?,
            method: WireValue::take(reader)?,
            until_unix_s: take_time(reader)?,
            next_unix_s: take_time(reader)?,
            is_ordering: reader.flag()?,
            error: Some(reader.text(ERROR_BYTES_MAX)?).filter(|text| !text.is_empty()),
        })
    }
}

/// Writes states to sealed memory.
pub(crate) fn to_memory<'s>(
    states: impl ExactSizeIterator<Item = &'s CertificateState>,
) -> io::Result<OwnedFd> {
    let mut writer = WireWriter::default();
    writer.count(states.len());
    states.for_each(|state| state.encode(&mut writer));
    memory::sealed("hob-certificates", &writer.finish())
}

/// Reads what was written.
pub(crate) fn from_memory(memory: BorrowedFd<'_>) -> io::Result<Vec<CertificateState>> {
    let bytes = memory::read(memory)?;
    let mut reader = WireReader::new(&bytes, "states of certificates");
    let mut read = || {
        let count = reader.count(STATES_MAX)?;
        let states = (0..count).map(|_| CertificateState::decode(&mut reader));
        let states = states.collect::<Result<Vec<_>, _>>()?;
        reader.end()?;
        Ok(states)
    };
    read().map_err(|error: MalformedPart| io::Error::other(error))
}

/// The sign travels in the bits.
fn put_time(writer: &mut WireWriter, time: Option<i64>) {
    match time {
        None => writer.u8(0),
        Some(time) => writer.u8(1).u64(time.cast_unsigned()),
    };
}

fn take_time(reader: &mut WireReader<'_>) -> Result<Option<i64>, MalformedPart> {
    match reader.flag()? {
        false => Ok(None),
        true => Ok(Some(reader.u64()?.cast_signed())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn state() -> CertificateState {
        CertificateState {
            names: vec!["example.org".to_owned(), "*.example.org".to_owned()],
            method: ChallengeMethod::Dns,
            until_unix_s: Some(1_800_000_000),
            next_unix_s: Some(-5),
            is_ordering: false,
            error: None,
        }
    }

    #[test]
    fn states_arrive_as_written() {
        let mut failed = state();
        failed.error = Some("no answer".to_owned());
        let states = [state(), failed];
        let memory = to_memory(states.iter()).unwrap();
        assert_eq!(from_memory(memory.as_fd()).unwrap(), states);
    }
}
