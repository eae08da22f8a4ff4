//! Prints what happens in a directory and below it: `watch HOST[:PORT] SHARE USER [PATH]`,
//! password in SMBEAM_PASSWORD.

mod arguments;

use arguments::Arguments;
use smbeam_client::{Change, CompletionFilter, Error, Wait};

fn main() -> Result<(), Error> {
    let Arguments { share, rest } = arguments::connect("[PATH]", 0)?;
    let path = rest.first().map_or("", String::as_str);
    let filter = CompletionFilter::FILE_NAME
        | CompletionFilter::DIR_NAME
        | CompletionFilter::SIZE
        | CompletionFilter::LAST_WRITE;
    let mut watch = share.watch(path, true, filter).wait()?;
    loop {
        for change in watch.next().wait()? {
            match change {
                Change::Name { action, path } => println!("{action:?} {path}"),
                Change::Overflow => println!("too much happened: look at it anew"),
            }
        }
    }
}
