//! Remote procedure calls: their fragments and stubs, and the pipes that take them.

use proto::account::{AccountQuery, KnownAccount};
use proto::server::Server;
use proto::server::config::{Config, Share, ShareKind, SyncPolicy};
use proto::server::hosts::HostRules;
use proto::server::pipe::converse;
use proto::server::share_users::ShareUsers;
use proto::time::Now;
use wire::rpc::lsarpc::{
    LookupNames, LookupNamesResponse, LookupSids, LookupSidsResponse, NamesVersion, OpenPolicy,
    QueryInformationResponse, SidKind, SidsVersion,
};
use wire::rpc::srvsvc::{
    RemoteTod, RemoteTodResponse, ServerGetInfo, ServerGetInfoResponse, ShareEnum,
    ShareEnumResponse, ShareGetInfo, ShareGetInfoResponse,
};
use wire::rpc::wkssvc::{WkstaGetInfo, WkstaGetInfoResponse};
use wire::rpc::{Fragments, Header, Pdu};
use wire::security::WELL_KNOWN;

use super::decode::pieces;

/// Maximum number of writes of one input.
const WRITES_MAX: usize = 200;
/// Maximum length of a fragment from the server in bytes.
const FRAGMENT_MAX: u16 = 4280;

/// Decodes, encodes and decodes again. The first pass may lose what an information level does not
/// contain, the second must not.
macro_rules! again {
    ($type:ty, $bytes:expr) => {
        if let Ok(found) = <$type>::decode($bytes) {
            assert_eq!(<$type>::decode(&found.encode()), Ok(found));
        }
    };
}

/// A fragment, or the stub that the first byte chooses.
pub(super) fn calls(input: &[u8]) {
    if let Ok(found) = Pdu::decode(input) {
        let mut again = Vec::new();
        found.encode(&mut again);
        assert_eq!(Pdu::decode(&again), Ok(found));
    }
    let Some((choice, stub)) = input.split_first() else {
        return;
    };
    match choice % 18 {
        0 => again!(ShareEnum, stub),
        1 => again!(ShareEnumResponse, stub),
        2 => again!(ShareGetInfo, stub),
        3 => again!(ShareGetInfoResponse, stub),
        4 => again!(ServerGetInfo, stub),
        5 => again!(ServerGetInfoResponse, stub),
        6 => again!(RemoteTod, stub),
        7 => again!(RemoteTodResponse, stub),
        8 => again!(WkstaGetInfo, stub),
        9 => again!(WkstaGetInfoResponse, stub),
        choice => lsarpc(choice, stub),
    }
}

/// As `again`, for a call with versions.
macro_rules! again_version {
    ($type:ty, $version:expr, $bytes:expr) => {
        if let Ok(found) = <$type>::decode($bytes, $version) {
            let again = <$type>::decode(&found.encode($version), $version);
            assert_eq!(again, Ok(found));
        }
    };
}

/// A stub of the local security authority.
fn lsarpc(choice: u8, stub: &[u8]) {
    match choice {
        10 => again_version!(LookupSids, SidsVersion::One, stub),
        11 => again_version!(LookupSids, SidsVersion::Two, stub),
        12 => again_version!(LookupSidsResponse, SidsVersion::Two, stub),
        13 => again_version!(LookupNames, NamesVersion::Two, stub),
        14 => again_version!(LookupNamesResponse, NamesVersion::One, stub),
        15 => again_version!(LookupNamesResponse, NamesVersion::Three, stub),
        16 => again!(QueryInformationResponse, stub),
        _ => {
            if let Ok(found) = OpenPolicy::decode_2(stub) {
                assert_eq!(OpenPolicy::decode_2(&found.encode_2()), Ok(found));
            }
        }
    }
}

/// Every second SID or name has a translation.
fn look_up(query: &AccountQuery) -> Vec<Option<KnownAccount>> {
    let known = |index: usize| KnownAccount {
        sid: WELL_KNOWN[index % WELL_KNOWN.len()].sid,
        domain: "BUILTIN".to_owned(),
        name: format!("account {index}"),
        kind: SidKind::ALIAS,
    };
    let all = 0..query.len();
    all.map(|index| (index % 2 == 0).then(|| known(index)))
        .collect()
}

/// Writes to a pipe: a byte chooses the pipe, then each write follows a length of two bytes. All
/// responses of the server are fragments that the decoder accepts.
pub(super) fn pipe(input: &[u8]) {
    let Some((choice, input)) = input.split_first() else {
        return;
    };
    let name = match choice % 3 {
        0 => "srvsvc",
        1 => "wkssvc",
        _ => "lsarpc",
    };
    let writes: Vec<&[u8]> = pieces(input).take(WRITES_MAX).collect();
    let read = converse(&server(), Now::default(), name, &writes, look_up);
    let read = read.expect("the pipe exists");
    for message in read {
        let mut fragments = Fragments::new(FRAGMENT_MAX);
        fragments.push(&message);
        let fragment = fragments.take().expect("a fragment").expect("all of it");
        assert_eq!(fragments.pending(), 0, "a message is a fragment");
        let header = Header::decode(&fragment).expect("a header");
        assert!(Pdu::decode(&fragment).is_ok(), "{header:?} cannot be read");
    }
}

/// Returns a server with some shares.
fn server() -> std::sync::Arc<Server> {
    let kinds = [("IPC$", ShareKind::Pipe), ("files", ShareKind::Disk)];
    let share = |(index, (name, kind)): (u32, (&str, ShareKind))| Share {
        id: proto::file::ShareId(index),
        name: name.to_owned(),
        kind,
        comment: "a comment".to_owned(),
        read_only: false,
        listed: true,
        encryption_required: false,
        oplocks: false,
        directory_leases: false,
        durable_handles: false,
        notify: false,
        sync: SyncPolicy::default(),
        users: ShareUsers::default(),
        hosts: HostRules::default(),
        guest: true,
        force_token: None,
        access_based_enumeration: false,
        audit: std::sync::Arc::default(),
        posix: false,
    };
    let config = Config {
        name: "SIM".to_owned(),
        shares: (0..)
            .zip(kinds)
            .map(|entry| std::sync::Arc::new(share(entry)))
            .collect(),
        ..Config::default()
    };
    Server::new(config, Now::default())
}

#[cfg(test)]
mod tests {
    use proto::server::pipe::converse;
    use proto::time::Now;
    use wire::rpc::{Body, Pdu};

    use super::{calls, look_up, pieces, pipe, server};
    use crate::choices::Choices;

    #[test]
    fn a_good_conversation_is_answered_to_its_end() {
        let input = include_bytes!("../../../../fuzz/corpus/pipe/list-shares");
        let writes: Vec<&[u8]> = pieces(&input[1..]).collect();
        let read = converse(&server(), Now::default(), "srvsvc", &writes, look_up);
        let read = read.expect("a pipe");
        assert_eq!(read.len(), 5);
        for message in &read[1..] {
            let pdu = Pdu::decode(message).expect("a fragment");
            assert!(matches!(pdu.body, Body::Response(_)), "{pdu:?}");
        }
    }

    #[test]
    fn accounts_are_looked_up_to_the_end_of_a_conversation() {
        let input = include_bytes!("../../../../fuzz/corpus/pipe/look-up-accounts");
        let writes: Vec<&[u8]> = pieces(&input[1..]).collect();
        let read = converse(&server(), Now::default(), "lsarpc", &writes, look_up);
        let read = read.expect("a pipe");
        assert_eq!(read.len(), 6);
        for message in &read[1..] {
            let pdu = Pdu::decode(message).expect("a fragment");
            assert!(matches!(pdu.body, Body::Response(_)), "{pdu:?}");
        }
    }

    /// Random bytes rarely get far: this test corrupts a valid conversation in a few places.
    #[test]
    fn spoiled_conversations_are_survived() {
        let conversations: [&[u8]; 2] = [
            include_bytes!("../../../../fuzz/corpus/pipe/list-shares"),
            include_bytes!("../../../../fuzz/corpus/pipe/look-up-accounts"),
        ];
        for seed in 0..3000 {
            let mut choices = Choices::from_seed(seed);
            let mut input = conversations[choices.below(2) as usize].to_vec();
            for _ in 0..choices.below(4) {
                let at = choices.below(input.len() as u64) as usize;
                input[at] = choices.below(256) as u8;
            }
            pipe(&input);
            calls(&input[3..]);
        }
    }
}
