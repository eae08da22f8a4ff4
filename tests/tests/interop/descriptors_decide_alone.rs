//! A share with `acl = "windows"`: descriptors alone decide about the access of users, and the
//! files belong to a service account. No user gets past them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use smbeam_tests::lab::Lab;
use smbeam_tests::samba_tools::SambaTools;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{ALICE, BOB, Plan, Server, Subject, User};
use smbeam_tests::tests;

tests!(
    descriptors_decide_and_files_belong_to_the_service,
    names_are_changed_only_with_their_rights,
    no_access_leads_out_of_the_share,
    a_service_that_is_root_is_named_so,
);

/// The service account, which logs in to give the root of the share its first list.
const SERVICE: User = User {
    name: "smbdata",
    password: "Service-12",
    id: 2099,
};
const ACCOUNTS: &str = "smbdata:x:2099:2099::/tmp:/bin/sh\ntoor:x:0:0::/tmp:/bin/sh\n";
/// Alice may do everything in the share, bob may read, and both own what they create.
const ENTRIES: [&str; 3] = [
    "ACL:S-1-3-0:ALLOWED/OI|CI|IO/FULL",
    "ACL:S-1-22-1-2001:ALLOWED/OI|CI/FULL",
    "ACL:S-1-22-1-2002:ALLOWED/OI|CI/READ",
];

/// A server with a share, and its directory.
struct Stage {
    lab: Lab,
    server: Server,
    share: PathBuf,
    _scratch: Scratch,
}

impl Stage {
    fn new(account: &str) -> Result<Self> {
        let scratch = Scratch::new("service")?;
        let lab = Lab::find()?;
        let lab = lab.with_accounts(scratch.path(), ACCOUNTS, "smbdata:x:2099:\n")?;
        let share = scratch.open_directory("share")?;
        chown(&share, Some(SERVICE.id), Some(SERVICE.id))?;
        fs::set_permissions(&share, Permissions::from_mode(0o700))?;
        let mut plan = Plan::sharing(&share);
        plan.users = vec![SERVICE];
        let keys = &mut plan.shares[0].keys;
        keys.insert("acl".into(), "windows".into());
        keys.insert("service_account".into(), account.into());
        let server = Server::start_as(Subject::Smbeam, Some(&lab), None, plan)?;
        Ok(Self {
            lab,
            server,
            share,
            _scratch: scratch,
        })
    }

    /// The share with the entries for alice and bob at its root.
    fn opened() -> Result<Self> {
        let stage = Self::new(SERVICE.name)?;
        for entry in ENTRIES {
            stage.tools(SERVICE).smbcacls("/", &["-a", entry])?;
        }
        Ok(stage)
    }

    fn client(&self, user: User) -> Smbclient<'_> {
        Smbclient::new(&self.lab, &self.server).user(user)
    }

    fn tools(&self, user: User) -> SambaTools<'_> {
        SambaTools::new(&self.lab, &self.server).user(user)
    }

    /// Runs commands of smbclient that must be refused.
    fn refused(&self, user: User, commands: &str) -> Result<()> {
        let output = self.client(user).try_run(commands)?;
        let is_refused = output.text.contains("NT_STATUS_ACCESS_DENIED");
        ensure!(is_refused, "{}: {commands}: {output}", user.name);
        Ok(())
    }

    /// The Unix owner and the mode of a file.
    fn unix(&self, name: &str) -> Result<(u32, u32)> {
        let metadata = fs::symlink_metadata(self.share.join(name))?;
        Ok((metadata.uid(), metadata.mode() & 0o7777))
    }
}

fn descriptors_decide_and_files_belong_to_the_service() -> Result<()> {
    let stage = Stage::new(SERVICE.name)?;
    // Without a stored list, the permissions of the root count: those of the service alone.
    stage.refused(ALICE, "ls")?;
    for entry in ENTRIES {
        stage.tools(SERVICE).smbcacls("/", &["-a", entry])?;
    }
    let alice = stage.client(ALICE);
    alice.run("mkdir below\nput /etc/hostname below/file\nput /etc/hostname own")?;
    ensure!(stage.unix("below")? == (SERVICE.id, 0o700));
    ensure!(stage.unix("below/file")? == (SERVICE.id, 0o600));
    let shown = stage.tools(ALICE).smbcacls("below/file", &["--numeric"])?;
    ensure!(shown.contains("OWNER:S-1-22-1-2001"), "{shown}");
    let bob = stage.client(BOB);
    bob.run("ls\ncd below\nget file /dev/null")?;
    for commands in [
        "put /etc/hostname new",
        "put /etc/hostname below/file",
        "rm own",
        "rename own mine",
        "mkdir new",
        "rmdir below",
        "put /etc/hostname own:stream",
    ] {
        stage.refused(BOB, commands)?;
    }
    // Neither a mode nor a POSIX list lets him in, nor does the owner of the file.
    let entry = "ACL:S-1-22-1-2002:DENIED/0x0/FULL";
    stage.tools(ALICE).smbcacls("own", &["-a", entry])?;
    fs::set_permissions(stage.share.join("own"), Permissions::from_mode(0o777))?;
    stage.refused(BOB, "get own /dev/null")?;
    alice.run("get own /dev/null")?;
    // A mode in an entry changes no mode: 2541 is 04755.
    let mode = "ACL:S-1-5-88-3-2541:DENIED/0x0/0x00000000";
    stage.tools(ALICE).smbcacls("below/file", &["-a", mode])?;
    ensure!(stage.unix("below/file")? == (SERVICE.id, 0o600));
    // The owner of a descriptor cannot be given away.
    let given = stage
        .tools(ALICE)
        .try_smbcacls("own", &["-C", "S-1-22-1-2002"])?;
    ensure!(given.text.contains("INVALID_OWNER"), "{given}");
    Ok(())
}

fn names_are_changed_only_with_their_rights() -> Result<()> {
    let stage = Stage::opened()?;
    let alice = stage.client(ALICE);
    alice.run("mkdir shared\nmkdir closed\nput /etc/hostname shared/hers")?;
    // Bob may add files to the directory, and delete his own.
    let entry = "ACL:S-1-22-1-2002:ALLOWED/0x0/0x00000006";
    stage.tools(ALICE).smbcacls("shared", &["-a", entry])?;
    let bob = stage.client(BOB);
    bob.run("put /etc/hostname shared/his")?;
    for commands in [
        "rm shared/hers",
        "rename shared/hers shared/other",
        "rename shared/his shared/hers -f",
        "rename shared/his closed/his",
        "hardlink shared/his closed/his",
    ] {
        stage.refused(BOB, commands)?;
    }
    bob.run("rename shared/his shared/renamed\nrm shared/renamed")?;
    alice.run("rename shared/hers closed/hers\nrm closed/hers")?;
    Ok(())
}

fn no_access_leads_out_of_the_share() -> Result<()> {
    let stage = Stage::opened()?;
    let outside = stage.share.parent().map(|parent| parent.join("secret"));
    let Some(outside) = outside else {
        bail!("the share has a directory above it");
    };
    fs::write(&outside, "secret")?;
    chown(&outside, Some(SERVICE.id), Some(SERVICE.id))?;
    symlink(&outside, stage.share.join("absolute"))?;
    symlink("../secret", stage.share.join("relative"))?;
    for name in ["absolute", "relative", "../secret"] {
        let output = stage
            .client(ALICE)
            .try_run(&format!("get {name} /dev/null"))?;
        ensure!(output.text.contains("NT_STATUS_"), "{name}: {output}");
    }
    // A file of another account is not readable.
    let foreign = stage.share.join("foreign");
    fs::write(&foreign, "root's")?;
    fs::set_permissions(&foreign, Permissions::from_mode(0o600))?;
    stage.refused(ALICE, "get foreign /dev/null")
}

fn a_service_that_is_root_is_named_so() -> Result<()> {
    for (account, reason) in [
        ("toor", "`toor` has the user id 0"),
        (
            "no-such-account",
            "there is no Unix account `no-such-account`",
        ),
    ] {
        match Stage::new(account) {
            Ok(_) => bail!("the server starts with {account}"),
            Err(error) => {
                let error = format!("{error:#}");
                ensure!(error.contains(reason), "{error}");
            }
        }
    }
    Stage::new("root").map(drop)
}
