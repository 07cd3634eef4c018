//! Names and numbers of series, and where each is counted.

use std::collections::HashMap;
use std::sync::Arc;

use super::block::{self, SeriesSum, ThreadSeries};
use crate::mutex::Mutex;
use crate::record::HandlerKind;

/// Most series with a name; further routes share number 0.
pub const SERIES_MAX: usize = 4096;
/// Memory for blocks of all threads together, in bytes; what has no room counts as `other`.
pub const BLOCKS_BYTES_MAX: usize = 4 << 20;
/// Blocks that a thread may have at least, however many threads there are.
pub(super) const PLACES_MIN: usize = 16;
/// Blocks that a thread has at most.
const PLACES_MAX: usize = 1024;
/// The place of what has none of its own.
pub(super) const OTHER: u16 = 0;

/// What a series is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeriesName {
    /// The site's name; empty where none was chosen.
    pub site: String,
    /// The route's path pattern; empty where none was chosen.
    pub route: String,
    /// Who answers.
    pub handler: HandlerKind,
    /// What runs, for people; empty where nothing does.
    pub program: String,
}

impl SeriesName {
    /// The name of number 0.
    fn none() -> SeriesName {
        SeriesName {
            site: String::new(),
            route: String::new(),
            handler: HandlerKind::None,
            program: String::new(),
        }
    }
}

/// All series of a server.
#[derive(Debug)]
pub struct SeriesRegistry {
    pub(super) places_max: usize,
    state: Mutex<SeriesRegistryState>,
}

#[derive(Debug)]
struct SeriesRegistryState {
    names: Vec<Arc<SeriesName>>,
    numbers: HashMap<Arc<SeriesName>, u16>,
    /// Series by their place; the first is for all others.
    places: Vec<u16>,
    threads: Vec<Arc<ThreadSeries>>,
}

impl SeriesRegistry {
    /// No series yet, for so many threads.
    pub fn new(thread_count: usize) -> SeriesRegistry {
        let bytes = BLOCKS_BYTES_MAX / thread_count.max(1);
        let none = Arc::new(SeriesName::none());
        SeriesRegistry {
            places_max: (bytes / block::BLOCK_BYTES_MAX).clamp(PLACES_MIN, PLACES_MAX),
            state: Mutex::new(SeriesRegistryState {
                names: vec![Arc::clone(&none)],
                numbers: HashMap::from([(none, 0)]),
                places: vec![0],
                threads: Vec::new(),
            }),
        }
    }

    /// The number of a series: the one it has, or a new one. 0 when there are too many.
    pub fn number(&self, name: SeriesName) -> u16 {
        let mut state = self.state.lock();
        if let Some(number) = state.numbers.get(&name) {
            return *number;
        }
        let next = state.names.len();
        if next >= SERIES_MAX {
            return 0;
        }
        let (name, number) = (Arc::new(name), next as u16);
        state.names.push(Arc::clone(&name));
        state.numbers.insert(name, number);
        number
    }

    /// The names of all series, by their numbers.
    pub fn names(&self) -> Vec<Arc<SeriesName>> {
        self.state.lock().names.clone()
    }

    /// Blocks for one more thread.
    pub fn new_thread(&self) -> Arc<ThreadSeries> {
        let thread = Arc::new(ThreadSeries::new(self.places_max));
        self.state.lock().threads.push(Arc::clone(&thread));
        thread
    }

    /// The place of a series among each thread's blocks.
    pub(super) fn place(&self, series: u16) -> u16 {
        let mut state = self.state.lock();
        if series == 0 || usize::from(series) >= state.names.len() {
            return OTHER;
        }
        let found = state.places.iter().position(|known| *known == series);
        let place = match found {
            Some(place) => place,
            None if state.places.len() < self.places_max => {
                state.places.push(series);
                state.places.len() - 1
            }
            None => 0,
        };
        place as u16
    }

    /// What was counted of each series that had a request, with its number; number 0 is all that
    /// has no block of its own.
    pub fn sums(&self) -> Vec<(u16, SeriesSum)> {
        let state = self.state.lock();
        let (places, threads) = (state.places.clone(), state.threads.clone());
        drop(state);
        let sum_at = |place: usize| {
            let mut sum = SeriesSum::default();
            threads.iter().for_each(|one| one.add_to(place, &mut sum));
            sum
        };
        let all = places.into_iter().enumerate();
        all.map(|(place, series)| (series, sum_at(place)))
            .filter(|(_, sum)| sum.requests > 0)
            .collect()
    }

    /// How many requests each series has had so far.
    pub fn requests(&self) -> HashMap<u16, u64> {
        let state = self.state.lock();
        let (places, threads) = (state.places.clone(), state.threads.clone());
        drop(state);
        let all = places.into_iter().enumerate();
        all.map(|(place, series)| {
            let counts = threads.iter().map(|one| one.requests(place));
            (series, counts.fold(0, u64::wrapping_add))
        })
        .collect()
    }

    /// What was counted of all requests together.
    pub fn all(&self) -> SeriesSum {
        let state = self.state.lock();
        let (places, threads) = (state.places.len(), state.threads.clone());
        drop(state);
        let mut sum = SeriesSum::default();
        for place in 0..places {
            threads.iter().for_each(|one| one.add_to(place, &mut sum));
        }
        sum
    }
}
