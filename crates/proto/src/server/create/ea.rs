//! The extended attributes of a new or overwritten file: the create context ExtA. \[MS-SMB2\]
//! 2.2.13.2.1, 3.3.5.9
//!
//! An open of an existing file ignores them. A file that is overwritten keeps its other attributes,
//! as with Samba: on Windows it loses them, but here local programs own some.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wire::Status;
use wire::access::{CreateOptions, FileAttributes};
use wire::create_context::{RawContext, find, name};

use super::wanted::Wanted;
use super::{Entered, Step, admit, enter, finish};
use crate::ea::Ea;
use crate::effect::Outcome;
use crate::file::{FileOp, Opened, Operation};
use crate::server::context::{Context, Progress};
use crate::server::ea::decode_changes;

/// The attributes in the contexts of a request. A client that claims to know nothing about extended
/// attributes must not send any; Windows says so by ACCESS_DENIED.
pub(super) fn requested(
    contexts: &[RawContext<'_>],
    options: CreateOptions,
) -> Result<Vec<Ea>, Status> {
    let data = find(contexts, name::EXTENDED_ATTRIBUTES);
    let Some(data) = data.filter(|data| !data.is_empty()) else {
        return Ok(Vec::new());
    };
    if options.contains(CreateOptions::NO_EA_KNOWLEDGE) {
        return Err(Status::ACCESS_DENIED);
    }
    decode_changes(data)
}

/// Sets the attributes of a new file before other clients can find its open, and continues.
pub(super) fn of_new(
    context: &mut Context<'_>,
    mut wanted: Wanted,
    mut opened: Opened,
) -> Result<Progress<Step>, Status> {
    clear_compression(context, &wanted, &mut opened);
    if wanted.eas.is_empty() || !opened.created {
        return enter(context, wanted, opened);
    }
    let eas = core::mem::take(&mut wanted.eas);
    let operation = FileOp::OnOpen(opened.file, Operation::SetEas { eas });
    let step = Step::SettingEas(Box::new((wanted, opened)));
    Ok(context.wait(operation, step))
}

/// A new file inherits the compression of its directory, unless the client asks for none.
/// smbtorture smb2.ioctl.compress_inherit_disable
fn clear_compression(context: &mut Context<'_>, wanted: &Wanted, opened: &mut Opened) {
    let attributes = &mut opened.metadata.attributes;
    let is_unwanted = wanted.options.contains(CreateOptions::NO_COMPRESSION);
    if opened.created && is_unwanted && attributes.contains(FileAttributes::COMPRESSED) {
        *attributes = attributes.without(FileAttributes::COMPRESSED);
        let is_compressed = false;
        let operation = Operation::SetCompression { is_compressed };
        context.run(FileOp::OnOpen(opened.file, operation));
    }
}

/// Continues after the attributes of a new file are set. A file that cannot have them is deleted.
pub(super) fn resume_new(
    context: &mut Context<'_>,
    (wanted, mut opened): (Wanted, Opened),
    outcome: Outcome,
) -> Result<Progress<Step>, Status> {
    match outcome.expect_file() {
        Ok(outcome) => {
            opened.metadata = outcome.expect_metadata();
            enter(context, wanted, opened)
        }
        Err(status) => {
            admit::discard(context, &wanted, &opened);
            Err(status)
        }
    }
}

/// Sets the attributes of an overwritten file, and completes the open.
pub(super) fn of_overwritten(
    context: &mut Context<'_>,
    mut entered: Entered,
) -> Result<Progress<Step>, Status> {
    if entered.wanted.eas.is_empty() {
        return finish(context, &entered);
    }
    let eas = core::mem::take(&mut entered.wanted.eas);
    let operation = FileOp::OnOpen(entered.opened.file, Operation::SetEas { eas });
    let step = Step::Overwriting(Box::new(entered));
    Ok(context.wait(operation, step))
}

#[cfg(test)]
mod tests {
    use wire::access::CreateDisposition;
    use wire::create::{CreateAction, Request};
    use wire::fscc::{EaFlags, EaWriter, FullEa};
    use wire::text::utf16;

    use super::*;
    use crate::server::scripted::{World, request};

    /// Creates a file with one attribute, and returns how.
    fn create(
        world: &mut World,
        name: &str,
        disposition: CreateDisposition,
        options: CreateOptions,
    ) -> Result<CreateAction, Status> {
        let mut writer = EaWriter::new(4096);
        let (flags, name_of_ea, value) = (EaFlags::NONE, &b"One"[..], &b"1"[..]);
        assert!(writer.push(&FullEa {
            flags,
            name: name_of_ea,
            value,
        }));
        let list = writer.finish();
        let name = utf16(name);
        let request = Request {
            create_disposition: disposition,
            create_options: options,
            contexts: Vec::from([RawContext {
                name: name::EXTENDED_ATTRIBUTES,
                data: &list,
            }]),
            ..request(&name)
        };
        world.create(&request).map(|created| created.action)
    }

    const NONE: CreateOptions = CreateOptions::NONE;

    #[test]
    fn new_and_overwritten_files_get_the_attributes_and_opened_ones_do_not() {
        let mut world = World::new();
        let made = create(&mut world, "new", CreateDisposition::OPEN_IF, NONE);
        assert_eq!(made, Ok(CreateAction::CREATED));
        assert_eq!(world.disk.eas.len(), 1);
        world.disk.eas.clear();
        let opened = create(&mut world, "new", CreateDisposition::OPEN_IF, NONE);
        assert_eq!(opened, Ok(CreateAction::OPENED));
        assert_eq!(world.disk.eas, []);
        world.disk.add_file("old", FileAttributes::NONE);
        let overwritten = create(&mut world, "old", CreateDisposition::OVERWRITE, NONE);
        assert_eq!(overwritten, Ok(CreateAction::OVERWRITTEN));
        assert_eq!(world.disk.eas.len(), 1);
    }

    #[test]
    fn a_file_that_cannot_have_them_is_not_created() {
        let mut world = World::new();
        world.disk.fail_eas = Some(Status::EA_TOO_LARGE);
        let refused = create(&mut world, "new", CreateDisposition::CREATE, NONE);
        assert_eq!(refused, Err(Status::EA_TOO_LARGE));
        assert!(!world.disk.has("new"));
        assert_eq!(world.disk.open_count(), 0);
        world.disk.add_file("old", FileAttributes::NONE);
        let refused = create(&mut world, "old", CreateDisposition::OVERWRITE, NONE);
        assert_eq!(refused, Err(Status::EA_TOO_LARGE));
        assert!(world.disk.has("old"));
        assert_eq!(world.disk.open_count(), 0);
    }

    #[test]
    fn a_client_without_knowledge_of_them_sets_none() {
        let mut world = World::new();
        let options = CreateOptions::NO_EA_KNOWLEDGE;
        let refused = create(&mut world, "new", CreateDisposition::CREATE, options);
        assert_eq!(refused, Err(Status::ACCESS_DENIED));
    }
}
