//! A search of all states of a system, and a check that the system always continues.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;

use crate::check::{Check, ensure};

/// A state of a system that is searched in every order of events.
pub(super) trait State: Sized {
    /// The steps of the system.
    type Step: Copy + Debug + Ord;
    /// Identifies a state.
    type Key: Debug + Eq + Hash;

    /// Returns the identity of this state.
    fn key(&self) -> Self::Key;
    /// Returns the possible next steps.
    fn steps(&self) -> Vec<Self::Step>;
    /// Returns the state after a step.
    fn after(&self, step: Self::Step) -> Check<Self>;
    /// Returns whether the system may end here.
    fn check_end(&self) -> Check;
    /// Returns whether the step must happen eventually if it is possible all the time.
    fn is_due(step: Self::Step) -> bool;
}

/// Size of the graph of states that a search has visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Searched {
    /// Number of different states that the search found.
    pub states: usize,
    /// Number of steps that lead from a state to another one.
    pub steps: usize,
    /// Number of states without a next step.
    pub ends: usize,
}

/// Searches all states. An error contains the path to the wrong state.
pub(super) fn search<S: State>(start: S, states_max: usize) -> Check<Searched> {
    let mut graph = Graph::<S>::new();
    graph.add(start.key(), None);
    let mut open = VecDeque::from([(0, start)]);
    let mut ends = 0;
    while let Some((number, state)) = open.pop_front() {
        let steps = state.steps();
        if !steps.iter().any(|step| S::is_due(*step)) {
            ends += 1;
            state
                .check_end()
                .map_err(|what| graph.describe_path(number, &state, &what))?;
        }
        for step in steps {
            let next = state.after(step);
            let next = next.map_err(|what| {
                let what = format!("{step:?}: {what}");
                graph.describe_path(number, &state, &what)
            })?;
            let (found, is_new) = graph.add(next.key(), Some((number, step)));
            graph.next[number].push((step, found));
            if is_new {
                ensure(found < states_max, || format!("more than {found} states"))?;
                open.push_back((found, next));
            }
        }
    }
    graph.check_circles()?;
    Ok(Searched {
        states: graph.next.len(),
        steps: graph.next.iter().map(Vec::len).sum(),
        ends,
    })
}

/// The states that were found.
struct Graph<S: State> {
    keys: HashMap<S::Key, usize>,
    /// The step and the state through which each state was found first.
    from: Vec<Option<(usize, S::Step)>>,
    next: Vec<Vec<(S::Step, usize)>>,
}

impl<S: State> Graph<S> {
    fn new() -> Self {
        Self {
            keys: HashMap::new(),
            from: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Returns the number of a state, and whether it is new.
    fn add(&mut self, key: S::Key, from: Option<(usize, S::Step)>) -> (usize, bool) {
        let known = self.keys.len();
        let found = *self.keys.entry(key).or_insert(known);
        if found == known {
            self.from.push(from);
            self.next.push(Vec::new());
        }
        (found, found == known)
    }

    /// Returns the shortest path to a state.
    fn way(&self, mut number: usize) -> Vec<S::Step> {
        let mut way = Vec::new();
        while let Some((before, step)) = self.from[number] {
            way.push(step);
            number = before;
        }
        way.reverse();
        way
    }

    fn describe_path(&self, number: usize, state: &S, what: &str) -> String {
        let way = self.way(number);
        format!("{what}\n{:#?}\nafter {way:?}", state.key())
    }

    fn check_circles(&self) -> Check {
        let mut circles = self.components();
        circles.retain(|circle| self.continues(circle));
        let Some(circle) = circles.first() else {
            return Ok(());
        };
        let first = circle.first().expect("a circle has states");
        let (count, way) = (circle.len(), self.way(*first));
        let steps = self.steps_within(circle);
        Err(format!(
            "{count} states go on in circles by {steps:?}, the first after {way:?}"
        ))
    }

    /// Returns whether the system can stay in a set of states forever, although each step that is
    /// possible all the time happens now and then.
    fn continues(&self, circle: &BTreeSet<usize>) -> bool {
        let taken = self.steps_within(circle);
        let due = |number: &usize| -> BTreeSet<S::Step> {
            let steps = self.next[*number].iter().map(|(step, _)| *step);
            steps.filter(|step| S::is_due(*step)).collect()
        };
        let always = circle.iter().map(due);
        let always = always.reduce(|all, one| &all & &one).unwrap_or_default();
        !taken.is_empty() && always.is_subset(&taken)
    }

    /// Returns the steps between these states.
    fn steps_within(&self, circle: &BTreeSet<usize>) -> BTreeSet<S::Step> {
        let steps = circle.iter().flat_map(|number| &self.next[*number]);
        let inner = steps.filter(|(_, to)| circle.contains(to));
        inner.map(|(step, _)| *step).collect()
    }

    /// Returns the strongly connected components. Tarjan, 1972, without recursion.
    fn components(&self) -> Vec<BTreeSet<usize>> {
        const FRESH: usize = usize::MAX;
        let count = self.next.len();
        let (mut index, mut low) = (vec![FRESH; count], vec![FRESH; count]);
        let mut is_open = vec![false; count];
        let (mut stack, mut found) = (Vec::new(), Vec::new());
        // All other states are reachable from state 0.
        let mut calls = vec![(0, 0)];
        let mut counter = 0;
        while let Some((number, edge)) = calls.pop() {
            if edge == 0 {
                (index[number], low[number]) = (counter, counter);
                counter += 1;
                stack.push(number);
                is_open[number] = true;
            } else {
                let (_, child) = self.next[number][edge - 1];
                if is_open[child] {
                    low[number] = low[number].min(low[child]);
                }
            }
            if let Some((_, child)) = self.next[number].get(edge) {
                calls.push((number, edge + 1));
                if index[*child] == FRESH {
                    calls.push((*child, 0));
                }
            } else if low[number] == index[number] {
                let at = stack.iter().rposition(|open| *open == number);
                let members = stack.split_off(at.expect("a state is open until its set is found"));
                members.iter().for_each(|member| is_open[*member] = false);
                found.push(members.into_iter().collect());
            }
        }
        found
    }
}
