//! Puts the texts of a configuration together.

use std::ops::Range;

use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use super::Config;
use super::alias::replace_aliases;
use super::error::ConfigError;
use super::near::nearest;
use super::quic::FORMER_KEY;
use super::schema::{Key, keys};
use super::sources::{Sources, Values};
use super::variables::share_part;

type KeyText<'a> = Spanned<DeString<'a>>;

/// The texts of a configuration as one tree.
pub(super) struct Merged<'a> {
    sources: &'a Sources,
    known: Vec<Key>,
    root: DeTable<'a>,
}

impl<'a> Merged<'a> {
    pub(super) fn new(sources: &'a Sources) -> Self {
        Self {
            sources,
            known: keys(),
            root: DeTable::new(),
        }
    }

    /// Adds the main file.
    pub(super) fn add_main(&mut self, text: &'a str) -> Result<(), ConfigError> {
        self.root = self.parse(text)?;
        Ok(())
    }

    /// Adds a file that the main file includes: tables merge, and lists of shares append.
    pub(super) fn add_included(&mut self, text: &'a str) -> Result<(), ConfigError> {
        for (section, value) in self.parse(text)? {
            if section.get_ref() == "include" {
                let what = "include: only the main file can include files".to_owned();
                return Err(ConfigError::at(self.sources, &section.span(), what));
            }
            self.add(section, value)?;
        }
        Ok(())
    }

    /// Adds values that override present ones.
    pub(super) fn add_override(&mut self, text: &'a str) -> Result<(), ConfigError> {
        for (section, value) in self.parse(text)? {
            match value.into_inner() {
                DeValue::Table(keys) => {
                    let span = section.span();
                    let present = self.root.entry(section);
                    let empty = || Spanned::new(span, DeValue::Table(DeTable::new()));
                    if let DeValue::Table(present) = present.or_insert_with(empty).get_mut() {
                        for (key, value) in keys {
                            present.remove(&**key.get_ref());
                            present.insert(key, value);
                        }
                    }
                }
                DeValue::Array(shares) => {
                    for share in shares {
                        self.override_share(&section, share);
                    }
                }
                _ => unreachable!("an override has sections"),
            }
        }
        Ok(())
    }

    fn parse(&self, text: &'a str) -> Result<DeTable<'a>, ConfigError> {
        let parsed = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or_default();
            ConfigError::at(self.sources, &span, error.message().to_owned())
        })?;
        let mut root = parsed.into_inner();
        replace_aliases(self.sources, &mut root)?;
        self.check_sections(&root)?;
        Ok(root)
    }

    /// Adds a section of an included file.
    fn add(
        &mut self,
        section: KeyText<'a>,
        value: Spanned<DeValue<'a>>,
    ) -> Result<(), ConfigError> {
        let sources = self.sources;
        let Some(present) = self.root.get_mut(&**section.get_ref()) else {
            self.root.insert(section, value);
            return Ok(());
        };
        let span = value.span();
        match (present.get_mut(), value.into_inner()) {
            (DeValue::Table(present), DeValue::Table(keys)) => {
                for (key, value) in keys {
                    if let Some((first, _)) = present.get_key_value(&**key.get_ref()) {
                        let first = first.span();
                        let name = format!("{}.{}", section.get_ref(), key.get_ref());
                        return Err(twice(sources, &name, &first, &key.span()));
                    }
                    present.insert(key, value);
                }
                Ok(())
            }
            (DeValue::Array(present), DeValue::Array(shares)) => {
                shares.into_iter().for_each(|share| present.push(share));
                Ok(())
            }
            // The types of both are wrong, or of one.
            _ => Err(twice(sources, section.get_ref(), &present.span(), &span)),
        }
    }

    /// Overrides the keys of a share, or adds it.
    fn override_share(&mut self, section: &KeyText<'a>, share: Spanned<DeValue<'a>>) {
        let empty = || Spanned::new(section.span(), DeValue::Array(DeArray::new()));
        let shares = self.root.entry(section.clone()).or_insert_with(empty);
        let DeValue::Array(shares) = shares.get_mut() else {
            return;
        };
        let name = name_of(&share).map(share_part);
        let same = |other: &&mut Spanned<DeValue<'a>>| name_of(other).map(share_part) == name;
        let span = share.span();
        let DeValue::Table(keys) = share.into_inner() else {
            return;
        };
        let Some(present) = shares.iter_mut().find(same) else {
            return shares.push(Spanned::new(span, DeValue::Table(keys)));
        };
        if let DeValue::Table(present) = present.get_mut() {
            for (key, value) in keys.into_iter().filter(|(key, _)| key.get_ref() != "name") {
                present.remove(&**key.get_ref());
                present.insert(key, value);
            }
        }
    }

    /// Checks the names of sections and keys.
    fn check_sections(&self, root: &DeTable<'a>) -> Result<(), ConfigError> {
        for (section, value) in root {
            let name = &**section.get_ref();
            let is_known = name == "include" || super::SECTIONS.contains(&name);
            if !is_known {
                let what = self.unknown_section(name, value.get_ref());
                return Err(ConfigError::at(self.sources, &section.span(), what));
            }
            match (name, value.get_ref()) {
                ("include", DeValue::Array(files)) if files.iter().all(is_text) => {}
                ("share", DeValue::Array(shares)) if shares.iter().all(is_table) => {
                    let shares = shares.iter().filter_map(|share| share.get_ref().as_table());
                    shares
                        .into_iter()
                        .try_for_each(|keys| self.check_keys(name, keys))?;
                }
                ("include" | "share", _) | (_, DeValue::Array(_)) => {
                    return Err(self.wrong_section(section));
                }
                (_, DeValue::Table(keys)) => self.check_keys(name, keys)?,
                _ => return Err(self.wrong_section(section)),
            }
        }
        Ok(())
    }

    /// The error of a section of another form.
    fn wrong_section(&self, section: &KeyText<'_>) -> ConfigError {
        let name = section.get_ref();
        let what = match &**name {
            "include" => "include: write a list of files, such as [\"conf.d/*.toml\"]".to_owned(),
            "share" => "share: write [[share]], once for each share".to_owned(),
            name => format!("{name}: write [{name}], and its keys below"),
        };
        ConfigError::at(self.sources, &section.span(), what)
    }

    fn check_keys(&self, section: &str, keys: &DeTable<'a>) -> Result<(), ConfigError> {
        let of_section = || self.known.iter().filter(|key| key.section == section);
        for key in keys.keys() {
            let name = &**key.get_ref();
            let is_former = (section, name) == ("quic", FORMER_KEY);
            if is_former || of_section().any(|known| known.key == name) {
                continue;
            }
            let hint = match nearest(name, of_section().map(|known| &*known.key)) {
                Some(near) => format!(": did you mean `{near}`?"),
                None => self.hint(name),
            };
            let what = format!("{section}.{name}: unknown key{hint}");
            return Err(ConfigError::at(self.sources, &key.span(), what));
        }
        Ok(())
    }

    /// The section that a key belongs to.
    fn hint(&self, key: &str) -> String {
        let mut homes = self.known.iter().filter(|known| known.key == key);
        homes
            .next()
            .map_or_else(String::new, |home| match &*home.section {
                "share" => format!(": `{key}` belongs to [[share]]"),
                section => format!(": `{key}` belongs to [{section}]"),
            })
    }

    fn unknown_section(&self, name: &str, value: &DeValue<'_>) -> String {
        let is_section = match value {
            DeValue::Array(items) => items.iter().all(is_table),
            value => value.is_table(),
        };
        if !is_section {
            return format!("{name}: unknown key{}", self.hint(name));
        }
        match nearest(name, super::SECTIONS.into_iter()) {
            Some("share") => format!("{name}: unknown section: did you mean [[share]]?"),
            Some(near) => format!("{name}: unknown section: did you mean [{near}]?"),
            None => format!("{name}: unknown section{}", self.hint(name)),
        }
    }

    /// Makes the configuration. Its values are not checked.
    pub(super) fn deserialize(self) -> Result<(Config, Values), ConfigError> {
        let values = values(&self.root);
        let root = Spanned::new(0..0, self.root);
        let config = Config::deserialize(toml::Deserializer::from(root)).map_err(|error| {
            let span = error.span().unwrap_or_default();
            let what = described(&values, &span, error.message());
            ConfigError::at(self.sources, &span, what)
        })?;
        Ok((config, values))
    }
}

/// A key with two values.
fn twice(
    sources: &Sources,
    name: &str,
    first: &Range<usize>,
    second: &Range<usize>,
) -> ConfigError {
    let first = sources.place(first).map(|place| place.to_string());
    let what = format!("{name}: set twice: also in {}", first.unwrap_or_default());
    ConfigError::at(sources, second, what)
}

fn is_text(value: &Spanned<DeValue<'_>>) -> bool {
    value.get_ref().as_str().is_some()
}

fn is_table(value: &Spanned<DeValue<'_>>) -> bool {
    value.get_ref().is_table()
}

fn name_of<'a>(share: &'a Spanned<DeValue<'_>>) -> Option<&'a str> {
    share.get_ref().as_table()?.get("name")?.get_ref().as_str()
}

/// The offsets of all values.
fn values(root: &DeTable<'_>) -> Values {
    let mut values = Values::new();
    let mut add = |section: &str, keys: &DeTable<'_>| {
        for (key, value) in keys {
            values.insert(format!("{section}.{}", key.get_ref()), value.span());
        }
    };
    for (section, value) in root {
        match value.get_ref() {
            DeValue::Table(keys) => add(section.get_ref(), keys),
            DeValue::Array(shares) => {
                for (index, share) in shares.iter().enumerate() {
                    if let DeValue::Table(keys) = share.get_ref() {
                        add(&format!("{}.{index}", section.get_ref()), keys);
                    }
                }
            }
            _ => {}
        }
    }
    values
}

/// The message of a wrong type or value, with its key.
fn described(values: &Values, span: &Range<usize>, message: &str) -> String {
    if let Some(rest) = message.strip_prefix("missing field `") {
        let key = rest.trim_end_matches('`');
        return format!("share.{key}: a share needs this key");
    }
    let around = |value: &&Range<usize>| value.start <= span.start && span.end <= value.end;
    let found = values
        .iter()
        .find(|(_, value)| !span.is_empty() && around(value));
    match found {
        Some((key, _)) => format!("{}: {message}", plain(key)),
        None => message.to_owned(),
    }
}

/// A full key without the number of the share.
fn plain(key: &str) -> String {
    let is_number = |part: &&str| !part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = key.split('.').filter(is_number).collect();
    parts.join(".")
}
