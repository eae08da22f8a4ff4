//! smbclient's tar mode backs up a tree and restores it.

use std::fs;

use anyhow::{Result, ensure};
use smbeam_tests::files::{assert_same_tree, give_tree_to, make_tree};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::{Protection, Smbclient};
use smbeam_tests::subject::{ALICE, Plan, Server};
use smbeam_tests::tests;

tests!(a_tree_comes_back);

const DIRECTORIES: u32 = 12;

fn a_tree_comes_back() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("backup")?;
    let share = scratch.open_directory("share")?;
    make_tree(&share.join("tree"), DIRECTORIES)?;
    give_tree_to(&share, ALICE.id)?;
    let server = Server::start(&lab, Plan::sharing(&share))?;
    for protection in Protection::ALL {
        let client = Smbclient::new(&lab, &server)
            .protection(protection)
            .directory(scratch.path());
        let saved = client.try_run_with(&["-Tc", "tree.tar", "tree"])?;
        ensure!(saved.code == Some(0), "the back-up fails: {saved}");
        let original = scratch
            .path()
            .join(format!("original-{}", protection.word()));
        fs::rename(share.join("tree"), &original)?;
        let restored = client.try_run_with(&["-Tx", "tree.tar"])?;
        ensure!(restored.code == Some(0), "the restore fails: {restored}");
        assert_same_tree(&original, &share.join("tree"))?;
        fs::remove_file(scratch.path().join("tree.tar"))?;
    }
    Ok(())
}
