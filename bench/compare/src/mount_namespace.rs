//! A mount namespace of our own and a parent that cleans up, so that nothing outlives a run
//! however it ends.
//!
//! The program starts itself again below a shell. The mounts end with the namespace; servers and
//! clients are killed with the program (see `Lab::command_under`); the directories are removed by the
//! program, or by the shell when the program was killed.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::Error;

const MARK: &str = "SMBEAM_BENCH_ENCLOSED";
/// The clients of one run have a thousand connections: raise the limit of open files. The directories
/// carry the program's process id in their names, see `Scratch`.
const SHELL: &str = r#"
ulimit -n 8192
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

/// Whether this process runs in a namespace of its own.
pub(crate) fn is_inside() -> bool {
    env::var_os(MARK).is_some()
}

/// Starts this program again in a namespace of its own; comes back only to say why not. `disk` is
/// the second directory that may hold directories of ours.
pub(crate) fn enter(disk: &std::path::Path) -> Error {
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(error) => return Error::new(error).context("where is this program?"),
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
