//! The media type of a file, by the suffix of its name.
//!
//! The config's own table comes first, then ours, which names what the library's misses or has
//! under an outdated name, then the library's.

use std::collections::HashMap;
use std::fmt;

use foldhash::fast::FixedState;

/// Media types of a route's files.
#[derive(Clone, Debug)]
pub struct MediaTypes {
    /// By suffix, in lower case and without its dot.
    own: HashMap<Box<str>, Box<str>, FixedState>,
    /// Most dots in any suffix of `own`.
    own_dots_max: usize,
    charset: Box<str>,
}

/// A media type, and the charset that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaType<'a> {
    /// The type as the table has it; only the config's may have parameters.
    pub name: &'a str,
    /// `charset` to be added.
    pub charset: Option<&'a str>,
}

impl MediaTypes {
    /// `own` is suffix and type, the suffix with or without its dot (`.tar.gz` is one too). An
    /// empty `charset` is none.
    pub fn new<'a>(own: impl IntoIterator<Item = (&'a str, &'a str)>, charset: &str) -> MediaTypes {
        let mut types = MediaTypes {
            own: HashMap::default(),
            own_dots_max: 0,
            charset: charset.into(),
        };
        for (suffix, media_type) in own {
            let suffix = suffix
                .strip_prefix('.')
                .unwrap_or(suffix)
                .to_ascii_lowercase();
            types.own_dots_max = types.own_dots_max.max(1 + suffix.matches('.').count());
            types.own.insert(suffix.into(), media_type.into());
        }
        types
    }

    /// The type of a file called `name`; the longest suffix known to the config counts.
    pub fn of(&self, name: &[u8]) -> MediaType<'_> {
        let name = self.name_of(name);
        let is_complete = self.charset.is_empty() || name.contains(';') || !is_text(name);
        MediaType {
            name,
            charset: (!is_complete).then_some(&*self.charset),
        }
    }

    /// What of a name decides its type: files that have it in common have the same one.
    pub fn deciding<'n>(&self, name: &'n [u8]) -> &'n [u8] {
        let mut dots = memchr::memrchr_iter(b'.', name).take(self.own_dots_max.max(1));
        match (dots.next(), dots.last()) {
            (None, _) => b"",
            // A name that only begins with a dot is another case.
            (Some(0), _) => &name[1..],
            (Some(last), first) => &name[first.unwrap_or(last)..],
        }
    }

    fn name_of(&self, file: &[u8]) -> &str {
        let mut dots: Vec<usize> = memchr::memrchr_iter(b'.', file)
            .take(self.own_dots_max.max(1))
            .collect();
        let Some(&last) = dots.first() else {
            return UNKNOWN;
        };
        dots.reverse();
        for suffix in dots.iter().filter_map(|dot| lower_case(&file[dot + 1..])) {
            if let Some(own) = self.own.get(&*suffix) {
                return own;
            }
        }
        // A name that only begins with a dot has no suffix.
        let suffix = if last == 0 {
            None
        } else {
            lower_case(&file[last + 1..])
        };
        suffix.map_or(UNKNOWN, |suffix| built_in(&suffix))
    }
}

impl MediaType<'_> {
    /// The type without parameters.
    pub fn essence(&self) -> &str {
        self.name.split(';').next().unwrap_or_default().trim_end()
    }

    /// True when one of the patterns names it: `text/html`, `text/*`, `*/*`.
    pub fn is_one_of<'p>(&self, patterns: impl IntoIterator<Item = &'p str>) -> bool {
        let essence = self.essence();
        patterns
            .into_iter()
            .any(|pattern| match pattern.strip_suffix('*') {
                Some("*/") => true,
                Some(group) if group.ends_with('/') => essence
                    .get(..group.len())
                    .is_some_and(|start| start.eq_ignore_ascii_case(group)),
                _ => pattern.eq_ignore_ascii_case(essence),
            })
    }
}

impl fmt::Display for MediaType<'_> {
    /// The value of `Content-Type`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.charset {
            Some(charset) => write!(f, "{}; charset={charset}", self.name),
            None => f.write_str(self.name),
        }
    }
}

const UNKNOWN: &str = "application/octet-stream";

/// No suffix in use is longer.
const SUFFIX_BYTES_MAX: usize = 64;

fn lower_case(suffix: &[u8]) -> Option<String> {
    if suffix.len() > SUFFIX_BYTES_MAX {
        return None;
    }
    std::str::from_utf8(suffix)
        .ok()
        .map(str::to_ascii_lowercase)
}

fn built_in(suffix: &str) -> &'static str {
    if let Ok(index) = BETTER.binary_search_by_key(&suffix, |&(known, _)| known) {
        return BETTER[index].1;
    }
    match mime_guess::from_ext(suffix).first_raw() {
        Some(known) => known,
        None => UNKNOWN,
    }
}

/// Text for people or for browsers to show: what a wrong charset would spoil. JSON is always UTF-8.
fn is_text(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("text/")
        || name.ends_with("+xml")
        || matches!(
            &*name,
            "application/javascript" | "application/xml" | "application/xml-dtd"
        )
}

/// Sorted by suffix.
const BETTER: &[(&str, &str)] = &[
    ("adoc", "text/plain"),
    ("br", "application/x-brotli"),
    ("cjs", "text/javascript"),
    ("deb", "application/vnd.debian.binary-package"),
    ("go", "text/plain"),
    ("ico", "image/vnd.microsoft.icon"),
    ("java", "text/plain"),
    ("jsx", "text/javascript"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("map", "application/json"),
    ("md", "text/markdown"),
    ("mjs", "text/javascript"),
    ("otf", "font/otf"),
    ("rb", "text/plain"),
    ("rpm", "application/x-rpm"),
    ("rst", "text/plain"),
    ("toml", "application/toml"),
    ("ts", "video/mp2t"),
    ("tsx", "text/plain"),
    ("ttf", "font/ttf"),
    ("vue", "text/plain"),
    ("woff", "font/woff"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zst", "application/zstd"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn types() -> MediaTypes {
        let own = [
            (".Page", "text/html"),
            ("tar.gz", "application/x-tgz"),
            ("gz", "application/x-own-gz"),
            ("latin", "text/plain; charset=iso-8859-1"),
        ];
        MediaTypes::new(own, "utf-8")
    }

    #[test]
    fn names_have_the_type_of_what_decides_it() {
        let types = types();
        let names = [
            "a.html", "b.HTML", ".html", "html", "", ".", "a.", ".a.gz", "x.a.gz", "a.tar.gz",
            "b.tar.gz", ".tar.gz", "tar.gz", "a.tar", ".page", "a.page", "a.b.page", "a.b.c",
        ];
        for one in names {
            for other in names {
                let [one, other] = [one.as_bytes(), other.as_bytes()];
                if types.deciding(one) == types.deciding(other) {
                    assert_eq!(types.of(one), types.of(other), "{one:?} {other:?}");
                }
            }
        }
        assert_eq!(types.deciding(b"x.y.a.gz"), b".a.gz");
        assert_eq!(types.deciding(b"x.gz"), b".gz");
    }

    #[test]
    fn types_by_suffix() {
        let types = types();
        let cases = [
            ("index.html", "text/html; charset=utf-8"),
            ("INDEX.HTM", "text/html; charset=utf-8"),
            ("a.css", "text/css; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("a.svg", "image/svg+xml; charset=utf-8"),
            ("a.xml", "text/xml; charset=utf-8"),
            ("feed.atom", "application/atom+xml; charset=utf-8"),
            ("a.txt", "text/plain; charset=utf-8"),
            ("a.md", "text/markdown; charset=utf-8"),
            ("a.json", "application/json"),
            ("a.js.map", "application/json"),
            ("a.wasm", "application/wasm"),
            ("a.woff2", "font/woff2"),
            ("a.png", "image/png"),
            ("a.jpeg", "image/jpeg"),
            ("a.webp", "image/webp"),
            ("a.avif", "image/avif"),
            ("a.ico", "image/vnd.microsoft.icon"),
            ("a.mp4", "video/mp4"),
            ("a.pdf", "application/pdf"),
            ("a.zst", "application/zstd"),
            ("README", UNKNOWN),
            ("", UNKNOWN),
            (".html", UNKNOWN),
            ("a.", UNKNOWN),
            ("a.nosuchsuffix", UNKNOWN),
        ];
        for (file, expected) in cases {
            assert_eq!(types.of(file.as_bytes()).to_string(), expected, "{file}");
        }
        assert_eq!(types.of(b"a.\xff").name, UNKNOWN);
    }

    #[test]
    fn the_configs_own_types_come_first_and_the_longest_suffix_counts() {
        let types = types();
        let cases = [
            ("a.page", "text/html; charset=utf-8"),
            ("a.b.TAR.GZ", "application/x-tgz"),
            ("a.gz", "application/x-own-gz"),
            ("a.latin", "text/plain; charset=iso-8859-1"),
        ];
        for (file, expected) in cases {
            assert_eq!(types.of(file.as_bytes()).to_string(), expected, "{file}");
        }
        assert_eq!(
            MediaTypes::new([], "").of(b"a.html").to_string(),
            "text/html"
        );
    }

    #[test]
    fn patterns_name_types_and_groups() {
        let latin = types();
        let latin = latin.of(b"a.latin");
        assert_eq!(latin.essence(), "text/plain");
        for pattern in ["text/plain", "TEXT/PLAIN", "text/*", "Text/*", "*/*"] {
            assert!(latin.is_one_of([pattern]), "{pattern}");
        }
        for pattern in ["text/html", "text", "te*", "image/*", "*", ""] {
            assert!(!latin.is_one_of([pattern]), "{pattern}");
        }
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(BETTER.is_sorted_by(|one, other| one.0 < other.0));
    }
}
