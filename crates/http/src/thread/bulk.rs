//! Whose turn it is: connections with much to do stand in one queue and go on in rounds of
//! bounded work.
//!
//! Between two rounds the loop looks at new events, so a small request waits for one round and not
//! for everyone who has room for more bytes.

use rustix::event::epoll::EventFlags;

use crate::limits::{BULK_BYTES_PER_ROUND, BULK_BYTES_TURN_MIN};
use crate::response::Answer;
use crate::thread::conn::Conn;
use crate::thread::run::Thread;

impl<A: Answer + 'static> Thread<A> {
    /// What a socket can do now. Whoever has bytes queued stands behind the others who do: there
    /// may be hundreds of them among the events, each with room for much, and small requests too.
    pub(crate) fn note_events(&mut self, key: u64, flags: EventFlags) {
        let Some(mut conn) = self.take_conn(key) else {
            return;
        };
        conn.is_readable |= flags.intersects(EventFlags::IN | EventFlags::RDHUP);
        conn.is_half_closed |= flags.contains(EventFlags::RDHUP);
        conn.is_reset |= flags.intersects(EventFlags::HUP | EventFlags::ERR);
        if conn.out.is_empty() || conn.is_reset {
            return self.drive_and_keep(conn);
        }
        self.queue_bulk(&mut conn);
        self.keep(conn);
    }

    /// Gives those who stand in the queue their turns, until the round's bytes are used up.
    pub(crate) fn run_bulk(&mut self) {
        self.bulk_bytes = 0;
        self.is_bulk_round = true;
        for _ in 0..self.bulk.len() {
            let Some(key) = self.bulk.pop_front() else {
                break;
            };
            self.drive_key(key, |conn| conn.is_in_bulk = false);
            self.bulk_bytes += BULK_BYTES_TURN_MIN;
            if self.bulk_bytes >= BULK_BYTES_PER_ROUND {
                break;
            }
        }
        self.is_bulk_round = false;
    }

    /// Lets the connection go on after the others had their turn.
    pub(crate) fn queue_bulk(&mut self, conn: &mut Conn) {
        if !conn.is_in_bulk {
            conn.is_in_bulk = true;
            self.bulk.push_back(conn.key);
        }
    }
}
