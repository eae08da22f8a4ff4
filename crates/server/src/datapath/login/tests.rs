use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use auth::{
    Credentials, Entropy, Established, Framing, Initiator, InitiatorStep, Mechanism,
    MechanismProvider, Progress, User, Users,
};
use wire::dialect::{Capabilities, Dialect, SecurityMode};
use wire::header::{Command, Flags, Header, Target};
use wire::spnego::{MechList, NegTokenInit, Oid};
use wire::{Guid, MessageId, SessionId, TreeId, negotiate, session_setup};
use zeroize::Zeroizing;

use super::*;
use crate::accounts::Accounts;
use crate::config::{Config, ServerSection, ShareSection, unplaced};
use crate::start::Server;

/// Far longer than the test takes: only a failing test waits for it.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// A mechanism with steps that block until the test releases them. Each step sends the means to
/// release it.
#[derive(Clone, Debug)]
struct Slow {
    started: Sender<Sender<()>>,
}

impl MechanismProvider for Slow {
    fn oid(&self) -> Oid<'static> {
        Oid::KERBEROS
    }

    fn start(&self) -> Box<dyn Mechanism> {
        Box::new(self.clone())
    }
}

impl Mechanism for Slow {
    fn oid(&self) -> Oid<'static> {
        Oid::KERBEROS
    }

    fn may_block(&self) -> bool {
        true
    }

    fn step(&mut self, _token: &[u8], _now: FileTime, _entropy: &Entropy) -> Progress {
        let (release, released) = channel();
        self.started.send(release).expect("the test is running");
        released
            .recv_timeout(TIME_LIMIT)
            .expect("the test releases the step");
        Progress::Established(Box::new(Established {
            token: None,
            user: User {
                name: String::new(),
                domain: String::new(),
                unix: None,
                kind: UserKind::Anonymous,
                app_password: None,
            },
            full_session_key: Zeroizing::new(vec![0; 16]),
            integrity: None,
            target_name: None,
            channel_bindings: None,
            workstation: String::new(),
        }))
    }
}

/// The configuration of a server with one worker.
fn config() -> Config {
    let mut config = Config {
        server: ServerSection {
            listen: Some(vec![IpAddr::from([127, 0, 0, 1]).into()]),
            transports: vec![unplaced("tcp:0".to_owned())],
            workers: unplaced(1),
            ..ServerSection::default()
        },
        ..Config::default()
    };
    config.security.failed_login_delay_ms = 0;
    // The slow mechanism makes anonymous sessions, which cannot sign.
    config.security.signing_required = false;
    config
}

/// A server, and the steps of the slow mechanism as they start.
fn server() -> (Server, Receiver<Sender<()>>) {
    let config = config();
    let (started, steps) = channel();
    let mut accounts = Accounts::from_config(&config).expect("no accounts");
    accounts.add_mechanism(Arc::new(Slow { started }));
    let server = Server::start(&config, accounts).expect("a server");
    (server, steps)
}

/// A client that has negotiated a dialect.
struct Client {
    socket: TcpStream,
    sent: u64,
    session_id: SessionId,
}

impl Client {
    fn connect(server: &Server) -> Self {
        let address = server.listening()[0].address;
        let socket = TcpStream::connect(address).expect("a connection");
        socket
            .set_read_timeout(Some(TIME_LIMIT))
            .expect("a valid time limit");
        let mut client = Self {
            socket,
            sent: 0,
            session_id: SessionId(0),
        };
        client.send(Command::NEGOTIATE, |message| {
            let request = negotiate::Request {
                security_mode: SecurityMode::SIGNING_ENABLED,
                capabilities: Capabilities::NONE,
                client_guid: Guid([7; 16]),
                dialects: vec![Dialect::SMB_3_0_2],
                contexts: Vec::new(),
            };
            request.encode(message);
        });
        assert_eq!(client.receive(), Status::SUCCESS);
        client
    }

    fn send(&mut self, command: Command, body: impl FnOnce(&mut Vec<u8>)) {
        let session_id = self.session_id;
        let header = Header {
            credit_charge: 1,
            status: Status::SUCCESS,
            command,
            credits: 1,
            flags: Flags::NONE,
            next_command: 0,
            message_id: MessageId(self.sent),
            target: Target::Sync {
                process_id: 0,
                tree_id: TreeId(0),
            },
            session_id,
            signature: [0; 16],
        };
        self.sent += 1;
        let mut message = Vec::new();
        header.encode(&mut message);
        body(&mut message);
        let prefix = (message.len() as u32).to_be_bytes();
        self.socket.write_all(&prefix).expect("the server receives");
        self.socket
            .write_all(&message)
            .expect("the server receives");
    }

    fn send_token(&mut self, token: &[u8]) {
        self.send(Command::SESSION_SETUP, |message| {
            let request = session_setup::Request {
                flags: session_setup::RequestFlags::NONE,
                security_mode: SecurityMode::SIGNING_ENABLED,
                capabilities: Capabilities::NONE,
                channel: 0,
                previous_session_id: SessionId(0),
                security_buffer: token,
            };
            request.encode(message);
        });
    }

    /// Starts a login by the slow mechanism.
    fn send_slow_token(&mut self) {
        let mechanisms = MechList::encode(&[Oid::KERBEROS]);
        let offer = NegTokenInit {
            mechanisms: MechList::decode(&mechanisms).expect("encoded here"),
            mech_token: Some(b"token"),
            hint_name: None,
            mech_list_mic: None,
        };
        self.send_token(&offer.encode());
    }

    /// Logs in with NTLM. Returns the status of the last response.
    fn log_in(&mut self, user: &str, password: &str) -> Status {
        let user = Credentials::with_password(user, "", password);
        let mut login = Initiator::new(user, "cifs/server", Framing::Raw);
        let token = login.start(FileTime(0), &[0; 32]);
        self.send_token(&token.expect("a first token"));
        let message = self.receive_message();
        let header = Header::decode(&message).expect("a header");
        assert_eq!(header.status, Status::MORE_PROCESSING_REQUIRED);
        self.session_id = header.session_id;
        let response = session_setup::Response::decode(&message).expect("a response");
        let step = login.step(response.security_buffer, FileTime(0), &[1; 32]);
        let Ok(InitiatorStep::Continue(token)) = step else {
            panic!("the client answers the challenge");
        };
        self.send_token(&token);
        self.receive()
    }

    /// The status of the next response.
    fn receive(&mut self) -> Status {
        let message = self.receive_message();
        Header::decode(&message).expect("a header").status
    }

    fn receive_message(&mut self) -> Vec<u8> {
        let mut prefix = [0; 4];
        self.socket.read_exact(&mut prefix).expect("a response");
        let mut message = vec![0; u32::from_be_bytes(prefix) as usize];
        self.socket.read_exact(&mut message).expect("all of it");
        message
    }
}

/// Checks that the worker serves connections, and that it runs steps of NTLM.
fn assert_serves(server: &Server) {
    let mut client = Client::connect(server);
    let user = Credentials::with_password("alice", "", "secret");
    let mut login = Initiator::new(user, "cifs/server", Framing::Spnego);
    let token = login.start(FileTime(0), &[0; 32]);
    client.send_token(&token.expect("a first token"));
    assert_eq!(client.receive(), Status::MORE_PROCESSING_REQUIRED);
}

#[test]
fn a_login_that_blocks_does_not_block_other_connections() {
    let (server, steps) = server();
    let mut slow = Client::connect(&server);
    slow.send_slow_token();
    let release = steps.recv_timeout(TIME_LIMIT).expect("the step starts");
    assert_serves(&server);
    release.send(()).expect("the step waits");
    assert_eq!(slow.receive(), Status::SUCCESS);
    drop(slow);
    server.stop();
}

#[test]
fn a_connection_may_close_while_its_login_blocks() {
    let (server, steps) = server();
    let mut slow = Client::connect(&server);
    slow.send_slow_token();
    let release = steps.recv_timeout(TIME_LIMIT).expect("the step starts");
    drop(slow);
    assert_serves(&server);
    release.send(()).expect("the step waits");
    let limit = Instant::now() + TIME_LIMIT;
    while server.connections() != [0] {
        assert!(Instant::now() < limit, "the connection does not end");
        thread::yield_now();
    }
    server.stop();
}

/// Bug: where a share had guests, the answer to a login showed whether the account existed.
#[test]
fn the_answer_is_the_same_for_an_unknown_user_and_a_wrong_password() {
    let directory = tempfile::tempdir().expect("a directory");
    for (guest, unknown_users, expected) in [
        (false, false, [Status::LOGON_FAILURE; 2]),
        (true, false, [Status::LOGON_FAILURE, Status::SUCCESS]),
        (true, true, [Status::SUCCESS; 2]),
    ] {
        let mut share = ShareSection::new("data", directory.path(), true);
        share.guest = guest;
        share.guest_unknown_users = unknown_users;
        let mut config = config();
        config.shares.push(share);
        let mut users = Users::default();
        let alice = auth::Account::new("alice", "secret").expect("a good name");
        users.insert(auth::Account {
            unix: Some("root".to_owned()),
            ..alice
        });
        let server = Server::start(&config, Accounts::fixed(&config, users)).expect("a server");
        let log_in = |user, password| Client::connect(&server).log_in(user, password);
        assert_eq!(log_in("alice", "secret"), Status::SUCCESS);
        assert_eq!(log_in("alice", "wrong"), Status::LOGON_FAILURE);
        assert_eq!([log_in("bob", "wrong"), log_in("guest", "wrong")], expected);
        server.stop();
    }
}
