# docs/change-data.md: a reader that waits for settled_id() gets every row once, where one that asks for larger ids misses
# some: beside open, prepared and rolled back transactions, and clients that commit out of order. So
# does a reader of transactions, beside one of another database.
use UidgenTest;
use Pages;

my $node = new_node('change_data', conf => "max_prepared_transactions = 5\n");
start_node($node);
sql('CREATE SCHEMA uidgen; CREATE EXTENSION uidgen SCHEMA uidgen; ALTER DATABASE postgres SET search_path = public, uidgen');
sql('CREATE TABLE events (id bigint PRIMARY KEY DEFAULT uid_next(), data text)');
sql(block_of('docs/change-data.md', qr/CREATE FUNCTION settled_id/));
my ($wait, $read) = map { $_->[0] } @{ Session::statements(block_of('docs/change-data.md', qr/id < :mark/) =~ s/:(last|mark)/\$$1/gr) };

my ($last, @seen) = (0);
sub read_to ($mark)
{
	push @seen, map { (split /\|/)[1] } split /\n/, sql($read =~ s/\$last/$last/r =~ s/\$mark/$mark/r);
	$last = $mark;
}

# The reader's calls of pg_sleep reach this function, which counts how often the reader has looked in vain.
sql(<<'SQL');
CREATE SCHEMA instead;
CREATE SEQUENCE instead.rounds;
CREATE FUNCTION instead.pg_sleep(double precision) RETURNS void LANGUAGE sql
  AS $$ SELECT nextval('instead.rounds'); SELECT pg_catalog.pg_sleep($1) $$;
SQL
my ($slow, $later, $reader) = map { hold_open($node) } 1 .. 3;
$reader->query_safe('SET search_path = instead, pg_catalog, public, uidgen');
sub has_answered { return IO::Select->new($reader->{socket})->can_read(0.02) }

# True if the reader looks twice from now on, in vain.
sub waits
{
	my $rounds = 'SELECT last_value FROM instead.rounds';
	my $enough = sql($rounds) + 3;  # the first may have begun before
	poll_until('the reader', sub { has_answered() || sql($rounds) >= $enough });
	return !has_answered();
}

# The holder of a smaller id commits after that of a larger one.
$slow->query_safe('BEGIN; SAVEPOINT s; INSERT INTO events (data) VALUES ($$slow$$); SAVEPOINT t; SELECT uid_next(); ROLLBACK TO t');
sql('INSERT INTO events (data) VALUES ($$fast$$)');
my $plain = sql('SELECT max(id) FROM events');
send_query($reader, $wait);
ok(waits(), 'the reader waits for the transaction');

# One that begins later does not hold it back.
$later->query_safe('BEGIN; INSERT INTO events (data) VALUES ($$later$$)');
ok(waits(), 'it still waits');
$slow->query_safe('COMMIT');
my ($mark) = finish_query($reader);
read_to($mark);
is("@seen", 'slow fast', 'it gets both rows');
is(sql("SELECT count(*) FROM events WHERE id > $plain"), 0, '... of which a reader of larger ids misses one');

# A prepared transaction goes on holding its locks.
send_query($reader, $wait);
ok(waits(), 'the reader waits for the other one');
$later->query_safe('PREPARE TRANSACTION $$later$$');
sql('INSERT INTO events (data) VALUES ($$after$$)');
ok(waits(), '... also when it is prepared');
sql('COMMIT PREPARED $$later$$');
($mark) = finish_query($reader);
read_to($mark);
is("$seen[2]", 'later', 'the row of the prepared transaction');

$later->query_safe('BEGIN; INSERT INTO events (data) VALUES ($$earlier$$); PREPARE TRANSACTION $$earlier$$');
send_query($reader, $wait);
ok(waits(), 'the reader waits for a transaction that was prepared before it began');
sql('COMMIT PREPARED $$earlier$$');
($mark) = finish_query($reader);
read_to($mark);

# An error ends the transaction and its claim.
$slow->query_safe('BEGIN; INSERT INTO events (data) VALUES ($$none$$)');
is(sqlstate($slow, 'SELECT 1 / 0'), '22012', 'an error');
send_query($reader, $wait);
($mark) = finish_query($reader);
read_to($mark);
is("@seen", 'slow fast later after earlier', 'no row of a transaction that has failed');
$slow->query_safe('ROLLBACK');

# Two readers take turns. Otherwise each could wait for the end of the other's draw, for ever.
$slow->query_safe('BEGIN; SELECT uid_next()');
send_query($_, $wait) foreach $reader, $later;
my $waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
ok(poll_until('the second reader', sub { sql($waiting) }), 'the second reader draws later');
$slow->query_safe('COMMIT');
finish_query($_) foreach $reader, $later;

# 240 rows of 8 clients, which commit in the reverse order of their draws.
my @clients = map { hold_open($node) } 1 .. 8;
for my $round (1 .. 30)
{
	$_->query_safe("BEGIN; INSERT INTO events (data) VALUES ('many')") foreach @clients;
	send_query($reader, $wait) if $round % 3 == 0;
	$_->query_safe('COMMIT') foreach reverse @clients;
	next if $round % 3;
	($mark) = finish_query($reader);
	read_to($mark);
}
read_to(sql($wait));
is(scalar(grep { $_ eq 'many' } @seen), 240, 'each of 240 rows comes once');
is(scalar(@seen), 245, 'and no other row');

# A reader of transactions waits for those of other databases, too.
sql('CREATE DATABASE other');
sql('CREATE TABLE queue (id bigint PRIMARY KEY DEFAULT uid_next(), item text)');
my ($column, $index, $from_queue) = map { $_->[0] } @{ Session::statements(block_of('docs/change-data.md', qr/ALTER TABLE queue/)) };
my $other = hold_open($node, dbname => 'other');
sql($column);
sql($index);
$other->query_safe('BEGIN; SELECT pg_current_xact_id()');
sql('INSERT INTO queue (item) VALUES ($$tea$$)');
is(sql($from_queue), '', 'an open transaction in another database holds the reader back');
$other->query_safe('COMMIT');
ok(poll_until('the row', sub { sql($from_queue) =~ /\|tea$/ }), '... until it ends');

# docs/uidgen_reader.sql, by the commands in its head: the tables of a dump have their rows where the extension is not.
sql(<<'SQL');
SELECT uid_generator_create('web', 'js53'), segment_create('small'), uid_key_create('k'), uid_t_sequence_create();
CREATE TABLE pages (id bigint PRIMARY KEY DEFAULT uid_next('uid_generators.web'), small bigint DEFAULT segment_next('uid_segments.small'),
                    code uuid DEFAULT uid_next_uuid(), other uuid DEFAULT uid_next_uuid('uid_generators.web'));
INSERT INTO pages SELECT FROM generate_series(1, 10);
CREATE SCHEMA zoo;
CREATE TABLE zoo.animals AS SELECT id FROM events;   -- after the extension's tables in a dump
SQL
wait_for_node_rows($node, '%', 2);
my ($begin, $copy_out, $copy_in) = map { s/^--//mgr } slurp_file('docs/uidgen_reader.sql') =~ /^((?:--   .+\n)+)/mg;
sql('CREATE DATABASE reader');
my ($status, $output) = run_shell($node, <<"SH", SOURCE => Cwd::getcwd());
cp "\$SOURCE/docs/uidgen_reader.sql" .
psql -Xq -v ON_ERROR_STOP=1 -d postgres <<'SQL'
$copy_out
SQL
psql -Xq -v ON_ERROR_STOP=1 -d reader <<'SQL'
SET client_min_messages = warning;
$begin
$copy_in
SQL
pg_dump -Fc -d postgres >dump
{ pg_restore -d reader dump 2>&1 || true; } | grep ERROR | sort
SH
is($status, 0, 'the commands of the reader succeed');
my $harmless = qr/extension|uid_secrets|uid_keys|uid_internal|worker_node|already exists|leases of a generator|uid_reserve_block/;
is(join("\n", grep { !/$harmless/ } split /\n/, $output), '', 'only what is the extension\'s is an error');
is($node->safe_psql('reader', 'SELECT count(*) FROM public.events JOIN LATERAL uidgen.uid_decode(id) ON generated_at < now()'),
	sql('SELECT count(*) FROM events'), 'tables have their rows, with the time of each');
is($node->safe_psql('reader', 'SELECT count(*) FROM zoo.animals'), sql('SELECT count(*) FROM events'), '... in each schema');
is($node->safe_psql('reader', 'SELECT * FROM public.pages ORDER BY id'), sql('SELECT * FROM pages ORDER BY id'), '... whatever their defaults draw from');
is($node->safe_psql('reader', "SELECT bool_and(uidgen.uid_timestamp(id, 'uid_generators.web') < now()) FROM public.pages"), 't', '... also from a generator');
like(failure($node, 'INSERT INTO public.pages VALUES (DEFAULT)', 'reader'), qr/cannot draw any/, 'a draw is an error');

$node->stop;
done_testing();
