//! The page itself and the parts it is filled with.

use super::bars::BarChart;
use super::escape::escaped;
use super::lines::LineChart;
use super::table::PageTable;

const STYLE: &str = include_str!("style.css");

/// How something is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// It only says what is so.
    #[default]
    Plain,
    /// It is as wished.
    Good,
    /// It is not as wished.
    Bad,
    /// It may not be so.
    Doubtful,
}

impl Tone {
    pub(super) fn class(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Doubtful => "doubtful",
        }
    }

    /// A sign before the text, since colours alone are not seen by everybody.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Good => "<b class=\"sign\" role=\"img\" aria-label=\"good\">✓</b> ",
            Tone::Bad => "<b class=\"sign\" role=\"img\" aria-label=\"bad\">✗</b> ",
            Tone::Doubtful => "<b class=\"sign\" role=\"img\" aria-label=\"doubtful\">?</b> ",
        }
    }
}

/// A sentence of the summary.
#[derive(Debug, Clone, PartialEq)]
pub struct Sentence {
    tone: Tone,
    text: String,
}

impl Sentence {
    /// A sentence meant like this.
    pub fn new(tone: Tone, text: impl Into<String>) -> Sentence {
        let text = text.into();
        Sentence { tone, text }
    }

    /// One that only says what is so.
    pub fn plain(text: impl Into<String>) -> Sentence {
        Sentence::new(Tone::Plain, text)
    }

    /// One about something that is as wished.
    pub fn good(text: impl Into<String>) -> Sentence {
        Sentence::new(Tone::Good, text)
    }

    /// One about something that is not.
    pub fn bad(text: impl Into<String>) -> Sentence {
        Sentence::new(Tone::Bad, text)
    }

    /// One that casts doubt.
    pub fn doubtful(text: impl Into<String>) -> Sentence {
        Sentence::new(Tone::Doubtful, text)
    }
}

/// A key figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    name: String,
    value: String,
    note: String,
    tone: Tone,
}

impl Figure {
    /// A figure with its name.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Figure {
        Figure {
            name: name.into(),
            value: value.into(),
            note: String::new(),
            tone: Tone::Plain,
        }
    }

    /// What is to be known about it, in few words.
    pub fn note(mut self, text: impl Into<String>) -> Figure {
        self.note = text.into();
        self
    }

    /// Good, bad or doubtful.
    pub fn tone(mut self, tone: Tone) -> Figure {
        self.tone = tone;
        self
    }
}

/// What is folded until somebody wants to see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Details {
    summary: String,
    parts: Vec<PageElement>,
}

impl Details {
    /// Folded parts under a line that says what they are.
    pub fn new(summary: impl Into<String>) -> Details {
        Details {
            summary: summary.into(),
            parts: Vec::new(),
        }
    }

    /// One part more.
    pub fn part(mut self, part: impl Into<PageElement>) -> Details {
        self.parts.push(part.into());
        self
    }
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq)]
pub enum PageElement {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Lines as they are, such as a command or raw figures.
    Raw(String),
    /// The summary in sentences.
    Sentences(Vec<Sentence>),
    /// Key figures.
    Figures(Vec<Figure>),
    /// A table.
    Table(PageTable),
    /// A chart of lines.
    Lines(LineChart),
    /// A chart of bars.
    Bars(BarChart),
    /// What is folded.
    Details(Details),
}

impl From<Vec<Sentence>> for PageElement {
    fn from(sentences: Vec<Sentence>) -> PageElement {
        PageElement::Sentences(sentences)
    }
}

impl From<Vec<Figure>> for PageElement {
    fn from(figures: Vec<Figure>) -> PageElement {
        PageElement::Figures(figures)
    }
}

impl From<PageTable> for PageElement {
    fn from(table: PageTable) -> PageElement {
        PageElement::Table(table)
    }
}

impl From<LineChart> for PageElement {
    fn from(chart: LineChart) -> PageElement {
        PageElement::Lines(chart)
    }
}

impl From<BarChart> for PageElement {
    fn from(chart: BarChart) -> PageElement {
        PageElement::Bars(chart)
    }
}

impl From<Details> for PageElement {
    fn from(details: Details) -> PageElement {
        PageElement::Details(details)
    }
}

/// A page, filled from top to bottom.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportPage {
    title: String,
    subtitle: String,
    parts: Vec<PageElement>,
}

impl ReportPage {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> ReportPage {
        ReportPage {
            title: title.into(),
            subtitle: String::new(),
            parts: Vec::new(),
        }
    }

    /// What stands small below the title: when, where, what.
    pub fn subtitle(&mut self, text: impl Into<String>) {
        self.subtitle = text.into();
    }

    /// A heading; what follows belongs to it.
    pub fn section(&mut self, heading: impl Into<String>) {
        self.parts.push(PageElement::Heading(heading.into()));
    }

    /// A paragraph.
    pub fn text(&mut self, text: impl Into<String>) {
        self.parts.push(PageElement::Text(text.into()));
    }

    /// One part more.
    pub fn push(&mut self, part: impl Into<PageElement>) {
        self.parts.push(part.into());
    }

    /// The whole page.
    pub fn html(&self) -> String {
        let title = escaped(&self.title);
        // The policy holds even if something slipped through: nothing runs, nothing is fetched.
        let mut html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        );
        if !self.subtitle.is_empty() {
            let subtitle = escaped(&self.subtitle);
            html.push_str(&format!("<p class=\"subtitle\">{subtitle}</p>\n"));
        }
        let mut chart_count = 0;
        for part in &self.parts {
            write_part(&mut html, part, &mut chart_count);
        }
        html.push_str("</main>\n</body>\n</html>\n");
        html
    }
}

fn write_part(html: &mut String, part: &PageElement, chart_count: &mut usize) {
    match part {
        PageElement::Heading(text) => html.push_str(&format!("<h2>{}</h2>\n", escaped(text))),
        PageElement::Text(text) => html.push_str(&format!("<p>{}</p>\n", escaped(text))),
        PageElement::Raw(text) => {
            html.push_str(&format!("<pre tabindex=\"0\">{}</pre>\n", escaped(text)));
        }
        PageElement::Sentences(all) => write_sentences(html, all),
        PageElement::Figures(all) => write_figures(html, all),
        PageElement::Table(table) => table.write(html),
        PageElement::Lines(chart) => {
            *chart_count += 1;
            chart.write(html, *chart_count);
        }
        PageElement::Bars(chart) => {
            *chart_count += 1;
            chart.write(html, *chart_count);
        }
        PageElement::Details(details) => {
            let summary = escaped(&details.summary);
            html.push_str(&format!("<details>\n<summary>{summary}</summary>\n"));
            for part in &details.parts {
                write_part(html, part, chart_count);
            }
            html.push_str("</details>\n");
        }
    }
}

fn write_sentences(html: &mut String, sentences: &[Sentence]) {
    html.push_str("<ul class=\"sentences\">\n");
    for sentence in sentences {
        let (class, sign) = (sentence.tone.class(), sentence.tone.sign());
        let text = escaped(&sentence.text);
        html.push_str(&format!("<li class=\"{class}\">{sign}{text}</li>\n"));
    }
    html.push_str("</ul>\n");
}

fn write_figures(html: &mut String, figures: &[Figure]) {
    html.push_str("<dl class=\"figures\">\n");
    for figure in figures {
        let class = figure.tone.class();
        let (name, value) = (escaped(&figure.name), escaped(&figure.value));
        let sign = figure.tone.sign();
        html.push_str(&format!(
            "<div class=\"{class}\"><dt>{name}</dt><dd>{sign}{value}</dd>"
        ));
        if !figure.note.is_empty() {
            html.push_str(&format!(
                "<dd class=\"note\">{}</dd>",
                escaped(&figure.note)
            ));
        }
        html.push_str("</div>\n");
    }
    html.push_str("</dl>\n");
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Bar, BarGroup, ChartLine, PageCell, Unit};
    use super::*;

    const EVIL: &str = "</title><script>alert('x')</script>\" onload=\"y";

    /// A page that has the text wherever a text can be.
    fn page_of(text: &str) -> String {
        let axis = || Axis::new(text, Unit::Plain);
        let mut page = ReportPage::new(text);
        page.subtitle(text);
        page.section(text);
        page.text(text);
        page.push(vec![Sentence::bad(text)]);
        page.push(vec![Figure::new(text, text).note(text)]);
        let table = PageTable::new(text).text(text).mark(text);
        page.push(table.row([PageCell::new(text).small(text)]).note(text));
        page.push(
            LineChart::new(text, axis(), axis())
                .line(ChartLine::new(text, vec![(0.0, 1.0)]))
                .line(ChartLine::new(text, vec![(0.0, 2.0)]))
                .level(text, 1.0),
        );
        page.push(
            BarChart::new(text, axis())
                .series(text)
                .series(text)
                .marks(text)
                .group(BarGroup::new(text, vec![Bar::new(1.0).mark(2.0)])),
        );
        page.push(Details::new(text).part(PageElement::Raw(text.to_owned())));
        page.html()
    }

    #[test]
    fn no_text_becomes_markup_wherever_it_stands() {
        let html = page_of(EVIL);
        assert!(!html.contains("<script"), "{html}");
        assert!(!html.contains("onload=\"y"), "{html}");
        // As many elements as with a text that nobody could mind.
        let tags = |html: &str| html.matches('<').count();
        assert_eq!(tags(&html), tags(&page_of("plain")));
    }

    #[test]
    fn page_needs_nothing_from_elsewhere() {
        let html = page_of("text");
        for outside in ["http://", "https://", "src=", "href=", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert!(html.contains("default-src 'none'"));
        assert!(html.contains("prefers-color-scheme: dark") && html.contains("@media print"));
    }
}
