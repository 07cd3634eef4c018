//! Return codes, and the messages that pages have for them.

use std::rc::Rc;

use crate::fault::FunctionFault;
use crate::host::TraceEvent;
use crate::tree::{MessageCode, MessageEntry};
use crate::value::{Text, ValueOrigin};

use super::runner::{KnownFunction, Ran, RunFile, Runner, Stop};
use super::variables::{DEFAULT_MESSAGE, RETURN_CODE, SQL_CODE, SQL_STATE, SlotSource, Variable};

impl Runner<'_> {
    /// A built-in function succeeded.
    pub(super) fn succeed(&mut self) {
        let zero = Variable::Text(Rc::clone(&self.variables.zero));
        self.variables.set(RETURN_CODE, zero, SlotSource::Page);
    }

    /// Sets what a page may ask of the last call.
    pub(super) fn set_codes(&mut self, code: i64, fault: Option<&FunctionFault>) {
        let (number, state, message) = match fault {
            None if code == 0 => {
                let (state, message) = (&self.variables.good_state, &self.variables.no_message);
                (
                    Rc::clone(&self.variables.zero),
                    Rc::clone(state),
                    Rc::clone(message),
                )
            }
            _ => {
                let state = fault.and_then(|fault| fault.sql_state.as_deref());
                let state = state.unwrap_or(if code == 100 { "02000" } else { "" });
                let message = fault.map_or("", |fault| &fault.message);
                let state = Text::of_data(state, ValueOrigin::Database);
                let message = Text::of_data(message, ValueOrigin::Program);
                (
                    Rc::new(Text::of_count(code)),
                    Rc::new(state),
                    Rc::new(message),
                )
            }
        };
        for (slot, value) in [
            (RETURN_CODE, Rc::clone(&number)),
            (SQL_CODE, number),
            (SQL_STATE, state),
            (DEFAULT_MESSAGE, message),
        ] {
            self.variables
                .set(slot, Variable::Text(value), SlotSource::Page);
        }
    }

    /// A function failed: codes are set and the page's message for it is printed.
    pub(super) fn fail(
        &mut self,
        file: &Rc<RunFile>,
        at: u32,
        known: Option<&KnownFunction>,
        fault: &FunctionFault,
    ) -> Ran<()> {
        if let Some(trace) = &mut self.trace {
            let place = file.place(at);
            trace.event(TraceEvent::Code { place, fault });
        }
        self.look_for_crash(file, at)?;
        self.set_codes(fault.code, Some(fault));
        let state = fault.sql_state.as_deref();
        if self.message(known, fault.code, state)? || fault.code >= 0 {
            return Ok(());
        }
        // The log has the details; a page's visitor gets a number.
        let text = format!("<p>This page met an error ({}).</p>\n", fault.code);
        self.print_bytes(file, at, text.as_bytes())?;
        Err(Stop::Exit)
    }

    /// Prints the message for a return code, if there is one; the action behind it may end the run.
    pub(super) fn message(
        &mut self,
        known: Option<&KnownFunction>,
        code: i64,
        state: Option<&str>,
    ) -> Ran<bool> {
        if let Some(known) = known
            && let Some(entry) = pick(&known.block.messages, code, state)
        {
            self.print_message(&known.file, entry)?;
            return Ok(true);
        }
        if let Some((file, entries)) = self.messages.clone()
            && let Some(entry) = pick(&entries, code, state)
        {
            self.print_message(&file, entry)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn print_message(&mut self, file: &Rc<RunFile>, entry: &MessageEntry) -> Ran<()> {
        self.print(file, &entry.text)?;
        match entry.is_continue {
            true => Ok(()),
            false => Err(Stop::Exit),
        }
    }
}

/// The entry for a code: the exact one, its state, the default of its sign, the default.
fn pick<'m>(
    entries: &'m [MessageEntry],
    code: i64,
    state: Option<&str>,
) -> Option<&'m MessageEntry> {
    let of = |wanted: MessageCode| entries.iter().find(|entry| entry.code == wanted);
    let exact = of(MessageCode::Exactly(code));
    if exact.is_some() || code == 0 {
        return exact;
    }
    let by_state = state.and_then(|state| of(MessageCode::SqlState(state.into())));
    let by_sign = match code > 0 {
        true => of(MessageCode::PositiveDefault),
        false => of(MessageCode::NegativeDefault),
    };
    by_state.or(by_sign).or_else(|| of(MessageCode::Default))
}
