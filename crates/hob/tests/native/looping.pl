# The tests' program as a plain loop.
use strict;
use warnings;
use Acts;
use Hob;

my @fields = ('Content-Type' => 'application/octet-stream');

while (my $request = Hob->accept) {
    my ($verb, $rest) = Acts::words($request->path);
    if    ($verb eq 'pid')   { $request->respond(200, [@fields], $$); next }
    elsif ($verb eq 'raise') { $request->fail('told to raise');       next }
    elsif ($verb eq 'kill')  { kill KILL => $$ }
    elsif ($verb eq 'down') {
        $request->respond(200, [@fields, 'Content-Length' => $rest], Acts::pattern($rest));
        next;
    }
    $request->start(200, [@fields]);
    if ($verb eq 'echo') {
        while (length(my $piece = $request->read(50_000))) { $request->write($piece) }
    }
    elsif ($verb eq 'pieces') {
        $request->write("first\n");
        Acts::wait_for("$rest.go");
        $request->write("second\n");
    }
    elsif ($verb eq 'endless') {
        1 while $request->write('x' x 10_000);
        Acts::mark("$rest.left");
    }
    elsif ($verb eq 'raise_late') {
        $request->write("first\n");
        Acts::wait_for("$rest.go");
        $request->fail('told to raise');
    }
    elsif ($verb eq 'kill_late') {
        $request->write("first\n");
        Acts::wait_for("$rest.go");
        kill KILL => $$;
    }
    $request->finish;
}
