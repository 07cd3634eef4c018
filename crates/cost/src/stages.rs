//! Where the time of one CGI request goes. As in 1995 a stage is the difference of two nested
//! totals: the server alone over a connection that is kept and over a new one, a process that
//! executes nothing, a static program, the same linked like the interpreter, a script that does
//! nothing, the script, and the whole request. What the server's own clock says puts them
//! together.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::bare::{self, Bare, BareJob, BareRun};
use crate::echo;
use crate::elf;
use crate::error::CostError;
use crate::kernel::start::How;
use crate::load::{ConnectionReuse, MeasuredRequest, ResponseTimes, series};
use crate::past;
use crate::private::{NOBODY, Private, TemporaryFolder, is_root};
use crate::processes::CpuUs;
use crate::script::MeasuredScript;
use crate::site::{FIXED, PLAIN, Recorded, Records, TIMED};
use crate::stop::InterruptFlag;

/// One stage.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Stage {
    /// What happens in it.
    pub(crate) name: &'static str,
    /// Difference of medians, microseconds.
    pub(crate) wall_us: f64,
    /// Difference of 99th percentiles.
    pub(crate) p99_us: f64,
    // Over all processes but the client.
    /// Difference of means; null where it is part of another.
    pub(crate) cpu_us: Option<f64>,
    /// What stood in its place in 1995, milliseconds.
    #[serde(rename = "in_1995_ms")]
    pub(crate) past: String,
    /// What is to be known about it.
    pub(crate) remark: String,
}

/// A total that stages are differences of.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Nested {
    /// What was measured.
    pub(crate) name: &'static str,
    /// How long it took.
    #[serde(rename = "wall")]
    pub(crate) times: ResponseTimes,
    /// Mean CPU time, microseconds.
    pub(crate) cpu_us: Option<f64>,
}

/// The table.
#[derive(Debug, Clone)]
pub(crate) struct Stages {
    /// The script that was measured.
    pub(crate) script: String,
    pub(crate) rows: Vec<Stage>,
    pub(crate) nested: Vec<Nested>,
    /// The whole request, over a connection of its own.
    pub(crate) total: ResponseTimes,
    pub(crate) cpu: CpuUs,
    /// What the stages together are less than the whole; more, where it is negative.
    pub(crate) unexplained_us: f64,
    /// After the answer: from the end of the output until the process was waited for.
    pub(crate) reap_us: f64,
}

/// What one URL of the private hob costs.
struct Whole {
    times: ResponseTimes,
    cpu: CpuUs,
    recorded: Recorded,
}

/// What is to be measured.
pub(crate) struct StageSubject<'a> {
    pub(crate) program: &'a Path,
    pub(crate) folder: &'a TemporaryFolder,
    pub(crate) hob: &'a Private,
    pub(crate) records: &'a Records,
    pub(crate) script: &'a MeasuredScript,
    /// Where the script answers as a CGI program.
    pub(crate) path: String,
    pub(crate) asked: &'a MeasuredRequest,
    /// Folders in which programs are looked for.
    pub(crate) search: &'a str,
    pub(crate) count: u64,
    pub(crate) stop: &'a InterruptFlag,
}

/// Measures the totals and makes the table.
pub(crate) fn measure(subject: &StageSubject<'_>) -> Result<Stages, CostError> {
    let kept = subject.whole(FIXED, ConnectionReuse::Keep)?;
    let fixed = subject.whole(FIXED, ConnectionReuse::Close)?;
    let whole = subject.whole(&subject.path, ConnectionReuse::Close)?;
    let chain = subject.chain()?;
    Ok(StageTotals {
        kept,
        fixed,
        whole,
        chain,
    }
    .stages(subject.script))
}

/// Programs started bare, each doing more than the one before; those that cannot be are not there.
struct Chain {
    copy: Bare,
    fixed: Option<Bare>,
    linked: Option<Bare>,
    nothing: Option<Bare>,
    script: Bare,
    library_count: usize,
}

impl StageSubject<'_> {
    fn whole(&self, path: &str, connection: ConnectionReuse) -> Result<Whole, CostError> {
        let (plain, timed) = (self.hob.url(PLAIN, path), self.hob.url(TIMED, path));
        let ask = |url: &str| series(url, self.asked, connection, 1, self.count, self.stop);
        let running = self.hob.resting_programs();
        let first = self.records.count();
        let with_log = ask(&timed)?;
        let recorded = self.records.after(first, with_log.answered)?;
        self.hob.settle(running);
        let before = self.hob.family.used()?;
        let without = ask(&plain)?;
        self.hob.settle(running);
        let cpu = self.hob.family.used()?.since(&before, without.answered);
        Ok(Whole {
            // Of the same requests as the server's own clock tells of, so that they can be
            // compared.
            times: with_log.times,
            cpu,
            recorded,
        })
    }

    fn chain(&self) -> Result<Chain, CostError> {
        let variables = self.variables();
        let run = |arguments: Vec<String>| BareRun {
            how: How::Vfork,
            arguments,
            variables: variables.clone(),
        };
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let script = self.script;
        let links = script
            .image(self.search)
            .and_then(|image| elf::links(&image));
        let mut runs = vec![run(Vec::new())];
        let mut fixed = None;
        let mut linked = None;
        if elf::IS_OURS_POSSIBLE {
            fixed = Some(runs.len());
            let path = self.folder.program("static", &elf::echo(None))?;
            runs.push(run(vec![text(&path)]));
        }
        if let (Some(links), true) = (&links, elf::IS_OURS_POSSIBLE) {
            linked = Some(runs.len());
            let path = self.folder.program("linked", &elf::echo(Some(links)))?;
            runs.push(run(vec![text(&path)]));
        }
        let command: Vec<String> = script
            .command(self.search)
            .iter()
            .map(|word| text(word))
            .collect();
        let with = |path: &Path| [command.clone(), vec![text(path)]].concat();
        let line = script.first_line.as_deref();
        let written = echo::write_nothing(self.folder, script.language, line, &script.path)?;
        let nothing = written.map(|path| {
            runs.push(run(with(&path)));
            runs.len() - 1
        });
        runs.push(run(with(&script.path)));
        let job = BareJob {
            runs,
            count: self.count,
            input: self.asked.body.clone().unwrap_or_default(),
            touch_bytes: 0,
            folder: script.path.parent().unwrap_or(Path::new("/")).to_owned(),
            account: is_root().then_some(NOBODY),
        };
        let all = bare::measure(self.program, &job, self.stop)?;
        let at = |index: Option<usize>| index.map(|index| all[index]);
        Ok(Chain {
            copy: all[0],
            fixed: at(fixed),
            linked: at(linked),
            nothing: at(nothing),
            script: all[all.len() - 1],
            library_count: links.map_or(0, |links| links.needed.len()),
        })
    }

    /// The variables a CGI program gets of this request.
    fn variables(&self) -> Vec<String> {
        let script = self.script.path.to_string_lossy();
        let port = self.hob.ports[PLAIN];
        let mut all: Vec<String> = [
            "GATEWAY_INTERFACE=CGI/1.1",
            "SERVER_PROTOCOL=HTTP/1.1",
            "SERVER_SOFTWARE=hob",
            "SERVER_NAME=127.0.0.1",
            "SERVER_ADDR=127.0.0.1",
            "REMOTE_ADDR=127.0.0.1",
            "REMOTE_HOST=127.0.0.1",
            "REMOTE_PORT=40000",
            "REQUEST_SCHEME=http",
            "REDIRECT_STATUS=200",
            "UNIQUE_ID=0-0-0",
            "PATH_INFO=/",
        ]
        .map(str::to_owned)
        .to_vec();
        let query = self.asked.query.as_deref().unwrap_or_default();
        let separator = if query.is_empty() { "" } else { "?" };
        all.extend([
            format!("PATH={}", self.search),
            format!("REQUEST_METHOD={}", self.asked.method),
            format!("QUERY_STRING={query}"),
            format!("REQUEST_URI={}{separator}{query}", self.path),
            format!("SCRIPT_NAME={}", self.path.trim_end_matches('/')),
            format!("SCRIPT_FILENAME={script}"),
            format!("DOCUMENT_ROOT={}", self.folder.path("site").display()),
            format!("SERVER_PORT={port}"),
            format!("HTTP_HOST=127.0.0.1:{port}"),
        ]);
        if let Some(body) = &self.asked.body {
            all.push(format!("CONTENT_LENGTH={}", body.len()));
        }
        for (name, value) in &self.asked.fields {
            let name = name.to_ascii_uppercase().replace('-', "_");
            all.push(match name.as_str() {
                "CONTENT_TYPE" => format!("CONTENT_TYPE={value}"),
                _ => format!("HTTP_{name}={value}"),
            });
        }
        for (name, value) in &self.script.settings.env {
            let begin = format!("{name}=");
            all.retain(|known| !known.starts_with(&begin));
            all.push(format!("{begin}{value}"));
        }
        all
    }
}

/// All totals.
struct StageTotals {
    kept: Whole,
    fixed: Whole,
    whole: Whole,
    chain: Chain,
}

/// A total as stages need it: median, 99th percentile, CPU time.
#[derive(Clone, Copy)]
struct Point {
    wall: f64,
    p99: f64,
    cpu: f64,
}

impl Point {
    fn first(bare: &Bare) -> Point {
        Point {
            wall: bare.first.p50_us,
            p99: bare.first.p99_us,
            cpu: bare.cpu_us(),
        }
    }

    fn less(self, other: Point) -> Point {
        Point {
            wall: self.wall - other.wall,
            p99: self.p99 - other.p99,
            cpu: self.cpu - other.cpu,
        }
    }
}

fn row(name: &'static str, point: Point, past: &str, remark: &str) -> Stage {
    Stage {
        name,
        wall_us: point.wall,
        p99_us: point.p99,
        cpu_us: Some(point.cpu),
        past: past.to_owned(),
        remark: remark.to_owned(),
    }
}

impl StageTotals {
    fn stages(&self, script: &MeasuredScript) -> Stages {
        let point = |whole: &Whole| Point {
            wall: whole.times.p50_us,
            p99: whole.times.p99_us,
            cpu: whole.cpu.total(),
        };
        let (kept, fixed) = (point(&self.kept), point(&self.fixed));
        let mut rows = vec![
            row(
                "accept, first read",
                fixed.less(kept),
                &past::text(past::CLIENT),
                "a new connection instead of a kept one, both ends",
            ),
            row(
                "parse, route",
                kept,
                &past::text(past::PARSE),
                &format!(
                    "with client and loopback; {:.0} us of it inside the server",
                    self.kept.recorded.total.p50_us
                ),
            ),
        ];
        rows.extend(self.around());
        let mut bare = self.bare_rows();
        rows.splice(3..3, bare.drain(..));
        let sum: f64 = rows.iter().map(|row| row.wall_us).sum();
        Stages {
            script: script.name(),
            rows,
            nested: self.nested(),
            total: self.whole.times,
            cpu: self.whole.cpu,
            unexplained_us: self.whole.times.p50_us - sum,
            reap_us: self.chain.script.reaped.p50_us - self.chain.script.end.p50_us,
        }
    }

    /// What the server and the spawner do around the program: before it, and after it.
    fn around(&self) -> Vec<Stage> {
        let script = &self.chain.script;
        let total = |whole: &Whole| whole.recorded.total;
        let program = self.whole.recorded.program;
        let before = Stage {
            name: "environment, hand-over",
            wall_us: program.p50_us - script.first.p50_us,
            p99_us: program.p99_us - script.first.p99_us,
            cpu_us: Some(self.whole.cpu.total() - self.fixed.cpu.total() - script.cpu_us()),
            past: "-".to_owned(),
            remark: "pipes, variables, the spawner, limits; CPU with that of the output".to_owned(),
        };
        let exit = script.end.p50_us - script.first.p50_us;
        let exit_p99 = script.end.p99_us - script.first.p99_us;
        let after = |part: fn(&ResponseTimes) -> f64| {
            part(&total(&self.whole)) - part(&total(&self.fixed)) - part(&program)
        };
        vec![
            before,
            Stage {
                name: "rest of the output, exit",
                wall_us: exit,
                p99_us: exit_p99,
                cpu_us: None,
                past: "-".to_owned(),
                remark: "from the first byte to the end of the output".to_owned(),
            },
            Stage {
                name: "output",
                wall_us: after(|times| times.p50_us) - exit,
                p99_us: after(|times| times.p99_us) - exit_p99,
                cpu_us: None,
                past: "-".to_owned(),
                remark: "the answer's head read, and all of it sent".to_owned(),
            },
        ]
    }

    fn bare_rows(&self) -> Vec<Stage> {
        let chain = &self.chain;
        let copy = Point::first(&chain.copy);
        let mut rows = vec![row(
            "create process",
            copy,
            &past::text(past::CREATE),
            "sharing memory until exec, as the spawner does",
        )];
        let mut reached = copy;
        let links = format!("{} libraries named by the program", chain.library_count);
        let steps = [
            (
                "exec",
                &chain.fixed,
                "with create process",
                "a static program of 400 bytes",
            ),
            ("dynamic link", &chain.linked, "-", links.as_str()),
            (
                "interpreter start",
                &chain.nothing,
                "-",
                "a script that does nothing",
            ),
        ];
        for (name, bare, past, remark) in steps {
            if let Some(bare) = bare {
                let point = Point::first(bare);
                rows.push(row(name, point.less(reached), past, remark));
                reached = point;
            }
        }
        let program = Point::first(&chain.script).less(reached);
        let remark = match (&chain.nothing, &chain.fixed) {
            (Some(_), _) => "until its first byte",
            (None, Some(_)) => "until its first byte, its own start with it",
            (None, None) => "until its first byte; exec and linking with it: not told apart here",
        };
        rows.push(row("program", program, &past::text(past::PROGRAM), remark));
        rows
    }

    fn nested(&self) -> Vec<Nested> {
        let whole = |name, whole: &Whole| Nested {
            name,
            times: whole.times,
            cpu_us: Some(whole.cpu.total()),
        };
        let chain = &self.chain;
        let bare = |name, bare: Option<&Bare>| {
            bare.map(|bare| Nested {
                name,
                times: bare.first,
                cpu_us: Some(bare.cpu_us()),
            })
        };
        let recorded = |name, times: ResponseTimes| {
            Some(Nested {
                name,
                times,
                cpu_us: None,
            })
        };
        let parts = self.whole.recorded;
        [
            Some(whole("server alone, connection kept", &self.kept)),
            Some(whole("server alone, new connection", &self.fixed)),
            bare("bare: process, no exec", Some(&chain.copy)),
            bare("bare: static program", chain.fixed.as_ref()),
            bare("bare: linked program", chain.linked.as_ref()),
            bare("bare: script that does nothing", chain.nothing.as_ref()),
            bare("bare: the script", Some(&chain.script)),
            recorded("server's clock: start to head", parts.program),
            recorded("server's clock: whole request", parts.total),
            Some(whole("whole request, new connection", &self.whole)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
