# The ways to draw, as statements, for the matrix (Matrix.pm) and the torture (test/lib/torture/Paths.pm).
#
#   Ways::draw('ids', "'uid_generators.g'", 20)
#   Ways::draw('id')                              # without a generator: from the default one
#
# A new way is a line here, and a line where a test is to use it: of %ways in Matrix.pm, of @reading or @writing in Paths.pm.
package Ways;

use v5.36;

# OBJECT is a generator, a segment or a row of a table that stands for one, as an argument. N is how many values, or blocks.
my %statements = (
	id => 'SELECT uid_next(OBJECT)',
	ids => 'SELECT uid_next(OBJECT) FROM generate_series(1, N)',
	id_array => 'SELECT unnest(uid_next_array(OBJECT, N))',
	uuids => 'SELECT uid_from_uuid(uid_next_uuid(OBJECT)) FROM generate_series(1, N)',
	# An id, and what the generator is raised to, which counts as given: no later id is below it.
	raised => 'SELECT unnest(ARRAY[id, above]) FROM (SELECT id, above, uid_generator_raise(OBJECT, above) FROM'
	  . ' (SELECT id, id + (N::bigint << 22) AS above FROM (SELECT uid_next(OBJECT) AS id OFFSET 0) d OFFSET 0) r OFFSET 0) a',
	value => 'SELECT segment_next(OBJECT)',
	values => 'SELECT segment_next(OBJECT) FROM generate_series(1, N)',
	value_array => 'SELECT unnest(segment_next_array(OBJECT, N))',
	block => 'SELECT generate_series(first, last, increment) FROM segment_reserve(OBJECT, N)',
	nextval => 'SELECT nextval(OBJECT) FROM generate_series(1, N)',
	# As nodes of other services take blocks: from the row as the UPDATE returns it, or as it was before.
	t_sequence => 'WITH u AS (UPDATE t_sequence SET current_val = current_val + N * increment_val WHERE pk_seq_name = OBJECT RETURNING current_val, increment_val)'
	  . ' SELECT generate_series(current_val - N * increment_val, current_val - 1) FROM u',
	leaf => 'WITH u AS (UPDATE leaf_alloc SET max_id = max_id + N * step WHERE biz_tag = OBJECT RETURNING max_id, step)'
	  . ' SELECT generate_series(max_id - N * step, max_id - 1) FROM u',
	shown => 'WITH r AS (SELECT current_val, increment_val FROM t_sequence WHERE pk_seq_name = OBJECT FOR UPDATE),'
	  . ' u AS (UPDATE t_sequence SET current_val = current_val + N * increment_val WHERE pk_seq_name = OBJECT)'
	  . ' SELECT generate_series(current_val, current_val + N * increment_val - 1) FROM r');

sub draw ($way, $object = '', $n = '')
{
	my $statement = $statements{$way} // die "no way $way";
	$statement =~ s/OBJECT, // if $object eq '';
	return $statement =~ s/OBJECT/$object/gr =~ s/\bN\b/$n/gr;
}

1;
