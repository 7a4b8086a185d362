<?php
// Doctrine ORM: a generator of the application draws ids in arrays; the schema tool finds nothing to change.
require_once 'Doctrine/ORM/autoload.php';
require_once 'Doctrine/DBAL/autoload.php';

use Doctrine\DBAL\DriverManager;
use Doctrine\ORM\Configuration;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\EntityManagerInterface;
use Doctrine\ORM\Id\AbstractIdGenerator;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\Mapping\Driver\AttributeDriver;
use Doctrine\ORM\Tools\SchemaTool;

class UidGenerator extends AbstractIdGenerator
{
    private array $ids = [];

    public function generateId(EntityManagerInterface $em, $entity): string
    {
        $this->ids = $this->ids ?: $em->getConnection()->fetchFirstColumn('SELECT unnest(uidgen.uid_next_array(50))');
        return (string) array_shift($this->ids);
    }
}

#[ORM\Entity]
#[ORM\Table(name: 'orders')]
class Order
{
    #[ORM\Id]
    #[ORM\Column(type: 'bigint', options: ['default' => 'uidgen.uid_next()'])]
    #[ORM\GeneratedValue(strategy: 'CUSTOM')]
    #[ORM\CustomIdGenerator(UidGenerator::class)]
    public ?string $id = null;

    #[ORM\Column]
    public string $item = '';
}

#[ORM\Entity]
#[ORM\Table(name: 'notes')]
class Note
{
    #[ORM\Id]
    #[ORM\Column(type: 'bigint')]
    #[ORM\GeneratedValue(strategy: 'IDENTITY')]
    public ?string $id = null;
}

function check(bool $holds, string $text): void
{
    if (!$holds) {
        throw new Exception($text);
    }
}

$config = new Configuration();
$config->setMetadataDriverImpl(new AttributeDriver([]));
$config->setProxyDir(sys_get_temp_dir());
$config->setProxyNamespace('Proxies');
$config->setSchemaAssetsFilter(fn ($asset) => !preg_match('/^uid(gen|_\w+)\./', is_string($asset) ? $asset : $asset->getName()));
$connection = DriverManager::getConnection([
    'driver' => 'pdo_pgsql',
    'host' => getenv('PGHOST'),
    'port' => getenv('PGPORT'),
    'user' => getenv('PGUSER'),
    'dbname' => getenv('PGDATABASE'),
], $config);
$em = new EntityManager($connection, $config);
$tool = new SchemaTool($em);
$classes = [$em->getClassMetadata(Order::class), $em->getClassMetadata(Note::class)];
$tool->updateSchema($classes);
check($tool->getUpdateSchemaSql($classes) === [], 'the schema tool finds no difference');

$ids = [];
for ($n = 0; $n < 120; $n++) {
    $order = new Order();
    $order->item = "item $n";
    $em->persist($order);
    $ids[] = $order->id;
}
$em->flush();
check(count(array_unique($ids)) === 120 && $ids[0] > 2 ** 53, 'each object has an id');
$em->clear();
check($em->find(Order::class, $ids[5])->item === 'item 5', 'it is the id of the row');
$drawn = $connection->fetchOne("SELECT sum(ids) FROM uidgen.uid_stat WHERE kind = 'generator'");
check($drawn == 150, "120 objects took three arrays of 50, and not $drawn ids");
$other = $connection->fetchOne("INSERT INTO orders (item) VALUES ('by hand') RETURNING id");
check($other > $ids[119], 'another program draws from the same generator');

// IDENTITY asks the sequence of the column for its last value.
$connection->executeStatement('ALTER TABLE notes ALTER id SET DEFAULT uidgen.uid_next()');
$em->persist(new Note());
try {
    $em->flush();
    throw new Exception('IDENTITY returned an id');
} catch (Doctrine\DBAL\Exception $error) {
    check(str_contains($error->getMessage(), 'currval of sequence "notes_id_seq" is not yet defined'), $error->getMessage());
}

// Without the filter the schema tool would drop the generators, with the defaults that draw from them.
$config->setSchemaAssetsFilter(fn () => true);
check(in_array('DROP SEQUENCE uid_generators.uid_default CASCADE', $tool->getUpdateSchemaSql($classes), true), 'it finds sequences');
