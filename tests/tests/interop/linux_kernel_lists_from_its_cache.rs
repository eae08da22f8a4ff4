//! A stock Linux kernel lists a large directory twice with no more requests than it needs with
//! smbd.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::mounts::{COMPLAINTS, MountStage, script};
use smbeam_tests::scale;
use smbeam_tests::scratch::open_directory;
use smbeam_tests::subject::Subject;
use smbeam_tests::tests;

tests!(a_second_listing_comes_from_the_cache);

/// Prints the number of requests of two runs of `ls`, and how many of those of two runs of `ls -l`
/// list the directory. `ls -l` also asks for the attributes of each file, every time.
const SCRIPT: &str = r#"requests() {
    kind=$1
    shift
    echo 0 > /proc/fs/cifs/Stats
    test "$("$@" /mnt/a/directory | grep -c entry)" = $count
    echo "requests $(awk -v kind=$kind '$1 == kind { print $2 }' /proc/fs/cifs/Stats)"
}
requests SMBs: ls
requests SMBs: ls
requests QueryDirectories: ls -l
requests QueryDirectories: ls -l
"#;

/// The numbers that the script prints.
type Requests = [u64; 4];

fn a_second_listing_comes_from_the_cache() -> Result<()> {
    let files = scale::choose(1_000, 10_000);
    let samba = requests(Subject::Samba, files)?;
    let found = requests(Subject::chosen(), files)?;
    println!("requests for {files} files: {found:?}; with smbd: {samba:?}");
    ensure!(
        samba[1..] == [0, 0, 0],
        "the kernel keeps no listing: {samba:?}"
    );
    ensure!(
        found[1..] == [0, 0, 0],
        "the second listing asks the server: {found:?}"
    );
    ensure!(
        found[0] <= samba[0],
        "{found:?} requests; with smbd: {samba:?}"
    );
    Ok(())
}

fn requests(subject: Subject, files: u32) -> Result<Requests> {
    let stage = MountStage::new(subject, "listing")?;
    let directory = stage.share.join("directory");
    open_directory(&directory)?;
    for number in 0..files {
        fs::write(directory.join(format!("entry-{number:05}")), "x")?;
    }
    let commands = format!("count={files}\n{SCRIPT}");
    let report = stage.run(&script(&[("a", "vers=3.1.1")], &commands, COMPLAINTS))?;
    let numbers = report.lines("requests").map(str::parse);
    let numbers = numbers.collect::<Result<Vec<u64>, _>>()?;
    let count = numbers.len();
    numbers
        .try_into()
        .ok()
        .with_context(|| format!("{count} counts"))
}
