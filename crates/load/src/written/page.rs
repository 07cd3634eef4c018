//! A result as a page that a person reads in two minutes: what came of it in words, key figures,
//! curves, and everything else folded.

use serde::Deserialize;
use serde_json::Value;

use super::curve::curve_of;
use super::words::{capital, moment, shell, strip};
use super::{SavedResult, times_of};
use crate::environment::Environment;
use crate::measure::FAILURES;
use crate::page::{
    Axis, ChartLine, Details, Figure, LineChart, PageCell, PageElement, PageTable, ReportPage,
    Scale, Sentence, Tone, Unit, bytes, count, rate, time,
};

/// A chart over time needs so many stretches.
const STRETCH_COUNT_MIN: usize = 2;

impl SavedResult {
    /// The page.
    pub fn page(&self) -> ReportPage {
        let urls: Vec<&str> = self.texts("plan.urls").collect();
        let first = urls.first().copied().unwrap_or("?");
        let mut page = ReportPage::new(match urls.len() {
            0 | 1 => format!("Load test of {first}"),
            _ if self.at("replay").is_object() => format!("Load test of {first} with a log"),
            count => format!("Load test of {first} and {} more", count - 1),
        });
        page.subtitle(self.setting());
        page.push(self.sentences());
        page.push(self.figures());
        self.push_latency(&mut page);
        self.push_pages(&mut page);
        self.push_series(&mut page);
        self.push_failures(&mut page);
        self.push_parts(&mut page);
        self.push_addresses(&mut page);
        self.push_machine(&mut page);
        page
    }

    /// How it was measured, in a line.
    fn setting(&self) -> String {
        let (rate, log) = (
            self.at("plan.rate").as_str(),
            self.at("plan.replay.file").as_str(),
        );
        let pace = match (rate, log) {
            (Some(rate), _) => format!("open loop, {rate} {}/s", self.noun()),
            (None, Some(log)) => {
                let speed_up = self.number("plan.replay.speed_up").unwrap_or(1.0);
                format!("open loop, requests of {log} {speed_up} times as fast as they were")
            }
            (None, None) => "closed loop".to_owned(),
        };
        let reuse = match self.at("plan.page").as_str() {
            Some(visit) => visit,
            None if self.is("plan.keep_alive") => "kept",
            None => "one per request",
        };
        let begun = self.count("begun_at");
        let shard = self.at("shard").as_str();
        let shard = shard
            .map(|shard| format!(", shard {shard}"))
            .unwrap_or_default();
        format!(
            "{}, {} {}, {pace}, {} {} ({reuse}){shard}; {:.1} s from {}",
            self.text("plan.address"),
            self.text("plan.protocol"),
            self.text("plan.method"),
            count(self.count("plan.connections")),
            self.makers(),
            self.number("elapsed_s").unwrap_or(0.0),
            moment(begun),
        )
    }

    /// What came of it, in words.
    pub(super) fn sentences(&self) -> Vec<Sentence> {
        let mut all = vec![self.first_sentence()];
        let (due, failed) = (self.count("requests.due"), self.count("requests.failed"));
        if failed > 0 {
            let share = failed as f64 * 100.0 / due.max(1) as f64;
            let kinds = self.list("failures").iter();
            let kinds = kinds.map(|kind| {
                let number = count(kind["count"].as_u64().unwrap_or(0));
                format!("{} {number}", kind["kind"].as_str().unwrap_or_default())
            });
            let kinds: Vec<String> = kinds.collect();
            all.push(Sentence::bad(format!(
                "{} of {} {} failed ({share:.2} %): {}.",
                count(failed),
                count(due),
                self.noun(),
                kinds.join(", ")
            )));
        }
        let broken_off = self.count("requests.broken_off");
        if broken_off > 0 {
            all.push(Sentence::plain(format!(
                "{} of {} {} were broken off by the client, as it was told to.",
                count(broken_off),
                count(due),
                self.noun()
            )));
        }
        if let Some(stopped) = self.at("stopped").as_str() {
            all.push(Sentence::bad(format!(
                "The run was ended early by {stopped}."
            )));
        }
        if self.is("interrupted") {
            all.push(Sentence::doubtful(
                "The run was interrupted; this is what there was so far.",
            ));
        }
        for threshold in self.list("thresholds") {
            let text = threshold["text"].as_str().unwrap_or_default();
            let value = self.threshold_value(threshold);
            all.push(match threshold["crossed"].as_bool() {
                Some(false) => Sentence::good(format!("Passed: {text} is {value}.")),
                _ => Sentence::bad(format!("Failed: {text} is {value}.")),
            });
        }
        let tone = if self.is("doubtful") {
            Tone::Doubtful
        } else {
            Tone::Plain
        };
        let is_told = |note: &&str| !note.starts_with("the run was ended early");
        all.extend(
            self.texts("notes")
                .filter(is_told)
                .map(|note| Sentence::new(tone, capital(note))),
        );
        if !self.is("doubtful") {
            all.push(Sentence::good(
                "Nothing speaks against it: neither the load generator nor the machine was seen to \
                 be the limit.",
            ));
        }
        all
    }

    fn first_sentence(&self) -> Sentence {
        let answered = self.number("rate.answered_per_s").unwrap_or(0.0);
        let times = |name: &str| {
            let us = self.number(&format!("latency.response.{name}"));
            us.map(|us| time(us * 1e3))
        };
        let rates = match self.number("rate.offered_per_s") {
            Some(offered) => format!(
                "{} of {} {} a second were answered",
                rate(answered),
                rate(offered),
                self.noun()
            ),
            None => format!("{} {} a second were answered", rate(answered), self.noun()),
        };
        let (Some(p50), Some(p99), Some(max)) = (times("p50_us"), times("p99_us"), times("max_us"))
        else {
            return Sentence::bad(format!("{rates}; no response time was measured."));
        };
        Sentence::plain(format!(
            "{rates}: half of them within {p50}, 99 % within {p99}, the slowest in {max}."
        ))
    }

    pub(super) fn threshold_value(&self, threshold: &Value) -> String {
        let text = threshold["text"].as_str().unwrap_or_default();
        let parsed = text.parse::<crate::threshold::Threshold>().ok();
        parsed.map_or_else(String::new, |parsed| {
            parsed.shown(threshold["value"].as_f64())
        })
    }

    /// How the key figures stand: the tone of a figure that a threshold looks at.
    fn tone_of(&self, figure: &str) -> Tone {
        let mut tone = Tone::Plain;
        for threshold in self.list("thresholds") {
            let text = threshold["text"].as_str().unwrap_or_default();
            let name = text.split(['<', '>']).next().unwrap_or_default().trim();
            if name == figure {
                match threshold["crossed"].as_bool() {
                    Some(false) if tone == Tone::Plain => tone = Tone::Good,
                    Some(false) => {}
                    _ => tone = Tone::Bad,
                }
            }
        }
        tone
    }

    fn figures(&self) -> Vec<Figure> {
        let answered = Figure::new(
            match self.one() {
                "page" => "pages per second",
                _ => "answers per second",
            },
            rate(self.number("rate.answered_per_s").unwrap_or(0.0)),
        );
        let answered = match self.number("rate.offered_per_s") {
            Some(offered) => answered.note(format!("{} were due", rate(offered))),
            None => answered.note("as fast as it went"),
        };
        let mut all = vec![answered.tone(self.tone_of("rate"))];
        for (title, field, name) in [
            ("median response", "p50_us", "p50"),
            ("99th percentile", "p99_us", "p99"),
            ("slowest response", "max_us", "max"),
        ] {
            if let Some(us) = self.number(&format!("latency.response.{field}")) {
                all.push(Figure::new(title, time(us * 1e3)).tone(self.tone_of(name)));
            }
        }
        let failed = self.count("requests.failed");
        let tone = match (failed, self.tone_of("errors")) {
            (0, Tone::Plain) => Tone::Plain,
            (_, Tone::Plain) => Tone::Bad,
            (_, tone) => tone,
        };
        all.push(
            Figure::new("failed", count(failed))
                .note(format!("of {}", count(self.count("requests.due"))))
                .tone(tone),
        );
        for (field, note) in [
            (
                "server.cpu_us_per_request",
                "of the watched process and below",
            ),
            ("server.cgroup_cpu_us_per_request", "of the control group"),
            ("client.cpu_us_per_request", "of the load generator"),
        ] {
            if let Some(us) = self.number(field) {
                let figure =
                    Figure::new(format!("CPU per {}", self.one()), time(us * 1e3)).note(note);
                all.push(figure.tone(if field.starts_with("client") {
                    Tone::Plain
                } else {
                    self.tone_of("cpu")
                }));
            }
        }
        all
    }

    fn push_latency(&self, page: &mut ReportPage) {
        let mut chart = LineChart::new(
            "Times by percentile",
            Axis::new(format!("share of {}", self.noun()), Unit::Percent).scale(Scale::Percentile),
            Axis::new("time", Unit::Nanoseconds).scale(Scale::Log),
        );
        let mut table = PageTable::new("Times").text("time");
        let columns = [
            ("mean", "mean_us"),
            ("min", "min_us"),
            ("50 %", "p50_us"),
            ("90 %", "p90_us"),
            ("99 %", "p99_us"),
            ("99.9 %", "p99_9_us"),
            ("max", "max_us"),
        ];
        for (title, _) in columns {
            table = table.number(title);
        }
        let kinds: &[(&str, &str)] = match self.is_open() {
            true => &[
                ("response", "response, from when it was due"),
                ("service", "service, from when it was sent"),
            ],
            false => &[("response", "response")],
        };
        for (kind, title) in kinds {
            let curve = times_of(self.at(&format!("latency.{kind}")));
            let steps = curve.filter(|times| times.count() > 0);
            let points = steps.map(|times| curve_of(&times)).unwrap_or_default();
            chart = chart.line(ChartLine::new(*title, points));
        }
        for (kind, path) in [
            ("response", "latency.response"),
            ("service", "latency.service"),
            ("connect", "latency.connect"),
            ("first byte", "page.first_byte"),
        ] {
            let times = self.at(path);
            let is_told = kind != "service" || self.is_open();
            if times.is_object() && is_told {
                let cells = columns.iter().map(|(_, field)| {
                    PageCell::new(
                        Unit::Nanoseconds.text(times[*field].as_f64().unwrap_or(f64::NAN) * 1e3),
                    )
                });
                table = table.row([PageCell::new(kind)].into_iter().chain(cells));
            }
        }
        page.section("How long it took");
        for limit in self.limits() {
            chart = chart.level(limit.0, limit.1);
        }
        if !chart.is_empty() {
            page.push(chart);
        }
        if !table.is_empty() {
            page.push(table);
        }
    }

    /// Limits of percentiles, to be drawn.
    fn limits(&self) -> Vec<(String, f64)> {
        let texts = self.list("thresholds").iter();
        let parsed = texts.filter_map(|threshold| {
            let text = threshold["text"].as_str()?;
            let threshold: crate::threshold::Threshold = text.parse().ok()?;
            Some((text.to_owned(), threshold.percentile_limit()?))
        });
        parsed.collect()
    }

    fn push_series(&self, page: &mut ReportPage) {
        let width = self.number("series.interval_s").unwrap_or(1.0);
        let numbers = |path: &str, scale: f64| -> Vec<(f64, f64)> {
            let all = self.list(path).iter().enumerate();
            all.map(|(index, value)| {
                let at = (index as f64 + 0.5) * width;
                (at, value.as_f64().unwrap_or(f64::NAN) * scale)
            })
            .collect()
        };
        let answered = numbers("series.answered", 1.0 / width);
        if answered.len() < STRETCH_COUNT_MIN {
            return;
        }
        page.section("While it ran");
        let seconds = || Axis::new("time since the warm-up", Unit::Seconds);
        page.push(
            LineChart::new(
                match self.one() {
                    "page" => "Pages per second",
                    _ => "Requests per second",
                },
                seconds(),
                Axis::new(format!("{}/s", self.noun()), Unit::Plain),
            )
            .low()
            .line(ChartLine::new("answered", answered))
            .line(ChartLine::new(
                "failed",
                numbers("series.failed", 1.0 / width),
            )),
        );
        let times = Axis::new("response time", Unit::Nanoseconds).scale(Scale::Log);
        let mut chart = LineChart::new("Response time, second by second", seconds(), times).low();
        for (name, path) in [
            ("median", "series.p50_us"),
            ("99 %", "series.p99_us"),
            ("slowest", "series.max_us"),
        ] {
            chart = chart.line(ChartLine::new(name, numbers(path, 1e3)));
        }
        page.push(chart);
    }

    fn push_failures(&self, page: &mut ReportPage) {
        let failures = self.list("failures");
        let expectations: Vec<&str> = self.texts("plan.expectations").collect();
        if !failures.is_empty() {
            page.section("What failed");
            let mut table = PageTable::new("Failures by kind")
                .text("kind")
                .number("requests")
                .text("means")
                .text("the first one");
            for failure in failures {
                let kind = failure["kind"].as_str().unwrap_or_default();
                let means = FAILURES.iter().find(|(_, name, _)| *name == kind);
                table = table.row([
                    PageCell::new(kind),
                    PageCell::new(count(failure["count"].as_u64().unwrap_or(0))),
                    PageCell::new(means.map_or("", |(_, _, means)| means)),
                    PageCell::new(failure["first"].as_str().unwrap_or_default()),
                ]);
            }
            page.push(table);
        }
        if !expectations.is_empty() {
            page.text(format!(
                "Checked of every answer: {}.",
                expectations.join("; ")
            ));
        }
    }

    fn push_machine(&self, page: &mut ReportPage) {
        page.section("How it was measured");
        let command: Vec<&str> = self.texts("command").collect();
        if !command.is_empty() {
            page.push(PageElement::Raw(shell(&command)));
        }
        let percent = |path: &str| format!("{:.1} %", self.number(path).unwrap_or(0.0));
        let mut table = PageTable::new("The run")
            .text("what")
            .text("here")
            .row([
                "busiest thread of the load generator",
                &percent("client.busy_percent"),
            ])
            .row([
                "CPUs of the machine in use",
                &percent("machine.busy_percent"),
            ])
            .row([
                "CPU time the host gave to others",
                &percent("machine.steal_percent"),
            ])
            .row([
                "sent late though a connection was free",
                &count(self.count("requests.late")),
            ])
            .row([
                "waited for a connection",
                &count(self.count("requests.waited")),
            ])
            .row(["received", &bytes(self.count("bytes.received") as f64)])
            .row(["of that, bodies", &bytes(self.count("bytes.bodies") as f64)]);
        table = self.log_rows(table);
        for (name, path) in [
            (
                "memory of the watched process and below",
                "server.memory_bytes",
            ),
            ("memory of the control group", "server.cgroup_memory_bytes"),
        ] {
            if let Some(value) = self.number(path) {
                table = table.row([name, &bytes(value)]);
            }
        }
        let over = format!("fairness over {} (Jain; 1 is even)", self.makers());
        for (name, path) in [
            (over.as_str(), "fairness"),
            ("fairness over URLs, by weight", "fairness_urls"),
            ("fairness over client addresses", "fairness_addresses"),
        ] {
            if let Some(fairness) = self.number(path) {
                table = table.row([name, &format!("{fairness:.3}")]);
            }
        }
        if let Some(terms) = self.at("tls.terms").as_str() {
            let (full, resumed) = (self.count("tls.full"), self.count("tls.resumed"));
            table = table.row([
                "TLS",
                &format!(
                    "{terms}; {} handshakes in full, {} resumed",
                    count(full),
                    count(resumed)
                ),
            ]);
        }
        let mut details = Details::new("The run, the machine and its limits").part(table);
        if let Ok(environment) = Environment::deserialize(self.at("environment")) {
            details = details.part(environment.table());
        }
        page.push(details);
        page.push(Details::new("Raw figures").part(PageElement::Raw(self.raw())));
    }

    /// What there was in the log that was replayed, if one was.
    fn log_rows(&self, mut table: PageTable) -> PageTable {
        for (name, path) in [
            ("lines of the log", "replay.lines"),
            ("requests in it that were to be sent", "replay.requests"),
            ("with other methods, left out", "replay.other_methods"),
            ("that are no line of an access log", "replay.unreadable"),
            ("whose target no request can say", "replay.unsendable"),
            ("out of order", "replay.back"),
        ] {
            if let Some(number) = self.at(path).as_u64() {
                table = table.row([name, &count(number)]);
            }
        }
        table
    }

    /// The result as JSON, without the histograms, which no person reads.
    fn raw(&self) -> String {
        let mut value = self.value.clone();
        strip(&mut value);
        format!("{value:#}")
    }
}
