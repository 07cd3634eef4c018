print "Content-Type: text/plain\n\n";
our @order;
BEGIN { push @order, 'begin' } UNITCHECK { push @order, 'unitcheck' } CHECK { push @order, 'check' } INIT { push @order, 'init' }
print "@order\n";
sub deep { return (caller(0))[3] . (defined caller(1) ? 'more' : 'top') }
print deep(), "\n";
my $file_lexical = 5; sub named { return $file_lexical++ } print named(), named(), $file_lexical, "\n";
print defined(wantarray) ? 'wanted' : 'not', "\n";
