$| = 1; print "Content-Type: text/plain\n\n";
my $child = fork; if (!$child) { print "child\n"; exit 7 }
print waitpid($child, 0) == $child ? 'waited ' : 'lost ', $? >> 8, ' ', wait, "\n";
