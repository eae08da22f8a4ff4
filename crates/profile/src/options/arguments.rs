//! Options in the form of the command line, as remotes have them.

use super::names::is_switch;
use super::{ConnectOptions, OptionError};

/// Options of the command line that have no effect on a connection, and whether a value follows.
const OF_THE_LOG: [(&str, bool); 2] = [("verbose", false), ("log-level", true)];

impl ConnectOptions {
    /// Sets options in the form of the command line, such as `--channels=2`, `--channels` `2` and
    /// `--encrypt`: those of a [`Location`](crate::Location). Options of the log are ignored.
    ///
    /// # Errors
    /// An argument is not a connection option, or its value is not accepted.
    pub fn set_arguments<T: AsRef<str>>(&mut self, arguments: &[T]) -> Result<(), OptionError> {
        let mut rest = arguments.iter().map(AsRef::as_ref);
        while let Some(argument) = rest.next() {
            if let Some(long) = argument.strip_prefix("--") {
                self.set_long(long, &mut rest)?;
            } else if let Some(user) = argument.strip_prefix("-U") {
                self.set_user(user, &mut rest)?;
            } else if !is_verbose(argument) {
                return Err(OptionError::Argument(argument.to_owned()));
            }
        }
        Ok(())
    }

    fn set_long<'a>(
        &mut self,
        argument: &str,
        rest: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), OptionError> {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument, None),
        };
        let log = OF_THE_LOG.iter().find(|(known, _)| *known == name);
        let has_value = match log {
            Some((_, has_value)) => *has_value,
            None => !is_switch(name)?,
        };
        let value = match (value, has_value) {
            (Some(value), _) => value,
            (None, false) => "",
            (None, true) => rest
                .next()
                .ok_or_else(|| OptionError::NoValue(name.to_owned()))?,
        };
        match log {
            Some(_) => Ok(()),
            None => self.set(name, value),
        }
    }

    /// Sets the user of `-U alice`, `-Ualice` or `-U=alice`.
    fn set_user<'a>(
        &mut self,
        attached: &str,
        rest: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), OptionError> {
        let user = match attached {
            "" => rest.next(),
            _ => attached.strip_prefix('=').or(Some(attached)),
        };
        let user = user.ok_or_else(|| OptionError::NoValue("user".to_owned()))?;
        self.set("user", user)
    }
}

/// Whether an argument is `-v`, `-vv` and so on.
fn is_verbose(argument: &str) -> bool {
    let flags = argument.strip_prefix('-').unwrap_or_default();
    !flags.is_empty() && flags.chars().all(|flag| flag == 'v')
}
