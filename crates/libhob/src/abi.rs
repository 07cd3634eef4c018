//! hob.h: a C library for programs that stay and answer requests for hob.
//!
//! A program connects once, then accepts requests until there are no more:
//!
//! ```c
//! hob *server;
//! hob_request *request;
//! if (hob_connect(&server) < 0) return 1;
//! while (hob_accept(server, &request) == HOB_OK) {
//!     hob_header(request, "Content-Type", "text/plain");
//!     hob_write(request, "hello\n", 6);
//!     hob_finish(request);
//! }
//! ```
//!
//! Started by anything but hob, the same program answers one CGI request.
//!
//! Codes: 0 and above is good, below 0 is not. Strings that go in end with NUL or have a length
//! beside them; strings that come out have both, belong to the library, and live until the request
//! is finished. Any thread may call with a `hob *`; a `hob_request *` belongs to one thread at a
//! time. In a child that the program forks every call says HOB_FORKED.
#![allow(unsafe_code, non_camel_case_types)]
// What callers promise is in the comments, and named in `face`.
#![allow(clippy::missing_safety_doc)]

use std::ffi::{c_char, c_int, c_void};

use hob_ipc::message::Carrier;

use crate::face::{
    accept, bytes, callout, found, guard, guard_wide, number, out, owned, read, send_file,
    server_of, shared, string, unique,
};
use crate::failure::CallFailure;
use crate::request::{self, HobRequest, Reply, RequestSource};
use crate::start;
use crate::wait::Until;

/// The number of this ABI, which is also the library's soname.
pub const HOB_ABI: c_int = 1;

/// Done.
pub const HOB_OK: c_int = 0;
/// From hob_connect: not started by hob, one CGI request will be served.
pub const HOB_PLAIN_CGI: c_int = 1;
/// From hob_accept: no more requests come; end the program.
pub const HOB_NO_MORE: c_int = 2;
/// The call makes no sense here, or an argument does not.
pub const HOB_MISUSE: c_int = -1;
/// The server is gone; end the program.
pub const HOB_GONE: c_int = -2;
/// The client has left. Stop if you can; the request still has to be finished.
pub const HOB_CANCELLED: c_int = -3;
/// There is no such thing when the program runs as plain CGI.
pub const HOB_UNSUPPORTED: c_int = -4;
/// Too long: fields 64 KiB together, callouts 64 KiB.
pub const HOB_TOO_LONG: c_int = -5;
/// The server said no.
pub const HOB_REFUSED: c_int = -6;
/// The server sent what this library does not understand; end the program.
pub const HOB_BROKEN: c_int = -7;
/// Called in a child of the process that connected.
pub const HOB_FORKED: c_int = -8;
/// The system said no; errno says why.
pub const HOB_SYSTEM: c_int = -9;
/// Nothing came in the time that was given.
pub const HOB_AGAIN: c_int = -10;

/// For hob_indexed: the method.
pub const HOB_REQUEST_METHOD: c_int = 0;
/// For hob_indexed: path and query as the client sent them.
pub const HOB_REQUEST_URI: c_int = 1;
/// For hob_indexed: the part of the path that chose this program.
pub const HOB_SCRIPT_NAME: c_int = 2;
/// For hob_indexed: the rest of the path, decoded.
pub const HOB_PATH_INFO: c_int = 3;
/// For hob_indexed: what follows the question mark.
pub const HOB_QUERY_STRING: c_int = 4;
/// For hob_indexed: the protocol.
pub const HOB_SERVER_PROTOCOL: c_int = 5;
/// For hob_indexed: the body's type.
pub const HOB_CONTENT_TYPE: c_int = 6;
/// For hob_indexed: the body's length, as text.
pub const HOB_CONTENT_LENGTH: c_int = 7;
/// For hob_indexed: the host the client asked for.
pub const HOB_HTTP_HOST: c_int = 8;
/// For hob_indexed: cookies.
pub const HOB_HTTP_COOKIE: c_int = 9;
/// For hob_indexed: the client's address.
pub const HOB_REMOTE_ADDR: c_int = 10;
/// For hob_indexed: the file of the script.
pub const HOB_SCRIPT_FILENAME: c_int = 11;
/// For hob_indexed: the site's name.
pub const HOB_SERVER_NAME: c_int = 12;
/// For hob_indexed: the port.
pub const HOB_SERVER_PORT: c_int = 13;
/// For hob_indexed: http or https.
pub const HOB_REQUEST_SCHEME: c_int = 14;
/// For hob_indexed: the client's program.
pub const HOB_HTTP_USER_AGENT: c_int = 15;

/// Numbers that hob_changed writes at most.
const CHANGED_MAX: usize = 1 << 20;

/// The server, as this program sees it.
#[derive(Debug)]
pub struct hob {
    pub(crate) source: RequestSource,
}

/// A request that was accepted and not finished.
#[derive(Debug)]
pub struct hob_request {
    pub(crate) inner: HobRequest,
}

/// Connects to the hob that started this process. Call it once, before other threads run: it reads
/// and changes the environment.
///
/// Returns HOB_OK, or HOB_PLAIN_CGI when hob did not start the process; `*server` is good in both
/// cases. HOB_CARRIER=stream in the environment keeps shared memory out of use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_connect(server: *mut *mut hob) -> c_int {
    guard(|| {
        let place = out(server)?;
        let source = start::connect()?;
        let code = match source {
            RequestSource::Hob(_) => HOB_OK,
            RequestSource::Plain(_) => HOB_PLAIN_CGI,
        };
        // SAFETY: checked by `out`.
        unsafe { place.write(Box::into_raw(Box::new(hob { source }))) };
        Ok(code)
    })
}

/// Ends the connection. Finish all requests before; the server has no worker any more after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_close(server: *mut hob) {
    guard(|| {
        if !server.is_null() {
            // SAFETY: made by hob_connect, and closed once, as its caller promises.
            drop(unsafe { Box::from_raw(server) });
        }
        Ok(HOB_OK)
    });
}

/// Waits for the next request.
///
/// Returns HOB_OK with `*request` to be finished by hob_finish or hob_fail; HOB_NO_MORE when the
/// program is to end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_accept(server: *mut hob, request: *mut *mut hob_request) -> c_int {
    accept(server, request, Until::Ever)
}

/// Waits for the next request, at most so many milliseconds: below 0 for ever, 0 not at all.
///
/// HOB_AGAIN says that none came. After a call with 0 that said so, hob_fd will become readable
/// when there is something.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_accept_within(
    server: *mut hob,
    request: *mut *mut hob_request,
    milliseconds: i64,
) -> c_int {
    accept(server, request, Until::after_ms(milliseconds))
}

/// Takes in what has come for requests that were accepted: body, room for more of an answer, the
/// news that a client has left. Accepts none.
///
/// Returns HOB_OK when something has come since the last call of this one: look at the requests
/// that wait. HOB_AGAIN when there was nothing; then hob_fd will become readable when there is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_look(server: *mut hob) -> c_int {
    guard(|| {
        request::look(&server_of(server)?.source)?;
        Ok(HOB_OK)
    })
}

/// After hob_look: which requests something has come for since the last call of this one, by their
/// hob_number, in any order, each once. 0 stands for requests to be accepted, or the word that no
/// more come.
///
/// Returns how many numbers were written; there may be more when it is `size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_changed(server: *mut hob, numbers: *mut u32, size: usize) -> c_int {
    guard(|| {
        let RequestSource::Hob(connection) = &server_of(server)?.source else {
            return Ok(0);
        };
        let size = size.min(CHANGED_MAX);
        // SAFETY: checked by `out`; caller: so many numbers that are ours during the call.
        let numbers = unsafe { std::slice::from_raw_parts_mut(out(numbers)?, size) };
        let count = connection.lock().inner().take_changed(numbers);
        Ok(count as c_int)
    })
}

/// The number of a request, from 1 on; another may have it once the request is finished. 0 as plain
/// CGI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_number(request: *const hob_request) -> u32 {
    shared(request).map_or(0, HobRequest::number)
}

/// A descriptor for poll, select or epoll: readable when a request, a body or anything else has
/// come. Never read it. It says nothing unless the last call was one with 0 milliseconds that
/// returned HOB_AGAIN.
///
/// Returns the descriptor, which belongs to the library, or a code below 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_fd(server: *mut hob) -> c_int {
    guard(|| match &server_of(server)?.source {
        RequestSource::Hob(connection) => connection.readiness(),
        RequestSource::Plain(_) => Err(CallFailure::Unsupported),
    })
}

/// How many requests the server may give this process at a time. A program that wants them
/// accepts on so many threads, or accepts again before it has finished.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_concurrency(server: *mut hob) -> c_int {
    guard(|| match &server_of(server)?.source {
        RequestSource::Hob(connection) => Ok(connection.hello.concurrency.into()),
        RequestSource::Plain(_) => Ok(1),
    })
}

/// How messages travel: "shm", "stream", or "plain" without hob.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_carrier(server: *mut hob) -> *const c_char {
    let name = match server_of(server).map(|server| &server.source) {
        Err(_) => c"",
        Ok(RequestSource::Plain(_)) => c"plain",
        Ok(RequestSource::Hob(connection)) => match connection.carrier {
            Carrier::Shm => c"shm",
            Carrier::Stream => c"stream",
        },
    };
    name.as_ptr()
}

/// 1 when the server has said that no more requests come, else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_is_draining(server: *mut hob) -> c_int {
    guard(|| {
        let RequestSource::Hob(connection) = &server_of(server)?.source else {
            return Ok(0);
        };
        let mut locked = connection.lock();
        locked.take_in_all()?;
        Ok(locked.inner().is_draining.into())
    })
}

/// Sets for how many seconds this process may be idle before the server ends it; below 0 for ever.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_set_lifetime(server: *mut hob, seconds: i64) -> c_int {
    guard(|| {
        let seconds = seconds.max(-1);
        let text = format!("LIFETIME: {seconds}");
        request::callout(
            &server_of(server)?.source,
            0,
            text.as_bytes(),
            Reply::Unwanted,
        )?;
        Ok(HOB_OK)
    })
}

/// The value of a variable of the request (CGI's names), or NULL. Its length goes to `*length`
/// unless that is NULL. It ends with NUL and lives until the request is finished.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_variable(
    request: *const hob_request,
    name: *const c_char,
    length: *mut usize,
) -> *const c_char {
    found(length, || {
        let name = string(name)?;
        Ok(shared(request)?.block().value(name))
    })
}

/// The value of one of the common variables, by its number: HOB_REQUEST_METHOD and so on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_indexed(
    request: *const hob_request,
    place: c_int,
    length: *mut usize,
) -> *const c_char {
    found(length, || {
        let place = usize::try_from(place).map_err(|_| CallFailure::Misuse)?;
        Ok(shared(request)?.block().indexed(place))
    })
}

/// Goes through all variables: begin with `*cursor` 0.
///
/// Returns 1 with a name and a value, 0 after the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_next_variable(
    request: *const hob_request,
    cursor: *mut usize,
    name: *mut *const c_char,
    value: *mut *const c_char,
) -> c_int {
    guard(|| {
        let (cursor, name, value) = (out(cursor)?, out(name)?, out(value)?);
        // SAFETY: checked by `out`; the caller has set it.
        let Some(found) = shared(request)?
            .block()
            .variable_at(unsafe { cursor.read() })
        else {
            return Ok(0);
        };
        // SAFETY: checked by `out`.
        unsafe {
            name.write(found.0.as_ptr().cast());
            value.write(found.1.as_ptr().cast());
            cursor.write(found.2);
        }
        Ok(1)
    })
}

/// All variables in one piece: name, NUL, value, NUL, and so on, `*length` bytes in all. It belongs
/// to the library and lives until the request is finished.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_variables(
    request: *const hob_request,
    length: *mut usize,
) -> *const c_char {
    found(length, || Ok(Some(shared(request)?.block().strings())))
}

/// The length of the request's body, or -1 when it is not known.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_content_length(request: *const hob_request) -> i64 {
    guard_wide(|| {
        let length = shared(request)?.block().content_length();
        Ok(length.map_or(-1, |length| i64::try_from(length).unwrap_or(i64::MAX)))
    })
}

/// Reads body, waiting until some is there.
///
/// Returns how many bytes, 0 at the end, or a code below 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_read(
    request: *mut hob_request,
    into: *mut c_void,
    size: usize,
) -> i64 {
    read(request, into, size, Until::Ever)
}

/// Reads body, waiting at most so many milliseconds, as hob_accept_within does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_read_within(
    request: *mut hob_request,
    into: *mut c_void,
    size: usize,
    milliseconds: i64,
) -> i64 {
    read(request, into, size, Until::after_ms(milliseconds))
}

/// Sets the answer's status, 200 to 599. Without it the status is 200, or what a Status or
/// Location field says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_status(request: *mut hob_request, status: c_int) -> c_int {
    guard(|| {
        unique(request)?.set_status(number(status)?)?;
        Ok(HOB_OK)
    })
}

/// Adds a field to the answer's head.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_header(
    request: *mut hob_request,
    name: *const c_char,
    value: *const c_char,
) -> c_int {
    guard(|| {
        unique(request)?.add_field(string(name)?, string(value)?)?;
        Ok(HOB_OK)
    })
}

/// Sets the whole head at once: a status, or 0, and lines `Name: value` with a newline each, in
/// place of what hob_status and hob_header have set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_head(
    request: *mut hob_request,
    status: c_int,
    lines: *const c_char,
    length: usize,
) -> c_int {
    guard(|| {
        let lines = bytes(lines.cast(), length)?;
        unique(request)?.set_head(number(status)?, lines)?;
        Ok(HOB_OK)
    })
}

/// Adds a field that follows the body.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_trailer(
    request: *mut hob_request,
    name: *const c_char,
    value: *const c_char,
) -> c_int {
    guard(|| {
        unique(request)?.add_trailer(string(name)?, string(value)?)?;
        Ok(HOB_OK)
    })
}

/// Sends an interim answer: a status from 100 to 199 except 101, and lines as for hob_head.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_interim(
    request: *mut hob_request,
    status: c_int,
    lines: *const c_char,
    length: usize,
) -> c_int {
    guard(|| {
        let lines = bytes(lines.cast(), length)?;
        unique(request)?.interim(number(status)?, lines)?;
        Ok(HOB_OK)
    })
}

/// Sends the head of a tunnel: from now on hob_read reads what the client sends, and hob_write and
/// hob_flush send to it. Only for a request that has the variable HOB_TUNNEL, which names what the
/// client asks to speak. The status is 101, 200 or 0, which all mean the same: the client gets the
/// one of its protocol. So it does the Upgrade field.
///
/// hob_read returns 0 once the client has ended its side, which then may still be written to;
/// hob_finish ends both. While hob_is_draining says 1 the server waits for the tunnel's end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_tunnel(
    request: *mut hob_request,
    status: c_int,
    lines: *const c_char,
    length: usize,
) -> c_int {
    guard(|| {
        let lines = bytes(lines.cast(), length)?;
        unique(request)?.tunnel(number(status)?, lines)?;
        Ok(HOB_OK)
    })
}

/// Ends the program's direction of a tunnel: what was written leaves, then the client is told that
/// no more comes. It may still send, and hob_read reads that; hob_finish ends the tunnel. Nothing
/// can be written after it.
///
/// HOB_UNSUPPORTED comes from a server that is older than this call, where only hob_finish ends
/// what the program sends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_half_close(request: *mut hob_request) -> c_int {
    guard(|| {
        unique(request)?.half_close()?;
        Ok(HOB_OK)
    })
}

/// Writes a part of the answer's body. It is collected, up to 64 KiB, and leaves when more comes,
/// with hob_flush, or with hob_finish. Waits when the client is slower than the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_write(
    request: *mut hob_request,
    from: *const c_void,
    size: usize,
) -> c_int {
    guard(|| {
        unique(request)?.write(bytes(from, size)?)?;
        Ok(HOB_OK)
    })
}

/// Writes as much of these bytes as finds room now, for programs that may not wait; a hob_flush or
/// hob_finish that follows does not wait either.
///
/// Returns how many bytes, or HOB_AGAIN when the client is slower than the program: hob_look then
/// says when to try again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_write_some(
    request: *mut hob_request,
    from: *const c_void,
    size: usize,
) -> i64 {
    guard_wide(|| {
        let count = unique(request)?.write_some(bytes(from, size)?)?;
        Ok(count as i64)
    })
}

/// A place for the next part of the body, to be written without a copy: `*place` and how many bytes
/// fit. Write there, then call hob_advance; any other call for the request ends its life.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_space(
    request: *mut hob_request,
    place: *mut *mut c_void,
    size: *mut usize,
) -> c_int {
    guard(|| {
        let (place, size) = (out(place)?, out(size)?);
        let (start, count) = unique(request)?.space()?;
        // SAFETY: checked by `out`.
        unsafe {
            place.write(start.cast());
            size.write(count);
        }
        Ok(HOB_OK)
    })
}

/// So many bytes were written to the place that hob_space gave.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_advance(request: *mut hob_request, count: usize) -> c_int {
    guard(|| {
        unique(request)?.advance(count)?;
        Ok(HOB_OK)
    })
}

/// Sends what was written so far to the client.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_flush(request: *mut hob_request) -> c_int {
    guard(|| {
        unique(request)?.flush()?;
        Ok(HOB_OK)
    })
}

/// Writes bytes of a file, from an offset on: `length` of them, or below 0 up to its end. The
/// descriptor stays the program's, and may be closed after the call.
///
/// Much of a file is not read here: the server sends it from the file, as the client takes it.
/// Leave it as it is until then; an answer whose file has changed meanwhile breaks off.
///
/// Returns how many bytes, which are fewer only if the file is shorter, or a code below 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_send_file(
    request: *mut hob_request,
    fd: c_int,
    offset: i64,
    length: i64,
) -> i64 {
    guard_wide(|| send_file(unique(request)?, fd, offset, length))
}

/// The answer is whole. The request is gone after this call, whatever it returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_finish(request: *mut hob_request) -> c_int {
    guard(|| {
        owned(request)?.finish()?;
        Ok(HOB_OK)
    })
}

/// The program cannot answer: the client has a 500 if nothing was sent, else the answer breaks off.
/// The reason is for the server's log. The request is gone after this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_fail(request: *mut hob_request, reason: *const c_char) -> c_int {
    guard(|| {
        let reason = string(reason)?;
        owned(request)?.fail(reason)?;
        Ok(HOB_OK)
    })
}

/// 1 when the client has left and nobody reads the answer, else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_is_cancelled(request: *const hob_request) -> c_int {
    guard(|| Ok(shared(request)?.is_cancelled()?.into()))
}

/// Writes a line to the server's log: level "error", "warning", "info" or "debug".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_log(
    request: *const hob_request,
    level: *const c_char,
    text: *const c_char,
) -> c_int {
    guard(|| {
        let line = [b"LOG: ", string(level)?, b" ", string(text)?].concat();
        shared(request)?.callout(&line, Reply::Unwanted)?;
        Ok(HOB_OK)
    })
}

/// Writes a line to the live trace of this request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_trace(request: *const hob_request, text: *const c_char) -> c_int {
    guard(|| {
        let line = [b"TRACE: ", string(text)?].concat();
        shared(request)?.callout(&line, Reply::Unwanted)?;
        Ok(HOB_OK)
    })
}

/// Sets how many seconds this request may take in all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_set_timeout(request: *const hob_request, seconds: i64) -> c_int {
    guard(|| {
        let text = format!("TIMEOUT: {seconds}");
        shared(request)?.callout(text.as_bytes(), Reply::Unwanted)?;
        Ok(HOB_OK)
    })
}

/// The file that a path of this site stands for. As much of its name as fits goes to `into`, which
/// then ends with NUL; the whole length goes to `*length`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_map_path(
    request: *const hob_request,
    path: *const c_char,
    into: *mut c_char,
    size: usize,
    length: *mut usize,
) -> c_int {
    guard(|| {
        let text = [b"MAP-PATH: ", string(path)?].concat();
        callout(request, &text, into, size, length)
    })
}

/// Asks the server anything: `KEYWORD: parameters`. The text of the reply goes to `into`, as in
/// hob_map_path. HOB_REFUSED when the reply does not begin with 2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_callout(
    request: *const hob_request,
    text: *const c_char,
    into: *mut c_char,
    size: usize,
    length: *mut usize,
) -> c_int {
    guard(|| callout(request, string(text)?, into, size, length))
}

/// What a code means, in words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_explain(code: c_int) -> *const c_char {
    let words = match code {
        HOB_OK => c"done",
        HOB_PLAIN_CGI => c"not started by hob: one CGI request is served",
        HOB_NO_MORE => c"no more requests come",
        HOB_MISUSE => c"the call or an argument makes no sense here",
        HOB_GONE => c"the server is gone",
        HOB_CANCELLED => c"the client has left",
        HOB_UNSUPPORTED => c"not possible as plain CGI",
        HOB_TOO_LONG => c"too long",
        HOB_REFUSED => c"the server said no",
        HOB_BROKEN => c"the server sent what this library does not understand",
        HOB_FORKED => c"called in a child of the process that connected",
        HOB_SYSTEM => c"the system said no; see errno",
        HOB_AGAIN => c"nothing came in the time that was given",
        _ => c"no code of hob",
    };
    words.as_ptr()
}

/// The library's version, as "0.1.0".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hob_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
