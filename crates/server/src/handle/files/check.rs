//! What `files` of routes say wrongly of the disk, or of each other.

use std::path::Path;

use super::config::{CacheMode, FilesSettings, FilesSpots};
use super::source_sent;
use crate::handle::HandlerSpots;
use crate::handle::config::check::{PathLookups, PathStatus};
use crate::handle::config::{Config, Faults, RouteSpots, Site, SiteSpots};
use crate::route::template::has_captures;

/// Tells what is wrong with the files of a site as a whole.
pub(in crate::handle) fn site(
    site: &Site,
    spots: &SiteSpots,
    looked: &PathLookups<'_>,
    faults: &mut Faults<'_>,
) {
    source_sent::check(site, spots, looked.disk(), faults);
    unused_root(site, spots, faults);
}

/// Tells what is wrong with the files of one route.
pub(super) fn route(
    config: &Config,
    files: &FilesSettings,
    spots: &FilesSpots,
    looked: &mut PathLookups<'_>,
    faults: &mut Faults<'_>,
) {
    on_disk(files, spots, looked, faults);
    config_in_root(files, spots, looked, faults);
    pinned(config, files, spots, faults);
}

fn unused_root(site: &Site, spots: &SiteSpots, faults: &mut Faults<'_>) {
    let Some(root) = spots.root else { return };
    let uses = |route: &RouteSpots| match &route.handler {
        HandlerSpots::Files(files) => files.root == root,
        _ => false,
    };
    if spots.routes.iter().any(uses) {
        return;
    }
    let open = site
        .routes
        .iter()
        .zip(&spots.routes)
        .find(|(route, _)| route.path == "/*" && route.when.is_none());
    if let Some((_, route)) = open {
        faults
            .warn(root, "the site's `root` is never used")
            .see(
                route.path.as_ref().map_or(route.header, |(spot, _)| *spot),
                "this route answers",
            )
            .hint("remove `root`, or the route for `/*`");
    }
}

fn on_disk(
    files: &FilesSettings,
    spots: &FilesSpots,
    looked: &mut PathLookups<'_>,
    faults: &mut Faults<'_>,
) {
    // Without a root, and with captures that are wrong, that is told already.
    if files.root.as_os_str().is_empty() || has_captures(files.fixed_root()) {
        return;
    }
    let found = looked.root(files.fixed_root(), spots.root, faults);
    if found == Some(PathStatus::Folder) && files.captured.is_none() {
        fallback(files, spots, looked, faults);
    }
}

/// Whoever asks for a config file by its name would get it.
fn config_in_root(
    files: &FilesSettings,
    spots: &FilesSpots,
    looked: &mut PathLookups<'_>,
    faults: &mut Faults<'_>,
) {
    let sources = faults.sources();
    let served = (0..sources.count()).find_map(|source| {
        let name = Path::new(sources.names().nth(source)?).file_name()?;
        let is_hidden = !files.dot_files && name.as_encoded_bytes().starts_with(b".");
        let is_inside = sources.dir(source).starts_with(&files.root);
        // What was given on a command line has a name too.
        let mut is_file = || looked.look(&sources.dir(source).join(name)) == PathStatus::File;
        (is_inside && !is_hidden && is_file()).then(|| name.display().to_string())
    });
    let Some(name) = served else {
        return;
    };
    if looked.is_first(spots.root) {
        let message = format!("`root` holds {name}: whoever knows its name can download it");
        faults
            .warn(spots.root, message)
            .hint("serve a folder that holds nothing but what is to be served");
    }
}

fn fallback(
    files: &FilesSettings,
    spots: &FilesSpots,
    looked: &mut PathLookups<'_>,
    faults: &mut Faults<'_>,
) {
    let Some(fallback) = &files.fallback else {
        return;
    };
    let path = files.root.join(fallback);
    if looked.look(&path) != PathStatus::File {
        let message = format!("there is no file {} yet", path.display());
        let hint = "until there is, what is not found is answered with 404";
        faults.warn(spots.fallback, message).hint(hint);
    }
}

fn pinned(config: &Config, files: &FilesSettings, spots: &FilesSpots, faults: &mut Faults<'_>) {
    if files.cache == CacheMode::Pin && files.captured.is_some() {
        let message = "files cannot be pinned: which folders they are in is not known at the start";
        faults
            .error(spots.cache, message)
            .see(spots.root, "the root is another one for each request")
            .hint("remove `cache = \"pin\"`");
    }
    if files.cache == CacheMode::Pin && config.cache.bytes == Some(0) {
        faults
            .error(spots.cache, "files cannot be pinned: the cache is off")
            .hint("give the `[cache]` its `bytes`, or remove `cache = \"pin\"`");
    }
}
