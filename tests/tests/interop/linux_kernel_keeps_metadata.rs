//! A stock Linux kernel keeps extended attributes, symbolic links, special files and access control
//! lists on a share, in each of the formats that cifs.ko knows.

use anyhow::Result;
use smbeam_tests::mounts::{FAULTS, MountStage, script};
use smbeam_tests::subject::Subject;
use smbeam_tests::tests;

tests!(
    extended_attributes,
    links_as_files,
    special_files_of_sfu,
    reparse_points_of_nfs,
    reparse_points_of_wsl,
    access_control_lists,
);

/// Compares two words, and prints a difference.
const SAME: &str = "same() { test \"$1\" = \"$2\" || { echo \"$3: $1 is not $2\"; exit 1; }; }\n";

fn extended_attributes() -> Result<()> {
    run(
        "user_xattr",
        "echo data > file; mkdir directory\n\
         for name in file directory; do\n\
           setfattr -n user.one -v value $name\n\
           setfattr -n user.TWO -v 0x000102ff $name\n\
         done\n\
         same \"$(getfattr --only-values -n user.one file)\" value one\n\
         same \"$(getfattr -e hex -n user.TWO file | grep TWO)\" user.TWO=0x000102ff two\n\
         same \"$(getfattr -e hex -n user.TWO directory | grep TWO)\" \
           user.TWO=0x000102ff directory\n\
         setfattr -n user.one -v another file\n\
         same \"$(getfattr --only-values -n user.one file)\" another changed\n\
         setfattr -x user.one file\n\
         getfattr -n user.one file && exit 1\n\
         getfattr -d file | grep -q user.TWO\n\
         getfattr -d -m - file | grep -iE 'DOSATTRIB|NTACL' && exit 1\n\
         cp -a file copy; same \"$(getfattr -e hex -n user.TWO copy | grep TWO)\" \
           user.TWO=0x000102ff copy\n",
    )
}

fn links_as_files() -> Result<()> {
    run(
        "mfsymlinks",
        "echo data > file; ln -s file link\n\
         same \"$(readlink link)\" file target; same \"$(cat link)\" data followed\n",
    )
}

fn special_files_of_sfu() -> Result<()> {
    run(
        "sfu",
        "mkfifo fifo; mknod device c 1 3\n\
         same \"$(stat -c %F fifo)\" fifo fifo\n\
         same \"$(stat -c '%F %t %T' device)\" 'character special file 1 3' device\n",
    )
}

fn reparse_points_of_nfs() -> Result<()> {
    special_files("reparse=nfs,symlink=nfs")
}

fn reparse_points_of_wsl() -> Result<()> {
    special_files("reparse=wsl,symlink=wsl")
}

fn special_files(options: &str) -> Result<()> {
    run(
        options,
        "echo data > file; mkdir directory; echo inner > directory/inner\n\
         ln -s file link; ln -s directory/inner deep; ln -s nowhere dangling\n\
         mkfifo fifo; mknod device c 1 3; mknod block b 8 1\n\
         python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'\n\
         check() {\n\
           same \"$(readlink link)\" file target; same \"$(cat link)\" data followed\n\
           same \"$(cat deep)\" inner deep; same \"$(readlink dangling)\" nowhere dangling\n\
           same \"$(stat -c %F fifo)\" fifo fifo\n\
           same \"$(stat -c %F socket)\" socket socket\n\
           same \"$(stat -c '%F %t %T' device)\" 'character special file 1 3' device\n\
           same \"$(stat -c '%F %t %T' block)\" 'block special file 8 1' block\n\
         }\n\
         check; sync; echo 3 > /proc/sys/vm/drop_caches; check\n\
         ls -l > /dev/null; rm link fifo; test ! -L link; test -f file\n",
    )
}

fn access_control_lists() -> Result<()> {
    run(
        "cifsacl",
        "echo data > file\n\
         getcifsacl file | grep -q OWNER:\n\
         setcifsacl -a 'ACL:S-1-1-0:ALLOWED/0x0/R' file\n\
         getcifsacl -r file; getcifsacl -r file | grep -q 'S-1-1-0:0x0/0x0/0x1200a9'\n\
         setcifsacl -D 'ACL:S-1-1-0:ALLOWED/0x0/R' file\n\
         getcifsacl -r file | grep 'S-1-1-0:0x0/0x0/0x1200a9' && exit 1\n\
         chmod 600 file; same \"$(stat -c %a file)\" 600 mode\n\
         chmod 640 file; same \"$(stat -c %a file)\" 640 mode\n",
    )
}

/// Runs commands in an empty directory of a mount with these options.
fn run(options: &str, commands: &str) -> Result<()> {
    let stage = MountStage::new(Subject::chosen(), "metadata")?;
    let commands = format!("{SAME}mkdir /mnt/a/work; cd /mnt/a/work\n{commands}\ncd /\n");
    let options = format!("vers=3.1.1,{options}");
    stage.run(&script(&[("a", &options)], &commands, FAULTS))?;
    Ok(())
}
