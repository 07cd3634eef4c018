$| = 1; print "Content-Type: text/plain\n\n";
print system('exit 3') >> 8, ' ', `echo \$SCRIPT_NAME`, ' ', $? , "\n";
open my $p, '|-', 'cat' or die; print $p "piped\n"; close $p; print "closed $?\n";
