//! A server with one share, and `smbeam` as its client: the start of most tests of the commands.

use std::path::PathBuf;

use anyhow::Result;

use crate::client::Client;
use crate::lab::Lab;
use crate::scratch::Scratch;
use crate::subject::{Plan, Server, Share};

/// A server, a client and their files. Dropping it ends the server and removes the files.
pub struct Stage {
    /// The server under test.
    pub server: Server,
    /// Its client, logged in as alice.
    pub client: Client,
    /// The directory that the server shares as `data`.
    pub share: PathBuf,
    _scratch: Scratch,
}

impl Stage {
    /// One share that every user may write.
    pub fn new(transport: &str, name: &str) -> Result<Stage> {
        Stage::with(transport, name, |_, _| Ok(()))
    }

    /// The same with another directory shared as `second`.
    pub fn with_second(transport: &str, name: &str) -> Result<Stage> {
        Stage::with(transport, name, |plan, scratch| {
            let directory = scratch.open_directory("second")?;
            plan.shares.push(Share::new("second", &directory));
            Ok(())
        })
    }

    /// One share, and the further changes of `change` to the plan.
    pub fn with(
        transport: &str,
        name: &str,
        change: impl FnOnce(&mut Plan, &Scratch) -> Result<()>,
    ) -> Result<Stage> {
        let lab = Lab::find()?;
        let scratch = Scratch::new(name)?;
        let share = scratch.open_directory("share")?;
        let mut plan = Plan::sharing(&share);
        change(&mut plan, &scratch)?;
        let server = Server::start(&lab, plan)?;
        let client = Client::over(transport, &server)?;
        Ok(Stage {
            server,
            client,
            share,
            _scratch: scratch,
        })
    }
}
