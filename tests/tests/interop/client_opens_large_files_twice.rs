//! A large transfer over one connection of TCP opens another one, and does without where that
//! fails.

use crate::rig::proxy::{Cut, Proxy, Way};
use crate::rig::{Peer, Rig, SHARE, connect_through, for_each_transport, pattern};
use anyhow::{Result, ensure};
use smbeam_client::{Channels, Options, Protection, Transport, Wait};
use smbeam_tests::subject::Subject;

for_each_transport!(
    large_files_go_both_ways,
    one_connection_is_used_on_request,
    a_connection_that_is_lost_is_not_missed,
    a_login_that_fails_is_not_missed,
);

/// Enough for a second open, and not a whole number of requests.
const LARGE_BYTES: usize = (256 << 20) + 54_321;
/// Bytes of a file that one connection carries.
const SMALL_BYTES: usize = 3_000_000;
/// Count of bytes on the second connection after which the relay cuts it.
const CUT_AFTER: u64 = 4 << 20;
/// Limit of transfers until one loses its second connection: a busy machine may open it late.
const TRIES: usize = 5;
/// The connection of the second open.
const SECOND: usize = 1;
/// No cut. The relay slows the first connection, so that the upload does not end before the login
/// of the second one.
const NEVER: Cut = Cut {
    connection: SECOND,
    way: Way::There,
    after: u64::MAX,
};

fn size(peer: Peer) -> usize {
    peer.amount(LARGE_BYTES, SMALL_BYTES)
}

/// Uploads and downloads a file; returns the number of connections.
fn round_trip(rig: &Rig, proxy: &Proxy, options: Options, size: usize) -> Result<usize> {
    let share = connect_through(proxy, options)?.share(SHARE).wait()?;
    rig.round_trip(&share, &pattern(size, 5))?;
    Ok(proxy.connections())
}

fn large_files_go_both_ways(peer: Peer) -> Result<()> {
    let wanted = peer.amount(2, 1);
    for protection in [Protection::AsAsked, Protection::Encrypt] {
        let rig = Rig::new(peer)?;
        let proxy = Proxy::with_cut(rig.endpoint(), Some(NEVER))?;
        let options = Options::default().protection(protection);
        let connections = round_trip(&rig, &proxy, options, size(peer))?;
        ensure!(connections == wanted, "{connections} connections");
    }
    Ok(())
}

fn one_connection_is_used_on_request(peer: Peer) -> Result<()> {
    let one = Options::default().channels(Channels::Exactly(1));
    let small = Options::default().io_size(1 << 20);
    for options in [one, small] {
        let rig = Rig::new(peer)?;
        let proxy = Proxy::to(rig.endpoint())?;
        let connections = round_trip(&rig, &proxy, options, size(peer))?;
        ensure!(connections == 1, "{connections} connections");
    }
    Ok(())
}

fn a_connection_that_is_lost_is_not_missed(peer: Peer) -> Result<()> {
    // smbd answers late at times, and then little is left for a second open.
    let is_sure = peer.subject == Subject::Smbeam && peer.transport == Transport::Tcp;
    for way in [Way::There, Way::Back] {
        let tries = if is_sure { TRIES } else { 1 };
        let mut was_cut = false;
        for _ in 0..tries {
            was_cut = loses_second_connection(peer, way)?;
            if was_cut {
                break;
            }
        }
        ensure!(was_cut || !is_sure, "{TRIES} transfers lost nothing");
    }
    Ok(())
}

/// Transfers a file over a relay that cuts the second connection. Returns whether the second
/// connection carried enough bytes for that.
fn loses_second_connection(peer: Peer, way: Way) -> Result<bool> {
    let rig = Rig::new(peer)?;
    let cut = Cut {
        connection: SECOND,
        way,
        after: CUT_AFTER,
    };
    let proxy = Proxy::with_cut(rig.endpoint(), Some(cut))?;
    round_trip(&rig, &proxy, Options::default(), size(peer))?;
    Ok(proxy.was_cut())
}

fn a_login_that_fails_is_not_missed(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let cut = Cut {
        connection: SECOND,
        way: Way::Back,
        after: 100,
    };
    let proxy = Proxy::with_cut(rig.endpoint(), Some(cut))?;
    round_trip(&rig, &proxy, Options::default(), size(peer)).map(drop)
}
