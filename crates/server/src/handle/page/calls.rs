//! Calls of programs: from the thread of a run to the serving thread that has its request, which
//! has the program's route answer, and back.
//!
//! ```text
//!  thread of the run                    serving thread
//!   asks, waits  ---- ordered --------->  calls the program
//!   goes on      <--- done -------------
//! ```
//!
//! A run calls one program at a time. When its client leaves, or its time is up, the call is
//! dropped, which ends the program as it would for any other request.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Condvar, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use hob_http::Request;
use hob_page::fault::{FunctionFault, code};
use hob_page::host::{Absent, PagePrograms, ProgramAnswer, ProgramCall};
use hob_page::program::{SetValue, check_argument, set_values, variables};
use hob_trace::{Fault, Mutex};

use crate::handle::page::config::PagesSettings;
use crate::handle::page::program::{CalledProgram, find};
use crate::handle::script::call::{self, CallEnd, CallPlace};
use crate::handle::script::fail::note;
use crate::serve::context::HandlerContext;
use crate::serve::sites::Sites;

/// Bytes of all values that a program is told in one call.
const VALUES_BYTES_MAX: usize = 1 << 20;
/// Variables of one call.
const VALUES_MAX: usize = 10_000;

/// Where a run and its serving thread meet.
#[derive(Default)]
pub(super) struct CallDesk {
    state: Mutex<CallState>,
    is_done: Condvar,
}

#[derive(Default)]
struct CallState {
    ordered: Option<CallOrder>,
    done: Option<CallDone>,
    /// There will be no more calls.
    is_closed: bool,
    /// The run waits for its program.
    is_awaited: bool,
    server: Option<Waker>,
}

/// A program that is to be called.
struct CallOrder {
    /// The word that names it.
    word: String,
    call: call::ProgramCall,
}

type CallDone = Result<ProgramAnswer, FunctionFault>;

impl CallDesk {
    /// Has the serving thread call a program, and waits for what comes of it.
    fn order(&self, order: CallOrder) -> CallDone {
        let mut state = self.state.lock();
        state.done = None;
        state.ordered = Some(order);
        state.is_awaited = true;
        state.server.take().into_iter().for_each(Waker::wake);
        // The serving thread answers, or closes the desk.
        loop {
            if let Some(done) = state.done.take() {
                return done;
            }
            if state.is_closed {
                let message = "the run has ended before its program";
                return Err(FunctionFault::new(code::NOT_RUN, message));
            }
            state = self
                .is_done
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nobody calls any more, or nobody would answer.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.server.take().into_iter().for_each(Waker::wake);
        // Most runs call nothing, and a notification is a system call.
        if state.is_awaited {
            self.is_done.notify_all();
        }
    }

    fn poll_order(&self, cx: &mut Context<'_>) -> Poll<Option<CallOrder>> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Poll::Ready(None);
        }
        if let Some(order) = state.ordered.take() {
            return Poll::Ready(Some(order));
        }
        state.server = Some(cx.waker().clone());
        Poll::Pending
    }

    fn poll_closed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Poll::Ready(());
        }
        state.server = Some(cx.waker().clone());
        Poll::Pending
    }

    fn give(&self, done: CallDone) {
        self.state.lock().done = Some(done);
        self.is_done.notify_all();
    }
}

/// Who serves the calls of a run, on the serving thread.
pub(super) struct CallServer {
    pub(super) desk: Rc<HandlerContext>,
    pub(super) sites: Arc<Sites>,
    pub(super) request: Request,
    pub(super) settings: Arc<PagesSettings>,
    pub(super) calls: Arc<CallDesk>,
    /// When the run has to end.
    pub(super) deadline: Instant,
}

impl Drop for CallServer {
    /// Whatever ends the task: nobody waits for it in vain.
    fn drop(&mut self) {
        self.calls.close();
    }
}

impl CallServer {
    /// Calls programs as long as the run goes on.
    pub(super) async fn serve(self) {
        while let Some(order) = poll_fn(|cx| self.calls.poll_order(cx)).await {
            let done = self.serve_one(order).await;
            self.calls.give(done);
        }
    }

    async fn serve_one(&self, CallOrder { word, call }: CallOrder) -> CallDone {
        let values = &call.values;
        let bytes: usize = values
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        if bytes > VALUES_BYTES_MAX || values.len() > VALUES_MAX {
            self.desk.counters.limit_page_program_values.add(1);
            let message = "limits: the values for a program are more than 1 MiB or 10,000";
            return Err(FunctionFault::new(code::BAD_VALUE, message));
        }
        self.desk.counters.page_programs.add(1);
        let Some((program, rest)) = find(&self.settings.programs, &word) else {
            note(
                &self.request,
                Fault::Script,
                "the page calls a program that it may not",
            );
            self.request.set_detail(word.as_bytes());
            let message =
                format!("{word:?} is no program that pages may call; `page.programs` names those");
            return Err(FunctionFault::new(code::NO_FILE, message));
        };
        let timer = self.request.reactor().timer();
        timer.set(self.deadline.saturating_duration_since(Instant::now()));
        let mut called = pin!(self.call(program, rest, call));
        let end = poll_fn(|cx| {
            if let Poll::Ready(end) = called.as_mut().poll(cx) {
                return Poll::Ready(Some(end));
            }
            if self.calls.poll_closed(cx).is_ready() {
                return Poll::Ready(None);
            }
            while timer.poll_elapsed(cx).is_ready() {
                // It counts from the begin of a turn, which may be a while ago: a run that heard
                // of it too early would go on.
                let left = self.deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Poll::Ready(None);
                }
                timer.set(left);
            }
            Poll::Pending
        });
        match end.await {
            Some(end) => done(end),
            None => {
                let message = format!("{word}: the run has ended before its program");
                Err(FunctionFault::new(code::NOT_RUN, message))
            }
        }
    }

    async fn call(&self, program: &CalledProgram, rest: &str, call: call::ProgramCall) -> CallEnd {
        let index = |index| u32::try_from(index).unwrap_or(u32::MAX);
        let place = CallPlace {
            at: (index(program.at.0), index(program.at.1)),
            rest: rest.as_bytes(),
        };
        call::call(&self.desk, &self.sites, &self.request, place, call).await
    }
}

/// What a page gets of it.
fn done(end: CallEnd) -> CallDone {
    match end {
        CallEnd::Failed(why) => Err(FunctionFault::new(code::NOT_RUN, why)),
        CallEnd::Ran {
            output,
            code,
            values,
            is_json,
        } => {
            let (output, outs) = match is_json {
                true => json_values(output),
                false => (output, set_values(&values)),
            };
            Ok(ProgramAnswer { output, outs, code })
        }
    }
}

/// The members of an object as values that are set; a list of lists is a table. What is no object
/// stays output.
fn json_values(output: Vec<u8>) -> (Vec<u8>, Vec<SetValue>) {
    let Ok(serde_json::Value::Object(object)) = serde_json::from_slice(&output) else {
        return (output, Vec::new());
    };
    let mut values = Vec::new();
    let mut printed = Vec::new();
    for (name, value) in object {
        match value {
            serde_json::Value::Array(rows) => table_values(&name, &rows, &mut values),
            value if name == "output" => printed = text(&value),
            value => values.push((name.into(), text(&value))),
        }
    }
    (printed, values)
}

/// A table: its first row are the names of its columns.
fn table_values(name: &str, rows: &[serde_json::Value], values: &mut Vec<SetValue>) {
    let mut cells = rows
        .iter()
        .map(|row| row.as_array().map(Vec::as_slice).unwrap_or_default());
    let names = cells.next().unwrap_or_default();
    let count = |part: &str, count: usize| {
        let name = format!("{name}_{part}");
        (name.into_boxed_str(), count.to_string().into_bytes())
    };
    values.push(count("COLS", names.len()));
    values.push(count("ROWS", rows.len().saturating_sub(1)));
    for (at, column) in (1..).zip(names) {
        values.push((format!("{name}_N_{at}").into(), text(column)));
    }
    for (row, cells) in (1..).zip(cells) {
        for (at, cell) in (1..).zip(cells) {
            values.push((format!("{name}_V_{row}_{at}").into(), text(cell)));
        }
    }
}

fn text(value: &serde_json::Value) -> Vec<u8> {
    match value {
        serde_json::Value::String(text) => text.as_bytes().to_vec(),
        serde_json::Value::Null => Vec::new(),
        value => value.to_string().into_bytes(),
    }
}

/// The programs of a run on a thread that may wait.
pub(super) struct RunPrograms<'a> {
    pub(super) settings: &'a PagesSettings,
    pub(super) calls: &'a CallDesk,
}

impl PagePrograms for RunPrograms<'_> {
    fn run(&self, call: &ProgramCall) -> Result<ProgramAnswer, FunctionFault> {
        if self.settings.programs.is_empty() {
            return Absent.run(call);
        }
        let Some((word, arguments)) = call.arguments.split_first() else {
            return Err(FunctionFault::new(code::NO_FILE, "%EXEC names no program"));
        };
        for argument in arguments {
            check_argument(argument.bytes())?;
        }
        let arguments = arguments.iter().map(|argument| argument.bytes().to_vec());
        let values = variables(call)?;
        self.calls.order(CallOrder {
            word: word.to_str().into_owned(),
            call: call::ProgramCall {
                arguments: arguments.collect(),
                values,
                output_bytes_max: self.settings.program_output,
                came: Default::default(),
            },
        })
    }
}

/// Programs that nobody may call on a serving thread.
pub(super) struct UncalledPrograms<'a> {
    pub(super) settings: &'a PagesSettings,
    pub(super) is_wanted: Cell<bool>,
}

impl PagePrograms for UncalledPrograms<'_> {
    fn run(&self, call: &ProgramCall) -> Result<ProgramAnswer, FunctionFault> {
        if self.settings.programs.is_empty() {
            return Absent.run(call);
        }
        self.is_wanted.set(true);
        Err(FunctionFault::new(code::NOT_RUN, "it would have to wait"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> (String, Vec<(String, String)>) {
        let (output, values) = json_values(text.as_bytes().to_vec());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let values = values.into_iter();
        let values = values.map(|(name, value)| (name.to_string(), text(value)));
        (text(output), values.collect())
    }

    #[test]
    fn object_of_json_is_values_and_anything_else_output() {
        let (output, all) = values(r#"{"a": "x\"y", "b": 7, "c": null, "output": "<p>"}"#);
        assert_eq!(output, "<p>");
        let wanted = [("a", "x\"y"), ("b", "7"), ("c", "")];
        assert_eq!(
            all,
            wanted.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        let (_, all) = values(r#"{"T": [["id", "t"], [1, "one"], [2]]}"#);
        let wanted = [
            ("T_COLS", "2"),
            ("T_ROWS", "2"),
            ("T_N_1", "id"),
            ("T_N_2", "t"),
            ("T_V_1_1", "1"),
            ("T_V_1_2", "one"),
            ("T_V_2_1", "2"),
        ];
        assert_eq!(
            all,
            wanted.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        for text in ["[1]", "7", "{", "text", ""] {
            assert_eq!(values(text), (text.to_owned(), Vec::new()));
        }
    }

    #[test]
    fn run_that_waits_for_a_call_is_told_when_nobody_serves_it() {
        let desk = CallDesk::default();
        desk.close();
        let order = CallOrder {
            word: "a".to_owned(),
            call: call::ProgramCall {
                arguments: Vec::new(),
                values: Vec::new(),
                output_bytes_max: 1,
                came: Default::default(),
            },
        };
        assert_eq!(desk.order(order).unwrap_err().code, code::NOT_RUN);
    }
}
