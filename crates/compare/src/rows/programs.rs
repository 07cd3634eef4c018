//! Rows of programs: the same work in every way that a server has to run one.

use hob_load::Reuse;

use super::row::{carrier_text, reuse_text};
use super::{ComparisonRow, Entrant, Per, RowGroup, RowRequest, Scope};
use crate::server::{Embedded, Extra, Installed, ServerSoftware};
use crate::site::ComparisonSite;

/// The long answer: 1,000 times 1,024 KiB.
const STREAM_KIB: u64 = 1_024_000;
/// An answer in pieces that says no length.
const PIECES_KIB: u64 = 102_400;
/// A long request.
const UPLOAD_BYTES: u64 = 64 << 20;

pub(super) fn rows(servers: &[Installed], site: &ComparisonSite) -> Vec<ComparisonRow> {
    let ways = Ways { servers, site };
    let mut rows = vec![];
    let protocols = [false, true].into_iter();
    for is_secure in protocols.filter(|is_secure| !is_secure || site.certificate.is_some()) {
        for connections in [1, 10] {
            for language in [
                ProgramLanguage::C,
                ProgramLanguage::Perl,
                ProgramLanguage::Python,
                ProgramLanguage::Wsgi,
                ProgramLanguage::Asgi,
                ProgramLanguage::Php,
            ] {
                for kib in [0, 1, 16, 64] {
                    let case = ProgramCase {
                        language,
                        kib,
                        connections,
                        is_secure,
                        reuse: Reuse::KeepAlive,
                    };
                    rows.push(ways.row(case));
                    // What a handshake costs is the same before each program.
                    if language == ProgramLanguage::C || !is_secure {
                        rows.push(ways.row(case.with_connection_each()));
                    }
                }
            }
        }
    }
    let shell = ProgramCase {
        language: ProgramLanguage::Shell,
        kib: 0,
        connections: 10,
        is_secure: false,
        reuse: Reuse::KeepAlive,
    };
    rows.extend([shell, shell.with_connection_each()].map(|case| ways.row(case)));
    rows.push(ways.stream());
    rows.push(ways.pieces());
    for language in [ProgramLanguage::Wsgi, ProgramLanguage::Asgi] {
        rows.push(ways.upload(language));
    }
    // The first is what the others are compared with: hob, where it runs such programs.
    let has_hob =
        |row: &ComparisonRow| row.entrants.first().is_some_and(|first| ways.is_hob(first));
    rows.retain(has_hob);
    rows
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ProgramLanguage {
    C,
    Shell,
    Perl,
    Python,
    Wsgi,
    Asgi,
    Php,
}

/// What is asked of a program, and how.
#[derive(Clone, Copy)]
struct ProgramCase {
    language: ProgramLanguage,
    kib: u64,
    connections: usize,
    is_secure: bool,
    reuse: Reuse,
}

impl ProgramCase {
    fn with_connection_each(self) -> ProgramCase {
        ProgramCase {
            reuse: Reuse::PerRequest,
            ..self
        }
    }

    fn scope(self) -> Scope {
        let ProgramCase { language, kib, .. } = self;
        let is_kept = self.reuse == Reuse::KeepAlive;
        match (language, kib, self.connections, self.is_secure) {
            // What 1998 measured so.
            (ProgramLanguage::C, 0, _, false) if !is_kept => Scope::Usual,
            _ if !is_kept => Scope::Full,
            (ProgramLanguage::C, 0 | 64, 10, false) => Scope::Quick,
            (ProgramLanguage::Perl | ProgramLanguage::Python, 0, 10, false) => Scope::Quick,
            (ProgramLanguage::C, 0 | 64, _, _) | (ProgramLanguage::Shell, ..) => Scope::Usual,
            (_, 0, 10, false) => Scope::Usual,
            _ => Scope::Full,
        }
    }
}

struct Ways<'a> {
    servers: &'a [Installed],
    site: &'a ComparisonSite,
}

impl Ways<'_> {
    fn row(&self, case: ProgramCase) -> ComparisonRow {
        let ProgramCase {
            language,
            kib,
            connections,
            is_secure,
            reuse,
        } = case;
        let (name, text) = match language {
            ProgramLanguage::C => ("c", "program in C"),
            ProgramLanguage::Shell => ("sh", "shell script"),
            ProgramLanguage::Perl => ("perl", "Perl script"),
            ProgramLanguage::Python => ("python", "Python script"),
            ProgramLanguage::Wsgi => ("wsgi", "WSGI application"),
            ProgramLanguage::Asgi => ("asgi", "ASGI application"),
            ProgramLanguage::Php => ("php", "PHP script"),
        };
        let (carrier, over) = carrier_text(is_secure);
        let (kept, kept_text) = reuse_text(reuse);
        let id = format!("script.{name}.{carrier}.{kept}.{kib}k.c{connections}");
        let title = format!("{text} with an answer of {kib}k, {over}, {kept_text}");
        let mut row = ComparisonRow::new(id, title, RowGroup::Scripts, connections);
        row.scope = case.scope();
        row.reuse = reuse;
        row.is_secure = is_secure;
        row.entrants = self.entrants(language, kib, is_secure);
        if language == ProgramLanguage::C && !is_secure {
            let case = format!("{kib}k.c{connections}");
            row.beside(match reuse {
                Reuse::KeepAlive => vec![format!("B.script.all.{case}")],
                Reuse::PerRequest => ["cgi", "cgiplus"]
                    .map(|way| format!("A.script.{way}.{case}"))
                    .into(),
            });
        }
        row
    }

    /// One answer of about 1000 MB.
    fn stream(&self) -> ComparisonRow {
        let id = "stream.c.clear.keep.1000m.c1".to_owned();
        let title = "1000 MB from a program in C".to_owned();
        let mut row = ComparisonRow::new(id, title, RowGroup::Stream, 1);
        row.scope = Scope::Full;
        row.is_single = true;
        row.per = Per::Megabyte;
        row.entrants = self.entrants(ProgramLanguage::C, STREAM_KIB, false);
        let python = self.of(
            ServerSoftware::Hob,
            "resident WSGI",
            "/resident/wsgi",
            STREAM_KIB,
        );
        let has_python = self.site.interpreters.contains(&"python3");
        row.entrants.extend(python.filter(|_| has_python));
        row.beside([
            "C.stream.host.1000m.c1".to_owned(),
            "C.stream.lan.1000m.c1".to_owned(),
        ]);
        row
    }

    /// About 100 MB in pieces of 64 KiB, of an application that does not say how many.
    fn pieces(&self) -> ComparisonRow {
        let id = "stream.wsgi.clear.keep.100m.c1".to_owned();
        let title = "100 MB from a WSGI application, in pieces, no length said".to_owned();
        let mut row = ComparisonRow::new(id, title, RowGroup::Stream, 1);
        row.scope = Scope::Full;
        row.is_single = true;
        row.per = Per::Megabyte;
        row.entrants = self.entrants(ProgramLanguage::Wsgi, PIECES_KIB, false);
        for entrant in &mut row.entrants {
            entrant.path.push('p');
        }
        row
    }

    /// A request of 64 MiB to an application that reads it in pieces.
    fn upload(&self, language: ProgramLanguage) -> ComparisonRow {
        let (name, what) = match language {
            ProgramLanguage::Asgi => ("asgi", "an ASGI application"),
            _ => ("wsgi", "a WSGI application"),
        };
        let id = format!("upload.{name}.clear.keep.64m.c1");
        let title = format!("64 MiB to {what}");
        let mut row = ComparisonRow::new(id, title, RowGroup::Stream, 1);
        row.scope = Scope::Full;
        row.is_single = true;
        row.request = RowRequest::Upload(UPLOAD_BYTES);
        row.per = Per::Megabyte;
        row.entrants = self.entrants(language, 0, false);
        row
    }

    fn entrants(&self, language: ProgramLanguage, kib: u64, is_secure: bool) -> Vec<Entrant> {
        let way = |kind, way: &str, path: &str| self.of(kind, way, path, kib);
        let all: Vec<Option<Entrant>> = match language {
            ProgramLanguage::C if self.site.c.is_some() => {
                let module = self.site.module.is_some();
                let resident = self.site.resident.is_some();
                let mut all: Vec<_> = vec![
                    way(ServerSoftware::Hob, "cgi", "/cgi/program"),
                    way(ServerSoftware::Hob, "resident, lines", "/lines"),
                ];
                if resident {
                    all.push(way(ServerSoftware::Hob, "resident, stream", "/stream"));
                    all.push(way(ServerSoftware::Hob, "resident, shm", "/shm"));
                }
                all.push(way(ServerSoftware::Apache, "cgi", "/cgi/program"));
                if module {
                    all.push(way(ServerSoftware::Apache, "module", "/module"));
                }
                all.push(way(ServerSoftware::Lighttpd, "cgi", "/cgi/program"));
                all.push(way(ServerSoftware::Lighttpd, "fastcgi", "/fastcgi/program"));
                all.push(way(ServerSoftware::Nginx, "fastcgi", "/fastcgi/program"));
                all
            }
            ProgramLanguage::C => vec![],
            ProgramLanguage::Shell if self.has("sh") => self.everywhere("script.sh", kib),
            ProgramLanguage::Perl if self.has("perl") => {
                let mut all = self.everywhere("script.pl", kib);
                all.insert(1, way(ServerSoftware::Hob, "warm", "/warm/script.pl"));
                let kept = way(
                    ServerSoftware::Hob,
                    "resident, kept compiled",
                    "/resident/script.pl",
                );
                all.insert(2, kept);
                all.push(self.embedded(Embedded::Perl, "mod_perl", ("/perl/script.pl", kib)));
                all
            }
            ProgramLanguage::Python if self.has("python3") => {
                let mut all = self.everywhere("script.py", kib);
                all.insert(1, way(ServerSoftware::Hob, "warm", "/warm/script.py"));
                all.insert(
                    2,
                    way(ServerSoftware::Hob, "resident WSGI", "/resident/wsgi"),
                );
                all
            }
            ProgramLanguage::Shell | ProgramLanguage::Perl | ProgramLanguage::Python => vec![],
            ProgramLanguage::Wsgi => self.wsgi(kib, is_secure),
            ProgramLanguage::Asgi => self.asgi(kib),
            ProgramLanguage::Php => self.php(kib),
        };
        all.into_iter().flatten().collect()
    }

    /// One application in every server that runs it.
    fn wsgi(&self, kib: u64, is_secure: bool) -> Vec<Option<Entrant>> {
        let way = |kind, way: &str, path: &str| self.of(kind, way, path, kib);
        let behind = way(ServerSoftware::Uwsgi, "behind nginx", "/app")
            .filter(|_| self.has_front(ServerSoftware::Uwsgi))
            .map(|entrant| Entrant {
                extra: Extra::Behind,
                ..entrant
            });
        let own = way(ServerSoftware::Hob, "resident WSGI", "/resident/wsgi");
        vec![
            own.filter(|_| self.has("python3")),
            way(ServerSoftware::Granian, "WSGI", "/app"),
            // It cannot speak TLS on the terms of all others.
            way(ServerSoftware::Uwsgi, "own router", "/app").filter(|_| !is_secure),
            behind,
            way(ServerSoftware::Gunicorn, "WSGI", "/app"),
            self.embedded(Embedded::Python, "mod_wsgi", ("/wsgi", kib)),
        ]
    }

    /// An interpreter within Apache.
    fn embedded(&self, which: Embedded, way: &str, (path, kib): (&str, u64)) -> Option<Entrant> {
        which.load()?;
        let entrant = self.of(ServerSoftware::Apache, way, path, kib)?;
        let extra = match which {
            Embedded::Php => Extra::EmbeddedPhp,
            Embedded::Python | Embedded::Perl => Extra::Embedded,
        };
        Some(Entrant { extra, ..entrant })
    }

    fn asgi(&self, kib: u64) -> Vec<Option<Entrant>> {
        let way = |kind, way: &str, path: &str| self.of(kind, way, path, kib);
        let own = way(ServerSoftware::Hob, "resident ASGI", "/resident/asgi");
        let granian = way(ServerSoftware::Granian, "ASGI", "/app").map(|entrant| Entrant {
            extra: Extra::Asgi,
            ..entrant
        });
        vec![
            own.filter(|_| self.has("python3")),
            granian,
            way(ServerSoftware::Uvicorn, "ASGI", "/app"),
        ]
    }

    fn php(&self, kib: u64) -> Vec<Option<Entrant>> {
        let way = |kind, way: &str, path: &str| self.of(kind, way, path, kib);
        let is_there = self.site.php.is_some();
        let own = way(ServerSoftware::Hob, "cgi", "/cgi/script.php");
        let behind = way(ServerSoftware::Fpm, "behind nginx", "/php/script.php");
        let runs_it = way(ServerSoftware::Hob, "fastcgi", "/php/script.php");
        vec![
            runs_it.filter(|_| behind.is_some()).map(|entrant| Entrant {
                extra: Extra::Fastcgi,
                ..entrant
            }),
            own.filter(|_| is_there),
            behind,
            way(ServerSoftware::Lighttpd, "cgi", "/cgi/script.php").filter(|_| is_there),
            way(ServerSoftware::Lighttpd, "fastcgi", "/php/script.php").filter(|_| is_there),
            self.embedded(Embedded::Php, "mod_php", ("/embedded/script.php", kib)),
        ]
    }

    fn is_hob(&self, entrant: &Entrant) -> bool {
        let mut servers = self.servers.iter();
        servers.any(|server| server.kind == ServerSoftware::Hob && server.name == entrant.server)
    }

    fn has_front(&self, kind: ServerSoftware) -> bool {
        let mut servers = self.servers.iter();
        servers.any(|server| server.kind == kind && server.front.is_some())
    }

    fn has(&self, interpreter: &str) -> bool {
        self.site.interpreters.contains(&interpreter)
    }

    /// A script as CGI, hob first.
    fn everywhere(&self, name: &str, kib: u64) -> Vec<Option<Entrant>> {
        let kinds = [
            ServerSoftware::Hob,
            ServerSoftware::Apache,
            ServerSoftware::Lighttpd,
        ];
        let path = format!("/cgi/{name}");
        let all = kinds.map(|kind| self.of(kind, "cgi", &path, kib));
        all.into()
    }

    /// The first server of this kind, where there is one.
    fn of(&self, kind: ServerSoftware, way: &str, path: &str, kib: u64) -> Option<Entrant> {
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
