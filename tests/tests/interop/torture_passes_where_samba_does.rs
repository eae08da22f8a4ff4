//! Every test of the chosen suites of smbtorture that Samba passes passes here too, or stands in
//! `torture/known-failures.toml` with its reason.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context as _, Result, bail, ensure};
use smbeam_tests::harness::Test;
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, Server, Share, Subject};
use smbeam_tests::torture::{self, KnownFailures, Verdict};

/// The suites that run over QUIC as well.
const OVER_QUIC: [&str; 5] = [
    "smb2.connect",
    "smb2.read.",
    "smb2.rw.",
    "smb2.dir.",
    "smb2.credits.",
];
/// Those that run on a share past the page cache as well: what moves data, and what makes files.
const PAST_THE_CACHE: [&str; 3] = ["smb2.read.", "smb2.rw.", "smb2.create."];
/// Those that run with the default of `security.gmac_channels` as well. All others run with the
/// value `allow`, as with other servers: smbtorture announces MULTI_CHANNEL and AES-GMAC.
const WITH_DEFAULT_CHANNELS: [&str; 2] = ["smb2.session.", "smb2.multichannel."];
/// What measures is only to work, over both.
const BENCH: &str = "smb2.bench.read";
/// Tests that send CHANGE_NOTIFY on one connection and change the directory on another one, without
/// a wait for the interim response. A server under load handles the change first, and then the
/// test waits for ever. (source4/torture/smb2/notify.c)
const WITHOUT_LOAD: [&str; 3] = [
    "smb2.notify.basedir",
    "smb2.notify.dir",
    "smb2.notify.double",
];

/// Suites that close a connection and reconnect to a durable open at once. A server under load can
/// receive the new connection before the end of the old one, and then the open is still in use.
/// Real clients name the old session (PreviousSessionId).
const RECONNECTING: [&str; 2] = ["smb2.durable-", "smb2.replay.durable-reconnect"];

/// Suites that race with themselves, so that their tests have several attempts:
///
/// - A request for changes and the change go over two connections, and the test does not wait in
///   between. If the change is first, the test waits until its limit.
///   (source4/torture/smb2/notify.c)
/// - The test waits 100 ms for the break of an oplock or lease, which on a busy machine arrives
///   later. (source4/torture/smb2/oplock_break_handler.c, lease_break_handler.c)
/// - The test reconnects before the server sees the end of the old connection.
const RACING: [&str; 9] = [
    "smb2.notify.",
    "smb2.oplock.",
    "smb2.lease.",
    "smb2.dirlease.",
    "smb2.kernel-oplocks.",
    "smb2.multichannel.oplocks.",
    "smb2.multichannel.leases.",
    "smb2.durable-",
    "smb2.replay.",
];
const RACING_ATTEMPTS: usize = 3;

/// Which way a test goes to the server.
type Way = fn(&Lab, &Server, &str) -> Result<Verdict>;

/// The server that the tests share, started by the first and again after each failure.
type Shared = RefCell<Option<(Scratch, Server)>>;

/// The servers: with `security.gmac_channels = "allow"`, and with its default.
#[derive(Default)]
struct Servers {
    allowing: Shared,
    default: Shared,
}

pub(crate) fn tests() -> Vec<Test> {
    match lists() {
        Ok(lists) => cases(lists),
        // The lists are part of the tree: without them the module has one case, which fails.
        Err(error) => {
            let text = format!("{error:#}");
            vec![Test::new("lists", move || bail!("{text}"))]
        }
    }
}

fn cases((tests, known, with_default): Lists) -> Vec<Test> {
    let servers = Rc::new(Servers::default());
    let (known, with_default) = (Rc::new(known), Rc::new(with_default));
    let names = tests.clone();
    let listed = [known.clone(), with_default.clone()];
    let mut all = vec![Test::new("known_failures_are_tests", move || {
        listed.iter().try_for_each(|list| all_exist(list, &names))
    })];
    for test in tests.iter().map(String::as_str).chain([BENCH]) {
        let case = |title: &str, way: Way| {
            let (servers, known, test) = (servers.clone(), known.clone(), test.to_owned());
            let is_alone = WITHOUT_LOAD.contains(&test.as_str()) || reconnects(&test);
            let case = Test::new(title, move || {
                let attempt = || run(&servers.allowing, Some("allow"), &test, way);
                known.judge(&test, repeated(&test, attempt)?)
            });
            if is_alone { case.alone() } else { case }
        };
        all.push(case(test, torture::run));
        if goes_with_default_channels(test) {
            let (servers, known, test) = (servers.clone(), with_default.clone(), test.to_owned());
            let title = format!("{test}.with_default_channels");
            all.push(Test::new(&title, move || {
                let attempt = || run(&servers.default, None, &test, torture::run);
                known.judge(&test, repeated(&test, attempt)?)
            }));
        }
        if goes_over_quic(test) {
            all.push(case(&format!("{test}.over_quic"), torture::run_over_quic));
        }
        if goes_past_the_cache(test) {
            let title = format!("{test}.past_the_page_cache");
            all.push(case(&title, torture::run_past_the_cache));
        }
    }
    all
}

/// The verdict of a test; of the last attempt if the test races with itself.
fn repeated(test: &str, attempt: impl Fn() -> Result<Verdict>) -> Result<Verdict> {
    let attempts = match RACING.iter().any(|suite| test.starts_with(suite)) {
        true => RACING_ATTEMPTS,
        false => 1,
    };
    let mut verdict = attempt()?;
    for _ in 1..attempts {
        if matches!(verdict, Verdict::Passed) {
            break;
        }
        verdict = attempt()?;
    }
    Ok(verdict)
}

/// Tests of opens that stay disconnected need no quick reconnect.
fn reconnects(test: &str) -> bool {
    let is_chosen = RECONNECTING.iter().any(|suite| test.starts_with(suite));
    is_chosen && !test.contains("-disconnected-")
}

/// smbd has no such setting.
fn goes_with_default_channels(test: &str) -> bool {
    let is_chosen = WITH_DEFAULT_CHANNELS
        .iter()
        .any(|suite| test.starts_with(suite));
    Subject::chosen() == Subject::Smbeam && is_chosen
}

/// smbd has no QUIC without a module of the kernel's.
fn goes_over_quic(test: &str) -> bool {
    let is_chosen = OVER_QUIC.iter().any(|suite| test.starts_with(suite));
    Subject::chosen() == Subject::Smbeam && (is_chosen || test == BENCH)
}

/// smbd has no such share.
fn goes_past_the_cache(test: &str) -> bool {
    let is_chosen = PAST_THE_CACHE.iter().any(|suite| test.starts_with(suite));
    Subject::chosen() == Subject::Smbeam && is_chosen
}

/// The tests, and those that are known to fail with each of the servers.
type Lists = (Vec<String>, KnownFailures, KnownFailures);

fn lists() -> Result<Lists> {
    Ok((
        torture::passed_by_samba()?,
        KnownFailures::of(Subject::chosen())?,
        KnownFailures::with_default_channels()?,
    ))
}

fn all_exist(known: &KnownFailures, tests: &[String]) -> Result<()> {
    for listed in known.tests() {
        ensure!(
            tests.iter().any(|test| test == listed),
            "no test is called {listed}"
        );
    }
    Ok(())
}

fn run(
    shared: &Shared,
    gmac_channels: Option<&'static str>,
    test: &str,
    way: Way,
) -> Result<Verdict> {
    let lab = Lab::find()?;
    let mut shared = shared.borrow_mut();
    if shared.is_none() {
        let scratch = Scratch::new("torture-share")?;
        let server = Server::start(&lab, plan(&scratch, gmac_channels)?)?;
        *shared = Some((scratch, server));
    }
    let (scratch, server) = shared.as_ref().context("it was just started")?;
    torture::prepare(test, &scratch.path().join("share"))?;
    let verdict = way(&lab, server, test)?;
    if verdict != Verdict::Passed {
        *shared = None;
        return Ok(verdict);
    }
    for directory in ["share", "direct"] {
        empty(&scratch.path().join(directory))?;
    }
    Ok(verdict)
}

/// The shares. Samba accepts every login without a name; smbeam does so if a share allows guests.
/// Some tests of smb2.session change to such a login and back.
fn plan(scratch: &Scratch, gmac_channels: Option<&'static str>) -> Result<Plan> {
    let mut plan = Plan::sharing(&scratch.open_directory("share")?);
    plan.gmac_channels = gmac_channels;
    plan.shares.push(Share {
        guests: true,
        ..Share::new("open", &scratch.open_directory("open")?)
    });
    plan.shares.push(Share {
        direct: true,
        ..Share::new("direct", &scratch.open_directory("direct")?)
    });
    Ok(plan)
}

fn empty(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            fs::remove_dir_all(path)?;
        } else {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
