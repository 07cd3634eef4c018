//! The texts a config is made of, each read once, with the environment values they name.
//!
//! Keeper and server must agree on what the config says, so one reads and hands the same texts to
//! the other: [`ConfigSources::encode`] and [`ConfigSources::decode`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::SourceLocation;
use super::fault::Spot;
use super::parse::parse;

/// Looks up a variable of the environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The texts a config is made of, and the values of the variables they name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigSources {
    files: Vec<ConfigSource>,
    variables: BTreeMap<String, String>,
}

/// One text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ConfigSource {
    /// As the user knows it; for messages.
    name: Arc<str>,
    /// Where relative paths begin; absolute.
    dir: PathBuf,
    text: String,
    /// Offset of each line's first byte.
    lines: Vec<usize>,
}

/// Whether a text has this, or an escape that may hide it.
pub(crate) fn mentions(text: &str, what: &str) -> bool {
    text.contains(what) || text.contains('\\')
}

impl ConfigSources {
    /// Names of the texts, the main one first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|source| &*source.name)
    }

    /// Where each text stands on the disk, if it came from there, and the text.
    pub fn files(&self) -> impl Iterator<Item = (PathBuf, &str)> {
        self.files.iter().map(|source| {
            let name = Path::new(&*source.name).file_name();
            (
                source.dir.join(name.unwrap_or_default()),
                source.text.as_str(),
            )
        })
    }

    /// The text as a TOML string that means just this text, for configs made from a command line.
    pub fn quote(text: &str) -> String {
        toml_edit::Value::from(text.replace("${", "$${")).to_string()
    }

    /// Everything, as bytes for another process of the same program.
    ///
    /// Layout: magic, count of files, per file name, folder and text, count of variables, per
    /// variable name and value. Counts and lengths are 64-bit little-endian.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_number(&mut out, self.files.len());
        for source in &self.files {
            put(&mut out, source.name.as_bytes());
            put(&mut out, source.dir.as_os_str().as_bytes());
            put(&mut out, source.text.as_bytes());
        }
        put_number(&mut out, self.variables.len());
        for (name, value) in &self.variables {
            put(&mut out, name.as_bytes());
            put(&mut out, value.as_bytes());
        }
        out
    }

    /// What [`ConfigSources::encode`] made; `None` when the bytes are not that.
    pub fn decode(bytes: &[u8]) -> Option<ConfigSources> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut sources = ConfigSources::default();
        for _ in 0..take_number(&mut rest)? {
            let name = take_text(&mut rest)?;
            let dir = OsString::from_vec(take(&mut rest)?.to_vec());
            let text = take_text(&mut rest)?;
            sources.add(name, PathBuf::from(dir), text);
        }
        for _ in 0..take_number(&mut rest)? {
            let name = take_text(&mut rest)?;
            let value = take_text(&mut rest)?;
            sources.variables.insert(name, value);
        }
        (rest.is_empty() && !sources.files.is_empty()).then_some(sources)
    }

    pub(crate) fn add(&mut self, name: String, dir: PathBuf, text: String) -> usize {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0)
            .chain(newlines.map(|(at, _)| at + 1))
            .collect();
        self.files.push(ConfigSource {
            name: name.into(),
            dir,
            text,
            lines,
        });
        self.files.len() - 1
    }

    pub(crate) fn add_variable(&mut self, name: &str, value: String) {
        self.variables.insert(name.to_owned(), value);
    }

    /// The value of a variable that the texts name.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Whether a text sets this key outside of all tables, or is no TOML.
    pub fn sets(&self, key: &str) -> bool {
        let sets = |text| parse(text).document.is_none_or(|all| all.contains_key(key));
        let mut texts = self.files.iter().map(|source| source.text.as_str());
        texts.any(|text| mentions(text, key) && sets(text))
    }

    /// How many texts there are.
    pub fn count(&self) -> usize {
        self.files.len()
    }

    /// A text, by its index.
    pub fn text(&self, source: usize) -> &str {
        &self.files[source].text
    }

    /// The folder at which relative paths of a text begin.
    pub fn dir(&self, source: usize) -> &Path {
        &self.files[source].dir
    }

    /// A place for people.
    pub fn place(&self, spot: Spot) -> SourceLocation {
        let source = &self.files[spot.source];
        let line = source.lines.partition_point(|start| *start <= spot.start);
        let line_start = source.lines[line - 1];
        let column = source.text[line_start..spot.start].chars().count() + 1;
        SourceLocation {
            file: Arc::clone(&source.name),
            line,
            column,
        }
    }

    /// Where a part of a string value stands, if the value stands there as it is, else the value.
    pub fn inside(&self, spot: Spot, value: &str, part: Range<usize>) -> Spot {
        let written = &self.text(spot.source)[spot.start..spot.end];
        let is_plain = written.len() == value.len() + 2 && written[1..].starts_with(value);
        if !is_plain || value.get(part.clone()).is_none() {
            return spot;
        }
        let start = spot.start + 1 + part.start;
        Spot {
            source: spot.source,
            start,
            end: start + part.len(),
        }
    }

    /// A path named in a source: relative ones begin at its folder.
    pub fn resolve(&self, source: usize, path: &str) -> PathBuf {
        let joined = self.dir(source).join(path);
        joined
            .components()
            .filter(|part| !matches!(part, Component::CurDir))
            .collect()
    }
}

const MAGIC: &[u8] = b"hob sources 1\n";

fn put_number(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&(number as u64).to_le_bytes());
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn take_number(rest: &mut &[u8]) -> Option<usize> {
    let (number, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    usize::try_from(u64::from_le_bytes(*number)).ok()
}

fn take<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let len = take_number(rest)?;
    let (bytes, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(bytes)
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    String::from_utf8(take(rest)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> ConfigSources {
        let mut sources = ConfigSources::default();
        sources.add(
            "hob.toml".into(),
            "/etc/hob".into(),
            "a = 1\nb = 2\n".into(),
        );
        sources.add("x.toml".into(), "/etc/hob/conf.d".into(), String::new());
        sources.add_variable("PORT", "80".into());
        sources
    }

    #[test]
    fn decoded_is_what_was_encoded() {
        assert_eq!(ConfigSources::decode(&sample().encode()), Some(sample()));
    }

    #[test]
    fn keys_are_those_outside_of_tables_however_they_are_written() {
        for (text, is_set) in [
            ("control = \"off\"\n", true),
            ("\"contr\\u006fl\" = \"off\"\n", true),
            ("control = [\n", true),
            (
                "# control\n[[site]]\ncache_control = \"\"\ncontrol = 1\n",
                false,
            ),
            ("a = \"\\t\"\n", false),
        ] {
            let mut sources = sample();
            sources.add("y.toml".into(), "/etc/hob".into(), text.to_owned());
            assert_eq!(sources.sets("control"), is_set, "{text}");
        }
    }

    #[test]
    fn cut_or_lengthened_bytes_are_refused() {
        let bytes = sample().encode();
        for len in 0..bytes.len() {
            assert_eq!(ConfigSources::decode(&bytes[..len]), None, "cut to {len}");
        }
        assert_eq!(ConfigSources::decode(&[&bytes[..], b"x"].concat()), None);
        let mut huge = MAGIC.to_vec();
        huge.extend_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(ConfigSources::decode(&huge), None);
    }

    #[test]
    fn place_counts_lines_and_characters_from_one() {
        let mut sources = ConfigSources::default();
        sources.add("n".into(), "/".into(), "ä = 1\nbö = 2".into());
        let at = |start| {
            sources.place(Spot {
                source: 0,
                start,
                end: start,
            })
        };
        assert_eq!((at(0).line, at(0).column), (1, 1));
        assert_eq!((at(3).line, at(3).column), (1, 3));
        assert_eq!((at(7).line, at(7).column), (2, 1));
        assert_eq!((at(14).line, at(14).column), (2, 7));
    }
}
