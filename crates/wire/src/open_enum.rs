//! Open enumerations: integers with names for the known values.

/// Declares a newtype over an integer with named constants. It preserves unknown values.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        $name:ident($int:ty) { $($(#[$item:meta])* $constant:ident = $value:expr,)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $int);

        impl $name {
            $($(#[$item])* pub const $constant: Self = Self($value);)*

            /// Returns the name of the constant with this value, as in the specification; `None`
            /// for an unknown value.
            pub fn name(self) -> Option<&'static str> {
                $(if self == Self::$constant { return Some(stringify!($constant)); })*
                None
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!(stringify!($name), "({:#x})"), self.0),
                }
            }
        }
    };
}

/// Declares a newtype over an integer with named bits. It preserves unknown bits.
macro_rules! open_flags {
    (
        $(#[$meta:meta])*
        $name:ident($int:ty) { $($(#[$item:meta])* $constant:ident = $value:expr,)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $int);

        impl $name {
            /// The value with no flag set: 0.
            pub const NONE: Self = Self(0);
            $($(#[$item])* pub const $constant: Self = Self($value);)*

            /// Returns true if every bit of `other` is set in this value.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Returns true if any bit of `other` is set in this value.
            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// Returns this value without the bits that are set in `other`.
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            /// Returns true if no flag is set: the value is 0.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
        }

        impl core::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl core::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl core::ops::BitAnd for $name {
            type Output = Self;
            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x}"), self.0)?;
                $(if Self::$constant.0 != 0 && self.contains(Self::$constant) {
                    f.write_str(concat!(" ", stringify!($constant)))?;
                })*
                f.write_str(")")
            }
        }
    };
}

pub(crate) use {open_enum, open_flags};
