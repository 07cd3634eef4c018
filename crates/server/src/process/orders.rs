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

use crate::life::parcel::{Parcel, Slot};
use crate::life::wire::{Malformed, Reader, Writer, cut};

const SLOT_POLICY: u8 = 16;
const SLOT_SERVER: u8 = 17;
/// Longest text, in bytes; longer ones are cut.
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// Most descriptors with one order.
pub(crate) const DESCRIPTORS_MAX: usize = 1;

/// From the keeper.
#[derive(Debug)]
pub(crate) enum Order {
    Policy(OwnedFd),
    Server(OwnedFd),
    Retire,
}

/// From a spawner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Ready,
    Trouble {
        text: String,
    },
    /// A server asked for what the policy does not allow.
    Refused {
        text: String,
    },
}

impl Order {
    pub(crate) fn encode(self) -> Parcel {
        let (kind, descriptor) = match self {
            Order::Policy(memory) => (1, Some((SLOT_POLICY, memory))),
            Order::Server(end) => (2, Some((SLOT_SERVER, end))),
            Order::Retire => (3, None),
        };
        let slot = |(kind, descriptor)| (Slot { kind, index: 0 }, descriptor);
        Parcel {
            kind,
            body: vec![],
            descriptors: descriptor.into_iter().map(slot).collect(),
        }
    }

    pub(crate) fn decode(mut parcel: Parcel) -> Result<Order, Malformed> {
        const WRONG: Malformed = Malformed("order to the spawner");
        let carried = parcel.descriptors.pop();
        if !parcel.body.is_empty() || !parcel.descriptors.is_empty() {
            return Err(WRONG);
        }
        let carried = carried.map(|(slot, descriptor)| (slot.kind, descriptor));
        match (parcel.kind, carried) {
            (1, Some((SLOT_POLICY, memory))) => Ok(Order::Policy(memory)),
            (2, Some((SLOT_SERVER, end))) => Ok(Order::Server(end)),
            (3, None) => Ok(Order::Retire),
            _ => Err(WRONG),
        }
    }
}

impl Said {
    pub(crate) fn encode(&self) -> Parcel {
        let mut writer = Writer::default();
        let kind = match self {
            Said::Ready => 32,
            Said::Trouble { text } => {
                writer.text(cut(text, TEXT_BYTES_MAX));
                33
            }
            Said::Refused { text } => {
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

    pub(crate) fn decode(parcel: &Parcel) -> Result<Said, Malformed> {
        let mut reader = Reader::new(&parcel.body, "message of a spawner");
        let said = match parcel.kind {
            32 => Said::Ready,
            33 => Said::Trouble {
                text: reader.text(TEXT_BYTES_MAX)?,
            },
            34 => Said::Refused {
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
            Order::decode(Order::Policy(null()).encode()),
            Ok(Order::Policy(_))
        ));
        assert!(matches!(
            Order::decode(Order::Server(null()).encode()),
            Ok(Order::Server(_))
        ));
        assert!(matches!(
            Order::decode(Order::Retire.encode()),
            Ok(Order::Retire)
        ));
        let trouble = Said::Trouble {
            text: "no cgroup".to_owned(),
        };
        let refused = Said::Refused {
            text: "LD_PRELOAD".to_owned(),
        };
        for said in [Said::Ready, trouble, refused] {
            assert_eq!(Said::decode(&said.encode()), Ok(said));
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
            Order::decode(with_body).unwrap_err();
            let slot = Slot { kind: 99, index: 0 };
            let wrong = Parcel {
                kind,
                body: vec![],
                descriptors: vec![(slot, null())],
            };
            Order::decode(wrong).unwrap_err();
        }
        let none = Parcel {
            kind: 1,
            body: vec![],
            descriptors: vec![],
        };
        Order::decode(none).unwrap_err();
    }
}
