//! The Bitcoin networks, and how scripts and keys are written for each. Decides nothing about
//! money: comparisons are made on scripts, addresses are for people.

use ::bitcoin::{Address, NetworkKind, Script};

use super::transaction::ScriptPubKey;
use crate::choice;

choice!(
    /// A Bitcoin network.
    pub enum Network {
        /// Real money.
        1 "mainnet" => Mainnet,
        /// The public test network.
        2 "testnet" => Testnet,
        /// The signed test network (BIP-325).
        3 "signet" => Signet,
        /// A private network.
        4 "regtest" => Regtest,
    }
);

impl Network {
    /// The network with this name, as [`Network::name`] writes it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|network| network.name() == name)
    }

    /// The address that stands for `script` on this network, if one does. Only for showing.
    #[must_use]
    pub fn address(self, script: &ScriptPubKey) -> Option<String> {
        let script = Script::from_bytes(script.as_bytes());
        Address::from_script(script, self.to_bitcoin())
            .ok()
            .map(|address| address.to_string())
    }

    /// The script that an address of this network pays to; `None` for other networks' addresses.
    #[must_use]
    pub fn script(self, address: &str) -> Option<ScriptPubKey> {
        let address: Address<::bitcoin::address::NetworkUnchecked> = address.parse().ok()?;
        let address = address.require_network(self.to_bitcoin()).ok()?;
        Some(ScriptPubKey::new(address.script_pubkey().into_bytes()))
    }

    pub(super) const fn kind(self) -> NetworkKind {
        match self {
            Self::Mainnet => NetworkKind::Main,
            Self::Testnet | Self::Signet | Self::Regtest => NetworkKind::Test,
        }
    }

    const fn to_bitcoin(self) -> bitcoin::Network {
        match self {
            Self::Mainnet => bitcoin::Network::Bitcoin,
            Self::Testnet => bitcoin::Network::Testnet,
            Self::Signet => bitcoin::Network::Signet,
            Self::Regtest => bitcoin::Network::Regtest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn numbers_and_names_are_stable_and_closed() {
        let numbers: Vec<u16> = (0..=u16::MAX)
            .filter(|n| Network::from_number(*n).is_some())
            .collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        for network in Network::ALL.iter().copied() {
            assert_eq!(Network::from_number(network.number()), Some(network));
            assert_eq!(Network::from_name(network.name()), Some(network));
        }
        assert_eq!(Network::from_name("main"), None);
    }
}
