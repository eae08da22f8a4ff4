//! Building all test programs at once, with one set of features and one profile.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::cargo::cargo;

/// The package whose tests need peers.
const INTEROP_PACKAGE: &str = "smbeam-tests";
/// The program that holds the cases of these tests.
const INTEROP_TARGET: &str = "interop";
/// The binary that they start.
const BINARY: &str = "smbeam";

/// The programs of one build.
pub(crate) struct Built {
    /// The programs of libtest: unit tests and integration tests.
    pub(crate) unit: Vec<Program>,
    /// The program with the interop cases.
    pub(crate) interop: PathBuf,
    /// The `smbeam` binary.
    pub(crate) binary: PathBuf,
    /// The directory of the examples.
    pub(crate) examples: PathBuf,
}

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// The package and the target, as `smbeam-sim simulation`.
    pub(crate) name: String,
    /// The executable file.
    pub(crate) path: PathBuf,
    /// The directory of the package, where the program runs.
    pub(crate) directory: PathBuf,
}

/// An executable file that cargo reports.
enum Artifact {
    Unit(Program),
    Interop(PathBuf),
    Binary(PathBuf),
    Example(PathBuf),
}

/// Builds the test programs, the binary and the examples of the workspace.
///
/// # Errors
/// Cargo cannot be run, or something does not compile.
pub(crate) fn run() -> Result<Built> {
    // Not `cargo test --no-run`: it leaves out the binary, which would need a second build with
    // the features of no development dependency.
    let targets = ["--lib", "--bins", "--tests", "--examples"];
    let artifacts = compile(&[&["build", "--workspace"], targets.as_slice()].concat())?;
    let mut unit = Vec::new();
    let (mut interop, mut binary, mut example) = (None, None, None);
    for artifact in artifacts {
        match artifact {
            Artifact::Unit(program) => unit.push(program),
            Artifact::Interop(path) => interop = Some(path),
            Artifact::Binary(path) => binary = Some(path),
            Artifact::Example(path) => example = path.parent().map(Path::to_path_buf),
        }
    }
    Ok(Built {
        unit,
        interop: interop.context("cargo reports no interop program")?,
        binary: binary.context("cargo reports no smbeam binary")?,
        examples: example.context("cargo reports no example")?,
    })
}

fn compile(arguments: &[&str]) -> Result<Vec<Artifact>> {
    let mut child = cargo(arguments)
        .args(["--message-format", "json-render-diagnostics"])
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let output = child.stdout.take().context("the output was piped")?;
    let mut artifacts = Vec::new();
    for line in BufReader::new(output).lines() {
        artifacts.extend(artifact(&line?));
    }
    let status = child.wait()?;
    ensure!(status.success(), "cargo {} failed", arguments.join(" "));
    Ok(artifacts)
}

/// The executable file that a message of cargo reports, if the tests need it.
fn artifact(line: &str) -> Option<Artifact> {
    let message: Value = serde_json::from_str(line).ok()?;
    let path = PathBuf::from(message["executable"].as_str()?);
    let directory = Path::new(message["manifest_path"].as_str()?).parent()?;
    let target = message["target"]["name"].as_str()?;
    let kind = message["target"]["kind"][0].as_str()?;
    let is_test = message["profile"]["test"].as_bool()?;
    let package = package(message["package_id"].as_str()?);
    match (kind, is_test) {
        ("bin", false) if target == BINARY => Some(Artifact::Binary(path)),
        ("example", false) if package == "smbeam-client" => Some(Artifact::Example(path)),
        ("test", true) if package == INTEROP_PACKAGE && target == INTEROP_TARGET => {
            Some(Artifact::Interop(path))
        }
        (_, true) => Some(Artifact::Unit(Program {
            name: format!("{package} {target}"),
            path,
            directory: directory.to_path_buf(),
        })),
        _ => None,
    }
}

/// The name in a package id: `path+file:///x/wire#smbeam-wire@0.1.0`, or
/// `path+file:///x/xtask#0.1.0` where the directory has the same name.
fn package(id: &str) -> &str {
    let (place, version) = id.split_once('#').unwrap_or((id, ""));
    match version.split_once('@') {
        Some((name, _)) => name,
        None => place.rsplit('/').next().unwrap_or(place),
    }
}

#[cfg(test)]
mod tests {
    use super::package;

    #[test]
    fn a_package_id_names_its_package() {
        assert_eq!(
            package("path+file:///x/wire#smbeam-wire@0.1.0"),
            "smbeam-wire"
        );
        assert_eq!(package("path+file:///x/xtask#0.1.0"), "xtask");
    }
}
