//! Every dialect, cipher, signing algorithm and transport that smbclient supports works.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::files::{assert_same_file, write_random};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::{Framing, Protection, Smbclient};
use smbeam_tests::subject::{ALICE, BOB, Plan, Server};
use smbeam_tests::tests;

tests!(
    every_dialect_works,
    every_cipher_encrypts,
    every_signing_algorithm_signs,
    the_session_service_carries_everything,
    a_wrong_password_is_refused,
    a_user_without_the_share_is_refused,
    a_missing_share_is_refused,
    a_server_that_requires_signatures_gets_them,
    a_server_that_requires_encryption_gets_it,
);

const DIALECTS: [&str; 5] = ["SMB2_02", "SMB2_10", "SMB3_00", "SMB3_02", "SMB3_11"];
const CIPHERS: [&str; 4] = ["AES-128-CCM", "AES-128-GCM", "AES-256-CCM", "AES-256-GCM"];
const SIGNINGS: [&str; 3] = ["AES-128-GMAC", "AES-128-CMAC", "HMAC-SHA256"];
const FILE_BYTES: u64 = 3_000_001;

/// A server with one share, and a directory with a file to send.
struct Site {
    lab: Lab,
    scratch: Scratch,
    server: Server,
}

impl Site {
    fn new(change: impl FnOnce(&mut Plan)) -> Result<Site> {
        let lab = Lab::find()?;
        let scratch = Scratch::new("negotiate")?;
        let share = scratch.open_directory("share")?;
        write_random(&scratch.path().join("file"), FILE_BYTES, 3)?;
        let mut plan = Plan::sharing(&share);
        change(&mut plan);
        let server = Server::start(&lab, plan)?;
        Ok(Site {
            lab,
            scratch,
            server,
        })
    }

    fn client(&self) -> Smbclient<'_> {
        Smbclient::new(&self.lab, &self.server).directory(self.scratch.path())
    }

    fn round_trip(&self, client: &Smbclient<'_>) -> Result<()> {
        client.run("put file sent\nget sent back\nls\ndel sent")?;
        let directory = self.scratch.path();
        assert_same_file(&directory.join("file"), &directory.join("back"))?;
        fs::remove_file(directory.join("back"))?;
        Ok(())
    }
}

fn every_dialect_works() -> Result<()> {
    let site = Site::new(|_| ())?;
    for dialect in DIALECTS {
        let can_encrypt = dialect.starts_with("SMB3");
        for protection in Protection::ALL {
            if can_encrypt || protection != Protection::Encrypt {
                let client = site.client().dialect(dialect).protection(protection);
                site.round_trip(&client).context(dialect)?;
            }
        }
    }
    Ok(())
}

fn every_cipher_encrypts() -> Result<()> {
    let site = Site::new(|_| ())?;
    for cipher in CIPHERS {
        let only = format!("client smb3 encryption algorithms={cipher}");
        let client = site.client().protection(Protection::Encrypt).option(&only);
        site.round_trip(&client).context(cipher)?;
    }
    Ok(())
}

fn every_signing_algorithm_signs() -> Result<()> {
    let site = Site::new(|_| ())?;
    for algorithm in SIGNINGS {
        let only = format!("client smb3 signing algorithms={algorithm}");
        let client = site.client().protection(Protection::Sign).option(&only);
        site.round_trip(&client).context(algorithm)?;
    }
    Ok(())
}

fn the_session_service_carries_everything() -> Result<()> {
    let site = Site::new(|_| ())?;
    for protection in Protection::ALL {
        site.round_trip(&site.client().framing(Framing::Nbt).protection(protection))?;
    }
    site.round_trip(&site.client().framing(Framing::Nbt).dialect("SMB2_02"))
}

fn a_wrong_password_is_refused() -> Result<()> {
    let site = Site::new(|_| ())?;
    for login in ["alice%wrong", "unknown-user%x", "alice%", "%"] {
        let refused = site.client().login(login).try_run("ls")?;
        let statuses = ["NT_STATUS_LOGON_FAILURE", "NT_STATUS_ACCESS_DENIED"];
        let is_refused = statuses.iter().any(|status| refused.failed_with(status));
        ensure!(is_refused, "{login}: {refused}");
    }
    site.round_trip(&site.client())
}

fn a_user_without_the_share_is_refused() -> Result<()> {
    let site = Site::new(|plan| plan.shares[0].users = vec!["alice".into()])?;
    let refused = site.client().user(BOB).try_run("ls")?;
    ensure!(refused.failed_with("NT_STATUS_ACCESS_DENIED"), "{refused}");
    site.round_trip(&site.client().user(ALICE))
}

fn a_missing_share_is_refused() -> Result<()> {
    let site = Site::new(|_| ())?;
    let refused = site.client().share("elsewhere").try_run("ls")?;
    ensure!(
        refused.failed_with("NT_STATUS_BAD_NETWORK_NAME"),
        "{refused}"
    );
    Ok(())
}

fn a_server_that_requires_signatures_gets_them() -> Result<()> {
    let site = Site::new(|plan| plan.signing_required = true)?;
    for dialect in DIALECTS {
        site.round_trip(&site.client().dialect(dialect))
            .context(dialect)?;
    }
    Ok(())
}

fn a_server_that_requires_encryption_gets_it() -> Result<()> {
    let site = Site::new(|plan| plan.encryption_required = true)?;
    for dialect in ["SMB3_00", "SMB3_02", "SMB3_11"] {
        site.round_trip(&site.client().dialect(dialect))
            .context(dialect)?;
    }
    let refused = site.client().dialect("SMB2_10").try_run("ls")?;
    ensure!(refused.failed_with("NT_STATUS_ACCESS_DENIED"), "{refused}");
    Ok(())
}
