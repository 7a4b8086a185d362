# PostgreSQL 17 and later, without the preload: what keeps databases apart. If uidgen.registry or uidgen.datacenter_id is set in
# any way, draws fail with the line to add, whenever the library was loaded. They never draw as if nothing were set. A number
# in a generator's row needs no preload, and a registry does.
use UidgenTest;

plan skip_all => 'PostgreSQL 15 and 16 need the preload' if `pg_config --version` =~ /\b1[56]\./;

my $node = new_server('unloaded');
$node->safe_psql('postgres', <<'END');
SELECT uid_generator_create('g'), uid_generator_create('cached', mode => 'cached', spread => false), segment_create('s');
CREATE TABLE orders (id bigint DEFAULT uid_next());
CREATE FUNCTION draw() RETURNS bigint LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS 'BEGIN RETURN uid_next(); END';
CREATE TABLE many AS SELECT * FROM generate_series(1, 20000) AS n;
ANALYZE many;
CREATE ROLE client LOGIN;
GRANT SELECT ON many TO client;
END
my @draws = (
	'SELECT uid_next()', q{SELECT uid_next('uid_generators.g')}, q{SELECT uid_next('uid_generators.cached')}, 'SELECT uid_next_array(10)',
	'SELECT uid_next_uuid()', 'INSERT INTO orders DEFAULT VALUES', q{SELECT segment_next('s')}, q{SELECT segment_next_array('s', 10)},
	q{SELECT * FROM segment_reserve('s', 10)});
my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; ';

# Whether the statement fails for that setting, and says what to do. No draw of the list has a value then.
sub refused ($on, $setting, $what, @sql)
{
	my $message = qr/ERROR:  55000: uidgen must be loaded via shared_preload_libraries\nDETAIL:  \Quidgen.$setting\E is set/;
	my $hint = qr/HINT:  (?:Set|Reconnect\. If that does not help, set) shared_preload_libraries = 'uidgen' in postgresql.conf and restart the server/;
	my @wrong;
	foreach my $sql (@sql ? @sql : @draws)
	{
		my ($state, $error) = sqlstate($on, $sql);
		push @wrong, "$sql: $error" unless $error =~ $message && $error =~ $hint;
	}
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is("@wrong", '', "$what: draws are refused");
}

sub draw ($on, $what)
{
	my @wrong = grep { sqlstate($on, $_) ne '00000' } @draws;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is("@wrong", '', "$what: draws");
}

# A session as a role that is no superuser, with options of its own.
sub client (%opts)
{
	local $ENV{PGOPTIONS} = $opts{options} // '';
	return $node->start_session('postgres', user => $opts{user} // 'client') // die 'no connection';
}

# Changes the file or the catalogs, and waits until the server, and the sessions, know.
sub set_in_file ($line)
{
	$node->append_conf('postgresql.conf', "$line\n");
	my ($name, $value) = $line =~ /^(\S+) = (?|'(.*)'|(.*))$/;
	$node->reload;
	ok( $node->poll_query_until('postgres', "SELECT current_setting('$name', true) = '$value'"), $line);
}

my $nothing_set = $node->safe_psql('postgres', 'SHOW config_file');
sub forget_file
{
	my $kept = slurp_file($nothing_set) =~ s/^uidgen\.(?:registry|datacenter_id) = .*\n//mgr;
	write_file($nothing_set, $kept);
	$node->reload;
	ok( $node->poll_query_until('postgres', "SELECT coalesce(current_setting('uidgen.registry', true), '') = ''"
			  . " AND coalesce(current_setting('uidgen.datacenter_id', true), '-1') IN ('', '-1')"),
		'nothing is set any more');
}

my %values = (registry => [ 'host=/nowhere dbname=ids', 'no connection string' ], datacenter_id => [ '3', '0' ]);

# In postgresql.conf, which is reloaded: for sessions that have loaded the library, that have not, and that connect later. When
# it is gone again, a session that loaded the library before or after goes on. One that loaded it meanwhile does not know
# whether the value was the file's or its client's, so it has to reconnect.
foreach my $setting (sort keys %values)
{
	foreach my $value (@{ $values{$setting} })
	{
		my ($loaded, $idle, $busy) = map { hold_open($node) } 1 .. 3;
		draw($loaded, "a session that loads the library, before $setting is set");
		my $before = $busy->query_safe('BEGIN; SELECT uid_next()');
		set_in_file("uidgen.$setting = '$value'");
		refused($loaded, $setting, 'a session that has loaded it');
		refused($busy, $setting, 'a session that is drawing', 'SELECT uid_next()');
		refused($idle, $setting, 'a session that has not');
		refused($node, $setting, 'a new session');
		refused(client(options => "-c uidgen.$setting="), $setting, 'a client that hides it', 'SELECT uid_next()');
		my $first_in_worker = hold_open($node);
		refused($first_in_worker, $setting, 'a parallel query that loads it', "${parallel}SELECT count(draw()) FROM many");
		refused($first_in_worker, $setting, '... and its session');
		refused(client(options => "-c uidgen.$setting="), $setting, '... of a client that hides it', "${parallel}SELECT count(draw()) FROM many");
		$first_in_worker->quit;
		forget_file();
		$busy->query('ROLLBACK');
		draw($loaded, 'a session that has loaded the library before');
		draw($busy, 'another one, after a rollback');
		draw(hold_open($node), 'a new session');
		refused($idle, $setting, 'a session that loaded it meanwhile');
		like((sqlstate($idle, 'SELECT uid_next()'))[1], qr/HINT:  Reconnect\./, '... which a reconnection helps');
		$_->quit foreach $loaded, $idle, $busy;
	}
}

# By ALTER SYSTEM, after the library was loaded.
{
	my $loaded = hold_open($node);
	draw($loaded, 'a session');
	$node->safe_psql('postgres', $_) foreach q{LOAD 'uidgen'; ALTER SYSTEM SET uidgen.registry = 'host=/nowhere'}, 'SELECT pg_reload_conf()';
	ok(poll_until('the reload', sub { sqlstate($loaded, 'SELECT uid_next()') ne '00000' }), 'ALTER SYSTEM');
	refused($loaded, 'registry', 'that session');
	refused($node, 'registry', 'a new session');
	$node->safe_psql('postgres', $_) foreach 'ALTER SYSTEM RESET uidgen.registry', 'SELECT pg_reload_conf()';
	ok(poll_until('the reload', sub { sqlstate($loaded, 'SELECT uid_next()') eq '00000' }), 'ALTER SYSTEM RESET');
	draw($loaded, 'that session');
	$loaded->quit;
}

# For a database or a role: sessions from now on, their parallel workers, and those of a session that is older.
foreach my $of ('DATABASE postgres', 'ROLE client')
{
	foreach my $setting (sort keys %values)
	{
		my $older = client();
		is($older->query_safe('SELECT uid_next() > 0'), 't', "a session before ALTER $of SET uidgen.$setting");
		$node->safe_psql('postgres', "ALTER $of SET uidgen.$setting = '$values{$setting}[0]'");
		refused(client(), $setting, 'a session from now on', 'SELECT uid_next()');
		refused(client(options => "-c uidgen.$setting="), $setting, 'one whose client hides it', 'SELECT uid_next()');
		refused(client(options => "-c uidgen.$setting=", user => 'client'), $setting, '... in a parallel query', "${parallel}SELECT count(draw()) FROM many");
		is($older->query_safe('SELECT uid_next() > 0'), 't', 'the session from before goes on');
		$older->quit;
		# By a session that has loaded the library this is an error for uidgen.registry, which it knows then.
		$node->safe_psql('postgres', "ALTER $of RESET uidgen.$setting");
		is(client()->query_safe('SELECT uid_next() > 0'), 't', 'a session after RESET');
	}
}

# By a client, who harms nobody else; whether the role may set it or not.
my $super = $node->safe_psql('postgres', 'SELECT current_user');
foreach my $user ('client', $super)
{
	foreach my $setting (sort keys %values)
	{
		foreach my $value (@{ $values{$setting} }, '', '-1')
		{
			my $escaped = $value =~ s/ /\\ /gr;
			refused(client(user => $user, options => "-c uidgen.$setting=$escaped"), $setting, "options of $user: $setting=$value", 'SELECT uid_next()');
			my $session = client(user => $user);
			$session->query_safe("SET uidgen.$setting = '$value'");
			refused($session, $setting, '... SET before a parallel query loads the library', "${parallel}SELECT count(draw()) FROM many");
			$session = client(user => $user);
			# A pooler's session. The role may not set it, or the value is none: then it has none.
			$session->query_safe("SET client_min_messages = error; SET uidgen.$setting = '$value'; SELECT uid_to_base62(1)");
			if ($user eq $super && $setting eq 'datacenter_id' && $value =~ /^\d/)
			{
				refused($session, $setting, '... SET before the library is loaded', 'SELECT uid_next()');
			}
			else
			{
				is($session->query_safe('SELECT uid_next() > 0'), 't', '... SET before the library is loaded, without effect');
			}
			$session->query_safe('DISCARD ALL');
			is($session->query_safe('SELECT uid_next() > 0'), 't', '... and after DISCARD ALL the session draws');
			is($session->query_safe("${parallel}SELECT count(draw()) FROM many"), 20000, '... in a parallel query, too');
			$session = client(user => $user);
			$session->query_safe("SET uidgen.$setting = '$value'; RESET uidgen.$setting; BEGIN; SET LOCAL uidgen.$setting = '$value'; COMMIT");
			is($session->query_safe('SELECT uid_next() > 0'), 't', '... and reset before');
		}
	}
}
{
	my $session = client(user => $super);
	draw($session, 'a superuser');
	$session->query_safe('SET uidgen.datacenter_id = 3');
	refused($session, 'datacenter_id', 'SET after the library was loaded');
	$session->query_safe('RESET uidgen.datacenter_id');
	draw($session, 'RESET');
	$session->query_safe('BEGIN; SET LOCAL uidgen.datacenter_id = 3');
	refused($session, 'datacenter_id', 'SET LOCAL', 'SELECT uid_next()');
	$session->query_safe('ROLLBACK');
	draw($session, 'ROLLBACK');
	is(client()->query_safe('SELECT uid_next() > 0'), 't', 'others draw all the while');
}

# A number in a generator's row works; a registry does not.
$node->safe_psql('postgres', "SELECT uid_generator_create('own', datacenter_id => 7)");
is($node->safe_psql('postgres', "SELECT datacenter_id FROM uid_decode(uid_next('uid_generators.own'))"), 7, 'the number of a row is in its ids');
is($node->safe_psql('postgres', "SELECT protection FROM uid_generator_status WHERE generator = 'uid_generators.own'::regclass"), 'set', '... as the status says');
foreach my $call (
	'SELECT uid_fleet_move()', "SELECT segment_attach('a')")
{
	my ($state, $error) = sqlstate($node, $call);
	is($state, '55000', "$call fails");
	like($error, qr/must be loaded via shared_preload_libraries|uidgen\.registry/, '... and says why');
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM uid_registry_status'), 0, 'the views of a fleet are empty');

# The line of the hint, and a restart.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'uidgen'\nuidgen.datacenter_id = 3\n");
$node->restart;
is($node->safe_psql('postgres', 'SELECT datacenter_id FROM uid_decode(uid_next())'), 3, 'preloaded, the number is in the ids');
draw($node, 'preloaded');
$node->stop;
done_testing();
