//! The carrier of lines: the classic protocol over three pipes, for programs without a library.
//!
//! ```text
//!  server                                       program
//!  input    --- variables, replies ----------->  descriptor 3, which CGIPLUSIN names
//!  body     --- CONTENT_LENGTH bytes --------->  standard input
//!  output   <-- a CGI answer, its end,  -------  standard output
//!               callouts in between
//!
//!  None --a request is handed--> Head --empty line--> Body --end string--> None
//!                                  '--nobody waits, or no head--> Unwanted --'
//! ```
//!
//! What is made of it are the steps that the other carriers' messages are, so a worker's driver
//! knows little of it. One request at a time, and nothing is said by a program that waits for one:
//! output outside an answer ends the worker, because in the next answer it would reach somebody
//! else. So does a body of which a part was read, for nobody knows how much of it stands in the
//! program's own memory; one that was not read at all is taken out of the pipe.
//!
//! - `carrier` the pipes of one worker, `pipe` one of them
//! - `answer` how far an answer is

mod answer;
mod carrier;
mod pipe;

pub(super) use carrier::{Heard, Lines};
