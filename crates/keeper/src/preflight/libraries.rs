//! Libraries of C that are loaded when they are needed: whether they are there. None is loaded.

use std::fs;
use std::path::Path;

/// What the loader knows: names of libraries and their files, each with a NUL behind it.
const CACHE: &str = "/etc/ld.so.cache";
/// Where it looks besides.
const FOLDERS: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Whether the loader would find a library of this name.
pub(super) fn is_there(name: &str) -> bool {
    let is_known = fs::read(CACHE).is_ok_and(|cache| is_in(&cache, name));
    is_known
        || FOLDERS
            .iter()
            .any(|folder| Path::new(folder).join(name).exists())
}

fn is_in(cache: &[u8], name: &str) -> bool {
    let wanted = [name.as_bytes(), b"\0"].concat();
    let mut found = memchr::memmem::find_iter(cache, &wanted);
    found.any(|at| {
        at.checked_sub(1)
            .is_none_or(|before| matches!(cache[before], 0 | b'/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_is_known_by_its_whole_name() {
        let cache =
            b"glibc-ld.so.cache1.1\0\0libodbc.so.2\0/usr/lib/libodbc.so.2.0\0libyodbc.so.1\0";
        assert!(is_in(cache, "libodbc.so.2"));
        assert!(!is_in(cache, "libodbc.so"));
        assert!(!is_in(cache, "odbc.so.2"));
        assert!(is_in(cache, "libodbc.so.2.0"));
        assert!(is_there("libc.so.6"));
        assert!(!is_there("libnone.so.0"));
    }
}
