//! A handshake without a network.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig, ClientConnection, Error, ServerConnection};
use smbeam_net::tls::{self, Client, Server};

/// Rounds of a handshake and its alerts, at most.
const ROUNDS: usize = 10;

/// What each side says at the end.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) client: Result<(), Error>,
    pub(crate) server: Result<(), Error>,
    /// Why the client refused the server, in its words.
    pub(crate) refusal: Option<tls::Error>,
}

impl Ends {
    #[track_caller]
    pub(crate) fn assert_good(&self) {
        assert!(self.client.is_ok() && self.server.is_ok(), "{self:?}");
    }

    /// The alert that the server sent.
    #[track_caller]
    pub(crate) fn alert_to_client(&self) -> AlertDescription {
        assert!(self.server.is_err(), "{self:?}");
        match &self.client {
            Err(Error::AlertReceived(alert)) => *alert,
            _ => panic!("the client has no alert: {self:?}"),
        }
    }

    /// The alert that the client sent.
    #[track_caller]
    pub(crate) fn alert_to_server(&self) -> AlertDescription {
        assert!(self.client.is_err(), "{self:?}");
        match &self.server {
            Err(Error::AlertReceived(alert)) => *alert,
            _ => panic!("the server has no alert: {self:?}"),
        }
    }
}

pub(crate) fn shake(server: &Server, client: &Client, name: &str) -> Ends {
    let handshake = client.handshake();
    let ends = shake_with(server, handshake.config(), name);
    Ends {
        refusal: handshake.refusal(),
        ..ends
    }
}

pub(crate) fn shake_with(server: &Server, client: Arc<ClientConfig>, name: &str) -> Ends {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut client = ClientConnection::new(client, name).expect("a client");
    let mut server = ServerConnection::new(server.config()).expect("a server");
    let mut ends = Ends {
        client: Ok(()),
        server: Ok(()),
        refusal: None,
    };
    for _ in 0..ROUNDS {
        let (mut there, mut back) = (Vec::new(), Vec::new());
        while client.wants_write() {
            client.write_tls(&mut there).expect("memory");
        }
        take(&mut server, &there, &mut ends.server);
        while server.wants_write() {
            server.write_tls(&mut back).expect("memory");
        }
        take(&mut client, &back, &mut ends.client);
        if there.is_empty() && back.is_empty() {
            break;
        }
    }
    if ends.client.is_ok() && ends.server.is_ok() {
        assert!(!client.is_handshaking() && !server.is_handshaking());
        assert_eq!(client.alpn_protocol(), Some(tls::ALPN));
        assert_eq!(server.alpn_protocol(), Some(tls::ALPN));
    }
    ends
}

fn take<Data>(
    connection: &mut impl std::ops::DerefMut<Target = rustls::ConnectionCommon<Data>>,
    mut bytes: &[u8],
    end: &mut Result<(), Error>,
) {
    while !bytes.is_empty() && end.is_ok() {
        connection.read_tls(&mut bytes).expect("memory");
        *end = connection.process_new_packets().map(drop);
    }
}
