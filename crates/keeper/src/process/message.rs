//! What server and spawner say to each other: one packet, one message, no answer waited for. Only
//! what a spawner has to tell at one time comes in one packet, so that it wakes the server once.
//!
//! ```text
//! server -> spawner                                                      descriptors
//!   1 thread   over the server's own end: the end of one of its threads    1
//!   2 start    run a program: standard input unless it is empty,        2 to 5
//!              output, error, its channel, and memory if its strings
//!              are there
//!   3 kill     end a program and everything it started                     0
//! spawner -> server, over the thread's end
//!  32 exited   a program ended, and what it used
//!  33 failed   a program was not started: at which step, and the error
//!  34 started  a program with a channel has a process; it may yet fail
//!
//! offset 0   u8   version (2)          every number little-endian
//!        1   u8   kind
//!        2   u16  start: flags, 1 = it outlives the spawner, 2 = its strings are in memory,
//!                 4 = its standard input is empty, 8 = a channel, which becomes its
//!                 descriptor 3, 16 = it takes along what it started when it ends otherwise
//!                 than with exit code 0
//!                 kill: 1 = SIGTERM, 2 = SIGKILL, 3 = SIGQUIT; failed: the step
//!        4   u32  failed: the error number; started, exited: the process id; else 0
//!        8   u64  id: chosen by the server, unique on this end; thread: 0
//! start  16  u64  generation of the policy
//!        24  u16  index of the program in it
//!        26  u16  0
//!        28  u32  count of arguments
//!        32  u32  count of variables
//!        36  u32  bytes of strings
//!        40       the strings, each with a NUL: path, folder, arguments, variables of the
//!                 request; or nothing, and they stand at the start of the last descriptor,
//!                 sealed memory
//! kill   16  u64  of what it started, that whose soft RLIMIT_LOCKS is this; 0 = all of it
//! exited 16  i32  exit code, or -1     20  i32  signal, or 0
//!        24  u32  1 = dumped core      28  u32  largest resident size, KiB
//!        32  u64  user time, us        40  u64  system time, us
//!        48  u64  pages from disk      56  u64  pages without
//!        64  u64  voluntary switches   72  u64  forced switches
//!        80  u64  when it had its process, us on the monotonic clock
//! ```
//!
//! Nothing here is trusted: the server is the less privileged one, and a message that is not
//! exactly so ends the link it came on.

use std::fmt;

/// Longest packet. What does not fit travels as memory.
pub const PACKET_BYTES_MAX: usize = 100 * 1024;
/// Most bytes of strings of one start. The kernel takes a quarter of the stack limit, 2 MiB at the
/// usual 8 MiB, and refuses the rest itself.
pub const STRINGS_BYTES_MAX: usize = 6 * 1024 * 1024;
/// Most arguments and variables of one start, together.
pub const STRINGS_COUNT_MAX: usize = 64 * 1024;
/// Longest packet to the server.
pub const TO_SERVER_BYTES_MAX: usize = 16 * EXITED_BYTES;
/// Bytes before the strings of a start.
pub const START_HEAD_BYTES: usize = 40;

const VERSION: u8 = 2;
const HEAD_BYTES: usize = 16;
/// Bytes of the longest message to the server.
pub const EXITED_BYTES: usize = 88;
const KIND_THREAD: u8 = 1;
const KIND_START: u8 = 2;
const KIND_KILL: u8 = 3;
const KIND_EXITED: u8 = 32;
const KIND_FAILED: u8 = 33;
const KIND_STARTED: u8 = 34;
const FLAG_OUTLIVES: u16 = 1;
const FLAG_MEMORY: u16 = 2;
const FLAG_NO_INPUT: u16 = 4;
const FLAG_CHANNEL: u16 = 8;
const FLAG_TAKES_ALONG: u16 = 16;

/// A packet that is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedPacket;

impl fmt::Display for MalformedPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed message about a program")
    }
}

impl std::error::Error for MalformedPacket {}

/// How a program is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    /// Asked, by SIGTERM.
    Term,
    /// Asked to finish what it has first, by SIGQUIT, as php-fpm understands it.
    Quit,
    /// At once, by SIGKILL, with everything it started.
    Kill,
}

/// From the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToSpawner<'a> {
    /// The end of one of its threads comes with it.
    Thread,
    /// Run a program.
    Start(StartHead, &'a [u8]),
    /// End a program.
    Kill {
        /// Which.
        id: u64,
        /// How.
        how: EndSignal,
        /// Only the part of it that is marked so.
        part: Option<u64>,
    },
}

/// The numbers of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartHead {
    /// Chosen by the server.
    pub id: u64,
    /// Generation of the policy.
    pub generation: u64,
    /// Index of the program in it.
    pub program: u16,
    /// It goes on when the spawner dies.
    pub outlives: bool,
    /// Standard input is empty; no descriptor comes for it.
    pub no_input: bool,
    /// The strings are in the last descriptor.
    pub in_memory: bool,
    /// A descriptor that becomes its number 3 comes behind the standard ones.
    pub has_channel: bool,
    /// What it started ends with it, unless it ends with exit code 0.
    pub takes_along: bool,
    /// Arguments, the name included.
    pub argument_count: u32,
    /// Variables.
    pub variable_count: u32,
    /// Bytes of all strings.
    pub string_bytes: u32,
}

/// From the spawner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToServer {
    /// A program ended.
    Exited {
        /// Which.
        id: u64,
        /// Exit code, if it ended by itself.
        code: Option<i32>,
        /// Signal, if one ended it.
        signal: Option<i32>,
        /// It left a core file.
        core: bool,
        /// What it used.
        usage: Usage,
        /// Its process.
        process: ProgramProcess,
    },
    /// A program was not started.
    Failed {
        /// Which.
        id: u64,
        /// What did not work.
        step: Step,
        /// Why.
        errno: i32,
    },
    /// A program with a channel has a process.
    Started {
        /// Which.
        id: u64,
        /// Its number as the spawner sees it.
        pid: u32,
    },
}

/// The process of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramProcess {
    /// Its number; 0 where it is not known.
    pub pid: u32,
    /// When it was there, in microseconds on the monotonic clock; 0 where it is not known.
    pub since_us: u64,
}

/// What a program and the children it waited for used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time in its own code, in microseconds.
    pub user_us: u64,
    /// Time in the kernel, in microseconds.
    pub system_us: u64,
    /// Largest resident size, in KiB.
    pub max_rss_kib: u32,
    /// Page faults that read from a disk.
    pub major_faults: u64,
    /// Page faults that did not.
    pub minor_faults: u64,
    /// Times it gave up the CPU.
    pub voluntary_switches: u64,
    /// Times the CPU was taken from it.
    pub forced_switches: u64,
}

macro_rules! steps {
    ($($name:ident $number:literal $text:literal $($right:literal)?;)+) => {
        /// The steps of a start, in the order they are taken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Step { $(#[doc = $text] $name = $number,)+ }

        impl Step {
            /// The step with this number.
            pub fn of(number: u16) -> Option<Step> {
                match number {
                    $($number => Some(Step::$name),)+
                    _ => None,
                }
            }

            /// What it does, for people: "cannot ...".
            pub fn text(self) -> &'static str {
                match self {
                    $(Step::$name => $text,)+
                }
            }

            /// The same for one that was not permitted: names the capability that root needs for
            /// it, if there is one.
            pub fn text_unpermitted(self) -> &'static str {
                match self {
                    $(Step::$name => concat!($text $(, " without ", $right)?),)+
                }
            }
        }
    };
}

steps! {
    Message 1 "read the request to start it";
    Policy 2 "find it in the config that is in force";
    Path 3 "start a program outside the route's folders and programs";
    Folder 4 "work in a folder outside the route's folders";
    Arguments 5 "pass arguments that the config does not have";
    Variables 6 "pass a variable that is neither a request's nor the config's";
    Descriptors 7 "take its standard input, output and error" "CAP_CHOWN";
    Room 8 "start one more: too many are running";
    Clone 9 "make a process" "CAP_SYS_ADMIN";
    Cgroup 10 "put it into its control group";
    Namespaces 11 "give it namespaces of its own" "CAP_SYS_ADMIN";
    Limits 12 "set its resource limits" "CAP_SYS_RESOURCE";
    Priority 13 "set its nice level, I/O class or CPUs" "CAP_SYS_NICE";
    Groups 14 "give it its groups" "CAP_SETGID";
    Group 15 "give it its group" "CAP_SETGID";
    User 16 "give it its user" "CAP_SETUID";
    DeathSignal 17 "tie it to the spawner";
    NoNewPrivileges 18 "keep it from gaining privileges";
    Sandbox 19 "restrict which files it reaches";
    ChangeFolder 20 "change to its folder";
    StandardStreams 21 "connect its standard input, output and error";
    Session 22 "give it a process group of its own";
    Signals 23 "reset its signals";
    Exec 24 "execute it";
    Account 25 "find the account that its folder is named after";
    AccountNumber 26 "run as an account whose number, or whose group's, is outside of `uids` and \
                      `gids`";
    FolderKind 27 "go down to its folder: a name on the way to it is a link, or no folder";
    FolderOwner 28 "work in its folder: that is not the account's own, or one on the way to it is \
                    neither that nor root's (`chown` it)";
    FolderMode 29 "work in its folder: others than the account may write to it, or to one on the \
                   way to it (`chmod go-w` it)";
    ProgramKind 30 "run it: it is a link, or no regular file";
    ProgramOwner 31 "run it: it is not the account's own (`chown` it)";
    ProgramMode 32 "run it: others than the account may write to it (`chmod go-w` it)";
    ProgramSetId 33 "run it: it has a setuid or setgid bit (`chmod ug-s` it)";
}

/// What is checked of a program that is to run as the account whose folder it is in.
pub const ACCOUNT_CHECKS: [Step; 9] = [
    Step::Account,
    Step::AccountNumber,
    Step::FolderKind,
    Step::FolderOwner,
    Step::FolderMode,
    Step::ProgramKind,
    Step::ProgramOwner,
    Step::ProgramMode,
    Step::ProgramSetId,
];

impl<'a> ToSpawner<'a> {
    /// Reads a packet.
    pub fn decode(packet: &'a [u8]) -> Result<ToSpawner<'a>, MalformedPacket> {
        let mut reader = PacketReader::of(packet)?;
        let kind = reader.kind;
        match kind {
            KIND_THREAD => reader.end()?.nothing_but_kind(ToSpawner::Thread),
            KIND_KILL => {
                let how = match reader.small {
                    1 => EndSignal::Term,
                    2 => EndSignal::Kill,
                    3 => EndSignal::Quit,
                    _ => return Err(MalformedPacket),
                };
                let id = reader.id;
                let part = Some(reader.u64()?).filter(|part| *part != 0);
                reader.end()?.without_number()?;
                Ok(ToSpawner::Kill { id, how, part })
            }
            KIND_START => {
                let head = StartHead {
                    id: reader.id,
                    outlives: reader.small & FLAG_OUTLIVES != 0,
                    no_input: reader.small & FLAG_NO_INPUT != 0,
                    in_memory: reader.small & FLAG_MEMORY != 0,
                    has_channel: reader.small & FLAG_CHANNEL != 0,
                    takes_along: reader.small & FLAG_TAKES_ALONG != 0,
                    generation: reader.u64()?,
                    program: reader.u16()?,
                    argument_count: {
                        if reader.u16()? != 0 {
                            return Err(MalformedPacket);
                        }
                        reader.u32()?
                    },
                    variable_count: reader.u32()?,
                    string_bytes: reader.u32()?,
                };
                let known =
                    FLAG_OUTLIVES | FLAG_MEMORY | FLAG_NO_INPUT | FLAG_CHANNEL | FLAG_TAKES_ALONG;
                if reader.small & !known != 0 || reader.number != 0 {
                    return Err(MalformedPacket);
                }
                let expected = if head.in_memory {
                    0
                } else {
                    head.string_bytes as usize
                };
                if reader.rest.len() != expected || !head.is_within_limits() {
                    return Err(MalformedPacket);
                }
                Ok(ToSpawner::Start(head, reader.rest))
            }
            _ => Err(MalformedPacket),
        }
    }

    /// Writes a packet.
    pub fn encode(&self, packet: &mut Vec<u8>) {
        packet.clear();
        match self {
            ToSpawner::Thread => head(packet, KIND_THREAD, 0, 0, 0),
            ToSpawner::Kill { id, how, part } => {
                let how = match how {
                    EndSignal::Term => 1,
                    EndSignal::Kill => 2,
                    EndSignal::Quit => 3,
                };
                head(packet, KIND_KILL, how, 0, *id);
                packet.extend_from_slice(&part.unwrap_or(0).to_le_bytes());
            }
            ToSpawner::Start(start, strings) => {
                start.encode(packet);
                packet.extend_from_slice(strings);
            }
        }
    }
}

impl StartHead {
    /// Writes the packet up to its strings.
    pub fn encode(&self, packet: &mut Vec<u8>) {
        packet.clear();
        let flags = [
            (self.outlives, FLAG_OUTLIVES),
            (self.in_memory, FLAG_MEMORY),
            (self.no_input, FLAG_NO_INPUT),
            (self.has_channel, FLAG_CHANNEL),
            (self.takes_along, FLAG_TAKES_ALONG),
        ];
        let set = flags.iter().filter(|(is_set, _)| *is_set);
        let flags = set.fold(0, |flags, (_, flag)| flags | flag);
        head(packet, KIND_START, flags, 0, self.id);
        packet.extend_from_slice(&self.generation.to_le_bytes());
        packet.extend_from_slice(&self.program.to_le_bytes());
        packet.extend_from_slice(&[0, 0]);
        for number in [self.argument_count, self.variable_count, self.string_bytes] {
            packet.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn is_within_limits(&self) -> bool {
        let count = self.argument_count as usize + self.variable_count as usize;
        self.argument_count >= 1
            && count <= STRINGS_COUNT_MAX
            && self.string_bytes as usize <= STRINGS_BYTES_MAX
    }

    /// How many strings there must be: path and folder, arguments, variables.
    pub fn string_count(&self) -> usize {
        2 + self.argument_count as usize + self.variable_count as usize
    }
}

impl ToServer {
    /// Reads the first message of a packet; returns the others with it.
    pub fn decode(packet: &[u8]) -> Result<(ToServer, &[u8]), MalformedPacket> {
        let mut reader = PacketReader::of(packet)?;
        let id = reader.id;
        match reader.kind {
            KIND_EXITED => {
                if reader.small != 0 {
                    return Err(MalformedPacket);
                }
                let pid = reader.number;
                let (code, signal) = (reader.u32()? as i32, reader.u32()? as i32);
                let core = reader.u32()?;
                let usage = Usage {
                    max_rss_kib: reader.u32()?,
                    user_us: reader.u64()?,
                    system_us: reader.u64()?,
                    major_faults: reader.u64()?,
                    minor_faults: reader.u64()?,
                    voluntary_switches: reader.u64()?,
                    forced_switches: reader.u64()?,
                };
                let since_us = reader.u64()?;
                if core > 1 {
                    return Err(MalformedPacket);
                }
                let exited = ToServer::Exited {
                    id,
                    code: (code >= 0).then_some(code),
                    signal: (signal > 0).then_some(signal),
                    core: core == 1,
                    usage,
                    process: ProgramProcess { pid, since_us },
                };
                Ok((exited, reader.rest))
            }
            KIND_FAILED => {
                let step = Step::of(reader.small).ok_or(MalformedPacket)?;
                let errno = reader.number as i32;
                Ok((ToServer::Failed { id, step, errno }, reader.rest))
            }
            KIND_STARTED => {
                let (small, pid) = (reader.small, reader.number);
                match small {
                    0 => Ok((ToServer::Started { id, pid }, reader.rest)),
                    _ => Err(MalformedPacket),
                }
            }
            _ => Err(MalformedPacket),
        }
    }

    /// Adds it to a packet.
    pub fn encode(&self, packet: &mut Vec<u8>) {
        match *self {
            ToServer::Exited {
                id,
                code,
                signal,
                core,
                usage,
                process,
            } => {
                head(packet, KIND_EXITED, 0, process.pid, id);
                packet.extend_from_slice(&code.unwrap_or(-1).to_le_bytes());
                packet.extend_from_slice(&signal.unwrap_or(0).to_le_bytes());
                packet.extend_from_slice(&u32::from(core).to_le_bytes());
                packet.extend_from_slice(&usage.max_rss_kib.to_le_bytes());
                for number in [
                    usage.user_us,
                    usage.system_us,
                    usage.major_faults,
                    usage.minor_faults,
                    usage.voluntary_switches,
                    usage.forced_switches,
                    process.since_us,
                ] {
                    packet.extend_from_slice(&number.to_le_bytes());
                }
            }
            ToServer::Failed { id, step, errno } => {
                head(packet, KIND_FAILED, step as u16, errno as u32, id);
            }
            ToServer::Started { id, pid } => head(packet, KIND_STARTED, 0, pid, id),
        }
    }
}

fn head(packet: &mut Vec<u8>, kind: u8, small: u16, number: u32, id: u64) {
    packet.extend_from_slice(&[VERSION, kind]);
    packet.extend_from_slice(&small.to_le_bytes());
    packet.extend_from_slice(&number.to_le_bytes());
    packet.extend_from_slice(&id.to_le_bytes());
}

/// A packet with its head read.
struct PacketReader<'a> {
    kind: u8,
    small: u16,
    number: u32,
    id: u64,
    rest: &'a [u8],
}

impl<'a> PacketReader<'a> {
    fn of(packet: &'a [u8]) -> Result<PacketReader<'a>, MalformedPacket> {
        let (head, rest) = packet
            .split_first_chunk::<HEAD_BYTES>()
            .ok_or(MalformedPacket)?;
        let [version, kind, s0, s1, n0, n1, n2, n3, id @ ..] = *head;
        if version != VERSION {
            return Err(MalformedPacket);
        }
        Ok(PacketReader {
            kind,
            small: u16::from_le_bytes([s0, s1]),
            number: u32::from_le_bytes([n0, n1, n2, n3]),
            id: u64::from_le_bytes(id),
            rest,
        })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MalformedPacket> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or(MalformedPacket)?;
        self.rest = rest;
        Ok(*array)
    }

    fn u16(&mut self) -> Result<u16, MalformedPacket> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, MalformedPacket> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, MalformedPacket> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn end(self) -> Result<PacketReader<'a>, MalformedPacket> {
        if self.rest.is_empty() {
            Ok(self)
        } else {
            Err(MalformedPacket)
        }
    }

    fn without_number(&self) -> Result<(), MalformedPacket> {
        if self.number == 0 {
            Ok(())
        } else {
            Err(MalformedPacket)
        }
    }

    fn nothing_but_kind<T>(&self, message: T) -> Result<T, MalformedPacket> {
        if (self.small, self.number, self.id) == (0, 0, 0) {
            Ok(message)
        } else {
            Err(MalformedPacket)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> StartHead {
        StartHead {
            id: 7,
            generation: 3,
            program: 2,
            outlives: false,
            no_input: false,
            in_memory: false,
            has_channel: false,
            takes_along: false,
            argument_count: 1,
            variable_count: 1,
            string_bytes: 19,
        }
    }

    const STRINGS: &[u8] = b"/bin/true\0/\0true\0A\0";

    fn to_spawner() -> Vec<Vec<u8>> {
        let memory = StartHead {
            in_memory: true,
            no_input: true,
            has_channel: true,
            takes_along: true,
            outlives: true,
            string_bytes: 3_000_000,
            ..start()
        };
        let messages = [
            ToSpawner::Thread,
            ToSpawner::Start(start(), STRINGS),
            ToSpawner::Start(memory, b""),
            ToSpawner::Kill {
                id: 1,
                how: EndSignal::Term,
                part: None,
            },
            ToSpawner::Kill {
                id: 2,
                how: EndSignal::Quit,
                part: None,
            },
            ToSpawner::Kill {
                id: u64::MAX,
                how: EndSignal::Kill,
                part: Some(1 << 62),
            },
        ];
        let packets = messages.map(|message| {
            let mut packet = vec![1, 2, 3];
            message.encode(&mut packet);
            assert_eq!(ToSpawner::decode(&packet), Ok(message));
            packet
        });
        packets.to_vec()
    }

    fn to_server() -> Vec<Vec<u8>> {
        let usage = Usage {
            user_us: 1,
            system_us: 2,
            max_rss_kib: 3,
            major_faults: 4,
            minor_faults: 5,
            voluntary_switches: 6,
            forced_switches: u64::MAX,
        };
        let exited = |code, signal, core| ToServer::Exited {
            id: 9,
            code,
            signal,
            core,
            usage,
            process: ProgramProcess {
                pid: 4_194_303,
                since_us: 77,
            },
        };
        let messages = [
            exited(Some(0), None, false),
            exited(None, Some(11), true),
            ToServer::Failed {
                id: 8,
                step: Step::Exec,
                errno: 2,
            },
            ToServer::Started {
                id: 8,
                pid: 4_194_304,
            },
        ];
        let packets = messages.map(|message| {
            let mut packet = vec![];
            message.encode(&mut packet);
            assert_eq!(ToServer::decode(&packet), Ok((message, &b""[..])));
            packet
        });
        packets.to_vec()
    }

    #[test]
    fn messages_arrive_as_written() {
        assert_eq!((to_spawner().len(), to_server().len()), (6, 4));
    }

    #[test]
    fn what_is_told_together_is_read_in_order() {
        let messages = to_server();
        let [exited, _, failed, _] = &messages[..] else {
            panic!("messages");
        };
        assert_eq!(exited.len(), EXITED_BYTES);
        let packet = [&exited[..], failed].concat();
        let (first, rest) = ToServer::decode(&packet).unwrap();
        assert!(matches!(first, ToServer::Exited { id: 9, .. }));
        let (second, rest) = ToServer::decode(rest).unwrap();
        assert!(matches!(second, ToServer::Failed { id: 8, .. }) && rest.is_empty());
    }

    #[test]
    fn cut_or_longer_packets_are_malformed_and_changed_ones_never_panic() {
        for packet in to_spawner() {
            for end in 0..packet.len() {
                assert_eq!(
                    ToSpawner::decode(&packet[..end]),
                    Err(MalformedPacket),
                    "{end}"
                );
            }
            let mut longer = packet.clone();
            longer.push(0);
            assert_eq!(ToSpawner::decode(&longer), Err(MalformedPacket));
            for position in 0..packet.len() {
                for value in [0, 1, 0x7f, 0xff] {
                    let mut changed = packet.clone();
                    changed[position] = value;
                    let _ = ToSpawner::decode(&changed);
                    let _ = ToServer::decode(&changed);
                }
            }
        }
        for packet in to_server() {
            for end in 0..packet.len() {
                assert_eq!(
                    ToServer::decode(&packet[..end]),
                    Err(MalformedPacket),
                    "{end}"
                );
            }
        }
    }

    #[test]
    fn start_beyond_a_limit_is_malformed() {
        let refused = |start: StartHead, strings: &[u8]| {
            let mut packet = vec![];
            ToSpawner::Start(start, strings).encode(&mut packet);
            assert_eq!(
                ToSpawner::decode(&packet),
                Err(MalformedPacket),
                "{start:?}"
            );
        };
        refused(
            StartHead {
                argument_count: 0,
                ..start()
            },
            STRINGS,
        );
        refused(
            StartHead {
                string_bytes: 18,
                ..start()
            },
            STRINGS,
        );
        let counts = (STRINGS_COUNT_MAX as u32, 1);
        let many = StartHead {
            argument_count: counts.0,
            variable_count: counts.1,
            ..start()
        };
        refused(many, STRINGS);
        let string_bytes = STRINGS_BYTES_MAX as u32 + 1;
        refused(
            StartHead {
                in_memory: true,
                string_bytes,
                ..start()
            },
            b"",
        );
    }

    #[test]
    fn every_step_has_a_number_and_a_text() {
        let steps: Vec<Step> = (0..=u16::from(u8::MAX)).filter_map(Step::of).collect();
        assert_eq!(steps.len(), 33);
        for step in steps {
            assert_eq!(Step::of(step as u16), Some(step));
            assert!(!step.text().is_empty());
        }
    }
}
