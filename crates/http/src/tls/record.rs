//! Records of an established connection: sealed and opened in place, in buffers of the caller.
//!
//! ```text
//! TLS 1.3             23 3 3 len | cipher(text, type) | tag 16      text with its type, encrypted
//! TLS 1.2, AES-GCM    type 3 3 len | nonce 8 | cipher(text) | tag 16
//! TLS 1.2, ChaCha20   type 3 3 len | cipher(text) | tag 16
//! ```
//!
//! A nonce is the initialisation vector with the record's number on top; AES-GCM of TLS 1.2 sends
//! the half of it that changes. Numbers count up from what rustls left them at and never repeat for
//! a key: the keys are changed, or the connection ends, long before they could.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use rustls::ConnectionTrafficSecrets;

/// Bytes before a record's content.
pub(crate) const HEADER_BYTES: usize = 5;
/// Most bytes of text in a record.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 14;
/// Most bytes a record has beside its text, as we seal it.
pub(crate) const OVERHEAD_BYTES_MAX: usize = HEADER_BYTES + NONCE_BYTES + TAG_BYTES;
/// Most bytes of a whole record, as a client may send it.
pub(crate) const RECORD_BYTES_MAX: usize = HEADER_BYTES + TEXT_BYTES_MAX + 256;

const TAG_BYTES: usize = 16;
/// The part of a nonce that AES-GCM of TLS 1.2 sends.
const NONCE_BYTES: usize = 8;

/// What a record carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TlsContentType {
    Alert = 21,
    Handshake = 22,
    Data = 23,
}

/// How a cipher is put into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// TLS 1.3.
    Typed,
    /// TLS 1.2 with a part of the nonce in the record.
    Nonced,
    /// TLS 1.2 without.
    Plain,
}

/// TLS version of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsRecordVersion {
    Tls12,
    Tls13,
}

/// A key for one direction of a connection, and how many records it has been used for.
pub(crate) struct TrafficKey {
    key: LessSafeKey,
    vector: [u8; 12],
    number: u64,
    shape: Shape,
}

/// Why a record could not be opened: it says which alert that deserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// It was changed, or sealed with another key.
    Record,
    /// It is longer than any record.
    TooLong,
    /// It has a type that cannot be here.
    Unexpected,
}

/// A key that rustls gave is not one for its cipher; it never happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BadKey;

impl TrafficKey {
    pub(crate) fn new(
        wire: TlsRecordVersion,
        (number, secrets): (u64, ConnectionTrafficSecrets),
    ) -> Result<TrafficKey, BadKey> {
        let is_chacha = matches!(secrets, ConnectionTrafficSecrets::Chacha20Poly1305 { .. });
        let (algorithm, key, iv): (&Algorithm, _, _) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
            _ => return Err(BadKey),
        };
        let shape = match (wire, is_chacha) {
            (TlsRecordVersion::Tls13, _) => Shape::Typed,
            (TlsRecordVersion::Tls12, false) => Shape::Nonced,
            (TlsRecordVersion::Tls12, true) => Shape::Plain,
        };
        let key = UnboundKey::new(algorithm, key.as_ref()).map_err(|_| BadKey)?;
        Ok(TrafficKey {
            key: LessSafeKey::new(key),
            vector: iv.as_ref().try_into().map_err(|_| BadKey)?,
            number,
            shape,
        })
    }

    /// How many records were sealed or opened with it.
    pub(crate) fn record_count(&self) -> u64 {
        self.number
    }

    /// Where the text stands in a record that is sealed.
    pub(crate) fn text_at(&self) -> usize {
        match self.shape {
            Shape::Nonced => HEADER_BYTES + NONCE_BYTES,
            Shape::Typed | Shape::Plain => HEADER_BYTES,
        }
    }

    /// Bytes of a record beside its text.
    pub(crate) fn overhead(&self) -> usize {
        self.text_at() + self.trailer_bytes()
    }

    /// Bytes after the text.
    fn trailer_bytes(&self) -> usize {
        match self.shape {
            Shape::Typed => 1 + TAG_BYTES,
            Shape::Nonced | Shape::Plain => TAG_BYTES,
        }
    }

    /// Seals the text that stands in `record` between [`TrafficKey::text_at`] and the trailer: the
    /// whole slice is the record then.
    pub(crate) fn seal(&mut self, kind: TlsContentType, record: &mut [u8]) {
        self.seal_from(kind, None, record);
    }

    /// Seals a text that stands elsewhere into `record`, which has just the size for it. Saves a
    /// copy.
    pub(crate) fn seal_text(&mut self, kind: TlsContentType, text: &[u8], record: &mut [u8]) {
        self.seal_from(kind, Some(text), record);
    }

    fn seal_from(&mut self, kind: TlsContentType, text: Option<&[u8]>, record: &mut [u8]) {
        let text_at = self.text_at();
        let text_len = record.len() - self.overhead();
        assert!(text_len <= TEXT_BYTES_MAX, "a record has a limit");
        let nonce = self.next_nonce();
        let aad = self.aad(kind, text_len, self.number);
        self.number += 1;
        let (head, rest) = record.split_at_mut(text_at);
        head[0] = match self.shape {
            Shape::Typed => TlsContentType::Data as u8,
            _ => kind as u8,
        };
        head[1..3].copy_from_slice(&[3, 3]);
        let content_len = (text_at - HEADER_BYTES + rest.len()) as u16;
        head[3..5].copy_from_slice(&content_len.to_be_bytes());
        if self.shape == Shape::Nonced {
            head[HEADER_BYTES..].copy_from_slice(&nonce[4..]);
        }
        let typed = [kind as u8];
        let extra: &[u8] = match self.shape {
            Shape::Typed => &typed,
            _ => &[],
        };
        let nonce = Nonce::assume_unique_for_key(nonce);
        let (body, trailer) = rest.split_at_mut(text_len);
        let aad = Aad::from(aad.bytes());
        let sealed = match text {
            Some(text) => {
                (self.key).seal_out_of_place_scatter(nonce, aad, text, body, extra, trailer)
            }
            None => (self.key).seal_in_place_scatter(nonce, aad, body, extra, trailer),
        };
        assert!(sealed.is_ok(), "sizes are those of the cipher");
    }

    /// Opens a whole record in place; says what it carries and where in it.
    pub(crate) fn open(
        &mut self,
        record: &mut [u8],
    ) -> Result<(TlsContentType, std::ops::Range<usize>), Bad> {
        let text_at = self.text_at();
        let typed_bytes = usize::from(self.shape == Shape::Typed);
        if record.len() > RECORD_BYTES_MAX {
            return Err(Bad::TooLong);
        }
        let outer = record.first().and_then(|byte| kind_of(*byte));
        //= rfc8446#5
        if self.shape == Shape::Typed && outer != Some(TlsContentType::Data) {
            return Err(Bad::Unexpected);
        }
        let outer = outer.ok_or(Bad::Unexpected)?;
        if record.len() < text_at + typed_bytes + TAG_BYTES {
            return Err(Bad::Record);
        }
        let mut nonce = self.next_nonce();
        if self.shape == Shape::Nonced {
            nonce[..4].copy_from_slice(&self.vector[..4]);
            nonce[4..].copy_from_slice(&record[HEADER_BYTES..text_at]);
        }
        let text_len = record.len() - text_at - TAG_BYTES - typed_bytes;
        let aad = self.aad(outer, text_len, self.number);
        self.number += 1;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let opened = self
            .key
            .open_in_place(nonce, Aad::from(aad.bytes()), &mut record[text_at..])
            .map_err(|_| Bad::Record)?;
        let mut len = opened.len();
        let mut kind = outer;
        if self.shape == Shape::Typed {
            // Padding is zeros behind the type.
            let last = opened.iter().rposition(|byte| *byte != 0);
            len = last.ok_or(Bad::Unexpected)?;
            kind = kind_of(opened[len]).ok_or(Bad::Unexpected)?;
        }
        if len > TEXT_BYTES_MAX {
            return Err(Bad::TooLong);
        }
        Ok((kind, text_at..text_at + len))
    }

    fn next_nonce(&self) -> [u8; 12] {
        let mut nonce = self.vector;
        for (byte, number) in nonce[4..].iter_mut().zip(self.number.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    /// What is authenticated beside the text.
    fn aad(&self, kind: TlsContentType, text_len: usize, number: u64) -> Associated {
        let mut bytes = [0; 13];
        match self.shape {
            Shape::Typed => {
                let len = (text_len + 1 + TAG_BYTES) as u16;
                bytes[..3].copy_from_slice(&[TlsContentType::Data as u8, 3, 3]);
                bytes[3..5].copy_from_slice(&len.to_be_bytes());
                Associated { bytes, len: 5 }
            }
            Shape::Nonced | Shape::Plain => {
                bytes[..8].copy_from_slice(&number.to_be_bytes());
                bytes[8..11].copy_from_slice(&[kind as u8, 3, 3]);
                bytes[11..].copy_from_slice(&(text_len as u16).to_be_bytes());
                Associated { bytes, len: 13 }
            }
        }
    }
}

struct Associated {
    bytes: [u8; 13],
    len: usize,
}

impl Associated {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn kind_of(byte: u8) -> Option<TlsContentType> {
    [
        TlsContentType::Alert,
        TlsContentType::Handshake,
        TlsContentType::Data,
    ]
    .into_iter()
    .find(|kind| *kind as u8 == byte)
}

/// Size of the record at the begin of these bytes, when its header is there.
pub(crate) fn record_len(bytes: &[u8]) -> Option<usize> {
    let header = bytes.first_chunk::<HEADER_BYTES>()?;
    Some(HEADER_BYTES + usize::from(u16::from_be_bytes([header[3], header[4]])))
}
