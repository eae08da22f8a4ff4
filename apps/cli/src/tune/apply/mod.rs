//! `smbeam tune --apply` and `--undo`: safe changes, and the state before them.
//!
//! The record of the state before is on disk before the first change, so `--undo` also works after
//! a crash.

mod file;
mod record;
mod sysctl;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use rustix::process::geteuid;
use smbeam_server::tune::{Change, Finding};

use self::record::{FileRecord, Record};
use super::configuration::load;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output;

/// The files that `--apply` writes.
#[derive(Debug, Args)]
pub(super) struct Files {
    /// File for parameters of the kernel, which the system sets at its start.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/sysctl.d/60-smbeam.conf"
    )]
    sysctl_file: PathBuf,
    /// File for keys of the configuration [default: conf.d/60-tune.toml beside the configuration
    /// file]. The configuration file must include it.
    #[arg(long, value_name = "FILE")]
    fragment: Option<PathBuf>,
    /// File for the values before --apply, which --undo reads.
    #[arg(long, value_name = "FILE", default_value = "/var/lib/smbeam/tune.json")]
    record: PathBuf,
}

/// Comment at the start of written files.
const HEADER: &str = "# Written by `smbeam tune --apply`; `smbeam tune --undo` removes it.\n";

/// The changes of findings.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    sysctls: BTreeMap<String, String>,
    /// Keys of the configuration by section.
    keys: BTreeMap<String, BTreeMap<String, String>>,
}

impl Plan {
    fn of(findings: &[Finding]) -> Self {
        let mut plan = Self::default();
        for change in findings.iter().flat_map(|finding| &finding.changes) {
            match change {
                Change::Sysctl { key, value } => {
                    plan.sysctls.insert(key.clone(), value.clone());
                }
                Change::Config { key, value } => {
                    let (section, name) = key.split_once('.').unwrap_or(("server", key));
                    let section = plan.keys.entry(section.to_owned()).or_default();
                    section.insert(name.to_owned(), value.clone());
                }
            }
        }
        plan
    }

    fn sysctl_text(&self) -> String {
        let lines = self
            .sysctls
            .iter()
            .map(|(key, value)| format!("{key} = {value}\n"));
        HEADER.to_owned() + &lines.collect::<String>()
    }

    fn fragment_text(&self) -> String {
        let sections = self.keys.iter().map(|(section, keys)| {
            let lines = keys.iter().map(|(key, value)| format!("{key} = {value}\n"));
            format!("[{section}]\n{}", lines.collect::<String>())
        });
        HEADER.to_owned() + &sections.collect::<String>()
    }
}

/// Applies the changes of findings. `configuration` is the configuration file of the server.
pub(super) fn apply(
    findings: &[Finding],
    configuration: Option<&Path>,
    files: &Files,
    is_dry: bool,
) -> Outcome {
    let plan = Plan::of(findings);
    let fragment = fragment(configuration, files).filter(|_| !plan.keys.is_empty());
    let (fragment, left) = included(configuration, fragment)?;
    if let Some(left) = left {
        output::note(&left);
    }
    if is_dry {
        show(&plan, fragment.as_deref(), files);
        return Ok(());
    }
    require_root()?;
    if files.record.exists() {
        let why = "changes of an earlier --apply are in effect: run smbeam tune --undo first";
        return Err(Failure::new(Exit::Exists, files.record.display(), why));
    }
    if plan.sysctls.is_empty() && fragment.is_none() {
        output::line(&"nothing to apply");
        return Ok(());
    }
    let record = before(&plan, fragment.as_deref(), files)?;
    record.save(&files.record)?;
    let applied = change(&plan, configuration, fragment.as_deref(), files);
    if let Err(failure) = applied {
        // The first failure says more than one of the way back.
        let _ = restore(&record, files);
        return Err(failure);
    }
    output::line(&format_args!(
        "smbeam tune --undo takes the changes back ({})",
        files.record.display()
    ));
    Ok(())
}

fn require_root() -> Outcome {
    match geteuid().is_root() {
        true => Ok(()),
        false => {
            let why = "parameters of the kernel and files of the system belong to root: run the \
                command as root, or look at the changes with --dry-run";
            Err(Failure::new(Exit::Denied, "this machine", why))
        }
    }
}

/// The file for keys of the configuration.
fn fragment(configuration: Option<&Path>, files: &Files) -> Option<PathBuf> {
    let beside = || Some(configuration?.parent()?.join("conf.d/60-tune.toml"));
    configuration?;
    files.fragment.clone().or_else(beside)
}

/// The file, if the configuration includes it, else the reason why `--apply` does not write it.
fn included(
    configuration: Option<&Path>,
    fragment: Option<PathBuf>,
) -> Outcome<(Option<PathBuf>, Option<String>)> {
    let (Some(main), Some(fragment)) = (configuration, fragment) else {
        return Ok((None, None));
    };
    let patterns = load(main)?.include;
    let directory = main.parent().unwrap_or(Path::new("."));
    let is_match = |pattern: &String| {
        let pattern = directory.join(pattern);
        let name = pattern
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let glob = globset::Glob::new(&name).map(|glob| glob.compile_matcher());
        let name = fragment.file_name().unwrap_or_default();
        pattern.parent() == fragment.parent() && glob.is_ok_and(|glob| glob.is_match(name))
    };
    if patterns.iter().any(is_match) {
        return Ok((Some(fragment), None));
    }
    let why = format!(
        "{} does not include {}, so --apply changes no key of the configuration. Its first line \
         would be: include = [\"conf.d/*.toml\"]",
        main.display(),
        fragment.display()
    );
    Ok((None, Some(why)))
}

/// Prints what `--apply` does.
fn show(plan: &Plan, fragment: Option<&Path>, files: &Files) {
    for (key, value) in &plan.sysctls {
        let present = sysctl::read(key).unwrap_or_else(|_| "unknown".to_owned());
        output::line(&format_args!("would set {key} = {value} (now {present})"));
    }
    if !plan.sysctls.is_empty() {
        let file = files.sysctl_file.display();
        output::line(&format_args!(
            "would write {file}:\n{}",
            plan.sysctl_text().trim_end()
        ));
    }
    if let Some(fragment) = fragment {
        let file = fragment.display();
        output::line(&format_args!(
            "would write {file}:\n{}",
            plan.fragment_text().trim_end()
        ));
    }
}

/// The state before the changes.
fn before(plan: &Plan, fragment: Option<&Path>, files: &Files) -> Outcome<Record> {
    let mut record = Record::default();
    for key in plan.sysctls.keys() {
        for key in [Some(key.as_str()), sysctl::counterpart(key)]
            .into_iter()
            .flatten()
        {
            record.sysctls.insert(key.to_owned(), sysctl::read(key)?);
        }
    }
    let sysctl_file = Some(files.sysctl_file.as_path()).filter(|_| !plan.sysctls.is_empty());
    for path in [sysctl_file, fragment].into_iter().flatten() {
        record.directories.extend(file::missing_directories(path));
        record.files.push(FileRecord::of(path)?);
    }
    Ok(record)
}

fn change(
    plan: &Plan,
    configuration: Option<&Path>,
    fragment: Option<&Path>,
    files: &Files,
) -> Outcome {
    for (key, value) in &plan.sysctls {
        sysctl::write(key, value)?;
        output::line(&format_args!("set {key} = {value}"));
    }
    if !plan.sysctls.is_empty() {
        file::write(&files.sysctl_file, &plan.sysctl_text())?;
        output::line(&format_args!("wrote {}", files.sysctl_file.display()));
    }
    match (configuration, fragment) {
        (Some(configuration), Some(fragment)) => write_fragment(plan, configuration, fragment),
        _ => Ok(()),
    }
}

/// Writes the fragment. It must be a part of the configuration, and the configuration must be
/// valid.
fn write_fragment(plan: &Plan, configuration: &Path, fragment: &Path) -> Outcome {
    file::write(fragment, &plan.fragment_text())?;
    let config = load(configuration)?;
    let origin = |key: &str| config.origin(key).map(|place| place.to_string());
    let keys = plan
        .keys
        .iter()
        .flat_map(|(section, keys)| keys.keys().map(move |key| format!("{section}.{key}")));
    let name = fragment.file_name().unwrap_or_default().to_string_lossy();
    for key in keys {
        let is_used = origin(&key).is_some_and(|origin| origin.contains(&*name));
        if !is_used {
            let why = format!(
                "the configuration does not include {}: add include = [\"conf.d/*.toml\"] as its \
                 first line",
                fragment.display()
            );
            return Err(Failure::usage(configuration.display(), why));
        }
    }
    output::line(&format_args!(
        "wrote {}: smbeam reload, or a restart for keys of [server]",
        fragment.display()
    ));
    Ok(())
}

/// Takes the changes of the last `--apply` back.
pub(super) fn undo(files: &Files, is_dry: bool) -> Outcome {
    let record = Record::load(&files.record)?;
    if is_dry {
        for (key, value) in &record.sysctls {
            output::line(&format_args!("would set {key} = {value}"));
        }
        for file in &record.files {
            let word = match file.content {
                Some(_) => "restore",
                None => "remove",
            };
            output::line(&format_args!("would {word} {}", file.path.display()));
        }
        return Ok(());
    }
    require_root()?;
    restore(&record, files)?;
    output::line(&"the values and files are as before --apply");
    Ok(())
}

/// Restores the state of a record, and removes the record.
fn restore(record: &Record, files: &Files) -> Outcome {
    for file in &record.files {
        file.restore()?;
    }
    file::remove_directories(&record.directories);
    sysctl::restore(&record.sysctls)?;
    Record::remove(&files.record)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn finding(changes: Vec<Change>) -> Finding {
        Finding {
            changes,
            ..Finding::new("tune-a", "kernel", "slow")
        }
    }

    fn key(key: &str, value: &str) -> Change {
        let (key, value) = (key.to_owned(), value.to_owned());
        Change::Config { key, value }
    }

    #[test]
    fn a_plan_has_the_texts_of_the_files() {
        let sysctl = Change::Sysctl {
            key: "vm.swappiness".to_owned(),
            value: "10".to_owned(),
        };
        let keys = vec![
            key("limits.credits", "64"),
            key("server.workers", "0"),
            sysctl,
        ];
        let plan = Plan::of(&[finding(keys)]);
        assert_eq!(plan.sysctl_text(), format!("{HEADER}vm.swappiness = 10\n"));
        let expected = format!("{HEADER}[limits]\ncredits = 64\n[server]\nworkers = 0\n");
        assert_eq!(plan.fragment_text(), expected);
    }

    #[test]
    fn a_fragment_must_be_included() {
        let directory = tempfile::tempdir().expect("a directory");
        let main = directory.path().join("smbeam.toml");
        let plan = Plan::of(&[finding(vec![key("limits.credits", "64")])]);
        let files = Files {
            sysctl_file: directory.path().join("sysctl.conf"),
            fragment: None,
            record: directory.path().join("tune.json"),
        };
        let fragment = fragment(Some(&main), &files).expect("a configuration");
        fs::write(&main, "[server]\nworkers = 1\n").expect("a file");
        let record = before(&plan, Some(&fragment), &files).expect("a state");
        record.save(&files.record).expect("a file");
        let refused = change(&plan, Some(&main), Some(&fragment), &files);
        let refused = refused.expect_err("no include");
        assert!(refused.to_string().contains("include ="), "{refused}");
        fs::write(&main, "include = [\"conf.d/*.toml\"]\n").expect("a file");
        change(&plan, Some(&main), Some(&fragment), &files).expect("included");
        assert_eq!(load(&main).expect("good").limits.credits, 64);
        restore(&record, &files).expect("the state before");
        assert!(!fragment.exists() && !directory.path().join("conf.d").exists());
        assert!(!files.record.exists());
    }
}
