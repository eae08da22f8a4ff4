//! QUERY_NETWORK_INTERFACE_INFO lists the addresses for further channels.

use wire::dialect::Dialect;
use wire::fsctl::{CtlCode, InterfaceCapability, NetworkInterface, SocketAddress};
use wire::ioctl::{IoctlFlags, Request, Response};
use wire::{Command, FileId, Status};

use crate::harness::{Answer, Client, Rig, bytes_of, multichannel};

fn interfaces() -> [NetworkInterface; 2] {
    let first = NetworkInterface {
        if_index: 2,
        capability: InterfaceCapability::RSS_CAPABLE,
        link_speed: 10_000_000_000,
        address: SocketAddress::V4([192, 0, 2, 7]),
    };
    let second = NetworkInterface {
        if_index: 3,
        capability: InterfaceCapability::NONE,
        link_speed: 1_000_000_000,
        address: SocketAddress::V6([7; 16]),
    };
    [first, second]
}

fn ask(rig: &mut Rig, client: &mut Client, input: &[u8], room: u32, file_id: FileId) -> Answer {
    let request = Request {
        ctl_code: CtlCode::QUERY_NETWORK_INTERFACE_INFO,
        file_id,
        input,
        output: &[],
        max_input_response: 0,
        max_output_response: room,
        flags: IoctlFlags::IS_FSCTL,
    };
    client.ask_body(rig, Command::IOCTL, bytes_of(|bytes| request.encode(bytes)))
}

#[test]
fn every_tree_lists_the_current_interfaces() {
    let mut rig = Rig::new(|_| {});
    let options = multichannel(Dialect::SMB_3_1_1);
    let mut client = Client::in_share(&mut rig, options, "alice", "files");
    for share in ["files", "IPC$"] {
        client.enter(&mut rig, share);
        for expected in [&interfaces()[..], &interfaces()[..1], &[]] {
            rig.server.set_interfaces(expected);
            let answer = ask(&mut rig, &mut client, &[], 65_536, FileId::RELATED);
            assert_eq!(answer.status(), Status::SUCCESS);
            let response = Response::decode(&answer.message).expect("a response");
            let reported = NetworkInterface::decode_list(response.output).expect("a list");
            assert_eq!(reported, expected);
        }
    }
}

#[test]
fn invalid_requests_are_refused() {
    let mut rig = Rig::new(|_| {});
    rig.server.set_interfaces(&interfaces());
    let options = multichannel(Dialect::SMB_3_1_1);
    let mut client = Client::in_share(&mut rig, options, "alice", "files");
    let file = client.create(&mut rig, "a");
    let mut status = |input: &[u8], room: u32, file_id: FileId| {
        ask(&mut rig, &mut client, input, room, file_id).status()
    };
    let needed = 2 * NetworkInterface::LEN as u32;
    assert_eq!(status(&[], needed, FileId::RELATED), Status::SUCCESS);
    let too_small = status(&[], needed - 1, FileId::RELATED);
    assert_eq!(too_small, Status::BUFFER_TOO_SMALL);
    let with_input = status(&[0], needed, FileId::RELATED);
    assert_eq!(with_input, Status::INVALID_PARAMETER);
    let with_open = status(&[], needed, file);
    assert_eq!(with_open, Status::INVALID_PARAMETER);
    let mut client = Client::in_share(&mut rig, multichannel(Dialect::SMB_2_1), "bob", "files");
    let old = ask(&mut rig, &mut client, &[], needed, FileId::RELATED);
    assert_eq!(old.status(), Status::INVALID_DEVICE_REQUEST);
}
