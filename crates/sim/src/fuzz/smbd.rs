//! SMB Direct's core, either end, with any bytes.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use proto::smbd::{Config, Role};
use proto::time::Instant;
use wire::smbd::{DataTransfer, NegotiateRequest, NegotiateResponse, TransferFlags, VERSION_1};
use wire::{Status, smbd};

use crate::choices::Choices;
use crate::smbd::side::{Deeds, Packet, Side};

/// Maximum number of steps of one input.
const STEPS_MAX: usize = 500;
/// The flags of an input: the end is the server; it has few credits; the negotiation is complete.
const SERVER: u8 = 1;
const TIGHT: u8 = 2;
const NEGOTIATED: u8 = 4;
/// The steps of an input.
const POST: u8 = 0;
const COMPLETE: u8 = 1;
const SAY: u8 = 2;
const WAIT: u8 = 3;
const TRANSFER: u8 = 4;
const HEAR: u8 = 5;
const STEPS: u8 = 6;

/// A byte of flags, then steps: a byte each, with its parameters. Receives are posted, SENDs
/// complete, the upper layer sends, time passes, a data transfer arrives with the next bytes as its
/// fields, or any bytes arrive after a length of two bytes.
///
/// The checks of the simulator apply to the core, except those of the peer's messages.
pub(super) fn smbd(input: &[u8]) {
    let Some((flags, input)) = input.split_first() else {
        return;
    };
    let mut script = Script(input);
    let mut now = Instant::default();
    let (mut side, _) = side(*flags);
    if side.can_receive() && flags & NEGOTIATED != 0 {
        let word = word(flags & SERVER != 0);
        let _ = follow(side.receive(now, &word));
        let _ = follow(side.post(now, u32::MAX));
    }
    for _ in 0..STEPS_MAX {
        let Some(step) = script.byte() else {
            break;
        };
        let _ = match step % STEPS {
            POST => follow(side.post(now, script.number())),
            COMPLETE => {
                let count = side.unfinished().count().min(script.number() as usize);
                follow(side.complete(now, count))
            }
            SAY if side.is_ready() && side.unsaid() > 0 => follow(side.say(now)),
            WAIT => {
                now = now.after(Duration::from_secs(script.number().into()));
                follow(side.timeout(now))
            }
            TRANSFER if side.can_receive() => follow(side.receive(now, &script.transfer())),
            HEAR if side.can_receive() => follow(side.receive(now, script.piece())),
            _ => Deeds::default(),
        };
    }
    let snapshot = side.snapshot();
    assert!(side.end().is_none() || side.next_timeout().is_none());
    assert!(snapshot.receive_credits <= snapshot.posted, "{snapshot:?}");
}

fn follow(result: Result<Deeds, String>) -> Deeds {
    result.unwrap_or_else(|what| panic!("{what}"))
}

/// Returns an end that has posted its first receive, and its first message.
fn side(flags: u8) -> (Side, VecDeque<Packet>) {
    let role = if flags & SERVER != 0 {
        Role::Server
    } else {
        Role::Client
    };
    let mut config = Config::new(role);
    if flags & TIGHT != 0 {
        (config.send_credit_target, config.receive_credit_max) = (2, 2);
        (config.max_send_size, config.max_receive_size) = (128, 128);
        (config.send_depth, config.queue_depth) = (2, 3);
    }
    let lengths = [1, 8, 200, 104, 5000, 105, 131_072, 3];
    let messages = lengths.map(|length| vec![length as u8; length]).to_vec();
    let mut side = Side::new(config, Rc::new(messages), None);
    let _ = follow(side.start(Instant::default()));
    let deeds = follow(side.post(Instant::default(), 1));
    (side, deeds.packets.into())
}

/// Returns the first message of a valid peer.
fn word(to_server: bool) -> Vec<u8> {
    let mut word = Vec::new();
    let (credits, size, fragmented) = (10, 1024, smbd::MIN_FRAGMENTED_SIZE);
    if to_server {
        let request = NegotiateRequest {
            min_version: VERSION_1,
            max_version: VERSION_1,
            credits_requested: credits,
            preferred_send_size: size,
            max_receive_size: size,
            max_fragmented_size: fragmented,
        };
        request.encode(&mut word);
    } else {
        let response = NegotiateResponse {
            min_version: VERSION_1,
            max_version: VERSION_1,
            negotiated_version: VERSION_1,
            credits_requested: credits,
            credits_granted: credits,
            status: Status::SUCCESS,
            max_read_write_size: 1 << 20,
            preferred_send_size: smbd::MIN_RECEIVE_SIZE,
            max_receive_size: size,
            max_fragmented_size: fragmented,
        };
        response.encode(&mut word);
    }
    word
}

/// The rest of an input; zeros follow.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn number(&mut self) -> u32 {
        self.byte().unwrap_or(0).into()
    }

    fn pair(&mut self) -> u16 {
        u16::from_le_bytes([self.byte().unwrap_or(0), self.byte().unwrap_or(0)])
    }

    fn piece(&mut self) -> &'a [u8] {
        let length = usize::from(self.pair()).min(self.0.len());
        let (piece, rest) = self.0.split_at(length);
        self.0 = rest;
        piece
    }

    /// Returns a data transfer that includes its data.
    fn transfer(&mut self) -> Vec<u8> {
        let length = self.number();
        let offset = if length > 0 {
            DataTransfer::DATA_OFFSET
        } else {
            0
        };
        let transfer = DataTransfer {
            credits_requested: self.byte().unwrap_or(0).into(),
            credits_granted: self.byte().unwrap_or(0).into(),
            flags: TransferFlags(self.byte().unwrap_or(0).into()),
            remaining_data_length: self.pair().into(),
            data_offset: offset,
            data_length: length,
        };
        let mut bytes = Vec::new();
        transfer.encode(&mut bytes);
        if length > 0 {
            bytes.resize((offset + length) as usize, 0);
        }
        bytes
    }
}

/// The corruption: the SEND of the peer, the byte, and its new value.
type Spoiled = (usize, usize, u8);

/// Returns an input in which an end receives a valid peer, up to a corrupted SEND.
pub fn smbd_exchange(is_server: bool, spoiled: Option<(usize, usize, u8)>, seed: u64) -> Vec<u8> {
    let recorded = usize::from(is_server);
    let ((client, request), (server, _)) = (side(TIGHT), side(TIGHT | SERVER));
    let mut recorder = Recorder {
        sides: [client, server],
        wires: [request, VecDeque::new()],
        recorded,
        heard: 0,
        input: vec![TIGHT | if is_server { SERVER } else { 0 }],
    };
    let mut choices = Choices::from_seed(seed);
    for _ in 0..120 {
        if recorder.step(&mut choices, spoiled) {
            break;
        }
    }
    recorder.input
}

/// The two ends of a valid exchange, and the bytes that one of them received, as an input.
struct Recorder {
    sides: [Side; 2],
    wires: [VecDeque<Packet>; 2],
    recorded: usize,
    /// Number of SENDs that it received.
    heard: usize,
    input: Vec<u8>,
}

impl Recorder {
    /// Runs one event. Returns whether it was the last one.
    fn step(&mut self, choices: &mut Choices, spoiled: Option<Spoiled>) -> bool {
        let (now, index) = (Instant::default(), choices.index(2));
        let side = &mut self.sides[index];
        let (step, deeds) = match choices.below(4) {
            0 if side.asked() > 0 => (vec![POST, 255], side.post(now, 255)),
            1 => {
                let count = side.unfinished().count();
                (vec![COMPLETE, 255], side.complete(now, count))
            }
            2 if side.is_ready() && side.unsaid() > 0 => (vec![SAY], side.say(now)),
            _ => {
                let Some(mut packet) = self.wires[1 - index].pop_front() else {
                    return false;
                };
                if index == self.recorded {
                    self.heard += 1;
                    if let Some((_, at, value)) = spoiled.filter(|(at, ..)| at + 1 == self.heard) {
                        let at = at % packet.bytes.len();
                        packet.bytes[at] = value;
                        self.input.extend(hear(&packet.bytes));
                        return true;
                    }
                }
                (hear(&packet.bytes), side.receive(now, &packet.bytes))
            }
        };
        self.wires[index].extend(follow(deeds).packets);
        if index == self.recorded {
            self.input.extend(step);
        }
        false
    }
}

fn hear(bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u16).to_le_bytes();
    [&[HEAR], &length[..], bytes].concat()
}
