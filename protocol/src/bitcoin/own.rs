//! Which scripts belong to a key. Decides ownership by deriving the script again and comparing; what
//! a PSBT says about a key's origin only says where to look.

use super::{
    extended_key::{Child, DerivedKey, ExtendedKey, FIRST_HARDENED, KeyError, Step},
    psbt::KeyOrigin,
    transaction::ScriptPubKey,
};

/// Stated origins that are tried for one script. Wallets state one; each costs two curve
/// operations, so that a PSBT full of them must not buy more.
pub const MAX_ORIGINS_TRIED: usize = 4;

/// Which children of a key exist: branches 0 to `max_branch`, and of each the indices 0 to
/// `max_index`. A script outside is foreign, even if it could be derived: no wallet would find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildRange {
    max_branch: u32,
    max_index: u32,
}

impl ChildRange {
    /// The range; `None` for a branch above 1 or an index that is hardened.
    #[must_use]
    pub const fn new(max_branch: u32, max_index: u32) -> Option<Self> {
        if max_branch > 1 || max_index >= FIRST_HARDENED {
            return None;
        }
        Some(Self {
            max_branch,
            max_index,
        })
    }

    /// Whether a child is within.
    #[must_use]
    pub const fn contains(self, child: Child) -> bool {
        child.branch() <= self.max_branch && child.index() <= self.max_index
    }
}

/// The scripts of one key's children.
#[derive(Debug, Clone)]
pub struct OwnScripts {
    key: ExtendedKey,
    range: ChildRange,
    /// Derived once; each script then costs one step.
    branches: [Step; 2],
}

impl OwnScripts {
    /// The scripts of a key's children within a range.
    ///
    /// # Errors
    /// [`KeyError::NoKeyHere`] with negligible probability.
    pub fn new(key: ExtendedKey, range: ChildRange) -> Result<Self, KeyError> {
        let branches = [key.step(0)?, key.step(1)?];
        Ok(Self {
            key,
            range,
            branches,
        })
    }

    /// The key of a child within the range.
    ///
    /// # Errors
    /// [`KeyError::NoSuchChild`] outside the range.
    pub fn derive(&self, child: Child) -> Result<DerivedKey, KeyError> {
        let (branch, index) = (child.branch(), child.index());
        let missing = KeyError::NoSuchChild { branch, index };
        if !self.range.contains(child) {
            return Err(missing);
        }
        let [receive, change] = &self.branches;
        if child.is_change() {
            change.leaf(child)
        } else {
            receive.leaf(child)
        }
    }

    /// The child that `script` belongs to, if one of the stated origins leads to it.
    #[must_use]
    pub fn find(&self, origins: &[KeyOrigin], script: &ScriptPubKey) -> Option<DerivedKey> {
        let output_key = script.taproot_output_key()?;
        origins
            .iter()
            .filter_map(|origin| self.child_at(origin))
            .take(MAX_ORIGINS_TRIED)
            .filter_map(|child| self.derive(child).ok())
            .find(|derived| *derived.output_key() == output_key)
    }

    /// What a wallet writes into a PSBT for a child, so that it is found again.
    ///
    /// # Errors
    /// As [`OwnScripts::derive`].
    pub fn origin(&self, child: Child) -> Result<KeyOrigin, KeyError> {
        let x_only_key = self.derive(child)?.x_only_internal_key();
        let mut path = self.key.path().to_vec();
        path.extend([child.branch(), child.index()]);
        Ok(KeyOrigin {
            x_only_key,
            fingerprint: self.key.fingerprint(),
            path,
        })
    }

    fn child_at(&self, origin: &KeyOrigin) -> Option<Child> {
        if origin.fingerprint != self.key.fingerprint() {
            return None;
        }
        match origin.path.strip_prefix(self.key.path())? {
            [branch, index] => Child::new(*branch, *index).ok(),
            _ => None,
        }
    }
}
