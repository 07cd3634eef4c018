//! `hob manual FOLDER`: man pages and completions, made of the table of arguments.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::{Arg, ArgGroup, Command, CommandFactory, Id};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::CommandFailure;
use crate::args::Cli;

/// Shells, and where the completions of a package are, below `/usr/share`.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/hob"),
    (Shell::Zsh, "zsh/vendor-completions/_hob"),
    (Shell::Fish, "fish/vendor_completions.d/hob.fish"),
];

/// Writes all of them.
pub(crate) fn write(folder: &Path) -> Result<(), CommandFailure> {
    pages(folder)
        .and_then(|()| completions(folder))
        .map_err(|error| CommandFailure {
            code: 1,
            text: format!("cannot write into {}: {error}", folder.display()),
        })
}

/// A page of each command, as `hob-serve(1)`.
fn pages(folder: &Path) -> io::Result<()> {
    let pages = folder.join("man/man1");
    fs::create_dir_all(&pages)?;
    let mut table = shown();
    table.build();
    let mut waiting = vec![table];
    while let Some(command) = waiting.pop() {
        waiting.extend(command.get_subcommands().cloned());
        let name = command.get_display_name().unwrap_or("hob").to_owned();
        fs::write(pages.join(format!("{name}.1")), page(command, &name)?)?;
    }
    Ok(())
}

fn page(command: Command, name: &str) -> io::Result<Vec<u8>> {
    let more = command.get_after_help().map(ToString::to_string);
    let has_commands = command.has_subcommands();
    let man = Man::new(command);
    let mut text = Vec::new();
    let version = env!("CARGO_PKG_VERSION");
    writeln!(text, ".TH {name} 1 \"\" \"hob {version}\" hob")?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if has_commands {
        man.render_subcommands_section(&mut text)?;
    }
    if let Some(more) = more {
        sections(&mut text, &more)?;
    }
    Ok(text)
}

/// What stands below the help, with its lines as they are: `Examples:` begins a section.
fn sections(text: &mut Vec<u8>, more: &str) -> io::Result<()> {
    for block in more.split("\n\n") {
        let (title, lines) = match block.split_once(":\n") {
            Some((title, lines)) if !title.contains('\n') => (title, lines),
            _ => ("Notes", block),
        };
        writeln!(text, ".SH {}", title.to_uppercase())?;
        writeln!(text, ".nf")?;
        for line in lines.lines() {
            // A point or a quote at its beginning would make a request of it.
            let line = line.replace('\\', "\\e").replace('-', "\\-");
            writeln!(text, "\\&{line}")?;
        }
        writeln!(text, ".fi")?;
    }
    Ok(())
}

fn completions(folder: &Path) -> io::Result<()> {
    for (shell, place) in SHELLS {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut shown(), "hob", &mut text);
        let path = folder.join(place);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)?;
    }
    Ok(())
}

/// The table without what hob starts by itself, which shells would offer.
fn shown() -> Command {
    without_hidden(&Cli::command()).version(env!("CARGO_PKG_VERSION"))
}

/// A command as its help shows it. Completions offer hidden options too, and clap takes none away:
/// the command is made again of the others.
fn without_hidden(command: &Command) -> Command {
    // It is made once, in a process that ends.
    let name: &'static str = command.get_name().to_owned().leak();
    let mut shown = Command::new(name).disable_help_subcommand(true);
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(about) = command.get_long_about() {
        shown = shown.long_about(about.clone());
    }
    if let Some(more) = command.get_after_help() {
        shown = shown.after_help(more.clone());
    }
    let (hidden, arguments): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().partition(|one| one.is_hide_set());
    let is_hidden = |id: &&Id| hidden.iter().any(|one| one.get_id() == *id);
    let groups = command.get_groups().map(|group| {
        let shown = group.get_args().filter(|id| !is_hidden(id)).cloned();
        ArgGroup::new(group.get_id().clone())
            .multiple(true)
            .args(shown)
    });
    // Others conflict with them by name: a group without options stands for each.
    let names = hidden.iter().map(|one| ArgGroup::new(one.get_id().clone()));
    let commands = command.get_subcommands().filter(|one| !one.is_hide_set());
    shown
        .args(arguments.into_iter().cloned())
        .groups(groups.chain(names))
        .subcommands(commands.map(without_hidden))
        .subcommand_required(command.is_subcommand_required_set())
        .allow_missing_positional(command.is_allow_missing_positional_set())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_shown_has_a_page_and_is_offered_by_every_shell() {
        let names: Vec<String> = shown()
            .get_subcommands()
            .map(|command| command.get_name().to_owned())
            .collect();
        assert!(names.contains(&"serve".to_owned()) && !names.contains(&"spawner".to_owned()));
        for (shell, place) in SHELLS {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut shown(), "hob", &mut text);
            let text = String::from_utf8(text).unwrap_or_default();
            for name in &names {
                assert!(text.contains(name.as_str()), "{place}: {name}");
            }
            for hidden in [
                "compare-supervisor",
                "handover-check",
                "unlisted",
                "full-handshakes",
            ] {
                assert!(!text.contains(hidden), "{place}: {hidden}");
            }
        }
    }

    #[test]
    fn examples_keep_their_lines_in_a_page() {
        let mut text = Vec::new();
        sections(&mut text, "Examples:\n  hob top\n  .x \\\n\nSee also.").unwrap();
        assert_eq!(
            String::from_utf8_lossy(&text),
            ".SH EXAMPLES\n.nf\n\\&  hob top\n\\&  .x \\e\n.fi\n.SH NOTES\n.nf\n\\&See also.\n.fi\n"
        );
    }
}
