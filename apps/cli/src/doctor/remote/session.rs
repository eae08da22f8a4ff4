//! The login, the protection of the session, and the share.

use std::time::{Duration, Instant};

use smbeam_client::{Client, Session, SessionInfo, Share, Transport, Wait as _};
use smbeam_server::Reason as _;
use smbeam_server::doctor::Check;

use super::super::codes::Found;
use super::failures::{self, Step};
use super::{STEP_LIMIT, path};
use crate::connect::ConnectArguments;
use crate::location::Url;
use crate::shares::is_hidden;

/// Number of measured round trips.
const ECHOES: usize = 5;
/// Most shares that a message names.
const SHARES_MAX: usize = 20;
/// Most interfaces that a message names.
const INTERFACES_MAX: usize = 8;

pub(super) fn examine(url: &Url, connect: &ConnectArguments, checks: &mut Vec<Check>) {
    let Some(session) = log_in(url, connect, checks) else {
        return;
    };
    session_checks(&session, checks);
    if let Some(name) = &url.share
        && let Some(share) = enter(&session, name, checks)
    {
        path::examine(url, &share, checks);
    }
    // The end of the process would end the session as well.
    let _ = session.close().wait();
}

fn log_in(url: &Url, connect: &ConnectArguments, checks: &mut Vec<Check>) -> Option<Session> {
    let subject = format!("login on {}", url.host);
    let credentials = connect.credentials(url);
    let login = credentials.and_then(|credentials| Ok((credentials, connect.options(url)?)));
    let (credentials, mut options) = match login {
        Ok(login) => login,
        Err(failure) => {
            let code = Found::LoginIncomplete.code();
            checks.push(Check::refused(subject, code, failure.reason));
            return None;
        }
    };
    options.connect_timeout = options.connect_timeout.min(STEP_LIMIT);
    options.login_timeout = options.login_timeout.min(STEP_LIMIT * 2);
    options.request_timeout = Some(
        options
            .request_timeout
            .unwrap_or(STEP_LIMIT)
            .min(STEP_LIMIT),
    );
    options.reconnect_timeout = Duration::ZERO;
    let connected = Client::new(options).and_then(|client| {
        let connecting = client.connect(&url.host, url.port, &credentials);
        connecting.wait()
    });
    match connected {
        Ok(session) => {
            checks.push(logged_in(&subject, &session.info()));
            Some(session)
        }
        Err(error) => {
            checks.push(failures::check(Step::Login, &subject, &error));
            None
        }
    }
}

fn logged_in(subject: &str, info: &SessionInfo) -> Check {
    if info.is_guest {
        let message = "the server made the user a guest, without signing and encryption";
        let check = Check::warning(subject, Found::LoginGuest.code(), message);
        return check.mended_by("check the name: an unknown one can become a guest");
    }
    Check::ok(subject, format!("accepted, {}", protection(info)))
}

/// How the messages of the session are protected.
fn protection(info: &SessionInfo) -> String {
    let is_quic = |channel: &smbeam_client::ChannelInfo| channel.transport == Transport::Quic;
    let is_tls = info.channels.iter().any(is_quic);
    match (info.is_encrypted, info.is_signed, info.cipher) {
        (true, _, Some(cipher)) => format!("encrypted with {}", cipher.name()),
        _ if is_tls => "encrypted by TLS (QUIC)".to_owned(),
        (_, true, _) => format!("signed with {}", info.signing_algorithm.name()),
        _ => "neither signed nor encrypted (see --sign and --encrypt)".to_owned(),
    }
}

fn session_checks(session: &Session, checks: &mut Vec<Check>) {
    let times = (0..ECHOES).filter_map(|_| {
        let start = Instant::now();
        session.echo().wait().ok().map(|()| start.elapsed())
    });
    let info = session.info();
    if let Some(best) = times.min() {
        let message = format!(
            "round trip {:.1} ms, reads up to {} KiB, writes up to {} KiB",
            best.as_secs_f64() * 1e3,
            info.max_read >> 10,
            info.max_write >> 10
        );
        checks.push(Check::ok("session", message));
    }
    for channel in &info.channels {
        let message = format!("{} from {}", channel.transport, channel.local);
        checks.push(Check::ok(format!("connection {}", channel.peer), message));
    }
    if let Ok(interfaces) = session.interfaces().wait() {
        let shown = interfaces
            .iter()
            .take(INTERFACES_MAX)
            .filter_map(|interface| {
                let rdma = if interface.is_rdma_capable {
                    ", RDMA"
                } else {
                    ""
                };
                let mbit = interface.speed / 1_000_000;
                Some(format!("{} ({mbit} Mbit/s{rdma})", interface.address?))
            });
        let message = shown.collect::<Vec<_>>().join(", ");
        checks.push(Check::ok("network interfaces of the server", message));
    }
}

fn enter(session: &Session, name: &str, checks: &mut Vec<Check>) -> Option<Share> {
    let subject = format!("share {name}");
    let error = match session.share(name).wait() {
        Ok(share) => {
            let rights = share.maximal_access().0;
            checks.push(Check::ok(subject, format!("connected, rights {rights:#x}")));
            return Some(share);
        }
        Err(error) => error,
    };
    let check = failures::check(Step::Share, &subject, &error);
    let is_unknown = check.code == Some("share-unknown");
    checks.push(match shares(session).filter(|_| is_unknown) {
        Some(shares) => check.mended_by(format!("the server has: {shares}")),
        None => check,
    });
    None
}

fn shares(session: &Session) -> Option<String> {
    let shares = session.shares().wait().ok()?;
    let files = shares.iter().filter(|share| !is_hidden(share.kind));
    let names = files.map(|share| share.name.as_str());
    let names: Vec<&str> = names.take(SHARES_MAX).collect();
    Some(names.join(", "))
}
