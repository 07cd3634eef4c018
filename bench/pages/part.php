<?php
// The pages of stock.page; the database lies beside this folder.
$db = new PDO('sqlite:' . dirname(__DIR__) . '/stock.db', null, null, [PDO::ATTR_PERSISTENT => true]);
function rows(string $statement, array $values): PDOStatement {
  global $db;
  $rows = $db->prepare($statement);
  $rows->execute($values);
  return $rows;
}
function table(PDOStatement $rows): void {
  echo '<table>';
  foreach ($rows as $row)
    echo '<tr><td>', $row[0], '<td>', htmlspecialchars($row[1]), '<td>', $row[2];
  echo '</table>';
}
function part(string $id): void {
  echo '<h1>Part</h1>';
  foreach (rows('SELECT id, title, cents FROM part WHERE id = ?', [$id]) as $row)
    echo '<p>', $row[0], ' ', htmlspecialchars($row[1]), ' ', $row[2];
}
switch ($_GET['block']) {
case 'one':
  part($_GET['id']);
  break;
case 'list':
  echo '<h1>Parts</h1>';
  table(rows('SELECT id, title, cents FROM part WHERE id >= ? ORDER BY id LIMIT 20', [$_GET['id']]));
  break;
case 'search':
  echo '<h1>Parts</h1>';
  table(rows("SELECT id, title, cents FROM part WHERE title LIKE '%' || ? || '%' ORDER BY id LIMIT 20", [$_GET['q']]));
  break;
case 'edit':
  rows('UPDATE part SET cents = ? WHERE id = ?', [$_POST['cents'], $_POST['id']]);
  part($_POST['id']);
  break;
case 'report':
  echo '<h1>Shelves</h1>';
  table(rows('SELECT id / 100 AS shelf, count(*), sum(cents) FROM part WHERE id BETWEEN ? AND ? + 999'
    . ' GROUP BY shelf ORDER BY shelf', [$_GET['id'], $_GET['id']]));
}
