//! Downloads: from a server to this machine.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, fstatfs};
use rustix::io::Errno;
use smbeam_client::{FileAttributes, OpenOptions, Wait as _, transfer};

use super::queued::Read;
use super::{Transfer, holes, part, transfer_failure};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{self, FileInfo, FilePath, Kind, RemotePath};
use crate::location::shown;

impl Transfer<'_> {
    pub(super) fn download(
        &self,
        source: &RemotePath,
        info: &FileInfo,
        target: &Path,
        old: Option<&FileInfo>,
        read: Option<Read>,
    ) -> Outcome {
        // Replace the target of a symbolic link, not the link.
        let resolved = match old {
            Some(_) => fs::canonicalize(target).map_err(failed(target))?,
            None => target.to_owned(),
        };
        let is_special = old.is_some_and(|old| old.kind == Kind::Other);
        if self.is_small(info.size) && !is_special {
            // A user without write permission for a file can still replace the file.
            let is_protected = |old: &FileInfo| old.attributes.contains(FileAttributes::READONLY);
            let by_part = self.policy.atomic || old.is_some_and(is_protected);
            return self.download_small(source, info, &resolved, by_part, read);
        }
        self.download_large(source, info, &resolved, is_special)
    }

    /// Downloads a file with one request, unless `read` already has its data.
    fn download_small(
        &self,
        source: &RemotePath,
        info: &FileInfo,
        target: &Path,
        by_part: bool,
        read: Option<Read>,
    ) -> Outcome {
        let read = read.unwrap_or_else(|| {
            let expected = info.size as u32;
            source.share.read_small(&source.path, expected).wait()
        });
        let Some(bytes) = read.map_err(source.failed())? else {
            // The file has grown since it was listed, so it does not fit in one request.
            let info = FilePath::Remote(source.clone()).info(true)?;
            return self.download_large(source, &info, target, false);
        };
        let whole = FilePath::Local(target.to_owned());
        let part = match by_part {
            true => self.part_of(&FilePath::Remote(source.clone()), info, &whole),
            false => whole.clone(),
        };
        let FilePath::Local(path) = &part else {
            return Ok(());
        };
        let mut file = File::create(path).map_err(failed(path))?;
        file.write_all(&bytes).map_err(|error| {
            // Do not leave an incomplete file under the final name.
            let _ = fs::remove_file(path);
            Failure::local(&shown(path), &error)
        })?;
        self.progress.add_bytes(bytes.len() as u64);
        drop(file);
        self.finish_local(path, info)?;
        if by_part && !self.policy.in_place {
            part.rename_over(&whole)?;
        }
        Ok(())
    }

    /// Downloads a file with several requests in flight.
    fn download_large(
        &self,
        source: &RemotePath,
        info: &FileInfo,
        target: &Path,
        is_special: bool,
    ) -> Outcome {
        let _permit = self.large.take();
        let from = FilePath::Remote(source.clone());
        let whole = FilePath::Local(target.to_owned());
        self.check(&from)?;
        let remote = source
            .share
            .open(&source.path, &OpenOptions::new().read(true))
            .wait()
            .map_err(source.failed())?;
        let part = match is_special {
            true => whole.clone(),
            false => self.part_of(&from, info, &whole),
        };
        let FilePath::Local(path) = &part else {
            return Ok(());
        };
        let local = Part::open(path, target, info, self.policy.resume, is_special)?;
        self.progress.skip_bytes(local.from);
        let ranges = part::remaining(&holes::remote_ranges(&remote, info), local.from);
        let fetched = self.fetch(&remote, source, ranges, &local).and_then(|()| {
            let after = remote.metadata().wait().map_err(source.failed());
            Self::check_state(&from, info, after.map(|after| file_path::info_of(&after)))
        });
        Self::moved(fetched, &part, &whole)?;
        if !is_special {
            local.finish(info.size)?;
            drop(local.file);
            self.finish_local(path, info)?;
        }
        if !is_special && !self.policy.in_place {
            keep_mode(target, path);
            part.rename_over(&whole)?;
        }
        Ok(())
    }

    /// Downloads ranges. Their pieces arrive in any order.
    fn fetch(
        &self,
        remote: &smbeam_client::File,
        source: &RemotePath,
        ranges: Vec<Range<u64>>,
        local: &Part,
    ) -> Outcome {
        let length = part::byte_count(&ranges);
        let fetched = transfer::download(
            remote,
            ranges,
            &mut |offset: u64, bytes: &[u8]| {
                self.check_io()?;
                match local.has_holes {
                    true => holes::write_data(&local.file, bytes, offset),
                    false => local.file.write_all_at(bytes, offset),
                }
            },
            &self.options(),
            &mut |bytes| self.progress.add_bytes(bytes),
        )
        .wait();
        match fetched {
            Ok(bytes) if bytes == length => Ok(()),
            Ok(_) => Err(Self::changed_meanwhile(&FilePath::Remote(source.clone()))),
            Err(error) => Err(transfer_failure(
                &error,
                &FilePath::Local(local.target.clone()),
                source,
            )),
        }
    }

    /// Sets times and READONLY at the end.
    fn finish_local(&self, path: &Path, info: &FileInfo) -> Outcome {
        if self.policy.preserve {
            FilePath::Local(path.to_owned()).set_info(info, true)?;
        }
        Ok(())
    }
}

/// An incomplete local file.
struct Part {
    file: File,
    /// The path of the complete file.
    target: PathBuf,
    /// All bytes before this offset are present.
    from: u64,
    /// Whether the rest of the file is a hole, so that zeros need not be written.
    has_holes: bool,
}

impl Part {
    fn open(
        path: &Path,
        target: &Path,
        info: &FileInfo,
        resume: bool,
        is_special: bool,
    ) -> Outcome<Self> {
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(!resume && !is_special)
            .open(path)
            .map_err(failed(target))?;
        let length = file.metadata().map_err(failed(target))?.len();
        let from = match resume && !is_special {
            true => part::resume_point(length, info.size),
            false => 0,
        };
        if !is_special {
            // After a crash, the last part of the file can have gaps.
            file.set_len(from).map_err(failed(target))?;
            if !reserve(&file, from, info) {
                if from == 0 {
                    let _ = fs::remove_file(path);
                }
                let reason = format!("No space left for {} bytes", info.size - from);
                return Err(Failure::new(Exit::Full, shown(target), reason));
            };
        }
        Ok(Self {
            file,
            target: target.to_owned(),
            from,
            has_holes: info.may_have_holes() && !is_special,
        })
    }

    /// Sets the length, because a hole at the end is not written.
    fn finish(&self, size: u64) -> Outcome {
        let failed = failed(&self.target);
        if self.file.metadata().map_err(&failed)?.len() != size {
            self.file.set_len(size).map_err(&failed)?;
        }
        Ok(())
    }
}

/// The type of tmpfs. statfs(2)
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Reserves space, so that a full disk fails at once and the file is not fragmented. Returns false
/// if the space is not sufficient. File systems without this function do not fail.
fn reserve(file: &File, from: u64, info: &FileInfo) -> bool {
    if info.may_have_holes() || info.size <= from {
        return true;
    }
    let wanted = info.size - from;
    match fstatfs(file) {
        // A tmpfs has no fragmentation, and allocation takes half as long as writing.
        Ok(system) if system.f_type == TMPFS_MAGIC => {
            let free = u128::from(system.f_bavail) * u128::from(system.f_bsize.unsigned_abs());
            // A tmpfs without a limit reports 0 blocks.
            system.f_blocks == 0 || free >= u128::from(wanted)
        }
        _ => fallocate(file, FallocateFlags::KEEP_SIZE, from, wanted) != Err(Errno::NOSPC),
    }
}

/// Gives the new file the permission bits of the file that it replaces.
fn keep_mode(old: &Path, new: &Path) {
    if let (Ok(old), Ok(now)) = (fs::metadata(old), fs::metadata(new)) {
        // READONLY of the source was already applied to the bits of the new file.
        let mode = old.mode() & 0o7777 & (now.mode() | !0o222);
        let _ = fs::set_permissions(new, Permissions::from_mode(mode));
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Failure + '_ {
    move |error| Failure::local(&shown(path), &error)
}
