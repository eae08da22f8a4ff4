//! A client that requests much and reads no answer harms itself, and no other client.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::direct::smb::{SMB_3_0_2, Session};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, Server};
use smbeam_tests::tests;

tests!(unread_answers_leave_memory_for_writes);

/// The memory of the one worker, and a number of READs that need more.
const MEMORY_MB: i64 = 64;
const READS: u32 = 24;
/// The largest READ.
const LENGTH: u32 = 8 << 20;
/// The largest WRITE: smaller ones fit into the rest of the memory.
const WRITTEN: usize = 8 << 20;

fn unread_answers_leave_memory_for_writes() -> Result<()> {
    let scratch = Scratch::new("greedy")?;
    let share = scratch.open_directory("share")?;
    // The page cache has no unwritten data.
    let size = u64::from(READS) * u64::from(LENGTH);
    for (name, size) in [("large", size), ("small", 0)] {
        let file = File::create(share.join(name))?;
        file.set_len(size)?;
        file.set_permissions(Permissions::from_mode(0o666))?;
    }
    let mut plan = Plan::sharing(&share);
    plan.server.insert("workers".into(), 1.into());
    plan.server
        .insert("buffer_memory_mb".into(), MEMORY_MB.into());
    let server = Server::start_alone(plan)?;
    let mut greedy = Session::tcp(&server, SMB_3_0_2, "large")?;
    get_credits(&mut greedy, READS)?;
    for number in 0..READS {
        let offset = u64::from(number) * u64::from(LENGTH);
        let read = greedy.read_at(offset, LENGTH);
        greedy.send(&read)?;
    }
    let mut other = Session::tcp(&server, SMB_3_0_2, "small")?;
    get_credits(&mut other, 1)?;
    let write = other.write_at(0, &vec![7; WRITTEN])?;
    other.send(&write)?;
    let answer = other.hear_final()?.context("the other was thrown out")?;
    ensure!(answer.status() == 0, "{:#x}", answer.status());
    ensure!(std::fs::metadata(share.join("small"))?.len() == WRITTEN as u64);
    // The greedy client receives every answer as soon as it reads.
    for _ in 0..READS {
        let answer = greedy
            .hear_final()?
            .context("the greedy one was thrown out")?;
        ensure!(answer.status() == 0, "{:#x}", answer.status());
        ensure!(answer.0.len() > LENGTH as usize, "the bytes are not there");
    }
    greedy.echo()
}

/// Each ECHO asks for 64 credits, one of the largest transfers costs 128.
fn get_credits(session: &mut Session, transfers: u32) -> Result<()> {
    (0..transfers * 3).try_for_each(|_| session.echo())
}
