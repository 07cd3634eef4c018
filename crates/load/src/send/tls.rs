//! TLS of one connection, without a socket: records go in and out, plaintext and requests too.
//!
//! Records are decrypted where they were read, and only the part of one that has not come whole is
//! kept for each connection.

use std::fmt;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{ClientConfig, HandshakeKind};

/// Room a record needs besides what is in it.
const RECORD_EXTRA_BYTES: usize = 128;
/// Content of a record at most.
const RECORD_BYTES: usize = 16 * 1024;
/// Plaintext that is encrypted at once.
pub const PIECE_BYTES: usize = 4 * RECORD_BYTES;

/// One connection's TLS.
pub struct Tls {
    conn: UnbufferedClientConnection,
    /// Received bytes of a record that is not whole yet.
    pub kept: Vec<u8>,
    /// Bytes to be sent, and how many of them are.
    out: Vec<u8>,
    out_sent: usize,
    /// The handshake is over as far as requests may be sent.
    pub is_ready: bool,
    /// The server has said that nothing more will come.
    pub is_closed: bool,
}

impl Tls {
    /// Begins a handshake; its first message is there to be sent.
    pub fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Tls, rustls::Error> {
        let mut tls = Tls {
            conn: UnbufferedClientConnection::new(config, name)?,
            kept: Vec::new(),
            out: Vec::new(),
            out_sent: 0,
            is_ready: false,
            is_closed: false,
        };
        tls.process(&mut [], |_| {})?;
        Ok(tls)
    }

    /// Keeps what came of a record that is not whole yet.
    pub fn keep(&mut self, bytes: &[u8]) {
        self.kept.clear();
        self.kept.extend_from_slice(bytes);
    }

    /// Works through received bytes, gives plaintext to `take`, and says how many bytes are done
    /// with. The others are to be given again with what follows them.
    pub fn process(
        &mut self,
        bytes: &mut [u8],
        mut take: impl FnMut(&[u8]),
    ) -> Result<usize, rustls::Error> {
        let mut done = 0;
        loop {
            let UnbufferedStatus {
                mut discard, state, ..
            } = self.conn.process_tls_records(&mut bytes[done..]);
            let goes_on = match state? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        take(record.payload);
                    }
                    true
                }
                ConnectionState::EncodeTlsData(mut message) => {
                    append(&mut self.out, RECORD_EXTRA_BYTES, |room| {
                        message.encode(room).map_err(|error| match error {
                            EncodeError::InsufficientSize(size) => Some(size.required_size),
                            EncodeError::AlreadyEncoded => None,
                        })
                    });
                    true
                }
                // It is in `out`, which leaves in its order.
                ConnectionState::TransmitTlsData(message) => {
                    message.done();
                    true
                }
                ConnectionState::PeerClosed => {
                    self.is_closed = true;
                    true
                }
                ConnectionState::WriteTraffic(_) => {
                    self.is_ready = true;
                    false
                }
                _ => false,
            };
            done += discard;
            if !goes_on {
                return Ok(done);
            }
        }
    }

    /// Encrypts a piece of a request behind what is to be sent already.
    pub fn encrypt(&mut self, piece: &[u8]) -> Result<(), rustls::Error> {
        debug_assert!(piece.len() <= PIECE_BYTES);
        let UnbufferedStatus { state, .. } = self.conn.process_tls_records(&mut []);
        let ConnectionState::WriteTraffic(mut traffic) = state? else {
            return Err(rustls::Error::General(
                "the connection cannot send now".to_owned(),
            ));
        };
        let records = piece.len() / RECORD_BYTES + 1;
        let room = piece.len() + records * RECORD_EXTRA_BYTES;
        append(&mut self.out, room, |room| {
            traffic.encrypt(piece, room).map_err(|error| match error {
                EncryptError::InsufficientSize(size) => Some(size.required_size),
                EncryptError::EncryptExhausted => None,
            })
        });
        Ok(())
    }

    /// Says, behind what is to be sent already, that nothing more will come.
    pub fn close(&mut self) -> Result<(), rustls::Error> {
        let UnbufferedStatus { state, .. } = self.conn.process_tls_records(&mut []);
        if let ConnectionState::WriteTraffic(mut traffic) = state? {
            append(&mut self.out, RECORD_EXTRA_BYTES, |room| {
                traffic
                    .queue_close_notify(room)
                    .map_err(|error| match error {
                        EncryptError::InsufficientSize(size) => Some(size.required_size),
                        EncryptError::EncryptExhausted => None,
                    })
            });
        }
        Ok(())
    }

    /// What is to be sent.
    pub fn to_send(&self) -> &[u8] {
        &self.out[self.out_sent..]
    }

    /// So many bytes of it were sent.
    pub fn sent(&mut self, count: usize) {
        self.out_sent += count;
        if self.out_sent == self.out.len() {
            self.out.clear();
            self.out_sent = 0;
        }
    }

    /// Was a session resumed?
    pub(crate) fn is_resumed(&self) -> bool {
        self.conn.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// The protocol that was agreed on.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.conn.alpn_protocol()
    }

    /// Version, suite and group of the key exchange, for people.
    pub(crate) fn terms(&self) -> String {
        let version = self
            .conn
            .protocol_version()
            .map(|version| format!("{version:?}"));
        let suite = self.conn.negotiated_cipher_suite();
        let suite = suite.map(|suite| format!("{:?}", suite.suite()));
        let group = self.conn.negotiated_key_exchange_group();
        let group = group.map(|group| format!("{:?}", group.name()));
        [version, suite, group]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ")
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Tls");
        shown
            .field("is_ready", &self.is_ready)
            .field("is_closed", &self.is_closed);
        shown.finish_non_exhaustive()
    }
}

/// Has something written behind `out`, with as much more room as it asks for.
fn append(
    out: &mut Vec<u8>,
    room: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<usize>>,
) {
    let before = out.len();
    let mut room = room;
    loop {
        out.resize(before + room, 0);
        match write(&mut out[before..]) {
            Ok(count) => return out.truncate(before + count),
            Err(Some(needed)) if needed > room => room = needed,
            // Nothing was written: whoever waits for an answer to it notices.
            Err(_) => return out.truncate(before),
        }
    }
}
