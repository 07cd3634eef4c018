//! Connection ids: they say which thread of which server has the connection, so that a datagram
//! finds it whatever socket it came to.
//!
//! ```text
//! generation 1 | thread 1 | random 6 | check 2
//! ```
//!
//! The check tells our ids from those that clients make up for their first datagram. It is no
//! secret: a datagram that lies goes to a thread that drops it.

use std::time::Duration;

use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};

/// Bytes of an id.
pub(crate) const ID_BYTES: usize = 10;
const RANDOM_BYTES: usize = 6;

/// Where connections are at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionHome {
    /// Tells servers apart that follow each other.
    pub(crate) generation: u8,
    /// The thread.
    pub(crate) thread: u8,
}

/// The home of the connection that a datagram is for; `None` for one that begins a connection, or
/// is not for us.
//= rfc8999#5
pub(crate) fn home_of(datagram: &[u8]) -> Option<ConnectionHome> {
    let first = *datagram.first()?;
    let id = if first & 0x80 == 0 {
        datagram.get(1..1 + ID_BYTES)?
    } else {
        // Version, then the length of the id.
        let len = usize::from(*datagram.get(5)?);
        if len != ID_BYTES {
            return None;
        }
        datagram.get(6..6 + ID_BYTES)?
    };
    if !is_ours(id) {
        return None;
    }
    Some(ConnectionHome {
        generation: id[0],
        thread: id[1],
    })
}

fn is_ours(id: &[u8]) -> bool {
    match id.split_last_chunk::<2>() {
        Some((rest, check)) => id.len() == ID_BYTES && check_of(rest) == *check,
        None => false,
    }
}

/// Sixteen bits of everything before them (FNV-1a, folded).
fn check_of(bytes: &[u8]) -> [u8; 2] {
    let mix = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let sum = bytes.iter().fold(0x811c_9dc5, mix);
    ((sum ^ sum >> 16) as u16).to_be_bytes()
}

/// Makes ids of one home.
pub(super) struct ConnectionIds(pub(super) ConnectionHome);

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; ID_BYTES];
        id[0] = self.0.generation;
        id[1] = self.0.thread;
        // Without randomness there was no handshake either; ids that are taken are made again.
        let _ = aws_lc_rs::rand::fill(&mut id[2..2 + RANDOM_BYTES]);
        let check = check_of(&id[..ID_BYTES - 2]);
        id[ID_BYTES - 2..].copy_from_slice(&check);
        ConnectionId::new(&id)
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        match is_ours(id) {
            true => Ok(()),
            false => Err(InvalidCid),
        }
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_found_in_both_kinds_of_headers_and_nowhere_else() {
        let home = ConnectionHome {
            generation: 7,
            thread: 3,
        };
        let id = ConnectionIds(home).generate_cid();
        assert!(ConnectionIds(home).validate(&id).is_ok());
        let short = [&[0x40][..], &id, &[1, 2, 3]].concat();
        assert_eq!(home_of(&short), Some(home));
        let long = [&[0xe0, 0, 0, 0, 1, ID_BYTES as u8][..], &id, &[0]].concat();
        assert_eq!(home_of(&long), Some(home));
        for end in 0..ID_BYTES {
            assert_eq!(home_of(&short[..=end]), None);
        }
        let strange = [&[0xc0, 0, 0, 0, 1, 8][..], &[5; 30]].concat();
        assert_eq!(home_of(&strange), None);
        let mut changed = short;
        changed[4] ^= 1;
        assert_eq!(home_of(&changed), None);
    }
}
