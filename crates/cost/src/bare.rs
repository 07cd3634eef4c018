//! Programs started with nothing around them: no server, no network, no limits, no log. A process
//! of its own does it, the hidden command `cost-bare`, because it forks: it has one thread, is
//! small, and takes as much memory as it is told to. It gets a job as JSON on standard input and
//! answers with JSON on standard output. It ends with whoever started it, and what it started ends
//! with it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::error::CostError;
use crate::kernel::start::{
    ChildExit, ChildStreams, ExecArguments, How, Starter, become_account, go_to, touch, wait,
};
use crate::limits::{ANSWER_TIME_MAX, BODY_BYTES_MAX};
use crate::load::ResponseTimes;
use crate::private::{end, read_some};
use crate::stop::InterruptFlag;

/// Runs before those that count: the first ones read from disk.
const WARM_UP: u64 = 3;
/// How often a process that starts programs says that it goes on.
const TELL_PERIOD: Duration = Duration::from_secs(1);

/// One thing that is done again and again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BareRun {
    pub(crate) how: How,
    /// Program and arguments; none for a child that copies its input itself.
    pub(crate) arguments: Vec<String>,
    /// `NAME=value`.
    pub(crate) variables: Vec<String>,
}

/// What is to be done: every run in turn, so that all see the same machine.
#[derive(Debug, Clone)]
pub(crate) struct BareJob {
    pub(crate) runs: Vec<BareRun>,
    pub(crate) count: u64,
    /// What every child finds on its standard input.
    pub(crate) input: Vec<u8>,
    /// Memory that the starter has touched.
    pub(crate) touch_bytes: usize,
    pub(crate) folder: PathBuf,
    /// Whom the starter becomes, where it is root's.
    pub(crate) account: Option<u32>,
}

/// What came of a run, over all its repetitions. Times are from before the start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bare {
    /// Until the call that starts it returned.
    pub(crate) called: ResponseTimes,
    /// Until the first byte of its output.
    pub(crate) first: ResponseTimes,
    /// Until its output ended.
    pub(crate) end: ResponseTimes,
    /// Until it was waited for.
    pub(crate) reaped: ResponseTimes,
    /// CPU time of the starter and of the child, means.
    pub(crate) starter_us: f64,
    pub(crate) child_us: f64,
}

/// Has a job done by a process of its own.
pub(crate) fn measure(
    program: &Path,
    job: &BareJob,
    stop: &InterruptFlag,
) -> Result<Vec<Bare>, CostError> {
    stop.check()?;
    stop.tell("with no server around it");
    let failed = || CostError::system("cannot start a process that starts programs");
    let child = Command::new(program)
        .arg("cost-bare")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // With all it starts it can be ended at once.
        .process_group(0)
        .spawn()
        .map_err(failed())?;
    let mut owned = Owned(child);
    if let Some(mut stdin) = owned.0.stdin.take() {
        stdin
            .write_all(job.text().to_string().as_bytes())
            .map_err(failed())?;
    }
    let mut text = Vec::new();
    let mut heard = Instant::now();
    loop {
        stop.check()?;
        match read_some(owned.0.stdout.as_mut(), &mut text) {
            Some(0) => break,
            Some(_) => heard = Instant::now(),
            None if heard.elapsed() > ANSWER_TIME_MAX + TELL_PERIOD => {
                return Err(CostError::Script(format!(
                    "a program that was started with no server around it did not end within {} s",
                    ANSWER_TIME_MAX.as_secs()
                )));
            }
            None => {}
        }
    }
    let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
    if let Some(error) = answer["error"].as_str() {
        return Err(CostError::Script(error.to_owned()));
    }
    let runs = answer["runs"].as_array().map(Vec::as_slice);
    let runs: Option<Vec<Bare>> = runs.unwrap_or_default().iter().map(Bare::read).collect();
    runs.filter(|runs| runs.len() == job.runs.len())
        .ok_or_else(|| {
            CostError::Server("the process that starts programs ended without a result".to_owned())
        })
}

struct Owned(Child);

impl Drop for Owned {
    fn drop(&mut self) {
        // Nobody has waited for it yet, so the number is still its group's.
        if let Some(group) = Pid::from_raw(self.0.id() as i32) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        end(&mut self.0);
    }
}

impl BareJob {
    fn text(&self) -> Value {
        let run = |run: &BareRun| {
            json!({
                "how": run.how.word(),
                "arguments": run.arguments,
                "variables": run.variables,
            })
        };
        json!({
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(),
            "count": self.count,
            "input": self.input,
            "touch_bytes": self.touch_bytes,
            "folder": self.folder.to_str(),
            "account": self.account,
        })
    }

    fn read(value: &Value) -> Option<BareJob> {
        let strings = |value: &Value| -> Option<Vec<String>> {
            let all = value.as_array()?.iter();
            all.map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let run = |value: &Value| {
            Some(BareRun {
                how: How::named(value["how"].as_str()?)?,
                arguments: strings(&value["arguments"])?,
                variables: strings(&value["variables"])?,
            })
        };
        let bytes = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
        Some(BareJob {
            runs: value["runs"]
                .as_array()?
                .iter()
                .map(run)
                .collect::<Option<_>>()?,
            count: value["count"].as_u64()?,
            input: value["input"]
                .as_array()?
                .iter()
                .map(bytes)
                .collect::<Option<_>>()?,
            touch_bytes: usize::try_from(value["touch_bytes"].as_u64()?).ok()?,
            folder: PathBuf::from(value["folder"].as_str()?),
            account: value["account"]
                .as_u64()
                .and_then(|number| u32::try_from(number).ok()),
        })
    }
}

impl Bare {
    fn write(&self) -> Value {
        let times = |times: &ResponseTimes| json!([times.p50_us, times.p99_us, times.mean_us]);
        json!({
            "called": times(&self.called),
            "first": times(&self.first),
            "end": times(&self.end),
            "reaped": times(&self.reaped),
            "starter_us": self.starter_us,
            "child_us": self.child_us,
        })
    }

    fn read(value: &Value) -> Option<Bare> {
        let times = |name: &str| {
            let at = |index: usize| value[name][index].as_f64();
            Some(ResponseTimes {
                p50_us: at(0)?,
                p99_us: at(1)?,
                mean_us: at(2)?,
            })
        };
        Some(Bare {
            called: times("called")?,
            first: times("first")?,
            end: times("end")?,
            reaped: times("reaped")?,
            starter_us: value["starter_us"].as_f64()?,
            child_us: value["child_us"].as_f64()?,
        })
    }

    /// CPU time of starter and child.
    pub(crate) fn cpu_us(&self) -> f64 {
        self.starter_us + self.child_us
    }
}

/// The hidden command `cost-bare`: does the job on standard input.
pub fn bare() -> Result<(), CostError> {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(CostError::system("cannot read a job"))?;
    let job = serde_json::from_str(&text)
        .ok()
        .and_then(|value| BareJob::read(&value))
        .ok_or_else(|| CostError::Arguments("cost-bare: that is no job".to_owned()))?;
    let answer = match perform(&job) {
        Ok(runs) => json!({ "runs": runs.iter().map(Bare::write).collect::<Vec<_>>() }),
        Err(error) => json!({ "error": error.to_string() }),
    };
    println!("{answer}");
    Ok(())
}

fn perform(job: &BareJob) -> Result<Vec<Bare>, CostError> {
    let failed = |tried: &'static str| move |error| CostError::system(tried)(error);
    go_to(&job.folder).map_err(failed("cannot go to the script's folder"))?;
    if let Some(account) = job.account {
        become_account(account).map_err(failed("cannot become the account of programs"))?;
    }
    touch(job.touch_bytes).map_err(failed("cannot take memory"))?;
    let nowhere = File::options().read(true).write(true).open("/dev/null");
    let nowhere: OwnedFd = nowhere.map_err(failed("cannot open /dev/null"))?.into();
    let mut series = Vec::new();
    for run in &job.runs {
        let program = match run.arguments.is_empty() {
            true => None,
            false => Some(
                ExecArguments::new(&run.arguments, &run.variables).ok_or_else(|| {
                    CostError::Arguments("an argument or variable has a zero in it".to_owned())
                })?,
            ),
        };
        series.push(Repeated {
            run,
            starter: Starter::new(program),
            seen: Vec::new(),
        });
    }
    let mut told = Instant::now();
    for turn in 0..job.count + WARM_UP {
        for one in &mut series {
            let seen = one.once(&job.input, &nowhere)?;
            if told.elapsed() > TELL_PERIOD {
                // An empty line before the answer: it goes on.
                println!();
                told = Instant::now();
            }
            if turn >= WARM_UP {
                one.seen.push(seen);
            }
        }
    }
    Ok(series.iter().map(Repeated::result).collect())
}

/// When what happened in one run, in nanoseconds from before its start.
struct StartTimings {
    called: u64,
    first: u64,
    end: u64,
    reaped: u64,
    starter_cpu: u64,
    child_cpu: u64,
}

struct Repeated<'a> {
    run: &'a BareRun,
    starter: Starter,
    seen: Vec<StartTimings>,
}

impl Repeated<'_> {
    fn once(&mut self, input: &[u8], nowhere: &OwnedFd) -> Result<StartTimings, CostError> {
        let failed = |tried: &'static str| {
            move |error: rustix::io::Errno| CostError::system(tried)(error.into())
        };
        let (child_input, ours) =
            pipe_with(PipeFlags::CLOEXEC).map_err(failed("cannot make a pipe"))?;
        fcntl_setfl(&ours, OFlags::NONBLOCK).map_err(failed("cannot change a pipe"))?;
        let written = rustix::io::write(&ours, input);
        if input.len() > BODY_BYTES_MAX || written != Ok(input.len()) {
            return Err(CostError::Arguments(format!(
                "a body of {} bytes does not fit into a pipe here",
                input.len()
            )));
        }
        drop(ours);
        let (output, child_output) =
            pipe_with(PipeFlags::CLOEXEC).map_err(failed("cannot make a pipe"))?;
        let streams = ChildStreams {
            input: child_input.as_fd(),
            output: child_output.as_fd(),
            errors: nowhere.as_fd(),
        };
        let cpu_before = own_cpu_ns();
        let begun = Instant::now();
        let ns = || begun.elapsed().as_nanos() as u64;
        let started = self.starter.start(self.run.how, streams);
        let pid = started.map_err(CostError::system("cannot start a process"))?;
        let called = ns();
        drop((child_input, child_output));
        let mut first = None;
        let mut piece = [0u8; 64 * 1024];
        while rustix::io::retry_on_intr(|| rustix::io::read(&output, &mut piece))
            .map_err(failed("cannot read from a program"))?
            > 0
        {
            first.get_or_insert_with(ns);
        }
        let end = ns();
        let ChildExit { is_success, cpu_ns } =
            wait(pid).map_err(CostError::system("cannot wait for a program"))?;
        let reaped = ns();
        let starter_cpu = own_cpu_ns() - cpu_before;
        // A child that copies nothing prints nothing.
        let first = first.or((self.run.arguments.is_empty()).then_some(end));
        match first {
            Some(first) if is_success => Ok(StartTimings {
                called,
                first,
                end,
                reaped,
                starter_cpu,
                child_cpu: cpu_ns,
            }),
            _ => Err(CostError::Script(format!(
                "{}: started with no server around it, it {}",
                self.run.arguments.join(" "),
                if is_success {
                    "printed nothing"
                } else {
                    "failed"
                },
            ))),
        }
    }

    fn result(&self) -> Bare {
        let times = |part: fn(&StartTimings) -> u64| {
            ResponseTimes::of(self.seen.iter().map(part).collect())
        };
        Bare {
            called: times(|seen| seen.called),
            first: times(|seen| seen.first),
            end: times(|seen| seen.end),
            reaped: times(|seen| seen.reaped),
            starter_us: times(|seen| seen.starter_cpu).mean_us,
            child_us: times(|seen| seen.child_cpu).mean_us,
        }
    }
}

fn own_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> BareJob {
        BareJob {
            runs: vec![BareRun {
                how: How::PosixSpawn,
                arguments: vec!["/bin/cat".to_owned()],
                variables: vec!["A=é".to_owned()],
            }],
            count: 7,
            input: vec![0, 10, 255],
            touch_bytes: 4096,
            folder: PathBuf::from("/"),
            account: None,
        }
    }

    #[test]
    fn job_and_result_survive_their_way() {
        let job = job();
        let read = BareJob::read(&job.text()).unwrap();
        assert_eq!(read.runs, job.runs);
        assert_eq!((read.count, &read.input), (7, &job.input));
        assert_eq!((read.touch_bytes, read.account), (4096, None));
        let times = ResponseTimes {
            p50_us: 1.5,
            p99_us: 2.5,
            mean_us: 3.5,
        };
        let bare = Bare {
            called: times,
            first: times,
            end: times,
            reaped: times,
            starter_us: 4.5,
            child_us: 5.5,
        };
        assert_eq!(Bare::read(&bare.write()), Some(bare));
        assert!(BareJob::read(&json!({})).is_none());
    }

    #[test]
    fn way_that_does_not_exist_is_no_job() {
        let mut text = job().text();
        text["runs"][0]["how"] = "thread".into();
        assert!(BareJob::read(&text).is_none());
    }
}
