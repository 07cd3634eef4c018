//! A second machine on this one, for programs that stand apart from their server: a network
//! namespace, joined to ours by a link over which a round trip takes so much longer.
//!
//! The kernel can hold packets back itself (netem), where it has that queue; many do not. So they
//! wait in this process, between two TUN devices. That needs root, and `unshare`, `nsenter` and
//! `ip`; all of it is gone with this process.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use tun_rs::{DeviceBuilder, SyncDevice};

use super::frames::FrameCounter;
use super::namespace::NetworkNamespace;
use super::relay::relay;
use super::settings::LinkSettings;

/// Of the networks that are for measurements (RFC 2544, appendix C.2.2).
const NETWORK: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
/// Networks of four addresses in it.
const NETWORK_COUNT: u32 = 1 << 15;

/// The machine, and the link to it, until this is dropped.
pub(crate) struct LinkedMachine {
    /// Its address on the link.
    pub(crate) address: Ipv4Addr,
    namespace: NetworkNamespace,
    is_over: Arc<OwnedFd>,
    counter: Arc<FrameCounter>,
    relay: Option<JoinHandle<()>>,
}

impl LinkedMachine {
    /// Makes one, and a link to it from another or from this machine. Packets wait on this CPU.
    ///
    /// # Errors
    /// What is missing for it, as a sentence.
    pub(crate) fn make(
        settings: LinkSettings,
        cpu: usize,
        from: Option<&NetworkNamespace>,
    ) -> Result<Self, String> {
        let tell = |what: &'static str| {
            move |error: io::Error| format!("no second machine on this one: {what}: {error}")
        };
        static MADE: AtomicU32 = AtomicU32::new(0);
        let (pid, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let names = ["a", "b"].map(|end| format!("hob{pid}{number}{end}"));
        let [near, far] = names.each_ref().map(|name| device(name));
        let (near, far) = near
            .and_then(|near| Ok((near, far?)))
            .map_err(tell("a TUN device"))?;
        let namespace =
            NetworkNamespace::make().map_err(tell("a network namespace, by `unshare --net`"))?;
        let is_over =
            eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| tell("eventfd")(error.into()))?;
        let network = (pid.wrapping_mul(8) + number) % NETWORK_COUNT;
        let at = |host: u32| Ipv4Addr::from_bits(NETWORK.to_bits() + network * 4 + host);
        let mut machine = LinkedMachine {
            address: at(2),
            namespace,
            is_over: Arc::new(is_over),
            counter: Arc::default(),
            relay: None,
        };
        machine.join(&names, at(1), from)?;
        let is_over = Arc::clone(&machine.is_over);
        let ends = [near, far];
        let counter = Arc::clone(&machine.counter);
        machine.relay = Some(std::thread::spawn(move || {
            relay(&ends, (settings, &counter), cpu, &is_over);
        }));
        Ok(machine)
    }

    /// Where it is.
    pub(crate) fn namespace(&self) -> &NetworkNamespace {
        &self.namespace
    }

    /// What counts the frames of the link to it.
    pub(super) fn counter(&self) -> Arc<FrameCounter> {
        Arc::clone(&self.counter)
    }

    /// Gives the ends their addresses, the second one there.
    fn join(
        &self,
        [near, far]: &[String; 2],
        here: Ipv4Addr,
        from: Option<&NetworkNamespace>,
    ) -> Result<(), String> {
        let (here, there) = (format!("{here}/30"), format!("{}/30", self.address));
        ip(&[], &["link", "set", far, "netns", &self.namespace.pid()])?;
        if let Some(from) = from {
            ip(&[], &["link", "set", near, "netns", &from.pid()])?;
        }
        let outside = from.map(NetworkNamespace::enter).unwrap_or_default();
        let inside = self.namespace.enter();
        for (enter, name, address) in [(&outside, near, &here), (&inside, far, &there)] {
            ip(enter, &["address", "add", address, "dev", name])?;
            ip(enter, &["link", "set", name, "up"])?;
        }
        ip(&inside, &["link", "set", "lo", "up"])
    }
}

impl Drop for LinkedMachine {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.is_over, &1u64.to_ne_bytes());
        if let Some(relay) = self.relay.take() {
            // It has said so itself if it panicked.
            let _ = relay.join();
        }
    }
}

fn device(name: &str) -> io::Result<SyncDevice> {
    let device = DeviceBuilder::new().name(name).enable(false).offload(true);
    let device = device.build_sync()?;
    device.set_nonblocking(true)?;
    Ok(device)
}

/// Has `ip` do something, behind these words.
pub(super) fn ip(enter: &[String], arguments: &[&str]) -> Result<(), String> {
    let words = enter.iter().map(String::as_str).chain(["ip"]);
    let words: Vec<&str> = words.chain(arguments.iter().copied()).collect();
    let shown = words.join(" ");
    let output = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .output();
    let output =
        output.map_err(|error| format!("no second machine on this one: {shown}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "no second machine on this one: {shown}: {}",
            text.trim()
        )),
    }
}
