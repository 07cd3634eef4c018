//! `[[auth]]`: where accounts are kept; and `require` of a site or a route: who has to sign in.

mod pam;
mod tokens;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use self::pam::{PAM_COMMAND, PAM_PROGRAM, PAM_SERVICES, PamRules};
pub(crate) use self::tokens::SIGNED_BY_PAIR;
pub use self::tokens::{TOKEN_ALGORITHMS, TokenKeysAt, TokenKeysUrl, TokenRules};
use super::Config;
use super::captured::{bind_captured, captured_wrong};
use super::check::{PathLookups, Spots};
use super::fault::{Faults, Spot};
use super::handlers::Handlers;
use super::nearest::nearest;
use super::program::Programs;
use super::route::pattern::Pattern;
use super::route::template::{CapturedPath, has_captures};
use super::text::is_header_name;
use super::tree::Section;
use super::when::RouteWhen;

/// Accounts, and how people sign in with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSettings {
    /// What `require` calls it.
    pub name: String,
    /// What browsers show beside the fields for name and password.
    pub realm: String,
    /// Who knows them.
    pub source: AccountSource,
}

/// Who knows accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountSource {
    /// Files.
    Files(AccountFiles),
    /// Another route of the site.
    Route(ForwardRoute),
    /// Nobody: whoever has a link that was signed with a key of this file may follow it.
    SignedUrls(PathBuf),
    /// Whoever signs tokens.
    Tokens(TokenRules),
    /// The system, by its PAM.
    Pam(PamRules),
}

/// Files of accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountFiles {
    /// Names and hashes of passwords, as Apache's `htpasswd` writes them.
    pub htpasswd: PathBuf,
    /// The same where it is another one for each account or host.
    pub captured: Option<CapturedPath>,
    /// Groups and their members.
    pub groups: Option<PathBuf>,
    /// So long a password that was right is not hashed again.
    pub remember: Duration,
}

/// A route that is asked whether it lets a request in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardRoute {
    /// A path that it answers.
    pub path: String,
    /// The field of its answer that has the name, in lower case.
    pub user: String,
    /// The field that has the groups, with commas between them, in lower case.
    pub groups: String,
    /// Fields of its answer that programs and proxied servers get, in lower case.
    pub fields: Vec<String>,
}

/// Who has to sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInRule {
    /// Index of the accounts in [`super::Config::auth`].
    pub auth: usize,
    /// Who may; where `groups` are empty too, everybody with an account.
    pub users: Vec<String>,
    /// Whose members may.
    pub groups: Vec<String>,
    /// In each of which they have to be besides.
    pub all_groups: Vec<String>,
    /// Whom `access` lets in has not to sign in, and the other way round.
    pub is_alternative: bool,
    /// Whom the route answers; others are left to the next one.
    pub when: Option<Arc<RouteWhen>>,
}

/// What `require` says where nobody has to sign in.
const NONE: &str = "none";

/// The accounts of a config, in file order, and where their files are named.
pub(crate) fn build_auth(
    root: &Section,
    programs: &mut Programs<'_>,
    faults: &mut Faults<'_>,
) -> (Vec<AuthSettings>, Vec<[Spot; 2]>) {
    let mut all: Vec<AuthSettings> = Vec::new();
    let mut spots = Vec::new();
    for section in root.sections("auth") {
        let name = section.text("name");
        let spot = section.spot("name");
        if section.given("name").is_some() && (name.is_empty() || name == NONE) {
            faults
                .error(spot, format!("{name:?} cannot be the name of accounts"))
                .hint("`require = \"none\"` says that nobody has to sign in; choose another name");
        } else if all.iter().any(|known| known.name == name) && !name.is_empty() {
            faults.error(spot, format!("two `[[auth]]` are called {name:?}"));
        }
        let realm = section.optional_text("realm").unwrap_or(name);
        if realm.contains(['"', '\\']) || realm.chars().any(char::is_control) {
            faults
                .error(
                    section.spot("realm"),
                    "a realm has no quotes, backslashes or control characters",
                )
                .hint("it stands between quotes in a header field");
        }
        let file = ["htpasswd", "signed_urls"]
            .into_iter()
            .find(|key| section.has(key));
        let file = match (file, section.section("jwt")) {
            (None, None) if section.has("pam") => section.spot("pam"),
            (None, Some(jwt)) if jwt.has("keys_ca") => jwt.spot("keys_ca"),
            (None, Some(jwt)) => jwt.spot("keys"),
            (file, _) => section.spot(file.unwrap_or("name")),
        };
        spots.push([file, section.spot("groups")]);
        all.push(AuthSettings {
            name: name.to_owned(),
            realm: realm.to_owned(),
            source: read_source(section, programs, faults),
        });
    }
    (all, spots)
}

/// Who knows the accounts of an `[[auth]]`: one of five.
fn read_source(
    section: &Section,
    programs: &mut Programs<'_>,
    faults: &mut Faults<'_>,
) -> AccountSource {
    let sources = ["htpasswd", "forward", "signed_urls", "jwt", "pam"];
    let given: Vec<&str> = { sources.into_iter() }
        .filter(|key| section.has(key) || section.is_claimed(key))
        .collect();
    match given[..] {
        [] => {
            faults
                .error(section.header, "nobody knows these accounts")
                .hint(
                    "add `htpasswd = \"FILE\"`, `forward = \"/PATH\"` for a route that is asked, \
                     `jwt = { ... }` for tokens, `pam = { ... }` for those of the system, or \
                     `signed_urls = \"FILE\"` for links that were \
                     signed with a key",
                );
        }
        [first, second, ..] => {
            let message = format!("`{second}` beside `{first}`: accounts come from one of them");
            faults
                .error(section.spot(second), message)
                .hint("make two `[[auth]]` of it, or remove one");
        }
        [_] => {}
    }
    for key in ["groups", "remember"] {
        if let (Some(given), false) = (section.given(key), given.contains(&"htpasswd")) {
            let message = format!("`{key}` does nothing without `htpasswd`");
            faults.error(given.key, message).hint("remove it");
        }
    }
    if let Some(key) = section.optional_path("signed_urls") {
        return AccountSource::SignedUrls(key.clone());
    }
    if let Some(jwt) = section.section("jwt") {
        return AccountSource::Tokens(tokens::read_tokens(jwt, faults));
    }
    if let Some(pam) = section.section("pam") {
        return AccountSource::Pam(pam::read_pam(pam, programs, faults));
    }
    let Some(forward) = section.section("forward") else {
        return AccountSource::Files(read_files(section, faults));
    };
    let path = forward.text("path");
    let is_path =
        path.starts_with('/') && !path.contains(|c: char| " ?#\"%".contains(c) || c.is_control());
    if forward.given("path").is_some() && !is_path {
        faults
            .error(
                forward.spot("path"),
                format!("{path:?} is no path of a route"),
            )
            .hint("write it as in `path` of the route, without a query: `\"/verify\"`");
    }
    let mut name = |text: &str, spot: Spot| {
        if !is_header_name(text) || text.contains('_') {
            faults.error(spot, format!("{text:?} is no name of a field"));
        }
        text.to_ascii_lowercase()
    };
    let user = name(forward.text("user"), forward.spot("user"));
    let groups = name(forward.text("groups"), forward.spot("groups"));
    let fields = forward.texts("fields").into_iter();
    AccountSource::Route(ForwardRoute {
        path: path.to_owned(),
        user,
        groups,
        fields: fields.map(|(text, spot)| name(text, spot)).collect(),
    })
}

/// The files of an `[[auth]]`.
fn read_files(section: &Section, faults: &mut Faults<'_>) -> AccountFiles {
    let htpasswd = section.optional_path("htpasswd").cloned();
    let captured = htpasswd.as_deref().map(CapturedPath::parse);
    let captured = captured.transpose().unwrap_or_else(|error| {
        let path = htpasswd.as_deref().unwrap_or(Path::new(""));
        captured_wrong(&error, path, section.spot("htpasswd"), faults);
        None
    });
    if let Some(groups) = section
        .optional_path("groups")
        .filter(|path| has_captures(path))
    {
        let message = format!(
            "{} has captures, which `groups` takes none of",
            groups.display()
        );
        faults
            .error(section.spot("groups"), message)
            .hint("one file says who is in which group, for all accounts");
    }
    AccountFiles {
        htpasswd: htpasswd.unwrap_or_default(),
        captured: captured.flatten(),
        groups: section.optional_path("groups").cloned(),
        remember: section.time("remember"),
    }
}

/// Files of accounts are there, and passwords are not sent in clear text over a network.
pub(crate) fn check_auth<H: Handlers>(
    config: &Config<H>,
    spots: &Spots<H>,
    looked: &mut PathLookups<'_>,
    faults: &mut Faults<'_>,
) {
    for (auth, [htpasswd, groups]) in config.auth.iter().zip(&spots.auth) {
        let files = match &auth.source {
            AccountSource::Files(files) => files,
            // What PAM needs is looked at with the machine.
            AccountSource::Route(_) | AccountSource::Pam(_) => continue,
            AccountSource::SignedUrls(key) => {
                looked.file(key, *htpasswd, "write the file's own path", faults);
                continue;
            }
            AccountSource::Tokens(rules) => {
                let file = match &rules.keys {
                    TokenKeysAt::File(file) => Some(file),
                    TokenKeysAt::Url(url) => url.ca.as_ref(),
                };
                // One that is not named is told already.
                if let Some(file) = file.filter(|file| !file.as_os_str().is_empty()) {
                    looked.file(file, *htpasswd, "write the file's own path", faults);
                }
                continue;
            }
        };
        let hint = "`hob password FILE NAME` makes it; write the file's own path";
        if let Some(captured) = &files.captured {
            looked.root(&captured.fixed, *htpasswd, faults);
        } else if !files.htpasswd.as_os_str().is_empty() && !has_captures(&files.htpasswd) {
            // One that is not named, or wrongly, is told already.
            looked.file(&files.htpasswd, *htpasswd, hint, faults);
        }
        if let Some(file) = files.groups.as_ref().filter(|file| !has_captures(file)) {
            looked.file(file, *groups, "write the file's own path", faults);
        }
    }
    check_captures(config, spots, faults);
    let mut listeners = config.site_listeners();
    // What stands in front may speak TLS.
    let is_clear = |listener: &&super::Listener| {
        let is_private = listener.address.is_for_this_machine_only() || listener.trust.is_some();
        listener.tls.is_none() && !listener.proxy_protocol && !is_private
    };
    let Some(listener) = listeners.find(is_clear) else {
        return;
    };
    for (site, spots) in config.sites.iter().zip(&spots.sites) {
        let mut routes = site.routes.iter().zip(&spots.routes);
        let secrets = |route: &super::RouteConfig<H>| {
            let rule = route.require.as_ref()?;
            match config.auth.get(rule.auth)?.source {
                AccountSource::Files(_) | AccountSource::Pam(_) => Some("passwords"),
                AccountSource::Tokens(_) => Some("tokens"),
                AccountSource::Route(_) | AccountSource::SignedUrls(_) => None,
            }
        };
        let asking = routes.find_map(|(route, spots)| Some((secrets(route)?, spots)));
        if let Some((secrets, spots)) = asking.filter(|_| !site.https_only) {
            let message = format!(
                "{secrets} for this route cross the network in clear text, at {}",
                listener.address
            );
            faults
                .warn(spots.header, message)
                .hint("give that listener its `tls` and the site `https_only = true`");
        }
    }
}

/// Each route captures what the file of its accounts is called by.
fn check_captures<H: Handlers>(config: &Config<H>, spots: &Spots<H>, faults: &mut Faults<'_>) {
    for (site, spots) in config.sites.iter().zip(&spots.sites) {
        for (route, spots) in site.routes.iter().zip(&spots.routes) {
            let rule = route.require.as_ref();
            let auth = rule.and_then(|rule| config.auth.get(rule.auth));
            let Some(AccountSource::Files(files)) = auth.map(|auth| &auth.source) else {
                continue;
            };
            let Some(captured) = &files.captured else {
                continue;
            };
            match &spots.path {
                Some((spot, pattern)) => _ = bind_captured(captured, pattern, *spot, faults),
                // That of the site's root captures nothing; a wrong one was told.
                None if route.path == "/*" => {
                    if let Ok(pattern) = Pattern::parse("/*") {
                        bind_captured(captured, &pattern, spots.header, faults);
                    }
                }
                None => {}
            }
        }
    }
}

/// Who has to sign in, as a site or a route says: `None` where it says nothing, and `Some(None)`
/// where nobody has to.
pub(crate) fn read_require(
    root: &Section,
    section: &Section,
    faults: &mut Faults<'_>,
) -> Option<Option<Arc<SignInRule>>> {
    let section = section.section("require")?;
    let given: Vec<(&str, &Section)> = { root.sections("auth").iter() }
        .map(|auth| (auth.text("name"), auth))
        .collect();
    let (name, spot) = (section.text("auth"), section.spot("auth"));
    let [users, groups, all_groups] =
        ["users", "groups", "all_groups"].map(|key| section.given_words(key));
    if name == NONE {
        for key in ["users", "groups", "all_groups", "satisfy"] {
            if let Some(given) = section.given(key) {
                let spot = given.key;
                faults.error(
                    spot,
                    format!("`{key}` does nothing where nobody has to sign in"),
                );
            }
        }
        return Some(None);
    }
    let Some(auth) = given.iter().position(|(known, _)| *known == name) else {
        // What is wrong with its kind was told.
        if section.given("auth").is_some() {
            let fault = faults.error(spot, format!("no `[[auth]]` is called {name:?}"));
            match nearest(name, given.iter().map(|(known, _)| *known)) {
                Some(near) => fault.hint(format!("did you mean {near:?}?")),
                None if given.is_empty() => fault.hint(format!(
                    "add it: `[[auth]]` with `name = {name:?}` and `htpasswd = \"users\"`"
                )),
                None => fault,
            };
        }
        return Some(None);
    };
    let asked = [("groups", &groups), ("all_groups", &all_groups)].into_iter();
    let asks_groups = { asked }.find_map(|(key, names)| (!names.is_empty()).then_some(key));
    let asks_groups = asks_groups.map(|key| section.spot(key));
    if given[auth].1.has("signed_urls") && !(users.is_empty() && asks_groups.is_none()) {
        let hint = "whoever has a signed link may follow it: remove `users`, `groups` and \
                    `all_groups`";
        miss_accounts(name, section.spot("auth"), hint, faults);
    } else if let Some(spot) = asks_groups {
        miss_groups((name, given[auth].1), spot, faults);
    }
    Some(Some(Arc::new(SignInRule {
        auth,
        users,
        groups,
        all_groups,
        is_alternative: section.word("satisfy") == "any",
        when: None,
    })))
}

/// The rule of a route, which is for some of those who have signed in where its `when` says so.
pub(crate) fn rule_of_route(
    root: &Section,
    section: &Section,
    (rule, when): (Option<Arc<SignInRule>>, Option<&Arc<RouteWhen>>),
    faults: &mut Faults<'_>,
) -> Option<Arc<SignInRule>> {
    let (Some(when), Some(asked)) = (when.filter(|when| when.asks_who()), section.section("when"))
    else {
        return rule;
    };
    let key = ["user", "group"][usize::from(when.users.is_empty())];
    let Some(rule) = rule else {
        faults
            .error(asked.spot(key), "nobody signs in at this route")
            .hint("add `require = \"NAME\"` of an `[[auth]]` to it, or to its site");
        return None;
    };
    if let Some(auth) = root.sections("auth").get(rule.auth) {
        let name = auth.text("name");
        if auth.has("signed_urls") {
            let hint = "whoever has a signed link may follow it: remove `user` and `group`";
            miss_accounts(name, asked.spot(key), hint, faults);
        } else if !when.groups.is_empty() {
            miss_groups((name, auth), asked.spot("group"), faults);
        }
    }
    Some(Arc::new(SignInRule {
        when: Some(Arc::clone(when)),
        ..(*rule).clone()
    }))
}

fn miss_accounts(name: &str, spot: Spot, hint: &str, faults: &mut Faults<'_>) {
    let message = format!("`[[auth]]` {name:?} has no users and no groups");
    faults.error(spot, message).hint(hint);
}

/// Tells of groups that are asked for where accounts have none.
fn miss_groups((name, auth): (&str, &Section), spot: Spot, faults: &mut Faults<'_>) {
    if ["groups", "forward", "jwt", "pam"]
        .iter()
        .any(|key| auth.has(key))
    {
        return;
    }
    faults
        .error(spot, format!("`[[auth]]` {name:?} has no groups"))
        .see(auth.header, "it stands here")
        .hint("add `groups = \"FILE\"` to it, or name users");
}
