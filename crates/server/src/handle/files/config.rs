//! `files` of a route, and what it takes from its site.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::handle::config::build_after::Answering;
use crate::handle::config::build_site::{OnSection, codings, owned};
use crate::handle::config::captured::read_captured;
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
use crate::route::template::CapturedPath;
use crate::serve::sites::SitesBuildContext;
use hob_keeper::preflight::ProgramCheck;

/// Settings of static files.
#[derive(Clone, Debug, PartialEq)]
pub struct FilesSettings {
    /// The folder. A path below the route's prefix is looked up here.
    pub root: PathBuf,
    /// The same where it is another one for each account or host.
    pub captured: Option<CapturedPath>,
    /// True: the whole path is looked up below the root, not only what follows the route's prefix.
    pub keep_prefix: bool,
    /// Files that answer for a folder, first found wins.
    pub index: Vec<String>,
    /// Folders without an index are listed.
    pub listing: bool,
    /// File answered when nothing is found (single-page applications), below the root.
    pub fallback: Option<String>,
    /// Endings of files that are looked for where nothing is at a path itself.
    pub try_endings: Vec<String>,
    /// Where nothing is found, the next route answers.
    pub try_next: bool,
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

impl FilesSettings {
    /// The part of the root that no request has a say in.
    pub fn fixed_root(&self) -> &Path {
        let fixed = self.captured.as_ref().map(|captured| &*captured.fixed);
        fixed.unwrap_or(&self.root)
    }
}

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
        read_files(section, (on.answering, on.pattern), faults)
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
        look.server_enters(settings.fixed_root(), spots.root);
    }

    fn build(
        settings: &FilesSettings,
        around: &mut SitesBuildContext<'_>,
        route: &Route,
        pattern: &Pattern,
    ) -> Result<Arc<Files>, String> {
        match &settings.captured {
            None => around.files(settings, &route.headers),
            Some(captured) => around.captured_files(settings, captured, (route, pattern)),
        }
    }
}

/// Files with what the route says, else what the site says.
fn read_files(
    route: &Section,
    (answering, pattern): (Answering<'_>, Option<&Pattern>),
    faults: &mut Faults<'_>,
) -> (FilesSettings, FilesSpots) {
    let site = answering.site;
    let none = Section::new(&FILES, site.header);
    let site_files = site.section("files").unwrap_or(&none);
    let from = |key: &str| match route.given(key) {
        Some(_) => route,
        None => site_files,
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
    let spot = match own_root {
        Some(_) => route.spot("root"),
        None => site.spot("root"),
    };
    let captured = root.and_then(|root| read_captured(root, pattern, spot, faults));
    let (try_endings, try_next) = read_try((from("try"), from("fallback")), faults);
    let files = FilesSettings {
        root: root.cloned().unwrap_or_default(),
        captured,
        keep_prefix: match from("keep_prefix").given("keep_prefix") {
            Some(_) => from("keep_prefix").flag("keep_prefix"),
            None => own_root.is_none(),
        },
        index: owned(&from("index").texts("index")),
        listing: from("listing").flag("listing"),
        fallback: from("fallback")
            .optional_text("fallback")
            .map(str::to_owned),
        try_endings,
        try_next,
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
        root: spot,
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
    let pattern = Pattern::parse("/*").ok();
    let (files, spots) = read_files(&none, (answering, pattern.as_ref()), faults);
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
    // It is not the site's root that is sent from.
    let (files, _) = read_files(&named, (answering, None), faults);
    FilesSettings {
        root,
        captured: None,
        keep_prefix: false,
        index: Vec::new(),
        listing: false,
        fallback: None,
        try_endings: Vec::new(),
        try_next: false,
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

/// What stands for the path in `try`, and for the route behind this one.
const PATH: &str = "{path}";
const NEXT: &str = "next";
/// So many names of a file are looked for.
const TRIED_MAX: usize = 8;

/// Endings of names, and whether the next route answers where none is found; and that no fallback
/// is to answer then.
fn read_try(
    (section, fallback): (&Section, &Section),
    faults: &mut Faults<'_>,
) -> (Vec<String>, bool) {
    let given = section.texts("try").into_iter().map(|(text, _)| text);
    let has_fallback = fallback.optional_text("fallback").is_some();
    let ends = given.clone().next_back() == Some(NEXT);
    if let (true, true, Some(given)) = (ends, has_fallback, section.given("try")) {
        let message = "`try` ends in `next`, so that `fallback` never answers";
        faults
            .error(given.spot, message)
            .see(fallback.spot("fallback"), "the fallback")
            .hint("remove one of the two; `fallback = \"off\"` is none");
    }
    let endings = given.clone().filter_map(|text| text.strip_prefix(PATH));
    let endings = endings.filter(|ending| !ending.is_empty());
    (endings.map(str::to_owned).collect(), ends)
}

fn check_try(section: &Section, faults: &mut Faults<'_>) {
    let given = section.given_texts("try");
    let Some((first, spot)) = given.first() else {
        if let Some(given) = section.given("try") {
            let fault = faults.error(given.spot, "`try` looks for nothing");
            fault.hint("write `[\"{path}\"]` for the path itself");
        }
        return;
    };
    if *first != PATH {
        faults
            .error(*spot, "`try` does not begin with the path itself")
            .hint("write `\"{path}\"` before it; a file for all that is not there is `fallback`");
    }
    for (at, (text, spot)) in given.iter().enumerate().skip(1) {
        let ending = text.strip_prefix(PATH);
        let is_ending = |ending: &str| !ending.is_empty() && !ending.contains(['/', '\0', '{']);
        let (message, hint) = match ending {
            Some(ending) if is_ending(ending) => continue,
            None if *text == NEXT && at + 1 == given.len() => continue,
            None if *text == NEXT => (
                "`next` is not the last of `try`".to_owned(),
                "nothing is looked for behind it: move it to the end",
            ),
            None if text.starts_with('@') => (
                format!("`try` looks for no {text:?}"),
                "write `\"next\"`, and behind this route the one that is to answer then",
            ),
            _ => (
                format!("`try` looks for no {text:?}"),
                "write `\"{path}.html\"` for an ending, `\"next\"` for the next route, or \
                 `fallback` for one file",
            ),
        };
        faults.error(*spot, message).hint(hint);
    }
    if let Some((_, spot)) = given.get(TRIED_MAX) {
        let message = format!("`try` has more than {TRIED_MAX} entries");
        faults
            .error(*spot, message)
            .hint("each costs a look at the disk: keep fewer");
    }
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
    check_try(section, faults);
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
