//! TREE_CONNECT and TREE_DISCONNECT.

use std::sync::Arc;

use proto::server::config::Share;
use wire::access::AccessMask;
use wire::dialect::Dialect;
use wire::tree_connect::{Request, RequestFlags, Response, ShareType};
use wire::{Command, Status, TreeId, Utf16};

use crate::harness::{Client, Options, Rig, bytes_of, only, share};

fn rig() -> Rig {
    Rig::new(|config| {
        let shares = [
            Share {
                users: only("Alice"),
                ..share("private")
            },
            Share {
                guest: true,
                read_only: true,
                ..share("public")
            },
        ];
        config.shares.extend(shares.map(Arc::new));
    })
}

#[test]
fn users_and_guests_connect_if_the_share_allows_it() {
    let mut rig = rig();
    let denied = Status::ACCESS_DENIED;
    let unknown = Status::BAD_NETWORK_NAME;
    for (user, share, expected) in [
        ("alice", "files", Status::SUCCESS),
        ("alice", "FILES", Status::SUCCESS),
        ("alice", "private", Status::SUCCESS),
        ("bob", "private", denied),
        ("guest", "private", denied),
        ("guest", "files", denied),
        ("guest", "public", Status::SUCCESS),
        ("anonymous", "public", Status::SUCCESS),
        ("anonymous", "IPC$", denied),
        ("alice", "ipc$", Status::SUCCESS),
        ("alice", "nowhere", unknown),
        ("guest", "nowhere", unknown),
        ("alice", "", unknown),
        ("alice", "files\\below", unknown),
    ] {
        let mut client = Client::logged_in(&mut rig, Options::default(), user);
        let status = client.enter(&mut rig, share).status();
        assert_eq!(status, expected, "{user} {share}");
    }
}

#[test]
fn a_tree_connect_reports_type_and_flags() {
    let mut rig = rig();
    let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
    for (share, share_type, maximal_access) in [
        ("files", ShareType::DISK, 0x001F_01FF),
        ("public", ShareType::DISK, 0x0012_00A9),
        ("IPC$", ShareType::PIPE, 0x001F_01FF),
    ] {
        let answer = client.enter(&mut rig, share);
        let response = Response::decode(&answer.message).unwrap();
        assert_eq!(response.share_type, share_type);
        assert_eq!(response.maximal_access, AccessMask(maximal_access));
    }
}

#[test]
fn an_invalid_path_is_refused() {
    let mut rig = rig();
    let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
    for (path, expected) in [
        (wire::text::utf16("files"), Status::SUCCESS),
        (wire::text::utf16("\\\\server"), Status::BAD_NETWORK_NAME),
        (wire::text::utf16("\\\\server\\"), Status::BAD_NETWORK_NAME),
        (vec![0x00, 0xD8], Status::BAD_NETWORK_NAME),
        (vec![0x41], Status::BAD_NETWORK_NAME),
        (Vec::new(), Status::BAD_NETWORK_NAME),
    ] {
        let request = Request {
            flags: RequestFlags::NONE,
            path: Utf16(&path),
        };
        let bytes = bytes_of(|bytes| request.encode(bytes));
        let answer = client.ask_body(&mut rig, Command::TREE_CONNECT, bytes);
        assert_eq!(answer.status(), expected, "{path:x?}");
    }
}

#[test]
fn tree_ids_are_unique_and_limited() {
    let mut rig = Rig::new(|config| config.limits.trees_per_session = 3);
    let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
    for number in 1..=3 {
        assert_eq!(client.enter(&mut rig, "files").status(), Status::SUCCESS);
        assert_eq!(client.tree, TreeId(number));
    }
    let answer = client.enter(&mut rig, "files");
    assert_eq!(answer.status(), Status::INSUFFICIENT_RESOURCES);
}

#[test]
fn a_disconnected_tree_is_unknown() {
    for dialect in [Dialect::SMB_2_0_2, Dialect::SMB_3_1_1] {
        let mut rig = rig();
        let mut client = Client::in_share(&mut rig, Options::only(dialect), "alice", "files");
        for expected in [Status::SUCCESS, Status::NETWORK_NAME_DELETED] {
            let bytes = bytes_of(|bytes| wire::tree_disconnect::Request.encode(bytes));
            let answer = client.ask_body(&mut rig, Command::TREE_DISCONNECT, bytes);
            assert_eq!(answer.status(), expected);
        }
        assert_eq!(client.enter(&mut rig, "files").status(), Status::SUCCESS);
    }
}

#[test]
fn a_share_without_its_directory_is_refused_until_it_exists() {
    let mut rig = rig();
    let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
    rig.disk.is_unmounted = true;
    let refused = client.enter(&mut rig, "files").status();
    assert_eq!(refused, Status::BAD_NETWORK_NAME);
    assert_eq!(client.enter(&mut rig, "ipc$").status(), Status::SUCCESS);
    rig.disk.is_unmounted = false;
    assert_eq!(client.enter(&mut rig, "files").status(), Status::SUCCESS);
}
