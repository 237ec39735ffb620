//! String enumerations: values that are plain strings in JSON.

/// Declares enumerations whose values are strings in JSON.
///
/// The schemas of most of these fields allow any string, so each enumeration keeps an unknown text:
/// decoding never fails, and encoding returns the same text.
macro_rules! text_enum {
    ($($(#[doc = $doc:literal])* pub enum $name:ident {
        $($(#[doc = $vdoc:literal])* $variant:ident = $text:literal,)*
    })*) => {$(
        $(#[doc = $doc])*
        ///
        /// The default is the empty text.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[doc = $vdoc])* $variant,)*
            /// An unknown text, or the empty text if no variant has it.
            Other(Box<str>),
        }

        impl $name {
            /// Every named value, in order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The text on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::from("")
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::Other(other.into()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, text: &str) -> bool {
                self.as_str() == text
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                <std::borrow::Cow<'de, str>>::deserialize(from).map(|text| Self::from(&*text))
            }
        }

        #[cfg(feature = "schema")]
        impl crate::schema::Shape for $name {
            fn shape(_: &str) -> serde_json::Value {
                serde_json::json!({"type": "string"})
            }
        }
    )*};
}
