//! A private mount namespace, and a parent that removes all files, so that nothing remains after a
//! run.
//!
//! The program starts itself again below a shell. The kernel removes the mounts with the namespace.
//! It also kills servers and clients with the program (see `Lab::command_under`). The program
//! removes its directories, or the shell does if the program was killed.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::Error;

const MARK: &str = "SMBEAM_BENCH_ENCLOSED";
/// The clients of one run have a thousand connections, so the shell raises the limit of open files:
/// the soft one, because the servers raise their limit to the hard one.
/// The names of the directories contain the process id of the program, see `Scratch`.
const SHELL: &str = r#"
ulimit -S -n 8192
disk=$1
shift
clean() {
    for directory in /tmp/smbeam-"$child"-* "$disk"/smbeam-"$child"-*; do
        [ -d "$directory" ] || continue
        umount -l "$directory"/tmpfs "$directory"/disk
        rm -rf --one-file-system "$directory"
    done 2>/dev/null
}
stop() {
    kill "$child"
    wait "$child"
    sleep 1
    clean
    exit 130
}
trap stop INT TERM HUP
"$@" &
child=$!
wait "$child"
code=$?
clean
exit "$code"
"#;

/// Whether this process runs in the private namespace.
pub(crate) fn is_inside() -> bool {
    env::var_os(MARK).is_some()
}

/// Starts this program again in a private namespace. It returns only with an error. `disk` is the
/// second directory with temporary directories.
pub(crate) fn enter(disk: &std::path::Path) -> Error {
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(error) => return Error::new(error).context("cannot find this program"),
    };
    let error = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "--"])
        .args(["/bin/sh", "-c", SHELL, "sh"])
        .arg(disk)
        .arg(program)
        .args(env::args_os().skip(1))
        .env(MARK, "1")
        .exec();
    Error::new(error).context("cannot run unshare")
}
