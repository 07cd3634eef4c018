//! Between C and Rust: pointers become references, failures become codes, panics end here.
//!
//! Invariant **caller**: a pointer that C gives is null, or what `hob.h` says it must be, and stays
//! so during the call. No more can be checked; null is. Only `abi` calls these functions, and each
//! `unsafe` block here rests on that invariant.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use hob_ipc::file::FileRange;

use crate::abi::{self, HOB_BROKEN, HOB_FORKED, HOB_NO_MORE, HOB_OK, hob, hob_request};
use crate::failure::CallFailure;
use crate::fork;
use crate::request::{HobRequest, Reply};
use crate::wait::Until;

/// A failure's number for C.
fn code_of(failure: CallFailure) -> c_int {
    match failure {
        CallFailure::Misuse => abi::HOB_MISUSE,
        CallFailure::Gone => abi::HOB_GONE,
        CallFailure::Cancelled => abi::HOB_CANCELLED,
        CallFailure::Unsupported => abi::HOB_UNSUPPORTED,
        CallFailure::TooLong => abi::HOB_TOO_LONG,
        CallFailure::Refused => abi::HOB_REFUSED,
        CallFailure::Broken => HOB_BROKEN,
        CallFailure::System => abi::HOB_SYSTEM,
        CallFailure::Again => abi::HOB_AGAIN,
    }
}

/// Runs the inside of a call that returns a code.
pub(crate) fn guard(run: impl FnOnce() -> Result<c_int, CallFailure>) -> c_int {
    if fork::is_child() {
        return HOB_FORKED;
    }
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => code_of(failure),
        Err(_) => HOB_BROKEN,
    }
}

/// The same for a call that returns a count.
pub(crate) fn guard_wide(run: impl FnOnce() -> Result<i64, CallFailure>) -> i64 {
    let mut count = 0;
    let code = guard(|| {
        count = run()?;
        Ok(HOB_OK)
    });
    if code == HOB_OK { count } else { code.into() }
}

/// Runs the inside of a call that returns a string of the request's block, or null.
pub(crate) fn found<'a>(
    length: *mut usize,
    run: impl FnOnce() -> Result<Option<&'a [u8]>, CallFailure>,
) -> *const c_char {
    let mut value = None;
    guard(|| {
        value = run()?;
        Ok(HOB_OK)
    });
    if !length.is_null() {
        // SAFETY: caller: a place for a length.
        unsafe { length.write(value.map_or(0, <[u8]>::len)) };
    }
    // In a checked block a NUL follows each value.
    value.map_or(ptr::null(), |value| value.as_ptr().cast())
}

/// A place for a result.
pub(crate) fn out<T>(place: *mut T) -> Result<*mut T, CallFailure> {
    if place.is_null() {
        return Err(CallFailure::Misuse);
    }
    Ok(place)
}

/// A string that ends with NUL.
pub(crate) fn string<'a>(start: *const c_char) -> Result<&'a [u8], CallFailure> {
    if start.is_null() {
        return Err(CallFailure::Misuse);
    }
    // SAFETY: caller: a string that ends with NUL.
    Ok(unsafe { CStr::from_ptr(start) }.to_bytes())
}

/// Bytes with a length beside them; null is good for none.
pub(crate) fn bytes<'a>(start: *const c_void, size: usize) -> Result<&'a [u8], CallFailure> {
    if size == 0 {
        return Ok(&[]);
    }
    if start.is_null() || isize::try_from(size).is_err() {
        return Err(CallFailure::Misuse);
    }
    // SAFETY: caller: so many bytes that nobody writes during the call.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), size) })
}

/// A status or other small number.
pub(crate) fn number(number: c_int) -> Result<u16, CallFailure> {
    u16::try_from(number).map_err(|_| CallFailure::Misuse)
}

/// The server that a handle stands for.
pub(crate) fn server_of<'a>(server: *const hob) -> Result<&'a hob, CallFailure> {
    // SAFETY: caller: made by hob_connect and not closed.
    unsafe { server.as_ref() }.ok_or(CallFailure::Misuse)
}

/// The request that a handle stands for, to read.
pub(crate) fn shared<'a>(request: *const hob_request) -> Result<&'a HobRequest, CallFailure> {
    // SAFETY: caller: accepted, not finished, and no other thread's now.
    let request = unsafe { request.as_ref() };
    request
        .map(|request| &request.inner)
        .ok_or(CallFailure::Misuse)
}

/// The request that a handle stands for, to change.
pub(crate) fn unique<'a>(request: *mut hob_request) -> Result<&'a mut HobRequest, CallFailure> {
    // SAFETY: caller: accepted, not finished, and no other thread's now.
    let request = unsafe { request.as_mut() };
    request
        .map(|request| &mut request.inner)
        .ok_or(CallFailure::Misuse)
}

/// The request that a handle stood for, at its end.
pub(crate) fn owned(request: *mut hob_request) -> Result<HobRequest, CallFailure> {
    if request.is_null() {
        return Err(CallFailure::Misuse);
    }
    // SAFETY: caller: accepted and not finished; after this call the handle means nothing.
    Ok(unsafe { Box::from_raw(request) }.inner)
}

/// Accepts a request into `*request`.
pub(crate) fn accept(server: *mut hob, request: *mut *mut hob_request, until: Until) -> c_int {
    guard(|| {
        let place = out(request)?;
        let Some(inner) = HobRequest::accept(&server_of(server)?.source, until)? else {
            return Ok(HOB_NO_MORE);
        };
        // SAFETY: caller: a place for a pointer; not null.
        unsafe { place.write(Box::into_raw(Box::new(hob_request { inner }))) };
        Ok(HOB_OK)
    })
}

/// Reads body into memory of C's.
pub(crate) fn read(request: *mut hob_request, into: *mut c_void, size: usize, until: Until) -> i64 {
    guard_wide(|| {
        if size == 0 {
            return Ok(0);
        }
        let size = size.min(isize::MAX.cast_unsigned());
        let into = out(into)?.cast::<u8>();
        // SAFETY: caller: so many bytes that are ours during the call. They may not have been
        // written yet, but are only written here, never read.
        let into = unsafe { std::slice::from_raw_parts_mut(into, size) };
        let count = unique(request)?.read(into, until)?;
        Ok(count as i64)
    })
}

/// Asks the server something; the reply goes to memory of C's.
pub(crate) fn callout(
    request: *const hob_request,
    text: &[u8],
    into: *mut c_char,
    size: usize,
    length: *mut usize,
) -> Result<c_int, CallFailure> {
    let mut reply = vec![0; size];
    let whole = shared(request)?.callout(text, Reply::Into(&mut reply))?;
    if !length.is_null() {
        // SAFETY: caller: a place for a length.
        unsafe { length.write(whole) };
    }
    if size > 0 {
        reply[whole.min(size - 1)] = 0;
        let into = out(into)?.cast::<u8>();
        // SAFETY: caller: a place for `size` bytes, which is how long `reply` is.
        unsafe { ptr::copy_nonoverlapping(reply.as_ptr(), into, size) };
    }
    Ok(HOB_OK)
}

/// A file of which less is to be sent is copied: passing it costs more.
const PASSED_BYTES_MIN: u64 = 64 * 1024;

/// Sends bytes of a file: passes its descriptor on, or writes them into the answer.
pub(crate) fn send_file(
    request: &mut HobRequest,
    fd: c_int,
    offset: i64,
    length: i64,
) -> Result<i64, CallFailure> {
    let len = match passable(fd, offset, length) {
        // SAFETY: caller: the descriptor is open during the call; `passable` has used it.
        Some(range) if request.pass_file(unsafe { BorrowedFd::borrow_raw(fd) }, range)? => {
            range.len
        }
        _ => return copy_file(request, fd, offset, length),
    };
    i64::try_from(len).map_err(|_| CallFailure::Misuse)
}

/// What of a file may be sent by its descriptor: a part that is there, of a file that is one.
fn passable(fd: c_int, offset: i64, length: i64) -> Option<FileRange> {
    // SAFETY: zeroes are a value of it.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is a place for what the kernel writes; a wrong descriptor is only refused.
    let (status, flags) = unsafe {
        (
            libc::fstat(fd, &raw mut stat),
            libc::fcntl(fd, libc::F_GETFL),
        )
    };
    let is_regular = status == 0 && stat.st_mode & libc::S_IFMT == libc::S_IFREG;
    let is_readable =
        flags >= 0 && flags & libc::O_PATH == 0 && flags & libc::O_ACCMODE != libc::O_WRONLY;
    if !is_regular || !is_readable {
        return None;
    }
    let offset = u64::try_from(offset).ok()?;
    let there = u64::try_from(stat.st_size).ok()?.checked_sub(offset)?;
    // Below 0 is all there is.
    let len = u64::try_from(length).map_or(there, |length| length.min(there));
    (len >= PASSED_BYTES_MIN).then_some(FileRange { offset, len })
}

/// Writes bytes of a file into an answer, straight to where they leave from.
fn copy_file(
    request: &mut HobRequest,
    fd: c_int,
    offset: i64,
    length: i64,
) -> Result<i64, CallFailure> {
    let mut sent = 0;
    let mut plain = Vec::new();
    while length < 0 || sent < length {
        let (place, size) = match request.space() {
            Ok(space) => space,
            Err(CallFailure::Unsupported) => {
                plain.resize(64 * 1024, 0);
                (plain.as_mut_ptr(), plain.len())
            }
            Err(failure) => return Err(failure),
        };
        let left = usize::try_from(length - sent).unwrap_or(usize::MAX);
        let at = offset.checked_add(sent).ok_or(CallFailure::Misuse)?;
        // SAFETY: `space` says that `size` bytes can be written there until the next call; the
        // kernel writes them.
        let count = unsafe { libc::pread(fd, place.cast(), size.min(left), at) };
        match count {
            0 => break,
            ..0 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            ..0 => return Err(CallFailure::System),
            count if plain.is_empty() => {
                request.advance(count.cast_unsigned())?;
                sent += count as i64;
            }
            count => {
                request.write(&plain[..count.cast_unsigned()])?;
                sent += count as i64;
            }
        }
    }
    Ok(sent)
}
