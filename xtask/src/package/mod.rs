//! `cargo xtask package`: what users install. Everything is in the directory `dist`: packages of
//! Debian and RPM, an archive, a container image, a bill of materials, the wheel of the Python
//! package, and their checksums.

mod archive;
mod bill;
mod deb;
mod image;
mod rpm;
mod stage;
mod static_binary;
mod tools;
mod wheel;

use std::cell::OnceCell;
use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use self::stage::Stage;
pub(crate) use self::stage::directory;
use crate::process::quiet;

/// The function that makes a product. It returns the name of the file or directory.
enum Make {
    /// From the tree of files.
    OfTree(fn(&Stage) -> Result<String>),
    /// Without that tree.
    Alone(fn() -> Result<String>),
}

const PRODUCTS: &[(&str, Make)] = &[
    ("tar", Make::OfTree(archive::make)),
    ("deb", Make::OfTree(deb::make)),
    ("rpm", Make::OfTree(rpm::make)),
    ("image", Make::OfTree(image::make)),
    ("sbom", Make::OfTree(bill::make)),
    ("static", Make::OfTree(static_binary::make)),
    ("python", Make::Alone(wheel::make)),
];
/// The file with the checksums.
const SUMS: &str = "SHA256SUMS";

/// Makes the named products, or all of them.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let is_known = |name: &&String| PRODUCTS.iter().any(|(it, _)| it == name);
    if let Some(name) = arguments.iter().find(|name| !is_known(name)) {
        let known: Vec<_> = PRODUCTS.iter().map(|(name, _)| *name).collect();
        bail!("no product {name}: package [{}]", known.join(" | "));
    }
    let is_wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|it| it == name);
    let stage = OnceCell::new();
    for (name, make) in PRODUCTS.iter().filter(|(name, _)| is_wanted(name)) {
        let made = match make {
            Make::OfTree(make) => {
                if stage.get().is_none() {
                    let _ = stage.set(Stage::build()?);
                }
                make(stage.get().context("the tree was just made")?)
            }
            Make::Alone(make) => make(),
        };
        let made = made.with_context(|| format!("cannot make the product {name}"))?;
        println!("package: {}", directory().join(made).display());
    }
    sum()?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the checksums of all files in the directory.
fn sum() -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory())? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name() != SUMS {
            names.push(entry.file_name());
        }
    }
    names.sort();
    let mut command = Command::new("sha256sum");
    let sums = quiet(command.args(names).current_dir(directory()))?;
    fs::write(directory().join(SUMS), sums)?;
    Ok(())
}
