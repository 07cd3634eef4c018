//! Every message there and back, and any bytes at all.

use rustix::fs::{MemfdFlags, memfd_create};

use super::*;

fn descriptor() -> OwnedFd {
    memfd_create("test", MemfdFlags::CLOEXEC).unwrap()
}

fn outfit() -> Outfit {
    Outfit {
        generation: 7,
        papers: descriptor(),
        listeners: vec![descriptor(), descriptor()],
        datagrams: vec![],
        logs: vec![(1, descriptor()), (4, descriptor())],
        kept: vec![(KEPT_HISTORY, descriptor()), (KEPT_ACTIVITY, descriptor())],
        control: Some(descriptor()),
        keys: Some(descriptor()),
        challenges: Some(descriptor()),
    }
}

fn to_server() -> Vec<ToServer> {
    vec![
        ToServer::Start(
            outfit(),
            Resets {
                secret: ResetSecret::new(),
                living: vec![3, 255],
            },
            VisitSockets {
                own: Some(descriptor()),
                before: Some((descriptor(), descriptor())),
            },
        ),
        ToServer::Reload(Outfit {
            control: None,
            logs: vec![],
            ..outfit()
        }),
        ToServer::Drain {
            deadline: Duration::from_secs(30),
            grace: Duration::from_millis(5),
        },
        ToServer::LogFile {
            index: 3,
            file: descriptor(),
        },
        ToServer::Answer {
            request: 9,
            is_ok: true,
            text: "geht".to_owned(),
        },
        ToServer::Keys {
            memory: descriptor(),
        },
        ToServer::Challenges {
            number: 4,
            memory: descriptor(),
        },
        ToServer::Certificates {
            memory: descriptor(),
        },
        ToServer::Servers { living: vec![1] },
    ]
}

fn to_keeper() -> Vec<ToKeeper> {
    vec![
        ToKeeper::Ready,
        ToKeeper::StartFailed {
            text: "no".to_owned(),
        },
        ToKeeper::Reloaded {
            generation: u64::MAX,
        },
        ToKeeper::ReloadFailed {
            text: "hob.toml:3".to_owned(),
        },
        ToKeeper::Ask {
            wish: Wish::Upgrade,
            request: 12,
        },
        ToKeeper::Rotate { index: 2 },
        ToKeeper::Leaving,
        ToKeeper::Drained,
        ToKeeper::Challenged { number: 4 },
    ]
}

#[test]
fn messages_to_the_server_arrive_as_sent() {
    for message in to_server() {
        let before = format!("{message:?}");
        let parcel = message.encode();
        let after = ToServer::decode(parcel).unwrap();
        assert_eq!(
            format!("{after:?}"),
            before,
            "descriptor numbers included: nothing is copied"
        );
    }
}

#[test]
fn messages_to_the_keeper_arrive_as_sent() {
    for message in to_keeper() {
        assert_eq!(ToKeeper::decode(message.clone().encode()), Ok(message));
    }
}

#[test]
fn server_cannot_speak_the_keepers_words() {
    for message in to_server() {
        ToKeeper::decode(message.encode()).unwrap_err();
    }
    for message in to_keeper() {
        ToServer::decode(message.encode()).unwrap_err();
    }
}

#[test]
fn longer_texts_are_cut_and_still_arrive() {
    let text = "é".repeat(TEXT_BYTES_MAX);
    let parcel = ToKeeper::ReloadFailed { text }.encode();
    let Ok(ToKeeper::ReloadFailed { text }) = ToKeeper::decode(parcel) else {
        panic!("a cut text is a whole message");
    };
    assert_eq!(text, "é".repeat(TEXT_BYTES_MAX / 2));
}

#[test]
fn papers_missing_or_a_slot_out_of_place_is_malformed() {
    let slots = |list: &[(u8, u16)]| {
        list.iter()
            .map(|&(kind, index)| (DescriptorSlot { kind, index }, descriptor()))
            .collect()
    };
    let body = WireWriter::default().u64(1).finish();
    for list in [
        &[][..],
        &[(SLOT_PAPERS, 0), (SLOT_PAPERS, 0)],
        &[(SLOT_PAPERS, 0), (SLOT_LISTENER, 1)],
        &[(SLOT_PAPERS, 0), (SLOT_LOG, 2), (SLOT_LOG, 2)],
        &[(SLOT_PAPERS, 0), (10, 0)],
        &[(SLOT_PAPERS, 0), (SLOT_KEPT, 2)],
        &[(SLOT_PAPERS, 0), (SLOT_CONTROL, 0), (SLOT_CONTROL, 0)],
    ] {
        let parcel = Parcel {
            kind: 1,
            body: body.clone(),
            descriptors: slots(list),
        };
        assert!(ToServer::decode(parcel).is_err(), "{list:?}");
    }
}

/// Every byte of every message set to every value, and every prefix: refused or understood, and
/// what is understood is written the same way again.
#[test]
fn no_bytes_make_decoding_panic() {
    let mut bodies: Vec<(u8, Vec<u8>)> = Vec::new();
    bodies.extend(to_keeper().into_iter().map(|message| {
        let parcel = message.encode();
        (parcel.kind, parcel.body)
    }));
    bodies.extend(to_server().into_iter().map(|message| {
        let parcel = message.encode();
        (parcel.kind, parcel.body)
    }));
    for (kind, body) in bodies {
        for end in 0..=body.len() {
            decode_both(kind, body[..end].to_vec());
        }
        for position in 0..body.len() {
            for value in 0..=u8::MAX {
                let mut changed = body.clone();
                changed[position] = value;
                decode_both(kind, changed);
            }
        }
        for other_kind in 0..=u8::MAX {
            decode_both(other_kind, body.clone());
        }
    }
}

fn decode_both(kind: u8, body: Vec<u8>) {
    let parcel = || Parcel {
        kind,
        body: body.clone(),
        descriptors: vec![],
    };
    if let Ok(message) = ToKeeper::decode(parcel()) {
        let again = message.encode();
        assert_eq!((again.kind, &again.body), (kind, &body));
    }
    if let Ok(message) = ToServer::decode(parcel()) {
        let again = message.encode();
        assert_eq!((again.kind, &again.body), (kind, &body));
    }
}
