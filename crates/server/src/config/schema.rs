//! The keys of the configuration, as the types of the sections have them.

use std::fmt;

use schemars::generate::SchemaSettings;
use serde::de::{Deserialize, Deserializer, Visitor};
use serde_json::Value as Json;
use toml::{Table, Value};

use super::{
    AuditSection, Config, LimitsSection, LogSection, MetricsSection, QuicSection, RdmaSection,
    SecuritySection, ServerSection, ShareSection, TcpSection,
};

/// A key of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Full name, such as `server.workers`.
    pub name: String,
    /// Name of its section; `share` for the keys of shares.
    pub section: String,
    /// Name within its section.
    pub key: String,
    /// Type of the value.
    pub kind: Kind,
    /// Description for users, in sentences.
    pub description: String,
    /// The default; `None` if the key has no value by default.
    pub default: Option<Value>,
    /// The accepted texts; empty if any text may be valid.
    pub choices: Vec<String>,
}

/// The type of the value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// A number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A list of texts.
    List,
}

/// Returns the JSON schema of configuration files.
pub fn schema() -> Json {
    root(false)
}

fn root(inline: bool) -> Json {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = inline;
    });
    settings
        .into_generator()
        .into_root_schema_for::<Config>()
        .to_value()
}

/// Returns all keys, in the order of the sections and of their types. The key `include` is not
/// among them.
pub fn keys() -> Vec<Key> {
    let root = root(true);
    let properties = &root["properties"];
    let defaults = Table::try_from(Config::default()).expect("values of TOML");
    let share = ShareSection::new("", std::path::Path::new(""), false);
    let share = Table::try_from(share).expect("values of TOML");
    let mut keys = Vec::new();
    for section in fields::<Config>().iter().filter(|name| **name != "include") {
        let (schema, defaults) = match *section {
            "share" => (&properties["share"]["items"], Some(&share)),
            _ => (
                &properties[*section],
                defaults.get(*section).and_then(Value::as_table),
            ),
        };
        let default_of = |key: &str| defaults.and_then(|defaults| defaults.get(key)).cloned();
        let properties = schema["properties"].as_object();
        let properties = properties.expect("a section has keys");
        for key in ordered(section, properties.keys()) {
            let is_required = matches!((*section, &*key), ("share", "name" | "path"));
            keys.push(Key {
                name: format!("{section}.{key}"),
                section: (*section).to_owned(),
                kind: kind(&properties[&key]),
                description: description(&properties[&key]),
                default: default_of(&key).filter(|_| !is_required),
                choices: choices(&properties[&key]),
                key,
            });
        }
    }
    keys
}

/// The keys of a section in the order of its type.
fn ordered<'a>(section: &str, keys: impl Iterator<Item = &'a String>) -> Vec<String> {
    let order = match section {
        "server" => fields::<ServerSection>(),
        "security" => fields::<SecuritySection>(),
        "tcp" => fields::<TcpSection>(),
        "quic" => fields::<QuicSection>(),
        "rdma" => fields::<RdmaSection>(),
        "limits" => fields::<LimitsSection>(),
        "log" => fields::<LogSection>(),
        "audit" => fields::<AuditSection>(),
        "metrics" => fields::<MetricsSection>(),
        "share" => fields::<ShareSection>(),
        // A further section is in alphabetic order.
        _ => &[],
    };
    let place = |key: &String| order.iter().position(|known| known == key);
    let mut keys: Vec<String> = keys.cloned().collect();
    keys.sort_by_key(|key| (place(key).unwrap_or(order.len()), key.clone()));
    keys
}

fn kind(schema: &Json) -> Kind {
    let of_name = |name: &str| match name {
        "integer" => Some(Kind::Integer),
        "boolean" => Some(Kind::Boolean),
        "array" => Some(Kind::List),
        _ => None,
    };
    let types = match &schema["type"] {
        Json::String(name) => vec![&**name],
        Json::Array(names) => names.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    };
    types.into_iter().find_map(of_name).unwrap_or(Kind::Text)
}

fn description(schema: &Json) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    plain(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A description without the marks of doc comments.
fn plain(description: &str) -> String {
    let text = description.replace("[`", "`").replace("`]", "`");
    text.replace("`None` (the default)", "Not set (the default)")
        .replace("`None`", "Not set")
}

/// The accepted texts of an enumeration, in any of the forms of a schema.
fn choices(schema: &Json) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(texts) = schema["enum"].as_array() {
        found.extend(texts.iter().filter_map(Json::as_str).map(str::to_owned));
    }
    found.extend(schema["const"].as_str().map(str::to_owned));
    for form in ["oneOf", "anyOf"] {
        let variants = schema[form].as_array().into_iter().flatten();
        found.extend(variants.flat_map(choices));
    }
    found
}

/// The names of the fields of a type, in its order.
fn fields<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    match T::deserialize(FieldNames) {
        Ok(_) => &[],
        Err(Found(fields)) => fields,
    }
}

/// A source of no value: it reports the fields that a type asks for.
struct FieldNames;

/// The fields of a type, in the place of an error.
#[derive(Debug)]
struct Found(&'static [&'static str]);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Found {}

impl serde::de::Error for Found {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }
}

impl<'de> Deserializer<'de> for FieldNames {
    type Error = Found;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Found> {
        Err(Found(&[]))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Found> {
        Err(Found(fields))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        let found = keys().into_iter().find(|key| key.name == name);
        found.unwrap_or_else(|| panic!("no key {name}"))
    }

    #[test]
    fn keys_have_their_type_default_and_description() {
        let workers = key("server.workers");
        assert_eq!(
            (workers.kind, workers.default),
            (Kind::Integer, Some(Value::Integer(0)))
        );
        assert!(
            workers
                .description
                .starts_with("Number of threads that serve connections")
        );
        assert_eq!(key("server.listen").kind, Kind::List);
        assert_eq!(key("server.listen").default, None);
        assert_eq!(key("share.read_only").default, Some(Value::Boolean(false)));
        assert_eq!(key("share.path").default, None);
        assert_eq!(key("server.io").choices, ["auto", "uring", "epoll"]);
        assert_eq!(key("rdma.provider").choices, ["verbs", "emulated"]);
        assert_eq!(
            key("quic.client_certificates").choices,
            ["no", "optional", "required"]
        );
        assert_eq!(key("limits.max_read").kind, Kind::Integer);
    }

    #[test]
    fn the_list_of_sections_is_complete() {
        assert_eq!(fields::<Config>()[1..], super::super::SECTIONS);
    }

    #[test]
    fn keys_are_in_the_order_of_their_types() {
        let keys = keys();
        let names: Vec<&str> = keys.iter().map(|key| &*key.name).collect();
        assert_eq!(
            names[..3],
            ["server.name", "server.comment", "server.listen"]
        );
        let last = names.last().copied();
        assert_eq!(last, Some("share.audit"));
        assert!(keys.iter().all(|key| !key.description.is_empty()));
    }
}
