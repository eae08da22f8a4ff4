//! The server of this workspace as the server under test.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use toml::{Table, Value};

use super::binary;
use super::{Share, Site, TRANSPORTS, well_known_addresses};
use crate::direct::port::rdma_directory;
use crate::lab::is_root;

/// How long smbeam waits before it answers a failed login, in the tests.
const FAILED_LOGIN_DELAY_MS: i64 = 100;

/// Writes the configuration and the users.
pub(super) fn prepare(site: &Site<'_>) -> Result<()> {
    fs::write(configuration(site), toml::to_string(&table(site))?)?;
    for user in site.users() {
        let mut command = in_its_place(site, None)?;
        command
            .args(["user", "add", "--password-stdin", "--file"])
            .arg(users(site))
            .arg(user.name);
        // Outside of the lab there are no accounts of these names, and root has to become another
        // user.
        if site.lab.is_none() && is_root() {
            command.args(["--unix", "nobody"]);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot run smbeam user add")?;
        let mut input = child.stdin.take().context("the input was piped")?;
        writeln!(input, "{}", user.password)?;
        drop(input);
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!(
                "smbeam user add: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
    Ok(())
}

/// The command that runs the server.
pub(super) fn command(site: &Site<'_>, holder: Option<u32>) -> Result<Command> {
    let mut command = in_its_place(site, holder)?;
    command.args(["serve", "--config"]).arg(configuration(site));
    Ok(command)
}

/// smbeam, to be run inside the lab where there is one: it has users that the host lacks.
fn in_its_place(site: &Site<'_>, holder: Option<u32>) -> Result<Command> {
    let built = site.plan.binary.clone().map_or_else(binary::path, Ok)?;
    let Some(lab) = site.lab else {
        return Ok(Command::new(built));
    };
    let program = site.directory.join("smbeam");
    // A link costs nothing; another file system wants a copy.
    if !program.exists() && fs::hard_link(&built, &program).is_err() {
        fs::copy(&built, &program).with_context(|| format!("cannot copy {}", built.display()))?;
    }
    Ok(lab.command_under(holder, &program.display().to_string()))
}

fn configuration(site: &Site<'_>) -> PathBuf {
    site.directory.join("smbeam.toml")
}

/// Where `smbeam status` finds a server of that directory.
pub(super) fn control(directory: &Path) -> PathBuf {
    directory.join("control")
}

fn users(site: &Site<'_>) -> PathBuf {
    site.directory.join("users.toml")
}

fn table(site: &Site<'_>) -> Table {
    let endpoints = TRANSPORTS.iter().zip(site.addresses);
    let endpoints = endpoints.map(|(name, address)| format!("{name}:{}", address.port()));
    let transports: Vec<String> = endpoints.collect();
    let plan = site.plan;
    let mut server = Table::new();
    server.insert("listen".into(), strings(&[site.tcp().ip().to_string()]));
    server.insert("transports".into(), strings(&transports));
    server.insert("users".into(), path(&users(site)));
    server.insert("control_socket".into(), path(&control(site.directory)));
    server.insert("state_directory".into(), path(site.directory));
    if plan.channels {
        let interface = format!("{};rss", site.tcp().ip());
        server.insert("interfaces".into(), strings(&[interface]));
    }
    if let Some(io) = &plan.io {
        server.insert("io".into(), io.as_str().into());
    }
    server.extend(plan.server.clone());
    let mut security = Table::new();
    security.insert("signing_required".into(), plan.signing_required.into());
    security.insert(
        "encryption_required".into(),
        plan.encryption_required.into(),
    );
    if let Some(choice) = plan.gmac_channels {
        security.insert("gmac_channels".into(), choice.into());
    }
    if let Some(dialect) = plan.max_dialect {
        security.insert("max_dialect".into(), dialect.into());
    }
    security.insert("failed_login_delay_ms".into(), FAILED_LOGIN_DELAY_MS.into());
    security.extend(plan.security.clone());
    let mut limits = Table::new();
    for (name, value) in &plan.limits {
        limits.insert(
            name.clone(),
            i64::try_from(*value).unwrap_or(i64::MAX).into(),
        );
    }
    let mut rdma = Table::new();
    rdma.insert("provider".into(), "emulated".into());
    // Servers in network namespaces have the same port: a directory keeps them apart.
    let directory = match site.addresses == well_known_addresses(*site.tcp().ip()) {
        true => site.directory.join("rdma"),
        false => rdma_directory(),
    };
    rdma.insert("directory".into(), path(&directory));
    let mut table = Table::new();
    table.insert("quic".into(), quic(site).into());
    table.insert("rdma".into(), rdma.into());
    table.insert("server".into(), server.into());
    if !plan.metrics.is_empty() {
        table.insert("metrics".into(), plan.metrics.clone().into());
    }
    table.insert("security".into(), security.into());
    table.insert("limits".into(), limits.into());
    // Tests send many bad messages from one address, and expect a line about each.
    let log = Table::from_iter([("rate_limited".into(), false.into())]);
    table.insert("log".into(), log.into());
    table.insert(
        "share".into(),
        plan.shares.iter().map(share).collect::<Vec<_>>().into(),
    );
    table
}

/// A self-signed certificate for the name that clients of tests use, unless the plan has another
/// one.
fn quic(site: &Site<'_>) -> Table {
    let mut quic = Table::new();
    quic.insert("names".into(), strings(&["localhost".to_owned()]));
    quic.insert("state_directory".into(), path(site.directory));
    quic.extend(site.plan.quic.clone());
    quic
}

fn share(share: &Share) -> Value {
    let Share {
        name,
        path: directory,
        read_only,
        encryption_required,
        users,
        guests,
        oplocks,
        notify,
        direct,
        large_streams,
        sync,
        keys,
    } = share;
    let mut table = Table::new();
    table.insert("name".into(), name.as_str().into());
    table.insert("path".into(), path(directory));
    table.insert("read_only".into(), (*read_only).into());
    table.insert("encryption_required".into(), (*encryption_required).into());
    table.insert("guest".into(), (*guests).into());
    table.insert("oplocks".into(), (*oplocks).into());
    table.insert("notify".into(), (*notify).into());
    table.insert("direct".into(), (*direct).into());
    table.insert("large_streams".into(), (*large_streams).into());
    table.insert("sync".into(), (*sync).into());
    if !users.is_empty() {
        table.insert("users".into(), strings(users));
    }
    table.extend(keys.clone());
    table.into()
}

fn strings(items: &[String]) -> Value {
    items.iter().map(String::as_str).collect::<Vec<_>>().into()
}

fn path(path: &Path) -> Value {
    path.display().to_string().into()
}
