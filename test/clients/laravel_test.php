<?php
// Laravel: a migration gives the key its default; create, insertGetId and firstOrCreate return ids by RETURNING.
require 'Illuminate/Database/autoload.php';

use Illuminate\Database\Capsule\Manager;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Query\Expression;
use Illuminate\Database\Schema\Blueprint;

class Order extends Model
{
    public $timestamps = false;
    protected $fillable = ['item'];
}

function check(bool $holds, string $text): void
{
    if (!$holds) {
        throw new Exception($text);
    }
}

$manager = new Manager();
$manager->addConnection(['driver' => 'pgsql', 'host' => getenv('PGHOST'), 'port' => getenv('PGPORT'),
                         'username' => getenv('PGUSER'), 'password' => getenv('PGPASSWORD'), 'database' => getenv('PGDATABASE')]);
$manager->setAsGlobal();
$manager->bootEloquent();
$manager->schema()->create('orders', function (Blueprint $table) {
    $table->bigInteger('id')->primary()->default(new Expression('uidgen.uid_next()'));
    $table->text('item');
});

$order = Order::create(['item' => 'tea']);
check($order->id > 2 ** 53, 'create returns the id');
check(Order::find($order->id)->item === 'tea', 'it is the id of the row');
check(Manager::table('orders')->insertGetId(['item' => 'milk']) > $order->id, 'insertGetId returns the id');
check(Order::firstOrCreate(['item' => 'tea'])->id === $order->id, 'firstOrCreate finds the row');
check(Order::firstOrCreate(['item' => 'salt'])->id > $order->id, 'firstOrCreate inserts a row');
check(json_decode($order->toJson())->id === $order->id, 'PHP reads 64 bits from JSON');
