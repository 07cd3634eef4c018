//! What a URL costs between client and server: packets and bytes each way, round trips, and system
//! calls of the server, for each way of connecting.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hob_load::{Protocol, Url};
use rustix::net::sockopt::{ip_mtu, ipv6_mtu};

use crate::calls::{Calls, Counting};
use crate::datagrams::Datagrams;
use crate::error::CostError;
use crate::limits::DATAGRAM_TIME_MAX;
use crate::load::{
    self, ConnectionReuse, MeasuredRequest, RequestSeries, RequestTransport, ResponseTimes,
    series_over,
};
use crate::private::TemporaryFolder;
use crate::relay::{Passed, Relay};
use crate::script::found;
use crate::stop::InterruptFlag;

/// How much a piece is held up to see round trips, and requests that are asked so.
const DELAY: Duration = Duration::from_millis(40);
const DELAYED_COUNT: u64 = 5;
/// Requests under strace, which makes each of them slow.
const TRACED_COUNT: u64 = 100;

/// Every way of connecting: its name, whether it is over TLS, what is spoken.
const WAYS: &[(&str, bool, Protocol, ConnectionReuse)] = &[
    (
        "HTTP/1.1, a connection each",
        false,
        Protocol::H1,
        ConnectionReuse::Close,
    ),
    (
        "HTTP/1.1, connection kept",
        false,
        Protocol::H1,
        ConnectionReuse::Keep,
    ),
    (
        "TLS, full handshake each",
        true,
        Protocol::H1,
        ConnectionReuse::CloseFull,
    ),
    (
        "TLS, session resumed each",
        true,
        Protocol::H1,
        ConnectionReuse::Close,
    ),
    (
        "TLS, connection kept",
        true,
        Protocol::H1,
        ConnectionReuse::Keep,
    ),
    (
        "HTTP/2 over TLS, full handshake each",
        true,
        Protocol::H2,
        ConnectionReuse::CloseFull,
    ),
    (
        "HTTP/2 over TLS, connection kept",
        true,
        Protocol::H2,
        ConnectionReuse::Keep,
    ),
    (
        "HTTP/3, full handshake each",
        true,
        Protocol::H3,
        ConnectionReuse::CloseFull,
    ),
    (
        "HTTP/3, session resumed each",
        true,
        Protocol::H3,
        ConnectionReuse::Close,
    ),
    (
        "HTTP/3, connection kept",
        true,
        Protocol::H3,
        ConnectionReuse::Keep,
    ),
];

/// A server in clear text, over TLS, or both.
pub(crate) struct Target<'a> {
    pub(crate) clear: Option<String>,
    pub(crate) secure: Option<String>,
    pub(crate) asked: &'a MeasuredRequest,
    pub(crate) count: u64,
    /// Processes of the server, where they are known.
    pub(crate) pids: Vec<u32>,
    pub(crate) folder: &'a TemporaryFolder,
    /// Folders in which programs are looked for.
    pub(crate) search: &'a str,
    pub(crate) stop: &'a InterruptFlag,
}

/// One way of connecting.
#[derive(Debug, Clone)]
pub(crate) struct TransportCost {
    pub(crate) name: &'static str,
    pub(crate) figures: Result<Cost, String>,
}

/// What a request costs in it.
#[derive(Debug, Clone)]
pub(crate) struct Cost {
    pub(crate) times: ResponseTimes,
    /// Per request, to the server and from it; none where the kernel does not count.
    pub(crate) packets: Option<(f64, f64)>,
    pub(crate) bytes: (f64, f64),
    pub(crate) round_trips: f64,
    pub(crate) calls: Option<Calls>,
    /// Version and suite of TLS.
    pub(crate) tls: Option<String>,
}

/// What came of all of them.
#[derive(Debug, Clone)]
pub(crate) struct WireCosts {
    pub(crate) ways: Vec<TransportCost>,
    /// Bytes of the longest packet on the way to the server, where the kernel says.
    pub(crate) mtu: Option<u32>,
    /// Why there are no system calls.
    pub(crate) no_calls: Option<String>,
}

/// Measures every way there is.
pub(crate) fn measure(target: &Target<'_>) -> Result<WireCosts, CostError> {
    let (strace, mut no_calls) = match strace(target.search, &target.pids) {
        Ok(strace) => (Some(strace), None),
        Err(reason) => (None, Some(reason)),
    };
    let mut ways = Vec::new();
    for (name, is_secure, protocol, connection) in WAYS {
        let way = (*protocol, *connection);
        let url = if *is_secure {
            &target.secure
        } else {
            &target.clear
        };
        let figures = match url {
            Some(url) => match target.cost(url, way) {
                Ok((mut cost, series)) => {
                    if let (Some(strace), None) = (&strace, &no_calls) {
                        match target.calls(strace, url, way)? {
                            Ok(calls) => cost.calls = calls,
                            Err(reason) => no_calls = Some(reason),
                        }
                    }
                    resumed(
                        cost,
                        &series,
                        *is_secure && *connection == ConnectionReuse::Close,
                    )
                }
                // Not every server speaks it.
                Err(CostError::Server(reason)) if *protocol != Protocol::H1 => Err(reason),
                Err(error) => return Err(error),
            },
            None => Err(format!(
                "the URL is {}",
                if *is_secure { "http" } else { "https" }
            )),
        };
        ways.push(TransportCost { name, figures });
    }
    let url = target.clear.as_ref().or(target.secure.as_ref());
    let mtu = url.and_then(|url| mtu(address_of(url).ok()?));
    Ok(WireCosts {
        ways,
        mtu,
        no_calls,
    })
}

/// What counts system calls, or why nothing does.
fn strace(search: &str, pids: &[u32]) -> Result<PathBuf, String> {
    if pids.is_empty() {
        return Err("whose they are is not known: name its process with --pid".to_owned());
    }
    let missing = || format!("strace counts them, and is not installed in {search}");
    found("strace", search).ok_or_else(missing)
}

/// A session that was to be resumed and was not is another way.
fn resumed(cost: Cost, series: &RequestSeries, is_wanted: bool) -> Result<Cost, String> {
    match is_wanted && series.handshakes_resumed == 0 {
        true => Err("the server resumes no sessions".to_owned()),
        false => Ok(cost),
    }
}

impl Target<'_> {
    fn cost(
        &self,
        url: &str,
        (protocol, connection): (Protocol, ConnectionReuse),
    ) -> Result<(Cost, RequestSeries), CostError> {
        let server = address_of(url)?;
        let line = line(protocol, server);
        if protocol == Protocol::H3 {
            // Who is not there does not say so, and every request would wait as long as one may.
            let timeout = DATAGRAM_TIME_MAX;
            let first = RequestTransport { timeout, ..line };
            series_over(url, self.asked, connection, 1, first, self.stop)?;
        }
        let direct = series_over(url, self.asked, connection, self.count, line, self.stop)?;
        let over = |delay, count| self.relayed(url, (protocol, connection), server, (delay, count));
        let (plain, passed) = over(Duration::ZERO, self.count)?;
        let (late, _) = over(DELAY, DELAYED_COUNT)?;
        let waited = (late.times.p50_us - plain.times.p50_us) / 1e6;
        // The relay takes connections at once; TCP's own handshake is one round trip.
        let begin = match (protocol, connection) {
            (Protocol::H3, _) | (_, ConnectionReuse::Keep) => 0.0,
            _ => 1.0,
        };
        let each = |number: u64| number as f64 / plain.answered.max(1) as f64;
        let cost = Cost {
            times: direct.times,
            packets: passed
                .is_counted
                .then(|| (each(passed.packets_out), each(passed.packets_in))),
            bytes: (each(passed.bytes_out), each(passed.bytes_in)),
            round_trips: begin + (waited / DELAY.as_secs_f64()).round(),
            calls: None,
            tls: direct.tls.clone(),
        };
        Ok((cost, direct))
    }

    /// So many requests through a relay that holds them up, and what went through.
    fn relayed(
        &self,
        url: &str,
        (protocol, connection): (Protocol, ConnectionReuse),
        server: SocketAddr,
        (delay, count): (Duration, u64),
    ) -> Result<(RequestSeries, Passed), CostError> {
        let ask = |way: load::ConnectTarget<'_>| {
            let line = RequestTransport {
                way,
                ..RequestTransport::direct(protocol)
            };
            series_over(url, self.asked, connection, count, line, self.stop)
        };
        let (series, passed) = if protocol == Protocol::H3 {
            let relay = Datagrams::start(server, delay)?;
            (
                ask(load::ConnectTarget::Address(relay.address())),
                relay.end(),
            )
        } else {
            let relay = Relay::start(self.folder.path("run/relay"), server, delay)?;
            (ask(load::ConnectTarget::Socket(relay.path())), relay.end())
        };
        series.map(|series| (series, passed))
    }

    fn calls(
        &self,
        strace: &Path,
        url: &str,
        (protocol, connection): (Protocol, ConnectionReuse),
    ) -> Result<Result<Option<Calls>, String>, CostError> {
        // Before anything is counted: it makes a connection.
        let line = line(protocol, address_of(url)?);
        let file = self.folder.path("run/calls");
        let count = TRACED_COUNT.min(self.count);
        match Counting::start(strace, &self.pids, file, self.stop)? {
            Err(reason) => Ok(Err(reason)),
            Ok(counting) => {
                let asked = series_over(url, self.asked, connection, count, line, self.stop);
                let calls = counting.end(count);
                asked.map(|_| Ok(calls))
            }
        }
    }
}

/// How a server is asked with nothing in between. Over UDP nobody says whether an address is the
/// right one of several: there it is the one at which TCP found somebody.
fn line(protocol: Protocol, server: SocketAddr) -> RequestTransport<'static> {
    let line = RequestTransport::direct(protocol);
    match protocol {
        Protocol::H3 => RequestTransport {
            way: load::ConnectTarget::Address(server),
            ..line
        },
        _ => line,
    }
}

/// The longest packet on the way there: the smallest MTU of it, as far as the kernel knows.
fn mtu(server: SocketAddr) -> Option<u32> {
    let here = match server {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    // Nothing is sent: the kernel looks for a route alone.
    let socket = UdpSocket::bind(here).ok()?;
    socket.connect(server).ok()?;
    match server {
        SocketAddr::V4(_) => ip_mtu(&socket).ok(),
        SocketAddr::V6(_) => ipv6_mtu(&socket).ok(),
    }
}

/// Where the server of a URL is.
fn address_of(url: &str) -> Result<SocketAddr, CostError> {
    let url: Url = url.parse().map_err(CostError::Arguments)?;
    let (_, host, port) = url.origin();
    let found = (host, port).to_socket_addrs().ok();
    let reachable = |address: &SocketAddr| {
        std::net::TcpStream::connect_timeout(address, crate::limits::ANSWER_TIME_MAX).is_ok()
    };
    found
        .and_then(|mut all| all.find(reachable))
        .ok_or_else(|| CostError::Server(format!("no server answers at {host}:{port}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn way_to_this_machine_has_an_mtu() {
        let there = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        assert!(mtu(there) > Some(1000), "{:?}", mtu(there));
    }

    #[test]
    fn system_calls_that_cannot_be_counted_have_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let search = folder.path().to_str().unwrap();
        assert!(strace(search, &[]).unwrap_err().contains("--pid"));
        let reason = strace(search, &[1]).unwrap_err();
        assert!(reason.contains("is not installed in /"), "{reason}");
        let program = folder.path().join("strace");
        std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
        assert_eq!(strace(search, &[1]), Ok(program));
    }
}
