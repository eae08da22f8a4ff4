use wire::FileId;
use wire::access::FileAttributes;
use wire::fsctl::CtlCode;
use wire::ioctl::IoctlFlags;

use super::*;
use crate::server::ioctl;
use crate::server::scripted::{ALL, World, body};

fn ask(world: &mut World, file_id: FileId, input: &[u8]) -> Result<usize, Status> {
    let request = Request {
        ctl_code: CtlCode::SET_SPARSE,
        file_id,
        max_input_response: 0,
        max_output_response: 0,
        flags: IoctlFlags::IS_FSCTL,
        input,
        output: &[],
    };
    let reply = world.run(ioctl::start, |out| request.encode(out))?;
    let body = body(&reply);
    let response = wire::ioctl::Response::decode(&body).expect("a response");
    Ok(response.output.len())
}

#[test]
fn a_file_becomes_sparse_and_that_no_longer() {
    let mut world = World::new();
    world.disk.add_file("a", FileAttributes::HIDDEN);
    let open = world.open("a", ALL);
    let sparse = FileAttributes::SPARSE_FILE | FileAttributes::HIDDEN;
    for (input, expected) in [
        (&[][..], sparse),
        (&[0], FileAttributes::HIDDEN),
        (&[0xFF, 0, 0], sparse),
        (&[1], sparse),
        (&[0, 1, 1], FileAttributes::HIDDEN),
    ] {
        assert_eq!(ask(&mut world, open, input), Ok(0));
        assert_eq!(world.disk.files["a"].attributes, expected, "{input:?}");
    }
}

#[test]
fn one_of_three_rights_is_enough() {
    let mut world = World::new();
    world.disk.add_file("a", FileAttributes::NONE);
    for (right, expected) in [
        (AccessMask::FILE_WRITE_DATA, Ok(0)),
        (AccessMask::FILE_APPEND_DATA, Ok(0)),
        (AccessMask::FILE_WRITE_ATTRIBUTES, Ok(0)),
        (AccessMask::FILE_WRITE_EA, Err(Status::ACCESS_DENIED)),
        (AccessMask::FILE_READ_DATA, Err(Status::ACCESS_DENIED)),
    ] {
        let open = world.open("a", right);
        assert_eq!(ask(&mut world, open, &[]), expected, "{right:?}");
    }
}

#[test]
fn a_directory_is_never_sparse() {
    let mut world = World::new();
    world.disk.add_directory("d");
    let open = world.open("d", ALL);
    assert_eq!(ask(&mut world, open, &[]), Err(Status::INVALID_PARAMETER));
}
