//! smbcacls and rpcclient of the lab, as alice.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::lab::Lab;
use crate::smbclient::{self, Output};
use crate::subject::{ALICE, Server, User};

/// The tools with the server that they talk to.
#[derive(Clone, Copy, Debug)]
pub struct SambaTools<'a> {
    lab: &'a Lab,
    server: &'a Server,
    user: User,
}

impl<'a> SambaTools<'a> {
    /// The tools, which log in as alice.
    pub fn new(lab: &'a Lab, server: &'a Server) -> Self {
        Self {
            lab,
            server,
            user: ALICE,
        }
    }

    /// Logs in as another user.
    #[must_use]
    pub fn user(self, user: User) -> Self {
        Self { user, ..self }
    }

    /// Runs smbcacls for a file of the share `data`. Returns its output.
    ///
    /// # Errors
    /// It reports an error.
    pub fn smbcacls(&self, file: &str, arguments: &[&str]) -> Result<String> {
        let output = self.try_smbcacls(file, arguments)?;
        let is_good = output.code == Some(0) && !output.text.contains("ERROR");
        let subject = self.server.subject;
        ensure!(is_good, "{subject:?}, {file} {arguments:?}: {output}");
        Ok(output.text)
    }

    /// Runs smbcacls for a file of the share `data`. It may fail.
    pub fn try_smbcacls(&self, file: &str, arguments: &[&str]) -> Result<Output> {
        let mut command = self.command("smbcacls");
        command
            .arg(format!("//{}/data", self.server.tcp.ip()))
            .arg(file)
            .args(self.login())
            .arg(format!(
                "--option=client smb transports=tcp:{}",
                self.server.tcp.port()
            ))
            .args(arguments);
        smbclient::run(&mut command)
    }

    /// Runs commands of rpcclient. Returns its output.
    ///
    /// # Errors
    /// It reports an error.
    pub fn rpcclient(&self, commands: &str) -> Result<String> {
        let output = self.try_rpcclient(&self.login(), commands)?;
        let is_good = output.code == Some(0) && !output.text.contains("NT_STATUS_");
        ensure!(is_good, "{commands}: {output}");
        Ok(output.text)
    }

    /// Runs commands of rpcclient with these arguments for the login. They may fail.
    pub fn try_rpcclient(&self, login: &[String], commands: &str) -> Result<Output> {
        let mut command = self.command("rpcclient");
        command
            .arg(self.server.tcp.ip().to_string())
            .args(["-p", &self.server.tcp.port().to_string()])
            .args(login)
            .args(["-c", commands]);
        smbclient::run(&mut command)
    }

    fn command(&self, program: &str) -> Command {
        self.lab.command_under(self.server.holder(), program)
    }

    fn login(&self) -> [String; 2] {
        let User { name, password, .. } = self.user;
        ["-U".to_owned(), format!("{name}%{password}")]
    }
}
