//! Downloads.

use crate::error::Error;
use crate::file::File;
use crate::file::io::count;
use crate::io::window::Window;
use crate::transfer::local::Sink;
use crate::transfer::opens::{Next, Opens, Use};
use crate::transfer::options::{Ranges, TransferOptions};
use crate::transfer::pieces::{Piece, Pieces, first, taken};
use crate::transfer::plan::{Limits, Plan, READS};

/// Reads `ranges` (in bytes, in ascending order) of a file on a server and passes the bytes to
/// `sink`, for example a local file. Returns the count of transferred bytes; it is below the length
/// of the ranges if the file ends before. The function calls `progress` with the count of bytes of
/// each piece that arrives.
///
/// # Errors
/// The server or the sink reports an error.
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
    let failed = |error| Error::local("write the local copy of", file.path(), error);
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
        pieces.read(piece, count);
        if count > 0 {
            sink.write_at(piece.offset, &memory.filled(count))
                .map_err(&failed)?;
            total += count as u64;
            progress(count as u64);
        }
    }
    // All bytes have arrived, so an error of the close does not matter.
    let _ = opens.close().await;
    Ok(total)
}
