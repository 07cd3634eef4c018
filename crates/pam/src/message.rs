//! What the server asks, and what the process says to it: each is one message, up to the end of its
//! pipe.
//!
//! ```text
//!  request   u8 version (1), u16 seconds, then five texts:
//!            service, folder of services or nothing, name, password, address of the client
//!  reply     u8 version (1), u8 verdict: 1 yes, 2 wrong, 3 refused, 4 failed;
//!            text: yes: the account's name, else what PAM says
//!            u16 count, texts: yes: groups, else none
//!
//!  text      u16 bytes, and the bytes            numbers are little-endian
//! ```
//!
//! Whatever else comes is refused by whoever reads it: modules of PAM may write anywhere.

use std::fmt;

const VERSION: u8 = 1;
/// Bytes of a request; they fit into a pipe of any size.
pub const REQUEST_BYTES_MAX: usize = 4096;
/// Bytes of a reply.
pub const REPLY_BYTES_MAX: usize = 300 * 1024;
/// Bytes of a name, of an account or of a group.
pub const NAME_BYTES_MAX: usize = 256;
/// Bytes of a password: what modules of PAM take, without the NUL.
pub const PASSWORD_BYTES_MAX: usize = 511;
/// Groups of an account that are told.
pub const GROUPS_MAX: usize = 1024;
/// Bytes of what PAM says of a failure.
pub const SAID_BYTES_MAX: usize = 512;

/// What is asked.
#[derive(Clone, PartialEq, Eq)]
pub struct PamRequest {
    /// After so many seconds the process ends by itself.
    pub seconds: u16,
    /// The service.
    pub service: String,
    /// A folder that has it; nothing is where the system has them.
    pub services: Vec<u8>,
    /// Who somebody says to be.
    pub user: String,
    /// The password.
    pub password: Vec<u8>,
    /// Where the client is, or nothing.
    pub address: String,
}

/// What PAM thinks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PamVerdict {
    /// The password is right, and the account may be used.
    Yes,
    /// There is no such account, or the password is another one.
    Wrong,
    /// The account is locked or expired, may not come now or from there, or has to have a new
    /// password.
    Refused,
    /// PAM cannot say.
    Failed,
}

/// What comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PamReply {
    /// What PAM thinks of it.
    pub verdict: PamVerdict,
    /// The account's name, as PAM has it, where it may come in; else what PAM says, for whoever
    /// runs the server.
    pub text: String,
    /// The account's groups.
    pub groups: Vec<String>,
}

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedPamMessage;

impl fmt::Display for MalformedPamMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed message about a password")
    }
}

impl std::error::Error for MalformedPamMessage {}

impl fmt::Debug for PamRequest {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PamRequest")
            .field("service", &self.service)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl PamRequest {
    /// Whether PAM can be asked about a name and a password at all. Names with a slash are files to
    /// some modules, and an empty password is to some servers of others' no password at all, which
    /// is always right.
    pub fn is_askable(user: &str, password: &[u8]) -> bool {
        let is_name = !user.is_empty()
            && user.len() <= NAME_BYTES_MAX
            && !user.starts_with('-')
            && user != "."
            && user != ".."
            && !user.chars().any(|c| c == '/' || c.is_control());
        let is_password =
            !password.is_empty() && password.len() <= PASSWORD_BYTES_MAX && !password.contains(&0);
        is_name && is_password
    }

    /// Its bytes.
    ///
    /// # Errors
    /// It is too long.
    pub fn encode(&self) -> Result<Vec<u8>, MalformedPamMessage> {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.seconds.to_le_bytes());
        put(&mut bytes, self.service.as_bytes())?;
        put(&mut bytes, &self.services)?;
        put(&mut bytes, self.user.as_bytes())?;
        put(&mut bytes, &self.password)?;
        put(&mut bytes, self.address.as_bytes())?;
        match bytes.len() <= REQUEST_BYTES_MAX {
            true => Ok(bytes),
            false => Err(MalformedPamMessage),
        }
    }

    /// The request that these bytes are, and nothing besides.
    ///
    /// # Errors
    /// They are none.
    pub fn decode(bytes: &[u8]) -> Result<PamRequest, MalformedPamMessage> {
        let mut reader = PamReader::of(bytes, REQUEST_BYTES_MAX)?;
        let request = PamRequest {
            seconds: reader.u16()?,
            service: reader.text(NAME_BYTES_MAX)?,
            services: reader.block(REQUEST_BYTES_MAX)?.to_vec(),
            user: reader.text(NAME_BYTES_MAX)?,
            password: reader.block(PASSWORD_BYTES_MAX)?.to_vec(),
            address: reader.text(NAME_BYTES_MAX)?,
        };
        let texts = [
            request.service.as_bytes(),
            &request.services,
            request.address.as_bytes(),
        ];
        let has_nul = texts.iter().any(|text| text.contains(&0));
        match !has_nul && PamRequest::is_askable(&request.user, &request.password) {
            true => reader.end().map(|()| request),
            false => Err(MalformedPamMessage),
        }
    }
}

impl PamVerdict {
    fn number(self) -> u8 {
        match self {
            PamVerdict::Yes => 1,
            PamVerdict::Wrong => 2,
            PamVerdict::Refused => 3,
            PamVerdict::Failed => 4,
        }
    }

    fn of(number: u8) -> Result<PamVerdict, MalformedPamMessage> {
        match number {
            1 => Ok(PamVerdict::Yes),
            2 => Ok(PamVerdict::Wrong),
            3 => Ok(PamVerdict::Refused),
            4 => Ok(PamVerdict::Failed),
            _ => Err(MalformedPamMessage),
        }
    }
}

impl PamReply {
    /// One that lets nobody in.
    pub fn no(verdict: PamVerdict, said: &str) -> PamReply {
        PamReply {
            verdict,
            text: cut(said, SAID_BYTES_MAX),
            groups: Vec::new(),
        }
    }

    /// Its bytes. What would be too long is not in them: groups whose names nobody could tell.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, self.verdict.number()];
        let text = cut(&self.text, SAID_BYTES_MAX);
        let mut groups: Vec<&String> = self.groups.iter().collect();
        groups.retain(|name| is_name(name));
        groups.truncate(GROUPS_MAX);
        // Neither fails: they are as short as that.
        let _ = put(&mut bytes, text.as_bytes());
        bytes.extend_from_slice(&(groups.len() as u16).to_le_bytes());
        for name in groups {
            let room = REPLY_BYTES_MAX - bytes.len();
            debug_assert!(room >= name.len() + 2);
            let _ = put(&mut bytes, name.as_bytes());
        }
        bytes
    }

    /// The reply that these bytes are, and nothing besides.
    ///
    /// # Errors
    /// They are none: another version's, cut off, or written by somebody else.
    pub fn decode(bytes: &[u8]) -> Result<PamReply, MalformedPamMessage> {
        let mut reader = PamReader::of(bytes, REPLY_BYTES_MAX)?;
        let verdict = PamVerdict::of(reader.u8()?)?;
        let text = reader.text(SAID_BYTES_MAX)?;
        let count = usize::from(reader.u16()?);
        if count > GROUPS_MAX || text.chars().any(char::is_control) {
            return Err(MalformedPamMessage);
        }
        let groups = (0..count).map(|_| reader.text(NAME_BYTES_MAX));
        let groups = groups.collect::<Result<Vec<_>, _>>()?;
        let is_whole = match verdict {
            PamVerdict::Yes => is_name(&text) && groups.iter().all(|name| is_name(name)),
            _ => groups.is_empty(),
        };
        match is_whole {
            true => reader.end().map(|()| PamReply {
                verdict,
                text,
                groups,
            }),
            false => Err(MalformedPamMessage),
        }
    }
}

/// Whether a text can be the name of an account or of a group.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && !text.chars().any(char::is_control)
}

/// A text for one line, of so many bytes at most.
fn cut(text: &str, bytes_max: usize) -> String {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text[..end].chars().map(plain).collect()
}

fn put(bytes: &mut Vec<u8>, block: &[u8]) -> Result<(), MalformedPamMessage> {
    let length = u16::try_from(block.len()).map_err(|_| MalformedPamMessage)?;
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(block);
    Ok(())
}

/// Reads values one after the other.
struct PamReader<'a>(&'a [u8]);

impl<'a> PamReader<'a> {
    fn of(bytes: &'a [u8], bytes_max: usize) -> Result<PamReader<'a>, MalformedPamMessage> {
        let mut reader = PamReader(bytes);
        match bytes.len() <= bytes_max && reader.u8()? == VERSION {
            true => Ok(reader),
            false => Err(MalformedPamMessage),
        }
    }

    fn u8(&mut self) -> Result<u8, MalformedPamMessage> {
        let (first, rest) = self.0.split_first().ok_or(MalformedPamMessage)?;
        self.0 = rest;
        Ok(*first)
    }

    fn u16(&mut self) -> Result<u16, MalformedPamMessage> {
        let (first, rest) = self.0.split_first_chunk().ok_or(MalformedPamMessage)?;
        self.0 = rest;
        Ok(u16::from_le_bytes(*first))
    }

    fn block(&mut self, bytes_max: usize) -> Result<&'a [u8], MalformedPamMessage> {
        let length = usize::from(self.u16()?);
        let (block, rest) = self
            .0
            .split_at_checked(length)
            .filter(|_| length <= bytes_max)
            .ok_or(MalformedPamMessage)?;
        self.0 = rest;
        Ok(block)
    }

    fn text(&mut self, bytes_max: usize) -> Result<String, MalformedPamMessage> {
        let block = self.block(bytes_max)?;
        let text = std::str::from_utf8(block).map_err(|_| MalformedPamMessage)?;
        Ok(text.to_owned())
    }

    fn end(&self) -> Result<(), MalformedPamMessage> {
        match self.0 {
            [] => Ok(()),
            _ => Err(MalformedPamMessage),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> PamRequest {
        PamRequest {
            seconds: 10,
            service: "hob".to_owned(),
            services: b"/etc/pam.d".to_vec(),
            user: "ann".to_owned(),
            password: b"p\xff:\n".to_vec(),
            address: "192.0.2.1".to_owned(),
        }
    }

    #[test]
    fn messages_are_read_as_they_are_written_and_no_part_of_them_is() {
        let written = request().encode().unwrap();
        assert_eq!(PamRequest::decode(&written), Ok(request()));
        let yes = PamReply {
            verdict: PamVerdict::Yes,
            text: "ann".to_owned(),
            groups: vec!["staff".to_owned(), "ü".to_owned()],
        };
        let replies = [yes, PamReply::no(PamVerdict::Failed, "no\nservice")];
        for end in 0..written.len() {
            assert_eq!(
                PamRequest::decode(&written[..end]),
                Err(MalformedPamMessage)
            );
        }
        for reply in replies {
            let written = reply.encode();
            assert_eq!(PamReply::decode(&written), Ok(reply.clone()));
            for end in 0..written.len() {
                assert_eq!(PamReply::decode(&written[..end]), Err(MalformedPamMessage));
            }
            let more = [&written[..], b"\0"].concat();
            assert_eq!(PamReply::decode(&more), Err(MalformedPamMessage));
        }
    }

    #[test]
    fn names_and_passwords_that_modules_take_otherwise_are_not_asked_about() {
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for user in ["", "-a", ".", "..", "a/b", "a\n", "a\0", &long] {
            assert!(!PamRequest::is_askable(user, b"x"), "{user:?}");
        }
        let long = vec![b'a'; PASSWORD_BYTES_MAX + 1];
        for password in [&b""[..], b"a\0", &long] {
            assert!(!PamRequest::is_askable("ann", password), "{password:?}");
        }
        for user in ["ann", "Ann", "ann@example.org", "EXAMPLE\\ann", "a:b", "ü"] {
            assert!(PamRequest::is_askable(user, &long[1..]), "{user:?}");
        }
    }

    #[test]
    fn the_largest_messages_fit() {
        let most = PamRequest {
            service: "s".repeat(64),
            services: vec![b'/'; 2048],
            user: "u".repeat(NAME_BYTES_MAX),
            password: vec![b'p'; PASSWORD_BYTES_MAX],
            address: "a".repeat(45),
            ..request()
        };
        assert!(most.encode().is_ok());
        let too_long = PamRequest {
            services: vec![b'/'; 4096],
            ..most
        };
        assert_eq!(too_long.encode(), Err(MalformedPamMessage));
        let groups = (0..2 * GROUPS_MAX).map(|number| format!("{number:0>120}"));
        let reply = PamReply {
            verdict: PamVerdict::Yes,
            text: "n".repeat(NAME_BYTES_MAX),
            groups: groups.chain(["a\n".to_owned()]).collect(),
        };
        let read = PamReply::decode(&reply.encode()).unwrap();
        assert_eq!(read.groups.len(), GROUPS_MAX);
    }

    #[test]
    fn a_reply_that_makes_no_sense_is_none() {
        let said = PamReply::no(PamVerdict::Wrong, "").encode();
        for (at, byte) in [(0, 0), (0, 2), (1, 0), (1, 1), (1, 5), (2, 1), (4, 1)] {
            let mut wrong = said.clone();
            wrong[at] = byte;
            assert_eq!(PamReply::decode(&wrong), Err(MalformedPamMessage), "{at}");
        }
    }
}
