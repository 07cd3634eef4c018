//! Rows of files: small and large, kept connections and not, clear text and TLS.

use hob_load::{Protocol, Reuse};

use super::row::reuse_text;
use super::{ComparisonRow, Entrant, Per, RowGroup, RowRequest, Scope};
use crate::server::{Extra, Installed, ServerSoftware};
use crate::site::{ComparisonSite, FILES, MANY, MANY_BYTES, file_name};

/// Bytes of a part that is asked for.
const PART_BYTES: u64 = 100;
/// Files up to here are small: what counts is the request. Above, it is the bytes.
const SMALL_BYTES_MAX: u64 = 64 << 10;

pub(super) fn rows(servers: &[Installed], site: &ComparisonSite) -> Vec<ComparisonRow> {
    let servers = servers.iter().filter(|server| server.kind.has_files());
    let servers: &[Installed] = &servers.cloned().collect::<Vec<_>>();
    let mut rows = vec![];
    let has_tls = site.certificate.is_some();
    for connections in [1, 10] {
        for (name, bytes) in FILES {
            let file = FileCase {
                name,
                bytes: *bytes,
                connections,
            };
            if *bytes > SMALL_BYTES_MAX {
                for reuse in [Reuse::KeepAlive, Reuse::PerRequest] {
                    rows.push(file.large(servers, false, reuse));
                    rows.extend(has_tls.then(|| file.large(servers, true, reuse)));
                }
                if has_tls {
                    rows.push(file.multiplexed(servers, Protocol::H2, 1));
                    rows.push(file.multiplexed(servers, Protocol::H3, 1));
                }
                rows.extend((connections == 1).then(|| file.uncached(servers, Cold::Yes)));
                continue;
            }
            rows.push(file.small(servers, false, Reuse::KeepAlive));
            rows.push(file.small(servers, false, Reuse::PerRequest));
            if has_tls {
                rows.push(file.small(servers, true, Reuse::KeepAlive));
                rows.push(file.small(servers, true, Reuse::PerRequest));
            }
            for protocol in [Protocol::H2, Protocol::H3].into_iter().filter(|_| has_tls) {
                rows.push(file.multiplexed(servers, protocol, 1));
                if connections > 1 {
                    rows.push(file.multiplexed(servers, protocol, 10));
                }
                rows.extend((*name == "0k").then(|| file.per_connection(servers, protocol)));
            }
            rows.push(file.uncached(servers, Cold::No));
            if *bytes > 0 && connections == 1 {
                rows.push(file.uncached(servers, Cold::Yes));
            }
        }
    }
    rows.extend(others(servers, site));
    rows
}

/// The first bytes of a large file, and one of many small files.
fn others(servers: &[Installed], site: &ComparisonSite) -> Vec<ComparisonRow> {
    let everybody = |path: String, bytes| -> Vec<Entrant> {
        let entrant = |server: &Installed| Entrant {
            label: server.name.clone(),
            server: server.name.clone(),
            extra: Extra::None,
            path: path.clone(),
            bytes,
        };
        servers.iter().map(entrant).collect()
    };
    let row = |id: &str, title: &str, group| {
        let mut row = ComparisonRow::new(id.to_owned(), title.to_owned(), group, 10);
        row.scope = Scope::Full;
        row
    };
    let (name, bytes) = FILES[FILES.len() - 2];
    let title = format!("{PART_BYTES} bytes of a file of {name}");
    let mut part = row("part.h1.clear.keep.100.c10", &title, RowGroup::Large);
    part.short = format!("{PART_BYTES} of {name} bytes, c=10");
    part.request = RowRequest::Part;
    part.entrants = everybody(format!("/{}", file_name(name, bytes)), PART_BYTES);
    let title = format!("one of {} files of 1k, at random", MANY.count());
    let mut many = row("many.h1.clear.keep.1k.c10", &title, RowGroup::Files);
    many.short = format!("1k, one of {}, c=10", MANY.count());
    many.request = RowRequest::AnyFile;
    many.entrants = everybody(format!("/{}", MANY.folder), MANY_BYTES);
    [Some(part), site.has_many.then_some(many)]
        .into_iter()
        .flatten()
        .collect()
}

/// Is what the kernel keeps of a file thrown away before each request?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cold {
    No,
    Yes,
}

struct FileCase {
    name: &'static str,
    bytes: u64,
    connections: usize,
}

impl FileCase {
    fn small(&self, servers: &[Installed], is_secure: bool, reuse: Reuse) -> ComparisonRow {
        let FileCase {
            name, connections, ..
        } = *self;
        let carrier = carrier(is_secure);
        let (kept, kept_text) = reuse_text(reuse);
        let group = match (is_secure, reuse) {
            (true, _) => RowGroup::Secure,
            (false, Reuse::KeepAlive) => RowGroup::Files,
            (false, Reuse::PerRequest) => RowGroup::Close,
        };
        let title = format!("file of {name}, {}, {kept_text}", carrier_text(is_secure));
        let id = format!("file.h1.{carrier}.{kept}.{name}.c{connections}");
        let mut row = ComparisonRow::new(id, title, group, connections);
        row.scope = match (group, reuse, name, connections) {
            (RowGroup::Files, ..) => Scope::Quick,
            (_, Reuse::PerRequest, "0k", 10) => Scope::Quick,
            (RowGroup::Secure, Reuse::KeepAlive, "0k" | "64k", 10) => Scope::Quick,
            (_, Reuse::PerRequest, "1k" | "16k", _) if is_secure => Scope::Full,
            _ => Scope::Usual,
        };
        row.short = match (is_secure, reuse) {
            (true, Reuse::PerRequest) => format!("{name}, c={connections}, with handshake"),
            _ => format!("{name}, c={connections}"),
        };
        row.reuse = reuse;
        row.is_secure = is_secure;
        row.entrants = self.everybody(servers);
        row.beside(match (is_secure, reuse) {
            (false, Reuse::PerRequest) => Some(format!("A.file.cache.{name}.c{connections}")),
            (_, Reuse::KeepAlive) => Some(format!("B.h1.{carrier}.{name}.c{connections}")),
            (true, Reuse::PerRequest) => None,
        });
        row
    }

    fn large(&self, servers: &[Installed], is_secure: bool, reuse: Reuse) -> ComparisonRow {
        let FileCase {
            name, connections, ..
        } = *self;
        let carrier = carrier(is_secure);
        let (kept, kept_text) = reuse_text(reuse);
        let over = carrier_text(is_secure);
        let title = format!("file of {name} bytes, {over}, {kept_text}");
        let id = format!("large.h1.{carrier}.{kept}.{name}.c{connections}");
        let mut row = ComparisonRow::new(id, title, RowGroup::Large, connections);
        row.scope = match (name, reuse) {
            ("4115968", Reuse::KeepAlive) => Scope::Usual,
            _ => Scope::Full,
        };
        row.reuse = reuse;
        row.is_secure = is_secure;
        row.per = Per::Megabyte;
        row.short = format!("{name} bytes, {carrier}, c={connections}");
        if reuse == Reuse::PerRequest {
            row.short.push_str(", a connection each");
        }
        row.entrants = self.everybody(servers);
        // Usually it keeps the contents of small files alone, and has the kernel send the others.
        if let Some(own) = row.entrants.first().cloned() {
            let kept = Entrant {
                label: format!("{}, kept in memory", own.label),
                extra: Extra::WholeCache,
                ..own
            };
            row.entrants.insert(1, kept);
        }
        // Of 1998 over a connection each, of 2021 over ones that were kept.
        row.beside(match (is_secure, reuse) {
            (_, Reuse::KeepAlive) => Some(format!("B.large.{carrier}.{name}.c{connections}")),
            (false, _) => Some(format!("A.large.nocache.{name}.c{connections}")),
            (true, _) => None,
        });
        row
    }

    /// From the kernel's page cache, or from the disk: hob without its own cache.
    fn uncached(&self, servers: &[Installed], cold: Cold) -> ComparisonRow {
        let FileCase {
            name, connections, ..
        } = *self;
        let (word, text) = match cold {
            Cold::No => ("uncached", "from the kernel's page cache"),
            Cold::Yes => ("cold", "from the disk"),
        };
        let is_large = self.bytes > SMALL_BYTES_MAX;
        let kind = if is_large { "large" } else { "file" };
        let title = format!("file of {name} {text}, one connection per request");
        let id = format!("{kind}.h1.clear.{word}.{name}.c{connections}");
        let mut row = ComparisonRow::new(id, title, RowGroup::Uncached, connections);
        row.short = format!("{name}, c={connections}, {text}");
        row.scope = match (name, connections, cold) {
            ("0k", 10, _) | ("64k", 10, _) | ("64k", _, Cold::Yes) => Scope::Usual,
            _ => Scope::Full,
        };
        row.per = if is_large {
            Per::Megabyte
        } else {
            Per::Request
        };
        row.reuse = Reuse::PerRequest;
        row.is_cold = cold == Cold::Yes;
        row.entrants = self.everybody(servers);
        for (entrant, server) in row.entrants.iter_mut().zip(servers) {
            if server.kind == ServerSoftware::Hob {
                entrant.extra = Extra::NoCache;
                entrant.label = format!("{}, cache off", entrant.label);
            }
        }
        if cold == Cold::No {
            row.beside([format!("A.file.nocache.{name}.c{connections}")]);
        }
        row
    }

    /// Over HTTP/2 or HTTP/3, which are encrypted where files are served.
    fn multiplexed(
        &self,
        servers: &[Installed],
        protocol: Protocol,
        streams: usize,
    ) -> ComparisonRow {
        let FileCase {
            name, connections, ..
        } = *self;
        let word = protocol.name();
        let is_large = self.bytes > SMALL_BYTES_MAX;
        let (kind, per) = match is_large {
            true => ("large", Per::Megabyte),
            false => ("file", Per::Request),
        };
        let (end, many) = match streams {
            1 => (String::new(), String::new()),
            _ => (
                format!(".m{streams}"),
                format!(", {streams} at once on each"),
            ),
        };
        let title = format!("file of {name}, HTTP/{} over TLS{many}", &word[1..]);
        let id = format!("{kind}.{word}.tls.keep.{name}.c{connections}{end}");
        let mut row = ComparisonRow::new(id, title, RowGroup::Multiplexed, connections);
        row.short = format!("{word} {name}, c={connections} m={streams}");
        row.scope = match (protocol, name, connections, streams) {
            (Protocol::H2, "0k", 10, 10) => Scope::Quick,
            (Protocol::H2, "0k" | "64k", ..) | (Protocol::H3, "1k", 10, 10) => Scope::Usual,
            _ => Scope::Full,
        };
        row.is_secure = true;
        row.protocol = protocol;
        row.streams = streams;
        row.per = per;
        row.entrants = self.speakers(servers, protocol);
        if streams == 1 {
            row.beside([
                format!("B.{word}.tls.{name}.c{connections}"),
                format!("B.large.{word}.{name}.c{connections}"),
            ]);
        }
        row
    }

    /// The same with a connection for each request: what a handshake costs there.
    fn per_connection(&self, servers: &[Installed], protocol: Protocol) -> ComparisonRow {
        let mut row = self.multiplexed(servers, protocol, 1);
        row.id = row.id.replacen(".keep.", ".close.", 1);
        let how = "over TLS, one connection per request";
        row.title = row.title.replacen("over TLS", how, 1);
        row.short.push_str(", with handshake");
        row.scope = Scope::Full;
        row.reuse = Reuse::PerRequest;
        // Then connections were kept.
        row.then.clear();
        row
    }

    /// Those that speak a protocol.
    fn speakers(&self, servers: &[Installed], protocol: Protocol) -> Vec<Entrant> {
        if protocol != Protocol::H3 {
            return self.everybody(servers);
        }
        let speaks = |server: &&Installed| {
            matches!(server.kind, ServerSoftware::Hob | ServerSoftware::Caddy)
        };
        let some: Vec<Installed> = servers.iter().filter(speaks).cloned().collect();
        let mut entrants = self.everybody(&some);
        for (entrant, server) in entrants.iter_mut().zip(&some) {
            if server.kind == ServerSoftware::Hob {
                entrant.extra = Extra::Http3;
            }
        }
        entrants
    }

    /// Every server with this file.
    fn everybody(&self, servers: &[Installed]) -> Vec<Entrant> {
        let entrant = |server: &Installed| Entrant {
            label: server.name.clone(),
            server: server.name.clone(),
            extra: Extra::None,
            path: format!("/{}", file_name(self.name, self.bytes)),
            bytes: self.bytes,
        };
        servers.iter().map(entrant).collect()
    }
}

fn carrier(is_secure: bool) -> &'static str {
    if is_secure { "tls" } else { "clear" }
}

fn carrier_text(is_secure: bool) -> &'static str {
    if is_secure {
        "HTTP/1.1 over TLS"
    } else {
        "HTTP/1.1 in clear text"
    }
}
