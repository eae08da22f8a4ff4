use proto::audit::{Closing, Name, Object, Opening};
use proto::login::AccountKind;
use proto::path::SharePath;
use proto::report::ShareRefusal;
use wire::SessionId;
use wire::access::{AccessMask, CreateDisposition};
use wire::create::CreateAction;
use wire::query_info::SecurityInformation;

use super::*;

/// The manual page with the table of fields and the examples.
const DOCUMENTATION: &str = include_str!("../../../../../docs/audit.md");

fn event(action: Action) -> Event {
    Event {
        session: Some(SessionId(0x1234)),
        user: "alice".to_owned(),
        kind: AccountKind::Named,
        share: Some("data".to_owned()),
        object: Some(Object {
            name: Name::Path(SharePath::from_trusted("a/b")),
            is_directory: Some(false),
            open: Some(0x4000_0000_0000_0001),
        }),
        action,
        status: Status::SUCCESS,
    }
}

fn json(record: &Record) -> Value {
    let target = AuditTarget::File("/log".into());
    let line = record.encode(&target);
    assert_eq!(line.last(), Some(&b'\n'));
    serde_json::from_slice(&line).expect("a line of JSON")
}

fn record(action: Action) -> Value {
    let client = Client {
        peer: "[::ffff:192.0.2.7]:50123".parse().expect("an address"),
        transport: Transport::Tcp,
    };
    json(&Record::of_event(&event(action), Some(client)))
}

/// One action of each kind.
fn actions() -> Vec<Action> {
    let to = || Name::Path(SharePath::from_trusted("a/c"));
    vec![
        Action::LogIn { refusal: None },
        Action::LogOff,
        Action::Connect {
            refusal: Some(ShareRefusal::NotListed),
        },
        Action::Disconnect,
        Action::Open(Opening {
            requested: AccessMask::GENERIC_READ,
            granted: Some(AccessMask::FILE_READ_DATA),
            disposition: CreateDisposition::OPEN_IF,
            deletes_on_close: true,
            result: Some(CreateAction::CREATED),
        }),
        Action::Close(Closing {
            granted: AccessMask::FILE_WRITE_DATA,
            read: 1,
            written: 2,
            is_modified: true,
        }),
        Action::Rename {
            to: to(),
            replaces: true,
        },
        Action::Link {
            to: to(),
            replaces: false,
        },
        Action::Delete,
        Action::Attributes(proto::audit::Attributes::Extended),
        Action::Resize { bytes: 5 },
        Action::Security(SecurityInformation::DACL),
        Action::Quota,
    ]
}

#[test]
fn a_record_has_the_client_and_the_operation() {
    let rename = record(actions().swap_remove(6));
    for (field, expected) in [
        ("event", "rename"),
        ("outcome", "success"),
        ("status", "SUCCESS"),
        ("user", "alice"),
        ("user_kind", "named"),
        ("session", "0000000000001234"),
        ("client", "192.0.2.7"),
        ("transport", "tcp"),
        ("share", "data"),
        ("path", "a/b"),
        ("new_path", "a/c"),
        ("kind", "file"),
        ("open", "4000000000000001"),
    ] {
        assert_eq!(rename[field], expected, "{field}");
    }
    assert_eq!(rename["client_port"], 50123);
    assert_eq!(rename["replaces"], true);
    let time = rename["time"].as_str().expect("a text");
    // 2026-11-27T10:22:33.123456Z
    assert_eq!((time.len(), &time[10..11], &time[26..]), (27, "T", "Z"));
}

#[test]
fn refusals_have_a_reason() {
    let mut refused = event(actions().swap_remove(2));
    refused.status = Status::ACCESS_DENIED;
    let refused = json(&Record::of_event(&refused, None));
    assert_eq!(refused["outcome"], "denied");
    assert_eq!(
        refused["reason"],
        "the user is not in the list of the share"
    );
    assert!(refused.get("client").is_none());
    let client = Client {
        peer: "192.0.2.7:1".parse().expect("an address"),
        transport: Transport::Quic,
    };
    let login = Record::of_refused_login(("eve\n", "PC"), &"the password is wrong", client);
    let login = json(&login);
    for (field, expected) in [
        ("event", "login"),
        ("outcome", "denied"),
        ("user", "eve\n"),
        ("workstation", "PC"),
        ("reason", "the password is wrong"),
        ("transport", "quic"),
    ] {
        assert_eq!(login[field], expected, "{field}");
    }
}

#[test]
fn the_documentation_has_each_event_and_field() {
    let mut records: Vec<Value> = actions().into_iter().map(record).collect();
    records.push(json(&Record::of_loss(3)));
    for record in records {
        let fields = record.as_object().expect("an object");
        let event = fields["event"].as_str().expect("a text");
        let example = format!("\"event\":\"{event}\"");
        assert!(DOCUMENTATION.contains(&example), "no example of {event}");
        for field in fields.keys() {
            let row = format!("| `{field}` |");
            assert!(DOCUMENTATION.contains(&row), "no row of {field}");
        }
    }
}

#[test]
fn the_examples_of_the_documentation_are_records() {
    let mut fields: Vec<&str> = Vec::new();
    let rows = DOCUMENTATION
        .lines()
        .filter_map(|line| line.strip_prefix("| `"));
    fields.extend(rows.filter_map(|row| Some(row.split_once('`')?.0)));
    let lines = DOCUMENTATION
        .lines()
        .filter(|line| line.starts_with("{\"time\""));
    let mut count = 0;
    for line in lines {
        let example: Value = serde_json::from_str(line).expect(line);
        for field in example.as_object().expect(line).keys() {
            assert!(fields.contains(&field.as_str()), "{field}: {line}");
        }
        count += 1;
    }
    assert!(count >= 14, "{count} examples");
}

#[test]
fn a_message_of_journald_has_the_line_and_its_fields() {
    let denied = Event {
        status: Status::ACCESS_DENIED,
        ..event(actions().swap_remove(4))
    };
    let message = Record::of_event(&denied, None).encode(&AuditTarget::Journald);
    let text = String::from_utf8(message).expect("UTF-8");
    for line in [
        "PRIORITY=5",
        "SMBEAM_AUDIT=1",
        "SMBEAM_EVENT=create",
        "SMBEAM_PATH=a/b",
        "SMBEAM_GRANTED=read",
        "SMBEAM_DELETE_ON_CLOSE=true",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let line = text.lines().find_map(|line| line.strip_prefix("MESSAGE="));
    let record: Value = serde_json::from_str(line.expect("a message")).expect("JSON");
    assert_eq!(record["status"], "ACCESS_DENIED");
}
