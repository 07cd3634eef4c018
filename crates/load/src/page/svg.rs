//! A drawing: the few elements of SVG that charts are made of.

use std::fmt::Write;

use super::escape::escaped;

/// Where a text is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn word(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// Elements of a drawing so far. Positions are in pixels from the upper left.
#[derive(Debug, Default)]
pub(super) struct Drawing(String);

impl Drawing {
    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.write(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let text = escaped(text);
        let anchor = anchor.word();
        self.write(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// A filled rectangle that says what it is when pointed at.
    pub(super) fn bar(&mut self, class: &str, from: (f64, f64), size: (f64, f64), title: &str) {
        let ((x, y), (width, height)) = (from, size);
        let title = escaped(title);
        self.write(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"><title>{title}</title></rect>"
        ));
    }

    /// A line through points; it is broken where a point is missing.
    pub(super) fn path(&mut self, class: &str, points: impl Iterator<Item = Option<(f64, f64)>>) {
        let mut steps = String::new();
        let mut is_begun = false;
        for point in points {
            if let Some((x, y)) = point {
                let step = if is_begun { 'L' } else { 'M' };
                // Writing to a string does not fail.
                let _ = write!(steps, "{step}{x:.1} {y:.1}");
            }
            is_begun = point.is_some();
        }
        self.write(format_args!("<path class=\"{class}\" d=\"{steps}\"/>"));
    }

    /// A point that says what it is when pointed at.
    pub(super) fn dot(&mut self, class: &str, (x, y): (f64, f64), title: &str) {
        let title = escaped(title);
        self.write(format_args!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{title}</title></circle>"
        ));
    }

    /// A small square on its corner.
    pub(super) fn diamond(&mut self, (x, y): (f64, f64), title: &str) {
        let title = escaped(title);
        self.write(format_args!(
            "<path class=\"diamond\" d=\"M{:.1} {y:.1}L{x:.1} {:.1}L{:.1} {y:.1}L{x:.1} {:.1}Z\">\
             <title>{title}</title></path>",
            x - 5.0,
            y - 5.0,
            x + 5.0,
            y + 5.0
        ));
    }

    fn write(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{element}");
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}
