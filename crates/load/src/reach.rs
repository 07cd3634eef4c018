//! Where the server is: the address of its name at which somebody answers, and what is said to it
//! over TLS.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::error::LoadError;
use crate::plan::{BenchPlan, Protocol};
use crate::send::{ServerAddress, Trust, answers_quic, client_config};
use crate::url::Url;

/// When a connection is made first that carries nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    /// Always, so that a server that is not there is told at once.
    Always,
    /// Only to choose between several addresses.
    Between,
    /// Never: this is the address.
    Never(SocketAddr),
}

/// Finds an address at which the server takes a connection now.
pub(crate) fn reach(plan: &BenchPlan, probe: Probe) -> Result<ServerAddress, LoadError> {
    if let Probe::Never(address) = probe {
        return Ok(ServerAddress::Inet(address));
    }
    if let Some(path) = &plan.unix {
        if probe == Probe::Between {
            return Ok(ServerAddress::Unix(path.clone()));
        }
        return match UnixStream::connect(path) {
            Ok(_) => Ok(ServerAddress::Unix(path.clone())),
            Err(error) => Err(LoadError::Server(format!(
                "no server answers at {}: {error}",
                path.display()
            ))),
        };
    }
    let url = &plan.entries[0].url;
    let addresses = addresses(url)?;
    // Over QUIC only a handshake shows whether somebody is there: the run's own ones tell as well.
    let is_between = probe == Probe::Between || plan.protocol == Protocol::H3;
    if let (true, [address]) = (is_between, &addresses[..]) {
        return Ok(ServerAddress::Inet(*address));
    }
    let mut last = None;
    for address in addresses {
        let answered = match plan.protocol {
            Protocol::H3 => match tls(plan, &ServerAddress::Inet(address))? {
                Some(tls) => answers_quic(address, &tls, plan.timeout),
                None => Ok(()),
            },
            _ => TcpStream::connect_timeout(&address, plan.timeout).map(drop),
        };
        match answered {
            Ok(()) => return Ok(ServerAddress::Inet(address)),
            Err(error) => last = Some((address, error)),
        }
    }
    Err(LoadError::Server(match last {
        Some((address, error)) => {
            format!(
                "{}: no server answers at {address}: {error} (is it running?)",
                url.text
            )
        }
        None => format!("{}: the name {} has no address", url.text, url.host),
    }))
}

/// The addresses that a URL's host has.
pub fn addresses(url: &Url) -> Result<Vec<SocketAddr>, LoadError> {
    let addresses = (url.host.as_str(), url.port).to_socket_addrs();
    addresses.map(Iterator::collect).map_err(|error| {
        let (url, host) = (&url.text, &url.host);
        LoadError::Server(format!("{url}: the name {host} has no address: {error}"))
    })
}

/// What clients say about TLS, where the URLs ask for it.
pub fn tls(
    plan: &BenchPlan,
    address: &ServerAddress,
) -> Result<Option<(ClientConfig, ServerName<'static>)>, LoadError> {
    let url = &plan.entries[0].url;
    if !url.is_secure {
        return Ok(None);
    }
    let name = ServerName::try_from(url.host.clone()).map_err(|_| {
        LoadError::Arguments(format!("{}: {} is no name for TLS", url.text, url.host))
    })?;
    let trust = match plan.is_insecure || address.is_local() {
        true => Trust::Anybody,
        false => Trust::System,
    };
    let config = client_config(trust, &plan.terms, plan.protocol.alpn());
    let config = config.map_err(LoadError::Arguments)?;
    Ok(Some((config, name)))
}
