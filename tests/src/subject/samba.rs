//! The lab's smbd as the server under test.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::{Share, Site};
use crate::lab::Lab;

/// Writes the configuration and the users.
pub(super) fn prepare(site: &Site<'_>) -> Result<()> {
    let lab = lab(site)?;
    for directory in ["private", "lock", "state", "cache", "pid", "rpc"] {
        fs::create_dir(site.directory.join(directory))?;
    }
    fs::write(configuration(site), text(site))?;
    for user in site.users() {
        let mut child = lab
            .command("smbpasswd")
            .arg("-c")
            .arg(configuration(site))
            .args(["-s", "-a", user.name])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut input = child.stdin.take().context("the input was piped")?;
        write!(input, "{0}\n{0}\n", user.password)?;
        drop(input);
        ensure!(
            child.wait()?.success(),
            "smbpasswd does not add {}",
            user.name
        );
    }
    Ok(())
}

/// The command that runs the server.
pub(super) fn command(site: &Site<'_>, holder: Option<u32>) -> Result<Command> {
    let mut command = lab(site)?.command_under(holder, "smbd");
    command
        .args(["-F", "--no-process-group", "--debug-stdout", "-s"])
        .arg(configuration(site));
    Ok(command)
}

fn lab<'a>(site: &Site<'a>) -> Result<&'a Lab> {
    site.lab.context("smbd runs in the lab")
}

fn configuration(site: &Site<'_>) -> PathBuf {
    site.directory.join("smb.conf")
}

fn text(site: &Site<'_>) -> String {
    let directory = site.directory.display();
    let (tcp, nbt) = (site.tcp().port(), site.nbt().port());
    let ip = *site.tcp().ip();
    let interface = match site.plan.channels {
        false => format!("127.0.0.1/8 {ip}/24"),
        // The first word about an address counts.
        true => format!("\"{ip}/24;speed=1000000000,capability=RSS\" 127.0.0.1/8"),
    };
    let mut text = format!(
        "[global]\n\
         server role = standalone server\n\
         map to guest = never\n\
         bind interfaces only = yes\n\
         interfaces = {interface}\n\
         server smb transports = tcp:{tcp}, nbt:{nbt}\n\
         disable netbios = yes\n\
         private dir = {directory}/private\n\
         lock directory = {directory}/lock\n\
         state directory = {directory}/state\n\
         cache directory = {directory}/cache\n\
         pid directory = {directory}/pid\n\
         ncalrpc dir = {directory}/rpc\n\
         load printers = no\n\
         log level = 1\n"
    );
    for (key, wanted) in [
        ("server signing = mandatory", site.plan.signing_required),
        (
            "server smb encrypt = required",
            site.plan.encryption_required,
        ),
    ] {
        if wanted {
            text.push_str(key);
            text.push('\n');
        }
    }
    if let Some(dialect) = site.plan.max_dialect {
        let _ = writeln!(text, "server max protocol = {}", protocol(dialect));
    }
    for line in &site.plan.samba_globals {
        text.push_str(line);
        text.push('\n');
    }
    for share in &site.plan.shares {
        let Share {
            name,
            path,
            read_only,
            encryption_required,
            users,
            guests,
            oplocks,
            notify,
            direct: _,
            large_streams: _,
            sync,
            keys: _,
        } = share;
        let yes = |flag: bool| if flag { "yes" } else { "no" };
        let path = path.display();
        let _ = write!(
            text,
            "[{name}]\npath = {path}\nread only = {}\nguest ok = {}\noplocks = {}\n\
             change notify = {}\nstrict sync = {}\nsync always = {}\n",
            yes(*read_only),
            yes(*guests),
            yes(*oplocks),
            yes(*notify),
            yes(*sync != "client"),
            yes(*sync == "always"),
        );
        if *encryption_required {
            text.push_str("server smb encrypt = required\n");
        }
        if !users.is_empty() {
            let _ = writeln!(text, "valid users = {}", users.join(" "));
        }
    }
    text
}

/// smbd's name of a dialect: `SMB3_02` is 3.0.2.
fn protocol(dialect: &str) -> String {
    let (major, minor) = dialect.split_once('.').unwrap_or((dialect, ""));
    let minor = minor.replace('.', "");
    format!("SMB{major}_{minor:0<2}")
}
