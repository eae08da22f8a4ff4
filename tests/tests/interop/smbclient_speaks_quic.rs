//! A stock smbclient, with its own QUIC, lists, puts and gets over QUIC, and does not
//! come in where the certificates do not allow it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::certificates::{Authority, Files};
use smbeam_tests::files::{assert_same_file, assert_same_tree, write_random};
use smbeam_tests::lab::Lab;
use smbeam_tests::scale;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::{Framing, Protection, Smbclient};
use smbeam_tests::subject::{Plan, Server};
use smbeam_tests::{tests, wait};

tests!(
    a_large_file_comes_whole,
    uploads_arrive_whole,
    a_thousand_files_come_back,
    a_server_of_another_name_is_not_believed,
    a_server_of_an_unknown_authority_is_not_believed,
    a_client_without_a_certificate_is_refused_where_one_is_required,
);

/// Length of a large file in bytes: no multiple of anything, and larger than every window.
fn large_bytes() -> u64 {
    scale::choose(66 << 20, 1 << 30) + 12_345
}

/// The name by which smbclient knows the server: it takes no address over QUIC.
const NAME: &str = "localhost";

/// A server with a certificate, and the authority that vouches for it.
struct Site {
    server: Server,
    authority: Authority,
    lab: Lab,
    scratch: Scratch,
}

impl Site {
    fn new(names: &[&str], change: impl FnOnce(&Authority, &mut Plan)) -> Result<Site> {
        let lab = Lab::find()?;
        let scratch = Scratch::new("quic")?;
        let share = scratch.open_directory("share")?;
        let authority = Authority::new(scratch.path(), "authority")?;
        let files: Files = authority.server(names)?;
        let mut plan = Plan::sharing(&share);
        plan.quic = files.settings();
        change(&authority, &mut plan);
        let server = Server::start(&lab, plan)?;
        Ok(Site {
            server,
            authority,
            lab,
            scratch,
        })
    }

    /// smbclient, which trusts the certificates of `authority`.
    fn client(&self, authority: &Path) -> Smbclient<'_> {
        Smbclient::new(&self.lab, &self.server)
            .framing(Framing::Quic(NAME))
            .option("tls verify peer=ca_and_name")
            .option("tls trust system cas=no")
            .option(&format!("tls cafile={}", authority.display()))
    }

    fn is_refused(&self, authority: &Path) -> Result<()> {
        let output = self.client(authority).try_run("ls")?;
        ensure!(output.code != Some(0), "it came in: {output}");
        ensure!(
            output.text.contains("NT_STATUS_"),
            "no reason is given: {output}"
        );
        Ok(())
    }
}

fn a_large_file_comes_whole() -> Result<()> {
    let site = Site::new(&[NAME], |_, _| ())?;
    let local = site.scratch.open_directory("local")?;
    let there = site.scratch.path().join("share/large");
    write_random(&there, large_bytes(), 1)?;
    for protection in [Protection::Off, Protection::Encrypt] {
        let client = site.client(&site.authority.file);
        let client = client.protection(protection).directory(&local);
        let listing = client.run("ls")?;
        ensure!(listing.contains(&large_bytes().to_string()), "{listing}");
        client.run("get large back")?;
        assert_same_file(&there, &local.join("back"))?;
        fs::remove_file(local.join("back"))?;
    }
    Ok(())
}

fn uploads_arrive_whole() -> Result<()> {
    let site = Site::new(&[NAME], |_, _| ())?;
    let local = site.scratch.open_directory("local")?;
    let there = site.scratch.path().join("share/file");
    write_random(&local.join("file"), large_bytes(), 2)?;
    // With large WRITEs it would need hours.
    for protection in [Protection::Off, Protection::Encrypt] {
        let client = site.client(&site.authority.file);
        let client = client.protection(protection).directory(&local);
        client.run("put file")?;
        assert_same_file(&local.join("file"), &there)?;
        client.run("del file")?;
    }
    Ok(())
}

fn a_thousand_files_come_back() -> Result<()> {
    let site = Site::new(&[NAME], |_, _| ())?;
    let (local, back) = (
        site.scratch.open_directory("local")?,
        site.scratch.open_directory("back")?,
    );
    for number in 0..1000 {
        write_random(&local.join(format!("file{number}")), number * 9, number)?;
    }
    for protection in [Protection::Off, Protection::Encrypt] {
        let client = site.client(&site.authority.file).protection(protection);
        client.clone().directory(&local).run("prompt\nmput file*")?;
        client.clone().directory(&back).run("prompt\nmget file*")?;
        assert_same_tree(&local, &back)?;
        client.run("del file*")?;
    }
    Ok(())
}

fn a_server_of_another_name_is_not_believed() -> Result<()> {
    let site = Site::new(&["elsewhere.example"], |_, _| ())?;
    site.is_refused(&site.authority.file)
}

fn a_server_of_an_unknown_authority_is_not_believed() -> Result<()> {
    let site = Site::new(&[NAME], |_, _| ())?;
    let other = Authority::new(site.scratch.path(), "other")?;
    site.is_refused(&other.file)?;
    // It was not for another reason.
    site.client(&site.authority.file).run("ls").map(drop)
}

fn a_client_without_a_certificate_is_refused_where_one_is_required() -> Result<()> {
    let site = Site::new(&[NAME], |authority, plan| {
        let file = authority.file.display().to_string();
        plan.quic
            .insert("client_certificates".into(), "required".into());
        plan.quic.insert("client_ca".into(), file.into());
    })?;
    site.is_refused(&site.authority.file)?;
    wait::for_line(|| site.server.log(), &["certificate"]).context("why it is refused")?;
    // Over TCP there are no certificates.
    Smbclient::new(&site.lab, &site.server).run("ls").map(drop)
}
