//! Bar charts: lying bars in groups, beside each other with error bars, or one after the other as
//! parts of a whole.

use super::axis::{Axis, Ruler};
use super::chart::{ChartFrame, LETTER_WIDTH, Room, Sign, series_class};
use super::escape::shortened;
use super::svg::{Anchor, Drawing};

const BAR_HEIGHT: f64 = 18.0;
const LABEL_HEIGHT: f64 = 20.0;
const GROUP_GAP: f64 = 12.0;
/// Room for the figure behind the longest bar.
const FIGURE_WIDTH: f64 = 84.0;

/// One bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    value: f64,
    interval: Option<(f64, f64)>,
    mark: Option<f64>,
}

impl Bar {
    /// A bar from nothing to this value; one that is no number is left out.
    pub fn new(value: f64) -> Bar {
        Bar {
            value,
            interval: None,
            mark: None,
        }
    }

    /// With an error bar from the lower to the upper end of an interval.
    pub fn interval(mut self, low: f64, high: f64) -> Bar {
        self.interval = Some((low, high));
        self
    }

    /// With a mark to compare with, such as an older figure.
    pub fn mark(mut self, value: f64) -> Bar {
        self.mark = Some(value);
        self
    }
}

/// Bars that belong together: one of each series.
#[derive(Debug, Clone, PartialEq)]
pub struct BarGroup {
    name: String,
    bars: Vec<Bar>,
}

impl BarGroup {
    /// A group of bars, in the order of the chart's series.
    pub fn new(name: impl Into<String>, bars: Vec<Bar>) -> BarGroup {
        BarGroup {
            name: name.into(),
            bars,
        }
    }
}

/// A chart of bars.
#[derive(Debug, Clone, PartialEq)]
pub struct BarChart {
    title: String,
    axis: Axis,
    series: Vec<String>,
    groups: Vec<BarGroup>,
    marks: Option<String>,
    is_stacked: bool,
}

impl BarChart {
    /// A chart without bars yet. A stacked one needs a linear axis.
    pub fn new(title: impl Into<String>, axis: Axis) -> BarChart {
        BarChart {
            title: title.into(),
            axis,
            series: Vec::new(),
            groups: Vec::new(),
            marks: None,
            is_stacked: false,
        }
    }

    /// Names what the first, second, ... bar of each group is.
    pub fn series(mut self, name: impl Into<String>) -> BarChart {
        self.series.push(name.into());
        self
    }

    /// Names what the marks are.
    pub fn marks(mut self, name: impl Into<String>) -> BarChart {
        self.marks = Some(name.into());
        self
    }

    /// One group more.
    pub fn group(mut self, group: BarGroup) -> BarChart {
        self.groups.push(group);
        self
    }

    /// The bars of a group are parts of a whole and follow each other in one line.
    pub fn stacked(mut self) -> BarChart {
        self.is_stacked = true;
        self
    }

    /// Is there nothing to draw?
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub(super) fn write(&self, html: &mut String, number: usize) {
        let series = self.series.iter().enumerate();
        let series = series.map(|(series, name)| (Sign::Square, series, name.as_str()));
        let marks = self.marks.iter();
        let marks = marks.map(|name| (Sign::Diamond, 0, name.as_str()));
        let frame = ChartFrame {
            title: &self.title,
            description: self.description(),
            legend: series.chain(marks).collect(),
        };
        frame.write(html, number, |room| self.draw(room));
    }

    fn series_name(&self, index: usize) -> &str {
        self.series.get(index).map_or("", String::as_str)
    }

    /// What a bar is, in words.
    fn told(&self, index: usize, bar: &Bar) -> String {
        let unit = self.axis.unit;
        let mut text = match self.series_name(index) {
            "" => unit.text(bar.value),
            name => format!("{name} {}", unit.text(bar.value)),
        };
        if let Some((low, high)) = bar.interval {
            text.push_str(&format!(" ({} to {})", unit.text(low), unit.text(high)));
        }
        text
    }

    fn description(&self) -> String {
        let mut text = format!("{}.", self.axis.title);
        for group in &self.groups {
            let bars = group.bars.iter().enumerate();
            let bars: Vec<String> = bars.map(|(index, bar)| self.told(index, bar)).collect();
            text.push_str(&format!(" {}: {}.", group.name, bars.join(", ")));
        }
        text
    }

    fn rows_of(&self, group: &BarGroup) -> usize {
        match self.is_stacked {
            true => 1,
            false => group.bars.len(),
        }
    }

    fn draw(&self, room: Room) -> (Drawing, f64) {
        let values = self.groups.iter().flat_map(|group| self.values(group));
        let tick_count = if room == Room::Wide { 6 } else { 3 };
        let ruler = Ruler::over(self.axis.scale, values, tick_count);
        let heights = self
            .groups
            .iter()
            .map(|group| LABEL_HEIGHT + BAR_HEIGHT * self.rows_of(group) as f64 + GROUP_GAP);
        let bottom = 8.0 + heights.sum::<f64>();
        let place = BarArea {
            left: 4.0,
            right: room.width() - FIGURE_WIDTH,
            ruler,
        };
        let mut drawing = Drawing::default();
        for tick in &place.ruler.ticks {
            let Some(x) = place.x_of(*tick) else { continue };
            drawing.line("grid", (x, 4.0), (x, bottom));
            let anchor = if x < 24.0 {
                Anchor::Start
            } else {
                Anchor::Middle
            };
            let text = self.axis.unit.tick(*tick);
            drawing.text("tick", (x, bottom + 16.0), anchor, &text);
        }
        let below = (room.width() - 4.0, bottom + 34.0);
        drawing.text("small", below, Anchor::End, &self.axis.title);
        let mut y = 8.0;
        for group in &self.groups {
            let name = shortened(&group.name, (room.width() / LETTER_WIDTH) as usize);
            drawing.text("label", (4.0, y + 14.0), Anchor::Start, &name);
            y += LABEL_HEIGHT;
            if self.is_stacked {
                self.draw_stack(&mut drawing, &place, group, y);
            } else {
                self.draw_side_by_side(&mut drawing, &place, group, y);
            }
            y += BAR_HEIGHT * self.rows_of(group) as f64 + GROUP_GAP;
        }
        (drawing, bottom + 44.0)
    }

    /// All values a group needs a place for.
    fn values(&self, group: &BarGroup) -> Vec<f64> {
        let bars = &group.bars;
        if self.is_stacked {
            return vec![sum(bars)];
        }
        let ends = bars.iter().flat_map(|bar| {
            let (low, high) = bar.interval.unzip();
            [Some(bar.value), low, high, bar.mark]
        });
        ends.flatten().collect()
    }

    fn draw_side_by_side(
        &self,
        drawing: &mut Drawing,
        place: &BarArea,
        group: &BarGroup,
        top: f64,
    ) {
        for (index, bar) in group.bars.iter().enumerate() {
            let y = top + BAR_HEIGHT * index as f64;
            let middle = y + BAR_HEIGHT / 2.0;
            let title = format!("{}: {}", group.name, self.told(index, bar));
            let mut end = place.left;
            if let Some(x) = place.x_of(bar.value) {
                let class = format!("fill {}", series_class(index));
                let size = ((x - place.left).max(1.0), BAR_HEIGHT - 3.0);
                drawing.bar(&class, (place.left, y), size, &title);
                end = x;
            }
            if let Some((low, high)) = bar.interval
                && let (Some(low), Some(high)) = (place.x_of(low), place.x_of(high))
            {
                let from = middle - 1.5;
                drawing.line("error", (low, from), (high, from));
                drawing.line("error", (low, from - 4.0), (low, from + 4.0));
                drawing.line("error", (high, from - 4.0), (high, from + 4.0));
                end = end.max(high);
            }
            if let Some(mark) = bar.mark
                && let Some(x) = place.x_of(mark)
            {
                let name = self.marks.as_deref().unwrap_or_default();
                let title = format!("{name} {}", self.axis.unit.text(mark));
                drawing.diamond((x, middle - 1.5), title.trim());
                end = end.max(x + 5.0);
            }
            let text = self.axis.unit.text(bar.value);
            drawing.text("tick", (end + 6.0, middle + 3.0), Anchor::Start, &text);
        }
    }

    fn draw_stack(&self, drawing: &mut Drawing, place: &BarArea, group: &BarGroup, y: f64) {
        let mut before = 0.0;
        let mut end = place.left;
        for (index, bar) in group.bars.iter().enumerate() {
            let after = before + bar.value.max(0.0);
            if let (Some(from), Some(to)) = (place.x_of(before), place.x_of(after)) {
                let class = format!("fill part {}", series_class(index));
                let title = format!("{}: {}", group.name, self.told(index, bar));
                drawing.bar(&class, (from, y), (to - from, BAR_HEIGHT - 3.0), &title);
                end = to;
                before = after;
            }
        }
        let text = self.axis.unit.text(sum(&group.bars));
        drawing.text("tick", (end + 6.0, y + 12.0), Anchor::Start, &text);
    }
}

fn sum(bars: &[Bar]) -> f64 {
    let values = bars.iter().map(|bar| bar.value.max(0.0));
    values.filter(|value| value.is_finite()).sum()
}

/// Where bars are drawn.
struct BarArea {
    left: f64,
    right: f64,
    ruler: Ruler,
}

impl BarArea {
    fn x_of(&self, value: f64) -> Option<f64> {
        let share = self.ruler.share(value)?;
        Some(self.left + share * (self.right - self.left))
    }
}

#[cfg(test)]
mod tests {
    use super::super::number::Unit;
    use super::*;

    #[test]
    fn bars_have_their_figures_and_intervals_in_words_too() {
        let chart = BarChart::new("t", Axis::new("time", Unit::Nanoseconds))
            .series("hob")
            .series("<other>")
            .marks("1998")
            .group(BarGroup::new(
                "files",
                vec![
                    Bar::new(2e6).interval(1e6, 3e6).mark(4e6),
                    Bar::new(f64::NAN),
                ],
            ));
        let mut html = String::new();
        chart.write(&mut html, 3);
        assert!(
            html.contains("files: hob 2.00 ms (1.00 ms to 3.00 ms), &lt;other&gt; –."),
            "{html}"
        );
        assert!(
            html.contains("id=\"chart-3-wide-title\"") && !html.contains("NaN"),
            "{html}"
        );
        // A bar, an interval and a mark in each of two drawings; no bar for what is no number.
        assert_eq!(html.matches("<rect class=\"fill s0\" x=\"4.0\"").count(), 2);
        assert_eq!(html.matches("<title>1998 4.00 ms</title>").count(), 2);
    }

    #[test]
    fn parts_of_a_whole_follow_each_other() {
        let chart = BarChart::new("t", Axis::new("time", Unit::Plain))
            .stacked()
            .group(BarGroup::new("a", vec![Bar::new(3.0), Bar::new(7.0)]));
        let mut html = String::new();
        chart.write(&mut html, 1);
        let widths: Vec<f64> = html
            .split("width=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next()?.parse().ok())
            .collect();
        let whole = 760.0 - FIGURE_WIDTH - 4.0;
        assert!((widths[1] - whole * 0.3).abs() < 0.1, "{widths:?}");
        assert!((widths[2] - whole * 0.7).abs() < 0.1, "{widths:?}");
        assert!(html.contains(">10.0</text>"), "{html}");
    }
}
