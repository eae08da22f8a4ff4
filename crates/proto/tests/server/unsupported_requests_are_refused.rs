//! A CHANGE_NOTIFY of a file, OPLOCK_BREAK and unsupported functions of IOCTL: each gets the
//! status after which clients use their alternative.

use wire::access::OplockLevel;
use wire::fsctl::CtlCode;
use wire::ioctl::IoctlFlags;
use wire::oplock_break::{OplockBreak, Request as Break};
use wire::{Command, FileId, Status, change_notify, ioctl};

use crate::harness::{Client, Options, Rig, bytes_of};

const NO_OPEN: FileId = FileId {
    persistent: 77,
    volatile: 77,
};

fn ask_ioctl(client: &mut Client, rig: &mut Rig, ctl_code: CtlCode, file_id: FileId) -> Status {
    let request = ioctl::Request {
        ctl_code,
        file_id,
        max_input_response: 0,
        max_output_response: 4096,
        flags: IoctlFlags::IS_FSCTL,
        input: &[],
        output: &[],
    };
    let bytes = bytes_of(|bytes| request.encode(bytes));
    client.ask_body(rig, Command::IOCTL, bytes).status()
}

#[test]
fn functions_of_ioctl() {
    let mut rig = Rig::new(|config| config.multichannel = false);
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let file = client.create(&mut rig, "a");
    let no_driver = Status::FS_DRIVER_REQUIRED;
    let no_request = Status::INVALID_DEVICE_REQUEST;
    let no_link = Status::NOT_A_REPARSE_POINT;
    let unknown = CtlCode(0x0009_0999);
    for (ctl_code, open, expected) in [
        (CtlCode::DFS_GET_REFERRALS, FileId::RELATED, no_driver),
        (CtlCode::DFS_GET_REFERRALS_EX, FileId::RELATED, no_driver),
        (CtlCode::DFS_GET_REFERRALS, file, Status::INVALID_PARAMETER),
        (
            CtlCode::QUERY_NETWORK_INTERFACE_INFO,
            FileId::RELATED,
            no_request,
        ),
        (unknown, file, no_request),
        (
            CtlCode::DUPLICATE_EXTENTS_TO_FILE,
            file,
            Status::INVALID_PARAMETER,
        ),
        (CtlCode::GET_REPARSE_POINT, file, no_link),
        (unknown, NO_OPEN, Status::FILE_CLOSED),
        (CtlCode::SET_SPARSE, NO_OPEN, Status::FILE_CLOSED),
    ] {
        let status = ask_ioctl(&mut client, &mut rig, ctl_code, open);
        assert_eq!(status, expected, "{ctl_code:?}");
    }
    client.enter(&mut rig, "IPC$");
    for ctl_code in [
        CtlCode::DFS_GET_REFERRALS,
        CtlCode::QUERY_NETWORK_INTERFACE_INFO,
    ] {
        let status = ask_ioctl(&mut client, &mut rig, ctl_code, FileId::RELATED);
        assert_eq!(status, no_driver);
    }
}

#[test]
fn watches() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let file = client.create(&mut rig, "a");
    for (file_id, expected) in [
        (file, Status::INVALID_PARAMETER),
        (NO_OPEN, Status::FILE_CLOSED),
    ] {
        let request = change_notify::Request {
            flags: change_notify::ChangeNotifyFlags::NONE,
            output_buffer_length: 4096,
            file_id,
            completion_filter: change_notify::CompletionFilter(1),
        };
        let bytes = bytes_of(|bytes| request.encode(bytes));
        let answer = client.ask_body(&mut rig, Command::CHANGE_NOTIFY, bytes);
        assert_eq!(answer.status(), expected);
    }
}

#[test]
fn acknowledgements() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let file = client.create(&mut rig, "a");
    for (file_id, expected) in [
        (file, Status::INVALID_OPLOCK_PROTOCOL),
        (NO_OPEN, Status::FILE_CLOSED),
    ] {
        let request = Break::Oplock(OplockBreak {
            oplock_level: OplockLevel::NONE,
            file_id,
        });
        let bytes = bytes_of(|bytes| request.encode(bytes));
        let answer = client.ask_body(&mut rig, Command::OPLOCK_BREAK, bytes);
        assert_eq!(answer.status(), expected);
    }
}
