<!doctype html>
<?php
// A page of PHP: hob has started the interpreter, and asks it over FastCGI.
$steeps = ["assam" => 4, "oolong" => 3, "sencha" => 2];
$tea = trim($_SERVER["PATH_INFO"] ?? "", "/");
?>
<html lang="en">
<meta charset="utf-8">
<title>Teas of the house, in PHP</title>
<h1>Teas of the house</h1>
<?php if (isset($steeps[$tea])): ?>
<p><?= $tea ?> steeps for <?= $steeps[$tea] ?> minutes.</p>
<?php endif ?>
<ul>
<?php foreach (array_keys($steeps) as $name): ?>
<li><a href="/php/index.php/<?= $name ?>"><?= $name ?></a></li>
<?php endforeach ?>
</ul>
<p>PHP <?= PHP_VERSION ?>, process <?= getmypid() ?>.</p>
