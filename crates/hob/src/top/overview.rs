//! The overview: figures, alerts in words, how rate and times have changed, the slowest routes.

use hob_load::page::{bytes, count, rate, time_us};
use hob_load::terminal::curve;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use serde_json::Value;

use super::draw;
use super::state::ScreenState;
use crate::escape;
use crate::facts::JsonView;
use crate::table::{UNKNOWN, cut};

/// Alerts that are shown; how many more there are is said.
const ALERT_COUNT: usize = 3;
/// Lines of figures, and of the slowest routes with their heading.
const FIGURE_LINES: u16 = 6;
const ROUTE_LINES: u16 = 6;
/// Columns of the first two groups of figures, and of the names in each.
const GROUP_WIDTHS: [usize; 2] = [20, 19];
const NAME_WIDTH: usize = 9;
/// Columns of the names in the last group.
const LAST_NAME_WIDTH: usize = 12;

/// Draws it below the head.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &ScreenState) {
    let overview = state.snapshot.overview();
    let alerts = alerts(overview, usize::from(area.width));
    let heights = [
        Constraint::Length(FIGURE_LINES),
        Constraint::Length(alerts.len() as u16),
        Constraint::Min(3),
        Constraint::Min(3),
        Constraint::Max(ROUTE_LINES),
    ];
    let [figures, warned, rates, times, routes] = Layout::vertical(heights).areas(area);
    frame.render_widget(Paragraph::new(self::figures(overview)), figures);
    frame.render_widget(Paragraph::new(alerts), warned);
    let requests = column(overview, "requests");
    let shown = |value: u64| rate(value as f64);
    curve(
        frame,
        rates,
        "requests per second",
        &requests,
        shown,
        Color::Cyan,
    );
    let p99 = column(overview, "p99_us");
    let shown = |value: u64| time_us(value as f64);
    curve(frame, times, "99 % within", &p99, shown, Color::Yellow);
    draw::list(frame, routes, state);
}

/// Three groups beside each other: what is asked, how long it takes, who does it.
fn figures(overview: JsonView<'_>) -> Vec<Line<'static>> {
    let rated = |name| overview.number(name).map(rate);
    let amount = |name| overview.number(name).map(bytes);
    let time = |name| overview.count(name).map(|us| time_us(us as f64));
    let per_second = |text: Option<String>| text.map(|text| format!("{text}/s"));
    let hits = overview.number("cache.hit_ratio");
    let hits = hits.map(|ratio| format!("{:.1} %", ratio * 100.0));
    let asked = [
        ("requests", per_second(rated("rate.requests_s"))),
        ("errors", per_second(rated("rate.errors_s"))),
        ("in", per_second(amount("rate.bytes_in_s"))),
        ("out", per_second(amount("rate.bytes_out_s"))),
        ("hits", hits),
    ];
    let taken = [
        ("median", time("latency.p50_us")),
        ("90 %", time("latency.p90_us")),
        ("99 %", time("latency.p99_us")),
        ("slowest", time("latency.max_us")),
        ("of", overview.count("latency.count").map(count)),
    ];
    let done = doing(overview);
    let has_errors = overview.number("rate.errors_s").unwrap_or(0.0) > 0.0;
    let mut lines: Vec<Line<'static>> = Vec::new();
    for (index, (name, value)) in done.into_iter().enumerate() {
        let mut spans = Vec::new();
        for (group, wide) in [asked.get(index), taken.get(index)]
            .into_iter()
            .zip(GROUP_WIDTHS)
        {
            let (name, value) = group.map_or(("", Some(String::new())), |(name, value)| {
                (*name, value.clone())
            });
            let value = value.unwrap_or_else(|| UNKNOWN.to_owned());
            spans.push(Span::from(format!("{name:<NAME_WIDTH$}")).dark_gray());
            let wide = wide - NAME_WIDTH;
            let span = Span::from(format!("{value:<wide$}")).bold();
            spans.push(match name == "errors" && has_errors {
                true => span.red(),
                false => span,
            });
        }
        spans.push(Span::from(format!("{name:<LAST_NAME_WIDTH$}")).dark_gray());
        spans.push(Span::from(value).bold());
        lines.push(Line::from(spans));
    }
    lines
}

/// Requests and who answers them, and what that takes of the machine.
fn doing(overview: JsonView<'_>) -> [(&'static str, String); FIGURE_LINES as usize] {
    let known = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
    let number = |name| known(overview.count(name).map(count));
    let amount = |name| known(overview.number(name).map(bytes));
    let cores = |name| known(overview.number(name).map(|cores| format!("{cores:.2}")));
    let starting = overview.count("workers.starting").filter(|many| *many > 0);
    let starting = starting.map(|many| format!(", {} new", count(many)));
    let wait = overview.count("workers.queue_wait_p99_us");
    let wait = wait.map(|us| format!(", 99 % within {}", time_us(us as f64)));
    let queued = number("workers.queued");
    let machine = overview.number("cpu.machine_cores");
    let machine = machine.map(|cores| format!(" of {cores}"));
    [
        ("running", number("running")),
        (
            "workers",
            format!(
                "{} of {} busy, {} idle{}",
                number("workers.busy"),
                number("workers.max"),
                number("workers.idle"),
                starting.unwrap_or_default()
            ),
        ),
        ("queue", format!("{queued}{}", wait.unwrap_or_default())),
        (
            "memory",
            format!(
                "{}, programs {}",
                amount("memory.server_bytes"),
                amount("memory.programs_bytes")
            ),
        ),
        (
            "CPU",
            format!(
                "{}, programs {}{}",
                cores("cpu.server_cores"),
                cores("cpu.programs_cores"),
                machine.unwrap_or_default()
            ),
        ),
        (
            "cache",
            format!(
                "{} files, {} of {}",
                number("cache.entries"),
                amount("cache.bytes"),
                amount("cache.bytes_max")
            ),
        ),
    ]
}

/// What there is to worry about, in words.
fn alerts(overview: JsonView<'_>, width: usize) -> Vec<Line<'static>> {
    let all: Vec<JsonView<'_>> = overview.each("alerts").collect();
    if all.is_empty() {
        return vec![Line::from("nothing to worry about").green()];
    }
    let mut lines = Vec::new();
    for alert in all.iter().take(ALERT_COUNT) {
        let text = escape::line(alert.text("text").unwrap_or(UNKNOWN));
        let line = Line::from(cut(&text, width));
        lines.push(match alert.text("level") {
            Some("bad") => line.red().bold(),
            Some("warning") => line.yellow(),
            _ => line,
        });
    }
    if let Some(more @ 1..) = all.len().checked_sub(ALERT_COUNT) {
        lines.push(Line::from(format!("and {more} more")).dark_gray());
    }
    lines
}

/// A column of the last seconds; nothing was recorded is nothing.
fn column(overview: JsonView<'_>, name: &str) -> Vec<u64> {
    let names = overview.list("seconds.columns");
    let Some(index) = names.iter().position(|own| own.as_str() == Some(name)) else {
        return Vec::new();
    };
    let rows = overview.list("seconds.rows").iter();
    rows.map(|row| row.get(index).and_then(Value::as_f64).unwrap_or(0.0) as u64)
        .collect()
}
