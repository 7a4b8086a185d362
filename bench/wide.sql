-- The bench layout: 35/3/3/22 instead of 41/5/5/12, so that 4,194 million ids a second fit, and what is measured
-- is never a wait for the clock. The builtin generator cannot be altered, so another one is the default.
SELECT uid_generator_create('wide');
SELECT uid_default_set('uid_generators.wide');
SELECT uid_generator_alter(generator, epoch => date_trunc('day', now()) - interval '1 day', time_bits => 35,
                           datacenter_bits => 3, worker_bits => 3, sequence_bits => 22)
  FROM uid_generator WHERE preset = 'snowflake' AND mode = 'snowflake' AND NOT builtin;
