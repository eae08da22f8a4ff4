//! Connections that never log in are bounded in number, in time and in bytes, and delay no other
//! client.

use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::lab::{Lab, Missing};
use smbeam_tests::raw::{Raw, Reaction, command, frame, header, negotiate_body};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::Smbclient;
use smbeam_tests::subject::{Plan, Server, Subject};
use smbeam_tests::{tests, wait};
use socket2::{Domain, Socket, Type};

tests!(
    a_thousand_silent_connections_delay_no_other_client,
    silent_connections_end_in_time,
    a_sender_of_one_byte_a_second_is_closed,
);

const CONNECTIONS: usize = 1000;
/// Time in which a server closes connections.
const CLOSE_TIME: Duration = Duration::from_secs(30);
/// The limits of the server in these tests, by their names in its configuration.
const PER_ADDRESS: (&str, u64) = ("half_open_per_address", 64);
const LOGIN_TIME_MS: (&str, u64) = ("login_timeout_ms", 5000);

fn start(scratch: &Scratch, limits: &[(&str, u64)]) -> Result<Server> {
    if Subject::chosen() == Subject::Samba {
        return Err(Missing("smbd has no such limits".into()).into());
    }
    let mut plan = Plan::sharing(&scratch.open_directory("share")?);
    plan.limits = limits
        .iter()
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect();
    Server::start_alone(plan)
}

fn a_thousand_silent_connections_delay_no_other_client() -> Result<()> {
    let scratch = Scratch::new("silent")?;
    let server = start(&scratch, &[PER_ADDRESS, ("login_timeout_ms", 60_000)])?;
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS {
        silent.push(Raw::connect(server.tcp)?);
    }
    // A client at another address does not notice.
    let elsewhere = Ipv4Addr::new(127, 0, 0, 2);
    let mut other = Raw::on(connect_from(elsewhere, server.tcp)?)?;
    other.negotiate().context("a client at another address")?;
    let limit = usize::try_from(PER_ADDRESS.1)?;
    let mut open = 0;
    // A worker may accept its connections late.
    wait::until("the end of silent connections", CLOSE_TIME, || {
        let is_open = |raw: &mut Raw| {
            let reaction = raw.reaction_within(Duration::from_millis(1));
            reaction.is_ok_and(|reaction| reaction == Reaction::Silence)
        };
        open = silent.iter_mut().map(is_open).filter(|open| *open).count();
        open <= limit
    })
    .with_context(|| format!("{open} stay open, {limit} are allowed"))?;
    ensure!(open > 0, "every silent connection was closed at once");
    other.echo()?;
    drop(silent);
    // Their places are free again.
    let free = || Raw::negotiated(server.tcp).is_ok();
    wait::until("a place for a new connection", CLOSE_TIME, free)?;
    match Lab::find() {
        Ok(lab) => Smbclient::new(&lab, &server).run("ls").map(drop),
        Err(_) => Ok(()),
    }
}

fn silent_connections_end_in_time() -> Result<()> {
    let scratch = Scratch::new("in-time")?;
    let server = start(&scratch, &[LOGIN_TIME_MS])?;
    let begin = Instant::now();
    let mut silent = Raw::connect(server.tcp)?;
    let mut negotiated = Raw::negotiated(server.tcp)?;
    for (name, raw) in [("silent", &mut silent), ("negotiated", &mut negotiated)] {
        let reaction = raw.reaction_within(Duration::from_secs(20))?;
        ensure!(
            reaction == Reaction::Closed,
            "the {name} connection stays open"
        );
    }
    let time = begin.elapsed();
    let limit = Duration::from_millis(LOGIN_TIME_MS.1);
    ensure!(time >= limit, "closed after {time:?} already");
    Ok(())
}

fn a_sender_of_one_byte_a_second_is_closed() -> Result<()> {
    let scratch = Scratch::new("slow")?;
    let server = start(&scratch, &[LOGIN_TIME_MS])?;
    let mut slow = Raw::connect(server.tcp)?;
    let message = frame(&[&header(command::NEGOTIATE, 0)[..], &negotiate_body()].concat());
    let begin = Instant::now();
    for byte in message.chunks(1) {
        slow.send(byte)?;
        Raw::negotiated(server.tcp).context("another client beside the slow one")?;
        if slow.reaction_within(Duration::from_secs(1))? == Reaction::Closed {
            return Ok(());
        }
        ensure!(
            begin.elapsed() < Duration::from_secs(30),
            "the slow sender is not closed"
        );
        thread::yield_now();
    }
    Ok(())
}

fn connect_from(source: Ipv4Addr, target: SocketAddrV4) -> Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddrV4::new(source, 0).into())?;
    socket.connect(&target.into())?;
    Ok(socket.into())
}
