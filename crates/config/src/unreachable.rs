//! Routes that are never reached: an earlier one matches everything they match. One with a `when`
//! is not added: it leaves requests to those behind it.
//!
//! A tree of the patterns seen so far, by segment. A later pattern is looked up along every branch
//! that covers it, so ten thousand routes take no longer than their text is long.

use std::collections::HashMap;

use super::route::pattern::{PathRegex, Pattern, PatternSegment, Tail};

/// The patterns of a site's routes so far.
#[derive(Default)]
pub(crate) struct EarlierRoutes {
    root: Node,
    regexes: Vec<(PathRegex, usize)>,
}

type NodesByText = HashMap<Box<[u8]>, Node>;

#[derive(Default)]
struct Node {
    literal: NodesByText,
    /// Captures: by what stands before one, then by what stands behind it.
    captures: HashMap<Box<[u8]>, NodesByText>,
    /// The first route that ends here.
    exact: Option<usize>,
    /// The first that takes everything below.
    anything: Option<usize>,
    /// The first that takes everything below with this ending.
    endings: HashMap<Box<[u8]>, usize>,
}

impl EarlierRoutes {
    /// The earlier route that covers a pattern.
    pub(crate) fn covering(&self, pattern: &Pattern) -> Option<usize> {
        let covering = self.root.covering(&pattern.segments, &pattern.tail);
        let Tail::Regex(regex) = &pattern.tail else {
            return covering;
        };
        let same = self.regexes.iter().find(|(earlier, _)| earlier == regex);
        covering
            .into_iter()
            .chain(same.map(|(_, index)| *index))
            .min()
    }

    /// Takes the next pattern; the answer is the earlier route that covers it.
    pub(crate) fn add(&mut self, index: usize, pattern: &Pattern) -> Option<usize> {
        let covered = self.covering(pattern);
        let mut node = &mut self.root;
        for segment in &pattern.segments {
            node = match segment {
                PatternSegment::Literal(text) => node.literal.entry(text.clone()).or_default(),
                PatternSegment::Capture { before, after } => {
                    let behind = node.captures.entry(before.clone()).or_default();
                    behind.entry(after.clone()).or_default()
                }
            };
        }
        match &pattern.tail {
            Tail::End => _ = node.exact.get_or_insert(index),
            Tail::Rest | Tail::NamedRest => _ = node.anything.get_or_insert(index),
            Tail::Suffix(ending) => _ = node.endings.entry(ending.clone()).or_insert(index),
            Tail::Regex(regex) => self.regexes.push((regex.clone(), index)),
        }
        covered
    }
}

impl Node {
    /// The first route at or below this node that matches all that the rest of a pattern matches.
    fn covering(&self, segments: &[PatternSegment], tail: &Tail) -> Option<usize> {
        // What is taken below a node begins with one more piece.
        let has_more = !segments.is_empty() || *tail != Tail::End;
        let below = has_more.then(|| [self.anything, self.ending(segments, tail)]);
        let here = below.into_iter().flatten().flatten().min();
        let Some((first, rest)) = segments.split_first() else {
            let exact = self.exact.filter(|_| *tail == Tail::End);
            return here.into_iter().chain(exact).min();
        };
        let literal = match first {
            PatternSegment::Literal(text) => self.literal.get(text),
            PatternSegment::Capture { .. } => None,
        };
        let further = literal.into_iter().chain(self.captures_covering(first));
        here.into_iter()
            .chain(further.filter_map(|node| node.covering(rest, tail)))
            .min()
    }

    /// Where captures lead that take all that a segment takes.
    fn captures_covering(&self, segment: &PatternSegment) -> Vec<&Node> {
        let (begin, end, room) = match segment {
            PatternSegment::Literal(text) => (text, text, text.len()),
            PatternSegment::Capture { before, after } => (before, after, usize::MAX),
        };
        let mut covering = Vec::new();
        for before in (0..=begin.len()).map(|length| &begin[..length]) {
            let Some(group) = self.captures.get(before) else {
                continue;
            };
            // A capture takes a byte at least.
            let suffixes = (0..=end.len()).map(|length| &end[end.len() - length..]);
            let fitting = suffixes.take_while(|after| before.len() + after.len() < room);
            covering.extend(fitting.filter_map(|after| group.get(after)));
        }
        covering
    }

    fn ending(&self, segments: &[PatternSegment], tail: &Tail) -> Option<usize> {
        if self.endings.is_empty() {
            return None;
        }
        let last = match (tail, segments.last()) {
            (Tail::Suffix(ending), _) => ending,
            (
                Tail::End,
                Some(PatternSegment::Literal(last) | PatternSegment::Capture { after: last, .. }),
            ) => last,
            _ => return None,
        };
        let endings = memchr::memchr_iter(b'.', last).map(|at| &last[at..]);
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
        let mut seen = EarlierRoutes::default();
        let all = patterns.iter().map(|text| Pattern::parse(text).unwrap());
        all.enumerate()
            .map(|(index, pattern)| seen.add(index, &pattern))
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
            ("/{a}", "/~{b}"),
            ("/x{a}", "/xy{b}.html"),
            ("/{a}.html", "/b.html"),
            ("*.html", "/{a}.html"),
            ("/*", "~ ^/a"),
            ("~ ^/a", "~ ^/a"),
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
            ("/{a}.html", "/.html"),
            ("/xy{a}", "/x{b}"),
            ("/a{b}a", "/aa"),
            ("/a/*", "~ ^/a/"),
            ("~ ^/a", "/a"),
            ("~ ^/a", "~* ^/a"),
        ] {
            assert_eq!(
                covered(&[first, second]),
                [None, None],
                "{first} before {second}"
            );
        }
    }

    /// The tree against the patterns' own pairwise comparison, on every pattern of up to two
    /// segments from a few words.
    #[test]
    fn answers_equal_comparing_each_pair() {
        let words = ["a", "b.php", "{x}", "b{x}", "{x}.php", "b{x}p"];
        let ends = [
            "",
            "a",
            "b.php",
            "c.tar.php",
            "{y}",
            "c.{y}",
            "{y}.tar.php",
            "*",
            "{r*}",
            "*.php",
            "*.tar.php",
        ];
        let mut texts: Vec<String> = Vec::new();
        for end in ends {
            texts.push(format!("/{end}"));
            texts.extend(words.iter().map(|word| format!("/{word}/{end}")));
        }
        let patterns: Vec<_> = texts
            .iter()
            .map(|text| Pattern::parse(text).unwrap())
            .collect();
        for (wide, wide_pattern) in texts.iter().zip(&patterns) {
            for (narrow, narrow_pattern) in texts.iter().zip(&patterns) {
                let found = covered(&[wide, narrow])[1].is_some();
                assert_eq!(
                    found,
                    wide_pattern.covers(narrow_pattern),
                    "{wide} before {narrow}"
                );
            }
        }
    }
}
