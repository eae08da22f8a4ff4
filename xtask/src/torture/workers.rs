//! Threads that run tests, each against a server of its own.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context as _, Result};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, Server, Share};
use smbeam_tests::torture::{self, Listed, Verdict};

/// Runs the tests, and returns their verdicts in the same order. Tests that Samba's table leaves
/// out are not run: they measure, or never end. Fails when a server cannot be started.
pub(super) fn run(
    lab: &Lab,
    program: &Path,
    volume: &Path,
    tests: &[Listed],
    jobs: usize,
) -> Result<Vec<Option<Verdict>>> {
    let next = Mutex::new(0);
    let verdicts = Mutex::new(vec![None; tests.len()]);
    thread::scope(|scope| {
        let work = || -> Result<()> {
            let mut site = None;
            while let Some(index) = take(&next, tests.len()) {
                let test = &tests[index];
                if test.is_left_out() {
                    continue;
                }
                let verdict = run_one(lab, program, volume, &test.name, &mut site)?;
                lock(&verdicts)[index] = Some(verdict);
            }
            Ok(())
        };
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("a worker does not panic"))
    })?;
    Ok(verdicts.into_inner().unwrap_or_default())
}

/// The next test that no worker has taken.
fn take(next: &Mutex<usize>, count: usize) -> Option<usize> {
    let mut next = lock(next);
    let index = *next;
    *next += 1;
    (index < count).then_some(index)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A server and its shared directory.
struct Site {
    server: Server,
    scratch: Scratch,
}

/// Runs one test against the server of a worker. A failed test gets a new server for the next one.
fn run_one(
    lab: &Lab,
    program: &Path,
    volume: &Path,
    test: &str,
    site: &mut Option<Site>,
) -> Result<Verdict> {
    let used = match site.take() {
        Some(site) => site,
        None => start(lab, program, volume)?,
    };
    let share = used.scratch.path().join("share");
    torture::prepare(test, &share)?;
    let verdict = torture::run(lab, &used.server, test)?;
    if verdict == Verdict::Passed {
        empty(&share)?;
        *site = Some(used);
    }
    Ok(verdict)
}

fn start(lab: &Lab, program: &Path, volume: &Path) -> Result<Site> {
    let scratch = Scratch::below(volume, "torture")?;
    let mut plan = Plan::sharing(&scratch.open_directory("share")?);
    plan.gmac_channels = Some("allow");
    // Some tests of smb2.session change to a login without a name, which needs a share for guests.
    plan.shares.push(Share {
        guests: true,
        ..Share::new("open", &scratch.open_directory("open")?)
    });
    plan.binary = Some(program.to_owned());
    let server = Server::start(lab, plan)?;
    Ok(Site { server, scratch })
}

fn empty(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory).context("cannot list the share")? {
        let path = entry?.path();
        let removed = match path.is_dir() && !path.is_symlink() {
            true => fs::remove_dir_all(&path),
            false => fs::remove_file(&path),
        };
        removed.with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}
