//! Rows of programs: the same work in every way that a server has to run one.

use super::{Entrant, Group, Per, Row, Scope};
use crate::server::{Extra, Installed, Kind};
use crate::site::Site;

/// The long answer: 1,000 times 1,024 KiB.
const STREAM_KIB: u64 = 1_024_000;

pub(super) fn rows(servers: &[Installed], site: &Site) -> Vec<Row> {
    let ways = Ways { servers, site };
    let mut rows = vec![];
    let protocols = [false, true].into_iter();
    for is_secure in protocols.filter(|is_secure| !is_secure || site.certificate.is_some()) {
        for connections in [1, 10] {
            for kib in [0, 1, 16, 64] {
                rows.push(ways.row(Language::C, kib, connections, is_secure));
            }
            rows.push(ways.row(Language::Perl, 0, connections, is_secure));
            rows.push(ways.row(Language::Python, 0, connections, is_secure));
        }
    }
    rows.push(ways.row(Language::Shell, 0, 10, false));
    rows.push(ways.stream());
    rows.retain(|row| !row.entrants.is_empty());
    rows
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    C,
    Shell,
    Perl,
    Python,
}

struct Ways<'a> {
    servers: &'a [Installed],
    site: &'a Site,
}

impl Ways<'_> {
    fn row(&self, language: Language, kib: u64, connections: usize, is_secure: bool) -> Row {
        let (name, text) = match language {
            Language::C => ("c", "program in C"),
            Language::Shell => ("sh", "shell script"),
            Language::Perl => ("perl", "Perl script"),
            Language::Python => ("python", "Python script"),
        };
        let (carrier, over) = match is_secure {
            true => ("tls", "over TLS"),
            false => ("clear", "in clear text"),
        };
        let id = format!("script.{name}.{carrier}.keep.{kib}k.c{connections}");
        let title = format!("{text} with an answer of {kib}k, {over}");
        let mut row = Row::new(id, title, Group::Scripts, connections);
        row.scope = match (language, kib, connections, is_secure) {
            (Language::C, 0 | 64, 10, false) => Scope::Quick,
            (Language::Perl | Language::Python, _, 10, false) => Scope::Quick,
            (Language::C, 0 | 64, _, _) | (_, _, 10, false) => Scope::Usual,
            _ => Scope::Full,
        };
        row.is_secure = is_secure;
        row.entrants = self.entrants(language, kib);
        if language == Language::C && !is_secure {
            row.beside([
                format!("A.script.cgi.{kib}k.c{connections}"),
                format!("A.script.cgiplus.{kib}k.c{connections}"),
                format!("B.script.all.{kib}k.c{connections}"),
            ]);
        }
        row
    }

    /// One answer of about 1000 MB.
    fn stream(&self) -> Row {
        let id = "stream.c.clear.keep.1000m.c1".to_owned();
        let title = "1000 MB from a program in C".to_owned();
        let mut row = Row::new(id, title, Group::Stream, 1);
        row.scope = Scope::Full;
        row.is_single = true;
        row.per = Per::Megabyte;
        row.entrants = self.entrants(Language::C, STREAM_KIB);
        let python = self.of(Kind::Hob, "resident WSGI", "/resident/wsgi", STREAM_KIB);
        let has_python = self.site.interpreters.contains(&"python3");
        row.entrants.extend(python.filter(|_| has_python));
        row.beside([
            "C.stream.host.1000m.c1".to_owned(),
            "C.stream.lan.1000m.c1".to_owned(),
        ]);
        row
    }

    fn entrants(&self, language: Language, kib: u64) -> Vec<Entrant> {
        let way = |kind, way: &str, path: &str| self.of(kind, way, path, kib);
        let all: Vec<Option<Entrant>> = match language {
            Language::C if self.site.c.is_some() => {
                let module = self.site.module.is_some();
                let resident = self.site.resident.is_some();
                let mut all: Vec<_> = vec![
                    way(Kind::Hob, "cgi", "/cgi/program"),
                    way(Kind::Hob, "resident, lines", "/lines"),
                ];
                if resident {
                    all.push(way(Kind::Hob, "resident, stream", "/stream"));
                    all.push(way(Kind::Hob, "resident, shm", "/shm"));
                }
                all.push(way(Kind::Apache, "cgi", "/cgi/program"));
                if module {
                    all.push(way(Kind::Apache, "module", "/module"));
                }
                all.push(way(Kind::Lighttpd, "cgi", "/cgi/program"));
                all.push(way(Kind::Lighttpd, "fastcgi", "/fastcgi/program"));
                all.push(way(Kind::Nginx, "fastcgi", "/fastcgi/program"));
                all
            }
            Language::C => vec![],
            Language::Shell if self.has("sh") => self.everywhere("script.sh", kib),
            Language::Perl if self.has("perl") => {
                let mut all = self.everywhere("script.pl", kib);
                all.insert(1, way(Kind::Hob, "warm", "/warm/script.pl"));
                all.insert(
                    2,
                    way(Kind::Hob, "resident, kept compiled", "/resident/script.pl"),
                );
                all
            }
            Language::Python if self.has("python3") => {
                let mut all = self.everywhere("script.py", kib);
                all.insert(1, way(Kind::Hob, "warm", "/warm/script.py"));
                all.insert(2, way(Kind::Hob, "resident WSGI", "/resident/wsgi"));
                all
            }
            Language::Shell | Language::Perl | Language::Python => vec![],
        };
        all.into_iter().flatten().collect()
    }

    fn has(&self, interpreter: &str) -> bool {
        self.site.interpreters.contains(&interpreter)
    }

    /// A script as CGI, hob first.
    fn everywhere(&self, name: &str, kib: u64) -> Vec<Option<Entrant>> {
        let kinds = [Kind::Hob, Kind::Apache, Kind::Lighttpd];
        let path = format!("/cgi/{name}");
        let all = kinds.map(|kind| self.of(kind, "cgi", &path, kib));
        all.into()
    }

    /// The first server of this kind, where there is one.
    fn of(&self, kind: Kind, way: &str, path: &str, kib: u64) -> Option<Entrant> {
        let server = self.servers.iter().find(|server| server.kind == kind)?;
        Some(Entrant {
            label: format!("{} {way}", server.name),
            server: server.name.clone(),
            extra: Extra::None,
            path: format!("{path}?{kib}"),
            bytes: kib * 1024,
        })
    }
}
