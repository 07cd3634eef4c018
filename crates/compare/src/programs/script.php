<?php
// The query string says how many KiB of body.
header('Content-Type: text/plain');
$line = str_repeat('x', 1023) . "\n";
for ($left = (int) ($_SERVER['QUERY_STRING'] ?? 0); $left > 0; $left--) {
    echo $line;
}
