//! Clients translate SIDs into names and back: smbcacls shows names, and rpcclient asks for them.
//! A mapping file gives accounts further SIDs.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::lab::Lab;
use smbeam_tests::samba_tools::SambaTools;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{BOB, Plan, Server, Subject};
use smbeam_tests::tests;

tests!(
    smbcacls_shows_and_accepts_names,
    rpcclient_translates_sids_and_names,
    the_sid_of_the_server_survives_a_restart,
    strangers_get_no_names,
    mapped_sids_are_accounts,
);

/// A SID of another server.
const BOB_ELSEWHERE: &str = "S-1-5-21-7-7-7-1002";

fn start(lab: &Lab, scratch: &Scratch, change: impl FnOnce(&mut Plan)) -> Result<Server> {
    let mut plan = Plan::sharing(&scratch.open_directory("share")?);
    plan.shares[0].guests = true;
    change(&mut plan);
    Server::start_as(Subject::Smbeam, Some(lab), None, plan)
}

fn smbcacls_shows_and_accepts_names() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("names")?;
    let server = start(&lab, &scratch, |_| {})?;
    Smbclient::new(&lab, &server).run("put /etc/hostname file")?;
    let tools = SambaTools::new(&lab, &server);
    for entry in [
        "ACL:Unix User\\bob:ALLOWED/0x0/READ",
        "ACL:BUILTIN\\Administrators:ALLOWED/0x0/FULL",
        "ACL:Authenticated Users:DENIED/0x0/0x00000002",
    ] {
        tools.smbcacls("file", &["-a", entry])?;
    }
    let numeric = tools.smbcacls("file", &["--numeric"])?;
    for sid in ["S-1-22-1-2002", "S-1-5-32-544", "S-1-5-11"] {
        ensure!(numeric.contains(&format!("ACL:{sid}:")), "{sid}: {numeric}");
    }
    let names = tools.smbcacls("file", &[])?;
    for line in [
        "OWNER:Unix User\\alice",
        "GROUP:Unix Group\\alice",
        "ACL:Unix User\\bob:",
        "ACL:BUILTIN\\Administrators:",
        "ACL:NT AUTHORITY\\Authenticated Users:",
        "ACL:Everyone:",
    ] {
        ensure!(names.contains(line), "{line}: {names}");
    }
    Ok(())
}

fn rpcclient_translates_sids_and_names() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("names")?;
    let server = start(&lab, &scratch, |_| {})?;
    let tools = SambaTools::new(&lab, &server);
    let local = local_sid(&tools)?;
    let of_alice = format!("{local}-5002");
    for (command, expected) in [
        ("lookupsids S-1-5-32-545", "S-1-5-32-545 BUILTIN\\Users (4)"),
        ("lookupsids S-1-22-1-2001", "Unix User\\alice (1)"),
        ("lookupsids S-1-22-2-2002", "Unix Group\\bob (2)"),
        ("lookupsids S-1-1-0", "\\Everyone (5)"),
        ("lookupsids S-1-5-21-9-9-9-9", "S-1-5-21-9-9-9-9 *unknown*"),
        ("lookupnames alice", "alice S-1-22-1-2001 (User: 1)"),
        ("lookupnames BUILTIN\\\\Administrators", "S-1-5-32-544"),
        ("lookupnames everyone", "S-1-1-0"),
        (&format!("lookupsids {of_alice}"), "\\alice (1)"),
    ] {
        let text = tools.rpcclient(command);
        let text = match command.contains("9-9-9-9") {
            // rpcclient shows the status for a SID that no server knows.
            true => tools.try_rpcclient(&alice(), command)?.text,
            false => text?,
        };
        ensure!(text.contains(expected), "{command}: {text}");
    }
    let several = "lookupsids S-1-5-32-544 S-1-22-1-2001 S-1-22-1-2002 S-1-5-11";
    let text = tools.rpcclient(several)?;
    ensure!(text.lines().count() >= 4, "{text}");
    let missing = tools.try_rpcclient(&alice(), "lookupnames no-such-account")?;
    ensure!(missing.text.contains("NONE_MAPPED"), "{missing}");
    Ok(())
}

fn alice() -> [String; 2] {
    use smbeam_tests::subject::ALICE;
    ["-U".into(), format!("{}%{}", ALICE.name, ALICE.password)]
}

/// The SID of the server's own domain, as `lsaquery` shows it.
fn local_sid(tools: &SambaTools<'_>) -> Result<String> {
    let text = tools.rpcclient("lsaquery 5")?;
    let mut words = text.split_whitespace();
    let sid = words.find(|word| word.starts_with("S-1-5-21-"));
    Ok(sid.with_context(|| format!("no SID: {text}"))?.to_owned())
}

fn the_sid_of_the_server_survives_a_restart() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("names")?;
    let mut server = start(&lab, &scratch, |_| {})?;
    let before = local_sid(&SambaTools::new(&lab, &server))?;
    server.kill()?;
    server.restart()?;
    let after = local_sid(&SambaTools::new(&lab, &server))?;
    ensure!(before == after, "{before}, {after}");
    let kept = fs::read_to_string(server.directory().join("local-sid"))?;
    ensure!(kept.trim() == before, "{kept}");
    Ok(())
}

fn strangers_get_no_names() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("names")?;
    let server = start(&lab, &scratch, |_| {})?;
    let tools = SambaTools::new(&lab, &server);
    for login in ["%", "guest%none"] {
        let login = ["-U".to_owned(), login.to_owned()];
        let refused = tools.try_rpcclient(&login, "lookupsids S-1-22-1-2001")?;
        ensure!(!refused.text.contains("alice"), "{refused}");
        ensure!(refused.text.contains("ACCESS_DENIED"), "{refused}");
    }
    Ok(())
}

fn mapped_sids_are_accounts() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("names")?;
    let map = scratch.path().join("sids");
    fs::write(&map, format!("# bob\n{BOB_ELSEWHERE} user bob\n"))?;
    fs::set_permissions(&map, Permissions::from_mode(0o644))?;
    let path = map.display().to_string();
    let server = start(&lab, &scratch, |plan| {
        plan.server.insert("sid_map".into(), path.into());
    })?;
    let client = Smbclient::new(&lab, &server);
    client.run("put /etc/hostname file")?;
    let tools = SambaTools::new(&lab, &server);
    let owners = "REVISION:1,OWNER:S-1-22-1-2001,GROUP:S-1-22-2-2001";
    let list = |sid: &str| format!("{owners},ACL:S-1-22-1-2001:ALLOWED/0x0/FULL,ACL:{sid}");
    let read = || client.clone().user(BOB).try_run("get file /dev/null");
    let nothing = list("S-1-1-0:ALLOWED/0x0/0x00000080");
    tools.smbcacls("file", &["-S", &nothing])?;
    ensure!(read()?.text.contains("ACCESS_DENIED"), "the list is open");
    let of_bob = list(&format!("{BOB_ELSEWHERE}:ALLOWED/0x0/READ"));
    tools.smbcacls("file", &["-S", &of_bob])?;
    let read = read()?;
    ensure!(read.code == Some(0), "{read}");
    // The descriptor keeps the SID that the client has sent.
    let numeric = tools.smbcacls("file", &["--numeric"])?;
    ensure!(numeric.contains(BOB_ELSEWHERE), "{numeric}");
    let names = tools.rpcclient(&format!("lookupsids {BOB_ELSEWHERE}"))?;
    ensure!(names.contains("\\bob (1)"), "{names}");
    let sid = tools.rpcclient("lookupnames bob")?;
    ensure!(sid.contains(BOB_ELSEWHERE), "{sid}");
    Ok(())
}
