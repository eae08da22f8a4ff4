//! `smbeam bench` measures what a real server does, and leaves nothing behind.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use smbeam_tests::client::Client;
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, Server};
use smbeam_tests::tests;

tests!(
    every_workload_is_measured,
    the_transport_of_each_channel_is_told,
    what_is_read_is_verified,
    the_bench_of_smbtorture_is_repeated,
    two_servers_are_compared,
    depths_and_channels_are_drawn,
    what_cannot_be_is_told,
);

struct Stage {
    server: Server,
    client: Client,
    scratch: Scratch,
}

impl Stage {
    fn set() -> Result<Stage> {
        let scratch = Scratch::new("bench")?;
        let plan = Plan::sharing(&scratch.open_folder("share")?);
        let server = Server::start(&Lab::find()?, plan)?;
        let client = Client::new(&server)?;
        Ok(Stage {
            server,
            client,
            scratch,
        })
    }

    fn bench(&self, arguments: &[&str]) -> Result<String> {
        let arguments = [&["bench"], arguments].concat();
        let text = self.client.run(&arguments)?.text;
        let left = fs::read_dir(self.scratch.path().join("share"))?.count();
        ensure!(left == 0, "{left} entries stay behind");
        Ok(text)
    }

    fn json(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.bench(&[arguments, &["--json"]].concat())?;
        serde_json::from_str(&text).context("one line of JSON")
    }
}

fn number(report: &Value, key: &str) -> Result<f64> {
    let value = report[key].as_f64();
    value.with_context(|| format!("{key} is missing in {report}"))
}

fn every_workload_is_measured() -> Result<()> {
    let stage = Stage::set()?;
    for workload in ["read", "write", "rw", "meta", "echo", "connect"] {
        let report = stage.json(&[
            workload,
            "{}",
            "--size=8M",
            "--files=2",
            "--io-size=64K",
            "--depth=4",
            "--connections=2",
            "--time=0.2",
        ])?;
        ensure!(report["workload"] == workload, "{report}");
        let ops = number(&report, "ops")?;
        ensure!(ops > 0.0, "{report}");
        let moves_data = ["read", "write", "rw"].contains(&workload);
        let bytes = if moves_data { ops * 65_536.0 } else { 0.0 };
        ensure!(number(&report, "bytes")? == bytes, "{report}");
        let working_set = f64::from(if moves_data { 16 << 20 } else { 0 });
        ensure!(number(&report, "working_set")? == working_set, "{report}");
        let latency = &report["latency_us"];
        let order = ["p50", "p90", "p99", "p99_9", "max"].map(|key| latency[key].as_f64());
        ensure!(order.is_sorted() && order[0] > Some(0.0), "{report}");
        let is_here = workload != "connect";
        ensure!(report["server_cpu"].is_number() == is_here, "{report}");
    }
    Ok(())
}

fn the_transport_of_each_channel_is_told() -> Result<()> {
    let stage = Stage::set()?;
    let common = ["echo", "{}", "--time=0.1"];
    let report = stage.json(&[&common[..], &["--channels=2"]].concat())?;
    ensure!(
        report["transports"] == serde_json::json!(["tcp", "tcp"]),
        "{report}"
    );
    let session = report["session"].as_str().unwrap_or_default();
    ensure!(session.ends_with("over 2 x tcp"), "{report}");
    let nbt = Client::of(&stage.server.nbt.to_string())?;
    let named = [&common[..], &["--transports=nbt", "--json"]].concat();
    let text = nbt.run(&[&["bench"], &named[..]].concat())?.text;
    let report: Value = serde_json::from_str(&text)?;
    ensure!(
        report["transports"] == serde_json::json!(["nbt"]),
        "{report}"
    );
    Ok(())
}

fn what_is_read_is_verified() -> Result<()> {
    let stage = Stage::set()?;
    let arguments = [
        "rw",
        "{}",
        "--size=4M",
        "--io-size=8K",
        "--time=0.3",
        "--verify",
    ];
    for order in [&[][..], &["--random"]] {
        let report = stage.json(&[&arguments[..], order].concat())?;
        ensure!(number(&report, "ops")? > 0.0, "{report}");
    }
    Ok(())
}

fn the_bench_of_smbtorture_is_repeated() -> Result<()> {
    let stage = Stage::set()?;
    let report = stage.json(&[
        "read",
        "{}",
        "--torture",
        "--io-size=4K",
        "--depth=2",
        "--connections=4",
        "--time=0.2",
    ])?;
    // connections x depth x io_size: that is all it reads.
    ensure!(number(&report, "working_set")? == 32_768.0, "{report}");
    Ok(())
}

fn two_servers_are_compared() -> Result<()> {
    let stage = Stage::set()?;
    let url = stage.client.url("");
    let text = stage.bench(&["echo", "--compare", &url, &url, "--rounds=2", "--time=0.2"])?;
    let row = text.lines().find(|line| line.starts_with("operations/s"));
    let row = row.with_context(|| format!("no rate in {text}"))?;
    ensure!(row.split_whitespace().count() == 7, "{row}");
    Ok(())
}

fn depths_and_channels_are_drawn() -> Result<()> {
    let stage = Stage::set()?;
    let arguments = ["--size=4M", "--depth=4", "--channels=2", "--time=0.1"];
    let text =
        stage.bench(&[&["read", "{}", "--csv", "--plot=out.svg"], &arguments[..]].concat())?;
    // One line of names, and one for each of three depths with each of two numbers of channels.
    ensure!(text.lines().count() == 7, "{text}");
    let drawing = fs::read_to_string(stage.client.local("out.svg"))?;
    ensure!(drawing.contains("2 channels") && drawing.contains("GB/s"));
    Ok(())
}

fn what_cannot_be_is_told() -> Result<()> {
    let stage = Stage::set()?;
    for (path, code) in [("nowhere/at/all", 5), ("", 0)] {
        let url = stage.client.url(path);
        let output = stage
            .client
            .try_run(&["bench", "echo", &url, "--time=0.1"])?;
        ensure!(output.code == Some(code), "{path}: {output}");
    }
    for arguments in [
        &["read"][..],
        &["read", "{}", "--size=0"],
        &["read", "{}", "--time=nan"],
        &["dance", "{}"],
    ] {
        let output = stage.client.try_run(&[&["bench"], arguments].concat())?;
        ensure!(output.code == Some(2), "{arguments:?}: {output}");
    }
    Ok(())
}
