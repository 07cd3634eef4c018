//! Line charts: something over time, or times over percentiles.

use super::axis::{Axis, Ruler, Scale};
use super::chart::{ChartFrame, LETTER_WIDTH, Room, Sign, series_class};
use super::svg::{Anchor, Drawing};

/// Points of a line that are drawn; of more, the lowest and highest of each stretch are.
const POINT_COUNT_MAX: usize = 600;
/// Lines with fewer points than this have a dot at each.
const DOT_COUNT_MAX: usize = 60;

/// A line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartLine {
    name: String,
    points: Vec<(f64, f64)>,
}

impl ChartLine {
    /// A line through these points, by rising x. A y that is no number makes a gap.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> ChartLine {
        ChartLine {
            name: name.into(),
            points,
        }
    }

    /// The points to draw: so few that the page stays small, and none of the peaks lost.
    fn thinned(&self) -> Vec<(f64, f64)> {
        if self.points.len() <= POINT_COUNT_MAX {
            return self.points.clone();
        }
        let stretch = self.points.len().div_ceil(POINT_COUNT_MAX / 2);
        let mut kept = Vec::with_capacity(POINT_COUNT_MAX);
        for stretch in self.points.chunks(stretch) {
            let by_y = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
            let ends = [stretch.iter().min_by(by_y), stretch.iter().max_by(by_y)];
            let mut ends: Vec<(f64, f64)> = ends.into_iter().flatten().copied().collect();
            ends.sort_by(|a, b| a.0.total_cmp(&b.0));
            ends.dedup();
            kept.extend(ends);
        }
        kept
    }
}

/// A chart of lines.
#[derive(Debug, Clone, PartialEq)]
pub struct LineChart {
    title: String,
    x: Axis,
    y: Axis,
    lines: Vec<ChartLine>,
    levels: Vec<(String, f64)>,
    height: f64,
}

impl LineChart {
    /// A chart without lines yet.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> LineChart {
        LineChart {
            title: title.into(),
            x,
            y,
            lines: Vec::new(),
            levels: Vec::new(),
            height: 280.0,
        }
    }

    /// One line more.
    pub fn line(mut self, line: ChartLine) -> LineChart {
        self.lines.push(line);
        self
    }

    /// A level to compare with, such as a limit: a dashed line from side to side.
    pub fn level(mut self, name: impl Into<String>, y: f64) -> LineChart {
        self.levels.push((name.into(), y));
        self
    }

    /// Less high, for one of several charts that belong together.
    pub fn low(mut self) -> LineChart {
        self.height = 180.0;
        self
    }

    /// Is there nothing to draw?
    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.points.is_empty())
    }

    pub(super) fn write(&self, html: &mut String, number: usize) {
        let thinned: Vec<Vec<(f64, f64)>> = self.lines.iter().map(ChartLine::thinned).collect();
        let names = self.lines.iter().enumerate();
        let frame = ChartFrame {
            title: &self.title,
            description: self.description(),
            legend: names
                .map(|(series, line)| (Sign::Line, series, line.name.as_str()))
                .collect(),
        };
        frame.write(html, number, |room| self.draw(room, &thinned));
    }

    /// What the lines do, in words.
    fn description(&self) -> String {
        let mut text = format!("{} over {}.", self.y.title, self.x.title);
        for line in &self.lines {
            let values = line.points.iter().map(|point| point.1);
            let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if let Some(last) = values.last() {
                let unit = self.y.unit;
                text.push_str(&format!(
                    " {}: from {} to {}, at the end {}.",
                    line.name,
                    unit.text(least),
                    unit.text(most),
                    unit.text(*last)
                ));
            }
        }
        text
    }

    fn draw(&self, room: Room, lines: &[Vec<(f64, f64)>]) -> (Drawing, f64) {
        let height = self.height;
        let all = || lines.iter().flatten();
        let levels = self.levels.iter().map(|(_, y)| *y);
        let tick_count = if room == Room::Wide { 8 } else { 4 };
        let x = Ruler::over(self.x.scale, all().map(|point| point.0), tick_count);
        let y = Ruler::over(self.y.scale, all().map(|point| point.1).chain(levels), 5);
        let plot = Plot {
            left: 64.0,
            right: room.width() - 16.0,
            top: 24.0,
            bottom: height - 44.0,
            x,
            y,
        };
        let mut drawing = Drawing::default();
        self.draw_axes(&mut drawing, &plot);
        for (series, points) in lines.iter().enumerate() {
            let class = series_class(series);
            let placed = points.iter().map(|point| plot.place(*point));
            drawing.path(&format!("line {class}"), placed);
            if points.len() > DOT_COUNT_MAX {
                continue;
            }
            for point in points {
                if let Some(place) = plot.place(*point) {
                    let title = format!(
                        "{}: {} at {}",
                        self.lines[series].name,
                        self.y.unit.text(point.1),
                        self.x.unit.tick(point.0)
                    );
                    drawing.dot(&format!("fill {class}"), place, &title);
                }
            }
        }
        for (name, level) in &self.levels {
            if let Some(y) = plot.y_of(*level) {
                drawing.line("level", (plot.left, y), (plot.right, y));
                drawing.text("small", (plot.left + 6.0, y - 4.0), Anchor::Start, name);
            }
        }
        (drawing, height)
    }

    fn draw_axes(&self, drawing: &mut Drawing, plot: &Plot) {
        for tick in &plot.y.ticks {
            let Some(y) = plot.y_of(*tick) else { continue };
            drawing.line("grid", (plot.left, y), (plot.right, y));
            let text = self.y.unit.tick(*tick);
            drawing.text("tick", (plot.left - 6.0, y + 4.0), Anchor::End, &text);
        }
        // From the right: where two have no room beside each other, the higher one stays.
        let mut free_to = f64::INFINITY;
        for tick in plot.x.ticks.iter().rev() {
            let Some(x) = plot.x_of(*tick) else { continue };
            if self.x.scale == Scale::Percentile {
                drawing.line("grid", (x, plot.top), (x, plot.bottom));
            }
            drawing.line("axis", (x, plot.bottom), (x, plot.bottom + 4.0));
            let text = match self.x.scale {
                Scale::Percentile => percent(*tick),
                _ => self.x.unit.tick(*tick),
            };
            let width = text.chars().count() as f64 * LETTER_WIDTH;
            let (anchor, begin) = match x {
                _ if x < plot.left + 8.0 => (Anchor::Start, x),
                _ if x > plot.right - 8.0 => (Anchor::End, x - width),
                _ => (Anchor::Middle, x - width / 2.0),
            };
            if begin + width <= free_to {
                drawing.text("tick", (x, plot.bottom + 18.0), anchor, &text);
                free_to = begin - LETTER_WIDTH;
            }
        }
        let (left, bottom) = ((plot.left, plot.top), (plot.left, plot.bottom));
        drawing.line("axis", left, bottom);
        drawing.line("axis", bottom, (plot.right, plot.bottom));
        drawing.text("small", (4.0, 14.0), Anchor::Start, &self.y.title);
        let below = (plot.right, plot.bottom + 36.0);
        drawing.text("small", below, Anchor::End, &self.x.title);
    }
}

/// A percentile as it is spoken of.
fn percent(percent: f64) -> String {
    let text = format!("{percent:.5}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} %")
}

/// Where lines are drawn.
struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: Ruler,
    y: Ruler,
}

impl Plot {
    fn x_of(&self, x: f64) -> Option<f64> {
        let share = self.x.share(x)?;
        Some(self.left + share * (self.right - self.left))
    }

    fn y_of(&self, y: f64) -> Option<f64> {
        let share = self.y.share(y)?;
        Some(self.bottom - share * (self.bottom - self.top))
    }

    fn place(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        self.x_of(x).zip(self.y_of(y))
    }
}

#[cfg(test)]
mod tests {
    use super::super::number::Unit;
    use super::*;

    #[test]
    fn peaks_of_long_lines_are_kept() {
        let points = (0..100_000).map(|index| (f64::from(index), 1.0));
        let mut points: Vec<(f64, f64)> = points.collect();
        points[77_777].1 = 50.0;
        let thinned = ChartLine::new("a", points).thinned();
        assert!(thinned.len() <= POINT_COUNT_MAX);
        assert!(thinned.contains(&(77_777.0, 50.0)));
        assert!(thinned.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn chart_is_described_and_its_gaps_are_gaps() {
        let chart = LineChart::new(
            "times",
            Axis::new("time", Unit::Seconds),
            Axis::new("rate <b>", Unit::Plain),
        );
        let chart = chart.line(ChartLine::new(
            "one",
            vec![
                (0.0, 1.0),
                (1.0, 2.0),
                (2.0, f64::NAN),
                (3.0, 4.0),
                (4.0, 3.0),
            ],
        ));
        let mut html = String::new();
        chart.write(&mut html, 1);
        assert!(
            html.contains("one: from 1.0 to 4.0, at the end 3.0."),
            "{html}"
        );
        assert!(!html.contains("<b>") && !html.contains("NaN"), "{html}");
        let path = html.split("<path class=\"line s0\" d=\"").nth(1).unwrap();
        let path = path.split('"').next().unwrap();
        assert_eq!(path.matches('M').count(), 2, "{path}");
    }
}
