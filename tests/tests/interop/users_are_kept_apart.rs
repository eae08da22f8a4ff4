//! Two users with private files: nothing of the one shows to the other.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use anyhow::{Result, ensure};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::session::{ACCESS_ALL, ACCESS_READ, Connection, FILE_BEFORE, Request};
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{ALICE, BOB, Plan, Server, USERS, User};
use smbeam_tests::tests;

tests!(
    private_files_stay_private,
    new_files_belong_to_their_maker,
    compounds_of_two_users_do_not_mix,
    pipelined_requests_of_two_users_do_not_mix,
);

const ACCESS_DENIED: u32 = 0xc000_0022;

fn private_files_stay_private() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("users")?;
    let share = scratch.open_directory("share")?;
    for user in USERS {
        make_private_files(user, &share)?;
    }
    let server = Server::start(&lab, Plan::sharing(&share))?;
    for (user, other) in [(ALICE, BOB), (BOB, ALICE)] {
        let client = Smbclient::new(&lab, &server)
            .user(user)
            .directory(scratch.path());
        let (mine, theirs) = (user.name, other.name);
        client.run(&format!(
            "get {mine}-file got\ncd {mine}-dir\nls\nget inner got"
        ))?;
        ensure!(fs::read_to_string(scratch.path().join("got"))?.contains(mine));
        for command in [
            format!("get {theirs}-file stolen"),
            format!("ls {theirs}-dir/*"),
            format!("get {theirs}-dir/inner stolen"),
            format!("put got {theirs}-file"),
            format!("put got {theirs}-dir/planted"),
            format!("mkdir {theirs}-dir/planted"),
            format!("del {theirs}-dir/inner"),
            format!("rename {theirs}-dir/inner taken"),
        ] {
            let refused = client.try_run(&command)?;
            ensure!(
                refused.text.contains("NT_STATUS_ACCESS_DENIED"),
                "{command}: {refused}"
            );
        }
        let stolen = fs::read_to_string(scratch.path().join("stolen")).unwrap_or_default();
        ensure!(
            !stolen.contains(theirs),
            "{mine} reads what is private to {theirs}"
        );
    }
    for user in USERS {
        let directory = share.join(format!("{}-dir", user.name));
        ensure!(fs::read_to_string(directory.join("inner"))? == format!("inner of {}", user.name));
        ensure!(
            fs::read_dir(directory)?.count() == 1,
            "something was planted"
        );
    }
    Ok(())
}

fn new_files_belong_to_their_maker() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("owners")?;
    let share = scratch.open_directory("share")?;
    fs::write(scratch.path().join("file"), "text")?;
    let server = Server::start(&lab, Plan::sharing(&share))?;
    for user in USERS {
        let client = Smbclient::new(&lab, &server)
            .user(user)
            .directory(scratch.path());
        let name = user.name;
        client.run(&format!("put file by-{name}\nmkdir made-by-{name}"))?;
        for path in [format!("by-{name}"), format!("made-by-{name}")] {
            let found = share.join(&path).metadata()?;
            ensure!(
                (found.uid(), found.gid()) == (user.id, user.id),
                "{path} is not {name}'s"
            );
        }
    }
    Ok(())
}

/// Two sessions on one connection: each reads its own file in a compound and not the other's.
fn compounds_of_two_users_do_not_mix() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("compounds")?;
    let share = scratch.open_directory("share")?;
    for user in USERS {
        make_private_files(user, &share)?;
    }
    let server = Server::start(&lab, Plan::sharing(&share))?;
    let mut connection = Connection::open(server.tcp)?;
    let sessions = [
        connection.log_in(ALICE, "data")?,
        connection.log_in(BOB, "data")?,
    ];
    for round in 0..100 {
        let (me, other) = (round % 2, 1 - round % 2);
        let own = connection.compound(sessions[me], &read_inner_of(USERS[me]))?;
        own[0].expect("the own file")?;
        ensure!(own[1].data() == format!("inner of {}", USERS[me].name).as_bytes());
        own[2].expect("the close")?;
        let foreign = connection.compound(sessions[me], &read_inner_of(USERS[other]))?;
        for response in foreign {
            ensure!(
                response.status == ACCESS_DENIED,
                "{:#010x}",
                response.status
            );
            ensure!(response.data().is_empty(), "data comes with a refusal");
        }
    }
    // A file that the other session opened is no file of this one.
    let opened = connection.call(sessions[1], &Request::open("bob-file", ACCESS_READ))?;
    opened.expect("the own file")?;
    let stolen = connection.call(sessions[0], &Request::read(opened.file()?, 100))?;
    ensure!(
        stolen.status != 0 && stolen.data().is_empty(),
        "alice reads through bob's open"
    );
    Ok(())
}

/// Requests of two sessions in turn without waiting for answers.
fn pipelined_requests_of_two_users_do_not_mix() -> Result<()> {
    const ROUNDS: usize = 20;
    const AT_ONCE: usize = 32;
    let lab = Lab::find()?;
    let scratch = Scratch::new("pipelined")?;
    let share = scratch.open_directory("share")?;
    for user in USERS {
        make_private_files(user, &share)?;
    }
    let server = Server::start(&lab, Plan::sharing(&share))?;
    let mut connection = Connection::open(server.tcp)?;
    let sessions = [
        connection.log_in(ALICE, "data")?,
        connection.log_in(BOB, "data")?,
    ];
    for round in 0..ROUNDS {
        let mut allowed = BTreeMap::new();
        for number in 0..AT_ONCE {
            // Each file is asked for by its owner and by the other, in every order.
            let (user, owner) = (number % 2, (number / 2 + round) % 2);
            let name = format!("{}-dir\\inner", USERS[owner].name);
            let open = Request::open(&name, ACCESS_READ);
            allowed.insert(connection.post(sessions[user], &[open])?, user == owner);
            let make = Request::make(&format!("{round}-{number}"), ACCESS_ALL);
            allowed.insert(connection.post(sessions[user], &[make])?, true);
        }
        for response in connection.collect(2 * AT_ONCE)? {
            let expected = if allowed[&response.message_id] {
                0
            } else {
                ACCESS_DENIED
            };
            ensure!(
                response.status == expected,
                "{:#010x} in {round}",
                response.status
            );
        }
        for number in 0..AT_ONCE {
            let owner = share.join(format!("{round}-{number}")).metadata()?.uid();
            ensure!(
                owner == USERS[number % 2].id,
                "{round}-{number} belongs to {owner}"
            );
        }
    }
    Ok(())
}

fn read_inner_of(user: User) -> [Request; 3] {
    [
        Request::open(&format!("{}-dir\\inner", user.name), ACCESS_READ),
        Request::read(FILE_BEFORE, 100),
        Request::close(FILE_BEFORE),
    ]
}

fn make_private_files(user: User, share: &Path) -> Result<()> {
    let file = share.join(format!("{}-file", user.name));
    fs::write(&file, format!("secret of {}", user.name))?;
    let directory = share.join(format!("{}-dir", user.name));
    fs::create_dir(&directory)?;
    fs::write(directory.join("inner"), format!("inner of {}", user.name))?;
    for (path, mode) in [
        (&file, 0o600),
        (&directory.join("inner"), 0o600),
        (&directory, 0o700),
    ] {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        chown(path, Some(user.id), Some(user.id))?;
    }
    Ok(())
}
