//! `smbeam tune` names the limit of a load that a test has limited on purpose, and `--undo` takes
//! back all that `--apply` has changed.
//!
//! A load that the test limits waits for that limit in nearly all requests, so other load of the
//! machine does not change the answer.

mod control_group;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use smbeam_client::{Endpoint, Transport};
use smbeam_tests::background::Background;
use smbeam_tests::client::Client;
use smbeam_tests::harness::Test;
use smbeam_tests::lab::{Missing, is_root};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, Server, Subject};
use smbeam_tests::volume::{FileSystem, Volume};
use smbeam_tests::wait;

use self::control_group::ControlGroup;
use crate::rig::TIME_LIMIT;
use crate::rig::proxy::Proxy;

/// One way of the delaying relay: the round trip is twice as long.
const DELAY: Duration = Duration::from_millis(10);
/// Lines of `--watch` of each case.
const LINES: &str = "5";

pub(crate) fn tests() -> Vec<Test> {
    vec![
        Test::new("a_processor_quota_is_named", quota_is_named),
        Test::new("a_slow_disk_is_named", slow_disk_is_named),
        Test::new("a_long_round_trip_is_named", round_trip_is_named),
        Test::new("a_small_window_is_named", small_window_is_named),
        Test::new("a_slow_cipher_is_named", slow_cipher_is_named),
        Test::new("a_small_buffer_pool_is_named", small_pool_is_named),
        Test::new("a_server_without_load_has_no_limit", idle_is_named),
        Test::new("undo_leaves_the_machine_as_before", undo_restores),
        Test::new("findings_have_evidence_and_sources", findings_are_complete),
    ]
}

/// A server with a limit, and its client.
struct Subjects {
    server: Server,
    client: Client,
    _scratch: Scratch,
}

impl Subjects {
    fn start(change: impl FnOnce(&mut Plan)) -> Result<Self> {
        if Subject::chosen() == Subject::Samba {
            return Err(Missing("smbd has no control socket".to_owned()).into());
        }
        let scratch = Scratch::new("tune")?;
        let share = scratch.open_directory("share")?;
        let mut plan = Plan::sharing(&share);
        change(&mut plan);
        let server = Server::start_alone(plan)?;
        let client = Client::new(&server)?;
        Ok(Self {
            server,
            client,
            _scratch: scratch,
        })
    }

    /// Reads until the value is dropped.
    fn load(&self, arguments: &[&str]) -> Result<Background> {
        let all = [
            &[
                "bench",
                "read",
                "{}",
                "--time=600",
                "--channels=1",
                "--json",
            ],
            arguments,
        ];
        let mut command = self.client.command(&all.concat());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Background::start(&mut command)?)
    }

    /// The limit that most lines of `--watch` name, once the load has started.
    fn watched(&self) -> Result<Value> {
        let socket = self.server.control().display().to_string();
        let watch = [
            "tune",
            "--watch",
            "--json",
            "--interval=1",
            "--socket",
            &socket,
        ];
        wait::until("the start of the load", TIME_LIMIT, || {
            let first = self.client.run(&[&watch[..], &["--count=1"]].concat());
            let lines = first.and_then(|output| output.lines());
            lines.is_ok_and(|lines| lines[0]["interval"]["read"].as_f64() > Some(0.0))
        })?;
        let lines = self
            .client
            .run(&[&watch[..], &["--count", LINES]].concat())?
            .lines()?;
        let mut counts: BTreeMap<String, (usize, Value)> = BTreeMap::new();
        for line in lines {
            let code = line["limit"]["code"].as_str().context("a code")?.to_owned();
            let (count, last) = counts.entry(code).or_default();
            *count += 1;
            *last = line;
        }
        let most = counts.into_values().max_by_key(|(count, _)| *count);
        Ok(most.context("a line")?.1)
    }
}

/// Checks the code of the limit, and that it comes with evidence, an advice and a source.
fn assert_limit(line: &Value, code: &str) -> Result<()> {
    let limit = &line["limit"];
    ensure!(limit["code"] == code, "not {code}: {line:#}");
    let has_text = |key: &str| limit[key].as_str().is_some_and(|text| !text.is_empty());
    ensure!(has_text("advice") && has_text("source"), "{line:#}");
    let evidence = limit["evidence"].as_array().context("a list")?;
    ensure!(!evidence.is_empty(), "{line:#}");
    Ok(())
}

fn quota_is_named() -> Result<()> {
    let subjects = Subjects::start(|_| ())?;
    let _load = subjects.load(&["--size=64M"])?;
    let _group = ControlGroup::with_processors(0.1, subjects.server.pid())?;
    assert_limit(&subjects.watched()?, "limit-server-cpu")
}

/// The load reads a loop device past the page cache.
fn slow_disk_is_named() -> Result<()> {
    let volume = Volume::new(FileSystem::Ext4, 256 << 20)?;
    let share = volume.path().join("share");
    fs::create_dir(&share)?;
    fs::set_permissions(&share, fs::Permissions::from_mode(0o777))?;
    let subjects = Subjects::start(|plan| {
        plan.shares[0].path = share;
        plan.shares[0].direct = true;
    })?;
    let _group = ControlGroup::with_read_rate(20_000_000, volume.path(), subjects.server.pid())?;
    let _load = subjects.load(&["--size=32M"])?;
    assert_limit(&subjects.watched()?, "limit-disk")
}

/// Client and relay see the delay, `--watch` on the server sees the pauses.
fn round_trip_is_named() -> Result<()> {
    let subjects = Subjects::start(|_| ())?;
    let endpoint = Endpoint {
        transport: Transport::Tcp,
        port: subjects.server.tcp.port(),
    };
    let proxy = Proxy::with_delay(endpoint, DELAY)?;
    let far = Client::of(&format!("127.0.0.1:{}", proxy.endpoint().port))?;
    let measured = far.run(&[
        "tune",
        "{}",
        "--channels=1",
        "--depth=2",
        "--time=0.4",
        "--json",
    ])?;
    let line = &measured.lines()?[0];
    assert_limit(line, "limit-window")?;
    let round_trip = line["measured"]["round_trip"].as_f64().context("a time")?;
    ensure!(round_trip >= 2.0 * DELAY.as_secs_f64(), "{line:#}");
    let far = Subjects {
        client: far,
        ..subjects
    };
    let _load = far.load(&["--size=16M", "--depth=2"])?;
    assert_limit(&far.watched()?, "limit-window")
}

fn small_window_is_named() -> Result<()> {
    let subjects = Subjects::start(|plan| plan.limits.push(("credits".to_owned(), 32)))?;
    let tune = ["tune", "{}", "--channels=1", "--time=0.3", "--json"];
    let measured = subjects.client.run(&tune)?;
    let line = &measured.lines()?[0];
    assert_limit(line, "limit-window")?;
    let credits = line["measured"]["credits"].as_u64().context("a number")?;
    ensure!(credits <= 32, "{line:#}");
    let advice = line["limit"]["advice"].as_str().unwrap_or_default();
    ensure!(advice.contains("credits ="), "{line:#}");
    Ok(())
}

/// Dialect 3.0.2 has AES-CCM only.
fn slow_cipher_is_named() -> Result<()> {
    let subjects = Subjects::start(|plan| {
        plan.encryption_required = true;
        plan.max_dialect = Some("3.0.2");
    })?;
    let _load = subjects.load(&["--size=64M"])?;
    let line = subjects.watched()?;
    assert_limit(&line, "limit-crypto")?;
    let message = line["limit"]["message"].as_str().unwrap_or_default();
    ensure!(message.contains("CCM"), "{line:#}");
    Ok(())
}

/// Reads past the page cache need a buffer each.
fn small_pool_is_named() -> Result<()> {
    let subjects = Subjects::start(|plan| {
        plan.server.insert("buffer_memory_mb".to_owned(), 16.into());
        plan.server.insert("workers".to_owned(), 1.into());
        plan.shares[0].direct = true;
    })?;
    let _load = subjects.load(&["--size=64M", "--depth=64"])?;
    assert_limit(&subjects.watched()?, "limit-buffers")
}

fn idle_is_named() -> Result<()> {
    let subjects = Subjects::start(|_| ())?;
    let socket = subjects.server.control().display().to_string();
    let watch = [
        "tune",
        "--watch",
        "--count=1",
        "--interval=0.5",
        "--json",
        "--socket",
        &socket,
    ];
    let lines = subjects.client.run(&watch)?.lines()?;
    assert_limit(&lines[0], "limit-none")
}

/// The files below a directory, with their contents.
fn files(directory: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        match path.is_dir() {
            true => {
                found.insert(path.clone(), Vec::new());
                files(&path, found)?;
            }
            false => {
                found.insert(path.clone(), fs::read(&path)?);
            }
        }
    }
    Ok(())
}

/// The parameters that `smbeam tune` may set, and those that change with them.
fn parameters() -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for directory in ["vm", "net/core", "net/ipv4"] {
        for entry in fs::read_dir(Path::new("/proc/sys").join(directory))? {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let is_own = [
                "dirty_",
                "swappiness",
                "zone_reclaim",
                "tcp_rmem",
                "tcp_wmem",
            ]
            .iter()
            .chain(&["netdev_max_backlog", "slow_start", "rmem_max", "wmem_max"])
            .any(|own| name.contains(own));
            if is_own && let Ok(value) = fs::read(&path) {
                found.insert(path, value);
            }
        }
    }
    ensure!(found.len() > 8, "{found:?}");
    Ok(found)
}

fn undo_restores() -> Result<()> {
    if !is_root() {
        return Err(Missing("only root sets parameters of the kernel".to_owned()).into());
    }
    let scratch = Scratch::new("tune")?;
    let directory = scratch.open_directory("etc")?;
    let main = directory.join("smbeam.toml");
    fs::create_dir(directory.join("conf.d"))?;
    fs::write(
        &main,
        "include = [\"conf.d/*.toml\"]\n[server]\nworkers = 0\n",
    )?;
    fs::write(
        directory.join("conf.d/10-log.toml"),
        "[log]\nlevel = \"debug\"\n",
    )?;
    fs::write(
        directory.join("conf.d/20-limits.toml"),
        "[limits]\nmax_write = 8388608\n",
    )?;
    let sysctl = directory.join("sysctl.d/60-smbeam.conf");
    let record = scratch.path().join("state/tune.json");
    let (main, sysctl, record_text) = (text(&main), text(&sysctl), text(&record));
    let client = Client::of("nowhere")?;
    let run = |more: &[&str]| {
        let all = ["tune", "--config", &main, "--profile=checkpoint"];
        let paths = ["--sysctl-file", &sysctl, "--record", &record_text];
        client.run(&[&all[..], more, &paths].concat())
    };
    let state = || -> Result<_> {
        let mut found = BTreeMap::new();
        files(&directory, &mut found)?;
        Ok((parameters()?, found))
    };
    let before = state()?;
    run(&["--apply", "--dry-run"])?;
    ensure!(state()? == before, "a dry run has changed something");
    let applied = run(&["--apply"])?;
    let is_changed = state()? != before;
    let has_record = record.exists();
    let refused = client.fail(
        &[
            "tune",
            "--config",
            &main,
            "--apply",
            "--profile=checkpoint",
            "--record",
            &record_text,
        ],
        10,
        &["--undo first"],
    );
    run(&["--undo"])?;
    ensure!(state()? == before, "--undo leaves a change: {applied}");
    ensure!(
        is_changed && has_record,
        "--apply changes nothing: {applied}"
    );
    ensure!(!record.exists(), "the record stays");
    refused?;
    client.fail(
        &["tune", "--undo", "--record", &record_text],
        5,
        &["no changes"],
    )?;
    Ok(())
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn findings_are_complete() -> Result<()> {
    let scratch = Scratch::new("tune")?;
    let main = scratch.path().join("smbeam.toml");
    let lines = [
        "[server]",
        "workers = 4000",
        "[limits]",
        "credits = 16",
        "[log]",
        "level = \"trace\"",
    ];
    fs::write(&main, lines.join("\n").replace("4000", "1000"))?;
    let client = Client::of("nowhere")?;
    let main = text(&main);
    let output = client.run(&["tune", "--config", &main, "--json", "--measure"])?;
    let object: Value = serde_json::from_str(&output.text)?;
    let findings = object["findings"].as_array().context("a list")?;
    for code in ["tune-workers", "tune-credits", "tune-log-level"] {
        let found = findings.iter().find(|finding| finding["code"] == code);
        let finding = found.with_context(|| format!("no {code}: {object:#}"))?;
        ensure!(finding["evidence"][0]["value"].is_string(), "{finding:#}");
        ensure!(
            finding["source"].as_str() == Some("docs/configuration.md"),
            "{finding:#}"
        );
    }
    ensure!(
        object["facts"]["kernel"]["cpus"].as_u64() > Some(0),
        "{object:#}"
    );
    let text = client.run(&["tune", "--config", &main])?.text;
    ensure!(
        text.contains("[limits] credits = 512") && text.contains("source:"),
        "{text}"
    );
    Ok(())
}
