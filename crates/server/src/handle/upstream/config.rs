//! What the config says of an upstream, whatever is spoken there.

use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use hob_http::head::is_name;
use hob_http::proxy_protocol::ProxyVersion;
use hob_http::tls::peer::PeerName;

use crate::handle::config::check::PathLookups;
use crate::handle::config::fault::{Faults, Spot};
use crate::handle::config::tree::Section;
use crate::handle::config::{CertificateSource, PathStatus, UpstreamTls, name_server};
use crate::handle::upstream::address::MemberAddress;
use crate::handle::upstream::balance::{Balance, HashKey};
use crate::handle::upstream::kept::KeepLimits;
use crate::handle::upstream::keys::{FAIL_TABLE, KEEP_KEYS, QUEUE_TABLE, RETRY_TABLE, TLS_TABLE};
use crate::handle::upstream::member::FailureLimits;
use crate::handle::upstream::proxy_protocol;
use crate::handle::upstream::run::keys::RUN;

/// An upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamSettings {
    /// What the config calls it; `None` where it is one route's own.
    pub name: Option<String>,
    /// Its members.
    pub members: Vec<MemberSettings>,
    /// TLS with those of them that are asked over it; `None` where none is.
    pub tls: Option<UpstreamTls>,
    /// Which of them gets a request.
    pub balance: Balance,
    /// Clients stay with their member by a cookie.
    pub sticky: Option<StickySettings>,
    /// Connections at once.
    pub connections: usize,
    /// Connections to each member that stay open between requests.
    pub keep: usize,
    /// How long each of them is kept.
    pub keep_limits: KeepLimits,
    /// Name servers that are asked for names of members; empty is what the machine has.
    pub resolver: Vec<SocketAddr>,
    /// Members that one service makes at most.
    pub service_members: usize,
    /// The header of the PROXY protocol that connections begin with.
    pub proxy_protocol: Option<ProxyVersion>,
    /// Requests that wait for one.
    pub queue: usize,
    /// How long a request waits for one.
    pub wait: Duration,
    /// When a member is left out.
    pub fail: FailureLimits,
    /// How members are looked at from time to time.
    pub check: Option<CheckSettings>,
    /// For so long a member that comes back gets fewer requests, in milliseconds.
    pub slow_start_ms: u64,
    /// Where all are left out, somebody is asked nevertheless.
    pub last_resort: bool,
}

/// A member.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberSettings {
    /// Where it is.
    pub address: MemberAddress,
    /// Its share of the requests beside those of others.
    pub weight: u32,
    /// It is asked where all others are left out.
    pub backup: bool,
    /// Requests that it has at once; 0 is no limit.
    pub connections: usize,
}

/// How clients stay with their member.
#[derive(Clone, PartialEq, Eq)]
pub struct StickySettings {
    /// The cookie's name.
    pub cookie: String,
    /// What its values are signed with; `None` is one of the server's process.
    pub secret: Option<String>,
}

impl fmt::Debug for StickySettings {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("StickySettings");
        text.field("cookie", &self.cookie).finish_non_exhaustive()
    }
}

/// How members are looked at from time to time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckSettings {
    /// What is asked for; empty where a connection is enough.
    pub path: String,
    /// So often.
    pub every: Duration,
    /// How long it may take.
    pub timeout: Duration,
    /// Statuses of a member that is well.
    pub expect: RangeInclusive<u16>,
    /// So many in a row that fail leave it out.
    pub fall: usize,
    /// So many in a row that do not bring it back.
    pub rise: usize,
}

/// When another member is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryRules {
    /// So often at most.
    pub times: usize,
    /// After what.
    pub on: Vec<RetryCause>,
    /// Retries among a hundred requests.
    pub budget_percent: u64,
}

/// After what another member may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryCause {
    /// There was no connection.
    Connect,
    /// The connection ended before an answer, or something else came over it.
    Closed,
    /// No answer in time.
    FirstByte,
    /// An answer of this status.
    Status(u16),
}

impl RetryRules {
    /// As `retry` of a handler's section says.
    pub(crate) fn read(section: &Section, faults: &mut Faults<'_>) -> RetryRules {
        section.inner("retry", &RETRY_TABLE, |retry| RetryRules {
            times: retry.number("times"),
            on: retry
                .texts("on")
                .iter()
                .filter_map(|(word, _)| cause(word))
                .collect(),
            budget_percent: percent(retry, faults),
        })
    }

    /// Whether this is one of the causes.
    pub(crate) fn has(&self, cause: RetryCause) -> bool {
        self.on.contains(&cause)
    }
}

/// Keys that hold for the members, whoever asks them: they stand with these.
const OWN_KEYS: &[&str] = &[
    "balance",
    "hash",
    "sticky",
    "connections",
    "keep",
    "keep_requests",
    "keep_time",
    "keep_idle",
    "proxy_protocol",
    "queue",
    "fail",
    "health",
    "slow_start",
    "last_resort",
    "resolver",
    "service_members",
    "tls",
];

/// Where the keys of an upstream stand: in a handler's section, and in an `[[upstream]]` that it
/// names.
#[derive(Clone, Copy)]
pub(crate) struct UpstreamSections<'a> {
    own: &'a Section,
    named: Option<(&'a str, &'a Section)>,
}

impl<'a> UpstreamSections<'a> {
    /// Those of a handler's section.
    pub(crate) fn of(
        own: &'a Section,
        root: &'a Section,
        faults: &mut Faults<'_>,
    ) -> UpstreamSections<'a> {
        let texts = own.texts("to");
        let named = texts.iter().find_map(|(text, spot)| {
            let name = text.strip_prefix("upstream:")?;
            Some((name, *spot))
        });
        let Some((name, spot)) = named else {
            return UpstreamSections { own, named: None };
        };
        let all = root.sections("upstream");
        let Some(found) = all.iter().find(|one| one.text("name") == name) else {
            let mut known: Vec<_> = all.iter().map(|one| one.text("name")).collect();
            known.dedup();
            let hint = match known[..] {
                [] => format!("add `[[upstream]]` with `name = \"{name}\"`"),
                _ => format!("those that there are: {}", known.join(", ")),
            };
            faults
                .error(spot, format!("there is no `[[upstream]]` {name:?}"))
                .hint(hint);
            return UpstreamSections { own, named: None };
        };
        if texts.len() > 1 {
            faults
                .error(spot, "`to` names an upstream and others beside it")
                .hint("put all of its members into the `[[upstream]]`");
        }
        for key in OWN_KEYS.iter().filter_map(|key| own.given(key)) {
            faults
                .error(key.key, "this key holds for all that ask the upstream")
                .see(found.header, "the upstream")
                .hint("move it into the `[[upstream]]`");
        }
        let named = Some((name, found));
        UpstreamSections { own, named }
    }

    /// The section in which a key is to be read: where it is given, else the handler's.
    fn with(&self, key: &str) -> &'a Section {
        let named = self.named.map(|(_, section)| section);
        let has_it = |one: &&Section| one.given(key).is_some();
        named.filter(has_it).unwrap_or(self.own)
    }

    /// Where the members stand.
    pub(crate) fn members_spot(&self) -> Spot {
        self.named
            .map_or_else(|| self.own.spot("to"), |(_, section)| section.header)
    }

    /// Where parts of TLS stand.
    pub(crate) fn tls_spots(&self) -> UpstreamTlsSpots {
        UpstreamTlsSpots::of(self.with("tls"))
    }

    /// Its members, each read by `parse`, which says what is wrong with a text.
    pub(crate) fn members<T>(
        &self,
        faults: &mut Faults<'_>,
        parse: impl Fn(&str, &dyn Fn(&str) -> PathBuf) -> Result<T, &'static str>,
    ) -> Vec<(T, MemberTerms)> {
        let section = self.named.map_or(self.own, |(_, section)| section);
        let mut members = Vec::new();
        let read = |text: &str, spot: Spot, faults: &mut Faults<'_>| {
            let resolve = |path: &str| faults.sources().resolve(spot.source, path);
            match parse(text, &resolve) {
                // That is told already.
                Err(_) if self.named.is_none() && text.starts_with("upstream:") => None,
                Err(hint) => {
                    let message = format!("{text:?} is no address");
                    faults.error(spot, message).hint(hint);
                    None
                }
                Ok(member) => Some(member),
            }
        };
        for (text, spot) in section.given_texts("to") {
            let member = read(text, spot, faults);
            members.extend(member.map(|member| (member, MemberTerms::default())));
        }
        let with_terms = match self.named {
            Some((_, section)) => section.sections("member"),
            None => &[],
        };
        for one in with_terms {
            let member = read(one.text("to"), one.spot("to"), faults);
            members.extend(member.map(|member| (member, MemberTerms::read(one))));
        }
        let says_nothing = section.given_texts("to").is_empty() && with_terms.is_empty();
        if says_nothing && (section.given("to").is_some() || self.named.is_some()) {
            faults
                .error(section.spot("to"), "`to` names nobody")
                .hint("write an address, or several");
        }
        members
    }
}

/// What is said of a member besides where it is.
#[derive(Clone, Copy)]
pub(crate) struct MemberTerms {
    weight: u32,
    backup: bool,
    connections: usize,
}

impl Default for MemberTerms {
    fn default() -> MemberTerms {
        MemberTerms {
            weight: 1,
            backup: false,
            connections: 0,
        }
    }
}

impl MemberTerms {
    fn read(section: &Section) -> MemberTerms {
        MemberTerms {
            weight: section.number("weight"),
            backup: section.flag("backup"),
            connections: section.number("connections"),
        }
    }

    pub(crate) fn at(self, address: MemberAddress) -> MemberSettings {
        MemberSettings {
            address,
            weight: self.weight,
            backup: self.backup,
            connections: self.connections,
        }
    }
}

impl UpstreamSettings {
    /// Reads the keys that all have. The members are read already.
    pub(crate) fn read(
        from: UpstreamSections<'_>,
        mut members: Vec<MemberSettings>,
        faults: &mut Faults<'_>,
    ) -> UpstreamSettings {
        let tls = read_tls(from, &mut members, faults);
        let connections = from.with("connections").number("connections");
        let (keep, keep_limits, proxy_protocol) = read_keep(from, connections, faults);
        let (queue, wait) = from.with("queue").inner("queue", &QUEUE_TABLE, |queue| {
            (queue.number("max"), queue.time("wait"))
        });
        let is_service = |one: &MemberSettings| one.address.service_host().is_some();
        let service_members = read_service_members(from, members.iter().any(is_service), faults);
        // Of a program that hob runs itself, nothing is known before it does.
        let is_alone = match &members[..] {
            [one] => !is_service(one),
            _ => from.own.has(RUN),
        };
        for key in ["balance", "hash", "sticky", "fail", "slow_start"] {
            let given = from.with(key).given(key).filter(|_| is_alone);
            if let Some(given) = given {
                faults
                    .warn(given.key, format!("`{key}` does nothing here"))
                    .hint("remove it: there is one member, and it is always asked");
            }
        }
        if !members.is_empty() && members.iter().all(|member| member.backup) {
            faults
                .warn(from.members_spot(), "all members are `backup`")
                .hint("leave it out for those that are to be asked first");
        }
        UpstreamSettings {
            name: from.named.map(|(name, _)| name.to_owned()),
            members,
            tls,
            balance: balance(from, faults),
            sticky: from
                .with("sticky")
                .section("sticky")
                .map(|sticky| StickySettings {
                    cookie: cookie_name(sticky, faults),
                    secret: sticky.optional_text("secret").map(str::to_owned),
                }),
            connections,
            keep,
            keep_limits,
            resolver: resolver(from, faults),
            service_members,
            proxy_protocol,
            queue,
            wait,
            fail: from
                .with("fail")
                .inner("fail", &FAIL_TABLE, |fail| FailureLimits {
                    count: fail.number("count"),
                    window_ms: millis(fail.time("window")),
                    pause_ms: millis(fail.time("pause")),
                }),
            check: from
                .with("health")
                .section("health")
                .map(|check| read_check(check, faults)),
            slow_start_ms: millis(from.with("slow_start").time("slow_start")),
            last_resort: from.with("last_resort").flag("last_resort"),
        }
    }

    /// Its members, for people.
    pub(crate) fn texts(&self) -> String {
        let texts: Vec<_> = self
            .members
            .iter()
            .map(|one| one.address.to_string())
            .collect();
        texts.join(", ")
    }
}

/// Warns of sockets of members that are not there. They may yet come: what is served is told, and
/// no more.
pub(crate) fn look_at_sockets(
    settings: &UpstreamSettings,
    spot: Spot,
    looked: &mut PathLookups<'_>,
    faults: &mut Faults<'_>,
) {
    for member in &settings.members {
        if let MemberAddress::Unix(socket) = member.address.place()
            && looked.look(socket) == PathStatus::Nothing
        {
            let message = format!("there is no socket {}", socket.display());
            faults
                .warn(spot, message)
                .hint("start the program that listens there; until then its requests are 502");
        }
    }
}

/// How many connections are kept, and for how long; and what says that none is.
fn read_keep(
    from: UpstreamSections<'_>,
    connections: usize,
    faults: &mut Faults<'_>,
) -> (usize, KeepLimits, Option<ProxyVersion>) {
    let kept = from.with("keep");
    // Not every protocol leaves connections open.
    let may_keep = kept.table().key("keep").is_some();
    let keep = if may_keep { kept.number("keep") } else { 0 };
    let header = from.with("proxy_protocol");
    let proxy_protocol = proxy_protocol::read(header, (kept, keep), faults);
    if let Some(given) = kept.given("keep").filter(|_| keep > connections) {
        faults
            .warn(given.key, "`keep` is more than `connections`")
            .hint("there are never more to keep: lower it, or raise `connections`");
    }
    let keep = proxy_protocol.map_or(keep, |_| 0);
    let limit = |key: &str| Some(from.with(key)).filter(|one| one.table().key(key).is_some());
    let time = |key: &str| limit(key).map_or(Duration::ZERO, |one| one.time(key));
    // Those of a program that hob runs are kept where nothing else is said.
    let is_any = keep > 0 || from.own.has(RUN) && !from.own.has("keep");
    for key in KEEP_KEYS.iter().map(|key| key.name) {
        let given = from.with(key).given(key).filter(|_| !is_any);
        if let Some(given) = given {
            faults
                .warn(given.key, format!("`{key}` does nothing here"))
                .hint("remove it, or set `keep`: no connection stays open between requests");
        }
    }
    let limits = KeepLimits {
        requests: limit("keep_requests").map_or(0, |one| one.number("keep_requests")),
        time: time("keep_time"),
        idle: time("keep_idle"),
    };
    (keep, limits, proxy_protocol)
}

/// Where parts of TLS stand.
#[derive(Clone, Copy)]
pub(crate) struct UpstreamTlsSpots {
    verify: Spot,
    ca: Spot,
    certificate: Spot,
    key: Spot,
}

impl UpstreamTlsSpots {
    fn of(section: &Section) -> UpstreamTlsSpots {
        section.inner("tls", &TLS_TABLE, |tls| UpstreamTlsSpots {
            verify: tls.spot("verify"),
            ca: tls.spot("ca"),
            certificate: tls.spot("certificate"),
            key: match tls.given("key") {
                Some(given) => given.spot,
                None => tls.spot("certificate"),
            },
        })
    }
}

/// What `tls` says, where a member is asked over TLS.
fn read_tls(
    from: UpstreamSections<'_>,
    members: &mut [MemberSettings],
    faults: &mut Faults<'_>,
) -> Option<UpstreamTls> {
    let section = from.with("tls");
    let mut addresses = members.iter().map(|member| &member.address);
    if addresses.all(|address| address.peer_name().is_none()) {
        if let Some(given) = section.given("tls") {
            faults
                .warn(given.key, "`tls` does nothing here")
                .hint("no member is asked over TLS: write `https://` (of programs `tls://`) in `to`, or remove it");
        }
        return None;
    }
    section.inner("tls", &TLS_TABLE, |tls| {
        if let Some(name) = tls.optional_text("name") {
            match PeerName::parse(name) {
                Some(name) => members.iter_mut().for_each(|member| {
                    if let MemberAddress::Tls(_, own) = &mut member.address {
                        own.clone_from(&name);
                    }
                }),
                None => {
                    let message = format!("{name:?} is nobody's name");
                    faults
                        .error(tls.spot("name"), message)
                        .hint("write a host name or an IP address, without a port");
                }
            }
        }
        let (certificate, key) = (tls.optional_path("certificate"), tls.optional_path("key"));
        if let (None, Some(given), false) =
            (certificate, tls.given("key"), tls.is_claimed("certificate"))
        {
            faults
                .error(given.key, "`key` without `certificate`")
                .hint("name the certificate that it belongs to, or remove it");
        }
        Some(UpstreamTls {
            ca: tls.optional_path("ca").cloned(),
            certificate: certificate.map(|certificate| CertificateSource::Files {
                certificate: certificate.clone(),
                key: key.unwrap_or(certificate).clone(),
            }),
            verify: tls.flag("verify"),
        })
    })
}

/// Tells what is wrong with TLS and its files.
pub(crate) fn look_at_tls(
    settings: &UpstreamSettings,
    spots: UpstreamTlsSpots,
    looked: &mut PathLookups<'_>,
    faults: &mut Faults<'_>,
) {
    let Some(tls) = &settings.tls else { return };
    // Several routes may ask the same upstream.
    if !looked.is_first(spots.verify) {
        return;
    }
    if !tls.verify {
        let message = "certificates of the other side are not checked: whoever stands in between \
                       reads and changes everything unnoticed";
        faults
            .warn(spots.verify, message)
            .hint("name who signed them, or the certificate itself, in `ca`");
    }
    if let Some(ca) = &tls.ca {
        looked.file(ca, spots.ca, "write the file's own path", faults);
        looked.authorities(ca, "tls.ca", spots.ca, faults);
    }
    if let Some(CertificateSource::Files { certificate, key }) = &tls.certificate {
        let spots = (spots.certificate, spots.key);
        looked.certificate((certificate, key), spots, faults);
    }
}

fn cause(word: &str) -> Option<RetryCause> {
    Some(match word {
        "connect" => RetryCause::Connect,
        "closed" => RetryCause::Closed,
        "first_byte" => RetryCause::FirstByte,
        _ => RetryCause::Status(word.parse().ok()?),
    })
}

fn percent(retry: &Section, faults: &mut Faults<'_>) -> u64 {
    let text = retry.text("budget");
    let number = text
        .strip_suffix('%')
        .and_then(|number| number.parse().ok());
    number.filter(|percent| *percent <= 100).unwrap_or_else(|| {
        faults
            .error(
                retry.spot("budget"),
                format!("{text:?} is no part of all requests"),
            )
            .hint("write a whole number of percent, such as `\"20%\"`");
        0
    })
}

fn resolver(from: UpstreamSections<'_>, faults: &mut Faults<'_>) -> Vec<SocketAddr> {
    let mut servers = Vec::new();
    for (text, spot) in from.with("resolver").given_texts("resolver") {
        match name_server(text) {
            Some(server) => servers.push(server),
            None => {
                faults
                    .error(spot, format!("{text:?} is no address of a name server"))
                    .hint("write an address such as `127.0.0.1`, `127.0.0.1:5353` or `[::1]:53`");
            }
        }
    }
    servers
}

fn read_service_members(
    from: UpstreamSections<'_>,
    has_services: bool,
    faults: &mut Faults<'_>,
) -> usize {
    let section = from.with("service_members");
    if let Some(given) = section.given("service_members").filter(|_| !has_services) {
        faults
            .warn(given.key, "`service_members` does nothing here")
            .hint("remove it: no member is a service (`srv:`)");
    }
    // Programs of other machines are no services.
    let is_read = section.table().key("service_members").is_some();
    let number = is_read.then(|| section.number("service_members"));
    number.unwrap_or_default()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn balance(from: UpstreamSections<'_>, faults: &mut Faults<'_>) -> Balance {
    let (word, hash) = (from.with("balance").word("balance"), from.with("hash"));
    if let Some(given) = hash.given("hash").filter(|_| word != "hash") {
        faults
            .warn(given.key, "`hash` does nothing here")
            .hint("add `balance = \"hash\"`, or remove it");
    }
    match word {
        "requests" => Balance::Requests,
        "round_robin" => Balance::RoundRobin,
        "hash" => Balance::Hash(hash_key(hash, faults)),
        _ => Balance::Latency,
    }
}

fn hash_key(section: &Section, faults: &mut Faults<'_>) -> HashKey {
    let text = section.text("hash");
    let named = |begin: &str| {
        let name = text.strip_prefix(begin)?;
        is_name(name.as_bytes()).then(|| name.to_owned())
    };
    match text {
        "path" => HashKey::Path,
        "client" => HashKey::Client,
        _ => match (named("field:"), named("cookie:")) {
            (Some(name), _) => HashKey::Field(name),
            (_, Some(name)) => HashKey::Cookie(name),
            _ => {
                faults
                    .error(section.spot("hash"), format!("{text:?} is nothing to hash"))
                    .hint("write `path`, `client`, `field:NAME` or `cookie:NAME`");
                HashKey::Path
            }
        },
    }
}

fn cookie_name(sticky: &Section, faults: &mut Faults<'_>) -> String {
    let name = sticky.text("cookie");
    if !is_name(name.as_bytes()) {
        faults
            .error(
                sticky.spot("cookie"),
                format!("{name:?} is no name of a cookie"),
            )
            .hint("write letters, digits, `_` and `-`");
    }
    name.to_owned()
}

fn read_check(check: &Section, faults: &mut Faults<'_>) -> CheckSettings {
    let path = check.text("path");
    let is_sent = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    let is_path = path.is_empty() || path.starts_with('/') && path.bytes().all(is_sent);
    if !is_path {
        faults
            .error(check.spot("path"), format!("{path:?} is no path"))
            .hint("write one that begins with `/`, percent-encoded");
    }
    CheckSettings {
        path: path.to_owned(),
        every: check.time("every"),
        timeout: check.time("timeout"),
        expect: expected(check, faults),
        fall: check.number("fall"),
        rise: check.number("rise"),
    }
}

/// `200`, or `200-399`.
fn expected(check: &Section, faults: &mut Faults<'_>) -> RangeInclusive<u16> {
    let text = check.text("expect");
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first @ 200..=599), Ok(last @ 200..=599)) if first <= last => first..=last,
        _ => {
            faults
                .error(check.spot("expect"), format!("{text:?} is no status"))
                .hint("write one such as `200`, or a range such as `200-399`");
            200..=399
        }
    }
}

/// Tells what is wrong with `[[upstream]]` as a whole: names that two have, and those that no
/// route asks.
pub(in crate::handle) fn check_named(root: &Section, faults: &mut Faults<'_>) {
    let all = root.sections("upstream");
    for (at, one) in all.iter().enumerate() {
        let name = one.text("name");
        if let Some(first) = all[..at].iter().find(|first| first.text("name") == name) {
            faults
                .error(
                    one.spot("name"),
                    format!("there are two upstreams {name:?}"),
                )
                .see(first.spot("name"), "the first")
                .hint("give one another name");
        }
        let wanted = format!("upstream:{name}");
        let asks = |handler: &Section| {
            let is_member = |(text, _): &(&str, Spot)| *text == wanted;
            handler.given_texts("to").iter().any(is_member)
        };
        let mut routes = root
            .sections("site")
            .iter()
            .flat_map(|one| one.sections("route"));
        let is_used = routes.any(|route| {
            let handlers = ASKING.iter().filter_map(|key| route.section(key));
            handlers.into_iter().any(asks)
        });
        if !is_used && one.given("name").is_some() {
            faults
                .warn(one.header, format!("no route asks the upstream {name:?}"))
                .hint(format!(
                    "write `to = \"{wanted}\"` where it is to answer, or remove it"
                ));
        }
    }
}

/// Handlers that ask upstreams.
const ASKING: &[&str] = &["fastcgi", "scgi", "uwsgi", "proxy", "remote"];
