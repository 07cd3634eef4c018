//! Blocks of numbers, one per thread, and their sum when asked.
//!
//! A block has one writer, so counting is a plain load and store: no lock prefix, no shared cache
//! line. Readers add the blocks up and may see one number a moment newer than another.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::mutex::Mutex;

/// One number of one thread's block.
#[derive(Debug, Default)]
pub struct CounterCell(AtomicU64);

impl CounterCell {
    /// Nothing counted.
    pub const fn new() -> CounterCell {
        CounterCell(AtomicU64::new(0))
    }

    /// Adds to it. Only the thread that owns the block may: from two threads at once, counts get
    /// lost.
    #[inline]
    pub fn add(&self, count: u64) {
        self.0
            .store(self.0.load(Relaxed).wrapping_add(count), Relaxed);
    }

    /// Makes it at least this. Only the thread that owns the block may.
    #[inline]
    pub fn raise(&self, value: u64) {
        if value > self.0.load(Relaxed) {
            self.0.store(value, Relaxed);
        }
    }

    /// Sets it. Only the thread that owns the block may.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// What has been counted so far.
    pub fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The numbers of one thread.
pub trait CounterBlock: Debug + Default {
    /// The numbers of all threads, added up.
    type Sum: Clone + Debug + Default;

    /// Adds this thread's numbers.
    fn add_to(&self, sum: &mut Self::Sum);
}

/// The blocks of all threads.
#[derive(Debug, Default)]
pub struct Blocks<B: CounterBlock> {
    all: Mutex<All<B>>,
}

#[derive(Debug, Default)]
struct All<B: CounterBlock> {
    running: Vec<Arc<B>>,
    /// What threads that have ended counted.
    ended: B::Sum,
}

impl<B: CounterBlock> Blocks<B> {
    /// No threads yet.
    pub fn new() -> Blocks<B> {
        Blocks::default()
    }

    /// A block for one more thread. Once the thread has dropped it, its counts stay in the sum.
    pub fn new_thread(&self) -> Arc<B> {
        let block = Arc::new(B::default());
        self.all.lock().running.push(Arc::clone(&block));
        block
    }

    /// The sum over all threads, running or ended.
    pub fn merged(&self) -> B::Sum {
        let mut all = self.all.lock();
        let All { running, ended } = &mut *all;
        running.retain_mut(|block| {
            // Exclusive access proves that no one can count in it any more.
            let Some(block) = Arc::get_mut(block) else {
                return true;
            };
            block.add_to(ended);
            false
        });
        let mut sum = ended.clone();
        running.iter().for_each(|block| block.add_to(&mut sum));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct One(CounterCell);

    impl CounterBlock for One {
        type Sum = u64;

        fn add_to(&self, sum: &mut u64) {
            *sum += self.0.value();
        }
    }

    #[test]
    fn merged_is_the_sum_of_all_threads() {
        let blocks: Blocks<One> = Blocks::new();
        let (first, second) = (blocks.new_thread(), blocks.new_thread());
        first.0.add(2);
        second.0.add(3);
        assert_eq!(blocks.merged(), 5);
    }

    #[test]
    fn counts_of_an_ended_thread_stay() {
        let blocks: Blocks<One> = Blocks::new();
        let block = blocks.new_thread();
        std::thread::spawn(move || block.0.add(7)).join().unwrap();
        assert_eq!(blocks.merged(), 7);
        assert_eq!(blocks.merged(), 7);
        assert!(blocks.all.lock().running.is_empty());
    }
}
