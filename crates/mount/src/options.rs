//! The options of a mount: the list after `-o`.

use std::fmt;
use std::time::Duration;

/// Use of the caches of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// The kernel caches data and attributes of a file only while a lease protects them.
    #[default]
    Strict,
    /// The kernel caches attributes and names for `actimeo` seconds without a lease, and data as
    /// long as size and times are the same.
    Loose,
    /// The kernel caches nothing: each read and write reaches the server.
    None,
}

/// The options of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MountOptions {
    /// Whether the mount is read-only.
    pub read_only: bool,
    /// Whether other users than the one that mounts may use the mount.
    pub allow_other: bool,
    /// Whether the kernel checks the mode of files.
    pub default_permissions: bool,
    /// Owner of all files.
    pub uid: u32,
    /// Group of all files.
    pub gid: u32,
    /// Mode of all files, without the type.
    pub file_mode: u16,
    /// Mode of all directories, without the type.
    pub dir_mode: u16,
    /// Whether the client asks for POSIX extensions; `None` if the server decides.
    pub posix: Option<bool>,
    /// Use of the caches of the kernel.
    pub cache: Cache,
    /// Time for which attributes and names count as valid: under a lease, because other clients
    /// can change times and DOS attributes without breaking it, and with [`Cache::Loose`].
    pub attribute_time: Duration,
    /// Time for which requests wait for a lost server.
    pub reconnect: Option<Duration>,
    /// Options that the kernel interprets, such as `noexec`.
    pub kernel: Vec<String>,
    /// Options of the connection and the login, by name: `channels`, `transports`, `user`,
    /// `password_file` and `credentials`. The caller applies them when it connects.
    pub connect: Vec<(String, String)>,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            allow_other: false,
            default_permissions: false,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            file_mode: 0o755,
            dir_mode: 0o755,
            posix: None,
            cache: Cache::Strict,
            attribute_time: Duration::from_secs(1),
            reconnect: None,
            kernel: Vec::new(),
            connect: Vec::new(),
        }
    }
}

/// Why an option is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// No option has this name.
    Unknown(String),
    /// The value does not fit: name of the option, value, and the values that it accepts.
    Value(String, String, &'static str),
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(
                f,
                "unknown mount option `{name}`; `smbeam mount --help` and docs/mount.md list them"
            ),
            Self::Value(name, value, expected) => {
                write!(f, "mount option {name}={value}: expected {expected}")
            }
        }
    }
}

impl std::error::Error for OptionError {}

/// Options that the kernel interprets.
const KERNEL: [&str; 13] = [
    "rw",
    "suid",
    "nosuid",
    "dev",
    "nodev",
    "exec",
    "noexec",
    "atime",
    "noatime",
    "sync",
    "async",
    "dirsync",
    "auto_unmount",
];
/// Options of /etc/fstab for mount(8) and systemd, which have no meaning for a mounted file system.
const IGNORED: [&str; 12] = [
    "auto", "noauto", "user", "nouser", "users", "owner", "group", "defaults", "_netdev", "nofail",
    "relatime", "silent",
];
/// Options with a value for the login.
const LOGIN: [&str; 3] = ["user", "password_file", "credentials"];

impl MountOptions {
    /// Applies a list of options, separated by commas. Later ones replace earlier ones.
    ///
    /// # Errors
    /// An option is unknown, or its value is not accepted.
    pub fn apply(&mut self, list: &str) -> Result<(), OptionError> {
        list.split(',')
            .filter(|option| !option.is_empty())
            .try_for_each(|option| self.apply_one(option))
    }

    fn apply_one(&mut self, option: &str) -> Result<(), OptionError> {
        match option.split_once('=') {
            Some((name, value)) => self.apply_value(name, value),
            None => self.apply_flag(option),
        }
    }

    fn apply_flag(&mut self, name: &str) -> Result<(), OptionError> {
        match name {
            "ro" => self.read_only = true,
            "allow_other" => self.allow_other = true,
            "default_permissions" => self.default_permissions = true,
            "posix" => self.posix = Some(true),
            "noposix" => self.posix = Some(false),
            name if KERNEL.contains(&name) => {
                self.read_only &= name != "rw";
                self.kernel.push(name.to_owned());
            }
            name if IGNORED.contains(&name) || name.starts_with("x-") => {}
            name => return Err(OptionError::Unknown(name.to_owned())),
        }
        Ok(())
    }

    fn apply_value(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        let wrong = |expected| OptionError::Value(name.to_owned(), value.to_owned(), expected);
        let number = || value.parse().map_err(|_| wrong("a number"));
        match name {
            "uid" => self.uid = number()?,
            "gid" => self.gid = number()?,
            "file_mode" => self.file_mode = mode(value).ok_or_else(|| wrong("0 to 7777"))?,
            "dir_mode" => self.dir_mode = mode(value).ok_or_else(|| wrong("0 to 7777"))?,
            "cache" => {
                self.cache = match value {
                    "strict" => Cache::Strict,
                    "loose" => Cache::Loose,
                    "none" => Cache::None,
                    _ => return Err(wrong("strict, loose or none")),
                }
            }
            "actimeo" => self.attribute_time = seconds(value).ok_or_else(|| wrong("seconds"))?,
            "reconnect_s" => {
                self.reconnect = Some(seconds(value).ok_or_else(|| wrong("seconds"))?);
            }
            // The commas of a list have another meaning here.
            "channels" | "transports" => {
                self.connect
                    .push((name.to_owned(), value.replace('+', ",")));
            }
            name if LOGIN.contains(&name) => self.connect.push((name.to_owned(), value.to_owned())),
            name if name.starts_with("x-") => {}
            name => return Err(OptionError::Unknown(name.to_owned())),
        }
        Ok(())
    }
}

/// Parses a mode in octal digits.
fn mode(text: &str) -> Option<u16> {
    let mode = u16::from_str_radix(text, 8).ok()?;
    (mode <= 0o7777).then_some(mode)
}

/// Parses seconds with a fraction.
fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(list: &str) -> Result<MountOptions, OptionError> {
        let mut options = MountOptions::default();
        options.apply(list).map(|()| options)
    }

    #[test]
    fn options_have_their_values() {
        let options = apply("ro,uid=7,gid=8,file_mode=0640,dir_mode=750,cache=loose,actimeo=0.5")
            .expect("options");
        assert!(options.read_only && !options.allow_other);
        assert_eq!((options.uid, options.gid), (7, 8));
        assert_eq!((options.file_mode, options.dir_mode), (0o640, 0o750));
        assert_eq!(options.cache, Cache::Loose);
        assert_eq!(options.attribute_time, Duration::from_millis(500));
        let options = apply("channels=tcp+quic,posix,ro,rw,noexec,noauto,x-systemd.automount,,");
        let options = options.expect("options");
        let channels = ("channels".to_owned(), "tcp,quic".to_owned());
        assert_eq!(options.connect, [channels]);
        assert_eq!(options.posix, Some(true));
        assert!(!options.read_only);
        assert_eq!(options.kernel, ["rw", "noexec"]);
    }

    #[test]
    fn wrong_options_are_named() {
        let error = apply("ro,vers=3.0").expect_err("unknown");
        assert_eq!(error, OptionError::Unknown("vers".to_owned()));
        assert!(error.to_string().contains("`vers`"));
        let error = apply("cache=fast").expect_err("no value");
        assert!(
            error.to_string().contains("strict, loose or none"),
            "{error}"
        );
        for list in [
            "uid=x",
            "file_mode=8",
            "file_mode=17777",
            "actimeo=-1",
            "bogus",
        ] {
            assert!(apply(list).is_err(), "{list}");
        }
    }
}
