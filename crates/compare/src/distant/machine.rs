//! What the client is told of the servers' machine, and what a network card says of itself.

use std::net::Ipv4Addr;

use super::words::DistantMachine;
use crate::machine::Machine;

impl DistantMachine {
    /// This machine, on the way to a client at this address.
    pub(super) fn look(machine: &Machine, client: Ipv4Addr) -> DistantMachine {
        let facts = machine.facts().into_iter();
        DistantMachine {
            load_before: machine.load_before,
            facts: facts
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            card_bits_per_second: card_bits_per_second(client),
        }
    }

    /// All of it in a line.
    pub(crate) fn text(&self) -> String {
        let facts = self
            .facts
            .iter()
            .map(|(name, value)| format!("{name}: {value}"));
        facts.collect::<Vec<_>>().join("; ")
    }
}

/// What the network card on the way to an address says that it carries, in bits a second; none
/// where it does not say, as the loopback and most virtual ones do not.
pub(super) fn card_bits_per_second(to: Ipv4Addr) -> Option<u64> {
    if to.is_loopback() {
        return None;
    }
    let routes = hob_machine::read("/proc/net/route");
    let card = card_of(&routes, to)?;
    let speed = hob_machine::read(format!("/sys/class/net/{card}/speed"));
    // Megabits; -1 where it does not know.
    let megabits: i64 = speed.trim().parse().ok()?;
    u64::try_from(megabits)
        .ok()
        .filter(|speed| *speed > 0)
        .map(|speed| speed * 1_000_000)
}

/// The card that packets to an address leave by: that of the route with the longest mask.
/// `NAME DESTINATION GATEWAY FLAGS REFERENCES USE METRIC MASK ...`, addresses in hexadecimal digits
/// of the machine's order.
fn card_of(routes: &str, to: Ipv4Addr) -> Option<String> {
    let to = u32::from_ne_bytes(to.octets());
    let route = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
        let (destination, mask) = (number(1)?, number(7)?);
        let card = (*fields.first()?).to_owned();
        (to & mask == destination).then(|| (mask.count_ones(), card))
    };
    let found = routes.lines().skip(1).filter_map(route).max();
    found.map(|(_, card)| card)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A route, with addresses as this machine writes them.
    fn route(card: &str, destination: [u8; 4], mask: [u8; 4]) -> String {
        let [destination, mask] = [destination, mask].map(u32::from_ne_bytes);
        format!("{card}\t{destination:08X}\t00000000\t0003\t0\t0\t0\t{mask:08X}\t0\t0\t0\n")
    }

    #[test]
    fn card_is_that_of_the_longest_mask() {
        let routes = [
            "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n".to_owned(),
            route("eth0", [0, 0, 0, 0], [0, 0, 0, 0]),
            route("eth1", [192, 168, 1, 0], [255, 255, 255, 0]),
            "nonsense\n".to_owned(),
        ];
        let routes = routes.concat();
        let of = |address: [u8; 4]| card_of(&routes, address.into());
        assert_eq!(of([192, 168, 1, 7]).as_deref(), Some("eth1"));
        assert_eq!(of([203, 0, 113, 9]).as_deref(), Some("eth0"));
        assert_eq!(card_of("", [203, 0, 113, 9].into()), None);
        assert_eq!(card_bits_per_second(Ipv4Addr::LOCALHOST), None);
    }
}
