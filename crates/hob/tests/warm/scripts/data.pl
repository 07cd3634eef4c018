print "Content-Type: text/plain\n\n", "at ", tell(DATA), "\n", <DATA>, "-\n", <STDIN>;
seek DATA, 0, 0; my $first = <DATA>; $first = <DATA>; print "first: $first";
__DATA__
one
two
