//! A client spends the credits that it has, waits for as long as it should, and tells what it
//! gives up on.

use std::time::Duration;

use proto::client::request::{FileRef, Reply, Step};
use proto::client::{Config, Failure, Fate, Request, Violation};
use wire::change_notify::CompletionFilter;
use wire::header::Target;
use wire::{AsyncId, Command, FileId, Header, Status, TreeId};

use crate::forge::{
    alone, alone_with, asked, asynchronous, error, failure, header, headers, message, plain_error,
};
use crate::harness::Rig;
use crate::link::{Link, close, config, create};

const FILE: FileRef = FileRef::Id(FileId {
    persistent: 1,
    volatile: 2,
});

fn read(length: u32) -> Step {
    Step::Read {
        file: FILE,
        offset: 0,
        length,
        minimum: 0,
    }
}

fn notify() -> Step {
    Step::ChangeNotify {
        file: FILE,
        recursive: false,
        filter: CompletionFilter::FILE_NAME,
        length: 1000,
    }
}

fn submit(link: &mut Link, tree: TreeId, step: Step) -> proto::client::RequestId {
    link.submit(Request::new(Some(tree), vec![step]))
}

/// What went out.
fn sent(link: &mut Link) -> Vec<Header> {
    let frames: Vec<_> = link.outbox.drain(..).collect();
    frames.iter().flat_map(|frame| headers(frame)).collect()
}

fn pass(link: &mut Link, duration: Duration) {
    link.now.instant = link.now.instant.after(duration);
    link.call(|client, now, effects| {
        assert!(client.next_timeout().is_some_and(|at| at <= now.instant));
        client.timeout(now, effects);
        let next = client.next_timeout();
        assert!(next.is_none_or(|at| at > now.instant), "it is done with");
    });
}

#[test]
fn ids_go_up_by_what_a_request_costs() {
    let (mut link, tree) = alone();
    for length in [1, 65_536, 65_537, 1 << 20, 1] {
        submit(&mut link, tree, read(length));
    }
    let sent = sent(&mut link);
    let charges: Vec<u16> = sent.iter().map(|header| header.credit_charge).collect();
    assert_eq!(charges, [1, 1, 2, 16, 1]);
    for pair in sent.windows(2) {
        let step = pair[1].message_id.0 - pair[0].message_id.0;
        assert_eq!(step, u64::from(pair[0].credit_charge));
    }
}

#[test]
fn nothing_is_sent_beyond_the_credits_and_all_is_sent_in_the_end() {
    for credits in [1, 2, 17, 64, 512] {
        let mut rig = Rig::new(|_| {});
        let config = Config {
            credits,
            ..config()
        };
        let (mut link, tree) = Link::in_share(&mut rig, config);
        let file = link.open(&mut rig, tree, "a");
        assert!(link.write(&mut rig, tree, file, 0, &[7; 1000]).is_ok());
        let mut ids = Vec::new();
        for index in 0..100 {
            let length = if index % 3 == 0 { 500_000 } else { 700 };
            let step = Step::Read {
                file: FileRef::Id(file),
                offset: 0,
                length,
                minimum: 0,
            };
            ids.push(submit(&mut link, tree, step));
        }
        let waiting = link.client.requests_queued() + link.client.requests_in_flight();
        assert_eq!(waiting, 100);
        // The server's window checks each id.
        link.run(&mut rig);
        assert!(rig.violations.is_empty(), "{:?}", rig.violations);
        for id in ids {
            let results = link.answers.remove(&id).expect("an answer");
            assert!(matches!(results[0], Ok(Reply::Read(_))), "{results:?}");
        }
        assert_eq!(link.client.requests_queued(), 0);
        assert_eq!(link.client.bytes_in_flight(), 0);
        assert_eq!(link.client.bytes_queued(), 0);
    }
}

#[test]
fn the_credits_asked_for_are_held_and_no_more() {
    let mut rig = Rig::new(|_| {});
    let (mut link, tree) = Link::in_share(&mut rig, config());
    let file = link.open(&mut rig, tree, "a");
    assert!(link.write(&mut rig, tree, file, 0, &[7; 1000]).is_ok());
    for _ in 0..50 {
        assert!(link.read(&mut rig, tree, file, 0, 1 << 20).is_ok());
        let free = link.client.credits_free();
        assert!((40..100).contains(&free), "{free}");
    }
}

#[test]
fn a_request_that_costs_more_than_the_server_grants_fails() {
    let (mut link, tree) = alone();
    // Spend what there is, and get one back for each answer.
    let mut sent_first = Vec::new();
    while link.client.credits_free() > 1 {
        submit(&mut link, tree, read(1));
        sent_first.extend(sent(&mut link));
    }
    let large = submit(&mut link, tree, read(1 << 20));
    let stingy = |link: &mut Link, asked: &Header, credits| {
        let mut answer = header(asked, Status::END_OF_FILE);
        answer.credits = credits;
        link.hear(message(&answer, plain_error));
    };
    for (index, header) in sent_first.iter().enumerate() {
        stingy(&mut link, header, u16::from(index % 16 == 0));
    }
    let mut rounds = 0;
    while !link.answers.contains_key(&large) {
        rounds += 1;
        assert!(rounds < 5, "{:?}", link.client);
        let asked = sent(&mut link);
        assert_eq!(asked.len(), 1, "an ECHO asks for more");
        assert_eq!(asked[0].command, Command::ECHO);
        assert!(asked[0].credits >= 16);
        let mut answer = header(&asked[0], Status::SUCCESS);
        answer.credits = 1;
        link.hear(message(&answer, |bytes| wire::echo::Response.encode(bytes)));
    }
    assert!(matches!(failure(&mut link, large), Failure::Unsendable(_)));
    // The others go on.
    submit(&mut link, tree, read(1));
    assert_eq!(sent(&mut link).len(), 1);
}

#[test]
fn small_requests_overtake_a_large_one_but_not_for_ever() {
    let (mut link, tree) = alone();
    let mut flying = Vec::new();
    while link.client.credits_free() > 8 {
        submit(&mut link, tree, read(1));
        flying.extend(sent(&mut link));
    }
    submit(&mut link, tree, read(1 << 20));
    assert!(sent(&mut link).is_empty());
    let mut overtakers = 0;
    loop {
        submit(&mut link, tree, read(1));
        let went = sent(&mut link);
        if went.is_empty() {
            break;
        }
        overtakers += 1;
        flying.extend(went);
        let oldest = flying.remove(0);
        link.hear(error(&oldest, Status::END_OF_FILE));
        assert!(overtakers < 1000);
    }
    assert!(overtakers > 3);
    for header in flying {
        link.hear(error(&header, Status::END_OF_FILE));
    }
    let costs: Vec<u16> = sent(&mut link).iter().map(|h| h.credit_charge).collect();
    assert!(costs.contains(&16), "{costs:?}");
}

#[test]
fn what_cannot_be_sent_is_answered_at_once() {
    let (mut link, tree) = alone();
    let id = submit(&mut link, tree, read(u32::MAX));
    assert!(matches!(failure(&mut link, id), Failure::Unsendable(_)));
    let name = "n".repeat(40_000);
    let id = submit(&mut link, tree, Step::Create(create(&name)));
    assert!(matches!(failure(&mut link, id), Failure::Unsendable(_)));
    let lock = Step::Lock {
        file: FILE,
        sequence: 0,
        locks: Vec::new(),
    };
    let id = submit(&mut link, tree, lock);
    assert!(matches!(failure(&mut link, id), Failure::Unsendable(_)));
    assert!(link.outbox.is_empty());
    assert_eq!(link.ended, None);
}

#[test]
fn what_was_not_sent_is_cancelled_at_once() {
    let (mut link, tree) = alone();
    while link.client.credits_free() > 1 {
        submit(&mut link, tree, read(1));
    }
    let waiting = submit(&mut link, tree, read(1));
    sent(&mut link);
    link.call(|client, now, effects| client.cancel(now, waiting, effects));
    assert_eq!(failure(&mut link, waiting), Failure::Cancelled);
    assert!(sent(&mut link).is_empty());
}

#[test]
fn what_was_sent_is_cancelled_by_the_server() {
    for is_async in [false, true] {
        let (mut link, tree) = alone();
        let (id, asked) = asked(&mut link, tree, notify());
        if is_async {
            link.hear(message(
                &asynchronous(&asked, Status::PENDING, 7),
                plain_error,
            ));
        }
        let free = link.client.credits_free();
        for _ in 0..2 {
            link.call(|client, now, effects| client.cancel(now, id, effects));
        }
        let cancels = sent(&mut link);
        assert_eq!(cancels.len(), 1, "one CANCEL: a second had its nonce");
        assert_eq!(cancels[0].command, Command::CANCEL);
        assert_eq!(cancels[0].message_id, asked.message_id);
        assert_eq!(link.client.credits_free(), free, "it costs nothing");
        match cancels[0].target {
            Target::Async(async_id) => assert_eq!((is_async, async_id), (true, AsyncId(7))),
            Target::Sync { .. } => assert!(!is_async),
        }
        let last = match is_async {
            true => asynchronous(&asked, Status::CANCELLED, 7),
            false => header(&asked, Status::CANCELLED),
        };
        link.hear(message(&last, plain_error));
        assert_eq!(failure(&mut link, id), Failure::Cancelled);
    }
}

#[test]
fn a_watch_of_a_directory_is_cancelled() {
    let mut rig = Rig::new(|_| {});
    let (mut link, tree) = Link::in_share(&mut rig, config());
    let folder = Step::Create(proto::client::request::Create {
        options: wire::access::CreateOptions::DIRECTORY_FILE,
        ..create("folder")
    });
    let opened = link.ask_one(&mut rig, Some(tree), folder);
    let Ok(Reply::Created(opened)) = opened else {
        panic!("{opened:?}");
    };
    let watch = Step::ChangeNotify {
        file: FileRef::Id(opened.file_id),
        recursive: false,
        filter: CompletionFilter::FILE_NAME,
        length: 1000,
    };
    let id = submit(&mut link, tree, watch);
    link.run(&mut rig);
    assert!(!link.answers.contains_key(&id));
    link.call(|client, now, effects| client.cancel(now, id, effects));
    link.run(&mut rig);
    assert_eq!(failure(&mut link, id), Failure::Cancelled);
    assert_eq!(link.ended, None);
}

#[test]
fn a_request_that_takes_too_long_fails_and_its_answer_is_swallowed() {
    let (mut link, tree) = alone();
    let (id, asked) = asked(&mut link, tree, read(10));
    let free = link.client.credits_free();
    pass(&mut link, Duration::from_secs(60));
    assert_eq!(failure(&mut link, id), Failure::TimedOut);
    let commands: Vec<Command> = sent(&mut link).iter().map(|h| h.command).collect();
    assert_eq!(commands, [Command::CANCEL, Command::ECHO]);
    link.hear(error(&asked, Status::CANCELLED));
    assert_eq!(link.ended, None);
    assert!(link.answers.is_empty());
    assert_eq!(link.client.credits_free(), free, "one came, the ECHO went");
}

/// Who gets no credits does not wait for ever, though the server is there.
#[test]
fn a_request_that_cannot_be_sent_in_time_fails() {
    let (mut link, tree) = alone();
    let mut patient = Request::new(Some(tree), vec![notify()]);
    patient.timeout = Some(None);
    while link.client.credits_free() > 1 {
        link.submit(patient.clone());
    }
    let waiting = submit(&mut link, tree, read(1));
    let watch = link.submit(patient);
    sent(&mut link);
    pass(&mut link, Duration::from_secs(60));
    assert_eq!(failure(&mut link, waiting), Failure::TimedOut);
    assert!(!link.answers.contains_key(&watch), "it has no time");
    let commands: Vec<Command> = sent(&mut link).iter().map(|h| h.command).collect();
    assert_eq!(commands, [Command::ECHO], "there is nothing to cancel");
    assert_eq!(link.client.requests_queued(), 1);
}

/// What is on its way on a slow line is not late.
#[test]
fn a_request_behind_many_bytes_has_more_time() {
    let (mut link, tree) = alone();
    let (early, _) = asked(&mut link, tree, read(10));
    let large: Vec<_> = (0..3)
        .map(|_| asked(&mut link, tree, read(1 << 20)).0)
        .collect();
    pass(&mut link, Duration::from_secs(60));
    assert_eq!(failure(&mut link, early), Failure::TimedOut);
    for id in large {
        assert!(!link.answers.contains_key(&id));
        pass(&mut link, Duration::from_secs(8));
        assert_eq!(failure(&mut link, id), Failure::TimedOut);
    }
}

#[test]
fn what_a_late_answer_opened_is_closed() {
    let mut rig = Rig::new(|_| {});
    let (mut link, tree) = Link::in_share(&mut rig, config());
    let late = submit(&mut link, tree, Step::Create(create("late")));
    let frame = link.outbox.pop_front().unwrap();
    pass(&mut link, Duration::from_secs(60));
    assert_eq!(failure(&mut link, late), Failure::TimedOut);
    link.outbox.clear();
    rig.deliver(link.id, &frame);
    let answer = rig.read(link.id).unwrap();
    assert_eq!(headers(&answer)[0].status, Status::SUCCESS);
    link.hear(answer);
    let closing = sent_to(&mut link, &mut rig);
    assert_eq!(closing, [(Command::CLOSE, Status::SUCCESS)]);
}

/// Brings everything to the server; what was asked and how it went.
fn sent_to(link: &mut Link, rig: &mut Rig) -> Vec<(Command, Status)> {
    let mut heard = Vec::new();
    while let Some(frame) = link.outbox.pop_front() {
        rig.deliver(link.id, &frame);
        while let Some(frame) = rig.read(link.id) {
            heard.extend(headers(&frame).iter().map(|h| (h.command, h.status)));
            link.hear(frame);
        }
    }
    heard
}

#[test]
fn a_request_may_have_a_time_of_its_own() {
    let (mut link, tree) = alone();
    let mut request = Request::new(Some(tree), vec![notify()]);
    request.timeout = Some(None);
    let patient = link.submit(request);
    let mut request = Request::new(Some(tree), vec![read(10)]);
    request.timeout = Some(Some(Duration::from_secs(1)));
    let hasty = link.submit(request);
    pass(&mut link, Duration::from_secs(1));
    assert_eq!(failure(&mut link, hasty), Failure::TimedOut);
    assert!(!link.answers.contains_key(&patient));
}

#[test]
fn a_silent_server_is_asked_and_then_left() {
    let (mut link, tree) = alone();
    let mut request = Request::new(Some(tree), vec![notify()]);
    request.timeout = Some(None);
    let id = link.submit(request);
    sent(&mut link);
    pass(&mut link, Duration::from_secs(60));
    let echo = sent(&mut link);
    assert_eq!(echo[0].command, Command::ECHO);
    pass(&mut link, Duration::from_secs(60));
    assert_eq!(link.ended, Some(Violation::TimedOut));
    assert_eq!(link.lost.len(), 1);
    assert_eq!((link.lost[0].0, link.lost[0].2), (id, Fate::Sent));
    assert!(link.client.next_timeout().is_none());
}

/// A long frame on a slow line is no silence.
#[test]
fn a_server_whose_bytes_come_is_not_left() {
    let mut rig = Rig::new(|_| {});
    let (mut link, _) = Link::in_share(&mut rig, config());
    for _ in 0..10 {
        pass(&mut link, Duration::from_secs(60));
        link.call(|client, now, _| client.heard(now));
    }
    assert_eq!(link.ended, None);
}

#[test]
fn a_client_that_slept_asks_before_it_leaves() {
    let mut rig = Rig::new(|_| {});
    let (mut link, _) = Link::in_share(&mut rig, config());
    pass(&mut link, Duration::from_secs(3600));
    assert_eq!(link.ended, None);
    link.run(&mut rig);
    assert_eq!(link.ended, None);
}

#[test]
fn a_server_that_answers_is_not_left() {
    let mut rig = Rig::new(|_| {});
    let (mut link, _) = Link::in_share(&mut rig, config());
    for _ in 0..10 {
        pass(&mut link, Duration::from_secs(60));
        assert_eq!(link.outbox.len(), 1);
        link.run(&mut rig);
        assert_eq!(link.ended, None);
    }
}

#[test]
fn a_login_that_takes_too_long_ends() {
    let mut rig = Rig::new(|_| {});
    let mut link = Link::new(&mut rig, config(), proto::client::Role::First);
    pass(&mut link, Duration::from_secs(30));
    assert_eq!(link.ended, Some(Violation::TimedOut));
}

#[test]
fn what_is_unanswered_is_given_back_when_the_connection_ends() {
    let (mut link, tree) = alone();
    let flying = submit(&mut link, tree, read(1));
    while link.client.credits_free() > 1 {
        submit(&mut link, tree, read(1));
    }
    let waiting = submit(&mut link, tree, read(1));
    link.call(proto::client::Connection::closed);
    assert_eq!(link.ended, Some(Violation::Closed));
    let fate = |id| {
        let found = link.lost.iter().find(|(lost, _, _)| *lost == id);
        found.expect("it is given back").2
    };
    assert_eq!(fate(flying), Fate::Sent);
    assert_eq!(fate(waiting), Fate::Unsent);
    let after = submit(&mut link, tree, read(1));
    assert_eq!(link.lost.last().unwrap().0, after);
}

#[test]
fn what_is_asked_before_the_login_waits_for_it() {
    let mut rig = Rig::new(|_| {});
    let mut link = Link::new(&mut rig, config(), proto::client::Role::First);
    let id = link.submit(Request::new(None, vec![Step::TreeConnect("files".into())]));
    link.run(&mut rig);
    assert!(matches!(
        link.answers[&id][0],
        Ok(Reply::TreeConnected { .. })
    ));
}

#[test]
fn a_request_that_the_server_puts_off_is_sent_again() {
    let (mut link, tree) = alone_with(config());
    let set = || Step::SetInfo {
        file: FILE,
        info_type: wire::query_info::InfoType::FILE,
        class: 20,
        additional: 0,
        buffer: vec![0; 8],
    };
    // No channel was lost: it is for the driver.
    let (id, first) = asked(&mut link, tree, set());
    link.hear(error(&first, Status::FILE_NOT_AVAILABLE));
    let told = Failure::Status(Status::FILE_NOT_AVAILABLE);
    assert_eq!(failure(&mut link, id), told);
    // One was lost meanwhile: it goes again, with the new number.
    let (id, first) = asked(&mut link, tree, set());
    link.session.as_ref().unwrap().channel_lost();
    link.hear(error(&first, Status::FILE_NOT_AVAILABLE));
    let again = sent(&mut link);
    assert_eq!((first.status, again[0].status), (Status(0), Status(1)));
    link.hear(error(&again[0], Status::FILE_NOT_AVAILABLE));
    assert_eq!(failure(&mut link, id), told);
    // A replay goes again a little later, for some time.
    let mut request = Request::new(Some(tree), vec![set()]);
    request.is_replay = true;
    let id = link.submit(request);
    let mut rounds = 0;
    while !link.answers.contains_key(&id) {
        let asked = sent(&mut link);
        assert_eq!(asked.len(), 1);
        assert!(asked[0].flags.contains(wire::Flags::REPLAY_OPERATION));
        link.hear(error(&asked[0], Status::FILE_NOT_AVAILABLE));
        rounds += 1;
        if !link.answers.contains_key(&id) {
            assert!(link.outbox.is_empty());
            pass(&mut link, Duration::from_secs(3));
        }
    }
    assert_eq!(rounds, 9);
    assert_eq!(failure(&mut link, id), told);
}

#[test]
fn close_tells_what_became_of_the_file() {
    let mut rig = Rig::new(|_| {});
    let (mut link, tree) = Link::in_share(&mut rig, config());
    let file = link.open(&mut rig, tree, "a");
    let first = link.ask_one(&mut rig, Some(tree), close(file));
    assert!(matches!(first, Ok(Reply::Closed(Some(_)))));
    let second = link.ask_one(&mut rig, Some(tree), close(file));
    let gone = Failure::Status(Status::FILE_CLOSED);
    assert_eq!(second.unwrap_err(), gone);
}
