//! `when` of a route: which requests for its path it answers.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::ListenAddress;
use super::address::{check_host, listen_address, localhost_port};
use super::clients::ClientSet;
use super::country::{CountrySet, miss_countries};
use super::fault::{Faults, Spot};
use super::method::{read_methods, with_head};
use super::text::{header_value_wrong, is_header_name};
use super::tree::{ConfigValue, Section};

/// What a route asks of a request besides its path; all that is said has to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteWhen {
    /// One of these methods, HEAD among them where GET is; empty is any.
    pub methods: Vec<String>,
    /// One of these hosts, exact or `*.name`; empty is any.
    pub hosts: Vec<String>,
    /// It came in by one of these listeners; empty is any.
    pub listeners: Vec<ListenAddress>,
    /// It has these fields; their names are in lower case.
    pub fields: Vec<WantedValue>,
    /// Its query has these.
    pub queries: Vec<WantedValue>,
    /// It has these cookies.
    pub cookies: Vec<WantedValue>,
    /// Its client is one of these; `None` is any.
    pub addresses: Option<ClientSet>,
    /// Its client's address is of one of these countries; empty is any.
    pub countries: CountrySet,
    /// It comes over TLS, or in clear text.
    pub tls: Option<bool>,
    /// Its client is of this share of all.
    pub share: Option<ClientShare>,
    /// Who has signed in is one of these; empty is any.
    pub users: Vec<String>,
    /// Likewise in one of these groups.
    pub groups: Vec<String>,
}

impl RouteWhen {
    /// It is for some of those who have signed in.
    pub fn asks_who(&self) -> bool {
        !(self.users.is_empty() && self.groups.is_empty())
    }
}

/// A name, and what is to stand behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedValue {
    /// The name.
    pub name: String,
    /// What its value is to be.
    pub value: ValuePattern,
}

/// What a value is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValuePattern {
    /// There.
    Any,
    /// This.
    Exact(String),
    /// What begins so.
    Begins(String),
    /// What ends so.
    Ends(String),
    /// What has this in it.
    Has(String),
}

/// A part of all clients, in parts of [`ClientShare::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientShare(pub u32);

impl ClientShare {
    /// Every client.
    pub const ALL: u32 = 100_000;

    /// `10%`, or `0.5%`.
    ///
    /// # Errors
    /// It is no percentage, and what to write.
    pub fn parse(text: &str) -> Result<ClientShare, &'static str> {
        const HINT: &str = "write a percentage from `0%` to `100%`, such as `10%` or `0.5%`";
        const PERCENT: u32 = ClientShare::ALL / 100;
        let number = text.strip_suffix('%').ok_or(HINT)?.trim_end();
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_digits(whole) || !is_digits(part) {
            return Err(HINT);
        }
        if part.len() > 3 {
            return Err("a share has three digits behind its point at most");
        }
        let whole: u32 = whole.parse().ok().filter(|n| *n <= 100).ok_or(HINT)?;
        let part: u32 = format!("{part:0<3}").parse().map_err(|_| HINT)?;
        let share = whole * PERCENT + part;
        (share <= ClientShare::ALL)
            .then_some(ClientShare(share))
            .ok_or(HINT)
    }
}

impl fmt::Display for ClientShare {
    /// As it is written in a config.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1000, self.0 % 1000);
        match part {
            0 => write!(f, "{whole}%"),
            part => {
                let part = format!("{part:03}");
                write!(f, "{whole}.{}%", part.trim_end_matches('0'))
            }
        }
    }
}

impl ValuePattern {
    /// A star alone is any value, one at the begin or the end stands for any text there.
    ///
    /// # Errors
    /// A star stands elsewhere.
    pub fn parse(text: &str) -> Result<ValuePattern, &'static str> {
        const HINT: &str = "a `*` stands for any text at the begin or the end of a value, or for \
                            any value where it stands alone";
        if text == "*" {
            return Ok(ValuePattern::Any);
        }
        let (begins_open, rest) = match text.strip_prefix('*') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (ends_open, inner) = match rest.strip_suffix('*') {
            Some(inner) => (true, inner),
            None => (false, rest),
        };
        if inner.contains('*') || inner.is_empty() && (begins_open || ends_open) {
            return Err(HINT);
        }
        let inner = inner.to_owned();
        Ok(match (begins_open, ends_open) {
            (false, false) => ValuePattern::Exact(inner),
            (false, true) => ValuePattern::Begins(inner),
            (true, false) => ValuePattern::Ends(inner),
            (true, true) => ValuePattern::Has(inner),
        })
    }
}

impl fmt::Display for ValuePattern {
    /// As it is written in a config.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValuePattern::Any => f.write_str("*"),
            ValuePattern::Exact(text) => f.write_str(text),
            ValuePattern::Begins(text) => write!(f, "{text}*"),
            ValuePattern::Ends(text) => write!(f, "*{text}"),
            ValuePattern::Has(text) => write!(f, "*{text}*"),
        }
    }
}

impl fmt::Display for RouteWhen {
    /// In short, for the names of routes: `method POST, field x-beta=1, share 10%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let mut list = |key: &str, texts: Vec<String>| {
            if !texts.is_empty() {
                parts.push(format!("{key} {}", texts.join("|")));
            }
        };
        list("method", self.methods.clone());
        list("host", self.hosts.clone());
        list(
            "listener",
            self.listeners.iter().map(ToString::to_string).collect(),
        );
        let named = [
            ("field", &self.fields),
            ("query", &self.queries),
            ("cookie", &self.cookies),
        ];
        for (key, wanted) in named {
            for WantedValue { name, value } in wanted {
                list(key, vec![format!("{name}={value}")]);
            }
        }
        if let Some(addresses) = &self.addresses {
            list("address", vec![format!("{addresses:?}")]);
        }
        list(
            "country",
            self.countries.iter().map(|one| one.to_string()).collect(),
        );
        if let Some(tls) = self.tls {
            list("tls", vec![tls.to_string()]);
        }
        if let Some(share) = self.share {
            list("share", vec![share.to_string()]);
        }
        list("user", self.users.clone());
        list("group", self.groups.clone());
        f.write_str(&parts.join(", "))
    }
}

/// What a route asks, if it asks for something; and where its listeners are named.
pub(crate) fn read_when(
    root: &Section,
    section: &Section,
    faults: &mut Faults<'_>,
) -> (Option<Arc<RouteWhen>>, Vec<Spot>) {
    let Some(given) = section.given("when") else {
        return (None, Vec::new());
    };
    let ConfigValue::Section(inner) = &given.value else {
        return (None, Vec::new());
    };
    for key in ["method", "host", "address", "country", "user", "group"] {
        miss_choices(key, inner, faults);
    }
    let (listeners, spots) = read_listeners(inner, faults);
    let countries = CountrySet::read(inner, "country", faults);
    miss_countries(root, &countries, inner.spot("country"), faults);
    let when = RouteWhen {
        methods: with_head(read_methods(inner.given_texts("method"), faults)),
        hosts: read_hosts(inner, faults),
        listeners,
        fields: read_fields(inner, faults),
        queries: read_values(inner, "query", faults),
        cookies: read_cookies(inner, faults),
        addresses: inner
            .given("address")
            .map(|_| ClientSet::read(inner, "address", false, faults)),
        countries,
        tls: match inner.given("tls").map(|given| &given.value) {
            Some(ConfigValue::Flag(flag)) => Some(*flag),
            _ => None,
        },
        share: read_share(inner, faults),
        users: inner.given_words("user"),
        groups: inner.given_words("group"),
    };
    let table = &super::schema::WHEN;
    if !table.all_keys().any(|key| inner.has(key.name)) {
        let hint = "say which requests the route is for, as in `when = { method = [\"POST\"] }`, \
                    or remove it";
        faults
            .error(given.spot, "`when` asks for nothing")
            .hint(hint);
    }
    (Some(Arc::new(when)), spots)
}

/// Tells of an empty list.
fn miss_choices(key: &str, section: &Section, faults: &mut Faults<'_>) {
    if let Some(list) = section.given(key)
        && section.given_texts(key).is_empty()
    {
        let hint = "name one, or remove it: without it any will do";
        faults
            .error(list.spot, format!("`{key}` has none that it could be"))
            .hint(hint);
    }
}

fn read_hosts(section: &Section, faults: &mut Faults<'_>) -> Vec<String> {
    let mut hosts = Vec::new();
    for (host, spot) in section.given_texts("host") {
        match check_host(host) {
            Ok(()) => hosts.push(host.to_owned()),
            Err((message, hint)) => {
                faults.error(spot, message).hint(hint);
            }
        }
    }
    hosts
}

/// Addresses of listeners, and where each is named; `localhost` is two.
pub(crate) fn read_listeners(
    section: &Section,
    faults: &mut Faults<'_>,
) -> (Vec<ListenAddress>, Vec<Spot>) {
    miss_choices("listener", section, faults);
    let (mut addresses, mut spots) = (Vec::new(), Vec::new());
    for (text, spot) in section.given_texts("listener") {
        if let Some(port) = localhost_port(text) {
            addresses.push(ListenAddress::Tcp((Ipv4Addr::LOCALHOST, port).into()));
            addresses.push(ListenAddress::Tcp((Ipv6Addr::LOCALHOST, port).into()));
            spots.extend([spot, spot]);
            continue;
        }
        let sources = faults.sources();
        match listen_address(text, |path| sources.resolve(spot.source, path)) {
            Ok(address) => {
                addresses.push(address);
                spots.push(spot);
            }
            Err((message, hint)) => {
                faults.error(spot, message).hint(hint);
            }
        }
    }
    (addresses, spots)
}

fn read_values(section: &Section, key: &str, faults: &mut Faults<'_>) -> Vec<WantedValue> {
    let mut wanted = Vec::new();
    for pair in section.map(key) {
        match ValuePattern::parse(&pair.text) {
            Ok(value) => wanted.push(WantedValue {
                name: pair.name.clone(),
                value,
            }),
            Err(hint) => {
                let message = format!("{:?} is no value that can be looked for", pair.text);
                faults.error(pair.spot, message).hint(hint);
            }
        }
    }
    wanted
}

fn read_fields(section: &Section, faults: &mut Faults<'_>) -> Vec<WantedValue> {
    for pair in section.map("field") {
        if !is_header_name(&pair.name) {
            faults
                .error(pair.key, format!("{:?} is no name of a field", pair.name))
                .hint("names are letters, digits and `-`, without `:`");
        }
        if pair.name.eq_ignore_ascii_case("host") {
            faults
                .error(pair.key, "HTTP/2 and HTTP/3 have no such field")
                .hint("write `host = [\"a.example\"]`");
        }
        if let Some(hint) = header_value_wrong(&pair.text) {
            let message = format!("no field has the value {:?}", pair.text);
            faults.error(pair.spot, message).hint(hint);
        }
    }
    let mut fields = read_values(section, "field", faults);
    for field in &mut fields {
        field.name.make_ascii_lowercase();
    }
    fields
}

fn read_cookies(section: &Section, faults: &mut Faults<'_>) -> Vec<WantedValue> {
    for pair in section.map("cookie") {
        if !is_header_name(&pair.name) {
            faults
                .error(pair.key, format!("{:?} is no name of a cookie", pair.name))
                .hint("names are letters, digits, `-` and `_`");
        }
    }
    read_values(section, "cookie", faults)
}

fn read_share(section: &Section, faults: &mut Faults<'_>) -> Option<ClientShare> {
    let text = section.optional_text("share")?;
    match ClientShare::parse(text) {
        Ok(share) => Some(share),
        Err(hint) => {
            let message = format!("{text:?} is no share of clients");
            faults.error(section.spot("share"), message).hint(hint);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages() {
        for (text, parts) in [
            ("0%", 0),
            ("10%", 10_000),
            ("0.5%", 500),
            ("33.333%", 33_333),
            ("100%", 100_000),
            ("7 %", 7_000),
            ("0.001%", 1),
        ] {
            assert_eq!(ClientShare::parse(text), Ok(ClientShare(parts)), "{text}");
        }
        for wrong in [
            "", "%", "10", "0.1", "101%", "100.1%", "-1%", "1e1%", ".5%", "5.%", "0.0001%", "a%",
        ] {
            assert!(ClientShare::parse(wrong).is_err(), "{wrong}");
        }
        for text in ["0%", "10%", "0.5%", "33.333%", "100%", "0.001%"] {
            assert_eq!(ClientShare::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn stars_stand_at_the_ends_of_values() {
        let parse = ValuePattern::parse;
        assert_eq!(parse("*"), Ok(ValuePattern::Any));
        assert_eq!(parse(""), Ok(ValuePattern::Exact(String::new())));
        assert_eq!(parse("a b"), Ok(ValuePattern::Exact("a b".to_owned())));
        assert_eq!(parse("a*"), Ok(ValuePattern::Begins("a".to_owned())));
        assert_eq!(parse("*a"), Ok(ValuePattern::Ends("a".to_owned())));
        assert_eq!(parse("*a*"), Ok(ValuePattern::Has("a".to_owned())));
        for wrong in ["**", "***", "a*b", "*a*b*", "a**"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for text in ["*", "", "a b", "a*", "*a", "*a*"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
    }
}
