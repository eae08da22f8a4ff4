//! Seeds with leases and durable opens: create contexts, and frames of a client that caches.

use proto::carrier::Carrier;
use wire::create_context::{
    DURABLE_REQUEST_DATA, DurableFlags, DurableReconnect, DurableReconnectV2, DurableRequestV2,
    Lease, LeaseFlags, LeaseState, LeaseV2, RawContext, encode_list, name,
};
use wire::header::HEADER_LEN;
use wire::{Command, FileId, Guid, Header};

use crate::choices::Choices;
use crate::scenario::{Protection, Scenario};
use crate::world::World;

/// Returns the unencrypted frames of a client without faults that requests leases and oplocks, and
/// acknowledges breaks. Where `is_durable` is true, its CREATEs also request durable opens.
pub fn capture_caching(seed: u64, is_durable: bool) -> Vec<Vec<u8>> {
    let scenario = Scenario {
        users: 1,
        operations: 40,
        protections: vec![Protection::Plain],
        transports: vec![Carrier::TCP],
        leases: 700,
        crowd: 300,
        ..Scenario::calm()
    };
    let mut world = World::new(&scenario, Choices::from_seed(seed));
    world.populate();
    world.run().expect("a calm run is good");
    let frames = std::mem::take(&mut world.captured);
    match is_durable {
        true => frames
            .into_iter()
            .map(|frame| durable(frame, seed))
            .collect(),
        false => frames,
    }
}

/// Adds a request of a durable open to a CREATE that is alone in its frame; leaves other frames
/// unchanged.
fn durable(frame: Vec<u8>, seed: u64) -> Vec<u8> {
    let header = Header::decode(&frame).ok();
    let is_create = header.is_some_and(|it| it.command == Command::CREATE && it.next_command == 0);
    let Some(Ok(mut request)) = is_create.then(|| wire::create::Request::decode(&frame)) else {
        return frame;
    };
    let contexts = durable_contexts(seed);
    let (name, data) = &contexts[seed as usize % contexts.len()];
    request.contexts.push(RawContext { name, data });
    let mut message = frame[..HEADER_LEN].to_vec();
    request.encode(&mut message);
    message
}

fn durable_contexts(seed: u64) -> [(&'static [u8], Vec<u8>); 4] {
    let create_guid = Guid([seed as u8 + 1; 16]);
    let file_id = FileId {
        persistent: 1,
        volatile: 1,
    };
    let request = DurableRequestV2 {
        timeout_ms: 30_000,
        flags: DurableFlags::NONE,
        create_guid,
    };
    let reconnect = DurableReconnectV2 {
        file_id,
        create_guid,
        flags: DurableFlags::NONE,
    };
    [
        (name::DURABLE_REQUEST_V2, request.encode()),
        (name::DURABLE_REQUEST, DURABLE_REQUEST_DATA.to_vec()),
        (name::DURABLE_RECONNECT_V2, reconnect.encode()),
        (
            name::DURABLE_RECONNECT,
            DurableReconnect { file_id }.encode(),
        ),
    ]
}

/// Returns inputs of the fuzz target `create_contexts`: each context of leases and durable opens
/// with a lease of each version.
pub fn context_lists() -> Vec<Vec<u8>> {
    let lease = |v2| Lease {
        lease_key: Guid([7; 16]),
        lease_state: LeaseState::READ_CACHING
            | LeaseState::HANDLE_CACHING
            | LeaseState::WRITE_CACHING,
        lease_flags: LeaseFlags::NONE,
        v2,
    };
    let v2 = LeaseV2 {
        parent_lease_key: Guid([8; 16]),
        epoch: 0xFFFF,
    };
    let mut lists = Vec::new();
    for lease in [lease(None).encode(), lease(Some(v2)).encode()] {
        for (durable, data) in &durable_contexts(1) {
            let (name, lease) = (name::LEASE, &lease[..]);
            let first = RawContext { name, data: lease };
            let (name, data) = (*durable, &data[..]);
            lists.push(encode_list(&[first, RawContext { name, data }]));
        }
    }
    lists
}
