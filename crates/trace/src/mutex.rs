//! A mutex that stays usable when somebody who held it has panicked.
//!
//! Whoever panics takes its thread along, and the keeper starts another server; until then others
//! go on with what is behind the lock. Nothing here leaves it half changed where it may panic.

use std::sync::{MutexGuard, PoisonError, TryLockError};

/// [`std::sync::Mutex`] without poison.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// One that nobody holds.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Waits until nobody else has it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes it if nobody has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_of_a_holder_closes_it_to_nobody() {
        let mutex = Mutex::new(1);
        let panicked = std::thread::scope(|scope| {
            let holder = || {
                let _held = mutex.lock();
                panic!("while it is held");
            };
            scope.spawn(holder).join().is_err()
        });
        let mut held = mutex.lock();
        *held += 1;
        assert!(panicked && mutex.try_lock().is_none());
        drop(held);
        assert_eq!(mutex.try_lock().map(|value| *value), Some(2));
    }
}
