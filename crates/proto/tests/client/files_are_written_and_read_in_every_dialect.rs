//! Client core and server core, back to back: from the first word to a file that is closed.

use proto::client::Config;
use proto::client::request::Reply;
use wire::dialect::Dialect;

use crate::harness::Rig;
use crate::link::{Link, close, config};

/// Writes a file, reads it back and closes it.
fn write_and_read(rig: &mut Rig, config: Config) -> Link {
    let (mut link, tree) = Link::in_share(rig, config);
    let file = link.open(rig, tree, "a.txt");
    let data: Vec<u8> = (0..200_000_u32).map(|i| (i % 251) as u8).collect();
    let most = link.client.negotiated().unwrap().max_write as usize;
    for (index, piece) in data.chunks(most).enumerate() {
        let offset = (index * most) as u64;
        let written = link.write(rig, tree, file, offset, piece);
        assert!(matches!(written, Ok(Reply::Written(n)) if n as usize == piece.len()));
    }
    let most = link.client.negotiated().unwrap().max_read;
    let mut read = Vec::new();
    while read.len() < data.len() {
        let piece = link.read(rig, tree, file, read.len() as u64, most).unwrap();
        assert!(!piece.is_empty());
        read.extend(piece);
    }
    assert!(read == data, "what was written is read");
    let closed = link.ask_one(rig, Some(tree), close(file));
    let Ok(Reply::Closed(Some(attributes))) = closed else {
        panic!("{closed:?}");
    };
    assert_eq!(attributes.size, 200_000);
    link
}

#[test]
fn in_every_dialect() {
    for dialect in config().dialects {
        let mut rig = Rig::new(|_| {});
        let config = Config {
            dialects: vec![dialect],
            ..config()
        };
        let link = write_and_read(&mut rig, config);
        assert_eq!(link.client.negotiated().unwrap().dialect, dialect);
    }
}

#[test]
fn the_best_dialect_of_both_is_spoken() {
    let mut rig = Rig::new(|config| config.max_dialect = Dialect::SMB_3_0_2);
    let link = write_and_read(&mut rig, config());
    assert_eq!(
        link.client.negotiated().unwrap().dialect,
        Dialect::SMB_3_0_2
    );
}
