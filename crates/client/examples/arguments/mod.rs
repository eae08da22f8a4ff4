//! What all examples are told: where the share is, who asks, over how many channels
//! (SMBEAM_CHANNELS), how far protected (SMBEAM_PROTECTION: sign or encrypt), and by which
//! transports (SMBEAM_TRANSPORTS: `quic,tcp`; SMBEAM_CA_FILE: who vouches for servers of QUIC;
//! SMBEAM_RDMA: who makes connections of SMB Direct).

use std::str::FromStr;

use smbeam_client::tls::Trust;
use smbeam_client::{
    Channels, Client, Credentials, Endpoints, Error, Options, Protection, Share, Wait,
};

/// A share, and what follows on the command line.
pub(crate) struct Arguments {
    pub(crate) share: Share,
    pub(crate) rest: Vec<String>,
}

/// Connects to the share of the command line. `usage`: what else there must be, `least` of it.
pub(crate) fn connect(usage: &str, least: usize) -> Result<Arguments, Error> {
    let mut arguments = std::env::args();
    let program = arguments.next().unwrap_or_default();
    let mut rest: Vec<String> = arguments.collect();
    if rest.len() < 3 + least {
        eprintln!("usage: {program} HOST[:PORT] SHARE USER {usage}");
        eprintln!("The password is in SMBEAM_PASSWORD.");
        std::process::exit(2);
    }
    let [host, share, user] = [rest.remove(0), rest.remove(0), rest.remove(0)];
    let password = std::env::var("SMBEAM_PASSWORD").unwrap_or_default();
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) => (host.to_owned(), port.parse().ok()),
        None => (host, None),
    };
    let channels = std::env::var("SMBEAM_CHANNELS").ok();
    let channels = channels.and_then(|count| count.parse().ok());
    let mut options = Options::default()
        .channels(channels.map_or(Channels::Auto, Channels::Exactly))
        .protection(match std::env::var("SMBEAM_PROTECTION").as_deref() {
            Ok("sign") => Protection::Sign,
            Ok("seal") => Protection::Encrypt,
            _ => Protection::AsAsked,
        });
    if let Some(list) = variable::<Endpoints>("SMBEAM_TRANSPORTS") {
        options.transports = list.into();
    }
    if let Some(file) = variable("SMBEAM_CA_FILE") {
        options.tls.trust = Trust::File(file);
    }
    if let Some(provider) = variable("SMBEAM_RDMA") {
        options.rdma = provider;
    }
    let client = Client::new(options)?;
    let credentials = Credentials::new(None, &user, &password);
    let session = client.connect(&host, port, &credentials).wait()?;
    let share = session.share(&share).wait()?;
    Ok(Arguments { share, rest })
}

/// What a variable says; `None`: there is none, or it says something else.
fn variable<T: FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}
