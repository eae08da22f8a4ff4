//! Opening a file or a share by its URL.

use crate::client::Client;
use crate::error::Error;
use crate::file::File;
use crate::open_options::OpenOptions;
use crate::options::Credentials;
use crate::share::Share;
use crate::url::{Url, UrlError};

impl Client {
    /// Connects to the server of a [`Url`], logs in, and opens the file of the URL.
    ///
    /// The user of `credentials` logs in, not the user name in the URL. [`Url::credentials`] makes
    /// the credentials of the user in the URL. The file keeps its session open: [`File::share`]
    /// leads to it. A program that opens several files of a share calls [`Client::open_share`]
    /// once.
    ///
    /// ```no_run
    /// use smbeam_client::{Client, Credentials, Error, OpenOptions, Options, Wait};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let client = Client::new(Options::default())?;
    /// let credentials = Credentials::new(None, "alice", "open sesame");
    /// let url = "smb://nas.example/photos/2026/sea.jpg";
    /// let file = client
    ///     .open(url, &credentials, &OpenOptions::new().read(true))
    ///     .wait()?;
    /// println!("{} bytes", file.len().wait()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The URL is not valid or has no share, the server is not reachable, or the server refuses the
    /// login, the share or the file.
    pub async fn open(
        &self,
        url: &str,
        credentials: &Credentials,
        options: &OpenOptions,
    ) -> Result<File, Error> {
        let url = parse(url)?;
        let share = self.share_of(&url, credentials).await?;
        share.open(&url.path, options).await
    }

    /// Connects to the server of a [`Url`], logs in, and connects to the share of the URL. The path
    /// of the URL is not used.
    ///
    /// # Errors
    /// The URL is not valid or has no share, the server is not reachable, or the server refuses the
    /// login or the share.
    pub async fn open_share(&self, url: &str, credentials: &Credentials) -> Result<Share, Error> {
        self.share_of(&parse(url)?, credentials).await
    }

    async fn share_of(&self, url: &Url, credentials: &Credentials) -> Result<Share, Error> {
        let Some(share) = &url.share else {
            let why = "the URL has no share: write smb://host/share";
            return Err(Error::InvalidName(url.to_string(), why));
        };
        let session = self.connect(&url.host, url.port, credentials).await?;
        session.share(share).await
    }
}

fn parse(text: &str) -> Result<Url, Error> {
    text.parse().map_err(|error| {
        let url = match error {
            // An error message must not show the password.
            UrlError::Password => "smb://...",
            _ => text,
        };
        Error::InvalidUrl {
            url: url.to_owned(),
            error,
        }
    })
}
