//! The SMB3 POSIX extensions on the wire: smbeam sends what smbd sends where they should agree, and
//! refuses malformed requests without harm to their session. Samba's client library asks.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::lab::Lab;
use smbeam_tests::namespace::{HOST_ADDRESS, Namespace};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, Plan, Server, Subject};
use smbeam_tests::tests;

tests!(answers_agree_and_bad_requests_fail);

const PROGRAM: &str = include_str!("../../src/python/posix_wire.py");
/// smbd limits the modes of new files by default.
const SAMBA_GLOBALS: [&str; 2] = ["create mask = 7777", "directory mask = 7777"];
/// The statuses of smbeam for malformed requests, by the start of their names. A name with
/// components `.` and `..` has them as plain names or fails; `/` separates components.
const REFUSALS: [(&str, &[&str]); 11] = [
    ("negotiate-", &["INVALID_PARAMETER"]),
    ("context-", &["INVALID_PARAMETER"]),
    ("name-slash", &["OBJECT_PATH_NOT_FOUND"]),
    ("name-slash-at-the-end", &["SUCCESS", "OBJECT_NAME_INVALID"]),
    ("name-dot", &["SUCCESS", "ACCESS_DENIED"]),
    ("name-dot-dot", &["OBJECT_PATH_SYNTAX_BAD"]),
    ("name-dots-between", &["SUCCESS"]),
    ("name-empty-component", &["SUCCESS"]),
    ("name-long", &["NAME_TOO_LONG"]),
    ("file-information-", &["INVALID_INFO_CLASS"]),
    ("file-system-", &["INVALID_INFO_CLASS"]),
];

/// The answers of a server, and its statuses, by the names of the requests.
#[derive(Debug)]
struct Found {
    answers: BTreeMap<String, String>,
    statuses: BTreeMap<String, String>,
}

fn answers_agree_and_bad_requests_fail() -> Result<()> {
    let ours = ask(Subject::Smbeam)?;
    let theirs = ask(Subject::Samba)?;
    ensure!(
        ours.answers == theirs.answers,
        "smbeam: {:#?}\nsmbd: {:#?}",
        ours.answers,
        theirs.answers
    );
    ensure!(ours.statuses.len() > 15, "{:?}", ours.statuses);
    for (name, status) in &ours.statuses {
        let exact = REFUSALS.iter().find(|(known, _)| known == name);
        let starts = |known: &str| known.ends_with('-') && name.starts_with(known);
        let known = exact.or_else(|| REFUSALS.iter().find(|(known, _)| starts(known)));
        let (_, expected) = known.with_context(|| format!("no status for {name}"))?;
        let status = status.trim_start_matches("NT_STATUS_");
        ensure!(expected.contains(&status), "{name}: {status}");
    }
    Ok(())
}

fn ask(subject: Subject) -> Result<Found> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("posix-wire")?;
    let program = scratch.path().join("posix_wire.py");
    std::fs::write(&program, PROGRAM)?;
    let namespace = Namespace::with_tap()?;
    let plan = Plan {
        samba_globals: SAMBA_GLOBALS.map(str::to_owned).to_vec(),
        ..Plan::sharing(&scratch.open_directory("share")?)
    };
    let holder = namespace.holder();
    let server = Server::start_as(subject, Some(&lab), Some(holder), plan)?;
    let mut command = lab.command_under(Some(holder), "python3");
    let arguments = [HOST_ADDRESS, ALICE.name, ALICE.password, "data"];
    let output = command.arg(&program).args(arguments).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && text.lines().last() == Some("finished"),
        "{subject:?}: {text}\n{}\n{}",
        String::from_utf8_lossy(&output.stderr),
        server.log()
    );
    let of = |kind: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix(kind));
        let pairs = lines.filter_map(|line| line.split_once(' '));
        pairs
            .map(|(name, rest)| (name.to_owned(), rest.to_owned()))
            .collect()
    };
    Ok(Found {
        answers: of("agree "),
        statuses: of("status "),
    })
}
