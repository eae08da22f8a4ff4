//! App passwords admit to some shares, to reading only or for some time. Users of Samba keep their
//! passwords.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use smbeam_tests::client::Client;
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::session::Connection;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{self, ALICE, BOB, Plan, Server, Share, Subject, User};
use smbeam_tests::{tests, wait};

tests!(
    an_app_password_has_its_rights_only,
    sessions_of_a_removed_or_expired_app_password_end,
    users_of_samba_keep_their_passwords,
    weak_passwords_are_refused,
);

/// Time in which the server notices a change.
const TIME_LIMIT: Duration = Duration::from_secs(30);
const DENIED: &str = "NT_STATUS_ACCESS_DENIED";

/// Runs `smbeam user COMMAND --file FILE ARGUMENTS` on the file of a server.
fn try_user(server: &Server, command: &[&str], arguments: &[&str], input: &str) -> Result<Output> {
    let mut child = Command::new(subject::program()?)
        .arg("user")
        .args(command)
        .arg("--file")
        .arg(server.directory().join("users.toml"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().context("the input was piped")?;
    stdin.write_all(input.as_bytes())?;
    drop(stdin);
    Ok(child.wait_with_output()?)
}

fn user(server: &Server, command: &[&str], arguments: &[&str]) -> Result<String> {
    let output = try_user(server, command, arguments, "")?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Alice with a new app password.
fn with_app_password(server: &Server, arguments: &[&str]) -> Result<User> {
    let printed = user(server, &["app-password", "add"], arguments)?;
    let password = printed.trim().to_owned();
    ensure!(password.len() == 29, "{printed}");
    let users = fs::read_to_string(server.directory().join("users.toml"))?;
    ensure!(
        !users.contains(&password),
        "the file has the password itself"
    );
    Ok(User {
        password: password.leak(),
        ..ALICE
    })
}

fn start(lab: &Lab, scratch: &Scratch) -> Result<Server> {
    let mut plan = Plan::sharing(&scratch.open_directory("share")?);
    let photos = scratch.open_directory("photos")?;
    plan.shares.push(Share::new("photos", &photos));
    Server::start_as(Subject::Smbeam, Some(lab), None, plan)
}

fn an_app_password_has_its_rights_only() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("app-password")?;
    let server = start(&lab, &scratch)?;
    fs::write(scratch.path().join("photos/one"), "a photo")?;
    let arguments = [
        "alice",
        "phone",
        "--expires",
        "90d",
        "--share",
        "Photos",
        "--read-only",
    ];
    let phone = with_app_password(&server, &arguments)?;
    let tablet = with_app_password(&server, &["ALICE", "tablet"])?;

    let client = |user| {
        let client = Smbclient::new(&lab, &server).user(user).share("photos");
        client.directory(scratch.path())
    };
    client(phone).run("get one got")?;
    ensure!(fs::read_to_string(scratch.path().join("got"))? == "a photo");
    for command in ["put got two", "put got one", "del one", "mkdir dir"] {
        let refused = client(phone).try_run(command)?;
        ensure!(refused.text.contains(DENIED), "{command}: {refused}");
    }
    let other = client(phone).share("data").try_run("ls")?;
    ensure!(other.failed_with(DENIED), "{other}");
    // The other passwords have all rights of the user, also from our own client.
    for user in [ALICE, tablet] {
        client(user).run("put got two\ndel two")?;
        client(user).share("data").run("ls")?;
    }
    let swapped = User {
        password: phone.password,
        ..BOB
    };
    let wrong = client(swapped).try_run("ls")?;
    ensure!(wrong.failed_with("NT_STATUS_LOGON_FAILURE"), "{wrong}");
    let ours = Client::new(&server)?.user(phone);
    let url = ours.url_in("photos", "one");
    ensure!(ours.run(&["cat", &url])?.text == "a photo");
    for logged in [
        "app_password=phone",
        "app_password=tablet",
        "the app password of the login is for other shares",
    ] {
        wait::for_line(|| server.log(), &[logged])?;
    }
    last_uses_are_shown(&server)
}

fn last_uses_are_shown(server: &Server) -> Result<()> {
    with_app_password(server, &["alice", "unused"])?;
    let directory = server.directory().display().to_string();
    let arguments = ["alice", "--json", "--state-directory", &directory];
    let listed = || user(server, &["app-password", "ls"], &arguments);
    let uses = || -> Result<Vec<(String, bool)>> {
        let listed = listed()?;
        let objects = listed.lines().map(|line| {
            let object: Value = serde_json::from_str(line)?;
            let name = object["name"].as_str().context("a name")?.to_owned();
            Ok((name, object["last_use"].is_string()))
        });
        objects.collect()
    };
    let expected = [("phone", true), ("tablet", true), ("unused", false)];
    let expected = expected.map(|(name, is_used)| (name.to_owned(), is_used));
    wait::until("the last uses", TIME_LIMIT, || {
        uses().is_ok_and(|uses| uses == expected)
    })?;
    let listed = listed()?;
    let phone: Value = serde_json::from_str(listed.lines().next().context("a line")?)?;
    ensure!(
        phone["read_only"] == true && phone["shares"][0] == "Photos",
        "{phone}"
    );
    ensure!(
        phone["expires"].is_string() && phone["has_expired"] == false,
        "{phone}"
    );
    Ok(())
}

fn sessions_of_a_removed_or_expired_app_password_end() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("expiry")?;
    let server = start(&lab, &scratch)?;
    let removed = with_app_password(&server, &["alice", "removed"])?;
    let expiring = with_app_password(&server, &["alice", "expiring", "--expires", "15s"])?;
    let enter = |user| -> Result<(Connection, smbeam_tests::session::Session)> {
        let mut connection = Connection::open(server.tcp)?;
        let session = connection.log_in(user, "data")?;
        Ok((connection, session))
    };
    let (mut main, session) = enter(ALICE)?;
    let (_removed, _) = enter(removed)?;
    let (_expiring, _) = enter(expiring)?;
    user(&server, &["app-password", "rm"], &["alice", "removed"])?;
    let ended = |name: &str, reason: &str| {
        let app_password = format!("app_password={name}");
        wait::until("the end of the session", TIME_LIMIT, || {
            let log = server.log();
            let mut lines = log.lines();
            lines.any(|line| {
                let parts = ["ending the sessions", &app_password, reason];
                parts.iter().all(|part| line.contains(part))
            })
        })
    };
    ended("removed", "the app password was removed")?;
    ended("expiring", "the app password expired")?;
    let client = |user| Smbclient::new(&lab, &server).user(user);
    let refused = client(removed).try_run("ls")?;
    ensure!(refused.failed_with("NT_STATUS_LOGON_FAILURE"), "{refused}");
    let refused = client(expiring).try_run("ls")?;
    ensure!(
        refused.failed_with("NT_STATUS_PASSWORD_EXPIRED"),
        "{refused}"
    );
    // The session with the main password stays.
    let open = smbeam_tests::session::Request::open("no-file", smbeam_tests::session::ACCESS_READ);
    let response = main.call(session, &open)?;
    const NOT_FOUND: u32 = 0xc000_0034;
    ensure!(response.status == NOT_FOUND, "{response:?}");
    Ok(())
}

fn users_of_samba_keep_their_passwords() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("import")?;
    let samba = Server::start_as(
        Subject::Samba,
        Some(&lab),
        None,
        Plan::sharing(&scratch.open_directory("samba")?),
    )?;
    let exported = lab
        .command("pdbedit")
        .arg("-s")
        .arg(samba.directory().join("smb.conf"))
        .args(["-L", "-w"])
        .output()?;
    let exported = String::from_utf8(exported.stdout)?;
    ensure!(
        exported.contains("alice:") && exported.contains("bob:"),
        "{exported}"
    );
    let server = start(&lab, &scratch)?;
    let other = "another password\n";
    for name in ["alice", "bob"] {
        let changed = try_user(&server, &["passwd", "--password-stdin"], &[name], other)?;
        ensure!(changed.status.success(), "{changed:?}");
    }
    user(&server, &["rm"], &["bob"])?;
    let import = |arguments: &[&str]| try_user(&server, &["import"], arguments, &exported);
    let kept = import(&["-"])?;
    let text = String::from_utf8_lossy(&kept.stdout).into_owned();
    ensure!(
        text == "1 added, 0 replaced, 1 kept, 0 skipped\n",
        "{kept:?}"
    );
    let may_log_in = |user| -> Result<bool> {
        Ok(Smbclient::new(&lab, &server).user(user).try_run("ls")?.code == Some(0))
    };
    ensure!(may_log_in(BOB)?, "an imported user");
    ensure!(!may_log_in(ALICE)?, "alice was kept");
    let replaced = import(&["--replace", "-"])?;
    ensure!(replaced.status.success(), "{replaced:?}");
    ensure!(may_log_in(ALICE)?, "a replaced user");
    let bad = try_user(
        &server,
        &["import"],
        &["-"],
        "# comment\nnonsense\npc$:1:X:X:[W ]:\n",
    )?;
    let errors = String::from_utf8_lossy(&bad.stderr).into_owned();
    ensure!(!bad.status.success(), "{bad:?}");
    for words in [
        "-, line 2: the line has fewer than four fields",
        "-, line 3: pc$ is the account of a computer: skipped",
        "-: 1 line is not valid",
    ] {
        ensure!(errors.contains(words), "{words}: {errors}");
    }
    Ok(())
}

fn weak_passwords_are_refused() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("rules")?;
    let server = start(&lab, &scratch)?;
    let options = [
        "--min-length",
        "10",
        "--min-classes",
        "3",
        "--refuse-name",
        "true",
    ];
    let rules = user(&server, &["rules"], &options)?;
    ensure!(
        rules == "min_length = 10\nmin_classes = 3\nrefuse_name = true\n",
        "{rules}"
    );
    for (password, words) in [
        ("Short-1", "fewer than 10 characters"),
        ("long enough", "needs 3 of these classes"),
        ("I am ALICE-1", "contains the user name"),
    ] {
        let output = try_user(
            &server,
            &["passwd", "--password-stdin"],
            &["alice"],
            password,
        )?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            !output.status.success() && errors.contains(words),
            "{password}: {errors}"
        );
    }
    Smbclient::new(&lab, &server).user(ALICE).run("ls")?;
    let good = try_user(
        &server,
        &["passwd", "--password-stdin"],
        &["alice"],
        "Good enough 1",
    )?;
    ensure!(good.status.success(), "{good:?}");
    let changed = User {
        password: "Good enough 1",
        ..ALICE
    };
    Smbclient::new(&lab, &server).user(changed).run("ls")?;
    Ok(())
}
