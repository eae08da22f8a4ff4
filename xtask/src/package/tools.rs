//! Subcommands of cargo that make packages. They are built from source once, in the cache.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::lab;

/// A subcommand of cargo and its version.
pub(super) struct CargoTool {
    name: &'static str,
    version: &'static str,
}

pub(super) const AUDITABLE: CargoTool = CargoTool {
    name: "cargo-auditable",
    version: "0.7.7",
};
pub(super) const DEB: CargoTool = CargoTool {
    name: "cargo-deb",
    version: "3.8.0",
};
pub(super) const RPM: CargoTool = CargoTool {
    name: "cargo-generate-rpm",
    version: "0.21.1",
};
pub(super) const CYCLONEDX: CargoTool = CargoTool {
    name: "cargo-cyclonedx",
    version: "0.5.9",
};

impl CargoTool {
    /// A command that runs the tool. Builds it if it is missing.
    pub(super) fn command(&self) -> Result<Command> {
        let root = root();
        let binary = root.join("bin").join(self.name);
        if !binary.exists() {
            println!("package: building {} {}", self.name, self.version);
            let built = Command::new("cargo")
                .args(["install", "--quiet", "--locked", "--root"])
                .arg(&root)
                .args(["--version", self.version, self.name])
                .env_remove("CARGO_TARGET_DIR")
                .status()
                .context("cannot run cargo")?;
            ensure!(built.success(), "{} does not build", self.name);
        }
        let mut command = Command::new(binary);
        // One tool can call the other ones.
        let path = env::var_os("PATH").unwrap_or_default();
        let directories = [root.join("bin")]
            .into_iter()
            .chain(env::split_paths(&path));
        command.env("PATH", env::join_paths(directories)?);
        // A subcommand gets its own name first.
        command.arg(self.name.trim_start_matches("cargo-"));
        Ok(command)
    }
}

/// The directory of the tools.
pub(super) fn root() -> PathBuf {
    lab::directory().with_file_name("tools")
}
