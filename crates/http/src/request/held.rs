//! What a request keeps from others while it is under way: places that are counted.

use std::any::Any;
use std::cell::RefCell;

use crate::request::Request;

/// Places of a request; none most of the time, which costs no memory.
#[derive(Default)]
pub(super) struct HeldPlaces(RefCell<Vec<Box<dyn Any>>>);

impl HeldPlaces {
    pub(super) fn let_go(&self) {
        if self.0.borrow().is_empty() {
            return;
        }
        // They go when nothing is borrowed: who waits for one is woken then.
        drop(self.0.take());
    }
}

impl Request {
    /// Keeps a place until the answer has left, or will not leave any more: it is dropped then,
    /// before the record is handed on.
    pub fn hold(&self, place: Box<dyn Any>) {
        self.exchange.held.0.borrow_mut().push(place);
    }

    /// Whether it holds such a place already.
    pub fn holds<T: 'static>(&self, is_such: impl Fn(&T) -> bool) -> bool {
        let held = self.exchange.held.0.borrow();
        let mut places = held.iter().filter_map(|place| place.downcast_ref::<T>());
        places.any(is_such)
    }

    /// Gives back all that it holds.
    pub(crate) fn let_go(&self) {
        self.exchange.held.let_go();
    }
}
