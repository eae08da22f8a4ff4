//! What the kernel is told of a TCP connection.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::str::FromStr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// The longest time between two questions of keep-alive, in seconds. tcp(7)
const KEEP_ALIVE_SECONDS_MAX: u64 = 32_767;
/// The most questions of keep-alive. tcp(7)
const KEEP_ALIVE_COUNT_MAX: u32 = 127;
/// The longest user time-out: its milliseconds have 31 bits. tcp(7)
const USER_TIMEOUT_MAX: Duration = Duration::from_millis(i32::MAX as u64);

/// What the kernel is told of a TCP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Sends what there is at once, however little (TCP_NODELAY).
    pub no_delay: bool,
    /// Acknowledges at once what comes first (TCP_QUICKACK): the kernel goes back to its own
    /// judgement as soon as requests and answers alternate.
    pub quick_ack: bool,
    /// Asks a silent peer whether it is there; `None`: one that vanished stays for ever.
    pub keep_alive: Option<KeepAlive>,
    /// How long what was sent may stay unacknowledged (TCP_USER_TIMEOUT); `None`: as long as the
    /// kernel tries, some fifteen minutes.
    pub user_timeout: Option<Duration>,
}

/// How a silent peer is asked whether it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// After how long a silence, in whole seconds.
    pub idle: Duration,
    /// How long after each question, in whole seconds.
    pub interval: Duration,
    /// How many questions stay unanswered before the connection ends.
    pub count: u32,
}

impl Default for KeepAlive {
    /// A peer that vanished is known after four minutes, which is before a user gives up on the
    /// file that it has locked.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(120),
            interval: Duration::from_secs(15),
            count: 8,
        }
    }
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            no_delay: true,
            quick_ack: false,
            keep_alive: Some(KeepAlive::default()),
            user_timeout: None,
        }
    }
}

/// What is wrong with options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpOptionsError(String);

impl fmt::Display for TcpOptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TcpOptionsError {}

impl TcpOptions {
    /// Tells the kernel.
    ///
    /// # Errors
    /// It refuses one, or the peer has gone already.
    pub fn apply(&self, socket: &impl AsFd) -> io::Result<()> {
        let socket = SockRef::from(socket);
        socket.set_tcp_nodelay(self.no_delay)?;
        if self.quick_ack {
            socket.set_tcp_quickack(true)?;
        }
        if let Some(asking) = &self.keep_alive {
            let asking = TcpKeepalive::new()
                .with_time(asking.idle)
                .with_interval(asking.interval)
                .with_retries(asking.count);
            socket.set_tcp_keepalive(&asking)?;
        }
        match self.user_timeout {
            Some(limit) => socket.set_tcp_user_timeout(Some(limit)),
            None => Ok(()),
        }
    }

    /// The same, if the kernel will take it.
    ///
    /// # Errors
    /// Which is out of its range.
    pub fn checked(self) -> Result<Self, TcpOptionsError> {
        let bad = |what: &str| Err(TcpOptionsError(what.to_owned()));
        if let Some(asking) = &self.keep_alive {
            let is_time = |time: Duration| {
                time.subsec_nanos() == 0 && (1..=KEEP_ALIVE_SECONDS_MAX).contains(&time.as_secs())
            };
            if !is_time(asking.idle) || !is_time(asking.interval) {
                return bad("times of keep-alive are 1 to 32767 seconds");
            }
            if !(1..=KEEP_ALIVE_COUNT_MAX).contains(&asking.count) {
                return bad("keep-alive asks 1 to 127 times");
            }
        }
        match self.user_timeout {
            Some(limit) if limit.is_zero() || limit > USER_TIMEOUT_MAX => {
                bad("the user time-out is 1 to 2147483 seconds")
            }
            _ => Ok(self),
        }
    }
}

impl FromStr for TcpOptions {
    type Err = TcpOptionsError;

    /// Words with commas between them, on top of the default: `delay`, `quick-ack`,
    /// `keep-alive=IDLE:INTERVAL:COUNT` or `keep-alive=off`, `user-timeout=SECONDS`.
    fn from_str(text: &str) -> Result<Self, TcpOptionsError> {
        let mut options = Self::default();
        for word in text.split(',').map(str::trim) {
            match word.split_once('=').unwrap_or((word, "")) {
                ("delay", "") => options.no_delay = false,
                ("quick-ack", "") => options.quick_ack = true,
                ("keep-alive", "off") => options.keep_alive = None,
                ("keep-alive", times) => options.keep_alive = Some(keep_alive(word, times)?),
                ("user-timeout", seconds) => {
                    let seconds = number(word, seconds)?;
                    options.user_timeout = Some(Duration::from_secs(seconds));
                }
                _ => {
                    return Err(TcpOptionsError(format!(
                        "`{word}` is none of delay, quick-ack, keep-alive=IDLE:INTERVAL:COUNT, \
                         keep-alive=off, user-timeout=SECONDS"
                    )));
                }
            }
        }
        options.checked()
    }
}

fn keep_alive(word: &str, times: &str) -> Result<KeepAlive, TcpOptionsError> {
    let numbers: Result<Vec<u64>, _> = times.split(':').map(|text| number(word, text)).collect();
    match numbers?.as_slice() {
        [idle, interval, count] => Ok(KeepAlive {
            idle: Duration::from_secs(*idle),
            interval: Duration::from_secs(*interval),
            count: u32::try_from(*count).unwrap_or(u32::MAX),
        }),
        _ => Err(TcpOptionsError(format!(
            "`{word}`: want keep-alive=IDLE:INTERVAL:COUNT"
        ))),
    }
}

fn number(word: &str, text: &str) -> Result<u64, TcpOptionsError> {
    text.parse()
        .map_err(|_| TcpOptionsError(format!("`{word}`: `{text}` is not a number")))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_kernel_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let socket = TcpStream::connect(address).expect("a connection");
        let text = "quick-ack,keep-alive=30:5:3,user-timeout=20";
        let options: TcpOptions = text.parse().expect("options");
        options.apply(&socket).expect("taken");
        let told = SockRef::from(&socket);
        assert!(told.tcp_nodelay().expect("known"));
        assert!(told.keepalive().expect("known"));
        let idle = told.tcp_keepalive_time().expect("known");
        let interval = told.tcp_keepalive_interval().expect("known");
        let count = told.tcp_keepalive_retries().expect("known");
        let seconds = Duration::from_secs;
        assert_eq!((idle, interval, count), (seconds(30), seconds(5), 3));
        let limit = told.tcp_user_timeout().expect("known");
        assert_eq!(limit, Some(seconds(20)));

        let plain = TcpStream::connect(address).expect("a connection");
        let options: TcpOptions = "delay,keep-alive=off".parse().expect("options");
        options.apply(&plain).expect("taken");
        let told = SockRef::from(&plain);
        assert!(!told.tcp_nodelay().expect("known") && !told.keepalive().expect("known"));
    }

    #[test]
    fn what_the_kernel_would_not_take_is_refused() {
        for text in [
            "",
            "fast",
            "keep-alive",
            "keep-alive=1:2",
            "keep-alive=0:1:1",
            "keep-alive=1:1:128",
            "keep-alive=40000:1:1",
            "user-timeout=0",
            "user-timeout=x",
            "user-timeout=9999999",
            "delay=1",
        ] {
            assert!(text.parse::<TcpOptions>().is_err(), "{text}");
        }
    }
}
