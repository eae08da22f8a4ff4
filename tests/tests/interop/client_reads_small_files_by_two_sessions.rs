//! Many small files that come over one connection of TCP come by another one as well, and by the
//! first alone where that fails.

use std::fs;

use crate::rig::proxy::{Cut, Proxy, Way};
use crate::rig::{Peer, Rig, SHARE, connect_through, for_each_transport, pattern};
use anyhow::{Result, ensure};
use smbeam_client::{Channels, Options, Protection, Share, Wait};

for_each_transport!(
    many_files_come_by_two_sessions,
    few_files_come_by_one,
    one_connection_is_used_on_request,
    a_session_that_is_lost_is_not_missed,
    a_login_that_fails_is_not_missed,
);

/// Enough for a second session.
const MANY: usize = 200;
/// Too few for one.
const FEW: usize = 100;
const FILE_BYTES: usize = 20_000;
/// The connection of the second session.
const SECOND: usize = 1;
/// Times that all files are read, at most, until the second session has been seen at work, where
/// one is expected.
const ROUNDS_MAX: usize = 1000;

/// Many files, and a share that they are read from.
struct Stage {
    proxy: Proxy,
    share: Share,
    rig: Rig,
    rounds: usize,
}

impl Stage {
    fn new(peer: Peer, options: Options, cut: Option<Cut>) -> Result<Self> {
        let rig = Rig::new(peer)?;
        for index in 0..MANY {
            fs::write(rig.path(&name(index)), content(index))?;
        }
        let proxy = Proxy::with_cut(rig.endpoint(), cut)?;
        let share = connect_through(&proxy, options)?.share(SHARE).wait()?;
        Ok(Self {
            proxy,
            share,
            rig,
            rounds: peer.amount(ROUNDS_MAX, 1),
        })
    }

    /// Reads all files, and one that is not there.
    fn read(&self) -> Result<()> {
        let mut names: Vec<_> = (0..MANY).map(name).collect();
        names.push("missing".to_owned());
        let files = names.iter().map(|name| (name.as_str(), FILE_BYTES as u32));
        let files: Vec<_> = files.collect();
        let mut results = self.share.read_each(&files).wait();
        let missing = results.pop().expect("a result for each file");
        ensure!(missing.is_err_and(|error| error.is_not_found()));
        for (index, result) in results.into_iter().enumerate() {
            ensure!(result?[..] == content(index), "{index}");
        }
        Ok(())
    }

    /// Reads all files again and again until something is so.
    fn read_until(&self, is_so: impl Fn(&Proxy) -> bool) -> Result<()> {
        for _ in 0..self.rounds {
            self.read()?;
            if is_so(&self.proxy) {
                break;
            }
        }
        // Once more, as it is now.
        self.read()
    }
}

fn name(index: usize) -> String {
    format!("file {index}")
}

fn content(index: usize) -> Vec<u8> {
    pattern(FILE_BYTES - index, index as u64)
}

/// Ends the second connection after `after` bytes from the server.
fn cut(after: u64) -> Option<Cut> {
    Some(Cut {
        connection: SECOND,
        way: Way::Back,
        after,
    })
}

fn many_files_come_by_two_sessions(peer: Peer) -> Result<()> {
    for protection in [Protection::AsAsked, Protection::Sign, Protection::Encrypt] {
        let options = Options::default().protection(protection);
        let stage = Stage::new(peer, options, None)?;
        let wanted = peer.amount(2, 1);
        stage.read_until(|proxy| proxy.connections() == wanted)?;
        let connections = stage.proxy.connections();
        ensure!(connections == wanted, "{connections} connections");
        // The other session reads the change of the first.
        fs::write(stage.rig.path(&name(7)), content(8))?;
        let seven = stage.share.read(&name(7)).wait()?;
        ensure!(seven[..] == content(8));
    }
    Ok(())
}

fn few_files_come_by_one(peer: Peer) -> Result<()> {
    let stage = Stage::new(peer, Options::default(), None)?;
    for index in 0..FEW {
        let name = name(index);
        let files = [(name.as_str(), FILE_BYTES as u32)];
        let [bytes] = stage
            .share
            .read_each(&files)
            .wait()
            .try_into()
            .expect("one");
        ensure!(bytes?[..] == content(index));
    }
    // They were announced, and are no others.
    stage.share.announce(FEW);
    ensure!(stage.proxy.connections() == 1);
    Ok(())
}

fn one_connection_is_used_on_request(peer: Peer) -> Result<()> {
    let one = Options::default().channels(Channels::Exactly(1));
    let one_request = Options::default().depth(1);
    for options in [one, one_request] {
        let stage = Stage::new(peer, options, None)?;
        stage.share.announce(MANY);
        for _ in 0..5 {
            stage.read()?;
        }
        ensure!(stage.proxy.connections() == 1);
    }
    Ok(())
}

fn a_session_that_is_lost_is_not_missed(peer: Peer) -> Result<()> {
    // Enough for a login and some files; in the midst of a file.
    let stage = Stage::new(peer, Options::default(), cut(150_000))?;
    stage.read_until(Proxy::was_cut)?;
    ensure!(stage.proxy.was_cut() == peer.amount(true, false), "not cut");
    stage.read()?;
    // It is not asked for again.
    ensure!(stage.proxy.connections() == peer.amount(2, 1));
    Ok(())
}

fn a_login_that_fails_is_not_missed(peer: Peer) -> Result<()> {
    let stage = Stage::new(peer, Options::default(), cut(100))?;
    stage.read_until(Proxy::was_cut)?;
    ensure!(stage.proxy.was_cut() == peer.amount(true, false), "not cut");
    Ok(())
}
