//! A report as one page of HTML that needs nothing else: no script, no font, no picture from
//! elsewhere. Read on a desk, on a telephone and on paper, in the light and in the dark.
//!
//! A [`ReportPage`] is filled from top to bottom with parts: sentences, key figures, tables, charts
//! and what can be unfolded. Every text that goes in is plain text and is escaped on its way out,
//! so that what a server or a script said can be shown as it is.
//!
//! ```
//! use hob_load::page::{Axis, ChartLine, Figure, LineChart, PageTable, ReportPage, Sentence, Unit};
//!
//! let mut page = ReportPage::new("Two servers");
//! page.push(vec![Sentence::good("one answers twice as fast")]);
//! page.push(vec![Figure::new("rate", "12,345/s").note("of the faster one")]);
//! page.section("Over time");
//! page.push(
//!     LineChart::new("answers per second", Axis::new("seconds", Unit::Plain), Axis::new("answers/s", Unit::Plain))
//!         .line(ChartLine::new("one", vec![(0.0, 100.0), (1.0, 120.0)])),
//! );
//! page.push(PageTable::new("what was asked").text("server").number("rate").row(["one", "12,345/s"]));
//! assert!(page.html().starts_with("<!DOCTYPE html>"));
//! ```

mod axis;
mod bars;
mod chart;
mod document;
mod escape;
mod lines;
mod number;
mod svg;
mod table;

pub use axis::{Axis, Scale};
pub use bars::{Bar, BarChart, BarGroup};
pub use document::{Details, Figure, PageElement, ReportPage, Sentence, Tone};
pub use escape::escaped;
pub use lines::{ChartLine, LineChart};
pub use number::{Unit, bytes, count, rate, three_digits, time, time_us};
pub use table::{PageCell, PageTable};
