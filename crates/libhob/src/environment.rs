//! The environment, read as C reads it.
#![allow(unsafe_code)]

use std::ffi::CStr;

/// A variable of the environment, without taking locks that a program may hold.
pub(crate) fn value_of(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: `name` ends with NUL; nobody changes the environment meanwhile, as the header asks.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: a variable's value ends with NUL and stays until the variable is changed.
    Some(unsafe { CStr::from_ptr(value) }.to_bytes())
}

/// All of the environment, as `NAME=value`.
pub(crate) fn all() -> Vec<Vec<u8>> {
    unsafe extern "C" {
        static environ: *const *const libc::c_char;
    }
    let mut entries = Vec::new();
    // SAFETY: `environ` is an array of strings that ends with a null pointer.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            entries.push(CStr::from_ptr(*entry).to_bytes().to_vec());
            entry = entry.add(1);
        }
    }
    entries
}
