//! An ordered JSON object.

use super::{Text, Value};

/// Members of a JSON object in the order of the input; order is contract in prompts and replies.
///
/// `read` gives each key once. Only `read_keeping_duplicates` lets a key occur again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Object(Vec<(Text, Value)>);

impl Object {
    /// No members.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The value of a key: the last one, should the key occur twice.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0
            .iter()
            .rev()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends a member. The caller keeps keys apart where they must be; replies may write one key twice (wire.md 6.2).
    pub fn push(&mut self, key: impl Into<Text>, value: impl Into<Value>) {
        self.0.push((key.into(), value.into()));
    }

    /// Members in order.
    pub fn iter(&self) -> std::slice::Iter<'_, (Text, Value)> {
        self.0.iter()
    }

    /// Keys in order.
    #[must_use]
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Text> + ExactSizeIterator {
        self.0.iter().map(|(key, _)| key)
    }

    /// Values in order.
    #[must_use]
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.0.iter().map(|(_, value)| value)
    }

    pub(super) fn from_members(members: Vec<(Text, Value)>) -> Self {
        Self(members)
    }
}

impl<'a> IntoIterator for &'a Object {
    type Item = &'a (Text, Value);
    type IntoIter = std::slice::Iter<'a, (Text, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Object {
    type Item = (Text, Value);
    type IntoIter = std::vec::IntoIter<(Text, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<K: Into<Text>, V: Into<Value>> FromIterator<(K, V)> for Object {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        Self(
            members
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }
}
