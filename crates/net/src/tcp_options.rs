//! Socket options of TCP connections.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::str::FromStr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// Longest time between two keep-alive probes, in seconds. tcp(7)
const KEEP_ALIVE_SECONDS_MAX: u64 = 32_767;
/// Most keep-alive probes. tcp(7)
const KEEP_ALIVE_COUNT_MAX: u32 = 127;
/// Longest user time-out: its milliseconds have 31 bits. tcp(7)
const USER_TIMEOUT_MAX: Duration = Duration::from_millis(i32::MAX as u64);

/// Socket options of a TCP connection. The defaults fit most networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Whether the kernel sends short segments at once (TCP_NODELAY). Default: yes.
    pub no_delay: bool,
    /// Whether the kernel acknowledges the first segments at once (TCP_QUICKACK). The kernel clears
    /// this option when requests and responses alternate. Default: no.
    pub quick_ack: bool,
    /// Keep-alive probes, which the kernel sends to a silent peer (SO_KEEPALIVE). `None` sends no
    /// probes: the connection of a vanished peer then stays open forever. Default:
    /// [`KeepAlive::default`].
    pub keep_alive: Option<KeepAlive>,
    /// Time that sent data may stay unacknowledged before the kernel closes the connection
    /// (TCP_USER_TIMEOUT). `None` (the default) is the value of the kernel, about fifteen minutes.
    pub user_timeout: Option<Duration>,
}

/// Parameters of the keep-alive probes of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Time without data before the first keep-alive probe (TCP_KEEPIDLE), in whole seconds.
    pub idle: Duration,
    /// Time between two keep-alive probes (TCP_KEEPINTVL), in whole seconds.
    pub interval: Duration,
    /// Number of unanswered keep-alive probes after which the connection ends (TCP_KEEPCNT).
    pub count: u32,
}

impl Default for KeepAlive {
    /// Detects a vanished peer after four minutes, before other users give up on the files that it
    /// has locked.
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

/// The reason why a value in [`TcpOptions`] is out of its range, or why its text is malformed. Its
/// `Display` form is a message for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpOptionsError(String);

impl fmt::Display for TcpOptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TcpOptionsError {}

impl TcpOptions {
    /// Sets these options on a TCP socket.
    ///
    /// # Errors
    /// The kernel refuses an option, or the peer has disconnected.
    pub fn apply(&self, socket: &impl AsFd) -> io::Result<()> {
        let socket = SockRef::from(socket);
        socket.set_tcp_nodelay(self.no_delay)?;
        if self.quick_ack {
            socket.set_tcp_quickack(true)?;
        }
        if let Some(probes) = &self.keep_alive {
            let probes = TcpKeepalive::new()
                .with_time(probes.idle)
                .with_interval(probes.interval)
                .with_retries(probes.count);
            socket.set_tcp_keepalive(&probes)?;
        }
        match self.user_timeout {
            Some(limit) => socket.set_tcp_user_timeout(Some(limit)),
            None => Ok(()),
        }
    }

    /// Checks the ranges of all options and returns them unchanged.
    ///
    /// # Errors
    /// An option is out of its range.
    pub fn checked(self) -> Result<Self, TcpOptionsError> {
        let bad = |what: &str| Err(TcpOptionsError(what.to_owned()));
        if let Some(probes) = &self.keep_alive {
            let is_time = |time: Duration| {
                time.subsec_nanos() == 0 && (1..=KEEP_ALIVE_SECONDS_MAX).contains(&time.as_secs())
            };
            if !is_time(probes.idle) || !is_time(probes.interval) {
                return bad("keep-alive times must be 1 to 32767 seconds");
            }
            if !(1..=KEEP_ALIVE_COUNT_MAX).contains(&probes.count) {
                return bad("the number of keep-alive probes must be 1 to 127");
            }
        }
        match self.user_timeout {
            Some(limit) if limit.is_zero() || limit > USER_TIMEOUT_MAX => {
                bad("the user time-out must be 1 to 2147483 seconds")
            }
            _ => Ok(self),
        }
    }
}

impl FromStr for TcpOptions {
    type Err = TcpOptionsError;

    /// Parses words with commas between them, which change the default: `delay`, `quick-ack`,
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
                        "unknown word `{word}`: use delay, quick-ack, \
                         keep-alive=IDLE:INTERVAL:COUNT, keep-alive=off or user-timeout=SECONDS"
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
            "`{word}`: use keep-alive=IDLE:INTERVAL:COUNT"
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
    fn options_reach_the_kernel() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let socket = TcpStream::connect(address).expect("a connection");
        let text = "quick-ack,keep-alive=30:5:3,user-timeout=20";
        let options: TcpOptions = text.parse().expect("options");
        options.apply(&socket).expect("taken");
        let socket = SockRef::from(&socket);
        assert!(socket.tcp_nodelay().expect("known"));
        assert!(socket.keepalive().expect("known"));
        let idle = socket.tcp_keepalive_time().expect("known");
        let interval = socket.tcp_keepalive_interval().expect("known");
        let count = socket.tcp_keepalive_retries().expect("known");
        let seconds = Duration::from_secs;
        assert_eq!((idle, interval, count), (seconds(30), seconds(5), 3));
        let limit = socket.tcp_user_timeout().expect("known");
        assert_eq!(limit, Some(seconds(20)));

        let plain = TcpStream::connect(address).expect("a connection");
        let options: TcpOptions = "delay,keep-alive=off".parse().expect("options");
        options.apply(&plain).expect("taken");
        let socket = SockRef::from(&plain);
        assert!(!socket.tcp_nodelay().expect("known") && !socket.keepalive().expect("known"));
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
