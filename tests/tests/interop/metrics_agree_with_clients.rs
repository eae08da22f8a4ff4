//! The metrics of the server agree with the requests of its clients, and parsers and tools of other
//! projects read them.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use smbeam_client::{OpenOptions, Options, Session, Transport, Wait as _};
use smbeam_tests::http;
use smbeam_tests::lab::{Lab, Missing};
use smbeam_tests::metrics::Metrics;
use smbeam_tests::ports::ReservedPort;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{ALICE, Plan, Server, Share, Subject, User};
use smbeam_tests::{tests, wait};

use crate::rig::{TIME_LIMIT, log_in};

tests!(
    requests_bytes_and_objects_are_counted,
    smbclient_is_counted,
    refused_logins_have_reasons,
    a_share_without_its_directory_is_not_ready,
    the_token_is_required,
    parsers_of_other_projects_read_the_metrics,
    boards_and_alerts_are_valid,
);

/// A server with metrics, and the files that it serves.
pub(crate) struct Monitored {
    server: Server,
    pub(crate) metrics: SocketAddr,
    pub(crate) scratch: Scratch,
    _port: ReservedPort,
}

impl Monitored {
    pub(crate) fn start(name: &str, change: impl FnOnce(&mut Plan)) -> Result<Self> {
        if Subject::chosen() == Subject::Samba {
            return Err(Missing("smbd has no metrics".into()).into());
        }
        let (lab, scratch, port) = (Lab::find()?, Scratch::new(name)?, ReservedPort::new()?);
        let metrics: SocketAddr = format!("127.0.0.1:{}", port.number).parse()?;
        let mut plan = Plan::sharing(&scratch.open_directory("share")?);
        let listen = metrics.to_string();
        plan.metrics.insert("listen".to_owned(), listen.into());
        change(&mut plan);
        Ok(Self {
            server: Server::start(&lab, plan)?,
            metrics,
            scratch,
            _port: port,
        })
    }

    fn scrape(&self) -> Result<Metrics> {
        Metrics::scrape(self.metrics)
    }

    pub(crate) fn log_in(&self, user: User) -> Result<Session, smbeam_client::Error> {
        let options = Options::default().transports(Transport::Tcp);
        log_in(options, Some(self.server.tcp.port()), user)
    }

    /// Waits until the server is ready: its check of the shares has a time limit.
    fn wait_until_ready(&self) -> Result<http::Answer> {
        let mut answer = http::get(self.metrics, "/readyz", "")?;
        wait::until("a ready server", TIME_LIMIT, || {
            if answer.status != 200 {
                answer = http::get(self.metrics, "/readyz", "").unwrap_or(answer.clone());
            }
            answer.status == 200
        })
        .with_context(|| answer.to_string())?;
        Ok(answer)
    }

    /// Waits until all clients have left.
    fn wait_for_silence(&self) -> Result<()> {
        wait::until("the end of all connections", TIME_LIMIT, || {
            let is_idle = |metrics: Metrics| {
                let names = ["smbeam_connections", "smbeam_sessions"];
                names.iter().all(|name| metrics.sum(name, &[]) == 0.0)
            };
            self.scrape().is_ok_and(is_idle)
        })
    }
}

fn requests_bytes_and_objects_are_counted() -> Result<()> {
    let rig = Monitored::start("metrics", |_| {})?;
    let before = rig.scrape()?;
    ensure!(
        before.sum("smbeam_requests_total", &[]) == 0.0,
        "{}",
        before.text
    );
    let session = rig.log_in(ALICE)?;
    let share = session.share("data").wait()?;
    let new = OpenOptions::new().read(true).write(true).create(true);
    let file = share.open("f", &new).wait()?;
    for block in 0..3_u64 {
        let (written, _) = file.write_at(vec![1; 4096], block * 4096).wait();
        ensure!(written? == 4096, "a whole write");
    }
    for _ in 0..5 {
        let (read, _) = file.read_at(vec![0; 4096], 4096).wait();
        ensure!(read? == 4096, "a whole read");
    }
    let missing = share.open("missing", &OpenOptions::new().read(true)).wait();
    ensure!(missing.is_err(), "it does not exist");

    let now = rig.scrape()?;
    let text = &now.text;
    let requests = |command: &str, status: &str| {
        let labels = [
            format!("command=\"{command}\""),
            format!("status=\"{status}\""),
        ];
        let labels = labels.each_ref().map(String::as_str);
        now.since(&before, "smbeam_requests_total", &labels)
    };
    for (command, status, count) in [
        ("NEGOTIATE", "SUCCESS", 1.0),
        ("SESSION_SETUP", "MORE_PROCESSING_REQUIRED", 1.0),
        ("SESSION_SETUP", "SUCCESS", 1.0),
        ("CREATE", "SUCCESS", 1.0),
        ("CREATE", "OBJECT_NAME_NOT_FOUND", 1.0),
        ("WRITE", "SUCCESS", 3.0),
        ("READ", "SUCCESS", 5.0),
        ("CLOSE", "SUCCESS", 0.0),
    ] {
        ensure!(
            requests(command, status) == count,
            "{command} {status}:\n{text}"
        );
    }
    let data = "share=\"data\"";
    for (name, labels, value) in [
        ("smbeam_written_bytes_total", &[data][..], 3.0 * 4096.0),
        ("smbeam_read_bytes_total", &[data], 5.0 * 4096.0),
        (
            "smbeam_request_duration_seconds_count",
            &[data, "command=\"READ\""],
            5.0,
        ),
        ("smbeam_logins_total", &[], 1.0),
        ("smbeam_sessions", &[], 1.0),
        ("smbeam_opens", &[], 1.0),
        ("smbeam_share_available", &[data], 1.0),
        ("smbeam_silent_workers", &[], 0.0),
    ] {
        ensure!(now.sum(name, labels) == value, "{name} {labels:?}:\n{text}");
    }
    let connection = [
        "transport=\"tcp\"",
        "dialect=\"3.1.1\"",
        "cipher=\"AES-128-GCM\"",
    ];
    ensure!(now.sum("smbeam_connections", &connection) == 1.0, "{text}");
    let accepted = ["transport=\"tcp\""];
    let accepted = now.since(&before, "smbeam_accepted_connections_total", &accepted);
    ensure!(accepted == 1.0, "{text}");
    ensure!(now.sum("smbeam_credits", &[]) > 0.0, "{text}");
    agrees_with_status(&rig, &now)?;

    drop((file, share));
    session.close().wait()?;
    rig.wait_for_silence()?;
    let end = rig.scrape()?;
    ensure!(end.sum("smbeam_opens", &[]) == 0.0, "{}", end.text);
    let closed = ["command=\"CLOSE\"", "status=\"SUCCESS\""];
    ensure!(
        end.sum("smbeam_requests_total", &closed) == 1.0,
        "{}",
        end.text
    );
    Ok(())
}

/// The status on the same port has the same numbers.
fn agrees_with_status(rig: &Monitored, metrics: &Metrics) -> Result<()> {
    let mut status = Value::Null;
    let mut answer = String::new();
    // A worker of a busy machine may report its connections late.
    wait::until("the reports of all workers", TIME_LIMIT, || {
        let got = http::get(rig.metrics, "/api/v1/status", "");
        let got = got.ok().filter(|got| got.status == 200);
        answer = got.map(|got| got.body).unwrap_or_default();
        status = serde_json::from_str(&answer).unwrap_or_default();
        status["left_out"]["workers"] == 0
    })
    .with_context(|| answer.clone())?;
    let totals = &status["server"]["totals"];
    let answered = metrics.sum("smbeam_requests_total", &[]);
    ensure!(
        totals["answered"].as_f64() == Some(answered),
        "{answer}\n{}",
        metrics.text
    );
    let received = metrics.sum("smbeam_received_bytes_total", &[]);
    ensure!(
        totals["received"].as_f64() == Some(received),
        "{answer}\n{}",
        metrics.text
    );
    ensure!(
        status["connections"].as_array().map(Vec::len) == Some(1),
        "{answer}"
    );
    Ok(())
}

fn smbclient_is_counted() -> Result<()> {
    const BYTES: usize = 3 << 20;
    let rig = Monitored::start("metrics-smbclient", |_| {})?;
    let lab = Lab::find()?;
    let source = rig.scratch.open_directory("local")?.join("source");
    fs::write(&source, vec![7; BYTES])?;
    let local = source.parent().context("a directory")?;
    let client = Smbclient::new(&lab, &rig.server)
        .user(ALICE)
        .directory(local);
    client.run("put source; get source copy; ls; del source")?;
    ensure!(
        fs::read(local.join("copy"))? == vec![7; BYTES],
        "the same bytes"
    );
    rig.wait_for_silence()?;
    let now = rig.scrape()?;
    let data = "share=\"data\"";
    for name in ["smbeam_written_bytes_total", "smbeam_read_bytes_total"] {
        ensure!(
            now.sum(name, &[data]) == BYTES as f64,
            "{name}\n{}",
            now.text
        );
    }
    let count = |labels: &[&str]| now.sum("smbeam_requests_total", labels);
    let creates = count(&["command=\"CREATE\"", "status=\"SUCCESS\""]);
    let closes = count(&["command=\"CLOSE\"", "status=\"SUCCESS\""]);
    ensure!(creates >= 4.0 && creates == closes, "{}", now.text);
    let lists = count(&["command=\"QUERY_DIRECTORY\"", "status=\"NO_MORE_FILES\""]);
    ensure!(lists >= 1.0, "{}", now.text);
    // Each request has a time.
    let timed = now.sum("smbeam_request_duration_seconds_count", &[]);
    ensure!(timed == count(&[]), "{}", now.text);
    Ok(())
}

fn refused_logins_have_reasons() -> Result<()> {
    let rig = Monitored::start("metrics-logins", |plan| {
        plan.shares[0].users = vec!["bob".to_owned()];
    })?;
    let wrong = User {
        password: "wrong",
        ..ALICE
    };
    let unknown = User {
        name: "mallory",
        ..ALICE
    };
    for user in [wrong, wrong, unknown] {
        ensure!(rig.log_in(user).is_err(), "{} is refused", user.name);
    }
    let lab = Lab::find()?;
    let client = Smbclient::new(&lab, &rig.server).login("eve%wrong");
    ensure!(client.try_run("ls")?.code != Some(0), "eve is refused");
    let session = rig.log_in(ALICE)?;
    ensure!(
        session.share("data").wait().is_err(),
        "the share is for bob"
    );
    let now = rig.scrape()?;
    for (name, reason, count) in [
        ("smbeam_refused_logins_total", "login-wrong-password", 2.0),
        ("smbeam_refused_logins_total", "login-unknown-user", 2.0),
        ("smbeam_refused_logins_total", "login-account-disabled", 0.0),
        (
            "smbeam_refused_tree_connects_total",
            "share-user-not-listed",
            1.0,
        ),
    ] {
        let label = format!("reason=\"{reason}\"");
        ensure!(
            now.sum(name, &[&label]) == count,
            "{name} {reason}:\n{}",
            now.text
        );
    }
    ensure!(now.sum("smbeam_logins_total", &[]) == 1.0, "{}", now.text);
    Ok(())
}

fn a_share_without_its_directory_is_not_ready() -> Result<()> {
    let rig = Monitored::start("metrics-ready", |plan| {
        let second = plan.shares[0].path.with_file_name("second");
        let _ = fs::create_dir(&second);
        plan.shares.push(Share::new("second", &second));
    })?;
    rig.wait_until_ready()?;
    let second = rig.scratch.path().join("second");
    let aside = second.with_file_name("aside");
    fs::rename(&second, &aside)?;
    let answer = http::get(rig.metrics, "/readyz", "")?;
    ensure!(answer.status == 503, "{answer}");
    let state: Value = serde_json::from_str(&answer.body)?;
    ensure!(
        state["ready"] == false && state["state"] == "running",
        "{answer}"
    );
    let shares: BTreeMap<_, _> = (state["shares"].as_array().context("a list")?.iter())
        .map(|share| (share["name"].as_str(), share["is_available"].as_bool()))
        .collect();
    let expected = [(Some("data"), Some(true)), (Some("second"), Some(false))];
    ensure!(shares == BTreeMap::from(expected), "{answer}");
    let metrics = rig.scrape()?;
    let available = metrics.sum("smbeam_share_available", &["share=\"second\""]);
    ensure!(available == 0.0, "{}", metrics.text);
    // The process is alive all the same.
    let alive = http::get(rig.metrics, "/healthz", "")?;
    ensure!(alive.status == 200 && alive.body == "ok\n", "{alive}");
    fs::rename(&aside, &second)?;
    rig.wait_until_ready()?;
    Ok(())
}

fn the_token_is_required() -> Result<()> {
    const TOKEN: &str = "a secret of the test";
    let token = TOKEN.replace(' ', "-");
    let rig = Monitored::start("metrics-token", |plan| {
        let path = plan.shares[0].path.with_file_name("token");
        let _ = fs::write(&path, format!("{token}\n"));
        let path = path.display().to_string();
        plan.metrics.insert("token_file".to_owned(), path.into());
    })?;
    for path in ["/metrics", "/api/v1/status"] {
        for header in ["", "authorization: Bearer wrong\r\n"] {
            let answer = http::get(rig.metrics, path, header)?;
            ensure!(answer.status == 401, "{answer}");
            ensure!(!answer.body.contains("smbeam_"), "{answer}");
        }
        let header = format!("authorization: Bearer {token}\r\n");
        let answer = http::get(rig.metrics, path, &header)?;
        ensure!(answer.status == 200, "{answer}");
    }
    let ready = rig.wait_until_ready()?;
    ensure!(!ready.body.contains("data"), "{ready}");
    ensure!(!rig.server.log().contains(&token), "the log has no secrets");
    Ok(())
}

fn parsers_of_other_projects_read_the_metrics() -> Result<()> {
    let rig = Monitored::start("metrics-parser", |_| {})?;
    let lab = Lab::find_with_monitoring()?;
    let session = rig.log_in(ALICE)?;
    let share = session.share("data").wait()?;
    let new = OpenOptions::new().write(true).create(true);
    let file = share.open("f", &new).wait()?;
    file.write_at(vec![1; 100], 0).wait().0?;
    let text = rig.scratch.path().join("metrics.txt");
    fs::write(&text, rig.scrape()?.text)?;
    let program = rig.scratch.path().join("parse.py");
    fs::write(
        &program,
        include_str!("metrics_agree_with_clients/parse.py"),
    )?;
    let mut command = lab.command("python3");
    succeeds(command.arg(&program).arg(&text))
}

fn boards_and_alerts_are_valid() -> Result<()> {
    let lab = Lab::find_with_monitoring()?;
    let scratch = Scratch::new("alerts")?;
    let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../contrib");
    let copy = |from: &str, to: &str| -> Result<()> {
        let to = scratch.path().join(to);
        fs::copy(contrib.join(from), &to).with_context(|| from.to_owned())?;
        Ok(())
    };
    copy("prometheus/smbeam.rules.yml", "smbeam.rules.yml")?;
    copy("prometheus/smbeam.test.yml", "smbeam.test.yml")?;
    let board = fs::read_to_string(contrib.join("grafana/smbeam.json"))?;
    fs::write(scratch.path().join("board.yml"), rules_of_board(&board)?)?;
    for (command, file) in [
        ("check", "smbeam.rules.yml"),
        ("test", "smbeam.test.yml"),
        ("check", "board.yml"),
    ] {
        let path = scratch.path().join(file);
        succeeds(lab.command("promtool").args([command, "rules"]).arg(path))?;
    }
    Ok(())
}

/// The expressions of a board as rules, for the checks of promtool. Variables get values.
fn rules_of_board(board: &str) -> Result<String> {
    let board: Value = serde_json::from_str(board)?;
    let panels = board["panels"].as_array().context("panels")?;
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array());
    let expressions = targets
        .flatten()
        .filter_map(|target| target["expr"].as_str());
    let rules = expressions.enumerate().map(|(index, expression)| {
        let expression = expression.replace("$__rate_interval", "5m");
        let expression = serde_json::to_string(&expression)?;
        Ok(format!(
            "  - {{record: \"board:{index}\", expr: {expression}}}\n"
        ))
    });
    let rules = rules.collect::<Result<Vec<_>>>()?;
    ensure!(rules.len() > 20, "the board has many expressions");
    Ok(format!(
        "groups:\n- name: board\n  rules:\n{}",
        rules.concat()
    ))
}

fn succeeds(command: &mut std::process::Command) -> Result<()> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {text}{errors}");
    Ok(())
}
