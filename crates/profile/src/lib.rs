//! The settings of a user for the client: logins, named remotes and connection options.
//!
//! A program on `smbeam_client` finds the server, the options and the credentials as the command
//! `smbeam` does. Nothing here connects, and nothing asks the user.
//!
//! ```no_run
//! use smbeam_client::{Client, Session, Wait};
//! use smbeam_profile::{ConnectOptions, Location, Resolved};
//!
//! fn connect(text: &str, channels: &str) -> Result<Session, Box<dyn std::error::Error>> {
//!     // `smb://alice@nas/data`, `//nas/data`, or `nas:` for a remote of the user.
//!     let location = Location::parse(text)?;
//!     let mut options = ConnectOptions::default();
//!     options.set_arguments(&location.options)?;
//!     options.set("channels", channels)?;
//!     let credentials = match options.login.resolve(&location)? {
//!         Resolved::Credentials(credentials) => credentials,
//!         Resolved::NeedsPassword(login) => {
//!             return Err(format!("no password for {} at {}", login.user, login.host).into());
//!         }
//!     };
//!     let client = Client::new(options.build()?)?;
//!     let url = &location.url;
//!     Ok(client.connect(&url.host, url.port, &credentials).wait()?)
//! }
//! ```
//!
//! Programs that keep sessions open find the one for a URL by its [`SessionKey`].
#![forbid(unsafe_code)]

mod credentials_file;
mod directory;
mod error;
pub mod input;
mod location;
mod login;
mod options;
mod password;
mod remotes_file;
mod session_key;
mod size;
mod transports;
mod values;

pub use credentials_file::{CredentialsFile, LoginEntry};
pub use error::Error;
pub use location::{Location, PasswordSource};
pub use login::{Login, NeedsPassword, PASSWORD_VARIABLE, Resolved};
pub use options::{Certificates, ConnectOptions, OptionError, RDMA_VARIABLE};
pub use remotes_file::{Remote, RemotesFile, is_name, names_remote};
pub use session_key::{SessionKey, is_one_session};
pub use size::parse_size;
pub use transports::{parse_channels, parse_transports};
pub use values::{DEPTH_MAX, RDMA_BUSY_POLL_MAX_US, parse_dialect, parse_io_size, parse_threshold};
