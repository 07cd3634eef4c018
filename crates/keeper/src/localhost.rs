//! `localhost` in a config is two listeners, at `127.0.0.1` and at `::1`, and not every machine has
//! the second: the keeper finds out and opens no socket for it, a server sees it by the sockets.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use hob_http::listen;
use rustix::net::getsockname;

use hob_config::{ListenAddress, Listener, Loopback};

/// True for the second listener of `localhost`, where the machine has no such address.
pub(super) fn is_absent(listener: &Listener) -> bool {
    is_second(listener) && !listen::has_address(IpAddr::V6(1.into()))
}

/// The address to open: if the kernel chose the port of `127.0.0.1`, that of `::1` is the same.
pub(super) fn address_beside(listener: &Listener, before: Option<&OwnedFd>) -> ListenAddress {
    match (&listener.address, before.and_then(address_of)) {
        (ListenAddress::Tcp(own), Some(before)) if is_second(listener) => {
            ListenAddress::Tcp(SocketAddr::new(own.ip(), before.port()))
        }
        (address, _) => address.clone(),
    }
}

/// A socket that was open before may stay: of `localhost` the second has the port of the first.
pub(super) fn fits(listener: &Listener, known: &OwnedFd, before: Option<&OwnedFd>) -> bool {
    let port_of = |socket: &OwnedFd| Some(address_of(socket)?.port());
    !is_second(listener) || port_of(known) == before.and_then(port_of)
}

/// Forgets the listeners at `::1` that have no socket.
pub(super) fn drop_absent(listeners: &mut Vec<Listener>, sockets: &[OwnedFd]) {
    let mut sockets = sockets.iter().peekable();
    listeners.retain(|listener| {
        let is_its_own = |socket: &&OwnedFd| {
            address_of(socket).is_some_and(|address| address.ip() == Ipv6Addr::LOCALHOST)
        };
        let is_there = !is_second(listener) || sockets.peek().is_some_and(is_its_own);
        if is_there {
            sockets.next();
        }
        is_there
    });
}

/// True for the second listener of `localhost`.
pub(super) fn is_second(listener: &Listener) -> bool {
    listener.localhost == Some(Loopback::V6)
}

fn address_of(socket: &OwnedFd) -> Option<SocketAddr> {
    SocketAddr::try_from(getsockname(socket).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use hob_config::{ConfigSources, Handlers, NoHandlers, TrustedDisk, load_with};

    fn listeners(text: &str) -> Vec<Listener> {
        let text = format!("{text}\n[[site]]\nroot = \"/\"\n");
        let sources =
            ConfigSources::from_text(NoHandlers::schema(), "test", &text, "/".as_ref(), &|_| None)
                .unwrap();
        let (config, _) = load_with::<NoHandlers>(&sources, &TrustedDisk)
            .map_err(|errors| errors.to_string())
            .unwrap();
        config.listeners
    }

    fn socket(address: &str) -> OwnedFd {
        TcpListener::bind(address).unwrap().into()
    }

    const BETWEEN: &str = "[[listen]]\naddress = \"localhost:0\"\n\
                           [[listen]]\naddress = \"127.0.0.1:0\"\n";

    #[test]
    fn listeners_without_a_socket_are_forgotten() {
        let mut without = listeners(BETWEEN);
        assert_eq!(without.len(), 3);
        drop_absent(
            &mut without,
            &[socket("127.0.0.1:0"), socket("127.0.0.1:0")],
        );
        let left: Vec<_> = without.iter().map(|listener| listener.localhost).collect();
        assert_eq!(left, [Some(Loopback::V4), None]);
    }

    #[test]
    fn listeners_with_their_sockets_stay_and_share_a_port() {
        if !listen::has_address(IpAddr::V6(1.into())) {
            println!("skipped: this machine has no IPv6");
            return;
        }
        let mut with = listeners(BETWEEN);
        let first = socket("127.0.0.1:0");
        let port = address_of(&first).unwrap().port();
        let beside = ListenAddress::Tcp((Ipv6Addr::LOCALHOST, port).into());
        assert_eq!(address_beside(&with[1], Some(&first)), beside);
        assert_eq!(address_beside(&with[2], Some(&first)), with[2].address);
        drop_absent(
            &mut with,
            &[first, socket("[::1]:0"), socket("127.0.0.1:0")],
        );
        assert_eq!(with.len(), 3);
    }
}
