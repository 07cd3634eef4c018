//! The state as a screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::state::{Mode, ScreenState, VIEWS};
use super::{detail, overview};
use crate::args::TopView;
use crate::escape;
use crate::history::clock;
use crate::table::{UNKNOWN, age, columns_of, cut};

const HELP: &str = "\
1 2 3 4       overview, programs, running requests, slowest routes; Tab goes on
up down j k   select a row; also page up and down, home and end, g and G
Enter         the row in full; Enter or Escape goes back
s             sort by the next column
r             the other way round
/             only rows that have a text: Enter keeps it, Escape takes it away
p or space    pause; what is shown stays as it is
Ctrl-Z        back to the shell; fg comes back here
q or Ctrl-C   end

errors, rates: of the last 10 seconds; times: of the last minute.
A route's times are those since the server started.
cache hits: of what was looked for since then.";

/// Draws all of it. Where a text in full ends is told to the state.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut ScreenState) {
    let heights = [
        Constraint::Length(2),
        Constraint::Min(1),
        Constraint::Length(1),
    ];
    let [head, body, foot] = Layout::vertical(heights).areas(frame.area());
    self::head(frame, head, state);
    match &state.mode {
        Mode::Help => frame.render_widget(Paragraph::new(HELP), body),
        Mode::Detail { name, line } => {
            let lines = detail::lines(state, name, usize::from(body.width));
            let last = lines.len().saturating_sub(usize::from(body.height));
            let from = (*line).min(last);
            let shown = lines.into_iter().skip(from).map(Line::from);
            frame.render_widget(Paragraph::new(shown.collect::<Vec<_>>()), body);
            state.keep_line_within(last);
        }
        Mode::Browse | Mode::Filter => match state.view {
            TopView::Overview => overview::draw(frame, body, state),
            _ => list(frame, body, state),
        },
    }
    frame.render_widget(self::foot(state), foot);
}

/// Whose screen this is and how it stands; then the views, and how rows are chosen.
fn head(frame: &mut Frame<'_>, area: Rect, state: &ScreenState) {
    let [first, second] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area);
    let width = usize::from(area.width);
    let overview = state.snapshot.overview();
    let text = |name| escape::line(overview.text(name).unwrap_or(UNKNOWN)).into_owned();
    let up = overview.count("uptime_s").map_or(UNKNOWN.to_owned(), age);
    let title = format!("hob {} on {}, up {up}", text("version"), text("hostname"));
    let time = overview.count("now_unix_ms").map(clock).unwrap_or_default();
    let (state_text, is_bad) = match (state.silent_s(), state.is_paused) {
        (Some(seconds), _) => (format!("no answer since {seconds} s"), true),
        (None, true) => ("paused".to_owned(), true),
        (None, false) => (format!("{time} UTC"), false),
    };
    let room = width.saturating_sub(columns_of(&state_text) + 1);
    frame.render_widget(Line::from(cut(&title, room)).bold(), first);
    let wide = columns_of(&state_text);
    let right = Line::from(state_text);
    let right = if is_bad { right.yellow().bold() } else { right };
    frame.render_widget(right, at_end(first, wide));
    frame.render_widget(Line::from(tabs(state)), second);
    let chosen = chosen(state);
    let wide = columns_of(&chosen);
    frame.render_widget(Line::from(chosen).dark_gray(), at_end(second, wide));
}

fn tabs(state: &ScreenState) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (number, view) in (1..).zip(VIEWS) {
        let name = match view {
            TopView::Overview => "overview",
            TopView::Programs => "programs",
            TopView::Running => "running",
            TopView::Routes => "routes",
        };
        let tab = Span::from(format!(" {number} {name} "));
        spans.push(match view == state.view {
            true => tab.reversed(),
            false => tab.dark_gray(),
        });
    }
    spans
}

/// What the rows are sorted and chosen by.
fn chosen(state: &ScreenState) -> String {
    let sort = state.sort();
    let column = super::rows::columns(state.view)[sort.column].name;
    let way = if sort.is_falling { "down" } else { "up" };
    match state.filter.as_str() {
        "" => format!("by {column}, {way}"),
        filter => format!("/{filter}, by {column}, {way}"),
    }
}

/// The last columns of a line.
fn at_end(area: Rect, width: usize) -> Rect {
    let width = u16::try_from(width).unwrap_or(u16::MAX).min(area.width);
    Rect {
        x: area.x + area.width - width,
        width,
        ..area
    }
}

fn foot(state: &ScreenState) -> Line<'static> {
    match &state.mode {
        Mode::Filter => Line::from(format!("only rows with: {}_", state.filter)).bold(),
        Mode::Help => Line::from("any key goes back, q ends").dark_gray(),
        Mode::Detail { .. } => {
            Line::from("Enter goes back, up and down scroll, q ends").dark_gray()
        }
        Mode::Browse if state.refusal().is_some() => {
            Line::from(escape::line(state.refusal().unwrap_or_default()).into_owned()).yellow()
        }
        Mode::Browse => Line::from(
            "1-4 views  s sort  r reverse  / filter  Enter in full  p pause  ? help  q quit",
        )
        .dark_gray(),
    }
}

/// The rows of the view below their heading, as many as there is room for, with the selected one
/// among them.
pub(super) fn list(frame: &mut Frame<'_>, area: Rect, state: &ScreenState) {
    let rows = state.rows();
    let width = usize::from(area.width);
    let widths = rows.table.widths(Some(width));
    let mut lines = vec![Line::from(cut(&rows.table.heading(&widths), width)).dark_gray()];
    let room = usize::from(area.height).saturating_sub(1);
    let selected = state.selected(&rows);
    let count = rows.subjects.len();
    let from = selected.map_or(0, |selected| (selected + 1).saturating_sub(room));
    for index in from..count.min(from + room) {
        let text = cut(&rows.table.row(index, &widths), width);
        let line = Line::from(format!("{text:<width$}"));
        lines.push(match Some(index) == selected {
            true => line.reversed(),
            false => line,
        });
    }
    if count == 0 {
        let text = match state.filter.is_empty() {
            true => "nothing to show",
            false => "nothing has that text",
        };
        lines.push(Line::from(text).dark_gray());
    }
    frame.render_widget(Paragraph::new(lines), area);
}
