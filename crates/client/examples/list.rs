//! Lists a directory: `list HOST[:PORT] SHARE USER [PATH]`, password in SMBEAM_PASSWORD.

mod arguments;

use arguments::Arguments;
use smbeam_client::{Error, Wait};

fn main() -> Result<(), Error> {
    let Arguments { share, rest } = arguments::connect("[PATH]", 0)?;
    let path = rest.first().map_or("", String::as_str);
    for entry in share.read_dir(path, "*").wait()?.blocking() {
        let entry = entry?;
        let kind = if entry.metadata.is_dir() { 'd' } else { '-' };
        println!("{kind} {:>14} {}", entry.metadata.size, entry.name);
    }
    Ok(())
}
