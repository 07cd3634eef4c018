//! `files` of a route, and what it takes from its site.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::handle::config::build_after::Answering;
use crate::handle::config::build_site::{OnSection, codings, owned};
use crate::handle::config::check::PathLookups;
use crate::handle::config::key::Preset::Nothing;
use crate::handle::config::key::ValueType::OrText;
use crate::handle::config::key::{SchemaKey, ValueType};
use crate::handle::config::program::Programs;
use crate::handle::config::text::{check_media_type, header_value_wrong, relative_name_wrong};
use crate::handle::config::tree::{KeyTextPair, Section};
use crate::handle::config::{Coding, Config, Faults, Route, Spot};
use crate::handle::files::keys::{FILES, ROUTE_FILES};
use crate::handle::files::{Files, check};
use crate::handle::{Configured, HasSettings};
use crate::route::pattern::Pattern;
use crate::serve::sites::SitesBuildContext;
use hob_keeper::preflight::ProgramCheck;

/// Settings of static files.
#[derive(Clone, Debug, PartialEq)]
pub struct FilesSettings {
    /// The folder. A path below the route's prefix is looked up here.
    pub root: PathBuf,
    /// True: the whole path is looked up below the root, not only what follows the route's prefix.
    pub keep_prefix: bool,
    /// Files that answer for a folder, first found wins.
    pub index: Vec<String>,
    /// Folders without an index are listed.
    pub listing: bool,
    /// File answered when nothing is found (single-page applications), below the root.
    pub fallback: Option<String>,
    /// `Cache-Control` value of the fallback where it answers for something else; empty is none.
    pub fallback_cache_control: String,
    /// Suffixes of precompressed files looked for: `br`, `zst`, `gz`.
    pub precompressed: Vec<Coding>,
    /// Codings made on the fly, in order of preference; empty is none.
    pub compress: Vec<Coding>,
    /// Smallest file compressed on the fly, in bytes.
    pub compress_min: u64,
    /// Media types compressed on the fly; `text/*` patterns allowed.
    pub compress_types: Vec<String>,
    /// Names that begin with a dot are served.
    pub dot_files: bool,
    /// Which symbolic links are followed.
    pub symlinks: Symlinks,
    /// `charset` parameter for text types; empty is none.
    pub charset: String,
    /// Media types by suffix, before the built-in table.
    pub types: Vec<(String, String)>,
    /// `Cache-Control` value; empty is none.
    pub cache_control: String,
    /// How the cache treats these files.
    pub cache: CacheMode,
}

/// Which symbolic links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symlinks {
    /// Those that stay below the root.
    Inside,
    /// All.
    Follow,
    /// None.
    Refuse,
}

/// How the cache treats a route's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheMode {
    /// Kept by use.
    Auto,
    /// Never kept.
    Off,
    /// Loaded at start and never evicted.
    Pin,
}

/// The key by which a site says how the files of all its routes are served.
pub(crate) const SITE_FILES: SchemaKey =
    SchemaKey::new("files", ValueType::Table(&FILES), Nothing(""));

impl AsRef<Path> for FilesSettings {
    fn as_ref(&self) -> &Path {
        &self.root
    }
}

/// Where the parts of a `files` stand.
pub struct FilesSpots {
    pub(crate) root: Spot,
    pub(crate) fallback: Spot,
    pub(crate) cache: Spot,
}

impl HasSettings for Files {
    type Settings = FilesSettings;
    type Spots = FilesSpots;
}

impl Configured for Files {
    const KEY: SchemaKey = SchemaKey::new("files", OrText("root", &ROUTE_FILES), Nothing(""))
        .aka(&["file", "static", "dir", "folder"]);

    fn read(
        section: &Section,
        on: &OnSection<'_>,
        _: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (FilesSettings, FilesSpots) {
        check_files(section, faults);
        read_files(section, on.answering, faults)
    }

    fn check(
        settings: &FilesSettings,
        spots: &FilesSpots,
        config: &Config,
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    ) {
        check::route(config, settings, spots, looked, faults);
    }

    fn look(settings: &FilesSettings, spots: &FilesSpots, look: &mut ProgramCheck<'_, '_, '_>) {
        look.server_enters(&settings.root, spots.root);
    }

    fn build(
        settings: &FilesSettings,
        around: &mut SitesBuildContext<'_>,
        route: &Route,
        _: &Pattern,
    ) -> Result<Arc<Files>, String> {
        around.files(settings, &route.headers)
    }
}

/// Files with what the route says, else what the site says.
fn read_files(
    route: &Section,
    answering: Answering<'_>,
    faults: &mut Faults<'_>,
) -> (FilesSettings, FilesSpots) {
    let site = answering.site;
    let none = Section::new(&FILES, site.header);
    let site_files = site.section("files").unwrap_or(&none);
    let from = |key: &str| {
        if route.given(key).is_some() {
            route
        } else {
            site_files
        }
    };
    // What is said of all answers is said of files, too, where their own keys say nothing.
    let of_answers = |key: &str| {
        let said_by = [Some(route), answering.route, Some(site_files)];
        let mut said_by = said_by.into_iter().flatten();
        let nearest = said_by.find(|section| section.given(key).is_some());
        nearest.unwrap_or(site)
    };
    let own_root = route.optional_path("root");
    let root = own_root.or(site.optional_path("root"));
    if root.is_none() && !route.has("root") && !site.has("root") {
        let message = "`files` has no `root`, and the site has none either";
        faults
            .error(route.header, message)
            .hint("add `root = \"FOLDER\"` to one of them");
    }
    let files = FilesSettings {
        root: root.cloned().unwrap_or_default(),
        keep_prefix: match from("keep_prefix").given("keep_prefix") {
            Some(_) => from("keep_prefix").flag("keep_prefix"),
            None => own_root.is_none(),
        },
        index: owned(&from("index").texts("index")),
        listing: from("listing").flag("listing"),
        fallback: from("fallback")
            .optional_text("fallback")
            .map(str::to_owned),
        fallback_cache_control: from("fallback_cache_control")
            .text("fallback_cache_control")
            .to_owned(),
        precompressed: codings(&from("precompressed").texts("precompressed")),
        compress: codings(&of_answers("compress").texts("compress")),
        compress_min: of_answers("compress_min").size("compress_min"),
        compress_types: owned(&of_answers("compress_types").texts("compress_types")),
        dot_files: from("dot_files").flag("dot_files"),
        symlinks: match from("symlinks").word("symlinks") {
            "follow" => Symlinks::Follow,
            "refuse" => Symlinks::Refuse,
            _ => Symlinks::Inside,
        },
        charset: from("charset").text("charset").to_owned(),
        types: types(from("types").map("types")),
        cache_control: from("cache_control").text("cache_control").to_owned(),
        cache: match from("cache").word("cache") {
            "off" => CacheMode::Off,
            "pin" => CacheMode::Pin,
            _ => CacheMode::Auto,
        },
    };
    let spots = FilesSpots {
        root: if own_root.is_some() {
            route.spot("root")
        } else {
            site.spot("root")
        },
        fallback: from("fallback").spot("fallback"),
        cache: from("cache").spot("cache"),
    };
    (files, spots)
}

/// The files of the route that a site's `root` is short for.
pub(in crate::handle) fn of_root(
    site: &Section,
    faults: &mut Faults<'_>,
) -> (FilesSettings, FilesSpots) {
    let none = Section::new(&ROUTE_FILES, site.spot("root"));
    let answering = Answering { site, route: None };
    let (files, spots) = read_files(&none, answering, faults);
    let files = FilesSettings {
        keep_prefix: false,
        ..files
    };
    (files, spots)
}

/// A folder of files that programs may have sent: any file by its exact name, otherwise as the
/// site's files are.
pub(in crate::handle) fn sent_from(
    root: PathBuf,
    spot: Spot,
    answering: Answering<'_>,
    faults: &mut Faults<'_>,
) -> FilesSettings {
    let mut named = Section::new(&ROUTE_FILES, spot);
    named.claim("root");
    let (files, _) = read_files(&named, answering, faults);
    FilesSettings {
        root,
        keep_prefix: false,
        index: Vec::new(),
        listing: false,
        fallback: None,
        dot_files: true,
        symlinks: Symlinks::Inside,
        cache: match files.cache {
            CacheMode::Pin => CacheMode::Auto,
            other => other,
        },
        ..files
    }
}

/// What a site says wrongly of the files of all its routes.
pub(in crate::handle) fn check_site_keys(site: &Section, faults: &mut Faults<'_>) {
    let none = Section::new(&FILES, site.header);
    check_files(site.section("files").unwrap_or(&none), faults);
}

/// What the keys of a files section say wrongly.
fn check_files(section: &Section, faults: &mut Faults<'_>) {
    let single = |name: &str| match relative_name_wrong(name) {
        None if name.contains('/') => Some("write a file name, without a folder"),
        wrong => wrong,
    };
    for (name, spot) in section.given_texts("index") {
        if let Some(hint) = single(name) {
            faults
                .error(spot, format!("{name:?} is no name of an index file"))
                .hint(hint);
        }
    }
    if let Some(fallback) = section.optional_text("fallback")
        && let Some(hint) = relative_name_wrong(fallback)
    {
        let message = format!("{fallback:?} is no file below the root");
        let hint = match fallback {
            "" => "write a file name such as `index.html`, or `fallback = \"off\"` for none",
            _ => hint,
        };
        faults.error(section.spot("fallback"), message).hint(hint);
    }
    for (name, spot) in section.given_texts("compress_types") {
        check_media_type(
            name.strip_suffix("/*").map_or(name, |_| "text/plain"),
            name,
            spot,
            faults,
        );
    }
    for pair in section.map("types") {
        if !pair.name.starts_with('.') || pair.name.len() < 2 || pair.name.contains('/') {
            let message = format!("{:?} is no ending of file names", pair.name);
            let hint = format!("write `\".{}\"`", pair.name.trim_start_matches(['*', '.']));
            faults.error(pair.key, message).hint(hint);
        }
        check_media_type(&pair.text, &pair.text, pair.spot, faults);
    }
    let charset = section.text("charset");
    if !charset
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_.:+".contains(c))
    {
        let message = format!("{charset:?} is no name of a charset");
        faults
            .error(section.spot("charset"), message)
            .hint("write `charset = \"utf-8\"`");
    }
    for key in ["cache_control", "fallback_cache_control"] {
        if let Some(hint) = header_value_wrong(section.text(key)) {
            let message = format!("`{key}` cannot stand in a header field");
            faults.error(section.spot(key), message).hint(hint);
        }
    }
}

fn types(pairs: &[KeyTextPair]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|pair| (pair.name.clone(), pair.text.clone()))
        .collect()
}
