//! The secret that the client must know.

use std::fmt;

use rustix::rand::{GetRandomFlags, getrandom};

/// Bytes of it; it is written in twice as many digits.
const TOKEN_BYTES: usize = 16;

/// A secret drawn at random.
#[derive(Clone)]
pub(super) struct Token(String);

impl Token {
    pub(super) fn draw() -> std::io::Result<Token> {
        let mut bytes = [0; TOKEN_BYTES];
        let filled = getrandom(&mut bytes[..], GetRandomFlags::empty())?;
        match filled == TOKEN_BYTES {
            true => Ok(Token(bytes.map(|byte| format!("{byte:02x}")).concat())),
            false => Err(std::io::Error::other(
                "the kernel drew too little at random",
            )),
        }
    }

    /// Is that it? How long the answer takes says nothing of how much of it is right.
    pub(super) fn is(&self, said: &str) -> bool {
        let (own, said) = (self.0.as_bytes(), said.as_bytes());
        let differences = own.iter().zip(said).map(|(own, said)| own ^ said);
        own.len() == said.len() && differences.fold(0, |all, one| all | one) == 0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_itself_and_no_other_one() {
        let (one, other) = (Token::draw().unwrap(), Token::draw().unwrap());
        let text = one.to_string();
        assert_eq!(text.len(), 2 * TOKEN_BYTES);
        assert!(one.is(&text) && !other.is(&text));
        assert!(!one.is("") && !one.is(&text[1..]) && !one.is(&format!("{text}0")));
    }
}
