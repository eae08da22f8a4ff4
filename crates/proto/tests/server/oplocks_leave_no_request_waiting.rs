//! Clients use oplocks in random order: the server answers every request once, and at the end
//! nothing is open or waiting. Row 29 of the list of bad inputs.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use wire::access::{CreateDisposition, OplockLevel, ShareAccess};
use wire::{Command, FileId, MessageId, Status};

use crate::harness::{Answer, Ask, Break, Client, Rig, broken_oplock, created};

/// Number of clients at a time.
const CLIENTS: usize = 4;
/// Upper limit of waiting requests per client; well below its credits.
const WAITING: usize = 20;

/// The next action of a client.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Open(Ask),
    /// Two opens in one frame.
    OpenTwice(Ask, Ask),
    /// Acknowledges the oldest break with any level.
    Acknowledge(u8),
    Write,
    Close,
    Cancel,
    /// The connection is cut; another client replaces this one.
    Vanish,
    Wait(Duration),
}

/// A client and its knowledge of the server's state.
struct Actor {
    client: Client,
    waiting: BTreeSet<MessageId>,
    opens: Vec<FileId>,
    breaks: Vec<Break>,
}

fn ask() -> impl Strategy<Value = Ask> {
    let level = prop_oneof![Just(0), Just(1), Just(8), Just(9), Just(0xFF)];
    let share = prop_oneof![Just(0), Just(1), Just(7)];
    (level, share, any::<bool>(), any::<bool>()).prop_map(|(level, share, is_stat, empties)| {
        let level = OplockLevel(level);
        let plain = if is_stat {
            Ask::stat(level)
        } else {
            Ask::level(level)
        };
        let disposition = if empties {
            CreateDisposition::OVERWRITE_IF
        } else {
            CreateDisposition::OPEN_IF
        };
        Ask {
            share: ShareAccess(share),
            disposition,
            ..plain
        }
    })
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => ask().prop_map(Deed::Open),
        1 => (ask(), ask()).prop_map(|(one, two)| Deed::OpenTwice(one, two)),
        4 => prop_oneof![Just(0), Just(1), Just(9), Just(0x42)].prop_map(Deed::Acknowledge),
        2 => Just(Deed::Write),
        4 => Just(Deed::Close),
        1 => Just(Deed::Cancel),
        1 => Just(Deed::Vanish),
        1 => (0_u64..40).prop_map(|seconds| Deed::Wait(Duration::from_secs(seconds))),
    ]
}

impl Actor {
    fn new(rig: &mut Rig) -> Self {
        Self {
            client: Client::with_credits(rig),
            waiting: BTreeSet::new(),
            opens: Vec::new(),
            breaks: Vec::new(),
        }
    }

    fn perform(&mut self, rig: &mut Rig, deed: Deed) {
        let client = &mut self.client;
        let messages = match deed {
            Deed::Open(ask) => vec![client.open_message("f", ask)],
            Deed::OpenTwice(one, two) => {
                vec![client.open_message("f", one), client.open_message("f", two)]
            }
            Deed::Acknowledge(level) if !self.breaks.is_empty() => {
                let Break { file_id, .. } = self.breaks.remove(0);
                vec![client.acknowledgement(file_id, level)]
            }
            Deed::Write if !self.opens.is_empty() => {
                vec![client.write_message(self.opens[0], b"words")]
            }
            Deed::Close if !self.opens.is_empty() => {
                vec![client.close_message(self.opens.remove(0))]
            }
            Deed::Cancel => {
                if let Some(id) = self.waiting.first().copied() {
                    client.cancel(rig, id, None);
                }
                return;
            }
            Deed::Wait(duration) => return rig.pass(duration),
            _ => return,
        };
        if self.waiting.len() < WAITING {
            let ids = messages.iter().map(|message| message.header.message_id);
            self.waiting.extend(ids);
            self.client.say(rig, messages);
        }
    }

    fn listen(&mut self, rig: &mut Rig) {
        while let Some(answers) = self.client.hear(rig) {
            answers.iter().for_each(|answer| self.take(answer));
        }
    }

    fn take(&mut self, answer: &Answer) {
        let header = &answer.header;
        if header.message_id == MessageId::UNSOLICITED {
            self.breaks.push(broken_oplock(answer));
            return;
        }
        if header.status == Status::PENDING {
            return;
        }
        assert!(self.waiting.remove(&header.message_id), "answered once");
        if header.command == Command::CREATE && header.status == Status::SUCCESS {
            self.opens.push(created(answer).0);
        }
    }
}

proptest! {
    #[test]
    fn every_request_is_answered_once(
        deeds in proptest::collection::vec((0..CLIENTS, deed()), 1..80),
    ) {
        let mut rig = Rig::new(|_| {});
        let mut actors: Vec<Actor> = (0..CLIENTS).map(|_| Actor::new(&mut rig)).collect();
        let mut gone = Vec::new();
        for (index, deed) in deeds {
            actors[index].perform(&mut rig, deed);
            if matches!(deed, Deed::Vanish) {
                rig.cut(actors[index].client.id);
                gone.push(actors[index].client.id);
                actors[index] = Actor::new(&mut rig);
            }
            actors.iter_mut().for_each(|actor| actor.listen(&mut rig));
        }
        // No client acts any more: each wait ends by its time limit, at worst one after the other.
        for _ in 0..CLIENTS * WAITING {
            rig.pass(Duration::from_secs(36));
            actors.iter_mut().for_each(|actor| actor.listen(&mut rig));
        }
        for actor in &actors {
            prop_assert!(actor.waiting.is_empty(), "{:?}", actor.waiting);
            gone.push(actor.client.id);
        }
        prop_assert!(rig.violations.is_empty());
        for id in gone {
            rig.cut(id);
            prop_assert!(rig.connection(id).is_idle());
            prop_assert_eq!(rig.connection(id).next_timeout(), None);
        }
        prop_assert!(rig.disk.opens.is_empty());
    }
}
