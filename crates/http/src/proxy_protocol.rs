//! The PROXY protocol, versions 1 and 2: what stands before the first byte of a connection and says
//! whose it is, as HAProxy's `proxy-protocol.txt` has it. It is read from who stands in front of
//! hob, and written to servers behind it.
//!
//! ```text
//! v1       "PROXY TCP4 " or "PROXY TCP6 ", client, server, client's port, server's port, CRLF,
//!          with a space between; or "PROXY UNKNOWN", anything, CRLF. At most 107 bytes.
//! v2   12  CR LF CR LF 0 CR LF "QUIT" LF
//!       1  version 2 in the upper half; command in the lower one: 0 LOCAL, 1 PROXY
//!       1  family and protocol: 0 unknown, 0x11 TCP over IPv4, 0x21 TCP over IPv6, others
//!       2  length of what follows
//!          client, server, client's port, server's port, as the family says; then TLVs
//! TLV   1  type: 3 CRC32C of the header, read with zeros in its place; 0x20 TLS; others
//!       2  length
//! TLS   1  bits: 1 the client spoke TLS; 2 and 4 it showed a certificate
//!       4  0 where that was good
//!          TLVs: 0x21 the version
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The versions that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyVersion {
    /// A line of text.
    V1,
    /// In binary: it can say that the client spoke TLS.
    V2,
}

/// What a header says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyHeader<'a> {
    /// Whose connection it is; `None` where who sends it speaks for itself, or of what is not TCP.
    pub ends: Option<ProxiedEnds>,
    /// How the client spoke TLS; `None` where it did not, or nothing is said of it.
    pub tls: Option<ProxiedTls<'a>>,
}

/// The ends of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxiedEnds {
    /// The client.
    pub client: SocketAddr,
    /// Where it connected to.
    pub server: SocketAddr,
}

/// The TLS of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxiedTls<'a> {
    /// The version's name, such as `TLSv1.3`; empty where it is not known.
    pub version: &'a [u8],
    /// The client has shown a certificate, and it was good.
    pub is_verified: bool,
}

/// Why something is no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyFault {
    /// It begins with something else.
    Missing,
    /// It is longer than may be.
    Long,
    /// The line of version 1 is none.
    Line,
    /// Version, command or family are none that there are.
    Kind,
    /// Addresses or TLVs go beyond its end.
    Length,
    /// Its checksum is another one.
    Checksum,
}

impl ProxyFault {
    /// What was wrong, in words.
    pub fn words(self) -> &'static str {
        match self {
            ProxyFault::Missing => "it does not begin with a header",
            ProxyFault::Long => "its header is too long",
            ProxyFault::Line => "its header is not a line of version 1",
            ProxyFault::Kind => "the version, command or family of its header is unknown",
            ProxyFault::Length => "addresses or TLVs go beyond the end of its header",
            ProxyFault::Checksum => "the checksum of its header is wrong",
        }
    }
}

/// Reads the header that a connection begins with, and says how long it is; `None` while not all of
/// it has come. One of version 2 may have `bytes_max` bytes.
///
/// # Errors
/// There is none, or it says what cannot be.
pub fn read(
    input: &[u8],
    bytes_max: usize,
) -> Result<Option<(ProxyHeader<'_>, usize)>, ProxyFault> {
    let begins_as = |prefix: &[u8]| {
        let len = input.len().min(prefix.len());
        input[..len] == prefix[..len]
    };
    match () {
        () if begins_as(SIGNATURE) => read_v2(input, bytes_max),
        () if begins_as(LINE_BEGIN) => read_v1(input),
        () => Err(ProxyFault::Missing),
    }
}

const LINE_BEGIN: &[u8] = b"PROXY ";
/// No line of version 1 is longer, with its end.
const LINE_BYTES_MAX: usize = 107;
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// What all headers of version 2 have: signature, kind, length.
const FIXED_BYTES: usize = 16;
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;
const UNKNOWN: u8 = 0;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;
const TLV_CHECKSUM: u8 = 0x03;
const TLV_TLS: u8 = 0x20;
const TLV_TLS_VERSION: u8 = 0x21;
const TLS_SPOKEN: u8 = 1;
/// Over this connection, and in the session it goes on with.
const TLS_CERTIFICATE: u8 = 2 | 4;

fn read_v1(input: &[u8]) -> Result<Option<(ProxyHeader<'_>, usize)>, ProxyFault> {
    let window = &input[..input.len().min(LINE_BYTES_MAX)];
    let Some(end) = memchr::memchr(b'\n', window) else {
        return match window.len() {
            LINE_BYTES_MAX => Err(ProxyFault::Long),
            _ => Ok(None),
        };
    };
    let line = window[..end].strip_suffix(b"\r").ok_or(ProxyFault::Line)?;
    let line = std::str::from_utf8(line).map_err(|_| ProxyFault::Line)?;
    let header = ProxyHeader {
        ends: of_line(line).ok_or(ProxyFault::Line)?,
        tls: None,
    };
    Ok(Some((header, end + 1)))
}

/// What a line says; `Some(None)` is a connection of which nothing is known.
fn of_line(line: &str) -> Option<Option<ProxiedEnds>> {
    let mut words = line.split(' ');
    let (_, family) = (words.next()?, words.next()?);
    if family == "UNKNOWN" {
        return Some(None);
    }
    let mut address = || -> Option<IpAddr> {
        let address: IpAddr = words.next()?.parse().ok()?;
        let is_of_family = match family {
            "TCP4" => address.is_ipv4(),
            "TCP6" => address.is_ipv6(),
            _ => false,
        };
        is_of_family.then_some(address)
    };
    let (client, server) = (address()?, address()?);
    let mut port = || -> Option<u16> {
        let text = words.next()?;
        let port: u16 = text.parse().ok()?;
        // Neither a sign nor zeros before it.
        (port.to_string() == text).then_some(port)
    };
    let ends = ProxiedEnds {
        client: (client, port()?).into(),
        server: (server, port()?).into(),
    };
    words.next().is_none().then_some(Some(ends))
}

fn read_v2(input: &[u8], bytes_max: usize) -> Result<Option<(ProxyHeader<'_>, usize)>, ProxyFault> {
    let Some(&[command, kind, high, low]) = input.get(SIGNATURE.len()..FIXED_BYTES) else {
        return Ok(None);
    };
    let len = FIXED_BYTES + usize::from(u16::from_be_bytes([high, low]));
    if len > bytes_max {
        return Err(ProxyFault::Long);
    }
    let Some(whole) = input.get(..len) else {
        return Ok(None);
    };
    let header = match command {
        // Whatever stands there is passed over.
        LOCAL => ProxyHeader::default(),
        PROXY => of_proxied(whole, kind)?,
        _ => return Err(ProxyFault::Kind),
    };
    Ok(Some((header, len)))
}

fn of_proxied(whole: &[u8], kind: u8) -> Result<ProxyHeader<'_>, ProxyFault> {
    let addresses_len = match kind {
        UNKNOWN => 0,
        // TCP and datagrams.
        0x11 | 0x12 => 12,
        0x21 | 0x22 => 36,
        // Unix sockets.
        0x31 | 0x32 => 216,
        _ => return Err(ProxyFault::Kind),
    };
    let tlvs_at = FIXED_BYTES + addresses_len;
    let addresses = whole.get(FIXED_BYTES..tlvs_at).ok_or(ProxyFault::Length)?;
    let ends = match kind {
        TCP4 => ends::<4, Ipv4Addr>(addresses),
        TCP6 => ends::<16, Ipv6Addr>(addresses),
        _ => None,
    };
    let mut tls = None;
    let mut tlvs = Tlvs(&whole[tlvs_at..]);
    while let Some((kind, value)) = tlvs.next()? {
        match kind {
            TLV_CHECKSUM => {
                let at = whole.len() - tlvs.0.len() - value.len();
                let told = value.try_into().map_err(|_| ProxyFault::Length)?;
                let zeroed = [&whole[..at], &[0; 4], &whole[at + 4..]];
                if crc32c(zeroed) != u32::from_be_bytes(told) {
                    return Err(ProxyFault::Checksum);
                }
            }
            TLV_TLS => tls = of_tls(value)?,
            _ => {}
        }
    }
    Ok(ProxyHeader { ends, tls })
}

fn ends<const N: usize, A: From<[u8; N]> + Into<IpAddr>>(addresses: &[u8]) -> Option<ProxiedEnds> {
    let (client, rest) = addresses.split_first_chunk::<N>()?;
    let (server, ports) = rest.split_first_chunk::<N>()?;
    let &[a, b, c, d] = ports else { return None };
    Some(ProxiedEnds {
        client: (A::from(*client).into(), u16::from_be_bytes([a, b])).into(),
        server: (A::from(*server).into(), u16::from_be_bytes([c, d])).into(),
    })
}

fn of_tls(value: &[u8]) -> Result<Option<ProxiedTls<'_>>, ProxyFault> {
    let (&[bits, verified @ ..], rest) =
        value.split_first_chunk::<5>().ok_or(ProxyFault::Length)?;
    let mut version = &b""[..];
    let mut tlvs = Tlvs(rest);
    while let Some((kind, value)) = tlvs.next()? {
        if kind == TLV_TLS_VERSION {
            version = value;
        }
    }
    let tls = ProxiedTls {
        version,
        is_verified: bits & TLS_CERTIFICATE != 0 && verified == [0; 4],
    };
    Ok((bits & TLS_SPOKEN != 0).then_some(tls))
}

/// The TLVs that are left.
struct Tlvs<'a>(&'a [u8]);

impl<'a> Tlvs<'a> {
    /// The type and the value of the next one.
    fn next(&mut self) -> Result<Option<(u8, &'a [u8])>, ProxyFault> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (&[kind, high, low], rest) =
            self.0.split_first_chunk::<3>().ok_or(ProxyFault::Length)?;
        let len = usize::from(u16::from_be_bytes([high, low]));
        let (value, rest) = rest.split_at_checked(len).ok_or(ProxyFault::Length)?;
        self.0 = rest;
        Ok(Some((kind, value)))
    }
}

/// The checksum of iSCSI (RFC 3720 appendix B.4), bit by bit: a header is short.
fn crc32c(parts: [&[u8]; 3]) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut sum = u32::MAX;
    for byte in parts.into_iter().flatten() {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (POLYNOMIAL * (sum & 1));
        }
    }
    !sum
}

impl ProxyHeader<'_> {
    /// Appends it in this version.
    pub fn push(&self, version: ProxyVersion, out: &mut Vec<u8>) {
        match version {
            ProxyVersion::V1 => self.push_line(out),
            ProxyVersion::V2 => self.push_binary(out),
        }
    }

    fn push_line(&self, out: &mut Vec<u8>) {
        let Some(ends) = &self.ends else {
            return out.extend_from_slice(b"PROXY UNKNOWN\r\n");
        };
        let (client, server) = of_one_family(ends);
        let family = if client.is_ipv4() { "TCP4" } else { "TCP6" };
        let (from, to) = (ends.client.port(), ends.server.port());
        let line = format!("PROXY {family} {client} {server} {from} {to}\r\n");
        debug_assert!(line.len() <= LINE_BYTES_MAX);
        out.extend_from_slice(line.as_bytes());
    }

    fn push_binary(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(SIGNATURE);
        let kind_at = out.len() + 1;
        // The length is known when all of it is there.
        let command = match (&self.ends, &self.tls) {
            (None, None) => LOCAL,
            _ => PROXY,
        };
        out.extend_from_slice(&[command, UNKNOWN, 0, 0]);
        let begin = out.len();
        if let Some(ends) = &self.ends {
            let mut push = |address| match address {
                IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
                IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
            };
            let (client, server) = of_one_family(ends);
            push(client);
            push(server);
            for end in [ends.client, ends.server] {
                out.extend_from_slice(&end.port().to_be_bytes());
            }
            out[kind_at] = if client.is_ipv4() { TCP4 } else { TCP6 };
        }
        if let Some(tls) = &self.tls {
            push_tlv(TLV_TLS, out, |out| tls.push(out));
        }
        write_len(out, begin);
    }
}

impl ProxiedTls<'_> {
    fn push(&self, out: &mut Vec<u8>) {
        match self.is_verified {
            true => out.extend_from_slice(&[TLS_SPOKEN | TLS_CERTIFICATE, 0, 0, 0, 0]),
            false => out.extend_from_slice(&[TLS_SPOKEN, 0, 0, 0, 1]),
        }
        if !self.version.is_empty() {
            let version = self.version;
            push_tlv(TLV_TLS_VERSION, out, |out| out.extend_from_slice(version));
        }
    }
}

fn push_tlv(kind: u8, out: &mut Vec<u8>, push: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[kind, 0, 0]);
    let begin = out.len();
    push(out);
    write_len(out, begin);
}

/// Writes how much has come since `begin` before that.
fn write_len(out: &mut [u8], begin: usize) {
    // The longest value is the name of a version.
    let len = u16::try_from(out.len() - begin).unwrap_or(u16::MAX);
    out[begin - 2..begin].copy_from_slice(&len.to_be_bytes());
}

/// Both addresses, as IPv6 where one of them is.
fn of_one_family(ends: &ProxiedEnds) -> (IpAddr, IpAddr) {
    let mapped = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().into(),
        IpAddr::V6(_) => address,
    };
    let (client, server) = (ends.client.ip(), ends.server.ip());
    match client.is_ipv4() && server.is_ipv4() {
        true => (client, server),
        false => (mapped(client), mapped(server)),
    }
}

#[cfg(test)]
mod tests;
