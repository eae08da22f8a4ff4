//! A transfer that is left the choice has requests that the server can take: however few credits it
//! grants, however little it takes at once.

use std::fs;

use crate::rig::{Peer, Rig, SHARE, for_each_transport, pattern};
use anyhow::{Result, ensure};
use smbeam_client::transfer::{TransferOptions, relay};
use smbeam_client::{OpenOptions, Options, Wait};
use wire::dialect::Dialect;

for_each_transport!(
    few_credits_are_enough,
    a_copy_through_us_suits_both_servers,
    small_requests_are_enough,
    files_of_any_length_arrive,
);

/// As much as makes requests large.
const LARGE_BYTES: usize = (66 << 20) + 12_345;
/// Fewer than a request of 1 MiB and one more cost.
const FEW_CREDITS: u16 = 20;

fn sparing(peer: Peer) -> Result<Rig> {
    Rig::with(peer, |plan| {
        plan.limits = vec![("credits".into(), FEW_CREDITS.into())];
        plan.samba_globals = vec![format!("smb2 max credits = {FEW_CREDITS}")];
    })
}

fn few_credits_are_enough(peer: Peer) -> Result<()> {
    let rig = sparing(peer)?;
    rig.round_trip(&rig.share()?, &pattern(LARGE_BYTES, 1))
}

fn a_copy_through_us_suits_both_servers(peer: Peer) -> Result<()> {
    let (generous, sparing) = (Rig::new(peer)?, sparing(peer)?);
    let bytes = pattern(LARGE_BYTES, 3);
    fs::write(generous.path("file"), &bytes)?;
    let (from, to) = (generous.share()?, sparing.share()?);
    let source = from.open("file", &OpenOptions::new().read(true)).wait()?;
    let new = OpenOptions::new().write(true).create(true);
    let target = to.open("file", &new).wait()?;
    let total = 0..bytes.len() as u64;
    let options = TransferOptions::default();
    let ranges = (total.clone(), 0);
    let copied = relay(&source, &target, ranges, &options, &mut |_| {}).wait()?;
    ensure!(copied == total.end);
    target.close().wait()?;
    sparing.assert_holds("file", &bytes)
}

/// Without requests of several credits there are 64 KiB in each.
fn small_requests_are_enough(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let options = Options::default().dialects(vec![Dialect::SMB_2_0_2]);
    let share = rig.connect(options)?.share(SHARE).wait()?;
    rig.round_trip(&share, &pattern(5_000_000, 2))
}

fn files_of_any_length_arrive(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    let mib = 1 << 20;
    for len in [0, 1, mib, mib + 1, 8 * mib, 33 * mib + 7, LARGE_BYTES] {
        rig.round_trip(&share, &pattern(len, len as u64))?;
    }
    Ok(())
}
