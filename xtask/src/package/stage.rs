//! The tree of files that every package has: `dist/root`, laid out as the root of a system.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::tools;
use crate::host::{self, BUILD_TOOLS, Tool};
use crate::process::quiet;
use crate::workspace::{target, workspace};

/// Largest binary in bytes.
const BINARY_MAX: u64 = 20_000_000;
const TOOLS: &[Tool] = &[Tool {
    program: "gzip",
    package: "gzip",
}];

/// Files of the repository: the source, the place in the tree, and the mode.
const FILES: &[(&str, &str, u32)] = &[
    ("packaging/etc/smbeam.toml", "etc/smbeam/smbeam.toml", 0o644),
    (
        "packaging/systemd/smbeam.service",
        "usr/lib/systemd/system/smbeam.service",
        0o644,
    ),
    (
        "packaging/systemd/smbeam.socket",
        "usr/lib/systemd/system/smbeam.socket",
        0o644,
    ),
    (
        "packaging/systemd/smbeam.tmpfiles",
        "usr/lib/tmpfiles.d/smbeam.conf",
        0o644,
    ),
    (
        "packaging/systemd/smbeam.sysusers",
        "usr/lib/sysusers.d/smbeam.conf",
        0o644,
    ),
    ("LICENSE-MIT", "usr/share/doc/smbeam/LICENSE-MIT", 0o644),
    (
        "LICENSE-APACHE",
        "usr/share/doc/smbeam/LICENSE-APACHE",
        0o644,
    ),
    ("CHANGELOG.md", "usr/share/doc/smbeam/CHANGELOG.md", 0o644),
    (
        "smbeam.example.toml",
        "usr/share/doc/smbeam/examples/smbeam.example.toml",
        0o644,
    ),
];
/// Directories of the repository with examples.
const EXAMPLES: &[&str] = &[
    "packaging/systemd/drop-in",
    "packaging/container",
    "contrib/grafana",
    "contrib/prometheus",
];
/// The place of a completion script for each shell.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/smbeam"),
    ("zsh", "usr/share/zsh/vendor-completions/_smbeam"),
    ("fish", "usr/share/fish/vendor_completions.d/smbeam.fish"),
];

/// The finished tree.
pub(super) struct Stage {
    pub(super) root: PathBuf,
    pub(super) version: String,
}

/// The directory of the products.
pub(crate) fn directory() -> PathBuf {
    workspace().join("dist")
}

impl Stage {
    /// Builds the binary, and fills the tree.
    pub(super) fn build() -> Result<Stage> {
        host::ensure(BUILD_TOOLS)?;
        host::ensure(TOOLS)?;
        println!("package: building smbeam");
        let mut build = tools::AUDITABLE.command()?;
        let built = build
            .args(["build", "--profile", "dist"])
            .args(["--package", "smbeam", "--bin", "smbeam"])
            .current_dir(workspace())
            .status()?;
        ensure!(built.success(), "smbeam does not build");
        let root = directory().join("root");
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        let stage = Stage {
            root,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        stage.fill()?;
        Ok(stage)
    }

    fn fill(&self) -> Result<()> {
        let binary = self.put(&target().join("dist/smbeam"), "usr/bin/smbeam", 0o755)?;
        let len = fs::metadata(&binary)?.len();
        ensure!(len <= BINARY_MAX, "the binary has {len} bytes");
        for (source, place, mode) in FILES {
            self.put(&workspace().join(source), place, *mode)?;
        }
        for directory in EXAMPLES {
            for entry in fs::read_dir(workspace().join(directory))? {
                let entry = entry?;
                let name = entry.file_name();
                let place = Path::new("usr/share/doc/smbeam/examples").join(name);
                self.put(&entry.path(), &place.to_string_lossy(), 0o644)?;
            }
        }
        // mount(8) runs this program for the type `smbeam`.
        let helper = self.parent("usr/sbin/mount.smbeam")?;
        symlink("../bin/smbeam", helper)?;
        self.generate(&binary)
    }

    /// Copies a file to its place in the tree.
    fn put(&self, source: &Path, place: &str, mode: u32) -> Result<PathBuf> {
        let place = self.parent(place)?;
        fs::copy(source, &place).with_context(|| source.display().to_string())?;
        fs::set_permissions(&place, fs::Permissions::from_mode(mode))?;
        Ok(place)
    }

    /// Makes the parent directory of a place in the tree.
    fn parent(&self, place: &str) -> Result<PathBuf> {
        let place = self.root.join(place);
        let parent = place.parent().context("a place has a parent directory")?;
        fs::create_dir_all(parent)?;
        Ok(place)
    }

    /// Lets the binary write its manual pages and completions.
    fn generate(&self, binary: &Path) -> Result<()> {
        let pages = self.root.join("usr/share/man/man1");
        quiet(Command::new(binary).arg("man").arg(&pages))?;
        for entry in fs::read_dir(&pages)? {
            let path = entry?.path();
            let section = path.extension().unwrap_or_default().to_owned();
            let mut place = path.clone();
            if section != "1" {
                let name = path.file_name().context("a page has a name")?;
                let section = section.to_string_lossy();
                place = self.parent(&format!(
                    "usr/share/man/man{section}/{}",
                    name.to_string_lossy()
                ))?;
                fs::rename(&path, &place)?;
            }
            quiet(Command::new("gzip").args(["-9", "-n"]).arg(place))?;
        }
        for (shell, place) in COMPLETIONS {
            let script = quiet(Command::new(binary).args(["completions", shell]))?;
            fs::write(self.parent(place)?, script)?;
        }
        Ok(())
    }
}
