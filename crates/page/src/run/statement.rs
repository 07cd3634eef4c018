//! Functions whose body is a statement.

use std::rc::Rc;

use crate::fault::FunctionFault;
use crate::host::TraceEvent;
use crate::sql::{BindRules, CallParameter, DatabaseName, Statement, bind, bind_call};
use crate::tree::FunctionBody;
use crate::value::{Direction, ValueOrigin};

use super::call::GivenArgument;
use super::report::Reporter;
use super::runner::{KnownFunction, Ran, RunFile, Runner};

impl Runner<'_> {
    pub(super) fn sql(
        &mut self,
        file: &Rc<RunFile>,
        at: u32,
        known: &KnownFunction,
        given: &[GivenArgument],
    ) -> Ran<()> {
        let statement = match self.statement(known, given)? {
            Ok(statement) => statement,
            Err(fault) => {
                self.has_failed = true;
                return self.fail(&known.file, known.block.at, Some(known), &fault);
            }
        };
        let Some(database) = self.host.database else {
            let fault = FunctionFault::new(-1, "this route has no database");
            return self.fail(file, at, Some(known), &fault);
        };
        self.show(&known.file, &statement)?;
        let name = self.database_name(file)?;
        self.used.statements += 1;
        self.is_open = true;
        let clock = self.host.clock;
        let before = clock.micros();
        let mut reporter = Reporter::new(self, known, given);
        let answer = database.run(&name, &statement, &mut reporter);
        let micros = clock.micros().saturating_sub(before);
        let (rows, results) = (reporter.rows, reporter.results);
        let ended = match &answer {
            Ok(_) => reporter.end(),
            Err(_) => reporter.give_up(),
        };
        if let Some(trace) = &mut self.trace {
            trace.event(TraceEvent::Statement {
                place: known.file.place(known.block.at),
                statement: &statement,
                rows,
                micros,
                fault: answer.as_ref().err(),
            });
        }
        ended?;
        let done = match answer {
            Ok(done) => done,
            Err(fault) => {
                self.has_failed = true;
                // What was ended because the run has to end is no failure for the page to go on
                // after.
                self.look_at_clock(&known.file, known.block.at)?;
                return self.fail(file, at, Some(known), &fault);
            }
        };
        self.take_outs(known, &done.outs, ValueOrigin::Database)?;
        if self
            .control(file, "TRANSACTION_SCOPE")?
            .eq_ignore_ascii_case("SINGLE")
        {
            if let Err(fault) = database.commit() {
                self.has_failed = true;
                return self.fail(file, at, Some(known), &fault);
            }
            self.is_open = false;
        }
        let found_nothing = match results {
            0 => is_change(&statement.text) && done.changed_rows == 0,
            _ => rows == 0,
        };
        let code = match (done.warning, found_nothing) {
            (0, true) => 100,
            (warning, _) => warning,
        };
        self.set_codes(code, None);
        self.message(Some(known), code, None)?;
        Ok(())
    }

    /// The statement with its parameters, or why it is refused.
    fn statement(
        &mut self,
        known: &KnownFunction,
        given: &[GivenArgument],
    ) -> Ran<Result<Statement, FunctionFault>> {
        let file = &known.file;
        let FunctionBody::Statements(body) = &known.block.body else {
            let message = "a function of SQL has no statement";
            return Ok(Err(FunctionFault::new(-1, message)));
        };
        let text = self.value(file, body)?;
        let names = self.control(file, "DTW_SQL_IDENT")?;
        let is_upper = match &*self.control(file, "DB_CASE")?.to_ascii_uppercase() {
            "UPPER" => Some(true),
            "LOWER" => Some(false),
            _ => None,
        };
        let rules = BindRules {
            names: names.split_whitespace().map(str::to_string).collect(),
            is_upper,
        };
        let mut statement = match bind(&text, &rules) {
            Ok(statement) => statement,
            Err(fault) => return Ok(Err(fault)),
        };
        let mut parameters = Vec::new();
        for (parameter, given) in known.block.parameters.iter().zip(given) {
            let is_result = parameter.direction == Direction::Out && parameter.sql_type.is_none();
            if given.table.is_none() && !is_result {
                parameters.push(CallParameter {
                    name: file.page.name(parameter.name),
                    sql_type: parameter.sql_type.as_deref(),
                    direction: parameter.direction,
                    value: &given.text,
                });
            }
        }
        bind_call(&mut statement, given.len() - parameters.len(), &parameters);
        Ok(Ok(statement))
    }

    fn database_name(&mut self, file: &RunFile) -> Ran<DatabaseName> {
        let mut name = DatabaseName {
            database: self.control(file, "DATABASE")?,
            ..DatabaseName::default()
        };
        if name.database.is_empty() {
            name.database = self.control(file, "LOCATION")?;
        }
        if name.database.eq_ignore_ascii_case("*LOCAL") {
            name.database.clear();
        }
        if self.settings.has_page_logins {
            name.login = self.control(file, "LOGIN")?;
            name.password = self.control(file, "PASSWORD")?;
        }
        Ok(name)
    }

    /// `SHOWSQL`, if the initialization file allows it.
    fn show(&mut self, file: &Rc<RunFile>, statement: &Statement) -> Ran<()> {
        if !self.settings.ini.is_on("DTW_SHOWSQL") || !self.control_is(file, "SHOWSQL", false)? {
            return Ok(());
        }
        self.print_bytes(file, 0, b"<pre>")?;
        let text = crate::value::Text::of_data(&*statement.text, ValueOrigin::Program);
        self.print_text(file, 0, &text)?;
        self.print_bytes(file, 0, b"</pre>\n")
    }
}

fn is_change(statement: &str) -> bool {
    let word = statement.split_whitespace().next().unwrap_or_default();
    ["UPDATE", "DELETE", "INSERT"]
        .iter()
        .any(|change| change.eq_ignore_ascii_case(word))
}
