//! Which protocol a role dials with. It decides the one name for each role that may dial, and never
//! lets a name stand for two roles.

use firn_protocol::names::Role;

/// What `role` offers when it dials; none for a coordinator, which only accepts.
#[must_use]
pub const fn alpn(role: Role) -> Option<&'static [u8]> {
    match role {
        Role::Participant => Some(b"firn-participant/1"),
        Role::Requester => Some(b"firn-requester/1"),
        Role::Operator => Some(b"firn-operator/1"),
        Role::Coordinator => None,
    }
}

/// The roles of a list that may dial at all, as the names to negotiate.
pub(crate) fn offers(roles: &[Role]) -> Vec<Vec<u8>> {
    roles
        .iter()
        .filter_map(|role| alpn(*role))
        .map(<[u8]>::to_vec)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use firn_protocol::names::Role;

    use super::{alpn, offers};

    #[test]
    fn no_two_roles_share_a_protocol_and_a_coordinator_has_none() {
        let names: BTreeSet<_> = Role::ALL.into_iter().filter_map(alpn).collect();
        assert_eq!(names.len(), 3);
        assert_eq!(offers(&Role::ALL).len(), 3);
        assert_eq!(alpn(Role::Coordinator), None);
    }
}
