//! Downloads: from a server to this machine.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use smbeam_client::{OpenOptions, Wait as _, transfer};

use super::queued::Read;
use super::{Transfer, holes, local_part, part, transfer_failure};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{self, FileInfo, FilePath, Kind, LocalPath, RemotePath};
use crate::location::shown;

impl Transfer<'_> {
    pub(super) fn download(
        &self,
        source: &RemotePath,
        info: &FileInfo,
        target: &LocalPath,
        old: Option<&FileInfo>,
        read: Option<Read>,
    ) -> Outcome {
        // Replace the target of a symbolic link, not the link.
        let resolved = match old {
            Some(_) => target.with_path(fs::canonicalize(target).map_err(failed(target))?),
            None => target.clone(),
        };
        let is_special = old.is_some_and(|old| old.kind == Kind::Other);
        if self.is_small(info.size) && !is_special {
            return self.download_small(source, info, &resolved, old, read);
        }
        self.download_large(source, info, &resolved, is_special)
    }

    /// Downloads a file with one request, unless `read` already has its data.
    fn download_small(
        &self,
        source: &RemotePath,
        info: &FileInfo,
        target: &LocalPath,
        old: Option<&FileInfo>,
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
        if self.policy.in_place {
            let written = match old {
                Some(_) => local_part::overwrite(target, &bytes),
                None => File::create(target).and_then(|mut file| file.write_all(&bytes)),
            };
            written.map_err(failed(target))?;
            self.finish_local(target, info)?;
        } else if self.policy.atomic || old.is_some() {
            self.replace_small(source, info, target, &bytes)?;
        } else {
            match local_part::create_new(target) {
                Ok(file) => self.fill_new(file, target, info, &bytes)?,
                // It was created in the meantime, or is a link that leads nowhere.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.replace_small(source, info, target, &bytes)?;
                }
                Err(error) => return Err(failed(target)(error)),
            }
        }
        self.add_bytes(bytes.len() as u64);
        Ok(())
    }

    /// Writes a new file, and removes it if that fails.
    fn fill_new(&self, mut file: File, path: &Path, info: &FileInfo, bytes: &[u8]) -> Outcome {
        let written = file.write_all(bytes).map_err(failed(path));
        drop(file);
        let finished = written.and_then(|()| self.finish_local(path, info));
        if finished.is_err() {
            let _ = fs::remove_file(path);
        }
        finished
    }

    /// Writes a file under a temporary name and renames it, so that a full disk leaves the old file
    /// as it is. If the user may not create files in the directory, the old file is overwritten.
    fn replace_small(
        &self,
        source: &RemotePath,
        info: &FileInfo,
        target: &LocalPath,
        bytes: &[u8],
    ) -> Outcome {
        let whole = FilePath::Local(target.clone());
        let part = self.part_of(&FilePath::Remote(source.clone()), info, &whole);
        let FilePath::Local(path) = &part else {
            return Ok(());
        };
        match local_part::create_anew(path) {
            Ok(file) => self
                .fill_new(file, path, info, bytes)
                .map_err(|failure| Failure {
                    subject: shown(target),
                    ..failure
                })?,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.may_overwrite(&whole, &failed(target)(error))?;
                local_part::overwrite(target, bytes).map_err(failed(target))?;
                return self.finish_local(target, info);
            }
            Err(error) => return Err(failed(target)(error)),
        }
        keep_mode(target, path);
        let renamed = self.put_in_place(&part, &whole);
        if renamed.is_err() {
            let _ = fs::remove_file(path);
        }
        renamed
    }

    /// Downloads a file with several requests in flight.
    fn download_large(
        &self,
        source: &RemotePath,
        info: &FileInfo,
        target: &LocalPath,
        is_special: bool,
    ) -> Outcome {
        let _permit = self.large.take();
        let from = FilePath::Remote(source.clone());
        let whole = FilePath::Local(target.clone());
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
        let opening = match (is_special, self.policy.in_place) {
            (true, _) => Opening::AsItIs,
            (false, true) => Opening::InPlace,
            (false, false) if self.policy.resume => Opening::Continue,
            (false, false) => Opening::Anew,
        };
        let local = self.moved(Part::open(path, target, info, opening), &part, &whole)?;
        self.progress.skip_bytes(local.from);
        let ranges = part::remaining(&holes::remote_ranges(&remote, info), local.from);
        let fetched = self.fetch(&remote, source, ranges, &local).and_then(|()| {
            let after = remote.metadata().wait().map_err(source.failed());
            Self::check_state(&from, info, after.map(|after| file_path::info_of(&after)))
        });
        let fetched = fetched.and_then(|()| match is_special {
            true => Ok(()),
            false => local.finish(info.size),
        });
        self.moved(fetched, &part, &whole)?;
        if !is_special {
            drop(local.file);
            self.finish_local(path, info)?;
        }
        if !is_special && !self.policy.in_place {
            keep_mode(target, path);
            self.put_in_place(&part, &whole)?;
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
            &mut |bytes| self.add_bytes(bytes),
        )
        .wait();
        match fetched {
            Ok(bytes) if bytes == length => Ok(()),
            Ok(_) => Err(Self::changed_meanwhile(&FilePath::Remote(source.clone()))),
            Err(error) => Err(transfer_failure(
                &error,
                &FilePath::Local(local.target.as_path().into()),
                source,
            )),
        }
    }

    /// Sets times and READONLY at the end.
    fn finish_local(&self, path: &Path, info: &FileInfo) -> Outcome {
        if self.policy.preserve {
            FilePath::Local(path.into()).set_info(info, true)?;
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

/// How to open the local file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opening {
    /// Create an incomplete file.
    Anew,
    /// Continue the incomplete file of an earlier transfer, if it exists.
    Continue,
    /// Replace the content of the target.
    InPlace,
    /// Write to a device or pipe.
    AsItIs,
}

impl Part {
    fn open(path: &Path, target: &Path, info: &FileInfo, opening: Opening) -> Outcome<Self> {
        let is_special = opening == Opening::AsItIs;
        let opened = match opening {
            Opening::Anew => local_part::create_anew(path),
            Opening::Continue => local_part::open_or_create(path),
            Opening::InPlace | Opening::AsItIs => File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path),
        };
        let file = opened.map_err(failed(target))?;
        let length = file.metadata().map_err(failed(target))?.len();
        let from = match opening {
            Opening::Continue => part::resume_point(length, info.size),
            _ => 0,
        };
        if !is_special {
            if !info.may_have_holes() && !local_part::reserve(&file, from, info.size) {
                if opening == Opening::InPlace && length == 0 {
                    let _ = fs::remove_file(path);
                }
                let reason = format!("No space left for {} bytes", info.size - from);
                return Err(Failure::new(Exit::Full, shown(target), reason));
            };
            // After a crash, the last part of the file can have gaps.
            file.set_len(from).map_err(failed(target))?;
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
