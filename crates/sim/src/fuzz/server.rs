//! The whole core: any bytes as frames, and a client that follows the bytes.

use std::collections::VecDeque;

use proto::carrier::Carrier;
use proto::time::Now;
use wire::compound::Members;
use wire::header::HEADER_LEN;
use wire::read::Channel;
use wire::smbd::BufferDescriptorV1;
use wire::{Command, Flags, Header};

use super::decode::pieces;
use crate::Report;
use crate::adapter::{Adapter, RDMA};
use crate::check::Check;
use crate::check::nonces::SigningNonces;
use crate::choices::Choices;
use crate::host::{Host, Surroundings, Wish};
use crate::scenario::{Faults, Protection, Scenario};
use crate::world::World;

/// Maximum number of frames of one input.
const FRAMES_MAX: usize = 200;
/// Offsets of the CreditCharge, the Flags, the MessageId and the SessionId in a header. \[MS-SMB2\]
/// 2.2.1.2
const CHARGE: std::ops::Range<usize> = 6..8;
const FLAGS: usize = 16;
const MESSAGE_ID: std::ops::Range<usize> = 24..32;
const SESSION_ID: std::ops::Range<usize> = 40..48;

/// Any bytes as a sequence of frames on a new connection: a byte of flags, then each frame after a
/// length of two bytes. With the third flag, the transport is SMB Direct, where READ and WRITE name
/// memory. With the lowest flag, headers get the expected MessageId and SessionId and no signature,
/// so that a fuzzer need not guess them; with the next one, every login succeeds as a guest.
pub(super) fn bytes(input: &[u8]) {
    let Some((flags, input)) = input.split_first() else {
        return;
    };
    let carrier = if flags & 4 != 0 { RDMA } else { Carrier::TCP };
    let mut guest = Guest::over(carrier, flags & 2 != 0);
    for piece in pieces(input).take(FRAMES_MAX) {
        let mut frame = piece.to_vec();
        if flags & 1 != 0 {
            guest.address(&mut frame);
        }
        guest.send(frame).expect("the core keeps its promises");
        guest.frames.clear();
    }
    guest.leave().expect("nothing is left");
}

/// Returns an input of the fuzz target `server_bytes`, in which a guest sends these frames.
pub fn frames(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut input = vec![3];
    for frame in frames {
        if let Ok(length) = u16::try_from(frame.len()) {
            input.extend(length.to_le_bytes());
            input.extend(frame);
        }
    }
    input
}

/// Returns an input of the fuzz target `server_bytes`, in which a guest sends these frames over SMB
/// Direct. READs and WRITEs name registered memory instead of data.
pub fn frames_over_rdma(frames: &[Vec<u8>]) -> Vec<u8> {
    let frames: Vec<_> = frames.iter().map(|frame| naming(frame)).collect();
    let mut input = self::frames(&frames);
    input[0] |= 4;
    input
}

/// Converts a READ or WRITE that is alone in its frame to RDMA; leaves other frames unchanged.
fn naming(frame: &[u8]) -> Vec<u8> {
    let header = Header::decode(frame).ok();
    let command = header.filter(|header| header.next_command == 0);
    let mut message = frame[..frame.len().min(HEADER_LEN)].to_vec();
    let mut info = Vec::new();
    let mut name = |length| {
        let (offset, token) = (0x1000, 8);
        let piece = BufferDescriptorV1 {
            offset,
            token,
            length,
        };
        piece.encode(&mut info);
    };
    match command.map(|header| header.command) {
        Some(Command::READ) => {
            let Ok(request) = wire::read::Request::decode(frame) else {
                return frame.to_vec();
            };
            name(request.length);
            wire::read::Request {
                channel: Channel::RDMA_V1_INVALIDATE,
                channel_info: &info,
                ..request
            }
            .encode(&mut message);
        }
        Some(Command::WRITE) => {
            let Ok(request) = wire::write::Request::decode(frame) else {
                return frame.to_vec();
            };
            let length = u32::try_from(request.data.len()).unwrap_or(u32::MAX);
            name(length);
            wire::write::Request {
                channel: Channel::RDMA_V1,
                channel_info: &info,
                remaining_bytes: length,
                data: &[],
                ..request
            }
            .encode(&mut message);
        }
        _ => return frame.to_vec(),
    }
    message
}

/// Returns the unencrypted frames that the one client of a simulation without faults sends, in
/// order. Simulations with the same `seed` have the same frames.
pub fn capture(seed: u64) -> Vec<Vec<u8>> {
    let scenario = Scenario {
        users: 1,
        operations: 25,
        protections: vec![Protection::Plain],
        transports: vec![Carrier::TCP],
        ..Scenario::calm()
    };
    let mut world = World::new(&scenario, Choices::from_seed(seed));
    world.populate();
    world.run().expect("a calm run is good");
    std::mem::take(&mut world.captured)
}

/// Returns an input of `len` pseudorandom bytes for the fuzz target `server_operations`.
pub fn script(seed: u64, len: usize) -> Vec<u8> {
    let mut choices = Choices::from_seed(seed);
    (0..len).map(|_| choices.below(256) as u8).collect()
}

/// A client that logs in and follows the bytes, over any transport and with invalid memory, with
/// every checker of the simulator.
pub(super) fn operations(input: &[u8]) {
    run_script(input);
}

fn run_script(input: &[u8]) -> Report {
    let faults = Faults {
        invalid_memory: 150,
        ..Faults::default()
    };
    let scenario = Scenario {
        users: 1,
        operations: 100,
        leases: 300,
        faults,
        ..Scenario::calm()
    };
    let mut world = World::new(&scenario, Choices::from_seed(0));
    world.populate_scripted(Choices::from_script(input));
    let result = world.run().and_then(|()| world.audit());
    if let Err(what) = result {
        panic!("{what}\n{}", world.describe());
    }
    world.report
}

/// A connection and its surroundings. No time passes.
pub(super) struct Guest {
    world: World,
    host: Host,
    choices: Choices,
    adapter: Adapter,
    next_message: u64,
    session: [u8; 8],
    /// The first header of each response.
    heard: Vec<Header>,
    /// The responses, if the caller collects them.
    pub(super) frames: VecDeque<Vec<u8>>,
}

impl Guest {
    pub(super) fn new(is_open: bool) -> Self {
        Self::over(Carrier::TCP, is_open)
    }

    pub(super) fn over(carrier: Carrier, is_open: bool) -> Self {
        let mut choices = Choices::from_seed(0);
        let world = World::new(&Scenario::calm(), choices.fork());
        let mut host = world.host(carrier, &mut choices);
        if is_open {
            host.accept_all_logins();
        }
        Self {
            world,
            host,
            choices,
            adapter: Adapter::open(),
            next_message: 0,
            session: [0; 8],
            heard: Vec::new(),
            frames: VecDeque::new(),
        }
    }

    /// Sets the expected ids in the members of a frame.
    fn address(&mut self, frame: &mut [u8]) {
        let lengths: Vec<usize> = Members::new(frame)
            .map_while(|member| member.ok().map(<[u8]>::len))
            .collect();
        let mut start = 0;
        for length in lengths {
            let header = &mut frame[start..];
            start += length;
            if length < HEADER_LEN {
                return;
            }
            header[MESSAGE_ID].copy_from_slice(&self.next_message.to_le_bytes());
            let charge = u16::from_le_bytes([header[CHARGE.start], header[CHARGE.start + 1]]);
            self.next_message += u64::from(charge.max(1));
            // A guest has no key: none of its messages is signed.
            header[FLAGS] &= !(Flags::SIGNED.0 as u8);
            if header[SESSION_ID] != [0; 8] {
                header[SESSION_ID].copy_from_slice(&self.session);
            }
        }
    }

    pub(super) fn send(&mut self, frame: Vec<u8>) -> Check {
        self.call(|host, around| host.receive(frame, around))
    }

    pub(super) fn leave(mut self) -> Check {
        self.call(Host::closed)?;
        assert!(self.host.is_drained(), "{}", self.host.describe());
        self.world.disk().check_idle()
    }

    /// Calls the server's end, and completes slow operations at once.
    fn call(&mut self, call: impl FnOnce(&mut Host, &mut Surroundings<'_>) -> Check) -> Check {
        let mut wishes = Vec::new();
        let faults = Faults::default();
        let mut around = Surroundings {
            now: Now::default(),
            disk: self.world.disk(),
            choices: &mut self.choices,
            faults: &faults,
            adapter: &mut self.adapter,
            nonces: &mut SigningNonces::default(),
            wishes: &mut wishes,
        };
        call(&mut self.host, &mut around)?;
        while let Some(wish) = around.wishes.pop() {
            match wish {
                Wish::Later(op) => self.host.ripe(op, &mut around)?,
                Wish::Send(frame, _) => {
                    self.session = session(&frame).unwrap_or(self.session);
                    self.heard.extend(Header::decode(&frame));
                    self.frames.push_back(frame);
                }
                Wish::Notify(..)
                | Wish::Refused(_)
                | Wish::ArmServerTimer
                | Wish::Disconnect(_) => {}
            }
        }
        Ok(())
    }
}

/// Returns the session of a response.
fn session(frame: &[u8]) -> Option<[u8; 8]> {
    let id = *frame.get(SESSION_ID)?.first_chunk()?;
    (id != [0; 8]).then_some(id)
}

#[cfg(test)]
mod tests {
    use wire::create_context::{find, name};
    use wire::{MessageId, Status};

    use super::*;
    use crate::fuzz::capture_caching;

    /// Seeds that fail at the start would find nothing.
    #[test]
    fn a_guest_gets_as_far_as_the_client_did() {
        for seed in 0..4 {
            let mut guest = Guest::new(true);
            for mut frame in capture(seed) {
                guest.address(&mut frame);
                guest.send(frame).expect("the core keeps its promises");
            }
            for command in [
                Command::SESSION_SETUP,
                Command::TREE_CONNECT,
                Command::CREATE,
            ] {
                let is_good = |heard: &&Header| heard.status == Status::SUCCESS;
                let mut answers = guest.heard.iter().filter(is_good);
                assert!(answers.any(|heard| heard.command == command), "{command:?}");
            }
            guest.leave().expect("nothing is left");
        }
    }

    #[test]
    fn a_guest_gets_leases_and_acknowledges_their_breaks() {
        let (mut leases, mut acknowledgments) = (0, 0);
        for seed in 0..12 {
            let mut guest = Guest::new(true);
            for mut frame in capture_caching(seed, seed % 2 == 0) {
                guest.address(&mut frame);
                guest.send(frame).expect("the core keeps its promises");
            }
            while let Some(answer) = guest.frames.pop_front() {
                let header = Header::decode(&answer).expect("a header");
                if header.status != Status::SUCCESS {
                    continue;
                }
                match header.command {
                    Command::CREATE => leases += usize::from(has_lease(&answer)),
                    Command::OPLOCK_BREAK if header.message_id != MessageId::UNSOLICITED => {
                        acknowledgments += 1;
                    }
                    _ => {}
                }
            }
            guest.leave().expect("nothing is left");
        }
        assert!(
            leases > 0 && acknowledgments > 0,
            "{leases} {acknowledgments}"
        );
    }

    fn has_lease(answer: &[u8]) -> bool {
        let response = wire::create::Response::decode(answer);
        response.is_ok_and(|response| find(&response.contexts, name::LEASE).is_some())
    }

    #[test]
    fn scripts_acknowledge_breaks_of_caching_rights() {
        let reports: Vec<Report> = (0..12)
            .map(|seed| run_script(&script(seed, 2000)))
            .collect();
        assert!(reports.iter().any(|report| report.grants > 0));
        assert!(reports.iter().any(|report| report.acknowledgments > 0));
    }

    #[test]
    fn a_guest_over_smb_direct_has_its_data_moved() {
        let mut moved = 0;
        for seed in 0..32 {
            let mut guest = Guest::over(RDMA, true);
            for frame in capture(seed) {
                let mut frame = naming(&frame);
                guest.address(&mut frame);
                guest.send(frame).expect("the core keeps its promises");
            }
            while let Some(answer) = guest.frames.pop_front() {
                let header = Header::decode(&answer).expect("a header");
                let is_good = header.status == Status::SUCCESS;
                if is_good && matches!(header.command, Command::READ | Command::WRITE) {
                    moved += 1;
                    // A header without a body.
                    assert_eq!(answer.len(), 80);
                }
            }
            guest.leave().expect("nothing is left");
        }
        assert!(moved > 0, "something was read or written");
    }
}
