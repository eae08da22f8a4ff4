//! `smbeam bench` measures a real server, and leaves nothing behind.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use smbeam_tests::client::Client;
use smbeam_tests::stage::Stage;
use smbeam_tests::tests_over_transports;

tests_over_transports!(
    each: [
        every_workload_is_measured,
        the_transport_of_each_channel_is_reported,
        read_data_are_verified,
        the_bench_of_smbtorture_is_repeated,
        two_servers_are_compared,
        depths_and_channels_are_drawn,
        impossible_requests_are_reported,
    ],
    once: [],
);

struct Bench(Stage);

impl Bench {
    fn new(transport: &str) -> Result<Bench> {
        Ok(Bench(Stage::new(transport, "bench")?))
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        let arguments = [&["bench"], arguments].concat();
        let text = self.0.client.run(&arguments)?.text;
        let left = fs::read_dir(&self.0.share)?.count();
        ensure!(left == 0, "{left} entries stay behind");
        Ok(text)
    }

    fn json(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.run(&[arguments, &["--json"]].concat())?;
        serde_json::from_str(&text).context("one line of JSON")
    }
}

fn number(report: &Value, key: &str) -> Result<f64> {
    let value = report[key].as_f64();
    value.with_context(|| format!("{key} is missing in {report}"))
}

fn every_workload_is_measured(transport: &str) -> Result<()> {
    let bench = Bench::new(transport)?;
    for workload in ["read", "write", "rw", "meta", "echo", "connect"] {
        let report = bench.json(&[
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

fn the_transport_of_each_channel_is_reported(transport: &str) -> Result<()> {
    let bench = Bench::new(transport)?;
    let common = ["echo", "{}", "--time=0.1", "--channels=2"];
    let report = bench.json(&common)?;
    let both = serde_json::json!([transport, transport]);
    ensure!(report["transports"] == both, "{report}");
    let counted = format!("over 2 x {transport}");
    let session = report["session"].as_str().unwrap_or_default();
    ensure!(session.ends_with(&counted), "{report}");
    let table = bench.run(&common)?;
    ensure!(table.contains(&counted), "{table}");
    let lines = bench.run(&[&common[..], &["--csv"]].concat())?;
    let named = format!(",2,{transport}+{transport},");
    let [names, values] = lines.lines().collect::<Vec<_>>()[..] else {
        anyhow::bail!("{lines}");
    };
    ensure!(
        names.contains(",channels,transports,") && values.contains(&named),
        "{lines}"
    );
    // One session over several.
    let [tcp, quic] = ["tcp", "quic"].map(|name| bench.0.server.address(name).port());
    let mixed = format!("--channels=tcp:{tcp},quic:{quic}");
    let client = Client::of(&bench.0.server.tcp.to_string())?.argument("--insecure");
    let text = client
        .run(&["bench", "echo", "{}", "--time=0.1", "--json", &mixed])?
        .text;
    let report: Value = serde_json::from_str(&text)?;
    let both = serde_json::json!(["tcp", "quic"]);
    ensure!(report["transports"] == both, "{report}");
    Ok(())
}

fn read_data_are_verified(transport: &str) -> Result<()> {
    let bench = Bench::new(transport)?;
    let arguments = [
        "rw",
        "{}",
        "--size=4M",
        "--io-size=8K",
        "--time=0.3",
        "--verify",
    ];
    for order in [&[][..], &["--random"]] {
        let report = bench.json(&[&arguments[..], order].concat())?;
        ensure!(number(&report, "ops")? > 0.0, "{report}");
    }
    Ok(())
}

fn the_bench_of_smbtorture_is_repeated(transport: &str) -> Result<()> {
    let bench = Bench::new(transport)?;
    let report = bench.json(&[
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

fn two_servers_are_compared(transport: &str) -> Result<()> {
    let bench = Bench::new(transport)?;
    let url = bench.0.client.url("");
    let text = bench.run(&["echo", "--compare", &url, &url, "--rounds=2", "--time=0.2"])?;
    let row = text.lines().find(|line| line.starts_with("operations/s"));
    let row = row.with_context(|| format!("no rate in {text}"))?;
    ensure!(row.split_whitespace().count() == 7, "{row}");
    Ok(())
}

fn depths_and_channels_are_drawn(transport: &str) -> Result<()> {
    let bench = Bench::new(transport)?;
    let arguments = ["--size=4M", "--depth=4", "--channels=2", "--time=0.1"];
    let text = bench.run(&[&["read", "{}", "--csv", "--plot=out.svg"], &arguments[..]].concat())?;
    // One line of names, and one for each of three depths with each of two numbers of channels.
    ensure!(text.lines().count() == 7, "{text}");
    let drawing = fs::read_to_string(bench.0.client.local("out.svg"))?;
    ensure!(drawing.contains("2 channels") && drawing.contains("GiB/s"));
    Ok(())
}

fn impossible_requests_are_reported(transport: &str) -> Result<()> {
    let bench = Bench::new(transport)?;
    for (path, code) in [("nowhere/at/all", 5), ("", 0)] {
        let url = bench.0.client.url(path);
        let output = bench
            .0
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
        let output = bench.0.client.try_run(&[&["bench"], arguments].concat())?;
        ensure!(output.code == Some(2), "{arguments:?}: {output}");
    }
    Ok(())
}
