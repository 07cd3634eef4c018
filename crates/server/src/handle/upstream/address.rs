//! Where a member of an upstream is: `unix:PATH`, or an IP address or a name, and a port; and
//! whether TLS is spoken there.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_http::is_host;
use hob_http::tls::peer::PeerName;

use crate::handle::upstream::run::socket::RunSocket;

/// A member's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberAddress {
    /// A socket of this machine, by its absolute path.
    Unix(PathBuf),
    /// An address and a port.
    Tcp(SocketAddr),
    /// A name to be looked up, and a port.
    Name(String, u16),
    /// A service to be looked up (SRV), which has several servers, and their ports.
    Service(String),
    /// One of these, where TLS is spoken, and whom its certificate must be for.
    Tls(Box<MemberAddress>, PeerName),
    /// The socket of a program that hob runs itself.
    Run(Arc<RunSocket>),
}

/// Longest path of a socket, in bytes (`unix(7)`).
const PATH_BYTES_MAX: usize = 107;

impl MemberAddress {
    /// Reads what the config has; `resolve` makes a path absolute.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub fn parse(
        text: &str,
        resolve: impl FnOnce(&str) -> PathBuf,
    ) -> Result<MemberAddress, &'static str> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            let path = resolve(path.strip_prefix("//").unwrap_or(path));
            if path.as_os_str().len() > PATH_BYTES_MAX {
                return Err("the path of a socket has at most 107 bytes");
            }
            return Ok(MemberAddress::Unix(path));
        }
        if let Some(name) = text.strip_prefix("srv:") {
            let mut labels = name.split('.');
            let is_label = |label: Option<&str>| label.is_some_and(|one| one.starts_with('_'));
            let is_service = is_label(labels.next()) && is_label(labels.next());
            let is_name = is_host(name.as_bytes()) && !name.contains(['[', ':']);
            return match is_service && is_name && labels.next().is_some() {
                true => Ok(MemberAddress::Service(name.to_owned())),
                false => Err("write a service, such as `srv:_app._tcp.example.com`"),
            };
        }
        if let Some(place) = text.strip_prefix("tls://") {
            let wrong = "write a host or an IP address and a port behind `tls://`";
            let place = MemberAddress::parse_place(place).map_err(|_| wrong)?;
            let (host, _) = text["tls://".len()..].rsplit_once(':').ok_or(wrong)?;
            let name = PeerName::parse(host).ok_or("no certificate can be for this host")?;
            return Ok(MemberAddress::Tls(Box::new(place), name));
        }
        if Path::new(text).is_absolute() {
            return Err("write `unix:` before the path of a socket");
        }
        MemberAddress::parse_place(text)
    }

    /// An IP address or a name, and a port.
    fn parse_place(text: &str) -> Result<MemberAddress, &'static str> {
        if let Ok(address) = text.replace("localhost:", "127.0.0.1:").parse() {
            return Ok(MemberAddress::Tcp(address));
        }
        let is_name = |name: &str| !name.contains(['[', ':', '@']) && is_host(name.as_bytes());
        match text.rsplit_once(':') {
            // Digits and dots alone are an address that is none.
            Some((name, port)) if is_name(name) && name.contains(|c: char| c.is_alphabetic()) => {
                let port = port
                    .parse()
                    .map_err(|_| "a port is a number from 1 to 65535")?;
                Ok(MemberAddress::Name(name.to_owned(), port))
            }
            _ => Err(
                "write `unix:PATH`, or an IP address or a name, and a port, such as \
                 `127.0.0.1:9000`",
            ),
        }
    }
}

impl MemberAddress {
    /// Whom its certificate must be for, where TLS is spoken.
    pub fn peer_name(&self) -> Option<&PeerName> {
        match self {
            MemberAddress::Tls(_, name) => Some(name),
            _ => None,
        }
    }

    /// The host that a service is called by, where its servers have no name of their own here.
    pub(crate) fn service_host(&self) -> Option<&str> {
        let MemberAddress::Service(name) = self.place() else {
            return None;
        };
        name.splitn(3, '.').nth(2)
    }

    /// Where it is, whatever is spoken there.
    pub(crate) fn place(&self) -> &MemberAddress {
        match self {
            MemberAddress::Tls(place, _) => place.place(),
            place => place,
        }
    }
}

impl fmt::Display for MemberAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemberAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            MemberAddress::Tcp(address) => write!(f, "{address}"),
            MemberAddress::Name(name, port) => write!(f, "{name}:{port}"),
            MemberAddress::Tls(place, _) => place.fmt(f),
            MemberAddress::Service(name) => write!(f, "srv:{name}"),
            MemberAddress::Run(socket) => write!(f, "run:{}", socket.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_sockets_of_this_machine_or_ip_addresses() {
        let parse = |text| MemberAddress::parse(text, |path| Path::new("/base").join(path));
        let shown = |text| parse(text).unwrap().to_string();
        assert_eq!(shown("unix:/run/fpm.sock"), "unix:/run/fpm.sock");
        assert_eq!(shown("unix:run/fpm.sock"), "unix:/base/run/fpm.sock");
        assert_eq!(shown("unix:///run/fpm.sock"), "unix:/run/fpm.sock");
        assert_eq!(shown("localhost:9000"), "127.0.0.1:9000");
        assert_eq!(shown("[::1]:9000"), "[::1]:9000");
        assert_eq!(
            parse("php.internal:9000").unwrap(),
            MemberAddress::Name("php.internal".to_owned(), 9000)
        );
        assert_eq!(
            parse("tls://localhost:9000").unwrap(),
            MemberAddress::Tls(
                Box::new(parse("127.0.0.1:9000").unwrap()),
                PeerName::parse("localhost").unwrap()
            )
        );
        let six = parse("tls://[::1]:9000").unwrap();
        assert_eq!(six.peer_name().cloned(), PeerName::parse("::1"));
        assert_eq!(shown("srv:_app._tcp.internal"), "srv:_app._tcp.internal");
        let long = format!("unix:/{}", "x".repeat(PATH_BYTES_MAX));
        for text in [
            "",
            "unix:",
            "9000",
            "/run/fpm.sock",
            "tls://",
            "srv:",
            "srv:app.internal",
            "srv:_app._tcp",
            "srv:_app._tcp.internal:80",
            "tls://srv:_app._tcp.internal",
            "tls://php",
            "tls://unix:/run/fpm.sock",
            "tls://tls://php:9000",
            "php",
            "php:fpm",
            "php:99999",
            "a b:9000",
            "1.2.3:9000",
            "127.0.0.1",
            &long,
        ] {
            parse(text).unwrap_err();
        }
    }
}
