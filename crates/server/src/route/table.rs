//! The first route that matches a path, found without walking the routes.
//!
//! Patterns without captures and stars stand in one hash map by their whole path. All others stand
//! in a tree with one level per segment: a node's children are its literal segments, by hash, at
//! most one for any segment, and those of which a part is captured, by hash of what stands before
//! and behind it. What ends in a star is noted at the node where the star stands, by
//! suffix where it has one. Every node knows the lowest route index in and below it, so a branch
//! that cannot beat what was found is not entered. Looking up costs the path's own segments, not
//! the number of routes; it allocates nothing. Regular expressions are tried after that, one by
//! one, as far as they stand before what was found.
//!
//! Only the first of routes with one pattern stands there; each knows the next one, for requests
//! that it leaves to it.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::pattern::{PathRegex, Pattern, PatternSegment, Tail};

/// Routes of a site, ready to be searched.
#[derive(Clone, Debug)]
pub struct RouteTable {
    exact: Map<u32>,
    nodes: Vec<Node>,
    /// By the routes' indexes: the next route with the same pattern.
    next: Vec<u32>,
    /// Most dots in any suffix: no more of a path's dots are tried.
    suffix_dots_max: usize,
    /// Routes with regular expressions, in their order.
    regexes: Vec<(PathRegex, u32)>,
}

/// The route of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteMatch {
    /// Index of the route, the lowest that matches.
    pub route: u32,
    /// Where the path leaves the route's fixed folder, see [`super::pattern::Captures::below`].
    pub below: usize,
}

/// Whether a route answers a request for a path that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteAnswer {
    /// It does.
    Yes,
    /// It does not, nor do others of its pattern before this one.
    No(Option<u32>),
}

/// Keys come from the config, never from clients, so a fixed seed will do.
type Map<V> = HashMap<Box<[u8]>, V, FixedState>;

/// Stands for "no route" and "no node"; greater than every index.
const NONE: u32 = u32::MAX;
const ROOT: u32 = 0;

#[derive(Clone, Debug)]
struct Node {
    /// Lowest route index in this node and below it.
    lowest: u32,
    /// Route that ends here, with a capture on its way.
    end: u32,
    /// Route with a star here and no suffix.
    rest: u32,
    suffixes: Map<u32>,
    literals: Map<u32>,
    capture: u32,
    parts: Option<Box<PartCaptures>>,
}

/// Nodes of segments of which a part is captured: by what stands before that part, then behind it.
#[derive(Clone, Debug, Default)]
struct PartCaptures {
    before: ByLength<ByLength<u32>>,
}

/// Values by texts, which are looked for with each length that one has.
#[derive(Clone, Debug)]
struct ByLength<V> {
    lengths: Vec<usize>,
    values: Map<V>,
}

impl RouteTable {
    /// Builds the table; a route's index is its pattern's.
    pub fn build<'a>(patterns: impl IntoIterator<Item = &'a Pattern>) -> RouteTable {
        let patterns: Vec<&Pattern> = patterns.into_iter().collect();
        let mut table = RouteTable {
            exact: Map::default(),
            nodes: vec![Node::new()],
            next: vec![NONE; patterns.len()],
            suffix_dots_max: 0,
            regexes: Vec::new(),
        };
        // Each takes the place of the one behind it.
        for (route, pattern) in patterns.iter().enumerate().rev() {
            table.insert(u32::try_from(route).unwrap_or(NONE), pattern);
        }
        table.regexes.reverse();
        table
    }

    /// The first route that matches `path`, which is in normal form.
    pub fn find(&self, path: &[u8]) -> Option<RouteMatch> {
        self.find_where(path, |_| RouteAnswer::Yes)
    }

    /// The next route with the same pattern.
    pub fn next(&self, route: u32) -> Option<u32> {
        let next = self.next.get(route as usize).copied();
        next.filter(|next| *next != NONE)
    }

    /// The first route that matches `path` and answers, as `answers` says of its index.
    pub fn find_where(
        &self,
        path: &[u8],
        answers: impl Fn(u32) -> RouteAnswer,
    ) -> Option<RouteMatch> {
        let mut search = RouteSearch {
            table: self,
            path,
            answers,
            best: RouteMatch {
                route: NONE,
                below: 0,
            },
        };
        if let Some(&route) = self.exact.get(path) {
            search.offer(route, last_piece_begin(path));
        }
        if path.first() == Some(&b'/') {
            search.visit(ROOT, 1);
        }
        for (regex, route) in &self.regexes {
            if *route >= search.best.route {
                break;
            }
            if regex.is_match(path) {
                search.offer(*route, 1);
            }
        }
        (search.best.route != NONE).then_some(search.best)
    }

    /// Adds a route before all that are there.
    fn insert(&mut self, route: u32, pattern: &Pattern) {
        let next = match (literal_path(pattern), &pattern.tail) {
            (Some(path), _) => self.exact.insert(path, route).unwrap_or(NONE),
            // Each is tried for itself.
            (None, Tail::Regex(regex)) => {
                self.regexes.push((regex.clone(), route));
                NONE
            }
            (None, _) => self.insert_into_tree(route, pattern),
        };
        if let Some(own) = self.next.get_mut(route as usize) {
            *own = next;
        }
    }

    /// The same for a pattern of several paths; gives the route that stood in its place.
    fn insert_into_tree(&mut self, route: u32, pattern: &Pattern) -> u32 {
        let mut at = ROOT;
        self.note_lowest(at, route);
        for segment in &pattern.segments {
            at = self.child(at, segment);
            self.note_lowest(at, route);
        }
        let node = &mut self.nodes[at as usize];
        match &pattern.tail {
            Tail::End => std::mem::replace(&mut node.end, route),
            Tail::Rest | Tail::NamedRest => std::mem::replace(&mut node.rest, route),
            Tail::Suffix(suffix) => {
                let dots = memchr::memchr_iter(b'.', suffix).count();
                self.suffix_dots_max = self.suffix_dots_max.max(dots);
                let before = node.suffixes.insert(suffix.clone(), route);
                before.unwrap_or(NONE)
            }
            Tail::Regex(_) => NONE,
        }
    }

    fn note_lowest(&mut self, node: u32, route: u32) {
        let lowest = &mut self.nodes[node as usize].lowest;
        *lowest = route.min(*lowest);
    }

    /// The child of a node for one segment, made when it is missing.
    fn child(&mut self, parent: u32, segment: &PatternSegment) -> u32 {
        let fresh = self.nodes.len() as u32;
        let node = &mut self.nodes[parent as usize];
        let child = match segment {
            PatternSegment::Literal(literal) => {
                *node.literals.entry(literal.clone()).or_insert(fresh)
            }
            PatternSegment::Capture { before, after } if before.is_empty() && after.is_empty() => {
                node.capture = node.capture.min(fresh);
                node.capture
            }
            PatternSegment::Capture { before, after } => {
                let parts = node.parts.get_or_insert_default();
                let behind = parts.before.entry(before, ByLength::default());
                *behind.entry(after, fresh)
            }
        };
        if child == fresh {
            self.nodes.push(Node::new());
        }
        child
    }
}

impl Node {
    fn new() -> Node {
        Node {
            lowest: NONE,
            end: NONE,
            rest: NONE,
            suffixes: Map::default(),
            literals: Map::default(),
            capture: NONE,
            parts: None,
        }
    }
}

impl<V> Default for ByLength<V> {
    fn default() -> ByLength<V> {
        ByLength {
            lengths: Vec::new(),
            values: Map::default(),
        }
    }
}

impl<V> ByLength<V> {
    /// The value of a text, which is `fresh` where there was none.
    fn entry(&mut self, text: &[u8], fresh: V) -> &mut V {
        if !self.lengths.contains(&text.len()) {
            self.lengths.push(text.len());
        }
        self.values.entry(text.into()).or_insert(fresh)
    }
}

impl PartCaptures {
    /// Where a piece leads.
    fn nodes<'a>(&'a self, piece: &'a [u8]) -> impl Iterator<Item = u32> + 'a {
        let splits = self.before.lengths.iter();
        let splits = splits.filter_map(|length| piece.split_at_checked(*length));
        let groups =
            splits.filter_map(|(before, rest)| Some((self.before.values.get(before)?, rest)));
        groups.flat_map(|(group, rest)| {
            // A capture takes a byte at least.
            let fitting = group.lengths.iter().filter(|length| **length < rest.len());
            fitting.filter_map(|length| group.values.get(&rest[rest.len() - length..]).copied())
        })
    }
}

struct RouteSearch<'a, F> {
    table: &'a RouteTable,
    path: &'a [u8],
    answers: F,
    best: RouteMatch,
}

impl<F: Fn(u32) -> RouteAnswer> RouteSearch<'_, F> {
    /// Looks at a node that a piece, beginning at `begin`, still follows. The depth of the
    /// recursion is that of the deepest pattern.
    fn visit(&mut self, node: u32, begin: usize) {
        let node = &self.table.nodes[node as usize];
        if node.lowest >= self.best.route {
            return;
        }
        self.offer(node.rest, begin);
        self.visit_suffixes(node, begin);
        if node.literals.is_empty() && node.capture == NONE && node.parts.is_none() {
            return;
        }
        let rest = &self.path[begin..];
        let slash = memchr::memchr(b'/', rest);
        let piece = &rest[..slash.unwrap_or(rest.len())];
        let literal = node.literals.get(piece).copied().unwrap_or(NONE);
        let capture = if piece.is_empty() { NONE } else { node.capture };
        let parts = node.parts.iter().flat_map(|parts| parts.nodes(piece));
        for child in [literal, capture].into_iter().chain(parts) {
            match slash {
                _ if child == NONE => {}
                Some(slash) => self.visit(child, begin + slash + 1),
                None => self.offer(self.table.nodes[child as usize].end, begin),
            }
        }
    }

    fn visit_suffixes(&mut self, node: &Node, begin: usize) {
        if node.suffixes.is_empty() {
            return;
        }
        let last = &self.path[last_piece_begin(self.path)..];
        for dot in memchr::memrchr_iter(b'.', last).take(self.table.suffix_dots_max) {
            if let Some(&route) = node.suffixes.get(&last[dot..]) {
                self.offer(route, begin);
            }
        }
    }

    /// Takes a route, or the next one of its pattern that answers, if it is better than the best.
    fn offer(&mut self, mut route: u32, below: usize) {
        while route < self.best.route {
            match (self.answers)(route) {
                RouteAnswer::Yes => self.best = RouteMatch { route, below },
                RouteAnswer::No(next) => route = next.unwrap_or(NONE),
            }
        }
    }
}

/// The path of a pattern that matches only one.
fn literal_path(pattern: &Pattern) -> Option<Box<[u8]>> {
    let Tail::End = pattern.tail else { return None };
    let mut path = Vec::new();
    for segment in &pattern.segments {
        let PatternSegment::Literal(literal) = segment else {
            return None;
        };
        path.push(b'/');
        path.extend_from_slice(literal);
    }
    Some(path.into())
}

fn last_piece_begin(path: &[u8]) -> usize {
    memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::dice::Dice;

    fn patterns(texts: &[&str]) -> Vec<Pattern> {
        texts
            .iter()
            .map(|text| Pattern::parse(text).unwrap())
            .collect()
    }

    /// What a walk over the routes, one by one, finds, where those of these bits do not answer.
    fn walk(patterns: &[Pattern], path: &str, silent: u32) -> Option<RouteMatch> {
        let mut all = patterns.iter().zip(0..);
        all.find_map(|(pattern, route)| {
            if silent & (1 << route) != 0 {
                return None;
            }
            let below = pattern.matches(path.as_bytes())?.below();
            Some(RouteMatch { route, below })
        })
    }

    fn answer(table: &RouteTable, is_yes: bool, route: u32) -> RouteAnswer {
        match is_yes {
            true => RouteAnswer::Yes,
            false => RouteAnswer::No(table.next(route)),
        }
    }

    #[test]
    fn first_route_wins_whatever_its_kind() {
        let kinds = [
            "/a/b.x", "/a/*", "*.x", "/a/*.x", "/{p}/b.x", "/a/{r*}", "/a/{p}.x", "/*", "~ b[.]x$",
        ];
        for first in 0..kinds.len() {
            let mut order = kinds;
            order.swap(0, first);
            let table = RouteTable::build(&patterns(&order));
            assert_eq!(
                table.find(b"/a/b.x").map(|found| found.route),
                Some(0),
                "{order:?}"
            );
        }
    }

    #[test]
    fn nothing_matches() {
        let table = RouteTable::build(&patterns(&["/a", "/b/*", "/{p}/c", "*.x"]));
        for path in ["/", "/b", "/a/", "/p/d", "//c", "/x", "", "a"] {
            assert_eq!(table.find(path.as_bytes()), None, "{path}");
        }
        assert_eq!(RouteTable::build(&[]).find(b"/"), None);
    }

    #[test]
    fn of_equal_patterns_the_first_wins() {
        let table = RouteTable::build(&patterns(&["/a", "/a", "*.x", "*.x", "/{p}/q", "/{r}/q"]));
        assert_eq!(table.find(b"/a"), Some(RouteMatch { route: 0, below: 1 }));
        assert_eq!(table.find(b"/b.x"), Some(RouteMatch { route: 2, below: 1 }));
        assert_eq!(table.find(b"/z/q"), Some(RouteMatch { route: 4, below: 3 }));
    }

    #[test]
    fn route_that_does_not_answer_leaves_it_to_the_next_and_then_to_wider_ones() {
        let texts = [
            "/a", "/{p}", "/a", "*.x", "/b.x", "*.x", "/{q}", "/a", "/*", "/*",
        ];
        let table = RouteTable::build(&patterns(&texts));
        let found = |path: &str, silent: &[u32]| {
            let found = table.find_where(path.as_bytes(), |route| {
                answer(&table, !silent.contains(&route), route)
            });
            found.map(|found| found.route)
        };
        for (path, silent, expected) in [
            ("/a", &[][..], Some(0)),
            ("/a", &[0], Some(1)),
            ("/a", &[0, 1], Some(2)),
            ("/a", &[0, 1, 2], Some(6)),
            ("/a", &[0, 1, 2, 6], Some(7)),
            ("/a", &[0, 1, 2, 6, 7], Some(8)),
            ("/a", &[0, 1, 2, 6, 7, 8], Some(9)),
            ("/a", &[0, 1, 2, 6, 7, 8, 9], None),
            ("/b.x", &[1], Some(3)),
            ("/b.x", &[1, 3], Some(4)),
            ("/b.x", &[1, 3, 4], Some(5)),
        ] {
            assert_eq!(found(path, silent), expected, "{path} without {silent:?}");
        }
    }

    #[test]
    fn many_dots_are_not_all_tried() {
        let table = RouteTable::build(&patterns(&["*.tar.gz", "*.gz"]));
        assert_eq!(table.find(b"/x.tar.gz").map(|found| found.route), Some(0));
        assert_eq!(table.find(b"/a.b.c.gz").map(|found| found.route), Some(1));
        assert_eq!(
            table.find(format!("/{}", ".".repeat(5000)).as_bytes()),
            None
        );
    }

    #[test]
    fn finds_what_a_walk_over_the_routes_finds() {
        let segments = [
            "a", "b", "ab", "x.y", "x.z.y", "{p}", "{q}", "a{p}", "{p}b", "x{q}y", "{p}.y",
        ];
        let tails = ["", "", "/", "/*", "/*.y", "/*.z.y", "/{r*}"];
        let regexes = ["~ b", "~ ^/a(/|$)", "~* ^/(?<p>[^/]+)/X[.]Y"];
        let pieces = ["a", "b", "ab", "c", "x.y", "x.z.y", ".y", ""];
        let mut dice = Dice::seeded(3);
        let mut hits = 0;
        for _ in 0..4_000 {
            let mut routes = Vec::new();
            for _ in 0..dice.below(12) {
                let mut text = String::new();
                for _ in 0..dice.below(4) {
                    text.push('/');
                    text.push_str(dice.pick(&segments));
                }
                match dice.below(8) {
                    0 => text = (*dice.pick(&regexes)).to_owned(),
                    _ => text.push_str(dice.pick(&tails)),
                }
                routes.extend(Pattern::parse(&text));
            }
            let table = RouteTable::build(&routes);
            for _ in 0..8 {
                let mut path = String::new();
                for _ in 0..=dice.below(4) {
                    path.push('/');
                    path.push_str(dice.pick(&pieces));
                }
                let expected = walk(&routes, &path, 0);
                hits += usize::from(expected.is_some());
                assert_eq!(
                    table.find(path.as_bytes()),
                    expected,
                    "{path} in {routes:?}"
                );
                // Some routes do not answer.
                let silent = dice.below(1 << 12) as u32;
                let answers = |route: u32| answer(&table, silent & (1 << route) == 0, route);
                assert_eq!(
                    table.find_where(path.as_bytes(), answers),
                    walk(&routes, &path, silent),
                    "{path} in {routes:?} without {silent:b}"
                );
            }
        }
        assert!(hits > 8_000, "{hits}");
    }
}
