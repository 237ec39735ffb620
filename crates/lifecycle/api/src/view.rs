//! Declaration of typed specs and statuses.

/// Whether a field has its default value and is omitted.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Declares structs for parts of API objects.
///
/// `required` fields are always encoded, and the schema requires them; `optional` fields are omitted
/// when they have their default value. Each field names its JSON key. `as "…"` names the definition of
/// the Kubernetes API for the untyped values of a field. `with {…}` adds keywords to the schema of the
/// field; after the name of the struct, to the schema of the struct. Their values may be expressions, such
/// as lists of validation rules that several fields share; they are evaluated with `schema` only.
///
/// The doc comments of structs and fields are the descriptions in the CustomResourceDefinitions: run
/// `cargo xtask crds` after a change.
macro_rules! view {
    ($($(#[doc = $sdoc:literal])* pub struct $name:ident $(with $sextra:tt)? {
        $(required {
            $($(#[doc = $rdoc:literal])*
            $rjson:literal $rfield:ident : $rty:ty $(as $rdeep:literal)? $(, with $rextra:tt)?;)*
        })?
        $(optional {
            $($(#[doc = $odoc:literal])*
            $ojson:literal $ofield:ident : $oty:ty $(as $odeep:literal)? $(, with $oextra:tt)?;)*
        })?
    })*) => {$(
        $(#[doc = $sdoc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $($(
                $(#[doc = $rdoc])*
                #[serde(rename = $rjson)]
                pub $rfield: $rty,
            )*)?
            $($(
                $(#[doc = $odoc])*
                #[serde(rename = $ojson, skip_serializing_if = "crate::view::is_default")]
                pub $ofield: $oty,
            )*)?
        }

        #[cfg(feature = "schema")]
        impl crate::schema::Shape for $name {
            fn shape(_: &str) -> serde_json::Value {
                #[allow(unused_mut, reason = "a struct without fields adds none")]
                let mut object = crate::schema::Builder::default();
                $($(object.field::<$rty>(
                    $rjson, concat!("" $(, $rdoc, "\n")*), true,
                    concat!("" $(, $rdeep)?), view!(@extra $($rextra)?),
                );)*)?
                $($(object.field::<$oty>(
                    $ojson, concat!("" $(, $odoc, "\n")*), false,
                    concat!("" $(, $odeep)?), view!(@extra $($oextra)?),
                );)*)?
                object.finish(concat!("" $(, $sdoc, "\n")*), view!(@extra $($sextra)?))
            }
        }
    )*};
    (@extra) => { serde_json::Value::Null };
    (@extra $extra:tt) => { serde_json::json!($extra) };
}
