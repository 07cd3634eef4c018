//! What a server or the way to it means, in the codes that macros know.

use std::io;

use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::ErrorFields;

use crate::fault::FunctionFault;
use crate::sql::code_of_state;

/// The way to the server is gone.
pub(super) const GONE: (i64, &str) = (-30081, "08006");
/// The server does not let this user in.
pub(super) const NOT_LET_IN: i64 = -30082;
/// Work that was done before is lost.
pub(super) const LOST: (i64, &str) = (-911, "40000");
/// A value or a row is too large.
pub(super) const TOO_LARGE: (i64, &str) = (-302, "22001");

/// What a server says is wrong.
#[derive(Clone, Debug)]
pub(super) struct ServerFault {
    pub(super) state: String,
    pub(super) message: String,
    /// The connection ends with it.
    pub(super) is_last: bool,
}

impl ServerFault {
    pub(super) fn of(mut fields: ErrorFields<'_>) -> ServerFault {
        let mut fault = ServerFault {
            state: String::new(),
            message: String::new(),
            is_last: false,
        };
        let (mut detail, mut position) = (String::new(), String::new());
        while let Ok(Some(field)) = fields.next() {
            let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'C' => fault.state = value,
                b'M' => fault.message = value,
                b'D' => detail = format!("; {value}"),
                b'P' => position = format!(", at character {value}"),
                b'V' => fault.is_last = matches!(&*value, "FATAL" | "PANIC"),
                _ => {}
            }
        }
        fault.message += &position;
        fault.message += &detail;
        fault
    }

    pub(super) fn fault(self) -> FunctionFault {
        let code = code_of(&self.state, self.is_last);
        coded((code, &self.state), self.message)
    }
}

/// A fault with its code and state.
pub(super) fn coded((code, state): (i64, &str), message: impl Into<String>) -> FunctionFault {
    FunctionFault {
        code,
        sql_state: Some(state.into()),
        message: message.into(),
    }
}

/// The way to the server broke.
pub(super) fn broken(error: &io::Error) -> FunctionFault {
    match error.kind() {
        io::ErrorKind::FileTooLarge => coded(TOO_LARGE, error.to_string()),
        _ => coded(
            GONE,
            format!("the connection to the database broke: {error}"),
        ),
    }
}

fn code_of(state: &str, is_last: bool) -> i64 {
    match code_of_state(state) {
        Some(code) => code,
        None if is_last => GONE.0,
        None => -1,
    }
}
