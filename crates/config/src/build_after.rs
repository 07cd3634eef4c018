//! What is done to answers: header rules, compression, pages and files in the place of a program's
//! output. A route says it, else its site.

use super::overload::RoutePriority;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::build_site::{codings, owned};
use super::fault::{Faults, Spot};
use super::text::{check_media_type, header_name_wrong, header_value_wrong};
use super::tls::hsts;
use super::tree::{KeyTextPair, Section};
use super::{AfterSteps, HeaderRule, HeaderRules, SlashForm};

/// A site's keys, and those of one of its routes.
#[derive(Clone, Copy)]
pub struct Answering<'a> {
    /// The site's section.
    pub site: &'a Section,
    /// None for the route that a site's `root` is short for.
    pub route: Option<&'a Section>,
}

impl<'a> Answering<'a> {
    /// What a site says by itself.
    pub(crate) fn of_site(site: &'a Section) -> Answering<'a> {
        Answering { site, route: None }
    }

    /// The section that says this key: the route's where it is given there.
    pub fn section(&self, key: &str) -> &'a Section {
        self.route
            .filter(|route| route.given(key).is_some())
            .unwrap_or(self.site)
    }

    /// What is done to a program's answers: the site's where the route says nothing of it.
    pub(crate) fn after(&self, of_site: &Arc<AfterSteps>) -> Arc<AfterSteps> {
        match self.route {
            Some(route) if !says_after(route) => Arc::clone(of_site),
            _ => self.shared_after(of_site),
        }
    }

    /// `known` where it is the same.
    fn shared_after(&self, known: &Arc<AfterSteps>) -> Arc<AfterSteps> {
        let own = self.own_after();
        match own == **known {
            true => Arc::clone(known),
            false => Arc::new(own),
        }
    }

    fn own_after(&self) -> AfterSteps {
        let from = |key| self.section(key);
        AfterSteps {
            compress: codings(&from("compress").texts("compress")),
            compress_min: from("compress_min").size("compress_min"),
            compress_types: owned(&from("compress_types").texts("compress_types")),
            intercept_errors: from("intercept_errors").flag("intercept_errors"),
            buffer_max: from("buffer_max").size("buffer_max"),
        }
    }

    /// Answers tell their clients how long they took.
    pub fn server_timing(&self) -> bool {
        self.section("server_timing").flag("server_timing")
    }

    /// Which routes are refused before it.
    pub(crate) fn priority(&self) -> RoutePriority {
        RoutePriority::of(self.section("priority").word("priority"))
    }

    /// Whether its paths end in a slash.
    pub(crate) fn slash(&self) -> SlashForm {
        match self.section("slash").word("slash") {
            "drop" => SlashForm::Drop,
            "add" => SlashForm::Add,
            _ => SlashForm::Keep,
        }
    }

    /// Values of `Link` that are sent while an answer is made.
    pub(crate) fn early_hints(&self) -> Vec<String> {
        owned(&self.section("early_hints").texts("early_hints"))
    }

    /// The site's rules, then the route's, which so have the last word.
    pub fn headers(&self) -> HeaderRules {
        let sections = [Some(self.site), self.route].into_iter().flatten();
        let strict = strict_transport(self.site).into_iter();
        let preset = security_headers(self.section("security_headers")).into_iter();
        let all = preset.chain(strict).chain(sections.flat_map(rules));
        HeaderRules::new(all.collect())
    }

    /// Folders below which programs name files, each with its place.
    pub fn sendfile(&self, faults: &Faults<'_>) -> Vec<(PathBuf, Spot)> {
        let section = self.section("sendfile");
        let folders = section.texts("sendfile").into_iter();
        folders
            .map(|(path, spot)| (faults.sources().resolve(spot.source, path), spot))
            .collect()
    }
}

/// The keys of `AfterSteps`.
const AFTER_KEYS: [&str; 5] = [
    "compress",
    "compress_min",
    "compress_types",
    "intercept_errors",
    "buffer_max",
];

fn says_after(section: &Section) -> bool {
    AFTER_KEYS.iter().any(|key| section.given(key).is_some())
}

/// What is done to programs' answers on sites that were read: most say the same, or nothing.
#[derive(Default)]
pub(crate) struct KnownAfter {
    /// On a site that says nothing of it.
    unsaid: Option<Arc<AfterSteps>>,
    /// On the last site that did.
    last: Arc<AfterSteps>,
}

impl KnownAfter {
    /// What is done on this site.
    pub(crate) fn of_site(&mut self, site: &Section) -> Arc<AfterSteps> {
        let answering = Answering { site, route: None };
        if says_after(site) {
            self.last = answering.shared_after(&self.last);
            return Arc::clone(&self.last);
        }
        let unsaid = self
            .unsaid
            .get_or_insert_with(|| Arc::new(answering.own_after()));
        Arc::clone(unsaid)
    }
}

/// What `security_headers` sets in answers that do not say it themselves.
const BASIC_SECURITY: &[(&str, &str)] = &[
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "SAMEORIGIN"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
];
const STRICT_SECURITY: &[(&str, &str)] = &[
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    (
        "Content-Security-Policy",
        "default-src 'self'; object-src 'none'; base-uri 'self'; form-action 'self'; \
         frame-ancestors 'none'",
    ),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    (
        "Permissions-Policy",
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

fn security_headers(section: &Section) -> Vec<HeaderRule> {
    let fields = match section.word("security_headers") {
        "basic" => BASIC_SECURITY,
        "strict" => STRICT_SECURITY,
        _ => &[],
    };
    let rule =
        |(name, value): &(&str, &str)| HeaderRule::Default((*name).to_owned(), (*value).to_owned());
    fields.iter().map(rule).collect()
}

/// The rule that a site's `hsts` is short for. Rules of the config come after it.
fn strict_transport(site: &Section) -> Option<HeaderRule> {
    let name = "Strict-Transport-Security".to_owned();
    hsts(site).map(|value| HeaderRule::Set(name, value))
}

/// What the keys of a site or route say wrongly about its answers.
pub fn check_answering(section: &Section, faults: &mut Faults<'_>) {
    check_headers(section.map("headers"), faults);
    for (line, spot) in section.given_texts("headers_add") {
        match line.split_once(':') {
            Some((name, value)) => {
                check_name(name, spot, faults);
                check_value(name, value.trim(), spot, faults);
            }
            None => {
                let message = format!("{line:?} is no header field");
                let hint = "write name and value with a colon between them: `\"Link: </a.css>\"`";
                faults.error(spot, message).hint(hint);
            }
        }
    }
    for (name, spot) in section.given_texts("headers_remove") {
        check_name(name, spot, faults);
    }
    for (value, spot) in section.given_texts("early_hints") {
        check_value("Link", value, spot, faults);
        if !value.starts_with('<') || !value.contains("rel=") {
            faults
                .error(spot, format!("{value:?} is no value of `Link`"))
                .hint("write what is linked and why: `\"</style.css>; rel=preload; as=style\"`");
        }
    }
    for (name, spot) in section.given_texts("compress_types") {
        let essence = name.strip_suffix("/*").map_or(name, |_| "text/plain");
        check_media_type(essence, name, spot, faults);
    }
    for (path, spot) in section.given_texts("sendfile") {
        if path.is_empty() {
            let hint = "write a path; `.` is the folder of this file";
            faults
                .error(spot, "a folder of `sendfile` is empty")
                .hint(hint);
        }
    }
}

fn check_headers(pairs: &[KeyTextPair], faults: &mut Faults<'_>) {
    let mut seen: BTreeMap<String, Spot> = BTreeMap::new();
    for pair in pairs {
        check_name(&pair.name, pair.key, faults);
        check_value(&pair.name, &pair.text, pair.spot, faults);
        if let Some(first) = seen.insert(pair.name.to_ascii_lowercase(), pair.key) {
            let message = format!("`{}` is set twice; case does not matter", pair.name);
            faults
                .error(pair.key, message)
                .see(first, "the first")
                .hint("remove one of them, or use `headers_add`");
        }
    }
}

fn check_name(name: &str, spot: Spot, faults: &mut Faults<'_>) {
    if let Some((message, hint)) = header_name_wrong(name) {
        faults.error(spot, message).hint(hint);
    }
}

fn check_value(name: &str, value: &str, spot: Spot, faults: &mut Faults<'_>) {
    if let Some(hint) = header_value_wrong(value) {
        let message = format!("the value of `{name}` cannot stand in a header field");
        faults.error(spot, message).hint(hint);
    }
}

fn rules(section: &Section) -> Vec<HeaderRule> {
    let removed = section.texts("headers_remove").into_iter();
    let removed = removed.map(|(name, _)| HeaderRule::Remove(name.to_owned()));
    let set = section.map("headers").iter().map(|pair| match &*pair.text {
        "" => HeaderRule::Remove(pair.name.clone()),
        text => HeaderRule::Set(pair.name.clone(), text.to_owned()),
    });
    let added = section.texts("headers_add").into_iter();
    let added = added.filter_map(|(line, _)| {
        let (name, value) = line.split_once(':')?;
        Some(HeaderRule::Add(name.to_owned(), value.trim().to_owned()))
    });
    removed.chain(set).chain(added).collect()
}
