//! The client tries the transports of a list one after the other. If all fail, the error names the
//! outcome of each.

use std::process::{Command, Stdio};

use crate::rig::{Peer, Rig, SHARE, for_each_transport, log_in, pattern};
use anyhow::{Context as _, Result, ensure};
use smbeam_client::{Channels, Endpoint, Endpoints, Error, Options, Transport, Transports, Wait};
use smbeam_tests::client::Client;
use smbeam_tests::ports::ReservedPort;
use smbeam_tests::subject::{self, ALICE, Subject, TRANSPORTS};

for_each_transport!(
    transports_without_an_answer_are_skipped,
    an_unreachable_list_reports_each_outcome,
    a_refused_login_is_not_tried_again,
    a_port_in_the_url_is_that_of_the_first,
    channels_are_opened_over_the_named_transports,
    a_session_without_rdma_stays_with_tcp,
    a_server_does_not_start_with_a_list_that_is_wrong,
);

/// A port without a listener.
fn closed(transport: Transport) -> Result<Endpoint> {
    let port = ReservedPort::new()?.into_number();
    Ok(Endpoint { transport, port })
}

fn options(list: impl IntoIterator<Item = Endpoint>) -> Result<Options> {
    Ok(Options::default().transports(Endpoints::new(list)?))
}

/// The command line of smbeam, for a URL without a port.
fn command_line() -> Result<Client> {
    Ok(Client::of("127.0.0.1")?.argument("--insecure"))
}

fn transports_without_an_answer_are_skipped(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let closed = closed(Transport::Tcp)?;
    let session = log_in(options([closed, rig.endpoint()])?, None, ALICE)?;
    let channels = session.info().channels;
    let is_there = channels.iter().all(|channel| {
        channel.transport == peer.transport && channel.peer.port() == rig.endpoint().port
    });
    ensure!(is_there, "{channels:?}");
    let client = command_line()?;
    let list = format!("--transports={closed},{}", rig.endpoint());
    client.run(&["mkdir", &list, "{}made"])?;
    ensure!(rig.path("made").is_dir(), "nothing was made");
    Ok(())
}

fn an_unreachable_list_reports_each_outcome(_: Peer) -> Result<()> {
    let (first, second) = (closed(Transport::Tcp)?, closed(Transport::Nbt)?);
    let error = log_in(options([first, second])?, None, ALICE).err();
    let error = error.context("it worked")?;
    let Error::Unreachable { tried, .. } = &error else {
        anyhow::bail!("{error:?}");
    };
    let order: Vec<Endpoint> = tried.iter().map(|(endpoint, _)| *endpoint).collect();
    ensure!(order == [first, second], "{error:?}");
    let text = error.to_string();
    ensure!(
        text.starts_with(&format!(
            "cannot reach 127.0.0.1: {first}: Connection refused"
        )),
        "{text}"
    );
    let words = [
        &*format!("127.0.0.1 over {first}: Connection refused"),
        &*format!("127.0.0.1 over {second}: Connection refused"),
    ];
    let list = format!("--transports={first},{second}");
    command_line()?.fail(&["ls", &list, "{}"], 3, &words)?;
    Ok(())
}

/// A login that one transport refuses would fail over the others too, and servers lock accounts
/// after too many attempts.
fn a_refused_login_is_not_tried_again(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let list = [rig.endpoint(), closed(Transport::Tcp)?];
    let wrong = subject::User {
        password: "wrong",
        ..ALICE
    };
    let error = log_in(options(list)?, None, wrong).err();
    ensure!(matches!(error, Some(Error::Login { .. })), "{error:?}");
    Ok(())
}

fn a_port_in_the_url_is_that_of_the_first(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let endpoint = rig.endpoint();
    let client = Client::of(&format!("127.0.0.1:{}", endpoint.port))?.argument("--insecure");
    let list = format!("--transports={},quic:1", endpoint.transport);
    client.run(&["ls", &list, "{}"])?;
    Ok(())
}

fn channels_are_opened_over_the_named_transports(peer: Peer) -> Result<()> {
    let rig = Rig::with(peer, |plan| plan.channels = true)?;
    let others = match peer.subject {
        Subject::Smbeam => TRANSPORTS.map(crate::rig::transport).to_vec(),
        Subject::Samba => vec![Transport::Tcp],
    };
    let is_alike =
        |other: &&Transport| other.has_large_frames() == peer.transport.has_large_frames();
    let others = others.iter().filter(is_alike);
    let others: Vec<Endpoint> = others.map(|other| rig.endpoint_of(*other)).collect();
    let named = [&[rig.endpoint()], &*others].concat();
    let session = log_in(
        Options::default().channels(Channels::Over(named.clone())),
        None,
        ALICE,
    )?;
    let channels = session.info().channels.into_iter();
    let there: Vec<Endpoint> = channels
        .map(|channel| Endpoint {
            transport: channel.transport,
            port: channel.peer.port(),
        })
        .collect();
    ensure!(there == named, "{there:?}");
    let share = session.share(SHARE).wait()?;
    let bytes = pattern(4 << 20, 1);
    share
        .write(
            "file",
            bytes.clone(),
            &smbeam_client::WriteOptions::default(),
        )
        .wait()?;
    rig.assert_holds("file", &bytes)?;
    ensure!(share.read("file").wait()? == bytes, "other bytes come back");
    Ok(())
}

/// No interface of the server supports RDMA: the session stays, and works.
fn a_session_without_rdma_stays_with_tcp(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let port = rig.endpoint_of(Transport::Tcp).port;
    let auto = Options::default().transports(Transports::Auto);
    let session = log_in(auto, Some(port), ALICE)?;
    let channels = session.info().channels;
    let stays = channels.len() == 1 && channels[0].transport == Transport::Tcp;
    ensure!(stays, "{channels:?}");
    session.share(SHARE).wait()?.read_dir("", "*").wait()?;
    Ok(())
}

fn a_server_does_not_start_with_a_list_that_is_wrong(_: Peer) -> Result<()> {
    let eleven: Vec<String> = (1..=11).map(|port| format!("tcp:{port}")).collect();
    for (list, words) in [
        ("udp", "unknown transport `udp`: use `tcp`, `nbt`"),
        ("tcp:x", "`x` is not a port"),
        ("tcp,445", "the list has `tcp:445` twice"),
        (&eleven.join(","), "11 transports: at most 10 are allowed"),
    ] {
        let output = Command::new(subject::program()?)
            .args(["serve", "/", "--transports", list])
            .stdin(Stdio::null())
            .output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            !output.status.success() && errors.contains(words),
            "{errors}"
        );
    }
    Ok(())
}
