//! A run that goes on, as a screen: how far it is, the figures of the last second, and how they
//! have changed.

use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Gauge, Paragraph};

use super::Glance;
use crate::measure::IntervalSeries;
use crate::page::{count, rate, time};
use crate::plan::LoadModel;
use crate::terminal::{Canvas, curve};

/// How often it is drawn.
const DRAW_PERIOD: Duration = Duration::from_millis(250);

/// The screen.
pub(crate) struct Screen {
    canvas: Canvas,
    next: Instant,
}

impl Screen {
    /// Takes the terminal; none where that cannot be.
    pub(super) fn new() -> Option<Screen> {
        Some(Screen {
            canvas: Canvas::take()?,
            next: Instant::now(),
        })
    }

    /// Does what signals ask for, and draws when it is time to; false when the terminal is gone.
    pub(super) fn look(&mut self, glance: &Glance<'_>) -> bool {
        self.canvas.obey();
        if Instant::now() < self.next {
            return true;
        }
        self.next = Instant::now() + DRAW_PERIOD;
        self.canvas.draw(|frame| draw(frame, glance))
    }
}

fn draw(frame: &mut Frame<'_>, glance: &Glance<'_>) {
    let series = glance.live.series();
    let heights = [
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Length(5),
        Constraint::Min(3),
        Constraint::Min(3),
        Constraint::Length(1),
    ];
    let [head, bar, figures, rates, times, foot] = Layout::vertical(heights).areas(frame.area());
    frame.render_widget(Paragraph::new(title(glance)), head);
    frame.render_widget(progress(glance), bar);
    frame.render_widget(Paragraph::new(lines(glance, series.as_ref())), figures);
    if let Some(series) = &series {
        let width_s = series.width_ns() as f64 / 1e9;
        let answered = series.intervals().iter();
        let mut answered: Vec<u64> = answered
            .map(|one| (one.answered as f64 / width_s) as u64)
            .collect();
        // Seconds in which nothing came are not told of before something does.
        let silent = (glance.silent.as_secs_f64() / width_s) as usize;
        answered.resize(answered.len() + silent.min(usize::from(rates.width)), 0);
        let p99 = series
            .intervals()
            .iter()
            .map(|one| one.percentile(99.0).unwrap_or(0));
        curve(
            frame,
            rates,
            "answers per second",
            &answered,
            |value| rate(value as f64),
            Color::Cyan,
        );
        let p99: Vec<u64> = p99.collect();
        curve(
            frame,
            times,
            "99 % within",
            &p99,
            |value| time(value as f64),
            Color::Yellow,
        );
    }
    let hint = Line::from("Ctrl-C ends the run and reports what there is so far").dark_gray();
    frame.render_widget(hint, foot);
    if let Some(silence) = glance.silence() {
        let last = Rect {
            height: 1,
            y: head.y + head.height.saturating_sub(1),
            ..head
        };
        frame.render_widget(Line::from(silence).yellow().bold().right_aligned(), last);
    }
}

fn title(glance: &Glance<'_>) -> Vec<Line<'static>> {
    let plan = glance.plan;
    let url = plan.entries.first().map_or("", |entry| &entry.url.text);
    let url: String = url.chars().filter(|one| !one.is_control()).collect();
    let pace = match &plan.pace {
        LoadModel::Closed { .. } => "closed loop".to_owned(),
        LoadModel::Open { rate, .. } => format!("open loop, {} {}/s", rate.text(), plan.noun()),
        LoadModel::Log(replay) => format!("open loop, {}", replay.title()),
    };
    vec![
        Line::from(url).bold(),
        Line::from(format!(
            "{pace}, {} {}",
            count(plan.connections as u64),
            plan.makers()
        ))
        .dark_gray(),
    ]
}

fn progress(glance: &Glance<'_>) -> Gauge<'static> {
    let plan = glance.plan;
    let passed = glance.passed.as_secs_f64();
    let counts = glance.live.counts();
    let whole = plan
        .duration
        .map(|duration| (duration + plan.warm_up).as_secs_f64());
    let share = match (whole, plan.count) {
        (Some(whole), _) => passed / whole,
        (None, Some(count)) => counts.due as f64 / count.max(1) as f64,
        (None, None) => 0.0,
    };
    let mut label = match whole {
        Some(whole) => format!("{passed:.0} of {whole:.0} s"),
        None => format!("{passed:.0} s"),
    };
    if glance.passed < plan.warm_up {
        label.push_str(", warming up");
    }
    Gauge::default()
        .gauge_style(Style::new().fg(Color::Green))
        .ratio(share.clamp(0.0, 1.0))
        .label(label)
}

fn lines(glance: &Glance<'_>, series: Option<&IntervalSeries>) -> Vec<Line<'static>> {
    let counts = glance.live.counts();
    let named = |name: &str, value: String| {
        vec![
            Span::from(format!("{name:<12}")).dark_gray(),
            Span::from(format!("{value:<14}")).bold(),
        ]
    };
    let mut failed = named("failed", count(counts.failed));
    if counts.failed > 0 {
        failed[1] = failed[1].clone().red();
    }
    let mut backlog = named("waiting", count(counts.backlog));
    if counts.backlog > 0 {
        backlog[1] = backlog[1].clone().yellow();
    }
    // Where nothing comes, the last figures are not those of the last second.
    let last = series.filter(|_| glance.silence().is_none());
    let last = last.and_then(|series| Some((series.intervals().last()?, series.width_ns())));
    let per_second = last.map_or_else(
        || "0/s".to_owned(),
        |(last, width_ns)| format!("{}/s", rate(last.answered as f64 * 1e9 / width_ns as f64)),
    );
    let percentile = |percent: f64| {
        let found = last.and_then(|(last, _)| last.percentile(percent));
        found.map_or_else(String::new, |ns| time(ns as f64))
    };
    let row = |parts: Vec<Vec<Span<'static>>>| Line::from(parts.concat());
    vec![
        Line::default(),
        row(vec![
            named("answered", count(counts.answered)),
            failed,
            backlog,
        ]),
        row(vec![
            named("last second", per_second),
            named("median", percentile(50.0)),
        ]),
        row(vec![
            named("90 %", percentile(90.0)),
            named("99 %", percentile(99.0)),
            named("slowest", percentile(100.0)),
        ]),
    ]
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::Url;
    use crate::measure::{Live, ReportedCounts, RequestTally};
    use crate::plan::ClientActs;
    use crate::plan::{BenchPlan, ClientTlsOffer, Protocol, Reuse};

    fn plan() -> BenchPlan {
        BenchPlan {
            page: None,
            entries: vec!["http://127.0.0.1:1/a?x".parse::<Url>().unwrap().into()],
            seed: 1,
            acts: ClientActs::default(),
            unix: None,
            pace: LoadModel::Closed {
                think: Duration::ZERO,
            },
            connections: 10,
            sources: 1,
            protocol: Protocol::H1,
            streams: 1,
            reuse: Reuse::KeepAlive,
            is_insecure: false,
            terms: ClientTlsOffer::default(),
            is_resumption_off: false,
            threads: 1,
            cpus: Vec::new(),
            warm_up: Duration::ZERO,
            duration: Some(Duration::from_secs(10)),
            count: None,
            timeout: Duration::from_secs(1),
            method: "GET".to_owned(),
            fields: Vec::new(),
            body: None,
            expectations: Vec::new(),
            thresholds: Vec::new(),
            pid: None,
        }
    }

    /// What a screen of that size shows, line by line.
    fn shown((width, height): (u16, u16), silent: Duration) -> Vec<String> {
        const SECOND: u64 = 1_000_000_000;
        let live = Live::new(0, true);
        let mut tally = RequestTally::new(1, 1, 1);
        for second in 0..5 {
            for _ in 0..(second + 1) * 10 {
                tally.series.record(second * SECOND, 2_000_000);
                tally.answered += 1;
            }
        }
        live.tell(&mut ReportedCounts::default(), &tally, 7, 5 * SECOND);
        let plan = plan();
        let glance = Glance {
            plan: &plan,
            passed: Duration::from_secs(5),
            silent,
            live: &live,
        };
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, &glance)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let row = |y: u16| (0..width).map(move |x| (x, y));
        (0..height)
            .map(|y| row(y).map(|at| buffer[at].symbol()).collect())
            .collect()
    }

    #[test]
    fn screen_of_80_by_24_has_all_figures() {
        let rows = shown((80, 24), Duration::from_millis(900));
        let text = rows.join("\n");
        for wanted in [
            "closed loop, 10 connections",
            "5 of 10 s",
            "answered    150",
            "waiting     7",
            "last second 50",
            "99 %        2.0",
            "answers per second, at most 50",
            "Ctrl-C ends the run",
        ] {
            assert!(text.contains(wanted), "no {wanted:?} in\n{text}");
        }
        // Five seconds, five bars, each higher than the one before.
        assert!(text.contains('█'), "{text}");
        assert!(!text.contains("no answer"), "{text}");
    }

    #[test]
    fn stall_is_said_and_old_figures_are_not_shown_as_those_of_now() {
        let text = shown((80, 24), Duration::from_millis(3100)).join("\n");
        assert!(text.contains("no answer for 3 s"), "{text}");
        assert!(text.contains("last second 0/s"), "{text}");
        assert!(!text.contains("2.00 ms  "), "{text}");
    }

    #[test]
    fn smallest_screen_is_drawn_too() {
        for (width, height) in [(1, 1), (20, 5), (200, 80)] {
            shown((width, height), Duration::from_secs(700));
        }
    }
}
