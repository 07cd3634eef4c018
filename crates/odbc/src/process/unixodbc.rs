//! Calls of a driver manager that is loaded at run time: unixODBC's `libodbc.so.2`.
//!
//! Unsafe because it is C. All of it is here; what others use is safe to use: handles are freed in
//! their order because each holds the one it is of, and what a driver may write to lives until the
//! statement has been executed. Text goes both ways in UTF-16, which is what ODBC has for Unicode.
#![allow(unsafe_code)]

mod bound;

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use crate::message::{DriverFault, Value, ValueWay};

use bound::Bound;

/// The file that is loaded.
const LIBRARY: &CStr = c"libodbc.so.2";
/// Characters of a message of a driver, and messages of one failure.
const TEXT_MAX: usize = 1_024;
const RECORDS_MAX: i16 = 4;
/// Characters of a column's name.
const NAME_MAX: usize = 512;
/// Seconds that a login may take, where a driver knows that.
const LOGIN_SECONDS: usize = 15;
/// Characters or bytes of a value that are asked for at first.
const FIRST_UNITS: usize = 4_096;

type Handle = *mut c_void;

/// Codes of `sql.h` and `sqlext.h`.
mod sql {
    pub(super) const SUCCESS: i16 = 0;
    pub(super) const SUCCESS_WITH_INFO: i16 = 1;
    pub(super) const NO_DATA: i16 = 100;
    pub(super) const HANDLE_ENV: i16 = 1;
    pub(super) const HANDLE_DBC: i16 = 2;
    pub(super) const HANDLE_STMT: i16 = 3;
    pub(super) const ATTR_ODBC_VERSION: i32 = 200;
    pub(super) const OV_ODBC3: usize = 3;
    pub(super) const ATTR_ACCESS_MODE: i32 = 101;
    pub(super) const ATTR_AUTOCOMMIT: i32 = 102;
    pub(super) const ATTR_LOGIN_TIMEOUT: i32 = 103;
    pub(super) const ATTR_CONNECTION_DEAD: i32 = 1209;
    pub(super) const CURSOR_COMMIT_BEHAVIOR: u16 = 23;
    pub(super) const CURSOR_ROLLBACK_BEHAVIOR: u16 = 24;
    pub(super) const COMMIT: i16 = 0;
    pub(super) const ROLLBACK: i16 = 1;
    pub(super) const CLOSE: u16 = 0;
    pub(super) const RESET_PARAMS: u16 = 3;
    pub(super) const PARAM_INPUT: i16 = 1;
    pub(super) const PARAM_INPUT_OUTPUT: i16 = 2;
    pub(super) const PARAM_OUTPUT: i16 = 4;
    pub(super) const C_WCHAR: i16 = -8;
    pub(super) const C_SBIGINT: i16 = -25;
    pub(super) const C_DOUBLE: i16 = 8;
    pub(super) const C_BINARY: i16 = -2;
    pub(super) const VARCHAR: i16 = 12;
    pub(super) const WVARCHAR: i16 = -9;
    pub(super) const WLONGVARCHAR: i16 = -10;
    pub(super) const NULL_DATA: isize = -1;
}

/// Declares what is called, and looks it up by its name.
macro_rules! functions {
    ($($name:ident $symbol:literal ($($argument:ty),*);)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) -> i16,)*
        }

        impl Functions {
            /// # Safety
            /// The library is a driver manager of ODBC 3.
            unsafe fn of(library: Handle) -> Option<Functions> {
                Some(Functions {
                    $($name: {
                        // SAFETY: the library is open, and the name ends in NUL.
                        let found = unsafe { libc::dlsym(library, $symbol.as_ptr()) };
                        if found.is_null() {
                            return None;
                        }
                        // SAFETY: this is how ODBC 3 declares it.
                        unsafe {
                            std::mem::transmute::<
                                Handle,
                                unsafe extern "C" fn($($argument),*) -> i16,
                            >(found)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    alloc c"SQLAllocHandle" (i16, Handle, *mut Handle);
    free c"SQLFreeHandle" (i16, Handle);
    set_env c"SQLSetEnvAttr" (Handle, i32, *const c_void, i32);
    set_connect c"SQLSetConnectAttr" (Handle, i32, *const c_void, i32);
    connect_attr c"SQLGetConnectAttr" (Handle, i32, *mut c_void, i32, *mut i32);
    info c"SQLGetInfo" (Handle, u16, *mut c_void, i16, *mut i16);
    connect c"SQLDriverConnectW" (
        Handle, Handle, *const u16, i16, *mut u16, i16, *mut i16, u16
    );
    disconnect c"SQLDisconnect" (Handle);
    end c"SQLEndTran" (i16, Handle, i16);
    prepare c"SQLPrepareW" (Handle, *const u16, i32);
    param_count c"SQLNumParams" (Handle, *mut i16);
    bind c"SQLBindParameter" (
        Handle, u16, i16, i16, i16, usize, i16, *mut c_void, isize, *mut isize
    );
    execute c"SQLExecute" (Handle);
    column_count c"SQLNumResultCols" (Handle, *mut i16);
    describe c"SQLDescribeColW" (
        Handle, u16, *mut u16, i16, *mut i16, *mut i16, *mut usize, *mut i16, *mut i16
    );
    fetch c"SQLFetch" (Handle);
    data c"SQLGetData" (Handle, u16, i16, *mut c_void, isize, *mut isize);
    more_results c"SQLMoreResults" (Handle);
    row_count c"SQLRowCount" (Handle, *mut isize);
    free_statement c"SQLFreeStmt" (Handle, u16);
    cancel c"SQLCancel" (Handle);
    diagnostics c"SQLGetDiagRecW" (
        i16, Handle, i16, *mut u16, *mut i32, *mut u16, i16, *mut i16
    );
}

/// A driver manager, loaded once and for good.
#[derive(Clone, Copy)]
pub(super) struct DriverManager {
    functions: &'static Functions,
}

/// A connection to a database, without a statement of its own that commits by itself.
pub(super) struct OdbcConnection {
    manager: DriverManager,
    environment: Handle,
    handle: Handle,
}

/// A prepared statement.
pub(super) struct OdbcStatement {
    connection: Rc<OdbcConnection>,
    handle: Handle,
    /// What is bound, for the driver to read.
    bound: Vec<Bound>,
}

/// A column of a result.
pub(super) struct OdbcColumn {
    pub(super) name: String,
    /// As `sql.h` numbers types.
    pub(super) sql_type: i16,
}

/// Ends from another thread what a statement does.
#[derive(Clone, Default)]
pub(super) struct Canceller {
    shared: Arc<Mutex<CancelState>>,
}

#[derive(Default)]
struct CancelState {
    is_cancelled: bool,
    /// The statement that runs. It is not freed while this is held.
    running: Option<(&'static Functions, usize)>,
}

impl std::fmt::Debug for Functions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Functions")
    }
}

impl Canceller {
    pub(super) fn cancel(&self) {
        let mut state = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_cancelled = true;
        if let Some((functions, handle)) = state.running {
            // SAFETY: the statement is there as long as it runs. Of all functions, this one may be
            // called while another one is at work on the same handle.
            unsafe { (functions.cancel)(handle as Handle) };
        }
    }

    fn is_cancelled(&self) -> bool {
        let state = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_cancelled
    }

    /// Something new is asked for.
    pub(super) fn reset(&self) {
        let mut state = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_cancelled = false;
    }

    /// Does something that may be cancelled. `None` if it is cancelled already.
    fn during(&self, statement: &OdbcStatement, call: impl FnOnce() -> i16) -> Option<i16> {
        let lock = || self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut state = lock();
            if state.is_cancelled {
                return None;
            }
            state.running = Some((statement.functions(), statement.handle as usize));
        }
        let code = call();
        lock().running = None;
        Some(code)
    }
}

impl DriverManager {
    /// Loads it.
    pub(super) fn load() -> Result<DriverManager, DriverFault> {
        // Drivers for C's own text take its encoding from here.
        // SAFETY: the name ends in NUL, and only this thread does anything yet.
        unsafe { libc::setlocale(libc::LC_CTYPE, c"C.UTF-8".as_ptr()) };
        // SAFETY: the name ends in NUL. What the library does when it is loaded is the system's.
        let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            // SAFETY: after a failure there is such a text; it ends in NUL.
            let why = unsafe { CStr::from_ptr(libc::dlerror()) };
            return Err(not_there(&why.to_string_lossy()));
        }
        // SAFETY: libraries of this name are driver managers of ODBC 3.
        match unsafe { Functions::of(library) } {
            Some(functions) => Ok(DriverManager {
                functions: Box::leak(Box::new(functions)),
            }),
            None => Err(not_there("it is no driver manager of ODBC 3")),
        }
    }

    /// Connects.
    pub(super) fn connect(
        self,
        text: &str,
        is_read_only: bool,
    ) -> Result<Rc<OdbcConnection>, DriverFault> {
        let functions = self.functions;
        let environment = self.allocated(sql::HANDLE_ENV, null_mut());
        let environment = environment.ok_or_else(|| not_there("it gives no environment"))?;
        let version = sql::OV_ODBC3 as *const c_void;
        // SAFETY: the handle is live; a number takes the place of the pointer.
        unsafe { (functions.set_env)(environment, sql::ATTR_ODBC_VERSION, version, 0) };
        let handle = self.allocated(sql::HANDLE_DBC, environment);
        let handle = handle.ok_or_else(|| not_there("it gives no connection"))?;
        let connection = OdbcConnection {
            manager: self,
            environment,
            handle,
        };
        // Those who do not know these go on without.
        connection.set(sql::ATTR_LOGIN_TIMEOUT, LOGIN_SECONDS);
        connection.set(sql::ATTR_ACCESS_MODE, usize::from(is_read_only));
        let text: Vec<u16> = text.encode_utf16().collect();
        let len = i16::try_from(text.len()).unwrap_or(i16::MAX);
        // SAFETY: the handle is live, and the text has that length; nothing is wanted back.
        let code = unsafe {
            let (none, mut whole) = (null_mut(), 0);
            (functions.connect)(
                handle,
                none,
                text.as_ptr(),
                len,
                null_mut(),
                0,
                &mut whole,
                0,
            )
        };
        if !is_done(code) {
            let mut fault = connection.fault();
            fault.is_gone = true;
            return Err(fault);
        }
        if !is_done(connection.set(sql::ATTR_AUTOCOMMIT, 0)) {
            let mut fault = connection.fault();
            fault.text = format!("the driver has no transactions: {}", fault.text);
            return Err(fault);
        }
        Ok(Rc::new(connection))
    }

    fn allocated(self, kind: i16, of: Handle) -> Option<Handle> {
        let mut handle = null_mut();
        // SAFETY: `of` is live or none at all, and one handle is written.
        let code = unsafe { (self.functions.alloc)(kind, of, &mut handle) };
        (is_done(code) && !handle.is_null()).then_some(handle)
    }

    /// What a handle has to say about its last failure.
    fn fault(self, kind: i16, handle: Handle) -> DriverFault {
        let mut fault = DriverFault {
            state: "HY000".to_owned(),
            native: 0,
            is_gone: false,
            text: String::new(),
        };
        for record in 1..=RECORDS_MAX {
            let (mut state, mut native) = ([0_u16; 6], 0);
            let mut text = [0_u16; TEXT_MAX];
            let mut len = 0;
            // SAFETY: the handle is live, and each buffer has the length that is told.
            let code = unsafe {
                let (state, text) = (state.as_mut_ptr(), text.as_mut_ptr());
                let room = TEXT_MAX as i16;
                (self.functions.diagnostics)(
                    kind,
                    handle,
                    record,
                    state,
                    &mut native,
                    text,
                    room,
                    &mut len,
                )
            };
            if !is_done(code) {
                break;
            }
            let len = usize::try_from(len).unwrap_or(0).min(TEXT_MAX - 1);
            let text = String::from_utf16_lossy(&text[..len]);
            match record {
                1 => {
                    fault.state = String::from_utf16_lossy(&state[..5]);
                    fault.native = native;
                }
                _ => fault.text += "; ",
            }
            fault.text += &text.split_whitespace().collect::<Vec<_>>().join(" ");
        }
        if fault.text.is_empty() {
            fault.text = "the driver does not say why".to_owned();
        }
        fault
    }
}

impl OdbcConnection {
    fn set(&self, attribute: i32, value: usize) -> i16 {
        let value = value as *const c_void;
        // SAFETY: the handle is live; a number takes the place of the pointer.
        unsafe { (self.manager.functions.set_connect)(self.handle, attribute, value, 0) }
    }

    fn fault(&self) -> DriverFault {
        let mut fault = self.manager.fault(sql::HANDLE_DBC, self.handle);
        fault.is_gone = self.is_gone(&fault);
        fault
    }

    /// The connection ends with this failure. PostgreSQL's server says so with words of its own.
    fn is_gone(&self, fault: &DriverFault) -> bool {
        ["08", "57P0"]
            .iter()
            .any(|start| fault.state.starts_with(start))
            || self.is_dead()
    }

    /// The driver knows that the database is gone. Some say that a commit was done all the same.
    pub(super) fn is_dead(&self) -> bool {
        let mut is_dead = 0_u32;
        // SAFETY: the handle is live, and one number is written.
        let code = unsafe {
            let into = (&raw mut is_dead).cast();
            let get = self.manager.functions.connect_attr;
            get(self.handle, sql::ATTR_CONNECTION_DEAD, into, 4, null_mut())
        };
        is_done(code) && is_dead == 1
    }

    /// Whether the end of a transaction leaves statements prepared.
    pub(super) fn keeps_statements(&self) -> bool {
        [sql::CURSOR_COMMIT_BEHAVIOR, sql::CURSOR_ROLLBACK_BEHAVIOR]
            .into_iter()
            .all(|what| {
                let mut behavior = 0_u16;
                // SAFETY: the handle is live, and one short number is written.
                let code = unsafe {
                    let into = (&raw mut behavior).cast();
                    (self.manager.functions.info)(self.handle, what, into, 2, null_mut())
                };
                is_done(code) && behavior != 0
            })
    }

    /// Ends the transaction.
    pub(super) fn end(&self, keep: bool) -> Result<(), DriverFault> {
        let how = if keep { sql::COMMIT } else { sql::ROLLBACK };
        // SAFETY: the handle is live.
        let code = unsafe { (self.manager.functions.end)(sql::HANDLE_DBC, self.handle, how) };
        match is_done(code) {
            true => Ok(()),
            false => Err(self.fault()),
        }
    }

    /// Prepares a statement.
    pub(super) fn prepare(self: &Rc<Self>, text: &str) -> Result<OdbcStatement, DriverFault> {
        let handle = self.manager.allocated(sql::HANDLE_STMT, self.handle);
        let statement = OdbcStatement {
            connection: Rc::clone(self),
            handle: handle.ok_or_else(|| self.fault())?,
            bound: Vec::new(),
        };
        let text: Vec<u16> = text.encode_utf16().collect();
        let len = i32::try_from(text.len()).unwrap_or(i32::MAX);
        let prepare = self.manager.functions.prepare;
        // SAFETY: the handle is live, and the text has that length.
        let code = unsafe { prepare(statement.handle, text.as_ptr(), len) };
        statement.checked(code)?;
        Ok(statement)
    }
}

impl Drop for OdbcConnection {
    fn drop(&mut self) {
        let functions = self.manager.functions;
        // SAFETY: the handles are live and none of theirs is: statements hold the connection. What
        // cannot be freed is left to the end of the process.
        unsafe {
            (functions.end)(sql::HANDLE_DBC, self.handle, sql::ROLLBACK);
            (functions.disconnect)(self.handle);
            (functions.free)(sql::HANDLE_DBC, self.handle);
            (functions.free)(sql::HANDLE_ENV, self.environment);
        }
    }
}

impl OdbcStatement {
    fn functions(&self) -> &'static Functions {
        self.connection.manager.functions
    }

    fn checked(&self, code: i16) -> Result<i16, DriverFault> {
        if is_done(code) || code == sql::NO_DATA {
            return Ok(code);
        }
        let mut fault = self.connection.manager.fault(sql::HANDLE_STMT, self.handle);
        fault.is_gone = self.connection.is_gone(&fault);
        Err(fault)
    }

    /// The same of something that may be cancelled.
    fn watched(
        &self,
        canceller: &Canceller,
        call: impl FnOnce(&'static Functions, Handle) -> i16,
    ) -> Result<i16, DriverFault> {
        let (functions, handle) = (self.functions(), self.handle);
        let code = canceller.during(self, || call(functions, handle));
        self.checked(code.ok_or_else(cancelled)?).map_err(|fault| {
            // Not every driver has a state for it.
            match fault.state == "HY000" && canceller.is_cancelled() {
                true => cancelled(),
                false => fault,
            }
        })
    }

    /// How many values it wants, if the driver can tell.
    pub(super) fn parameters(&self) -> Option<usize> {
        let mut count = 0;
        // SAFETY: the handle is live, and one short number is written.
        let code = unsafe { (self.functions().param_count)(self.handle, &mut count) };
        is_done(code).then(|| usize::try_from(count).unwrap_or(0))
    }

    /// Runs it with these values.
    pub(super) fn execute(
        &mut self,
        values: Vec<(ValueWay, Value)>,
        canceller: &Canceller,
    ) -> Result<(), DriverFault> {
        let (functions, handle) = (self.functions(), self.handle);
        self.bound = values.into_iter().map(Bound::of).collect();
        let mut code = sql::SUCCESS;
        for (at, bound) in self.bound.iter_mut().enumerate() {
            let (c_type, sql_type, size, place) = bound.description();
            let (way, room) = bound.way();
            let number = u16::try_from(at + 1).unwrap_or(u16::MAX);
            let indicator = &raw mut bound.indicator;
            // SAFETY: the handle is live. Value and indicator stay where they are, and `bound` is
            // not touched, until the statement is executed, or closed where something comes back.
            code = unsafe {
                let bind = functions.bind;
                bind(
                    handle, number, way, c_type, sql_type, size, 0, place, room, indicator,
                )
            };
            if !is_done(code) {
                break;
            }
        }
        self.checked(code)?;
        // SAFETY: the handle is live, and so is what is bound to it.
        let executed = self.watched(canceller, |functions, handle| unsafe {
            (functions.execute)(handle)
        });
        if executed.is_err() || self.bound.iter().all(|bound| bound.way == ValueWay::In) {
            self.unbind();
        }
        executed.map(|_| ())
    }

    /// Nothing is bound to it any more.
    fn unbind(&mut self) {
        // SAFETY: the handle is live; what was bound is freed behind it.
        unsafe { (self.functions().free_statement)(self.handle, sql::RESET_PARAMS) };
        self.bound.clear();
    }

    /// What a procedure has given back, once there are no more results.
    pub(super) fn outs(&self) -> Result<Vec<Value>, DriverFault> {
        self.bound.iter().filter_map(Bound::out).collect()
    }

    /// Columns of its result; none if it has none.
    pub(super) fn columns(&self) -> Result<Vec<OdbcColumn>, DriverFault> {
        let mut count = 0;
        // SAFETY: the handle is live, and one short number is written.
        self.checked(unsafe { (self.functions().column_count)(self.handle, &mut count) })?;
        (1..=u16::try_from(count).unwrap_or(0))
            .map(|number| self.column(number))
            .collect()
    }

    fn column(&self, number: u16) -> Result<OdbcColumn, DriverFault> {
        let mut name = [0_u16; NAME_MAX];
        let (mut len, mut sql_type, mut size, mut digits, mut nullable) = (0, 0, 0, 0, 0);
        // SAFETY: the handle is live, the name has room for that many, and five numbers are
        // written.
        let code = unsafe {
            (self.functions().describe)(
                self.handle,
                number,
                name.as_mut_ptr(),
                NAME_MAX as i16,
                &mut len,
                &mut sql_type,
                &mut size,
                &mut digits,
                &mut nullable,
            )
        };
        self.checked(code)?;
        let len = usize::try_from(len).unwrap_or(0).min(NAME_MAX - 1);
        Ok(OdbcColumn {
            name: String::from_utf16_lossy(&name[..len]),
            sql_type,
        })
    }

    /// Rows that it has changed.
    pub(super) fn changed(&self) -> u64 {
        let mut count = 0;
        // SAFETY: the handle is live, and one number is written.
        let code = unsafe { (self.functions().row_count)(self.handle, &mut count) };
        if is_done(code) {
            u64::try_from(count).unwrap_or(0)
        } else {
            0
        }
    }

    /// Goes to the next row. False at the end.
    pub(super) fn fetch(&self, canceller: &Canceller) -> Result<bool, DriverFault> {
        // SAFETY: the handle is live, and no columns are bound.
        let code = self.watched(canceller, |functions, handle| unsafe {
            (functions.fetch)(handle)
        });
        Ok(code? != sql::NO_DATA)
    }

    /// A cell of the row, added to `out`: as text in UTF-16, or as bytes. False for NULL. Drivers
    /// may look at all of it for each piece, so the second piece is all that is left.
    pub(super) fn cell<T: CellUnit>(
        &self,
        number: u16,
        out: &mut Vec<T>,
        units_max: usize,
    ) -> Result<bool, DriverFault> {
        let mut first = [T::default(); FIRST_UNITS];
        let mut others = Vec::new();
        loop {
            let buffer = match others.is_empty() {
                true => &mut first[..],
                false => &mut others[..],
            };
            let room = buffer.len() - T::NULS;
            let mut indicator = 0;
            // SAFETY: the handle is live, and the buffer has that size.
            let code = unsafe {
                let (into, bytes) = (buffer.as_mut_ptr().cast(), size_of_val(buffer));
                let get = self.functions().data;
                get(
                    self.handle,
                    number,
                    T::C_TYPE,
                    into,
                    bytes as isize,
                    &mut indicator,
                )
            };
            if self.checked(code)? == sql::NO_DATA {
                return Ok(true);
            }
            if indicator == sql::NULL_DATA {
                return Ok(false);
            }
            // What is left, this piece included; negative where the driver does not know.
            let left = usize::try_from(indicator).ok();
            let left = left.map(|bytes| bytes / size_of::<T>());
            let here = left.unwrap_or(room).min(room);
            out.extend_from_slice(&buffer[..here]);
            let rest = left.map_or(2 * room, |left| left - here);
            if rest == 0 {
                return Ok(true);
            }
            if out.len() + left.map_or(0, |_| rest) > units_max {
                return Err(too_large());
            }
            others = vec![T::default(); rest + T::NULS];
        }
    }

    /// Goes to the next result. False at the end.
    pub(super) fn next_result(&self, canceller: &Canceller) -> Result<bool, DriverFault> {
        // SAFETY: the handle is live.
        let code = self.watched(canceller, |functions, handle| unsafe {
            (functions.more_results)(handle)
        });
        Ok(code? != sql::NO_DATA)
    }

    /// Lets go of its result: it may be run again.
    pub(super) fn close(&mut self) {
        // SAFETY: the handle is live.
        unsafe { (self.functions().free_statement)(self.handle, sql::CLOSE) };
        if !self.bound.is_empty() {
            self.unbind();
        }
    }
}

impl Drop for OdbcStatement {
    fn drop(&mut self) {
        // SAFETY: the handle is live, and nothing uses it from here on.
        unsafe { (self.functions().free)(sql::HANDLE_STMT, self.handle) };
    }
}

/// What a cell is made of.
pub(super) trait CellUnit: Copy + Default {
    /// As `sqlext.h` numbers types in C.
    const C_TYPE: i16;
    /// Units behind each piece that are not of it.
    const NULS: usize;
}

impl CellUnit for u16 {
    const C_TYPE: i16 = sql::C_WCHAR;
    const NULS: usize = 1;
}

impl CellUnit for u8 {
    const C_TYPE: i16 = sql::C_BINARY;
    const NULS: usize = 0;
}

fn is_done(code: i16) -> bool {
    matches!(code, sql::SUCCESS | sql::SUCCESS_WITH_INFO)
}

fn not_there(why: &str) -> DriverFault {
    DriverFault {
        state: "IM003".to_owned(),
        native: 0,
        is_gone: true,
        text: format!(
            "there is no ODBC here ({why}); install unixODBC and a driver for the database: on \
             Debian libodbc2 and, for example, odbc-postgresql"
        ),
    }
}

fn cancelled() -> DriverFault {
    DriverFault {
        state: "HY008".to_owned(),
        native: 0,
        is_gone: false,
        text: "the statement was cancelled".to_owned(),
    }
}

fn too_large() -> DriverFault {
    DriverFault {
        state: "22001".to_owned(),
        native: 0,
        is_gone: false,
        text: "a value or a row is larger than one may be".to_owned(),
    }
}
