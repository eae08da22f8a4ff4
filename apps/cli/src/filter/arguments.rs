//! The options `--exclude`, `--include` and `--filter-from`. Their order on the command line is the
//! order of their rules.

use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::{Filter, Pattern, Rule, rules_file};
use crate::failure::Outcome;

const EXCLUDE: &str = "exclude";
const INCLUDE: &str = "include";
const FILTER_FROM: &str = "filter_from";

/// The options that choose files, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilterArguments(Vec<Step>);

/// One option.
#[derive(Clone, Debug)]
enum Step {
    Rule(Rule),
    File(PathBuf),
}

impl FilterArguments {
    /// The rules of the options and of the files that they name.
    pub(crate) fn filter(&self) -> Outcome<Filter> {
        let mut rules = Vec::new();
        for step in &self.0 {
            match step {
                Step::Rule(rule) => rules.push(rule.clone()),
                Step::File(path) => rules_file::read(path, &mut rules)?,
            }
        }
        Ok(Filter::new(rules))
    }
}

/// The values of an option with their places on the command line.
fn steps<T: Clone + Send + Sync + 'static>(
    matches: &ArgMatches,
    id: &str,
    step: impl Fn(T) -> Step,
) -> Vec<(usize, Step)> {
    let places = matches.indices_of(id).into_iter().flatten();
    let values = matches.get_many::<T>(id).into_iter().flatten().cloned();
    places.zip(values.map(step)).collect()
}

impl FromArgMatches for FilterArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let rule = |is_include| {
            move |pattern| {
                Step::Rule(Rule {
                    is_include,
                    pattern,
                })
            }
        };
        let mut all = steps(matches, EXCLUDE, rule(false));
        all.extend(steps(matches, INCLUDE, rule(true)));
        all.extend(steps(matches, FILTER_FROM, Step::File));
        all.sort_by_key(|(place, _)| *place);
        Ok(Self(all.into_iter().map(|(_, step)| step).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn argument(
    id: &'static str,
    name: &'static str,
    value: &'static str,
    parser: impl Into<ValueParser>,
) -> Arg {
    Arg::new(id)
        .long(name)
        .value_name(value)
        .action(ArgAction::Append)
        .value_parser(parser)
        .help_heading("Filter")
}

impl Args for FilterArguments {
    fn augment_args(command: Command) -> Command {
        let exclude = argument(EXCLUDE, "exclude", "PATTERN", Pattern::parse as Parse).help(
            "Leave out files and directories that match the pattern. `*` and `?` match within a \
             name, `**` also across directories; `/` at the start is the root of the transfer, \
             and `/` at the end limits the pattern to directories. The first option that matches \
             decides, of --exclude, --include and --filter-from. --delete does not remove what is \
             left out",
        );
        let include = argument(INCLUDE, "include", "PATTERN", Pattern::parse as Parse).help(
            "Keep files and directories that match the pattern, although a later --exclude matches \
             them. If all options include, files that match none of them are left out",
        );
        let from = argument(
            FILTER_FROM,
            "filter-from",
            "FILE",
            clap::value_parser!(PathBuf),
        );
        let from = from.help(
            "Read rules from a file: `- PATTERN` excludes, `+ PATTERN` includes, `!` removes the \
             rules before it, and lines with `#` are comments. `-` is standard input",
        );
        command.args([exclude, include, from])
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Parses a pattern of an option.
type Parse = fn(&str) -> Result<Pattern, String>;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        filter: FilterArguments,
    }

    #[test]
    fn rules_have_the_order_of_the_command_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("rules");
        std::fs::write(&file, "- b*\n").expect("a file");
        let filter = |arguments: &[&str]| {
            let line = Line::try_parse_from([&["x"], arguments].concat()).expect("options");
            line.filter.filter().expect("rules")
        };
        let from = format!("--filter-from={}", file.display());
        let one = filter(&["--include", "bc", &from, "--exclude", "c*"]);
        assert!(one.includes(Path::new("bc"), false) && !one.includes(Path::new("bd"), false));
        assert!(!one.includes(Path::new("c"), false) && one.includes(Path::new("d"), false));
        let other = filter(&[&from, "--include", "bc"]);
        assert!(!other.includes(Path::new("bc"), false));
        assert!(filter(&[]).is_empty());
        assert!(Line::try_parse_from(["x", "--exclude", "["]).is_err());
    }
}
