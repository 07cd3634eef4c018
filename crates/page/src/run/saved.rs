//! What a visit keeps from one request to the next.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::tree::{Body, Conditional, Page};
use crate::value::{Table, Text};

use super::runner::{Ran, RunFile, Runner};
use super::variables::{SlotSource, Stored, Variable};

/// Variables of a visit between two requests.
#[derive(Clone, Debug)]
pub struct SavedVariables {
    values: Vec<(Box<str>, Vec<SavedValue>, Option<SavedBody>)>,
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
        let values = slots.map(|(index, slot)| {
            let items = slot.items.iter().filter_map(saved).collect();
            (
                self.variables.name(index).into(),
                items,
                slot.separator.as_ref().map(saved_body),
            )
        });
        SavedVariables {
            values: values.collect(),
        }
    }

    pub(super) fn restore(&mut self, saved: &SavedVariables) -> Ran<()> {
        let mut files = RestoredFiles::default();
        for (name, items, separator) in &saved.values {
            let Some(slot) = self.variables.slot(name) else {
                continue;
            };
            let separator = separator.as_ref().map(|body| files.stored(body));
            let items = items.iter().map(|item| files.variable(item)).collect();
            let source = SlotSource::Page;
            self.variables.restore(slot, items, separator, source);
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
