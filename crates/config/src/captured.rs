//! Folders and files that are others for each account or host: what is told of how they are
//! written.

use std::path::{Path, PathBuf};

use super::fault::{Faults, Spot};
use super::nearest::nearest;
use super::route::pattern::Pattern;
use super::route::template::{
    CapturedPath, PathTemplate, TemplateError, TemplateFault, has_captures,
};
use super::tree::Section;

/// A site's root where it is one folder: one with captures is another for each request, and only
/// files look there.
pub fn plain_root(site: &Section) -> Option<&PathBuf> {
    site.optional_path("root")
        .filter(|root| !has_captures(root))
}

/// Tells of captures in paths that are the same for all requests.
pub fn refuse_captures(section: &Section, keys: &[&str], hint: &str, faults: &mut Faults<'_>) {
    for key in keys {
        if section.has(key)
            && section
                .optional_path(key)
                .is_some_and(|path| has_captures(path))
        {
            faults
                .error(section.spot(key), format!("`{key}` has no captures here"))
                .hint(hint);
        }
    }
}

/// Reads a path that may have captures, on a route with this pattern; `None` where it has none, or
/// what is wrong with it was told.
pub fn read_captured(
    path: &Path,
    pattern: Option<&Pattern>,
    spot: Spot,
    faults: &mut Faults<'_>,
) -> Option<CapturedPath> {
    let captured = match CapturedPath::parse(path) {
        Ok(captured) => captured?,
        Err(error) => {
            captured_wrong(&error, path, spot, faults);
            return None;
        }
    };
    // A wrong pattern was told.
    bind_captured(&captured, pattern?, spot, faults).map(|_| captured)
}

/// The same path for routes with this pattern; `None` where that was told to be wrong.
pub fn bind_captured(
    captured: &CapturedPath,
    pattern: &Pattern,
    spot: Spot,
    faults: &mut Faults<'_>,
) -> Option<PathTemplate> {
    match captured.bind(pattern) {
        Ok(template) => Some(template),
        Err(TemplateFault::Unknown { name, known }) => {
            // They are quoted for printing.
            let bare = known.iter().map(|word| word.trim_matches(['`', '{', '}']));
            let hint = match nearest(&name, bare) {
                Some(meant) => format!("did you mean `{{{meant}}}`?"),
                None => format!(
                    "write a `path` of the route that captures it, such as `/{{{name}}}/*`; known \
                     here: {}",
                    known.join(", ")
                ),
            };
            let message = format!("the route's path does not capture `{{{name}}}`");
            faults.error(spot, message).hint(hint);
            None
        }
        Err(fault) => {
            let error = TemplateError { at: 0, fault };
            captured_wrong(&error, &captured.fixed, spot, faults);
            None
        }
    }
}

/// Tells what is wrong with such a path.
pub fn captured_wrong(error: &TemplateError, path: &Path, spot: Spot, faults: &mut Faults<'_>) {
    let message = match &error.fault {
        TemplateFault::RestInName(_) => "this leads to no folder".to_owned(),
        _ => format!("{} is no path with captures", path.display()),
    };
    faults.error(spot, message).hint(error.to_string());
}
