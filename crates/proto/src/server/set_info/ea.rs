//! Extended attributes. \[MS-FSA\] 2.1.5.15.5

use alloc::sync::Arc;

use wire::Status;
use wire::change_notify::CompletionFilter;

use super::{done, wait};
use crate::file::{FileOp, Operation, StreamId};
use crate::server::context::{Context, Progress};
use crate::server::ea;
use crate::server::open::Open;

/// The state of a request that waits for the change of extended attributes.
pub(crate) struct Step {
    open: Arc<Open>,
}

pub(super) fn start(
    context: &mut Context<'_>,
    open: Arc<Open>,
    buffer: &[u8],
) -> Result<Progress<super::Step>, Status> {
    // As with Samba: a stream has no attributes of its own.
    if open.key.stream != StreamId::DATA {
        return Err(Status::INVALID_PARAMETER);
    }
    let eas = ea::decode_changes(buffer)?;
    let operation = FileOp::OnOpen(open.file, Operation::SetEas { eas });
    Ok(wait(context, operation, super::Step::Ea(Step { open })))
}

impl Step {
    pub(super) fn resume(self, context: &mut Context<'_>) -> Progress<super::Step> {
        context.report_change(&self.open, CompletionFilter::EA);
        done()
    }
}

#[cfg(test)]
mod tests {
    use wire::FileId;
    use wire::access::{AccessMask, FileAttributes};
    use wire::fscc::{EaFlags, EaWriter, FileInfoClass, FullEa, InfoType};
    use wire::set_info::Request;

    use super::*;
    use crate::ea::Ea;
    use crate::server::scripted::{ALL, World};

    fn set(world: &mut World, id: FileId, buffer: &[u8]) -> Result<Status, Status> {
        let request = Request {
            info_type: InfoType::FILE,
            file_info_class: FileInfoClass::FULL_EA.0,
            additional_information: 0,
            file_id: id,
            buffer,
        };
        let reply = world.run(crate::server::set_info::start, |out| request.encode(out));
        reply.map(|reply| reply.status)
    }

    #[test]
    fn attributes_are_set_with_the_right_to_do_so() {
        let mut world = World::new();
        world.disk.add_file("a", FileAttributes::NONE);
        let mut writer = EaWriter::new(4096);
        assert!(writer.push(&FullEa {
            flags: EaFlags::NONE,
            name: b"One",
            value: b"1",
        }));
        let list = writer.finish();
        let id = world.open("a", ALL);
        assert_eq!(set(&mut world, id, &list), Ok(Status::SUCCESS));
        let expected = Ea {
            name: b"One".to_vec(),
            value: b"1".to_vec(),
        };
        assert_eq!(world.disk.eas, [expected]);
        let inconsistent = Err(Status::EA_LIST_INCONSISTENT);
        assert_eq!(set(&mut world, id, &list[..9]), inconsistent);
        assert_eq!(set(&mut world, id, &[]), inconsistent);
        let id = world.open("a", ALL.without(AccessMask::FILE_WRITE_EA));
        assert_eq!(set(&mut world, id, &list), Err(Status::ACCESS_DENIED));
    }
}
