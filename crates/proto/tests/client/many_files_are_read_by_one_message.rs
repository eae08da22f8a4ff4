//! A compound may open one file behind the other: each READ is of the one that was opened last.

use proto::client::config::Protection;
use proto::client::request::{Create, FileRef, Reply, Step};
use proto::client::{Config, Failure, Request};
use wire::access::CreateDisposition;
use wire::{Flags, Status};

use crate::forge::{alone, asked_all, created, error, header, message, read_answer};
use crate::harness::Rig;
use crate::link::{Link, close, config, create};

fn steps(names: &[&str], length: u32) -> Vec<Step> {
    let file = FileRef::Previous;
    let of_one = |name: &&str| {
        let create = Create {
            disposition: CreateDisposition::OPEN,
            ..create(name)
        };
        let read = Step::Read {
            file,
            offset: 0,
            length,
            minimum: 0,
        };
        [
            Step::Create(create),
            read,
            Step::Close { file, query: false },
        ]
    };
    names.iter().flat_map(of_one).collect()
}

#[test]
fn one_that_fails_leaves_the_others_alone() {
    for protection in [Protection::AsAsked, Protection::Sign, Protection::Encrypt] {
        let mut rig = Rig::new(|_| {});
        let config = Config {
            protection,
            ..config()
        };
        let (mut link, tree) = Link::in_share(&mut rig, config);
        for name in ["a", "b", "c"] {
            let file = link.open(&mut rig, tree, name);
            let data = name.repeat(1000);
            let written = link.write(&mut rig, tree, file, 0, data.as_bytes());
            written.expect("it is written");
            let closed = link.ask_one(&mut rig, Some(tree), close(file));
            closed.expect("it is closed");
        }
        let request = Request::new(Some(tree), steps(&["a", "b", "missing", "c"], 2000));
        let id = link.submit(request);
        link.run(&mut rig);
        let results = link.answers.remove(&id).expect("an answer");
        assert_eq!(results.len(), 12);
        for (index, result) in results.iter().enumerate() {
            let is_missing = index / 3 == 2;
            let missing = Failure::Status(Status::OBJECT_NAME_NOT_FOUND);
            match result {
                Ok(_) => assert!(!is_missing, "{index}"),
                Err(failure) => assert!(is_missing && *failure == missing, "{index}: {failure:?}"),
            }
        }
        let wanted = ["a", "b", "c"].map(|name| name.repeat(1000).into_bytes());
        assert!(link.parts[&id] == wanted, "each READ is of its own file");
    }
}

/// The bytes of what is said of two files: "one" and "other".
fn answers(link: &mut Link, asked: &[wire::Header]) -> Vec<Vec<u8>> {
    let mut answers = Vec::new();
    for (headers, data) in asked.chunks(3).zip([&b"one"[..], b"other"]) {
        let [opened, read, closed] = headers else {
            panic!("three steps for each file");
        };
        answers.push(message(&header(opened, Status::SUCCESS), |bytes| {
            created(Vec::new()).encode(bytes);
        }));
        let body = read_answer(80, data.len() as u32, data);
        answers.push(message(&header(read, Status::SUCCESS), body));
        answers.push(error(closed, Status::FILE_CLOSED));
    }
    assert!(link.answers.is_empty());
    answers
}

#[test]
fn the_data_of_each_are_there_however_the_answers_come() {
    /// Members of each frame.
    const FRAMES: [&[&[usize]]; 4] = [
        &[&[0, 1, 2, 3, 4, 5]],
        &[&[0, 1, 2], &[3, 4, 5]],
        &[&[3, 4, 5, 0, 1, 2]],
        &[&[4], &[1], &[0], &[2], &[5], &[3]],
    ];
    for frames in FRAMES {
        let (mut link, tree) = alone();
        let (id, asked) = asked_all(&mut link, tree, steps(&["a", "b"], 100));
        let are_related = |asked: &wire::Header| asked.flags.contains(Flags::RELATED_OPERATIONS);
        assert!(!are_related(&asked[0]) && asked[1..].iter().all(are_related));
        let answers = answers(&mut link, &asked);
        for members in frames {
            let mut frame = Vec::new();
            for (index, member) in members.iter().enumerate() {
                let mut answer = answers[*member].clone();
                if index + 1 < members.len() {
                    wire::compound::link(&mut answer);
                }
                frame.extend(answer);
            }
            link.hear(frame);
        }
        let results = link.answers.remove(&id).expect("an answer");
        assert!(matches!(results[1], Ok(Reply::Read(_))));
        assert_eq!(link.parts[&id], [b"one".to_vec(), b"other".to_vec()]);
        assert_eq!(link.placed, 0, "there is no place for each");
    }
}
