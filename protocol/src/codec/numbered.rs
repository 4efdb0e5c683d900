//! The macros that give wire types their one form: byte strings of exact length, numbered choices,
//! and sums as `[number, content]`.

/// A byte string of exactly `$length` bytes as a type of its own.
#[macro_export]
macro_rules! byte_string {
    ($(#[$meta:meta])* $name:ident, $length:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $length]);

        impl $name {
            /// Length in bytes.
            pub const LENGTH: usize = $length;

            /// Wraps the bytes as they are.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; $length]) -> Self {
                Self(bytes)
            }

            /// The bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; $length] {
                &self.0
            }

            /// Reads lower or upper case hexadecimal of exactly the right length.
            #[must_use]
            pub fn from_hex(text: &str) -> Option<Self> {
                let mut bytes = [0; $length];
                hex::decode_to_slice(text, &mut bytes).ok()?;
                Some(Self(bytes))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&hex::encode(self.0))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), hex::encode(self.0))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bytes(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let bytes = <$crate::codec::Blob<$length> as serde::Deserialize>::deserialize(d)?;
                <[u8; $length]>::try_from(bytes.as_bytes())
                    .map(Self)
                    .map_err(|_| serde::de::Error::custom("byte string of another length"))
            }
        }
    };
}

/// A closed list of choices, each an unsigned number on the wire and a stable name for people.
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$variant_meta:meta])* $number:literal $text:literal => $variant:ident,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name { $($(#[$variant_meta])* $variant,)+ }

        impl $name {
            /// Every choice, in the order of the numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The number on the wire.
            #[must_use]
            pub const fn number(self) -> u16 {
                match self { $(Self::$variant => $number,)+ }
            }

            /// The choice with this number.
            #[must_use]
            pub const fn from_number(number: u16) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)+ _ => None }
            }

            /// The stable name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u16(self.number())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let number = <u16 as serde::Deserialize>::deserialize(d)?;
                Self::from_number(number)
                    .ok_or_else(|| serde::de::Error::custom("unknown number"))
            }
        }
    };
}

/// A sum: each variant holds one type, and is `[number, content]` on the wire.
#[macro_export]
macro_rules! sum {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$variant_meta:meta])* $number:literal => $variant:ident($content:ty),)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        $vis enum $name { $($(#[$variant_meta])* $variant($content),)+ }

        impl $name {
            /// The number of this variant on the wire.
            #[must_use]
            pub const fn number(&self) -> u16 {
                match self { $(Self::$variant(_) => $number,)+ }
            }
        }

        $(impl From<$content> for $name {
            fn from(content: $content) -> Self { Self::$variant(content) }
        })+

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(content) => ($number as u16, content).serialize(serializer),)+
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct SumVisitor;

                impl<'de> serde::de::Visitor<'de> for SumVisitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("[number, content]")
                    }

                    fn visit_seq<A: serde::de::SeqAccess<'de>>(
                        self,
                        mut seq: A,
                    ) -> Result<Self::Value, A::Error> {
                        use serde::de::Error;
                        let number: u16 = seq
                            .next_element()?
                            .ok_or_else(|| A::Error::custom("no number"))?;
                        match number {
                            $($number => seq
                                .next_element::<$content>()?
                                .map($name::$variant)
                                .ok_or_else(|| A::Error::custom("no content")),)+
                            _ => Err(A::Error::custom("unknown number")),
                        }
                    }
                }

                d.deserialize_tuple(2, SumVisitor)
            }
        }
    };
}
