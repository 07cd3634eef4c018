//! Releases beside each other: a table in Markdown that grows by a row with each release, of what
//! it takes in times of the one before, by class of work.

use std::time::UNIX_EPOCH;

use hob_load::Protocol;
use hob_load::page::three_digits;

use super::ComparisonReport;
use super::standing::joined;
use crate::error::CompareError;
use crate::interval::Estimate;
use crate::measure::{EntrantResult, RowMeasurement};
use crate::rows::{ComparisonRow, RowGroup, way_of};
use crate::server::{Installed, ServerSoftware};

/// Classes of work, in the order of their columns.
pub(crate) const CLASSES: [&str; 15] = [
    "file",
    "file, not cached",
    "file over TLS",
    "HTTP/2",
    "HTTP/3",
    "large file",
    "compressed file",
    "program CGI",
    "warm",
    "resident",
    "session",
    "FastCGI",
    "page",
    "long body",
    "other machine",
];
/// Columns before them.
const FIRST: [&str; 3] = ["release", "before", "measured"];
/// What stands above the table of a file that is new.
const ABOVE: &str = "# Release beside release

CPU time of each release of hob in times of the release before it, in parentheses its 95 %
interval: below 1 it takes less. Both were measured in one run, their rounds interleaved; a figure
is the geometric mean of the rows of its class. Made by

```sh
hob compare --releases FILE --rival OLD_HOB
```

which replaces the row of the same release and keeps the others.

";
/// What stands for a class that was not measured.
const NOTHING: &str = "–";

impl ComparisonReport {
    /// A table of releases with those of this report in it: the text of a file, or a new one. The
    /// oldest build that was compared has no row: nothing stands before it. Refused where no two
    /// builds were measured in one row.
    pub fn releases(&self, file: Option<&str>) -> Result<String, CompareError> {
        let mut table = match file {
            Some(text) => ReleaseTable::parse(text),
            None => ReleaseTable::new(ABOVE, ""),
        };
        let builds = self.builds();
        let mut is_empty = true;
        for pair in builds.windows(2) {
            let (before, release) = (pair[0], pair[1]);
            let ratios = CLASSES.map(|class| (class, self.ratio(class, release, before)));
            if ratios.iter().all(|(_, ratio)| ratio.is_none()) {
                continue;
            }
            is_empty = false;
            let mut cells = vec![
                (FIRST[0].to_owned(), release.version.clone()),
                (FIRST[1].to_owned(), before.version.clone()),
                (FIRST[2].to_owned(), self.measured()),
            ];
            let ratios = ratios.map(|(class, ratio)| (class.to_owned(), ratio.unwrap_or_default()));
            cells.extend(ratios);
            table.put(cells);
        }
        if is_empty {
            let text = "--releases: no row was measured without doubt for two builds of hob";
            return Err(CompareError::Arguments(text.to_owned()));
        }
        Ok(table.text())
    }

    /// The builds of hob, the oldest first; of one version as they were given, this program last.
    fn builds(&self) -> Vec<&Installed> {
        let is_hob = |server: &&Installed| server.kind == ServerSoftware::Hob;
        let mut builds: Vec<&Installed> = self.servers.iter().filter(is_hob).collect();
        // This program is the first of the servers.
        if !builds.is_empty() {
            builds.rotate_left(1);
        }
        builds.sort_by_key(|build| numbers(&build.version));
        builds
    }

    /// All rows of a class together: the ratio of a build to another one, and its interval.
    fn ratio(&self, class: &str, release: &Installed, before: &Installed) -> Option<String> {
        let mut ratios: Vec<Estimate> = vec![];
        for row in &self.rows {
            for cell in cells_of(row, release) {
                let way = way_of(&cell.entrant);
                if class_of(&row.row, way) != Some(class) {
                    continue;
                }
                let mut others = cells_of(row, before);
                let twin = others.find(|other| way_of(&other.entrant) == way);
                let twin = twin.filter(|twin| cell.doubt().or(twin.doubt()).is_none());
                ratios.extend(twin.and_then(|twin| cell.ratio_to(twin)));
            }
        }
        let (ratio, bounds) = joined(&ratios)?;
        let ratio = three_digits(ratio);
        Some(match bounds {
            Some((low, high)) => {
                format!("{ratio} ({} to {})", three_digits(low), three_digits(high))
            }
            None => ratio,
        })
    }

    /// When, how much, and whether it is worth anything.
    fn measured(&self) -> String {
        let begun_at = self.begun_at.duration_since(UNIX_EPOCH);
        let moment = hob_load::moment(begun_at.map_or(0, |time| time.as_secs()));
        let (date, _) = moment.split_once(' ').unwrap_or_default();
        let mut text = format!("{date}, {}", self.scope.name());
        if self.is_interrupted {
            text.push_str(", interrupted");
        }
        if let Some(doubt) = self.doubts().first() {
            text.push_str(&format!(", DOUBTFUL: {doubt}"));
        }
        text
    }
}

fn cells_of<'a>(
    row: &'a RowMeasurement,
    build: &'a Installed,
) -> impl Iterator<Item = &'a EntrantResult> {
    let cells = row.cells.iter();
    cells.filter(|cell| cell.entrant.server == build.name)
}

/// A text as it is written again with its table of releases in order; for whoever tries texts that
/// nobody would write.
pub fn release_table(text: &str) -> String {
    ReleaseTable::parse(text).text()
}

/// What a row's work in this way is of.
pub(crate) fn class_of(row: &ComparisonRow, way: &str) -> Option<&'static str> {
    match row.group {
        RowGroup::Files | RowGroup::Close => Some("file"),
        RowGroup::Uncached => Some("file, not cached"),
        RowGroup::Secure => Some("file over TLS"),
        RowGroup::Multiplexed if row.protocol == Protocol::H3 => Some("HTTP/3"),
        RowGroup::Multiplexed => Some("HTTP/2"),
        RowGroup::Large | RowGroup::Flow => Some("large file"),
        RowGroup::Compressed => Some("compressed file"),
        RowGroup::Stream => Some("long body"),
        RowGroup::Remote => Some("other machine"),
        RowGroup::Scripts | RowGroup::Ways => {
            let ways = [
                ("file, not cached", "file, not cached"),
                ("file", "file"),
                ("cgi", "program CGI"),
                ("warm", "warm"),
                ("resident", "resident"),
                ("session", "session"),
                ("fastcgi", "FastCGI"),
                ("macro page", "page"),
            ];
            let way = way.to_ascii_lowercase();
            let mut ways = ways.into_iter();
            ways.find(|(start, _)| way.starts_with(start))
                .map(|(_, class)| class)
        }
        RowGroup::Stored | RowGroup::Cost | RowGroup::Sweep => None,
    }
}

/// The numbers of a version, by which it is older or newer.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// A table of Markdown within a text.
struct ReleaseTable {
    above: String,
    columns: Vec<String>,
    /// Cells in the order of the columns.
    rows: Vec<Vec<String>>,
    below: String,
}

impl ReleaseTable {
    fn new(above: &str, below: &str) -> ReleaseTable {
        let columns = FIRST.iter().chain(&CLASSES);
        ReleaseTable {
            above: above.to_owned(),
            columns: columns.map(|column| (*column).to_owned()).collect(),
            rows: vec![],
            below: below.to_owned(),
        }
    }

    /// The table of a text, and what is around it; one without is all above it.
    fn parse(text: &str) -> ReleaseTable {
        let lines: Vec<&str> = text.lines().collect();
        let is_head = |line: &&str| {
            line.starts_with('|') && cells(line).first().is_some_and(|cell| cell == FIRST[0])
        };
        let Some(head) = lines.iter().position(is_head) else {
            let above = format!("{}\n\n", text.trim_end());
            return ReleaseTable::new(above.trim_start(), "");
        };
        let rows = lines[head..]
            .iter()
            .take_while(|line| line.starts_with('|'));
        let end = head + rows.count();
        let join = |lines: &[&str]| -> String {
            let lines = lines.iter().map(|line| line.trim_end_matches('\r'));
            lines.map(|line| format!("{line}\n")).collect()
        };
        let mut table = ReleaseTable::new(&join(&lines[..head]), &join(&lines[end..]));
        let columns = cells(lines[head]);
        // The line below the head is a rule.
        for line in lines[head..end].iter().skip(2) {
            table.put(columns.iter().cloned().zip(cells(line)).collect());
        }
        table
    }

    /// Puts a row in, by the names of its columns: in the place of that of the same release, or at
    /// the end.
    fn put(&mut self, cells: Vec<(String, String)>) {
        let cells: Vec<(String, String)> = { cells.into_iter() }
            .map(|(column, cell)| (column, cell.replace('|', "/")))
            .collect();
        for (column, _) in &cells {
            if !self.columns.contains(column) {
                self.columns.push(column.clone());
            }
        }
        let of = |column: &String| {
            let cell = cells.iter().find(|(own, _)| own == column);
            cell.map(|(_, cell)| cell.clone()).unwrap_or_default()
        };
        let row: Vec<String> = self.columns.iter().map(of).collect();
        match self.rows.iter_mut().find(|known| known[0] == row[0]) {
            Some(known) => *known = row,
            None => self.rows.push(row),
        }
    }

    fn text(&self) -> String {
        let mut text = self.above.clone();
        let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
        text.push_str(&line(self.columns.iter().map(String::as_str).collect()));
        text.push_str(&line(self.columns.iter().map(|_| "---").collect()));
        for row in &self.rows {
            // A column may be younger than the row.
            let cell = |index: usize| row.get(index).map_or("", String::as_str);
            let shown = |index| match cell(index) {
                "" => NOTHING,
                cell => cell,
            };
            text.push_str(&line((0..self.columns.len()).map(shown).collect()));
        }
        text.push_str(&self.below);
        text
    }
}

/// The cells of a line of a table; none of another line.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().strip_prefix('|');
    let inner = inner.and_then(|line| line.strip_suffix('|'));
    let all = inner.into_iter().flat_map(|line| line.split('|'));
    all.map(|cell| match cell.trim() {
        NOTHING => String::new(),
        cell => cell.to_owned(),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(version: &str, file: &str) -> Vec<(String, String)> {
        let cells = [("release", version), ("before", "0.1.0"), ("file", file)];
        cells
            .map(|(column, cell)| (column.to_owned(), cell.to_owned()))
            .into()
    }

    #[test]
    fn row_of_a_release_is_replaced_and_older_ones_stay() {
        let mut table = ReleaseTable::new(ABOVE, "");
        table.put(row("0.2.0", "0.98"));
        table.put(row("0.3.0", "1.02 | or so"));
        let first = table.text();
        assert!(first.starts_with("# Release beside release\n"));
        let mut again = ReleaseTable::parse(&first);
        assert_eq!(again.text(), first);
        again.put(row("0.3.0", "1.01"));
        again.put(row("0.4.0", "0.90"));
        let wanted = first.replace("1.02 / or so", "1.01");
        let last = "| 0.4.0 | 0.1.0 | – | 0.90 |";
        assert!(
            again.text().starts_with(&wanted) && again.text().contains(last),
            "{}",
            again.text()
        );
    }

    #[test]
    fn what_stands_around_the_table_and_columns_of_older_ones_stay() {
        let text = "# Mine\n\n| release | file | gone |\n| --- | --- | --- |\n| 0.1.0 | 1.5 | x |\n\nsince\n";
        let mut table = ReleaseTable::parse(text);
        table.put(row("0.2.0", "0.5"));
        let text = table.text();
        assert!(text.starts_with("# Mine\n\n| release | before |"), "{text}");
        assert!(text.ends_with("\n\nsince\n"), "{text}");
        let old = text
            .lines()
            .find(|line| line.starts_with("| 0.1.0"))
            .unwrap();
        assert!(
            old.contains("| – | – | 1.5 |") && old.ends_with("| x |"),
            "{old}"
        );
        let none = ReleaseTable::parse("no table\n");
        assert!(none.text().starts_with("no table\n\n| release |"));
    }

    #[test]
    fn versions_are_in_the_order_of_their_numbers() {
        let mut all = ["0.10.0", "0.9.2", "1.0.0", "0.9.10"];
        all.sort_by_key(|version| numbers(version));
        assert_eq!(all, ["0.9.2", "0.9.10", "0.10.0", "1.0.0"]);
    }
}
