//! The container image, in the layout of the Open Container Initiative, by umoci: the binary, the
//! libraries that it loads, and the files that look-ups of users and hosts need.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::stage::{Stage, directory};
use crate::host::{self, Tool};
use crate::process::quiet;

const UMOCI: &[Tool] = &[Tool {
    program: "umoci",
    package: "umoci",
}];
/// Accounts of the image: root, and one for servers without root.
const PASSWD: &str = "root:x:0:0:root:/:/sbin/nologin\nsmbeam:x:1000:1000::/:/sbin/nologin\n";
const GROUP: &str = "root:x:0:\nsmbeam:x:1000:\n";
const SWITCH: &str = "passwd: files\ngroup: files\nhosts: files dns\n";
/// Libraries that are loaded by name when a host name or a user is looked up.
const LOADED: [&str; 2] = ["libnss_files.so.2", "libnss_dns.so.2"];
/// Directories of the image and their modes.
const DIRECTORIES: [(&str, u32); 6] = [
    ("tmp", 0o1777),
    ("run/smbeam", 0o777),
    ("var/lib/smbeam", 0o777),
    ("srv/data", 0o777),
    ("etc/smbeam/conf.d", 0o755),
    ("dev", 0o755),
];
/// The command of a container: shares and users come from environment variables and volumes.
const CONFIG: &[&str] = &[
    "--config.entrypoint=/usr/bin/smbeam",
    "--config.cmd=serve",
    "--config.cmd=--config",
    "--config.cmd=/etc/smbeam/smbeam.toml",
    "--config.env=SMBEAM_SERVER__STATE_DIRECTORY=/var/lib/smbeam",
    // The control socket of a server without root is there, too.
    "--config.env=XDG_RUNTIME_DIR=/run",
    "--config.volume=/var/lib/smbeam",
    "--config.volume=/srv/data",
    "--config.exposedports=445/tcp",
    "--config.exposedports=443/udp",
    "--config.stopsignal=SIGTERM",
];

/// Makes the directory `image`, with the tag of the version.
pub(super) fn make(stage: &Stage) -> Result<String> {
    host::ensure(UMOCI)?;
    let root = directory().join("image-root");
    fill(stage, &root)?;
    let layout = directory().join("image");
    if layout.exists() {
        fs::remove_dir_all(&layout)?;
    }
    let tagged = format!("{}:{}", layout.display(), stage.version);
    let umoci = |arguments: &[&str]| quiet(Command::new("umoci").args(arguments)).map(drop);
    umoci(&["init", "--layout", &layout.to_string_lossy()])?;
    umoci(&["new", "--image", &tagged])?;
    umoci(&["insert", "--image", &tagged, &root.to_string_lossy(), "/"])?;
    let mut config = vec!["config", "--image", &tagged];
    config.extend(CONFIG);
    umoci(&config)?;
    fs::remove_dir_all(&root)?;
    Ok("image".to_owned())
}

/// Fills the root file system of the image.
fn fill(stage: &Stage, root: &Path) -> Result<()> {
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    for (directory, mode) in DIRECTORIES {
        let directory = root.join(directory);
        fs::create_dir_all(&directory)?;
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode))?;
    }
    for (name, text) in [
        ("etc/passwd", PASSWD),
        ("etc/group", GROUP),
        ("etc/nsswitch.conf", SWITCH),
    ] {
        fs::write(root.join(name), text)?;
    }
    copy(
        &stage.root.join("etc/smbeam/smbeam.toml"),
        root,
        "etc/smbeam/smbeam.toml",
    )?;
    let binary = stage.root.join("usr/bin/smbeam");
    copy(&binary, root, "usr/bin/smbeam")?;
    for library in libraries(&binary)? {
        let place = library.strip_prefix("/").unwrap_or(&library).to_owned();
        copy(&library, root, &place.to_string_lossy())?;
    }
    Ok(())
}

fn copy(source: &Path, root: &Path, place: &str) -> Result<()> {
    let place = root.join(place);
    fs::create_dir_all(place.parent().context("a place has a parent directory")?)?;
    fs::copy(source, &place).with_context(|| source.display().to_string())?;
    Ok(())
}

/// The libraries of a binary, with the loader, and those that the C library loads by name.
fn libraries(binary: &Path) -> Result<Vec<PathBuf>> {
    let text = quiet(Command::new("ldd").arg(binary))?;
    // `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)`; the loader has no arrow.
    let words = text.lines().map(|line| line.split_whitespace());
    let mut found: Vec<PathBuf> = words
        .filter_map(|mut words| words.find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect();
    let beside = found.iter().find(|it| it.ends_with("libc.so.6"));
    let beside = beside.and_then(|it| it.parent()).map(Path::to_path_buf);
    let loaded = LOADED
        .iter()
        .filter_map(|name| Some(beside.as_ref()?.join(name)));
    found.extend(loaded.filter(|path| path.exists()));
    Ok(found)
}
