//! The RDMA part: a guest with software RDMA devices, and with cifs.ko and ksmbd with SMB Direct.
//! It boots from the root file system of the other parts.

use std::fs;

use anyhow::{Context as _, Result, bail};
use smbeam_tests::guest::Guest;
use smbeam_tests::lab::{KSMBD_DIRECTORY, Lab, RDMA_KERNEL};
use smbeam_tests::rdma;

use super::{debian, guest, kernel};
use crate::process::quiet;

/// RDMA libraries and test programs, and the dependencies of the tools of ksmbd.
const PACKAGES: &[&str] = &[
    "ibverbs-providers",
    "ibverbs-utils",
    "rdmacm-utils",
    "libglib2.0-0t64",
    "libnl-genl-3-200",
];
/// This package conflicts with Samba, so it is unpacked instead of installed.
const KSMBD_PACKAGE: &str = "ksmbd-tools";

/// Adds kernel and programs to the root file system, and boots it once.
pub(super) fn build(lab: &Lab) -> Result<()> {
    let built = kernel::ready()?;
    debian::install(lab, PACKAGES)?;
    unpack_ksmbd(lab)?;
    guest::write_init(lab)?;
    let place = lab.root().join(RDMA_KERNEL.trim_start_matches('/'));
    let draft = place.with_extension("unfinished");
    fs::copy(&built, &draft).with_context(|| format!("cannot copy {}", built.display()))?;
    debian::make_executable(&draft)?;
    fs::rename(&draft, &place)?;
    boot(lab)
}

fn unpack_ksmbd(lab: &Lab) -> Result<()> {
    let directory = lab.root().join(KSMBD_DIRECTORY.trim_start_matches('/'));
    debian::remove(&directory)?;
    fs::create_dir_all(&directory)?;
    // apt downloads and verifies the package, and dpkg unpacks it into a separate directory.
    let script = format!(
        "set -e; cd {KSMBD_DIRECTORY}; apt-get download {KSMBD_PACKAGE}; \
         dpkg-deb -x {KSMBD_PACKAGE}_*.deb .; rm {KSMBD_PACKAGE}_*.deb"
    );
    quiet(lab.command("sh").args(["-c", &script]))?;
    Ok(())
}

/// Checks that programs can communicate over both devices, and that cifs.ko can mount ksmbd over
/// each.
fn boot(lab: &Lab) -> Result<()> {
    let report = Guest::with_rdma(lab).run(&rdma::script(include_str!("rdma-boot.sh"), &[]))?;
    if report.code != Some(0) {
        bail!("the guest has no working RDMA:\n{}", report.console);
    }
    println!("lab: the guest boots with siw and rxe, and mounts ksmbd over both");
    Ok(())
}
