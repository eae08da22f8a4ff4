//! The names of all metrics. docs/metrics.md has the same table; a test compares both.

use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// A family of metrics: one name with several sets of labels.
#[derive(Debug)]
pub(crate) struct Family {
    /// Name without the suffixes for unit and type.
    pub(crate) name: &'static str,
    /// Unit, which is the suffix of the name; `None` for numbers.
    pub(crate) unit: Option<Unit>,
    pub(crate) kind: MetricType,
    /// The names of the labels, in the order of the values.
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

/// Declares families, and the list of all of them.
macro_rules! families {
    (@unit) => { None };
    (@unit $unit:ident) => { Some(Unit::$unit) };
    ($($constant:ident: $kind:ident $name:literal [$($unit:ident)?] ($($label:literal),*)
        $help:literal;)*) => {
        $(pub(crate) static $constant: Family = Family {
            name: $name,
            unit: families!(@unit $($unit)?),
            kind: MetricType::$kind,
            labels: &[$($label),*],
            help: $help,
        };)*

        /// All families.
        #[cfg(test)]
        pub(crate) static ALL: &[&Family] = &[$(&$constant),*];
    };
}

families! {
    BUILD: Info "smbeam_build" [] ("version")
        "Version of the program";
    START_TIME: Gauge "smbeam_start_time" [Seconds] ()
        "Time at which the server started, in seconds since 1970";
    WORKERS: Gauge "smbeam_workers" [] ()
        "Number of worker threads";
    SILENT_WORKERS: Gauge "smbeam_silent_workers" [] ()
        "Number of workers that did not report their load within two seconds";
    REQUESTS: Counter "smbeam_requests" [] ("command", "status")
        "Requests with a final response";
    REQUEST_DURATION: Histogram "smbeam_request_duration" [Seconds] ("command", "share")
        "Time from the start of a request to its result";
    READ: Counter "smbeam_read" [Bytes] ("share")
        "Bytes of files that READ requests returned";
    WRITTEN: Counter "smbeam_written" [Bytes] ("share")
        "Bytes that WRITE requests wrote to files";
    RECEIVED: Counter "smbeam_received" [Bytes] ()
        "Bytes received from clients, with headers and prefixes of frames";
    SENT: Counter "smbeam_sent" [Bytes] ()
        "Bytes sent to clients, with headers and prefixes of frames";
    CONNECTIONS: Gauge "smbeam_connections" [] ("transport", "dialect", "cipher", "signing")
        "Open connections";
    ACCEPTED_CONNECTIONS: Counter "smbeam_accepted_connections" [] ("transport")
        "Accepted connections";
    REFUSED_CONNECTIONS: Counter "smbeam_refused_connections" [] ("reason")
        "Connections that a limit refused";
    LOGINS: Counter "smbeam_logins" [] ()
        "Logins that succeeded";
    REFUSED_LOGINS: Counter "smbeam_refused_logins" [] ("reason")
        "Logins that the server refused";
    REFUSED_TREE_CONNECTS: Counter "smbeam_refused_tree_connects" [] ("reason")
        "Connections of sessions to shares that the server refused";
    ACCESS_DENIED: Counter "smbeam_access_denied" [] ()
        "Requests that the file system refused for lack of permissions";
    AUDIT_RECORDS: Counter "smbeam_audit_records" [] ()
        "Written records of the audit log";
    AUDIT_RECORDS_LOST: Counter "smbeam_audit_records_lost" [] ()
        "Records of the audit log that were lost: its queue was full, or a write failed";
    SESSIONS: Gauge "smbeam_sessions" [] ()
        "Sessions of users";
    OPENS: Gauge "smbeam_opens" [] ()
        "Open files and directories, including disconnected ones";
    PIPES: Gauge "smbeam_pipes" [] ()
        "Open pipes";
    WATCHES: Gauge "smbeam_watches" [] ()
        "Watched directories";
    LOCKS: Gauge "smbeam_locks" [] ()
        "Byte-range locks";
    LEASES: Gauge "smbeam_leases" [] ()
        "Leases of clients";
    DISCONNECTED_OPENS: Gauge "smbeam_disconnected_opens" [] ()
        "Durable open files without a session, which wait for their clients";
    ENDED_DISCONNECTED_OPENS: Counter "smbeam_ended_disconnected_opens" [] ("outcome")
        "Durable open files that are no longer without a session";
    CREDITS: Gauge "smbeam_credits" [] ()
        "Credits that clients hold: granted and not used";
    PENDING_REQUESTS: Gauge "smbeam_pending_requests" [] ()
        "Received frames with a request that has no final response";
    BLOCKING_JOBS: Gauge "smbeam_blocking_jobs" [] ()
        "File operations that wait for a thread or run on one";
    WORKER_MESSAGES: Gauge "smbeam_worker_messages" [] ()
        "Messages in the queues of the workers";
    DROPPED_MESSAGES: Counter "smbeam_dropped_messages" [] ()
        "Messages that were lost because the queue of a worker was full";
    STORE_DURATION: Histogram "smbeam_store_duration" [Seconds] ("operation")
        "Time of file operations that waited for a disk, on a thread or in io_uring";
    WAIT_DURATION: Histogram "smbeam_wait_duration" [Seconds] ("reason")
        "Time of waits for a buffer, response memory, the socket, or the next request";
    CRYPTO_TIME: Counter "smbeam_crypto" [Seconds] ("direction")
        "Processor time of signing and encryption, in messages of 4 KiB and more";
    CRYPTO_BYTES: Counter "smbeam_crypto" [Bytes] ("direction")
        "Bytes that were signed or encrypted, in messages of 4 KiB and more";
    SHARE_AVAILABLE: Gauge "smbeam_share_available" [] ("share")
        "1 if the directory of the share can be opened, otherwise 0";
    BUFFERS: Gauge "smbeam_buffers" [] ()
        "I/O buffers in use";
    BUFFER_POOL: Gauge "smbeam_buffer_pool" [Bytes] ()
        "Memory of the pools of I/O buffers, used and free";
    RESPONSE_MEMORY: Gauge "smbeam_response_memory" [Bytes] ()
        "Memory of responses outside of the pools of I/O buffers";
    MEMORY_USED: Gauge "smbeam_memory_used" [Bytes] ()
        "Memory of the process that counts for limits.memory_max_mb";
    MEMORY_LIMIT: Gauge "smbeam_memory_limit" [Bytes] ()
        "Limit of the memory of the process (limits.memory_max_mb)";
    PROCESS_CPU: Counter "process_cpu" [Seconds] ()
        "Processor time of the process, user and system";
    PROCESS_RESIDENT_MEMORY: Gauge "process_resident_memory" [Bytes] ()
        "Resident memory of the process";
    PROCESS_OPEN_FDS: Gauge "process_open_fds" [] ()
        "Open file descriptors of the process";
    PROCESS_MAX_FDS: Gauge "process_max_fds" [] ()
        "Limit of open file descriptors of the process";
}

impl Family {
    /// The name with its unit, as the lines of the descriptor have it.
    #[cfg(test)]
    pub(crate) fn full_name(&self) -> String {
        match &self.unit {
            Some(unit) => format!("{}_{}", self.name, unit.as_str()),
            None => self.name.to_owned(),
        }
    }
}
