//! Whole files on their way: downloads, uploads and copies that keep every channel busy.
//!
//! Each fills a window of requests over all channels of the session and keeps to so much memory
//! (`depth` pieces of `io_size` bytes). Pieces are taken in whatever order they come. Large
//! downloads and uploads that have one connection may open a second one: see
//! [`Channels::Auto`](crate::Channels::Auto).

pub(crate) mod copy;
pub(crate) mod opens;
pub(crate) mod plan;

use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use proto::client::RequestId;
use ring::{FileRange, Region};

use crate::error::Error;
use crate::file::{File, count, written};
use crate::io::call::Memory;
use crate::io::window::Window;
use crate::transfer::opens::{Next, Opens, Use, Which};
use crate::transfer::plan::{Limits, Plan, READS, WRITES};

/// How a file is moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferOptions {
    /// Bytes of a piece; 0 is the client's, and over TCP as many as suit, where neither says.
    pub io_size: usize,
    /// Pieces in flight; 0 is the client's, and over TCP as many as suit, where neither says.
    pub depth: usize,
    /// Bytes of the file among which the pieces in flight are; 0 is no limit. However a transfer
    /// ends: of what comes before the last byte that arrived, all but so many have arrived.
    pub span: u64,
}

/// What of a file is moved: a range, or several in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<Range<u64>>);

impl From<Range<u64>> for Ranges {
    fn from(range: Range<u64>) -> Self {
        Self(std::iter::once(range).collect())
    }
}

impl From<Vec<Range<u64>>> for Ranges {
    fn from(ranges: Vec<Range<u64>>) -> Self {
        Self(ranges)
    }
}

/// Takes the bytes of a download, on the thread that waits for it.
pub trait Sink {
    /// Takes a piece, which is never empty. Pieces come in any order, each byte once.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

/// Gives the bytes of an upload.
pub trait Source {
    /// The file that it is, if it is one: then pieces go from there straight to connections that
    /// can, and [`read_at`](Self::read_at) is called for others only. Asked before each piece where
    /// connections can; an error ends the transfer.
    fn file(&mut self) -> io::Result<Option<Arc<fs::File>>> {
        Ok(None)
    }

    /// Fills the buffer with what belongs at `offset` of the file, as far as there are bytes;
    /// tells how many. Fewer than asked for are the end.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl<F: FnMut(u64, &[u8]) -> io::Result<()>> Sink for F {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self(offset, bytes)
    }
}

/// A file of this machine, at the same offsets.
#[derive(Clone, Debug)]
pub struct LocalFile(pub Arc<fs::File>);

impl From<fs::File> for LocalFile {
    fn from(file: fs::File) -> Self {
        Self(Arc::new(file))
    }
}

impl Sink for LocalFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }
}

impl Source for LocalFile {
    fn file(&mut self) -> io::Result<Option<Arc<fs::File>>> {
        Ok(Some(Arc::clone(&self.0)))
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        fill(buffer, offset, |buffer, offset| {
            self.0.read_at(buffer, offset)
        })
    }
}

impl Source for &[u8] {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.len());
        let rest = &self[start..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

fn fill(
    buffer: &mut [u8],
    offset: u64,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match read(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// A part of a transfer that is in flight.
#[derive(Clone, Copy, Debug)]
struct Piece {
    offset: u64,
    len: usize,
    which: Which,
}

impl Ranges {
    /// Bytes of them.
    fn total(&self) -> u64 {
        let lengths = self
            .0
            .iter()
            .map(|range| range.end.saturating_sub(range.start));
        lengths.fold(0, u64::saturating_add)
    }
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.len as u64)
    }
}

/// Gives out the pieces of ranges in order, and again what of them did not come.
struct Pieces {
    /// Ranges of which nothing was given out.
    ranges: std::vec::IntoIter<Range<u64>>,
    /// What was not given out of the range before those.
    range: Range<u64>,
    /// Where nothing came.
    end: u64,
    size: usize,
    /// Bytes of the piece that is given out first, until it is.
    first: Option<usize>,
    /// As in [`TransferOptions`].
    span: u64,
    /// Rests of pieces that came short.
    again: Vec<Piece>,
}

impl Pieces {
    fn of(ranges: Ranges, plan: Plan, span: u64) -> Self {
        Self {
            ranges: ranges.0.into_iter(),
            range: 0..0,
            end: u64::MAX,
            size: plan.size,
            first: Some(plan.first),
            span,
            again: Vec::new(),
        }
    }

    /// A piece was read, and so much of it came. The rest is asked for again, until nothing
    /// comes: that is the end of the file.
    fn came(&mut self, piece: Piece, count: usize) {
        if count == 0 {
            self.end = self.end.min(piece.offset);
        } else if count < piece.len {
            self.again.push(Piece {
                offset: piece.offset + count as u64,
                len: piece.len - count,
                ..piece
            });
        }
    }

    /// The next piece that may be in flight while `first` is the lowest offset of one that is.
    fn next(&mut self, first: Option<u64>) -> Option<Piece> {
        // They lie within pieces that were in flight, and nothing new is begun before them.
        while let Some(piece) = self.again.pop() {
            if piece.offset < self.end {
                return Some(piece);
            }
        }
        while self.range.is_empty() {
            self.range = self.ranges.next()?;
        }
        let left = self.range.end.min(self.end);
        let left = left.saturating_sub(self.range.start);
        let size = self.first.unwrap_or(self.size);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(size);
        let offset = self.range.start;
        let which = Which::default();
        let piece = Piece { offset, len, which };
        let is_far = first.is_some_and(|first| piece.end().saturating_sub(first) > self.span);
        if len == 0 || (self.span > 0 && is_far) {
            return None;
        }
        self.range.start += len as u64;
        self.first = None;
        Some(piece)
    }
}

/// The lowest offset in flight.
fn first<const N: usize>(windows: [&Window<Piece>; N]) -> Option<u64> {
    let pieces = windows.into_iter().flat_map(Window::keys);
    pieces.map(|piece| piece.offset).min()
}

/// By which opens pieces are in flight.
fn taken(window: &Window<Piece>) -> impl Iterator<Item = Which> {
    window.keys().map(|piece| piece.which)
}

/// The request by the same open that another one waits behind, so that so many are in flight.
fn behind(window: &Window<Piece>, which: Which, most: usize) -> Option<RequestId> {
    let by_it = window.numbered().filter(|(piece, _)| piece.which == which);
    let ids: Vec<_> = by_it.map(|(_, id)| id).collect();
    ids.len().checked_sub(most).map(|index| ids[index])
}

/// Reads ranges of a file, in ascending order, into the sink; tells how many bytes there were up to
/// the file's end. `progress` is told of bytes as they arrive; an error of it ends the transfer.
///
/// # Errors
/// Of the server, or of the sink, which ends the transfer.
pub async fn download<S: Sink + ?Sized>(
    file: &File,
    ranges: impl Into<Ranges>,
    sink: &mut S,
    options: &TransferOptions,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<u64, Error> {
    let ranges = ranges.into();
    let limits = Limits::of_reading(file, ranges.total());
    let plan = Plan::of(options, [file], (limits, &READS));
    let failed = |error| Error::local("write what was read of", file.path(), error);
    let mut opens = Opens::of(file, limits.total, Use::Read);
    let mut pieces = Pieces::of(ranges, plan, options.span);
    let mut window: Window<Piece> = Window::default();
    let mut total = 0;
    loop {
        while let Some(which) = opens.free(taken(&window), plan.depth)
            && let Some(piece) = pieces.next(first([&window]))
        {
            let piece = Piece { which, ..piece };
            let reading = opens.file(which).start_read_wanted(piece.len, piece.offset);
            window.push(piece, reading);
        }
        let (piece, done) = match opens.next(&mut window).await {
            Next::Done(piece, done) => (piece, done),
            Next::Opened => {
                pieces.first = Some(plan.first);
                continue;
            }
            Next::Nothing => break,
        };
        let (reply, memory) = done.only();
        let count = match count(reply) {
            Ok(count) => count,
            Err(_) if opens.give_up(piece.which) => {
                pieces.again.push(piece);
                continue;
            }
            Err(cause) => return Err(file.failed("read", cause)),
        };
        pieces.came(piece, count);
        if count > 0 {
            sink.write_at(piece.offset, &memory.filled(count))
                .map_err(&failed)?;
            total += count as u64;
            progress(count as u64);
        }
    }
    // All that was read is here, whatever becomes of that.
    let _ = opens.close().await;
    Ok(total)
}

/// Writes what the source has to ranges of a file, in ascending order; tells how many bytes there
/// were. `progress` as for [`download`].
///
/// # Errors
/// Of the server, or of the source, which ends the transfer.
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
    let failed = |error| Error::local("read what is written to", file.path(), error);
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
                // Devices and files that are made up as they are read do not say how long they are.
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
        // Of both errors the one that is nearer to who can mend it.
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

/// Copies ranges of one file, in ascending order, to another through this machine, which may be of
/// different servers; `by` is how much further back they go there. Tells how many bytes there were.
/// `progress` as for [`download`].
pub async fn relay(
    source: &File,
    target: &File,
    (ranges, by): (impl Into<Ranges>, i64),
    options: &TransferOptions,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<u64, Error> {
    let ranges = ranges.into();
    let total = ranges.total();
    let limits = Limits::of_reading(source, total).and(Limits::of_writing(target, total));
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
            pieces.came(piece, count);
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
        // As many pieces are being written as are being read at most: memory stays bounded.
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

/// Copies a range between two files, on the server where that can, else as [`relay`].
pub async fn copy_range(
    source: &File,
    target: &File,
    (from, to, len): (u64, u64, u64),
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<u64, Error> {
    copy::copy_range(source, target, from, to, len, progress).await
}

/// Bytes from which on memory is in pages of its own, which adapters of RDMA are told of once.
const PAGES_BYTES: usize = 64 << 10;

/// Memory of an upload that is used again for piece after piece.
#[derive(Default)]
struct Spare(Vec<Region>);

impl Spare {
    /// So many bytes, of whatever was in them.
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

/// The first bytes.
fn cut(mut region: Region, len: usize) -> Region {
    assert!(region.set_len(len), "no more came than there was room for");
    region
}

/// The memory that went along with a WRITE.
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

    fn all(pieces: &mut Pieces) -> Vec<(u64, usize)> {
        let given = std::iter::from_fn(|| pieces.next(None));
        given.map(|piece| (piece.offset, piece.len)).collect()
    }

    fn piece(offset: u64, len: usize) -> Piece {
        let which = Which::default();
        Piece { offset, len, which }
    }

    #[test]
    fn what_came_short_is_asked_for_again_up_to_the_end() {
        let mut pieces = Pieces::of((10..35).into(), Plan::uniform(10, 1), 0);
        assert_eq!(all(&mut pieces), [(10, 10), (20, 10), (30, 5)]);
        pieces.came(piece(10, 10), 10);
        assert!(pieces.next(None).is_none());
        pieces.came(piece(20, 10), 4);
        let rest = pieces.next(None).expect("a rest");
        assert_eq!((rest.offset, rest.len), (24, 6));
        pieces.came(piece(30, 5), 1);
        pieces.came(rest, 0);
        assert!(pieces.next(None).is_none(), "nothing is behind the end");
    }

    #[test]
    fn ranges_follow_each_other_up_to_the_end() {
        let ranges = vec![0..15, 20..20, 30..40, 50..60];
        let mut pieces = Pieces::of(ranges.clone().into(), Plan::uniform(10, 1), 0);
        let given = [(0, 10), (10, 5), (30, 10), (50, 10)];
        assert_eq!(all(&mut pieces), given);
        let mut pieces = Pieces::of(ranges.into(), Plan::uniform(10, 1), 0);
        for _ in 0..3 {
            assert!(pieces.next(None).is_some());
        }
        pieces.came(piece(30, 10), 0);
        assert!(pieces.next(None).is_none(), "nothing is behind the end");
        let mut pieces = Pieces::of(Ranges::default(), Plan::uniform(10, 1), 0);
        assert!(pieces.next(None).is_none());
    }

    #[test]
    fn nothing_is_in_flight_further_from_the_first_than_the_span() {
        let mut pieces = Pieces::of(vec![0..30, 100..110].into(), Plan::uniform(10, 1), 25);
        assert!(pieces.next(None).is_some());
        assert!(pieces.next(Some(0)).is_some());
        assert!(
            pieces.next(Some(0)).is_none(),
            "30 bytes would be in flight"
        );
        assert!(pieces.next(Some(10)).is_some());
        assert!(pieces.next(Some(10)).is_none());
        assert!(pieces.next(Some(85)).is_some(), "holes count as well");
        // One that is larger than the span goes alone.
        let mut pieces = Pieces::of((0..60).into(), Plan::uniform(30, 1), 25);
        assert!(pieces.next(None).is_some());
        assert!(pieces.next(Some(0)).is_none());
        assert!(pieces.next(None).is_some());
    }
}
