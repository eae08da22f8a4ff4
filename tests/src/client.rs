//! The commands of smbeam's client, as a user would give them.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::direct::port::rdma_directory;
use crate::scratch::Scratch;
use crate::subject::{self, ALICE, Server, User};
use crate::wait;

/// How long one command may take: less than a whole case.
const TIME_LIMIT: Duration = Duration::from_secs(600);
/// How long a command may take to end after Ctrl-C.
const INTERRUPT_LIMIT: Duration = Duration::from_secs(60);

/// The user of the commands: a home directory, a server and the arguments of every command.
#[derive(Debug)]
pub struct Client {
    scratch: Scratch,
    program: PathBuf,
    address: String,
    user: User,
    arguments: Vec<String>,
    environment: Vec<(String, Option<String>)>,
}

/// The output and the exit code of a command.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its standard output.
    pub text: String,
    /// Its standard error.
    pub errors: String,
    /// Its exit code; none when it was killed.
    pub code: Option<i32>,
}

impl Client {
    /// The first user, with an empty home. Commands run in [`directory`](Self::directory).
    pub fn new(server: &Server) -> Result<Client> {
        Client::of(&server.tcp.to_string())
    }

    /// The same over one of [`subject::TRANSPORTS`]. It accepts any certificate of the server:
    /// other tests cover the verification.
    pub fn over(transport: &str, server: &Server) -> Result<Client> {
        Client::at(transport, &server.address(transport).to_string())
    }

    /// The same for a server at `address`, which may not exist.
    pub fn at(transport: &str, address: &str) -> Result<Client> {
        let client = Client::of(address)?.argument(&format!("--transports={transport}"));
        Ok(match transport {
            "quic" => client.argument("--insecure"),
            _ => client,
        })
    }

    /// The first user, as a client of a server at `address`, which may not exist.
    pub fn of(address: &str) -> Result<Client> {
        let scratch = Scratch::new("client")?;
        scratch.open_directory("home")?;
        scratch.open_directory("files")?;
        Ok(Client {
            scratch,
            program: subject::program()?,
            address: address.into(),
            user: ALICE,
            arguments: Vec::new(),
            environment: Vec::new(),
        })
    }

    /// Logs in as `user`.
    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.user = user;
        self
    }

    /// Adds an argument to every command that connects.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Sets a variable, or takes it away.
    #[must_use]
    pub fn variable(mut self, name: &str, value: Option<&str>) -> Self {
        self.environment
            .push((name.into(), value.map(str::to_owned)));
        self
    }

    /// Where commands run.
    pub fn directory(&self) -> PathBuf {
        self.scratch.path().join("files")
    }

    /// A path of the directory where commands run.
    pub fn local(&self, path: &str) -> PathBuf {
        self.directory().join(path)
    }

    /// The home of the user.
    pub fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    /// The URL of a path of the share `data`.
    pub fn url(&self, path: &str) -> String {
        self.url_in("data", path)
    }

    /// The URL of a path of a share.
    pub fn url_in(&self, share: &str, path: &str) -> String {
        let user = self.user.name;
        format!("smb://{user}@{}/{share}/{path}", self.address)
    }

    /// Runs a command, which may fail. In its arguments `{}` stands for the URL of the share `data`
    /// and a slash.
    pub fn try_run(&self, arguments: &[&str]) -> Result<Output> {
        let (out, errors) = (
            self.scratch.path().join("out"),
            self.scratch.path().join("err"),
        );
        let mut child = self.spawn_into(arguments, &out, &errors)?;
        let status = wait::for_end(&mut child, TIME_LIMIT)?;
        Ok(Output {
            text: lossy(&out)?,
            errors: lossy(&errors)?,
            code: status.and_then(|status| status.code()),
        })
    }

    /// Runs a command; fails unless it succeeds.
    pub fn run(&self, arguments: &[&str]) -> Result<Output> {
        let output = self.try_run(arguments)?;
        if output.code != Some(0) {
            bail!("smbeam {arguments:?} fails: {output}");
        }
        Ok(output)
    }

    /// Runs a command that must fail with `code` and say `words`.
    pub fn fail(&self, arguments: &[&str], code: i32, words: &[&str]) -> Result<Output> {
        let output = self.try_run(arguments)?;
        ensure!(
            output.code == Some(code),
            "smbeam {arguments:?} does not fail with {code}: {output}"
        );
        for word in words {
            ensure!(
                output.errors.contains(word),
                "smbeam {arguments:?} does not say {word:?}: {output}"
            );
        }
        Ok(output)
    }

    /// Starts a command in the background.
    pub fn spawn(&self, arguments: &[&str]) -> Result<Child> {
        let [out, errors] =
            ["spawned-out", "spawned-err"].map(|name| self.scratch.path().join(name));
        self.spawn_into(arguments, &out, &errors)
    }

    /// The output so far of the last command that [`spawn`](Self::spawn) started, with `code`.
    pub fn spawned(&self, code: Option<i32>) -> Result<Output> {
        Ok(Output {
            text: lossy(&self.scratch.path().join("spawned-out"))?,
            errors: lossy(&self.scratch.path().join("spawned-err"))?,
            code,
        })
    }

    /// Presses Ctrl-C, and checks the end of the last command that [`spawn`](Self::spawn) started.
    pub fn interrupt(&self, child: &mut Child) -> Result<()> {
        let pid = child.id().to_string();
        let mut kill = Command::new("kill");
        ensure!(kill.args(["-s", "INT", &pid]).status()?.success());
        let status = wait::for_end(child, INTERRUPT_LIMIT)?;
        let output = self.spawned(status.and_then(|status| status.code()))?;
        ensure!(output.code == Some(130), "{output}");
        ensure!(output.errors.contains("interrupted"), "{output}");
        Ok(())
    }

    fn spawn_into(&self, arguments: &[&str], out: &Path, errors: &Path) -> Result<Child> {
        self.command(arguments)
            .stdin(Stdio::null())
            .stdout(File::create(out)?)
            .stderr(File::create(errors)?)
            .spawn()
            .context("cannot run smbeam")
    }

    /// A command that has not started, for cases that set its input or read its output.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let root = self.url("");
        let rdma = format!("emulated:{}", rdma_directory().display());
        let mut command = Command::new(&self.program);
        command
            .current_dir(self.directory())
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", self.home())
            .env("SMBEAM_PASSWORD", self.user.password)
            .env("SMBEAM_RDMA", rdma)
            .args(
                arguments
                    .iter()
                    .map(|argument| argument.replace("{}", &root)),
            )
            .args(&self.arguments);
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}

fn lossy(path: &Path) -> Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

impl Output {
    /// The lines of JSON on standard output.
    pub fn lines(&self) -> Result<Vec<Value>> {
        let parse = |line: &str| serde_json::from_str(line).context(line.to_owned());
        self.text.lines().map(parse).collect()
    }

    /// The last line of JSON, which has the total of a transfer.
    pub fn total(&self) -> Result<Value> {
        let last = self.lines()?.pop();
        last.with_context(|| format!("no total: {self}"))
    }

    /// The paths of the lines of JSON with this action.
    pub fn paths(&self, action: &str) -> Result<Vec<String>> {
        let is_meant = |line: &&Value| line["action"] == action;
        let path = |line: &Value| line["path"].as_str().unwrap_or_default().to_owned();
        Ok(self.lines()?.iter().filter(is_meant).map(path).collect())
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "exit code {code}\n{}{}", self.text, self.errors),
            None => write!(f, "killed\n{}{}", self.text, self.errors),
        }
    }
}
