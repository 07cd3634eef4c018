//! Real socket pairs, whole parcels and broken packets.

use super::*;

fn descriptors(count: usize) -> Vec<(DescriptorSlot, OwnedFd)> {
    let file = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    (0..count)
        .map(|index| {
            (
                DescriptorSlot {
                    kind: 2,
                    index: index as u16,
                },
                file.try_clone().unwrap(),
            )
        })
        .collect()
}

fn sent_raw(bytes: &[u8], descriptors_max: usize) -> Result<Parcel, NotReceived> {
    let (ours, theirs) = pair().unwrap();
    rustix::net::send(&ours, bytes, SendFlags::empty()).unwrap();
    Inbox::new(descriptors_max).receive(theirs.as_fd())
}

#[test]
fn more_descriptors_than_one_packet_takes_arrive_in_order_and_close_on_exec() {
    let (ours, theirs) = pair().unwrap();
    let parcel = Parcel {
        kind: 7,
        body: b"body".to_vec(),
        descriptors: descriptors(450),
    };
    let mut outbox = Outbox::default();
    outbox.send(ours.as_fd(), parcel).unwrap();
    let mut inbox = Inbox::new(DESCRIPTORS_MAX);
    let parcel = loop {
        outbox.flush(ours.as_fd()).unwrap();
        match inbox.receive(theirs.as_fd()) {
            Ok(parcel) => break parcel,
            Err(error) => assert_eq!(error, NotReceived::Nothing),
        }
    };
    assert!(outbox.is_empty());
    assert_eq!(
        (parcel.kind, parcel.body.as_slice()),
        (7, b"body".as_slice())
    );
    let order: Vec<u16> = parcel
        .descriptors
        .iter()
        .map(|(slot, _)| slot.index)
        .collect();
    assert_eq!(order, (0..450).collect::<Vec<u16>>());
    for (_, descriptor) in &parcel.descriptors {
        let flags = rustix::io::fcntl_getfd(descriptor).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
}

#[test]
fn side_that_takes_nothing_fills_the_outbox_and_loses_nothing_before() {
    let (ours, theirs) = pair().unwrap();
    let mut outbox = Outbox::default();
    let mut sent = 0_u32;
    let refusal = loop {
        let body = vec![0; BODY_BYTES_MAX];
        match outbox.send(
            ours.as_fd(),
            Parcel {
                kind: 1,
                body,
                descriptors: vec![],
            },
        ) {
            Ok(()) => sent += 1,
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(refusal, NotSent::Full);
    let mut inbox = Inbox::new(0);
    let mut received = 0;
    while received < sent {
        outbox.flush(ours.as_fd()).unwrap();
        while inbox.receive(theirs.as_fd()).is_ok() {
            received += 1;
        }
    }
    assert_eq!(received, sent);
}

#[test]
fn descriptors_for_one_who_takes_none_are_refused_and_closed() {
    let (ours, theirs) = pair().unwrap();
    let parcel = Parcel {
        kind: 1,
        body: vec![],
        descriptors: descriptors(1),
    };
    Outbox::default().send(ours.as_fd(), parcel).unwrap();
    let error = Inbox::new(0).receive(theirs.as_fd()).unwrap_err();
    assert_eq!(
        error,
        NotReceived::Malformed(MalformedPart("size of a packet"))
    );
}

#[test]
fn more_descriptors_than_allowed_are_refused() {
    let (ours, theirs) = pair().unwrap();
    let parcel = Parcel {
        kind: 1,
        body: vec![],
        descriptors: descriptors(3),
    };
    Outbox::default().send(ours.as_fd(), parcel).unwrap();
    let error = Inbox::new(2).receive(theirs.as_fd()).unwrap_err();
    assert_eq!(
        error,
        NotReceived::Malformed(MalformedPart("count of descriptors"))
    );
}

#[test]
fn rule_breaking_packets_are_malformed() {
    for (bytes, part) in [
        (&[1_u8][..], "packet head"),
        (&[9, 1, 0, 0, 0, 0], "packet version"),
        (&[1, 1, 2, 0, 0, 0], "packet flags"),
        (&[1, 1, 0, 1, 0, 0], "packet flags"),
        (&[1, 1, 0, 0, 1, 0, 0, 0, 0], "count of descriptors"),
    ] {
        let error = sent_raw(bytes, 9).unwrap_err();
        assert_eq!(
            error,
            NotReceived::Malformed(MalformedPart(part)),
            "{bytes:?}"
        );
    }
}

#[test]
fn packet_larger_than_the_buffer_is_malformed() {
    let error = sent_raw(&vec![1; PACKET_BYTES_MAX + 2], 0).unwrap_err();
    assert_eq!(
        error,
        NotReceived::Malformed(MalformedPart("size of a packet"))
    );
}

#[test]
fn continuation_of_another_kind_or_with_a_body_is_malformed() {
    for second in [
        &[1_u8, 2, 0, 0, 0, 0][..],
        &[1, 1, 0, 0, 0, 0, 5],
        &[1, 1, 1, 0, 0, 0],
    ] {
        let (ours, theirs) = pair().unwrap();
        for bytes in [&[1, 1, 1, 0, 0, 0], second] {
            rustix::net::send(&ours, bytes, SendFlags::empty()).unwrap();
        }
        let error = Inbox::new(9).receive(theirs.as_fd()).unwrap_err();
        assert_eq!(
            error,
            NotReceived::Malformed(MalformedPart("continued packet"))
        );
    }
}

#[test]
fn closed_other_side_is_gone_for_both_directions() {
    let (ours, theirs) = pair().unwrap();
    drop(theirs);
    assert_eq!(
        Inbox::new(0).receive(ours.as_fd()).unwrap_err(),
        NotReceived::Gone
    );
    let parcel = Parcel {
        kind: 1,
        body: vec![],
        descriptors: vec![],
    };
    assert_eq!(
        Outbox::default().send(ours.as_fd(), parcel),
        Err(NotSent::Gone)
    );
}

#[test]
fn last_words_of_who_left_mail_unread_are_heard() {
    let (ours, theirs) = pair().unwrap();
    let words = Parcel {
        kind: 7,
        body: b"last words".to_vec(),
        descriptors: Vec::new(),
    };
    Outbox::default().send(ours.as_fd(), words).unwrap();
    rustix::net::send(&theirs, b"unread", SendFlags::empty()).unwrap();
    drop(ours);
    let mut inbox = Inbox::new(0);
    let heard = inbox.receive(theirs.as_fd()).unwrap();
    assert_eq!(heard.body, b"last words");
    let after = inbox.receive(theirs.as_fd()).map(|parcel| parcel.kind);
    assert_eq!(after, Err(NotReceived::Gone));
}
