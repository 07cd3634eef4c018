//! From the tree of sections to the [`Config`]: each value gets its meaning.
//!
//! What one key says wrongly by itself is told here; rules across keys are in `check`.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};

use super::acme::build_acme;
use super::address::{listen_address, localhost_port};
use super::admin::build_admin;
use super::auth::build_auth;
use super::ban::build_bans;
use super::build_after::KnownAfter;
use super::build_site::{build_site, owned};
use super::check::{Built, ListenSpots, OwnSpots, SiteSpots, Spots};
use super::fault::{Faults, Spot, listed};
use super::inside::{build_activity, build_history};
use super::log_format::{check_log_format, log_variables};
use super::metrics::{build_metrics, build_otlp};
use super::names::build_names;
use super::nearest::nearest;
use super::offer::build_offers;
use super::overload::build_overload;
use super::program::Programs;
use super::schema::{CACHE, LIMITS, WATCH};
use super::syslog::build_syslog;
use super::text::is_header_name;
use super::tls::{UpstreamTls, build_listen_tls};
use super::tree::{ConfigValue, Section};
use super::trust::ClientTrust;
use super::{
    CacheSettings, Config, Handlers, LimitSettings, ListenAddress, Listener, LogChoice,
    LogSettings, LogTarget, Loopback, Purpose, SiteConfig, UnknownHost, WatchSettings,
};

/// The config a tree describes, as far as it can be read, and where its parts stand.
pub(crate) fn build<H: Handlers>(root: &Section, faults: &mut Faults<'_>) -> Built<H> {
    debug_assert!(root.is_of(H::schema().root));
    let mut names = Logs::default();
    let (logs, log_spots) = build_logs(root.sections("log"), &mut names, faults);
    let given = root.sections("log");
    let are_named = given.iter().all(|log| log.given("name").is_some());
    names.are_whole = !root.is_claimed("log") && are_named;
    let limits = build_limits(root, faults);
    let mut listening = build_listeners(root, &names, faults);
    let admin = build_admin(root, &mut listening, faults);
    let (listeners, listen_spots) = listening;
    let mut programs = Programs::new(root, faults);
    let (auth, auth_spots) = build_auth(root, &mut programs, faults);
    let (sites, site_spots) = build_sites(root, (&limits, &names), &mut programs, faults);
    H::check_top_keys(root, faults);
    if sites.is_empty() && !root.has("site") {
        miss_sites(root, faults);
    }
    let (programs, program_spots) = programs.into_lists();
    let offers = build_offers(root, &sites, &listeners, faults);
    let mut config = Config {
        threads: threads(root),
        cpus: root.cpus("cpus").to_vec(),
        nice: root.number("nice"),
        user: account(root, "user", faults),
        group: account(root, "group", faults),
        unknown_host: unknown_host(root, &site_spots, faults),
        control: root.optional_path("control").cloned(),
        control_off: matches!(
            root.given("control").map(|g| &g.value),
            Some(ConfigValue::Word(_))
        ),
        state: root.optional_path("state").cloned(),
        drain: root.time("drain"),
        limits,
        cache: build_cache(root),
        watch: build_watch(root, faults),
        metrics: build_metrics(root),
        otlp: build_otlp(root, faults),
        names: build_names(root, faults),
        countries: root.optional_path("countries").cloned(),
        history: build_history(root, faults),
        activity: build_activity(root),
        acme: None,
        admin,
        auth,
        bans: build_bans(root, faults),
        overload: build_overload(root),
        programs,
        upstream_tls: upstream_tls(&sites),
        logs,
        listeners,
        offers,
        sites,
    };
    let (acme, acme_spots) = build_acme(root, &config, faults).unzip();
    config.acme = acme;
    Built {
        config,
        spots: Spots {
            own: own_spots(root),
            programs: program_spots,
            acme: acme_spots,
            otlp_ca: root.section("otlp").map(|section| section.spot("ca")),
            auth: auth_spots,
            logs: log_spots,
            listeners: listen_spots,
            sites: site_spots,
        },
    }
}

/// As many as are named; none where a word says how many.
fn threads(root: &Section) -> Option<usize> {
    match root.given("threads").map(|given| &given.value) {
        Some(ConfigValue::Integer(_)) => Some(root.number("threads")),
        _ => None,
    }
}

fn upstream_tls<H: Handlers>(sites: &[SiteConfig<H>]) -> Vec<UpstreamTls> {
    let mut all: Vec<UpstreamTls> = Vec::new();
    for route in sites.iter().flat_map(|site| &site.routes) {
        if let Some(tls) = route
            .handler
            .upstream_tls()
            .filter(|tls| !all.contains(tls))
        {
            all.push(tls.clone());
        }
    }
    all
}

fn unknown_host<H: Handlers>(
    root: &Section,
    sites: &[SiteSpots<H>],
    faults: &mut Faults<'_>,
) -> UnknownHost {
    if root.given("unknown_host").is_some() && sites.iter().any(SiteSpots::is_rest) {
        let message = "`unknown_host` does nothing: a site without `names` answers";
        let spot = root.spot("unknown_host");
        let hint = "remove it, or give that site `names`";
        faults.warn(spot, message).hint(hint);
    }
    match root.word("unknown_host") {
        "first" => UnknownHost::First,
        _ => UnknownHost::Refuse,
    }
}

fn own_spots(root: &Section) -> OwnSpots {
    OwnSpots {
        user: account_spot(root),
        control: root.spot("control"),
        cpus: root.spot("cpus"),
        nice: root.spot("nice"),
        countries: root.spot("countries"),
        connections: match root.section("limits") {
            Some(limits) => limits.spot("connections"),
            None => root.header,
        },
    }
}

/// All sites.
fn build_sites<H: Handlers>(
    root: &Section,
    from: (&LimitSettings, &Logs),
    programs: &mut Programs<'_>,
    faults: &mut Faults<'_>,
) -> (Vec<SiteConfig<H>>, Vec<SiteSpots<H>>) {
    let mut after = KnownAfter::default();
    let sites = root.sections("site").iter();
    sites
        .map(|section| {
            build_site(
                section,
                &mut after,
                (root, from.0, from.1),
                programs,
                faults,
            )
        })
        .unzip()
}

fn miss_sites(root: &Section, faults: &mut Faults<'_>) {
    let message = "there is no `[[site]]`: nothing would be served";
    faults
        .error(root.header, message)
        .hint("add `[[site]]` and below it `root = \"FOLDER\"`");
}

pub(crate) fn account(root: &Section, key: &str, faults: &mut Faults<'_>) -> Option<String> {
    let name = root.optional_text(key)?;
    let is_name = (1..=255).contains(&name.len())
        && !name.starts_with('-')
        && !name.contains(|c: char| c.is_whitespace() || c.is_control() || c == ':' || c == '/');
    if !is_name {
        let message = format!("{name:?} is no name of an account");
        faults
            .error(root.spot(key), message)
            .hint("write it as `/etc/passwd` has it");
        return None;
    }
    Some(name.to_owned())
}

/// Where an account is named: its user, else its group, else the table that names neither.
pub(crate) fn account_spot(section: &Section) -> Spot {
    match section.has("user") {
        true => section.spot("user"),
        false => section.spot("group"),
    }
}

fn build_limits(root: &Section, faults: &mut Faults<'_>) -> LimitSettings {
    let default = Section::new(&LIMITS, root.header);
    let section = root.section("limits").unwrap_or(&default);
    let limits = LimitSettings {
        target: section.size_usize("target"),
        head: section.size_usize("head"),
        headers: section.number("headers"),
        head_time: section.time("head_time"),
        body_progress: section.time("body_progress"),
        write_progress: section.time("write_progress"),
        idle: section.time("idle"),
        linger: section.time("linger"),
        handshake_time: section.time("handshake_time"),
        handshake_bytes: section.size_usize("handshake_bytes"),
        handshakes: section.number("handshakes"),
        proxy_protocol_time: section.time("proxy_protocol_time"),
        proxy_protocol_bytes: section.size_usize("proxy_protocol_bytes"),
        h3_unread: section.size_usize("h3_unread"),
        connections: section.number("connections"),
        connections_per_client: section.number("connections_per_client"),
        bans: section.number("bans"),
        body: section.size("body"),
        workers: section.number("workers"),
        roots: section.number("roots"),
    };
    if limits.target > limits.head {
        let key = if section.given("target").is_some() {
            "target"
        } else {
            "head"
        };
        faults
            .error(
                section.spot(key),
                "`limits.target` is larger than `limits.head`",
            )
            .hint("the target is a part of the head: make `head` larger or `target` smaller");
    }
    limits
}

fn build_cache(root: &Section) -> CacheSettings {
    let default = Section::new(&CACHE, root.header);
    let section = root.section("cache").unwrap_or(&default);
    let is_off = matches!(
        root.given("cache").map(|given| &given.value),
        Some(ConfigValue::Word(_))
    );
    let bytes = match section.given("bytes").map(|given| &given.value) {
        _ if is_off => Some(0),
        Some(ConfigValue::Size(_)) => Some(section.size("bytes")),
        _ => None,
    };
    CacheSettings {
        bytes,
        max_file: section.size("max_file"),
        max_file_tls: section.size("max_file_tls"),
        recheck: section.time("recheck"),
    }
}

fn build_watch(root: &Section, faults: &mut Faults<'_>) -> WatchSettings {
    let default = Section::new(&WATCH, root.header);
    let section = root.section("watch").unwrap_or(&default);
    for (name, spot) in section.texts("hidden_fields") {
        if !is_header_name(name) {
            faults.error(spot, format!("{name:?} is no name of a header field"));
        }
    }
    for (word, spot) in section.texts("hidden_query") {
        if word.is_empty() {
            faults.error(spot, "an empty word would hide every key");
        }
    }
    WatchSettings {
        hidden_query: owned(&section.texts("hidden_query")),
        hidden_fields: owned(&section.texts("hidden_fields")),
    }
}

/// Access logs by name.
#[derive(Default)]
pub(crate) struct Logs {
    by_name: BTreeMap<String, (usize, Spot)>,
    /// Every `[[log]]` has a right name, so one that is not here does not exist.
    are_whole: bool,
}

impl Logs {
    /// What `key` of a section chooses.
    pub(crate) fn choice(
        &self,
        section: &Section,
        key: &str,
        faults: &mut Faults<'_>,
    ) -> LogChoice {
        match section.optional_text(key) {
            None => LogChoice::Inherit,
            Some("off") => LogChoice::Off,
            Some(name) => match self.by_name.get(name) {
                Some((index, _)) => LogChoice::Log(*index),
                None => {
                    self.unknown(name, section.spot(key), faults);
                    LogChoice::Inherit
                }
            },
        }
    }

    fn unknown(&self, name: &str, spot: Spot, faults: &mut Faults<'_>) {
        if !self.are_whole {
            return;
        }
        let known = || self.by_name.keys().map(String::as_str);
        let hint = match nearest(name, known()) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None if self.by_name.is_empty() => {
                format!("add `[[log]]` with `name = {name:?}`, or write \"off\"")
            }
            None => format!(
                "logs here are {}; \"off\" is none",
                listed(known(), " and ")
            ),
        };
        faults
            .error(spot, format!("there is no `[[log]]` named {name:?}"))
            .hint(hint);
    }
}

fn build_logs(
    sections: &[Section],
    names: &mut Logs,
    faults: &mut Faults<'_>,
) -> (Vec<LogSettings>, Vec<Spot>) {
    let mut logs = Vec::new();
    let mut spots = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        if section.given("name").is_some() {
            log_name(section, index, names, faults);
        }
        let format = section.text("format").to_owned();
        check_log_format(&format, section.spot("format"), faults);
        logs.push(LogSettings {
            target: log_target(section, faults),
            variables: log_variables(&format, section.spot("format"), faults),
            format,
            rotate_bytes: section.size("rotate_size"),
            rotate_daily: section.word("rotate") == "daily",
            keep: section.number("keep"),
            compress: section.flag("compress"),
        });
        let is_piped = section.given("pipe").is_some();
        spots.push(section.spot(if is_piped { "pipe" } else { "file" }));
    }
    (logs, spots)
}

fn log_name(section: &Section, index: usize, names: &mut Logs, faults: &mut Faults<'_>) {
    let name = section.text("name");
    let spot = section.spot("name");
    if name == "off" || name.is_empty() {
        faults
            .error(spot, format!("{name:?} cannot name a log"))
            .hint("choose another name");
    }
    if let Some((_, first)) = names.by_name.get(name) {
        faults
            .error(spot, format!("a second log is named {name:?}"))
            .see(*first, "the first")
            .hint("give one of them another name");
    }
    names
        .by_name
        .entry(name.to_owned())
        .or_insert((index, spot));
}

fn log_target(section: &Section, faults: &mut Faults<'_>) -> LogTarget {
    let to_stdout = section.flag("stdout");
    if let Some(syslog) = section.section("syslog") {
        alone(section, "syslog", faults);
        no_rotation(section, "a collector of syslog", faults);
        let settings = build_syslog(syslog, faults);
        return settings.map_or(LogTarget::Stdout, LogTarget::Syslog);
    }
    if section.given("pipe").is_some() {
        alone(section, "pipe", faults);
        no_rotation(section, "a program", faults);
        let arguments = owned(&section.texts("pipe"));
        if !arguments.first().is_some_and(|path| path.starts_with('/')) {
            faults
                .error(
                    section.spot("pipe"),
                    "`pipe` does not begin with the path of a program",
                )
                .hint("write it in full: `[\"/usr/bin/rotatelogs\", ...]`; there is no shell");
        }
        return LogTarget::Program(arguments);
    }
    let Some(path) = section.optional_path("file") else {
        let is_claimed = ["stdout", "syslog", "pipe"]
            .iter()
            .any(|key| section.is_claimed(key));
        if !to_stdout && !section.has("file") && !is_claimed {
            let message = "the log has neither `file` nor `stdout = true`";
            faults
                .error(section.header, message)
                .hint("add one of them, or `syslog` or `pipe`");
        }
        if to_stdout {
            no_rotation(section, "standard output", faults);
        }
        return LogTarget::Stdout;
    };
    if to_stdout {
        faults
            .error(
                section.spot("stdout"),
                "the log has both `file` and `stdout = true`",
            )
            .see(section.spot("file"), "the file")
            .hint("keep one; for both, write two `[[log]]`");
    }
    LogTarget::File(path.clone())
}

/// Tells of other places where the same log is to go.
fn alone(section: &Section, key: &str, faults: &mut Faults<'_>) {
    for other in ["file", "stdout", "pipe"] {
        let is_off = other == "stdout" && !section.flag("stdout");
        if other != key && section.given(other).is_some() && !is_off {
            faults
                .error(
                    section.spot(other),
                    format!("the log has both `{other}` and `{key}`"),
                )
                .see(section.spot(key), "the other")
                .hint("keep one; for both, write two `[[log]]`");
        }
    }
}

/// Tells of keys that are for files alone.
fn no_rotation(section: &Section, goes_to: &str, faults: &mut Faults<'_>) {
    for key in ["rotate_size", "rotate"] {
        if section.given(key).is_some() {
            let message = format!("`{key}` does nothing: this log goes to {goes_to}");
            faults.warn(section.spot(key), message).hint("remove it");
        }
    }
}

fn build_listeners(
    root: &Section,
    logs: &Logs,
    faults: &mut Faults<'_>,
) -> (Vec<Listener>, Vec<ListenSpots>) {
    let inherited = match logs.choice(root, "default_log", faults) {
        LogChoice::Inherit => LogChoice::Off,
        choice => choice,
    };
    let mut listeners = Vec::new();
    let mut spots = Vec::new();
    for section in root.sections("listen") {
        let localhost = localhost_port(section.text("address"));
        let address = match localhost {
            Some(port) => ListenAddress::Tcp((Ipv4Addr::LOCALHOST, port).into()),
            None => match read_address(section, faults) {
                Some(address) => address,
                None => continue,
            },
        };
        let (tls, tls_spots) = build_listen_tls(section, faults).unzip();
        let own_spots = ListenSpots {
            address: section.spot("address"),
            tls: tls_spots,
            offers: section.spot("offers"),
            tcp_only: TCP_ONLY
                .iter()
                .filter_map(|key| Some((*key, section.given(key)?.key)))
                .collect(),
        };
        let mut listener = listener(section, address, inherited, logs, faults);
        listener.tls = tls;
        if listener.proxy_protocol {
            super::trust::look_at_header(section, &mut listener, faults);
        }
        super::offer::look_at_listener(section, &mut listener, faults);
        let mut both = (listeners, spots);
        add_listener(listener, own_spots, localhost, &mut both);
        (listeners, spots) = both;
    }
    if listeners.is_empty() && !root.has("listen") {
        let section = Section::new(&super::schema::LISTEN, root.header);
        let address = ListenAddress::Tcp(DEFAULT_ADDRESS);
        listeners.push(listener(&section, address, inherited, logs, faults));
        spots.push(ListenSpots {
            address: root.header,
            tls: None,
            offers: root.header,
            tcp_only: Vec::new(),
        });
    }
    (listeners, spots)
}

/// Adds a listener; of `localhost` at a port two.
pub(crate) fn add_listener(
    mut listener: Listener,
    own_spots: ListenSpots,
    localhost: Option<u16>,
    (listeners, spots): &mut (Vec<Listener>, Vec<ListenSpots>),
) {
    let address = own_spots.address;
    spots.push(own_spots);
    let Some(port) = localhost else {
        listeners.push(listener);
        return;
    };
    listener.localhost = Some(Loopback::V4);
    listeners.push(listener.clone());
    listener.localhost = Some(Loopback::V6);
    listener.address = ListenAddress::Tcp((Ipv6Addr::LOCALHOST, port).into());
    listeners.push(listener);
    // What its keys say wrongly is told once.
    spots.push(ListenSpots {
        address,
        tls: None,
        offers: address,
        tcp_only: Vec::new(),
    });
}

/// Where a server listens whose config does not say: reachable from its own machine only.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080));

/// Keys that mean nothing for a Unix socket.
const TCP_ONLY: [&str; 4] = ["notsent_lowat", "user_timeout", "defer_accept", "v6only"];

pub(crate) fn read_address(section: &Section, faults: &mut Faults<'_>) -> Option<ListenAddress> {
    let given = section.given("address")?;
    let sources = faults.sources();
    let resolve = |path: &str| sources.resolve(given.spot.source, path);
    match listen_address(section.text("address"), resolve) {
        Ok(address) => {
            if section.is_of(&super::schema::LISTEN)
                && section.text("address").starts_with(':')
                && section.flag("v6only")
            {
                faults
                    .error(
                        section.spot("v6only"),
                        "`:PORT` is IPv4 too, `v6only` is not",
                    )
                    .see(given.spot, "the address")
                    .hint("write `[::]:PORT` as the address, or remove `v6only`");
            }
            Some(address)
        }
        Err((message, hint)) => {
            faults.error(given.spot, message).hint(hint);
            None
        }
    }
}

pub(crate) fn listener(
    section: &Section,
    address: ListenAddress,
    inherited: LogChoice,
    logs: &Logs,
    faults: &mut Faults<'_>,
) -> Listener {
    let size = |key| {
        section
            .optional_size(key)
            .map(|n| usize::try_from(n).unwrap_or(usize::MAX))
    };
    Listener {
        address,
        purpose: Purpose::Sites,
        localhost: None,
        backlog: section.number("backlog"),
        send_buffer: size("send_buffer"),
        receive_buffer: size("receive_buffer"),
        notsent_lowat: size("notsent_lowat"),
        user_timeout: section.optional_time("user_timeout"),
        defer_accept: section.time("defer_accept"),
        v6only: section.flag("v6only"),
        tls: None,
        log: match logs.choice(section, "log", faults) {
            LogChoice::Inherit => inherited,
            choice => choice,
        },
        trust: ClientTrust::read(section, faults),
        proxy_protocol: section.flag("proxy_protocol"),
        offers: None,
    }
}
