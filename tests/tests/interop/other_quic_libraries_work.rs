//! QUIC libraries that smbeam does not use carry a client's work as TCP does, with every choice
//! that the protocol leaves to them.

use anyhow::{Context as _, Result};
use smbeam_tests::certificates::Authority;
use smbeam_tests::lab::{Lab, Missing};
use smbeam_tests::python::Python;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, Plan, Server, Subject};
use smbeam_tests::tests;

tests!(
    aioquic_works_with_every_cipher,
    aioquic_that_prefers_version_2_falls_back_to_version_1,
    aioquic_may_change_keys_and_identifiers_at_any_time,
);

const BRIDGE: &str = include_str!("../../src/python/aioquic_bridge.py");
const CLIENT: &str = include_str!("../../src/python/smbprotocol_works.py");

fn aioquic_works_with_every_cipher() -> Result<()> {
    work(&["aes128", "aes256", "chacha20"])
}

fn aioquic_that_prefers_version_2_falls_back_to_version_1() -> Result<()> {
    work(&["version2"])
}

/// Every byte comes in pieces that no message is made for, besides.
fn aioquic_may_change_keys_and_identifiers_at_any_time() -> Result<()> {
    work(&["restless"])
}

fn work(manners: &[&str]) -> Result<()> {
    if Subject::chosen() == Subject::Samba {
        return Err(Missing("smbd needs a module of the kernel for QUIC".into()).into());
    }
    let lab = Lab::find()?;
    let python = Python::find()?;
    let scratch = Scratch::new("aioquic")?;
    let authority = Authority::new(scratch.path(), "authority")?;
    let mut plan = Plan::sharing(&scratch.open_directory("share")?);
    plan.quic = authority.server(&["localhost"])?.settings();
    let server = Server::start(&lab, plan)?;
    let port = server.address("quic").port().to_string();
    let authority = authority.file.display().to_string();
    for manner in manners {
        let arguments = [
            &*port,
            &authority,
            manner,
            CLIENT,
            "data",
            ALICE.name,
            ALICE.password,
            // In the newest it copies files besides, which would take a library in Python minutes.
            "3.0.2",
            "encrypt",
        ];
        python
            .run(BRIDGE, &arguments)
            .with_context(|| (*manner).to_owned())?;
    }
    Ok(())
}
