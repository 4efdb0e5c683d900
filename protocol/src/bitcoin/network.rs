//! The Bitcoin networks, and how scripts and keys are written for each. Decides nothing about
//! money: comparisons are made on scripts, addresses are for people.

use std::fmt;

use ::bitcoin::{Address, NetworkKind, Script};

use super::transaction::ScriptPubKey;

/// A Bitcoin network. The numbers are part of Firn's wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Network {
    /// Real money: number 1.
    Mainnet = 1,
    /// The public test network: number 2.
    Testnet = 2,
    /// The signed test network (BIP-325): number 3.
    Signet = 3,
    /// A private network: number 4.
    Regtest = 4,
}

impl Network {
    /// All networks, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Mainnet, Self::Testnet, Self::Signet, Self::Regtest];

    /// The network's number on Firn's wire.
    #[must_use]
    pub const fn to_u8(self) -> u8 {
        match self {
            Self::Mainnet => 1,
            Self::Testnet => 2,
            Self::Signet => 3,
            Self::Regtest => 4,
        }
    }

    /// The network with this number; `None` for every other number.
    #[must_use]
    pub const fn from_u8(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Mainnet),
            2 => Some(Self::Testnet),
            3 => Some(Self::Signet),
            4 => Some(Self::Regtest),
            _ => None,
        }
    }

    /// The network's name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mainnet => "mainnet",
            Self::Testnet => "testnet",
            Self::Signet => "signet",
            Self::Regtest => "regtest",
        }
    }

    /// The network with this name, as [`Network::name`] writes it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|network| network.name() == name)
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

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn numbers_and_names_are_stable_and_closed() {
        let numbers: Vec<u8> = (0..=u8::MAX)
            .filter(|n| Network::from_u8(*n).is_some())
            .collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        for network in Network::ALL {
            assert_eq!(Network::from_u8(network.to_u8()), Some(network));
            assert_eq!(Network::from_name(network.name()), Some(network));
        }
        assert_eq!(Network::from_name("main"), None);
    }
}
