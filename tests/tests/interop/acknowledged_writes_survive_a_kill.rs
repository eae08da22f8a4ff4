//! kill -9 of the server loses no acknowledged write.

use std::fs;

use anyhow::{Result, ensure};
use smbeam_tests::files::{assert_same_file, write_random};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{Plan, Server};
use smbeam_tests::tests;

tests!(a_finished_put_is_there_after_a_kill);

const ROUNDS: u64 = 5;

fn a_finished_put_is_there_after_a_kill() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("kill")?;
    let share = scratch.open_directory("share")?;
    let mut server = Server::start(&lab, Plan::sharing(&share))?;
    for round in 0..ROUNDS {
        let (name, directory) = (format!("file{round}"), format!("dir{round}"));
        let local = scratch.path().join(&name);
        write_random(&local, 1_000_003 + round, round)?;
        let client = Smbclient::new(&lab, &server).directory(scratch.path());
        client.run(&format!(
            "put {name}\nmkdir {directory}\nrename {name} {directory}/{name}"
        ))?;
        server.kill()?;
        assert_same_file(&local, &share.join(&directory).join(&name))?;
        server.restart()?;
        let client = Smbclient::new(&lab, &server).directory(scratch.path());
        client.run(&format!("get {directory}/{name} back"))?;
        assert_same_file(&local, &scratch.path().join("back"))?;
    }
    ensure!(
        fs::read_dir(&share)?.count() == 5,
        "something else was made or lost"
    );
    Ok(())
}
