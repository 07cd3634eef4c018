//! What several sites or routes say alike: keys of `[defaults]` and of each `[[snippet]]` are put
//! where they hold, so that all that follows reads them as if they stood there.

use super::fault::Faults;
use super::nearest::nearest;
use super::tree::Section;

/// Puts shared keys into the sites and routes of a config.
pub(crate) fn share(root: &mut Section, faults: &mut Faults<'_>) {
    let defaults = root.section("defaults").cloned();
    let snippets = Snippets::read(root, faults);
    for site in root.sections_mut("site") {
        snippets.put_into(site, faults);
        if let Some(defaults) = &defaults {
            site.inherit(defaults);
        }
        for route in site.sections_mut("route") {
            snippets.put_into(route, faults);
        }
    }
}

/// Every `[[snippet]]` whose name is right.
struct Snippets(Vec<Section>);

impl Snippets {
    /// Tells of names that are twice there, and of snippets that nobody names.
    fn read(root: &Section, faults: &mut Faults<'_>) -> Snippets {
        let sites = root.sections("site");
        let all =
            { sites.iter() }.flat_map(|site| [site].into_iter().chain(site.sections("route")));
        let named: Vec<&str> = { all.flat_map(|one| one.texts("snippets")) }
            .map(|(name, _)| name)
            .collect();
        let mut known: Vec<&Section> = Vec::new();
        for snippet in root.sections("snippet") {
            let (name, spot) = (snippet.text("name"), snippet.spot("name"));
            if snippet.given("name").is_none() {
                continue;
            }
            if let Some(first) = known.iter().find(|first| first.text("name") == name) {
                faults
                    .error(spot, format!("a `[[snippet]]` is called {name:?} already"))
                    .see(first.spot("name"), "the first")
                    .hint("give it another name");
                continue;
            }
            if !named.contains(&name) {
                let message = format!("no site and no route has {name:?} among its `snippets`");
                faults
                    .warn(spot, message)
                    .hint(format!("add `snippets = [{name:?}]` to one, or remove it"));
            }
            known.push(snippet);
        }
        Snippets(known.into_iter().cloned().collect())
    }

    /// Puts those that a site or a route names into it, the first one first.
    fn put_into(&self, section: &mut Section, faults: &mut Faults<'_>) {
        let named = section.texts("snippets").into_iter();
        let named: Vec<_> = named.map(|(name, spot)| (name.to_owned(), spot)).collect();
        for (name, spot) in named {
            let mut known = self.0.iter();
            if let Some(snippet) = known.find(|snippet| snippet.text("name") == name) {
                section.inherit(snippet);
                continue;
            }
            let fault = faults.error(spot, format!("no `[[snippet]]` is called {name:?}"));
            match nearest(&name, self.0.iter().map(|snippet| snippet.text("name"))) {
                Some(near) => fault.hint(format!("did you mean {near:?}?")),
                None => fault.hint(format!("add it: `[[snippet]]` with `name = {name:?}`")),
            };
        }
    }
}
