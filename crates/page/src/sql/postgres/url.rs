//! Where a database is: `postgres://user:password@host:port/name?key=value`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How a database is reached.
#[derive(Clone)]
pub struct PostgresOptions {
    /// Where its server listens.
    pub place: PostgresPlace,
    /// Who asks.
    pub user: String,
    /// What the server may ask for.
    pub password: Option<String>,
    /// The database's name.
    pub database: String,
    /// How the way there is protected.
    pub tls: PostgresTls,
    /// Nothing is written.
    pub is_read_only: bool,
    /// How long the way there may take.
    pub connect_timeout: Duration,
    /// How long a statement may run; the server ends it.
    pub statement_timeout: Duration,
    /// Bytes of a row, and of anything else the server says at once.
    pub message_bytes_max: usize,
}

/// Where a server listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PostgresPlace {
    /// In a folder, with a socket that is named by this number.
    Folder(PathBuf, u16),
    /// At a port of a host.
    Host(String, u16),
}

/// How the way to a server is protected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PostgresTls {
    /// Not at all: a socket of this machine, or a network that is trusted.
    Off,
    /// By TLS; the server's certificate is of its name, and of an authority of this file or else
    /// of the system.
    Verified(Option<PathBuf>),
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("place", &self.place)
            .field("user", &self.user)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

/// Where Debian's server listens.
const FOLDER: &str = "/var/run/postgresql";
const PORT: u16 = 5432;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// The parts of a URL, decoded.
#[derive(Default)]
struct UrlParts {
    user: String,
    password: Option<String>,
    host: String,
    port: Option<u16>,
    database: String,
    tls_mode: Option<String>,
    authorities: Option<PathBuf>,
    connect_timeout: Option<Duration>,
}

impl PostgresOptions {
    /// Reads a URL. What libpq knows and is not here is refused by its name.
    pub fn parse(url: &str) -> Result<PostgresOptions, String> {
        let rest = ["postgres://", "postgresql://"]
            .into_iter()
            .find_map(|start| url.strip_prefix(start))
            .ok_or("write postgres://USER@HOST/DATABASE")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let mut parts = UrlParts {
            database: decoded(database)?,
            ..UrlParts::default()
        };
        parts.authority(authority)?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            parts.key(&decoded(key)?, decoded(value)?)?;
        }
        parts.options()
    }
}

impl UrlParts {
    fn authority(&mut self, authority: &str) -> Result<(), String> {
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (user, place),
            None => ("", authority),
        };
        let (user, password) = match user.split_once(':') {
            Some((user, password)) => (user, Some(decoded(password)?)),
            None => (user, None),
        };
        self.user = decoded(user)?;
        self.password = password;
        let (host, port) = match place.strip_prefix('[') {
            Some(rest) => {
                let end = rest.split_once(']');
                let (host, rest) = end.ok_or("the address in [ ] has no end")?;
                (host, rest.strip_prefix(':').unwrap_or(rest))
            }
            None => place.split_once(':').unwrap_or((place, "")),
        };
        self.host = decoded(host)?;
        self.port = match port {
            "" => None,
            port => Some(port_of(port)?),
        };
        Ok(())
    }

    fn key(&mut self, key: &str, value: String) -> Result<(), String> {
        match key {
            "user" => self.user = value,
            "password" => self.password = Some(value),
            "host" => self.host = value,
            "port" => self.port = Some(port_of(&value)?),
            "dbname" => self.database = value,
            "sslmode" => self.tls_mode = Some(value),
            "sslrootcert" => self.authorities = Some(PathBuf::from(value)),
            "connect_timeout" => {
                let seconds = value.parse().ok().filter(|seconds| *seconds > 0);
                let seconds = seconds.ok_or("connect_timeout: write whole seconds, from 1")?;
                self.connect_timeout = Some(Duration::from_secs(seconds));
            }
            "application_name" | "gssencmode" | "channel_binding" => {}
            _ => {
                return Err(format!(
                    "{key} is not known here; there are user, password, host, port, dbname, \
                     sslmode, sslrootcert, connect_timeout"
                ));
            }
        }
        Ok(())
    }

    fn options(self) -> Result<PostgresOptions, String> {
        if self.user.is_empty() {
            return Err("it names no user; write postgres://USER@HOST/DATABASE".to_owned());
        }
        let port = self.port.unwrap_or(PORT);
        let place = match &*self.host {
            "" => PostgresPlace::Folder(PathBuf::from(FOLDER), port),
            folder if folder.starts_with('/') => PostgresPlace::Folder(folder.into(), port),
            host => PostgresPlace::Host(host.to_owned(), port),
        };
        let is_near = match &place {
            PostgresPlace::Folder(..) => true,
            PostgresPlace::Host(host, _) => is_this_machine(host),
        };
        let verified = PostgresTls::Verified(self.authorities.clone());
        let tls = match self.tls_mode.as_deref() {
            None if is_near && self.authorities.is_none() => PostgresTls::Off,
            None | Some("verify-full") => verified,
            Some("disable") => PostgresTls::Off,
            Some(mode) => {
                return Err(format!(
                    "sslmode={mode} does not hold a server to its name; write verify-full, with \
                     sslrootcert=FILE for an authority of your own, or disable"
                ));
            }
        };
        if tls != PostgresTls::Off && matches!(place, PostgresPlace::Folder(..)) {
            return Err("there is no TLS over a socket of this machine".to_owned());
        }
        let database = match self.database {
            database if database.is_empty() => self.user.clone(),
            database => database,
        };
        Ok(PostgresOptions {
            place,
            user: self.user,
            password: self.password,
            database,
            tls,
            is_read_only: false,
            connect_timeout: self.connect_timeout.unwrap_or(CONNECT_TIMEOUT),
            statement_timeout: STATEMENT_TIMEOUT,
            message_bytes_max: MESSAGE_BYTES_MAX,
        })
    }
}

fn is_this_machine(host: &str) -> bool {
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn port_of(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| format!("{text:?} is no port"))
}

/// Percent signs decoded.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digit = |at: usize| {
            let digit = rest.get(at).map(|byte| char::from(*byte));
            digit.and_then(|digit| digit.to_digit(16))
        };
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return Err("a percent sign is followed by two hexadecimal digits".to_owned());
        };
        bytes.push((high * 16 + low) as u8);
        rest = &rest[2..];
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err("it is no text in UTF-8".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> Result<(PostgresPlace, String, String, PostgresTls), String> {
        let options = PostgresOptions::parse(url)?;
        Ok((options.place, options.user, options.database, options.tls))
    }

    #[test]
    fn a_url_says_where_a_database_is() {
        let host = |host: &str, port| PostgresPlace::Host(host.to_owned(), port);
        let folder = |folder: &str, port| PostgresPlace::Folder(folder.into(), port);
        let verified = PostgresTls::Verified(None);
        for (url, wanted, user, database, tls) in [
            (
                "postgres://ann@db.example/stock",
                host("db.example", 5432),
                "ann",
                "stock",
                &verified,
            ),
            (
                "postgresql://ann@[::1]:99/stock",
                host("::1", 99),
                "ann",
                "stock",
                &PostgresTls::Off,
            ),
            (
                "postgres://a%40b:x@localhost",
                host("localhost", 5432),
                "a@b",
                "a@b",
                &PostgresTls::Off,
            ),
            (
                "postgres:///stock?user=ann",
                folder(FOLDER, 5432),
                "ann",
                "stock",
                &PostgresTls::Off,
            ),
            (
                "postgres://ann@%2Ftmp%2Fx:7/s",
                folder("/tmp/x", 7),
                "ann",
                "s",
                &PostgresTls::Off,
            ),
            (
                "postgres://ann@/s?host=/tmp/x",
                folder("/tmp/x", 5432),
                "ann",
                "s",
                &PostgresTls::Off,
            ),
            (
                "postgres://ann@db/s?sslmode=disable",
                host("db", 5432),
                "ann",
                "s",
                &PostgresTls::Off,
            ),
            (
                "postgres://ann@127.0.0.1/s?sslmode=verify-full",
                host("127.0.0.1", 5432),
                "ann",
                "s",
                &verified,
            ),
        ] {
            let found = place(url);
            let wanted = (wanted, user.to_owned(), database.to_owned(), tls.clone());
            assert_eq!(found, Ok(wanted), "{url}");
        }
        let options = PostgresOptions::parse("postgres://ann:p%3Aw@db/s").expect("it is read");
        assert_eq!(options.password.as_deref(), Some("p:w"));
        assert!(!format!("{options:?}").contains("p:w"));
    }

    #[test]
    fn what_is_wrong_with_a_url_is_told() {
        for (url, said) in [
            ("mysql://ann@db/s", "write postgres://"),
            ("postgres://db.example/stock", "it names no user"),
            ("postgres://ann@db:x/s", "\"x\" is no port"),
            ("postgres://ann@db:0/s", "\"0\" is no port"),
            ("postgres://ann@[::1/s", "has no end"),
            ("postgres://ann@db/%zz", "two hexadecimal digits"),
            ("postgres://ann@db/%ff", "no text in UTF-8"),
            (
                "postgres://ann@db/s?sslmode=require",
                "sslmode=require does not hold",
            ),
            (
                "postgres://ann@/s?sslmode=verify-full",
                "no TLS over a socket",
            ),
            ("postgres://ann@db/s?service=x", "service is not known here"),
            (
                "postgres://ann@db/s?connect_timeout=0",
                "whole seconds, from 1",
            ),
        ] {
            let found = place(url).expect_err(url);
            assert!(found.contains(said), "{url}: {found}");
        }
    }
}
