//! Programs: `%EXEC` variables, and functions that another program runs.

use std::rc::Rc;

use crate::fault::FunctionFault;
use crate::host::{ProgramAnswer, ProgramCall};
use crate::program::set_table;
use crate::tree::{BodyNode, FunctionBody, Language};
use crate::value::{Direction, Text, ValueOrigin};

use super::call::GivenArgument;
use super::runner::{KnownFunction, Ran, RunFile, Runner};
use super::variables::Stored;

impl Runner<'_> {
    /// What the program of an `%EXEC` variable prints.
    pub(super) fn exec_text(&mut self, stored: &Stored, at: u32) -> Ran<Text> {
        let arguments = self.arguments(&stored.file, &stored.body)?;
        let call = ProgramCall {
            language: "".into(),
            arguments,
            parameters: Vec::new(),
            tables: Vec::new(),
        };
        match self.run_program(&stored.file, at, &call)? {
            Ok(answer) => {
                if let Some(fault) = failed(&answer) {
                    self.fail(&stored.file, at, None, &fault)?;
                }
                Ok(Text::of_data(answer.output, ValueOrigin::Program))
            }
            Err(fault) => {
                self.fail(&stored.file, at, None, &fault)?;
                Ok(Text::new())
            }
        }
    }

    /// Has the program run. Only the author says which one.
    fn run_program(
        &mut self,
        file: &Rc<RunFile>,
        at: u32,
        call: &ProgramCall,
    ) -> Ran<Result<ProgramAnswer, FunctionFault>> {
        self.used.programs += 1;
        if self.used.programs > self.settings.limits.programs_max {
            return self.over(file, at, "programs_max");
        }
        if call.arguments.first().is_some_and(Text::has_data) {
            let message = "which program is run is for the page to say, and not for data in it";
            return Ok(Err(FunctionFault::new(-1, message)));
        }
        let answer = self.host.programs.run(call);
        self.look_at_clock(file, at)?;
        if let Ok(answer) = &answer {
            self.work(answer.output.len());
        }
        Ok(answer)
    }

    /// A function whose body names a program.
    pub(super) fn program(
        &mut self,
        file: &Rc<RunFile>,
        at: u32,
        known: &KnownFunction,
        given: &[GivenArgument],
    ) -> Ran<()> {
        let (Language::Program(language), FunctionBody::Exec(body)) =
            (&known.block.language, &known.block.body)
        else {
            let message = "a program inside a page is not run; %EXEC names one that is";
            let fault = FunctionFault::new(-1, message);
            return self.fail(file, at, Some(known), &fault);
        };
        let mut call = ProgramCall {
            language: language.clone(),
            arguments: self.arguments(&known.file, body)?,
            parameters: Vec::new(),
            tables: Vec::new(),
        };
        for (parameter, given) in known.block.parameters.iter().zip(given) {
            if parameter.direction == Direction::Out {
                continue;
            }
            let name: Box<str> = known.file.page.name(parameter.name).into();
            match &given.table {
                Some(table) => call.tables.push((name, table.borrow().clone())),
                None => {
                    let sql_type = parameter.sql_type.clone();
                    call.parameters.push((name, sql_type, given.text.clone()));
                }
            }
        }
        let mut answer = match self.run_program(file, at, &call)? {
            Ok(answer) => answer,
            Err(fault) => return self.fail(file, at, Some(known), &fault),
        };
        if let Err(fault) = self.take_tables(known, given, &answer) {
            return self.fail(file, at, Some(known), &fault);
        }
        let outs = std::mem::take(&mut answer.outs).into_iter();
        let outs: Vec<_> = outs.map(|(name, value)| (name, Some(value))).collect();
        self.take_outs(known, &outs, ValueOrigin::Program)?;
        let output = Text::of_data(std::mem::take(&mut answer.output), ValueOrigin::Program);
        self.print_text(file, at, &output)?;
        if let Some(fault) = failed(&answer) {
            return self.fail(file, at, Some(known), &fault);
        }
        self.set_codes(0, None);
        self.empty_reports(known)?;
        self.message(Some(known), 0, None)?;
        Ok(())
    }

    /// Tables that the program has set.
    fn take_tables(
        &self,
        known: &KnownFunction,
        given: &[GivenArgument],
        answer: &ProgramAnswer,
    ) -> Result<(), FunctionFault> {
        for (parameter, given) in known.block.parameters.iter().zip(given) {
            let (Some(table), false) = (&given.table, parameter.direction == Direction::In) else {
                continue;
            };
            let name = known.file.page.name(parameter.name);
            let (shape, cells_max) = (table.borrow().shape, self.settings.limits.cells_max);
            if let Some(set) = set_table(&answer.outs, name, shape, cells_max)? {
                *table.borrow_mut() = set;
            }
        }
        Ok(())
    }

    /// The program and its arguments: cut at blanks of the author's text, before values are put in.
    fn arguments(&mut self, file: &Rc<RunFile>, body: &[BodyNode]) -> Ran<Vec<Text>> {
        let mut arguments: Vec<Text> = Vec::new();
        let mut is_open = false;
        let mut quote = None;
        for node in body {
            let bytes: &[u8] = match node {
                BodyNode::Text { start, end, .. } => file.page.text(*start, *end),
                BodyNode::Quote => b"\"",
                _ => {
                    let value = self.value(file, std::slice::from_ref(node))?;
                    if !is_open {
                        arguments.push(Text::new());
                        is_open = true;
                    }
                    if let Some(argument) = arguments.last_mut() {
                        argument.push_text(&value);
                    }
                    continue;
                }
            };
            for byte in bytes {
                if quote == Some(*byte) {
                    quote = None;
                    continue;
                }
                if quote.is_none() && byte.is_ascii_whitespace() {
                    is_open = false;
                    continue;
                }
                if !is_open {
                    arguments.push(Text::new());
                    is_open = true;
                }
                if quote.is_none() && matches!(byte, b'"' | b'\'') {
                    quote = Some(*byte);
                    continue;
                }
                if let Some(argument) = arguments.last_mut() {
                    argument.push_macro(&[*byte]);
                }
            }
        }
        Ok(arguments)
    }
}

/// What its exit code says, unless it is 0.
fn failed(answer: &ProgramAnswer) -> Option<FunctionFault> {
    let code = answer.code;
    (code != 0).then(|| FunctionFault::new(code, format!("the program ended with {code}")))
}
