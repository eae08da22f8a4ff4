//! Sends a file: `put HOST[:PORT] SHARE USER FROM TO`, password in SMBEAM_PASSWORD.

mod arguments;

use std::fs;
use std::time::Instant;

use arguments::Arguments;
use smbeam_client::transfer::{LocalFile, TransferOptions, upload};
use smbeam_client::{Error, OpenOptions, Wait};

fn main() -> Result<(), Error> {
    let Arguments { share, rest } = arguments::connect("FROM TO", 2)?;
    let (from, to) = (&rest[0], &rest[1]);
    let local = fs::File::open(from).map_err(|error| Error::local("open", from, error))?;
    let new = OpenOptions::new().write(true).create(true).truncate(true);
    let file = share.open(to, &new).wait()?;
    let start = Instant::now();
    let options = TransferOptions::default();
    let mut source = LocalFile::from(local);
    let mut progress = |_| {};
    // Up to the end of the local file, wherever that is by then.
    let count = upload(&file, 0..u64::MAX, &mut source, &options, &mut progress).wait()?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{count} bytes in {seconds:.2} s");
    file.close().wait()
}
