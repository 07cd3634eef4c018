//! What is open of paths with captures in them: a root for each account, a file of passwords for
//! each. They are opened when they are first asked for, and so many are kept; the one that was not
//! asked for the longest goes first.
//!
//! What is not there has places of its own, and not for long: whoever asks for names that nobody
//! has must not have the roots closed of those who are there.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foldhash::fast::RandomState;
use hob_trace::Mutex;

use crate::handle::files::open::Root;
use crate::route::pattern::Pattern;
use crate::route::template::{PathTemplate, TemplateValues, UnsafeName};

/// So many names are remembered that nothing is there for.
const MISSING_MAX: usize = 1024;
/// For so long, in milliseconds, if not for less by `cache.recheck`.
const MISSING_MS: u64 = 1000;

/// What is open for the paths that captures give.
pub struct Captured<T> {
    /// The path.
    pub template: PathTemplate,
    /// The folder before the first capture.
    pub fixed: Arc<Root>,
    most: AtomicUsize,
    open: Mutex<OpenNames<T>>,
}

/// By the path below the fixed folder.
struct OpenNames<T> {
    known: HashMap<Box<[u8]>, OpenName<T>, RandomState>,
    /// When they were looked for.
    missing: HashMap<Box<[u8]>, u64, RandomState>,
    /// Counts what was asked for.
    turn: u64,
}

struct OpenName<T> {
    open: Arc<T>,
    /// When it was asked for last.
    turn: u64,
}

/// What is known of a name.
pub enum NameLookup<T> {
    /// It is open.
    Open(Arc<T>),
    /// Nothing was there a moment ago.
    Missing,
    /// It has to be looked for.
    Unknown,
}

/// A request whose captures make a path.
#[derive(Clone, Copy)]
pub struct CapturedRequest<'a> {
    /// The pattern of its route.
    pub pattern: &'a Pattern,
    /// The path that the route was found by.
    pub matched: &'a [u8],
    /// Its host, as it came.
    pub host: &'a [u8],
}

impl CapturedRequest<'_> {
    /// The path below the fixed folder of a template.
    ///
    /// # Errors
    /// What the request gives is no safe name.
    pub fn name(&self, template: &PathTemplate) -> Result<Vec<u8>, UnsafeName> {
        let captures = self.pattern.matches(self.matched).ok_or(UnsafeName)?;
        let facts = TemplateValues {
            path: self.matched,
            raw_path: self.matched,
            query: None,
            host: self.host,
            captures: &captures,
        };
        let mut name = Vec::new();
        template.expand(&facts, &mut name).map(|()| name)
    }
}

impl<T> Captured<T> {
    /// Nothing yet, with room for so many.
    pub fn new(template: PathTemplate, fixed: Arc<Root>, most: usize) -> Captured<T> {
        Captured {
            template,
            fixed,
            most: AtomicUsize::new(most),
            open: Mutex::new(OpenNames {
                known: HashMap::default(),
                missing: HashMap::default(),
                turn: 0,
            }),
        }
    }

    /// There is room for so many from now on.
    pub fn set_most(&self, most: usize) {
        self.most.store(most.max(1), Ordering::Relaxed);
    }

    /// What is known of a name; times in milliseconds.
    pub fn find(&self, name: &[u8], now_ms: u64, recheck_ms: u64) -> NameLookup<T> {
        let mut open = self.open.lock();
        open.turn += 1;
        let turn = open.turn;
        if let Some(known) = open.known.get_mut(name) {
            known.turn = turn;
            return NameLookup::Open(Arc::clone(&known.open));
        }
        let looked_ms = open.missing.get(name);
        let is_lately = |looked_ms: &u64| now_ms < looked_ms + recheck_ms.min(MISSING_MS);
        match looked_ms.is_some_and(is_lately) {
            true => NameLookup::Missing,
            false => NameLookup::Unknown,
        }
    }

    /// Keeps what was opened; what is open already of the name is given back instead. With it, how
    /// many had to go.
    pub fn keep(&self, name: &[u8], new: Arc<T>) -> (Arc<T>, u64) {
        let mut open = self.open.lock();
        open.turn += 1;
        let turn = open.turn;
        open.missing.remove(name);
        if let Some(known) = open.known.get(name) {
            return (Arc::clone(&known.open), 0);
        }
        let mut closed = 0;
        while open.known.len() >= self.most.load(Ordering::Relaxed) {
            let longest = open.known.iter().min_by_key(|(_, one)| one.turn);
            let Some(name) = longest.map(|(name, _)| name.clone()) else {
                break;
            };
            open.known.remove(&name);
            closed += 1;
        }
        let kept = OpenName {
            open: Arc::clone(&new),
            turn,
        };
        open.known.insert(name.into(), kept);
        (new, closed)
    }

    /// Nothing is there.
    pub fn keep_missing(&self, name: &[u8], now_ms: u64) {
        let mut open = self.open.lock();
        if open.missing.len() >= MISSING_MAX {
            open.missing.clear();
        }
        open.missing.insert(name.into(), now_ms);
    }

    /// This is not to be used any more.
    pub fn forget(&self, name: &[u8], gone: &Arc<T>) {
        let mut open = self.open.lock();
        let is_it = |one: &OpenName<T>| Arc::ptr_eq(&one.open, gone);
        if open.known.get(name).is_some_and(is_it) {
            open.known.remove(name);
        }
    }

    /// All that is open, the names in no order.
    pub fn all(&self) -> Vec<Arc<T>> {
        let open = self.open.lock();
        open.known
            .values()
            .map(|one| Arc::clone(&one.open))
            .collect()
    }

    /// How many are open.
    pub fn len(&self) -> usize {
        self.open.lock().known.len()
    }

    /// None is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::route::template::CapturedPath;

    fn of_three() -> (tempfile::TempDir, Captured<u32>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("{user}");
        let path = CapturedPath::parse(&path).unwrap().unwrap();
        let pattern = Pattern::parse("/{user}/*").unwrap();
        let fixed = Root::open(&path.fixed, &Arc::default()).unwrap();
        let template = path.bind(&pattern).unwrap();
        assert_eq!(template.fixed(), dir.path());
        (dir, Captured::new(template, Arc::new(fixed), 3))
    }

    fn is_open(captured: &Captured<u32>, name: &str) -> Option<u32> {
        match captured.find(name.as_bytes(), 0, 1000) {
            NameLookup::Open(open) => Some(*open),
            NameLookup::Missing | NameLookup::Unknown => None,
        }
    }

    #[test]
    fn the_one_not_asked_for_the_longest_goes() {
        let (_dir, captured) = of_three();
        for (name, number) in [("a", 1), ("b", 2), ("c", 3)] {
            let (_, closed) = captured.keep(name.as_bytes(), Arc::new(number));
            assert_eq!(closed, 0);
        }
        assert_eq!(is_open(&captured, "a"), Some(1));
        let (_, closed) = captured.keep(b"d", Arc::new(4));
        assert_eq!((closed, captured.len()), (1, 3));
        assert_eq!(is_open(&captured, "b"), None);
        assert_eq!(is_open(&captured, "a"), Some(1));
        captured.set_most(1);
        let (_, closed) = captured.keep(b"e", Arc::new(5));
        assert_eq!((closed, captured.len()), (3, 1));
    }

    #[test]
    fn what_is_open_already_stays() {
        let (_dir, captured) = of_three();
        let (first, _) = captured.keep(b"a", Arc::new(1));
        let (second, _) = captured.keep(b"a", Arc::new(2));
        assert!(Arc::ptr_eq(&first, &second));
        captured.forget(b"a", &Arc::new(1));
        assert_eq!(is_open(&captured, "a"), Some(1));
        captured.forget(b"a", &first);
        assert!(captured.is_empty());
    }

    #[test]
    fn what_is_missing_closes_nothing_and_is_looked_for_again() {
        let (_dir, captured) = of_three();
        captured.keep(b"a", Arc::new(1));
        for number in 0..=MISSING_MAX {
            captured.keep_missing(format!("x{number}").as_bytes(), 5000);
        }
        assert_eq!(is_open(&captured, "a"), Some(1));
        assert!(captured.open.lock().missing.len() <= MISSING_MAX);
        let last = format!("x{MISSING_MAX}");
        let at = |now_ms, recheck_ms| captured.find(last.as_bytes(), now_ms, recheck_ms);
        assert!(matches!(at(5999, 9000), NameLookup::Missing));
        assert!(matches!(at(6000, 9000), NameLookup::Unknown));
        assert!(matches!(at(5100, 100), NameLookup::Unknown));
        captured.keep(last.as_bytes(), Arc::new(2));
        assert!(matches!(at(5001, 9000), NameLookup::Open(_)));
    }

    #[test]
    fn names_come_from_captures() {
        let (dir, captured) = of_three();
        let pattern = Pattern::parse("/{user}/*").unwrap();
        let asked = |matched| CapturedRequest {
            pattern: &pattern,
            matched,
            host: b"",
        };
        assert_eq!(
            asked(b"/ann/x").name(&captured.template),
            Ok(b"ann".to_vec())
        );
        assert_eq!(asked(b"/.ann/x").name(&captured.template), Err(UnsafeName));
        assert_eq!(asked(b"/ann").name(&captured.template), Err(UnsafeName));
        let whole = captured.template.whole(b"ann");
        assert_eq!(whole, Path::new(dir.path()).join("ann"));
    }
}
