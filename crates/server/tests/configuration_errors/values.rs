//! Values that a server cannot use.

use crate::Case;

pub(crate) const CASES: &[Case] = &[
    // Ranges.
    (
        "[server]\nworkers = 2000\n",
        2,
        "server.workers: more than 1024",
    ),
    (
        "[server]\nblocking_threads = 0\n",
        2,
        "server.blocking_threads: use 1 to 1024",
    ),
    (
        "[server]\n\nbuffer_memory_mb = 1\n",
        3,
        "server.buffer_memory_mb: 1 is not valid: use at least 16",
    ),
    (
        "[audit]\nqueue = 1\n",
        2,
        "audit.queue: 1 is not valid: use at least 100",
    ),
    (
        "[audit]\nkeep = 0\n",
        2,
        "audit.keep: 0 is not valid: use at least 1",
    ),
    (
        "[audit]\nmax_size_mb = 9999999\n",
        2,
        "audit.max_size_mb: 9999999 is not valid: use at most 1048576",
    ),
    (
        "[audit]\ntarget = \"syslog\"\n",
        2,
        "audit.target: unknown destination `syslog`",
    ),
    (
        "[audit]\noperations = [\n\"open\",\n\"opens\"]\n",
        2,
        "audit.operations: unknown operation `opens`",
    ),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\naudit = [\"open:ok\"]\n",
        4,
        "share.audit: unknown outcome `ok`",
    ),
    (
        "[limits]\ncredits = 0\n",
        2,
        "limits.credits: 0 is not valid: use at least 1",
    ),
    (
        "[limits]\nmax_read = 1\n",
        2,
        "limits.max_read: 1 is not valid: use at least 65536",
    ),
    (
        "[limits]\nmax_write = 8388609\n",
        2,
        "limits.max_write: 8388609 is not valid: use at most 8388608",
    ),
    (
        "[limits]\ndurable_timeout_max = 961\n",
        2,
        "limits.durable_timeout_max: 961 is not valid: use at most 960",
    ),
    (
        "[security]\nlockout_duration_ms = 0\n",
        2,
        "security.lockout_duration_ms: 0 is not valid: use at least 1",
    ),
    (
        "[limits]\nresponse_memory_mb = 1\n",
        2,
        "limits.response_memory_mb: 1 is not valid: use at least 16",
    ),
    (
        "[limits]\nmemory_max_mb = 63\n",
        2,
        "limits.memory_max_mb: 63 is not valid: use at least 64",
    ),
    (
        "[rdma]\nbusy_poll_us = 10001\n",
        2,
        "rdma.busy_poll_us: more than 10000 microseconds",
    ),
    (
        "[rdma]\nkeep_alive_timeout_ms = 0\n",
        2,
        "rdma.keep_alive_timeout_ms: must be more than 0",
    ),
    ("[tcp]\nkeep_alive_idle_s = 40000\n", 2, "tcp: "),
    ("[quic]\nmax_datagram = 100\n", 0, "quic: "),
    // Contradictions.
    (
        "[security]\nmin_dialect = \"3.1.1\"\nmax_dialect = \"3.0\"\n",
        2,
        "security.min_dialect is newer than security.max_dialect",
    ),
    (
        "[security]\nmax_dialect = \"4\"\n",
        2,
        "security.max_dialect: unknown dialect `4`: use 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1",
    ),
    (
        "[quic]\nkey = \"/dev/null\"\n",
        2,
        "quic.key: quic.certificate is missing",
    ),
    (
        "[quic]\nclient_certificates = \"required\"\n",
        2,
        "quic.client_certificates: quic.client_ca is missing",
    ),
    (
        "[quic]\nallow = [\"dns:a.example\"]\n",
        2,
        "quic.allow and quic.deny need quic.client_certificates",
    ),
    ("[quic]\ndeny = [\n  \"host:a\",\n]\n", 3, "quic.deny: "),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\nacl = \"windows\"\n",
        2,
        "share.acl: \"windows\" needs service_account",
    ),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\nservice_account = \"x\"\n",
        4,
        "share.service_account: only with acl = \"windows\"",
    ),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\nacl = \"windows\"\nservice_account = \"x\"\n\
         force_user = \"y\"\n",
        6,
        "share.force_user: not with acl = \"windows\"",
    ),
    (
        "[rdma]\nprovider = \"emulated\"\n",
        2,
        "rdma.provider: `emulated` needs rdma.directory",
    ),
    (
        "[rdma]\nprovider = \"verbs\"\ndirectory = \"/run/x\"\n",
        2,
        "rdma.directory: it is only valid with rdma.provider `emulated`",
    ),
    // Addresses.
    (
        "[server]\nlisten = [\"300.1.1.1\"]\n",
        2,
        "server.listen: `300.1.1.1` is not an IP address",
    ),
    (
        "[server]\nlisten = [\"127.0.0.1%eth0\"]\n",
        2,
        "server.listen: `127.0.0.1%eth0` is not an IP address: an interface after `%`",
    ),
    (
        "[server]\ntransports = [\"tcp\", \"quick:1\"]\n",
        2,
        "server.transports: unknown transport `quick`",
    ),
    (
        "[server]\ntransports = [\"tcp\",\n\"445\"]\n",
        3,
        "server.transports: the list has `tcp:445` twice",
    ),
    (
        "[server]\ntransports = [\"tcp:70000\"]\n",
        2,
        "server.transports: ",
    ),
    (
        "[server]\ntransports = []\n",
        2,
        "server.transports: the list is empty",
    ),
    (
        "[server]\ninterfaces = [\"eth0;rdma\"]\n",
        2,
        "server.interfaces: `rdma` is",
    ),
    // Lists of users and addresses.
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\nvalid_users = [\"alice\", \"\"]\n",
        4,
        "share.valid_users: `` has no name: an entry is a user, or @ and a group",
    ),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\nwrite_users = [\n  \"@\",\n]\n",
        5,
        "share.write_users: `@` has no name",
    ),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\nread_users = [\"+staff\"]\n",
        4,
        "share.read_users: `+staff`: smbeam has no `+`",
    ),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\ninvalid_users = [\"@@staff\"]\n",
        4,
        "share.invalid_users: `@@staff`: smbeam has no",
    ),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\nusers = []\nvalid_users = []\n",
        4,
        "share.users: the share has valid_users, too: use one of them",
    ),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\nhosts_allow = [\"nas.example\"]\n",
        4,
        "share.hosts_allow: `nas.example`: not an IP address; an entry is an address or",
    ),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\nhosts_deny = [\"192.0.2.7/24\"]\n",
        4,
        "share.hosts_deny: `192.0.2.7/24`: the address has bits beyond the prefix: use 192.0.2.0/",
    ),
    (
        "[security]\nhosts_allow = [\"192.0.2.0/24\", \"2001:db8::/129\"]\n",
        2,
        "security.hosts_allow: `2001:db8::/129`: the prefix is not a number up to 32",
    ),
    (
        "[security]\nhosts_deny = \"192.0.2.0/24\"\n",
        2,
        "security.hosts_deny: invalid type: string",
    ),
    // Paths.
    (
        "[[share]]\nname = \"a\"\npath = \"/dev/null\"\n",
        3,
        "share.path: /dev/null is not a directory",
    ),
    (
        "[quic]\ncertificate = \"nosuch.pem\"\n",
        2,
        "quic.certificate: /nosuch.pem: No such file",
    ),
    // Names.
    (
        "[[share]]\nname = \"\"\npath = \"/\"\n",
        2,
        "share.name: `` is not a valid share name",
    ),
    (
        "[[share]]\nname = \"a/b\"\npath = \"/\"\n",
        2,
        "share.name: `a/b` is not a valid share name",
    ),
    (
        "[[share]]\nname = \"ipc$\"\npath = \"/\"\n",
        2,
        "share.name: the name IPC$ is reserved",
    ),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\n[[share]]\nname = \"A\"\npath = \"/\"\n",
        5,
        "share.name: two shares have the name `A`",
    ),
    (
        "[log]\nlevel = \"verbose\"\n",
        2,
        "log.level: unknown level `verbose`: use off, error, warn, info, debug or trace",
    ),
    (
        "[log]\nlevel = \"info,server=debug\"\n",
        2,
        "log.level: unknown part `server` of the program",
    ),
];
