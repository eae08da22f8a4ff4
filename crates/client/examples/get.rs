//! Fetches a file: `get HOST[:PORT] SHARE USER FROM TO`, password in SMBEAM_PASSWORD.

mod arguments;

use std::fs;
use std::time::Instant;

use arguments::Arguments;
use smbeam_client::transfer::{LocalFile, TransferOptions, download};
use smbeam_client::{Error, OpenOptions, Wait};

fn main() -> Result<(), Error> {
    let Arguments { share, rest } = arguments::connect("FROM TO", 2)?;
    let (from, to) = (&rest[0], &rest[1]);
    let file = share.open(from, &OpenOptions::new().read(true)).wait()?;
    let local = fs::File::create(to).map_err(|error| Error::local("create", to, error))?;
    let start = Instant::now();
    let len = file.len().wait()?;
    let options = TransferOptions::default();
    let mut sink = LocalFile::from(local);
    let mut progress = |_| {};
    let count = download(&file, 0..len, &mut sink, &options, &mut progress).wait()?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{count} bytes in {seconds:.2} s");
    file.close().wait()
}
