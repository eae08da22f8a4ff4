//! `cargo xtask package`: what users install. Everything is in the directory `dist`: packages of
//! Debian and RPM, an archive, a container image, a bill of materials, and their checksums.

mod archive;
mod bill;
mod deb;
mod image;
mod rpm;
mod stage;
mod static_binary;
mod tools;

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use self::stage::Stage;
pub(crate) use self::stage::directory;
use crate::process::quiet;

/// A product and the function that makes it. It returns the name of the file or directory.
type Product = (&'static str, fn(&Stage) -> Result<String>);

const PRODUCTS: &[Product] = &[
    ("tar", archive::make),
    ("deb", deb::make),
    ("rpm", rpm::make),
    ("image", image::make),
    ("sbom", bill::make),
    ("static", static_binary::make),
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
    let stage = Stage::build()?;
    for (name, make) in PRODUCTS.iter().filter(|(name, _)| is_wanted(name)) {
        let made = make(&stage).with_context(|| format!("cannot make the product {name}"))?;
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
