//! Routes that are never reached: an earlier one matches everything they match.
//!
//! A tree of the patterns seen so far, by segment. A later pattern is looked up along every branch
//! that covers it, so ten thousand routes take no longer than their text is long.

use std::collections::HashMap;

use super::pattern::{Pattern, Segment, Tail};

/// The patterns of a site's routes so far.
#[derive(Default)]
pub(crate) struct Reach {
    root: Node,
}

#[derive(Default)]
struct Node {
    literal: HashMap<String, Node>,
    capture: Option<Box<Node>>,
    /// The first route that ends here.
    exact: Option<usize>,
    /// The first that takes everything below.
    anything: Option<usize>,
    /// The first that takes everything below with this ending.
    endings: HashMap<String, usize>,
}

impl Reach {
    /// Takes the next pattern; the answer is the earlier route that covers it.
    pub(crate) fn add(&mut self, index: usize, pattern: &Pattern) -> Option<usize> {
        let covered = self.root.covering(&pattern.segments, &pattern.tail);
        let mut node = &mut self.root;
        for segment in &pattern.segments {
            node = match segment {
                Segment::Literal(text) => node.literal.entry(text.clone()).or_default(),
                Segment::Capture(_) => node.capture.get_or_insert_default(),
            };
        }
        match &pattern.tail {
            Tail::Exact => node.exact.get_or_insert(index),
            Tail::Anything | Tail::Rest(_) => node.anything.get_or_insert(index),
            Tail::Ending(ending) => node.endings.entry(ending.clone()).or_insert(index),
        };
        covered
    }
}

impl Node {
    /// The first route at or below this node that matches all that the rest of a pattern matches.
    fn covering(&self, segments: &[Segment], tail: &Tail) -> Option<usize> {
        // What is taken below a node begins with one more piece.
        let has_more = !segments.is_empty() || *tail != Tail::Exact;
        let below = has_more.then(|| [self.anything, self.ending(segments, tail)]);
        let here = below.into_iter().flatten().flatten().min();
        let Some((first, rest)) = segments.split_first() else {
            let exact = self.exact.filter(|_| *tail == Tail::Exact);
            return here.into_iter().chain(exact).min();
        };
        let literal = match first {
            Segment::Literal(text) => self.literal.get(text),
            Segment::Capture(_) => None,
        };
        // A capture takes any segment but the empty one.
        let capture = self
            .capture
            .as_deref()
            .filter(|_| *first != Segment::Literal(String::new()));
        let further = literal.into_iter().chain(capture);
        here.into_iter()
            .chain(further.filter_map(|node| node.covering(rest, tail)))
            .min()
    }

    fn ending(&self, segments: &[Segment], tail: &Tail) -> Option<usize> {
        if self.endings.is_empty() {
            return None;
        }
        let last = match (tail, segments.last()) {
            (Tail::Ending(ending), _) => ending,
            (Tail::Exact, Some(Segment::Literal(last))) => last,
            _ => return None,
        };
        let endings = last.match_indices('.').map(|(at, _)| &last[at..]);
        endings
            .filter_map(|ending| self.endings.get(ending).copied())
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Indexes of the routes that cover each pattern in turn.
    fn covered(patterns: &[&str]) -> Vec<Option<usize>> {
        let mut reach = Reach::default();
        let parsed = patterns.iter().map(|text| Pattern::parse(text).unwrap());
        parsed
            .enumerate()
            .map(|(index, pattern)| reach.add(index, &pattern))
            .collect()
    }

    #[test]
    fn later_route_inside_an_earlier_one_is_found() {
        for (wide, narrow) in [
            ("/a", "/a"),
            ("/*", "/a/b"),
            ("/*", "*.php"),
            ("/*", "/a/{b}/*"),
            ("/a/*", "/a/"),
            ("/a/*", "/a/b/*"),
            ("/a/*", "/a/*.php"),
            ("/a/{rest*}", "/a/*"),
            ("/a/{b}", "/a/c"),
            ("/a/{b}", "/a/{c}"),
            ("/{a}/*", "/b/c/*"),
            ("*.php", "/a/b.php"),
            ("*.gz", "/a/*.tar.gz"),
        ] {
            assert_eq!(
                covered(&[wide, narrow]),
                [None, Some(0)],
                "{wide} before {narrow}"
            );
        }
    }

    #[test]
    fn routes_that_match_something_of_their_own_are_kept() {
        for (first, second) in [
            ("/a", "/a/"),
            ("/a/*", "/a"),
            ("/a/*", "/ab"),
            ("/a/b", "/a/*"),
            ("/a/{b}", "/a/"),
            ("/a/{b}", "/a/{b}/"),
            ("/a/c", "/a/{b}"),
            ("*.php", "/a/*"),
            ("/a/*.php", "*.php"),
            ("*.tar.gz", "*.gz"),
        ] {
            assert_eq!(
                covered(&[first, second]),
                [None, None],
                "{first} before {second}"
            );
        }
    }
}
