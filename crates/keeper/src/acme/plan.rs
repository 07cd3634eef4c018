//! What the process is to get, from whom, and what there is already. It travels as sealed memory.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use hob_http::acme::{Authority, ChallengeMethod, ExternalAccount, NAMES_MAX, WantedCertificate};
use hob_http::outbound::check_roots;

use crate::Config;
use crate::memory;
use crate::privileges::UserIdentity;
use crate::process::hook::Hook;
use crate::tls;
use crate::wire::{MalformedPart, WireValue, WireWriter, wire_enum, wire_struct};
use hob_config::{self as config, Acme, CertificateSource};

const _: () = assert!(NAMES_MAX == config::NAMES_MAX);

/// What is to be got.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct CertificatePlan {
    /// From whom.
    pub(crate) authority: Authority,
    /// Who sets records.
    pub(crate) hook: Option<Hook>,
    /// Who the process becomes; only the first plan counts.
    pub(crate) identity: Option<UserIdentity>,
    /// What.
    pub(crate) wanted: Vec<WantedCertificate>,
}

/// What there is already.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The account.
    pub(crate) account: Option<Vec<u8>>,
    /// The chain of each certificate of the plan, without its key.
    pub(crate) chains: Vec<Option<Vec<u8>>>,
}

const VERSION: u8 = 2;

impl CertificatePlan {
    /// What a config wants. `read` gives the content of a file that it names.
    ///
    /// # Errors
    /// A file that cannot be read or holds no authority, or a key that is not one.
    pub(crate) fn of(
        config: &Config,
        identity: Option<UserIdentity>,
        read: impl Fn(&std::path::Path) -> Result<Vec<u8>, String>,
    ) -> Result<Option<CertificatePlan>, String> {
        let Some(acme) = &config.acme else {
            return Ok(None);
        };
        let wanted: Vec<WantedCertificate> = tls::sources(config)
            .into_iter()
            .filter_map(|source| match source {
                CertificateSource::Auto { names } => Some(names),
                _ => None,
            })
            .map(|names| {
                let is_wild = names.iter().any(|name| name.starts_with("*."));
                WantedCertificate {
                    names,
                    method: if is_wild {
                        ChallengeMethod::Dns
                    } else {
                        usual_method(acme)
                    },
                    pause: acme.dns.as_ref().map_or(Duration::ZERO, |dns| dns.wait),
                }
            })
            .collect();
        if wanted.is_empty() {
            return Ok(None);
        }
        let external_account = acme.external_account.as_ref().map(|(id, path)| {
            let key = external_key(path, &read(path)?)?;
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
        Ok(Some(CertificatePlan {
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
    pub(crate) fn from_memory(memory: BorrowedFd<'_>) -> io::Result<(CertificatePlan, Kept)> {
        CertificatePlan::decode(&memory::read(memory)?).map_err(io::Error::other)
    }

    fn encode(&self, kept: &Kept) -> Vec<u8> {
        let mut writer = WireWriter::default();
        self.put(writer.u8(VERSION));
        kept.put(&mut writer);
        writer.finish()
    }

    fn decode(bytes: &[u8]) -> Result<(CertificatePlan, Kept), MalformedPart> {
        let part = "plan for certificates";
        let (plan, kept) = <(CertificatePlan, Kept)>::decode_whole(bytes, VERSION, part)?;
        let mut names = plan.wanted.iter().map(|wanted| wanted.names.len());
        match names.all(|count| (1..=NAMES_MAX).contains(&count)) {
            true => Ok((plan, kept)),
            false => Err(MalformedPart(part)),
        }
    }
}

wire_struct!(CertificatePlan: authority, hook, identity, wanted);
wire_struct!(Kept: account, chains);
wire_struct!(Authority: directory, roots, contact, external_account, profile);
wire_struct!(ExternalAccount: id, key);
wire_struct!(Hook: program, arguments, time_max);
wire_struct!(WantedCertificate: names, method, pause);
wire_enum!(ChallengeMethod: 0 => Http, 1 => TlsAlpn, 2 => Dns);

/// The key of an account that was agreed on elsewhere, from the text of its file.
///
/// # Errors
/// It is none, in words.
pub(crate) fn external_key(path: &Path, text: &[u8]) -> Result<Vec<u8>, String> {
    base64(text).ok_or_else(|| {
        let path = path.display();
        format!("{path}: this is no key; it must hold what the authority gave, in base64")
    })
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

/// How names are proved, where nothing else is needed.
fn usual_method(acme: &Acme) -> ChallengeMethod {
    match acme.method {
        config::AcmeChallengeType::Http => ChallengeMethod::Http,
        config::AcmeChallengeType::TlsAlpn => ChallengeMethod::TlsAlpn,
        config::AcmeChallengeType::Dns => ChallengeMethod::Dns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> (CertificatePlan, Kept) {
        let plan = CertificatePlan {
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
            identity: Some(UserIdentity {
                name: "www-data".to_owned(),
                uid: 33,
                gid: 33,
                groups: vec![33],
            }),
            wanted: vec![WantedCertificate {
                names: vec!["example.org".to_owned(), "*.example.org".to_owned()],
                method: ChallengeMethod::Dns,
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
        assert!(CertificatePlan::from_memory(memory.as_fd()).unwrap() == (plan, kept));
    }

    #[test]
    fn cut_or_changed_plans_never_panic() {
        let (plan, kept) = plan();
        let bytes = plan.encode(&kept);
        for end in 0..bytes.len() {
            assert!(CertificatePlan::decode(&bytes[..end]).is_err());
        }
        for position in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[position] = value;
                let _ = CertificatePlan::decode(&changed);
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
