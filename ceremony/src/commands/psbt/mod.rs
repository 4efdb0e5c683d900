//! `firn psbt`: payments before they are signed. It decides how coins and amounts are written on a command
//! line, and never whether a payment is wise.

pub(crate) mod described;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use firn_client::Key;
use firn_protocol::bitcoin::{
    Child, Sats,
    psbt::PsbtVersion,
    transaction::{OutPoint, Txid},
};

pub(crate) use self::described::Described;
use super::{key::resolve, profile::ProfileOption, reports::must_not_exist, runtime};
use crate::{
    error::{Error, Exit},
    output::Output,
    payment::{Coin, Payment},
    psbt_file::{Form, PsbtFile},
};

/// How `firn psbt` is used.
pub(crate) const EXAMPLE: &str = "Example:\n  firn psbt show payment.psbt --key evidence";

/// Fees over this part of what is paid are a slip of the finger.
const FEE_PART: u64 = 10;
/// What no node relays (Bitcoin Core's dust limit of a Taproot output).
const DUST_SATS: u64 = 330;

/// What can be done with PSBTs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Put a payment together from coins that you name, for keys that no wallet watches.
    New(New),
    /// Say what signing a PSBT would do, and what the key's policy says of it.
    Show(Show),
}

/// Options of `firn psbt new`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  firn psbt new --key evidence --coin \
                  4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b:0:100000:0/0 \\\n    \
                  --pay bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080=60000 --fee 500 --change 0 \\\n    \
                  --out payment.psbt")]
pub(crate) struct New {
    /// The key: a ceremony's folder, a key.cbor, or a key id.
    #[arg(long, value_name = "WHERE")]
    pub(crate) key: String,
    /// A coin of the key: transaction id, output, satoshi, and the address's branch and index.
    #[arg(
        long = "coin",
        value_name = "TXID:VOUT:SATS:BRANCH/INDEX",
        required = true
    )]
    pub(crate) coins: Vec<String>,
    /// To whom, and how many satoshi.
    #[arg(long, value_name = "ADDRESS=SATS")]
    pub(crate) pay: String,
    /// What miners get, in satoshi.
    #[arg(long, value_name = "SATS")]
    pub(crate) fee: u64,
    /// The index of the change address that gets the rest.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) change: u32,
    /// The version of PSBT.
    #[arg(long, value_enum, default_value_t = Version::V2)]
    pub(crate) psbt_version: Version,
    /// Write base64 instead of bytes.
    #[arg(long)]
    pub(crate) base64: bool,
    /// Allow a fee of more than a tenth of what is paid.
    #[arg(long)]
    pub(crate) high_fee: bool,
    /// Where it goes.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) profile: ProfileOption,
}

/// Options of `firn psbt show`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  firn psbt show payment.psbt --key evidence\n\n\
                        Exit codes: 0, also where the policy would refuse it; with --check 1 then."
)]
pub(crate) struct Show {
    /// The PSBT, binary or base64.
    #[arg(value_name = "FILE")]
    pub(crate) psbt: PathBuf,
    /// The key: a ceremony's folder, a key.cbor, or a key id.
    #[arg(long, value_name = "WHERE")]
    pub(crate) key: String,
    /// End with exit code 1 where the key's policy would refuse it.
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) profile: ProfileOption,
}

/// The versions of PSBT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Version {
    /// BIP-174.
    #[value(name = "0")]
    V0,
    /// BIP-370.
    #[value(name = "2")]
    V2,
}

/// Runs `firn psbt`.
pub(crate) fn run(command: &Command, output: &Output) -> Result<Exit, Error> {
    match command {
        Command::New(arguments) => {
            must_not_exist(&arguments.out)?;
            let key = load(&arguments.key, &arguments.profile)?;
            let psbt = put_together(arguments, &key)?;
            let described = Described::of(&key, &psbt)?;
            let form = if arguments.base64 {
                Form::Base64
            } else {
                Form::Binary
            };
            form.write(&arguments.out, &psbt)?;
            show(&described, *output)?;
            Ok(Exit::Done)
        }
        Command::Show(arguments) => {
            let key = load(&arguments.key, &arguments.profile)?;
            let file = PsbtFile::read(&arguments.psbt)?;
            let described = Described::of(&key, &file.bytes)?;
            show(&described, *output)?;
            let refused = arguments.check && !described.is_allowed();
            Ok(if refused { Exit::Refused } else { Exit::Done })
        }
    }
}

fn load(place: &str, profile: &ProfileOption) -> Result<Key, Error> {
    let profile = profile.load()?;
    runtime()?.block_on(resolve(place, &profile))
}

fn show(described: &Described, output: Output) -> Result<(), Error> {
    if !output.is_json() {
        described.say(output);
    }
    output.object(described)
}

fn put_together(arguments: &New, key: &Key) -> Result<Vec<u8>, Error> {
    let coins = arguments
        .coins
        .iter()
        .map(|text| coin(text))
        .collect::<Result<Vec<_>, Error>>()?;
    let (address, amount) = paid(&arguments.pay)?;
    let to = key.network().script(address).ok_or_else(|| Error::Usage {
        what: format!("--pay {address}: it is no address of {}", key.network()),
    })?;
    let fee = sats("--fee", &arguments.fee.to_string())?;
    if !arguments.high_fee && fee.value().saturating_mul(FEE_PART) > amount.value() {
        return Err(Error::Usage {
            what: format!(
                "--fee {fee}: that is more than a tenth of the {amount} that are paid; --high-fee if it is \
                 meant"
            ),
        });
    }
    let spent = Sats::checked_sum(coins.iter().map(|coin| coin.value));
    let change = spent
        .and_then(|spent| spent.checked_sub(amount))
        .and_then(|rest| rest.checked_sub(fee))
        .ok_or_else(|| Error::Usage {
            what: "the coins do not cover the amount and the fee".to_owned(),
        })?;
    if change.value() < DUST_SATS {
        return Err(Error::Usage {
            what: format!(
                "the change would be {change}, which no node relays: pay more, or a higher fee"
            ),
        });
    }
    Payment {
        coins,
        to,
        amount,
        fee,
        change: Child::new(1, arguments.change)?,
        version: match arguments.psbt_version {
            Version::V0 => PsbtVersion::V0,
            Version::V2 => PsbtVersion::V2,
        },
    }
    .to_psbt(key.own_scripts())
}

fn paid(text: &str) -> Result<(&str, Sats), Error> {
    let (address, amount) = text.split_once('=').ok_or_else(|| Error::Usage {
        what: format!("--pay {text}: it must be ADDRESS=SATS"),
    })?;
    Ok((address, sats("--pay", amount)?))
}

fn sats(option: &str, text: &str) -> Result<Sats, Error> {
    let number = text.parse().ok().and_then(Sats::new);
    number
        .filter(|amount| amount.value() > 0)
        .ok_or_else(|| Error::Usage {
            what: format!("{option} {text}: it must be 1 to 2100000000000000 satoshi"),
        })
}

fn coin(text: &str) -> Result<Coin, Error> {
    let wrong = || Error::Usage {
        what: format!(
            "--coin {text}: it must be TXID:VOUT:SATS:BRANCH/INDEX, the transaction id as people read it"
        ),
    };
    let parts: Vec<&str> = text.split(':').collect();
    let &[txid, vout, amount, path] = parts.as_slice() else {
        return Err(wrong());
    };
    // People read a transaction id with its bytes turned round.
    let mut id: [u8; 32] = hex::decode(txid)
        .ok()
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(wrong)?;
    id.reverse();
    let (branch, index) = path.split_once('/').ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    Ok(Coin {
        outpoint: OutPoint {
            txid: Txid::new(id),
            vout: number(vout)?,
        },
        value: sats("--coin", amount)?,
        child: Child::new(number(branch)?, number(index)?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::{coin, paid};

    const TXID: &str = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b";

    #[test]
    fn a_coin_is_read_as_people_write_it() {
        let read = coin(&format!("{TXID}:3:100000:1/7")).unwrap();
        assert_eq!(read.outpoint.to_string(), format!("{TXID}:3"));
        assert_eq!(read.value.value(), 100_000);
        assert_eq!(read.child.to_string(), "/1/7");
        for wrong in [
            "",
            &format!("{TXID}:3:100000"),
            &format!("{TXID}:3:100000:1"),
            &format!("{TXID}:3:0:0/0"),
            &format!("{TXID}:-1:5:0/0"),
            &format!("{TXID}:3:2100000000000001:0/0"),
            &format!("{TXID}:3:5:2/0"),
            &format!("{TXID}:3:5:0/0:9"),
            &format!("{}:3:5:0/0", &TXID[2..]),
        ] {
            assert!(coin(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_paid_has_an_address_and_an_amount() {
        assert_eq!(paid("bcrt1q=5").unwrap().1.value(), 5);
        for wrong in ["bcrt1q", "bcrt1q=", "bcrt1q=0", "bcrt1q=0.1", "bcrt1q=-5"] {
            assert!(paid(wrong).is_err(), "{wrong}");
        }
    }
}
