//! A set of paths as a trie. Nodes of one level are sorted; a node that neither is a member nor has members below it does
//! not exist. A path and the paths below it are members independently of each other.

use std::cmp::Ordering;

use super::element::PathElement;

/// A set of fields of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    nodes: Vec<Node>,
}

/// One step of the paths of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) element: PathElement,
    /// The path that ends here is a member.
    pub(super) member: bool,
    pub(super) below: FieldSet,
}

/// What one place of an object contributes to a set: itself, and what lies below.
#[derive(Clone, Debug, Default)]
pub(super) struct Mark {
    pub(super) member: bool,
    pub(super) below: FieldSet,
}

impl Mark {
    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }

    pub(super) fn union(&mut self, other: &Self) {
        self.member |= other.member;
        self.below.absorb(&other.below);
    }
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

/// A node that one of two sets, or both, have.
enum Pair<'a> {
    Left(&'a Node),
    Right(&'a Node),
    Both(&'a Node, &'a Node),
}

impl FieldSet {
    /// The set of these paths. A path without elements (the whole object) is nobody's and is left out.
    pub fn of_paths<P: AsRef<[PathElement]>>(paths: impl IntoIterator<Item = P>) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(path.as_ref());
        }
        set
    }

    /// Adds one path; its parents are not added with it.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let node = self.enter(first);
        if rest.is_empty() {
            node.member = true;
        } else {
            node.below.insert(rest);
        }
    }

    fn enter(&mut self, element: &PathElement) -> &mut Node {
        let at = match self.find(element) {
            Ok(at) => at,
            Err(at) => {
                let node = Node {
                    element: element.clone(),
                    member: false,
                    below: Self::default(),
                };
                self.nodes.insert(at, node);
                at
            }
        };
        &mut self.nodes[at]
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes
            .binary_search_by(|node| node.element.cmp(element))
    }

    /// Adds what a place contributes. Cheap when places come in order.
    pub(super) fn add(&mut self, element: PathElement, mark: Mark) {
        if mark.is_empty() {
            return;
        }
        if self.nodes.last().is_none_or(|last| last.element < element) {
            self.nodes.push(Node {
                element,
                member: mark.member,
                below: mark.below,
            });
            return;
        }
        let node = self.enter(&element);
        node.member |= mark.member;
        node.below.absorb(&mark.below);
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes, none of which may be emptied or become another one.
    pub(super) fn nodes_mut(&mut self) -> &mut [Node] {
        &mut self.nodes
    }

    /// Keeps those nodes for which something is left.
    pub(super) fn from_nodes(nodes: impl IntoIterator<Item = Node>) -> Self {
        Self {
            nodes: nodes.into_iter().filter(|node| !node.is_empty()).collect(),
        }
    }

    /// Whether nothing is a member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many paths are members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes
            .iter()
            .map(|node| usize::from(node.member) + node.below.len())
            .sum()
    }

    /// Whether this path is a member.
    #[must_use]
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.get(last).is_some_and(|node| node.member),
            [first, rest @ ..] => self
                .get(first)
                .is_some_and(|node| node.below.contains(rest)),
        }
    }

    pub(super) fn get(&self, element: &PathElement) -> Option<&Node> {
        self.find(element).ok().map(|at| &self.nodes[at])
    }

    /// Members of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if self.is_empty() {
            return other.clone();
        }
        if other.is_empty() {
            return self.clone();
        }
        self.join(other, |pair| match pair {
            Pair::Left(node) | Pair::Right(node) => Some(node.clone()),
            Pair::Both(a, b) => Some(Node {
                element: a.element.clone(),
                member: a.member || b.member,
                below: a.below.union(&b.below),
            }),
        })
    }

    /// Adds the members of another set.
    pub(super) fn absorb(&mut self, other: &Self) {
        if self.is_empty() {
            *self = other.clone();
            return;
        }
        let mut new = Vec::new();
        for theirs in &other.nodes {
            match self.find(&theirs.element) {
                Ok(at) => {
                    let mine = &mut self.nodes[at];
                    mine.member |= theirs.member;
                    mine.below.absorb(&theirs.below);
                }
                Err(_) => new.push(theirs.clone()),
            }
        }
        if !new.is_empty() {
            self.nodes.extend(new);
            self.nodes.sort_by(|a, b| a.element.cmp(&b.element));
        }
    }

    /// Takes the members of another set away, as [`difference`](Self::difference) does.
    pub(super) fn subtract(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        let mut is_hollow = false;
        for theirs in &other.nodes {
            if let Ok(at) = self.find(&theirs.element) {
                let mine = &mut self.nodes[at];
                mine.member &= !theirs.member;
                mine.below.subtract(&theirs.below);
                is_hollow |= mine.is_empty();
            }
        }
        if is_hollow {
            self.nodes.retain(|node| !node.is_empty());
        }
    }

    /// Members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.join(other, |pair| match pair {
            Pair::Left(_) | Pair::Right(_) => None,
            Pair::Both(a, b) => Some(Node {
                element: a.element.clone(),
                member: a.member && b.member,
                below: a.below.intersection(&b.below),
            }),
        })
    }

    /// Members of this set that are not members of the other; a parent in the other set takes away only itself.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        self.join(other, |pair| match pair {
            Pair::Left(node) => Some(node.clone()),
            Pair::Right(_) => None,
            Pair::Both(a, b) => Some(Node {
                element: a.element.clone(),
                member: a.member && !b.member,
                below: a.below.difference(&b.below),
            }),
        })
    }

    /// As [`difference`](Self::difference), but a member of the other set takes away everything below it too.
    #[must_use]
    pub fn without_subtrees(&self, other: &Self) -> Self {
        self.join(other, |pair| match pair {
            Pair::Left(node) => Some(node.clone()),
            Pair::Right(_) => None,
            Pair::Both(_, b) if b.member => None,
            Pair::Both(a, b) => Some(Node {
                element: a.element.clone(),
                member: a.member,
                below: a.below.without_subtrees(&b.below),
            }),
        })
    }

    fn join(&self, other: &Self, keep: impl Fn(Pair<'_>) -> Option<Node>) -> Self {
        let (mut left, mut right) = (self.nodes.as_slice(), other.nodes.as_slice());
        let mut nodes = Vec::with_capacity(left.len().max(right.len()));
        loop {
            let pair = match (left, right) {
                ([], []) => break,
                ([a, ..], []) => Pair::Left(a),
                ([], [b, ..]) => Pair::Right(b),
                ([a, ..], [b, ..]) => match a.element.cmp(&b.element) {
                    Ordering::Less => Pair::Left(a),
                    Ordering::Greater => Pair::Right(b),
                    Ordering::Equal => Pair::Both(a, b),
                },
            };
            match pair {
                Pair::Left(_) => left = &left[1..],
                Pair::Right(_) => right = &right[1..],
                Pair::Both(..) => (left, right) = (&left[1..], &right[1..]),
            }
            nodes.extend(keep(pair).filter(|node| !node.is_empty()));
        }
        Self { nodes }
    }

    /// Every member, in the API server's order: the members of a level before what lies below it.
    #[must_use]
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<Vec<PathElement>>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let mut path = prefix.clone();
            path.push(node.element.clone());
            out.push(path);
        }
        for node in &self.nodes {
            prefix.push(node.element.clone());
            node.below.collect(prefix, out);
            prefix.pop();
        }
    }
}

/// A path as it is written in conflicts: `.spec.tiers[name="a"].model`.
#[must_use]
pub fn path_text(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}
