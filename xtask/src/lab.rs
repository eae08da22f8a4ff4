//! `cargo xtask lab`: builds the peers for the tests, in a cache directory outside of the
//! repository.
//!
//! Each part has a recipe with a number, and a stamp with the number of the finished build. A
//! finished part is not built again, an interrupted build starts again, and a changed recipe causes
//! a new build. A lock keeps two runs apart.

mod browser;
mod debian;
mod guest;
mod kernel;
mod monitoring;
mod nfs;
mod rdma;
mod samba;
mod scripts;
mod suites;
mod torch;

use std::fs::{self, File};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use smbeam_tests::lab::{Lab, Part, directory, is_root};
use smbeam_tests::script::{ATTACKS, FIELD};

use crate::host::{self, Tool};

const TOOLS: &[Tool] = &[
    Tool {
        program: "debootstrap",
        package: "debootstrap",
    },
    Tool {
        program: "ip",
        package: "iproute2",
    },
    Tool {
        program: "unshare",
        package: "util-linux",
    },
    Tool {
        program: "mount",
        package: "mount",
    },
];

/// Builds the lab, or runs a command in it.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        [] | ["build"] => build().map(|_| ExitCode::SUCCESS),
        ["browser"] => {
            build()?;
            build_part(Part::Browser).map(|_| ExitCode::SUCCESS)
        }
        ["torch"] => {
            build()?;
            build_part(Part::Torch).map(|_| ExitCode::SUCCESS)
        }
        ["rdma"] => build_rdma().map(|_| ExitCode::SUCCESS),
        ["field", rest @ ..] => scripts::run(FIELD, rest),
        ["attacks", rest @ ..] => scripts::run(ATTACKS, rest),
        ["path"] => {
            println!("{}", directory().display());
            Ok(ExitCode::SUCCESS)
        }
        ["run", program, rest @ ..] => {
            let lab = Lab::find()?;
            let status = lab
                .command(program)
                .args(rest)
                .status()
                .context("cannot enter the lab")?;
            Ok(ExitCode::from(
                status
                    .code()
                    .map_or(1, |code| u8::try_from(code).unwrap_or(1)),
            ))
        }
        _ => bail!(
            "usage: cargo xtask lab [build | browser | torch | rdma | path | \
             run CMD [ARG]... | field [NAME]... | attacks [--figures] [NAME]...]"
        ),
    }
}

/// Builds the missing parts of the lab and returns it.
pub(crate) fn build() -> Result<Lab> {
    let lab = build_part(Part::Samba)?;
    build_part(Part::Guest)?;
    build_part(Part::Suites)?;
    build_part(Part::Monitoring)?;
    Ok(lab)
}

/// Builds the guest with RDMA, and the parts that it needs.
pub(crate) fn build_rdma() -> Result<Lab> {
    build()?;
    build_part(Part::Rdma)
}

/// Builds one part of the lab if it is missing. The guests use the root file system of the Samba
/// part.
pub(crate) fn build_part(part: Part) -> Result<Lab> {
    let directory = directory();
    if !is_root() {
        bail!("the lab needs root, because it is a root file system for chroot");
    }
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let _lock = lock(&directory)?;
    let lab = Lab::at(&directory);
    if lab.holds(part) {
        println!("lab: {} is ready in {}", part.name(), lab.root().display());
        return Ok(lab);
    }
    host::ensure(TOOLS)?;
    let start = Instant::now();
    println!("lab: building {} in {}", part.name(), lab.root().display());
    let built = match part {
        Part::Samba => samba::build(&lab),
        Part::Guest => guest::build(&lab),
        Part::Suites => suites::build(&lab),
        Part::Monitoring => monitoring::build(&lab),
        Part::Browser => browser::build(&lab),
        Part::Torch => torch::build(&lab),
        Part::Nfs => nfs::build(&lab),
        Part::Rdma => rdma::build(&lab),
    };
    built.with_context(|| format!("cannot build the lab's part {}", part.name()))?;
    stamp(&lab, part)?;
    println!(
        "lab: {} built in {:.0} s",
        part.name(),
        start.elapsed().as_secs_f64()
    );
    Ok(lab)
}

fn stamp(lab: &Lab, part: Part) -> Result<()> {
    let stamp = lab.stamp(part);
    fs::create_dir_all(stamp.parent().context("a stamp has a parent directory")?)?;
    fs::write(&stamp, part.recipe()).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Waits until no other run builds in `directory`.
fn lock(directory: &Path) -> Result<File> {
    let path = directory.join("lock");
    let file = File::create(&path).with_context(|| format!("cannot open {}", path.display()))?;
    if file.try_lock().is_err() {
        println!("lab: waiting for another run that holds {}", path.display());
        file.lock()
            .with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}
