//! Whether the addresses of a config can be listened on, and who has those that cannot.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use hob_http::listen::{self, BindAddress};
use hob_machine::process::{ProcessStat, pids};

use super::look::RunningAddresses;
use super::told::PreflightReport;
use crate::keeper::socket_options;
use crate::localhost;
use crate::servers::Runtime;
use hob_config::{Built, ConfigSources, Errors, Handlers, ListenAddress, Listener, Spot};

/// Tries the addresses, but for those of a hob of this config that runs.
pub(super) fn look<H: Handlers>(
    built: &Built<H>,
    running: &RunningAddresses,
    runtime: Option<&Runtime>,
    told: &mut PreflightReport<'_, '_>,
) {
    let Built { config, spots } = built;
    for (listener, spots) in config.listeners.iter().zip(&spots.listeners) {
        let (address, shown) = match &listener.address {
            ListenAddress::Tcp(address) => (BindAddress::Tcp(*address), address.to_string()),
            ListenAddress::Unix(path) => (
                BindAddress::Unix(path.clone()),
                format!("unix:{}", path.display()),
            ),
            // What systemd hands down is known at the start.
            ListenAddress::Inherited(_) => continue,
        };
        let is_own =
            matches!(running, RunningAddresses::Has(addresses) if addresses.contains(&shown));
        if is_own || localhost::is_absent(listener) {
            continue;
        }
        let Err(error) = probe(listener, &address) else {
            continue;
        };
        let (message, hint) = words(&error, runtime);
        let is_taken = error.source.kind() == ErrorKind::AddrInUse;
        match running {
            RunningAddresses::Unknown if is_taken => told.warn(spots.address, &message, &hint),
            _ => told.error(spots.address, &message, &hint),
        }
    }
}

fn probe(listener: &Listener, address: &BindAddress) -> Result<(), listen::Error> {
    let options = socket_options(listener);
    let bound = listen::probe(address, &options)?;
    if let Some(bound) = bound
        && listener.tls.as_ref().is_some_and(|tls| tls.http3)
    {
        listen::open_datagrams(&bound, 1, &options)?;
    }
    Ok(())
}

/// The report of a start or reload that did not get an address.
pub(crate) fn not_opened(
    sources: &ConfigSources,
    spot: Spot,
    error: &listen::Error,
    runtime: Option<&Runtime>,
) -> Errors {
    let (message, hint) = words(error, runtime);
    Errors::at(sources, spot, &message, &hint)
}

/// What is wrong and what to do; who has the address, as far as that can be told.
fn words(error: &listen::Error, runtime: Option<&Runtime>) -> (String, String) {
    let listen::Error {
        address,
        step,
        advice,
        source,
    } = error;
    let message = format!("cannot {step} {address}: {source}");
    if source.kind() != ErrorKind::AddrInUse {
        return (message, (*advice).to_owned());
    }
    // That of HTTP/3 has what it is for behind it.
    let bare = match address.starts_with("unix:") {
        true => address,
        false => address.split_once(' ').map_or(&**address, |(bare, _)| bare),
    };
    if let Some(other) = runtime.and_then(|runtime| runtime.who_has(bare)) {
        let message = format!(
            "cannot listen on {address}: another hob does: {}",
            other.told()
        );
        let hint = format!(
            "`hob stop {flag}` ends it, `hob reload {flag}` has it take changes of its config; or \
             choose another address: `address` of [[listen]], or --listen",
            flag = other.flag()
        );
        return (message, hint);
    }
    let message = match holder(address) {
        Some((name, pid)) => format!("{message}; `{name}` has it (process {pid})"),
        None => message,
    };
    (message, (*advice).to_owned())
}

/// The process that listens on an address, by name and number, if it may be known.
fn holder(address: &str) -> Option<(String, u32)> {
    let inode = match (address.strip_prefix("unix:"), address.split_once(' ')) {
        (Some(path), _) => unix_inode(path)?,
        (None, Some((address, _))) => ip_inode(address.parse().ok()?, &UDP)?,
        (None, None) => ip_inode(address.parse().ok()?, &TCP)?,
    };
    let link = format!("socket:[{inode}]");
    let has_it = |pid: &u32| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
        let mut paths = descriptors
            .into_iter()
            .flatten()
            .flatten()
            .map(|one| one.path());
        paths.any(|path| fs::read_link(path).is_ok_and(|to| to.as_os_str() == &*link))
    };
    // A child has what its parent has until it runs another program, and numbers begin anew.
    let holders = pids().filter(has_it);
    let (_, pid) = holders
        .filter_map(|pid| Some((ProcessStat::of(pid)?.started_ns, pid)))
        .min()?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some((name.trim().to_owned(), pid))
}

fn unix_inode(path: &str) -> Option<String> {
    let table = fs::read_to_string("/proc/net/unix").ok()?;
    let line = table
        .lines()
        .find(|line| line.ends_with(&format!(" {path}")))?;
    line.split_whitespace().nth(6).map(str::to_owned)
}

/// Where the kernel tells of sockets of a protocol, and the state of one that has an address and
/// no peer.
struct SocketTable {
    files: [&'static str; 2],
    waits: &'static str,
}

const TCP: SocketTable = SocketTable {
    files: ["/proc/net/tcp", "/proc/net/tcp6"],
    waits: "0A",
};
const UDP: SocketTable = SocketTable {
    files: ["/proc/net/udp", "/proc/net/udp6"],
    waits: "07",
};

/// How often a table is read for a socket: the kernel gives it a page at a time and counts from its
/// beginning where the next one begins, so that sockets that close meanwhile hide others.
const TABLE_READS: usize = 5;

/// The inode of the socket that has an address, or all addresses of the port.
fn ip_inode(wanted: SocketAddr, table: &SocketTable) -> Option<String> {
    (0..TABLE_READS).find_map(|_| ip_inode_once(wanted, table))
}

fn ip_inode_once(wanted: SocketAddr, table: &SocketTable) -> Option<String> {
    let texts = table
        .files
        .map(|table| fs::read_to_string(table).unwrap_or_default());
    let lines = texts.iter().flat_map(|text| text.lines().skip(1));
    lines
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (ip, port) = words.get(1)?.split_once(':')?;
            let is_port = u16::from_str_radix(port, 16).ok()? == wanted.port();
            let ip = ip_of(ip)?;
            let is_it = ip == wanted.ip() || ip.is_unspecified() || wanted.ip().is_unspecified();
            (*words.get(3)? == table.waits && is_port && is_it).then(|| words.get(9).copied())?
        })
        .map(str::to_owned)
        .next()
}

/// An address as the kernel's tables have it: words of four bytes, each in the machine's order.
fn ip_of(hex: &str) -> Option<IpAddr> {
    let words = hex.as_bytes().chunks(8).map(|word| {
        let word = std::str::from_utf8(word).ok()?;
        Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
    });
    let bytes = words.collect::<Option<Vec<_>>>()?.concat();
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        _ => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
    }
}
