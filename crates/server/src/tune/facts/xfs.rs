//! Facts about an XFS file system, from `xfs_info`.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// Facts about an XFS file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct XfsFacts {
    /// Number of allocation groups.
    pub allocation_groups: u64,
    /// Stripe unit in bytes: the part of a stripe on one disk. 0 without stripes.
    pub stripe_unit: u64,
    /// Stripe width in bytes: the data of a stripe on all disks.
    pub stripe_width: u64,
    /// Whether the log is on another device.
    pub has_external_log: bool,
}

/// Runs `xfs_info`; `None` without the program or for other file systems.
pub(super) fn gather(path: &Path) -> Option<XfsFacts> {
    let output = Command::new("xfs_info").arg(path).output().ok()?;
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// Parses the output of `xfs_info`. xfs_info(8)
fn parse(text: &str) -> Option<XfsFacts> {
    let block: u64 = value(section(text, "data")?, "bsize=")?;
    let data = section(text, "data")?;
    let in_bytes = |key| Some(value::<u64>(data, key)? * block);
    Some(XfsFacts {
        allocation_groups: value(section(text, "meta-data")?, "agcount=")?,
        stripe_unit: in_bytes("sunit=")?,
        stripe_width: in_bytes("swidth=")?,
        has_external_log: !section(text, "log")?
            .trim_start_matches([' ', '='])
            .starts_with("internal"),
    })
}

/// The text from the word to the start of the next section.
fn section<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let at = match text.starts_with(name) {
        true => name.len(),
        false => text.find(&format!("\n{name} "))? + 1 + name.len(),
    };
    let rest = &text[at..];
    let end = rest.find("\nnaming").or_else(|| rest.find("\nrealtime"));
    let end = match name {
        "meta-data" => rest.find("\ndata"),
        _ => end,
    };
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// The number behind a key.
fn value<T: std::str::FromStr>(text: &str, key: &str) -> Option<T> {
    let rest = text.split_once(key)?.1;
    let end = rest.find(|character: char| !character.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
meta-data=/dev/md0               isize=512    agcount=32, agsize=45786496 blks
         =                       sectsz=4096  attr=2, projid32bit=1
         =                       crc=1        finobt=1, sparse=1, rmapbt=1
data     =                       bsize=4096   blocks=1465167872, imaxpct=5
         =                       sunit=128    swidth=1024 blks
naming   =version 2              bsize=4096   ascii-ci=0, ftype=1
log      =internal log           bsize=4096   blocks=521728, version=2
         =                       sectsz=4096  sunit=1 blks, lazy-count=1
realtime =none                   extsz=4096   blocks=0, rtextents=0
";

    #[test]
    fn the_output_of_xfs_info_is_read() {
        let facts = parse(OUTPUT).expect("all values");
        let expected = XfsFacts {
            allocation_groups: 32,
            stripe_unit: 512 << 10,
            stripe_width: 4 << 20,
            has_external_log: false,
        };
        assert_eq!(facts, expected);
        let external = OUTPUT.replace("=internal log ", "=/dev/nvme1n1 ");
        assert!(parse(&external).expect("all values").has_external_log);
        assert_eq!(
            parse("xfs_info: /srv is not a mounted XFS filesystem"),
            None
        );
    }
}
