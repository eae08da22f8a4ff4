//! `smbeam bench ai` generates, trains and writes checkpoints on a real server and on a path.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use smbeam_tests::client::Client;
use smbeam_tests::stage::Stage;
use smbeam_tests::{tests_over_transports, wait};

/// Time limit for the second of many small checkpoints.
const TIME_LIMIT: Duration = Duration::from_secs(60);

tests_over_transports!(
    each: [
        small_files_train_over_smb,
        large_files_train_over_smb_as_from_a_path,
        checkpoints_have_the_files_of_the_ranks,
    ],
    once: [
        ctrl_c_removes_the_checkpoints,
        ranges_of_records_train_over_smb,
        the_largest_number_of_accelerators_is_searched,
        results_are_compared_on_a_page,
        impossible_requests_are_reported,
    ],
);

struct Bench(Stage);

impl Bench {
    fn new(transport: &str) -> Result<Bench> {
        Ok(Bench(Stage::new(transport, "bench-ai")?))
    }

    /// Runs `smbeam bench ai`.
    fn run(&self, arguments: &[&str]) -> Result<String> {
        let arguments = [&["bench", "ai"], arguments].concat();
        Ok(self.0.client.run(&arguments)?.text)
    }

    /// Runs it, and returns its JSON.
    fn json(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.run(&[arguments, &["--json=-"]].concat())?;
        serde_json::from_str(&text).context("one object of JSON")
    }

    /// A client without options for connections, for commands that use no server.
    fn local_client(&self) -> Result<Client> {
        Client::new(&self.0.server)
    }

    fn generate(&self, workload: &str, files: u32, scale: &str) -> Result<()> {
        let (workload, files) = (format!("--workload={workload}"), format!("--files={files}"));
        let scale = format!("--scale={scale}");
        let text = self.run(&["datagen", "{}", &workload, &files, &scale])?;
        ensure!(text.contains(" files with "), "{text}");
        Ok(())
    }
}

/// Fails unless the only run of a training read all files of `epochs` epochs.
fn check_run(result: &Value, accelerators: u64, bytes: u64) -> Result<()> {
    let run = &result["train"]["runs"][0];
    ensure!(run["accelerators"] == accelerators, "{run}");
    ensure!(run["bytes"] == bytes, "{run}, expected {bytes} bytes");
    // The formula of round v2 leaves nothing of two steps.
    let rate = &run["epochs"][0]["samples_per_second_v3"];
    ensure!(rate.as_f64() > Some(0.0), "{run}");
    let wait = &run["batch_wait"]["percentiles_us"];
    ensure!(wait["p50"].as_f64() <= wait["max"].as_f64(), "{run}");
    Ok(())
}

fn small_files_train_over_smb(transport: &str) -> Result<()> {
    let bench = Bench::new(transport)?;
    bench.generate("retinanet", 100, "0.01")?;
    // The square of the root of 3229.57 bytes.
    let file = bench.0.share.join("retinanet/train/img_007_of_100.jpeg");
    ensure!(fs::metadata(&file)?.len() == 56 * 56);
    let result = bench.json(&[
        "train",
        "{}",
        "--workload=retinanet",
        "--accelerators=2",
        "--workers=2",
        "--epochs=2",
    ])?;
    // Two epochs of two steps of 24 samples on two accelerators: four files are left over.
    check_run(&result, 2, 2 * 2 * 2 * 24 * 56 * 56)?;
    let run = &result["train"]["runs"][0];
    ensure!(
        run["au_percent"].is_null() && run["au_refused"].is_string(),
        "{run}"
    );
    ensure!(run["cpu"]["server_s"].is_number(), "{run}");
    let session = result["storage"]["session"].as_str().unwrap_or_default();
    ensure!(session.contains(transport), "{result}");
    // A broken file is reported with its name.
    fs::write(&file, b"no image")?;
    let arguments = [
        "bench",
        "ai",
        "train",
        "{}",
        "--workload=retinanet",
        "--epochs=1",
    ];
    let output = bench.0.client.try_run(&arguments)?;
    ensure!(output.code == Some(1), "{output}");
    ensure!(
        output
            .errors
            .contains("img_007_of_100.jpeg: not a JPEG file"),
        "{output}"
    );
    Ok(())
}

fn large_files_train_over_smb_as_from_a_path(transport: &str) -> Result<()> {
    let bench = Bench::new(transport)?;
    bench.generate("unet3d", 14, "0.02")?;
    let train = bench.0.share.join("unet3d/train");
    let sizes = fs::read_dir(&train)?.map(|entry| Ok(entry?.metadata()?.len()));
    let total: u64 = sizes.collect::<Result<Vec<u64>>>()?.into_iter().sum();
    let path = bench.0.share.to_str().context("a path")?;
    for location in ["{}", path] {
        let result = bench.json(&[
            "train",
            location,
            "--workload=unet3d",
            "--accelerator=h100",
            "--workers=1",
            "--epochs=1",
        ])?;
        check_run(&result, 1, total)?;
        ensure!(
            result["storage"]["mount"].is_null() == (location == "{}"),
            "{result}"
        );
    }
    // A wrong byte in an array is found.
    let file = train.join("img_03_of_14.npz");
    let mut bytes = fs::read(&file)?;
    bytes[5000] ^= 1;
    fs::write(&file, bytes)?;
    let broken = [
        "bench",
        "ai",
        "train",
        "{}",
        "--workload=unet3d",
        "--epochs=1",
    ];
    let output = bench.0.client.try_run(&broken)?;
    ensure!(
        output.errors.contains("img_03_of_14.npz: wrong CRC-32"),
        "{output}"
    );
    let unchecked = [&broken[2..], &["--no-decode"]].concat();
    bench.json(&unchecked)?;
    Ok(())
}

fn checkpoints_have_the_files_of_the_ranks(transport: &str) -> Result<()> {
    let bench = Bench::new(transport)?;
    let common = ["checkpoint", "{}", "--ranks=2/8", "--scale=0.00001"];
    let result = bench.json(&[&common[..], &["--writes=2", "--reads=3", "--keep"]].concat())?;
    let checkpoint = &result["checkpoint"];
    ensure!(
        checkpoint["files"] == 4 && checkpoint["ranks_of_model"] == 8,
        "{checkpoint}"
    );
    for (phase, count) in [("write", 2), ("read", 3)] {
        let phase = &checkpoint[phase];
        ensure!(phase["gb_per_second"].as_f64() > Some(0.0), "{checkpoint}");
        let transfers = phase["checkpoints"].as_array().context("a list")?;
        ensure!(transfers.len() == count, "{checkpoint}");
    }
    let step = bench
        .0
        .share
        .join("checkpoints/llama3-8b/global_epoch1_step2");
    let size = |kind: &str| -> Result<u64> {
        let name = format!("zero_pp_rank_1_mp_rank_0_{kind}_states.pt");
        Ok(fs::metadata(step.join(name))?.len())
    };
    let sum = 2 * (size("model")? + size("optim")?);
    ensure!(checkpoint["bytes"] == sum, "{checkpoint}: {sum} bytes");
    // The files stay, so another run can read them; a third one removes its own.
    bench.json(&[&common[..], &["--writes=0", "--reads=1"]].concat())?;
    bench.json(&[&common[..], &["--writes=2", "--reads=0", "--no-fsync"]].concat())?;
    ensure!(!step.exists());
    Ok(())
}

fn ctrl_c_removes_the_checkpoints() -> Result<()> {
    let bench = Bench::new("tcp")?;
    let Stage { client, share, .. } = &bench.0;
    let command = ["bench", "ai", "checkpoint", "{}", "--ranks=2/8"];
    let amount = ["--scale=0.00001", "--writes=1000", "--pause=0.1"];
    let mut child = client.spawn(&[&command[..], &amount[..]].concat())?;
    let all = share.join("checkpoints/llama3-8b");
    wait::until("the second checkpoint", TIME_LIMIT, || {
        all.join("global_epoch1_step2").exists()
    })?;
    client.interrupt(&mut child)?;
    ensure!(!all.exists(), "checkpoints remain");
    Ok(())
}

fn ranges_of_records_train_over_smb() -> Result<()> {
    let bench = Bench::new("tcp")?;
    bench.generate("resnet50", 2, "0.002")?;
    let result = bench.json(&[
        "train",
        "{}",
        "--workload=resnet50",
        "--accelerator=h100",
        "--workers=3",
        "--epochs=1",
    ])?;
    let file = bench.0.share.join("resnet50/train/img_0_of_2.tfrecord");
    let record = fs::metadata(file)?.len() / 1251;
    check_run(&result, 1, 6 * 400 * record)
}

fn the_largest_number_of_accelerators_is_searched() -> Result<()> {
    let bench = Bench::new("tcp")?;
    bench.generate("retinanet", 1000, "0.001")?;
    // 1000 files are 41 steps of one accelerator, and 20 of two. 20 are needed.
    let result = bench.json(&[
        "train",
        "{}",
        "--workload=retinanet",
        "--accelerators=max",
        "--workers=1",
        "--prefetch=1",
        "--computation-time=0.01",
    ])?;
    let train = &result["train"];
    ensure!(train["is_search"] == true, "{train}");
    let runs = train["runs"].as_array().context("a list")?;
    ensure!(
        runs.iter().all(|run| run["au_percent"].is_number()),
        "{train}"
    );
    let numbers: Vec<u64> = runs
        .iter()
        .filter_map(|run| run["accelerators"].as_u64())
        .collect();
    ensure!(numbers == [1] || numbers == [1, 2], "{numbers:?}");
    Ok(())
}

fn results_are_compared_on_a_page() -> Result<()> {
    let bench = Bench::new("tcp")?;
    bench.generate("retinanet", 30, "0.001")?;
    for label in ["one", "two & more"] {
        let (label, file) = (
            format!("--label={label}"),
            format!("--json={}.json", label.len()),
        );
        let training = [
            "train",
            "{}",
            "--workload=retinanet",
            "--epochs=1",
            &label,
            &file,
        ];
        let text = bench.run(&[&training[..], &["--html=single.html"]].concat())?;
        ensure!(
            text.contains("retinanet on b200") && text.contains("samples/s"),
            "{text}"
        );
    }
    let local = bench.local_client()?;
    let files = ["3.json", "10.json"].map(|name| bench.0.client.local(name));
    let files = files.map(|path| path.display().to_string());
    let report = [
        "bench",
        "ai",
        "report",
        &files[0],
        &files[1],
        "--html=both.html",
    ];
    let text = local.run(&report)?.text;
    let first = text.lines().next().unwrap_or_default();
    ensure!(
        first.contains("one") && first.contains("two & more"),
        "{text}"
    );
    ensure!(text.contains("1@-"), "{text}");
    let page = fs::read_to_string(local.local("both.html"))?;
    ensure!(
        page.contains("<svg") && page.contains("two &amp; more"),
        "{page}"
    );
    let schema: Value = serde_json::from_str(&local.run(&["bench", "ai", "schema"])?.text)?;
    let result: Value = serde_json::from_slice(&fs::read(bench.0.client.local("3.json"))?)?;
    for name in schema["required"].as_array().context("a list")? {
        ensure!(
            !result[name.as_str().unwrap_or_default()].is_null(),
            "{name} is missing"
        );
    }
    Ok(())
}

fn impossible_requests_are_reported() -> Result<()> {
    let bench = Bench::new("tcp")?;
    let try_run = |arguments: &[&str]| {
        let arguments = [&["bench", "ai"], arguments].concat();
        bench.0.client.try_run(&arguments)
    };
    for (arguments, code, reason) in [
        (
            &["train", "{}", "--workload=unet3d"][..],
            1,
            "run `smbeam bench ai datagen` first",
        ),
        (
            &["train", "{}", "--workload=unet3d", "--accelerator=mi355"],
            2,
            "use a100, h100, b200",
        ),
        (&["checkpoint", "{}", "--ranks=9"], 2, "only 8 ranks"),
        (&["checkpoint", "{}", "--ranks=2/64"], 2, "has 8 ranks"),
        (
            &["checkpoint", "{}", "--writes=0", "--ranks=1"],
            1,
            "no checkpoint",
        ),
        (
            &["train", "{}", "--workload=unet3d", "--accelerators=0"],
            2,
            "or max",
        ),
        (&["train"], 2, "LOCATION"),
    ] {
        let output = try_run(arguments)?;
        ensure!(output.code == Some(code), "{arguments:?}: {output}");
        ensure!(output.errors.contains(reason), "{arguments:?}: {output}");
    }
    let missing = ["bench", "ai", "report", "nothing.json"];
    let output = bench.local_client()?.try_run(&missing)?;
    ensure!(output.code == Some(5), "{output}");
    ensure!(
        output.errors.contains("nothing.json: No such file"),
        "{output}"
    );
    bench.generate("retinanet", 3, "0.001")?;
    let output = try_run(&["train", "{}", "--workload=retinanet"])?;
    ensure!(
        output.errors.contains("3 files are too few for one step"),
        "{output}"
    );
    let output = try_run(&["train", "{}", "--workload=retinanet", "--scale=1"])?;
    ensure!(
        output.errors.contains("has the scale 0.001, not 1"),
        "{output}"
    );
    Ok(())
}
