//! The number of named streams of a file is limited by the list of their names.

use proto::file::{Existing, FileOp, KindWanted, OpenPlan, Operation};
use proto::path::{SharePath, StreamName};
use vfs::posix::Options;
use wire::Status;
use wire::access::FileAttributes;

use crate::share::LocalDirectory;

/// The bug: the server created streams until the kernel could not list their names any more (64
/// KiB). The damage: no client listed or overwrote the file from then on. The cause: XFS and tmpfs
/// store more attributes than the kernel lists.
#[test]
fn all_streams_of_a_file_can_be_listed() {
    let options = Options::default();
    for local in [
        Some(LocalDirectory::new(options)),
        LocalDirectory::tmpfs(options),
    ] {
        let Some(local) = local else { continue };
        let share = &local.share;
        let file = share.file("f", b"");
        let create = |index: usize| -> Result<(), Status> {
            let name = format!("{index:0200}");
            let path = SharePath::from_trusted("f").with_stream(StreamName::new(&name));
            let plan = share.plan("", Existing::Create, KindWanted::Any);
            let opened = share.open_plan(OpenPlan { path, ..plan })?;
            share.close(opened.file);
            Ok(())
        };
        let mut count = 0;
        let refusal = loop {
            match create(count) {
                Ok(()) => count += 1,
                Err(status) => break status,
            }
            assert!(count < 1000, "the file system has no limit");
        };
        if refusal == Status::OBJECT_NAME_INVALID {
            println!("skipped: no extended attributes here");
            continue;
        }
        assert_eq!(refusal, Status::DISK_FULL);
        let streams = || {
            let listed = share.execute(&FileOp::OnOpen(file, Operation::ListStreams));
            listed.expect("a list").expect_streams().len() - 1
        };
        assert_eq!(streams(), count);
        let overwrite = Operation::Overwrite {
            attributes: FileAttributes::NONE,
            allocation: 0,
        };
        share
            .metadata(&FileOp::OnOpen(file, overwrite))
            .expect("an overwrite");
        assert_eq!(streams(), 0);
    }
}
