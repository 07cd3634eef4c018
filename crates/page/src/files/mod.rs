//! Flat files and registries: files below folders that are allowed, which many runs use at once.
//!
//! `folder` reads and replaces files of a folder, and nothing outside of it. `flat` are the flat
//! files of `DTWF_` functions over it, `registry` the registries of `DTWR_` functions, each a file
//! with `entries`. None of it asks a clock; who waits for another run counts its pauses.

mod entries;
mod flat;
mod folder;
mod registry;

pub use entries::{parse_entries, print_entries};
pub use flat::{FlatFiles, SearchedFolders};
pub use folder::FileFolder;
pub use registry::RegistryFiles;
