//! What a built-in function is, and how one is called.

use std::cell::RefCell;
use std::rc::Rc;

use crate::fault::{FunctionFault, code};
use crate::host::Host;
use crate::value::{Direction, Table, Text};

/// A row of the table of built-in functions.
pub struct BuiltIn {
    /// As it is usually written.
    pub name: &'static str,
    /// In which forms it can be called.
    pub forms: BuiltInForms,
    /// Its parameters; the last argument of the plain form of a value function is not among them.
    pub parameters: &'static [BuiltInParameter],
    /// How many macros use it.
    pub tier: Tier,
    /// What it does, in one sentence.
    pub summary: &'static str,
    pub(crate) run: fn(&mut BuiltInCall<'_>) -> Answer,
}

impl std::fmt::Debug for BuiltIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for BuiltIn {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for BuiltIn {}

impl BuiltIn {
    /// Its name in one of its forms.
    pub fn written(&self, form: CallForm) -> String {
        let letter = match form {
            CallForm::Plain => return self.name.to_string(),
            CallForm::Value => 'r',
            CallForm::Change => 'm',
        };
        let prefixes = ["DTW_TB_", "DTW_", "DTWF_", "DTWR_"];
        let mut prefixes = prefixes
            .iter()
            .filter(|prefix| self.name.starts_with(**prefix));
        let prefix = prefixes.next().copied().unwrap_or_default();
        format!("{prefix}{letter}{}", &self.name[prefix.len()..])
    }
}

/// Forms of a built-in function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BuiltInForms {
    /// The plain one only, which inserts nothing.
    Plain,
    /// The plain one only, which prints its value.
    Print,
    /// The plain one with a last OUT argument, and `r`, which gives the value.
    Value,
    /// Besides those, `m`, which changes every variable named.
    Change,
}

/// How a call names a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallForm {
    /// `@DTW_name(...)`.
    Plain,
    /// `@DTW_rname(...)`.
    Value,
    /// `@DTW_mname(...)`.
    Change,
}

/// How common a function is in real macros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tier {
    /// Nearly every macro needs some of these.
    A,
    /// Some macros need them.
    B,
    /// Hardly any does.
    C,
    /// The language did not have it.
    Ours,
}

/// A parameter of a built-in function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BuiltInParameter {
    /// For the reference.
    pub name: &'static str,
    /// Which way it goes.
    pub direction: Direction,
    /// It may be left out, with all that follow it.
    pub is_optional: bool,
    /// It is a table.
    pub is_table: bool,
}

/// What comes of a call: a value, or a return code.
pub(crate) type Answer = Result<Text, FunctionFault>;

pub(crate) type TableRef = Rc<RefCell<Table>>;

#[derive(Clone, Debug)]
pub(crate) enum BuiltInArgument {
    Text(Text),
    Table(TableRef),
}

/// What functions may ask of the run they are called in.
pub(crate) trait Services {
    fn host(&self) -> &Host<'_>;
    fn environment(&self, name: &[u8]) -> Text;
    fn set_environment(&mut self, name: &[u8], value: Text);
    fn ini(&self, name: &[u8]) -> Text;
    fn cookie(&self, name: &[u8]) -> Text;
    fn set_cookie(&mut self, cookie: String) -> Result<(), FunctionFault>;
    fn commit(&mut self) -> Result<(), FunctionFault>;
    fn rollback(&mut self) -> Result<(), FunctionFault>;
    /// Whether variables last beyond this request.
    fn set_lasting(&mut self, is_lasting: bool);
    /// The page says how its visit goes on.
    fn tell_visit(&mut self);
    fn exit(&mut self);
    /// Counts a use of a file or a registry; refused where there were too many.
    fn use_file(&mut self) -> Result<(), FunctionFault>;
    fn file_rows_max(&self) -> usize;
    fn cells_max(&self) -> usize;
    fn value_bytes_max(&self) -> usize;
}

/// A call with its arguments.
pub(crate) struct BuiltInCall<'c> {
    pub(crate) arguments: Vec<BuiltInArgument>,
    pub(crate) services: &'c mut dyn Services,
}

pub(crate) fn bad_value<T>(message: impl Into<String>) -> Result<T, FunctionFault> {
    Err(FunctionFault::new(code::BAD_VALUE, message))
}

impl BuiltInCall<'_> {
    pub(crate) fn has(&self, index: usize) -> bool {
        match self.arguments.get(index) {
            Some(BuiltInArgument::Text(text)) => !text.is_empty(),
            Some(BuiltInArgument::Table(_)) => true,
            None => false,
        }
    }

    pub(crate) fn text(&self, index: usize) -> Text {
        match self.arguments.get(index) {
            Some(BuiltInArgument::Text(text)) => text.clone(),
            _ => Text::new(),
        }
    }

    pub(crate) fn string(&self, index: usize) -> String {
        match self.arguments.get(index) {
            Some(BuiltInArgument::Text(text)) => text.to_str().into_owned(),
            _ => String::new(),
        }
    }

    pub(crate) fn table(&self, index: usize) -> Result<TableRef, FunctionFault> {
        match self.arguments.get(index) {
            Some(BuiltInArgument::Table(table)) => Ok(Rc::clone(table)),
            _ => Err(FunctionFault::new(
                1005,
                format!("argument {} is not a table", index + 1),
            )),
        }
    }

    /// A whole number, zero or more.
    pub(crate) fn count(&self, index: usize) -> Result<usize, FunctionFault> {
        let text = self.string(index);
        match text.trim().parse() {
            Ok(count) => Ok(count),
            Err(_) => bad_value(format!(
                "argument {} is {text:?}, and no whole number",
                index + 1
            )),
        }
    }

    /// A whole number, or what holds if the argument was left out.
    pub(crate) fn count_or(&self, index: usize, otherwise: usize) -> Result<usize, FunctionFault> {
        match self.has(index) {
            true => self.count(index),
            false => Ok(otherwise),
        }
    }

    /// A position, counted from one; given back as an index.
    pub(crate) fn index(&self, index: usize) -> Result<usize, FunctionFault> {
        match self.count(index)? {
            0 => bad_value(format!("argument {} is 0; positions begin at 1", index + 1)),
            position => Ok(position - 1),
        }
    }

    /// The first letter of an option, upper case.
    pub(crate) fn option(&self, index: usize, otherwise: u8) -> u8 {
        let text = self.text(index);
        text.bytes()
            .first()
            .map_or(otherwise, u8::to_ascii_uppercase)
    }

    /// A filling character; a blank if it was left out.
    pub(crate) fn filling(&self, index: usize) -> Text {
        match self.has(index) {
            true => {
                let text = self.text(index);
                text.slice(0..text.char_start(1))
            }
            false => Text::of_macro(" "),
        }
    }

    /// Refuses a value that would be larger than a run may hold.
    pub(crate) fn allow_bytes(&self, bytes: usize) -> Result<(), FunctionFault> {
        match bytes > self.services.value_bytes_max() {
            true => bad_value("the value would be larger than a run may hold"),
            false => Ok(()),
        }
    }
}
