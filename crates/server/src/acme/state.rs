//! What `hob status` tells of a certificate that comes from an authority.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use hob_http::acme::Method;
use hob_trace::calendar::Moment;

use crate::api::Order;
use crate::life::memory;
use crate::life::wire::{Malformed, Reader, Wire, Writer, cut};

/// How it stands with a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateState {
    /// Its names; the first one names it.
    pub names: Vec<String>,
    /// How they are proved.
    pub method: Method,
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
    pub(super) fn encode(&self, writer: &mut Writer) {
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

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<CertificateState, Malformed> {
        Ok(CertificateState {
            names: Wire::take(reader)?,
            method: Wire::take(reader)?,
            until_unix_s: take_time(reader)?,
            next_unix_s: take_time(reader)?,
            is_ordering: reader.flag()?,
            error: Some(reader.text(ERROR_BYTES_MAX)?).filter(|text| !text.is_empty()),
        })
    }

    /// As `hob status --json` shows it.
    pub(crate) fn told(&self) -> Order {
        let state = match (self.is_ordering, self.until_unix_s, &self.error) {
            (true, _, _) => "ordering",
            (false, _, Some(_)) => "failed",
            (false, Some(_), None) => "served",
            (false, None, None) => "waiting",
        };
        Order {
            names: self.names.clone(),
            challenge: self.method.name().to_owned(),
            state: state.to_owned(),
            until: self.until_unix_s.map(moment),
            until_unix: self.until_unix_s,
            next_try: self.next_unix_s.map(moment),
            next_try_unix: self.next_unix_s,
            error: self.error.clone(),
        }
    }
}

/// A moment for people.
fn moment(unix_s: i64) -> String {
    let moment = Moment::from_unix_s(unix_s);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02} UTC",
        moment.year, moment.month, moment.day, moment.hour, moment.minute
    )
}

/// Writes states to sealed memory.
pub(crate) fn to_memory<'s>(
    states: impl ExactSizeIterator<Item = &'s CertificateState>,
) -> io::Result<OwnedFd> {
    let mut writer = Writer::default();
    writer.count(states.len());
    states.for_each(|state| state.encode(&mut writer));
    memory::sealed("hob-certificates", &writer.finish())
}

/// Reads what was written.
pub(crate) fn from_memory(memory: BorrowedFd<'_>) -> io::Result<Vec<CertificateState>> {
    let bytes = memory::read(memory)?;
    let mut reader = Reader::new(&bytes, "states of certificates");
    let mut read = || {
        let count = reader.count(STATES_MAX)?;
        let states = (0..count).map(|_| CertificateState::decode(&mut reader));
        let states = states.collect::<Result<Vec<_>, _>>()?;
        reader.end()?;
        Ok(states)
    };
    read().map_err(|error: Malformed| io::Error::other(error))
}

/// The sign travels in the bits.
fn put_time(writer: &mut Writer, time: Option<i64>) {
    match time {
        None => writer.u8(0),
        Some(time) => writer.u8(1).u64(time.cast_unsigned()),
    };
}

fn take_time(reader: &mut Reader<'_>) -> Result<Option<i64>, Malformed> {
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
            method: Method::Dns,
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

    #[test]
    fn status_says_how_it_stands_and_until_when() {
        let mut state = state();
        let word = |state: &CertificateState| state.told().state;
        assert_eq!(word(&state), "served");
        assert_eq!(state.told().until.as_deref(), Some("2027-01-15 08:00 UTC"));
        state.error = Some("no answer".to_owned());
        assert_eq!(word(&state), "failed");
        state.is_ordering = true;
        assert_eq!(word(&state), "ordering");
        (state.is_ordering, state.until_unix_s, state.error) = (false, None, None);
        assert_eq!(word(&state), "waiting");
        assert_eq!(state.told().until, None);
    }
}
