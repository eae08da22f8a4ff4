//! libsmb2, which media players, consoles and televisions speak SMB with, lists, puts, gets, cuts,
//! renames and deletes, plain, signed and encrypted, in every dialect; many READs are in flight at
//! once.

use anyhow::{Result, ensure};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, Plan, Server};
use smbeam_tests::tests;

tests!(plain_messages_work, signing_works, encryption_works);

const PROGRAM: &str = include_str!("../../src/python/libsmb2_works.py");

fn plain_messages_work() -> Result<()> {
    works("none", &["any", "2.0.2", "2.1", "3.0", "3.0.2", "3.1.1"])
}

fn signing_works() -> Result<()> {
    works("sign", &["any", "2.0.2", "2.1", "3.0", "3.0.2", "3.1.1"])
}

fn encryption_works() -> Result<()> {
    works("encrypt", &["any", "3.0", "3.0.2", "3.1.1"])
}

fn works(protection: &str, dialects: &[&str]) -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("libsmb2")?;
    let mut plan = Plan::sharing(&scratch.open_directory("share")?);
    plan.signing_required = protection == "sign";
    plan.encryption_required = protection == "encrypt";
    let server = Server::start(&lab, plan)?;
    let port = server.tcp.port().to_string();
    for dialect in dialects {
        let login = [&*port, "data", ALICE.name, ALICE.password];
        let mut python = lab.command("python3");
        python.args(["-c", PROGRAM]).args(login);
        let output = python.args([dialect, protection]).output()?;
        let (status, said) = (output.status, String::from_utf8_lossy(&output.stderr));
        ensure!(status.success(), "{dialect}: {status}: {}", said.trim_end());
    }
    Ok(())
}
