//! The web page of the server works in Chromium: it shows the clients, takes a token, and asks no
//! other host.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use smbeam_client::{OpenOptions, Wait as _};
use smbeam_tests::harness::Test;
use smbeam_tests::lab::Lab;
use smbeam_tests::subject::ALICE;

use crate::metrics_agree_with_clients::Monitored;

const SCRIPT: &str = include_str!("../../src/python/page_in_chromium.py");
const TOKEN: &str = "0123456789abcdef0123";

pub(crate) fn tests() -> Vec<Test> {
    vec![
        Test::new("chromium_shows_clients_and_asks_no_other_host", show).long(),
        Test::new("the_page_is_off_by_default", is_off).long(),
    ]
}

fn show() -> Result<()> {
    let lab = Lab::find_with_browser()?;
    for token in [None, Some(TOKEN)] {
        let rig = Monitored::start("page", |plan| {
            plan.metrics.insert("page".to_owned(), true.into());
            if let Some(token) = token {
                plan.metrics.insert("token".to_owned(), token.into());
            }
        })?;
        let shown = show_with(&lab, &rig, token)?;
        let text = |key: &str| shown[key].as_str().context("a text").map(str::to_owned);
        if token.is_some() {
            ensure!(text("refused")? == "the token is wrong", "{shown}");
        }
        ensure!(text("connections")? == "1", "{shown}");
        ensure!(text("sent")? != "0 B/s", "{shown}");
        ensure!(text("chart")?.starts_with('M'), "{shown}");
        let clients = shown["clients"].to_string();
        ensure!(
            clients.contains("alice") && clients.contains("tcp"),
            "{shown}"
        );
        ensure!(shown["shares"].to_string().contains("data"), "{shown}");
        ensure!(shown["commands"].to_string().contains("WRITE"), "{shown}");
        // A name is no markup.
        let files = shown["files"].to_string();
        ensure!(files.contains("a &amp; b"), "{shown}");
        ensure!(shown["faults"] == Value::Array(Vec::new()), "{shown}");
        let own = format!("http://{}/", rig.metrics);
        let requests = shown["requests"].as_array().context("a list")?;
        ensure!(requests.len() == 4, "{shown}");
        let is_own = |url: &Value| url.as_str().is_some_and(|url| url.starts_with(&own));
        ensure!(requests.iter().all(is_own), "{shown}");
    }
    Ok(())
}

/// Opens the page while a client works. Returns what the page shows.
fn show_with(lab: &Lab, rig: &Monitored, token: Option<&str>) -> Result<Value> {
    let session = rig.log_in(ALICE)?;
    let share = session.share("data").wait()?;
    let new = OpenOptions::new().read(true).write(true).create(true);
    let file = share.open("a &amp; b", &new).wait()?;
    let is_over = AtomicBool::new(false);
    let picture = rig.scratch.path().join("page.png");
    let output = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let (written, _) = file.write_at(vec![1; 4096], 0).wait();
                if written.is_err() {
                    break;
                }
            }
        });
        let url = format!("http://{}/", rig.metrics);
        let output = lab
            .command("python3")
            .args(["-c", SCRIPT, &url, token.unwrap_or("")])
            .arg(&picture)
            .output();
        is_over.store(true, Ordering::Relaxed);
        output
    })?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    let image = fs::read(&picture)?;
    ensure!(image.starts_with(b"\x89PNG"), "no picture");
    serde_json::from_slice(&output.stdout).context("one object")
}

fn is_off() -> Result<()> {
    let rig = Monitored::start("no-page", |_| {})?;
    let answer = smbeam_tests::http::get(rig.metrics, "/", "")?;
    ensure!(answer.status == 404, "{answer:?}");
    Ok(())
}
