//! Asks a coordinator, as a requester or as an operator. It decides whether what comes back proves
//! itself, and believes nothing else.

mod line;
mod operator;
mod requester;

pub use line::{Line, Peer};
pub use operator::{Delivered, OperatorLine};
pub use requester::{Answer, Asked, RequesterLine};
