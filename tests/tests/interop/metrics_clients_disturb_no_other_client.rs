//! Clients of the metrics port that are slow, send garbage, send too much or come in great number
//! receive a clear status, and neither the metrics nor the clients of SMB notice them.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use smbeam_tests::client::Client;
use smbeam_tests::http::{self, Answer};
use smbeam_tests::lab::Missing;
use smbeam_tests::metrics::Metrics;
use smbeam_tests::ports::ReservedPort;
use smbeam_tests::random::Random;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, Server, Subject};
use smbeam_tests::{tests, wait};

tests!(
    bad_requests_have_a_status,
    slow_and_many_clients_are_bounded
);

/// Time in which places of clients become free.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// More connections than the server serves at a time.
const MANY: usize = 200;

fn start(scratch: &Scratch, port: &ReservedPort) -> Result<(Server, SocketAddr)> {
    if Subject::chosen() == Subject::Samba {
        return Err(Missing("smbd has no metrics".into()).into());
    }
    let metrics: SocketAddr = format!("127.0.0.1:{}", port.number).parse()?;
    let mut plan = Plan::sharing(&scratch.open_directory("share")?);
    let listen = metrics.to_string();
    plan.metrics.insert("listen".to_owned(), listen.into());
    Ok((Server::start_alone(plan)?, metrics))
}

/// A client of SMB and a scrape both succeed.
fn works(server: &Server, metrics: SocketAddr) -> Result<()> {
    let client = Client::new(server)?;
    client.run(&["ls", &client.url("")])?;
    let now = Metrics::scrape(metrics)?;
    ensure!(now.sum("smbeam_silent_workers", &[]) == 0.0, "{}", now.text);
    Ok(())
}

fn status(metrics: SocketAddr, request: &[u8]) -> Result<u16> {
    Ok(http::exchange(metrics, request)?.status)
}

fn bad_requests_have_a_status() -> Result<()> {
    let (scratch, port) = (Scratch::new("metrics-bad")?, ReservedPort::new()?);
    let (server, metrics) = start(&scratch, &port)?;
    let long = "x".repeat(9000);
    let cases: &[(String, &[u16])] = &[
        ("\0\x01\x02garbage\r\n\r\n".to_owned(), &[400]),
        ("GET /metrics\r\n\r\n".to_owned(), &[400]),
        ("GET /metrics HTTP/9.9\r\n\r\n".to_owned(), &[400]),
        (
            format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n"),
            &[414, 431],
        ),
        (
            format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {long}\r\n\r\n"),
            &[431],
        ),
        (
            format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100)),
            &[431],
        ),
        (
            "POST /metrics HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n".to_owned(),
            &[405],
        ),
        (
            "GET /metrics HTTP/1.1\r\nhost: example.org\r\n\r\n".to_owned(),
            &[421],
        ),
        (
            "GET /nothing HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
            &[404],
        ),
        ("GET /metrics HTTP/1.0\r\n\r\n".to_owned(), &[200]),
        (
            "HEAD /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
            &[200],
        ),
    ];
    for (request, expected) in cases {
        let found = status(metrics, request.as_bytes())?;
        let shown = &request[..request.len().min(40)];
        ensure!(expected.contains(&found), "{shown:?}: {found}");
    }
    // Only the first of several requests in one packet is answered.
    let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let answer = http::exchange(metrics, request.repeat(50).as_bytes())?;
    ensure!(answer.status == 200 && answer.body == "ok\n", "{answer}");
    ensure!(answer.head.contains("connection: close"), "{answer}");
    // A body without an end.
    let mut body =
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\n".to_vec();
    body.resize(1 << 20, b'x');
    ensure!(status(metrics, &body)? == 200, "the body does not matter");
    // Random bytes. The server answers with an error or closes the connection.
    let mut random = Random::new(9445);
    for _ in 0..200 {
        let mut bytes = vec![0; 1 + random.below(2000) as usize];
        random.fill(&mut bytes);
        bytes.extend_from_slice(b"\r\n\r\n");
        let answer = http::exchange(metrics, &bytes);
        ensure!(!answer.is_ok_and(|answer| answer.status < 400), "{bytes:?}");
    }
    works(&server, metrics)
}

fn slow_and_many_clients_are_bounded() -> Result<()> {
    let (scratch, port) = (Scratch::new("metrics-many")?, ReservedPort::new()?);
    let (server, metrics) = start(&scratch, &port)?;
    // These send the first bytes of a request, and nothing more.
    let slow = (0..MANY).map(|_| -> Result<TcpStream> {
        let mut stream = http::connect(metrics)?;
        // The server may have dropped the connection.
        let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\n");
        Ok(stream)
    });
    let slow = slow.collect::<Result<Vec<_>>>()?;
    // Clients of SMB do not wait.
    let client = Client::new(&server)?;
    client.run(&["ls", &client.url("")])?;
    let waiting = slow
        .into_iter()
        .map(|stream| thread::spawn(|| http::receive(stream)));
    let waiting: Vec<_> = waiting.collect();
    let answers = waiting.into_iter().map(|waiting| waiting.join().ok()?.ok());
    let answers: Vec<Option<Answer>> = answers.collect();
    let of_status = |status| {
        let answers = answers.iter().flatten();
        answers.filter(|answer| answer.status == status).count()
    };
    let (timed_out, busy) = (of_status(408), of_status(503));
    ensure!(
        timed_out > 0 && busy > 0,
        "{timed_out} timed out, {busy} refused"
    );
    // The server drops the others: it serves 16 clients, and refuses 16 with a status at a time.
    ensure!(timed_out <= 16, "{timed_out} clients at a time");
    ensure!(of_status(200) == 0, "no request was complete");
    wait::until("a place for a client", TIME_LIMIT, || {
        http::get(metrics, "/healthz", "").is_ok_and(|answer| answer.status == 200)
    })?;
    works(&server, metrics)
}
