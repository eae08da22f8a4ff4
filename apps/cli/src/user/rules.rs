//! `smbeam user rules`: shows or changes the rules for new passwords.

use auth::PasswordRules;
use clap::Args;
use serde_json::json;

use super::arguments::FileArgument;
use crate::output::line;

/// Arguments of `smbeam user rules`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArgument,
    /// Minimum number of characters of a password.
    #[arg(long, value_name = "CHARACTERS")]
    min_length: Option<u32>,
    /// Minimum number of the classes of characters in a password, up to 4: lower case, upper case,
    /// digits, and others.
    #[arg(long, value_name = "CLASSES")]
    min_classes: Option<u32>,
    /// Whether to refuse a password that contains the user name.
    #[arg(long, value_name = "true|false")]
    refuse_name: Option<bool>,
    /// Print the rules as a JSON object.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Runs the command: changes the rules if an option gives a new value, and prints them.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let Self {
            file,
            min_length,
            min_classes,
            refuse_name,
            json,
        } = self;
        let mut users = file.load()?;
        if min_length.is_some() || min_classes.is_some() || refuse_name.is_some() {
            users.set_rules(|rules| {
                rules.min_length = min_length.unwrap_or(rules.min_length);
                rules.min_classes = min_classes.unwrap_or(rules.min_classes);
                rules.refuse_name = refuse_name.unwrap_or(rules.refuse_name);
            })?;
        }
        print(&users.users().rules, *json);
        Ok(())
    }
}

fn print(rules: &PasswordRules, json: bool) {
    let PasswordRules {
        min_length,
        min_classes,
        refuse_name,
    } = rules;
    if json {
        line(&json!({
            "min_length": min_length,
            "min_classes": min_classes,
            "refuse_name": refuse_name,
        }));
        return;
    }
    line(&format_args!("min_length = {min_length}"));
    line(&format_args!("min_classes = {min_classes}"));
    line(&format_args!("refuse_name = {refuse_name}"));
}
