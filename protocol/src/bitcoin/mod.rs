//! Bitcoin: PSBT, sighashes, descriptors.
