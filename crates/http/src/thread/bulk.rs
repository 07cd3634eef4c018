//! Whose turn it is: connections with much to do stand in one queue and go on in rounds of
//! bounded work.
//!
//! Between two rounds the loop looks at new events, so a small request waits for one round and not
//! for everyone who has room for more bytes.

use std::collections::VecDeque;

use rustix::event::epoll::EventFlags;

use crate::limits::{BULK_BYTES_PER_ROUND, BULK_BYTES_TURN_MIN};
use crate::response::Responder;
use crate::thread::conn::SocketConnection;
use crate::thread::run::Thread;

/// The queue, and the round that is being run. Whoever stands in it must not be put in again.
#[derive(Default)]
pub(crate) struct Bulk {
    keys: VecDeque<u64>,
    /// Turns left of this round: those who come in meanwhile wait for the next.
    turns_left: usize,
    round_bytes: usize,
    is_round: bool,
}

impl Bulk {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// True while those who stand in the queue have their turns.
    pub(crate) fn is_round(&self) -> bool {
        self.is_round
    }

    /// The kernel took bytes of an answer. In a round they are the turn's.
    pub(crate) fn count(&mut self, bytes: usize) {
        self.round_bytes += bytes;
    }

    fn push(&mut self, key: u64) {
        self.keys.push_back(key);
    }

    fn begin_round(&mut self) {
        self.turns_left = self.keys.len();
        self.round_bytes = 0;
        self.is_round = true;
    }

    /// Who has the next turn of the round; `None` ends it.
    fn next_turn(&mut self) -> Option<u64> {
        if self.turns_left == 0 || self.round_bytes >= BULK_BYTES_PER_ROUND {
            self.is_round = false;
            return None;
        }
        self.turns_left -= 1;
        self.round_bytes += BULK_BYTES_TURN_MIN;
        self.keys.pop_front()
    }
}

impl<A: Responder + 'static> Thread<A> {
    /// What a socket can do now. Whoever has bytes queued stands behind the others who do: there
    /// may be hundreds of them among the events, each with room for much, and small requests too.
    pub(crate) fn note_events(&mut self, key: u64, flags: EventFlags) {
        let Some(mut conn) = self.take_conn(key) else {
            return;
        };
        conn.is_readable |= flags.intersects(EventFlags::IN | EventFlags::RDHUP);
        conn.is_half_closed |= flags.contains(EventFlags::RDHUP);
        conn.is_reset |= conn.is_hung_up(flags);
        if conn.out.is_empty() || conn.is_reset {
            return self.drive_and_keep(conn);
        }
        self.queue_bulk(&mut conn);
        self.keep(conn);
    }

    /// Gives those who stand in the queue their turns, until the round's bytes are used up.
    pub(crate) fn run_bulk(&mut self) {
        self.bulk.begin_round();
        while let Some(key) = self.bulk.next_turn() {
            self.drive_key(key, |conn| conn.is_in_bulk = false);
        }
    }

    /// Lets the connection go on after the others had their turn.
    pub(crate) fn queue_bulk(&mut self, conn: &mut SocketConnection) {
        if !conn.is_in_bulk {
            conn.is_in_bulk = true;
            self.bulk.push(conn.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::BULK_BYTES_PER_TURN;

    /// Runs a round in which each turn takes as many bytes as `bytes_of` says and then comes back
    /// for more; returns who had a turn.
    fn round(bulk: &mut Bulk, bytes_of: impl Fn(u64) -> usize) -> Vec<u64> {
        let mut turns = Vec::new();
        bulk.begin_round();
        while let Some(key) = bulk.next_turn() {
            assert!(bulk.is_round());
            bulk.count(bytes_of(key));
            bulk.push(key);
            turns.push(key);
        }
        assert!(!bulk.is_round());
        turns
    }

    fn queue(keys: impl IntoIterator<Item = u64>) -> Bulk {
        let mut bulk = Bulk::default();
        keys.into_iter().for_each(|key| bulk.push(key));
        bulk
    }

    #[test]
    fn a_round_without_anybody_is_over_at_once() {
        let mut bulk = Bulk::default();
        assert!(bulk.is_empty());
        assert_eq!(round(&mut bulk, |_| 1), [0u64; 0]);
    }

    #[test]
    fn small_turns_are_had_by_all_in_order_and_once_a_round() {
        let mut bulk = queue([5, 3, 9]);
        assert_eq!(round(&mut bulk, |_| 1), [5, 3, 9]);
        assert_eq!(round(&mut bulk, |_| 1), [5, 3, 9]);
        assert!(!bulk.is_empty());
    }

    #[test]
    fn who_comes_within_a_round_waits_for_the_next() {
        let mut bulk = queue([1, 2]);
        bulk.begin_round();
        assert_eq!(bulk.next_turn(), Some(1));
        bulk.push(3);
        assert_eq!(bulk.next_turn(), Some(2));
        assert_eq!(bulk.next_turn(), None);
        assert_eq!(round(&mut bulk, |_| 0), [3]);
    }

    #[test]
    fn a_round_ends_with_its_bytes_and_the_next_begins_behind_it() {
        let mut bulk = queue(1..=5);
        let large = |_| BULK_BYTES_PER_TURN;
        assert_eq!(round(&mut bulk, large), [1, 2]);
        assert_eq!(round(&mut bulk, large), [3, 4]);
        assert_eq!(round(&mut bulk, large), [5, 1]);
    }

    #[test]
    fn turns_count_though_they_send_nothing() {
        let most = BULK_BYTES_PER_ROUND / BULK_BYTES_TURN_MIN;
        let mut bulk = queue(0..1000);
        assert_eq!(round(&mut bulk, |_| 0).len(), most);
    }

    #[test]
    fn nobody_starves_beside_those_who_take_most() {
        const COUNT: u64 = 100;
        let mut bulk = queue(0..COUNT);
        let mut turns = vec![0u32; COUNT as usize];
        // A few take all they may, most very little.
        let bytes_of = |key: u64| {
            if key.is_multiple_of(10) {
                BULK_BYTES_PER_TURN
            } else {
                100
            }
        };
        for _ in 0..500 {
            let had = round(&mut bulk, bytes_of);
            assert!(!had.is_empty());
            let bytes: usize = had.iter().map(|key| bytes_of(*key)).sum();
            assert!(
                bytes < BULK_BYTES_PER_ROUND + BULK_BYTES_PER_TURN,
                "{bytes}"
            );
            had.iter().for_each(|key| turns[*key as usize] += 1);
        }
        let (least, most) = (turns.iter().min().unwrap(), turns.iter().max().unwrap());
        assert!(*least > 20 && most - least <= 1, "{least} to {most}");
    }
}
