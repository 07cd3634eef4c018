//! What all charts have: a caption, a legend, and the drawing itself, once for a wide page and once
//! for a narrow one, since letters that are scaled down with a drawing cannot be read.

use std::fmt::Write;

use super::escape::escaped;
use super::svg::Drawing;

/// Colours there are; further series begin again, with another dash.
pub(super) const COLOUR_COUNT: usize = 8;

/// Pixels of a letter, about.
pub(super) const LETTER_WIDTH: f64 = 7.0;

/// How much room a drawing has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Wide,
    Narrow,
}

impl Room {
    /// Pixels from edge to edge.
    pub(super) fn width(self) -> f64 {
        match self {
            Room::Wide => 760.0,
            Room::Narrow => 350.0,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Room::Wide => "wide",
            Room::Narrow => "narrow",
        }
    }
}

/// The shape of a legend's sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Line,
    Square,
    Diamond,
}

/// What a chart is made of besides its drawing.
pub(super) struct ChartFrame<'a> {
    pub(super) title: &'a str,
    /// What it shows, in a sentence, for those who do not see it.
    pub(super) description: String,
    pub(super) legend: Vec<(Sign, usize, &'a str)>,
}

impl ChartFrame<'_> {
    /// Writes a chart. `number` makes its ids unique in the page.
    pub(super) fn write(
        &self,
        html: &mut String,
        number: usize,
        draw: impl Fn(Room) -> (Drawing, f64),
    ) {
        let title = escaped(self.title);
        html.push_str(&format!("<figure>\n<figcaption>{title}</figcaption>\n"));
        self.write_legend(html);
        for room in [Room::Wide, Room::Narrow] {
            let (drawing, height) = draw(room);
            let (width, class) = (room.width(), room.class());
            let id = format!("chart-{number}-{class}");
            // Writing to a string does not fail.
            let _ = write!(
                html,
                "<svg class=\"{class}\" role=\"img\" aria-labelledby=\"{id}-title {id}-text\" \
                 viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\">\n\
                 <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-text\">{}</desc>\n{}</svg>\n",
                escaped(&self.description),
                drawing.into_text()
            );
        }
        html.push_str("</figure>\n");
    }

    fn write_legend(&self, html: &mut String) {
        if self.legend.len() < 2 {
            return;
        }
        html.push_str("<ul class=\"legend\">\n");
        for (sign, series, name) in &self.legend {
            let class = series_class(*series);
            let sign = match sign {
                Sign::Line => format!("<path class=\"line {class}\" d=\"M1 7L27 7\"/>"),
                Sign::Square => {
                    format!(
                        "<rect class=\"fill {class}\" x=\"8\" y=\"1\" width=\"12\" height=\"12\"/>"
                    )
                }
                Sign::Diamond => "<path class=\"diamond\" d=\"M9 7L14 2L19 7L14 12Z\"/>".to_owned(),
            };
            html.push_str(&format!(
                "<li><svg width=\"28\" height=\"14\" aria-hidden=\"true\">{sign}</svg>{}</li>\n",
                escaped(name)
            ));
        }
        html.push_str("</ul>\n");
    }
}

/// Colour and dash of a series.
pub(super) fn series_class(series: usize) -> String {
    let colour = series % COLOUR_COUNT;
    match series / COLOUR_COUNT {
        0 => format!("s{colour}"),
        _ => format!("s{colour} dashed"),
    }
}
