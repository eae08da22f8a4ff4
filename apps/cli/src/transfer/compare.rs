//! Comparison of the contents of two files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use smbeam_client::{OpenOptions, Wait as _, transfer};

use super::remote_copy::read_piece;
use super::{Transfer, transfer_failure};
use crate::failure::{Failure, Outcome};
use crate::file_path::{FilePath, RemotePath};
use crate::location::shown;
use crate::mutex::lock;

/// Threads that compare two files on servers, unless `--depth` is given.
const WORKERS: u64 = 16;

impl Transfer<'_> {
    /// Whether both files have the same `size` bytes.
    pub(super) fn have_same_contents(
        &self,
        one: &FilePath,
        other: &FilePath,
        size: u64,
    ) -> Outcome<bool> {
        if size == 0 {
            return Ok(true);
        }
        let _permit = (!self.is_small(size)).then(|| self.large.take());
        match (one, other) {
            (FilePath::Remote(remote), FilePath::Local(local))
            | (FilePath::Local(local), FilePath::Remote(remote)) => {
                self.compare_with_local(remote, local, size)
            }
            (FilePath::Remote(one), FilePath::Remote(other)) => {
                self.compare_remote(one, other, size)
            }
            (FilePath::Local(_), FilePath::Local(_)) => Err(Failure::usage(
                other,
                "neither source nor target is on a server",
            )),
        }
    }

    fn compare_with_local(&self, remote: &RemotePath, local: &Path, size: u64) -> Outcome<bool> {
        let failed = |error: io::Error| Failure::local(&shown(local), &error);
        let here = File::open(local).map_err(failed)?;
        if self.is_small(size) {
            let there = remote.share.read_small(&remote.path, size as u32).wait();
            if let Some(there) = there.map_err(remote.failed())? {
                self.keep_pace(there.len() as u64);
                let mut own = vec![0; there.len()];
                return match here.read_exact_at(&mut own, 0) {
                    Ok(()) => Ok(own == there[..] && there.len() as u64 == size),
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
                    Err(error) => Err(failed(error)),
                };
            }
        }
        let file = open(remote)?;
        let mut buffer = Vec::new();
        let mut differs = false;
        let compared = transfer::download(
            &file,
            0..size,
            &mut |offset: u64, bytes: &[u8]| {
                buffer.resize(bytes.len(), 0);
                self.check_io()?;
                here.read_exact_at(&mut buffer, offset)?;
                if buffer == bytes {
                    return Ok(());
                }
                differs = true;
                // One difference is enough: the error ends the comparison.
                Err(io::Error::other("the contents differ"))
            },
            &self.options(),
            &mut |bytes| self.keep_pace(bytes),
        )
        .wait();
        match compared {
            Ok(bytes) => Ok(bytes == size),
            Err(_) if differs => Ok(false),
            Err(error) => Err(transfer_failure(
                &error,
                &FilePath::Local(local.into()),
                remote,
            )),
        }
    }

    fn compare_remote(&self, one: &RemotePath, other: &RemotePath, size: u64) -> Outcome<bool> {
        let files = (open(one)?, open(other)?);
        let io_size = self.policy.request_bytes();
        let next = AtomicU64::new(0);
        let (differs, broken) = (AtomicBool::new(false), Mutex::new(None));
        let compare = |start: u64| -> Outcome<bool> {
            self.check(&FilePath::Remote(one.clone()))?;
            let piece = start..size.min(start + io_size);
            let left = read_piece(&files.0, one, piece.clone())?;
            self.keep_pace(left.len() as u64);
            Ok(left[..] == read_piece(&files.1, other, piece)?[..])
        };
        let work = || {
            while !differs.load(Ordering::Relaxed) {
                let start = next.fetch_add(io_size, Ordering::Relaxed);
                if start >= size {
                    break;
                }
                match compare(start) {
                    Ok(true) => {}
                    Ok(false) => differs.store(true, Ordering::Relaxed),
                    Err(failure) => {
                        differs.store(true, Ordering::Relaxed);
                        lock(&broken).get_or_insert(failure);
                    }
                }
            }
        };
        let most = match self.policy.depth {
            0 => WORKERS,
            depth => depth as u64,
        };
        let workers = size.div_ceil(io_size).min(most);
        thread::scope(|scope| {
            for _ in 1..workers {
                // The comparison works with fewer threads, only slower.
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        match lock(&broken).take() {
            Some(failure) => Err(failure),
            None => Ok(!differs.into_inner()),
        }
    }
}

fn open(remote: &RemotePath) -> Outcome<smbeam_client::File> {
    remote
        .share
        .open(&remote.path, &OpenOptions::new().read(true))
        .wait()
        .map_err(remote.failed())
}
