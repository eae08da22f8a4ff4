//! `smbeam mount`: a share of a server as a directory of this machine.

mod background;
mod helper;
mod status;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use rustix::process::setsid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use smbeam_client::{Share, Wait as _};
use smbeam_mount::{MountOptions, Mounted, Unmounter};

use crate::connect::{ConnectArguments, Connector, log_off};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::RemotePath;
use crate::location::{Url, shown};
use crate::output;
use crate::report::Report;

pub(crate) use helper::arguments;

/// Time in which the kernel ends the file system after it is unmounted. It can fail to: while
/// another mount namespace, such as that of a container, has a copy of the mount, it stays.
const END_LIMIT: Duration = Duration::from_secs(2);

/// Arguments of `smbeam mount`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The share, or a directory in a share.
    #[arg(
        value_name = "URL",
        value_parser = crate::location::url,
        required_unless_present = "status"
    )]
    url: Option<Url>,
    /// The directory of this machine that shows the share.
    #[arg(value_name = "DIR", required_unless_present = "status")]
    directory: Option<PathBuf>,
    /// Mount options: ro, allow_other, default_permissions, uid=N, gid=N, file_mode=MODE,
    /// dir_mode=MODE, posix, noposix, cache=strict|loose|none, actimeo=SECONDS, channels=N,
    /// transports=LIST, reconnect_s=SECONDS, user=NAME, password_file=FILE, credentials=FILE, and
    /// options of mount(8) such as noexec.
    #[arg(short = 'o', long = "options", value_name = "OPTION,...")]
    options: Vec<String>,
    /// Stay in the foreground until the share is unmounted.
    #[arg(short, long)]
    foreground: bool,
    /// List the mounts of this user, with counters.
    #[arg(long, conflicts_with_all = ["url", "options", "foreground"])]
    status: bool,
    /// With --status: print one object of JSON per line.
    #[arg(long, requires = "status")]
    json: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam mount`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let is_foreground = arguments.foreground || background::is_child();
    let done = match (&arguments.url, &arguments.directory) {
        (Some(url), Some(target)) if is_foreground => mount(arguments, url, target),
        (Some(_), Some(_)) => background::start(),
        _ => status::list(arguments.json).map_err(Into::into),
    };
    match done {
        Ok(()) => {}
        Err(background::Error::Reported(code)) => std::process::exit(code),
        Err(background::Error::Own(failure)) => report.failed(&failure),
    }
}

fn mount(arguments: &Arguments, url: &Url, target: &Path) -> Result<(), background::Error> {
    let options = options(arguments, target)?;
    // The connection is made only for a directory that exists.
    let failed = |error: &std::io::Error| Failure::local(&shown(target), error);
    let target = target.canonicalize().map_err(|error| failed(&error))?;
    let signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(|error| failed(&error))?;
    let mut mounted = connect_and_mount(arguments, options, (url, &target))?;
    let mut unmounter = mounted.unmounter();
    std::thread::spawn(move || unmount_at_signal(signals, &mut unmounter));
    let _socket = status::serve((url, &target), mounted.statistics());
    background::ready(|| {
        // The child is no leader of a process group, so this succeeds.
        let _ = setsid();
        let _ = std::env::set_current_dir("/");
    });
    mounted.run().map_err(|error| failed(&error).into())
}

fn options(arguments: &Arguments, target: &Path) -> Outcome<MountOptions> {
    let mut options = MountOptions::default();
    for list in &arguments.options {
        let applied = options.apply(list);
        applied.map_err(|error| Failure::usage(shown(target), error))?;
    }
    Ok(options)
}

fn connect_and_mount(
    arguments: &Arguments,
    options: MountOptions,
    (url, target): (&Url, &Path),
) -> Outcome<Mounted> {
    let mut connect = arguments.connect.profile();
    for (name, value) in &options.connect {
        let set = connect.set(name, value);
        set.map_err(|error| Failure::usage(url, error))?;
    }
    let mut connector = Connector::with_options(connect);
    if let Some(limit) = options.reconnect {
        connector = connector.reconnect(limit);
    }
    let remote = connector.remote_path(url)?;
    let metadata = remote.share.metadata(&remote.path).wait();
    if !metadata.map_err(remote.failed())?.is_dir() {
        return Err(Failure::usage(url, "not a directory"));
    }
    let source = url.to_string();
    let (share, base) = named_by(remote, options.posix)?;
    let mounted = Mounted::new(share, &base, (&source, target), options);
    mounted.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound if !Path::new("/dev/fuse").exists() => Failure::new(
            Exit::Failed,
            shown(target),
            "this system has no /dev/fuse; load the kernel module `fuse`",
        ),
        _ => Failure::local(&shown(target), &error),
    })
}

/// The share and the path of a directory in the names that the mount uses: exact ones, if the
/// server has the SMB3 POSIX extensions.
fn named_by(remote: RemotePath, posix: Option<bool>) -> Outcome<(Share, String)> {
    match remote.share.with_posix().filter(|_| posix != Some(false)) {
        None => Ok((remote.share, remote.path)),
        Some(share) => {
            let is_there = |path: &str| share.metadata(path).wait().map(|_| path.to_owned());
            let base = remote.by_exact_name(is_there)?;
            Ok((share, base))
        }
    }
}

/// Unmounts at the first signal. If programs use the mount, it disappears for other programs, and
/// the process ends.
fn unmount_at_signal(mut signals: Signals, unmounter: &mut Unmounter) {
    if signals.forever().next().is_none() {
        return;
    }
    let unmounted = unmounter.unmount();
    if unmounted.is_ok() {
        // The main thread ends the process, unless the file system stays.
        std::thread::sleep(END_LIMIT);
    }
    let code = match unmounted {
        Ok(()) => Exit::Success,
        Err(error) => {
            output::note(&format_args!("smbeam: mount: {error}"));
            Exit::Failed
        }
    };
    log_off();
    std::process::exit(code as i32);
}
