//! Each command through its own function, with folders of its own: what it makes, who may read it, what
//! it refuses and by which code.

mod domain;
mod local;
mod plans;
mod world;

/// Every command that stands alone has these properties, whatever it does.
mod form {
    use clap::{CommandFactory, Parser};

    use crate::cli::Arguments;

    #[test]
    fn what_the_help_shows_can_be_typed() {
        fn examples(command: &clap::Command, found: &mut Vec<String>) {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let joined = help.replace("\\\n", " ");
            let lines = joined.lines().map(str::trim);
            found.extend(
                lines
                    .filter(|line| line.starts_with("firn "))
                    .map(str::to_owned),
            );
            for subcommand in command.get_subcommands() {
                examples(subcommand, found);
            }
        }
        let mut found = Vec::new();
        examples(&Arguments::command(), &mut found);
        assert!(found.len() > 12, "{found:?}");
        for example in found {
            // Digests are cut short for the eye.
            let line = example
                .replace("9f…", &"9f".repeat(32))
                .replace("41…", &"41".repeat(32));
            let line = line.split(" > ").next().unwrap_or_default();
            let mut words: Vec<String> = Vec::new();
            for (index, part) in line.split('"').enumerate() {
                if index % 2 == 1 {
                    words.push(part.to_owned());
                } else {
                    words.extend(part.split_whitespace().map(str::to_owned));
                }
            }
            if let Err(error) = Arguments::try_parse_from(&words) {
                panic!("{example}: {error}");
            }
        }
    }
}
