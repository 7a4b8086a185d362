<?php
// PDO: RETURNING has the id, which is an int; lastInsertId() fails, or has the number of another table's sequence.
function check(bool $holds, string $text): void
{
    if (!$holds) {
        throw new Exception($text);
    }
}

$pdo = new PDO('pgsql:', getenv('PGUSER'));
$pdo->exec('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)');

$insert = $pdo->prepare('INSERT INTO orders (item) VALUES (?) RETURNING id');
$insert->execute(['tea']);
$id = $insert->fetchColumn();
check(is_int($id) && $id > 2 ** 53, 'an id is an int');

$items = array_map(fn ($n) => "item $n", range(1, 1000));
$insert = $pdo->prepare('INSERT INTO orders (item) SELECT json_array_elements_text(?) RETURNING id');
$insert->execute([json_encode($items)]);
$ids = $insert->fetchAll(PDO::FETCH_COLUMN);
check(count(array_unique($ids)) === 1000 && min($ids) > $id, 'the ids of many rows');

// lastInsertId() sends SELECT lastval(), which knows sequences only.
try {
    $pdo->lastInsertId();
    throw new Exception('lastInsertId() returned a value');
} catch (PDOException $error) {
    check(str_contains($error->getMessage(), 'lastval is not yet defined in this session'), $error->getMessage());
}
$pdo->exec(<<<'SQL'
    CREATE TABLE audit (id bigserial PRIMARY KEY, order_id bigint);
    CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO audit (order_id) VALUES (NEW.id); RETURN NULL; END $$;
    CREATE TRIGGER audit AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION audit();
    SQL);
$insert = $pdo->prepare('INSERT INTO orders (item) VALUES (?) RETURNING id');
$insert->execute(['milk']);
check($pdo->lastInsertId() === '1' && $insert->fetchColumn() > $id, 'lastInsertId() is the number of the audit table');

// A float has 53 bits. PDO sends it as text, so PostgreSQL refuses it for a bigint parameter instead of rounding.
$find = $pdo->prepare('SELECT count(*) FROM orders WHERE id = ?');
$find->execute([$ids[0]]);
check($find->fetchColumn() === 1, 'an int finds its row');
try {
    $find->execute([(float) $ids[0]]);
    throw new Exception('a float was taken');
} catch (PDOException $error) {
    check($error->getCode() === '22P02', $error->getMessage());
}

// JSON holds the digits, but JavaScript rounds them.
check(json_encode(['id' => (string) $id]) === '{"id":"' . $id . '"}', 'a string in JSON');
check(json_decode("{\"id\": $id}")->id === $id, 'PHP reads all digits of a number');
