//! Rows of programs: the same work in every way that a server has to run one.

use super::{Entrant, Group, Per, Row, Scope};
use crate::server::{Embedded, Extra, Installed, Kind};
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
            for language in [
                Language::Perl,
                Language::Python,
                Language::Wsgi,
                Language::Asgi,
                Language::Php,
            ] {
                for kib in [0, 1, 16, 64] {
                    rows.push(ways.row(language, kib, connections, is_secure));
                }
            }
        }
    }
    rows.push(ways.row(Language::Shell, 0, 10, false));
    rows.push(ways.stream());
    // The first is what the others are compared with: hob, where it runs such programs.
    let has_hob = |row: &Row| row.entrants.first().is_some_and(|first| ways.is_hob(first));
    rows.retain(has_hob);
    rows
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    C,
    Shell,
    Perl,
    Python,
    Wsgi,
    Asgi,
    Php,
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
            Language::Wsgi => ("wsgi", "WSGI application"),
            Language::Asgi => ("asgi", "ASGI application"),
            Language::Php => ("php", "PHP script"),
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
            (Language::Perl | Language::Python, 0, 10, false) => Scope::Quick,
            (Language::C, 0 | 64, _, _) | (Language::Shell, ..) => Scope::Usual,
            (_, 0, 10, false) => Scope::Usual,
            _ => Scope::Full,
        };
        row.is_secure = is_secure;
        row.entrants = self.entrants(language, kib, is_secure);
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
        row.entrants = self.entrants(Language::C, STREAM_KIB, false);
        let python = self.of(Kind::Hob, "resident WSGI", "/resident/wsgi", STREAM_KIB);
        let has_python = self.site.interpreters.contains(&"python3");
        row.entrants.extend(python.filter(|_| has_python));
        row.beside([
            "C.stream.host.1000m.c1".to_owned(),
            "C.stream.lan.1000m.c1".to_owned(),
        ]);
        row
    }

    fn entrants(&self, language: Language, kib: u64, is_secure: bool) -> Vec<Entrant> {
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
                let kept = way(Kind::Hob, "resident, kept compiled", "/resident/script.pl");
                all.insert(2, kept);
                all.push(self.embedded(Embedded::Perl, "mod_perl", ("/perl/script.pl", kib)));
                all
            }
            Language::Python if self.has("python3") => {
                let mut all = self.everywhere("script.py", kib);
                all.insert(1, way(Kind::Hob, "warm", "/warm/script.py"));
                all.insert(2, way(Kind::Hob, "resident WSGI", "/resident/wsgi"));
                all
            }
            Language::Shell | Language::Perl | Language::Python => vec![],
            Language::Wsgi => self.wsgi(kib, is_secure),
            Language::Asgi => self.asgi(kib),
            Language::Php => self.php(kib),
        };
        all.into_iter().flatten().collect()
    }

    /// One application in every server that runs it.
    fn wsgi(&self, kib: u64, is_secure: bool) -> Vec<Option<Entrant>> {
        let way = |kind, way: &str, path: &str| self.of(kind, way, path, kib);
        let behind = way(Kind::Uwsgi, "behind nginx", "/app")
            .filter(|_| self.has_front(Kind::Uwsgi))
            .map(|entrant| Entrant {
                extra: Extra::Behind,
                ..entrant
            });
        let own = way(Kind::Hob, "resident WSGI", "/resident/wsgi");
        vec![
            own.filter(|_| self.has("python3")),
            way(Kind::Granian, "WSGI", "/app"),
            // It cannot speak TLS on the terms of all others.
            way(Kind::Uwsgi, "own router", "/app").filter(|_| !is_secure),
            behind,
            way(Kind::Gunicorn, "WSGI", "/app"),
            self.embedded(Embedded::Python, "mod_wsgi", ("/wsgi", kib)),
        ]
    }

    /// An interpreter within Apache.
    fn embedded(&self, which: Embedded, way: &str, (path, kib): (&str, u64)) -> Option<Entrant> {
        which.load()?;
        let entrant = self.of(Kind::Apache, way, path, kib)?;
        Some(Entrant {
            extra: Extra::Embedded,
            ..entrant
        })
    }

    fn asgi(&self, kib: u64) -> Vec<Option<Entrant>> {
        let way = |kind, way: &str, path: &str| self.of(kind, way, path, kib);
        let own = way(Kind::Hob, "resident ASGI", "/resident/asgi");
        let granian = way(Kind::Granian, "ASGI", "/app").map(|entrant| Entrant {
            extra: Extra::Asgi,
            ..entrant
        });
        vec![
            own.filter(|_| self.has("python3")),
            granian,
            way(Kind::Uvicorn, "ASGI", "/app"),
        ]
    }

    fn php(&self, kib: u64) -> Vec<Option<Entrant>> {
        let way = |kind, way: &str, path: &str| self.of(kind, way, path, kib);
        let is_there = self.site.php.is_some();
        let own = way(Kind::Hob, "cgi", "/cgi/script.php");
        vec![
            own.filter(|_| is_there),
            way(Kind::Fpm, "behind nginx", "/php/script.php"),
            way(Kind::Lighttpd, "cgi", "/cgi/script.php").filter(|_| is_there),
            way(Kind::Lighttpd, "fastcgi", "/php/script.php").filter(|_| is_there),
        ]
    }

    fn is_hob(&self, entrant: &Entrant) -> bool {
        let mut servers = self.servers.iter();
        servers.any(|server| server.kind == Kind::Hob && server.name == entrant.server)
    }

    fn has_front(&self, kind: Kind) -> bool {
        let mut servers = self.servers.iter();
        servers.any(|server| server.kind == kind && server.front.is_some())
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
