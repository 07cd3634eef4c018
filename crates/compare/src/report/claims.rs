//! What the old documents claim, each claim once: their ratio, ours, and in one sentence why the
//! two differ. Hardware is never compared: both are ratios on one machine, of its time.

use hob_load::history::figures_of;
use hob_load::page::three_digits;
use schemars::JsonSchema;
use serde::Serialize;

use super::ComparisonReport;
use super::era;
use crate::interval::Estimate;
use crate::rows::Scope;

/// What stands above them.
pub(super) const TITLE: &str = "what the documents claim, and here";
/// What they are.
pub(super) const UNIT: &str =
    "each claim once, as a ratio on one machine of its time; CPU time here";

/// A claim of an old document, and what is so here.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ClaimResult {
    /// The document's key.
    pub(super) document: char,
    /// What it claims.
    pub(super) claim: &'static str,
    /// The figures it rests on, by their ids; empty where it has none.
    pub(super) figures: Vec<String>,
    /// The ratio of those, or what was printed.
    pub(super) then: String,
    /// The same ratio here; null where it was not measured.
    pub(super) now: Option<Estimate>,
    /// Why there is none.
    pub(super) not_measured: Option<String>,
    /// Why the two differ.
    pub(super) why: &'static str,
}

impl ClaimResult {
    /// Ours for people.
    pub(super) fn here(&self) -> String {
        match (&self.now, &self.not_measured) {
            (Some(now), _) => format!("{} x {}", three_digits(now.median), now.spread()),
            (None, why) => format!("not measured: {}", why.as_deref().unwrap_or_default()),
        }
    }
}

/// A claim as the documents make it.
pub(super) struct Claim {
    claim: &'static str,
    said: Said,
    here: Here,
    why: &'static str,
}

/// What a claim rests on.
enum Said {
    /// The quotient of two figures: id and server of each, the better one first.
    Quotient([(&'static str, &'static str); 2]),
    /// All that is printed under these ids.
    Printed(&'static [&'static str]),
    /// What the document that the letter means says without a figure of its own.
    Text(char, &'static str),
}

/// Where the same is measured here.
enum Here {
    /// Two cells, the dearer one first: the id of a row, and the label there without hob's name.
    Cells([(&'static str, &'static str); 2]),
    /// Nowhere in a comparison: where else, or why not.
    Elsewhere(&'static str),
}

/// All of a full run; none of others, whose rows are a choice.
pub(super) fn all(report: &ComparisonReport) -> Vec<ClaimResult> {
    match report.scope {
        Scope::Full => CLAIMS.iter().map(|claim| claim.of(report)).collect(),
        Scope::Quick | Scope::Usual => vec![],
    }
}

impl Claim {
    fn of(&self, report: &ComparisonReport) -> ClaimResult {
        let now = match &self.here {
            Here::Cells(cells) => {
                let cells = cells.map(|(id, way)| (id.to_owned(), way));
                era::here(report, &cells)
            }
            Here::Elsewhere(why) => Err((*why).to_owned()),
        };
        ClaimResult {
            document: self.document(),
            claim: self.claim,
            figures: self.ids().into_iter().map(str::to_owned).collect(),
            then: self.then(),
            now: now.as_ref().ok().copied(),
            not_measured: now.err(),
            why: self.why,
        }
    }

    fn document(&self) -> char {
        let first = self.ids().first().and_then(|id| id.chars().next());
        match (&self.said, first) {
            (Said::Text(document, _), _) => *document,
            (_, first) => first.unwrap_or_default(),
        }
    }

    /// The ids of its figures.
    pub(super) fn ids(&self) -> Vec<&'static str> {
        let mut ids: Vec<&str> = match &self.said {
            Said::Quotient(both) => both.iter().map(|(id, _)| *id).collect(),
            Said::Printed(ids) => ids.to_vec(),
            Said::Text(..) => vec![],
        };
        ids.dedup();
        ids
    }

    /// Where the same is measured here.
    pub(super) fn cells(&self) -> Vec<(&'static str, &'static str)> {
        match &self.here {
            Here::Cells(cells) => cells.to_vec(),
            Here::Elsewhere(_) => vec![],
        }
    }

    fn then(&self) -> String {
        let printed = |id: &&'static str| {
            let all: Vec<String> = figures_of(id)
                .map(|then| match then.condition.as_str() {
                    "" => format!("{} {}", then.figure, then.unit),
                    condition => format!("{} {} ({condition})", then.figure, then.unit),
                })
                .collect();
            all.join(", ")
        };
        match &self.said {
            Said::Quotient(both) => {
                let ratio = quotient(both).map_or("-".to_owned(), three_digits);
                format!("{ratio} x")
            }
            Said::Printed(ids) => ids.iter().map(printed).collect::<Vec<_>>().join(", "),
            Said::Text(_, text) => (*text).to_owned(),
        }
    }
}

/// What the first does in times of the second.
fn quotient(both: &[(&str, &str); 2]) -> Option<f64> {
    let [better, worse] = both.map(|(id, server)| {
        let mut figures = figures_of(id);
        figures.find(|then| then.server == server)
    });
    Some(better?.figure / worse?.figure)
}

/// Every claim, in the order of the documents.
pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        claim: "the cache of files doubles the rate of an empty file",
        said: Said::Printed(&["A.gain.cache.0k.text"]),
        here: Here::Cells([
            ("file.h1.clear.uncached.0k.c10", ", cache off"),
            ("file.h1.clear.close.0k.c10", ""),
        ]),
        why: "a miss of 1998 went through the file system to a disk's driver, here it is one \
              more walk of a path in the kernel's memory, and the connection of each request \
              costs both the same",
    },
    Claim {
        claim: "a large cached file gains less than an empty one",
        said: Said::Quotient([
            ("A.file.cache.64k.c10", "WASD 5.2"),
            ("A.file.nocache.64k.c10", "WASD 5.2"),
        ]),
        here: Here::Cells([
            ("file.h1.clear.uncached.64k.c10", ", cache off"),
            ("file.h1.clear.close.64k.c10", ""),
        ]),
        why: "what grows with the size is sending, in both eras; without its cache hob has the \
              kernel send from the page cache, so that even the bytes are not copied once more",
    },
    Claim {
        claim: "ten connections do more than one: the set-up of connections overlaps",
        said: Said::Quotient([
            ("A.file.cache.0k.c10", "WASD 5.2"),
            ("A.file.cache.0k.c1", "WASD 5.2"),
        ]),
        here: Here::Cells([
            ("file.h1.clear.close.0k.c1", ""),
            ("file.h1.clear.close.0k.c10", ""),
        ]),
        why: "theirs is a rate, in which waiting counts; ours is CPU time, which ten connections \
              save only as far as one wake-up takes the work of several",
    },
    Claim {
        claim: "large files lose nothing between one and ten connections",
        said: Said::Quotient([
            ("A.large.nocache.2406400.c10", "WASD 5.2"),
            ("A.large.nocache.2406400.c1", "WASD 5.2"),
        ]),
        here: Here::Cells([
            ("large.h1.clear.close.2406400.c1", ""),
            ("large.h1.clear.close.2406400.c10", ""),
        ]),
        why: "in both eras the bytes decide, which are as many for each connection; client and \
              server were on one host then and are now",
    },
    Claim {
        claim: "a program that stays (CGIplus) answers two to three times as often as CGI",
        said: Said::Printed(&["A.gain.cgiplus.all.text"]),
        here: Here::Cells([
            ("script.c.clear.close.0k.c10", "cgi"),
            ("script.c.clear.close.0k.c10", "resident, shm"),
        ]),
        why: "VMS kept the process of a CGI script and only started its image anew, while here \
              CGI is a new process each time, and the mailbox between server and program is \
              shared memory",
    },
    Claim {
        claim: "programs, too, answer more often with ten connections than with one",
        said: Said::Quotient([
            ("A.script.cgi.0k.c10", "WASD 5.2"),
            ("A.script.cgi.0k.c1", "WASD 5.2"),
        ]),
        here: Here::Cells([
            ("script.c.clear.close.0k.c1", "cgi"),
            ("script.c.clear.close.0k.c10", "cgi"),
        ]),
        why: "while one process of theirs began another one worked, which a rate shows; a process \
              takes the same CPU time here, whoever else is served meanwhile",
    },
    Claim {
        claim: "links to programs on another machine that are reused gain some 200 %",
        said: Said::Printed(&["A.gain.remote-kept.all.text"]),
        here: Here::Cells([
            ("remote.c.loopback.0k.c10", "cgi, a connection each"),
            ("remote.c.loopback.0k.c10", "cgi, kept"),
        ]),
        why: "a DECnet link started, logged and purged a network process at the other end, while \
              here a connection costs a handshake of TLS and the program is started either way",
    },
    Claim {
        claim: "programs on another machine stay below those at home, reused links or not",
        said: Said::Quotient([
            ("A.script.cgi.0k.c10", "WASD 5.2"),
            ("A.remote.kept.0k.c10", "WASD 5.2"),
        ]),
        here: Here::Cells([
            ("remote.c.loopback.0k.c10", "cgi, kept"),
            ("remote.c.loopback.0k.c10", "cgi, at home"),
        ]),
        why: "ours is the CPU time of both machines together, with TLS between them; theirs is a \
              rate, of a server beside which the other machine's work did not count",
    },
    Claim {
        claim: "looking up names of clients takes most of the time of a short answer",
        said: Said::Quotient([
            ("A.log.names.0k.c1", "WASD 4.5, names not looked up"),
            ("A.log.names.0k.c1", "WASD 4.5, names looked up"),
        ]),
        here: Here::Cells([
            ("cost.log.clear.keep.0k.c10", "that with names of clients"),
            ("cost.log.clear.keep.0k.c10", "log in a format of one's own"),
        ]),
        why: "the request of 1998 waited for its name server, while hob asks beside the request \
              and remembers the answer, for the log alone",
    },
    Claim {
        claim: "30 requests at once from 6 systems are served evenly",
        said: Said::Printed(&["A.tried.at-once.all.text", "A.tried.clients.all.text"]),
        here: Here::Elsewhere(
            "no ratio: the row flow.h1.clear.keep.2406400.c30 tells how even the flow is",
        ),
        why: "the document prints no figure of it, so there is nothing to set ours beside",
    },
    Claim {
        claim: "TLS is expected to cost clearly more, above all with several connections",
        said: Said::Text('A', "no figure"),
        here: Here::Cells([
            ("file.h1.tls.close.0k.c10", ""),
            ("file.h1.clear.close.0k.c10", ""),
        ]),
        why: "the document's load generator had no TLS; ours has a full handshake for each \
              request, which is nearly all of the difference",
    },
    Claim {
        claim: "files in records whose line ends the server adds cost far more than streams",
        said: Said::Text('A', "no figure"),
        here: Here::Elsewhere("files of Linux have no records: there is nothing to convert"),
        why: "what VMS did for each request is done here by nobody",
    },
    Claim {
        claim: "an empty file costs Apache 17 times as much as WASD, ten connections",
        said: Said::Quotient([
            ("B.h1.clear.0k.c10", "WASD 11.5"),
            ("B.h1.clear.0k.c10", "VMS Apache"),
        ]),
        here: Here::Cells([
            ("file.h1.clear.keep.0k.c10", "apache"),
            ("file.h1.clear.keep.0k.c10", ""),
        ]),
        why: "Apache was made for processes of Unix, which are dear on VMS; here it is at home, \
              so the two differ by what each does for a request",
    },
    Claim {
        claim: "a program that stays answers twelve times as often as CGI, ten connections",
        said: Said::Quotient([
            ("B.script.all.0k.c10", "WASD CGIplus"),
            ("B.script.all.0k.c10", "WASD CGI"),
        ]),
        here: Here::Cells([
            ("script.c.clear.keep.0k.c10", "cgi"),
            ("script.c.clear.keep.0k.c10", "resident, shm"),
        ]),
        why: "a process is made for each request of CGI in both, but a request to a program that \
              stays has become two wake-ups and some bytes of shared memory",
    },
    Claim {
        claim: "with 64 kB and one connection a module of Apache does more than CGIplus",
        said: Said::Quotient([
            ("B.script.all.64k.c1", "Apache module"),
            ("B.script.all.64k.c1", "WASD CGIplus"),
        ]),
        here: Here::Cells([
            ("script.c.clear.keep.64k.c1", "resident, shm"),
            ("script.c.clear.keep.64k.c1", "apache module"),
        ]),
        why: "the body went into a mailbox and out of it again, while shared memory is read by \
              the server where the program wrote it",
    },
    Claim {
        claim: "a short answer over TLS, connections kept",
        said: Said::Quotient([
            ("B.h1.clear.0k.c1", "WASD 11.5"),
            ("B.h1.tls.0k.c1", "WASD 11.5"),
        ]),
        here: Here::Cells([
            ("file.h1.tls.keep.0k.c1", ""),
            ("file.h1.clear.keep.0k.c1", ""),
        ]),
        why: "the cipher was computed without instructions for it, and is now by the CPU's own; \
              what is left is a record and its copy for each answer",
    },
    Claim {
        claim: "with 64 kB over TLS and one connection Apache does more than WASD",
        said: Said::Quotient([
            ("B.h1.tls.64k.c1", "VMS Apache"),
            ("B.h1.tls.64k.c1", "WASD 11.5"),
        ]),
        here: Here::Cells([
            ("file.h1.tls.keep.64k.c1", ""),
            ("file.h1.tls.keep.64k.c1", "apache"),
        ]),
        why: "both used one library for the cipher, and what was around it decided; hob and \
              Apache here have different ones",
    },
    Claim {
        claim: "a large file over TLS: Apache does more than WASD",
        said: Said::Quotient([
            ("B.large.tls.4115968.c1", "VMS Apache"),
            ("B.large.tls.4115968.c1", "WASD 11.5"),
        ]),
        here: Here::Cells([
            ("large.h1.tls.keep.4115968.c1", ""),
            ("large.h1.tls.keep.4115968.c1", "apache"),
        ]),
        why: "a CPU of 1996 spent nearly all of it in the cipher; where the CPU has instructions \
              for that, copies and calls of the kernel weigh as much",
    },
    Claim {
        claim: "HTTP/2 does less than HTTP/1.1 over TLS, a request at once",
        said: Said::Quotient([
            ("B.h2.tls.0k.c1", "WASD 11.5"),
            ("B.h1.tls.0k.c1", "WASD 11.5"),
        ]),
        here: Here::Cells([
            ("file.h1.tls.keep.0k.c1", ""),
            ("file.h2.tls.keep.0k.c1", ""),
        ]),
        why: "frames and compressed heads are work that one request at once does not pay back, \
              in both; rows with ten at once show what they are for",
    },
    Claim {
        claim: "1000 MB through shared memory are 1.7 times as fast as through a mailbox",
        said: Said::Quotient([
            ("C.stream.host.1000m.c1", "WASD, memory buffer"),
            ("C.stream.host.1000m.c1", "WASD, mailbox"),
        ]),
        here: Here::Cells([
            ("stream.c.clear.keep.1000m.c1", "resident, stream"),
            ("stream.c.clear.keep.1000m.c1", "resident, shm"),
        ]),
        why: "a mailbox took records of at most 64 kB, each with a wake-up; a socket here \
              carries as much and more per call, so that what shared memory saves is the copy",
    },
    Claim {
        claim: "1000 MB: the memory buffer is twice as fast as a module of Apache",
        said: Said::Quotient([
            ("C.stream.host.1000m.c1", "WASD, memory buffer"),
            ("C.stream.host.1000m.c1", "Apache module"),
        ]),
        here: Here::Cells([
            ("stream.c.clear.keep.1000m.c1", "apache module"),
            ("stream.c.clear.keep.1000m.c1", "resident, shm"),
        ]),
        why: "a module writes to the network from the server's own process, with nothing to hand \
              over: on Linux, where Apache is at home, that is less work than any hand-over",
    },
    Claim {
        claim: "1000 MB from CGI: WASD is 2.6 times as fast as Apache",
        said: Said::Quotient([
            ("C.stream.lan.1000m.c1", "WASD, mailbox"),
            ("C.stream.lan.1000m.c1", "Apache CGI"),
        ]),
        here: Here::Cells([
            ("stream.c.clear.keep.1000m.c1", "apache cgi"),
            ("stream.c.clear.keep.1000m.c1", "cgi"),
        ]),
        why: "Apache's CGI was wrapped in a command procedure there; here both read a pipe, and \
              differ by whether they copy what comes out of it",
    },
    Claim {
        claim: "1000 MB through the memory buffer reach three quarters of the LAN",
        said: Said::Text('C', "76 MB/s of 1 Gb/s"),
        here: Here::Elsewhere(
            "the loopback has no bandwidth to fill: with `--link 1Gbit,0.2ms` the rows of large files \
             say what share of it bodies take",
        ),
        why: "what a network carries is a limit of hardware, which neither figure is about",
    },
    Claim {
        claim: "an exec makes a process 2.4 times as dear",
        said: Said::Quotient([
            ("D.exchange.fork-exec.1000", "fork and exec"),
            ("D.exchange.fork.1000", "fork"),
        ]),
        here: Here::Elsewhere("without a server: `hob cost` makes the same test"),
        why: "a fork copies tables and an exec makes new ones, in both; which is dearer depends \
              on how large the parent is and how the program is linked",
    },
    Claim {
        claim: "diagnostics that are on cost less than 2 %, once logging is taken out",
        said: Said::Printed(&["D.diagnostics.verbose.542"]),
        here: Here::Cells([
            ("cost.diagnostics.clear.keep.0k.c10", "HOB_LOG=debug"),
            ("cost.diagnostics.clear.keep.0k.c10", "HOB_LOG=warn"),
        ]),
        why: "theirs was 2 % of 202 ms, in which much is lost; ours is of a few microseconds, \
              and hob has no word for a request that goes well",
    },
    Claim {
        claim: "a cached page costs 0.6 of one that is not",
        said: Said::Quotient([
            ("E.capacity.plain.1k", "static page, cached"),
            ("E.capacity.plain.1k", "static page, not cached"),
        ]),
        here: Here::Cells([
            ("ways.clear.close.1k.c1", "file, not cached"),
            ("ways.clear.close.1k.c1", "file, cached"),
        ]),
        why: "a page that was not cached was read from the file system, here from a path and \
              bytes that the kernel remembers; the text has 50 %, the table 58 %",
    },
    Claim {
        claim: "a static cache adds about half to the capacity",
        said: Said::Printed(&["E.cache.gain.text"]),
        here: Here::Cells([
            ("file.h1.clear.uncached.1k.c10", ", cache off"),
            ("file.h1.clear.close.1k.c10", ""),
        ]),
        why: "this is the same gain with ten connections, of which a wake-up serves several: \
              less of a request is left that both ways share",
    },
    Claim {
        claim: "persistent CGI is for keeping state and no faster than CGI",
        said: Said::Quotient([
            ("E.capacity.plain.1k", "persistent CGI"),
            ("E.capacity.plain.1k", "CGI (HTML)"),
        ]),
        here: Here::Cells([
            ("ways.clear.close.1k.c1", "CGI"),
            ("ways.clear.close.1k.c1", "session (persistent CGI)"),
        ]),
        why: "CGI in a named activation group stayed loaded on the AS/400, so both were the same \
              work; here CGI is a new process, and a program for one visitor is none",
    },
    Claim {
        claim: "a servlet costs about what CGI does",
        said: Said::Quotient([
            ("E.capacity.plain.1k", "servlet"),
            ("E.capacity.plain.1k", "CGI (HTML)"),
        ]),
        here: Here::Cells([
            ("ways.clear.close.1k.c1", "CGI"),
            ("ways.clear.close.1k.c1", "resident"),
        ]),
        why: "both stayed in memory there, the servlet in an early Java machine; what stays here \
              is a program in C, and CGI is started each time",
    },
    Claim {
        claim: "a macro page costs eight times as much as a cached file",
        said: Said::Quotient([
            ("E.capacity.plain.1k", "static page, cached"),
            ("E.capacity.plain.1k", "Net.Data (HTML)"),
        ]),
        here: Here::Cells([
            ("ways.clear.close.1k.c1", "macro page"),
            ("ways.clear.close.1k.c1", "file, cached"),
        ]),
        why: "Net.Data interpreted its macro in a CGI program at each request, while hob keeps \
              it as a plan in the server",
    },
    Claim {
        claim: "a macro page with SQL costs three times as much as a compiled program with it",
        said: Said::Quotient([
            ("E.capacity.plain.1k", "CGI (SQL)"),
            ("E.capacity.plain.1k", "Net.Data (SQL)"),
        ]),
        here: Here::Cells([
            ("ways.clear.close.1k.c1", "macro page, SQL"),
            ("ways.clear.close.1k.c1", "CGI, SQL"),
        ]),
        why: "the statement of their compiled program was prepared and its process stayed; here \
              it is the page whose statement stays prepared, and CGI opens the database each \
              time",
    },
    Claim {
        claim: "TLS at least doubles what a simple page costs, by the table three times",
        said: Said::Printed(&["E.tls.simple.text", "E.secure.static-cached.1k"]),
        here: Here::Cells([
            ("ways.tls.close.1k.c1", "file, cached"),
            ("ways.clear.close.1k.c1", "file, cached"),
        ]),
        why: "theirs was RC4 with 40 bits; ours is a full handshake of today for each request, \
              beside a file that costs next to nothing",
    },
    Claim {
        claim: "TLS adds 15 to 40 % to CGI and macro pages, by the table 20 to 80 %",
        said: Said::Printed(&["E.tls.cgi-netdata.text", "E.secure.cgi-html.1k"]),
        here: Here::Cells([
            ("ways.tls.close.1k.c1", "CGI"),
            ("ways.clear.close.1k.c1", "CGI"),
        ]),
        why: "what TLS adds depends on what it is added to: a process that is made costs about \
              as much as a handshake here",
    },
    Claim {
        claim: "a named activation group does up to six times as much as a new one",
        said: Said::Printed(&["E.activation.cgi.1k"]),
        here: Here::Cells([
            ("ways.clear.close.1k.c1", "CGI"),
            ("ways.clear.close.1k.c1", "resident"),
        ]),
        why: "a new group loads the program at each request, as CGI does here; a named one keeps \
              it, which here a resident program is for, so the two ways have other names",
    },
    Claim {
        claim: "a release does up to 65 or 70 % more than the one before",
        said: Said::Printed(&["E.release.v4r4.best", "E.release.v4r3.best"]),
        here: Here::Elsewhere(
            "`hob compare --releases FILE --rival OLD` keeps such a table of hob",
        ),
        why: "a first release has no other before it; theirs gained where the one before was \
              slow",
    },
    Claim {
        claim: "...of which pages that are not cached up to 7 and 20 %, cached ones up to 20 and 65 %",
        said: Said::Printed(&[
            "E.release.v4r4.static-not-cached",
            "E.release.v4r4.static-cached",
            "E.release.v4r4.cgi-netdata",
            "E.release.v4r3.static-not-cached",
            "E.release.v4r3.static-cached",
        ]),
        here: Here::Elsewhere("as above, by class of work"),
        why: "their classes are kinds of a transaction, ours are those and HTTP/2, TLS and long \
              bodies",
    },
    Claim {
        claim: "5 threads for small systems, 10 or more for large ones, CPW/20 at most",
        said: Said::Printed(&[
            "E.threads.small.text",
            "E.threads.large.text",
            "E.threads.maximum.text",
        ]),
        here: Here::Cells([
            ("cost.threads.clear.keep.0k.c10", "16 threads"),
            ("cost.threads.clear.keep.0k.c10", "1 thread"),
        ]),
        why: "a thread there waited for its request's disk and program, so more of them did \
              more; a thread of hob waits for nothing, and more than there are CPUs only take \
              turns",
    },
    Claim {
        claim: "an adapter carries 70, 100 to 130 or 250 hits/s, below 60 % use of its processor",
        said: Said::Printed(&[
            "E.adapter.2617-2619.1k",
            "E.adapter.later.1k",
            "E.adapter.100mbit.1k",
            "E.adapter.use.all",
        ]),
        here: Here::Elsewhere(
            "a limit of hardware, and the loopback has no adapter; `--link` shows what share of a \
             network's bandwidth bodies take",
        ),
        why: "their adapters handled each frame with a processor of their own, which was full \
              before the CPU was",
    },
    Claim {
        claim: "slower file systems (QDLS, QSYS) serve two to five times less",
        said: Said::Printed(&["E.files.slow.least", "E.files.slow.most"]),
        here: Here::Cells([
            ("store.h1.clear.uncached.16k.c10", ", fuse"),
            ("store.h1.clear.uncached.16k.c10", ", tmpfs"),
        ]),
        why: "those were libraries with other names and rules beneath one interface; a file \
              system of FUSE is asked for a path by way of a process, and its bytes are in the \
              kernel's memory as those of any other",
    },
    Claim {
        claim: "larger frames, MTU and TCP buffers carry large bodies better",
        said: Said::Printed(&[
            "E.network.frame.token-ring",
            "E.network.mtu.all",
            "E.network.buffer.tcp",
        ]),
        here: Here::Elsewhere("`hob compare --sweep` changes the buffers of connections"),
        why: "the kernel of today finds the sizes itself: what was a setting is a default",
    },
    Claim {
        claim: "a web transaction takes a dozen or more flows over the line",
        said: Said::Printed(&["E.network.flows.transaction"]),
        here: Here::Elsewhere("packets are not counted here"),
        why: "their count has the opening and closing of a connection for each transaction, \
              which kept connections share among many",
    },
    Claim {
        claim: "460 CPW are 202 CGI hits/s, a quarter of it 50; 175 hits/s need 398 CPW",
        said: Said::Printed(&[
            "E.example.cgi.460-cpw",
            "E.example.cgi.quarter",
            "E.example.cgi.175-hits",
        ]),
        here: Here::Elsewhere("a machine of today has no rating in CPW"),
        why: "capacity is reckoned from CPU time per request here: a second of CPU time divided \
              by it",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_claim_has_figures_that_exist_and_stands_once() {
        let mut texts = vec![];
        for claim in CLAIMS {
            for id in claim.ids() {
                assert!(figures_of(id).next().is_some(), "{id}: {}", claim.claim);
            }
            if let Said::Quotient(both) = &claim.said {
                assert!(quotient(both).is_some(), "{}", claim.claim);
            }
            assert!("ABCDE".contains(claim.document()), "{}", claim.claim);
            // One sentence, without a full stop.
            assert!(
                !claim.why.contains(". ") && !claim.why.ends_with('.'),
                "{}",
                claim.why
            );
            assert!(!texts.contains(&claim.claim), "{}", claim.claim);
            texts.push(claim.claim);
        }
        let documents: String = CLAIMS.iter().map(Claim::document).collect();
        let mut sorted: Vec<char> = documents.chars().collect();
        sorted.sort_unstable();
        assert_eq!(documents, sorted.into_iter().collect::<String>());
    }

    #[test]
    fn then_is_the_quotient_of_two_figures_or_what_was_printed() {
        let then = |start: &str| {
            let claim = CLAIMS.iter().find(|claim| claim.claim.starts_with(start));
            claim.unwrap().then()
        };
        assert_eq!(then("an empty file costs Apache"), "17.1 x");
        assert_eq!(then("persistent CGI is for"), "1.00 x");
        assert_eq!(then("a named activation group"), "6 x (up to about)");
        assert_eq!(then("TLS is expected"), "no figure");
    }
}
