//! An established connection: what comes in is opened in place, what goes out is sealed.
//!
//! It has no socket and no buffer. Beside data there are alerts, and in TLS 1.3 updates of keys,
//! which rustls computes; and tickets for clients, which it keeps.

use rustls::ConnectionTrafficSecrets;
use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;

use crate::tls::record::{
    Bad, HEADER_BYTES, TlsContentType, TlsRecordVersion, TrafficKey, record_len,
};

/// The session of a connection.
pub(crate) struct TlsSession {
    pub(crate) tx: TrafficKey,
    rx: TrafficKey,
    /// Computes new keys, in TLS 1.3.
    kernel: Option<Kernel>,
    /// Messages of the handshake protocol since the other side last sent data.
    message_count: u32,
    /// The begin of one of them whose end is in a later record; a client's only.
    message: Vec<u8>,
    has_sent_end: bool,
}

/// What is left of a handshake of rustls, by the side that it was made on.
pub(crate) enum Kernel {
    Server(KernelConnection<ServerConnectionData>),
    /// It keeps tickets.
    Client(KernelConnection<ClientConnectionData>),
}

/// Number of the first record of a key, and the key.
type NextSecret = (u64, ConnectionTrafficSecrets);

impl Kernel {
    fn next_tx(&mut self) -> Option<NextSecret> {
        match self {
            Kernel::Server(kernel) => kernel.update_tx_secret().ok(),
            Kernel::Client(kernel) => kernel.update_tx_secret().ok(),
        }
    }

    fn next_rx(&mut self) -> Option<NextSecret> {
        match self {
            Kernel::Server(kernel) => kernel.update_rx_secret().ok(),
            Kernel::Client(kernel) => kernel.update_rx_secret().ok(),
        }
    }
}

/// What was in a buffer of records.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenedRecords {
    /// Bytes of whole records, all of them used.
    pub(crate) used: usize,
    /// Bytes of text, at the begin of the buffer.
    pub(crate) text: usize,
    /// How the input ended, if it did; then nothing after it counts.
    pub(crate) end: Option<TlsInputEnd>,
}

/// How the input of a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsInputEnd {
    /// The other side has said that nothing more comes.
    Closed,
    /// The other side gave up, with this alert.
    GaveUp(u8),
    /// It broke a rule; it is told so.
    Broken(&'static str),
}

/// Alerts, by their numbers.
pub(crate) mod alert {
    pub(crate) const CLOSE_NOTIFY: u8 = 0;
    pub(crate) const UNEXPECTED_MESSAGE: u8 = 10;
    pub(crate) const BAD_RECORD_MAC: u8 = 20;
    pub(crate) const RECORD_OVERFLOW: u8 = 22;
    pub(crate) const PROTOCOL_VERSION: u8 = 70;
    pub(crate) const DECODE_ERROR: u8 = 50;
    pub(crate) const INTERNAL_ERROR: u8 = 80;
    pub(crate) const USER_CANCELED: u8 = 90;
    pub(crate) const NO_RENEGOTIATION: u8 = 100;
}

/// Records sealed with one key before it is changed: well below what is safe for AES-GCM.
const RECORDS_PER_KEY_MAX: u64 = if cfg!(test) { 1 << 5 } else { 1 << 23 };
/// Records of a key that cannot be changed (TLS 1.2).
const RECORDS_MAX: u64 = 1 << 24;
/// Messages of the handshake protocol without data between them.
const MESSAGES_MAX: u32 = 32;
/// Longest of them: a ticket.
const MESSAGE_BYTES_MAX: usize = 72 * 1024;
const NEW_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;

impl TlsSession {
    pub(crate) fn new(tx: TrafficKey, rx: TrafficKey, kernel: Option<Kernel>) -> TlsSession {
        TlsSession {
            tx,
            rx,
            kernel,
            message_count: 0,
            message: Vec::new(),
            has_sent_end: false,
        }
    }

    /// Opens the whole records in `buffer`; their text stands at its begin then. What is to be sent
    /// because of them is appended to `out`.
    pub(crate) fn open(&mut self, buffer: &mut [u8], out: &mut Vec<u8>) -> OpenedRecords {
        let mut opened = OpenedRecords {
            used: 0,
            text: 0,
            end: None,
        };
        while let Some(len) = record_len(&buffer[opened.used..]) {
            if len > crate::tls::record::RECORD_BYTES_MAX {
                opened.end = Some(self.break_off(Bad::TooLong, out));
                break;
            }
            if len > buffer.len() - opened.used {
                break;
            }
            let record = &mut buffer[opened.used..opened.used + len];
            let (kind, text) = match self.rx.open(record) {
                Ok(result) => result,
                Err(bad) => {
                    opened.end = Some(self.break_off(bad, out));
                    break;
                }
            };
            let text = opened.used + text.start..opened.used + text.end;
            opened.used += len;
            let end = match kind {
                TlsContentType::Data => {
                    self.message_count = 0;
                    let len = text.len();
                    buffer.copy_within(text, opened.text);
                    opened.text += len;
                    None
                }
                TlsContentType::Alert => self.hear_alert(&buffer[text], out),
                TlsContentType::Handshake => self.hear_handshake(&buffer[text], out),
            };
            if end.is_some() {
                opened.end = end;
                break;
            }
        }
        opened
    }

    /// The key for the next record will be another one.
    pub(crate) fn is_key_worn(&self) -> bool {
        self.tx.record_count() >= RECORDS_PER_KEY_MAX && self.kernel.is_some()
    }

    /// The key for the next record, changed when it is time. `None` when no more can be sealed.
    pub(crate) fn sealer(&mut self, out: &mut Vec<u8>) -> Option<&mut TrafficKey> {
        if self.is_key_worn() {
            self.update_tx(out)?;
        }
        (self.tx.record_count() < RECORDS_MAX).then_some(&mut self.tx)
    }

    /// Says, once, that nothing more is sent.
    pub(crate) fn push_end(&mut self, out: &mut Vec<u8>) {
        if !self.has_sent_end {
            self.has_sent_end = true;
            self.push(TlsContentType::Alert, &[1, alert::CLOSE_NOTIFY], out);
        }
    }

    /// Says nothing more: neither that it has ended nor why it broke off.
    pub(crate) fn fall_silent(&mut self) {
        self.has_sent_end = true;
    }

    fn break_off(&mut self, bad: Bad, out: &mut Vec<u8>) -> TlsInputEnd {
        let (alert, reason) = match bad {
            Bad::Record => (alert::BAD_RECORD_MAC, "a TLS record was changed on its way"),
            Bad::TooLong => (alert::RECORD_OVERFLOW, "a TLS record is too long"),
            Bad::Unexpected => (
                alert::UNEXPECTED_MESSAGE,
                "a TLS record has a type that cannot be here",
            ),
        };
        self.refuse(alert, reason, out)
    }

    fn refuse(&mut self, alert: u8, reason: &'static str, out: &mut Vec<u8>) -> TlsInputEnd {
        if !self.has_sent_end {
            self.has_sent_end = true;
            self.push(TlsContentType::Alert, &[2, alert], out);
        }
        TlsInputEnd::Broken(reason)
    }

    fn hear_alert(&mut self, text: &[u8], out: &mut Vec<u8>) -> Option<TlsInputEnd> {
        match text {
            [_, alert::CLOSE_NOTIFY] => Some(TlsInputEnd::Closed),
            [_, alert::USER_CANCELED] => None,
            // Warnings are a thing of TLS 1.2; none of them says anything to us.
            [1, _] if self.kernel.is_none() => None,
            [_, number] => Some(TlsInputEnd::GaveUp(*number)),
            //= rfc8446#5.4
            [] => Some(self.refuse(alert::UNEXPECTED_MESSAGE, "a TLS alert is empty", out)),
            _ => Some(self.refuse(alert::DECODE_ERROR, "a TLS alert is malformed", out)),
        }
    }

    /// In TLS 1.2 the other side may want a new handshake, and gets none. In TLS 1.3 it may change
    /// keys, and a server may give tickets, in as many records as it likes.
    fn hear_handshake(&mut self, text: &[u8], out: &mut Vec<u8>) -> Option<TlsInputEnd> {
        match &self.kernel {
            None => {
                let wanted = "TLS renegotiation was asked for";
                return Some(self.refuse(alert::NO_RENEGOTIATION, wanted, out));
            }
            Some(Kernel::Server(_)) => return self.hear_message(text, out),
            Some(Kernel::Client(_)) => {}
        }
        let mut held = std::mem::take(&mut self.message);
        held.extend_from_slice(text);
        let mut rest = &held[..];
        while let Some([kind, len @ ..]) = rest.first_chunk::<4>() {
            let len = len
                .iter()
                .fold(0, |len, byte| len << 8 | usize::from(*byte));
            if 4 + len > MESSAGE_BYTES_MAX {
                return Some(self.refuse(alert::DECODE_ERROR, TOO_LONG, out));
            }
            let Some((message, after)) = rest.split_at_checked(4 + len) else {
                break;
            };
            rest = after;
            //= rfc8446#5.1
            if *kind == KEY_UPDATE && !rest.is_empty() {
                return Some(self.refuse(alert::UNEXPECTED_MESSAGE, MALFORMED, out));
            }
            if let Some(end) = self.hear_message(message, out) {
                return Some(end);
            }
        }
        self.message = rest.to_vec();
        None
    }

    fn hear_message(&mut self, text: &[u8], out: &mut Vec<u8>) -> Option<TlsInputEnd> {
        self.message_count += 1;
        if self.message_count > MESSAGES_MAX {
            return Some(self.refuse(alert::UNEXPECTED_MESSAGE, TOO_MANY, out));
        }
        let wants_answer = match (text, &mut self.kernel) {
            ([KEY_UPDATE, 0, 0, 1, wanted @ (0 | 1)], _) => *wanted == 1,
            ([KEY_UPDATE, ..], _) => {
                return Some(self.refuse(alert::DECODE_ERROR, MALFORMED, out));
            }
            ([NEW_TICKET, _, _, _, ticket @ ..], Some(Kernel::Client(kernel))) => {
                let kept = kernel.handle_new_session_ticket(ticket);
                let refused = kept.is_err();
                return refused.then(|| self.refuse(alert::DECODE_ERROR, BAD_TICKET, out));
            }
            _ => return Some(self.refuse(alert::UNEXPECTED_MESSAGE, UNEXPECTED, out)),
        };
        let next = self.kernel.as_mut().and_then(Kernel::next_rx);
        let Some(key) = next.and_then(|next| TrafficKey::new(TlsRecordVersion::Tls13, next).ok())
        else {
            return Some(self.refuse(alert::UNEXPECTED_MESSAGE, TOO_MANY, out));
        };
        self.rx = key;
        // Whoever has sent its end says nothing more.
        if wants_answer && !self.has_sent_end && self.update_tx(out).is_none() {
            return Some(self.refuse(alert::INTERNAL_ERROR, TOO_MANY, out));
        }
        None
    }

    /// Tells the other side of our next key and goes over to it.
    fn update_tx(&mut self, out: &mut Vec<u8>) -> Option<()> {
        self.push(TlsContentType::Handshake, &[KEY_UPDATE, 0, 0, 1, 0], out);
        let next = self.kernel.as_mut()?.next_tx()?;
        self.tx = TrafficKey::new(TlsRecordVersion::Tls13, next).ok()?;
        Some(())
    }

    /// Appends a small record.
    fn push(&mut self, kind: TlsContentType, text: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.tx.overhead() + text.len(), 0);
        self.tx.seal_text(kind, text, &mut out[start..]);
    }
}

const MALFORMED: &str = "a TLS key update is malformed";
const UNEXPECTED: &str = "a TLS handshake message came after the handshake";
const TOO_MANY: &str = "too many TLS handshake messages without data";
const TOO_LONG: &str = "a TLS handshake message is too long";
const BAD_TICKET: &str = "a TLS ticket is malformed";

const _: () = assert!(HEADER_BYTES == 5);
