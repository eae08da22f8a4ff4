//! The sources of a configuration, from the weakest to the strongest: a file with its included
//! files, environment variables, and options of the command line.

use std::path::{Path, PathBuf};

use super::Config;
use super::error::ConfigError;
use super::include;
use super::merge::Merged;
use super::read::read;
use super::sources::{Origin, Source, Sources};
use super::variables;

/// The sources of a configuration. Later ones override earlier ones: the file and the files that it
/// includes, then environment variables, then options of the command line.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    file: Option<PathBuf>,
    variables: Vec<(String, String)>,
    options: Vec<(String, String)>,
}

impl Layers {
    /// Makes the sources of a configuration file alone; without a file, all values are defaults.
    pub fn new(file: Option<&Path>) -> Self {
        Self {
            file: file.map(Path::to_owned),
            ..Self::default()
        }
    }

    /// Adds the environment variables of this process, such as `SMBEAM_SERVER__LISTEN`.
    #[must_use]
    pub fn with_environment(self) -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            Some((name, value.to_string_lossy().into_owned()))
        });
        self.with_variables(variables)
    }

    /// Adds these environment variables. Only those that name a key of the configuration count.
    #[must_use]
    pub fn with_variables(mut self, variables: impl Iterator<Item = (String, String)>) -> Self {
        self.variables = variables
            .filter(|(name, _)| variables::is_meant(name))
            .collect();
        // The order of an environment is arbitrary, and that of new shares must not be.
        self.variables.sort();
        self
    }

    /// Adds an option of the command line, such as `--io`. `text` is the text of a configuration
    /// file with its value, such as `[server]` and `io = "uring"` on two lines.
    #[must_use]
    pub fn with_option(mut self, option: &str, text: String) -> Self {
        self.options.push((option.to_owned(), text));
        self
    }

    /// Returns whether any environment variable sets a key.
    pub fn has_variables(&self) -> bool {
        !self.variables.is_empty()
    }

    /// Returns the configuration file.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Reads all sources, and checks the configuration.
    ///
    /// # Errors
    /// A file cannot be read, a text is malformed, or a value is invalid.
    pub fn load(&self) -> Result<Config, ConfigError> {
        let text = match &self.file {
            Some(file) => Some((&**file, read(file)?)),
            None => None,
        };
        self.parse(text.as_ref().map(|(file, text)| (*file, &**text)))
    }

    /// As [`load`](Self::load), with the text of the main file.
    pub(super) fn parse(&self, main: Option<(&Path, &str)>) -> Result<Config, ConfigError> {
        let mut sources = Sources::default();
        let mut files = 0;
        if let Some((file, text)) = main {
            sources.add(Origin::File(file.to_owned()), text);
            for (file, text) in include::files(&sources, file)? {
                sources.add(Origin::File(file), &text);
            }
            files = sources.len();
        }
        for (name, value) in &self.variables {
            let text = variables::text(name, value, &self.variables)
                .map_err(|what| ConfigError::of_variable(name, what))?;
            sources.add(Origin::Variable(name.clone()), &text);
        }
        for (option, text) in &self.options {
            sources.add(Origin::Option(option.clone()), text);
        }
        let texts: Vec<String> = (0..sources.len())
            .map(|number| sources.padded(number))
            .collect();
        let mut merged = Merged::new(&sources);
        for (number, text) in texts.iter().enumerate() {
            match number {
                0 if files > 0 => merged.add_main(text)?,
                number if number < files => merged.add_included(text)?,
                _ => merged.add_override(text)?,
            }
        }
        let (mut config, values) = merged.deserialize()?;
        config.source = Source { sources, values };
        config.resolve(main.map_or(Path::new("smbeam.toml"), |(file, _)| file));
        config.check_values()?;
        Ok(config)
    }
}

impl Config {
    /// Reads, parses and checks a configuration file, with the files that it includes. Environment
    /// variables do not count: see [`Layers`].
    ///
    /// # Errors
    /// A file cannot be read, it is malformed, or a value is invalid.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        Layers::new(Some(file)).load()
    }

    /// Parses and checks the text `text` of a configuration file. `file` is the name of the file in
    /// errors; the function does not read it. Relative paths start at the directory of `file`.
    ///
    /// # Errors
    /// The text is malformed, or a value is invalid.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        Layers::new(None).parse(Some((file, text)))
    }
}
