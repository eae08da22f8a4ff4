//! Uploads.

use ring::{FileRange, Region};

use crate::error::Error;
use crate::file::File;
use crate::file::io::written;
use crate::io::call::Memory;
use crate::io::window::Window;
use crate::transfer::local::Source;
use crate::transfer::opens::{Next, Opens, Use};
use crate::transfer::options::{Ranges, TransferOptions};
use crate::transfer::pieces::{Piece, Pieces, behind, first, taken};
use crate::transfer::plan::{Limits, Plan, WRITES};

/// Length in bytes from which memory is in separate pages, which an RDMA adapter registers once.
const PAGES_BYTES: usize = 64 << 10;

/// Reads `ranges` (in bytes, in ascending order) of `source`, for example of a local file, and
/// writes them to the same offsets of a file on a server. Returns the count of written bytes; it is
/// below the length of the ranges if the source ends before. The function calls `progress` with the
/// count of bytes of each piece that is written.
///
/// # Errors
/// The server or the source reports an error.
pub async fn upload<S: Source + ?Sized>(
    file: &File,
    ranges: impl Into<Ranges>,
    source: &mut S,
    options: &TransferOptions,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<u64, Error> {
    let ranges = ranges.into();
    let limits = Limits::of_writing(file, ranges.total());
    let plan = Plan::of(options, [file], (limits, &WRITES));
    let failed = |error| Error::local("read the local source of", file.path(), error);
    let mut opens = Opens::of(file, limits.total, Use::Write);
    let mut pieces = Pieces::of(ranges, plan, options.span);
    let mut window: Window<Piece> = Window::default();
    let mut spare = Spare::default();
    let mut is_at_end = false;
    let mut total = 0;
    loop {
        while !is_at_end
            && let Some(which) = opens.free(taken(&window), plan.depth)
            && let Some(mut piece) = pieces.next(first([&window]))
        {
            piece.which = which;
            let file = opens.file(which);
            let mut local = None;
            if file.sends_files()
                && let Some(source) = source.file().map_err(&failed)?
            {
                let end = source.metadata().map_err(&failed)?.len();
                // Devices and generated files, as in /proc, have the length 0.
                local = (end > 0).then_some((source, end));
            }
            let (count, memory) = match local {
                Some((source, end)) => {
                    let left = end.saturating_sub(piece.offset);
                    let count = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len);
                    let range = FileRange::new(source, piece.offset, count);
                    (count, Memory::SourceFile(range))
                }
                None => {
                    let mut buffer = spare.take(piece.len);
                    let count = source.read_at(piece.offset, &mut buffer).map_err(&failed)?;
                    (count, Memory::Source(cut(buffer, count).into()))
                }
            };
            is_at_end = count < piece.len;
            piece.len = count;
            if count > 0 {
                let half = opens.share(plan.depth).div_ceil(2);
                let behind = plan.in_turn.then(|| behind(&window, which, half)).flatten();
                let writing = file.start_write_from(memory, piece.offset, behind);
                window.push(piece, writing);
            }
        }
        let (piece, done) = match opens.next(&mut window).await {
            Next::Done(piece, done) => (piece, done),
            Next::Opened => {
                pieces.first = Some(plan.first);
                continue;
            }
            Next::Nothing => break,
        };
        let (reply, mut memory) = done.only();
        // The local error is the cause of the error of the WRITE.
        if let Memory::SourceFile(range) = &mut memory {
            range.error.take().map_or(Ok(()), Err).map_err(&failed)?;
        }
        let is_source_file = matches!(memory, Memory::SourceFile(_));
        match written(reply, piece.len) {
            Ok(_) => {}
            Err(_) if opens.give_up(piece.which) => {
                pieces.again.push(piece);
                is_at_end = false;
                continue;
            }
            Err(cause) => return Err(file.failed("write", cause)),
        }
        if !is_source_file {
            spare.give_back(region(memory));
        }
        total += piece.len as u64;
        progress(piece.len as u64);
    }
    opens.close().await?;
    Ok(total)
}

/// Memory of an upload that is reused for piece after piece.
#[derive(Default)]
struct Spare(Vec<Region>);

impl Spare {
    /// Takes `len` bytes with arbitrary content.
    fn take(&mut self, len: usize) -> Region {
        if let Some(mut region) = self.0.pop()
            && region.set_len(len)
        {
            return region;
        }
        let pages = (len >= PAGES_BYTES).then(|| Region::of_pages(len).ok());
        let pages = pages.flatten();
        pages.unwrap_or_else(|| Region::from(vec![0; len]))
    }

    fn give_back(&mut self, region: Region) {
        self.0.push(region);
    }
}

/// The first `len` bytes.
fn cut(mut region: Region, len: usize) -> Region {
    assert!(region.set_len(len), "a source fills at most the buffer");
    region
}

/// The memory of a WRITE.
fn region(memory: Memory) -> Region {
    let region = memory.into_source().map(ring::Source::into_region);
    region
        .and_then(Result::ok)
        .unwrap_or_else(|| Vec::new().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_where_it_has_room() {
        let mut spare = Spare::default();
        let place = |region: &Region| region.as_ptr();
        let first = spare.take(PAGES_BYTES);
        let was = place(&first);
        assert!(first.memory().is_some());
        spare.give_back(cut(first, 10));
        let again = spare.take(PAGES_BYTES);
        assert_eq!((place(&again), again.len()), (was, PAGES_BYTES));
        spare.give_back(again);
        assert_eq!(spare.take(PAGES_BYTES * 4).len(), PAGES_BYTES * 4);
        let small = spare.take(100);
        assert!(small.memory().is_none());
        assert_eq!(small[..], [0; 100]);
    }
}
