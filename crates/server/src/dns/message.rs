//! Questions to a name server and its answers, as bytes. Nothing is sent here.
//!
//! An answer counts only for the question it repeats and under its number. Of a name only what host
//! names may have is taken: letters, digits, `-` and `_`.

use std::net::IpAddr;

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};

/// Longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 253;
/// Aliases that are followed within one answer.
const ALIASES_MAX: usize = 8;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsQuestion {
    /// Which name an address has.
    NameOf(IpAddr),
    /// Which addresses of this one's family a name has.
    AddressesOf(String, IpAddr),
    /// Where a service is to be found (RFC 2782).
    ServersOf(String),
}

/// One of those that offer a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceServer {
    /// Those with the lowest are asked first.
    pub priority: u16,
    /// Its share among those of the same priority.
    pub weight: u16,
    /// Its name.
    pub target: String,
    /// Where it listens.
    pub port: u16,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsAnswer {
    /// A name, for so many seconds.
    Name(String, u32),
    /// Addresses, for so many seconds.
    Addresses(Vec<IpAddr>, u32),
    /// Who offers a service, for so many seconds; none where its owner says that nobody does.
    Servers(Vec<ServiceServer>, u32),
    /// There is none.
    Nothing,
    /// More than fits: ask again over TCP.
    Truncated,
    /// The server cannot say.
    Failed,
}

impl DnsQuestion {
    /// The question as a message with this number.
    pub fn message(&self, number: u16) -> Option<Vec<u8>> {
        let (name, kind) = self.question();
        let name = Name::new(&name).ok()?;
        let mut packet = Packet::new_query(number);
        packet.set_flags(PacketFlag::RECURSION_DESIRED);
        let question = Question::new(name, QTYPE::TYPE(kind), QCLASS::CLASS(CLASS::IN), false);
        packet.questions.push(question);
        packet.build_bytes_vec().ok()
    }

    /// Reads an answer; `None` when it is none to this question.
    pub fn read(&self, number: u16, bytes: &[u8]) -> Option<DnsAnswer> {
        let packet = Packet::parse(bytes).ok()?;
        let (wanted, kind) = self.question();
        let [question] = packet.questions.as_slice() else {
            return None;
        };
        let is_ours = packet.id() == number
            && packet.has_flags(PacketFlag::RESPONSE)
            && question.qtype == QTYPE::TYPE(kind)
            && lower(&question.qname) == wanted;
        if !is_ours {
            return None;
        }
        if packet.has_flags(PacketFlag::TRUNCATION) {
            return Some(DnsAnswer::Truncated);
        }
        match packet.rcode() {
            RCODE::NoError => Some(self.found(&packet, wanted)),
            RCODE::NameError => Some(DnsAnswer::Nothing),
            _ => Some(DnsAnswer::Failed),
        }
    }

    fn found(&self, packet: &Packet<'_>, wanted: String) -> DnsAnswer {
        let (owner, mut ttl_s) = follow(packet, wanted);
        let own = packet
            .answers
            .iter()
            .filter(|one| lower(&one.name) == owner);
        let (mut addresses, mut servers) = (Vec::new(), Vec::new());
        let mut is_unoffered = false;
        for record in own {
            let address = match (&record.rdata, self) {
                (RData::PTR(name), DnsQuestion::NameOf(_)) => match host_name(&name.0) {
                    Some(name) => return DnsAnswer::Name(name, ttl_s.min(record.ttl)),
                    None => continue,
                },
                (RData::A(found), DnsQuestion::AddressesOf(_, IpAddr::V4(_))) => {
                    IpAddr::V4(found.address.into())
                }
                (RData::AAAA(found), DnsQuestion::AddressesOf(_, IpAddr::V6(_))) => {
                    IpAddr::V6(found.address.into())
                }
                (RData::SRV(found), DnsQuestion::ServersOf(_)) => {
                    if found.target.get_labels().is_empty() {
                        // The root as the target says that there is no such service.
                        //= rfc2782
                        is_unoffered = true;
                        ttl_s = ttl_s.min(record.ttl);
                    } else if let Some(target) = host_name(&found.target) {
                        ttl_s = ttl_s.min(record.ttl);
                        servers.push(ServiceServer {
                            priority: found.priority,
                            weight: found.weight,
                            target,
                            port: found.port,
                        });
                    }
                    continue;
                }
                _ => continue,
            };
            ttl_s = ttl_s.min(record.ttl);
            addresses.push(address);
        }
        match (addresses.is_empty(), servers.is_empty() && !is_unoffered) {
            (false, _) => DnsAnswer::Addresses(addresses, ttl_s),
            (_, false) => DnsAnswer::Servers(servers, ttl_s),
            (true, true) => DnsAnswer::Nothing,
        }
    }

    fn question(&self) -> (String, TYPE) {
        match self {
            DnsQuestion::NameOf(address) => (reverse(*address), TYPE::PTR),
            DnsQuestion::ServersOf(name) => (name.to_ascii_lowercase(), TYPE::SRV),
            DnsQuestion::AddressesOf(name, IpAddr::V4(_)) => (name.to_ascii_lowercase(), TYPE::A),
            DnsQuestion::AddressesOf(name, IpAddr::V6(_)) => {
                (name.to_ascii_lowercase(), TYPE::AAAA)
            }
        }
    }
}

/// Where aliases lead from a name, and for how many seconds that holds.
fn follow(packet: &Packet<'_>, wanted: String) -> (String, u32) {
    let (mut owner, mut ttl_s) = (wanted, u32::MAX);
    for _ in 0..ALIASES_MAX {
        let alias = packet.answers.iter().find_map(|one| match &one.rdata {
            RData::CNAME(target) if lower(&one.name) == owner => Some((lower(&target.0), one.ttl)),
            _ => None,
        });
        let Some((target, ttl)) = alias else { break };
        (owner, ttl_s) = (target, ttl_s.min(ttl));
    }
    (owner, ttl_s)
}

/// The name under which the DNS has an address's name.
pub fn reverse(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let mut text = String::with_capacity(72);
            for byte in address.octets().iter().rev() {
                text.push_str(&format!("{:x}.{:x}.", byte & 15, byte >> 4));
            }
            text + "ip6.arpa"
        }
    }
}

/// A name in lower case, its labels joined by dots; what is no text is replaced.
fn lower(name: &Name<'_>) -> String {
    let labels: Vec<String> = name
        .get_labels()
        .iter()
        .map(|label| String::from_utf8_lossy(label.as_ref()).to_ascii_lowercase())
        .collect();
    labels.join(".")
}

/// A name that a host may have; anything else stays unknown.
fn host_name(name: &Name<'_>) -> Option<String> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let labels = name.get_labels();
    let is_name = labels
        .iter()
        .all(|label| label.as_ref().iter().all(is_plain));
    let text = lower(name);
    (is_name && !text.is_empty() && text.len() <= NAME_BYTES_MAX).then_some(text)
}

#[cfg(test)]
mod tests {
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::{A, AAAA, CNAME, PTR, SRV};

    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

    /// An answer to a question, with these records.
    fn answer<'r>(asked: &DnsQuestion, records: Vec<(&'r str, RData<'r>)>) -> Vec<u8> {
        let bytes = asked.message(7).unwrap();
        let mut packet = Packet::parse(&bytes).unwrap().into_reply();
        for (name, rdata) in records {
            let name = Name::new(name).unwrap();
            let record = ResourceRecord::new(name, CLASS::IN, 300, rdata);
            packet.answers.push(record);
        }
        packet.build_bytes_vec().unwrap()
    }

    fn ptr(name: &str) -> RData<'_> {
        RData::PTR(PTR(Name::new(name).unwrap()))
    }

    #[test]
    fn name_of_an_address_is_asked_and_read() {
        let asked = DnsQuestion::NameOf(CLIENT);
        let bytes = answer(
            &asked,
            vec![("7.2.0.192.in-addr.arpa", ptr("Www.Example.org"))],
        );
        let said = DnsAnswer::Name("www.example.org".to_owned(), 300);
        assert_eq!(asked.read(7, &bytes), Some(said));
        for end in 0..bytes.len() {
            let _ = asked.read(7, &bytes[..end]);
        }
    }

    #[test]
    fn addresses_are_reversed() {
        assert_eq!(reverse(CLIENT), "7.2.0.192.in-addr.arpa");
        let six = reverse("2001:db8::567:89ab".parse().unwrap());
        assert_eq!(
            six,
            "b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"
        );
    }

    #[test]
    fn answers_to_other_questions_do_not_count() {
        let asked = DnsQuestion::NameOf(CLIENT);
        let other = DnsQuestion::NameOf("192.0.2.8".parse().unwrap());
        let bytes = answer(&other, vec![("8.2.0.192.in-addr.arpa", ptr("a.example"))]);
        assert_eq!(asked.read(7, &bytes), None);
        let bytes = answer(&asked, vec![("7.2.0.192.in-addr.arpa", ptr("a.example"))]);
        assert_eq!(asked.read(8, &bytes), None, "another number");
        assert_eq!(asked.read(7, &asked.message(7).unwrap()), None, "no answer");
        // A record that nobody asked for is none for this name.
        let bytes = answer(&asked, vec![("9.2.0.192.in-addr.arpa", ptr("a.example"))]);
        assert_eq!(asked.read(7, &bytes), Some(DnsAnswer::Nothing));
    }

    #[test]
    fn aliases_are_followed_but_not_in_circles() {
        let asked = DnsQuestion::NameOf(CLIENT);
        let own = "7.2.0.192.in-addr.arpa";
        let alias = |to: &'static str| RData::CNAME(CNAME(Name::new(to).unwrap()));
        let bytes = answer(
            &asked,
            vec![
                (own, alias("7.0-15.2.0.192.in-addr.arpa")),
                ("7.0-15.2.0.192.in-addr.arpa", ptr("a.example")),
            ],
        );
        assert_eq!(
            asked.read(7, &bytes),
            Some(DnsAnswer::Name("a.example".to_owned(), 300))
        );
        let bytes = answer(
            &asked,
            vec![
                (own, alias("b.example")),
                ("b.example", alias("7.2.0.192.in-addr.arpa")),
            ],
        );
        assert_eq!(asked.read(7, &bytes), Some(DnsAnswer::Nothing));
    }

    #[test]
    fn addresses_of_a_name_are_of_its_family() {
        let asked = DnsQuestion::AddressesOf("A.example".to_owned(), CLIENT);
        let bytes = answer(
            &asked,
            vec![
                (
                    "a.example",
                    RData::A(A {
                        address: 0xc000_0207,
                    }),
                ),
                ("a.example", RData::AAAA(AAAA { address: 1 })),
                (
                    "b.example",
                    RData::A(A {
                        address: 0x0a00_0001,
                    }),
                ),
            ],
        );
        assert_eq!(
            asked.read(7, &bytes),
            Some(DnsAnswer::Addresses(vec![CLIENT], 300))
        );
    }

    #[test]
    fn servers_of_a_service_are_read() {
        let asked = DnsQuestion::ServersOf("_app._tcp.Example".to_owned());
        let srv = |weight, target: &'static str| {
            RData::SRV(SRV {
                priority: 1,
                weight,
                port: 3000,
                target: Name::new(target).unwrap(),
            })
        };
        let name = "_app._tcp.example";
        let bytes = answer(
            &asked,
            vec![(name, srv(2, "A.example")), (name, srv(0, "."))],
        );
        let server = ServiceServer {
            priority: 1,
            weight: 2,
            target: "a.example".to_owned(),
            port: 3000,
        };
        let said = DnsAnswer::Servers(vec![server], 300);
        assert_eq!(asked.read(7, &bytes), Some(said));
        let bytes = answer(&asked, vec![(name, srv(0, "."))]);
        let nobody = DnsAnswer::Servers(Vec::new(), 300);
        assert_eq!(asked.read(7, &bytes), Some(nobody));
        let bytes = answer(&asked, vec![(name, srv(0, "a b.example"))]);
        assert_eq!(asked.read(7, &bytes), Some(DnsAnswer::Nothing));
        assert_eq!(
            asked.read(7, &answer(&asked, Vec::new())),
            Some(DnsAnswer::Nothing)
        );
    }

    #[test]
    fn names_with_anything_odd_stay_unknown() {
        let asked = DnsQuestion::NameOf(CLIENT);
        for odd in [
            "<script>.example",
            "a b.example",
            "ü.example",
            "a\\.b.example",
        ] {
            let bytes = answer(&asked, vec![("7.2.0.192.in-addr.arpa", ptr(odd))]);
            assert_eq!(asked.read(7, &bytes), Some(DnsAnswer::Nothing), "{odd}");
        }
    }
}
