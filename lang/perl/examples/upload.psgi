# A form with a file: resident = { psgi = "upload.psgi" }. What was sent is read line
# by line, and only its digest is shown. Needs nothing but Perl.

use strict;
use warnings;

use Digest::SHA ();

my $form = <<'END';
<!doctype html>
<title>Upload</title>
<form method="post" enctype="multipart/form-data">
<p><label>Name <input name="name"></label>
<p><label>File <input type="file" name="file"></label>
<p><button>Send</button>
</form>
END

# The parts of a multipart body, each with its head and a digest of what it holds.
sub parts {
    my ($input, $boundary) = @_;
    my (@parts, $part, $held);
    while (defined(my $line = readline $input)) {
        if ($line =~ /\A--\Q$boundary\E(--)?\r\n/) {
            my $is_last = $1;
            $part->{digest}->add($held =~ s/\r\n\z//r) if $part;
            last if $is_last;
            push @parts, $part = { head => '', digest => Digest::SHA->new(256), bytes => 0 };
            while (defined($line = readline $input) && $line ne "\r\n") { $part->{head} .= $line }
            $held = '';
            next;
        }
        next if !$part;
        $part->{digest}->add($held);    # the line end before a boundary is not of the part
        $held = $line;
        $part->{bytes} += length $line;
    }
    $_->{bytes} -= 2 for @parts;
    return @parts;
}

sub escape {
    my ($text) = @_;
    my %entity = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;');
    return $text =~ s/([&<>"])/$entity{$1}/gr;
}

sub {
    my ($env) = @_;
    my @html = ('Content-Type' => 'text/html; charset=utf-8');
    return [200, [@html], [$form]] if $env->{REQUEST_METHOD} ne 'POST';
    my ($boundary) = ($env->{CONTENT_TYPE} // '') =~ /\Amultipart\/form-data;.*boundary="?([^";]+)/
        or return [415, ['Content-Type' => 'text/plain'], ["this form is sent as multipart\n"]];
    my $list = '';
    for my $part (parts($env->{'psgi.input'}, $boundary)) {
        my ($name) = $part->{head} =~ /\bname="([^"]*)"/;
        my ($file) = $part->{head} =~ /\bfilename="([^"]*)"/;
        $list .= sprintf "<li>%s: %s%d bytes, SHA-256 %s\n", escape($name // ''),
            defined $file ? escape($file) . ', ' : '', $part->{bytes}, $part->{digest}->hexdigest;
    }
    return [200, [@html], ["<!doctype html>\n<title>Received</title>\n<ul>\n$list</ul>\n"]];
};
