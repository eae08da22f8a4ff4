//! Options that select sessions by user and client.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use clap::Args;
use smbeam_server::status::{SessionStatus, Status};

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::format;

/// A session, and the addresses of its client.
pub(super) type Found<'a> = (&'a SessionStatus, Vec<&'a str>);

/// Options that select sessions. A session must match each given option.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// Sessions of this user.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Sessions of the client with this address.
    #[arg(long, value_name = "ADDRESS")]
    client: Option<IpAddr>,
    /// Sessions with a connection to this share.
    #[arg(long, value_name = "NAME")]
    share: Option<String>,
}

impl Selection {
    /// Whether no option is given.
    pub(super) fn is_empty(&self) -> bool {
        self.user.is_none() && self.client.is_none() && self.share.is_none()
    }

    /// The selected sessions of a server, each with the addresses of its client. Fails if
    /// `--client` is given and a worker has not reported its connections.
    pub(super) fn find<'a>(&self, status: &'a Status) -> Outcome<Vec<Found<'a>>> {
        let silent = status.left_out.workers;
        if self.client.is_some() && silent > 0 {
            let workers = format::count(silent as u64, "worker");
            let why = format!("{workers} did not report their clients in time: try again");
            return Err(Failure::new(Exit::Failed, "sessions", why));
        }
        let connections = status.connections.iter();
        let peers: HashMap<&str, &str> = connections
            .map(|connection| (connection.id.as_str(), connection.peer.as_str()))
            .collect();
        let sessions = status.sessions.iter().map(|session| {
            let channels = session.channels.iter();
            let peers = channels.filter_map(|id| peers.get(id.as_str()).copied());
            (session, peers.collect::<Vec<_>>())
        });
        Ok(sessions
            .filter(|(session, peers)| self.matches(session, peers))
            .collect())
    }

    fn matches(&self, session: &SessionStatus, peers: &[&str]) -> bool {
        let is_same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
        let has_client = |client: &IpAddr| {
            let addresses = peers.iter().filter_map(|peer| address(peer));
            addresses
                .into_iter()
                .any(|peer| peer == client.to_canonical())
        };
        let has_share = |share: &String| {
            let mut trees = session.trees.iter();
            trees.any(|tree| is_same(&tree.share, share))
        };
        let user = self.user.as_ref();
        user.is_none_or(|user| is_same(&session.user, user))
            && self.client.as_ref().is_none_or(has_client)
            && self.share.as_ref().is_none_or(has_share)
    }
}

/// The IP address of a client, without its port.
fn address(peer: &str) -> Option<IpAddr> {
    let address: SocketAddr = peer.parse().ok()?;
    Some(address.ip().to_canonical())
}

#[cfg(test)]
mod tests {
    use smbeam_server::status::{ConnectionStatus, LeftOut, TreeStatus};

    use super::*;

    #[test]
    fn an_address_needs_the_connections_of_all_workers() {
        let status = Status {
            left_out: LeftOut {
                workers: 1,
                ..LeftOut::default()
            },
            ..Status::default()
        };
        let mut selection = Selection {
            user: None,
            client: Some("192.0.2.1".parse().expect("an address")),
            share: None,
        };
        let failure = selection.find(&status).expect_err("a silent worker");
        assert!(failure.to_string().contains("1 worker did not report"));
        selection.client = None;
        assert!(selection.find(&status).is_ok());
    }

    #[test]
    fn sessions_match_all_options() {
        let connection = |id: &str, peer: &str| ConnectionStatus {
            id: id.to_owned(),
            peer: peer.to_owned(),
            ..ConnectionStatus::default()
        };
        let session = |id: &str, user: &str, channel: &str| SessionStatus {
            id: id.to_owned(),
            user: user.to_owned(),
            channels: vec![channel.to_owned()],
            trees: vec![TreeStatus {
                id: 1,
                share: "Data".to_owned(),
            }],
            ..SessionStatus::default()
        };
        let status = Status {
            connections: vec![
                connection("0.1", "192.0.2.1:50000"),
                connection("1.1", "[::ffff:192.0.2.2]:50000"),
            ],
            sessions: vec![session("a", "alice", "0.1"), session("b", "Bob", "1.1")],
            ..Status::default()
        };
        let found = |user: Option<&str>, client: Option<&str>, share: Option<&str>| {
            let selection = Selection {
                user: user.map(str::to_owned),
                client: client.map(|client| client.parse().expect("an address")),
                share: share.map(str::to_owned),
            };
            let found = selection.find(&status).expect("all workers report");
            found
                .into_iter()
                .map(|(session, _)| session.id.clone())
                .collect::<String>()
        };
        assert_eq!(found(None, None, None), "ab");
        assert_eq!(found(Some("bob"), None, None), "b");
        assert_eq!(found(None, Some("192.0.2.2"), None), "b");
        assert_eq!(found(Some("alice"), Some("192.0.2.2"), None), "");
        assert_eq!(found(None, None, Some("data")), "ab");
        assert_eq!(found(None, None, Some("other")), "");
    }
}
