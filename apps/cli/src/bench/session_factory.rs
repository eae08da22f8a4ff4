//! New sessions with one server, as many as a run wants.

use smbeam_client::{Channels, Client, Credentials, Error, RdmaChoice, Share};

use crate::client_failure::failure_of;
use crate::connect::ConnectArguments;
use crate::failure::{Failure, Outcome};
use crate::location::Url;

/// How to reach a server.
pub(crate) struct SessionFactory {
    /// The directory in which a run makes its own.
    pub(crate) url: Url,
    /// Who makes connections of SMB Direct.
    pub(crate) rdma: RdmaChoice,
    share: String,
    client: Client,
    credentials: Credentials,
}

impl SessionFactory {
    /// Asks for the password where one is needed; does not connect yet.
    pub(crate) fn new(connect: &ConnectArguments, url: &Url, channels: Channels) -> Outcome<Self> {
        let Some(share) = url.share.clone() else {
            return Err(Failure::usage(
                url,
                "no share is named: want smb://host/share/directory",
            ));
        };
        let mut options = connect.options();
        options.channels = channels;
        Ok(Self {
            url: url.clone(),
            share,
            rdma: options.rdma.clone(),
            client: Client::new(options).map_err(|error| failure_of(url, &error))?,
            credentials: connect.login.for_url(url)?,
        })
    }

    /// Logs in and enters the share.
    pub(crate) async fn share(&self) -> Result<Share, Error> {
        let (host, port) = (&self.url.host, self.url.port);
        let session = self.client.connect(host, port, &self.credentials).await?;
        session.share(&self.share).await
    }
}
