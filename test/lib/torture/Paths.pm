# What the sessions draw from, and in which ways: the streams, the statements, and the tables that they need.
#
# A stream is a generator or a segment in one database. To add a way to draw, add a line to Ways.pm, and one to @reading or
# @writing. To add a generator, add it to %generators; its layout and its bounds are read from the server.
package Paths;

use v5.36;

use List::Util qw(max);
use Ways;

# Arguments of uid_generator_create. order: 2, across all sessions (P2); 0: not promised. is_moved: alter_worker
# gives it another worker id, each time the next one. The builtin generator is 'uid_default'.
my %generators = (
	twitter => { create => "'twitter'", order => 2 },
	hutool => { create => "'hutool', datacenter_id => 3", order => 2 },
	leaf => { create => "'leaf'", order => 2 },
	baidu => { create => "'baidu'", order => 2 },
	js53 => { create => "'js53'", order => 0 },
	sonyflake => { create => "'sonyflake', datacenter_id => 4711", order => 2 },
	instagram => { create => "'instagram'", order => 2 },
	baidu_cached => { create => "'baidu_cached'", order => 2 },
	shared => { create => "mode => 'cached', spread => false", order => 2 },
	ring => { create => "mode => 'cached', spread => false, boost_power => 2, lease_ms => 4000, max_ahead_ms => 8000", order => 2 },
	# Its worker ids are used up after four starts.
	few => { create => "datacenter_bits => 0, worker_bits => 2, sequence_bits => 10", order => 2 },
	# Far ahead of the clock, always with the same node: only its lease keeps a restart apart.
	far => {
		create => "datacenter_bits => 0, worker_bits => 5, sequence_bits => 4, lease_ms => 10000,"
		  . " max_ahead_ms => 60000, worker_policy => 'static', worker_number => 7",
		order => 2 },
	# With few sequence numbers, so that many ticks are used: a clock that goes back comes to ticks that were.
	backup => {
		create => "datacenter_bits => 0, worker_bits => 5, sequence_bits => 3, backup_worker => true, when_back => 'backup',"
		  . " tolerance_ms => 500, worker_policy => 'static', worker_number => 5",
		order => 0 },
	altered => {
		create => "datacenter_bits => 0, worker_bits => 10, sequence_bits => 3, worker_policy => 'static', worker_number => 1",
		order => 2, is_moved => 1 });

# Sequences. name: drawn from by name. order as above; 1: in each session, because other commands move the counter.
my %segments = (
	named => { create => "SELECT segment_create('named')", sequence => 'uid_segments.named', order => 2 },
	small => { create => "SELECT segment_create('small', 1000, 16, 64)", sequence => 'uid_segments.small', order => 2,
		least => 1000 },
	taken => { create => "SELECT segment_create('taken', step => 20)", sequence => 'uid_segments.taken', order => 2 },
	plain => { create => 'CREATE SEQUENCE plain', order => 2 },
	down => { create => 'CREATE SEQUENCE down INCREMENT -3 MINVALUE -9000000000000000000', order => 2, sign => -1 },
	moved => { create => 'CREATE SEQUENCE moved', order => 1 },
	mixed => { create => 'CREATE SEQUENCE mixed', order => 1 },
	mixed_small => { create => 'CREATE SEQUENCE mixed_small', order => 1 },
	of_orders => { create => 'CREATE SEQUENCE of_orders', order => 2 });

my $tables = <<'END';
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uid_next(), v bigint UNIQUE DEFAULT segment_next('of_orders'::regclass));
CREATE TABLE copied (id bigint DEFAULT uid_next(), item text);
CREATE TABLE ticketed (id bigint PRIMARY KEY, item text);
CREATE TABLE mixed_rows (id bigint PRIMARY KEY DEFAULT nextval('mixed'));
CREATE TABLE mixed_small_rows (id bigint PRIMARY KEY DEFAULT nextval('mixed_small'));
SELECT uid_leaf_alloc_create();
INSERT INTO leaf_alloc (biz_tag, step) VALUES ('taken', 20);
SELECT uid_t_sequence_create();
INSERT INTO t_sequence VALUES ('taken', 1, 20);
SELECT uid_key_create('shown'), uid_key_create('versioned', 63, 10);
CREATE TABLE numbers AS SELECT n FROM generate_series(1, 3000) AS n;
CREATE FUNCTION ticket() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := uid_next(); RETURN NEW; END $$;
CREATE TRIGGER ticket BEFORE INSERT ON ticketed FOR EACH ROW EXECUTE FUNCTION ticket();
-- Every second draw is in a subtransaction that is rolled back; its value reaches the caller all the same.
CREATE FUNCTION in_loop(count integer) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
  value bigint;
BEGIN
  FOR i IN 1 .. count LOOP
    BEGIN
      value := uid_next();
      IF i % 2 = 0 THEN
        RAISE 'rolled back';
      END IF;
    EXCEPTION WHEN raise_exception THEN
    END;
    RETURN NEXT value;
  END LOOP;
END $$;
END

# What each connection begins with. An error of the second list is expected.
my @setup = (
	'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0',
	'PREPARE one AS SELECT uid_next()',
	'PREPARE many(integer) AS SELECT unnest(uid_next_array($1))');
my @tried = (q{ROLLBACK PREPARED 'w{w}'});

# Weight, streams, statement. In a read-only round nothing is written, so that no commit flushes the log.
my @reading = (
	[ 20, 'uid_default', Ways::draw('id') ],
	[ 10, 'uid_default', Ways::draw('ids', '', '{100}') ],
	[ 10, 'uid_default', Ways::draw('id_array', '', '{1000}') ],
	[ 5, 'uid_default', Ways::draw('uuids', '', '{100}') ],
	[ 5, 'uid_default', 'COPY (' . Ways::draw('ids', '', '{1000}') . ') TO STDOUT' ],
	[ 5, 'uid_default', 'EXECUTE one' ],
	[ 5, 'uid_default', 'EXECUTE many({50})' ],
	[ 5, 'uid_default', 'SELECT in_loop({50})' ],
	[ 5, 'uid_default', 'SELECT uid_next('.q{'uid_generators.uid_default'}.'), pg_sleep(0.001 * {50})' ],
	[ 3, 'uid_default:u', 'SELECT uid_next() FROM numbers WHERE n <= {3000}' ],
	[ 5, 'uid_default', 'BEGIN; SELECT uid_next() ;; SAVEPOINT a; SELECT unnest(uid_next_array({20})) ;; ROLLBACK TO a;'
		  . ' SELECT pg_sleep(0.01 * {20}) ;; SELECT unnest(uid_next_array({20})) ;; COMMIT' ],
	[ 5, 'named', 'BEGIN; SAVEPOINT a; SELECT segment_next($$named$$) ;; ROLLBACK TO a; SELECT pg_sleep(0.01 * {20}) ;;'
		  . ' SELECT unnest(segment_next_array($$named$$, {100})) ;; COMMIT' ],
	[ 5, 'uid_default,named', 'BEGIN READ ONLY; SELECT uid_next(), segment_next($$named$$) FROM generate_series(1, {50}); COMMIT' ],
	[ 5, 'plain', Ways::draw('value', q{'plain'::regclass}) ],
	[ 3, 'plain:u', 'SELECT segment_next(\'plain\'::regclass) FROM numbers WHERE n <= {1000}' ]);

my @writing = (
	[ 1, 'far:s', 'BEGIN; ALTER SEQUENCE uid_generators.far CACHE 1 ;; ' . Ways::draw('id_array', q{'uid_generators.far'}, '{50}') . ' ;; ROLLBACK' ],
	[ 5, 'mixed:l', Ways::draw('nextval', q{'mixed'}, '{20}') ],
	[ 5, 'mixed_small:l', Ways::draw('nextval', q{'mixed_small'}, '{20}') ],
	[ 8, 'churn', 'BEGIN; SELECT uid_generator_create(\'churn_{w}_{c}\') ;; SELECT unnest(uid_next_array(\'uid_generators.churn_{w}_{c}\', {100})) ;;'
		  . ' SELECT uid_generator_drop(\'uid_generators.churn_{w}_{c}\'); COMMIT' ],
	[ 15, 'uid_default,of_orders', 'INSERT INTO orders DEFAULT VALUES RETURNING id, v' ],
	[ 10, 'uid_default,of_orders', 'INSERT INTO orders SELECT FROM generate_series(1, {200}) RETURNING id, v' ],
	[ 5, 'uid_default,of_orders', 'BEGIN; INSERT INTO orders SELECT FROM generate_series(1, {20}) RETURNING id, v; ROLLBACK' ],
	[ 5, 'uid_default', 'INSERT INTO ticketed (item) SELECT $$x$$ FROM generate_series(1, {20}) RETURNING id' ],
	[ 5, '-', 'COPY copied (item) FROM STDIN' ],
	[ 5, 'mixed', 'INSERT INTO mixed_rows SELECT FROM generate_series(1, {20}) RETURNING id' ],
	[ 5, 'mixed_small', 'INSERT INTO mixed_small_rows DEFAULT VALUES RETURNING id' ],
	[ 3, 'taken:bs', Ways::draw('t_sequence', q{'taken'}, 1) ],
	[ 3, 'taken:bs', Ways::draw('leaf', q{'taken'}, 1) ],
	[ 3, 'taken:bs', Ways::draw('leaf', q{'taken'}, 5) ],
	[ 3, 'uid_default,of_orders', 'BEGIN; INSERT INTO orders DEFAULT VALUES RETURNING id, v; PREPARE TRANSACTION \'w{w}\''
		  . ' ;; COMMIT PREPARED \'w{w}\'' ]);

# A key reveals the id that it has concealed.
my @concealing = (
	[ 5, 'uid_default', "SELECT uid_reveal(uid_conceal(id, 'shown'), 'shown') FROM (SELECT uid_next() AS id FROM generate_series(1, {100})) AS ids" ],
	[ 5, 'js53', "SELECT uid_reveal(uid_conceal(id, 'versioned'), 'versioned')"
		  . " FROM (SELECT uid_next('uid_generators.js53') AS id FROM generate_series(1, {100})) AS ids" ]);

# For sessions that draw as much as they can. A statement brings so many values that what else it costs hardly counts.
my @in_bulk = (
	[ 10, 'uid_default', '/*binary*/ SELECT uid_next_array(50000)' ],
	[ 1, 'uid_default', 'COPY (' . Ways::draw('id_array', '', 20000) . ') TO STDOUT' ],
	[ 3, 'leaf', "/*binary*/ SELECT uid_next_array('uid_generators.leaf', 50000)" ],
	[ 3, 'ring', "/*binary*/ SELECT uid_next_array('uid_generators.ring', 50000)" ],
	[ 3, 'shared', "/*binary*/ SELECT uid_next_array('uid_generators.shared', 50000)" ],
	[ 5, 'named', "/*binary*/ SELECT segment_next_array('named', 50000)" ],
	[ 5, 'plain', "/*binary*/ SELECT segment_next_array('plain'::regclass, 50000)" ],
	[ 1, 'down', 'COPY (' . Ways::draw('value_array', q{'down'::regclass}, 20000) . ') TO STDOUT' ]);

sub ways_in_bulk
{
	return @in_bulk;
}

# The same ways for each generator and each segment.
sub ways_for_all
{
	my @ways;
	foreach my $name (sort keys %generators)
	{
		my $generator = "'uid_generators.$name'";
		push @ways,
		  [ 3, $name, Ways::draw('ids', $generator, '{50}') ],
		  [ 2, $name, Ways::draw('id_array', $generator, '{50}') ],
		  [ 2, $name, 'BEGIN; ' . Ways::draw('id', $generator) . " ;; SELECT uid_next_array($generator, {20}) ;; ROLLBACK" ];
	}
	push @ways, map { [ 10, $_, Ways::draw('id_array', "'uid_generators.$_'", '{2000}') ] } qw(far backup);
	foreach my $name (sort keys %segments)
	{
		my $sequence = "'" . ($segments{$name}{sequence} // $name) . "'::regclass";
		push @ways,
		  [ 3, $name, Ways::draw('values', "'$name'", '{100}') ],
		  [ 3, $name, Ways::draw('value_array', $sequence, '{200}') ],
		  [ 3, $name, 'COPY (' . Ways::draw('values', $sequence, '{200}') . ') TO STDOUT' ],
		  [ 2, $name, "SELECT segment_next_array('$name', {50})" ],
		  [ 2, "$name:b", Ways::draw('block', $sequence, '{200}') ],
		  [ 1, "$name:b", 'BEGIN; ' . Ways::draw('block', "'$name'", '{20}') . ' ;; SELECT pg_sleep(0.01 * {20}) ;; ROLLBACK' ];
	}
	return @ways;
}

# All that a session may send, before the dice and the setting choose.
sub ways
{
	return (@reading, @writing, @concealing, ways_for_all());
}

# In seconds, of one statement.
sub longest_sleep_s ($self)
{
	return max(0, map { $_->[2] =~ /pg_sleep\(([\d.]+) \* \{(\d+)\}\)/ ? $1 * $2 : () } $self->ways);
}

sub new ($class, $setting)
{
	my @databases = map { $_ == 1 ? 'postgres' : "db$_" } 1 .. $setting->{databases};
	return bless { setting => $setting, databases => \@databases, streams => [], number => {} }, $class;
}

sub databases ($self)
{
	return @{ $self->{databases} };
}

sub create ($self, $node)
{
	my ($first, @others) = $self->databases;
	$self->create_in($node, $first);
	foreach my $database (@others)
	{
		$node->safe_psql('template1', "CREATE DATABASE $database");
		$self->create_in($node, $database);
	}
	$self->read_streams($node, $_) foreach $self->databases;
}

sub create_in ($self, $node, $database)
{
	$node->safe_psql($database, join '',
		"SET client_min_messages = error;\n",
		"CREATE EXTENSION uidgen;\n",
		(map { "SELECT uid_generator_create('$_', $generators{$_}{create});\n" } sort keys %generators),
		(map { "$segments{$_}{create};\n" } sort keys %segments),
		$tables);
}

# Of each generator, as the checker's file `streams` has them (checker.cpp): its name; fields from the least value on; and
# what known_fields() takes.
sub generators_of ($node, $database)
{
	return map { [ split /\|/ ] } split /\n/, $node->safe_psql($database, <<"END");
SELECT substr(generator::text, 16), 1, (2::numeric ^ (time_bits + datacenter_bits + worker_bits + sequence_bits) - 1)::bigint,
       'history', 0, (extract(epoch FROM epoch) * 1000000)::bigint, tick_us,
       datacenter_bits + worker_bits + sequence_bits, max_ahead_ms * 1000::bigint,
       CASE mode WHEN 'cached' THEN max_staleness_ms * 1000::bigint ELSE 0 END, (mode = 'cached')::integer,
       worker_policy, worker_number, coalesce(datacenter_id, -1), datacenter_bits, worker_bits,
       CASE WHEN sequence_first THEN 0 ELSE sequence_bits END, backup_worker::integer
  FROM uid_generator
END
}

sub read_streams ($self, $node, $database)
{
	foreach my $of (generators_of($node, $database))
	{
		my ($name, @fields) = @$of;
		my $generator = $generators{$name} // { order => 2 }; # the builtin one
		my @node = splice @fields, 10;
		push @fields, $node->{uidgen_clock} // '-';
		$self->add_stream($database, $name, $generator->{order}, 1, @fields, known_fields($generator->{is_moved}, @node));
		# Generators of the same layout, dropped and created again.
		$fields[2] = 'connection';
		$self->add_stream($database, 'churn', 1, 1, @fields) if $name eq 'uid_default';
	}
	foreach my $name (sort keys %segments)
	{
		my $sign = $segments{$name}{sign} // 1;
		my @range = $sign > 0 ? ($segments{$name}{least} // 1, '9223372036854775807') : ('-9000000000000000000', -1);
		$self->add_stream($database, $name, $segments{$name}{order}, $sign, @range, 'history', (0) x 7);
	}
}

# The fields of a node that a person gave (core/node.hpp), as checker.cpp reads them.
sub known_fields ($is_moved, $policy, $number, $datacenter, $datacenter_bits, $worker_bits, $shift, $has_backup)
{
	my $is_given = $datacenter >= 0;
	my $worker = $policy eq 'static' ? $number : $is_given && !$datacenter_bits ? $datacenter : undef;
	my @known;
	push @known, join ':', $shift + $worker_bits, $datacenter_bits, $datacenter if $is_given && $datacenter_bits;
	push @known, join ':', $shift, $worker_bits, join ',', $is_moved ? "$worker+" : $worker,
	  $has_backup ? $worker + 2**($worker_bits - 1) : ()
	  if defined $worker;
	return @known ? "@known" : '-';
}

# Only ids have a clock and known fields.
sub add_stream ($self, $database, $name, @fields)
{
	$self->{number}{$database}{$name} = scalar @{ $self->{streams} };
	push @{ $self->{streams} }, join "\t", "$database.$name", @fields, ('-') x (14 - @fields);
}

sub streams ($self)
{
	return map { "$_\n" } @{ $self->{streams} };
}

sub number ($self, $database, $name)
{
	return $self->{number}{$database}{$name} // die "no stream $name in $database";
}

# 'uid_default:u,named' with the numbers of the streams.
sub numbered ($self, $database, $columns)
{
	return '-' if $columns eq '-';
	return join ',', map {
		my ($name, $flags) = split /:/;
		$self->number($database, $name) . ($flags // '')
	} split /,/, $columns;
}

# The statements of a session: see worker.cpp. Each session has its own selection of weights.
sub statements ($self, $database, $dice)
{
	my @ways = (@reading, ways_for_all());
	my @lines = map { "0\t-\t$_\n" } @setup;
	push @lines, map { "-1\t-\t$_\n" } @tried;
	push @ways, @writing unless $self->{setting}{read_only};
	push @ways, @concealing;
	# A pg_sleep that is under way when the clock goes back lasts as much longer, up to ten minutes.
	@ways = grep { $_->[2] !~ /FROM numbers|pg_sleep/ } @ways if $self->{setting}{clock};
	return @lines, $self->lines_of($database, $dice, @ways);
}

# A session that does a few things does them often.
sub lines_of ($self, $where, $dice, @ways)
{
	my @lines;
	foreach my $way (@ways)
	{
		my ($weight, $columns, $statement) = @$way;
		$weight *= $dice->one_of(0, 1, 1, 4);
		# A crash may lose the row, and so its value.
		$columns .= $self->{setting}->commits_are_durable ? ':i' : ':l' if $statement =~ /^INSERT INTO mixed/;
		push @lines, "$weight\t" . $self->numbered($where, $columns) . "\t$statement\n" if $weight > 0;
	}
	return @lines;
}

sub statements_in_bulk ($self, $where)
{
	return map { my ($weight, $columns, $statement) = @$_; "$weight\t" . $self->numbered($where, $columns) . "\t$statement\n" }
	  $self->ways_in_bulk;
}

# Calls that a session may make any number of times.
sub calls
{
	return ('uid_next()', 'uid_next_array(10)', "uid_next('uid_generators.ring')", "uid_next('uid_generators.shared')",
		"uid_next('uid_generators.js53')", "segment_next('named')", "segment_next_array('small', 10)",
		"segment_next('plain'::regclass)", "uid_conceal(4711, 'shown')", "(SELECT last FROM segment_reserve('named', 5))");
}

# What the tables hold that no session was given, or, after a promotion, everything that survived.
sub rows ($self, $database, $all)
{
	my @tables = ([ 'copied', 'id', 'uid_default:e' ]);
	push @tables, [ 'orders', 'id, v', 'uid_default:e,of_orders:e' ], [ 'ticketed', 'id', 'uid_default:e' ],
	  [ 'mixed_rows', 'id', 'mixed:e' ], [ 'mixed_small_rows', 'id', 'mixed_small:e' ]
	  if $all;
	return map { "1\t" . $self->numbered($database, $_->[2]) . "\tCOPY (SELECT $_->[1] FROM $_->[0]) TO STDOUT\n" } @tables;
}

1;
