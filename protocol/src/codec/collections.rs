//! Bounded collections: a list, a text and a byte string that cannot exist over their bound, and an
//! optional value that is a list of none or one (the wire has no null).

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, SeqAccess, Visitor},
};

/// At most `MAX` items.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct List<T, const MAX: usize>(Vec<T>);

impl<T, const MAX: usize> List<T, MAX> {
    /// The list, unless it is longer than `MAX`.
    #[must_use]
    pub fn new(items: Vec<T>) -> Option<Self> {
        (items.len() <= MAX).then_some(Self(items))
    }

    /// A list of nothing.
    #[must_use]
    pub const fn empty() -> Self {
        Self(Vec::new())
    }

    /// The items, for building another value.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T, const MAX: usize> std::ops::Deref for List<T, MAX> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'a, T, const MAX: usize> IntoIterator for &'a List<T, MAX> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T: Serialize, const MAX: usize> Serialize for List<T, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T, const MAX: usize>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Items<T, MAX> {
            type Value = List<T, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {MAX} items")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                // The head's own claim of a length reserves nothing.
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    if items.len() == MAX {
                        return Err(A::Error::custom("too many items"));
                    }
                    items.push(item);
                }
                Ok(List(items))
            }
        }

        deserializer.deserialize_seq(Items(std::marker::PhantomData))
    }
}

/// None or one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Maybe<T>(pub Option<T>);

impl<T: Serialize> Serialize for Maybe<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_slice().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut items = List::<T, 1>::deserialize(deserializer)?.0;
        Ok(Self(items.pop()))
    }
}

/// Text of at most `MAX` bytes of UTF-8, without control characters: it is shown to people.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<const MAX: usize>(String);

impl<const MAX: usize> Text<MAX> {
    /// The text, unless it is too long or holds a control character.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        (text.len() <= MAX && !text.chars().any(char::is_control)).then(|| Self(text.to_owned()))
    }

    /// As much of the text as fits, with a space for each control character: for messages to people,
    /// which are better cut than lost.
    #[must_use]
    pub fn clipped(text: &str) -> Self {
        let end = text.floor_char_boundary(MAX);
        let kept = text.get(..end).unwrap_or_default();
        // A control character has at least the one byte that takes its place.
        Self(kept.replace(char::is_control, " "))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const MAX: usize> fmt::Debug for Text<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<const MAX: usize> fmt::Display for Text<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<const MAX: usize> Serialize for Text<MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de, const MAX: usize> Deserialize<'de> for Text<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bounded<const MAX: usize>;

        impl<const MAX: usize> Visitor<'_> for Bounded<MAX> {
            type Value = Text<MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "text of at most {MAX} bytes without control characters")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Text::new(text).ok_or_else(|| E::custom("text out of bounds"))
            }
        }

        deserializer.deserialize_str(Bounded)
    }
}

/// A byte string of at most `MAX` bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blob<const MAX: usize>(Vec<u8>);

impl<const MAX: usize> Blob<MAX> {
    /// The bytes, unless there are more than `MAX`.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() <= MAX).then_some(Self(bytes))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<const MAX: usize> fmt::Debug for Blob<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.0.len())
    }
}

impl<const MAX: usize> Serialize for Blob<MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de, const MAX: usize> Deserialize<'de> for Blob<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bounded<const MAX: usize>;

        impl<const MAX: usize> Visitor<'_> for Bounded<MAX> {
            type Value = Blob<MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a byte string of at most {MAX} bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                if bytes.len() > MAX {
                    return Err(E::custom("byte string out of bounds"));
                }
                Ok(Blob(bytes.to_vec()))
            }

            fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Self::Value, E> {
                Blob::new(bytes).ok_or_else(|| E::custom("byte string out of bounds"))
            }
        }

        deserializer.deserialize_byte_buf(Bounded)
    }
}
