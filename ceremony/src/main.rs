//! The `firn` command. Everything is in the library, where it can be tested.

fn main() -> std::process::ExitCode {
    firn_ceremony::main()
}
