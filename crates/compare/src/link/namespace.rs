//! Network namespaces: each with its own addresses, ports and devices.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace with nothing in it, until this is dropped and nobody is in it.
pub(crate) struct NetworkNamespace {
    /// Keeps it until its standard input ends.
    holder: Child,
}

impl NetworkNamespace {
    pub(super) fn make() -> io::Result<NetworkNamespace> {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", "echo; exec cat > /dev/null"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = command.spawn()?;
        let mut output = holder.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        match output.read_exact(&mut [0; 1]) {
            Ok(()) => Ok(NetworkNamespace { holder }),
            Err(_) => Err(io::Error::other(format!("it ended: {}", holder.wait()?))),
        }
    }

    /// Words before a command that is to run there.
    pub(crate) fn enter(&self) -> Vec<String> {
        vec!["nsenter".to_owned(), format!("--net={}", self.path())]
    }

    /// The process that keeps it, as `ip link set ... netns` names it.
    pub(super) fn pid(&self) -> String {
        self.holder.id().to_string()
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.holder.id())
    }
}

impl Drop for NetworkNamespace {
    fn drop(&mut self) {
        self.holder.stdin = None;
        let _ = self.holder.wait();
    }
}

/// This thread in another network namespace, with the threads and processes that it starts, until
/// this is dropped.
pub(super) struct NamespaceVisit {
    home: File,
}

impl NamespaceVisit {
    pub(super) fn begin(there: &NetworkNamespace) -> io::Result<NamespaceVisit> {
        let home = File::open("/proc/thread-self/ns/net")?;
        move_to(&File::open(there.path())?)?;
        Ok(NamespaceVisit { home })
    }
}

impl Drop for NamespaceVisit {
    fn drop(&mut self) {
        // Who could go there may come back.
        let _ = move_to(&self.home);
    }
}

fn move_to(namespace: &File) -> io::Result<()> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(Into::into)
}
