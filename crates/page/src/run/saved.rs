//! What a visit keeps from one request to the next.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::tree::{Body, Conditional, Page};
use crate::value::{Table, Text};

use super::runner::{Ran, RunFile, Runner};
use super::variables::{Stored, Variable};

/// Variables of a visit between two requests.
#[derive(Clone, Debug)]
pub struct SavedVariables {
    values: Vec<SavedVariable>,
    /// A statement ran since the last commit.
    is_open: bool,
}

impl SavedVariables {
    /// About how much memory they take. What stands in the page itself does not count.
    pub fn byte_count(&self) -> usize {
        let of_value = |value: &SavedValue| match value {
            SavedValue::Text(text) => text_bytes(text),
            SavedValue::Table(table) => {
                let cells = table.rows.iter().flatten().chain(&table.columns);
                cells.map(text_bytes).sum()
            }
            _ => size_of::<SavedValue>(),
        };
        let values = self.values.iter().map(|saved| {
            let items = saved.items.iter().map(of_value);
            size_of::<SavedVariable>() + saved.name.len() + items.sum::<usize>()
        });
        values.sum()
    }
}

fn text_bytes(text: &Text) -> usize {
    size_of::<Text>() + text.bytes().len()
}

#[derive(Clone, Debug)]
struct SavedVariable {
    name: Box<str>,
    items: Vec<SavedValue>,
    separator: Option<SavedBody>,
    /// No client replaces it.
    is_protected: bool,
}

type SavedBody = (Arc<Page>, Body);

#[derive(Clone, Debug)]
enum SavedValue {
    Text(Text),
    Stored(SavedBody),
    Environment,
    Exec(SavedBody),
    Table(Table),
    Conditional(Arc<Page>, Arc<Conditional>),
}

impl Runner<'_> {
    pub(super) fn save(&self) -> SavedVariables {
        let slots = self.variables.all().iter().enumerate();
        let slots = slots.filter(|(_, slot)| !slot.is_transient && !slot.items.is_empty());
        let values = slots.map(|(index, slot)| SavedVariable {
            name: self.variables.name(index).into(),
            items: slot.items.iter().filter_map(saved).collect(),
            separator: slot.separator.as_ref().map(saved_body),
            is_protected: slot.is_protected || slot.items.iter().any(Variable::is_from_elsewhere),
        });
        SavedVariables {
            values: values.collect(),
            is_open: self.is_open,
        }
    }

    pub(super) fn restore(&mut self, saved: &SavedVariables) -> Ran<()> {
        let mut files = RestoredFiles::default();
        self.is_open = saved.is_open;
        for saved in &saved.values {
            let Some(slot) = self.variables.slot(&saved.name) else {
                continue;
            };
            let separator = saved.separator.as_ref().map(|body| files.stored(body));
            let items = saved.items.iter().map(|item| files.variable(item));
            let items = (items.collect(), separator);
            self.variables.restore(slot, items, saved.is_protected);
        }
        Ok(())
    }
}

/// Files that kept values stand in, each once.
#[derive(Default)]
struct RestoredFiles {
    files: HashMap<usize, Rc<RunFile>>,
}

impl RestoredFiles {
    fn file(&mut self, page: &Arc<Page>) -> Rc<RunFile> {
        let file = self.files.entry(Arc::as_ptr(page).addr());
        Rc::clone(file.or_insert_with(|| RunFile::new(Arc::clone(page))))
    }

    fn stored(&mut self, (page, body): &SavedBody) -> Stored {
        Stored {
            file: self.file(page),
            body: Arc::clone(body),
        }
    }

    fn variable(&mut self, value: &SavedValue) -> Variable {
        match value {
            SavedValue::Text(text) => Variable::text(text.clone()),
            SavedValue::Stored(body) => Variable::Stored(self.stored(body)),
            SavedValue::Environment => Variable::Environment,
            SavedValue::Exec(body) => Variable::Exec(self.stored(body)),
            SavedValue::Table(table) => Variable::Table(Rc::new(RefCell::new(table.clone()))),
            SavedValue::Conditional(page, conditional) => {
                Variable::Conditional(self.file(page), Arc::clone(conditional))
            }
        }
    }
}

fn saved_body(stored: &Stored) -> SavedBody {
    (Arc::clone(&stored.file.page), Arc::clone(&stored.body))
}

fn saved(variable: &Variable) -> Option<SavedValue> {
    Some(match variable {
        Variable::Text(text) => SavedValue::Text(Text::clone(text)),
        Variable::Stored(stored) => SavedValue::Stored(saved_body(stored)),
        Variable::Environment => SavedValue::Environment,
        Variable::Exec(stored) => SavedValue::Exec(saved_body(stored)),
        Variable::Table(table) => SavedValue::Table(table.borrow().clone()),
        Variable::Conditional(file, conditional) => {
            SavedValue::Conditional(Arc::clone(&file.page), Arc::clone(conditional))
        }
        Variable::Alias(_) => return None,
    })
}
