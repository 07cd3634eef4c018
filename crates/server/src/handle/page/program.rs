//! Programs that pages may call: routes with a name, which the config lists.

use hob_page::program::program_of;

use crate::handle::config::tree::Section;
use crate::handle::config::{CgiRuns, Config, Faults, Spot, nearest};

/// A program that pages may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalledProgram {
    /// What they call it: the name of its route.
    pub name: String,
    /// Indexes of its site, and of its route there.
    pub at: (usize, usize),
}

/// What `programs` of a `page` names, and where.
pub(super) fn read(
    section: &Section,
    root: &Section,
    faults: &mut Faults<'_>,
) -> Vec<(CalledProgram, Spot)> {
    let wanted = section.given_texts("programs");
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut named = Vec::new();
    for (site_index, site) in root.sections("site").iter().enumerate() {
        for (route_index, route) in site.sections("route").iter().enumerate() {
            if let Some(name) = route.optional_text("name") {
                named.push((name, (site_index, route_index)));
            }
        }
    }
    let mut found = Vec::new();
    for (name, spot) in wanted {
        match named.iter().find(|(known, _)| *known == name) {
            Some((_, at)) => {
                let (name, at) = (name.to_owned(), *at);
                found.push((CalledProgram { name, at }, spot));
            }
            None => {
                let hint = match nearest(name, named.iter().map(|(known, _)| *known)) {
                    Some(meant) => format!("did you mean \"{meant}\"?"),
                    None => format!("write `name = {name:?}` into the route that runs it"),
                };
                faults
                    .error(spot, format!("no route is named {name:?}"))
                    .hint(hint);
            }
        }
    }
    found
}

impl CalledProgram {
    /// Tells where its route runs nothing that can be called.
    pub(super) fn check(&self, config: &Config, spot: Spot, faults: &mut Faults<'_>) {
        let site = config.sites.get(self.at.0);
        let Some(route) = site.and_then(|site| site.routes.get(self.at.1)) else {
            return;
        };
        let name = &self.name;
        match (route.handler.cgi(), route.handler.resident()) {
            (Some(cgi), _) if matches!(cgi.runs, CgiRuns::Command { .. }) => {
                faults
                    .error(spot, format!("the command of {name:?} takes no arguments"))
                    .hint("name the program in `cgi.script`");
            }
            (None, None) => {
                faults
                    .error(
                        spot,
                        format!("the route {name:?} runs no program of this machine"),
                    )
                    .hint("pages call programs of `cgi`, `warm` and `resident`");
            }
            _ => {}
        }
    }
}

/// The program that a page means by a word, and what the word says besides: one of a folder.
pub(super) fn find<'p, 'w>(
    programs: &'p [CalledProgram],
    word: &'w str,
) -> Option<(&'p CalledProgram, &'w str)> {
    let names: Vec<&str> = programs.iter().map(|one| &*one.name).collect();
    let (at, rest) = program_of(&names, word)?;
    Some((programs.get(at)?, rest))
}
