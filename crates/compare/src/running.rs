//! A server that is measured: one of this machine, or one of the machine of `--target`.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::rc::Rc;

use crate::account::AccountKind;
use crate::distant::{DistantServer, TargetMachine};
use crate::forget::forget;
use crate::instance::{Instance, LaunchContext, Usage};
use crate::limits::START;
use crate::link::FrameCount;
use crate::noise::RunQueueWaits;
use crate::server::{Extra, Installed, Ports};

/// Where servers are started.
pub(crate) enum ServerPlace<'a> {
    /// On this machine.
    Here(LaunchContext<'a>),
    /// On the other one.
    There(Rc<RefCell<TargetMachine>>),
}

/// A server that runs. When it is dropped, it ends with all that it started.
pub(crate) enum RunningServer {
    Here(Box<Instance>),
    There(DistantServer),
}

impl ServerPlace<'_> {
    /// Starts a server and waits until it takes connections. The error says why it does not.
    pub(crate) fn start(
        &self,
        server: &Installed,
        extra: Extra,
        folder: &str,
    ) -> Result<RunningServer, String> {
        match self {
            ServerPlace::Here(place) => Instance::start(place, server, extra, folder)
                .map(Box::new)
                .map(RunningServer::Here),
            ServerPlace::There(target) => {
                DistantServer::start(target, &server.name, extra).map(RunningServer::There)
            }
        }
    }
}

impl RunningServer {
    /// Where it listens.
    pub(crate) fn host(&self) -> Ipv4Addr {
        match self {
            RunningServer::Here(instance) => instance.host,
            RunningServer::There(server) => server.host,
        }
    }

    pub(crate) fn ports(&self) -> Ports {
        match self {
            RunningServer::Here(instance) => instance.ports,
            RunningServer::There(server) => server.ports,
        }
    }

    /// The configuration as the report shows it.
    pub(crate) fn shown(&self) -> &str {
        match self {
            RunningServer::Here(instance) => &instance.shown,
            RunningServer::There(server) => &server.shown,
        }
    }

    /// How its CPU time is known.
    pub(crate) fn account(&self) -> AccountKind {
        match self {
            RunningServer::Here(instance) => instance.account.kind(),
            RunningServer::There(server) => server.account,
        }
    }

    /// Frames of the link to it up to now, where there is one.
    pub(crate) fn frames(&self) -> Option<FrameCount> {
        match self {
            RunningServer::Here(instance) => Some(instance.frames.as_ref()?.count()),
            RunningServer::There(_) => None,
        }
    }

    /// On which CPU of this machine it runs.
    pub(crate) fn cpu(&self) -> Option<usize> {
        match self {
            RunningServer::Here(instance) => Some(instance.cpu),
            RunningServer::There(_) => None,
        }
    }

    /// How long each of its threads has waited for a CPU up to now; nobody's of the other machine.
    pub(crate) fn waits(&self) -> RunQueueWaits {
        match self {
            RunningServer::Here(instance) => instance.waits(),
            RunningServer::There(_) => RunQueueWaits::default(),
        }
    }

    /// CPU time of all its processes up to now.
    pub(crate) fn usage(&mut self) -> Result<Usage, String> {
        match self {
            RunningServer::Here(instance) => instance.usage(),
            RunningServer::There(server) => server.usage(),
        }
    }

    /// Has the kernel throw away what it keeps of a file that the server serves.
    pub(crate) fn forget(&self, path: &str) -> Result<(), String> {
        match self {
            RunningServer::Here(instance) => {
                forget(&instance.root.join(path.trim_start_matches('/')))
            }
            RunningServer::There(server) => server.forget(path),
        }
    }

    /// Begins a visit of the program at this path, which tells its handle.
    pub(crate) fn begin_visit(&self, path: &str) -> Result<String, String> {
        let ask = || {
            let address = SocketAddr::from((self.host(), self.ports().clear));
            let mut stream = TcpStream::connect_timeout(&address, START)?;
            stream.set_read_timeout(Some(START))?;
            write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = ask().map_err(|error: io::Error| format!("no visit of {path}: {error}"))?;
        match answer.split_once("\r\n\r\n") {
            Some((head, handle)) if head.contains(" 200 ") => Ok(handle.to_owned()),
            _ => Err(format!(
                "no visit of {path}: {}",
                answer.lines().next().unwrap_or_default()
            )),
        }
    }
}
