# Notes on a wall, as a PSGI application: a GET shows them, a POST adds one.

use strict;
use warnings;

use constant { BODY_BYTES_MAX => 10_000, NOTES_MAX => 100 };

my @notes = ('Tea is at four.');

sub escape {
    my ($text) = @_;
    my %entity = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;');
    return $text =~ s/([&<>])/$entity{$1}/gr;
}

sub {
    my ($env) = @_;
    if ($env->{REQUEST_METHOD} eq 'POST') {
        $env->{'psgi.input'}->read(my $body, BODY_BYTES_MAX);
        if (my ($note) = $body =~ /(?:^|&)note=([^&]*)/) {
            push @notes, $note =~ tr/+/ /r =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ger;
            splice @notes, 0, -NOTES_MAX if @notes > NOTES_MAX;
        }
        return [303, [Location => $env->{SCRIPT_NAME} || '/'], []];
    }
    my $items = join "\n", map { '<li>' . escape($_) } @notes;
    my $page = <<"END";
<!doctype html>
<title>Notes</title>
<form method="post"><input name="note" autofocus> <button>Add</button></form>
<ul>
$items
</ul>
END
    return [200, ['Content-Type' => 'text/html; charset=utf-8'], [$page]];
};
