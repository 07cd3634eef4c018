//! A value where a driver finds it, and room for what a procedure gives back.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::message::{DriverFault, Value, ValueWay};

use super::{sql, too_large};

/// Characters from which on a text is a long one.
const LONG_TEXT: usize = 4_000;
/// Characters of a value that a procedure gives back.
const OUT_UNITS: usize = 32_000;

/// A value where a driver finds it.
pub(super) struct Bound {
    /// Which way it goes.
    pub(super) way: ValueWay,
    content: BoundContent,
    /// Its length in bytes, or that it is NULL.
    pub(super) indicator: isize,
}

enum BoundContent {
    Null,
    Integer(i64),
    Real(f64),
    Text(Vec<u16>),
    /// Room for what comes back, which begins with what goes there.
    Out(Vec<u16>),
}

impl Bound {
    pub(super) fn of((way, value): (ValueWay, Value)) -> Bound {
        if way != ValueWay::In {
            return Bound::with_room(way, &value);
        }
        let (content, indicator) = match value {
            Value::Null => (BoundContent::Null, sql::NULL_DATA),
            Value::Integer(number) => (BoundContent::Integer(number), 8),
            Value::Real(number) => (BoundContent::Real(number), 8),
            Value::Text(text) => {
                let text: Vec<u16> = text.encode_utf16().collect();
                let bytes = isize::try_from(text.len() * 2).unwrap_or(isize::MAX);
                (BoundContent::Text(text), bytes)
            }
        };
        Bound {
            way,
            content,
            indicator,
        }
    }

    /// One that comes back, as text.
    fn with_room(way: ValueWay, value: &Value) -> Bound {
        let text = match value {
            Value::Null => None,
            Value::Integer(number) => Some(number.to_string()),
            Value::Real(number) => Some(number.to_string()),
            Value::Text(text) => Some(text.clone()),
        };
        let mut room: Vec<u16> = text.iter().flat_map(|text| text.encode_utf16()).collect();
        let indicator = match text {
            None => sql::NULL_DATA,
            Some(_) => isize::try_from(room.len() * 2).unwrap_or(isize::MAX),
        };
        room.resize(room.len().max(OUT_UNITS) + 1, 0);
        Bound {
            way,
            content: BoundContent::Out(room),
            indicator,
        }
    }

    /// Which way it goes, and how many bytes may come back.
    pub(super) fn way(&self) -> (i16, isize) {
        let room = match &self.content {
            BoundContent::Out(room) => isize::try_from(room.len() * 2).unwrap_or(0),
            _ => 0,
        };
        let way = match self.way {
            ValueWay::In => sql::PARAM_INPUT,
            ValueWay::Out => sql::PARAM_OUTPUT,
            ValueWay::Both => sql::PARAM_INPUT_OUTPUT,
        };
        (way, room)
    }

    /// What has come back; `None` for one that does not.
    pub(super) fn out(&self) -> Option<Result<Value, DriverFault>> {
        let BoundContent::Out(room) = &self.content else {
            return None;
        };
        if self.indicator == sql::NULL_DATA {
            return Some(Ok(Value::Null));
        }
        let end = || room.iter().position(|unit| *unit == 0);
        // Negative where the driver does not know.
        let units = match usize::try_from(self.indicator) {
            Ok(bytes) => bytes / 2,
            Err(_) => end().unwrap_or(room.len()),
        };
        // The last one is the NUL of a text that was cut.
        let whole = room.get(..units).filter(|whole| whole.len() < room.len());
        let text = whole.map(String::from_utf16_lossy);
        Some(text.map(Value::Text).ok_or_else(too_large))
    }

    /// What it is in C and for the database, its size in characters, and where it is. For the
    /// database all are text, which it takes for what its columns are; drivers that go by the type
    /// in C see numbers. What is text of ASCII alone needs no wide characters.
    pub(super) fn description(&mut self) -> (i16, i16, usize, *mut c_void) {
        /// Characters of the longest number.
        const NUMBER: usize = 32;
        match &mut self.content {
            BoundContent::Null => (sql::C_WCHAR, sql::VARCHAR, 1, null_mut()),
            BoundContent::Integer(number) => (
                sql::C_SBIGINT,
                sql::VARCHAR,
                NUMBER,
                (&raw mut *number).cast(),
            ),
            BoundContent::Real(number) => (
                sql::C_DOUBLE,
                sql::VARCHAR,
                NUMBER,
                (&raw mut *number).cast(),
            ),
            BoundContent::Out(room) => {
                let place = room.as_mut_ptr().cast();
                (sql::C_WCHAR, sql::VARCHAR, room.len() - 1, place)
            }
            BoundContent::Text(text) => {
                let is_ascii = text.iter().all(|unit| *unit < 128);
                let sql_type = match (is_ascii, text.len() > LONG_TEXT) {
                    (_, true) => sql::WLONGVARCHAR,
                    (true, false) => sql::VARCHAR,
                    (false, false) => sql::WVARCHAR,
                };
                let size = text.len().max(1);
                (sql::C_WCHAR, sql_type, size, text.as_mut_ptr().cast())
            }
        }
    }
}
