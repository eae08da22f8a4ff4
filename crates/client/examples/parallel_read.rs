//! Reads a file at many places at once, and looks at it again and again: how long does a request
//! take? `parallel_read HOST[:PORT] SHARE USER PATH [COUNT]`, password in SMBEAM_PASSWORD.

mod arguments;

use std::time::Instant;

use arguments::Arguments;
use smbeam_client::{Error, OpenOptions, Wait};

/// Bytes of a read.
const PIECE: usize = 4 << 10;

fn main() -> Result<(), Error> {
    let Arguments { share, rest } = arguments::connect("PATH [COUNT]", 1)?;
    let count: u64 = rest
        .get(1)
        .map_or(Ok(10_000), |text| text.parse())
        .unwrap_or(10_000);
    let file = share
        .open(&rest[0], &OpenOptions::new().read(true))
        .wait()?;
    let places = file.len().wait()?.div_ceil(PIECE as u64).max(1);

    let start = Instant::now();
    for _ in 0..count {
        share.metadata(&rest[0]).wait()?;
    }
    report("look at it, one after the other", count, start);

    let start = Instant::now();
    // Steps of a prime number of pieces: far from each other.
    let place = |n: u64| (n.wrapping_mul(7919) % places) * PIECE as u64;
    let ranges = (0..count).map(|n| (place(n), vec![0; PIECE])).collect();
    for (result, _) in file.read_ranges(ranges).wait() {
        result?;
    }
    report("read 4 KiB, several at once", count, start);
    file.close().wait()
}

fn report(what: &str, count: u64, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    let rate = count as f64 / seconds;
    let each = seconds * 1e6 / count as f64;
    println!("{what}: {count} in {seconds:.2} s, {rate:.0} a second, {each:.0} us each");
}
