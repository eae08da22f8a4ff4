//! A minimal client: dialect 3.1.1 over TCP, on one blocking thread, with requests in flight up to
//! a depth. It needs less CPU time than the server, so the server determines the result.

mod connection;
mod lease_holders;
mod login;
pub(crate) mod metadata;
pub(crate) mod opens;
mod pipeline;
pub(crate) mod reads;

use anyhow::Result;
use smbeam_tests::subject::{ALICE, Server};

pub(crate) use connection::Connection;

use crate::environment::Storage;

/// Logs in to `server` and connects to the share of `storage`.
pub(crate) fn connect(server: &Server, storage: Storage) -> Result<Connection> {
    let mut connection = Connection::open(server.tcp)?;
    login::login(&mut connection, ALICE.name, ALICE.password)?;
    let path = format!(r"\\{}\{}", server.tcp.ip(), storage.name());
    connection.enter(&path)?;
    Ok(connection)
}
