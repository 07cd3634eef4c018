//! What keeper and server say to each other.
//!
//! ```text
//! keeper -> server                                server -> keeper
//!  1 Start       generation, papers, sockets,      32 Ready
//!                secret of resets, servers,
//!                where visits are asked for
//!  2 Reload      the same, for a running server    33 StartFailed   text
//!  3 Drain       deadline, grace                   34 Reloaded      generation
//!  4 LogFile     a log opened again                35 ReloadFailed  text
//!  5 Answer      to an Ask                         36 Ask           reload, upgrade or stop
//!  6 Spawner     its pid, an end to it
//!  7 Note        what the operator should know
//!  8 Keys        certificates that have changed
//!  9 Challenges  number, proofs for an authority
//! 10 Certificates  how it stands with those of an authority
//! 11 Servers     which others live
//!                                                  37 Rotate        a log
//!                                                  38 Leaving       draining on its own account
//!                                                  39 Drained
//!                                                  40 Challenged    number: proofs are answered
//! ```
//!
//! The server is the less trusted one: what it sends is small, carries no descriptors, and can
//! ask only for what the control socket may ask for. `papers` is memory with the sources and facts.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use hob_http::h3::ResetSecret;

use super::parcel::{DESCRIPTORS_MAX, DescriptorSlot, Inbox, NotReceived, NotSent, Outbox, Parcel};
use super::wire::{MalformedPart, WireReader, WireWriter, cut};

/// Longest text of a message, in bytes; longer ones are cut.
pub(crate) const TEXT_BYTES_MAX: usize = 32 * 1024;

const SLOT_PAPERS: u8 = 0;
const SLOT_LISTENER: u8 = 1;
const SLOT_LOG: u8 = 2;
const SLOT_CONTROL: u8 = 3;
const SLOT_SPAWNER: u8 = 4;
const SLOT_KEYS: u8 = 5;
const SLOT_CHALLENGES: u8 = 6;
const SLOT_CERTIFICATES: u8 = 7;
const SLOT_DATAGRAM: u8 = 8;
const SLOT_KEPT: u8 = 9;
const SLOT_VISITS: u8 = 10;
const SLOT_VISITS_BEFORE: u8 = 11;
const SLOT_PROCESS_BEFORE: u8 = 12;

/// There are no more numbers of servers than fit a byte.
const LIVING_MAX: usize = 256;

/// The file of the history among `Outfit::kept`.
pub(crate) const KEPT_HISTORY: u16 = 0;
/// The file of activity.
pub(crate) const KEPT_ACTIVITY: u16 = 1;
/// The file of sites that are down for maintenance.
pub(crate) const KEPT_MAINTENANCE: u16 = 2;
/// The file of clients that are banned.
pub(crate) const KEPT_BANS: u16 = 3;

/// Everything a server needs to run one generation of the config.
#[derive(Debug)]
pub(crate) struct Outfit {
    pub generation: u64,
    /// Memory with `Papers`.
    pub(crate) papers: OwnedFd,
    /// By index of `Config::listeners`.
    pub(crate) listeners: Vec<OwnedFd>,
    /// Index in `Config::listeners` and a socket for HTTP/3, in their order.
    pub(crate) datagrams: Vec<(u16, OwnedFd)>,
    /// Index in `Config::logs` and the open file; logs to standard output have none.
    pub(crate) logs: Vec<(u16, OwnedFd)>,
    /// Files in which something outlives the server, by what they are for.
    pub(crate) kept: Vec<(u16, OwnedFd)>,
    pub(crate) control: Option<OwnedFd>,
    /// Memory with `KeyFiles`; none without TLS.
    pub(crate) keys: Option<OwnedFd>,
    /// Memory with the proofs that a new server answers from its first request on.
    pub(crate) challenges: Option<OwnedFd>,
}

/// From the keeper.
#[derive(Debug)]
pub(crate) enum ToServer {
    Start(Outfit, Resets, VisitSockets),
    Reload(Outfit),
    Drain {
        deadline: Duration,
        grace: Duration,
    },
    LogFile {
        index: u16,
        file: OwnedFd,
    },
    Answer {
        request: u64,
        is_ok: bool,
        text: String,
    },
    Spawner {
        pid: u32,
        end: OwnedFd,
    },
    Note {
        text: String,
    },
    Keys {
        /// Memory with `KeyFiles`.
        memory: OwnedFd,
    },
    Challenges {
        number: u64,
        /// Memory with a list of proofs.
        memory: OwnedFd,
    },
    Certificates {
        /// Memory with a list of states.
        memory: OwnedFd,
    },
    Servers {
        living: Vec<u8>,
    },
}

/// How a server ends connections over QUIC that one before it had.
#[derive(Clone, Debug)]
pub(crate) struct Resets {
    /// What tokens are made from; all servers of a keeper have the same.
    pub(crate) secret: ResetSecret,
    /// Which other servers live, by the last eight bits of their numbers.
    pub(crate) living: Vec<u8>,
}

/// How visitors that a server before has come to what it keeps for them.
#[derive(Debug, Default)]
pub struct VisitSockets {
    /// Listens for requests of the server that comes after this one; none where the system has no
    /// room for it.
    pub own: Option<OwnedFd>,
    /// The file of the one at which the server before listens, and its process (a pidfd); none
    /// where there is no such server.
    pub before: Option<(OwnedFd, OwnedFd)>,
}

/// From the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToKeeper {
    Ready,
    StartFailed { text: String },
    Reloaded { generation: u64 },
    ReloadFailed { text: String },
    Ask { wish: Wish, request: u64 },
    Rotate { index: u16 },
    Leaving,
    Drained,
    Challenged { number: u64 },
}

/// What the control socket may ask of the keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Read the config again.
    Reload,
    /// Go over to the program as it now stands on disk.
    Upgrade,
    /// Drain and end.
    Stop,
}

impl ToServer {
    pub(crate) fn encode(self) -> Parcel {
        let mut writer = WireWriter::default();
        let (kind, descriptors) = match self {
            ToServer::Start(outfit, resets, visits) => {
                let mut descriptors = outfit.encode(&mut writer);
                writer.block(resets.secret.bytes()).block(&resets.living);
                visits.encode(&mut descriptors);
                (1, descriptors)
            }
            ToServer::Reload(outfit) => (2, outfit.encode(&mut writer)),
            ToServer::Drain { deadline, grace } => {
                writer.u64(millis(deadline)).u64(millis(grace));
                (3, vec![])
            }
            ToServer::LogFile { index, file } => (
                4,
                vec![(
                    DescriptorSlot {
                        kind: SLOT_LOG,
                        index,
                    },
                    file,
                )],
            ),
            ToServer::Answer {
                request,
                is_ok,
                text,
            } => {
                writer
                    .u64(request)
                    .u8(is_ok.into())
                    .text(cut(&text, TEXT_BYTES_MAX));
                (5, vec![])
            }
            ToServer::Spawner { pid, end } => {
                writer.u32(pid);
                let kind = SLOT_SPAWNER;
                (6, vec![(DescriptorSlot { kind, index: 0 }, end)])
            }
            ToServer::Note { text } => {
                writer.text(cut(&text, TEXT_BYTES_MAX));
                (7, vec![])
            }
            ToServer::Keys { memory } => {
                let kind = SLOT_KEYS;
                (8, vec![(DescriptorSlot { kind, index: 0 }, memory)])
            }
            ToServer::Challenges { number, memory } => {
                writer.u64(number);
                let kind = SLOT_CHALLENGES;
                (9, vec![(DescriptorSlot { kind, index: 0 }, memory)])
            }
            ToServer::Certificates { memory } => {
                let kind = SLOT_CERTIFICATES;
                (10, vec![(DescriptorSlot { kind, index: 0 }, memory)])
            }
            ToServer::Servers { living } => {
                writer.block(&living);
                (11, vec![])
            }
        };
        Parcel {
            kind,
            body: writer.finish(),
            descriptors,
        }
    }

    pub(crate) fn decode(parcel: Parcel) -> Result<ToServer, MalformedPart> {
        let Parcel {
            kind,
            body,
            mut descriptors,
        } = parcel;
        let mut reader = WireReader::new(&body, "message to the server");
        let message = match kind {
            1 => {
                let visits = VisitSockets::decode(&mut descriptors);
                let outfit = Outfit::decode(&mut reader, std::mem::take(&mut descriptors))?;
                ToServer::Start(outfit, Resets::decode(&mut reader)?, visits)
            }
            2 => ToServer::Reload(Outfit::decode(
                &mut reader,
                std::mem::take(&mut descriptors),
            )?),
            3 => ToServer::Drain {
                deadline: Duration::from_millis(reader.u64()?),
                grace: Duration::from_millis(reader.u64()?),
            },
            4 => match descriptors.pop() {
                Some((slot, file)) if slot.kind == SLOT_LOG => ToServer::LogFile {
                    index: slot.index,
                    file,
                },
                _ => return Err(reader.malformed()),
            },
            5 => ToServer::Answer {
                request: reader.u64()?,
                is_ok: reader.flag()?,
                text: reader.text(TEXT_BYTES_MAX)?,
            },
            6 => match descriptors.pop() {
                Some((slot, end)) if slot.kind == SLOT_SPAWNER => ToServer::Spawner {
                    pid: reader.u32()?,
                    end,
                },
                _ => return Err(reader.malformed()),
            },
            7 => ToServer::Note {
                text: reader.text(TEXT_BYTES_MAX)?,
            },
            8 => match descriptors.pop() {
                Some((slot, memory)) if slot.kind == SLOT_KEYS => ToServer::Keys { memory },
                _ => return Err(reader.malformed()),
            },
            9 => match descriptors.pop() {
                Some((slot, memory)) if slot.kind == SLOT_CHALLENGES => ToServer::Challenges {
                    number: reader.u64()?,
                    memory,
                },
                _ => return Err(reader.malformed()),
            },
            10 => match descriptors.pop() {
                Some((slot, memory)) if slot.kind == SLOT_CERTIFICATES => {
                    ToServer::Certificates { memory }
                }
                _ => return Err(reader.malformed()),
            },
            11 => ToServer::Servers {
                living: reader.block(LIVING_MAX)?.to_vec(),
            },
            _ => return Err(reader.malformed()),
        };
        reader.end()?;
        if descriptors.is_empty() {
            Ok(message)
        } else {
            Err(reader.malformed())
        }
    }
}

impl VisitSockets {
    fn encode(self, descriptors: &mut Vec<(DescriptorSlot, OwnedFd)>) {
        let (before, process_before) = self.before.unzip();
        let sockets = [
            (SLOT_VISITS, self.own),
            (SLOT_VISITS_BEFORE, before),
            (SLOT_PROCESS_BEFORE, process_before),
        ];
        let of = |(kind, socket): (u8, Option<OwnedFd>)| {
            Some((DescriptorSlot { kind, index: 0 }, socket?))
        };
        descriptors.extend(sockets.into_iter().filter_map(of));
    }

    /// They are the last ones.
    fn decode(descriptors: &mut Vec<(DescriptorSlot, OwnedFd)>) -> VisitSockets {
        let mut take = |kind| {
            let (_, socket) = descriptors.pop_if(|(slot, _)| slot.kind == kind)?;
            Some(socket)
        };
        let process_before = take(SLOT_PROCESS_BEFORE);
        let before = take(SLOT_VISITS_BEFORE);
        VisitSockets {
            own: take(SLOT_VISITS),
            before: before.zip(process_before),
        }
    }
}

impl Resets {
    fn decode(reader: &mut WireReader<'_>) -> Result<Resets, MalformedPart> {
        let secret = ResetSecret::from_bytes(reader.block(ResetSecret::BYTES)?);
        let secret = secret.ok_or(reader.malformed())?;
        let living = reader.block(LIVING_MAX)?.to_vec();
        Ok(Resets { secret, living })
    }
}

impl Outfit {
    fn encode(self, writer: &mut WireWriter) -> Vec<(DescriptorSlot, OwnedFd)> {
        writer.u64(self.generation);
        let mut descriptors = vec![(
            DescriptorSlot {
                kind: SLOT_PAPERS,
                index: 0,
            },
            self.papers,
        )];
        for (index, socket) in self.listeners.into_iter().enumerate() {
            // Beyond u16 the parcel is beyond DESCRIPTORS_MAX as well and is refused whole.
            let index = u16::try_from(index).unwrap_or(u16::MAX);
            descriptors.push((
                DescriptorSlot {
                    kind: SLOT_LISTENER,
                    index,
                },
                socket,
            ));
        }
        for (index, socket) in self.datagrams {
            let kind = SLOT_DATAGRAM;
            descriptors.push((DescriptorSlot { kind, index }, socket));
        }
        for (index, file) in self.logs {
            descriptors.push((
                DescriptorSlot {
                    kind: SLOT_LOG,
                    index,
                },
                file,
            ));
        }
        for (index, file) in self.kept {
            let kind = SLOT_KEPT;
            descriptors.push((DescriptorSlot { kind, index }, file));
        }
        if let Some(socket) = self.control {
            descriptors.push((
                DescriptorSlot {
                    kind: SLOT_CONTROL,
                    index: 0,
                },
                socket,
            ));
        }
        if let Some(keys) = self.keys {
            let kind = SLOT_KEYS;
            descriptors.push((DescriptorSlot { kind, index: 0 }, keys));
        }
        if let Some(challenges) = self.challenges {
            let kind = SLOT_CHALLENGES;
            descriptors.push((DescriptorSlot { kind, index: 0 }, challenges));
        }
        descriptors
    }

    fn decode(
        reader: &mut WireReader<'_>,
        descriptors: Vec<(DescriptorSlot, OwnedFd)>,
    ) -> Result<Outfit, MalformedPart> {
        let generation = reader.u64()?;
        let mut papers = None;
        let mut control = None;
        let mut keys = None;
        let mut challenges = None;
        let mut listeners = Vec::new();
        let mut logs: Vec<(u16, OwnedFd)> = Vec::new();
        let mut datagrams: Vec<(u16, OwnedFd)> = Vec::new();
        let mut kept: Vec<(u16, OwnedFd)> = Vec::new();
        for (slot, descriptor) in descriptors {
            let index = usize::from(slot.index);
            match slot.kind {
                SLOT_PAPERS if papers.is_none() => papers = Some(descriptor),
                SLOT_CONTROL if control.is_none() => control = Some(descriptor),
                SLOT_KEYS if keys.is_none() => keys = Some(descriptor),
                SLOT_CHALLENGES if challenges.is_none() => challenges = Some(descriptor),
                SLOT_LISTENER if index == listeners.len() => listeners.push(descriptor),
                SLOT_DATAGRAM if index < listeners.len() => {
                    datagrams.push((slot.index, descriptor));
                }
                SLOT_LOG if logs.last().is_none_or(|(last, _)| *last < slot.index) => {
                    logs.push((slot.index, descriptor));
                }
                SLOT_KEPT if slot.index <= KEPT_BANS => kept.push((slot.index, descriptor)),
                _ => return Err(reader.malformed()),
            }
        }
        let papers = papers.ok_or(reader.malformed())?;
        Ok(Outfit {
            generation,
            papers,
            listeners,
            datagrams,
            logs,
            kept,
            control,
            keys,
            challenges,
        })
    }
}

impl ToKeeper {
    pub(crate) fn encode(self) -> Parcel {
        let mut writer = WireWriter::default();
        let kind = match self {
            ToKeeper::Ready => 32,
            ToKeeper::StartFailed { text } => {
                writer.text(cut(&text, TEXT_BYTES_MAX));
                33
            }
            ToKeeper::Reloaded { generation } => {
                writer.u64(generation);
                34
            }
            ToKeeper::ReloadFailed { text } => {
                writer.text(cut(&text, TEXT_BYTES_MAX));
                35
            }
            ToKeeper::Ask { wish, request } => {
                let wish = match wish {
                    Wish::Reload => 1,
                    Wish::Upgrade => 2,
                    Wish::Stop => 3,
                };
                writer.u8(wish).u64(request);
                36
            }
            ToKeeper::Rotate { index } => {
                writer.u32(index.into());
                37
            }
            ToKeeper::Leaving => 38,
            ToKeeper::Drained => 39,
            ToKeeper::Challenged { number } => {
                writer.u64(number);
                40
            }
        };
        Parcel {
            kind,
            body: writer.finish(),
            descriptors: vec![],
        }
    }

    pub(crate) fn decode(parcel: Parcel) -> Result<ToKeeper, MalformedPart> {
        let mut reader = WireReader::new(&parcel.body, "message to the keeper");
        let message = match parcel.kind {
            32 => ToKeeper::Ready,
            33 => ToKeeper::StartFailed {
                text: reader.text(TEXT_BYTES_MAX)?,
            },
            34 => ToKeeper::Reloaded {
                generation: reader.u64()?,
            },
            35 => ToKeeper::ReloadFailed {
                text: reader.text(TEXT_BYTES_MAX)?,
            },
            36 => {
                let wish = match reader.u8()? {
                    1 => Wish::Reload,
                    2 => Wish::Upgrade,
                    3 => Wish::Stop,
                    _ => return Err(reader.malformed()),
                };
                ToKeeper::Ask {
                    wish,
                    request: reader.u64()?,
                }
            }
            37 => {
                let index = u16::try_from(reader.u32()?).map_err(|_| reader.malformed())?;
                ToKeeper::Rotate { index }
            }
            38 => ToKeeper::Leaving,
            39 => ToKeeper::Drained,
            40 => ToKeeper::Challenged {
                number: reader.u64()?,
            },
            _ => return Err(reader.malformed()),
        };
        reader.end()?;
        if parcel.descriptors.is_empty() {
            Ok(message)
        } else {
            Err(reader.malformed())
        }
    }
}

/// One end of the channel, with what is under way in both directions.
pub(crate) struct ChannelEnd {
    socket: OwnedFd,
    outbox: Outbox,
    inbox: Inbox,
}

impl ChannelEnd {
    /// The keeper's end: takes no descriptors.
    pub(crate) fn of_keeper(socket: OwnedFd) -> ChannelEnd {
        ChannelEnd {
            socket,
            outbox: Outbox::default(),
            inbox: Inbox::new(0),
        }
    }

    /// The server's end.
    pub(crate) fn of_server(socket: OwnedFd) -> ChannelEnd {
        ChannelEnd {
            socket,
            outbox: Outbox::default(),
            inbox: Inbox::new(DESCRIPTORS_MAX),
        }
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(crate) fn send(&mut self, parcel: Parcel) -> Result<(), NotSent> {
        self.outbox.send(self.socket.as_fd(), parcel)
    }

    pub(crate) fn flush(&mut self) -> Result<(), NotSent> {
        self.outbox.flush(self.socket.as_fd())
    }

    pub(crate) fn receive(&mut self) -> Result<Parcel, NotReceived> {
        self.inbox.receive(self.socket.as_fd())
    }

    /// Whether something waits to be sent.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Whether it waits for other processes, and not for the socket to become writable.
    pub(crate) fn is_over_quota(&self) -> bool {
        self.outbox.is_over_quota()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
