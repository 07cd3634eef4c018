//! What a child is started with: what holds for every start of a program, what is particular to
//! one, and where the strings of it are.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::ptr;
use std::rc::Rc;

/// What holds for every start of one program, prepared once. Descriptors and arrays belong to it.
#[derive(Debug, Default)]
pub(super) struct Recipe {
    /// Namespaces to make, as clone flags.
    pub(super) namespaces: u64,
    /// Texts for `/proc/self/uid_map` and `gid_map` when one of them is a user namespace.
    pub(super) maps: Option<(Vec<u8>, Vec<u8>)>,
    /// An empty `/tmp`, and a `/proc`, in the mount namespace.
    pub(super) mount_tmp: bool,
    pub(super) mount_proc: bool,
    /// Resource, soft and hard limit.
    pub(super) limits: Vec<(u32, [u64; 2])>,
    pub(super) nice: Option<i32>,
    pub(super) io_priority: Option<i32>,
    /// A bit per CPU; empty is all.
    pub(super) cpus: Vec<u64>,
    pub(super) umask: Option<u32>,
    pub(super) identity: Option<ChildCredentials>,
    pub(super) no_new_privileges: bool,
    pub(super) sandbox: Option<OwnedFd>,
    /// Variables of every process, each with its NUL.
    pub(super) variables: Vec<u8>,
    /// The memory must not be shared with children of this program.
    pub(super) must_fork: bool,
}

/// Who a child becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChildCredentials {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) groups: Vec<u32>,
}

/// What is particular to one start.
pub(super) struct Particulars<'a> {
    pub(super) recipe: Rc<Recipe>,
    /// Standard input, output and error.
    pub(super) descriptors: [BorrowedFd<'a>; 3],
    /// What becomes its descriptor 3.
    pub(super) channel: Option<BorrowedFd<'a>>,
    /// `cgroup.procs` of the control groups it enters.
    pub(super) groups: &'a [OwnedFd],
    /// The folder of the control group it is born in.
    pub(super) born_in: Option<BorrowedFd<'a>>,
    /// What marks everything it starts: a limit that nothing else uses.
    pub(super) mark: u64,
    /// Process id of the spawner.
    pub(super) spawner: i32,
    pub(super) outlives: bool,
    /// Who it becomes instead of who the recipe says, and what is checked then.
    pub(super) account: Option<AccountStart>,
}

/// Where the strings of a start are, and how many there are of each kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct StringsLayout {
    /// Offset of the strings in the slot's buffer; 0 when they came as memory.
    pub(super) offset: usize,
    pub(super) len: usize,
    pub(super) argument_count: usize,
    pub(super) variable_count: usize,
}

/// A program that runs as the account whose folder it is in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AccountStart {
    pub(super) identity: ChildCredentials,
    pub(super) way: AccountWay,
}

/// The way to such a program from a folder that no account has a say in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AccountWay {
    /// That folder, with its NUL.
    pub(super) fixed: Vec<u8>,
    /// The names from there on, each with its NUL; the last is the program's.
    pub(super) names: Vec<u8>,
    /// How many they are.
    pub(super) count: usize,
    /// The program is executed itself, and not its interpreter.
    pub(super) executes_itself: bool,
}

impl AccountWay {
    /// The way to a file; `None` where it does not lead straight down from `fixed`.
    pub(super) fn to(fixed: &Path, file: &[u8], executes_itself: bool) -> Option<AccountWay> {
        let fixed = fixed.as_os_str().as_encoded_bytes();
        let begin = fixed.strip_suffix(b"/").unwrap_or(fixed);
        let rest = file.strip_prefix(begin)?.strip_prefix(b"/")?;
        let (mut names, mut count) = (Vec::with_capacity(rest.len() + 1), 0);
        for name in rest.split(|byte| *byte == b'/') {
            if matches!(name, b"" | b"." | b"..") || name.contains(&0) {
                return None;
            }
            names.extend_from_slice(name);
            names.push(0);
            count += 1;
        }
        Some(AccountWay {
            fixed: [fixed, b"\0"].concat(),
            names,
            count,
            executes_itself,
        })
    }
}

/// Fills in the addresses: path, folder, arguments, null, variables (`own` first), null. False when
/// the strings are not what the layout says.
pub(super) fn point(
    pointers: &mut Vec<*const u8>,
    strings: &[u8],
    layout: StringsLayout,
    own: &[u8],
) -> bool {
    pointers.clear();
    let first_variable = 2 + layout.argument_count;
    pointers.reserve(first_variable + layout.variable_count + 2);
    let mut starts = starts_of(strings);
    pointers.extend(starts.by_ref().take(first_variable));
    let has_arguments = pointers.len() == first_variable;
    pointers.push(ptr::null());
    pointers.extend(starts_of(own));
    let before = pointers.len();
    pointers.extend(starts);
    let has_variables = pointers.len() - before == layout.variable_count;
    pointers.push(ptr::null());
    has_arguments && has_variables && strings.last() == Some(&0)
}

/// Where the strings in a block begin, each with its NUL.
fn starts_of(block: &[u8]) -> impl Iterator<Item = *const u8> {
    let mut start = 0;
    memchr::memchr_iter(0, block).map(move |end| {
        let string = block[start..].as_ptr();
        start = end + 1;
        string
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn way_leads_straight_down() {
        let to = |file: &str| AccountWay::to(Path::new("/people"), file.as_bytes(), true);
        let way = to("/people/ann/cgi/a").unwrap();
        assert_eq!(
            (&*way.fixed, &*way.names, way.count),
            (b"/people\0".as_slice(), b"ann\0cgi\0a\0".as_slice(), 3)
        );
        for file in [
            "/people",
            "/people/",
            "/peoples/ann/a",
            "/people/ann//a",
            "/people/ann/./a",
            "/people/ann/../a",
            "/people/ann/a/",
            "/srv/ann/a",
        ] {
            assert_eq!(to(file), None, "{file}");
        }
        let from_root = AccountWay::to(Path::new("/"), b"/ann/a", false).unwrap();
        assert_eq!((&*from_root.fixed, from_root.count), (b"/\0".as_slice(), 2));
    }
}
