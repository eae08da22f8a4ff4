//! Access lists of a directory that moves between smbeam and smbd, as smbcacls sets and shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::lab::Lab;
use smbeam_tests::samba_tools::SambaTools;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::{self, Smbclient};
use smbeam_tests::subject::{ALICE, BOB, Plan, Server, Subject, User};

/// The settings of smbd that store what smbeam stores.
const SETTINGS: [&str; 2] = ["vfs objects = acl_xattr streams_xattr", "ea support = yes"];
/// The attribute with the descriptor. It has at most 64 KiB.
const NTACL: &str = "security.NTACL";
const VALUE_MAX: usize = 65_536;

/// Alice and her group, as smbeam names them, and all users.
const OWNERS: &str = "REVISION:1,OWNER:S-1-22-1-2001,GROUP:S-1-22-2-2001";
/// All items of the tree, the directories first.
const ITEMS: [&str; 8] = [
    "tree",
    "tree/below",
    "tree/below/deep",
    "tree/own",
    "tree/a.txt",
    "tree/below/b.txt",
    "tree/below/deep/c.txt",
    "tree/own/d.txt",
];
/// The items that local programs change.
const CHANGED: [&str; 3] = ["tree/below", "tree/a.txt", "tree/own/d.txt"];

/// The changes of smbcacls in their order: the item, then the arguments.
const CHANGES: [(&str, &[&str]); 9] = [
    // Entries of each type, and rights that the mode cannot express.
    (
        "tree/a.txt",
        &["-a", "ACL:S-1-22-1-2002:ALLOWED/0x0/0x00120089"],
    ),
    ("tree/a.txt", &["-a", "ACL:S-1-5-11:DENIED/0x0/0x00000002"]),
    (
        "tree/a.txt",
        &["-M", "ACL:S-1-22-1-2002:ALLOWED/0x0/CHANGE"],
    ),
    (
        "tree/below/b.txt",
        &["-a", "ACL:S-1-5-32-545:ALLOWED/0x0/0x00100080"],
    ),
    (
        "tree/below/b.txt",
        &["-D", "ACL:S-1-5-32-545:ALLOWED/0x0/0x00100080"],
    ),
    // A directory that passes entries on to existing files.
    (
        "tree/below",
        &[
            "--propagate-inheritance",
            "-a",
            "ACL:S-1-22-1-2002:ALLOWED/OI|CI/READ",
        ],
    ),
    // A directory without inheritance, with copies of the inherited entries, and one without them.
    ("tree/own", &["--inherit=copy"]),
    ("tree/own/d.txt", &["--inherit=remove"]),
    ("tree/own/d.txt", &["--inherit=allow"]),
];

/// One server writes the tree. The other one shows the same descriptors, and does not write them
/// again.
pub(super) fn move_acls(writer: Subject, reader: Subject) -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("moved-acls")?;
    let share = scratch.open_directory("share")?;
    let written = {
        let server = start(writer, &lab, &share)?;
        write(&lab, &server)?;
        listing(&lab, &server)?
    };
    let stored = stored(&share)?;
    let server = start(reader, &lab, &share)?;
    let read = listing(&lab, &server)?;
    for (item, written) in &written {
        let read = &read[item];
        ensure!(
            written == read,
            "{item}\n{writer:?}:\n{written}\n{reader:?}:\n{read}"
        );
    }
    ensure!(
        self::stored(&share)? == stored,
        "{reader:?} has written the descriptors of {writer:?} again"
    );
    Ok(())
}

/// Changes by chmod and setfacl count on both servers, with the same result.
pub(super) fn change_permissions() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("changed-acls")?;
    let share = scratch.open_directory("share")?;
    let smbeam = start(Subject::Smbeam, &lab, &share)?;
    let smbd = start(Subject::Samba, &lab, &share)?;
    write(&lab, &smbeam)?;
    let before = listing(&lab, &smbeam)?;
    ensure!(listing(&lab, &smbd)? == before, "the servers disagree");
    change_locally(&lab, &share)?;
    let after = listing(&lab, &smbeam)?;
    let of_smbd = listing(&lab, &smbd)?;
    let accounts = accounts_of(&SambaTools::new(&lab, &smbd))?;
    for item in ITEMS {
        let (ours, theirs) = (&after[item], &of_smbd[item]);
        let is_same = meaning(ours, &[]) == meaning(theirs, &accounts);
        ensure!(is_same, "{item}\nsmbeam:\n{ours}\nsmbd:\n{theirs}");
        let has_changed = *ours != before[item];
        let expected = CHANGED.contains(&item);
        ensure!(
            has_changed == expected,
            "{item} has the descriptor:\n{ours}"
        );
    }
    Ok(())
}

/// Changes a mode, an access list and a default list.
fn change_locally(lab: &Lab, share: &Path) -> Result<()> {
    fs::set_permissions(share.join("tree/a.txt"), Permissions::from_mode(0o604))?;
    for (rule, item) in [
        ("u:2002:rw", "tree/own/d.txt"),
        ("d:u:2002:rwx", "tree/below"),
    ] {
        let mut command = lab.command("setfacl");
        command.args(["-m", rule]).arg(share.join(item));
        let output = smbclient::run(&mut command)?;
        ensure!(output.code == Some(0), "{output}");
    }
    Ok(())
}

/// The SIDs that smbd shows for accounts of its own database, and those of Unix.
fn accounts_of(smbd: &SambaTools<'_>) -> Result<Vec<(String, String)>> {
    let of = |user: User| {
        let text = smbd.rpcclient(&format!("lookupnames {}", user.name))?;
        let mut words = text.split_whitespace();
        let sid = words.find(|word| word.starts_with("S-1-5-21-"));
        let sid = sid.with_context(|| format!("no SID: {text}"))?;
        Ok((sid.to_owned(), format!("S-1-22-1-{}", user.id)))
    };
    [ALICE, BOB].map(of).into_iter().collect()
}

/// The owner, the group and the entries of a descriptor. Where no descriptor is stored, the servers
/// order entries differently, and smbd merges one for a directory with an equal one for its files.
fn meaning(listing: &str, accounts: &[(String, String)]) -> BTreeSet<String> {
    const INHERITED_BY_FILES_AND_DIRECTORIES: &str = "/0x3/";
    let mut text = listing.to_owned();
    for (of_smbd, of_unix) in accounts {
        text = text.replace(of_smbd, of_unix);
    }
    let lines = text.lines().filter(|line| !line.starts_with("CONTROL:"));
    let split = |line: &str| match line.contains(INHERITED_BY_FILES_AND_DIRECTORIES) {
        true => ["/0x0/", "/0xb/"]
            .map(|flags| line.replace(INHERITED_BY_FILES_AND_DIRECTORIES, flags))
            .to_vec(),
        false => vec![line.to_owned()],
    };
    let entries = lines.flat_map(split);
    entries
        .map(|line| without_rights_of_owners(&line))
        .collect()
}

/// An entry of a user without the rights that no permission of Unix stands for: smbd shows users
/// that may write a file with the rights to delete it and to change its permissions. smbeam shows
/// the latter for the owner, and leaves the deletion to the directory.
fn without_rights_of_owners(line: &str) -> String {
    const OF_OWNERS: u32 = 0x000D_0000;
    let mask = line
        .rsplit_once("/0x")
        .filter(|_| line.starts_with("ACL:S-1-22-1-"));
    let parsed = mask.and_then(|(rest, mask)| Some((rest, u32::from_str_radix(mask, 16).ok()?)));
    match parsed {
        Some((rest, mask)) => format!("{rest}/{:#x}", mask & !OF_OWNERS),
        None => line.to_owned(),
    }
}

fn start(subject: Subject, lab: &Lab, share: &Path) -> Result<Server> {
    let mut plan = Plan::sharing(share);
    plan.samba_globals = SETTINGS.map(String::from).to_vec();
    Server::start_as(subject, Some(lab), None, plan)
}

/// Makes the tree. New files inherit from the list of its root.
fn write(lab: &Lab, server: &Server) -> Result<()> {
    let client = Smbclient::new(lab, server);
    client.run("mkdir tree")?;
    let list = format!(
        "{OWNERS},ACL:S-1-22-1-2001:ALLOWED/OI|CI/FULL,ACL:S-1-3-0:ALLOWED/OI|CI|IO/FULL,\
         ACL:S-1-1-0:ALLOWED/OI|CI/READ"
    );
    let tools = SambaTools::new(lab, server);
    tools.smbcacls("tree", &["-S", &list])?;
    client.run(
        "mkdir tree/below\nmkdir tree/below/deep\nmkdir tree/own\nput /etc/hostname tree/a.txt\n\
         put /etc/hostname tree/below/b.txt\nput /etc/hostname tree/below/deep/c.txt\n\
         put /etc/hostname tree/own/d.txt",
    )?;
    for (item, arguments) in CHANGES {
        tools.smbcacls(item, arguments)?;
    }
    Ok(())
}

/// The descriptors of all items, in the form of smbcacls with SIDs.
fn listing<'a>(lab: &Lab, server: &Server) -> Result<BTreeMap<&'a str, String>> {
    let tools = SambaTools::new(lab, server);
    let show = |item| Ok((item, tools.smbcacls(item, &["--numeric"])?));
    ITEMS.into_iter().map(show).collect()
}

/// The stored descriptors of all items.
fn stored(share: &Path) -> Result<BTreeMap<&'static str, Vec<u8>>> {
    let read = |item| {
        let mut value = vec![0; VALUE_MAX];
        let length = rustix::fs::getxattr(share.join(item), NTACL, &mut value[..]);
        value.truncate(length.with_context(|| format!("{item} has no descriptor"))?);
        Ok((item, value))
    };
    ITEMS.into_iter().map(read).collect()
}
