//! A block of strings, each ended by a NUL: arguments or an environment on their way to a program.

/// Strings without NUL bytes, one after the other in one block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    block: Vec<u8>,
    count: u32,
}

/// A NUL byte stands where none can: the string would be cut there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HasNul;

impl std::fmt::Display for HasNul {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a NUL byte in an argument or variable of a program")
    }
}

impl std::error::Error for HasNul {}

impl Strings {
    /// No strings.
    pub fn new() -> Strings {
        Strings::default()
    }

    /// Adds a string.
    ///
    /// # Errors
    /// A NUL byte in it; nothing is added then.
    pub fn push(&mut self, string: &[u8]) -> Result<(), HasNul> {
        self.push_parts(&[string])
    }

    /// Adds `name=value`.
    ///
    /// # Errors
    /// A NUL byte in either; nothing is added then.
    pub fn push_pair(&mut self, name: &[u8], value: &[u8]) -> Result<(), HasNul> {
        self.push_parts(&[name, b"=", value])
    }

    /// Adds one string that is made of parts.
    ///
    /// # Errors
    /// A NUL byte in one of them; nothing is added then.
    pub fn push_parts(&mut self, parts: &[&[u8]]) -> Result<(), HasNul> {
        let before = self.block.len();
        for part in parts {
            if memchr::memchr(0, part).is_some() {
                self.block.truncate(before);
                return Err(HasNul);
            }
            self.block.extend_from_slice(part);
        }
        self.block.push(0);
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    /// How many strings there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// All strings, each with its NUL.
    pub fn block(&self) -> &[u8] {
        &self.block
    }

    /// The strings, without their NULs.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let block = self.block.strip_suffix(&[0]);
        block
            .into_iter()
            .flat_map(|block| block.split(|byte| *byte == 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_stand_one_after_the_other_with_a_nul_each() {
        let mut strings = Strings::new();
        strings.push(b"a").unwrap();
        strings.push(b"").unwrap();
        strings.push_pair(b"N", b"v=w").unwrap();
        assert_eq!(strings.block(), b"a\0\0N=v=w\0");
        assert_eq!(strings.count(), 3);
        assert_eq!(
            strings.iter().collect::<Vec<_>>(),
            [&b"a"[..], b"", b"N=v=w"]
        );
        assert_eq!(Strings::new().iter().count(), 0);
    }

    #[test]
    fn string_with_a_nul_is_refused_whole() {
        let mut strings = Strings::new();
        assert_eq!(strings.push_pair(b"NAME", b"a\0b"), Err(HasNul));
        assert_eq!(strings.push(b"\0"), Err(HasNul));
        assert_eq!((strings.count(), strings.block()), (0, &b""[..]));
    }
}
