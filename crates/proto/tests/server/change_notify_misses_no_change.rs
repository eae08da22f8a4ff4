//! Whatever happens in whatever order, through the server or behind its back, and whenever who
//! watches asks: each change is told once and in order, or all are told as "look for yourself".

use proto::file::{FileKey, LocalChange, LocalEvent};
use proto::path::SharePath;
use wire::access::{CreateDisposition, CreateOptions};
use wire::change_notify::{ChangeNotifyFlags, CompletionFilter, Request, Response};
use wire::fscc::{FileAction, FileNotifyInformation, NotifyEntries, NotifyWriter};
use wire::text::utf16;
use wire::{Command, FileId, Status, Utf16};

use crate::harness::{Client, Options, Rig, bytes_of, file_id};

/// Runs of the test, each with a seed of its own, and what happens in each.
const SEEDS: u64 = 60;
const STEPS: usize = 120;
/// The smallest buffer holds two names or three, the largest all of a run.
const ROOM: [u32; 3] = [64, 300, 60_000];

type Change = (FileAction, String);

/// One who watches.
struct Watcher {
    client: Client,
    directory: FileId,
    is_tree: bool,
    room: u32,
    /// Whether a request waits.
    is_waiting: bool,
    /// What happened since the last answer; `None` once it is too much.
    untold: Option<Vec<Change>>,
    answers: usize,
}

impl Watcher {
    fn new(rig: &mut Rig, is_tree: bool, room: u32) -> Self {
        let mut client = enter(rig);
        let directory = open_directory(rig, &mut client);
        Self {
            client,
            directory,
            is_tree,
            room,
            is_waiting: false,
            untold: Some(Vec::new()),
            answers: 0,
        }
    }

    fn ask(&mut self, rig: &mut Rig) {
        if self.is_waiting {
            return;
        }
        let request = Request {
            flags: match self.is_tree {
                true => ChangeNotifyFlags::WATCH_TREE,
                false => ChangeNotifyFlags::NONE,
            },
            output_buffer_length: self.room,
            file_id: self.directory,
            completion_filter: CompletionFilter::FILE_NAME,
        };
        let body = bytes_of(|out| request.encode(out));
        let message = self.client.message(Command::CHANGE_NOTIFY, body);
        self.client.say(rig, vec![message]);
        self.is_waiting = true;
        self.hear(rig);
    }

    fn cancel(&mut self, rig: &mut Rig) {
        // The last request is the only one that waits.
        if self.is_waiting {
            let body = bytes_of(|out| wire::echo::Request.encode(out));
            let mut cancel = self.client.message(Command::CANCEL, body);
            cancel.header.message_id.0 -= 1;
            self.client.say(rig, vec![cancel]);
            self.hear(rig);
        }
    }

    /// Something happened in the directory, or below it.
    fn happened(&mut self, changes: &[Change]) {
        let is_seen = |(_, name): &&Change| self.is_tree || !name.contains('\\');
        let seen: Vec<_> = changes.iter().filter(is_seen).cloned().collect();
        if let Some(untold) = &mut self.untold {
            untold.extend(seen);
            if !fits(untold, self.room) {
                self.untold = None;
            }
        }
    }

    /// Takes what was answered, and compares it with what happened.
    fn hear(&mut self, rig: &mut Rig) {
        let Some(answers) = self.client.hear(rig) else {
            return;
        };
        let [answer] = &answers[..] else {
            panic!("one request, one answer: {answers:?}");
        };
        self.is_waiting = false;
        if answer.status() == Status::CANCELLED {
            return;
        }
        self.answers += 1;
        match self.untold.replace(Vec::new()) {
            None => assert_eq!(answer.status(), Status::NOTIFY_ENUM_DIR),
            Some(untold) => {
                assert_eq!(answer.status(), Status::SUCCESS);
                let response = Response::decode(&answer.message).expect("a response");
                let told: Vec<Change> = NotifyEntries::new(response.output)
                    .map(|entry| entry.expect("an entry"))
                    .map(|entry| (entry.action, entry.name.decode().expect("a name")))
                    .collect();
                assert_eq!(told, untold);
            }
        }
    }

    fn is_owed(&self) -> bool {
        self.untold.as_ref().is_none_or(|untold| !untold.is_empty())
    }
}

fn fits(changes: &[Change], room: u32) -> bool {
    let mut writer = NotifyWriter::new(room as usize);
    changes.iter().all(|(action, name)| {
        let name = utf16(name);
        writer.push(&FileNotifyInformation {
            action: *action,
            name: Utf16(&name),
        })
    })
}

fn enter(rig: &mut Rig) -> Client {
    let mut client = Client::in_share(rig, Options::default(), "alice", "files");
    let body = bytes_of(|out| wire::echo::Request.encode(out));
    let mut echo = client.message(Command::ECHO, body);
    echo.header.credits = 2000;
    client.ask(rig, echo);
    client
}

fn open_directory(rig: &mut Rig, client: &mut Client) -> FileId {
    let create = CreateDisposition::OPEN_IF;
    let message = client.create_with("d", create, CreateOptions::DIRECTORY_FILE);
    file_id(&client.ask(rig, message))
}

/// Numbers that a seed says.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        // Numerical Recipes' generator: its upper bits will do.
        self.0 = (self.0.wrapping_mul(6_364_136_223_846_793_005)).wrapping_add(1_442_695_040_888);
        (self.0 >> 33) % limit
    }
}

/// Makes a file through the server: its name from `d`.
fn make(rig: &mut Rig, maker: &mut Client, name: &str) -> Vec<Change> {
    let open = maker.create(rig, &format!("d\\{name}"));
    let close = maker.close_message(open);
    maker.ask(rig, close);
    vec![(FileAction::ADDED, name.to_owned())]
}

/// Lets others make or rename a file.
fn happen(rig: &mut Rig, directory: FileKey, name: &str, is_rename: bool) -> Vec<Change> {
    let changes = match is_rename {
        true => vec![
            (FileAction::RENAMED_OLD_NAME, name.to_owned()),
            (FileAction::RENAMED_NEW_NAME, format!("{name}-new")),
        ],
        false => vec![(FileAction::ADDED, name.to_owned())],
    };
    let event = |(action, name): &Change| {
        LocalEvent::Change(LocalChange {
            directory,
            path: SharePath::from_trusted(&name.replace('\\', "/")),
            action: *action,
            filter: CompletionFilter::FILE_NAME,
        })
    };
    rig.happen_locally(&changes.iter().map(event).collect::<Vec<_>>());
    changes
}

#[test]
fn each_change_is_told_once_and_in_order_or_as_too_much() {
    for seed in 1..=SEEDS {
        println!("seed {seed}");
        run(seed);
    }
}

fn run(seed: u64) {
    let mut random = Random(seed);
    let mut rig = Rig::new(|_| {});
    let mut maker = enter(&mut rig);
    open_directory(&mut rig, &mut maker);
    let key = rig.disk.key("d");
    let mut watchers: Vec<Watcher> = (ROOM.into_iter())
        .flat_map(|room| [(room, true), (room, false)])
        .map(|(room, is_tree)| Watcher::new(&mut rig, is_tree, room))
        .collect();
    // What happens before the first request of a watch is nobody's.
    for watcher in &mut watchers {
        watcher.ask(&mut rig);
    }
    for step in 0..STEPS {
        let folder = if random.below(3) == 0 { "sub\\" } else { "" };
        let name = format!("{folder}f{step}");
        let changes = match random.below(10) {
            0..3 => make(&mut rig, &mut maker, &name),
            3..5 => happen(&mut rig, key, &name, false),
            5 => happen(&mut rig, key, &name, true),
            6 if random.below(8) == 0 => {
                rig.happen_locally(&[LocalEvent::Lost(None)]);
                watchers
                    .iter_mut()
                    .for_each(|watcher| watcher.untold = None);
                Vec::new()
            }
            _ => {
                let index = random.below(watchers.len() as u64) as usize;
                match random.below(4) {
                    0 => watchers[index].cancel(&mut rig),
                    _ => watchers[index].ask(&mut rig),
                }
                continue;
            }
        };
        for watcher in &mut watchers {
            watcher.happened(&changes);
            watcher.hear(&mut rig);
        }
    }
    // All that is left is told, and then there is nothing to tell.
    for watcher in &mut watchers {
        watcher.ask(&mut rig);
        watcher.ask(&mut rig);
        assert!(!watcher.is_owed(), "seed {seed}: something was not told");
        assert!(watcher.is_waiting, "seed {seed}: told of nothing");
        assert!(watcher.answers > 0);
    }
}
