//! `smbeam ln`: creates hard links and symbolic links.

use clap::Args;
use smbeam_client::Wait as _;

use crate::connect::{ConnectArguments, Connector};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FilePath, Kind};
use crate::location;
use crate::location::Url;
use crate::report::Report;

/// Arguments of `smbeam ln`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file of the new name: a URL. With --symbolic the text of the link, such as ../a/file or
    /// /absolute/path; it need not exist.
    #[arg(value_name = "TARGET")]
    target: String,
    /// The URL of the new name, or of a directory, which gets a link with the name of the target.
    #[arg(value_name = "URL", value_parser = location::url)]
    link: Url,
    /// Create a symbolic link.
    #[arg(short, long)]
    symbolic: bool,
    /// Replace an existing file or link.
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam ln`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    report.take(arguments.link());
}

impl Arguments {
    fn link(&self) -> Outcome {
        let connector = Connector::new(&self.connect);
        let link = self.place(&connector)?;
        if self.force
            && let Some(old) = link.lookup(false)?
            && old.kind != Kind::Directory
        {
            link.force_remove(old.kind)?;
        }
        match self.symbolic {
            true => self.symlink(&link),
            false => {
                let url = location::url(&self.target);
                let url = url.map_err(|error| Failure::from((self.target.as_str(), error)))?;
                connector.file_path(&url)?.hard_link(&link)
            }
        }
    }

    /// The path of the new name: the URL, or in a directory the name of the target.
    fn place(&self, connector: &Connector) -> Outcome<FilePath> {
        let link = connector.file_path(&self.link)?;
        let is_directory = link.lookup(false)?.is_some_and(|info| info.is_directory());
        if !is_directory {
            return Ok(link);
        }
        let name = self.target.trim_end_matches('/').rsplit(['/', '\\']).next();
        let name = name.filter(|name| !name.is_empty()).unwrap_or("link");
        link.join(name)
            .map_err(|error| Failure::name(&self.target, error))
    }

    fn symlink(&self, link: &FilePath) -> Outcome {
        let FilePath::Remote(remote) = link else {
            return Err(Failure::new(Exit::Usage, link, "not on a server"));
        };
        let is_directory = self.leads_to_directory(link);
        let made = remote
            .share
            .symlink(&self.target, &remote.path, is_directory);
        made.wait().map_err(remote.failed())
    }

    /// Whether the target is a directory now: Windows distinguishes both kinds of links.
    fn leads_to_directory(&self, link: &FilePath) -> bool {
        let is_plain = !self.target.starts_with('/') && !self.target.split('/').any(|c| c == "..");
        let parent = link.parent().filter(|_| is_plain);
        let target = parent.and_then(|parent| parent.descendant(self.target.as_ref()).ok());
        let info = target.and_then(|target| target.lookup(true).ok().flatten());
        info.is_some_and(|info| info.is_directory())
    }
}
