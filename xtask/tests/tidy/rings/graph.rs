//! Strongly connected components (Tarjan's algorithm).

use std::collections::{BTreeMap, BTreeSet};

/// Which file depends on which.
pub(crate) type Edges = BTreeMap<String, BTreeSet<String>>;

/// The rings of the graph: components of at least two files, the largest first.
pub(crate) fn rings(edges: &Edges) -> Vec<Vec<String>> {
    let mut search = Search {
        edges,
        index: BTreeMap::new(),
        low: BTreeMap::new(),
        stack: Vec::new(),
        rings: Vec::new(),
    };
    for file in edges.keys() {
        if !search.index.contains_key(file.as_str()) {
            search.visit(file);
        }
    }
    let mut rings = search.rings;
    rings.sort_by_key(|ring| std::cmp::Reverse(ring.len()));
    rings
}

struct Search<'a> {
    edges: &'a Edges,
    index: BTreeMap<&'a str, usize>,
    low: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    rings: Vec<Vec<String>>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, file: &'a str) {
        let index = self.index.len();
        self.index.insert(file, index);
        self.low.insert(file, index);
        self.stack.push(file);
        let edges = self.edges;
        for next in edges.get(file).into_iter().flatten() {
            if !self.index.contains_key(next.as_str()) {
                self.visit(next);
                self.lower(file, self.low[next.as_str()]);
            } else if self.stack.contains(&next.as_str()) {
                self.lower(file, self.index[next.as_str()]);
            }
        }
        if self.low[file] == index {
            self.close(file);
        }
    }

    fn lower(&mut self, file: &'a str, value: usize) {
        let low = self.low.get_mut(file).expect("the file was visited");
        *low = value.min(*low);
    }

    /// Takes a finished component from the stack.
    fn close(&mut self, file: &str) {
        let start = self.stack.iter().rposition(|one| *one == file);
        let start = start.expect("the file is on the stack");
        let mut ring: Vec<_> = self.stack.drain(start..).map(str::to_owned).collect();
        ring.sort();
        if ring.len() > 1 {
            self.rings.push(ring);
        }
    }
}

#[test]
fn a_ring_is_found_and_a_line_is_not() {
    let edges = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")];
    let mut graph = Edges::new();
    for (from, to) in edges {
        graph.entry(from.into()).or_default().insert(to.into());
    }
    assert_eq!(rings(&graph), [["b", "c"]]);
}
