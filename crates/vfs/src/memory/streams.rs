//! Named streams of files in memory.

use proto::file::{
    Existing, FileKind, KindWanted, LocalOpen, Metadata, OpenPlan, Opened, Outcome, StreamEntry,
};
use proto::path::StreamName;
use wire::Status;
use wire::access::FileAttributes;

use super::State;
use super::bytes::Bytes;
use super::tree::{Child, Content, NodeId, Tree};
use crate::fold;

impl State {
    /// Opens or creates a named stream: opens its file first, or creates it.
    pub(super) fn open_stream(
        &mut self,
        plan: &OpenPlan,
        name: &StreamName,
    ) -> Result<Opened, Status> {
        let of_file = OpenPlan {
            path: plan.path.with_stream(None),
            existing: match plan.existing {
                Existing::Open => Existing::Open,
                Existing::OpenOrCreate | Existing::Create => Existing::OpenOrCreate,
            },
            kind: KindWanted::Any,
            allocation: 0,
            ..plan.clone()
        };
        let opened = self.open(&of_file)?;
        let added = self.add_stream(plan, name, opened.file);
        let (node, name, created) = match added {
            Ok(added) => added,
            Err(status) => {
                self.close(opened.file);
                return Err(status);
            }
        };
        self.tree.node_mut(node).opens += 1;
        let open = self.open_mut(opened.file)?;
        open.base = Some(open.node);
        open.node = node;
        Ok(Opened {
            created,
            metadata: self.tree.of_stream(node, opened.metadata),
            path: opened.path.with_stream(Some(name)),
            ..opened
        })
    }

    /// Finds or creates the stream of a file. Returns its node, its name and whether it is new.
    fn add_stream(
        &mut self,
        plan: &OpenPlan,
        name: &StreamName,
        file: LocalOpen,
    ) -> Result<(NodeId, StreamName, bool), Status> {
        let open = self.open_of(file)?;
        let (id, token) = (open.node, open.token.clone());
        let folded = fold::fold(name.as_str());
        if let Some(stream) = self.tree.node(id).streams.get(&folded) {
            if plan.existing == Existing::Create {
                return Err(Status::OBJECT_NAME_COLLISION);
            }
            return Ok((stream.node, stored(&stream.name), false));
        }
        if plan.existing == Existing::Open {
            return Err(Status::OBJECT_NAME_NOT_FOUND);
        }
        if !self.tree.permissions(&token, id).write {
            return Err(Status::ACCESS_DENIED);
        }
        let content = Content::File(Bytes::default());
        let node = self.tree.add(content, &token, 0, FileAttributes::NONE);
        self.tree.add_stream(id, name, node);
        Ok((node, name.clone(), true))
    }

    pub(super) fn list_streams(&self, file: LocalOpen) -> Result<Outcome, Status> {
        let id = self.open_of(file)?.file();
        let mut entries = Vec::new();
        let metadata = self.tree.metadata(id, "");
        if metadata.kind == FileKind::File {
            entries.push(StreamEntry {
                name: None,
                size: metadata.size,
                allocation: metadata.allocation,
            });
        }
        for stream in self.tree.node(id).streams.values() {
            let metadata = self.tree.metadata(stream.node, "");
            entries.push(StreamEntry {
                name: Some(stored(&stream.name)),
                size: metadata.size,
                allocation: metadata.allocation,
            });
        }
        Ok(Outcome::Streams(entries))
    }

    pub(super) fn remove_stream(
        &mut self,
        file: LocalOpen,
        name: &StreamName,
    ) -> Result<Outcome, Status> {
        let id = self.open_of(file)?.file();
        self.tree.remove_stream(id, name.as_str())?;
        Ok(Outcome::Done)
    }

    pub(super) fn rename_stream(
        &mut self,
        file: LocalOpen,
        to: &StreamName,
        replace: bool,
    ) -> Result<Outcome, Status> {
        let open = self.open_of(file)?;
        let (id, node) = (open.file(), open.node);
        let streams = &self.tree.node(id).streams;
        let own = streams.values().find(|stream| stream.node == node);
        let own = own.ok_or(Status::FILE_DELETED)?.name.clone();
        let there = streams.get(&fold::fold(to.as_str()));
        if let Some(other) = there.filter(|other| other.node != node) {
            if !replace {
                return Err(Status::OBJECT_NAME_COLLISION);
            }
            let other = other.name.clone();
            self.tree.remove_stream(id, &other)?;
        }
        let streams = &mut self.tree.node_mut(id).streams;
        streams.remove(&fold::fold(&own));
        let child = Child {
            name: to.as_str().to_owned(),
            node,
        };
        streams.insert(fold::fold(to.as_str()), child);
        self.tree.touch(id);
        Ok(Outcome::Done)
    }
}

impl Tree {
    /// Attaches a node to a file as its named stream.
    fn add_stream(&mut self, file: NodeId, name: &StreamName, node: NodeId) {
        self.node_mut(node).links = 1;
        let child = Child {
            name: name.as_str().to_owned(),
            node,
        };
        let folded = fold::fold(name.as_str());
        let before = self.node_mut(file).streams.insert(folded, child);
        assert!(before.is_none(), "a stream is new before it is added");
        self.touch(file);
    }

    /// Removes a named stream of a file.
    fn remove_stream(&mut self, file: NodeId, name: &str) -> Result<(), Status> {
        let removed = self.node_mut(file).streams.remove(&fold::fold(name));
        let stream = removed.ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
        self.node_mut(stream.node).links = 0;
        self.forget(stream.node);
        self.touch(file);
        Ok(())
    }

    /// Removes all named streams of a file.
    pub(super) fn remove_streams(&mut self, file: NodeId) {
        let streams = std::mem::take(&mut self.node_mut(file).streams);
        for stream in streams.into_values() {
            self.node_mut(stream.node).links = 0;
            self.forget(stream.node);
        }
    }

    /// The metadata of a file, for the open of a named stream.
    pub(super) fn of_stream(&self, stream: NodeId, file: Metadata) -> Metadata {
        let own = self.metadata(stream, "");
        Metadata {
            key: file.key.with_stream(proto::file::StreamId(stream)),
            kind: FileKind::File,
            attributes: file.attributes.without(FileAttributes::DIRECTORY),
            size: own.size,
            allocation: own.allocation,
            ..file
        }
    }
}

/// The name of a stream in the tree.
fn stored(name: &str) -> StreamName {
    StreamName::new(name).expect("the tree holds valid names")
}
