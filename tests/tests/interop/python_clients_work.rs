//! smbprotocol, impacket and pysmb list, put, get, rename and delete in every dialect that they
//! speak, with and without signatures and encryption. The first two open files with FILE_WRITE_DATA
//! only, and check statuses that smbclient does not check.

use std::path::Path;

use anyhow::{Context as _, Result};
use smbeam_tests::lab::Lab;
use smbeam_tests::python::Python;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, Plan, Server, Share};
use smbeam_tests::tests;

tests!(smbprotocol_works, impacket_works, pysmb_works);

const SMBPROTOCOL: &str = include_str!("../../src/python/smbprotocol_works.py");
const IMPACKET: &str = include_str!("../../src/python/impacket_works.py");
const PYSMB: &str = include_str!("../../src/python/pysmb_works.py");
/// The protection that the server requires.
const PROTECTIONS: [&str; 3] = ["none", "sign", "encrypt"];

fn smbprotocol_works() -> Result<()> {
    for protection in PROTECTIONS {
        let dialects: &[&str] = match protection {
            // It does not sign the tree connect unless it signs all, which 3.1.1 asks for.
            // [MS-SMB2] 3.3.5.7
            "none" => &["2.0.2", "2.1", "3.0", "3.0.2"],
            "sign" => &["2.0.2", "2.1", "3.0", "3.0.2", "3.1.1"],
            _ => &["3.0", "3.0.2", "3.1.1"],
        };
        work(SMBPROTOCOL, protection, dialects, &[protection])?;
    }
    Ok(())
}

fn impacket_works() -> Result<()> {
    for protection in PROTECTIONS {
        let dialects: &[&str] = match protection {
            "encrypt" => &["3.0", "3.1.1"],
            _ => &["2.0.2", "2.1", "3.0", "3.1.1"],
        };
        work(IMPACKET, protection, dialects, &[])?;
    }
    Ok(())
}

/// Which speaks 2.0.2 and 2.1 and chooses by itself.
fn pysmb_works() -> Result<()> {
    for is_signed in [false, true] {
        let scratch = Scratch::new("pysmb")?;
        let mut plan = Plan::sharing(&scratch.open_directory("share")?);
        plan.signing_required = is_signed;
        let server = Server::start(&Lab::find()?, plan)?;
        for transport in ["tcp", "nbt"] {
            let port = server.address(transport).port().to_string();
            let arguments = [&*port, "data", ALICE.name, ALICE.password, transport];
            Python::find()?
                .run(PYSMB, &arguments)
                .with_context(|| format!("{transport}, signed: {is_signed}"))?;
        }
    }
    Ok(())
}

fn work(program: &str, protection: &str, dialects: &[&str], more: &[&str]) -> Result<()> {
    let lab = Lab::find()?;
    let python = Python::find()?;
    let scratch = Scratch::new("python")?;
    let share = scratch.open_directory("share")?;
    // On another file system, to be copied to.
    let elsewhere = Scratch::below(Path::new("/dev/shm"), "python")?;
    let mut plan = Plan::sharing(&share);
    let other = Share::new("other", &elsewhere.open_directory("other")?);
    plan.shares.push(other);
    plan.signing_required = protection == "sign";
    plan.encryption_required = protection == "encrypt";
    let server = Server::start(&lab, plan)?;
    let port = server.tcp.port().to_string();
    for dialect in dialects {
        let mut arguments = vec![&*port, "data", ALICE.name, ALICE.password, dialect];
        arguments.extend(more);
        python
            .run(program, &arguments)
            .with_context(|| format!("{dialect}, protection: {protection}"))?;
    }
    Ok(())
}
