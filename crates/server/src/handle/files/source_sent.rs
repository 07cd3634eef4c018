//! Where a program would be sent as a file, source and all: a folder of files above the route that
//! runs what has its ending, and a folder of programs inside one of files. Only told, because the
//! first route that matches answers, and a folder of uploads may stand there on purpose.

use std::path::Path;

use super::config::FilesSettings;
use crate::handle::config::check::Disk;
use crate::handle::config::{CgiRuns, Faults, Route, RouteSpots, Site, SiteSpots};
use crate::handle::{HandlerSettings, HandlerSpots};
use hob_config::Handlers as _;

/// Tells of the first such file of each route with files.
pub(super) fn check(site: &Site, spots: &SiteSpots, disk: &dyn Disk, faults: &mut Faults<'_>) {
    let routes: Vec<_> = site.routes.iter().zip(&spots.routes).collect();
    for (index, (route, route_spots)) in routes.iter().enumerate() {
        let (HandlerSettings::Files(files), HandlerSpots::Files(own)) =
            (&route.handler, &route_spots.handler)
        else {
            continue;
        };
        let Some(prefix) = prefix(route, route_spots, files) else {
            continue;
        };
        let is_sent = |path: &str| first(&routes, path) == Some(index);
        if let Some((dir, path)) = folder_inside(site, files, &prefix, is_sent) {
            let message = format!(
                "programs in {} are sent as they stand, source and all, below {path}",
                dir.display()
            );
            faults
                .warn(own.root, message)
                .hint("keep programs outside of folders that are served");
            continue;
        }
        let later: Vec<_> = routes[index + 1..]
            .iter()
            .filter(|(route, _)| runs_by_ending(route))
            .collect();
        if later.is_empty() {
            continue;
        }
        let runs = |file: &Path| {
            let path = path_of(&prefix, &files.root, file)?;
            let is_its = |(_, spots): &&&(&Route, &RouteSpots)| {
                let pattern = spots.path.as_ref().map(|(_, pattern)| pattern);
                pattern.is_some_and(|pattern| pattern.matches(path.as_bytes()).is_some())
            };
            let later = later.iter().find(is_its)?;
            is_sent(&path).then_some(later.1)
        };
        let found = disk.find_file(&files.root, &mut |file| runs(file).is_some());
        if let Some(file) = &found
            && let Some(later) = runs(file)
            && let Some((spot, _)) = &later.path
        {
            let message = format!("{} is sent as it stands, source and all", file.display());
            let at = route_spots
                .path
                .as_ref()
                .map_or(route_spots.header, |(spot, _)| *spot);
            faults
                .warn(at, message)
                .see(*spot, "this route would run it")
                .hint("put that route above this one, or keep such files elsewhere");
        }
    }
}

/// What stands before the path of a file below the root; `None` where that cannot be said.
fn prefix(route: &Route, spots: &RouteSpots, files: &FilesSettings) -> Option<String> {
    if files.root.as_os_str().is_empty() {
        return None;
    }
    if spots.path.is_none() || files.keep_prefix {
        return Some("/".to_owned());
    }
    let prefix = route.path.strip_suffix('*')?;
    (prefix.ends_with('/') && !prefix.contains(['{', '*'])).then(|| prefix.to_owned())
}

/// The route that answers all requests for a path that those before it leave to it.
fn first(routes: &[(&Route, &RouteSpots)], path: &str) -> Option<usize> {
    let matches = |spots: &RouteSpots| match &spots.path {
        Some((_, pattern)) => pattern.matches(path.as_bytes()).is_some(),
        None => true,
    };
    let mut all = routes.iter();
    all.position(|(route, spots)| route.when.is_none() && matches(spots))
}

/// A folder of programs of the site that lies below the root, and its path there.
fn folder_inside<'s>(
    site: &'s Site,
    files: &FilesSettings,
    prefix: &str,
    is_sent: impl Fn(&str) -> bool,
) -> Option<(&'s Path, String)> {
    let dirs = site
        .routes
        .iter()
        .filter_map(|route| match &route.handler.cgi()?.runs {
            CgiRuns::Folder { dir, .. } => Some((route, dir.as_path())),
            _ => None,
        });
    dirs.filter(|(route, dir)| *dir != files.root && !runs_by_ending(route))
        .find_map(|(_, dir)| {
            let path = path_of(prefix, &files.root, dir)?;
            is_sent(&format!("{path}/program")).then(|| (dir, format!("{path}/")))
        })
}

fn path_of(prefix: &str, root: &Path, file: &Path) -> Option<String> {
    let below = file.strip_prefix(root).ok()?.to_str()?;
    Some(format!("{prefix}{below}"))
}

/// It runs whatever has an ending, wherever that lies.
fn runs_by_ending(route: &Route) -> bool {
    route.handler.program().is_some() && route.path.contains("*.")
}
