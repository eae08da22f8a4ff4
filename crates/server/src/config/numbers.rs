//! Values of limits with which a server could not serve any client.

use proto::server::config::MAX_IO;

use super::{Check, Config, ConfigError};

/// Least memory of a worker's buffers: one buffer of each size.
const BUFFER_MEMORY_MIN_MB: usize = 16;
/// Most memory of a worker's buffers: more than any machine has today.
const BUFFER_MEMORY_MAX_MB: usize = 16 << 20;
/// Least memory of responses: two of the largest.
const RESPONSE_MEMORY_MIN_MB: usize = 16;
/// Least limit of the memory of the process: a server with one worker and its smallest pool.
const MEMORY_MAX_MIN_MB: usize = 64;
/// Least bytes of a frame before the login. A login with a Kerberos ticket needs some 64 KiB at
/// most; NEGOTIATE and NTLM need less than 4 KiB.
const FRAME_BEFORE_LOGIN_MIN: usize = 4 << 10;
/// Least length in bytes of the largest READ, WRITE and transaction. Every client of dialect 2.1 or
/// later relies on it. \[MS-SMB2\] 3.3.5.4
const MAX_IO_MIN: usize = 64 << 10;

/// Largest file of the audit log in MiB: 1 TiB.
const AUDIT_SIZE_MAX_MB: usize = 1 << 20;
/// Most renamed files of the audit log.
const AUDIT_FILES_MAX: usize = 1000;
/// Fewest and most records that wait. The most need some 400 MB.
const AUDIT_QUEUE_MIN: usize = 100;
const AUDIT_QUEUE_MAX: usize = 1_000_000;

/// Longest lockout in milliseconds: a year.
const LOCKOUT_MAX_MS: usize = 365 * 24 * 60 * 60 * 1000;

/// Longest time in seconds for which an open outlives its connection: 16 minutes, as in Windows 7
/// and Samba. \[MS-SMB2\] 3.3.5.9.6
const DURABLE_MAX_S: usize = 16 * 60;

impl Check<'_> {
    /// Checks numbers for which zero, or a tiny or huge value, makes no sense.
    pub(super) fn numbers(&self, config: &Config) -> Result<(), ConfigError> {
        let limits = &config.limits;
        let positive = [
            ("limits.connections", limits.connections),
            ("limits.half_open", limits.half_open),
            ("limits.half_open_per_address", limits.half_open_per_address),
            ("limits.credits", limits.credits.into()),
            (
                "limits.sessions_per_connection",
                limits.sessions_per_connection,
            ),
            ("limits.logins_per_connection", limits.logins_per_connection),
            ("limits.channels_per_session", limits.channels_per_session),
            ("limits.opens_per_session", limits.opens_per_session),
            (
                "limits.connections_per_address",
                limits.connections_per_address,
            ),
            ("limits.connections_per_user", limits.connections_per_user),
            ("limits.opens_per_user", limits.opens_per_user),
            ("limits.pipes_per_user", limits.pipes_per_user),
            ("limits.watches_per_user", limits.watches_per_user),
            ("limits.locks_per_user", limits.locks_per_user),
            ("limits.leases_per_client", limits.leases_per_client),
            ("limits.leases", limits.leases),
            ("limits.break_timeout_ms", clamped(limits.break_timeout_ms)),
            ("limits.disconnected_opens", limits.disconnected_opens),
            (
                "limits.disconnected_opens_per_user",
                limits.disconnected_opens_per_user,
            ),
            ("limits.login_timeout_ms", clamped(limits.login_timeout_ms)),
            ("limits.frame_timeout_ms", clamped(limits.frame_timeout_ms)),
            (
                "limits.credit_timeout_ms",
                clamped(limits.credit_timeout_ms),
            ),
        ];
        for (key, value) in positive {
            self.within(key, value, 1, usize::MAX)?;
        }
        let durable = clamped(limits.durable_timeout_max);
        self.within("limits.durable_timeout_max", durable, 0, DURABLE_MAX_S)?;
        let lockout = clamped(config.security.lockout_duration_ms);
        self.within("security.lockout_duration_ms", lockout, 1, LOCKOUT_MAX_MS)?;
        let audit = &config.audit;
        self.within("audit.max_size_mb", audit.max_size_mb, 0, AUDIT_SIZE_MAX_MB)?;
        self.within("audit.keep", audit.keep, 1, AUDIT_FILES_MAX)?;
        self.within("audit.queue", audit.queue, AUDIT_QUEUE_MIN, AUDIT_QUEUE_MAX)?;
        let frame = limits.frame_before_login;
        self.within(
            "limits.frame_before_login",
            frame,
            FRAME_BEFORE_LOGIN_MIN,
            usize::MAX,
        )?;
        for (key, value) in [
            ("limits.max_read", limits.max_read),
            ("limits.max_write", limits.max_write),
            ("limits.max_transact", limits.max_transact),
        ] {
            self.within(key, value as usize, MAX_IO_MIN, MAX_IO as usize)?;
        }
        self.within(
            "limits.response_memory_mb",
            limits.response_memory_mb,
            RESPONSE_MEMORY_MIN_MB,
            BUFFER_MEMORY_MAX_MB,
        )?;
        if limits.memory_max_mb != 0 {
            let (least, most) = (MEMORY_MAX_MIN_MB, BUFFER_MEMORY_MAX_MB);
            self.within("limits.memory_max_mb", limits.memory_max_mb, least, most)?;
        }
        let buffers = config.server.buffer_memory_mb;
        let (least, most) = (BUFFER_MEMORY_MIN_MB, BUFFER_MEMORY_MAX_MB);
        self.within("server.buffer_memory_mb", buffers, least, most)
    }

    fn within(&self, key: &str, value: usize, min: usize, max: usize) -> Result<(), ConfigError> {
        let limit = match value {
            small if small < min => format!("at least {min}"),
            large if large > max => format!("at most {max}"),
            _ => return Ok(()),
        };
        let what = format!("{key}: {value} is not valid: use {limit}");
        Err(self.error_of_key(key, what))
    }
}

fn clamped(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn values_without_sense_are_errors() {
        for bad in [
            "[server]\nbuffer_memory_mb = 0",
            "[server]\nbuffer_memory_mb = 17592186044416",
            "[limits]\nconnections = 0",
            "[limits]\nhalf_open = 0",
            "[limits]\nhalf_open_per_address = 0",
            "[limits]\ncredits = 0",
            "[limits]\nsessions_per_connection = 0",
            "[limits]\nlogins_per_connection = 0",
            "[limits]\nchannels_per_session = 0",
            "[security]\nlockout_duration_ms = 0",
            "[limits]\nopens_per_session = 0",
            "[limits]\nconnections_per_address = 0",
            "[limits]\nconnections_per_user = 0",
            "[limits]\nopens_per_user = 0",
            "[limits]\npipes_per_user = 0",
            "[limits]\nwatches_per_user = 0",
            "[limits]\nlocks_per_user = 0",
            "[limits]\nleases = 0",
            "[limits]\nbreak_timeout_ms = 0",
            "[limits]\ndisconnected_opens = 0",
            "[limits]\ndisconnected_opens_per_user = 0",
            "[limits]\ndurable_timeout_max = 961",
            "[limits]\nresponse_memory_mb = 0",
            "[limits]\nmemory_max_mb = 63",
            "[limits]\nlogin_timeout_ms = 0",
            "[limits]\nframe_timeout_ms = 0",
            "[limits]\nframe_before_login = 0",
            "[limits]\nmax_read = 65535",
            "[limits]\nmax_write = 0",
            "[limits]\nmax_write = 8388609",
            "[limits]\nmax_transact = 4096",
        ] {
            let error = Config::parse(Path::new("c.toml"), bad)
                .expect_err(bad)
                .to_string();
            let (section, key) = bad.split_once("]\n").expect("a key");
            let key = format!(
                "{}.{}: ",
                &section[1..],
                key.split(' ').next().expect("a key")
            );
            assert!(
                error.contains(&key) && error.contains(" is not valid: use at "),
                "{error}"
            );
        }
        let good = "[server]\nbuffer_memory_mb = 16\n[limits]\nshutdown_ms = 0\nmemory_max_mb = 0\n\
            max_read = 65536\nmax_write = 8388608\nmax_transact = 1048576\n";
        assert!(Config::parse(Path::new("c.toml"), good).is_ok());
    }
}
