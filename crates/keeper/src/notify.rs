//! Telling a service manager where we are, by systemd's notification protocol.

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::time::{ClockId, clock_gettime};

/// Where notifications go; nowhere when nobody asked for them.
pub(crate) struct Notify {
    target: Option<(UnixDatagram, SocketAddr)>,
}

impl Notify {
    /// Takes the value of NOTIFY_SOCKET: a path, or `@` and an abstract name.
    pub(crate) fn to(socket: Option<&OsString>) -> Notify {
        let target = socket.and_then(|socket| {
            let address = match socket.as_bytes() {
                [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
                _ => SocketAddr::from_pathname(socket),
            };
            let sender = UnixDatagram::unbound().ok()?;
            sender.set_nonblocking(true).ok()?;
            Some((sender, address.ok()?))
        });
        Notify { target }
    }

    pub(crate) fn ready(&self) {
        self.say(&format!("READY=1\nMAINPID={}", std::process::id()));
    }

    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    pub(crate) fn stopping(&self) {
        self.say("STOPPING=1");
    }

    fn say(&self, text: &str) {
        if let Some((sender, address)) = &self.target
            && let Err(error) = sender.send_to_addr(text.as_bytes(), address)
        {
            tracing::warn!(%error, text, "the service manager was not told");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_arrive_at_a_path_and_at_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        let name = format!("hob-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        let targets = [
            (path.into_os_string(), by_path),
            (format!("@{name}").into(), by_name),
        ];
        for (target, receiver) in targets {
            let notify = Notify::to(Some(&target));
            notify.ready();
            notify.reloading();
            notify.stopping();
            let mut buffer = [0; 100];
            let mut next = || {
                let len = receiver.recv(&mut buffer).unwrap();
                String::from_utf8_lossy(&buffer[..len]).into_owned()
            };
            assert!(next().starts_with("READY=1\nMAINPID="));
            assert!(next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
            assert_eq!(next(), "STOPPING=1");
        }
    }

    #[test]
    fn nobody_to_tell_is_fine() {
        Notify::to(None).ready();
        Notify::to(Some(&"/no/such/socket".into())).ready();
    }
}
