//! What a link does: it passes packets between two TUN devices, each when it would have arrived.
//!
//! Packets come from the kernel with a header that says what is still to be done with them (as of
//! virtio): one of up to 64 KiB is many of the link's, and is cut into them by nobody, as network
//! cards have it. It takes as long as all of them would.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, gettid, sched_setaffinity, set_current_timer_slack};
use tun_rs::SyncDevice;

use super::frames::FrameCounter;
use super::settings::LinkSettings;
use crate::limits::{LINK_QUEUE_BYTES_MAX, PACKET_BYTES_MAX, PACKET_COUNT_MAX};

/// Bytes of the header that the kernel puts before a packet, and where in it is how many bytes of
/// the packet are its own headers, and how many each of its parts carries.
const HEADER_BYTES: usize = 10;
const OWN_HEADER_AT: usize = 2;
const PART_AT: usize = 4;
/// Bytes that Ethernet puts around each packet: preamble, addresses, check sum and gap.
const FRAME_BYTES: u64 = 38;

/// Passes packets both ways, until there is something to read in `is_over`.
pub(super) fn relay(
    ends: &[SyncDevice; 2],
    (settings, counter): (LinkSettings, &Arc<FrameCounter>),
    cpu: usize,
    is_over: &OwnedFd,
) {
    let mut set = CpuSet::new();
    set.set(cpu);
    let _ = sched_setaffinity(None, &set);
    // A packet is not to wait for others besides, nor for whoever has the CPU.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = setpriority_process(Some(gettid()), -20);
    let mut directions = [(); 2].map(|()| LinkDirection::new(settings, Arc::clone(counter)));
    let mut room = vec![0; PACKET_BYTES_MAX];
    loop {
        let due = directions
            .iter()
            .filter_map(|direction| direction.packets.front());
        let wait = due
            .map(|packet| packet.due.saturating_duration_since(Instant::now()))
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
            while let Ok(length) = ends[at].recv(&mut room) {
                direction.take(&room[..length], Instant::now());
            }
            while let Some(packet) = direction.arrived(Instant::now()) {
                let _ = ends[1 - at].send(&packet);
            }
        }
    }
}

/// Packets of one direction, in the order in which they arrive.
struct LinkDirection {
    settings: LinkSettings,
    counter: Arc<FrameCounter>,
    packets: VecDeque<LinkPacket>,
    /// When the last bit of all that was taken will have been sent.
    idle_at: Option<Instant>,
}

struct LinkPacket {
    due: Instant,
    bytes: Vec<u8>,
}

impl LinkDirection {
    fn new(settings: LinkSettings, counter: Arc<FrameCounter>) -> LinkDirection {
        LinkDirection {
            settings,
            counter,
            packets: VecDeque::new(),
            idle_at: None,
        }
    }

    /// Takes what has been sent. A link that is full loses packets, as any does.
    fn take(&mut self, packet: &[u8], now: Instant) {
        let begin = self.idle_at.map_or(now, |idle_at| idle_at.max(now));
        let is_full = self.bytes_in(begin - now) > LINK_QUEUE_BYTES_MAX;
        let (frames, bytes) = on_wire(packet);
        if is_full || self.packets.len() >= PACKET_COUNT_MAX {
            self.counter.lose(frames);
            return;
        }
        self.counter.pass(frames);
        let sent = begin + self.time_of(bytes);
        self.idle_at = Some(sent);
        self.packets.push_back(LinkPacket {
            due: sent + self.settings.round_trip / 2,
            bytes: packet.to_vec(),
        });
    }

    /// The next of those that have arrived.
    fn arrived(&mut self, now: Instant) -> Option<Vec<u8>> {
        let is_due = self.packets.front()?.due <= now;
        let packet = is_due.then(|| self.packets.pop_front())?;
        packet.map(|packet| packet.bytes)
    }

    /// How long the link takes to send so many bytes.
    fn time_of(&self, bytes: u64) -> Duration {
        let bits_per_second = self.settings.bits_per_second;
        bits_per_second.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64(bytes as f64 * 8.0 / rate as f64)
        })
    }

    /// How many bytes it sends in a time.
    fn bytes_in(&self, time: Duration) -> u64 {
        let rate = self.settings.bits_per_second.unwrap_or(0);
        (time.as_secs_f64() * rate as f64 / 8.0) as u64
    }
}

/// The frames that a packet would be on Ethernet, and their bytes.
fn on_wire(packet: &[u8]) -> (u64, u64) {
    let number = |at: usize| {
        let bytes = packet.get(at..at + 2)?;
        Some(u64::from(u16::from_ne_bytes(bytes.try_into().ok()?)))
    };
    let (own_header, part) = (number(OWN_HEADER_AT), number(PART_AT));
    let (own_header, part) = (own_header.unwrap_or(0), part.unwrap_or(0));
    let bytes = packet.len().saturating_sub(HEADER_BYTES) as u64;
    let frames = match part {
        0 => 1,
        part => bytes.saturating_sub(own_header).div_ceil(part).max(1),
    };
    let bytes = bytes + (frames - 1) * own_header + frames * FRAME_BYTES;
    (frames, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(own_header: u16, part: u16, bytes: usize) -> Vec<u8> {
        let mut packet = vec![0; HEADER_BYTES + bytes];
        packet[OWN_HEADER_AT..][..2].copy_from_slice(&own_header.to_ne_bytes());
        packet[PART_AT..][..2].copy_from_slice(&part.to_ne_bytes());
        packet
    }

    #[test]
    fn large_packet_takes_as_long_as_all_that_it_stands_for() {
        assert_eq!(on_wire(&packet(0, 0, 100)), (1, 138));
        // Two whole parts and a short one, each with headers of its own.
        assert_eq!(
            on_wire(&packet(52, 1448, 52 + 3000)),
            (3, 3000 + 3 * (52 + 38))
        );
        assert_eq!(on_wire(&[]), (1, 38));
    }

    #[test]
    fn packets_arrive_one_after_the_other_and_a_full_link_loses_one() {
        let settings = LinkSettings::parse("8Mbit,20ms").unwrap();
        let counter = Arc::new(FrameCounter::default());
        let mut direction = LinkDirection::new(settings, Arc::clone(&counter));
        let begun = Instant::now();
        let at = |us| begun + Duration::from_micros(us);
        // A millisecond each: the second waits for the first.
        for _ in 0..2 {
            direction.take(&packet(0, 0, 962), begun);
        }
        assert_eq!(direction.arrived(at(10_999)), None);
        assert!(direction.arrived(at(11_000)).is_some());
        assert_eq!(direction.arrived(at(11_999)), None);
        assert!(direction.arrived(at(12_000)).is_some());
        assert_eq!(direction.arrived(at(99_999)), None);
        let mut taken = 0;
        while direction.packets.len() == taken {
            direction.take(&packet(0, 0, 60_000), at(20_000));
            taken += 1;
        }
        // The last one was one too many, and is known to be.
        assert_eq!(
            (counter.count().passed, counter.count().lost),
            (2 + taken as u64 - 1, 1)
        );
        let most = LINK_QUEUE_BYTES_MAX as usize;
        assert!(
            (most..most + 120_000).contains(&(taken * 60_000)),
            "{taken}"
        );
    }
}
