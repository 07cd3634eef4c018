//! The flags of `hob page`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const CHECK_HELP: &str = "\
Examples:
  hob page check stock.d2w
      everything that is wrong or doubtful in it and in the files it includes, with file, line and
      column; the rules stand in the reference of the language
  hob page check --ini db2www.ini macros/*.d2w
      the same of many, with the folders of INCLUDE_PATH
  hob page check --program rpt.pl --program stock macros/*.d2w
      and says which other programs they call, which their route does not name

Exit codes:
  0  no errors; there may be warnings and notes
  1  a page has an error, or cannot be read
  2  the arguments are wrong";

const RUN_HELP: &str = "\
Examples:
  hob page run stock.d2w list kind=bolt
      block `list`, as a request for .../stock.d2w/list?kind=bolt would run it; the page on
      standard output, what failed on standard error
  hob page run stock.d2w list --database sqlite:stock.db --trace
      over a database, and with each variable, statement, bound value and time
  hob page run stock.d2w list --database postgres://ann@db.example/stock
      over PostgreSQL; a password that is not in the URL is that of PGPASSWORD
  hob page run stock.d2w list --database 'odbc:DSN=stock;UID=ann'
      over ODBC, with unixODBC and a driver; the password is that of HOB_ODBC_PASSWORD

  hob page run guests.d2w sign name=Ann --files data
      with the flat files and registries of this folder; else they are in that of the page

  hob page run stock.d2w show part=bolt --program programs/price.py
      starts this program where the page calls it: without a shell, as you, and with nothing else
      of the limits that a server's route has; one that is not named is not started

Exit codes:
  0  the page was printed
  1  the page is wrong, a statement failed, or the database is not there
  2  the arguments are wrong, or there is no such block";

const FMT_HELP: &str = "\
Examples:
  hob page fmt stock.d2w
      prints it with keywords in upper case, functions as the reference has them, and no needless
      blanks and empty lines between declarations; it does the same as before
  hob page fmt --write macros/*.d2w
      rewrites those that are laid out otherwise
  hob page fmt --check macros/*.d2w
      only says which those are

Exit codes:
  0  done; with --check all are laid out
  1  a page is wrong or cannot be written; with --check one is laid out otherwise
  2  the arguments are wrong";

const NEW_HELP: &str = "\
Examples:
  hob page new part --database sqlite:stock.db >part.page
      a page that lists, searches, adds, edits and deletes rows of the table `part`: a start, to be
      changed
  hob page new shop.part --database postgres://ann@/stock
      the same of PostgreSQL, by its socket on this machine

Exit codes:
  0  printed
  1  there is no such table, or the database is not there
  2  the arguments are wrong";

/// What to do with macro pages.
#[derive(Subcommand)]
pub(crate) enum PageCommand {
    /// Say what is wrong and what is doubtful about macro pages
    Check(PageCheckOptions),
    /// Run a block of a macro page and print it, as a server would answer
    Run(PageRunOptions),
    /// Lay macro pages out
    Fmt(PageFmtOptions),
    /// Print a new page that lists, searches and edits a table of a database
    New(PageNewOptions),
}

/// What to check.
#[derive(Args)]
#[command(after_help = CHECK_HELP)]
pub(crate) struct PageCheckOptions {
    /// Macro pages
    #[arg(required_unless_present = "grammar", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Initialization file, whose INCLUDE_PATH has folders of included files
    #[arg(long, value_name = "FILE")]
    pub(crate) ini: Option<PathBuf>,
    /// A program that the pages may call, as `programs` of their route has it; those that they call
    /// besides are errors
    #[arg(long = "program", value_name = "NAME")]
    pub(crate) programs: Vec<String>,
    /// Print the grammar of the language for editors instead, in the form of TextMate
    #[arg(long, exclusive = true)]
    pub(crate) grammar: bool,
}

/// What to run.
#[derive(Args)]
#[command(after_help = RUN_HELP)]
pub(crate) struct PageRunOptions {
    /// Macro page
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Its block; the only one when it is not given
    pub(crate) block: Option<String>,
    /// Fields of the request, as a query or a form has them
    #[arg(value_name = "NAME=VALUE")]
    pub(crate) fields: Vec<String>,
    /// Database that statements go to, whatever DATABASE says: sqlite:FILE,
    /// postgres://USER@HOST/DATABASE or odbc:DSN=NAME
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Let statements write nothing, and change no flat files and registries
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Folder of flat files and registries; that of the page when it is not given
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,
    /// Program that the page may start, by the name of its file
    #[arg(long = "program", value_name = "FILE")]
    pub(crate) programs: Vec<PathBuf>,
    /// Initialization file of the pages
    #[arg(long, value_name = "FILE")]
    pub(crate) ini: Option<PathBuf>,
    /// Show each variable, statement, bound value, rows and time on standard error
    #[arg(long)]
    pub(crate) trace: bool,
    /// Show how the database runs each statement, on standard error
    #[arg(long)]
    pub(crate) plan: bool,
}

/// What to lay out.
#[derive(Args)]
#[command(after_help = FMT_HELP)]
pub(crate) struct PageFmtOptions {
    /// Macro pages
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Rewrite them
    #[arg(long)]
    pub(crate) write: bool,
    /// Say which are laid out otherwise, and change nothing
    #[arg(long, conflicts_with = "write")]
    pub(crate) check: bool,
}

/// What to make a page for.
#[derive(Args)]
#[command(after_help = NEW_HELP)]
pub(crate) struct PageNewOptions {
    /// Table, with its schema before a point if it needs one
    pub(crate) table: String,
    /// Database: sqlite:FILE or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL")]
    pub(crate) database: String,
}
