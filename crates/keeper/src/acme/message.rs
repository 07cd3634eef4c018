//! What the keeper and the process that gets certificates say to each other.
//!
//! ```text
//! keeper -> process                           process -> keeper
//!  1 Plan    sealed memory                     32 Ready
//!  2 Shown   number: proofs up to it are seen  33 Show         number, a proof
//!  3 Kept    number, what was wrong            34 Hide         a proof
//!                                              35 Account      number, directory, text
//!                                              36 Certificate  number, directory, name, pair
//!                                              37 State        of a certificate
//! ```
//!
//! The process is the less trusted one: it reads what strangers send. It passes no descriptors, and
//! the keeper looks at what it is given: proofs must be sound, chain and key fit together and have
//! the names that the config has.

use std::os::fd::OwnedFd;

use hob_http::acme::{Challenge, Token};

use super::state::CertificateState;
use crate::parcel::{DescriptorSlot, Parcel};
use crate::wire::{MalformedPart, WireReader, WireWriter, cut};

const SLOT_PLAN: u8 = 32;
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// Largest chain or key that is taken, in bytes.
pub(crate) const PEM_BYTES_MAX: usize = 20 * 1024;

/// From the keeper.
#[derive(Debug)]
pub(crate) enum ToAcme {
    Plan(OwnedFd),
    Shown { number: u64 },
    Kept { number: u64, error: Option<String> },
}

/// From the process.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum FromAcme {
    Ready,
    Show {
        number: u64,
        challenge: Challenge,
    },
    Hide {
        challenge: Challenge,
    },
    Account {
        number: u64,
        directory: String,
        text: Vec<u8>,
    },
    Certificate {
        number: u64,
        directory: String,
        name: String,
        chain: Vec<u8>,
        key: Vec<u8>,
    },
    State(CertificateState),
}

impl ToAcme {
    pub(crate) fn encode(self) -> Parcel {
        let mut writer = WireWriter::default();
        let (kind, descriptors) = match self {
            ToAcme::Plan(memory) => {
                let kind = SLOT_PLAN;
                (1, vec![(DescriptorSlot { kind, index: 0 }, memory)])
            }
            ToAcme::Shown { number } => {
                writer.u64(number);
                (2, vec![])
            }
            ToAcme::Kept { number, error } => {
                let text = error.as_deref().unwrap_or_default();
                writer.u64(number).text(cut(text, TEXT_BYTES_MAX));
                (3, vec![])
            }
        };
        Parcel {
            kind,
            body: writer.finish(),
            descriptors,
        }
    }

    pub(crate) fn decode(mut parcel: Parcel) -> Result<ToAcme, MalformedPart> {
        let mut reader = WireReader::new(&parcel.body, "order for certificates");
        let order = match parcel.kind {
            1 => match parcel.descriptors.pop() {
                Some((slot, memory)) if slot.kind == SLOT_PLAN => ToAcme::Plan(memory),
                _ => return Err(reader.malformed()),
            },
            2 => ToAcme::Shown {
                number: reader.u64()?,
            },
            3 => ToAcme::Kept {
                number: reader.u64()?,
                error: Some(reader.text(TEXT_BYTES_MAX)?).filter(|text| !text.is_empty()),
            },
            _ => return Err(reader.malformed()),
        };
        reader.end()?;
        if parcel.descriptors.is_empty() {
            Ok(order)
        } else {
            Err(reader.malformed())
        }
    }
}

impl FromAcme {
    pub(crate) fn encode(&self) -> Parcel {
        let mut writer = WireWriter::default();
        let kind = match self {
            FromAcme::Ready => 32,
            FromAcme::Show { number, challenge } => {
                put_challenge(writer.u64(*number), challenge);
                33
            }
            FromAcme::Hide { challenge } => {
                put_challenge(&mut writer, challenge);
                34
            }
            FromAcme::Account {
                number,
                directory,
                text,
            } => {
                writer.u64(*number).text(directory).block(text);
                35
            }
            FromAcme::Certificate {
                number,
                directory,
                name,
                chain,
                key,
            } => {
                writer.u64(*number).text(directory).text(name);
                writer.block(chain).block(key);
                36
            }
            FromAcme::State(state) => {
                state.encode(&mut writer);
                37
            }
        };
        Parcel {
            kind,
            body: writer.finish(),
            descriptors: vec![],
        }
    }

    pub(crate) fn decode(parcel: &Parcel) -> Result<FromAcme, MalformedPart> {
        let mut reader = WireReader::new(&parcel.body, "message about certificates");
        let said = match parcel.kind {
            32 => FromAcme::Ready,
            33 => FromAcme::Show {
                number: reader.u64()?,
                challenge: take_challenge(&mut reader)?,
            },
            34 => FromAcme::Hide {
                challenge: take_challenge(&mut reader)?,
            },
            35 => FromAcme::Account {
                number: reader.u64()?,
                directory: reader.text(TEXT_BYTES_MAX)?,
                text: reader.block(PEM_BYTES_MAX)?.to_vec(),
            },
            36 => FromAcme::Certificate {
                number: reader.u64()?,
                directory: reader.text(TEXT_BYTES_MAX)?,
                name: reader.text(TEXT_BYTES_MAX)?,
                chain: reader.block(PEM_BYTES_MAX)?.to_vec(),
                key: reader.block(PEM_BYTES_MAX)?.to_vec(),
            },
            37 => FromAcme::State(CertificateState::decode(&mut reader)?),
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

/// Writes a proof.
pub(crate) fn put_challenge(writer: &mut WireWriter, challenge: &Challenge) {
    match challenge {
        Challenge::Http { token, answer } => writer.u8(0).text(token.as_str()).text(answer),
        Challenge::TlsAlpn { name, digest } => writer.u8(1).text(name).block(digest),
        Challenge::Dns { name, value } => writer.u8(2).text(name).text(value),
    };
}

/// Reads a proof, which must be sound.
pub(crate) fn take_challenge(reader: &mut WireReader<'_>) -> Result<Challenge, MalformedPart> {
    let challenge = match reader.u8()? {
        0 => {
            let token = reader.text(TEXT_BYTES_MAX)?;
            Challenge::Http {
                token: Token::new(&token).ok_or(reader.malformed())?,
                answer: reader.text(TEXT_BYTES_MAX)?,
            }
        }
        1 => {
            let name = reader.text(TEXT_BYTES_MAX)?;
            let digest = reader.block(TEXT_BYTES_MAX)?;
            let digest = digest.try_into().map_err(|_| reader.malformed())?;
            Challenge::TlsAlpn { name, digest }
        }
        2 => Challenge::Dns {
            name: reader.text(TEXT_BYTES_MAX)?,
            value: reader.text(TEXT_BYTES_MAX)?,
        },
        _ => return Err(reader.malformed()),
    };
    if challenge.is_sound() {
        Ok(challenge)
    } else {
        Err(reader.malformed())
    }
}

#[cfg(test)]
mod tests {
    use hob_http::acme::ChallengeMethod;

    use super::*;

    fn page() -> Challenge {
        let token = "LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0";
        Challenge::Http {
            token: Token::new(token).unwrap(),
            answer: format!("{token}.{}", "t".repeat(43)),
        }
    }

    fn all() -> Vec<FromAcme> {
        vec![
            FromAcme::Ready,
            FromAcme::Show {
                number: 3,
                challenge: page(),
            },
            FromAcme::Hide {
                challenge: Challenge::TlsAlpn {
                    name: "example.org".to_owned(),
                    digest: [9; 32],
                },
            },
            FromAcme::Account {
                number: 4,
                directory: "https://a.test/dir".to_owned(),
                text: b"{}".to_vec(),
            },
            FromAcme::Certificate {
                number: 5,
                directory: "https://a.test/dir".to_owned(),
                name: "example.org".to_owned(),
                chain: b"chain".to_vec(),
                key: b"key".to_vec(),
            },
            FromAcme::State(CertificateState {
                names: vec!["example.org".to_owned()],
                method: ChallengeMethod::TlsAlpn,
                until_unix_s: Some(-1),
                next_unix_s: None,
                is_ordering: true,
                error: Some("no".to_owned()),
            }),
        ]
    }

    #[test]
    fn messages_arrive_as_written() {
        for said in all() {
            assert!(FromAcme::decode(&said.encode()).unwrap() == said);
        }
        let memory = std::fs::File::open("/dev/null").unwrap().into();
        let plan = ToAcme::decode(ToAcme::Plan(memory).encode());
        assert!(matches!(plan, Ok(ToAcme::Plan(_))));
        let shown = ToAcme::decode(ToAcme::Shown { number: 7 }.encode());
        assert!(matches!(shown, Ok(ToAcme::Shown { number: 7 })));
        let error = Some("full".to_owned());
        let kept = ToAcme::decode(ToAcme::Kept { number: 8, error }.encode());
        assert!(
            matches!(kept, Ok(ToAcme::Kept { number: 8, error: Some(text) }) if text == "full")
        );
    }

    #[test]
    fn cut_or_changed_messages_never_panic() {
        for said in all() {
            let whole = said.encode();
            for end in 0..whole.body.len() {
                let cut = Parcel {
                    kind: whole.kind,
                    body: whole.body[..end].to_vec(),
                    descriptors: vec![],
                };
                assert!(FromAcme::decode(&cut).is_err());
            }
            for position in 0..whole.body.len() {
                for value in [0, 1, 0x7f, 0xff] {
                    let mut body = whole.body.clone();
                    body[position] = value;
                    let _ = FromAcme::decode(&Parcel {
                        kind: whole.kind,
                        body,
                        descriptors: vec![],
                    });
                }
            }
        }
    }

    #[test]
    fn proof_that_is_not_sound_is_malformed() {
        let wrong = Challenge::Http {
            token: Token::new(&"a".repeat(43)).unwrap(),
            answer: "<script>".to_owned(),
        };
        let said = FromAcme::Hide { challenge: wrong };
        assert!(FromAcme::decode(&said.encode()).is_err());
    }
}
