//! The lab's smbclient as the client.

use std::fmt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::lab::Lab;
use crate::subject::{ALICE, Server, User};
use crate::wait;

/// How long one run may take.
const TIME_LIMIT: Duration = Duration::from_secs(240);

/// The protection of the messages of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Neither signed nor encrypted.
    Off,
    /// Signed.
    Sign,
    /// Encrypted.
    Encrypt,
}

/// A transport that the server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// SMB over TCP, as on port 445.
    Tcp,
    /// SMB over the NBT session service, as on port 139.
    Nbt,
    /// SMB over QUIC, to a server of this name.
    Quic(&'static str),
}

/// A run of smbclient in preparation.
#[derive(Clone, Debug)]
pub struct Smbclient<'a> {
    lab: &'a Lab,
    server: &'a Server,
    share: String,
    user: String,
    framing: Framing,
    arguments: Vec<String>,
    directory: PathBuf,
    holder: Option<u32>,
}

/// The output and the exit code of a run.
#[derive(Clone, Debug)]
pub struct Output {
    /// Everything that it printed.
    pub text: String,
    /// Its exit code; none when it was killed.
    pub code: Option<i32>,
}

impl Protection {
    /// All of them.
    pub const ALL: [Protection; 3] = [Protection::Off, Protection::Sign, Protection::Encrypt];

    /// The word that smbclient knows it by.
    pub fn word(self) -> &'static str {
        match self {
            Protection::Off => "off",
            Protection::Sign => "sign",
            Protection::Encrypt => "encrypt",
        }
    }
}

impl<'a> Smbclient<'a> {
    /// A client of the share `data` as the first user, run in `/tmp`.
    pub fn new(lab: &'a Lab, server: &'a Server) -> Smbclient<'a> {
        Smbclient {
            lab,
            server,
            share: "data".into(),
            user: credentials(ALICE),
            framing: Framing::Tcp,
            arguments: Vec::new(),
            directory: "/tmp".into(),
            holder: server.holder(),
        }
    }

    /// Connects to another share.
    #[must_use]
    pub fn share(mut self, name: &str) -> Self {
        self.share = name.into();
        self
    }

    /// Logs in as `user`.
    #[must_use]
    pub fn user(self, user: User) -> Self {
        self.login(&credentials(user))
    }

    /// Logs in with smbclient's argument `name%password`.
    #[must_use]
    pub fn login(mut self, login: &str) -> Self {
        self.user = login.into();
        self
    }

    /// Connects through the given transport.
    #[must_use]
    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Sets the protection of its requests.
    #[must_use]
    pub fn protection(self, protection: Protection) -> Self {
        self.argument(&format!("--client-protection={}", protection.word()))
    }

    /// Sets a parameter of smb.conf, as `name=value`.
    #[must_use]
    pub fn option(self, option: &str) -> Self {
        self.argument(&format!("--option={option}"))
    }

    /// Speaks no other dialect than this, by Samba's name for it.
    #[must_use]
    pub fn dialect(self, name: &str) -> Self {
        self.option(&format!("client min protocol={name}"))
            .option(&format!("client max protocol={name}"))
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Runs in `directory`, which holds the local files.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Runs smbclient's `commands`, one in each line. They may fail.
    pub fn try_run(&self, commands: &str) -> Result<Output> {
        let joined = commands
            .lines()
            .map(str::trim)
            .collect::<Vec<_>>()
            .join(";");
        self.try_run_with(&["-c", &joined])
    }

    /// Runs smbclient with `more` arguments after the usual ones. It may fail.
    pub fn try_run_with(&self, more: &[&str]) -> Result<Output> {
        let mut command = self.command();
        command.args(more);
        run(&mut command)
    }

    /// Runs `commands`; fails unless smbclient succeeds and reports no error.
    pub fn run(&self, commands: &str) -> Result<String> {
        let output = self.try_run(commands)?;
        if output.code != Some(0) || output.text.contains("NT_STATUS_") {
            bail!(
                "smbclient {:?} fails on {commands:?}: {output}",
                self.arguments
            );
        }
        Ok(output.text)
    }

    /// Connects, and stays until its standard input is closed.
    pub fn stay(&self) -> Result<Child> {
        let mut command = self.command();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().context("cannot enter the lab")
    }

    fn host(&self) -> String {
        match self.framing {
            Framing::Tcp | Framing::Nbt => self.server.tcp.ip().to_string(),
            Framing::Quic(name) => name.to_owned(),
        }
    }

    fn command(&self) -> Command {
        let mut command = self.lab.command_under(self.holder, "smbclient");
        command.current_dir(&self.directory).args(self.arguments());
        command
    }

    /// The arguments of smbclient without its commands.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![format!("//{}/{}", self.host(), self.share)];
        match self.framing {
            Framing::Tcp => {
                arguments.extend(["-p".into(), self.server.tcp.port().to_string()]);
            }
            Framing::Nbt => {
                let port = self.server.nbt.port();
                arguments.push(format!("--option=client smb transports=nbt:{port}"));
                arguments.push("--option=disable netbios=no".into());
            }
            Framing::Quic(_) => {
                let port = self.server.address("quic").port();
                arguments.push(format!("--option=client smb transports=quic:{port}"));
            }
        }
        arguments.extend(["-U".into(), self.user.clone()]);
        arguments.extend_from_slice(&self.arguments);
        arguments
    }
}

/// Runs a program of the lab with its output kept, for at most four minutes.
pub fn run(command: &mut Command) -> Result<Output> {
    let scratch = crate::scratch::Scratch::new("output")?;
    let path = scratch.path().join("text");
    let file = std::fs::File::create(&path)?;
    command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file);
    let mut child = command.spawn().context("cannot enter the lab")?;
    let status = wait::for_end(&mut child, TIME_LIMIT)?;
    let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
    Ok(Output {
        text,
        code: status.and_then(|status| status.code()),
    })
}

fn credentials(user: User) -> String {
    format!("{}%{}", user.name, user.password)
}

impl Output {
    /// Whether the run failed and named `status`, such as `NT_STATUS_LOGON_FAILURE`.
    pub fn failed_with(&self, status: &str) -> bool {
        self.code != Some(0) && self.text.contains(status)
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "exit code {code}\n{}", self.text),
            None => write!(f, "killed after {TIME_LIMIT:?}\n{}", self.text),
        }
    }
}
