//! Copies: on the server if it supports that, else through this machine.

use wire::Status;
use wire::fsctl::{Chunk, CopyChunkRequest, CopyChunkResponse, CtlCode, ResumeKeyResponse};

use crate::error::{Cause, Error, unexpected};
use crate::file::File;
use crate::file::io::{count, written};
use crate::io::window::Window;
use crate::open_options::OpenOptions;
use crate::share::Share;
use crate::transfer::options::{Ranges, TransferOptions};
use crate::transfer::pieces::{Piece, Pieces, first};
use crate::transfer::plan::{self, Plan, READS};

/// Length of the response with a resume key in bytes.
const RESUME_KEY_LEN: u32 = 32;
/// Length of the response to a copy in bytes.
const COPY_LEN: u32 = 12;

/// Limits of one copy request. \[MS-SMB2\] 3.3.3: the defaults of Windows. A server with lower
/// limits returns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    chunks: u32,
    chunk_bytes: u32,
    total_bytes: u32,
}

const WINDOWS: Limits = Limits {
    chunks: 16,
    chunk_bytes: 1 << 20,
    total_bytes: 16 << 20,
};

impl Share {
    /// Copies the file `from` to the path `to` of `to_share`, which may be this share or another
    /// one. The server copies by itself if it supports that; otherwise the bytes pass through this
    /// machine. An existing file is replaced. `progress` receives the count of bytes of each copied
    /// piece. Returns the count of copied bytes.
    ///
    /// # Errors
    /// The source cannot be opened for reading or the target for writing, or a read or a write
    /// fails.
    pub async fn copy(
        &self,
        from: &str,
        to_share: &Self,
        to: &str,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<u64, Error> {
        let read = OpenOptions::new().read(true).directory(false);
        let source = self.open(from, &read).await?;
        let write = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .directory(false);
        let target = to_share.open(to, &write).await?;
        let len = source.len().await?;
        let copied = copy_range(&source, &target, (0, 0, len), progress).await?;
        target.close().await?;
        source.close().await?;
        Ok(copied)
    }
}

/// Copies `ranges` of the file `source`, in ascending order, to the file `target`: the client reads
/// and writes all bytes, and the files may be on different servers. The offset in `target` is the
/// offset in `source` plus `by` (bytes, may be negative). Returns the count of copied bytes.
/// `progress` receives the count of bytes of each written piece.
///
/// # Errors
/// A read of the source or a write to the target fails.
pub async fn relay(
    source: &File,
    target: &File,
    (ranges, by): (impl Into<Ranges>, i64),
    options: &TransferOptions,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<u64, Error> {
    let ranges = ranges.into();
    let total = ranges.total();
    let limits =
        plan::Limits::of_reading(source, total).and(plan::Limits::of_writing(target, total));
    let plan = Plan::of(options, [source, target], (limits, &READS));
    let depth = plan.depth;
    let mut pieces = Pieces::of(ranges, plan, options.span);
    let mut reads: Window<Piece> = Window::default();
    let mut writes: Window<Piece> = Window::default();
    let mut total = 0;
    loop {
        while reads.len() < depth
            && let Some(piece) = pieces.next(first([&reads, &writes]))
        {
            reads.push(piece, source.start_read_wanted(piece.len, piece.offset));
        }
        if let Some((piece, done)) = reads.next().await {
            let (reply, memory) = done.only();
            let count = count(reply).map_err(|cause| source.failed("read", cause))?;
            pieces.read(piece, count);
            if count > 0 {
                let piece = Piece {
                    len: count,
                    ..piece
                };
                let offset = piece.offset.wrapping_add_signed(by);
                let bytes = memory.filled(count).into();
                writes.push(piece, target.start_write(bytes, offset));
            }
        } else if writes.len() == 0 {
            return Ok(total);
        }
        // At most as many pieces are written as are read, so the memory stays limited.
        let most = match reads.len() {
            0 => depth.min(writes.len().saturating_sub(1)),
            _ => depth,
        };
        while writes.len() > most
            && let Some((Piece { len, .. }, done)) = writes.next().await
        {
            written(done.only().0, len).map_err(|cause| target.failed("write", cause))?;
            total += len as u64;
            progress(len as u64);
        }
    }
}

/// Copies `len` bytes from offset `from` of `source` to offset `to` of `target`. The server copies
/// by itself if it supports that; otherwise the bytes pass through this machine as in [`relay`].
/// `progress` receives the count of bytes of each copied piece. Returns the count of copied bytes.
///
/// # Errors
/// The server refuses the copy for another reason than missing support, or a read or write fails.
pub async fn copy_range(
    source: &File,
    target: &File,
    (from, to, len): (u64, u64, u64),
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<u64, Error> {
    let mut done = 0;
    match on_server(source, target, (from, to, len), &mut done, progress).await {
        Ok(()) => Ok(done),
        // The copied bytes stay; the rest is copied through this machine.
        Err(cause) if cause.status().is_some_and(is_unable) => {
            let rest = from + done..from.saturating_add(len);
            let by = to.wrapping_sub(from).cast_signed();
            let options = TransferOptions::default();
            Ok(done + relay(source, target, (rest, by), &options, progress).await?)
        }
        Err(cause) => Err(target.failed("copy to", cause)),
    }
}

impl File {
    /// Copies `len` bytes from offset `from` (bytes) of this file to offset `to` (bytes) of
    /// `target`. The server copies by itself if it supports that; otherwise the bytes pass through
    /// this machine. Returns the count of copied bytes, which may be below `len` if this file ends
    /// before.
    ///
    /// # Errors
    /// The server refuses the copy for another reason than missing support, or a read or write
    /// fails. A part of the bytes may be copied then.
    pub async fn copy_range_to(
        &self,
        target: &Self,
        from: u64,
        to: u64,
        len: u64,
    ) -> Result<u64, Error> {
        copy_range(self, target, (from, to, len), &mut |_| {}).await
    }
}

/// Whether the status means that the server cannot copy at all, or not between these files.
fn is_unable(status: Status) -> bool {
    matches!(
        status,
        Status::NOT_SUPPORTED
            | Status::INVALID_DEVICE_REQUEST
            | Status::OBJECT_NAME_NOT_FOUND
            | Status::ACCESS_DENIED
    )
}

async fn on_server(
    source: &File,
    target: &File,
    (from, to, len): (u64, u64, u64),
    done: &mut u64,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<(), Cause> {
    if len == 0 {
        return Ok(());
    }
    let code = CtlCode::SRV_REQUEST_RESUME_KEY;
    let (output, _) = source.ioctl(code, Vec::new(), RESUME_KEY_LEN).await?;
    let key = ResumeKeyResponse::decode(&output)?.resume_key;
    let mut limits = WINDOWS;
    while *done < len {
        let chunks = chunks(limits, from + *done, to + *done, len - *done);
        let asked: u64 = chunks.iter().map(|chunk| u64::from(chunk.length)).sum();
        let request = CopyChunkRequest {
            source_key: key,
            chunks,
        };
        match copy_chunks(target, &request).await {
            Ok(copied) if copied > 0 && copied <= asked => {
                *done += copied;
                progress(copied);
            }
            Ok(_) => return Err(unexpected()),
            Err(cause) => limits = lower(limits, cause)?,
        }
    }
    Ok(())
}

fn chunks(limits: Limits, mut from: u64, mut to: u64, mut left: u64) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut free = u64::from(limits.total_bytes);
    while left > 0 && free > 0 && chunks.len() < limits.chunks as usize {
        let length = left.min(free).min(u64::from(limits.chunk_bytes));
        chunks.push(Chunk {
            source_offset: from,
            target_offset: to,
            length: u32::try_from(length).expect("not above a limit of 32 bits"),
        });
        from += length;
        to += length;
        left -= length;
        free -= length;
    }
    chunks
}

async fn copy_chunks(target: &File, request: &CopyChunkRequest) -> Result<u64, Cause> {
    let code = CtlCode::SRV_COPYCHUNK_WRITE;
    let (output, _) = target.ioctl(code, request.encode(), COPY_LEN).await?;
    let response = CopyChunkResponse::decode(&output)?;
    Ok(u64::from(response.total_bytes_written))
}

/// A server with lower limits refuses the request and returns the limits. \[MS-SMB2\] 3.3.5.15.6.2
fn lower(limits: Limits, cause: Cause) -> Result<Limits, Cause> {
    let Cause::StatusWith(Status::INVALID_PARAMETER, more) = &cause else {
        return Err(cause);
    };
    let Ok(allowed) = CopyChunkResponse::decode(more) else {
        return Err(cause);
    };
    let lowered = Limits {
        chunks: limits.chunks.min(allowed.chunks_written),
        chunk_bytes: limits.chunk_bytes.min(allowed.chunk_bytes_written),
        total_bytes: limits.total_bytes.min(allowed.total_bytes_written),
    };
    let is_possible = lowered.chunks > 0 && lowered.chunk_bytes > 0 && lowered.total_bytes > 0;
    match is_possible && lowered != limits {
        true => Ok(lowered),
        false => Err(cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_keeps_to_the_limits() {
        let limits = Limits {
            chunks: 3,
            chunk_bytes: 10,
            total_bytes: 25,
        };
        let lengths = |left| -> Vec<_> {
            let chunks = chunks(limits, 100, 7, left);
            chunks.iter().map(|chunk| chunk.length).collect()
        };
        assert_eq!(lengths(100), [10, 10, 5]);
        assert_eq!(lengths(12), [10, 2]);
        let last = chunks(limits, 100, 7, 100)[2];
        assert_eq!((last.source_offset, last.target_offset), (120, 27));
    }

    #[test]
    fn a_server_may_lower_the_limits_once() {
        let said = CopyChunkResponse {
            chunks_written: 4,
            chunk_bytes_written: 1000,
            total_bytes_written: 2000,
        };
        let refusal = || Cause::StatusWith(Status::INVALID_PARAMETER, said.encode());
        let lowered = lower(WINDOWS, refusal()).expect("lower ones");
        assert_eq!(lowered.total_bytes, 2000);
        assert!(lower(lowered, refusal()).is_err());
        assert!(lower(WINDOWS, Cause::Status(Status::INVALID_PARAMETER)).is_err());
    }
}
