//! Registries (`DTWR_`): entries that last, by name and, if there is one, by index.

use crate::fault::{FunctionFault, code};
use crate::host::{Registries, RegistryChange, RegistryEntry};
use crate::value::{Text, ValueOrigin};

use super::call::{Answer, BuiltInCall};

fn done() -> Answer {
    Ok(Text::new())
}

/// The key of an entry: its name, and its index behind a NUL byte.
fn key(call: &BuiltInCall<'_>, name: usize, index: usize) -> Vec<u8> {
    let mut key = call.text(name).bytes().to_vec();
    key.retain(|byte| *byte != 0);
    if call.has(index) {
        key.push(0);
        key.extend_from_slice(call.text(index).bytes());
    }
    key
}

/// The registries of the run, of which this is one more use.
fn registries<'c>(call: &'c mut BuiltInCall<'_>) -> Result<&'c dyn Registries, FunctionFault> {
    call.services.use_file()?;
    Ok(call.services.host().registries)
}

fn entries(call: &mut BuiltInCall<'_>) -> Result<Vec<RegistryEntry>, FunctionFault> {
    let registry = call.string(0);
    registries(call)?.entries(&registry)
}

fn change(call: &mut BuiltInCall<'_>, change: &RegistryChange<'_>) -> Answer {
    let registry = call.string(0);
    registries(call)?.change(&registry, change)?;
    done()
}

pub(super) fn create(call: &mut BuiltInCall<'_>) -> Answer {
    let registry = call.string(0);
    registries(call)?.create(&registry)?;
    done()
}

/// Registries are open while they are used, so opening only looks whether there is one.
pub(super) fn open(call: &mut BuiltInCall<'_>) -> Answer {
    entries(call)?;
    done()
}

pub(super) fn close(_: &mut BuiltInCall<'_>) -> Answer {
    done()
}

pub(super) fn clear(call: &mut BuiltInCall<'_>) -> Answer {
    change(call, &RegistryChange::Clear)
}

pub(super) fn delete(call: &mut BuiltInCall<'_>) -> Answer {
    let registry = call.string(0);
    registries(call)?.delete(&registry)?;
    done()
}

pub(super) fn addentry(call: &mut BuiltInCall<'_>) -> Answer {
    let (key, value) = (key(call, 1, 3), call.text(2));
    change(call, &RegistryChange::Add(&key, value.bytes()))
}

pub(super) fn updateentry(call: &mut BuiltInCall<'_>) -> Answer {
    let (key, value) = (key(call, 1, 3), call.text(2));
    change(call, &RegistryChange::Update(&key, value.bytes()))
}

/// `(registry, name [, index])`; the last argument of the plain form takes the value.
pub(super) fn rtventry(call: &mut BuiltInCall<'_>) -> Answer {
    let key = key(call, 1, 2);
    let entries = entries(call)?;
    match entries.into_iter().find(|(known, _)| *known == key) {
        Some((_, value)) => Ok(Text::of_data(value, ValueOrigin::File)),
        None => Err(FunctionFault::new(
            code::NO_ENTRY,
            "the registry has no such entry",
        )),
    }
}

pub(super) fn delentry(call: &mut BuiltInCall<'_>) -> Answer {
    let key = key(call, 1, 2);
    change(call, &RegistryChange::Remove(&key))
}

/// Fills a table with names and values: all, or those of one name with their indexes.
fn list(call: &mut BuiltInCall<'_>, of: Option<&[u8]>, table: usize) -> Answer {
    let entries = entries(call)?;
    let table = call.table(table)?;
    let mut table = table.borrow_mut();
    table.clear();
    table.columns = vec![Text::of_macro("Name"), Text::of_macro("Value")];
    for (key, value) in entries {
        let mut parts = key.splitn(2, |byte| *byte == 0);
        let name = parts.next().unwrap_or_default();
        let index = parts.next();
        let shown = match (of, index) {
            (Some(of), Some(index)) if of == name => index.to_vec(),
            (Some(_), _) => continue,
            (None, Some(index)) => [name, b"(", index, b")"].concat(),
            (None, None) => name.to_vec(),
        };
        if !table.has_room() {
            break;
        }
        if table.cell_count() + 2 > call.services.cells_max() {
            let message = "the table would have more cells than one may";
            return Err(FunctionFault::new(code::LIMIT, message));
        }
        let text = |bytes: Vec<u8>| Text::of_data(bytes, ValueOrigin::File);
        table.rows.push(vec![text(shown), text(value)]);
    }
    done()
}

pub(super) fn listreg(call: &mut BuiltInCall<'_>) -> Answer {
    list(call, None, 1)
}

pub(super) fn listsub(call: &mut BuiltInCall<'_>) -> Answer {
    let name = call.text(1);
    list(call, Some(name.bytes()), 2)
}
