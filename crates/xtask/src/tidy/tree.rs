//! The repository as the rules see it: its text files, read once.

use std::fs;
use std::io;
use std::path::Path;

use super::source::RustSource;

/// Folders that hold nothing of ours: what was built, and what others wrote.
const SKIPPED: &[&str] = &[
    "target",
    "docs/book",
    "fuzz/target",
    "fuzz/artifacts",
    "ui/dist",
];

/// The same, wherever they are.
const SKIPPED_NAMES: &[&str] = &["node_modules", "__pycache__"];

/// Inputs found by fuzzing: the folders count, the files may hold anything.
const UNREAD: &str = "fuzz/corpus/";

/// Folders whose name begins with a dot and that are ours all the same.
const DOTTED: &[&str] = &[".cargo", ".ci"];

/// Every folder and text file below the root.
pub(super) struct Tree {
    /// Files, sorted by path.
    pub(super) files: Vec<TextFile>,
    /// Paths of files that are not text, such as pictures.
    pictures: Vec<String>,
    /// Folders, sorted; paths relative to the root with `/` between names.
    pub(super) folders: Vec<String>,
    /// Names of modules that are declared under `#[cfg(test)]`, as paths of their files.
    test_modules: Vec<String>,
}

/// One text file.
pub(super) struct TextFile {
    /// Path relative to the root, `/` between names.
    pub(super) path: String,
    /// The whole text.
    pub(super) text: String,
    /// Rust files, told apart into code and comments.
    pub(super) source: Option<RustSource>,
}

impl Tree {
    /// Reads everything below `root`. Of files that are not UTF-8 only the paths are kept.
    pub(super) fn read(root: &Path) -> io::Result<Tree> {
        let mut tree = Tree {
            files: Vec::new(),
            pictures: Vec::new(),
            folders: Vec::new(),
            test_modules: Vec::new(),
        };
        tree.read_folder(root, "")?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        tree.folders.sort();
        tree.test_modules = tree.files.iter().flat_map(test_modules_of).collect();
        Ok(tree)
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() && is_ours(&path, &name) {
                self.read_folder(&entry.path(), &format!("{path}/"))?;
                self.folders.push(path);
            } else if kind.is_file() && !path.starts_with(UNREAD) && name != ".git" {
                self.read_file(&entry.path(), path)?;
            }
        }
        Ok(())
    }

    fn read_file(&mut self, place: &Path, path: String) -> io::Result<()> {
        let bytes = fs::read(place)?;
        let Ok(text) = String::from_utf8(bytes) else {
            self.pictures.push(path);
            return Ok(());
        };
        let source = path.ends_with(".rs").then(|| RustSource::read(&text));
        self.files.push(TextFile { path, text, source });
        Ok(())
    }

    /// The file at this path.
    pub(super) fn file(&self, path: &str) -> Option<&TextFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Is there a file or folder at this path?
    pub(super) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let others = self.folders.iter().chain(&self.pictures);
        self.file(path).is_some() || others.into_iter().any(|other| other == path)
    }

    /// All Rust files.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&TextFile, &RustSource)> {
        self.files
            .iter()
            .filter_map(|file| Some((file, file.source.as_ref()?)))
    }

    /// Rust files of the product: what is in a crate's `src/` and not a test, `xtask` left out.
    pub(super) fn product(&self) -> impl Iterator<Item = (&TextFile, &RustSource)> {
        self.rust().filter(|(file, _)| {
            let Some((name, inside)) = file.crate_and_rest() else {
                return false;
            };
            name != "xtask" && inside.starts_with("src/") && !self.is_test(file)
        })
    }

    /// Is the whole file tests?
    pub(super) fn is_test(&self, file: &TextFile) -> bool {
        file.path.contains("/tests/")
            || file.path.contains("/benches/")
            || file.path.ends_with("/tests.rs")
            || self.test_modules.contains(&file.path)
    }
}

impl TextFile {
    /// `("http", "src/h1/conn.rs")` for `crates/http/src/h1/conn.rs`.
    pub(super) fn crate_and_rest(&self) -> Option<(&str, &str)> {
        self.path.strip_prefix("crates/")?.split_once('/')
    }

    /// Is this what a test reads or compares with, and not code?
    pub(super) fn is_test_data(&self) -> bool {
        self.source.is_none() && (self.path.contains("/tests/") || self.path.contains("/golden/"))
    }

    /// The lines, with their numbers from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }
}

fn is_ours(path: &str, name: &str) -> bool {
    let is_skipped = SKIPPED.contains(&path) || SKIPPED_NAMES.contains(&name);
    !is_skipped && (!name.starts_with('.') || DOTTED.contains(&name))
}

/// Paths of the modules this file declares as `#[cfg(test)] mod name;`.
fn test_modules_of(file: &TextFile) -> Vec<String> {
    let Some(source) = &file.source else {
        return Vec::new();
    };
    let stem = file.path.trim_end_matches(".rs");
    let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    let home = if matches!(name, "mod" | "lib" | "main") {
        folder
    } else {
        stem
    };
    let paths = source.test_modules.iter().flat_map(|module| {
        [
            format!("{home}/{module}.rs"),
            format!("{home}/{module}/mod.rs"),
        ]
    });
    paths.collect()
}
