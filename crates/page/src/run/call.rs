//! Calls of built-in functions and of the page's own.

use std::rc::Rc;

use crate::builtin::{
    BuiltIn, BuiltInArgument, BuiltInCall, BuiltInForms, BuiltInParameter, CallForm, Services,
    TableRef,
};
use crate::fault::{FunctionFault, code};
use crate::host::Host;
use crate::tree::{
    BodyNode, Call, Callee, FunctionBody, Language, Name, NameKind, Operand, Symbol,
};
use crate::value::{Direction, Text, ValueOrigin};

use super::runner::{KnownFunction, Ran, RunFile, Runner, Stop};
use super::variables::{SlotSource, Stored, Variable};

/// What stands in a parameter's place: a value, a table, and the caller's variable.
pub(super) struct GivenArgument {
    pub(super) text: Text,
    pub(super) table: Option<TableRef>,
    variable: Option<usize>,
}

/// What a variable held before a parameter took its place.
type HeldSlot = (usize, (Vec<Variable>, Option<Stored>));

impl Runner<'_> {
    /// A call. Its value is added to `into`; a call among declarations inserts nothing.
    pub(super) fn call(
        &mut self,
        file: &Rc<RunFile>,
        call: &Call,
        into: Option<&mut Text>,
    ) -> Ran<()> {
        self.step(file, call.at)?;
        match call.callee {
            Callee::BuiltIn(function, form) => {
                let answer = self.deeper(file, call.at, |runner| {
                    runner.built_in(file, call, function, form)
                })?;
                match answer {
                    Ok(value) => {
                        if let (Some(into), Some(value)) = (into, value) {
                            into.append(value);
                        }
                        self.succeed();
                        Ok(())
                    }
                    Err(fault) => self.fail(file, call.at, None, &fault),
                }
            }
            Callee::User(symbol) => self.user(file, call, symbol, into),
        }
    }

    /// A built-in function. The inner result is what is inserted, or its return code.
    fn built_in(
        &mut self,
        file: &Rc<RunFile>,
        call: &Call,
        function: &'static BuiltIn,
        form: CallForm,
    ) -> Ran<Result<Option<Text>, FunctionFault>> {
        let arguments = &call.arguments[..];
        if form == CallForm::Change {
            for argument in arguments {
                let Operand::Variable { name, at } = argument else {
                    return Ok(Err(literal_out(function.name)));
                };
                let given = vec![BuiltInArgument::Text(self.name_text(file, *at, *name)?)];
                match self.run_built_in(function, given)? {
                    Ok(value) => self.assign_symbol(file, *at, *name, value)?,
                    Err(fault) => return Ok(Err(fault)),
                }
            }
            return Ok(Ok(None));
        }
        let has_last_out = form == CallForm::Plain
            && matches!(function.forms, BuiltInForms::Value | BuiltInForms::Change);
        let (inputs, out) = match (has_last_out, arguments.split_last()) {
            (true, Some((last, inputs))) => (inputs, Some(last)),
            (true, None) => return Ok(Err(wrong_count(function, form))),
            (false, _) => {
                let place = function.parameters.iter();
                let place = place
                    .clone()
                    .position(|known| known.direction == Direction::Out);
                (arguments, place.and_then(|place| arguments.get(place)))
            }
        };
        let required = function
            .parameters
            .iter()
            .filter(|known| !known.is_optional);
        if inputs.len() < required.count() || inputs.len() > function.parameters.len() {
            return Ok(Err(wrong_count(function, form)));
        }
        let out = match out {
            None => None,
            Some(Operand::Variable { name, at }) => Some((*name, *at)),
            Some(Operand::Value { .. }) => return Ok(Err(literal_out(function.name))),
        };
        let mut given = Vec::with_capacity(inputs.len());
        for (argument, parameter) in inputs.iter().zip(function.parameters) {
            match self.built_in_argument(file, argument, parameter)? {
                Some(argument) => given.push(argument),
                None => {
                    let message = format!("{}: {} is no table", function.name, parameter.name);
                    return Ok(Err(FunctionFault::new(1005, message)));
                }
            }
        }
        let answer = self.run_built_in(function, given)?;
        let value = match answer {
            Ok(value) => value,
            Err(fault) => return Ok(Err(fault)),
        };
        if let Some((name, at)) = out {
            self.assign_symbol(file, at, name, value)?;
            return Ok(Ok(None));
        }
        let is_inserted = form == CallForm::Value || function.forms == BuiltInForms::Print;
        Ok(Ok(is_inserted.then_some(value)))
    }

    fn run_built_in(
        &mut self,
        function: &BuiltIn,
        arguments: Vec<BuiltInArgument>,
    ) -> Ran<Result<Text, FunctionFault>> {
        let mut origin = None;
        for argument in &arguments {
            if let BuiltInArgument::Text(text) = argument {
                origin = origin.or(text.data_origin());
                self.work(text.bytes().len());
            }
        }
        let mut call = BuiltInCall {
            arguments,
            services: self,
        };
        let answer = (function.run)(&mut call);
        if self.is_exiting {
            return Err(Stop::Exit);
        }
        let answer = answer.map(|value| value.or_nothing_of(origin));
        Ok(answer.map_err(|mut fault| {
            self.used.refused_files += u32::from(fault.code == code::LIMIT);
            fault.message = format!("{}: {}", function.name, fault.message);
            fault
        }))
    }

    /// `None` is a table that is none.
    fn built_in_argument(
        &mut self,
        file: &Rc<RunFile>,
        argument: &Operand,
        parameter: &BuiltInParameter,
    ) -> Ran<Option<BuiltInArgument>> {
        if parameter.direction == Direction::Out {
            return Ok(Some(BuiltInArgument::Text(Text::new())));
        }
        if parameter.is_table {
            let table = match named(argument) {
                Some((name, at)) => self.table(file, at, name)?,
                None => None,
            };
            return Ok(table.map(BuiltInArgument::Table));
        }
        let text = self.operand_text(file, argument)?;
        Ok(Some(BuiltInArgument::Text(text)))
    }

    fn assign_symbol(
        &mut self,
        file: &Rc<RunFile>,
        at: u32,
        symbol: Symbol,
        value: Text,
    ) -> Ran<()> {
        let slot = self.slot(file, at, symbol)?;
        self.assign(file, at, slot, value)
    }

    /// All functions of the page with this name, one after the other.
    fn user(
        &mut self,
        file: &Rc<RunFile>,
        call: &Call,
        symbol: Symbol,
        mut into: Option<&mut Text>,
    ) -> Ran<()> {
        let name = file.page.name(symbol);
        let known = self.known(name);
        if known.is_empty() {
            let message = match name.get(..3).is_some_and(|s| s.eq_ignore_ascii_case("DTW")) {
                true => format!("there is no built-in function {name}"),
                false => format!("there is no function {name} up to here"),
            };
            return file.stop(call.at, message);
        }
        for function in known {
            self.deeper(file, call.at, |runner| {
                runner.function(file, call, &function, into.as_deref_mut())
            })?;
        }
        Ok(())
    }

    fn function(
        &mut self,
        file: &Rc<RunFile>,
        call: &Call,
        known: &KnownFunction,
        into: Option<&mut Text>,
    ) -> Ran<()> {
        let block = &known.block;
        if call.arguments.len() != block.parameters.len() {
            let message = format!(
                "function {} has {} parameters, and is called with {} arguments",
                block.name,
                block.parameters.len(),
                call.arguments.len()
            );
            return file.stop(call.at, message);
        }
        let mut given = Vec::with_capacity(call.arguments.len());
        for (index, argument) in call.arguments.iter().enumerate() {
            match self.given(file, known, argument, index)? {
                Some(argument) => given.push(argument),
                None => {
                    let fault = literal_out(&block.name);
                    return self.fail(file, call.at, Some(known), &fault);
                }
            }
        }
        let unset = self.unset_variables();
        let held = self.hold(known, &given)?;
        match block.language {
            Language::Macro => {
                if let FunctionBody::Statements(body) = &block.body {
                    self.print(&known.file, body)?;
                }
                self.empty_reports(known)?;
            }
            Language::Sql => self.sql(file, call.at, known, &given)?,
            Language::Program(_) => self.program(file, call.at, known, &given)?,
        }
        self.give_back(file, call.at, known, &given, held, into)?;
        self.forget(&unset);
        Ok(())
    }

    /// An argument of a function of the page; `None` is a literal where a variable is needed.
    fn given(
        &mut self,
        file: &Rc<RunFile>,
        known: &KnownFunction,
        argument: &Operand,
        index: usize,
    ) -> Ran<Option<GivenArgument>> {
        let parameter = &known.block.parameters[index];
        let mut given = GivenArgument {
            text: Text::new(),
            table: None,
            variable: None,
        };
        if let Some((name, at)) = named(argument) {
            let kind = file.page.names[name.0 as usize].kind;
            given.table = match kind {
                NameKind::Plain => self.table(file, at, name)?,
                _ => None,
            };
        }
        if parameter.direction != Direction::In {
            let Operand::Variable { name, at } = argument else {
                return Ok(given.table.is_some().then_some(given));
            };
            let slot = self.slot(file, *at, *name)?;
            given.variable = Some(slot);
            let takes_table = parameter.sql_type.is_none() && known.block.language == Language::Sql;
            if takes_table && given.table.is_none() && parameter.direction == Direction::Out {
                let table = TableRef::default();
                self.variables
                    .set(slot, Variable::Table(Rc::clone(&table)), SlotSource::Page);
                given.table = Some(table);
            }
        }
        if given.table.is_none() && parameter.direction != Direction::Out {
            given.text = self.operand_text(file, argument)?;
        }
        Ok(Some(given))
    }

    /// Puts arguments into the places of the parameters, and keeps what stood there.
    fn hold(&mut self, known: &KnownFunction, given: &[GivenArgument]) -> Ran<Vec<HeldSlot>> {
        let mut held = Vec::with_capacity(given.len() + 1);
        let at = known.block.at;
        for (parameter, given) in known.block.parameters.iter().zip(given) {
            let slot = self.slot(&known.file, at, parameter.name)?;
            held.push((slot, self.variables.take(slot)));
            let value = match &given.table {
                Some(table) => Variable::Table(Rc::clone(table)),
                None => Variable::text(given.text.clone()),
            };
            self.variables.put(slot, (vec![value], None));
        }
        if let Some(returns) = known.block.returns {
            let slot = self.slot(&known.file, at, returns)?;
            held.push((slot, self.variables.take(slot)));
        }
        Ok(held)
    }

    /// Puts back what parameters took the place of, and gives the caller what comes back.
    fn give_back(
        &mut self,
        file: &Rc<RunFile>,
        at: u32,
        known: &KnownFunction,
        given: &[GivenArgument],
        held: Vec<HeldSlot>,
        into: Option<&mut Text>,
    ) -> Ran<()> {
        let mut outs = Vec::new();
        for (index, given) in given.iter().enumerate() {
            if let (Some(variable), None) = (given.variable, &given.table) {
                outs.push((variable, self.slot_text(&known.file, at, held[index].0)?));
            }
        }
        let value = match (known.block.returns, held.last()) {
            (Some(_), Some((slot, _))) => Some(self.slot_text(&known.file, at, *slot)?),
            _ => None,
        };
        for (slot, before) in held.into_iter().rev() {
            self.variables.put(slot, before);
        }
        for (variable, value) in outs {
            self.assign(file, at, variable, value)?;
        }
        if let (Some(value), Some(into)) = (value, into) {
            into.push_text(&value);
        }
        Ok(())
    }

    /// With `DTW_VARIABLE_SCOPE LOCAL`: the variables that nobody has set yet.
    fn unset_variables(&self) -> Option<Vec<bool>> {
        let scope = self.settings.ini.value("DTW_VARIABLE_SCOPE");
        let is_local = scope.is_some_and(|scope| scope.eq_ignore_ascii_case("LOCAL"));
        let slots = self.variables.all().iter();
        is_local.then(|| slots.map(|slot| slot.items.is_empty()).collect())
    }

    fn forget(&mut self, unset: &Option<Vec<bool>>) {
        let Some(unset) = unset else {
            return;
        };
        for slot in 0..self.variables.all().len() {
            if unset.get(slot).copied().unwrap_or(true) {
                self.variables.take(slot);
            }
        }
    }

    /// Values of a function's parameters that a database or a program gave back.
    pub(super) fn take_outs(
        &mut self,
        known: &KnownFunction,
        outs: &[(Box<str>, Option<Vec<u8>>)],
        origin: ValueOrigin,
    ) -> Ran<()> {
        for parameter in &known.block.parameters {
            let name = known.file.page.name(parameter.name);
            let mut outs = outs.iter();
            let found = outs.find(|(known, _)| known.eq_ignore_ascii_case(name));
            if let (Some((_, value)), true) = (found, parameter.direction != Direction::In) {
                let slot = self.slot(&known.file, known.block.at, parameter.name)?;
                let value = Text::of_data(value.clone().unwrap_or_default(), origin);
                self.variables
                    .put(slot, (vec![Variable::text(value)], None));
            }
        }
        Ok(())
    }
}

/// The name of a bare argument, or of one that is a reference and nothing else.
fn named(argument: &Operand) -> Option<(Symbol, u32)> {
    match argument {
        Operand::Variable { name, at } => Some((*name, *at)),
        Operand::Value { body, at } => match &body[..] {
            [
                BodyNode::Reference {
                    name: Name::Fixed(name),
                    ..
                },
            ] => Some((*name, *at)),
            _ => None,
        },
    }
}

fn literal_out(function: &str) -> FunctionFault {
    let message = format!("{function}: a text stands where a variable is to be set");
    FunctionFault::new(1006, message)
}

fn wrong_count(function: &BuiltIn, form: CallForm) -> FunctionFault {
    let least = function
        .parameters
        .iter()
        .filter(|p| !p.is_optional)
        .count();
    let most = function.parameters.len();
    let more = match (form, function.forms) {
        (CallForm::Plain, BuiltInForms::Value | BuiltInForms::Change) => " and a variable",
        _ => "",
    };
    let name = function.name;
    FunctionFault::new(1003, format!("{name} takes {least} to {most} values{more}"))
}

impl Services for Runner<'_> {
    fn host(&self) -> &Host<'_> {
        &self.host
    }

    fn environment(&self, name: &[u8]) -> Text {
        self.environment_text(name)
    }

    fn set_environment(&mut self, name: &[u8], value: Text) {
        self.environment.insert(name.to_vec(), value);
    }

    fn ini(&self, name: &[u8]) -> Text {
        let value = self.settings.ini.value(&String::from_utf8_lossy(name));
        Text::of_macro(value.unwrap_or_default())
    }

    fn cookie(&self, name: &[u8]) -> Text {
        let mut cookies = self.request.cookies.iter();
        match cookies.find(|(known, _)| known.as_bytes() == name) {
            Some((_, value)) => Text::of_data(&value[..], ValueOrigin::Client),
            None => super::variables::nothing(),
        }
    }

    fn set_cookie(&mut self, cookie: String) -> Result<(), FunctionFault> {
        if self.has_begun {
            let message = "the header has left already; set cookies before much is printed";
            return Err(FunctionFault::new(code::BAD_VALUE, message));
        }
        self.head.cookies.push(cookie);
        Ok(())
    }

    fn commit(&mut self) -> Result<(), FunctionFault> {
        match (self.host.database, self.is_open) {
            (Some(database), true) => {
                database.commit()?;
                self.is_open = false;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn rollback(&mut self) -> Result<(), FunctionFault> {
        match (self.host.database, self.is_open) {
            (Some(database), true) => {
                database.rollback()?;
                self.is_open = false;
                self.has_failed = false;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn set_lasting(&mut self, is_lasting: bool) {
        self.is_lasting = is_lasting;
    }

    fn tell_visit(&mut self) {
        self.has_told_visit = true;
    }

    fn exit(&mut self) {
        self.is_exiting = true;
    }

    fn use_file(&mut self) -> Result<(), FunctionFault> {
        let files_max = self.settings.limits.files_max;
        if self.used.files >= files_max {
            let message = format!("a run uses files and registries {files_max} times at most");
            return Err(FunctionFault::new(code::LIMIT, message));
        }
        self.used.files += 1;
        Ok(())
    }

    fn file_rows_max(&self) -> usize {
        self.settings.limits.file_rows_max
    }

    fn cells_max(&self) -> usize {
        self.settings.limits.cells_max
    }

    fn value_bytes_max(&self) -> usize {
        self.settings.limits.value_bytes_max
    }
}
