//! The record: what is known about one finished or running request.
//!
//! It is plain data of fixed size, filled by `http` (protocol, bytes, times) and `server` (site,
//! route, handler, fault). The texts of a request (target, agent, ...) travel beside it, see
//! [`Texts`], because they are borrowed from the request's head and copied only when a reader wants
//! them.

use std::net::{IpAddr, Ipv4Addr};

use crate::traceparent::Trace;

/// A step that refuses requests before a handler is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefusedBy {
    /// None has.
    #[default]
    Nobody,
    /// `access` of the route.
    Access,
    /// `rate` of the route.
    Rate,
    /// `concurrency` of the route.
    Concurrency,
    /// There is too much to do, and others come first.
    Overload,
    /// A name, a password or a signed link was wrong.
    SignIn,
    /// The client is banned.
    Ban,
}

/// Numbers and facts of one request. Times are microseconds; bytes are what crossed the socket.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// When the request's first byte was seen, on the monotonic clock, in microseconds.
    pub started_us: u64,
    /// The same moment as Unix time in milliseconds.
    pub started_unix_ms: u64,
    /// From start until the last byte of the answer was handed to the kernel.
    pub total_us: u64,
    /// From start until the answer's head was handed to the kernel.
    pub first_byte_us: u64,
    /// Waited for others: in the queue of a program, or of `concurrency`.
    pub queue_us: u64,
    /// Of it, for requests with the same key of a `concurrency`.
    pub concurrency_us: u64,
    /// From asking for a program's start until the head of its answer was complete.
    pub program_us: u64,
    /// Of it, until a worker had taken the request, the interpreter it is forked from was there, or
    /// the process that is started for it; 0 where it is not known ([`Record::is_start_known`]).
    pub start_us: u64,
    /// CPU time the program's process and its children used for the request, user and system; 0
    /// where it is not known.
    pub cpu_us: u64,
    /// The process that ran for it; 0 where there is none, or none is known.
    pub pid: u32,
    /// How that ended.
    pub program_end: ProgramEnd,
    /// Its exit code, or the signal that ended it, as `program_end` says.
    pub end_number: u8,
    /// Waited for a disk (a job of the file pool).
    pub disk_wait_us: u64,
    /// Waited for the client to take what was ready to be sent.
    pub client_take_us: u64,
    /// Waited for the client's body while the answer needed it.
    pub client_body_us: u64,
    /// Round-trip time of the connection, as TCP or QUIC saw it; 0 where nobody asked.
    pub rtt_us: u32,
    /// Segments or packets that were sent again on the connection by then.
    pub retransmits: u32,
    /// The connection's congestion window, in bytes.
    pub window_bytes: u32,
    /// Bytes of the request, head and body.
    pub bytes_in: u64,
    /// Bytes of the answer's head.
    pub head_bytes_out: u64,
    /// Bytes of the answer's body as framed data (chunk framing not counted).
    pub body_bytes_out: u64,
    /// The answer's status code; 0 when none was sent.
    pub status: u16,
    /// HTTP version.
    pub protocol: Protocol,
    /// Who answered.
    pub handler: HandlerKind,
    /// What the cache did.
    pub cache: CacheOutcome,
    /// Whose fault a failure was.
    pub fault: Fault,
    /// How the exchange ended.
    pub outcome: Outcome,
    /// Index of the site in the config in force; [`Record::NO_SITE`] when none was chosen.
    pub site: u16,
    /// Index of the route in its site; [`Record::NO_ROUTE`] when none was chosen.
    pub route: u32,
    /// The number of the route among all that the server has had ([`crate::series`]); 0 when none
    /// was chosen.
    pub series: u16,
    /// Where the access log line goes; 0 is nowhere.
    pub log: u16,
    /// The client's address; unspecified for Unix sockets.
    pub client: IpAddr,
    /// The client's port; 0 for Unix sockets.
    pub client_port: u16,
    /// A number of the connection, unique in this server process.
    pub connection: u64,
    /// A number of the request within its connection, from 0.
    pub request: u32,
    /// Version of TLS.
    pub tls_version: TlsVersion,
    /// Cipher suite of TLS by its IANA name; empty in clear text.
    pub tls_suite: &'static str,
    /// How TLS began on the connection.
    pub tls_handshake: TlsHandshake,
    /// How long that took from the connection's begin, in its first request; 0 in later ones.
    pub handshake_us: u32,
    /// Every stage was timed (tracing or sampling was on).
    pub timed: bool,
    /// Number of the site in the table of counts ([`crate::tally`]); it outlives reloads.
    pub tally: u16,
    /// The trace it belongs to.
    pub trace: Trace,
    /// Which step before the handler has refused it.
    pub refused_by: RefusedBy,
    /// What went wrong, in words, for status codes that need them.
    pub reason: Option<&'static str>,
    /// What was strange and did not go wrong, in words.
    pub note: Option<&'static str>,
}

impl Record {
    /// `site` when no site was chosen.
    pub const NO_SITE: u16 = u16::MAX;
    /// `route` when no route was chosen.
    pub const NO_ROUTE: u32 = u32::MAX;

    /// Whether it was seen when the program ran. Of a process that is started for the request the
    /// spawner tells it with the process's end: one that is never heard of has none.
    #[inline]
    pub fn is_start_known(&self) -> bool {
        self.handler.program() != Some(ProgramLife::Started) || self.start_us > 0
    }

    /// The exit code of its process, if that ended by itself.
    pub fn exit_code(&self) -> Option<u8> {
        match self.program_end {
            ProgramEnd::Clean | ProgramEnd::Code | ProgramEnd::Failed => Some(self.end_number),
            ProgramEnd::Unknown | ProgramEnd::Killed => None,
        }
    }

    /// The signal that ended its process, if one did.
    pub fn signal(&self) -> Option<u8> {
        (self.program_end == ProgramEnd::Killed).then_some(self.end_number)
    }

    /// A record of which nothing is known yet.
    pub const fn empty() -> Record {
        Record {
            started_us: 0,
            started_unix_ms: 0,
            total_us: 0,
            first_byte_us: 0,
            queue_us: 0,
            concurrency_us: 0,
            program_us: 0,
            start_us: 0,
            cpu_us: 0,
            pid: 0,
            program_end: ProgramEnd::Unknown,
            end_number: 0,
            disk_wait_us: 0,
            client_take_us: 0,
            client_body_us: 0,
            rtt_us: 0,
            retransmits: 0,
            window_bytes: 0,
            bytes_in: 0,
            head_bytes_out: 0,
            body_bytes_out: 0,
            status: 0,
            protocol: Protocol::Http11,
            handler: HandlerKind::None,
            cache: CacheOutcome::None,
            fault: Fault::None,
            outcome: Outcome::Complete,
            site: Self::NO_SITE,
            route: Self::NO_ROUTE,
            series: 0,
            log: 0,
            client: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            client_port: 0,
            connection: 0,
            request: 0,
            tls_version: TlsVersion::None,
            tls_suite: "",
            tls_handshake: TlsHandshake::None,
            handshake_us: 0,
            timed: false,
            tally: 0,
            trace: Trace::NONE,
            refused_by: RefusedBy::Nobody,
            reason: None,
            note: None,
        }
    }
}

/// A request's texts as they stood in its head; empty where absent. Unchecked bytes from the
/// network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Texts<'a> {
    /// Method, as sent.
    pub method: &'a [u8],
    /// Request target, as sent.
    pub target: &'a [u8],
    /// `Host` or `:authority`.
    pub host: &'a [u8],
    /// `Referer`.
    pub referer: &'a [u8],
    /// `User-Agent`.
    pub user_agent: &'a [u8],
    /// Authenticated user.
    pub user: &'a [u8],
    /// What is to be said beside the reason: what a program printed, which file it was.
    pub detail: &'a [u8],
    /// What the format of its log asks for besides, as
    /// [`AskedValueWriter`](crate::format::AskedValueWriter) writes it; empty where it asks for
    /// nothing.
    pub asked: &'a [u8],
}

macro_rules! kinds {
    (
        $(#[$doc:meta])*
        $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// Every variant, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
            /// The word used in logs, metrics and pages.
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }
    };
}

kinds! {
    /// HTTP version of a request.
    Protocol {
        /// HTTP/1.0
        Http10 = "HTTP/1.0",
        /// HTTP/1.1
        Http11 = "HTTP/1.1",
        /// HTTP/2
        Http2 = "HTTP/2.0",
        /// HTTP/3
        Http3 = "HTTP/3.0",
    }
}

kinds! {
    /// Version of TLS, as OpenSSL names it.
    TlsVersion {
        /// Clear text.
        None = "",
        /// TLS 1.2
        Tls12 = "TLSv1.2",
        /// TLS 1.3
        Tls13 = "TLSv1.3",
    }
}

kinds! {
    /// How TLS began on a connection.
    TlsHandshake {
        /// Not at all: clear text.
        None = "",
        /// With certificate and signature.
        Full = "full",
        /// With a ticket of an earlier one.
        Resumed = "resumed",
    }
}

/// Hands the list of handlers to a macro: one line each. This is the only list of them; the server
/// makes its own of it (`handle/handler.rs` there). Its order is that in which people are told of
/// them; the numbers stand in records and in files of the history, so they never change.
#[macro_export]
macro_rules! handlers {
    ($make:ident) => {
        $make! {
            /// Static files.
            files Files = 1;
            /// A process for each request.
            cgi Cgi = 4, program started;
            /// A fork of a warmed interpreter for each request.
            warm Warm = 5, program forked;
            /// A program that stays.
            resident Resident = 6, program kept;
            /// A program that another process keeps, over FastCGI.
            fastcgi FastCgi = 9, program kept;
            /// The same over SCGI.
            scgi Scgi = 11, program kept;
            /// The same over the protocol of uWSGI.
            uwsgi Uwsgi = 12, program kept;
            /// Another HTTP server.
            proxy Proxy = 10, program kept;
            /// A page of the macro language.
            page Pages = 13, program kept;
            /// A program that another machine's hob runs.
            remote Remote = 14, program kept;
            /// A program that stays, a process for each visitor.
            session Session = 15, program kept;
            /// A redirect written in the config.
            redirect Redirect = 2;
            /// A fixed answer written in the config.
            respond Respond = 3;
            /// The numbers of the server.
            metrics Metrics = 7;
        }
    };
}

macro_rules! handler_kinds {
    ($(
        $(#[$doc:meta])*
        $module:ident $variant:ident = $number:literal $(, program $life:ident)?;
    )+) => {
        /// Who answered.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum HandlerKind {
            /// Nobody: refused before a route was chosen.
            None = 0,
            /// The control socket's API.
            Admin = 8,
            $($(#[$doc])* $variant = $number,)+
        }

        impl HandlerKind {
            /// Every one, by its number.
            pub const ALL: &'static [HandlerKind] = &{
                let named = [HandlerKind::Admin, $(HandlerKind::$variant),+];
                let mut all = [HandlerKind::None; 1 + [8u8, $($number),+].len()];
                let mut at = 0;
                while at < named.len() {
                    all[named[at] as usize] = named[at];
                    at += 1;
                }
                all
            };

            /// The word used in logs, metrics and pages.
            pub const fn word(self) -> &'static str {
                match self {
                    HandlerKind::None => "none",
                    HandlerKind::Admin => "admin",
                    $(HandlerKind::$variant => stringify!($module),)+
                }
            }

            /// How the program lives that makes its answers; `None` where none does.
            #[inline]
            pub const fn program(self) -> Option<ProgramLife> {
                match self {
                    HandlerKind::None | HandlerKind::Admin => None,
                    $(HandlerKind::$variant => handler_kinds!(@life $($life)?),)+
                }
            }
        }
    };
    (@life) => { None };
    (@life started) => { Some(ProgramLife::Started) };
    (@life forked) => { Some(ProgramLife::Forked) };
    (@life kept) => { Some(ProgramLife::Kept) };
}

handlers!(handler_kinds);

impl HandlerKind {
    /// True when a program makes its answers.
    #[inline]
    pub const fn runs_program(self) -> bool {
        self.program().is_some()
    }
}

/// How long a program lives that makes answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramLife {
    /// It is started for each request.
    Started,
    /// It is forked for each request.
    Forked,
    /// It answers many requests.
    Kept,
}

kinds! {
    /// What the cache did for a request.
    CacheOutcome {
        /// It was not asked.
        None = "none",
        /// Answered from memory.
        Hit = "hit",
        /// Answered from memory after the file was looked at again.
        Revalidated = "revalidated",
        /// Read from the file.
        Miss = "miss",
    }
}

kinds! {
    /// How the process that ran for a request ended.
    ProgramEnd {
        /// There is none, or it is not known.
        Unknown = "unknown",
        /// With exit code 0.
        Clean = "clean",
        /// With another exit code, which counts for nothing.
        Code = "code",
        /// With another exit code, and what it was to do has failed.
        Failed = "failed",
        /// By a signal.
        Killed = "killed",
    }
}

kinds! {
    /// Whose fault a failure was.
    Fault {
        /// Nothing failed.
        None = "none",
        /// The client's: bad request, gone, too slow.
        Client = "client",
        /// The server's: config, disk, limit.
        Server = "server",
        /// The program's.
        Script = "script",
        /// Another server's.
        Upstream = "upstream",
    }
}

kinds! {
    /// How an exchange ended.
    Outcome {
        /// The whole answer was handed to the kernel.
        Complete = "complete",
        /// The client left before that.
        ClientLeft = "client-left",
        /// The client did not take or send bytes in time.
        Timeout = "timeout",
        /// The answer broke off on our side.
        Broken = "broken",
    }
}
