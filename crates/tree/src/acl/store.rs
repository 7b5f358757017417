//! All lists of a tree, each once.

use hashbrown::HashTable;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use quenda_proto::acl::perms::{ALL, READ};
use quenda_proto::acl::{ANYONE, WORLD};

use super::matcher::Matcher;
use super::{AclEntry, AclId};
use crate::node::LIST_MAX;
use crate::row;

#[derive(Debug)]
struct Stored {
    entries: Box<[AclEntry]>,
    matcher: Matcher,
    /// Of the encoded entries, the same on every member.
    hash: u64,
    /// The same with the store's seed.
    place: u64,
    /// Znodes that carry the list. At 0 the list stays readable until [`AclStore::sweep`].
    users: u32,
    /// The last checkpoint holds a row of this list.
    in_checkpoint: bool,
}

/// Lists by number and by content, with the number of znodes that carry each.
#[derive(Debug)]
pub(crate) struct AclStore {
    lists: Vec<Option<Stored>>,
    by_content: HashTable<u32>,
    free: Vec<u32>,
    /// Lists whose last user went since the last sweep.
    unused: Vec<u32>,
    /// Lists to write in the next checkpoint.
    added: Vec<u32>,
    /// Rows to delete in the next checkpoint.
    removed: Vec<u32>,
    /// From the cluster's secret, so that clients cannot choose lists that collide.
    seed: u64,
}

impl AclStore {
    /// With the lists that are always there.
    pub(crate) fn new() -> AclStore {
        let mut store = AclStore::empty();
        let open = store.intern(vec![AclEntry::new(ALL, WORLD, ANYONE)]);
        let read_only = store.intern(vec![AclEntry::new(READ, WORLD, ANYONE)]);
        assert_eq!((open, read_only), (AclId::OPEN, AclId::READ_ONLY));
        store.acquire(open);
        store.acquire(read_only);
        store.unused.clear();
        store
    }

    fn empty() -> AclStore {
        AclStore {
            lists: Vec::new(),
            by_content: HashTable::new(),
            free: Vec::new(),
            unused: Vec::new(),
            added: Vec::new(),
            removed: Vec::new(),
            seed: 0,
        }
    }

    /// Whether [`AclStore::intern`] has a number left.
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty() || self.lists.len() <= LIST_MAX as usize
    }

    /// The number of a list with these entries. A new one is unused: it goes in the next sweep unless
    /// [`AclStore::acquire`] is called.
    pub(crate) fn intern(&mut self, entries: Vec<AclEntry>) -> AclId {
        let encoded = encoded(&entries);
        let place = xxh3_64_with_seed(&encoded, self.seed);
        let lists = &self.lists;
        let same = |id: &u32| {
            lists[*id as usize]
                .as_ref()
                .is_some_and(|list| list.place == place && *list.entries == *entries)
        };
        if let Some(id) = self.by_content.find(place, same) {
            return AclId(*id);
        }
        let id = self.free.pop().unwrap_or(self.lists.len() as u32);
        self.place(id, entries, &encoded);
        self.unused.push(id);
        self.added.push(id);
        AclId(id)
    }

    fn place(&mut self, id: u32, entries: Vec<AclEntry>, encoded: &[u8]) {
        let index = id as usize;
        if index >= self.lists.len() {
            self.lists.resize_with(index + 1, || None);
        }
        let place = xxh3_64_with_seed(encoded, self.seed);
        self.lists[index] = Some(Stored {
            matcher: Matcher::new(&entries),
            entries: entries.into(),
            hash: xxh3_64(encoded),
            place,
            users: 0,
            in_checkpoint: false,
        });
        self.index(id, place);
    }

    fn index(&mut self, id: u32, place: u64) {
        let lists = &self.lists;
        self.by_content.insert_unique(place, id, |id| {
            lists[*id as usize].as_ref().map_or(0, |list| list.place)
        });
    }

    /// Takes another seed.
    pub(crate) fn reseed(&mut self, seed: u64) {
        self.seed = seed;
        self.by_content.clear();
        for id in 0..self.lists.len() as u32 {
            if let Some(list) = &mut self.lists[id as usize] {
                let place = xxh3_64_with_seed(&encoded(&list.entries), seed);
                list.place = place;
                self.index(id, place);
            }
        }
    }

    fn list(&self, id: AclId) -> &Stored {
        self.lists[id.0 as usize]
            .as_ref()
            .expect("a list number is used only while the list lives")
    }

    fn list_mut(&mut self, id: AclId) -> &mut Stored {
        self.lists[id.0 as usize]
            .as_mut()
            .expect("a list number is used only while the list lives")
    }

    /// One more znode carries the list.
    pub(crate) fn acquire(&mut self, id: AclId) {
        self.list_mut(id).users += 1;
    }

    /// One znode fewer carries the list.
    pub(crate) fn release(&mut self, id: AclId) {
        let list = self.list_mut(id);
        list.users -= 1;
        if list.users == 0 {
            self.unused.push(id.0);
        }
    }

    /// Drops the lists that nothing carries any more.
    pub(crate) fn sweep(&mut self) {
        while let Some(id) = self.unused.pop() {
            self.drop_if_unused(id);
        }
    }

    fn drop_if_unused(&mut self, id: u32) {
        let unused = self.lists[id as usize].take_if(|list| list.users == 0);
        let Some(list) = unused else { return };
        if let Ok(entry) = self.by_content.find_entry(list.place, |other| *other == id) {
            entry.remove();
        }
        if list.in_checkpoint {
            self.removed.push(id);
        }
        self.free.push(id);
    }

    /// The entries of a list, in their order.
    pub(crate) fn entries(&self, id: AclId) -> &[AclEntry] {
        &self.list(id).entries
    }

    /// Whom the list lets in.
    pub(crate) fn matcher(&self, id: AclId) -> &Matcher {
        &self.list(id).matcher
    }

    /// Hash of the entries, the same on every member.
    pub(crate) fn hash(&self, id: AclId) -> u64 {
        self.list(id).hash
    }

    /// Lists that a checkpoint has to write or delete.
    pub(crate) fn pending(&self) -> usize {
        self.added.len() + self.removed.len()
    }

    /// Hands out the rows that changed since the last call: deletions, then the rest.
    pub(crate) fn take_changed(&mut self) -> (Vec<u32>, Vec<u32>) {
        let removed = std::mem::take(&mut self.removed);
        let mut added = std::mem::take(&mut self.added);
        added.retain(|id| match &mut self.lists[*id as usize] {
            Some(list) if list.users > 0 && !list.in_checkpoint => {
                list.in_checkpoint = true;
                true
            }
            _ => false,
        });
        // A list that is unused now but gets a user before it is swept comes in the next checkpoint.
        let lists = &self.lists;
        self.added.extend(self.unused.iter().filter(|id| {
            lists[**id as usize]
                .as_ref()
                .is_some_and(|list| !list.in_checkpoint)
        }));
        (removed, added)
    }

    /// This store comes in the place of another one, whose rows are in the last checkpoint.
    pub(crate) fn replace(&mut self, other: &AclStore) {
        self.removed.extend_from_slice(&other.removed);
        let stored = (0..)
            .zip(&other.lists)
            .filter(|(_, list)| list.as_ref().is_some_and(|list| list.in_checkpoint));
        self.removed.extend(stored.map(|(id, _)| id));
    }

    /// Numbers of the lists that znodes carry, ascending.
    pub(crate) fn used(&self) -> impl Iterator<Item = AclId> + '_ {
        let used = |list: &Option<Stored>| list.as_ref().is_some_and(|list| list.users > 0);
        (0..)
            .zip(&self.lists)
            .filter(move |(_, list)| used(list))
            .map(|(id, _)| AclId(id))
    }
}

/// Lists of a checkpoint on their way into a store.
#[derive(Debug)]
pub(crate) struct AclLoader {
    store: AclStore,
}

impl AclLoader {
    pub(crate) fn new() -> AclLoader {
        AclLoader {
            store: AclStore::empty(),
        }
    }

    /// Takes one row; false if the number is taken or out of reach.
    pub(crate) fn add(&mut self, id: u32, entries: Vec<AclEntry>) -> bool {
        const SPARSE: usize = 1 << 24;
        let taken = self
            .store
            .lists
            .get(id as usize)
            .is_some_and(|list| list.is_some());
        if taken || id > LIST_MAX || id as usize > SPARSE + self.store.lists.len() {
            return false;
        }
        let encoded = encoded(&entries);
        self.store.place(id, entries, &encoded);
        self.store.list_mut(AclId(id)).in_checkpoint = true;
        true
    }

    /// Whether there is a list of this number; if so, it has one more user.
    pub(crate) fn acquire(&mut self, id: AclId) -> bool {
        match self.store.lists.get_mut(id.0 as usize) {
            Some(Some(list)) => {
                list.users += 1;
                true
            }
            _ => false,
        }
    }

    /// The store; none if the lists that are always there are missing or others.
    pub(crate) fn finish(mut self, seed: u64) -> Option<AclStore> {
        self.store.reseed(seed);
        let fixed = [(AclId::OPEN, ALL), (AclId::READ_ONLY, READ)];
        for (id, perms) in fixed {
            let expected = AclEntry::new(perms, WORLD, ANYONE);
            let is_there = self.acquire(id) && self.store.entries(id) == [expected];
            if !is_there {
                return None;
            }
        }
        for id in 0..self.store.lists.len() as u32 {
            match &self.store.lists[id as usize] {
                None => self.store.free.push(id),
                Some(list) if list.users == 0 => self.store.unused.push(id),
                Some(_) => {}
            }
        }
        self.store.free.reverse();
        Some(self.store)
    }
}

fn encoded(entries: &[AclEntry]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(64);
    row::put_acl(&mut encoded, entries);
    encoded
}
