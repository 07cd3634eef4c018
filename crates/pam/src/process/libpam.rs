//! Calls of PAM, which is loaded at run time: `libpam.so.0`.
//!
//! Unsafe because it is C. All of it is here; what others use is safe to use: a handle is ended
//! once, what a conversation answers with lives as long as the handle, and what it gives away is
//! memory of `malloc`, which is what PAM frees.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

use crate::message::{NAME_BYTES_MAX, PamRequest, PamVerdict};

/// The file that is loaded.
const LIBRARY: &CStr = c"libpam.so.0";
/// Most messages of one call, as PAM has it.
const MESSAGES_MAX: usize = 32;
/// What modules say of a failure is kept up to this, in bytes.
const SAID_MAX: usize = 256;

type Handle = *mut c_void;

/// Numbers of `_pam_types.h`.
mod pam {
    use super::{c_int, c_uint};

    pub(super) const SUCCESS: c_int = 0;
    pub(super) const BUF_ERR: c_int = 5;
    pub(super) const PERM_DENIED: c_int = 6;
    pub(super) const AUTH_ERR: c_int = 7;
    pub(super) const CRED_INSUFFICIENT: c_int = 8;
    pub(super) const USER_UNKNOWN: c_int = 10;
    pub(super) const MAXTRIES: c_int = 11;
    pub(super) const NEW_AUTHTOK_REQD: c_int = 12;
    pub(super) const ACCT_EXPIRED: c_int = 13;
    pub(super) const CRED_EXPIRED: c_int = 16;
    pub(super) const CONV_ERR: c_int = 19;
    pub(super) const AUTHTOK_EXPIRED: c_int = 27;

    pub(super) const ITEM_USER: c_int = 2;
    pub(super) const ITEM_RHOST: c_int = 4;
    pub(super) const ITEM_FAIL_DELAY: c_int = 10;

    pub(super) const PROMPT_ECHO_OFF: c_int = 1;
    pub(super) const PROMPT_ECHO_ON: c_int = 2;
    pub(super) const ERROR_MSG: c_int = 3;
    pub(super) const TEXT_INFO: c_int = 4;

    /// An account without a password lets nobody in.
    pub(super) const DISALLOW_NULL_AUTHTOK: c_int = 1;

    pub(super) type FailDelay = extern "C" fn(c_int, c_uint, *mut super::c_void);
}

#[repr(C)]
struct PamMessage {
    style: c_int,
    text: *const c_char,
}

#[repr(C)]
struct PamResponse {
    text: *mut c_char,
    /// PAM wants a zero here.
    code: c_int,
}

#[repr(C)]
struct PamConv {
    answer: unsafe extern "C" fn(
        c_int,
        *mut *const PamMessage,
        *mut *mut PamResponse,
        *mut c_void,
    ) -> c_int,
    data: *mut c_void,
}

/// Declares what is called, and looks it up by its name.
macro_rules! functions {
    ($($name:ident $symbol:literal $kind:ty;)*) => {
        /// What is called of the library.
        pub(super) struct PamLibrary { $($name: Option<$kind>,)* }

        impl PamLibrary {
            /// # Safety
            /// The library is Linux-PAM.
            unsafe fn of(library: Handle) -> PamLibrary {
                PamLibrary {
                    $($name: {
                        // SAFETY: the library is open, and the name ends in NUL.
                        let found = unsafe { libc::dlsym(library, $symbol.as_ptr()) };
                        // SAFETY: this is how Linux-PAM declares it.
                        (!found.is_null())
                            .then(|| unsafe { std::mem::transmute::<Handle, $kind>(found) })
                    },)*
                }
            }
        }
    };
}

type Start =
    unsafe extern "C" fn(*const c_char, *const c_char, *const PamConv, *mut Handle) -> c_int;
type StartIn = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const PamConv,
    *const c_char,
    *mut Handle,
) -> c_int;

functions! {
    start c"pam_start" Start;
    start_in c"pam_start_confdir" StartIn;
    set_item c"pam_set_item" unsafe extern "C" fn(Handle, c_int, *const c_void) -> c_int;
    get_item c"pam_get_item" unsafe extern "C" fn(Handle, c_int, *mut *const c_void) -> c_int;
    authenticate c"pam_authenticate" unsafe extern "C" fn(Handle, c_int) -> c_int;
    manage_account c"pam_acct_mgmt" unsafe extern "C" fn(Handle, c_int) -> c_int;
    end c"pam_end" unsafe extern "C" fn(Handle, c_int) -> c_int;
    text_of c"pam_strerror" unsafe extern "C" fn(Handle, c_int) -> *const c_char;
}

impl PamLibrary {
    /// Loads it; it stays for as long as the process.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(super) fn load() -> Result<PamLibrary, String> {
        // SAFETY: the name ends in NUL, and loading runs only what the library brings along.
        let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW) };
        if library.is_null() {
            let text = "libpam.so.0 cannot be loaded: install it (Debian: libpam0g)";
            return Err(text.to_owned());
        }
        // SAFETY: only Linux-PAM has a library of this name.
        Ok(unsafe { PamLibrary::of(library) })
    }
}

/// Why nobody is let in.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) verdict: PamVerdict,
    /// In PAM's words.
    pub(super) text: String,
}

/// What prompts are answered with, and what is said besides.
struct PromptAnswers {
    user: CString,
    password: CString,
    said: RefCell<Vec<u8>>,
}

impl Drop for PromptAnswers {
    fn drop(&mut self) {
        let mut password = std::mem::take(&mut self.password).into_bytes();
        wipe(&mut password);
    }
}

/// A conversation that has begun.
pub(super) struct Conversation<'l> {
    library: &'l PamLibrary,
    handle: Handle,
    /// PAM knows both by their addresses.
    answers: Rc<PromptAnswers>,
    _conv: Rc<PamConv>,
    last: c_int,
}

impl<'l> Conversation<'l> {
    /// Begins one. The password of the request is wiped when it is over.
    ///
    /// # Errors
    /// PAM does not begin, in words.
    pub(super) fn begin(
        library: &'l PamLibrary,
        mut request: PamRequest,
    ) -> Result<Conversation<'l>, String> {
        let text = |bytes: Vec<u8>| CString::new(bytes).map_err(|_| "a NUL".to_owned());
        let service = text(std::mem::take(&mut request.service).into_bytes())?;
        let address = text(std::mem::take(&mut request.address).into_bytes())?;
        let services = text(std::mem::take(&mut request.services))?;
        let answers = Rc::new(PromptAnswers {
            user: text(std::mem::take(&mut request.user).into_bytes())?,
            password: text(std::mem::take(&mut request.password))?,
            said: RefCell::default(),
        });
        let conv = Rc::new(PamConv {
            answer,
            data: Rc::as_ptr(&answers).cast_mut().cast(),
        });
        let (user, conv_at) = (answers.user.as_ptr(), Rc::as_ptr(&conv));
        let mut handle = null_mut();
        let begun = match (services.is_empty(), library.start, library.start_in) {
            // SAFETY: all strings end in NUL; what is pointed to lives as long as the handle.
            (true, Some(start), _) => unsafe {
                start(service.as_ptr(), user, conv_at, &raw mut handle)
            },
            // SAFETY: the same.
            (false, _, Some(start)) => unsafe {
                let folder = services.as_ptr();
                start(service.as_ptr(), user, conv_at, folder, &raw mut handle)
            },
            (true, None, _) => return Err("libpam.so.0 has no `pam_start`".to_owned()),
            (false, _, None) => {
                return Err("`services` needs Linux-PAM 1.4 or newer".to_owned());
            }
        };
        let conversation = Conversation {
            library,
            handle,
            answers,
            _conv: conv,
            last: begun,
        };
        if begun != pam::SUCCESS || handle.is_null() {
            return Err(format!("pam_start: {}", conversation.text_of(begun)));
        }
        if !address.is_empty() {
            conversation.set(pam::ITEM_RHOST, address.as_ptr().cast());
        }
        // Whoever guesses is slowed down by the server, without a process that waits.
        conversation.set(
            pam::ITEM_FAIL_DELAY,
            no_delay as pam::FailDelay as *const c_void,
        );
        Ok(conversation)
    }

    fn set(&self, item: c_int, value: *const c_void) {
        if let Some(set_item) = self.library.set_item {
            // SAFETY: the handle is open; PAM copies texts, and the function is there for good.
            let _ = unsafe { set_item(self.handle, item, value) };
        }
    }

    /// Asks whether the password is right and the account may be used; gives the account's name as
    /// PAM has it then.
    ///
    /// # Errors
    /// Nobody is to be let in.
    pub(super) fn ask(mut self) -> Result<String, Refusal> {
        let (Some(authenticate), Some(manage_account)) =
            (self.library.authenticate, self.library.manage_account)
        else {
            return Err(self.refuse(PamVerdict::Failed, "libpam.so.0 lacks functions"));
        };
        // SAFETY: the handle is open.
        self.last = unsafe { authenticate(self.handle, pam::DISALLOW_NULL_AUTHTOK) };
        match of_authentication(self.last) {
            PamVerdict::Yes => {}
            verdict => return Err(self.refuse_by("pam_authenticate", verdict)),
        }
        // SAFETY: the same.
        self.last = unsafe { manage_account(self.handle, pam::DISALLOW_NULL_AUTHTOK) };
        match of_account(self.last) {
            PamVerdict::Yes => {}
            verdict => return Err(self.refuse_by("pam_acct_mgmt", verdict)),
        }
        self.name().ok_or_else(|| {
            self.refuse(
                PamVerdict::Failed,
                "PAM gives the account a name that is none",
            )
        })
    }

    /// The account's name: modules may have made another of it.
    fn name(&self) -> Option<String> {
        let mut item: *const c_void = null_mut();
        // SAFETY: the handle is open, and there is room for a pointer.
        let got = unsafe { self.library.get_item?(self.handle, pam::ITEM_USER, &raw mut item) };
        if got != pam::SUCCESS || item.is_null() {
            return None;
        }
        // SAFETY: this item is a string that ends in NUL, and lives until the next call.
        let name = unsafe { CStr::from_ptr(item.cast()) }.to_str().ok()?;
        let is_name = !name.is_empty() && name.len() <= NAME_BYTES_MAX;
        (is_name && !name.chars().any(char::is_control)).then(|| name.to_owned())
    }

    fn refuse_by(&self, step: &str, verdict: PamVerdict) -> Refusal {
        let said = String::from_utf8_lossy(&self.answers.said.borrow()).into_owned();
        let text = self.text_of(self.last);
        match said.is_empty() {
            true => self.refuse(verdict, &format!("{step}: {text}")),
            false => self.refuse(verdict, &format!("{step}: {text}: {said}")),
        }
    }

    fn refuse(&self, verdict: PamVerdict, text: &str) -> Refusal {
        Refusal {
            verdict,
            text: text.to_owned(),
        }
    }

    /// A number in PAM's words.
    fn text_of(&self, number: c_int) -> String {
        // SAFETY: it takes any number and any handle, and gives a string that stays, or nothing.
        let text = self
            .library
            .text_of
            .map(|text_of| unsafe { text_of(self.handle, number) });
        match text.filter(|text| !text.is_null()) {
            // SAFETY: as above.
            Some(text) => unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned(),
            None => format!("error {number}"),
        }
    }
}

impl Drop for Conversation<'_> {
    fn drop(&mut self) {
        if let (Some(end), false) = (self.library.end, self.handle.is_null()) {
            // SAFETY: the handle is open, and nobody uses it any more.
            let _ = unsafe { end(self.handle, self.last) };
        }
    }
}

/// What `pam_authenticate` says.
fn of_authentication(number: c_int) -> PamVerdict {
    match number {
        pam::SUCCESS => PamVerdict::Yes,
        pam::AUTH_ERR
        | pam::USER_UNKNOWN
        | pam::CRED_INSUFFICIENT
        | pam::MAXTRIES
        | pam::PERM_DENIED => PamVerdict::Wrong,
        pam::ACCT_EXPIRED | pam::NEW_AUTHTOK_REQD | pam::AUTHTOK_EXPIRED | pam::CRED_EXPIRED => {
            PamVerdict::Refused
        }
        _ => PamVerdict::Failed,
    }
}

/// What `pam_acct_mgmt` says.
fn of_account(number: c_int) -> PamVerdict {
    match of_authentication(number) {
        PamVerdict::Wrong => PamVerdict::Refused,
        verdict => verdict,
    }
}

/// There is no waiting here.
extern "C" fn no_delay(_status: c_int, _micros: c_uint, _data: *mut c_void) {}

/// Answers prompts: those that show nothing with the password, others with the name.
///
/// # Safety
/// PAM calls it, with so many messages, room for a pointer, and [`PromptAnswers`].
unsafe extern "C" fn answer(
    count: c_int,
    messages: *mut *const PamMessage,
    responses: *mut *mut PamResponse,
    data: *mut c_void,
) -> c_int {
    let Some(count) = usize::try_from(count)
        .ok()
        .filter(|n| (1..=MESSAGES_MAX).contains(n))
    else {
        return pam::CONV_ERR;
    };
    if messages.is_null() || responses.is_null() || data.is_null() {
        return pam::CONV_ERR;
    }
    // SAFETY: it is what the handle was begun with, and nobody changes it meanwhile.
    let answers = unsafe { &*data.cast::<PromptAnswers>() };
    // SAFETY: any size; zeros are responses without a text.
    let made = unsafe { libc::calloc(count, size_of::<PamResponse>()) }.cast::<PamResponse>();
    if made.is_null() {
        return pam::BUF_ERR;
    }
    let mut result = pam::SUCCESS;
    for index in 0..count {
        // SAFETY: there are so many, and Linux-PAM passes an array of pointers.
        let message = unsafe { &**messages.add(index) };
        let text = match message.style {
            pam::PROMPT_ECHO_OFF => &answers.password,
            pam::PROMPT_ECHO_ON => &answers.user,
            pam::ERROR_MSG | pam::TEXT_INFO => {
                if !message.text.is_null() {
                    // SAFETY: a message ends in NUL.
                    answers.hear(unsafe { CStr::from_ptr(message.text) });
                }
                continue;
            }
            _ => {
                result = pam::CONV_ERR;
                break;
            }
        };
        // SAFETY: it ends in NUL, and there is room for so many responses.
        unsafe {
            (*made.add(index)).text = libc::strdup(text.as_ptr());
            if (*made.add(index)).text.is_null() {
                result = pam::BUF_ERR;
                break;
            }
        }
    }
    if result != pam::SUCCESS {
        // SAFETY: what was made here is nobody else's.
        unsafe { forget(made, count) };
        return result;
    }
    // SAFETY: there is room for a pointer; who called frees what it points to.
    unsafe { *responses = made };
    pam::SUCCESS
}

/// Frees responses that nobody gets, and wipes what is in them.
///
/// # Safety
/// They are so many, of `calloc`, with texts of `strdup` or none.
unsafe fn forget(made: *mut PamResponse, count: usize) {
    for index in 0..count {
        // SAFETY: as above.
        unsafe {
            let text = (*made.add(index)).text;
            if !text.is_null() {
                let bytes = std::slice::from_raw_parts_mut(text.cast::<u8>(), libc::strlen(text));
                wipe(bytes);
                libc::free(text.cast());
            }
        }
    }
    // SAFETY: as above.
    unsafe { libc::free(made.cast()) };
}

impl PromptAnswers {
    /// Keeps the begin of what modules say.
    fn hear(&self, text: &CStr) {
        let mut said = self.said.borrow_mut();
        let text = text.to_bytes();
        if !said.is_empty() && !text.is_empty() && said.len() < SAID_MAX {
            said.extend_from_slice(b"; ");
        }
        let room = SAID_MAX.saturating_sub(said.len());
        said.extend_from_slice(&text[..text.len().min(room)]);
    }
}

/// Zeros in place of bytes, also where nobody would read them any more.
pub(super) fn wipe(bytes: &mut [u8]) {
    // SAFETY: they are so many, and nobody else's.
    unsafe { libc::explicit_bzero(bytes.as_mut_ptr().cast(), bytes.len()) };
}

/// The process ends by itself after so many seconds, whatever modules do.
pub(super) fn end_after(seconds: u32) {
    // SAFETY: it takes any number; the signal has its default effect, set here.
    unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pam_says_is_yes_for_nothing_but_success() {
        assert_eq!(of_authentication(pam::SUCCESS), PamVerdict::Yes);
        assert_eq!(of_account(pam::SUCCESS), PamVerdict::Yes);
        for number in (-100..100).filter(|number| *number != pam::SUCCESS) {
            assert_ne!(of_authentication(number), PamVerdict::Yes, "{number}");
            assert_ne!(of_account(number), PamVerdict::Yes, "{number}");
            assert_ne!(of_account(number), PamVerdict::Wrong, "{number}");
        }
        assert_eq!(of_authentication(pam::USER_UNKNOWN), PamVerdict::Wrong);
        assert_eq!(of_account(pam::NEW_AUTHTOK_REQD), PamVerdict::Refused);
        assert_eq!(of_account(pam::CONV_ERR), PamVerdict::Failed);
    }

    /// What prompts of these kinds are answered with.
    fn answered(styles: &[c_int]) -> Result<Vec<Option<Vec<u8>>>, c_int> {
        let mut answers = PromptAnswers {
            user: c"ann".to_owned(),
            password: c"sesame".to_owned(),
            said: RefCell::default(),
        };
        let text = c"Say:".as_ptr();
        let messages = styles.iter().map(|style| PamMessage {
            style: *style,
            text,
        });
        let messages: Vec<PamMessage> = messages.collect();
        let mut at: Vec<*const PamMessage> = messages.iter().map(|one| &raw const *one).collect();
        let mut made: *mut PamResponse = null_mut();
        let data = (&raw mut answers).cast();
        let count = styles.len() as c_int;
        // SAFETY: as PAM calls it.
        let result = unsafe { answer(count, at.as_mut_ptr(), &raw mut made, data) };
        if result != pam::SUCCESS {
            assert!(made.is_null());
            return Err(result);
        }
        let texts = (0..styles.len()).map(|index| {
            // SAFETY: so many were made; texts end in NUL.
            unsafe {
                let text = (*made.add(index)).text;
                (!text.is_null()).then(|| CStr::from_ptr(text).to_bytes().to_vec())
            }
        });
        let texts = texts.collect();
        // SAFETY: they were made so.
        unsafe { forget(made, styles.len()) };
        Ok(texts)
    }

    #[test]
    fn prompts_are_answered_by_their_kind_and_none_that_is_unknown() {
        let (user, password) = (Some(b"ann".to_vec()), Some(b"sesame".to_vec()));
        let all = [
            pam::PROMPT_ECHO_OFF,
            pam::TEXT_INFO,
            pam::PROMPT_ECHO_ON,
            pam::ERROR_MSG,
            pam::PROMPT_ECHO_OFF,
        ];
        let wanted = vec![password.clone(), None, user, None, password];
        assert_eq!(answered(&all), Ok(wanted));
        for unknown in [0, 5, 7, -1] {
            let kinds = [pam::PROMPT_ECHO_OFF, unknown];
            assert_eq!(answered(&kinds), Err(pam::CONV_ERR));
        }
        assert_eq!(answered(&[]), Err(pam::CONV_ERR));
        let many = [pam::TEXT_INFO; MESSAGES_MAX + 1];
        assert_eq!(answered(&many), Err(pam::CONV_ERR));
    }
}
