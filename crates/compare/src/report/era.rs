//! Ratios inside each era: what one way of working was worth to another one in an old document,
//! and what it is worth here, each measured on one machine. Only such ratios compare.

use hob_load::history::figures_of;
use schemars::JsonSchema;
use serde::Serialize;

use super::ComparisonReport;
use crate::interval::Estimate;
use crate::limits::DOUBT_PERCENT;
use crate::measure::EntrantResult;

/// What stands above them.
pub(super) const TITLE: &str = "ratios then and here";
/// What they are.
pub(super) const UNIT: &str = "how many times as much the first does as the second; each measured on one machine, of its time";

/// How many times as much the first way does for the same CPU time as the second one, or for the
/// same time where the document printed rates.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct EraRatio {
    /// What is beside what.
    pub(crate) title: String,
    /// The figures then, by their ids and servers.
    pub(crate) figures: Vec<String>,
    /// The ratio of those.
    pub(crate) then: f64,
    /// The ratio of CPU times here.
    pub(crate) now: Estimate,
}

impl EraRatio {
    /// The document's key.
    pub(super) fn key(&self) -> &str {
        self.figures
            .first()
            .and_then(|id| id.get(..1))
            .unwrap_or_default()
    }
}

/// Two figures of a document, or one that it printed as a ratio; and two cells of ours, the dearer
/// one first: the id of a row, and a label without the server's name.
struct Pair {
    title: String,
    then: Vec<(String, &'static str)>,
    now: [(String, &'static str); 2],
}

/// All whose rows were measured.
pub(crate) fn ratios(report: &ComparisonReport) -> Vec<EraRatio> {
    pairs().iter().filter_map(|pair| pair.of(report)).collect()
}

impl Pair {
    fn of(&self, report: &ComparisonReport) -> Option<EraRatio> {
        let now = here(report, &self.now).ok()?;
        Some(EraRatio {
            title: self.title.clone(),
            figures: self
                .then
                .iter()
                .map(|(id, of)| format!("{id}: {of}"))
                .collect(),
            then: self.printed()?,
            now,
        })
    }

    /// What the document's own figures say.
    fn printed(&self) -> Option<f64> {
        let figure = |(id, server): &(String, &str)| {
            let then = figures_of(id).find(|then| then.server == *server)?;
            Some(then.figure)
        };
        match &self.then[..] {
            [ratio] => figure(ratio),
            [better, worse] => Some(figure(better)? / figure(worse)?),
            _ => None,
        }
    }
}

/// How many times as much the second of two cells does as the first, for the same CPU time; or why
/// that cannot be told.
pub(super) fn here(
    report: &ComparisonReport,
    [dear, cheap]: &[(String, &str); 2],
) -> Result<Estimate, String> {
    let known = |(id, way): &(String, &str)| {
        let found = cell(report, id, way);
        let found =
            found.ok_or_else(|| format!("these rows have no \"{}\" in {id}", called(way)))?;
        match (found.doubt(), found.cpu()) {
            (None, Some(cpu)) => Ok((found, cpu)),
            (None, None) => Err(format!("\"{}\" in {id} was not measured", called(way))),
            (Some(_), _) => Err(format!("\"{}\" in {id} is doubtful", called(way))),
        }
    };
    let is_one_row = dear.0 == cheap.0;
    let (dear, cheap) = (known(dear)?, known(cheap)?);
    let ratio = match is_one_row {
        true => dear.0.ratio_to(cheap.0),
        false => Estimate::quotient(&dear.1, &cheap.1),
    };
    let ratio = ratio.ok_or("nothing can be divided by it")?;
    match ratio.percent().filter(|percent| *percent > DOUBT_PERCENT) {
        Some(_) => Err(format!("the machine was busy, {}", ratio.spread())),
        None => Ok(ratio),
    }
}

fn called(way: &str) -> &str {
    match way.trim_start_matches([',', ' ']) {
        "" => "hob",
        way => way,
    }
}

/// The cell of hob in this row that works in this way, or of another server with this label.
fn cell<'a>(report: &'a ComparisonReport, id: &str, way: &str) -> Option<&'a EntrantResult> {
    let row = report.rows.iter().find(|row| row.row.id == id)?;
    let name = &report.servers.first()?.name;
    let (apart, joined) = (format!("{name} {way}"), format!("{name}{way}"));
    let is_way = |cell: &&EntrantResult| {
        let is_own = cell.entrant.server == *name;
        let own = [way, apart.trim(), &joined];
        is_own && own.contains(&cell.entrant.label.as_str())
    };
    let other = || row.cells.iter().find(|cell| cell.entrant.label == way);
    row.cells.iter().find(is_way).or_else(other)
}

/// The ids of the figures that stand in ratios.
#[cfg(test)]
pub(super) fn ids() -> impl Iterator<Item = String> {
    let all = pairs().into_iter().flat_map(|pair| pair.then);
    all.map(|(id, _)| id)
}

/// Everything that the documents say two figures of, in their order.
fn pairs() -> Vec<Pair> {
    let mut all = vec![];
    all.extend(of_1998());
    all.extend(of_2021());
    all.extend(of_2024());
    all.extend(of_the_as400());
    all
}

fn pair(
    title: impl Into<String>,
    then: impl IntoIterator<Item = (String, &'static str)>,
    now: [(String, &'static str); 2],
) -> Pair {
    Pair {
        title: title.into(),
        then: then.into_iter().collect(),
        now,
    }
}

/// The ends of ids: each size, with one connection and with ten.
fn cases(sizes: &'static [u64]) -> impl Iterator<Item = String> {
    let each = |kib| [1, 10].map(|connections| format!("{kib}k.c{connections}"));
    sizes.iter().flat_map(each)
}

/// The document A.
fn of_1998() -> impl Iterator<Item = Pair> {
    const WASD: &str = "WASD 5.2";
    let cached = cases(&[0, 16, 64]).map(|case| {
        let then = ["cache", "nocache"].map(|way| (format!("A.file.{way}.{case}"), WASD));
        let now = ["uncached", "close"].map(|way| (format!("file.h1.clear.{way}.{case}"), ""));
        pair(format!("file, cached to not cached, {case}"), then, now)
    });
    let staying = cases(&[0, 16]).map(|case| {
        let then = ["cgiplus", "cgi"].map(|way| (format!("A.script.{way}.{case}"), WASD));
        staying(&case, "close", then)
    });
    let kept = cases(&[0, 16]).map(|case| {
        let then = ["kept", "once"].map(|way| (format!("A.remote.{way}.{case}"), WASD));
        let now = ["cgi, a connection each", "cgi, kept"];
        let now = now.map(|way| (format!("remote.c.loopback.{case}"), way));
        let title = format!("other machine, connection kept to new, {case}");
        pair(title, then, now)
    });
    cached.chain(staying).chain(kept)
}

/// Connections are kept, or not, as they were then.
fn staying(case: &str, kept: &str, then: [(String, &'static str); 2]) -> Pair {
    let row = format!("script.c.clear.{kept}.{case}");
    let now = ["cgi", "resident, shm"].map(|way| (row.clone(), way));
    pair(format!("program that stays to CGI, {case}"), then, now)
}

/// The document B.
fn of_2021() -> impl Iterator<Item = Pair> {
    const WASD: &str = "WASD 11.5";
    let programs = cases(&[0, 64]).map(|case| {
        let then = ["WASD CGIplus", "WASD CGI"];
        staying(
            &case,
            "keep",
            then.map(|server| (format!("B.script.all.{case}"), server)),
        )
    });
    let multiplexed = cases(&[0, 64]).map(|case| {
        let then = ["h2.tls", "h1.tls"].map(|way| (format!("B.{way}.{case}"), WASD));
        let now = ["h1", "h2"].map(|way| (format!("file.{way}.tls.keep.{case}"), ""));
        pair(format!("HTTP/2 to HTTP/1.1, over TLS, {case}"), then, now)
    });
    let secure = cases(&[0, 64]).map(|case| {
        let then = ["clear", "tls"].map(|way| (format!("B.h1.{way}.{case}"), WASD));
        let now = ["tls", "clear"].map(|way| (format!("file.h1.{way}.keep.{case}"), ""));
        pair(format!("file in clear text to TLS, {case}"), then, now)
    });
    programs.chain(multiplexed).chain(secure)
}

/// The document C.
fn of_2024() -> impl Iterator<Item = Pair> {
    ["host", "lan"].into_iter().map(|place| {
        let then = ["WASD, memory buffer", "WASD, mailbox"];
        let then = then.map(|server| (format!("C.stream.{place}.1000m.c1"), server));
        let now = ["resident, stream", "resident, shm"];
        let now = now.map(|way| ("stream.c.clear.keep.1000m.c1".to_owned(), way));
        let title = format!("1000 MB, shared memory to a stream, client on the {place}");
        pair(title, then, now)
    })
}

/// The document E, of a time whose clients opened a connection for each request: ours both ways.
fn of_the_as400() -> impl Iterator<Item = Pair> {
    let modes = [
        ("close", "a connection each"),
        ("keep", "connections kept here"),
    ];
    modes.into_iter().flat_map(|(kept, text)| {
        let ways = WAYS.iter().map(move |(title, then, now)| {
            let then = then.map(|server| ("E.capacity.plain.1k".to_owned(), server));
            let now = now.map(|way| (format!("ways.clear.{kept}.1k.c1"), way));
            pair(format!("{title}, {text}"), then, now)
        });
        let secure = SECURE.iter().map(move |(what, way)| {
            let then = (format!("E.secure.{what}.1k"), "secure:plain CPU");
            let row = |carrier| format!("ways.{carrier}.{kept}.1k.c1");
            let now = ["tls", "clear"].map(|carrier| (row(carrier), *way));
            pair(format!("{way}, clear text to TLS, {text}"), [then], now)
        });
        ways.chain(secure)
    })
}

/// Kinds of document E: the better and the worse figure, the dearer and the cheaper way.
const WAYS: &[(&str, [&str; 2], [&str; 2])] = &[
    (
        "file, cached to not cached",
        ["static page, cached", "static page, not cached"],
        ["file, not cached", "file, cached"],
    ),
    (
        "persistent CGI to CGI",
        ["persistent CGI", "CGI (HTML)"],
        ["CGI", "session (persistent CGI)"],
    ),
    (
        "resident program (servlet) to CGI",
        ["servlet", "CGI (HTML)"],
        ["CGI", "resident"],
    ),
    (
        "cached file to a macro page",
        ["static page, cached", "Net.Data (HTML)"],
        ["macro page", "file, cached"],
    ),
    (
        "file that is not cached to a macro page",
        ["static page, not cached", "Net.Data (HTML)"],
        ["macro page", "file, not cached"],
    ),
    (
        "macro page to one with SQL",
        ["Net.Data (HTML)", "Net.Data (SQL)"],
        ["macro page, SQL", "macro page"],
    ),
    (
        "macro page with SQL to CGI with SQL",
        ["Net.Data (SQL)", "CGI (SQL)"],
        ["CGI, SQL", "macro page, SQL"],
    ),
];

/// Kinds of document E that it measured over TLS, too.
const SECURE: &[(&str, &str)] = &[
    ("static-cached", "file, cached"),
    ("static-not-cached", "file, not cached"),
    ("cgi-html", "CGI"),
    ("cgi-sql", "CGI, SQL"),
    ("persistent-cgi", "session (persistent CGI)"),
    ("netdata-html", "macro page"),
    ("netdata-sql", "macro page, SQL"),
    ("servlet", "resident"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_the_figures_that_were_printed() {
        let of = |title: &str, first: &str| {
            let all = pairs();
            let is_meant = |pair: &&Pair| pair.title == title && pair.then[0].0.starts_with(first);
            let pair = all.iter().find(is_meant).unwrap();
            (pair.printed().unwrap() * 100.0).round() / 100.0
        };
        // As the documents' readers worked them out.
        assert_eq!(of("file, cached to not cached, 0k.c1", "A"), 2.21);
        assert_eq!(of("program that stays to CGI, 0k.c1", "A"), 3.49);
        assert_eq!(
            of("other machine, connection kept to new, 0k.c10", "A"),
            4.2
        );
        assert_eq!(of("program that stays to CGI, 0k.c10", "B"), 12.04);
        assert_eq!(
            of("1000 MB, shared memory to a stream, client on the lan", "C"),
            1.67
        );
        assert_eq!(
            of("cached file to a macro page, a connection each", "E"),
            7.75
        );
        assert_eq!(
            of("macro page, clear text to TLS, connections kept here", "E"),
            1.3
        );
        for pair in pairs() {
            assert!(pair.printed().is_some(), "{}", pair.title);
        }
    }
}
