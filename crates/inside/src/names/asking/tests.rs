//! Against name servers of our own on loopback, which answer as they are told.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use simple_dns::rdata::{A, PTR, RData};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};

use super::*;

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

/// What a server does with a question that came over UDP, or over TCP.
type Does = fn(&Packet<'_>, bool) -> Vec<u8>;

/// A server that has a thread for each way, until the test's process ends.
fn server(does: Does) -> SocketAddr {
    let (udp, tcp) = loop {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()) {
            break (udp, tcp);
        }
    };
    let address = udp.local_addr().unwrap();
    thread::spawn(move || {
        let mut room = [0; 512];
        while let Ok((count, from)) = udp.recv_from(&mut room) {
            let answer = does(&Packet::parse(&room[..count]).unwrap(), false);
            let _ = udp.send_to(&answer, from);
        }
    });
    thread::spawn(move || {
        for stream in tcp.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 2];
            stream.read_exact(&mut head).unwrap();
            let mut bytes = vec![0; usize::from(u16::from_be_bytes(head))];
            stream.read_exact(&mut bytes).unwrap();
            let answer = does(&Packet::parse(&bytes).unwrap(), true);
            let length = (answer.len() as u16).to_be_bytes();
            // A byte at a time: nobody may count on a whole answer in one read.
            for byte in [&length[..], &answer].concat() {
                stream.write_all(&[byte]).unwrap();
            }
        }
    });
    address
}

/// An answer that says the client is `name`, and `name` is at this address.
fn answer(question: &Packet<'_>, name: &str, address: [u8; 4]) -> Packet<'static> {
    let mut packet = question.clone().into_reply();
    let asked = packet.questions[0].qname.clone();
    let rdata = match packet.questions[0].qtype {
        QTYPE::TYPE(TYPE::PTR) => RData::PTR(PTR(Name::new(name).unwrap().into_owned())),
        _ => RData::A(A {
            address: u32::from_be_bytes(address),
        }),
    };
    let record = ResourceRecord::new(asked, CLASS::IN, 300, rdata);
    packet.answers.push(record);
    let bytes: &'static [u8] = packet.build_bytes_vec().unwrap().leak();
    Packet::parse(bytes).unwrap()
}

fn looked(addresses: &[SocketAddr]) -> ReverseLookup {
    let servers = NameServers {
        addresses: addresses.to_vec(),
        time: Duration::from_millis(500),
    };
    name_of(&servers, CLIENT)
}

fn bytes(packet: &Packet<'_>) -> Vec<u8> {
    packet.build_bytes_vec().unwrap()
}

fn found() -> ReverseLookup {
    ReverseLookup::Name("www.example.org".to_owned(), 300)
}

#[test]
fn name_counts_when_it_leads_back() {
    let honest = server(|asked, _| bytes(&answer(asked, "www.example.org", [192, 0, 2, 7])));
    assert_eq!(looked(&[honest]), found());
    let liar = server(|asked, _| bytes(&answer(asked, "www.example.org", [192, 0, 2, 8])));
    assert_eq!(looked(&[liar]), ReverseLookup::Mismatch);
}

#[test]
fn having_no_name_and_not_knowing_are_told_apart() {
    let empty = server(|asked, _| bytes(&asked.clone().into_reply()));
    assert_eq!(looked(&[empty]), ReverseLookup::Nothing);
    let refusing = server(|asked, _| {
        let mut packet = asked.clone().into_reply();
        *packet.rcode_mut() = RCODE::Refused;
        bytes(&packet)
    });
    assert_eq!(looked(&[refusing]), ReverseLookup::Failed);
    let honest = server(|asked, _| bytes(&answer(asked, "www.example.org", [192, 0, 2, 7])));
    assert_eq!(
        looked(&[refusing, honest]),
        found(),
        "the next one is asked"
    );
}

#[test]
fn server_that_is_dead_or_silent_costs_its_time_and_no_more() {
    let dead = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let begin = Instant::now();
    assert_eq!(looked(&[dead]), ReverseLookup::Failed);
    assert_eq!(
        looked(&[silent.local_addr().unwrap()]),
        ReverseLookup::Failed
    );
    assert_eq!(looked(&[]), ReverseLookup::Failed);
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
    let honest = server(|asked, _| bytes(&answer(asked, "www.example.org", [192, 0, 2, 7])));
    assert_eq!(looked(&[dead, honest]), found());
    assert_eq!(looked(&[silent.local_addr().unwrap(), honest]), found());
}

#[test]
fn what_does_not_fit_is_asked_for_over_tcp() {
    let small = server(|asked, is_tcp| {
        let mut packet = answer(asked, "www.example.org", [192, 0, 2, 7]);
        if !is_tcp {
            packet.answers.clear();
            packet.set_flags(PacketFlag::TRUNCATION);
        }
        bytes(&packet)
    });
    assert_eq!(looked(&[small]), found());
    let never = server(|asked, _| {
        let mut packet = asked.clone().into_reply();
        packet.set_flags(PacketFlag::TRUNCATION);
        bytes(&packet)
    });
    assert_eq!(looked(&[never]), ReverseLookup::Failed);
}

#[test]
fn noise_is_not_taken_for_an_answer() {
    let noisy = server(|asked, _| {
        let mut packet = answer(asked, "evil.example", [192, 0, 2, 7]);
        packet.set_id(asked.id().wrapping_add(1));
        bytes(&packet)
    });
    assert_eq!(looked(&[noisy]), ReverseLookup::Failed);
    let broken = server(|_, _| b"no message at all".to_vec());
    assert_eq!(looked(&[broken]), ReverseLookup::Failed);
}
