//! Mistakes of syntax, unknown names, and values of a wrong type.

use crate::Case;

pub(crate) const CASES: &[Case] = &[
    // Syntax.
    ("[server\nworkers = 1\n", 1, "unclosed table, expected `]`"),
    (
        "[server]\nname = \"a\n",
        2,
        "invalid basic string, expected `\"`",
    ),
    ("[server]\nname = a\n", 2, "string values must be quoted"),
    (
        "[server]\nname \"a\"\n",
        2,
        "key with no value, expected `=`",
    ),
    (
        "[server]\nlisten = [\"::1\"\n",
        2,
        "unclosed array, expected `]`",
    ),
    (
        "[server]\nworkers = 1 2\n",
        2,
        "string values must be quoted",
    ),
    ("[server]\n[log]\n[server]\n", 3, "duplicate key"),
    ("[server]\nworkers = 1\nworkers = 2\n", 3, "duplicate key"),
    ("[server]\nname = \"\u{1}\"\n", 2, "invalid basic string"),
    (
        "[server]\nworkers = 0x\n",
        2,
        "server.workers: integer number overflowed",
    ),
    ("[log]\nlevel = \"\\q\"\n", 2, "missing escaped value"),
    // Names.
    (
        "[server]\nworker = 2\n",
        2,
        "server.worker: unknown key: did you mean `workers`?",
    ),
    (
        "[server]\nlisen = [\"::1\"]\n",
        2,
        "server.lisen: unknown key: did you mean `listen`?",
    ),
    (
        "[server]\n\n[serve]\nworkers = 2\n",
        3,
        "serve: unknown section: did you mean [server]?",
    ),
    (
        "[[shares]]\nname = \"a\"\npath = \"/\"\n",
        1,
        "shares: unknown section: did you mean [[share]]?",
    ),
    ("[zzz]\n", 1, "zzz: unknown section"),
    (
        "listen = [\"::1\"]\n",
        1,
        "listen: unknown key: `listen` belongs to [server]",
    ),
    (
        "[limits]\nlisten = [\"::1\"]\n",
        2,
        "limits.listen: unknown key: `listen` belongs to [server]",
    ),
    (
        "[server]\nread_only = true\n",
        2,
        "server.read_only: unknown key: `read_only` belongs to [[share]]",
    ),
    (
        "[[share]]\nname = \"a\"\npth = \"/\"\n",
        3,
        "share.pth: unknown key: did you mean `path`?",
    ),
    ("[log]\nzzz = 1\n", 2, "log.zzz: unknown key"),
    // Values of an enumeration.
    (
        "[server]\nio = \"uringg\"\n",
        2,
        "server.io: unknown variant `uringg`, expected one of `auto`, `uring`, `epoll`",
    ),
    (
        "[log]\ntarget = \"syslog\"\n",
        2,
        "log.target: unknown variant `syslog`",
    ),
    (
        "[log]\nformat = \"xml\"\n",
        2,
        "log.format: unknown variant `xml`",
    ),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\nsync = \"never\"\n",
        4,
        "share.sync: unknown variant `never`",
    ),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\nnames = \"drop\"\n",
        4,
        "share.names: unknown variant `drop`",
    ),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\nacl_xattr = \"user.ntacl\"\n",
        4,
        "share.acl_xattr: unknown variant `user.ntacl`",
    ),
    (
        "[security]\ngmac_channels = \"all\"\n",
        2,
        "security.gmac_channels: unknown variant `all`",
    ),
    (
        "[quic]\nclient_certificates = \"maybe\"\n",
        2,
        "quic.client_certificates: unknown variant `maybe`",
    ),
    (
        "[rdma]\nprovider = \"tcp\"\n",
        2,
        "rdma.provider: unknown variant `tcp`",
    ),
    (
        "[tcp]\nplacement = \"near\"\n",
        2,
        "tcp.placement: unknown variant `near`",
    ),
    // Types.
    (
        "[server]\nworkers = \"two\"\n",
        2,
        "server.workers: invalid type: string \"two\", expected usize",
    ),
    (
        "[server]\nworkers = -1\n",
        2,
        "server.workers: invalid value: integer `-1`, expected usize",
    ),
    (
        "[server]\nworkers = 1.5\n",
        2,
        "server.workers: invalid type: floating point `1.5`, expected usize",
    ),
    (
        "[server]\nmultichannel = \"yes\"\n",
        2,
        "server.multichannel: invalid type: string \"yes\", expected a boolean",
    ),
    (
        "[server]\nlisten = \"::1\"\n",
        2,
        "server.listen: invalid type: string \"::1\", expected a sequence",
    ),
    (
        "[server]\nlisten = [\n  \"::1\",\n  1,\n]\n",
        4,
        "server.listen: invalid type: integer `1`, expected a string",
    ),
    (
        "[server]\nname = 3\n",
        2,
        "server.name: invalid type: integer `3`, expected a string",
    ),
    (
        "[limits]\ncredits = 70000\n",
        2,
        "limits.credits: invalid value: integer `70000`, expected u16",
    ),
    (
        "[limits]\nmax_read = 5000000000\n",
        2,
        "limits.max_read: invalid value: integer `5000000000`, expected u32",
    ),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\nread_only = 1\n",
        4,
        "share.read_only: invalid type: integer `1`, expected a boolean",
    ),
    (
        "[[share]]\nname = \"a\"\npath = \"/\"\nusers = \"alice\"\n",
        4,
        "share.valid_users: invalid type: string \"alice\", expected a sequence",
    ),
    (
        "[share]\nname = \"a\"\npath = \"/\"\n",
        1,
        "share: write [[share]], once for each share",
    ),
    ("server = 3\n", 1, "server: write [server]"),
    ("[[server]]\nworkers = 1\n", 1, "server: write [server]"),
    ("share = \"/srv\"\n", 1, "share: write [[share]]"),
    (
        "include = \"a.toml\"\n",
        1,
        "include: write a list of files",
    ),
    ("include = [1]\n", 1, "include: write a list of files"),
    (
        "[[share]]\nname = \"a\"\n",
        1,
        "share.path: a share needs this key",
    ),
    (
        "[log]\n\n[[share]]\npath = \"/\"\n",
        3,
        "share.name: a share needs this key",
    ),
];
