//! Reading the texts of a config, and turning them into a [`Config`].
//!
//! The order: texts are read once (with those they include), parsed, walked by the schema into one
//! tree, built into types, and checked across keys. Every step reports what it finds and goes on.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use hob_trace::format::variables_of;
use rustix::fs::{FileType, Mode, OFlags};
use toml_edit::visit::Visit;
use toml_edit::{Document, Formatted, Item};

use super::check::{Built, Disk, check};
use super::fault::{Errors, Faults, Spot, Warnings, printable};
use super::foreign::language_of;
use super::parse::parse;
use super::schema::Schema;
use super::shared::share;
use super::sources::{ConfigSources, Environment, mentions};
use super::tree::Section;
use super::walk::{Required, walk};
use super::{Config, Handlers, build, expand, hidden};

/// The config the sources describe, checked against a disk.
///
/// # Errors
/// Every mistake in the sources, in their order.
pub fn load_with<H: Handlers>(
    sources: &ConfigSources,
    disk: &dyn Disk,
) -> Result<(Config<H>, Warnings), Errors> {
    let (built, warnings) = load_built(sources, disk, &mut |_, _| {})?;
    Ok((built.config, warnings))
}

/// As [`load_with`], with where the parts of the config stand; `look` tells what else is wrong with
/// them, in the same report.
///
/// # Errors
/// Every mistake in the sources, in their order.
pub fn load_built<H: Handlers>(
    sources: &ConfigSources,
    disk: &dyn Disk,
    look: &mut dyn FnMut(&Built<H>, &mut Faults<'_>),
) -> Result<(Built<H>, Warnings), Errors> {
    let mut faults = Faults::new(sources);
    let (root, whole) = walk_all(H::schema(), sources, &mut faults);
    if whole == Required::Ignored {
        // A file that could not be read in full would have us report consequences.
        return Err(faults.finish().err().unwrap_or_default());
    }
    let built = build::build(&root, &mut faults);
    check(&built, disk, &mut faults);
    look(&built, &mut faults);
    let warnings = faults.finish()?;
    Ok((built, warnings))
}

/// The sources as one tree, with the defaults of the schema where nothing is set. What is wrong in
/// them is left out.
pub fn tree_of(schema: &'static Schema, sources: &ConfigSources) -> Section {
    walk_all(schema, sources, &mut Faults::new(sources)).0
}

/// The trees of all sources as one.
fn walk_all(
    schema: &'static Schema,
    sources: &ConfigSources,
    faults: &mut Faults<'_>,
) -> (Section, Required) {
    let mut root = Section::new(
        schema.root,
        Spot {
            source: 0,
            start: 0,
            end: 0,
        },
    );
    let mut whole = Required::Told;
    for source in 0..sources.count() {
        let text = sources.text(source);
        let parsed = parse(text);
        let required = if parsed.errors.is_empty() {
            Required::Told
        } else {
            Required::Ignored
        };
        if let (Some((span, _)), Some(whose)) = (parsed.errors.first(), language_of(schema, text)) {
            // What else is wrong with it as TOML helps nobody.
            whole = Required::Ignored;
            let message = format!("this looks like {whose}; hob reads TOML");
            faults
                .error(spot_of(source, span.clone()), message)
                .hint("the same sites written both ways: see how-to/coming-from.md");
            continue;
        }
        for (span, message) in parsed.errors {
            whole = Required::Ignored;
            let (message, hint) = syntax_told(text, span.start, message);
            faults
                .error(spot_of(source, span), format!("not TOML: {message}"))
                .hint(hint);
        }
        if let Some(document) = parsed.document {
            let section = walk(schema, document.as_table(), source, faults, required);
            root.merge(section, faults);
        }
    }
    share(&mut root, faults);
    (root, whole)
}

fn spot_of(source: usize, span: Range<usize>) -> Spot {
    Spot {
        source,
        start: span.start,
        end: span.end,
    }
}

/// What is told of an error of syntax: in the parser's words, or better ones where a text lacks its
/// quotes; and what to do.
fn syntax_told(text: &str, at: usize, message: String) -> (String, String) {
    if message.contains("duplicate key") {
        let hint = "a key stands once in its table: remove one of the two";
        return (message, hint.to_owned());
    }
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[line_start..].lines().next().unwrap_or_default();
    if let Some((key, value)) = line.split_once('=') {
        let (key, value) = (
            key.trim(),
            value.split(" #").next().unwrap_or_default().trim(),
        );
        let is_text = value.contains(|c: char| c.is_alphabetic() || "/:".contains(c))
            || [".", ".."].contains(&value);
        let is_bare = is_text && !value.contains(['"', '\'', '[', ']', '{', '}', '\\']);
        match value.to_ascii_lowercase().as_str() {
            "yes" | "on" | "true" if is_bare => {
                let message = format!("`{value}` is neither `true` nor a text in quotes");
                return (message, format!("write `{key} = true`"));
            }
            "no" | "off" | "false" if is_bare => {
                let message = format!("`{value}` is neither `false` nor a text in quotes");
                return (
                    message,
                    format!("write `{key} = false`, or `{key} = \"off\"`"),
                );
            }
            _ if is_bare => {
                let message = format!("`{value}` is a text without quotes");
                return (message, format!("put it in quotes: `{key} = \"{value}\"`"));
            }
            _ => {}
        }
    }
    let is_text = message.contains("string values must be quoted");
    let hint = if is_text {
        "write the text in double quotes"
    } else {
        ""
    };
    (message, hint.to_owned())
}

impl ConfigSources {
    /// The file and what it includes, each read once.
    ///
    /// # Errors
    /// Files that cannot be read, and mistakes in `include`.
    pub fn read(
        schema: &'static Schema,
        path: &Path,
        env: Environment<'_>,
    ) -> Result<ConfigSources, Errors> {
        let shown = path.display().to_string();
        let fail = |message: String| {
            Errors::of_file(
                &shown,
                message,
                "name the config with --config, or serve a folder",
            )
        };
        let absolute = std::path::absolute(path)
            .map_err(|error| fail(format!("cannot find the current folder: {error}")))?;
        // The main file may be anything that can be read, a pipe of a shell as well.
        let file = File::open(path).map_err(|error| fail(unopened(error)))?;
        let text = read_text(file, TEXT_BYTES_MAX).map_err(fail)?;
        let dir = absolute.parent().unwrap_or(Path::new("/")).to_path_buf();
        let shown_dir = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let mut reader = ConfigReader::new(schema, env);
        reader.bytes_left -= text.len() as u64;
        reader.seen.extend(fs::canonicalize(path));
        reader.add(shown, dir, &shown_dir, text, 0);
        reader.finish()
    }

    /// The same config read anew, with another text in the place of one of its files. Variables are
    /// those that it had.
    ///
    /// # Errors
    /// Files that cannot be read, and mistakes in `include`.
    pub fn edited(
        &self,
        schema: &'static Schema,
        path: &Path,
        text: &str,
    ) -> Result<ConfigSources, Errors> {
        self.edited_with(schema, path, text, &|name| {
            self.variable(name).map(str::to_owned)
        })
    }

    /// The same for somebody who may look and not change it: variables whose values may be secret
    /// have another, as what is told of a text could tell them.
    ///
    /// # Errors
    /// Files that cannot be read, and mistakes in `include`.
    pub fn edited_by_visitor(
        &self,
        schema: &'static Schema,
        path: &Path,
        text: &str,
    ) -> Result<ConfigSources, Errors> {
        let secret = hidden::variables(self);
        self.edited_with(schema, path, text, &|name| {
            let value = self.variable(name)?;
            let is_secret = secret.contains(name);
            Some(if is_secret { "hidden" } else { value }.to_owned())
        })
    }

    fn edited_with(
        &self,
        schema: &'static Schema,
        path: &Path,
        text: &str,
        env: Environment<'_>,
    ) -> Result<ConfigSources, Errors> {
        let main = self
            .files()
            .next()
            .map(|(path, _)| path)
            .unwrap_or_default();
        let shown = self.names().next().unwrap_or_default().to_owned();
        let mut reader = ConfigReader::new(schema, env);
        reader.edited = fs::canonicalize(path).ok().zip(Some(text));
        reader.reach = Some(Reach::of(self, &main));
        let hint = "restore the file";
        let read = reader.text(&main);
        let main_text = read.map_err(|message| Errors::of_file(&shown, message, hint))?;
        let dir = main.parent().unwrap_or(Path::new("/")).to_path_buf();
        let shown_dir = Path::new(&shown)
            .parent()
            .unwrap_or(Path::new(""))
            .to_path_buf();
        reader.seen.extend(fs::canonicalize(&main));
        reader.add(shown, dir, &shown_dir, main_text, 0);
        reader.finish()
    }

    /// A text that stands in no file, as the command line makes one; `base_dir` is where its
    /// relative paths begin.
    ///
    /// # Errors
    /// Files it includes that cannot be read, and mistakes in `include`.
    pub fn from_text(
        schema: &'static Schema,
        name: &str,
        text: &str,
        base_dir: &Path,
        env: Environment<'_>,
    ) -> Result<ConfigSources, Errors> {
        let dir = std::path::absolute(base_dir).map_err(|error| {
            let message = format!("cannot find the current folder: {error}");
            Errors::of_file(name, message, "start hob in a folder that exists")
        })?;
        let mut reader = ConfigReader::new(schema, env);
        reader.add(name.to_owned(), dir, base_dir, text.to_owned(), 0);
        reader.finish()
    }
}

/// Includes within includes, the main file not counted.
const INCLUDE_DEPTH_MAX: usize = 8;
/// Texts of one config.
const FILE_COUNT_MAX: usize = 10_000;
/// Bytes of all texts of one config together.
pub const TEXT_BYTES_MAX: u64 = 64 << 20;

/// Reads texts and follows their includes.
struct ConfigReader<'e> {
    schema: &'static Schema,
    env: Environment<'e>,
    sources: ConfigSources,
    /// What was read, by its real name: a file is read once.
    seen: HashSet<PathBuf>,
    /// Mistakes in `include`: where, what, what to do.
    wrong: Vec<(Spot, String, &'static str)>,
    /// A file by its real name, and the text that is taken in its place.
    edited: Option<(PathBuf, &'e str)>,
    /// What may be included, where a text is not its operator's own yet.
    reach: Option<Reach>,
    /// Bytes that may still be read.
    bytes_left: u64,
}

/// What a text may include that somebody wants to have checked: they are not to learn of other
/// files of the machine, by what is told of them.
struct Reach {
    /// Files of the config that is there.
    known: HashSet<PathBuf>,
    /// The folder of its main file.
    dir: PathBuf,
}

impl Reach {
    fn of(sources: &ConfigSources, main: &Path) -> Reach {
        let files = sources
            .files()
            .filter_map(|(path, _)| fs::canonicalize(path).ok());
        let dir = main.parent().and_then(|dir| fs::canonicalize(dir).ok());
        Reach {
            known: files.collect(),
            dir: dir.unwrap_or_default(),
        }
    }

    fn has_folder(&self, folder: &Path) -> bool {
        let real = fs::canonicalize(folder).unwrap_or_default();
        let of_config = || self.known.iter().any(|file| file.parent() == Some(&real));
        real.starts_with(&self.dir) || of_config()
    }

    fn has(&self, file: &Path) -> bool {
        match fs::canonicalize(file) {
            Ok(real) => self.known.contains(&real) || real.starts_with(&self.dir),
            // That it is missing is told of a folder that may be looked into.
            Err(_) => true,
        }
    }
}

impl<'e> ConfigReader<'e> {
    fn new(schema: &'static Schema, env: Environment<'e>) -> ConfigReader<'e> {
        ConfigReader {
            schema,
            env,
            sources: ConfigSources::default(),
            seen: HashSet::new(),
            wrong: Vec::new(),
            edited: None,
            reach: None,
            bytes_left: TEXT_BYTES_MAX,
        }
    }

    /// The text of a file, or what is taken in its place.
    fn text(&mut self, path: &Path) -> Result<String, String> {
        let text = match (&self.edited, fs::canonicalize(path)) {
            (Some((edited, text)), Ok(real)) if *edited == real => (*text).to_owned(),
            _ => read_text(open_included(path)?, self.bytes_left)?,
        };
        self.bytes_left = self.bytes_left.saturating_sub(text.len() as u64);
        Ok(text)
    }

    /// Takes a text, the variables it names, and the files it includes.
    fn add(&mut self, name: String, dir: PathBuf, shown_dir: &Path, text: String, depth: usize) {
        let matters = ["include", "${", "{env:"]
            .iter()
            .any(|word| mentions(&text, word));
        let document = matters.then(|| parse(&text).document).flatten();
        let source = self.sources.add(name, dir, text);
        let Some(document) = document else { return };
        self.take_variables(&document);
        let Some(list) = document.get("include").and_then(Item::as_array) else {
            return;
        };
        for value in list {
            let span = value.span().unwrap_or(0..0);
            let spot = Spot {
                source,
                start: span.start,
                end: span.end,
            };
            let sources = &self.sources;
            let pattern = value
                .as_str()
                .map(|raw| expand::expand(raw, |n| sources.variable(n)));
            // A wrong type and an undefined variable are reported by the walk.
            if let Some(Ok(pattern)) = pattern {
                self.include(spot, &pattern, shown_dir, depth);
            }
        }
    }

    fn take_variables(&mut self, document: &Document<String>) {
        let mut named = VariableCollector(Vec::new());
        named.visit_table(document.as_table());
        for name in named.0 {
            if let Some(value) = (self.env)(&name) {
                self.sources.add_variable(&name, value);
            }
        }
    }

    fn include(&mut self, spot: Spot, pattern: &str, shown_dir: &Path, depth: usize) {
        if depth == INCLUDE_DEPTH_MAX {
            let message = format!("includes are more than {INCLUDE_DEPTH_MAX} deep");
            self.wrong.push((
                spot,
                message,
                "include the file from one nearer to the main file",
            ));
            return;
        }
        if let Some(reach) = &self.reach {
            let path = self.sources.dir(spot.source).join(pattern);
            let folder = path.parent().unwrap_or(Path::new("/"));
            if !reach.has_folder(folder) || (!pattern.contains('*') && !reach.has(&path)) {
                let message = format!("{pattern:?} is not below the folder of the config");
                let hint = "include it in the config's own file, where only its owner writes";
                self.wrong.push((spot, message, hint));
                return;
            }
        }
        let files = match matching(self.sources.dir(spot.source), pattern) {
            Ok(files) => files,
            Err((message, hint)) => {
                self.wrong.push((spot, message, hint));
                return;
            }
        };
        for relative in files {
            let path = self.sources.dir(spot.source).join(&relative);
            let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            if self.reach.as_ref().is_some_and(|reach| !reach.has(&path)) || !self.seen.insert(real)
            {
                continue;
            }
            if self.sources.count() == FILE_COUNT_MAX {
                let message = format!("the config has more than {FILE_COUNT_MAX} files");
                self.wrong.push((spot, message, "join some of them"));
                return;
            }
            match self.text(&path) {
                Ok(text) => {
                    let name = shown_dir.join(&relative);
                    let inner = name.parent().unwrap_or(Path::new("")).to_path_buf();
                    let dir = path.parent().unwrap_or(Path::new("/")).to_path_buf();
                    self.add(name.display().to_string(), dir, &inner, text, depth + 1);
                }
                Err(message) => {
                    let message = format!("{}: {message}", path.display());
                    self.wrong
                        .push((spot, message, "make it readable, or name another file"));
                }
            }
        }
    }

    fn finish(self) -> Result<ConfigSources, Errors> {
        if self.wrong.is_empty() {
            return Ok(self.sources);
        }
        let mut faults = Faults::new(&self.sources);
        for (spot, message, hint) in &self.wrong {
            faults.error(*spot, message).hint(hint);
        }
        // The rest is told too, as far as it does not depend on what is missing.
        walk_all(self.schema, &self.sources, &mut faults);
        Err(faults.finish().err().unwrap_or_default())
    }
}

/// Collects the variables that string values name, as formats of logs do, too.
struct VariableCollector(Vec<String>);

impl<'d> Visit<'d> for VariableCollector {
    fn visit_string(&mut self, text: &'d Formatted<String>) {
        let text = text.value();
        self.0.extend(expand::names(text).map(str::to_owned));
        self.0.extend(variables_of(text).map(str::to_owned));
    }
}

/// The text of a file of a config as it now is; nothing is waited for.
///
/// # Errors
/// Why there is none, for people.
pub fn read_file(path: &Path) -> Result<String, String> {
    read_text(open_included(path)?, TEXT_BYTES_MAX)
}

/// A file that is included: a regular one, for others may be waited for without end, or do
/// something when they are opened.
fn open_included(path: &Path) -> Result<File, String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let is_regular = |mode| FileType::from_raw_mode(mode) == FileType::RegularFile;
    const NO_FILE: &str = "it is no regular file";
    // A device is not even opened.
    match rustix::fs::stat(path) {
        Ok(stat) if !is_regular(stat.st_mode) => return Err(NO_FILE.to_owned()),
        _ => {}
    }
    let file =
        rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| unopened(errno.into()))?;
    match rustix::fs::fstat(&file) {
        Ok(stat) if is_regular(stat.st_mode) => Ok(File::from(file)),
        _ => Err(NO_FILE.to_owned()),
    }
}

fn unopened(error: io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => format!("the file cannot be opened: {error}"),
    }
}

/// A file's text, or why there is none.
fn read_text(file: File, bytes_max: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("the file cannot be read: {error}"))?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!(
            "the config is longer than {} MiB, with all it includes",
            TEXT_BYTES_MAX >> 20
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("the file is not UTF-8 (line {line})")
    })
}

/// The files a pattern stands for, relative to `dir`, in order.
fn matching(dir: &Path, pattern: &str) -> Result<Vec<PathBuf>, (String, &'static str)> {
    let pattern = Path::new(pattern);
    let (Some(last), parent) = (
        pattern.file_name(),
        pattern.parent().unwrap_or(Path::new("")),
    ) else {
        return Err((
            "this names no file".to_owned(),
            "name a file, or `conf.d/*.toml`",
        ));
    };
    if parent.to_string_lossy().contains('*') {
        let message = "`*` in the name of a folder".to_owned();
        return Err((
            message,
            "`*` may stand in the file name, the last part of the path",
        ));
    }
    let last = last.to_string_lossy();
    if !last.contains('*') {
        return Ok(vec![pattern.to_path_buf()]);
    }
    let folder = dir.join(parent);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) => {
            let message = format!("the folder {} cannot be read: {error}", folder.display());
            return Err((
                printable(&message),
                "create the folder, or remove the include",
            ));
        }
    };
    let mut names: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .filter(|name| name_matches(&last, &name.to_string_lossy()))
        .collect();
    names.sort();
    let files = names.into_iter().map(|name| parent.join(name));
    Ok(files.filter(|file| dir.join(file).is_file()).collect())
}

/// `*` in the pattern stands for any characters; a leading dot is never matched by it.
fn name_matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && pattern.starts_with('*') {
        return false;
    }
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::name_matches;

    #[test]
    fn star_stands_for_any_characters_but_a_leading_dot() {
        for (pattern, name, matches) in [
            ("*.toml", "a.toml", true),
            ("*.toml", ".a.toml", false),
            ("*.toml", "a.toml~", false),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "ac", false),
            ("a*a", "a", false),
            ("plain", "plain", true),
            ("plain", "plainer", false),
        ] {
            assert_eq!(name_matches(pattern, name), matches, "{pattern} {name}");
        }
    }
}
