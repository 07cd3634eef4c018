//! PagePrograms: `%EXEC` variables, and functions that another program runs.

use std::rc::Rc;

use crate::fault::FunctionFault;
use crate::host::ProgramCall;
use crate::tree::{BodyNode, FunctionBody, Language};
use crate::value::{Text, ValueOrigin};

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
        match self.host.programs.run(&call) {
            Ok(answer) => Ok(Text::of_data(answer.output, ValueOrigin::Program)),
            Err(fault) => {
                self.fail(&stored.file, at, None, &fault)?;
                Ok(Text::new())
            }
        }
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
            let name: Box<str> = known.file.page.name(parameter.name).into();
            match &given.table {
                Some(table) => call.tables.push((name, table.borrow().clone())),
                None => {
                    let sql_type = parameter.sql_type.clone();
                    call.parameters.push((name, sql_type, given.text.clone()));
                }
            }
        }
        let answer = match self.host.programs.run(&call) {
            Ok(answer) => answer,
            Err(fault) => return self.fail(file, at, Some(known), &fault),
        };
        let outs = answer.outs.into_iter();
        let outs: Vec<_> = outs.map(|(name, value)| (name, Some(value))).collect();
        self.take_outs(known, &outs, ValueOrigin::Program)?;
        let output = Text::of_data(answer.output, ValueOrigin::Program);
        self.print_text(file, at, &output)?;
        if answer.code != 0 {
            let message = format!("the program ended with {}", answer.code);
            let fault = FunctionFault::new(answer.code, message);
            return self.fail(file, at, Some(known), &fault);
        }
        self.set_codes(0, None);
        self.empty_reports(known)?;
        self.message(Some(known), 0, None)?;
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
