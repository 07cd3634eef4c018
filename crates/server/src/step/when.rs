//! Which requests for its path a route answers: whether what its `when` asks holds.
//!
//! Many routes of a site may ask something, and most of them something that a request has not. So
//! a request is looked over once, into a few bits, and a route that needs others is passed by
//! without a look at what it asks ([`Sieve`]), with all behind it that need the same. Only the
//! others are held against the request, all of it. Nothing is allocated.

use std::cell::OnceCell;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use hob_config::{ClientShare, Country, ListenAddress, RouteWhen, ValuePattern, WantedValue};
use hob_http::Request;

use super::cookie::cookie;
use super::country::CountrySource;
use super::query::{FormText, value};
use crate::route::host::{HOST_BYTES_MAX, normalise_host};
use crate::route::table::{RouteAnswer, RouteTable};

/// What routes of a site ask.
#[derive(Debug)]
pub struct RouteConditions {
    /// By the routes' indexes: what each needs, and the next one of its pattern that needs
    /// something else.
    sieves: Box<[(Sieve, Option<u32>)]>,
    /// Likewise the next one of its pattern.
    next: Box<[Option<u32>]>,
    /// Likewise; `None` where nothing is asked.
    routes: Box<[Option<RouteCondition>]>,
    /// Numbers of listeners and their indexes in the config; told once they have numbers.
    listeners: OnceLock<Vec<(u16, usize)>>,
    /// Which addresses are of which country.
    countries: Option<Arc<CountrySource>>,
}

/// What one route asks.
#[derive(Debug)]
struct RouteCondition {
    when: Arc<RouteWhen>,
    /// Its listeners, by their indexes in the config.
    listeners: Vec<usize>,
    /// Its hosts as they are compared.
    hosts: Vec<HostWanted>,
}

/// A host that is wanted.
#[derive(Debug)]
enum HostWanted {
    Exact(Box<[u8]>),
    /// All below one: what they end in, from a dot on.
    Below(Box<[u8]>),
}

/// What a route asks that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmet<'c> {
    /// `method`.
    Method,
    /// `host`.
    Host,
    /// `listener`.
    Listener,
    /// One of `field`.
    Field(&'c WantedValue),
    /// One of `query`.
    Query(&'c WantedValue),
    /// One of `cookie`.
    Cookie(&'c WantedValue),
    /// `address`.
    Address,
    /// `country`.
    Country,
    /// `tls`.
    Tls,
    /// `share`.
    Share,
}

/// A request that is held against what routes ask.
pub struct AskedRoute<'r> {
    request: &'r Request,
    marks: OnceCell<Marks>,
    place: OnceCell<u32>,
    country: OnceCell<Country>,
    host: OnceCell<AskedHost>,
}

/// A host as it is compared.
struct AskedHost {
    name: [u8; HOST_BYTES_MAX],
    /// `None` for one that is nobody's name.
    len: Option<usize>,
}

impl<'r> AskedRoute<'r> {
    /// A request as it is now: after an internal redirect it is another.
    pub fn of(request: &'r Request) -> AskedRoute<'r> {
        AskedRoute {
            request,
            marks: OnceCell::new(),
            place: OnceCell::new(),
            country: OnceCell::new(),
            host: OnceCell::new(),
        }
    }

    fn host(&self) -> Option<&[u8]> {
        let host = self.host.get_or_init(|| {
            let mut name = [0; HOST_BYTES_MAX];
            let len = normalise_host(self.request.head().host(), &mut name).map(<[u8]>::len);
            AskedHost { name, len }
        });
        host.name.get(..host.len?)
    }

    fn place(&self) -> u32 {
        *self.place.get_or_init(|| place_among_clients(self.peer()))
    }

    fn peer(&self) -> Option<IpAddr> {
        self.request.facts().peer.map(|peer| peer.ip())
    }
}

impl RouteConditions {
    /// What these routes ask, by their indexes in the table; `None` where none asks anything.
    /// `listeners` are those of the config.
    pub fn of<'a>(
        routes: impl Iterator<Item = Option<&'a Arc<RouteWhen>>>,
        table: &RouteTable,
        listeners: &[&ListenAddress],
    ) -> Option<RouteConditions> {
        let routes: Box<[_]> = routes
            .map(|when| when.map(|when| RouteCondition::of(when, listeners)))
            .collect();
        if routes.iter().all(Option::is_none) {
            return None;
        }
        let next: Box<[_]> = (0u32..)
            .zip(&routes)
            .map(|(index, _)| table.next(index))
            .collect();
        let mut sieves: Vec<_> = routes.iter().map(|one| (Sieve::of(one), None)).collect();
        // A route's next one stands behind it.
        for index in (0..routes.len()).rev() {
            let (own, after) = (sieves[index].0, next[index]);
            sieves[index].1 = match after.and_then(|after| sieves.get(after as usize)) {
                Some((other, further)) if *other == own => *further,
                _ => after,
            };
        }
        Some(RouteConditions {
            sieves: sieves.into(),
            next,
            routes,
            listeners: OnceLock::new(),
            countries: None,
        })
    }

    /// The same, with the file that says which addresses are of which country.
    pub fn with_countries(self, countries: Option<Arc<CountrySource>>) -> RouteConditions {
        RouteConditions { countries, ..self }
    }

    /// Says which number each listener has, in the order of the config; only once.
    pub fn number_listeners(&self, numbers: impl Iterator<Item = u16>) {
        let is_first = self.listeners.set(numbers.zip(0..).collect()).is_ok();
        debug_assert!(is_first, "sites come into force once");
    }

    /// Whether a route answers a request for its path.
    #[inline]
    pub fn answer(&self, route: u32, asked: &AskedRoute<'_>) -> RouteAnswer {
        let index = route as usize;
        let (Some((sieve, other)), Some(next)) = (self.sieves.get(index), self.next.get(index))
        else {
            return RouteAnswer::Yes;
        };
        let marks = || asked.marks.get_or_init(|| Marks::of(asked.request));
        if !sieve.is_open() && !sieve.lets_through(*marks()) {
            return RouteAnswer::No(*other);
        }
        if sieve.share.is_some_and(|share| asked.place() >= share.0) {
            return RouteAnswer::No(*other);
        }
        match self.unmet(route, asked) {
            None => RouteAnswer::Yes,
            Some(_) => RouteAnswer::No(*next),
        }
    }

    /// What a route asks that a request has not; the first, in the order of the config's keys.
    pub fn unmet(&self, route: u32, asked: &AskedRoute<'_>) -> Option<Unmet<'_>> {
        let condition = self.routes.get(route as usize)?.as_ref()?;
        let when = &*condition.when;
        let head = asked.request.head();
        let method = head.method();
        if !when.methods.is_empty() && !when.methods.iter().any(|one| one.as_bytes() == method) {
            return Some(Unmet::Method);
        }
        if !condition.hosts.is_empty() && !condition.has_host(asked.host()) {
            return Some(Unmet::Host);
        }
        if !condition.listeners.is_empty() && !self.came_by(condition, asked.request) {
            return Some(Unmet::Listener);
        }
        let lacks_field = |wanted: &&WantedValue| {
            let mut lines = head.values(wanted.name.as_bytes());
            !lines.any(|line| is_wanted(&wanted.value, line))
        };
        if let Some(wanted) = when.fields.iter().find(lacks_field) {
            return Some(Unmet::Field(wanted));
        }
        let lacks_value = |wanted: &&WantedValue| {
            let found = value(head.query().unwrap_or_default(), wanted.name.as_bytes());
            !found.is_some_and(|found| is_wanted_form(&wanted.value, found))
        };
        if let Some(wanted) = when.queries.iter().find(lacks_value) {
            return Some(Unmet::Query(wanted));
        }
        let lacks_cookie = |wanted: &&WantedValue| {
            let found = cookie(asked.request, wanted.name.as_bytes());
            !found.is_some_and(|found| is_wanted(&wanted.value, found))
        };
        if let Some(wanted) = when.cookies.iter().find(lacks_cookie) {
            return Some(Unmet::Cookie(wanted));
        }
        self.unmet_by_client(when, asked)
    }

    fn unmet_by_client<'c>(&self, when: &RouteWhen, asked: &AskedRoute<'_>) -> Option<Unmet<'c>> {
        if let Some(addresses) = &when.addresses
            && !addresses.has_peer(asked.peer())
        {
            return Some(Unmet::Address);
        }
        if !when.countries.is_empty() && !when.countries.has(self.country(asked)) {
            return Some(Unmet::Country);
        }
        if let Some(tls) = when.tls
            && asked.request.facts().is_secure() != tls
        {
            return Some(Unmet::Tls);
        }
        let share = when.share?;
        (asked.place() >= share.0).then_some(Unmet::Share)
    }

    fn country(&self, asked: &AskedRoute<'_>) -> Country {
        *asked.country.get_or_init(|| match &self.countries {
            Some(countries) => countries.find(asked.peer()),
            None => Country::UNKNOWN,
        })
    }

    /// Whether a request came in by one of the listeners that are asked for.
    fn came_by(&self, condition: &RouteCondition, request: &Request) -> bool {
        let number = request.facts().listener;
        let all = self.listeners.get().map_or(&[][..], |all| all);
        let mut own = all.iter().filter(|(known, _)| *known == number);
        own.any(|(_, index)| condition.listeners.contains(index))
    }
}

impl RouteCondition {
    fn of(when: &Arc<RouteWhen>, listeners: &[&ListenAddress]) -> RouteCondition {
        let indexes = (0..).zip(listeners);
        let wanted = indexes.filter(|(_, address)| when.listeners.contains(address));
        RouteCondition {
            when: Arc::clone(when),
            listeners: wanted.map(|(index, _)| index).collect(),
            hosts: when.hosts.iter().map(|name| HostWanted::of(name)).collect(),
        }
    }

    fn has_host(&self, host: Option<&[u8]>) -> bool {
        host.is_some_and(|host| self.hosts.iter().any(|wanted| wanted.is(host)))
    }
}

impl HostWanted {
    /// A name as the config has it, which is in lower case.
    fn of(name: &str) -> HostWanted {
        if let Some(parent) = name.strip_prefix('*') {
            return HostWanted::Below(parent.as_bytes().into());
        }
        let mut buffer = [0; HOST_BYTES_MAX];
        let normal = normalise_host(name.as_bytes(), &mut buffer);
        HostWanted::Exact(normal.unwrap_or(name.as_bytes()).into())
    }

    fn is(&self, host: &[u8]) -> bool {
        match self {
            HostWanted::Exact(name) => **name == *host,
            HostWanted::Below(parent) => host.len() > parent.len() && host.ends_with(parent),
        }
    }
}

fn is_wanted(pattern: &ValuePattern, value: &[u8]) -> bool {
    match pattern {
        ValuePattern::Any => true,
        ValuePattern::Exact(text) => value == text.as_bytes(),
        ValuePattern::Begins(text) => value.starts_with(text.as_bytes()),
        ValuePattern::Ends(text) => value.ends_with(text.as_bytes()),
        ValuePattern::Has(text) => memchr::memmem::find(value, text.as_bytes()).is_some(),
    }
}

fn is_wanted_form(pattern: &ValuePattern, value: FormText<'_>) -> bool {
    if let Some(plain) = value.plain() {
        return is_wanted(pattern, plain);
    }
    match pattern {
        ValuePattern::Any => true,
        ValuePattern::Exact(text) => value.bytes().eq(text.bytes()),
        ValuePattern::Begins(text) => {
            let mut bytes = value.bytes();
            text.bytes().all(|byte| bytes.next() == Some(byte))
        }
        ValuePattern::Ends(text) => {
            let more = value.bytes().count().checked_sub(text.len());
            more.is_some_and(|more| value.bytes().skip(more).eq(text.bytes()))
        }
        ValuePattern::Has(text) => value.has(text.as_bytes()),
    }
}

/// Where a client stands among all, from 0 to below [`ClientShare::ALL`]: always at the same place.
/// Whoever connects over a Unix socket has no place of its own, and stands behind all.
///
/// The key is in the program, so that every machine and every start agree. Whose place is where
/// can therefore be found out: a share is no lock.
fn place_among_clients(peer: Option<IpAddr>) -> u32 {
    const KEY: u64 = 0x9e6c_63d0_876a_3f1b;
    let number = match peer.map(|peer| peer.to_canonical()) {
        None => return ClientShare::ALL - 1,
        Some(IpAddr::V4(address)) => u64::from(u32::from(address)),
        // Its own network: browsers change the rest every day.
        Some(IpAddr::V6(address)) => (u128::from(address) >> 64) as u64,
    };
    let mixed = mixed(mixed(number ^ KEY).wrapping_add(KEY));
    ((u128::from(mixed) * u128::from(ClientShare::ALL)) >> 64) as u32
}

/// Each bit of the outcome depends on each of the number's: MurmurHash3's last step.
fn mixed(mut number: u64) -> u64 {
    number ^= number >> 33;
    number = number.wrapping_mul(0xff51_afd7_ed55_8ccd);
    number ^= number >> 33;
    number = number.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ (number >> 33)
}

/// What a request must have for a route, in bits that different things may share: one that lacks a
/// bit lacks what is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sieve {
    /// One of these.
    methods: u64,
    /// All of these.
    names: u64,
    /// Its client is of these.
    share: Option<ClientShare>,
}

/// The bits of a request.
#[derive(Clone, Copy, Debug)]
struct Marks {
    method: u64,
    names: u64,
}

/// What a name is one of.
#[derive(Clone, Copy)]
enum NameKind {
    Field,
    Query,
    Cookie,
}

impl Sieve {
    fn of(condition: &Option<RouteCondition>) -> Sieve {
        let Some(condition) = condition else {
            return Sieve {
                methods: u64::MAX,
                names: 0,
                share: None,
            };
        };
        let when = &condition.when;
        let methods = when.methods.iter().map(|one| method_bit(one.as_bytes()));
        let bits = |wanted: &[WantedValue], kind: NameKind| {
            let bits = wanted.iter().map(|one| name_bit(one.name.as_bytes(), kind));
            bits.fold(0, |all, bit| all | bit)
        };
        Sieve {
            methods: match when.methods.is_empty() {
                true => u64::MAX,
                false => methods.fold(0, |all, bit| all | bit),
            },
            names: bits(&when.fields, NameKind::Field)
                | bits(&when.queries, NameKind::Query)
                | bits(&when.cookies, NameKind::Cookie)
                | when.tls.map_or(0, tls_bit),
            share: when.share,
        }
    }

    /// It lets every request through.
    #[inline]
    fn is_open(self) -> bool {
        self.methods == u64::MAX && self.names == 0
    }

    #[inline]
    fn lets_through(self, marks: Marks) -> bool {
        self.methods & marks.method != 0 && self.names & !marks.names == 0
    }
}

impl Marks {
    fn of(request: &Request) -> Marks {
        let head = request.head();
        let mut names = tls_bit(request.facts().is_secure());
        for (name, value) in head.fields() {
            names |= name_bit(name, NameKind::Field);
            if name.eq_ignore_ascii_case(b"cookie") {
                for pair in value.split(|byte| *byte == b';') {
                    let pair = pair.trim_ascii();
                    let end = memchr::memchr(b'=', pair).unwrap_or(pair.len());
                    names |= name_bit(&pair[..end], NameKind::Cookie);
                }
            }
        }
        for pair in head.query().unwrap_or_default().split(|byte| *byte == b'&') {
            let name = &pair[..memchr::memchr(b'=', pair).unwrap_or(pair.len())];
            names |= match memchr::memchr2(b'%', b'+', name) {
                None => name_bit(name, NameKind::Query),
                // What it means is seen where it is asked for.
                Some(_) => QUERY_BITS,
            };
        }
        Marks {
            method: method_bit(head.method()),
            names,
        }
    }
}

/// Names of the query have these bits, fields the lower and cookies the higher ones; the highest
/// two are for TLS.
const QUERY_BITS: u64 = 0xffff << 32;

/// Length, first and last letter tell most names apart.
#[inline]
fn name_bit(name: &[u8], kind: NameKind) -> u64 {
    let letter = |byte: Option<&u8>| usize::from(byte.map_or(0, u8::to_ascii_lowercase));
    let hash = name.len() * 7 + letter(name.first()) * 5 + letter(name.last()) * 3;
    match kind {
        NameKind::Field => 1 << (hash % 32),
        NameKind::Query => 1 << (32 + hash % 16),
        NameKind::Cookie => 1 << (48 + hash % 14),
    }
}

#[inline]
fn tls_bit(is_secure: bool) -> u64 {
    1 << (62 + u32::from(is_secure))
}

#[inline]
fn method_bit(method: &[u8]) -> u64 {
    let letter = |byte: Option<&u8>| usize::from(byte.copied().unwrap_or_default());
    1 << ((method.len() * 7 + letter(method.first()) + letter(method.last()) * 3) % 64)
}

#[cfg(test)]
mod tests;
