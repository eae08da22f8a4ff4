//! Open and creation of named streams.

use proto::file::{Existing, KindWanted, OpenPlan, Opened};
use proto::path::StreamName;
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use wire::Status;

use super::base::Base;
use super::opens::OpenStream;
use super::{Found, failed, find, of_stream, xattr};
use crate::errno::{Context, status};
use crate::posix::Posix;
use crate::posix::directory::Run;
use crate::posix::open::Prepared;
use crate::rights::WRITE_DATA;
use crate::{Effort, Step};
use proto::file::FileKind;

impl Posix {
    /// Opens or creates a named stream: opens the file first, or creates it, and adds the stream to
    /// that open.
    pub(in crate::posix) fn open_stream(
        &self,
        plan: &OpenPlan,
        stream: &StreamName,
        run: Run<'_>,
    ) -> Step<Opened> {
        let of_file = OpenPlan {
            path: plan.path.with_stream(None),
            existing: match plan.existing {
                Existing::Open => Existing::Open,
                Existing::OpenOrCreate | Existing::Create => Existing::OpenOrCreate,
            },
            kind: KindWanted::Any,
            allocation: 0,
            ..plan.clone()
        };
        let mut prepared = self.open_file(&of_file, run)?;
        match self.add_stream(plan, stream, &mut prepared, run) {
            Ok(()) => Ok(self.insert(prepared)),
            Err(stop) => {
                self.release(prepared.file);
                Err(stop)
            }
        }
    }

    /// Finds or creates the stream of a file that is open.
    fn add_stream(
        &self,
        plan: &OpenPlan,
        name: &StreamName,
        prepared: &mut Prepared,
        run: Run<'_>,
    ) -> Step<()> {
        let Prepared { file, opened } = prepared;
        let can_have_streams = matches!(file.kind, FileKind::File | FileKind::Directory);
        if !can_have_streams || !file.volume.stores_attributes {
            return Err(Status::OBJECT_NAME_INVALID.into());
        }
        let base = self.base(file, run.effort);
        let found = find(base, name)?;
        let (found, created) = match (found, plan.existing) {
            (Some(_), Existing::Create) => return Err(Status::OBJECT_NAME_COLLISION.into()),
            (Some(found), _) => (found, false),
            (None, Existing::Open) => return Err(Status::OBJECT_NAME_NOT_FOUND.into()),
            // The kernel checks the permissions of the service account only.
            (None, _) if self.has_service_account() && !opened.maximal.intersects(WRITE_DATA) => {
                return Err(Status::ACCESS_DENIED.into());
            }
            (None, _) => create(base, name)?,
        };
        let stream = self.streams.share(file.key, found.name);
        // The repetition of an attempt would not create the stream.
        let effort = match created {
            true => Effort::Blocking,
            false => run.effort,
        };
        self.attach(self.base(file, effort), &stream)?;
        of_stream(&stream, found.size, &mut opened.metadata);
        opened.path = opened.path.with_stream(Some(stream.name()));
        opened.created = created;
        file.kind = FileKind::File;
        file.stream = Some(stream);
        Ok(())
    }

    /// Opens the blob of a large stream, and removes what a crash has left beside it.
    fn attach(&self, base: Base<'_>, stream: &OpenStream) -> Step<()> {
        let blob = stream.attach(base);
        let blob = blob.map_err(|errno| failed(errno, Context::Open))?;
        let may_keep = blob.map_or(Ok(()), |blob| self.descriptor_reserve.check(&*blob.fd));
        Ok(may_keep.map_err(|errno| status(errno, Context::Open))?)
    }
}

/// Creates a stream without data. Returns whether it is new: another process may have been faster.
fn create(base: Base<'_>, name: &StreamName) -> Step<(Found, bool)> {
    let found = Found {
        name: name.clone(),
        size: 0,
    };
    match xattr::write(base.file, name, Vec::new(), XattrFlags::CREATE) {
        Ok(()) => Ok((found, true)),
        Err(Errno::EXIST) => Ok((found, false)),
        Err(errno) => Err(status(errno, Context::Open).into()),
    }
}
