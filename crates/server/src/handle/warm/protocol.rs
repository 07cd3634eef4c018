//! What the server and a host say to each other. A host is an interpreter that is kept and forks
//! for each request; this is all a host in one more language has to speak.
//!
//! A host is started with its own program as standard input (descriptor 0, sealed memory), with
//! pipes to the server's log as 1 and 2, and with a SOCK_SEQPACKET socket as 3, the *first link*:
//! one packet is one message. Its arguments are `compile` or `each`, the limit of CPU time of a run
//! in seconds or `0`, then the modules it preloads.
//!
//! ```text
//! server -> host                                                        descriptors
//!   1 link    on the first link: one more link, a thread's of the server  1
//!   2 run     a script for a request                    its 0, 1, 2; its strings if flag 1
//! host -> server
//!  32 ready   on the first link: it has preloaded and takes runs
//!  33 ended   on the link of the run: how it ended, what it used
//!  34 failed  on the link of the run: it did not run: at which step, and the error
//!
//! offset 0   u8   version (1)          every number little-endian
//!        1   u8   kind
//!        2   u16  run: flags, 1 = its strings are in memory, 2 = its standard input is a file
//!                 failed: the step
//!        4   u32  failed: the error number; else 0
//!        8   u64  id: chosen by the server, never twice; link, ready: 0
//! run    16  u32  count of arguments    20  u32  count of variables
//!        24  u32  bytes of strings      28  u32  0
//!        32       the strings, each with a NUL: script, folder, arguments (the script first),
//!                 variables (NAME=value); or nothing, and they stand at the start of the fourth
//!                 descriptor, sealed memory
//! ready  16       text: what it is, such as "python 3.11.2"
//! ended  16  u32  status, as wait(2) has it     20  u32  process
//!        24  u64  largest resident size, KiB
//!        32  u64  user time, us                 40  u64  system time, us
//!        48  u64  pages from disk               56  u64  pages without
//!        64  u64  voluntary switches            72  u64  forced switches
//! ```
//!
//! For a run the host forks. First of all the child sets its limit RLIMIT_LOCKS (10), which
//! binds nobody, to the id: that is how the spawner finds what belongs to the run when it is to
//! be ended, so hosts end nothing. Then it makes a process group of its own, closes what is the
//! host's, and is what the interpreter would be with the script as its program. The end of the
//! first link means: no more links, exit with 0 when every run has ended; that of another link:
//! nobody asks for its runs any more.
//!
//! The server believes a host as little as any program: a packet that is not exactly so ends the
//! link it came on, and an id that no run has is passed over.

use hob_keeper::process::message::{MalformedPacket, PACKET_BYTES_MAX, ProgramProcess, Usage};
use hob_keeper::process::{Exit, Strings};

/// Bytes before the strings of a run.
const RUN_HEAD_BYTES: usize = 32;
/// Longest packet of a host, in bytes.
pub(super) const FROM_HOST_BYTES_MAX: usize = 256;

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 16;
const ENDED_BYTES: usize = 80;
const KIND_LINK: u8 = 1;
const KIND_RUN: u8 = 2;
const KIND_READY: u8 = 32;
const KIND_ENDED: u8 = 33;
const KIND_FAILED: u8 = 34;
const FLAG_MEMORY: u16 = 1;
const FLAG_FILE: u16 = 2;

/// What a child cannot do, by its number: "cannot ...".
const STEPS: [&str; 6] = [
    "read what it is to run",
    "make a process",
    "connect its standard input, output and error",
    "change to its folder",
    "read the script",
    "execute it",
];

/// A script that is to run.
pub(crate) struct ScriptStart<'a> {
    pub(crate) file: &'a [u8],
    pub(crate) dir: &'a [u8],
    /// Its own name first.
    pub(crate) arguments: &'a Strings,
    pub(crate) environment: &'a Strings,
    pub(crate) is_stdin_file: bool,
}

/// From a host.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FromHost<'a> {
    /// It takes runs.
    Ready(&'a [u8]),
    /// A run is over.
    Over(u64, Exit),
}

/// The packet that brings a link.
pub(super) fn link() -> Vec<u8> {
    let mut packet = Vec::with_capacity(HEAD_BYTES);
    head(&mut packet, KIND_LINK, 0, 0);
    packet
}

/// The packet of a run, and its strings where they are too long for one.
pub(super) fn run(id: u64, script: &ScriptStart<'_>) -> (Vec<u8>, Option<Vec<u8>>) {
    let parts = [
        script.file,
        b"\0",
        script.dir,
        b"\0",
        script.arguments.block(),
        script.environment.block(),
    ];
    let string_bytes: usize = parts.iter().map(|part| part.len()).sum();
    let in_memory = RUN_HEAD_BYTES + string_bytes > PACKET_BYTES_MAX;
    let memory = if in_memory { FLAG_MEMORY } else { 0 };
    let file = if script.is_stdin_file { FLAG_FILE } else { 0 };
    let room = if in_memory { 0 } else { string_bytes };
    let mut packet = Vec::with_capacity(RUN_HEAD_BYTES + room);
    head(&mut packet, KIND_RUN, memory | file, id);
    let counts = [script.arguments.count(), script.environment.count()];
    for number in [counts[0], counts[1], string_bytes as u32, 0] {
        packet.extend_from_slice(&number.to_le_bytes());
    }
    if in_memory {
        return (packet, Some(parts.concat()));
    }
    for part in parts {
        packet.extend_from_slice(part);
    }
    (packet, None)
}

fn head(packet: &mut Vec<u8>, kind: u8, small: u16, id: u64) {
    packet.extend_from_slice(&[VERSION, kind]);
    packet.extend_from_slice(&small.to_le_bytes());
    packet.extend_from_slice(&0u32.to_le_bytes());
    packet.extend_from_slice(&id.to_le_bytes());
}

impl<'a> FromHost<'a> {
    /// Reads a packet.
    pub(super) fn decode(packet: &'a [u8]) -> Result<FromHost<'a>, MalformedPacket> {
        let (head, rest) = packet
            .split_first_chunk::<HEAD_BYTES>()
            .ok_or(MalformedPacket)?;
        let [VERSION, kind, s0, s1, n0, n1, n2, n3, id @ ..] = *head else {
            return Err(MalformedPacket);
        };
        let (small, id) = (u16::from_le_bytes([s0, s1]), u64::from_le_bytes(id));
        let number = u32::from_le_bytes([n0, n1, n2, n3]);
        match kind {
            KIND_READY if (small, number, id) == (0, 0, 0) => Ok(FromHost::Ready(rest)),
            KIND_ENDED if (small, number) == (0, 0) && packet.len() == ENDED_BYTES => {
                ended(rest).map(|exit| FromHost::Over(id, exit))
            }
            KIND_FAILED if rest.is_empty() => {
                let step = STEPS.get(usize::from(small)).ok_or(MalformedPacket)?;
                let exit = Exit::NotStarted {
                    step,
                    errno: i32::try_from(number).map_err(|_| MalformedPacket)?,
                };
                Ok(FromHost::Over(id, exit))
            }
            _ => Err(MalformedPacket),
        }
    }
}

fn ended(rest: &[u8]) -> Result<Exit, MalformedPacket> {
    let (status, rest) = rest.split_first_chunk::<8>().ok_or(MalformedPacket)?;
    let first = u64::from_le_bytes(*status);
    let (status, pid) = (first as u32 as i32, (first >> 32) as u32);
    let mut numbers = [0; 7];
    for (number, bytes) in numbers.iter_mut().zip(rest.as_chunks::<8>().0) {
        *number = u64::from_le_bytes(*bytes);
    }
    let [max_rss, user_us, system_us, major, minor, voluntary, forced] = numbers;
    let (code, signal) = match (libc::WIFEXITED(status), libc::WIFSIGNALED(status)) {
        (true, _) => (Some(libc::WEXITSTATUS(status)), None),
        (false, true) => (None, Some(libc::WTERMSIG(status))),
        // Stopped is not over.
        (false, false) => return Err(MalformedPacket),
    };
    Ok(Exit::Ended {
        code,
        signal,
        core: signal.is_some() && libc::WCOREDUMP(status),
        usage: Usage {
            user_us,
            system_us,
            max_rss_kib: u32::try_from(max_rss).unwrap_or(u32::MAX),
            major_faults: major,
            minor_faults: minor,
            voluntary_switches: voluntary,
            forced_switches: forced,
        },
        // When it was forked its host does not say.
        process: ProgramProcess { pid, since_us: 0 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(kind: u8, small: u16, number: u32, id: u64, rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![VERSION, kind];
        packet.extend(small.to_le_bytes());
        packet.extend(number.to_le_bytes());
        packet.extend(id.to_le_bytes());
        packet.extend(rest);
        packet
    }

    fn ended(status: u32) -> Vec<u8> {
        let mut rest = Vec::new();
        rest.extend(status.to_le_bytes());
        rest.extend(77u32.to_le_bytes());
        for number in 1..8u64 {
            rest.extend(number.to_le_bytes());
        }
        packet(KIND_ENDED, 0, 0, 9, &rest)
    }

    fn exit(code: Option<i32>, signal: Option<i32>, core: bool) -> Exit {
        let usage = Usage {
            max_rss_kib: 1,
            user_us: 2,
            system_us: 3,
            major_faults: 4,
            minor_faults: 5,
            voluntary_switches: 6,
            forced_switches: 7,
        };
        Exit::Ended {
            code,
            signal,
            core,
            usage,
            process: ProgramProcess {
                pid: 77,
                since_us: 0,
            },
        }
    }

    #[test]
    fn run_holds_script_folder_arguments_and_variables() {
        let (mut arguments, mut environment) = (Strings::new(), Strings::new());
        arguments.push(b"/s.py").unwrap();
        arguments.push(b"word").unwrap();
        environment.push_pair(b"A", b"1").unwrap();
        let script = ScriptStart {
            file: b"/s.py",
            dir: b"/",
            arguments: &arguments,
            environment: &environment,
            is_stdin_file: true,
        };
        let (packet, memory) = run(7, &script);
        let mut expected = packet_head(2, 2, 1, 23);
        expected.extend(b"/s.py\0/\0/s.py\0word\0A=1\0");
        assert_eq!((packet, memory), (expected, None));
        let mut long = environment.clone();
        long.push_pair(b"B", &[b'x'; 200_000]).unwrap();
        let script = ScriptStart {
            environment: &long,
            is_stdin_file: false,
            ..script
        };
        let (packet, memory) = run(7, &script);
        let memory = memory.unwrap();
        assert_eq!(packet, packet_head(1, 2, 2, memory.len() as u32));
        assert!(memory.starts_with(b"/s.py\0/\0/s.py\0word\0A=1\0B=xxx"));
    }

    fn packet_head(flags: u16, arguments: u32, variables: u32, bytes: u32) -> Vec<u8> {
        let mut rest = Vec::new();
        for number in [arguments, variables, bytes, 0] {
            rest.extend(number.to_le_bytes());
        }
        packet(KIND_RUN, flags, 0, 7, &rest)
    }

    #[test]
    fn messages_of_a_host_are_read() {
        let over = |exit| Ok(FromHost::Over(9, exit));
        for (packet, expected) in [
            (
                packet(KIND_READY, 0, 0, 0, b"python 3"),
                Ok(FromHost::Ready(b"python 3")),
            ),
            (ended(3 << 8), over(exit(Some(3), None, false))),
            (ended(9), over(exit(None, Some(9), false))),
            (ended(11 | 0x80), over(exit(None, Some(11), true))),
            (
                packet(KIND_FAILED, 4, 2, 9, b""),
                over(Exit::NotStarted {
                    step: "read the script",
                    errno: 2,
                }),
            ),
        ] {
            assert_eq!(FromHost::decode(&packet), expected);
        }
    }

    #[test]
    fn what_is_no_message_is_malformed_and_never_panics() {
        for wrong in [
            packet(KIND_ENDED, 0, 0, 9, b""),
            packet(KIND_FAILED, 6, 0, 9, b""),
            packet(KIND_FAILED, 0, u32::MAX, 9, b""),
            packet(KIND_RUN, 0, 0, 9, b""),
            packet(0, 0, 0, 0, b""),
            // Stopped.
            ended(0x137f),
        ] {
            assert_eq!(FromHost::decode(&wrong), Err(MalformedPacket), "{wrong:?}");
        }
        let right = ended(0);
        for end in 0..right.len() {
            assert_eq!(
                FromHost::decode(&right[..end]),
                Err(MalformedPacket),
                "{end}"
            );
        }
        for position in 0..right.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = right.clone();
                changed[position] = value;
                let _ = FromHost::decode(&changed);
            }
        }
    }
}
