//! Where a thread's connections sit, found again by the keys that events and wakers carry.

use crate::reactor::wheel::{TICK_MS, Wheel};
use crate::thread::conn::SocketConnection;
use crate::thread::h3::QUIC;

/// The connections of a thread.
#[derive(Default)]
pub(crate) struct Seats {
    seats: Vec<ConnectionSlot>,
    free: Vec<u32>,
    /// Connections by the tick at which somebody looks at their deadline.
    wheel: Wheel,
}

/// A place for a connection; its generation tells late events of an earlier one.
#[derive(Default)]
struct ConnectionSlot {
    generation: u32,
    conn: Option<Box<SocketConnection>>,
}

/// The last two are not those of seats: what is no connection, and connections over QUIC.
const GENERATION_MAX: u32 = 0x7fff_fffd;
const _: () = assert!(QUIC >> 32 == GENERATION_MAX as u64 + 1);

impl Seats {
    /// Reserves a seat for a new connection; returns its key.
    pub(crate) fn reserve(&mut self) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.seats.push(ConnectionSlot::default());
            (self.seats.len() - 1) as u32
        });
        u64::from(self.seats[index as usize].generation) << 32 | u64::from(index)
    }

    /// The seat of this key, whose connection may be elsewhere; `None` when it has left it.
    pub(crate) fn find(&mut self, key: u64) -> Option<&mut Option<Box<SocketConnection>>> {
        let seat = self.seats.get_mut(index_of(key))?;
        (u64::from(seat.generation) == key >> 32).then_some(&mut seat.conn)
    }

    /// Puts a connection back and notes its deadline: when to look at it, in milliseconds, if that
    /// is sooner than it was.
    pub(crate) fn keep(&mut self, mut conn: Box<SocketConnection>) -> Option<u64> {
        let (deadline_ms, _) = conn.deadline();
        let tick = Wheel::tick_of(deadline_ms);
        let is_sooner = deadline_ms != u64::MAX && (conn.tick == 0 || tick < conn.tick);
        if is_sooner {
            conn.tick = tick;
            self.wheel.add(conn.key, tick);
        }
        let index = index_of(conn.key);
        self.seats[index].conn = Some(conn);
        is_sooner.then(|| tick * TICK_MS)
    }

    /// The connection of this key is closed: its seat is free, for another generation.
    pub(crate) fn leave(&mut self, key: u64) {
        let index = index_of(key);
        let seat = &mut self.seats[index];
        seat.generation = match seat.generation {
            GENERATION_MAX.. => 0,
            generation => generation + 1,
        };
        self.free.push(index as u32);
    }

    /// A tick that has come, with the keys of those who may be late.
    pub(crate) fn take_due(&mut self, now_ms: u64) -> Option<(u64, Vec<u64>)> {
        self.wheel.take_due(now_ms)
    }

    /// When the next tick comes at which somebody may be late.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.wheel.next_ms()
    }

    /// How many seats there are, free ones too.
    pub(crate) fn len(&self) -> usize {
        self.seats.len()
    }

    /// Takes the connection that sits there if it is one of those meant.
    pub(crate) fn take_if(
        &mut self,
        index: usize,
        is_meant: impl FnOnce(&mut Box<SocketConnection>) -> bool,
    ) -> Option<Box<SocketConnection>> {
        self.seats[index].conn.take_if(is_meant)
    }

    /// Those that sit in their seats.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &SocketConnection> {
        self.seats.iter().filter_map(|seat| seat.conn.as_deref())
    }
}

fn index_of(key: u64) -> usize {
    (key & 0xffff_ffff) as usize
}
