//! A CREATE with a path that leads through a reparse point or to one. \[MS-SMB2\] 3.3.5.9,
//! \[MS-FSA\] 2.1.5.1
//!
//! The server follows no reparse point: its client does. For a symbolic link the response has the
//! target and the length of the path after the link.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wire::Status;
use wire::dialect::Dialect;
use wire::error_response::{self, ErrorContext, ErrorId, SymlinkError, SymlinkFlags};
use wire::reparse::{ReparsePoint, ReparseTag, Symlink};

use super::Step;
use super::wanted::Wanted;
use crate::effect::Outcome;
use crate::file::FileOp;
use crate::server::context::{Context, Progress, Reply};

/// A request that has stopped on a reparse point.
pub(crate) struct Stop {
    wanted: Wanted,
}

/// The path leads through a reparse point or to one: finds out which.
pub(super) fn find(context: &mut Context<'_>, wanted: Wanted) -> Progress<Step> {
    let find = FileOp::FindLink {
        share: context.tree.share.id,
        token: context.token(),
        path: wanted.path.clone(),
    };
    context.wait(find, Step::Stopped(Box::new(Stop { wanted })))
}

impl Stop {
    /// The response: the target of a symbolic link of Windows. Only the client can interpret other
    /// reparse points.
    pub(super) fn answer(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Reply, Status> {
        let found = outcome.expect_file()?.expect_link();
        // Another client removed the link in the meantime.
        let found = found.ok_or(Status::OBJECT_PATH_NOT_FOUND)?;
        let reparse = ReparsePoint::decode(&found.data);
        let reparse = reparse.map_err(|_| Status::IO_REPARSE_DATA_INVALID)?;
        if reparse.tag != ReparseTag::SYMLINK {
            return Err(Status::IO_REPARSE_TAG_NOT_HANDLED);
        }
        let link = Symlink::decode(reparse.data).map_err(|_| Status::IO_REPARSE_DATA_INVALID)?;
        let error = SymlinkError {
            unparsed_path_length: unparsed(&self.wanted, found.depth),
            flags: match link.is_relative {
                true => SymlinkFlags::RELATIVE,
                false => SymlinkFlags::NONE,
            },
            substitute_name: link.substitute_name,
            print_name: link.print_name,
        };
        Ok(reply(context.dialect, &error.encode()))
    }
}

/// The length in bytes of the path after the link, with the separator in front.
fn unparsed(wanted: &Wanted, depth: usize) -> u16 {
    let units = |name: &str| name.encode_utf16().count() + 1;
    let mut units: usize = wanted.path.components().skip(depth).map(units).sum();
    if let Some(stream) = wanted.path.stream() {
        units += stream.as_str().encode_utf16().count() + 1;
    }
    u16::try_from(units * 2).unwrap_or(u16::MAX)
}

fn reply(dialect: Dialect, data: &[u8]) -> Reply {
    let contexts: Vec<u8> = error_response::encode_contexts(&[ErrorContext {
        error_id: ErrorId::DEFAULT,
        data,
    }]);
    let in_context = dialect == Dialect::SMB_3_1_1;
    let response = error_response::Response {
        context_count: u8::from(in_context),
        error_data: if in_context { &contexts } else { data },
    };
    Reply::with_status(Status::STOPPED_ON_SYMLINK, |out| response.encode(out))
}
