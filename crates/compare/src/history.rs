//! The figures of the old documents that stand beside ours, exactly as printed. One table; a row
//! is found by its id, `DOCUMENT.TABLE.CASE.SIZE.cCONCURRENCY`.
//!
//! Machines, clients and protocols differ from today's: no ratio across the years is ever made of
//! them, only ratios within one document may be set beside ratios of ours.

/// Where figures were published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Document {
    /// The first letter of the ids.
    pub(crate) key: char,
    /// Title and date.
    pub(crate) title: &'static str,
    /// What it was measured on and how, in a line.
    pub(crate) method: &'static str,
}

/// The documents.
pub(crate) const DOCUMENTS: &[Document] = &[
    Document {
        key: 'A',
        title: "WASD Hypertext Services technical overview, Server Performance, 8 Sep 1998",
        method: "WASD 5.2 on an AlphaServer 2100; client on the same host, one connection per request, 200 requests",
    },
    Document {
        key: 'B',
        title: "WASD Features and Facilities, Server Performance, 3 Nov 2021",
        method: "WASD 11.5 and VMS Apache on a DEC PWS 500 (EV56); h2load over a LAN, TLS 1.2, access log off",
    },
    Document {
        key: 'C',
        title: "WASD mailing list, bandwidth of CGI, CGIplus and RTE, 21 Nov 2024",
        method: "WASD and VMS Apache 2.4.54 in VirtualBox on an i7-9700; curl, clear text, one stream of 1000 MB",
    },
    Document {
        key: 'E',
        title: "AS/400 Performance Capabilities Reference V4R4, chapter 6, about 1999",
        method: "IBM HTTP Server on a model 720-2062; about 1 kB per hit, no access log, SSL with 40-bit RC4; hits/s/CPW",
    },
];

/// One printed figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Then {
    /// `A.file.cache.0k.c1`.
    pub(crate) id: &'static str,
    /// The server.
    pub(crate) server: &'static str,
    /// As printed.
    pub(crate) figure: f64,
    /// Of what.
    pub(crate) unit: &'static str,
    /// What is odd about it.
    pub(crate) remark: &'static str,
}

const fn then(id: &'static str, server: &'static str, figure: f64, unit: &'static str) -> Then {
    Then {
        id,
        server,
        figure,
        unit,
        remark: "",
    }
}

const fn odd(
    id: &'static str,
    server: &'static str,
    figure: f64,
    unit: &'static str,
    remark: &'static str,
) -> Then {
    Then {
        id,
        server,
        figure,
        unit,
        remark,
    }
}

const R: &str = "req/s";
const M: &str = "MB/s";
const SLOWER: &str = "fewer requests than at c1, unexplained in the original";

/// Every figure, in the order of the documents.
pub(crate) const THEN: &[Then] = &[
    then("A.file.nocache.0k.c1", "WASD 5.2", 95.0, R),
    then("A.file.nocache.0k.c10", "WASD 5.2", 117.0, R),
    then("A.file.nocache.16k.c1", "WASD 5.2", 66.0, R),
    then("A.file.nocache.16k.c10", "WASD 5.2", 80.0, R),
    then("A.file.nocache.64k.c1", "WASD 5.2", 30.0, R),
    then("A.file.nocache.64k.c10", "WASD 5.2", 39.0, R),
    then("A.file.cache.0k.c1", "WASD 5.2", 210.0, R),
    then("A.file.cache.0k.c10", "WASD 5.2", 244.0, R),
    then("A.file.cache.16k.c1", "WASD 5.2", 107.0, R),
    then("A.file.cache.16k.c10", "WASD 5.2", 125.0, R),
    odd(
        "A.file.cache.64k.c1",
        "WASD 5.2",
        43.0,
        R,
        "200 requests in the printed 4.74 s are 42.2/s",
    ),
    then("A.file.cache.64k.c10", "WASD 5.2", 47.0, R),
    then("A.large.nocache.2406400.c1", "WASD 5.2", 3.8, M),
    then("A.large.nocache.2406400.c10", "WASD 5.2", 4.2, M),
    then("A.large.nocache.6882304.c1", "WASD 5.2", 1.7, M),
    then("A.large.nocache.6882304.c10", "WASD 5.2", 4.0, M),
    then("A.script.cgi.0k.c1", "WASD 5.2", 13.65, R),
    then("A.script.cgi.0k.c10", "WASD 5.2", 23.3, R),
    then("A.script.cgi.16k.c1", "WASD 5.2", 14.6, R),
    then("A.script.cgi.16k.c10", "WASD 5.2", 23.0, R),
    then("A.script.cgiplus.0k.c1", "WASD 5.2", 47.6, R),
    then("A.script.cgiplus.0k.c10", "WASD 5.2", 46.4, R),
    then("A.script.cgiplus.16k.c1", "WASD 5.2", 46.3, R),
    then("A.script.cgiplus.16k.c10", "WASD 5.2", 45.6, R),
    then("B.h1.clear.0k.c1", "WASD 11.5", 352.0, R),
    then("B.h1.clear.0k.c1", "VMS Apache", 71.0, R),
    then("B.h1.clear.64k.c1", "WASD 11.5", 61.0, R),
    then("B.h1.clear.64k.c1", "VMS Apache", 36.0, R),
    then("B.h1.clear.0k.c10", "WASD 11.5", 1146.0, R),
    then("B.h1.clear.0k.c10", "VMS Apache", 67.0, R),
    then("B.h1.clear.64k.c10", "WASD 11.5", 124.0, R),
    then("B.h1.clear.64k.c10", "VMS Apache", 48.0, R),
    then("B.h1.tls.0k.c1", "WASD 11.5", 276.0, R),
    then("B.h1.tls.0k.c1", "VMS Apache", 51.0, R),
    then("B.h1.tls.64k.c1", "WASD 11.5", 21.0, R),
    then("B.h1.tls.64k.c1", "VMS Apache", 25.0, R),
    odd("B.h1.tls.0k.c10", "WASD 11.5", 175.0, R, SLOWER),
    odd("B.h1.tls.0k.c10", "VMS Apache", 46.0, R, SLOWER),
    then("B.h1.tls.64k.c10", "WASD 11.5", 39.0, R),
    then("B.h1.tls.64k.c10", "VMS Apache", 24.0, R),
    then("B.h2.tls.0k.c1", "WASD 11.5", 191.0, R),
    then("B.h2.tls.64k.c1", "WASD 11.5", 20.0, R),
    then("B.h2.tls.0k.c10", "WASD 11.5", 156.0, R),
    then("B.h2.tls.64k.c10", "WASD 11.5", 37.0, R),
    then("B.large.clear.4115968.c1", "WASD 11.5", 6.07, M),
    then("B.large.clear.4115968.c1", "VMS Apache", 4.40, M),
    then("B.large.clear.4115968.c10", "WASD 11.5", 8.85, M),
    then("B.large.clear.4115968.c10", "VMS Apache", 8.70, M),
    then("B.large.tls.4115968.c1", "WASD 11.5", 2.91, M),
    then("B.large.tls.4115968.c1", "VMS Apache", 3.23, M),
    then("B.large.tls.4115968.c10", "WASD 11.5", 2.77, M),
    then("B.large.tls.4115968.c10", "VMS Apache", 2.92, M),
    then("B.large.h2.4115968.c1", "WASD 11.5", 2.77, M),
    then("B.large.h2.4115968.c10", "WASD 11.5", 2.80, M),
    then("B.script.all.0k.c1", "WASD CGI", 27.0, R),
    then("B.script.all.0k.c1", "WASD CGIplus", 193.0, R),
    then("B.script.all.0k.c1", "Apache CGI", 5.0, R),
    then("B.script.all.0k.c1", "Apache module", 52.0, R),
    then("B.script.all.64k.c1", "WASD CGI", 14.0, R),
    then("B.script.all.64k.c1", "WASD CGIplus", 25.0, R),
    then("B.script.all.64k.c1", "Apache CGI", 5.0, R),
    then("B.script.all.64k.c1", "Apache module", 31.0, R),
    then("B.script.all.0k.c10", "WASD CGI", 28.0, R),
    then("B.script.all.0k.c10", "WASD CGIplus", 337.0, R),
    then("B.script.all.0k.c10", "Apache CGI", 4.0, R),
    then("B.script.all.0k.c10", "Apache module", 51.0, R),
    then("B.script.all.64k.c10", "WASD CGI", 16.0, R),
    then("B.script.all.64k.c10", "WASD CGIplus", 65.0, R),
    then("B.script.all.64k.c10", "Apache CGI", 4.0, R),
    then("B.script.all.64k.c10", "Apache module", 37.0, R),
    then("C.stream.host.1000m.c1", "WASD, mailbox", 80.5, M),
    then("C.stream.host.1000m.c1", "WASD, memory buffer", 137.0, M),
    then("C.stream.host.1000m.c1", "Apache module", 62.8, M),
    then("C.stream.lan.1000m.c1", "WASD, mailbox", 45.5, M),
    then("C.stream.lan.1000m.c1", "WASD, memory buffer", 76.0, M),
    then("C.stream.lan.1000m.c1", "Apache CGI", 17.2, M),
    then("C.stream.lan.1000m.c1", "Apache module", 27.2, M),
    then("E.secure.static-cached.1k", "secure:plain CPU", 3.2, "x"),
    then("E.secure.cgi-html.1k", "secure:plain CPU", 1.6, "x"),
    then("E.secure.persistent-cgi.1k", "secure:plain CPU", 1.8, "x"),
    then("A.log.names.0k.c1", "WASD 4.5, names looked up", 32.0, R),
    odd(
        "A.log.names.0k.c1",
        "WASD 4.5, names not looked up",
        210.0,
        R,
        "equals the cached row of 5.2",
    ),
];

/// What is odd about the figures that are told: footnotes, counted from one in the order in which
/// they are first needed.
#[derive(Debug, Default)]
pub(crate) struct Remarks(Vec<&'static str>);

impl Remarks {
    /// The figures under an id in a line, with the marks of their footnotes.
    pub(crate) fn line(&mut self, id: &str) -> String {
        let parts: Vec<String> = figures(id)
            .map(|then| {
                let mark = self.mark(then.remark);
                format!("{} {} {}{mark}", then.server, then.figure, then.unit)
            })
            .collect();
        format!("{} [{id}]", parts.join(", "))
    }

    fn mark(&mut self, remark: &'static str) -> String {
        if remark.is_empty() {
            return String::new();
        }
        let known = self.0.iter().position(|known| *known == remark);
        let index = known.unwrap_or(self.0.len());
        if known.is_none() {
            self.0.push(remark);
        }
        format!(" ({})", index + 1)
    }

    /// The remarks with their marks.
    pub(crate) fn footnotes(&self) -> impl Iterator<Item = String> {
        let all = self.0.iter().enumerate();
        all.map(|(index, remark)| format!("({}) {remark}", index + 1))
    }
}

/// What was printed under this id.
pub(crate) fn figures(id: &str) -> impl Iterator<Item = &'static Then> {
    THEN.iter().filter(move |then| then.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_of_a_known_document() {
        for then in THEN {
            let key = then.id.chars().next().unwrap();
            assert!(
                DOCUMENTS.iter().any(|document| document.key == key),
                "{}",
                then.id
            );
            assert!(
                then.figure > 0.0 && then.id.split('.').count() >= 4,
                "{}",
                then.id
            );
        }
    }

    #[test]
    fn odd_figures_have_a_footnote_and_the_same_one_where_the_same_is_odd() {
        let mut remarks = Remarks::default();
        assert_eq!(
            remarks.line("A.file.cache.0k.c1"),
            "WASD 5.2 210 req/s [A.file.cache.0k.c1]"
        );
        assert_eq!(remarks.footnotes().count(), 0);
        assert_eq!(
            remarks.line("A.file.cache.64k.c1"),
            "WASD 5.2 43 req/s (1) [A.file.cache.64k.c1]"
        );
        assert_eq!(
            remarks.line("B.h1.tls.0k.c10"),
            "WASD 11.5 175 req/s (2), VMS Apache 46 req/s (2) [B.h1.tls.0k.c10]"
        );
        let footnotes: Vec<String> = remarks.footnotes().collect();
        assert_eq!(
            footnotes,
            [
                "(1) 200 requests in the printed 4.74 s are 42.2/s".to_owned(),
                format!("(2) {SLOWER}"),
            ]
        );
    }
}
