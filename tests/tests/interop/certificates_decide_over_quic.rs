//! Over QUIC certificates decide about connections: our client and smbclient verify the server,
//! and a server that requires certificates accepts the right clients.

use std::fs::{self, File, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use smbeam_tests::background::Background;
use smbeam_tests::client::Client;
use smbeam_tests::lab::{Lab, is_root};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{self, ALICE};
use smbeam_tests::{smbclient, tests, wait};

tests!(
    an_authority_vouches_for_a_name,
    a_server_without_a_trusted_authority_is_refused,
    a_certificate_out_of_its_time_is_refused,
    a_pin_is_printed_at_every_start,
    no_client_falls_back_to_a_transport_without_certificates,
    clients_need_a_certificate_that_is_allowed,
    a_new_certificate_needs_no_restart,
    smbclient_believes_an_authority,
    smbclient_refuses_unknown_authorities,
    smbclient_needs_a_certificate_where_it_is_wanted,
);

/// Files are looked at every two seconds.
const RELOAD_LIMIT: Duration = Duration::from_secs(20);

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Result<Authority> {
    let mut wanted = CertificateParams::new([])?;
    wanted.distinguished_name.push(DnType::CommonName, name);
    wanted.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Ok(CertifiedIssuer::self_signed(wanted, KeyPair::generate()?)?)
}

/// A server that speaks QUIC, and the directory with all certificates of a test.
struct Stage {
    server: Option<Background>,
    scratch: Scratch,
    port: u16,
}

impl Stage {
    fn new(name: &str) -> Result<Stage> {
        let scratch = Scratch::new(name)?;
        scratch.open_directory("share")?;
        fs::write(scratch.path().join("share/there.txt"), "there\n")?;
        Ok(Stage {
            scratch,
            server: None,
            port: 0,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Writes `name.pem` and `name.key`: a certificate for a host.
    fn issue(&self, by: &Authority, name: &str, host: &str) -> Result<()> {
        self.issue_for(by, name, host, (2020, 2090))
    }

    /// The same, good from the first day of a year to that of another.
    fn issue_for(&self, by: &Authority, name: &str, host: &str, years: (i32, i32)) -> Result<()> {
        let mut wanted = CertificateParams::new([host.to_owned()])?;
        wanted.distinguished_name.push(DnType::CommonName, name);
        wanted.not_before = date_time_ymd(years.0, 1, 1);
        wanted.not_after = date_time_ymd(years.1, 1, 1);
        wanted.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate()?;
        let certificate = wanted.signed_by(&key, by)?;
        fs::write(self.path(&format!("{name}.pem")), certificate.pem())?;
        let path = self.path(&format!("{name}.key"));
        fs::write(&path, key.serialize_pem())?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(())
    }

    /// An authority in `ca.pem`, and a server that shows a certificate of its for `host`.
    fn vouched(name: &str, host: &str, more: &str) -> Result<(Stage, Authority)> {
        let mut stage = Stage::new(name)?;
        let root = authority("Root")?;
        fs::write(stage.path("ca.pem"), root.pem())?;
        stage.issue(&root, "server", host)?;
        let (certificate, key) = (stage.text("server.pem"), stage.text("server.key"));
        let quic = format!("certificate = \"{certificate}\"\nkey = \"{key}\"\n{more}");
        stage.serve(&quic)?;
        Ok((stage, root))
    }

    /// Starts the server with these lines in `[quic]`.
    fn serve(&mut self, quic: &str) -> Result<()> {
        let (users, share) = (self.text("users.toml"), self.text("share"));
        let text = format!(
            "[server]\nlisten = [\"127.0.0.1\"]\ntransports = [\"quic:0\"]\n\
             users = \"{users}\"\n[quic]\n{quic}\n[[share]]\nname = \"data\"\npath = \"{share}\"\n"
        );
        fs::write(self.path("smbeam.toml"), text)?;
        if !self.path("users.toml").exists() {
            self.add_user()?;
        }
        let log = File::create(self.path("log"))?;
        let mut command = Command::new(subject::program()?);
        command
            .args(["serve", "--config", &self.text("smbeam.toml")])
            .stdout(Stdio::null())
            .stderr(log);
        self.server = Some(Background::start(&mut command)?);
        self.line(&["certificate SHA-256 "])?;
        let log = self.log();
        let listening = log.split_once("listening on 127.0.0.1:");
        let port = listening.and_then(|(_, rest)| rest.split_once(' '));
        self.port = port.context("it listens nowhere")?.0.parse()?;
        Ok(())
    }

    fn add_user(&self) -> Result<()> {
        fs::write(self.path("password"), ALICE.password)?;
        let mut command = Command::new(subject::program()?);
        command
            .args(["user", "add", "--password-stdin", "--file"])
            .arg(self.path("users.toml"))
            .arg(ALICE.name)
            .stdin(File::open(self.path("password"))?);
        if is_root() {
            command.args(["--unix", "nobody"]);
        }
        ensure!(command.status()?.success(), "no user was added");
        Ok(())
    }

    fn stop(&mut self) {
        self.server = None;
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// The line of the log with these words, which may be yet to come.
    fn line(&self, words: &[&str]) -> Result<String> {
        wait::for_line(|| self.log(), words)
    }

    /// The fingerprint that the server printed.
    fn fingerprint(&self) -> Result<String> {
        let line = self.line(&["certificate SHA-256 "])?;
        let shown = line.split_once("SHA-256 ").context("no fingerprint")?.1;
        let whole = shown.split(',').next().context("no fingerprint")?;
        Ok(whole.to_owned())
    }

    /// The command line of smbeam.
    fn client(&self, host: &str) -> Result<Client> {
        let client = Client::of(&format!("{host}:{}", self.port))?;
        Ok(client.argument("--transports=quic"))
    }

    /// The output of smbclient. It trusts only the authorities of a file.
    fn smbclient(&self, lab: &Lab, trusted: &Path, more: &[&str]) -> Result<smbclient::Output> {
        let mut command = lab.command("smbclient");
        command
            .current_dir(self.scratch.path())
            .args(["//localhost/data", "-U"])
            .arg(format!("{}%{}", ALICE.name, ALICE.password))
            .arg(format!("--option=client smb transports=quic:{}", self.port))
            .arg(format!("--option=tls ca file={}", trusted.display()))
            .arg("--option=tls verify peer=ca_and_name")
            .arg("--option=tls trust system cas=no")
            .args(more);
        smbclient::run(&mut command)
    }
}

fn an_authority_vouches_for_a_name() -> Result<()> {
    let (stage, _) = Stage::vouched("quic-vouched", "localhost", "")?;
    let believing = format!("--ca-file={}", stage.text("ca.pem"));
    let output = stage.client("localhost")?.run(&["ls", &believing, "{}"])?;
    ensure!(output.text.contains("there.txt"), "{output}");
    Ok(())
}

fn a_server_without_a_trusted_authority_is_refused() -> Result<()> {
    let (stage, _) = Stage::vouched("quic-untrusted", "nas.example", "")?;
    let client = stage.client("localhost")?;
    let believing = format!("--ca-file={}", stage.text("ca.pem"));
    let words = ["the certificate is not that of localhost, but of nas.example"];
    client.fail(&["ls", &believing, "{}"], 3, &words)?;
    fs::write(stage.path("other.pem"), authority("Other")?.pem())?;
    let other = format!("--ca-file={}", stage.text("other.pem"));
    let words = ["no trusted authority", "CN=Root", "--pin-sha256"];
    client.fail(&["ls", &other, "{}"], 3, &words)?;
    let numbered = stage.client("127.0.0.1")?;
    let words = ["127.0.0.1 is an address", "--allow-address"];
    numbered.fail(&["ls", &believing, "{}"], 2, &words)?;
    let output = numbered.run(&["ls", "--insecure", "{}"])?;
    ensure!(output.errors.contains("WARNING: --insecure"), "{output}");
    Ok(())
}

fn a_certificate_out_of_its_time_is_refused() -> Result<()> {
    let mut stage = Stage::new("quic-times")?;
    let root = authority("Root")?;
    fs::write(stage.path("ca.pem"), root.pem())?;
    let believing = format!("--ca-file={}", stage.text("ca.pem"));
    for (years, words) in [
        ((2020, 2021), "expired on"),
        ((2089, 2090), "is not valid before"),
    ] {
        stage.issue_for(&root, "server", "localhost", years)?;
        let (certificate, key) = (stage.text("server.pem"), stage.text("server.key"));
        stage.serve(&format!("certificate = \"{certificate}\"\nkey = \"{key}\""))?;
        let client = stage.client("localhost")?;
        client.fail(&["ls", &believing, "{}"], 3, &[words])?;
        stage.stop();
    }
    Ok(())
}

fn a_pin_is_printed_at_every_start() -> Result<()> {
    let mut stage = Stage::new("quic-pinned")?;
    let quic = format!("state_directory = \"{}\"", stage.text("state"));
    stage.serve(&quic)?;
    let first = stage.fingerprint()?;
    stage.line(&["certificate SHA-256 ", ", self-signed"])?;
    stage.stop();
    stage.serve(&quic)?;
    ensure!(
        stage.fingerprint()? == first,
        "another certificate was made"
    );
    let client = stage.client("127.0.0.1")?;
    client.run(&["ls", &format!("--pin-sha256={first}"), "{}"])?;
    let other = format!("--pin-sha256={}", "ab".repeat(32));
    let words = ["is not the one that is pinned", &first];
    client.fail(&["ls", &other, "{}"], 3, &words)?;
    Ok(())
}

/// An attacker with a forged certificate must not get the connection without one instead.
fn no_client_falls_back_to_a_transport_without_certificates() -> Result<()> {
    let (stage, _) = Stage::vouched("quic-alone", "nas.example", "")?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let list = format!("--transports=quic:{},tcp:{port}", stage.port);
    let believing = format!("--ca-file={}", stage.text("ca.pem"));
    let words = ["the certificate is not that of localhost"];
    let client = Client::of("localhost")?;
    client.fail(&["ls", &list, &believing, "{}"], 3, &words)?;
    ensure!(listener.accept().is_err(), "it went on to TCP");
    Ok(())
}

fn clients_need_a_certificate_that_is_allowed() -> Result<()> {
    let mut stage = Stage::new("quic-clients")?;
    let (root, other) = (authority("Root")?, authority("Other")?);
    fs::write(stage.path("ca.pem"), root.pem())?;
    stage.issue(&root, "server", "localhost")?;
    stage.issue(&root, "laptop", "laptop.example")?;
    stage.issue(&root, "lost", "lost.example")?;
    stage.issue(&other, "stranger", "laptop.example")?;
    let (certificate, key) = (stage.text("server.pem"), stage.text("server.key"));
    stage.serve(&format!(
        "certificate = \"{certificate}\"\nkey = \"{key}\"\nclient_certificates = \"required\"\n\
         client_ca = \"{}\"\nallow = [\"dns:*.example\"]\ndeny = [\"dns:lost.example\"]",
        stage.text("ca.pem")
    ))?;
    let client = stage.client("localhost")?;
    let client = client.argument(&format!("--ca-file={}", stage.text("ca.pem")));
    let with = |name: &str| {
        let file = |ending: &str| stage.text(&format!("{name}.{ending}"));
        let certificate = format!("--client-cert={}", file("pem"));
        [certificate, format!("--client-key={}", file("key"))]
    };
    client.fail(&["ls", "{}"], 3, &["certificate_required", "--client-cert"])?;
    for (name, words) in [("lost", "access_denied"), ("stranger", "unknown_ca")] {
        let [certificate, key] = with(name);
        client.fail(&["ls", &certificate, &key, "{}"], 3, &[words])?;
    }
    let [certificate, key] = with("laptop");
    client.run(&["ls", &certificate, &key, "{}"])?;
    stage.line(&["is refused", "subject=\"CN=lost\"", "dns:lost.example"])?;
    let subject = "subject=\"CN=stranger\"";
    stage.line(&["is refused", subject, "issuer=\"CN=Other\""])?;
    Ok(())
}

fn a_new_certificate_needs_no_restart() -> Result<()> {
    let (stage, root) = Stage::vouched("quic-renewed", "localhost", "")?;
    let old = format!("--pin-sha256={}", stage.fingerprint()?);
    let client = stage.client("localhost")?;
    client.run(&["ls", &old, "{}"])?;
    stage.issue(&root, "server", "localhost")?;
    wait::until("the old certificate is gone", RELOAD_LIMIT, || {
        client
            .try_run(&["ls", &old, "{}"])
            .is_ok_and(|output| output.code == Some(3))
    })?;
    let believing = format!("--ca-file={}", stage.text("ca.pem"));
    client.run(&["ls", &believing, "{}"])?;
    Ok(())
}

fn smbclient_believes_an_authority() -> Result<()> {
    let lab = Lab::find()?;
    let (stage, _) = Stage::vouched("quic-smbclient", "localhost", "")?;
    for protection in ["sign", "encrypt"] {
        let protection = format!("--client-protection={protection}");
        let more = [&*protection, "-c", "get there.txt got.txt"];
        let output = stage.smbclient(&lab, &stage.path("ca.pem"), &more)?;
        ensure!(output.code == Some(0), "{output}");
        let got = stage.path("got.txt");
        ensure!(fs::read_to_string(&got)? == "there\n", "{output}");
        fs::remove_file(got)?;
    }
    Ok(())
}

fn smbclient_refuses_unknown_authorities() -> Result<()> {
    let lab = Lab::find()?;
    let (stage, root) = Stage::vouched("quic-smbclient-untrusted", "nas.example", "")?;
    fs::write(stage.path("other.pem"), authority("Other")?.pem())?;
    for trusted in ["ca.pem", "other.pem"] {
        let output = stage.smbclient(&lab, &stage.path(trusted), &["-c", "ls"])?;
        let is_reported = output.text.contains("check failed for verify_peer");
        ensure!(output.code != Some(0) && is_reported, "{trusted}: {output}");
    }
    drop(root);
    Ok(())
}

fn smbclient_needs_a_certificate_where_it_is_wanted() -> Result<()> {
    let lab = Lab::find()?;
    let (mut stage, _) = Stage::vouched("quic-smbclient-refused", "localhost", "")?;
    let output = stage.smbclient(&lab, &stage.path("ca.pem"), &["-c", "ls"])?;
    ensure!(output.code == Some(0), "{output}");
    stage.stop();
    let (certificate, key) = (stage.text("server.pem"), stage.text("server.key"));
    stage.serve(&format!(
        "certificate = \"{certificate}\"\nkey = \"{key}\"\nclient_certificates = \"required\"\n\
         client_ca = \"{}\"",
        stage.text("ca.pem")
    ))?;
    let output = stage.smbclient(&lab, &stage.path("ca.pem"), &["-c", "ls"])?;
    ensure!(output.code != Some(0), "{output}");
    stage.line(&["no certificates"])?;
    Ok(())
}
