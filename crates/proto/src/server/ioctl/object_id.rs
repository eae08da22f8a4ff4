//! The object id of a file. \[MS-SMB2\] 3.3.5.15, \[MS-FSA\] 2.1.5.10
//!
//! No id is kept with a file: as with Samba, volume and inode serve as one, which is valid as long
//! as the file is there, and the file counts as made where it is.

use wire::fsctl::ObjectIdBuffer;
use wire::ioctl::Request;
use wire::{Guid, Status};

use super::request::reply;
use crate::file::FileKey;
use crate::server::context::{Context, Reply};
use crate::server::query_info::volume_id;

/// Answers at once: the open knows which file it is.
pub(super) fn start(context: &mut Context<'_>, request: &Request<'_>) -> Result<Reply, Status> {
    let open = context.open(request.file_id)?;
    if request.max_output_response < ObjectIdBuffer::LEN {
        return Err(Status::INVALID_PARAMETER);
    }
    let id = object_id(open.key);
    let answer = ObjectIdBuffer {
        object_id: id,
        birth_volume_id: volume_id(context),
        birth_object_id: id,
        domain_id: Guid([0; 16]),
    };
    Ok(reply(request, &answer.encode()))
}

fn object_id(FileKey { volume, file, .. }: FileKey) -> Guid {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&volume.to_le_bytes());
    id[8..].copy_from_slice(&file.to_le_bytes());
    Guid(id)
}

#[cfg(test)]
mod tests {
    use wire::FileId;
    use wire::access::FileAttributes;
    use wire::fsctl::CtlCode;
    use wire::ioctl::{IoctlFlags, Response};

    use super::*;
    use crate::server::ioctl;
    use crate::server::scripted::{ALL, World, body};

    fn ask(world: &mut World, id: FileId, length: u32) -> Result<ObjectIdBuffer, Status> {
        let request = Request {
            ctl_code: CtlCode::CREATE_OR_GET_OBJECT_ID,
            file_id: id,
            max_input_response: 0,
            max_output_response: length,
            flags: IoctlFlags::IS_FSCTL,
            input: &[],
            output: &[],
        };
        let reply = world.run(ioctl::start, |out| request.encode(out))?;
        let body = body(&reply);
        let output = Response::decode(&body).expect("a response").output;
        Ok(ObjectIdBuffer::decode(output).expect("four ids"))
    }

    #[test]
    fn all_opens_of_a_file_report_one_id_and_no_two_files_share_it() {
        let mut world = World::new();
        let mut ids = ["a", "b"].map(|name| {
            world.disk.add_file(name, FileAttributes::NONE);
            let opens = [world.open(name, ALL), world.open(name, ALL)];
            let [first, second] = opens.map(|open| ask(&mut world, open, 64));
            assert_eq!(first, second);
            first.expect("an id").object_id
        });
        ids.sort_by_key(|id| id.0);
        assert_ne!(ids[0], ids[1]);
    }

    #[test]
    fn an_id_that_does_not_fit_is_not_returned() {
        let mut world = World::new();
        world.disk.add_file("a", FileAttributes::NONE);
        let open = world.open("a", ALL);
        let answer = ask(&mut world, open, 63);
        assert_eq!(answer, Err(Status::INVALID_PARAMETER));
    }
}
