//! A second machine on this one, for programs that stand apart from their server: a network
//! namespace, joined to ours by a link over which a round trip takes so much longer.
//!
//! The kernel can hold packets back itself (netem), where it has that queue; many do not. So they
//! wait in this process, between two TUN devices. That needs root, and `unshare`, `nsenter` and
//! `ip`; all of it is gone with this process.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::limits::{PACKET_BYTES_MAX, PACKET_COUNT_MAX};

/// Of the networks that are for measurements (RFC 2544, appendix C.2.2).
const NETWORK: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
/// Networks of four addresses in it.
const NETWORK_COUNT: u32 = 1 << 15;

/// The machine, and the link to it, until this is dropped.
pub(crate) struct LinkedMachine {
    /// Its address on the link.
    pub(crate) address: Ipv4Addr,
    /// Keeps the namespace until its standard input ends.
    holder: Child,
    is_over: Arc<OwnedFd>,
    relay: Option<JoinHandle<()>>,
}

impl LinkedMachine {
    /// Makes one, over a link on which a round trip takes so much longer. Packets wait on this CPU.
    ///
    /// # Errors
    /// What is missing for it, as a sentence.
    pub(crate) fn make(round_trip: Duration, cpu: usize) -> Result<Self, String> {
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
        let holder = namespace().map_err(tell("a network namespace, by `unshare --net`"))?;
        let is_over =
            eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| tell("eventfd")(error.into()))?;
        let network = (pid.wrapping_mul(8) + number) % NETWORK_COUNT;
        let at = |host: u32| Ipv4Addr::from_bits(NETWORK.to_bits() + network * 4 + host);
        let mut machine = LinkedMachine {
            address: at(2),
            holder,
            is_over: Arc::new(is_over),
            relay: None,
        };
        machine.join(&names, at(1))?;
        let is_over = Arc::clone(&machine.is_over);
        machine.relay = Some(std::thread::spawn(move || {
            let mut set = CpuSet::new();
            set.set(cpu);
            let _ = sched_setaffinity(None, &set);
            // A packet is not to wait for others besides.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
            relay(&[near, far], round_trip / 2, &is_over);
        }));
        Ok(machine)
    }

    /// Words before a command that is to run there.
    pub(crate) fn enter(&self) -> Vec<String> {
        let namespace = format!("--net=/proc/{}/ns/net", self.holder.id());
        vec!["nsenter".to_owned(), namespace]
    }

    /// Gives the ends their addresses, the second one there.
    fn join(&self, [near, far]: &[String; 2], here: Ipv4Addr) -> Result<(), String> {
        let (here, there) = (format!("{here}/30"), format!("{}/30", self.address));
        let pid = self.holder.id().to_string();
        ip(&[], &["link", "set", far, "netns", &pid])?;
        let inside = self.enter();
        for (enter, name, address) in [(&[][..], near, &here), (&inside[..], far, &there)] {
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
            let _ = relay.join();
        }
        self.holder.stdin = None;
        let _ = self.holder.wait();
    }
}

fn device(name: &str) -> io::Result<SyncDevice> {
    let device = DeviceBuilder::new().name(name).enable(false).build_sync()?;
    device.set_nonblocking(true)?;
    Ok(device)
}

/// A process that is alone in a network namespace.
fn namespace() -> io::Result<Child> {
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", "echo; exec cat > /dev/null"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    match output.read_exact(&mut [0; 1]) {
        Ok(()) => Ok(child),
        Err(_) => Err(io::Error::other(format!("it ended: {}", child.wait()?))),
    }
}

fn ip(enter: &[String], arguments: &[&str]) -> Result<(), String> {
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

/// Packets of one direction, each with the time at which it arrives.
#[derive(Default)]
struct LinkDirection(VecDeque<(Instant, Vec<u8>)>);

impl LinkDirection {
    /// Takes what has been sent. A link that is full loses packets, as any does.
    fn take(&mut self, from: &SyncDevice, time: Duration) {
        let mut packet = [0; PACKET_BYTES_MAX];
        while let Ok(length) = from.recv(&mut packet) {
            if self.0.len() < PACKET_COUNT_MAX {
                self.0
                    .push_back((Instant::now() + time, packet[..length].to_vec()));
            }
        }
    }

    /// Hands on what has arrived.
    fn hand_on(&mut self, to: &SyncDevice) {
        let now = Instant::now();
        while self.0.front().is_some_and(|(due, _)| *due <= now) {
            let _ = self.0.pop_front().map(|(_, packet)| to.send(&packet));
        }
    }
}

/// Passes packets both ways, until there is something to read in `is_over`.
fn relay(ends: &[SyncDevice; 2], time: Duration, is_over: &OwnedFd) {
    let mut directions = [LinkDirection::default(), LinkDirection::default()];
    loop {
        let due = directions
            .iter()
            .filter_map(|direction| direction.0.front());
        let wait = due
            .map(|(due, _)| due.saturating_duration_since(Instant::now()))
            .min();
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let ends_fd = ends.each_ref().map(|end| end.as_fd());
        let mut watched = [
            PollFd::new(&ends_fd[0], PollFlags::IN),
            PollFd::new(&ends_fd[1], PollFlags::IN),
            PollFd::new(is_over, PollFlags::IN),
        ];
        let polled = poll(&mut watched, wait.as_ref());
        if !watched[2].revents().is_empty()
            || !matches!(polled, Ok(_) | Err(rustix::io::Errno::INTR))
        {
            return;
        }
        for (at, direction) in directions.iter_mut().enumerate() {
            direction.take(&ends[at], time);
            direction.hand_on(&ends[1 - at]);
        }
    }
}
