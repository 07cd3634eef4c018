//! Listening sockets that outlive servers, reloads and upgrades.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use hob_http::listen::{self, BindAddress, BoundFile, SocketOptions};
use rustix::net::{SocketType, sockopt};

use crate::localhost;
use hob_config::{ListenAddress, Listener};

/// One listening socket and what it is known by.
#[derive(Debug)]
pub(super) struct KeptListener {
    /// The address as the config says it: an unchanged one keeps its socket.
    pub(super) address: ListenAddress,
    /// The real address, for people.
    pub(super) shown: String,
    pub(super) socket: OwnedFd,
    /// A relay and UDP sockets at the same address, for HTTP/3; none without.
    pub(super) datagrams: Vec<OwnedFd>,
    /// The file to remove when the socket is given up for good.
    pub(super) file: Option<BoundFile>,
}

/// A socket for every listener of a config: kept where the address is unchanged, else opened.
/// Also says what the kernel made different. Listeners at an address that the machine need not
/// have, and has not, are taken out.
pub(super) fn open_all(
    listeners: &mut Vec<Listener>,
    kept: &[Rc<KeptListener>],
    inherited: &[(String, OwnedFd)],
    thread_count: usize,
) -> Result<(Vec<Rc<KeptListener>>, Vec<String>), NotOpened> {
    let mut all: Vec<Rc<KeptListener>> = Vec::with_capacity(listeners.len());
    // Which of the kept ones each of them is.
    let mut taken: Vec<Option<usize>> = Vec::with_capacity(listeners.len());
    let mut warnings = Vec::new();
    // How many warnings there were before each of them.
    let mut told: Vec<usize> = Vec::with_capacity(listeners.len());
    let mut tries_left = PORT_TRIES;
    let mut is_anew = false;
    let wanted_count = listeners.len();
    let mut at = 0;
    while let Some(listener) = listeners.get(at) {
        let before = all.last().map(|before| &before.socket);
        let is_it = |index: &usize| {
            let known = &kept[*index];
            known.address == listener.address
                && !taken.contains(&Some(*index))
                && localhost::fits(listener, &known.socket, before)
        };
        let known = (0..kept.len()).filter(|_| !is_anew).find(is_it);
        if known.is_none() && localhost::is_absent(listener) {
            listeners.remove(at);
            continue;
        }
        told.truncate(at);
        told.push(warnings.len());
        let opened = match known {
            Some(known) => keep(
                &kept[known],
                listener,
                inherited,
                thread_count,
                &mut warnings,
            ),
            None => open_new(listener, before, inherited, thread_count, &mut warnings),
        };
        match opened {
            Ok(opened) => {
                all.push(opened);
                taken.push(known);
                at += 1;
                is_anew &= !localhost::is_second(listener);
            }
            // The port of `127.0.0.1`, which the kernel chose, is taken at `::1`: another for both.
            Err(_)
                if tries_left > 0
                    && has_any_port(listener)
                    && before.is_some()
                    && known.is_none() =>
            {
                tries_left -= 1;
                is_anew = true;
                all.pop();
                taken.pop();
                at -= 1;
                warnings.truncate(told[at]);
            }
            Err(error) => {
                give_up_new(&all, kept);
                let index = at + wanted_count - listeners.len();
                return Err(NotOpened { index, error });
            }
        }
    }
    Ok((all, warnings))
}

/// A listener that was not opened.
#[derive(Debug)]
pub(super) struct NotOpened {
    /// Which, of those of the config.
    pub(super) index: usize,
    pub(super) error: listen::Error,
}

/// Ports of the kernel's choice that are tried.
const PORT_TRIES: usize = 20;

/// What a listener's socket is set to.
pub(crate) fn socket_options(listener: &Listener) -> SocketOptions {
    SocketOptions {
        backlog: listener.backlog,
        send_buffer: listener.send_buffer,
        receive_buffer: listener.receive_buffer,
        notsent_lowat: listener.notsent_lowat,
        user_timeout: listener.user_timeout,
        defer_accept: listener.defer_accept,
        v6only: listener.v6only,
    }
}

/// A listener that was open before, with its options of now.
fn keep(
    known: &Rc<KeptListener>,
    listener: &Listener,
    inherited: &[(String, OwnedFd)],
    thread_count: usize,
    warnings: &mut Vec<String>,
) -> Result<Rc<KeptListener>, listen::Error> {
    let options = socket_options(listener);
    let notes = listen::tune(&known.socket, &options);
    warnings.extend(notes.iter().map(|note| format!("{}: {note}", known.shown)));
    with_datagrams(known, listener, &options, inherited, thread_count)
}

/// A listener that is opened now; `before` is the socket of the one before it.
fn open_new(
    listener: &Listener,
    before: Option<&OwnedFd>,
    inherited: &[(String, OwnedFd)],
    thread_count: usize,
    warnings: &mut Vec<String>,
) -> Result<Rc<KeptListener>, listen::Error> {
    let real = Listener {
        address: localhost::address_beside(listener, before),
        ..listener.clone()
    };
    let (opened, datagrams) = open_both(&real, &socket_options(listener), inherited, thread_count)?;
    warnings.extend(opened.warnings);
    Ok(Rc::new(KeptListener {
        address: listener.address.clone(),
        shown: opened.shown,
        socket: opened.socket,
        datagrams,
        file: opened.file,
    }))
}

/// True for the second listener of `localhost:0`.
fn has_any_port(listener: &Listener) -> bool {
    localhost::is_second(listener)
        && matches!(&listener.address, ListenAddress::Tcp(address) if address.port() == 0)
}

/// HTTP/3 is spoken there: over what we open ourselves on a port, and over UDP sockets that were
/// handed down where the listener was.
fn speaks_http3(listener: &Listener, inherited: &[(String, OwnedFd)]) -> bool {
    let has_sockets = match &listener.address {
        ListenAddress::Tcp(_) => true,
        ListenAddress::Unix(_) => false,
        ListenAddress::Inherited(name) => {
            find_inherited(name, SocketType::DGRAM, inherited).is_some()
        }
    };
    has_sockets && listener.tls.as_ref().is_some_and(|tls| tls.http3)
}

/// A listener that stays, with sockets for HTTP/3 as it needs them now.
fn with_datagrams(
    known: &Rc<KeptListener>,
    listener: &Listener,
    options: &SocketOptions,
    inherited: &[(String, OwnedFd)],
    thread_count: usize,
) -> Result<Rc<KeptListener>, listen::Error> {
    let speaks_http3 = speaks_http3(listener, inherited);
    if speaks_http3 != known.datagrams.is_empty() {
        return Ok(Rc::clone(known));
    }
    let datagrams = match speaks_http3 {
        true => open_datagrams(listener, &known.socket, options, inherited, thread_count)?,
        false => Vec::new(),
    };
    let socket = known.socket.try_clone();
    Ok(Rc::new(KeptListener {
        address: known.address.clone(),
        shown: known.shown.clone(),
        socket: socket.map_err(|source| copying(&known.shown, source))?,
        datagrams,
        file: known.file.clone(),
    }))
}

/// The sockets of HTTP/3 beside a listener's: at its address, or those that were handed down.
fn open_datagrams(
    listener: &Listener,
    listening: &OwnedFd,
    options: &SocketOptions,
    inherited: &[(String, OwnedFd)],
    thread_count: usize,
) -> Result<Vec<OwnedFd>, listen::Error> {
    if let ListenAddress::Inherited(name) = &listener.address
        && let Some(socket) = find_inherited(name, SocketType::DGRAM, inherited)
    {
        let socket = socket.try_clone().map_err(|source| copying(name, source))?;
        return listen::adopt_datagrams(socket, name, thread_count, options);
    }
    listen::open_datagrams(listening, thread_count, options)
}

/// The socket of a listener, and those for HTTP/3 where it is spoken. Of the ports that the kernel
/// chooses for TCP one may be taken for UDP: then another is asked for.
fn open_both(
    listener: &Listener,
    options: &SocketOptions,
    inherited: &[(String, OwnedFd)],
    thread_count: usize,
) -> Result<(listen::ListeningSocket, Vec<OwnedFd>), listen::Error> {
    let any_port = matches!(&listener.address, ListenAddress::Tcp(address) if address.port() == 0);
    let mut tries_left = if any_port { PORT_TRIES } else { 1 };
    loop {
        let opened = open_one(listener, options, inherited)?;
        if !speaks_http3(listener, inherited) {
            return Ok((opened, Vec::new()));
        }
        tries_left -= 1;
        let datagrams = open_datagrams(listener, &opened.socket, options, inherited, thread_count);
        match datagrams {
            Ok(datagrams) => return Ok((opened, datagrams)),
            Err(_) if tries_left > 0 => {}
            Err(error) => return Err(error),
        }
    }
}

fn open_one(
    listener: &Listener,
    options: &SocketOptions,
    inherited: &[(String, OwnedFd)],
) -> Result<listen::ListeningSocket, listen::Error> {
    let address = match &listener.address {
        ListenAddress::Tcp(address) => BindAddress::Tcp(*address),
        ListenAddress::Unix(path) => BindAddress::Unix(path.clone()),
        ListenAddress::Inherited(name) => return adopt(name, options, inherited),
    };
    listen::open(&address, options)
}

fn adopt(
    name: &str,
    options: &SocketOptions,
    inherited: &[(String, OwnedFd)],
) -> Result<listen::ListeningSocket, listen::Error> {
    // A unit's sockets have one name: its UDP sockets are for HTTP/3.
    let any = || inherited.iter().find(|(known, _)| known == name);
    let stream = find_inherited(name, SocketType::STREAM, inherited);
    let Some(socket) = stream.or_else(|| any().map(|(_, socket)| socket)) else {
        let known: Vec<&str> = inherited.iter().map(|(known, _)| known.as_str()).collect();
        let known = if known.is_empty() {
            "none".to_owned()
        } else {
            known.join(", ")
        };
        return Err(listen::Error {
            address: format!("the inherited socket `{name}`"),
            step: "find",
            advice: "set FileDescriptorName= in the socket unit",
            source: std::io::Error::other(format!("those handed down are: {known}")),
        });
    };
    let socket = socket.try_clone().map_err(|source| copying(name, source))?;
    listen::adopt(socket, name, options)
}

/// There is no descriptor left for a socket.
fn copying(name: &str, source: std::io::Error) -> listen::Error {
    listen::Error {
        address: format!("the socket {name}"),
        step: "copy",
        advice: "",
        source,
    }
}

/// The first socket of a name and kind that was handed down.
fn find_inherited<'a>(
    name: &str,
    kind: SocketType,
    inherited: &'a [(String, OwnedFd)],
) -> Option<&'a OwnedFd> {
    let is_it = |(known, socket): &&(String, OwnedFd)| {
        known == name && sockopt::socket_type(socket) == Ok(kind)
    };
    inherited.iter().find(is_it).map(|(_, socket)| socket)
}

/// Removes the socket files of listeners that are in the first list only.
pub(super) fn give_up_new(list: &[Rc<KeptListener>], kept: &[Rc<KeptListener>]) {
    for listener in list {
        let is_kept = kept.iter().any(|known| Rc::ptr_eq(known, listener));
        if let (false, Some(file)) = (is_kept, &listener.file) {
            file.remove();
        }
    }
}

/// What is printed when the server is ready.
pub(super) fn announcement(listener: &KeptListener, settings: &Listener) -> String {
    let scheme = match settings.tls {
        _ if listener.shown.starts_with("unix:") => "",
        Some(_) => "https://",
        None => "http://",
    };
    format!("listening on {scheme}{}", listener.shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use hob_config::{
        ConfigSources, Handlers, LogChoice, NoHandlers, Purpose, TrustedDisk, load_with,
    };

    fn listener(address: ListenAddress) -> Listener {
        Listener {
            address,
            purpose: Purpose::Sites,
            localhost: None,
            backlog: 16,
            send_buffer: None,
            receive_buffer: None,
            notsent_lowat: None,
            user_timeout: None,
            defer_accept: Duration::ZERO,
            v6only: true,
            tls: None,
            log: LogChoice::Inherit,
            trust: None,
            proxy_protocol: false,
            offers: None,
        }
    }

    fn any_port() -> ListenAddress {
        ListenAddress::Tcp("127.0.0.1:0".parse().unwrap())
    }

    #[test]
    fn unchanged_addresses_keep_their_sockets_even_twice_port_0() {
        let mut wanted = vec![listener(any_port()), listener(any_port())];
        let (first, _) = open_all(&mut wanted, &[], &[], 2).unwrap();
        let (second, _) = open_all(&mut wanted, &first, &[], 2).unwrap();
        assert!(Rc::ptr_eq(&first[0], &second[0]) && Rc::ptr_eq(&first[1], &second[1]));
        assert_ne!(first[0].shown, first[1].shown);
        assert_eq!(
            announcement(&first[0], &wanted[0]),
            format!("listening on http://{}", first[0].shown)
        );
    }

    fn listeners(addresses: &[&str], more: &str) -> Vec<Listener> {
        let mut text = String::new();
        for address in addresses {
            text += &format!("[[listen]]\naddress = \"{address}\"\n{more}\n");
        }
        text += "[[site]]\nroot = \"/\"\n";
        let sources =
            ConfigSources::from_text(NoHandlers::schema(), "test", &text, "/".as_ref(), &|_| None)
                .unwrap();
        let loaded =
            load_with::<NoHandlers>(&sources, &TrustedDisk).map_err(|errors| errors.to_string());
        loaded.unwrap().0.listeners
    }

    /// The ports that are listened on, by listener, when one config follows another.
    fn ports_after(before: &[&str], after: &[&str]) -> Vec<u16> {
        let (kept, _) = open_all(&mut listeners(before, ""), &[], &[], 2).unwrap();
        let (all, _) = open_all(&mut listeners(after, ""), &kept, &[], 2).unwrap();
        let port_of = |one: &Rc<KeptListener>| one.shown.rsplit(':').next()?.parse().ok();
        all.iter().map(|one| port_of(one).unwrap()).collect()
    }

    #[test]
    fn localhost_has_one_port_whatever_was_listened_on_before() {
        if std::net::TcpListener::bind("[::1]:0").is_err() {
            println!("skipped: this machine has no IPv6");
            return;
        }
        for before in ["[::1]:0", "127.0.0.1:0", "localhost:0"] {
            let ports = ports_after(&[before], &["localhost:0"]);
            assert!(
                matches!(ports[..], [one, other] if one == other),
                "{before}: {ports:?}"
            );
        }
        // The first takes the port that the second had at `::1`.
        let ports = ports_after(&["localhost:0", "[::1]:0"], &["[::1]:0", "localhost:0"]);
        assert!(
            matches!(ports[..], [_, one, other] if one == other),
            "{ports:?}"
        );
    }

    #[test]
    fn listeners_that_begin_with_http3_keep_a_socket_each() {
        let addresses = ["127.0.0.1:0", "127.0.0.1:0"];
        let with = |http3: bool| {
            let more = format!("tls = {{ certificate = \"self-signed\", http3 = {http3} }}");
            listeners(&addresses, &more)
        };
        let (first, _) = open_all(&mut with(false), &[], &[], 2).unwrap();
        let (second, _) = open_all(&mut with(true), &first, &[], 2).unwrap();
        let shown = |all: &[Rc<KeptListener>]| -> Vec<String> {
            all.iter().map(|one| one.shown.clone()).collect()
        };
        assert_eq!(shown(&second), shown(&first));
        assert_ne!(second[0].shown, second[1].shown);
    }

    #[test]
    fn failed_reload_removes_only_what_it_made() {
        let folder = tempfile::tempdir().unwrap();
        let unix = |name: &str| ListenAddress::Unix(folder.path().join(name));
        let (kept, _) = open_all(&mut vec![listener(unix("old"))], &[], &[], 2).unwrap();
        let taken = std::os::unix::net::UnixListener::bind(folder.path().join("taken")).unwrap();
        let mut wanted = vec![
            listener(unix("old")),
            listener(unix("new")),
            listener(unix("taken")),
        ];
        let failure = open_all(&mut wanted, &kept, &[], 2).unwrap_err();
        assert_eq!(failure.index, 2);
        drop(taken);
        let exists = |name: &str| folder.path().join(name).exists();
        assert_eq!(
            (exists("old"), exists("new"), exists("taken")),
            (true, false, true)
        );
    }

    #[test]
    fn name_that_systemd_did_not_hand_down_lists_those_it_did() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let inherited = [("web".to_owned(), OwnedFd::from(socket))];
        let mut wanted = vec![listener(ListenAddress::Inherited("wbe".to_owned()))];
        let failure = open_all(&mut wanted, &[], &inherited, 2).unwrap_err();
        assert_eq!(
            failure.error.to_string(),
            "cannot find the inherited socket `wbe`: those handed down are: web; set \
             FileDescriptorName= in the socket unit"
        );
        let mut wanted = vec![listener(ListenAddress::Inherited("web".to_owned()))];
        assert_eq!(
            open_all(&mut wanted, &[], &inherited, 2).unwrap().0.len(),
            1
        );
    }
}
