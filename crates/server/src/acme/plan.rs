//! What the process is to get, from whom, and what there is already. It travels as sealed memory.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use hob_http::acme::{Authority, ExternalAccount, Method, NAMES_MAX, Wanted};
use hob_http::post::check_roots;

use crate::config::{CertificateSource, Config};
use crate::life::memory;
use crate::life::privileges::Identity;
use crate::life::wire::{Malformed, Reader, Writer};
use crate::process::hook::Hook;
use crate::tls;

/// What is to be got.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// From whom.
    pub(crate) authority: Authority,
    /// Who sets records.
    pub(crate) hook: Option<Hook>,
    /// Who the process becomes; only the first plan counts.
    pub(crate) identity: Option<Identity>,
    /// What.
    pub(crate) wanted: Vec<Wanted>,
}

/// What there is already.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The account.
    pub(crate) account: Option<Vec<u8>>,
    /// The chain of each certificate of the plan, without its key.
    pub(crate) chains: Vec<Option<Vec<u8>>>,
}

const VERSION: u8 = 1;
const WANTED_MAX: usize = 10_000;
const TEXT_BYTES_MAX: usize = 64 * 1024;
const FILE_BYTES_MAX: usize = 1024 * 1024;

impl Plan {
    /// What a config wants. `read` gives the content of a file that it names.
    ///
    /// # Errors
    /// A file that cannot be read or holds no authority, or a key that is not one.
    pub(crate) fn of(
        config: &Config,
        identity: Option<Identity>,
        read: impl Fn(&std::path::Path) -> Result<Vec<u8>, String>,
    ) -> Result<Option<Plan>, String> {
        let Some(acme) = &config.acme else {
            return Ok(None);
        };
        let wanted: Vec<Wanted> = tls::sources(config)
            .into_iter()
            .filter_map(|source| match source {
                CertificateSource::Auto { names } => Some(names),
                _ => None,
            })
            .map(|names| {
                let is_wild = names.iter().any(|name| name.starts_with("*."));
                Wanted {
                    names,
                    method: if is_wild { Method::Dns } else { acme.method },
                    pause: acme.dns.as_ref().map_or(Duration::ZERO, |dns| dns.wait),
                }
            })
            .collect();
        if wanted.is_empty() {
            return Ok(None);
        }
        let external_account = acme.external_account.as_ref().map(|(id, path)| {
            let text = read(path)?;
            let key = base64(&text).ok_or_else(|| {
                let path = path.display();
                format!("{path}: this is no key; it must hold what the authority gave, in base64")
            })?;
            let id = id.clone();
            Ok::<_, String>(ExternalAccount { id, key })
        });
        let roots = acme.ca.as_ref().map(|path| {
            let text = read(path)?;
            // Of one that is no use, certificates would be missing when they are due.
            check_roots(&text, "acme.ca")
                .map_err(|error| format!("{error}: {}", path.display()))?;
            Ok::<_, String>(text)
        });
        Ok(Some(Plan {
            authority: Authority {
                directory: acme.directory.clone(),
                roots: roots.transpose()?.unwrap_or_default(),
                contact: acme.contact.clone(),
                external_account: external_account.transpose()?,
                profile: acme.profile.clone(),
            },
            hook: acme.dns.as_ref().map(|dns| Hook {
                program: dns.run.clone(),
                arguments: dns.arguments.clone(),
                time_max: dns.timeout,
            }),
            identity,
            wanted,
        }))
    }

    /// Writes plan and what there is to sealed memory.
    pub(crate) fn to_memory(&self, kept: &Kept) -> io::Result<OwnedFd> {
        memory::sealed("hob-acme", &self.encode(kept))
    }

    /// Reads what was written.
    pub(crate) fn from_memory(memory: BorrowedFd<'_>) -> io::Result<(Plan, Kept)> {
        Plan::decode(&memory::read(memory)?).map_err(io::Error::other)
    }

    fn encode(&self, kept: &Kept) -> Vec<u8> {
        let mut writer = Writer::default();
        let authority = &self.authority;
        writer
            .u8(VERSION)
            .text(&authority.directory)
            .block(&authority.roots);
        put_list(&mut writer, &authority.contact);
        match &authority.external_account {
            None => writer.u8(0),
            Some(account) => writer.u8(1).text(&account.id).block(&account.key),
        };
        match &authority.profile {
            None => writer.u8(0),
            Some(profile) => writer.u8(1).text(profile),
        };
        match &self.hook {
            None => writer.u8(0),
            Some(hook) => {
                writer.u8(1).path(&hook.program);
                put_list(&mut writer, &hook.arguments);
                writer.u64(millis(hook.time_max))
            }
        };
        match &self.identity {
            None => writer.u8(0),
            Some(identity) => identity.encode(writer.u8(1)),
        };
        put_block(&mut writer, kept.account.as_deref());
        writer.count(self.wanted.len());
        for (index, wanted) in self.wanted.iter().enumerate() {
            put_list(&mut writer, &wanted.names);
            writer.u8(method_number(wanted.method));
            writer.u64(millis(wanted.pause));
            let chain = kept.chains.get(index).and_then(Option::as_deref);
            put_block(&mut writer, chain);
        }
        writer.finish()
    }

    fn decode(bytes: &[u8]) -> Result<(Plan, Kept), Malformed> {
        let mut reader = Reader::new(bytes, "plan for certificates");
        if reader.u8()? != VERSION {
            return Err(reader.malformed());
        }
        let authority = Authority {
            directory: reader.text(TEXT_BYTES_MAX)?,
            roots: reader.block(FILE_BYTES_MAX)?.to_vec(),
            contact: take_list(&mut reader)?,
            external_account: match reader.flag()? {
                false => None,
                true => Some(ExternalAccount {
                    id: reader.text(TEXT_BYTES_MAX)?,
                    key: reader.block(FILE_BYTES_MAX)?.to_vec(),
                }),
            },
            profile: match reader.flag()? {
                false => None,
                true => Some(reader.text(TEXT_BYTES_MAX)?),
            },
        };
        let hook = match reader.flag()? {
            false => None,
            true => Some(Hook {
                program: take_path(&mut reader)?,
                arguments: take_list(&mut reader)?,
                time_max: Duration::from_millis(reader.u64()?),
            }),
        };
        let identity = match reader.flag()? {
            false => None,
            true => Some(Identity::decode(&mut reader)?),
        };
        let mut kept = Kept {
            account: take_block(&mut reader)?,
            chains: Vec::new(),
        };
        let mut wanted = Vec::new();
        for _ in 0..reader.count(WANTED_MAX)? {
            let names = take_list(&mut reader)?;
            if names.is_empty() || names.len() > NAMES_MAX {
                return Err(reader.malformed());
            }
            wanted.push(Wanted {
                names,
                method: method_of(reader.u8()?).ok_or(reader.malformed())?,
                pause: Duration::from_millis(reader.u64()?),
            });
            kept.chains.push(take_block(&mut reader)?);
        }
        reader.end()?;
        let plan = Plan {
            authority,
            hook,
            identity,
            wanted,
        };
        Ok((plan, kept))
    }
}

/// A method as a number.
pub(crate) fn method_number(method: Method) -> u8 {
    match method {
        Method::Http => 0,
        Method::TlsAlpn => 1,
        Method::Dns => 2,
    }
}

/// The method of a number.
pub(crate) fn method_of(number: u8) -> Option<Method> {
    match number {
        0 => Some(Method::Http),
        1 => Some(Method::TlsAlpn),
        2 => Some(Method::Dns),
        _ => None,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn put_list(writer: &mut Writer, list: &[String]) {
    writer.count(list.len());
    for text in list {
        writer.text(text);
    }
}

pub(super) fn take_list(reader: &mut Reader<'_>) -> Result<Vec<String>, Malformed> {
    let count = reader.count(WANTED_MAX)?;
    (0..count).map(|_| reader.text(TEXT_BYTES_MAX)).collect()
}

fn put_block(writer: &mut Writer, block: Option<&[u8]>) {
    match block {
        None => writer.u8(0),
        Some(block) => writer.u8(1).block(block),
    };
}

fn take_block(reader: &mut Reader<'_>) -> Result<Option<Vec<u8>>, Malformed> {
    match reader.flag()? {
        false => Ok(None),
        true => Ok(Some(reader.block(FILE_BYTES_MAX)?.to_vec())),
    }
}

fn take_path(reader: &mut Reader<'_>) -> Result<PathBuf, Malformed> {
    reader.path()
}

/// The bytes that a base64 text of either alphabet stands for, with or without its `=`.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.trim_ascii();
    let end = text.len() - text.iter().rev().take_while(|byte| **byte == b'=').count();
    let (mut bits, mut bit_count, mut bytes) = (0u32, 0, Vec::new());
    for byte in &text[..end] {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push((bits >> bit_count) as u8);
            bits &= (1 << bit_count) - 1;
        }
    }
    (!bytes.is_empty() && bits == 0 && bit_count < 6).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> (Plan, Kept) {
        let plan = Plan {
            authority: Authority {
                directory: "https://acme.test/dir".to_owned(),
                roots: b"root".to_vec(),
                contact: vec!["mailto:a@example.org".to_owned()],
                external_account: Some(ExternalAccount {
                    id: "kid".to_owned(),
                    key: vec![1, 2],
                }),
                profile: Some("shortlived".to_owned()),
            },
            hook: Some(Hook {
                program: "/bin/hook".into(),
                arguments: vec!["-v".to_owned()],
                time_max: Duration::from_secs(9),
            }),
            identity: Some(Identity {
                name: "www-data".to_owned(),
                uid: 33,
                gid: 33,
                groups: vec![33],
            }),
            wanted: vec![Wanted {
                names: vec!["example.org".to_owned(), "*.example.org".to_owned()],
                method: Method::Dns,
                pause: Duration::from_secs(3),
            }],
        };
        let kept = Kept {
            account: Some(b"{}".to_vec()),
            chains: vec![Some(b"chain".to_vec())],
        };
        (plan, kept)
    }

    #[test]
    fn plan_arrives_as_written() {
        use std::os::fd::AsFd;
        let (plan, kept) = plan();
        let memory = plan.to_memory(&kept).unwrap();
        assert!(Plan::from_memory(memory.as_fd()).unwrap() == (plan, kept));
    }

    #[test]
    fn cut_or_changed_plans_never_panic() {
        let (plan, kept) = plan();
        let bytes = plan.encode(&kept);
        for end in 0..bytes.len() {
            assert!(Plan::decode(&bytes[..end]).is_err());
        }
        for position in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[position] = value;
                let _ = Plan::decode(&changed);
            }
        }
    }

    #[test]
    fn base64_of_both_alphabets_is_read_and_nothing_else() {
        assert_eq!(base64(b"Zm9vYmFy\n").unwrap(), b"foobar");
        assert_eq!(base64(b"Zm9vYg==").unwrap(), b"foob");
        assert_eq!(base64(b"Zm9vYg").unwrap(), b"foob");
        assert_eq!(base64(b"-_-_"), base64(b"+/+/"));
        for wrong in [&b""[..], b"Z", b"Zm9vYh", b"Zm 9v", b"<key>", b"===="] {
            assert_eq!(base64(wrong), None, "{wrong:?}");
        }
    }
}
