//! `smbeam acl` shows, changes, copies and finds owners and access control lists.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use smbeam_tests::client::Client;
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::stage::Stage;
use smbeam_tests::subject::{Plan, Server, Subject};
use smbeam_tests::tests;

tests!(
    descriptors_are_set_and_shown,
    entries_are_granted_and_revoked,
    trees_are_changed_and_searched,
    descriptors_are_copied,
    errors_are_those_of_other_commands,
    a_server_without_lists_is_reported,
);

/// A descriptor that servers keep as it is: of bob, by the Unix id that every server knows.
const LIST: &str = "D:P(A;;FA;;;WD)(A;;FR;;;S-1-22-1-2002)";

fn stage(name: &str) -> Result<Stage> {
    Stage::with("tcp", name, |plan, _| {
        plan.samba_globals
            .push("vfs objects = acl_xattr streams_xattr".to_owned());
        Ok(())
    })
}

/// Files that alice owns.
fn make_files(client: &Client) -> Result<()> {
    let tree = client.local("tree");
    fs::create_dir_all(tree.join("below"))?;
    for name in ["a", "b", "below/c"] {
        fs::write(tree.join(name), name)?;
    }
    client.run(&["put", "-r", "tree", "{}"])?;
    Ok(())
}

/// The list of a file in SDDL.
fn list(client: &Client, path: &str) -> Result<String> {
    let shown = client.run(&["acl", "get", "--sddl", path])?;
    let (_, sddl) = shown.text.trim_end().split_once('\t').context("no tab")?;
    let start = sddl.find("D:").context("no DACL")?;
    Ok(sddl[start..].to_owned())
}

fn described(client: &Client, path: &str) -> Result<Value> {
    let shown = client.run(&["acl", "get", "--json", path])?;
    Ok(serde_json::from_str(&shown.text)?)
}

fn descriptors_are_set_and_shown() -> Result<()> {
    let Stage { client, .. } = &stage("acl-set")?;
    make_files(client)?;
    client.run(&["acl", "set", "--sddl", LIST, "{}tree/a"])?;
    let shown = list(client, "{}tree/a")?;
    ensure!(shown == LIST, "{shown}");
    let shown = client.run(&["acl", "get", "{}tree/a"])?.text;
    for words in [
        "  owner   ",
        "  allow   Everyone  full",
        "  allow   Unix User\\2002  read",
        "passes no entries on",
    ] {
        ensure!(shown.contains(words), "{words:?} is not in {shown}");
    }
    let described = described(client, "{}tree/a")?;
    ensure!(described["protected"] == true, "{described}");
    ensure!(
        described["entries"][1]["sid"] == "S-1-22-1-2002",
        "{described}"
    );
    ensure!(
        described["entries"][1]["rights"][0] == "read",
        "{described}"
    );
    Ok(())
}

fn entries_are_granted_and_revoked() -> Result<()> {
    let Stage { client, .. } = &stage("acl-grant")?;
    make_files(client)?;
    client.run(&["acl", "set", "--sddl", LIST, "{}tree/a"])?;
    let change = |arguments: &[&str]| -> Result<String> {
        client.run(&[&["acl", "set"], arguments, &["{}tree/a"]].concat())?;
        list(client, "{}tree/a")
    };
    let granted = change(&["--grant", "uid=2002:write"])?;
    ensure!(
        granted == "D:P(A;;FA;;;WD)(A;;0x12019f;;;S-1-22-1-2002)",
        "{granted}"
    );
    let denied = change(&["--deny", "uid=2002:delete"])?;
    let expected = "D:P(D;;SD;;;S-1-22-1-2002)(A;;FA;;;WD)(A;;0x12019f;;;S-1-22-1-2002)";
    ensure!(denied == expected, "{denied}");
    let dry = client.run(&["acl", "set", "-n", "--revoke", "uid=2002", "{}tree/a"])?;
    ensure!(dry.text.trim_end().ends_with("\tD:P(A;;FA;;;WD)"), "{dry}");
    let same = list(client, "{}tree/a")?;
    ensure!(same == denied, "a dry run has changed {same}");
    let revoked = change(&["--revoke", "uid=2002"])?;
    ensure!(revoked == "D:P(A;;FA;;;WD)", "{revoked}");
    Ok(())
}

fn trees_are_changed_and_searched() -> Result<()> {
    let Stage { client, .. } = &stage("acl-tree")?;
    make_files(client)?;
    let found = |arguments: &[&str]| -> Result<Vec<String>> {
        let found = client.run(&[&["acl", "find"], arguments, &["{}tree"]].concat())?;
        let mut names: Vec<_> = found
            .text
            .lines()
            .map(|line| line.rsplit("/data/").next().unwrap_or(line).to_owned())
            .collect();
        names.sort();
        Ok(names)
    };
    ensure!(found(&["--sid", "uid=2002"])?.is_empty());
    let grant = "uid=2002:modify:files,directories";
    client.run(&["acl", "set", "-r", "--grant", grant, "{}tree/below"])?;
    let names = found(&["--sid", "uid=2002"])?;
    ensure!(names == ["tree/below", "tree/below/c"], "{names:?}");
    let names = found(&["--sid", "uid=2002", "--grants", "delete"])?;
    ensure!(names == ["tree/below", "tree/below/c"], "{names:?}");
    ensure!(found(&["--sid", "uid=2002", "--grants", "take-ownership"])?.is_empty());
    let entry = described(client, "{}tree/below")?["entries"]
        .as_array()
        .context("entries")?
        .iter()
        .find(|entry| entry["sid"] == "S-1-22-1-2002")
        .context("no entry for bob")?
        .clone();
    ensure!(entry["rights"][0] == "modify", "{entry}");
    let inheritance: Vec<_> = entry["inheritance"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    ensure!(inheritance == ["files", "directories"], "{entry}");
    Ok(())
}

fn descriptors_are_copied() -> Result<()> {
    let Stage { client, .. } = &stage("acl-copy")?;
    make_files(client)?;
    client.run(&["put", "-r", "tree", "{}other"])?;
    client.run(&["acl", "set", "--sddl", LIST, "{}tree/a"])?;
    client.run(&["acl", "set", "--sddl", LIST, "{}tree/below/c"])?;
    client.run(&["acl", "copy", "{}tree/a", "{}other/b"])?;
    ensure!(list(client, "{}other/b")? == LIST);
    client.run(&["acl", "copy", "-r", "{}tree", "{}other"])?;
    ensure!(list(client, "{}other/a")? == LIST);
    ensure!(list(client, "{}other/below/c")? == LIST);
    // `cp -a` and `sync -a` copy them with the files.
    client.run(&["cp", "-a", "{}tree", "{}third"])?;
    ensure!(list(client, "{}third/a")? == LIST);
    // A download keeps them, and an upload restores them.
    client.run(&["get", "-a", "{}tree", "back"])?;
    client.run(&["put", "-a", "back", "{}fourth"])?;
    ensure!(list(client, "{}fourth/below/c")? == LIST);
    Ok(())
}

fn errors_are_those_of_other_commands() -> Result<()> {
    let Stage { client, .. } = &stage("acl-errors")?;
    make_files(client)?;
    client.fail(&["acl", "get", "{}missing"], 5, &["missing", "not found"])?;
    client.fail(&["acl", "set", "{}tree/a"], 2, &["--sddl"])?;
    client.fail(
        &["acl", "set", "--sddl", "D:(X)", "{}tree/a"],
        2,
        &["offset"],
    )?;
    client.fail(
        &["acl", "set", "--grant", "zoe:read", "{}tree/a"],
        2,
        &["zoe"],
    )?;
    client.fail(
        &["acl", "set", "--grant", "Everyone:reading", "{}tree/a"],
        2,
        &["reading"],
    )?;
    client.fail(&["acl", "find", "{}tree"], 2, &["--sid"])?;
    Ok(())
}

/// smbd reports a list that means nothing, and a change of it as a success.
fn a_server_without_lists_is_reported() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("acl-none")?;
    let mut plan = Plan::sharing(&scratch.open_directory("share")?);
    plan.samba_globals.push("nt acl support = no".to_owned());
    let server = Server::start_as(Subject::Samba, Some(&lab), None, plan)?;
    let client = &Client::over("tcp", &server)?;
    make_files(client)?;
    let grant = "Everyone:read";
    for arguments in [
        &["acl", "get", "{}tree/a"][..],
        &["acl", "set", "--grant", grant, "{}tree/a"],
        &["acl", "copy", "{}tree/a", "{}tree/b"],
        &["acl", "find", "--sid", "Everyone", "{}tree"],
    ] {
        client.fail(arguments, 1, &["tree", "keeps no access control lists"])?;
    }
    Ok(())
}
