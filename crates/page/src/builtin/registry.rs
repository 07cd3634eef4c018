//! Registries (`DTWR_`): entries that last, by name and, if there is one, by index.

use crate::fault::FunctionFault;
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

fn value_of(call: &BuiltInCall<'_>, key: &[u8]) -> Result<Option<Vec<u8>>, FunctionFault> {
    let entries = call.services.host().registries.entries(&call.string(0))?;
    let found = entries.into_iter().find(|(known, _)| known == key);
    Ok(found.map(|(_, value)| value))
}

fn missing<T>() -> Result<T, FunctionFault> {
    Err(FunctionFault::new(3002, "the registry has no such entry"))
}

pub(super) fn create(call: &mut BuiltInCall<'_>) -> Answer {
    call.services.host().registries.create(&call.string(0))?;
    done()
}

/// Registries are open while they are used, so opening only looks whether there is one.
pub(super) fn open(call: &mut BuiltInCall<'_>) -> Answer {
    call.services.host().registries.entries(&call.string(0))?;
    done()
}

pub(super) fn close(_: &mut BuiltInCall<'_>) -> Answer {
    done()
}

pub(super) fn clear(call: &mut BuiltInCall<'_>) -> Answer {
    let registries = call.services.host().registries;
    let registry = call.string(0);
    for (key, _) in registries.entries(&registry)? {
        registries.set(&registry, &key, None)?;
    }
    done()
}

pub(super) fn delete(call: &mut BuiltInCall<'_>) -> Answer {
    call.services.host().registries.delete(&call.string(0))?;
    done()
}

fn set(call: &BuiltInCall<'_>, key: &[u8]) -> Answer {
    let value = call.text(2);
    let registries = call.services.host().registries;
    registries.set(&call.string(0), key, Some(value.bytes()))?;
    done()
}

pub(super) fn addentry(call: &mut BuiltInCall<'_>) -> Answer {
    let key = key(call, 1, 3);
    match value_of(call, &key)? {
        Some(_) => Err(FunctionFault::new(
            3003,
            "the registry has this entry already",
        )),
        None => set(call, &key),
    }
}

pub(super) fn updateentry(call: &mut BuiltInCall<'_>) -> Answer {
    let key = key(call, 1, 3);
    match value_of(call, &key)? {
        Some(_) => set(call, &key),
        None => missing(),
    }
}

/// `(registry, name [, index])`; the last argument of the plain form takes the value.
pub(super) fn rtventry(call: &mut BuiltInCall<'_>) -> Answer {
    match value_of(call, &key(call, 1, 2))? {
        Some(value) => Ok(Text::of_data(value, ValueOrigin::File)),
        None => missing(),
    }
}

pub(super) fn delentry(call: &mut BuiltInCall<'_>) -> Answer {
    let key = key(call, 1, 2);
    match value_of(call, &key)? {
        Some(_) => {
            let registries = call.services.host().registries;
            registries.set(&call.string(0), &key, None)?;
            done()
        }
        None => missing(),
    }
}

/// Fills a table with names and values: all, or those of one name with their indexes.
fn list(call: &BuiltInCall<'_>, of: Option<&[u8]>, table: usize) -> Answer {
    let table = call.table(table)?;
    let entries = call.services.host().registries.entries(&call.string(0))?;
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
        if !table.has_room() || table.cell_count() + 2 > call.services.cells_max() {
            break;
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
