//! What the keeper and a spawner say to each other.
//!
//! ```text
//! keeper -> spawner                                       spawner -> keeper
//!  1 Policy   sealed memory, for one generation             32 Ready
//!  2 Server   an end whose other one a server has           33 Trouble   text
//!  3 Retire   end when no server is left                    34 Refused   text
//! ```
//!
//! The spawner takes no wish of a server to the keeper; it only says what the operator should know.

use std::os::fd::OwnedFd;

use crate::parcel::{DescriptorSlot, Parcel};
use crate::wire::{MalformedPart, WireReader, WireWriter, cut};

const SLOT_POLICY: u8 = 16;
const SLOT_SERVER: u8 = 17;
/// Longest text, in bytes; longer ones are cut.
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// Most descriptors with one order.
pub(crate) const DESCRIPTORS_MAX: usize = 1;

/// From the keeper.
#[derive(Debug)]
pub(crate) enum SpawnerOrder {
    Policy(OwnedFd),
    Server(OwnedFd),
    Retire,
}

/// From a spawner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SpawnerReport {
    Ready,
    Trouble {
        text: String,
    },
    /// A server asked for what the policy does not allow.
    Refused {
        text: String,
    },
}

impl SpawnerOrder {
    pub(crate) fn encode(self) -> Parcel {
        let (kind, descriptor) = match self {
            SpawnerOrder::Policy(memory) => (1, Some((SLOT_POLICY, memory))),
            SpawnerOrder::Server(end) => (2, Some((SLOT_SERVER, end))),
            SpawnerOrder::Retire => (3, None),
        };
        let slot = |(kind, descriptor)| (DescriptorSlot { kind, index: 0 }, descriptor);
        Parcel {
            kind,
            body: vec![],
            descriptors: descriptor.into_iter().map(slot).collect(),
        }
    }

    pub(crate) fn decode(mut parcel: Parcel) -> Result<SpawnerOrder, MalformedPart> {
        const WRONG: MalformedPart = MalformedPart("order to the spawner");
        let carried = parcel.descriptors.pop();
        if !parcel.body.is_empty() || !parcel.descriptors.is_empty() {
            return Err(WRONG);
        }
        let carried = carried.map(|(slot, descriptor)| (slot.kind, descriptor));
        match (parcel.kind, carried) {
            (1, Some((SLOT_POLICY, memory))) => Ok(SpawnerOrder::Policy(memory)),
            (2, Some((SLOT_SERVER, end))) => Ok(SpawnerOrder::Server(end)),
            (3, None) => Ok(SpawnerOrder::Retire),
            _ => Err(WRONG),
        }
    }
}

impl SpawnerReport {
    pub(crate) fn encode(&self) -> Parcel {
        let mut writer = WireWriter::default();
        let kind = match self {
            SpawnerReport::Ready => 32,
            SpawnerReport::Trouble { text } => {
                writer.text(cut(text, TEXT_BYTES_MAX));
                33
            }
            SpawnerReport::Refused { text } => {
                writer.text(cut(text, TEXT_BYTES_MAX));
                34
            }
        };
        Parcel {
            kind,
            body: writer.finish(),
            descriptors: vec![],
        }
    }

    pub(crate) fn decode(parcel: &Parcel) -> Result<SpawnerReport, MalformedPart> {
        let mut reader = WireReader::new(&parcel.body, "message of a spawner");
        let said = match parcel.kind {
            32 => SpawnerReport::Ready,
            33 => SpawnerReport::Trouble {
                text: reader.text(TEXT_BYTES_MAX)?,
            },
            34 => SpawnerReport::Refused {
                text: reader.text(TEXT_BYTES_MAX)?,
            },
            _ => return Err(reader.malformed()),
        };
        reader.end()?;
        if parcel.descriptors.is_empty() {
            Ok(said)
        } else {
            Err(reader.malformed())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn null() -> OwnedFd {
        std::fs::File::open("/dev/null").unwrap().into()
    }

    #[test]
    fn orders_and_answers_arrive_as_written() {
        assert!(matches!(
            SpawnerOrder::decode(SpawnerOrder::Policy(null()).encode()),
            Ok(SpawnerOrder::Policy(_))
        ));
        assert!(matches!(
            SpawnerOrder::decode(SpawnerOrder::Server(null()).encode()),
            Ok(SpawnerOrder::Server(_))
        ));
        assert!(matches!(
            SpawnerOrder::decode(SpawnerOrder::Retire.encode()),
            Ok(SpawnerOrder::Retire)
        ));
        let trouble = SpawnerReport::Trouble {
            text: "no cgroup".to_owned(),
        };
        let refused = SpawnerReport::Refused {
            text: "LD_PRELOAD".to_owned(),
        };
        for said in [SpawnerReport::Ready, trouble, refused] {
            assert_eq!(SpawnerReport::decode(&said.encode()), Ok(said));
        }
    }

    #[test]
    fn order_with_too_few_or_wrong_descriptors_is_malformed() {
        for kind in 0..=4 {
            let with_body = Parcel {
                kind,
                body: vec![0],
                descriptors: vec![],
            };
            SpawnerOrder::decode(with_body).unwrap_err();
            let slot = DescriptorSlot { kind: 99, index: 0 };
            let wrong = Parcel {
                kind,
                body: vec![],
                descriptors: vec![(slot, null())],
            };
            SpawnerOrder::decode(wrong).unwrap_err();
        }
        let none = Parcel {
            kind: 1,
            body: vec![],
            descriptors: vec![],
        };
        SpawnerOrder::decode(none).unwrap_err();
    }
}
