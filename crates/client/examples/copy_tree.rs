//! Copies a directory within a share, on the server: `copy_tree HOST[:PORT] SHARE USER FROM TO`,
//! password in SMBEAM_PASSWORD.

mod arguments;

use arguments::Arguments;
use smbeam_client::{Error, Share, Wait};

fn main() -> Result<(), Error> {
    let Arguments { share, rest } = arguments::connect("FROM TO", 2)?;
    let (mut files, mut bytes) = (0, 0);
    let mut left = vec![(rest[0].clone(), rest[1].clone())];
    while let Some((from, to)) = left.pop() {
        share.create_dir_all(&to).wait()?;
        for entry in share.read_dir(&from, "*").wait()?.blocking() {
            let entry = entry?;
            let source = format!("{from}/{}", entry.name);
            let target = format!("{to}/{}", entry.name);
            if source.trim_start_matches('/') == rest[1] {
                continue;
            }
            if entry.metadata.is_dir() {
                left.push((source, target));
            } else {
                bytes += copy(&share, &source, &target)?;
                files += 1;
            }
        }
    }
    println!("{files} files, {bytes} bytes");
    Ok(())
}

fn copy(share: &Share, from: &str, to: &str) -> Result<u64, Error> {
    share.copy(from, share, to, &mut |_| {}).wait()
}
