//! What all rows together say of a rival: its CPU time in times of hob's, between what it lies, and
//! whether that can be told apart from hob's at all.

use hob_load::page::three_digits;

use super::ComparisonReport;
use crate::interval::Estimate;
use crate::measure::RowMeasurement;
use crate::rows::RowGroup;
use crate::server::Installed;

/// Where a rival stands beside hob.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standing {
    pub(super) server: String,
    /// Files, or programs.
    pub(super) work: &'static str,
    /// Whom of hob's ways it is compared with.
    bases: Vec<String>,
    /// A geometric mean over rows.
    pub(super) ratio: f64,
    /// The 95 % interval; none where a row has no interval of its own.
    pub(super) bounds: Option<(f64, f64)>,
    pub(super) rows: usize,
    /// Rows that are doubtful.
    pub(super) left_out: usize,
}

/// On which side of hob it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelativeCost {
    /// It takes more CPU time.
    More,
    /// It takes less.
    Less,
    /// The interval has both.
    Unclear,
}

impl Standing {
    /// Of each rival that something was measured of.
    pub(super) fn all(report: &ComparisonReport) -> Vec<Standing> {
        let rivals = report.servers.iter().skip(1);
        let rows = |has_files: bool| -> Vec<&RowMeasurement> {
            let is_file =
                |group| matches!(group, RowGroup::Files | RowGroup::Close | RowGroup::Secure);
            let is_meant = |row: &&RowMeasurement| match has_files {
                true => is_file(row.row.group),
                false => row.row.group == RowGroup::Scripts,
            };
            report.rows.iter().filter(is_meant).collect()
        };
        let (files, programs) = (rows(true), rows(false));
        let standing = |server: &Installed| match server.kind.has_files() {
            true => Standing::of(&server.name, "files", &files),
            false => Standing::of(&server.name, "programs", &programs),
        };
        rivals.filter_map(standing).collect()
    }

    fn of(server: &str, work: &'static str, rows: &[&RowMeasurement]) -> Option<Standing> {
        let (mut ratios, mut bases, mut left_out) = (vec![], vec![], 0);
        for row in rows {
            let mut cells = row.cells.iter();
            let cell = cells.find(|cell| cell.entrant.server == server);
            let (Some(cell), Some(base)) = (cell, row.cells.first()) else {
                continue;
            };
            match cell.ratio_to(base) {
                Some(_) if cell.doubt().or(base.doubt()).is_some() => left_out += 1,
                Some(ratio) => {
                    ratios.push(ratio);
                    if !bases.contains(&base.entrant.label) {
                        bases.push(base.entrant.label.clone());
                    }
                }
                None => {}
            }
        }
        let (ratio, bounds) = joined(&ratios)?;
        Some(Standing {
            server: server.to_owned(),
            work,
            bases,
            ratio,
            bounds,
            rows: ratios.len(),
            left_out,
        })
    }

    pub(super) fn side(&self) -> RelativeCost {
        match self.bounds {
            Some((low, _)) if low > 1.0 => RelativeCost::More,
            Some((_, high)) if high < 1.0 => RelativeCost::Less,
            _ => RelativeCost::Unclear,
        }
    }

    /// `nginx 1.86 x (1.80 to 1.92)`.
    pub(super) fn short(&self) -> String {
        let Standing { server, .. } = self;
        let ratio = three_digits(self.ratio);
        match self.bounds {
            Some((low, high)) => format!(
                "{server} {ratio} x ({} to {})",
                three_digits(low),
                three_digits(high)
            ),
            None => format!("{server} {ratio} x (one round: no interval)"),
        }
    }

    /// The same in a sentence.
    pub(super) fn text(&self) -> String {
        let between = match self.bounds {
            Some((low, high)) => format!("{} to {}", three_digits(low), three_digits(high)),
            None => "no interval: one round".to_owned(),
        };
        let left_out = match self.left_out {
            0 => String::new(),
            count => format!(", {count} doubtful ones left out"),
        };
        let unclear = match self.side() {
            RelativeCost::Unclear => ": that is not told apart from as much",
            _ => "",
        };
        format!(
            "{} takes {} times the CPU time of {} per request for {} ({between}; {} rows{left_out})\
             {unclear}",
            self.server,
            three_digits(self.ratio),
            self.bases.join(" and "),
            self.work,
            self.rows,
        )
    }
}

/// All of it in one line, that of doubts included.
pub(super) fn verdict(report: &ComparisonReport) -> String {
    let all = Standing::all(report);
    let of = |side: RelativeCost| {
        let own = all.iter().filter(|standing| standing.side() == side);
        own.map(Standing::short).collect::<Vec<_>>().join(", ")
    };
    let parts = [
        ("hob takes less CPU time than ", of(RelativeCost::More)),
        ("more than ", of(RelativeCost::Less)),
        ("not told apart from ", of(RelativeCost::Unclear)),
    ];
    let parts = parts.iter().filter(|(_, rivals)| !rivals.is_empty());
    let parts: Vec<String> = parts
        .map(|(text, rivals)| format!("{text}{rivals}"))
        .collect();
    let rivals = report.servers.iter().skip(1);
    let is_measured = |rival: &Installed| {
        let cells = report.rows.iter().flat_map(|row| &row.cells);
        let mut own = cells.filter(|cell| cell.entrant.server == rival.name);
        own.any(|cell| !cell.rounds.is_empty())
    };
    let text = match parts.is_empty() {
        true if rivals.into_iter().any(is_measured) => {
            "no row is taken together for a rival: they are doubtful, or of other work".to_owned()
        }
        true => "no rival beside hob in these rows".to_owned(),
        false => parts.join("; "),
    };
    match report.doubts().first() {
        None => format!("verdict: {text}"),
        Some(doubt) => format!("verdict, DOUBTFUL ({doubt}): {text}"),
    }
}

/// The geometric mean of ratios and its interval, as exact as the ratios are.
pub(super) fn joined(ratios: &[Estimate]) -> Option<(f64, Option<(f64, f64)>)> {
    if ratios.is_empty() {
        return None;
    }
    let count = ratios.len() as f64;
    let log = ratios.iter().map(|ratio| ratio.median.ln()).sum::<f64>() / count;
    let halves = ratios.iter().map(|ratio| Some(ratio.ratio_spread()?.ln()));
    let halves: Option<Vec<f64>> = halves.collect();
    let bounds = halves.map(|halves| {
        let squares: f64 = halves.iter().map(|half| half * half).sum();
        let half = squares.sqrt() / count;
        ((log - half).exp(), (log + half).exp())
    });
    Some((log.exp(), bounds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::EntrantResult;
    use crate::round::Round;
    use crate::rows::{ComparisonRow, Entrant};
    use crate::server::Extra;

    fn standing(ratios: &[Estimate]) -> Standing {
        let (ratio, bounds) = joined(ratios).unwrap();
        Standing {
            server: "nginx".to_owned(),
            work: "files",
            bases: vec!["hob".to_owned()],
            ratio,
            bounds,
            rows: ratios.len(),
            left_out: 1,
        }
    }

    /// A ratio whose interval goes as far up and down as this factor.
    fn ratio(median: f64, factor: f64) -> Estimate {
        Estimate {
            n: 3,
            median,
            low: Some(median / factor),
            high: Some(median * factor),
        }
    }

    #[test]
    fn rows_together_are_told_apart_from_as_much_or_not() {
        let one = standing(&[ratio(2.0, 1.5)]);
        let (low, high) = one.bounds.unwrap();
        assert!((low - 2.0 / 1.5).abs() < 1e-9 && (high - 3.0).abs() < 1e-9);
        assert_eq!(one.side(), RelativeCost::More);
        assert_eq!(standing(&[ratio(0.5, 1.5)]).side(), RelativeCost::Less);
        assert_eq!(standing(&[ratio(1.2, 1.5)]).side(), RelativeCost::Unclear);
        // Four rows are twice as exact as one.
        let four = standing(&[ratio(1.2, 1.21); 4]);
        assert!((four.bounds.unwrap().1 - 1.2 * 1.1).abs() < 1e-9);
        assert_eq!(four.side(), RelativeCost::More);
        assert_eq!(joined(&[]), None);
    }

    #[test]
    fn what_is_not_told_apart_is_said_in_words() {
        let text = standing(&[ratio(1.2, 1.5)]).text();
        assert_eq!(
            text,
            "nginx takes 1.20 times the CPU time of hob per request for files (0.80 to 1.80; 1 \
             rows, 1 doubtful ones left out): that is not told apart from as much"
        );
        let single = Estimate {
            n: 1,
            median: 2.0,
            low: None,
            high: None,
        };
        let single = standing(&[single]);
        assert_eq!(single.side(), RelativeCost::Unclear);
        assert_eq!(single.short(), "nginx 2.00 x (one round: no interval)");
    }

    #[test]
    fn each_way_that_a_rival_stands_beside_is_told_once() {
        let cell = |label: &str, server: &str| EntrantResult {
            entrant: Entrant {
                label: label.to_owned(),
                server: server.to_owned(),
                extra: Extra::None,
                path: "/".to_owned(),
                bytes: 1,
            },
            rounds: vec![Round {
                cpu_us: 1.0,
                good: 1,
                ..Round::default()
            }],
            why_not: None,
        };
        let row = |way: &str| RowMeasurement {
            row: ComparisonRow::new(String::new(), String::new(), RowGroup::Scripts, 1),
            cells: vec![cell(way, "hob"), cell("granian", "granian")],
            repeated: 0,
            disturbed: 0,
        };
        let rows = ["hob WSGI", "hob ASGI", "hob WSGI"].map(row);
        let rows: Vec<&RowMeasurement> = rows.iter().collect();
        let standing = Standing::of("granian", "programs", &rows).unwrap();
        assert_eq!(standing.bases, ["hob WSGI", "hob ASGI"]);
        assert_eq!(standing.rows, 3);
    }
}
