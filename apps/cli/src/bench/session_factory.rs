//! Opens any number of new sessions with one server.

use smbeam_client::{Channels, Client, Credentials, Error, RdmaChoice, Share};

use crate::client_failure::failure_of;
use crate::connect::ConnectArguments;
use crate::failure::{Failure, Outcome};
use crate::location::Url;

/// The server, the credentials and the options for new sessions.
pub(crate) struct SessionFactory {
    /// The URL of the directory in which a run creates its own directory.
    pub(crate) url: Url,
    /// The RDMA provider for SMB Direct connections.
    pub(crate) rdma: RdmaChoice,
    share: String,
    client: Client,
    credentials: Credentials,
}

impl SessionFactory {
    /// Prepares the sessions and asks for the password if one is needed. It does not connect.
    pub(crate) fn new(connect: &ConnectArguments, url: &Url, channels: Channels) -> Outcome<Self> {
        let Some(share) = url.share.clone() else {
            return Err(Failure::usage(
                url,
                "the URL names no share: expected smb://host/share/directory",
            ));
        };
        let mut options = connect.options(url)?;
        options.channels = channels;
        Ok(Self {
            url: url.clone(),
            share,
            rdma: options.rdma.clone(),
            client: Client::new(options).map_err(|error| failure_of(url, &error))?,
            credentials: connect.credentials(url)?,
        })
    }

    /// Connects, logs in and connects to the share.
    pub(crate) async fn share(&self) -> Result<Share, Error> {
        let (host, port) = (&self.url.host, self.url.port);
        let session = self.client.connect(host, port, &self.credentials).await?;
        session.share(&self.share).await
    }
}
