//! Variables: their kinds, who set them, and how they get their values.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::builtin::TableRef;
use crate::host::TraceEvent;
use crate::tree::{
    Body, BodyNode, Conditional, DefineEntry, DefineKind, DefineValue, NameKind, Operand, Symbol,
};
use crate::value::{Provenance, Table, Text, ValueOrigin};

use super::names::NameTable;
use super::runner::{Ran, RunFile, Runner, VERSION};

/// A body that is evaluated when it is needed.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) file: Rc<RunFile>,
    pub(super) body: Body,
}

#[derive(Clone)]
pub(super) enum Variable {
    Text(Rc<Text>),
    /// `%DEFINE x = "..."`: evaluated at each reference.
    Stored(Stored),
    /// `%ENVVAR`: the variable of the environment that has its name.
    Environment,
    /// `%EXEC`: a program, run at each reference.
    Exec(Stored),
    Table(TableRef),
    Conditional(Rc<RunFile>, Arc<Conditional>),
    /// Another variable; see hidden names.
    Alias(usize),
}

impl Variable {
    pub(super) fn text(text: Text) -> Self {
        Self::Text(Rc::new(text))
    }

    /// What comes from elsewhere by its kind, a client does not replace.
    pub(super) fn is_from_elsewhere(&self) -> bool {
        matches!(self, Self::Table(_) | Self::Environment | Self::Exec(_))
    }
}

/// Who set a variable.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SlotSource {
    #[default]
    Nobody,
    Page,
    Client,
}

#[derive(Default)]
pub(super) struct Slot {
    /// One, or several of a list.
    pub(super) items: Vec<Variable>,
    /// The separator, if it is a list.
    pub(super) separator: Option<Stored>,
    pub(super) source: SlotSource,
    pub(super) is_protected: bool,
    pub(super) is_transient: bool,
    /// It is being evaluated.
    is_busy: bool,
}

impl Slot {
    fn clear(&mut self) {
        let mut items = std::mem::take(&mut self.items);
        items.clear();
        items.shrink_to(KEPT_VALUES_MAX);
        *self = Self {
            items,
            ..Self::default()
        };
    }
}

/// Variables that are looked at so often that their places are fixed.
pub(super) const RETURN_CODE: usize = 0;
pub(super) const REMOVE_BLANKS: usize = 1;
pub(super) const SQL_CODE: usize = 2;
pub(super) const SQL_STATE: usize = 3;
pub(super) const DEFAULT_MESSAGE: usize = 4;

const FIXED: [&str; 5] = [
    "RETURN_CODE",
    "DTW_REMOVE_WS",
    "SQL_CODE",
    "SQL_STATE",
    "DTW_DEFAULT_MESSAGE",
];

/// So many variables are kept for the next run, with room for so many values each and names of so
/// many bytes.
const KEPT_MAX: usize = 64;
const KEPT_VALUES_MAX: usize = 8;
const KEPT_NAMES_MAX: usize = 4 << 10;

thread_local! {
    /// The variables of the last run on this thread, empty: the next one needs no memory for its
    /// own.
    static KEPT: RefCell<Option<Variables>> = const { RefCell::new(None) };
}

/// The variables of a run.
pub(super) struct Variables {
    /// As many as there are names, and behind them empty ones.
    slots: Vec<Slot>,
    names: NameTable,
    count_max: usize,
    /// What most calls leave: the return code, the state, and no message.
    pub(super) zero: Rc<Text>,
    pub(super) good_state: Rc<Text>,
    pub(super) no_message: Rc<Text>,
}

impl Variables {
    pub(super) fn new(count_max: usize) -> Self {
        let count_max = count_max.max(FIXED.len());
        if let Some(kept) = KEPT.take() {
            return Self { count_max, ..kept };
        }
        let mut variables = Self {
            slots: Vec::with_capacity(KEPT_MAX / 2),
            names: NameTable::new(),
            count_max,
            zero: Rc::new(Text::of_macro("0")),
            good_state: Rc::new(Text::of_macro("00000")),
            no_message: Rc::new(Text::new()),
        };
        for name in FIXED {
            variables.slot(name);
        }
        variables
    }

    /// Leaves the memory to the next run on this thread, unless it is much.
    pub(super) fn keep(mut self) {
        if self.slots.len() <= KEPT_MAX && self.names.byte_count() <= KEPT_NAMES_MAX {
            let used = self.names.len();
            self.slots[..used].iter_mut().for_each(Slot::clear);
            self.names.truncate(FIXED.len());
            KEPT.set(Some(self));
        }
    }

    /// The variable with this name; `None` if there are too many.
    pub(super) fn slot(&mut self, name: &str) -> Option<usize> {
        if let Some(slot) = self.names.find(name) {
            return Some(slot);
        }
        if self.names.len() >= self.count_max {
            return None;
        }
        let slot = self.names.add(name)?;
        if slot == self.slots.len() {
            self.slots.push(Slot::default());
        }
        Some(slot)
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.names.find(name)
    }

    pub(super) fn name(&self, slot: usize) -> &str {
        self.names.name(slot)
    }

    pub(super) fn at(&self, slot: usize) -> &Slot {
        &self.slots[slot]
    }

    pub(super) fn all(&self) -> &[Slot] {
        &self.slots[..self.names.len()]
    }

    pub(super) fn is_protected(&self, slot: usize) -> bool {
        self.slots[slot].is_protected
    }

    pub(super) fn set(&mut self, slot: usize, value: Variable, source: SlotSource) {
        let slot = &mut self.slots[slot];
        slot.items.clear();
        slot.items.push(value);
        slot.separator = None;
        slot.source = source;
    }

    /// One more field of a request.
    pub(super) fn add_field(&mut self, slot: usize, value: Variable) {
        let slot = &mut self.slots[slot];
        if slot.source != SlotSource::Client {
            slot.items.clear();
            slot.separator = None;
            slot.source = SlotSource::Client;
        }
        slot.items.push(value);
    }

    /// What a visit kept.
    pub(super) fn restore(
        &mut self,
        slot: usize,
        (items, separator): (Vec<Variable>, Option<Stored>),
        is_protected: bool,
    ) {
        let slot = &mut self.slots[slot];
        (slot.items, slot.separator) = (items, separator);
        slot.source = SlotSource::Page;
        slot.is_protected = is_protected;
    }

    /// Takes what a variable holds, so that a parameter can have its place.
    pub(super) fn take(&mut self, slot: usize) -> (Vec<Variable>, Option<Stored>) {
        let slot = &mut self.slots[slot];
        (std::mem::take(&mut slot.items), slot.separator.take())
    }

    pub(super) fn put(&mut self, slot: usize, held: (Vec<Variable>, Option<Stored>)) {
        let slot = &mut self.slots[slot];
        (slot.items, slot.separator) = held;
    }
}

impl<'r> Runner<'r> {
    /// `%DEFINE`.
    pub(super) fn define(
        &mut self,
        file: &Rc<RunFile>,
        kind: DefineKind,
        entries: &[DefineEntry],
    ) -> Ran<()> {
        for entry in entries {
            match entry {
                DefineEntry::Variable { name, at, value } => {
                    self.step(file, *at)?;
                    let slot = self.slot(file, *at, *name)?;
                    self.define_one(file, kind, slot, value);
                }
                DefineEntry::List {
                    separator,
                    name,
                    at,
                } => {
                    let slot = self.slot(file, *at, *name)?;
                    let slot = &mut self.variables.slots[slot];
                    if slot.source != SlotSource::Client {
                        slot.items.clear();
                        slot.source = SlotSource::Page;
                    }
                    slot.separator = Some(Stored {
                        file: Rc::clone(file),
                        body: Arc::clone(separator),
                    });
                }
                DefineEntry::Include { file: name, at } => {
                    let name = self.value(file, name)?;
                    let message = format!(
                        "the include {:?} stands inside %DEFINE; it belongs behind it, with a \
                         %DEFINE of its own",
                        name.to_str()
                    );
                    return file.stop(*at, message);
                }
            }
        }
        Ok(())
    }

    fn define_one(
        &mut self,
        file: &Rc<RunFile>,
        kind: DefineKind,
        slot: usize,
        value: &DefineValue,
    ) {
        let stored = |body: &Body| Stored {
            file: Rc::clone(file),
            body: Arc::clone(body),
        };
        let variable = match value {
            DefineValue::Text(body) => Variable::Stored(stored(body)),
            DefineValue::Conditional(conditional) => {
                Variable::Conditional(Rc::clone(file), Arc::clone(conditional))
            }
            DefineValue::Table(shape) => Variable::Table(Rc::new(RefCell::new(Table::new(*shape)))),
            DefineValue::Environment => Variable::Environment,
            DefineValue::Exec(body) => Variable::Exec(stored(body)),
        };
        let is_ours = kind == DefineKind::Protected || variable.is_from_elsewhere();
        let slot = &mut self.variables.slots[slot];
        slot.is_protected |= kind == DefineKind::Protected;
        slot.is_transient = kind == DefineKind::Transient;
        if slot.source == SlotSource::Client && !is_ours {
            return;
        }
        if slot.separator.is_none() || is_ours {
            slot.items.clear();
            slot.separator = None;
        }
        slot.items.push(variable);
        slot.source = SlotSource::Page;
    }

    /// Sets a variable to a text.
    pub(super) fn assign(&mut self, file: &RunFile, at: u32, slot: usize, value: Text) -> Ran<()> {
        if value.bytes().len() > self.settings.limits.value_bytes_max {
            return self.over(file, at, "value_bytes_max");
        }
        if let Some(trace) = &mut self.trace {
            let name = self.variables.names.name(slot);
            let (place, value) = (file.place(at), &value);
            trace.event(TraceEvent::Variable { place, name, value });
        }
        let value = Variable::text(value);
        self.variables.set(slot, value, SlotSource::Page);
        Ok(())
    }

    /// The value of a variable that controls processing; empty if nobody set it.
    pub(super) fn control(&mut self, file: &RunFile, name: &str) -> Ran<String> {
        match self.variables.find(name) {
            Some(slot) => Ok(self.slot_text(file, 0, slot)?.to_str().into_owned()),
            None => Ok(String::new()),
        }
    }

    /// Whether such a variable says yes, or what holds if nobody set it.
    pub(super) fn control_is(&mut self, file: &RunFile, name: &str, otherwise: bool) -> Ran<bool> {
        let value = self.control(file, name)?;
        Ok(match value.is_empty() {
            true => otherwise,
            false => value.eq_ignore_ascii_case("YES"),
        })
    }

    /// The table that a variable is, if it is one.
    pub(super) fn table(
        &mut self,
        file: &RunFile,
        at: u32,
        symbol: Symbol,
    ) -> Ran<Option<TableRef>> {
        let slot = self.slot(file, at, symbol)?;
        Ok(self.table_at(slot))
    }

    pub(super) fn table_at(&self, slot: usize) -> Option<TableRef> {
        match &self.variables.slots[slot].items[..] {
            [Variable::Table(table)] => Some(Rc::clone(table)),
            [Variable::Alias(target)] => self.table_at(*target),
            _ => None,
        }
    }

    /// What a name is worth here. In a report, some names are its own.
    pub(super) fn name_text(&mut self, file: &RunFile, at: u32, symbol: Symbol) -> Ran<Text> {
        let kind = file.page.names[symbol.0 as usize].kind;
        if kind != NameKind::Plain
            && let Some(text) = self.report_text(file, kind, file.page.name(symbol))?
        {
            return Ok(text);
        }
        let slot = self.slot(file, at, symbol)?;
        self.slot_text(file, at, slot)
    }

    /// What a name is worth that was put together.
    pub(super) fn computed_text(&mut self, file: &RunFile, at: u32, name: &Text) -> Ran<Text> {
        let name = name.to_str();
        let kind = NameKind::of(&name);
        if kind != NameKind::Plain
            && let Some(text) = self.report_text(file, kind, &name)?
        {
            return Ok(text);
        }
        match self.variables.find(&name) {
            Some(slot) => self.slot_text(file, at, slot),
            None => Ok(nothing()),
        }
    }

    pub(super) fn slot_text(&mut self, file: &RunFile, at: u32, slot: usize) -> Ran<Text> {
        self.step(file, at)?;
        let held = &self.variables.slots[slot];
        if let [Variable::Text(text)] = &held.items[..] {
            let text = Text::clone(text);
            self.work(text.bytes().len());
            return Ok(text);
        }
        if held.items.is_empty() {
            return Ok(match self.variables.name(slot) {
                "DTW_CURRENT_FILENAME" => Text::of_macro(&*file.page.file),
                "DTW_MACRO_FILENAME" => Text::of_macro(&*self.root.page.file),
                "DTW_MP_VERSION" => Text::of_macro(VERSION),
                _ => nothing(),
            });
        }
        if held.is_busy {
            let name = self.variables.name(slot);
            return file.stop(at, format!("variable {name} is defined by itself"));
        }
        self.variables.slots[slot].is_busy = true;
        let text = self.deeper(file, at, |runner| runner.items_text(file, at, slot));
        self.variables.slots[slot].is_busy = false;
        text
    }

    /// The one value, or those of a list that are not empty.
    fn items_text(&mut self, file: &RunFile, at: u32, slot: usize) -> Ran<Text> {
        let items = self.variables.slots[slot].items.clone();
        let separator = self.variables.slots[slot].separator.clone();
        if let ([item], None) = (&items[..], &separator) {
            return self.item_text(file, at, slot, item);
        }
        let separator = match &separator {
            Some(stored) => self.value(&stored.file, &stored.body)?,
            None => Text::of_macro(" "),
        };
        let mut text = Text::new();
        let mut is_first = true;
        for item in &items {
            let value = self.item_text(file, at, slot, item)?;
            if value.is_empty() {
                continue;
            }
            if !is_first {
                text.push_text(&separator);
            }
            is_first = false;
            text.push_text(&value);
            if text.bytes().len() > self.settings.limits.value_bytes_max {
                return self.over(file, at, "value_bytes_max");
            }
        }
        Ok(text)
    }

    fn item_text(&mut self, file: &RunFile, at: u32, slot: usize, item: &Variable) -> Ran<Text> {
        match item {
            Variable::Text(text) => Ok(Text::clone(text)),
            Variable::Stored(stored) => self.value(&stored.file, &stored.body),
            Variable::Environment => {
                let name = self.variables.name(slot).as_bytes().to_vec();
                Ok(self.environment_text(&name))
            }
            Variable::Exec(stored) => {
                let stored = stored.clone();
                self.exec_text(&stored, at)
            }
            Variable::Table(_) => Ok(Text::new()),
            Variable::Conditional(file, conditional) => self.conditional_text(file, conditional),
            Variable::Alias(target) => self.slot_text(file, at, *target),
        }
    }

    fn conditional_text(&mut self, file: &Rc<RunFile>, conditional: &Conditional) -> Ran<Text> {
        let is_taken = match &conditional.test {
            Some(test) => !self.operand_text(file, test)?.is_empty(),
            None => return self.complete_text(file, conditional),
        };
        match (is_taken, &conditional.otherwise) {
            (true, _) => self.value(file, &conditional.then),
            (false, Some(otherwise)) => self.value(file, otherwise),
            (false, None) => Ok(Text::new()),
        }
    }

    /// The text, or what stands behind `:` if a reference in it is empty.
    fn complete_text(&mut self, file: &Rc<RunFile>, conditional: &Conditional) -> Ran<Text> {
        let mut text = Text::new();
        for node in conditional.then.iter() {
            let part = self.value(file, std::slice::from_ref(node))?;
            let is_reference = matches!(node, BodyNode::Reference { .. } | BodyNode::Call(_));
            if is_reference && part.is_empty() {
                return match &conditional.otherwise {
                    Some(otherwise) => self.value(file, otherwise),
                    None => Ok(Text::new()),
                };
            }
            text.push_text(&part);
        }
        Ok(text)
    }

    pub(super) fn operand_text(&mut self, file: &Rc<RunFile>, operand: &Operand) -> Ran<Text> {
        match operand {
            Operand::Variable { name, at } => self.name_text(file, *at, *name),
            Operand::Value { body, .. } => self.value(file, body),
        }
    }

    pub(super) fn environment_text(&self, name: &[u8]) -> Text {
        if let Some(value) = self.environment.get(name) {
            return value.clone();
        }
        match self.host.environment.variable(name) {
            Some(value) => Text::of_data(&value[..], ValueOrigin::Environment),
            None => nothing(),
        }
    }
}

/// Nobody set it: empty data, so that a statement has a parameter in its place.
pub(super) fn nothing() -> Text {
    Text::of("", Provenance::of(ValueOrigin::Client))
}
