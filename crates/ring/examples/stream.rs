//! Measures how fast one worker streams a file from the page cache, and how fast it answers small
//! requests.
//!
//! ```text
//! cargo run --release --example stream -- FILE [uring|epoll]
//! ```
//!
//! The client is a thread with blocking sockets. CPU time is that of the worker thread only,
//! without kernel worker threads and the blocking pool.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use smbeam_ring::{Buffer, Config, File, Handle, Io, Listener, Part, Runtime, Stats, Stream};

const REQUEST_BYTES: usize = 120;
const HEAD_BYTES: usize = 100;
const STREAM_BYTES: u64 = 8_000_000_000;
const PINGS: usize = 400_000;
const FILE_BYTES: u64 = 256 << 20;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Resources that the worker has used.
struct Cost {
    cpu: Duration,
    stats: Stats,
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: stream FILE [uring|epoll]")?;
    let io = match arguments.next().as_deref() {
        Some("epoll") => Io::Epoll,
        Some("uring") => Io::Uring,
        _ => Io::Auto,
    };
    std::fs::write(&path, vec![7; usize::try_from(FILE_BYTES)?])?;
    for (bytes, depth) in [(1 << 20, 2), (64 << 10, 8)] {
        let count = usize::try_from(STREAM_BYTES / bytes as u64)?;
        report(&path, io, bytes, depth, count)?;
    }
    for depth in [1, 16, 64] {
        report(
            &path,
            io,
            4096,
            depth,
            if depth == 1 { PINGS / 8 } else { PINGS },
        )?;
    }
    report_writes(&path, io, 1 << 20)?;
    Ok(())
}

fn report(path: &str, io: Io, bytes: usize, depth: usize, count: usize) -> Outcome<()> {
    let file = std::fs::File::open(path)?;
    let (time, cost) = measure(
        io,
        move |handle, stream| serve(handle, stream, file, bytes),
        move |socket| ask(socket, bytes, depth, count),
    )?;
    let name = format!("read {} KiB, depth {depth}", bytes >> 10);
    print_line(&name, bytes, count, time, &cost);
    Ok(())
}

fn report_writes(path: &str, io: Io, bytes: usize) -> Outcome<()> {
    let count = usize::try_from(STREAM_BYTES / 2 / bytes as u64)?;
    let file = std::fs::OpenOptions::new().write(true).open(path)?;
    let (time, cost) = measure(
        io,
        move |handle, stream| store(handle, stream, file, bytes),
        {
            move |mut socket: TcpStream| {
                let message = vec![1; REQUEST_BYTES + bytes];
                (0..count).try_for_each(|_| socket.write_all(&message))?;
                socket.shutdown(std::net::Shutdown::Write)?;
                socket.read_to_end(&mut Vec::new())?;
                Ok(())
            }
        },
    )?;
    print_line(
        &format!("write {} KiB", bytes >> 10),
        bytes,
        count,
        time,
        &cost,
    );
    Ok(())
}

fn print_line(name: &str, bytes: usize, count: usize, time: Duration, cost: &Cost) {
    let gigabytes = (bytes * count) as f64 / 1e9;
    let per_op = cost.cpu.as_secs_f64() * 1e6 / count as f64;
    println!(
        "{name:24} {:6.2} GB/s {:8.0} ops/s {:6.3} s/GB {per_op:7.2} us/op   \
         per op: {:.2} enters, {:.2} sqes, {:.2} inline calls",
        gigabytes / time.as_secs_f64(),
        count as f64 / time.as_secs_f64(),
        cost.cpu.as_secs_f64() / gigabytes,
        cost.stats.enters as f64 / count as f64,
        cost.stats.sqes as f64 / count as f64,
        cost.stats.inline_calls as f64 / count as f64,
    );
}

/// Runs a worker and a client against each other.
fn measure<S, F, C>(io: Io, server: S, client: C) -> Outcome<(Duration, Cost)>
where
    S: FnOnce(Handle, Stream) -> F + Send + 'static,
    F: Future<Output = Outcome<()>>,
    C: FnOnce(TcpStream) -> Outcome<()>,
{
    let (sender, receiver) = mpsc::channel();
    let worker = thread::spawn(move || -> Outcome<Cost> {
        let runtime = Runtime::new(&Config {
            io,
            ..Config::default()
        })?;
        let handle = runtime.handle();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener::bind(&handle, any, false)?;
        sender.send(listener.local_addr()?)?;
        runtime.block_on(async {
            let stream = listener.accept().await?;
            let (cpu, before) = (cpu_time()?, handle.stats());
            server(handle.clone(), stream).await?;
            let stats = difference(handle.stats(), before);
            Ok(Cost {
                cpu: cpu_time()? - cpu,
                stats,
            })
        })
    });
    let socket = TcpStream::connect(receiver.recv()?)?;
    socket.set_nodelay(true)?;
    let start = Instant::now();
    client(socket)?;
    let time = start.elapsed();
    let cost = worker.join().map_err(|_| "the worker panicked")??;
    Ok((time, cost))
}

/// Answers each request with a header and the next piece of the file.
async fn serve(handle: Handle, stream: Stream, file: std::fs::File, bytes: usize) -> Outcome<()> {
    let (file, pool) = (File::from(file), handle.pool());
    let (mut half, mut offset) = (0, 0);
    loop {
        let chunk = stream.recv().await?;
        if chunk.is_empty() {
            return Ok(());
        }
        half += chunk.len();
        drop(chunk);
        let mut parts = Vec::new();
        while half >= REQUEST_BYTES {
            half -= REQUEST_BYTES;
            let buffer = pool.take_or_wait(HEAD_BYTES + bytes).await;
            let range = HEAD_BYTES..HEAD_BYTES + bytes;
            let (result, buffer) = handle.read_at(&file, buffer, range, offset, None).await;
            assert_eq!(result?, bytes, "the file is long enough");
            offset = (offset + bytes as u64) % FILE_BYTES;
            parts.push(Part::Buffer(buffer, 0..HEAD_BYTES + bytes));
        }
        stream.send(parts).await.0?;
    }
}

/// Writes each message's payload to the file.
async fn store(handle: Handle, stream: Stream, file: std::fs::File, bytes: usize) -> Outcome<()> {
    let file = File::from(file);
    let mut buffer: Buffer = handle.pool().take_or_wait(REQUEST_BYTES + bytes).await;
    let mut offset = 0;
    loop {
        let first = stream.recv().await?;
        if first.is_empty() {
            return Ok(());
        }
        let have = first.len();
        assert!(
            have <= REQUEST_BYTES + bytes,
            "a chunk is smaller than a message"
        );
        buffer[..have].copy_from_slice(&first);
        drop(first);
        let rest = have..REQUEST_BYTES + bytes;
        let result;
        (result, buffer) = stream.recv_into(buffer, rest).await;
        result?;
        let range = REQUEST_BYTES..REQUEST_BYTES + bytes;
        let result;
        (result, buffer) = handle.write_at(&file, buffer, range, offset, None).await;
        assert_eq!(result?, bytes, "the payload is written");
        offset = (offset + bytes as u64) % FILE_BYTES;
    }
}

/// Keeps `depth` requests in flight. One write sends the requests for all answers that have
/// arrived.
fn ask(mut socket: TcpStream, bytes: usize, depth: usize, count: usize) -> Outcome<()> {
    let requests = vec![0; REQUEST_BYTES * depth];
    let mut landing = vec![0; 1 << 20];
    let (mut sent, mut received, mut half) = (depth, 0, 0);
    socket.write_all(&requests)?;
    while received < count {
        let arrived = socket.read(&mut landing)?;
        assert!(arrived > 0, "the server stays until the end");
        half += arrived;
        let whole = half / (HEAD_BYTES + bytes);
        half %= HEAD_BYTES + bytes;
        received += whole;
        let more = whole.min(count.saturating_sub(sent));
        sent += more;
        socket.write_all(&requests[..more * REQUEST_BYTES])?;
    }
    Ok(())
}

/// CPU time of this thread.
fn cpu_time() -> Outcome<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split_whitespace().next().ok_or("schedstat is empty")?;
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

fn difference(now: Stats, before: Stats) -> Stats {
    Stats {
        enters: now.enters - before.enters,
        sqes: now.sqes - before.sqes,
        cqes: now.cqes - before.cqes,
        polls: now.polls - before.polls,
        inline_calls: now.inline_calls - before.inline_calls,
    }
}
