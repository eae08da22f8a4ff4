//! `smbeam doctor` names the check that refuses, on the machine of the server and from a client.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Output;
use std::thread;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use smbeam_tests::certificates::Authority;
use smbeam_tests::client::Client;
use smbeam_tests::lab::{Lab, Missing};
use smbeam_tests::ports::ReservedPort;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, BOB, Plan, Server, Share, Subject, User};
use smbeam_tests::{tests, wait};

tests!(
    faults_of_accounts_and_shares_are_found,
    faults_of_paths_are_found,
    faults_of_the_machine_are_found,
    a_changed_configuration_is_noticed,
    a_good_server_has_no_fault,
    faults_between_a_client_and_a_server_are_found,
    faults_before_a_login_are_found,
    a_certificate_that_has_expired_is_found,
    an_old_dialect_is_refused_where_encryption_is_required,
    a_good_way_to_a_file_has_no_fault,
    servers_of_samba_are_examined,
    explanations_are_offline,
);

/// The doctor examines smbeam on its machine.
fn check_subject() -> Result<()> {
    match Subject::chosen() {
        Subject::Smbeam => Ok(()),
        Subject::Samba => Err(Missing("the doctor reads the files of smbeam".into()).into()),
    }
}

/// A server with a share for each fault.
struct Clinic {
    lab: Lab,
    server: Server,
    scratch: Scratch,
}

/// An expected refusal: arguments, and the words of the line that names it.
type Fault = (&'static [&'static str], &'static [&'static str]);

impl Clinic {
    fn open(name: &str, change: impl FnOnce(&mut Plan, &Scratch) -> Result<()>) -> Result<Self> {
        let lab = Lab::find()?;
        let scratch = Scratch::new(name)?;
        let data = scratch.open_directory("data")?;
        let mut plan = Plan::sharing(&data);
        plan.signing_required = true;
        for name in ["private", "guests", "readonly", "gone"] {
            let directory = scratch.open_directory(name)?;
            plan.shares.push(Share::new(name, &directory));
        }
        plan.shares[1].users = vec![BOB.name.to_owned()];
        plan.shares[2].guests = true;
        plan.shares[3].read_only = true;
        change(&mut plan, &scratch)?;
        let server = Server::start(&lab, plan)?;
        fs::remove_dir(scratch.path().join("gone"))?;
        fill(&data)?;
        Ok(Self {
            lab,
            server,
            scratch,
        })
    }

    /// Runs smbeam in the lab, which has the accounts.
    fn smbeam(&self, arguments: &[&str]) -> Result<Output> {
        let program = self.server.directory().join("smbeam");
        let mut command = self.lab.command(&program.display().to_string());
        command.args(arguments).env("HOME", self.scratch.path());
        command.output().context("cannot run smbeam")
    }

    /// Runs the doctor with the configuration of the server.
    fn doctor(&self, arguments: &[&str]) -> Result<(Option<i32>, String)> {
        let file = self.server.configuration().display().to_string();
        let all = [&["doctor", "--config", &file], arguments].concat();
        let output = self.smbeam(&all)?;
        let text = [output.stdout, output.stderr].concat();
        Ok((
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        ))
    }

    fn find(&self, faults: &[Fault]) -> Result<()> {
        for (arguments, words) in faults {
            let (code, text) = self.doctor(arguments)?;
            ensure!(code == Some(1), "{arguments:?}: exit code {code:?}\n{text}");
            check_line(arguments, &text, "refused", words)?;
        }
        Ok(())
    }

    fn users(&self) -> String {
        self.server
            .directory()
            .join("users.toml")
            .display()
            .to_string()
    }

    fn client(&self, user: User) -> Result<Client> {
        Ok(Client::new(&self.server)?.user(user))
    }
}

/// Files and directories with faults.
fn fill(data: &Path) -> Result<()> {
    for name in ["open", "closed", "listed"] {
        fs::create_dir(data.join(name))?;
        fs::write(data.join(name).join("file"), "text")?;
        fs::set_permissions(data.join(name).join("file"), Permissions::from_mode(0o644))?;
        fs::set_permissions(data.join(name), Permissions::from_mode(0o755))?;
    }
    fs::set_permissions(data.join("closed"), Permissions::from_mode(0o700))?;
    symlink("/etc", data.join("outside"))?;
    symlink("open", data.join("inside"))?;
    Ok(())
}

/// One line has the verdict and all words.
fn check_line(what: &[&str], text: &str, verdict: &str, words: &[&str]) -> Result<()> {
    let is_it =
        |line: &&str| line.starts_with(verdict) && words.iter().all(|word| line.contains(word));
    match text.lines().find(is_it) {
        Some(_) => Ok(()),
        None => bail!("{what:?}: no line {verdict} with {words:?}:\n{text}"),
    }
}

fn faults_of_accounts_and_shares_are_found() -> Result<()> {
    check_subject()?;
    let clinic = Clinic::open("doctor-accounts", |_, _| Ok(()))?;
    let users = clinic.users();
    let disabled = clinic.smbeam(&["user", "disable", "--file", &users, "bob"])?;
    ensure!(disabled.status.success(), "{disabled:?}");
    let file = fs::read_to_string(&users)?;
    let alice = file.find("[[user]]").context("a user")?;
    let without = file[alice..].replacen("name = \"alice\"", "name = \"carol\"", 1);
    fs::write(&users, format!("{file}\n{}", first_table(&without)))?;
    clinic.find(&[
        (
            &["--as", "mallory"],
            &["account mallory", "no such user", "[login-unknown-user]"],
        ),
        (
            &["--as", "bob"],
            &["account bob", "disabled", "[login-account-disabled]"],
        ),
        (
            &["--as", "carol"],
            &["Unix account carol", "[login-no-unix-account]"],
        ),
        (
            &["--as", "guest"],
            &["security.signing_required", "[login-guest-cannot-sign]"],
        ),
        (
            &["--as", "alice", "--share", "private"],
            &[
                "share private",
                "not in the list",
                "[share-user-not-listed]",
            ],
        ),
        (
            &["--as", "alice", "--share", "nothing"],
            &["share nothing", "data, private", "[share-unknown]"],
        ),
        (
            &["--as", "alice", "--share", "gone"],
            &["share gone", "No such file", "[config-share-directory]"],
        ),
        (
            &[
                "--as",
                "alice",
                "--share",
                "readonly",
                "--access",
                "read,write",
            ],
            &["read_only = true", "[share-read-only]"],
        ),
    ])
}

/// The first table of a user file.
fn first_table(text: &str) -> &str {
    let end = text[1..].find("[[user]]").map_or(text.len(), |end| end + 1);
    &text[..end]
}

fn faults_of_paths_are_found() -> Result<()> {
    check_subject()?;
    let clinic = Clinic::open("doctor-paths", |_, _| Ok(()))?;
    let data = clinic.scratch.path().join("data");
    let listed = data.join("listed").display().to_string();
    let setfacl = clinic
        .lab
        .command("setfacl")
        .args(["-m", "u:alice:-", &listed])
        .status()?;
    ensure!(setfacl.success(), "setfacl: {setfacl}");
    let local = data.join("closed/file").display().to_string();
    clinic.find(&[
        (
            &["--as", "alice", "--share", "data", "--path", "closed/file"],
            &[
                "/closed:",
                "search is missing: mode 0700",
                "root(0)",
                "[access-unix-permissions]",
            ],
        ),
        (
            &["--as", "alice", "--share", "data", "--path", "listed/file"],
            &["/listed:", "search is missing", "[access-unix-permissions]"],
        ),
        (
            &[
                "--as",
                "alice",
                "--share",
                "data",
                "--path",
                "outside/passwd",
            ],
            &["/outside:", "leads to /etc", "[path-leaves-share]"],
        ),
        (
            &["--as", "alice", "--share", "data", "--path", "open/nothing"],
            &["open/nothing", "[path-missing]"],
        ),
        (
            &[
                "--as",
                "alice",
                "--share",
                "data",
                "--path",
                "open/file/more",
            ],
            &["open/file", "[path-not-directory]"],
        ),
        (
            &[
                "--as",
                "alice",
                "--share",
                "data",
                "--path",
                "open/file",
                "--access",
                "write",
            ],
            &[
                "open/file",
                "alice cannot write",
                "[access-unix-permissions]",
            ],
        ),
        (
            &["--as", "alice", "--share", "data", "--path", "../x"],
            &["[path-outside-of-shares]"],
        ),
    ])?;
    // A local path finds its share. The remedy is a command.
    let (code, text) = clinic.doctor(&["--as", "alice", "--path", &local])?;
    ensure!(code == Some(1), "{text}");
    let mend = format!(
        "mend: setfacl -m u:alice:x '{}'",
        data.join("closed").display()
    );
    ensure!(text.contains(&mend), "{mend}\n{text}");
    let command = ["-m", "u:alice:x"];
    let closed = data.join("closed");
    let mended = clinic
        .lab
        .command("setfacl")
        .args(command)
        .arg(&closed)
        .status()?;
    ensure!(mended.success(), "setfacl: {mended}");
    let (code, text) = clinic.doctor(&["--as", "alice", "--path", &local])?;
    ensure!(code == Some(0), "the remedy does not help:\n{text}");
    let (code, text) =
        clinic.doctor(&["--as", "alice", "--share", "data", "--path", "INSIDE/File"])?;
    ensure!(code == Some(0), "case and a link within the share:\n{text}");
    Ok(())
}

fn faults_of_the_machine_are_found() -> Result<()> {
    check_subject()?;
    let clinic = Clinic::open("doctor-machine", |_, _| Ok(()))?;
    let busy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = busy.local_addr()?.port();
    let root = Authority::new(clinic.scratch.path(), "Root")?;
    let expired = root.expired_server(&["localhost"])?;
    let file = clinic.scratch.path().join("other.toml");
    let configuration = format!(
        "[server]\nlisten = [\"127.0.0.1\"]\ntransports = [\"tcp:{port}\", \"quic:1\"]\n\
         users = \"{}\"\ncontrol_socket = \"{}\"\nname = \"localhost\"\n\
         [quic]\ncertificate = \"{}\"\nkey = \"{}\"\n\
         [[share]]\nname = \"data\"\npath = \"{}\"\n",
        clinic.users(),
        clinic.scratch.path().join("no-socket").display(),
        expired.certificate.display(),
        expired.key.display(),
        clinic.scratch.path().join("data").display(),
    );
    fs::write(&file, configuration)?;
    let output = clinic.smbeam(&["doctor", "--config", &file.display().to_string()])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.code() == Some(1), "{text}");
    let port = format!("127.0.0.1:{port}");
    check_line(
        &["port"],
        &text,
        "refused",
        &[&port, "has the port", "[config-listen]"],
    )?;
    let words = [
        "server-certificate.pem",
        "expired on",
        "[certificate-expired]",
    ];
    check_line(&["certificate"], &text, "refused", &words)?;
    check_line(&["server"], &text, "warning", &["[server-not-running]"])?;
    fs::write(&file, "[server]\nlisen = \"::\"\n")?;
    let output = clinic.smbeam(&["doctor", "--config", &file.display().to_string()])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    check_line(
        &["mistake"],
        &text,
        "refused",
        &["lisen", "[config-invalid]"],
    )?;
    Ok(())
}

fn a_changed_configuration_is_noticed() -> Result<()> {
    check_subject()?;
    let clinic = Clinic::open("doctor-reload", |_, _| Ok(()))?;
    let file = clinic.server.configuration();
    let directory = clinic.scratch.open_directory("added")?;
    let mut text = fs::read_to_string(&file)?;
    text.push_str(&format!(
        "\n[[share]]\nname = \"added\"\npath = \"{}\"\n",
        directory.display()
    ));
    fs::write(&file, text)?;
    fs::create_dir(clinic.scratch.path().join("gone"))?;
    let (code, text) = clinic.doctor(&[])?;
    ensure!(code == Some(0), "{text}");
    check_line(
        &["added"],
        &text,
        "warning",
        &["share added", "[server-not-reloaded]"],
    )?;
    let path = file.display().to_string();
    let reloaded = clinic.smbeam(&["reload", "--config", &path])?;
    ensure!(reloaded.status.success(), "{reloaded:?}");
    let (_, text) = clinic.doctor(&[])?;
    ensure!(!text.contains("server-not-reloaded"), "{text}");
    Ok(())
}

fn a_good_server_has_no_fault() -> Result<()> {
    check_subject()?;
    let clinic = Clinic::open("doctor-good", |_, _| Ok(()))?;
    fs::create_dir(clinic.scratch.path().join("gone"))?;
    let arguments = ["--as", "alice", "--share", "data", "--path", "open/file"];
    let (code, text) = clinic.doctor(&arguments)?;
    ensure!(code == Some(0) && text.contains(": 0 refused"), "{text}");
    check_line(
        &["read"],
        &text,
        "ok",
        &["alice can read it", "rights: read"],
    )?;
    let (code, text) = clinic.doctor(&[&arguments[..], &["--json"]].concat())?;
    let object: Value = serde_json::from_str(&text)?;
    ensure!(code == Some(0) && object["good"] == true, "{text}");
    let checks = object["checks"].as_array().context("a list")?;
    let subjects: Vec<&str> = checks
        .iter()
        .filter_map(|check| check["subject"].as_str())
        .collect();
    for subject in [
        "account alice",
        "Unix account alice",
        "share data",
        "signing",
    ] {
        ensure!(subjects.contains(&subject), "{subject}: {text}");
    }
    Ok(())
}

/// The doctor on the machine of a client must find these faults.
fn find(client: &Client, faults: &[Fault]) -> Result<()> {
    for (arguments, words) in faults {
        let all = [&["doctor", "--url"], *arguments].concat();
        let output = client.try_run(&all)?;
        ensure!(output.code == Some(1), "{arguments:?}: {output}");
        check_line(arguments, &output.text, "refused", words)?;
    }
    Ok(())
}

fn faults_between_a_client_and_a_server_are_found() -> Result<()> {
    check_subject()?;
    let clinic = Clinic::open("doctor-client", |_, _| Ok(()))?;
    let users = clinic.users();
    let alice = clinic.client(ALICE)?;
    find(
        &alice,
        &[
            (&["{}closed/file"], &["/closed/file", "[path-refused]"]),
            (&["{}open/nothing"], &["/open/nothing", "[path-missing]"]),
            (
                &["{}open/file/more"],
                &["/open/file", "[path-not-directory]"],
            ),
        ],
    )?;
    let private = alice.url_in("private", "");
    let unknown = alice.url_in("nothing", "");
    for (url, words) in [
        (private, ["share private", "[share-refused]"]),
        (unknown, ["share nothing", "[share-unknown]"]),
    ] {
        let output = alice.try_run(&["doctor", "--url", &url])?;
        ensure!(output.code == Some(1), "{output}");
        check_line(&[&url], &output.text, "refused", &words)?;
    }
    let output = alice.try_run(&["doctor", "--url", &alice.url_in("nothing", "")])?;
    ensure!(
        output.text.contains("mend: the server has: data, "),
        "{output}"
    );
    let wrong = User {
        password: "wrong",
        ..ALICE
    };
    let refused: Fault = (&["{}"], &["login on", "[login-refused]"]);
    find(&clinic.client(wrong)?, &[refused])?;
    let disabled = clinic.smbeam(&["user", "disable", "--file", &users, "bob"])?;
    ensure!(disabled.status.success(), "{disabled:?}");
    let refused: Fault = (&["{}"], &["login on", "[login-account-disabled]"]);
    find(&clinic.client(BOB)?, &[refused])
}

fn faults_before_a_login_are_found() -> Result<()> {
    let unknown = Client::of("no-such-host.invalid")?;
    find(
        &unknown,
        &[(&["{}"], &["no-such-host.invalid", "[name-unknown]"])],
    )?;
    let port = ReservedPort::new()?;
    let closed = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port.number).to_string();
    find(
        &Client::of(&closed)?,
        &[(&["{}"], &["Connection refused", "[port-closed]"])],
    )?;
    let other = answering(|_| b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())?;
    find(&Client::of(&other)?, &[(&["{}"], &["[server-not-smb]"])])?;
    // It answers the negotiation of SMB 1 only.
    let old = answering(|request| match request.get(4..8) {
        Some(b"\xFFSMB") => [&[0, 0, 0, 35], &request[4..36], &[0, 0, 0]].concat(),
        _ => Vec::new(),
    })?;
    find(&Client::of(&old)?, &[(&["{}"], &["[server-smb1-only]"])])
}

/// A program that answers the first bytes of each connection, and closes it. Returns its address.
fn answering(answer: fn(&[u8]) -> Vec<u8>) -> Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?.to_string();
    // The thread ends with the process.
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 1024];
            let count = stream.read(&mut request).unwrap_or(0);
            let _ = stream.write_all(&answer(&request[..count]));
        }
    });
    Ok(address)
}

fn a_certificate_that_has_expired_is_found() -> Result<()> {
    check_subject()?;
    let authorities = Scratch::new("doctor-authority")?;
    let root = Authority::new(authorities.path(), "Root")?;
    let expired = root.expired_server(&["localhost"])?;
    let clinic = Clinic::open("doctor-expired", |plan, _| {
        let text = |path: &Path| path.display().to_string();
        plan.quic
            .insert("certificate".into(), text(&expired.certificate).into());
        plan.quic.insert("key".into(), text(&expired.key).into());
        Ok(())
    })?;
    let port = clinic.server.address("quic").port();
    let client = Client::of(&format!("localhost:{port}"))?.argument("--transports=quic");
    let trusting = client.argument(&format!("--ca-file={}", root.file.display()));
    find(
        &trusting,
        &[(
            &["{}"],
            &["login on", "expired on", "[certificate-expired]"],
        )],
    )
}

fn an_old_dialect_is_refused_where_encryption_is_required() -> Result<()> {
    check_subject()?;
    let clinic = Clinic::open("doctor-dialect", |plan, _| {
        plan.encryption_required = true;
        Ok(())
    })?;
    let client = clinic.client(ALICE)?.argument("--max-protocol=2.1");
    find(&client, &[(&["{}"], &["login on", "[login-refused]"])])?;
    let logged = ["code=login-client-cannot-encrypt"];
    wait::for_line(|| clinic.server.log(), &logged).map(drop)
}

/// The checks of a way without a fault.
fn check_good(client: &Client, path: &str) -> Result<()> {
    let output = client.run(&["doctor", "--url", &format!("{{}}{path}")])?;
    for words in [
        &["port ", "connects in"][..],
        &["negotiation with", "dialect 3.1.1"],
        &["clock of the server"],
        &["login on", "accepted, "],
        &["session", "round trip"],
        &["share data", "connected"],
        &["/open/file", "rights: read"],
        &["/open/file", "4 bytes read"],
    ] {
        check_line(words, &output.text, "ok", words)?;
    }
    ensure!(output.text.contains(": 0 refused"), "{output}");
    Ok(())
}

fn a_good_way_to_a_file_has_no_fault() -> Result<()> {
    check_subject()?;
    let clinic = Clinic::open("doctor-way", |_, _| Ok(()))?;
    let client = clinic.client(ALICE)?;
    check_good(&client, "open/file")?;
    let output = client.run(&["doctor", "--json", "--url", "{}open"])?;
    let object: Value = serde_json::from_str(&output.text)?;
    ensure!(object["good"] == true, "{output}");
    Ok(())
}

fn servers_of_samba_are_examined() -> Result<()> {
    let lab = Lab::find()?;
    let scratch = Scratch::new("doctor-samba")?;
    let data = scratch.open_directory("data")?;
    fill(&data)?;
    let server = Server::start_as(Subject::Samba, Some(&lab), None, Plan::sharing(&data))?;
    let client = Client::new(&server)?;
    check_good(&client, "open/file")?;
    find(
        &client,
        &[
            (&["{}closed/file"], &["/closed/file", "[path-refused]"]),
            (&["{}open/nothing"], &["/open/nothing", "[path-missing]"]),
        ],
    )?;
    let unknown = client.url_in("nothing", "");
    let output = client.try_run(&["doctor", "--url", &unknown])?;
    check_line(&["share"], &output.text, "refused", &["[share-unknown]"])?;
    let wrong = User {
        password: "wrong",
        ..ALICE
    };
    let client = Client::new(&server)?.user(wrong);
    find(&client, &[(&["{}"], &["login on", "[login-refused]"])])
}

fn explanations_are_offline() -> Result<()> {
    let client = Client::of("no-such-host.invalid")?;
    let command = |arguments: &[&str]| {
        let output = client.command(&[]).get_program().to_owned();
        std::process::Command::new(output).args(arguments).output()
    };
    let output = command(&["explain", "login-wrong-password"])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{text}");
    ensure!(
        text.starts_with("login-wrong-password\n") && text.contains("To mend it: "),
        "{text}"
    );
    let unknown = command(&["explain", "no-such-code"])?;
    ensure!(unknown.status.code() == Some(5), "{unknown:?}");
    Ok(())
}
