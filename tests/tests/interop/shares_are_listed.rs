//! smbclient and rpcclient list the shares of a server, over every dialect and protection, with a
//! name and without.

use anyhow::{Result, ensure};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::{self, Protection, Smbclient};
use smbeam_tests::subject::{ALICE, BOB, Plan, Server, Share};
use smbeam_tests::tests;

tests!(
    smbclient_lists_shares,
    an_anonymous_client_lists_shares,
    rpcclient_asks_about_shares_and_server,
    long_lists_come_whole,
);

fn plan(scratch: &Scratch) -> Result<Plan> {
    let directory = scratch.open_directory("share")?;
    let mut closed = Share::new("closed", &directory);
    closed.users = vec![BOB.name.into()];
    let mut open = Share::new("open", &directory);
    open.guests = true;
    let mut plan = Plan::sharing(&directory);
    plan.shares
        .extend([closed, open, Share::new("tools$", &directory)]);
    Ok(plan)
}

/// The lines of `smbclient -L -g` about shares: kind and name.
fn list(client: &Smbclient<'_>, server: &Server) -> Result<Vec<String>> {
    let output = client.try_run_with(&["-g", "-L", &server.tcp.ip().to_string()])?;
    ensure!(output.code == Some(0), "{output}");
    let shares = output.text.lines().filter_map(|line| {
        let (kind, rest) = line.split_once('|')?;
        let (name, _comment) = rest.split_once('|')?;
        ["Disk", "IPC"]
            .contains(&kind)
            .then(|| format!("{kind} {name}"))
    });
    let mut shares: Vec<String> = shares.collect();
    shares.sort();
    Ok(shares)
}

/// A user without access to a share sees it in the list, as with Samba.
const SHARES: [&str; 5] = [
    "Disk closed",
    "Disk data",
    "Disk open",
    "Disk tools$",
    "IPC IPC$",
];

fn smbclient_lists_shares() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("list")?;
    let server = Server::start(&lab, plan(&scratch)?)?;
    for protection in Protection::ALL {
        let client = Smbclient::new(&lab, &server).protection(protection);
        ensure!(list(&client, &server)? == SHARES, "{protection:?}");
    }
    for dialect in ["SMB2_02", "SMB2_10", "SMB3_00", "SMB3_02", "SMB3_11"] {
        let client = Smbclient::new(&lab, &server).dialect(dialect);
        ensure!(list(&client, &server)? == SHARES, "{dialect}");
    }
    Ok(())
}

fn an_anonymous_client_lists_shares() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("list")?;
    let server = Server::start(&lab, plan(&scratch)?)?;
    let client = Smbclient::new(&lab, &server).login("%");
    ensure!(list(&client, &server)? == SHARES);
    Ok(())
}

fn rpcclient_asks_about_shares_and_server() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("list")?;
    let server = Server::start(&lab, plan(&scratch)?)?;
    for (command, expected) in [
        ("srvinfo", "platform_id"),
        ("netshareenumall 1", "netname: tools$"),
        ("netshareenumall 2", "netname: closed"),
        ("netshareenum 502", "netname: open"),
        ("netsharegetinfo data 1", "netname: data"),
        ("netsharegetinfo data 502", "max_uses"),
        ("netremotetod", ""),
        ("wkssvc_wkstagetinfo", ""),
    ] {
        let mut rpcclient = lab.command_under(None, "rpcclient");
        let login = format!("{}%{}", ALICE.name, ALICE.password);
        rpcclient
            .arg(server.tcp.ip().to_string())
            .args(["-p", &server.tcp.port().to_string()])
            .args(["-U", &login, "-c", command]);
        let output = smbclient::run(&mut rpcclient)?;
        let is_good = output.code == Some(0)
            && output.text.contains(expected)
            && !output.text.contains("WERR_")
            && !output.text.contains("NT_STATUS_");
        ensure!(is_good, "{command}: {output}");
    }
    Ok(())
}

/// More than fits in a fragment, and in the buffer of a read.
fn long_lists_come_whole() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("list")?;
    let directory = scratch.open_directory("share")?;
    let mut plan = Plan::sharing(&directory);
    let name = |number| format!("a share with a long name {number:04}");
    let more = (0..700).map(|number| Share::new(&name(number), &directory));
    plan.shares.extend(more);
    let server = Server::start(&lab, plan)?;
    let client = Smbclient::new(&lab, &server);
    let shares = list(&client, &server)?;
    ensure!(shares.len() == 702, "{} shares", shares.len());
    Ok(())
}
