//! A security mechanism that waits, for a key distribution center perhaps, holds up its own login
//! and no other connection of the I/O thread.

mod rig;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rig::{PASSWORD, Rig, SHARE, USER};
use smbeam_client::mechanism::{
    Entropy, FileTime, InitiatorError, InitiatorMechanism, InitiatorProgress, InitiatorProvider,
    Oid,
};
use smbeam_client::{Client, Credentials, Options, Wait};

/// Only a failing test waits that long.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// NTLM with steps that block until the test permits them.
#[derive(Debug)]
struct SlowNtlm {
    credentials: auth::Credentials,
    steps: Mutex<Option<Steps>>,
}

/// How the mechanism and the test meet.
#[derive(Debug)]
struct Steps {
    started: Sender<()>,
    permitted: Receiver<()>,
}

struct SlowMechanism {
    ntlm: Box<dyn InitiatorMechanism>,
    steps: Steps,
}

impl InitiatorProvider for SlowNtlm {
    fn start(&self, target_name: &str) -> Box<dyn InitiatorMechanism> {
        let steps = self.steps.lock().expect("no panic").take();
        Box::new(SlowMechanism {
            ntlm: self.credentials.start(target_name),
            steps: steps.expect("one login"),
        })
    }
}

impl InitiatorMechanism for SlowMechanism {
    fn oid(&self) -> Oid<'static> {
        self.ntlm.oid()
    }

    fn step(
        &mut self,
        token: Option<&[u8]>,
        now: FileTime,
        entropy: &Entropy,
    ) -> Result<InitiatorProgress, InitiatorError> {
        self.steps.started.send(()).expect("the test waits");
        let permission = self.steps.permitted.recv_timeout(TIME_LIMIT);
        permission.expect("the test permits the step");
        self.ntlm.step(token, now, entropy)
    }

    fn may_block(&self) -> bool {
        true
    }
}

#[test]
fn other_sessions_continue_while_a_login_waits() {
    let rig = Rig::new();
    std::fs::write(rig.path("file"), b"content").expect("a file");
    // One thread for all connections of the client, and one channel per session.
    let options = Options::default()
        .threads(1)
        .channels(smbeam_client::Channels::Exactly(1));
    let client = Client::new(options).expect("a client");
    let (host, port) = ("127.0.0.1", Some(rig.port()));
    let user = Credentials::new(None, USER, PASSWORD);
    let session = client.connect(host, port, &user).wait().expect("a session");
    let share = session.share(SHARE).wait().expect("a share");

    let (started, has_started) = channel();
    let (permit, permitted) = channel();
    let slow = SlowNtlm {
        credentials: auth::Credentials::with_password(USER, "", PASSWORD),
        steps: Mutex::new(Some(Steps { started, permitted })),
    };
    let login = thread::spawn({
        let client = client.clone();
        let slow = Credentials::with_mechanism(Arc::new(slow));
        move || client.connect(host, port, &slow).wait()
    });
    // The first token, and the answer to the challenge of the server.
    for step in 0..2 {
        let start = has_started.recv_timeout(TIME_LIMIT);
        start.unwrap_or_else(|error| panic!("step {step}: {error}"));
        let content = share.read("file").wait().expect("the other session works");
        assert_eq!(content, b"content");
        permit.send(()).expect("the mechanism waits");
    }
    let late = login.join().expect("no panic").expect("a session");
    let share = late.share(SHARE).wait().expect("a share");
    assert_eq!(share.read("file").wait().expect("bytes"), b"content");
}
