//! One message carries many small files, if the transport allows it, with the same results as
//! separate messages.

use std::fs;

use crate::rig::proxy::{Kind, Proxy, Way};
use crate::rig::{Peer, Rig, SHARE, connect_through, for_each_transport, pattern};
use anyhow::{Result, ensure};
use smbeam_client::{Options, Protection, Share, Status, Transport, Wait};

for_each_transport!(
    files_of_any_size_arrive,
    one_that_fails_leaves_the_others_alone,
    few_credits_are_enough,
    more_than_are_in_flight_arrive,
    a_message_brings_many,
);

/// Fewer than many small files cost that come in one message.
const FEW_CREDITS: u16 = 12;

/// Files with these lengths, named by their place.
fn fill(rig: &Rig, lengths: &[usize]) -> Result<()> {
    for (index, length) in lengths.iter().enumerate() {
        fs::write(rig.path(&name(index)), pattern(*length, index as u64))?;
    }
    Ok(())
}

fn name(index: usize) -> String {
    format!("file {index}")
}

/// Reads all files. `expected` maps the known length of a file to the expected one.
fn read(share: &Share, lengths: &[usize], expected: fn(usize) -> usize) -> Result<()> {
    let names: Vec<_> = (0..lengths.len()).map(name).collect();
    let files = names.iter().zip(lengths);
    let files = files.map(|(name, length)| (name.as_str(), expected(*length) as u32));
    let files: Vec<_> = files.collect();
    let results = share.read_each(&files).wait();
    ensure!(results.len() == lengths.len());
    for (index, (result, length)) in results.into_iter().zip(lengths).enumerate() {
        let bytes = result?;
        ensure!(bytes[..] == pattern(*length, index as u64), "{length}");
    }
    Ok(())
}

fn files_of_any_size_arrive(peer: Peer) -> Result<()> {
    let mib = 1 << 20;
    let lengths = [
        0,
        1,
        150_000,
        150_000,
        150_000,
        2,
        0,
        0,
        3,
        mib,
        5,
        mib + 1,
        70_000,
        300_000,
        900_000,
        4,
        1000,
        1001,
        1002,
        1003,
        1004,
        1005,
        1006,
        1007,
        1008,
        1009,
        2_500_000,
        7,
    ];
    let rig = Rig::new(peer)?;
    fill(&rig, &lengths)?;
    for protection in [Protection::AsAsked, Protection::Sign, Protection::Encrypt] {
        let options = Options::default().protection(protection);
        let share = rig.connect(options)?.share(SHARE).wait()?;
        read(&share, &lengths, |length| length)?;
        // The files have grown or shrunk since the lengths were read.
        read(&share, &lengths, |length| length / 2)?;
        read(&share, &lengths, |length| length * 2)?;
        read(&share, &lengths, |_| 0)?;
    }
    Ok(())
}

fn more_than_are_in_flight_arrive(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let lengths: Vec<_> = (0..500).map(|index| index * 10).collect();
    fill(&rig, &lengths)?;
    read(&rig.share()?, &lengths, |length| length)
}

fn one_that_fails_leaves_the_others_alone(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    fill(&rig, &[1000, 2000, 3000])?;
    fs::create_dir(rig.path("dir"))?;
    let share = rig.share()?;
    let names = [
        &name(0),
        "missing",
        &name(1),
        "dir",
        "no: name",
        "missing",
        &name(2),
    ];
    for skipped in 0..names.len() {
        let files = names[skipped..].iter().map(|name| (*name, 4000));
        let files: Vec<_> = files.collect();
        let results = share.read_each(&files).wait();
        ensure!(results.len() == files.len());
        for ((name, _), result) in files.iter().zip(results) {
            match (*name, result) {
                ("missing", Err(error)) => {
                    ensure!(
                        error.status() == Some(Status::OBJECT_NAME_NOT_FOUND),
                        "{error}"
                    );
                }
                ("dir", Err(error)) => {
                    ensure!(
                        error.status() == Some(Status::FILE_IS_A_DIRECTORY),
                        "{error}"
                    );
                }
                ("no: name", Err(smbeam_client::Error::InvalidName(..))) => {}
                (name, Ok(bytes)) => ensure!(bytes[..] == fs::read(rig.path(name))?, "{name}"),
                (name, Err(error)) => anyhow::bail!("{name}: {error}"),
            }
        }
    }
    ensure!(share.read_each(&[]).wait().is_empty());
    Ok(())
}

fn few_credits_are_enough(peer: Peer) -> Result<()> {
    let rig = Rig::with(peer, |plan| {
        plan.limits = vec![("credits".into(), FEW_CREDITS.into())];
        plan.samba_globals = vec![format!("smb2 max credits = {FEW_CREDITS}")];
    })?;
    let lengths = [100_000; 20];
    fill(&rig, &lengths)?;
    read(&rig.share()?, &lengths, |length| length)
}

fn a_message_brings_many(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let lengths = [1000; 24];
    fill(&rig, &lengths)?;
    let proxy = Proxy::to(rig.endpoint())?;
    // The relay counts encrypted frames, not their messages.
    let options = Options::default().protection(Protection::Encrypt);
    let share = connect_through(&proxy, options)?.share(SHARE).wait()?;
    let sent = || proxy.seen().get(&(Way::There, Kind::Encrypted)).copied();
    let before = sent().unwrap_or(0);
    read(&share, &lengths, |length| length)?;
    let frames = sent().unwrap_or(0) - before;
    let wanted = match peer.transport {
        Transport::Tcp => 3,
        Transport::Nbt | Transport::SmbDirect => lengths.len() as u64,
        // The relay cannot read its packets.
        Transport::Quic => 0,
    };
    ensure!(
        frames == wanted,
        "{frames} frames for {} files",
        lengths.len()
    );
    Ok(())
}
