//! Session trees: a session with its subagent children is one unit, whatever the stored parent links look like.

use std::collections::BTreeMap;

/// One session and the parent that its row names.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// Id of the session, unique in the list.
    pub id: &'a str,
    /// `parent_id` of its row.
    pub parent: Option<&'a str>,
}

/// What holds a tree together at its top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The top session names no parent.
    Whole,
    /// The top session names a parent that does not exist.
    LostParent,
    /// Some sessions of the tree name each other as parent.
    Loop,
}

/// Sessions that go or stay as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Positions in the list of links, parents before children; in a [`Shape::Loop`] the sessions of the loop come first.
    pub members: Vec<usize>,
    /// How the tree is held together.
    pub shape: Shape,
}

/// All trees over a list of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forest {
    trees: Vec<Tree>,
    tree_of: Vec<usize>,
    children: Vec<Vec<usize>>,
}

impl Forest {
    /// Builds the trees over `links`. Every session is in exactly one tree; equal lists give equal forests. Never recurses: stored
    /// links may be as deep as there are sessions.
    pub fn new(links: &[Link<'_>]) -> Self {
        let by_id: BTreeMap<&str, usize> = links.iter().enumerate().map(|(at, link)| (link.id, at)).collect();
        let parents: Vec<Option<usize>> =
            links.iter().map(|link| link.parent.and_then(|id| by_id.get(id).copied())).collect();
        let mut children = vec![Vec::new(); links.len()];
        for (at, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                children[*parent].push(at);
            }
        }
        let mut forest = Self { trees: Vec::new(), tree_of: vec![usize::MAX; links.len()], children };
        for (at, link) in links.iter().enumerate() {
            if parents[at].is_none() {
                let shape = if link.parent.is_some() { Shape::LostParent } else { Shape::Whole };
                forest.grow(vec![at], shape);
            }
        }
        // What no top reaches hangs on a loop.
        for at in 0..links.len() {
            if forest.tree_of[at] == usize::MAX {
                let members = loop_above(at, &parents);
                forest.grow(members, Shape::Loop);
            }
        }
        forest
    }

    fn grow(&mut self, mut members: Vec<usize>, shape: Shape) {
        let tree = self.trees.len();
        for at in &members {
            self.tree_of[*at] = tree;
        }
        let mut next = 0;
        while let Some(at) = members.get(next).copied() {
            for child in &self.children[at] {
                if self.tree_of[*child] == usize::MAX {
                    self.tree_of[*child] = tree;
                    members.push(*child);
                }
            }
            next += 1;
        }
        self.trees.push(Tree { members, shape });
    }

    /// The trees: those with a top first, in the order of their tops, then the loops.
    pub fn trees(&self) -> &[Tree] {
        &self.trees
    }

    /// The tree of the session at position `session`, as a position in [`Forest::trees`].
    ///
    /// # Panics
    /// Where `session` is not a position of the list.
    pub fn tree_of(&self, session: usize) -> usize {
        self.tree_of[session]
    }

    /// The sessions whose parent is the session at `session`, as positions in the list.
    ///
    /// # Panics
    /// Where `session` is not a position of the list.
    pub fn children(&self, session: usize) -> &[usize] {
        &self.children[session]
    }

    /// The session at `session` and everything below it, parents first. In a loop that is the whole loop.
    ///
    /// # Panics
    /// Where `session` is not a position of the list.
    pub fn below(&self, session: usize) -> Vec<usize> {
        let mut found = vec![session];
        let mut seen: std::collections::BTreeSet<usize> = found.iter().copied().collect();
        let mut next = 0;
        while let Some(at) = found.get(next).copied() {
            found.extend(self.children[at].iter().copied().filter(|child| seen.insert(*child)));
            next += 1;
        }
        found
    }
}

/// The sessions of the loop that the parents of `at` lead into, in the order in which they name each other.
fn loop_above(at: usize, parents: &[Option<usize>]) -> Vec<usize> {
    let mut order = BTreeMap::new();
    let mut path = Vec::new();
    let mut here = at;
    loop {
        if let Some(start) = order.insert(here, path.len()) {
            return path.split_off(start);
        }
        path.push(here);
        match parents[here] {
            Some(parent) => here = parent,
            None => return path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn forest(links: &[(&'static str, Option<&'static str>)]) -> (Forest, Vec<&'static str>) {
        let list: Vec<Link<'_>> = links.iter().map(|(id, parent)| Link { id, parent: *parent }).collect();
        (Forest::new(&list), links.iter().map(|(id, _)| *id).collect())
    }

    fn named(forest: &Forest, ids: &[&str]) -> Vec<(String, Shape)> {
        let name = |tree: &Tree| tree.members.iter().map(|at| ids[*at]).collect::<Vec<_>>().join(" ");
        forest.trees().iter().map(|tree| (name(tree), tree.shape)).collect()
    }

    #[test]
    fn trees_hold_children_and_grandchildren_whatever_the_order_of_rows() {
        let (forest, ids) =
            forest(&[("grand", Some("child")), ("child", Some("root")), ("root", None), ("other", None)]);
        assert_eq!(
            named(&forest, &ids),
            [("root child grand".to_owned(), Shape::Whole), ("other".to_owned(), Shape::Whole)]
        );
        assert_eq!(forest.below(1), [1, 0]);
        assert_eq!(forest.tree_of(0), forest.tree_of(2));
    }

    #[test]
    fn a_lost_parent_makes_a_tree_of_its_own() {
        let (forest, ids) = forest(&[("lost", Some("gone")), ("below", Some("lost"))]);
        assert_eq!(named(&forest, &ids), [("lost below".to_owned(), Shape::LostParent)]);
    }

    #[test]
    fn loops_end_and_take_what_hangs_on_them() {
        let (forest, ids) =
            forest(&[("below", Some("b")), ("a", Some("b")), ("b", Some("a")), ("own", Some("own"))]);
        assert_eq!(
            named(&forest, &ids),
            [("b a below".to_owned(), Shape::Loop), ("own".to_owned(), Shape::Loop)]
        );
        assert_eq!(forest.below(1), [1, 2, 0]);
    }

    #[test]
    fn a_chain_of_any_depth_is_one_tree() {
        let names: Vec<String> = (0..100_000).map(|at| format!("s{at}")).collect();
        let links: Vec<Link<'_>> = (0..names.len())
            .map(|at| Link { id: &names[at], parent: (at > 0).then(|| names[at - 1].as_str()) })
            .collect();
        let forest = Forest::new(&links);
        assert_eq!(forest.trees().len(), 1);
        assert_eq!(forest.below(50_000).len(), 50_000);
    }

    proptest! {
        #[test]
        fn every_session_is_in_exactly_one_tree(parents in prop::collection::vec(prop::option::of(0_usize..24), 0..20)) {
            let names: Vec<String> = (0..24).map(|at| format!("s{at}")).collect();
            let links: Vec<Link<'_>> = parents
                .iter()
                .enumerate()
                .map(|(at, parent)| Link { id: &names[at], parent: parent.map(|parent| names[parent].as_str()) })
                .collect();
            let forest = Forest::new(&links);
            let mut members: Vec<usize> = forest.trees().iter().flat_map(|tree| tree.members.clone()).collect();
            members.sort_unstable();
            prop_assert_eq!(members, (0..parents.len()).collect::<Vec<_>>());
            for (at, parent) in parents.iter().enumerate() {
                if let Some(parent) = parent.filter(|parent| *parent < parents.len()) {
                    prop_assert_eq!(forest.tree_of(at), forest.tree_of(parent));
                }
            }
        }
    }
}
