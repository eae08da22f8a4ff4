//! Mistakes in included files, environment variables and options.

use std::fs;
use std::path::Path;

use smbeam_server::config::{Config, ConfigError, Layers};

/// Number of mistakes in the tables below.
pub(crate) const COUNT: usize = INCLUDED.len() + VARIABLES.len() + 1;

/// The main file, the file `conf.d/a.toml`, and the message.
const INCLUDED: &[(&str, &str, &str)] = &[
    (
        "include = [\"conf.d/*.toml\"]\n",
        "[log]\nlevel = \"info\"\ninclude = 1\n",
        "DIR/conf.d/a.toml, line 3: log.include: unknown key",
    ),
    (
        "include = [\"conf.d/*.toml\"]\n",
        "include = [\"b.toml\"]\n",
        "DIR/conf.d/a.toml, line 1: include: only the main file can include files",
    ),
    (
        "include = [\"conf.d/*.toml\"]\n\n[server]\nworkers = 1\n",
        "[log]\n[server]\nworkers = 2\n",
        "DIR/conf.d/a.toml, line 3: server.workers: set twice: also in DIR/smbeam.toml, line 4",
    ),
    (
        "include = [\"conf.d/*.toml\"]\n\n[[share]]\nname = \"a\"\npath = \"/\"\n",
        "[[share]]\nname = \"A\"\npath = \"/\"\n",
        "DIR/conf.d/a.toml, line 2: share.name: two shares have the name `A`",
    ),
    ("[log]\nlevel = \"info\"\n", "", ""),
    (
        "# first\ninclude = [\"nosuch.toml\"]\n",
        "",
        "DIR/smbeam.toml, line 2: include: DIR/nosuch.toml: no such file",
    ),
    (
        "include = [\"nosuch.d/*.toml\"]\n",
        "",
        "DIR/smbeam.toml, line 1: include: DIR/nosuch.d: No such file",
    ),
    (
        "include = [\"*.d/a.toml\"]\n",
        "",
        "DIR/smbeam.toml, line 1: include: `*.d/a.toml`: wildcards are for names of files",
    ),
    (
        "include = [\"conf.d/[.toml\"]\n",
        "",
        "DIR/smbeam.toml, line 1: include: `conf.d/[.toml`: ",
    ),
    (
        "include = [\n  \"conf.d/a.toml\",\n  \"conf.d/*.toml\",\n]\n",
        "",
        "DIR/smbeam.toml, line 3: include: DIR/conf.d/a.toml is included twice",
    ),
    (
        "include = [\"smbeam.toml\"]\n",
        "",
        "DIR/smbeam.toml, line 1: include: DIR/smbeam.toml is included twice",
    ),
    (
        "include = [\"conf.d/*.toml\"]\n",
        "[server\n",
        "DIR/conf.d/a.toml, line 1: unclosed table",
    ),
];

/// A variable, its value, and the message.
const VARIABLES: &[(&str, &str, &str)] = &[
    (
        "SMBEAM_SERVER__LISEN",
        "::1",
        "no key of the configuration: did you mean SMBEAM_SERVER__LISTEN?",
    ),
    (
        "SMBEAM_SERVER_LISTEN",
        "::1",
        "no key of the configuration: did you mean SMBEAM_SERVER__LISTEN?",
    ),
    ("SMBEAM_SHARE_DATA", "/srv", "no key of the configuration: "),
    (
        "SMBEAM_NOTHING__AT_ALL",
        "1",
        "no key of the configuration: use SMBEAM_SECTION__KEY or SMBEAM_SHARE_NAME__KEY",
    ),
    (
        "SMBEAM_SERVER__WORKERS",
        "two",
        "server.workers: invalid type: string \"two\", expected usize",
    ),
    (
        "SMBEAM_SERVER__MULTICHANNEL",
        "yes",
        "server.multichannel: invalid type: string \"yes\", expected a boolean",
    ),
    (
        "SMBEAM_SERVER__LISTEN",
        "[\"::1\"",
        "server.listen: not a list: ",
    ),
    (
        "SMBEAM_SERVER__LISTEN",
        "::1,300.1.1.1",
        "server.listen: `300.1.1.1` is not an IP address",
    ),
    (
        "SMBEAM_LIMITS__CREDITS",
        "0",
        "limits.credits: 0 is not valid: use at least 1",
    ),
    (
        "SMBEAM_LOG__FORMAT",
        "xml",
        "log.format: unknown variant `xml`",
    ),
    (
        "SMBEAM_SERVER__NAME_FILE",
        "/nosuch/name",
        "cannot read /nosuch/name: No such file",
    ),
    (
        "SMBEAM_SHARE_DATA__NAME",
        "data",
        "the name of a share is a part of the variable",
    ),
    (
        "SMBEAM_SHARE_DATA__READ_ONLY",
        "true",
        "share.path: a share needs this key",
    ),
    (
        "SMBEAM_SHARE_DATA__PATH",
        "/dev/null",
        "share.path: /dev/null is not a directory",
    ),
];

#[test]
fn included_files() {
    for (main, included, expected) in INCLUDED {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().canonicalize().expect("a directory");
        fs::create_dir(path.join("conf.d")).expect("a directory");
        fs::write(path.join("conf.d/a.toml"), included).expect("a file");
        fs::write(path.join("smbeam.toml"), main).expect("a file");
        let loaded = Config::load(&path.join("smbeam.toml"));
        if expected.is_empty() {
            loaded.expect("a good file");
            continue;
        }
        let expected = expected.replace("DIR", &path.display().to_string());
        let error = loaded.expect_err(main).to_string();
        assert!(
            error.starts_with(&expected),
            "{error}\n  instead of {expected}"
        );
    }
}

fn of_variable(name: &str, value: &str) -> Result<Config, ConfigError> {
    let variables = [(name.to_owned(), value.to_owned())];
    Layers::new(None)
        .with_variables(variables.into_iter())
        .load()
}

#[test]
fn environment_variables() {
    for (name, value, expected) in VARIABLES {
        let error = of_variable(name, value).expect_err(name);
        let reason = error.reason();
        assert!(
            reason.starts_with(expected),
            "{name}: {reason}\n  instead of {expected}"
        );
        assert_eq!((error.line(), error.file()), (None, None));
        let shown = error.to_string();
        assert!(shown.starts_with(&format!("variable {name}: ")), "{shown}");
    }
}

#[test]
fn options() {
    let text = "[server]\nio = \"fast\"\n".to_owned();
    let error = Layers::new(None).with_option("--io", text).load();
    let error = error.expect_err("a bad option").to_string();
    assert!(
        error.starts_with("option --io: server.io: unknown variant `fast`"),
        "{error}"
    );
}

/// File < included file < variable < option.
#[test]
fn later_sources_override_earlier_ones() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().canonicalize().expect("a directory");
    fs::create_dir(path.join("conf.d")).expect("a directory");
    let write = |name: &str, text: &str| fs::write(path.join(name), text).expect("a file");
    write(
        "smbeam.toml",
        "include = [\"conf.d/*.toml\"]\n[server]\nworkers = 1\n[[share]]\nname = \"My Data\"\n\
         path = \"data\"\n",
    );
    write(
        "conf.d/20.toml",
        "[server]\nname = \"nas\"\nio = \"epoll\"\n",
    );
    write("conf.d/10.toml", "[[share]]\nname = \"b\"\npath = \"/\"\n");
    write("conf.d/.hidden.toml", "[zzz]\n");
    let variables = [
        ("SMBEAM_SERVER__NAME", "box"),
        ("SMBEAM_SERVER__IO", "auto"),
        ("SMBEAM_SHARE_MY_DATA__READ_ONLY", "true"),
        ("SMBEAM_SHARE_NEW__PATH", "/tmp"),
        ("SMBEAM_SHARE_NEW__VALID_USERS", "alice, bob"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let layers = Layers::new(Some(&path.join("smbeam.toml")))
        .with_variables(variables.into_iter())
        .with_option("--io", "[server]\nio = \"uring\"\n".to_owned());
    let config = layers.load().expect("good");
    assert_eq!(config.server.name.as_deref(), Some("box"));
    let names: Vec<&str> = config
        .shares
        .iter()
        .map(|share| &**share.name.get_ref())
        .collect();
    assert_eq!(names, ["My Data", "b", "new"]);
    assert!(config.shares[0].read_only);
    assert_eq!(config.shares[0].path.get_ref(), &path.join("data"));
    let users = config.shares[2].valid_users.iter();
    let users: Vec<&str> = users.map(|user| &**user.get_ref()).collect();
    assert_eq!(users, ["alice", "bob"]);
    assert_eq!(config.shares[2].path.get_ref(), Path::new("/tmp"));
    let origin = |key: &str| config.origin(key).map(|place| place.to_string());
    let main = path.join("smbeam.toml").display().to_string();
    assert_eq!(origin("server.workers"), Some(format!("{main}, line 3")));
    assert_eq!(origin("server.io").as_deref(), Some("option --io"));
    assert_eq!(
        origin("server.name").as_deref(),
        Some("variable SMBEAM_SERVER__NAME")
    );
    assert_eq!(origin("share.0.path"), Some(format!("{main}, line 6")));
    let included = path.join("conf.d/10.toml").display().to_string();
    assert_eq!(origin("share.1.path"), Some(format!("{included}, line 3")));
    assert_eq!(origin("log.level"), None);
}
