//! The members of a metadata object, each value as it is spelt.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::BadMutation;

/// A JSON object as its members in stored order. Values keep their bytes: a member that nobody sets stays as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Metadata<'a> {
    /// Reads the text of an object.
    ///
    /// # Errors
    /// [`BadMutation::InvalidMetadata`] where the text is anything else, or names a member twice.
    pub fn parse(text: &'a str) -> Result<Self, BadMutation> {
        serde_json::from_str(text).map_err(|_| BadMutation::InvalidMetadata)
    }

    /// The members and the JSON text of their values.
    pub fn members(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// The JSON text of a member.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.members().find(|(member, _)| *member == name).map(|(_, value)| value)
    }

    /// Sets a member to the JSON text `value`, at its place where it is there, else at the end.
    pub fn set(&mut self, name: &str, value: &str) {
        let value = Cow::Owned(value.to_owned());
        match self.0.iter_mut().find(|(member, _)| member == name) {
            Some((_, stored)) => *stored = value,
            None => self.0.push((Cow::Owned(name.to_owned()), value)),
        }
    }

    /// Takes a member out.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(member, _)| member != name);
    }
}

impl fmt::Display for Metadata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, (name, value)) in self.members().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}:{value}", serde_json::Value::from(name))?;
        }
        f.write_str("}")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Metadata<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor).map(Metadata)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<(Cow<'de, str>, Cow<'de, str>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with distinct members")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut members: Self::Value = Vec::new();
        let mut names = BTreeSet::new();
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            if !names.insert(name.clone()) {
                return Err(M::Error::custom("a member stands twice"));
            }
            members.push((Cow::Owned(name), Cow::Borrowed(value.get())));
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn setting_a_member_changes_only_that_member(
            members in prop::collection::btree_map("[a-d\"\\\\é]{0,3}", any::<i32>(), 0..5),
            name in "[a-d\"\\\\é]{0,3}",
            value: i32,
        ) {
            let text = serde_json::to_string(&members).unwrap();
            let mut edited = Metadata::parse(&text).unwrap();
            prop_assert_eq!(edited.to_string(), text.clone());
            edited.set(&name, &value.to_string());
            let mut wanted = members;
            wanted.insert(name.clone(), value);
            let read: std::collections::BTreeMap<String, i32> = serde_json::from_str(&edited.to_string()).unwrap();
            prop_assert_eq!(&read, &wanted);
            edited.remove(&name);
            wanted.remove(&name);
            let read: std::collections::BTreeMap<String, i32> = serde_json::from_str(&edited.to_string()).unwrap();
            prop_assert_eq!(read, wanted);
        }
    }
}
