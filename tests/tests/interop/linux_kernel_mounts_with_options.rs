//! A stock Linux kernel mounts a share with each of the options that its users set. Each mount
//! passes the same checks, and shows the effect of its option.

use std::fmt::Write as _;

use anyhow::Result;
use smbeam_tests::mounts::{COMPLAINTS, MountStage, mount_command};
use smbeam_tests::scale;
use smbeam_tests::subject::Subject;
use smbeam_tests::tests;

tests!(
    caches_and_sizes,
    owners_and_modes,
    numbers_and_locks,
    connections,
);

/// Options of a mount, and a check of their effect in the directory `work` of the mount. The check
/// is a list of commands for bash.
type Row = (&'static str, &'static str);

const CACHES_AND_SIZES: &[Row] = &[
    ("cache=none", "has cache=none"),
    ("cache=strict", "has cache=strict"),
    ("cache=loose", "has cache=loose"),
    ("actimeo=0", "has actimeo=0"),
    ("actimeo=1", "has actimeo=1"),
    ("actimeo=600", "has actimeo=600"),
    ("rsize=4096,wsize=4096", "has rsize=4096; has wsize=4096"),
    (
        "rsize=65536,wsize=65536",
        "has rsize=65536; has wsize=65536",
    ),
    (
        "rsize=4194304,wsize=4194304",
        "has rsize=4194304; has wsize=4194304",
    ),
    (
        "rsize=1048576,wsize=65536,cache=none",
        "has rsize=1048576; has wsize=65536",
    ),
];

const OWNERS_AND_MODES: &[Row] = &[
    ("uid=1234,gid=1235", "same $(stat -c %u:%g file) 1234:1235"),
    ("uid=1234,forceuid", "same $(stat -c %u file) 1234"),
    ("gid=1235,forcegid", "same $(stat -c %g directory) 1235"),
    (
        "file_mode=0640,dir_mode=0750",
        "same $(stat -c %a file) 640; same $(stat -c %a directory) 750",
    ),
    (
        "uid=1234,gid=1235,file_mode=0600,dir_mode=0700,noperm",
        "same $(stat -c %u:%g:%a file) 1234:1235:600; same $(stat -c %a directory) 700",
    ),
    (
        "ro",
        "{ echo more >> file; } 2> /dev/null && exit 1; same \"$(cat file)\" data",
    ),
];

const NUMBERS_AND_LOCKS: &[Row] = &[
    (
        "serverino",
        "has serverino; same $(stat -c %i file) $(stat -c %i $SHARE/work/file)",
    ),
    (
        "noserverino",
        "test $(stat -c %i file) != $(stat -c %i $SHARE/work/file)",
    ),
    ("nobrl", "has nobrl; flock -n file true"),
    ("brl", "flock -n file true"),
    ("soft", "has soft"),
    ("hard", "has hard"),
    ("nolease", "has nolease"),
    ("nostrictsync", "has nostrictsync; sync file"),
    (
        "mapposix",
        "echo data > 'a:b?'; same \"$(ls a*)\" 'a:b?'; rm 'a:b?'",
    ),
    (
        "mapchars",
        "echo data > 'a:b?'; same \"$(ls a*)\" 'a:b?'; rm 'a:b?'",
    ),
];

const CONNECTIONS: &[Row] = &[
    (
        "multichannel,max_channels=4",
        "has_channels 3\n\
         grep -A 4 'Server interfaces: ' $DEBUG | grep -E 'Speed: *[1-9][0-9]* ?[GMK]?bps'\n\
         grep -A 9 'Server interfaces: ' $DEBUG | grep -E 'Capabilities: .*rss'\n\
         grep -A 9 'Server interfaces: ' $DEBUG | grep 'IPv4: '$HOST",
    ),
    ("multichannel,max_channels=2", "has_channels 1"),
    ("nomultichannel", "same $(grep -c 'Channel: ' $DEBUG) 0"),
    ("max_credits=100", "has max_credits=100"),
    ("max_credits=8000", "has max_credits=8000"),
    (
        "echo_interval=5",
        "has echo_interval=5; sleep 6; same \"$(cat file)\" data",
    ),
    ("echo_interval=600", "has echo_interval=600"),
    (
        "nosharesock",
        "grep -iE 'sector size: 0x' $DEBUG || { cat $DEBUG; exit 1; }",
    ),
    ("sign", "grep -q signed $DEBUG"),
];

/// Functions of the script. `basics` leaves `file` and `directory` in the current directory.
const FUNCTIONS: &str = r#"
DEBUG=/proc/fs/cifs/DebugData
same() { test "$1" = "$2" || { echo "$1 is not $2"; exit 1; }; }
# The kernel opens further channels after mount(2) has returned.
has_channels() {
    for attempt in $(seq 300); do
        test "$(grep -c 'Channel: ' $DEBUG)" != "$1" || return 0
        sleep 0.1
    done
    echo "not $1 further channels:"; cat $DEBUG; exit 1
}
has() { grep ' /mnt/a cifs ' /proc/mounts | grep -qE "[ ,]$1[, ]" ||
    { echo "no $1 in:"; grep /mnt/a /proc/mounts; exit 1; }; }
basics() {
    echo data > file; mkdir directory
    cp $DATA directory/large; cmp $DATA directory/large
    echo 3 > /proc/sys/vm/drop_caches; cmp $DATA directory/large
    echo one > text; echo two >> text; same "$(cat text)" "$(printf 'one\ntwo')"
    truncate -s 5 text; same "$(stat -c %s text)" 5
    mv text directory/moved; test ! -e text; same "$(head -c 3 directory/moved)" one
    ln directory/moved hard; same "$(head -c 3 hard)" one
    touch -d '2001-02-03 04:05:06 UTC' hard; same "$(stat -c %Y hard)" 981173106
    same "$(ls directory)" "$(printf 'large\nmoved')"
    df . | tail -1 > /dev/null
    $RANDOM_IO random 1 $OPERATIONS
    rm -r directory hard random; mkdir directory
    same "$(ls)" "$(printf 'directory\nfile')"
}
"#;

fn caches_and_sizes() -> Result<()> {
    mounts_work(CACHES_AND_SIZES)
}

fn owners_and_modes() -> Result<()> {
    mounts_work(OWNERS_AND_MODES)
}

fn numbers_and_locks() -> Result<()> {
    mounts_work(NUMBERS_AND_LOCKS)
}

fn connections() -> Result<()> {
    mounts_work(CONNECTIONS)
}

/// Mounts the share once for each row, in one guest.
fn mounts_work(rows: &[Row]) -> Result<()> {
    let stage = MountStage::with_channels(Subject::chosen(), "options")?;
    let data = stage.scratch.path().join("data");
    smbeam_tests::files::write_random(&data, 3 << 20, 1)?;
    let random_io = stage.program(env!("CARGO_BIN_EXE_random_io"))?;
    let mut script = format!(
        "set -e\n\
         trap 'code=$?; test $code = 0 || {{ echo \"$ROW: $code\"; dmesg | tail -40; }}' EXIT\n\
         modprobe cifs; mkdir -p /mnt/a\n\
         SHARE={}; DATA={}; RANDOM_IO={}; OPERATIONS={}; HOST={}\n{FUNCTIONS}",
        stage.share.display(),
        data.display(),
        random_io.display(),
        scale::choose(100, 2_000),
        smbeam_tests::namespace::HOST_ADDRESS,
    );
    for (options, check) in rows {
        write_row(&mut script, options, check)?;
    }
    write!(
        script,
        "dmesg | grep -E '{COMPLAINTS}' && exit 99\nexit 0\n"
    )?;
    stage.run(&script)?;
    Ok(())
}

/// A mount for writing does the basics, and a mount with the options of the row checks them. Both
/// are the same mount unless the row is about a read-only mount.
fn write_row(script: &mut String, options: &str, check: &str) -> Result<()> {
    let first = if options == "ro" { "rw" } else { options };
    writeln!(script, "ROW='{options}'; dmesg -C")?;
    writeln!(
        script,
        "{}",
        mount_command("a", &format!("vers=3.1.1,{first}"))
    )?;
    writeln!(script, "mkdir /mnt/a/work; cd /mnt/a/work; basics")?;
    if first != options {
        writeln!(script, "cd /; umount /mnt/a")?;
        writeln!(
            script,
            "{}",
            mount_command("a", &format!("vers=3.1.1,{options}"))
        )?;
        writeln!(script, "cd /mnt/a/work")?;
    }
    writeln!(script, "{check}\ncd /; umount /mnt/a; rm -r $SHARE/work")?;
    Ok(())
}
